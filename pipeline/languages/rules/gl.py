"""Galician."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="sr sra srta dr dra prof p.ex ex d av avda",
        number="núm no pág páx páxs art vol cap fig tel",
        either="s.a s.l ee.uu a.c d.c",
        list="etc",
    ),
    separators=".,",
)
