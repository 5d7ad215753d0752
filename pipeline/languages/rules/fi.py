"""Finnish."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="esim ks vrt ns nk tri prof dr toim mm ts",
        number="n nro s klo puh",
        either="eaa jaa ekr jkr milj mrd oy",
        list="jne ym yms tms",
    ),
    dotted_ordinals=True,
)
