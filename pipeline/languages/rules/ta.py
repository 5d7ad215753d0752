"""Tamil."""

from .record import FullStops, Rules

RULES = Rules(full_stops=FullStops(before="டாக்டர் திரு திருமதி செல்வி கி.மு கி.பி எ.கா"), own_digits=True)
