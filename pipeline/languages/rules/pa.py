"""Panjabi."""

from .record import FullStops, Rules

RULES = Rules(full_stops=FullStops(before="ਡਾ ਪ੍ਰੋ ਸ ਸ੍ਰ"), own_digits=True)
