"""Serbo-Croatian."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="g gđa gđica gosp dr prof mr ing dipl ul sv npr tj tzv odn akad",
        number="br str st sl tab čl stav tel",
        either="god n.e pr.n.e kn tis mil mlrd d.o.o d.d st",
        list="itd i.sl sl dr",
    ),
    dotted_ordinals=True,
)
