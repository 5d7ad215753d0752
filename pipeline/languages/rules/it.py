"""Italian."""

from .record import Rules

RULES = Rules(neighbour="Lo so.")
