"""Armenian."""

from .record import FullStops, Rules

RULES = Rules(full_stops=FullStops(before="պրոֆ օր"))
