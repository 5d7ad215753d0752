"""Georgian."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(before="ქ ე.ი ე.წ მაგ პროფ აკად ბ-ნი ქ-ნი ქ-ნ ბ-ნ იხ ძვ.წ ახ.წ", number="გვ ტ", list="ა.შ სხვ")
)
