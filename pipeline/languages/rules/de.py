"""German."""

from .record import Rules

RULES = Rules(neighbour="Das weiß ich.")
