"""Swahili."""

from .record import FullStops, Rules

RULES = Rules(full_stops=FullStops(before="bw bi dk prof mh", number="uk", list="n.k n.k.w"))
