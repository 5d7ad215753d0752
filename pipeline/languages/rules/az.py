"""Azerbaijani."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(before="dr prof akad ad məs yəni bax", number="no səh küç tel", list="və.s"),
    separators=".,",
    dotted_i=True,
)
