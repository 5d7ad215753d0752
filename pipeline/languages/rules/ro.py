"""Romanian."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="dl dr prof ing sf str bd jud com ex de.ex cca av gen col d-na d-ra d-l d-lui vs",
        number="nr pag p art vol cap fig tel al ed sec",
        either="s.a s.r.l a.c d.c î.hr d.hr",
        list="etc ș.a ş.a ș.a.m.d ş.a.m.d",
        word="va",
    ),
    separators=".,",
)
