"""Luxembourgish."""

from .record import Rules

RULES = Rules(capital_nouns=True)
