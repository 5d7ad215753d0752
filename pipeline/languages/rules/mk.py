"""Macedonian."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="т.е т.н проф акад доц д-р г-дин г-ѓа инж ул бул св",
        number="бр стр сл гл чл т тел",
        either="г год п.н.е н.е",
        list="итн др и.др",
    ),
    separators=".,",
)
