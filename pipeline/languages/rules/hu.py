"""Hungarian."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="dr prof ifj id özv pl ún ill vö kb ti szt gr hgy",
        number="sz o old évf köt tel",
        either="i.e i.sz kr u kft rt bt",
        list="stb",
        word="nem ok",
    ),
    dotted_ordinals=True,
    encoding="cp1250",
)
