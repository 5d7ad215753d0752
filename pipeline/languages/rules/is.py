"""Icelandic."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="hr fr dr próf t.d þ.e þ.e.a.s m.a sbr skv u.þ.b a.m.k sk",
        number="nr bls kl kap gr sími",
        either="e.kr f.kr millj",
        list="o.s.frv o.fl o.þ.h",
    ),
    dotted_ordinals=True,
    separators=".,",
)
