"""Malay: the words of Indonesian."""

from .id import RULES as _INDONESIAN
from .record import Rules

RULES = Rules(full_stops=_INDONESIAN.full_stops)
