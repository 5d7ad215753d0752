"""Swedish."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="hr fr dr prof s.k t.ex d.v.s dvs bl.a m.fl.a fr.o.m t.o.m t.v st ca jfr resp ev f.d p.g.a inkl exkl",
        number="nr s sid kap kl tel st art vol avd fig",
        either="e.kr f.kr milj tkr jr",
        list="osv etc m.m m.fl o.s.v o.d",
        starter="Han Hon Den Det De Jag Du Vi Ni Man En Ett Men Och Så Sedan Sen Då Där Här Om När Vad Vem Var Varför Hur Min Mitt Din Sin Hans Hennes Ja Nej Nu Idag Också Inte I På Med För Efter Till Av",
        word="det ut kan med ord id ens rep",
    )
)
