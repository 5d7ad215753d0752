"""Bengali."""

from .record import FullStops, Rules

RULES = Rules(full_stops=FullStops(before="ড ডা মো মোঃ অধ্যাপক প্রফেসর মি", number="নং পৃ"), own_digits=True)
