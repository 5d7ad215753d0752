"""Norwegian."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="hr fr frk dr prof f.eks bl.a d.v.s dvs ca jf ev evt inkl ekskl pga vedr mht iht st adv",
        number="nr s kap kl tlf art bd fig pkt",
        either="e.kr f.kr mill mrd jr",
        list="osv etc m.m m.v o.l",
        word="det ut kan med ord id reg",
    ),
    dotted_ordinals=True,
)
