"""Slovenian."""

from .record import Rules

RULES = Rules(dotted_ordinals=True, separators=".,")
