"""Estonian."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="hr pr prl dr prof nt s.t s.o st sh vrd ca",
        number="nr lk kd tel",
        either="pkr ekr",
        list="jne jms jt jm",
    ),
    dotted_ordinals=True,
)
