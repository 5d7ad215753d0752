"""Welsh."""

from .record import FullStops, Rules

RULES = Rules(full_stops=FullStops(before="e.e dr parch", number="t tud rhif"))
