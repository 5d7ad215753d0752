"""Slovak."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="p pí dr mudr judr phdr rndr ing mgr bc prof doc sv ul nám napr t.j tj tzn tzv resp vr cca príp gen plk",
        number="č s str sv roč obr tab kap ods tel",
        either="r n.l pred.n.l tis mil mld hod min s.r.o a.s stor",
        list="atď a.pod apod etc",
        word="co tu pod",
    ),
    dotted_ordinals=True,
)
