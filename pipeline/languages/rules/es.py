"""Spanish."""

from .record import Rules

RULES = Rules(neighbour="Eso lo sé.")
