"""Catalan."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="sr sra srta dr dra prof p.ex ex av avda st sta pl ctra mn il·lm excm aprox cf",
        number="núm n pàg pàgs p pp art vol cap fig tel",
        either="s.a s.l ee.uu a.c d.c",
        list="etc",
        word="de en un para bien di",
    ),
    separators=".,",
)
