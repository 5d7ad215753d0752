"""German."""

from .record import FullStops, Rules

RULES = Rules(
    neighbour="Das weiß ich.",
    capital_nouns=True,
    digits=".,",
    separators=".,",
    full_stops=FullStops(
        before="dr prof hr hrn fr frl dipl ing st hl sankt z.b z.t z.zt u.a d.h i.d.r u.u v.a i.a o.g s.o s.u bzw ca vgl inkl exkl evtl ggf insb insbes sog gest geb verh ehem allg mind abs zzgl abzgl bspw rd gegr",
        number="nr nrn s bd bde kap abb art abs ziff tel st str jg ausg aufl fn tab lfd rn rdnr jan feb aug sept okt nov dez",
        either="chr n.chr v.chr gmbh a.d jh jhd jhdt str mio mrd tsd usd e.v i.r med phil rer.nat jur h.c",
        list="usw etc u.s.w u.ä o.ä u.v.m usf",
        starter="Er Sie Es Ich Du Wir Ihr Man Der Die Das Den Dem Des Ein Eine Einen Einem Einer Dann Danach Da Dabei Daher Deshalb Dort Hier Aber Und Oder Denn Doch Wenn Als Weil Was Wer Wie Wo Warum Wann Mein Meine Dein Deine Sein Seine Unser Unsere Kein Keine Ja Nein Nun Jetzt Heute Morgen Gestern Damals Später Im In Am An Auf Mit Nach Vor Bei Für Von Zu Aus So Auch Noch Nur Schon Dies Diese Dieser Dieses Alle Alles Viele Bitte Danke Also Seitdem Davor Zuvor Inzwischen Allerdings Trotzdem",
        determiner="der die das den dem des ein eine einen einem einer eines am im vom zum zur beim ans ins ab bis seit mein meine meinen meinem meiner sein seine seinen seinem seiner ihr ihre ihren ihrem ihrer unser unsere unseren unserem unserer dein deine jeder jede jedes jeden jedem dieser diese dieses diesen diesem und oder pro kein keine auf",
        counted="Januar Jänner Februar März April Mai Juni Juli August September Oktober November Dezember Jahrhundert Jahrhunderts Jahrtausend Bundesliga Liga Weltkrieg Weltkriegs Weltkrieges Platz Mal Stock Etage Stockwerk Klasse Semester Runde Spieltag Minute Auflage Kapitel Geburtstag Jahrestag Lebensjahr Advent Obergeschoss Teil Staffel Folge Korintherbrief Armee Division Sinfonie Symphonie",
        label="plan vitamin klasse gruppe typ punkt version teil linie stufe gleis halle familie sprache buchstabe",
        word="mich mag ok min jan bart ken gen",
    ),
    dotted_ordinals=True,
)
