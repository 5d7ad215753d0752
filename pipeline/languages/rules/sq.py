"""Albanian."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(before="z znj zj dr prof p.sh d.m.th shën bul rr", number="nr fq f neni vëll tel", list="etj")
)
