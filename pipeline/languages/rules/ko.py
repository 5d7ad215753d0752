"""Korean."""

import re

from .record import Rules

RULES = Rules(
    encoding="cp949",
    separators=",.",
    scales=(("억", 8), ("만", 4)),
    particles=re.compile(r"(?:이?라(?:고|는|며|면서)|하고|하며|고)(?=[\s,]|$)"),
)
