"""Irish."""

from .record import FullStops, Rules

RULES = Rules(full_stops=FullStops(before="m.sh dr i.e lch.m", number="lch uimh", list="srl rl"))
