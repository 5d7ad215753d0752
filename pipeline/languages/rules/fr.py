"""French."""

from .record import Rules

RULES = Rules(neighbour="Je le sais.")
