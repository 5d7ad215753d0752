"""Tagalog."""

from .record import FullStops, Rules

RULES = Rules(full_stops=FullStops(before="gng g bb dr atty", list="atbp"))
