"""Polish."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="ul al pl os prof dr hab mgr inż doc św bł ks abp bp o s p pp gen płk mjr kpt por np tzn tzw m.in tj ww ds wg zob przyp red dyr",
        number="nr s str t rozdz rys tab art ust pkt poz godz tel zł ok",
        either="r w n.e p.n.e zł gr tys mln mld km kg min godz sp.z.o.o im",
        list="itd itp etc in",
        starter="On Ona Ono Oni One Ja Ty My Wy To Ten Ta Te Tam Tu Tutaj Potem Wtedy Kiedy Gdy Jeśli Ale A I Lub Tak Nie Co Kto Jak Gdzie Dlaczego Mój Moja Jego Jej Ich Nasz Teraz Dziś Dzisiaj Jutro Wczoraj Już Jeszcze Też Także Wszystko W We Na Z Ze Po Za Od Do Dla Przy Jednak Dlatego Następnie Czy Jest",
        word="pol port mar",
    ),
    dotted_ordinals=True,
    encoding="cp1250",
)
