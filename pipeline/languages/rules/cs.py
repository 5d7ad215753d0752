"""Czech."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="p pí sl dr mudr judr phdr rndr paeddr thdr mvdr ing mgr bc prof doc arch akad sv ul nám tř např tj tzn tzv mj resp vč cca popř příp kpt gen plk mjr",
        number="č s str sv roč obr tab kap odst písm tel",
        either="r l n.l př.n.l kč tis mil mld km kg hod min s.r.o a.s stol",
        list="atd apod aj atp etc",
        word="co tu pod",
    ),
    dotted_ordinals=True,
    encoding="cp1250",
)
