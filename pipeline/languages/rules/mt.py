"""Maltese."""

from .record import FullStops, Rules

RULES = Rules(full_stops=FullStops(before="dr prof sur.ra", list="eċċ"))
