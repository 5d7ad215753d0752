"""Italian."""

from .record import FullStops, Rules

RULES = Rules(
    neighbour="Lo so.",
    digits=".,",
    separators=".,",
    full_stops=FullStops(
        before="sig sigg sigra sig.ra sig.na sigg.ri dott dott.ssa dottssa prof prof.ssa ing avv arch geom rag sen mons s ss magg egr gent.mo preg.mo spett p.es p.e es ad.es cfr v vs ca c.so v.le p.za p.zza l.go f.lli s.ta s.to rev On Gen Col Cap Ten",
        number="n nn nr num pag pagg p pp art artt vol voll cap capp fig figg tel sez par tab tav ed",
        either="s.p.a s.r.l srl s.n.c a.c d.c a.m p.m c.a jr u.s.a",
        list="ecc etc et.al",
        starter="Lui Lei Loro Egli Ella Essi Io Tu Noi Voi Il Lo La I Gli Le Un Uno Una Ma E O Ed Poi Allora Dopo Prima Quando Se Come Per In Nel Nella Con Senza Di Da A Al Che Chi Cosa Dove Perché Mio Mia Suo Sua Nostro Nostra Questo Questa Questi Queste Quello Quella Sì No Ora Oggi Domani Ieri Qui Là Anche Già Non È Sono Era Grazie Ci Si Mi Ti Vi Ecco Inoltre Infatti Quindi Tutti Tutto L Così Però",
        label="piano vitamina gruppo tipo classe opzione versione punto parte scala linea epatite linguaggio lettera",
        word="no di in si le se ma ha lo mai ci fa su ne va te sia ai li vi po so sa gia via sai ore fai ce fra giu usa nato ama bar km tv file max alt spot mica ve fin mo uni dos iva tim fiat cd pc pop car grano nodo tese long sol",
    ),
)
