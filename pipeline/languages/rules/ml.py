"""Malayalam."""

from .record import FullStops, Rules

RULES = Rules(full_stops=FullStops(before="ഡോ ശ്രീ ശ്രീമതി പ്രൊഫ ക്രി.മു"), own_digits=True)
