"""Dutch."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="dhr mevr mw mej dr drs ir ing mr prof ds st bijv d.w.z o.a m.n t.a.v i.v.m m.b.t n.a.v t.o.v d.m.v i.p.v t.g.v i.h.b gem incl excl ca zgn v.d vgl resp burg",
        number="nr nrs blz p pp art hfst vol dl fig tel afb tab",
        either="n.chr v.chr chr n.v b.v a.m p.m jr sr mln mld bv",
        list="enz etc e.d e.a",
        starter="Hij Zij Ze Het Ik Jij Je Wij We Jullie U De Een Dat Dit Die Deze Maar En Of Dus Dan Toen Daarna Daar Hier Als Wanneer Wat Wie Waar Waarom Hoe Mijn Zijn Haar Ons Onze Hun Ja Nee Nu Vandaag Morgen Gisteren Ook Nog Niet In Op Met Voor Na Bij Van Er",
        word="dat u best hand not top pas form get",
    ),
    separators=".,",
)
