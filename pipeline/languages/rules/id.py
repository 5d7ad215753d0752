"""Indonesian."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(
        before="dr drs ir prof tn ny nn bpk sdr jl kh h hj kab kec a.n mis",
        number="no hal hlm jil tel",
        either="pt s.h s.e m.m",
        list="dll dsb dst",
    ),
    separators=".,",
)
