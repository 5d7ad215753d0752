"""Afrikaans."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="mnr mev mej dr prof ds adv st bv m.a.w d.w.s o.a nl t.o.v n.a.v",
        number="nr bl p art hfst vol tel",
        either="n.c v.c jr sr nm vm",
        list="ens e.d e.s.m",
    )
)
