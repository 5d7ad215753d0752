"""Turkish."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="dr prof doç yrd av sn müh alb gen yzb örn bkz hz op",
        number="no nr s sf sok cad tel cilt",
        either="m.ö m.s a.ş ltd şti",
        list="vb vs vd",
        counted="Dünya Cadde Sokak Lig Ordu Kolordu",
        word="ok",
    ),
    dotted_ordinals=True,
    separators=".,",
    encoding="cp1254",
    dotted_i=True,
)
