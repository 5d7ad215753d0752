"""Vietnamese."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(before="tp ts gs pgs ths bs ks tx tt q p đ vd", number="tr", list="v.v"), separators=".,"
)
