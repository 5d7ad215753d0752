"""Danish."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="hr fr frk dr prof f.eks bl.a d.v.s dvs ca jf evt inkl ekskl pga vedr mht sml skt adv",
        number="nr s kap kl tlf art bd fig pkt",
        either="e.kr f.kr mio mia jr",
        list="osv etc m.m m.v o.lign",
        word="med da din to sort kat var form del vær on off pass ned par fork fa ti md",
    ),
    dotted_ordinals=True,
    separators=".,",
)
