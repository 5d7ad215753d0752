"""Hebrew."""

from .record import FullStops, Rules

RULES = Rules(full_stops=FullStops(before="פרופ רח שד", number="עמ מס"), separators=",.", encoding="cp1255")
