"""Basque."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(before="dr adib zk esate And Jn", number="or zk zenb art tel", list="etab eta.abar"),
    dotted_ordinals=True,
    separators=".,",
)
