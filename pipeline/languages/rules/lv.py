"""Latvian."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="piem t.i t.s dr prof kgs sk",
        number="nr lpp tab att tālr",
        either="g gs gads p.m.ē tūkst milj",
        list="utt u.c u.tml",
    ),
    dotted_ordinals=True,
)
