"""Arabic."""

import re

from .record import FullStops, Rules

_VERB = r"(?:قال|قالت|قالوا|سأل|سألت|أجاب|أجابت|رد|ردت|صرخ|صرخت)"
RULES = Rules(
    full_stops=FullStops(before="د أ أ.د م أ.م.د ق.م", number="ص ج م"),
    own_digits=True,
    encoding="cp1256",
    speaking=re.compile(rf"{_VERB}\b(?![^.؟!]{{0,30}}[:«\"])"),
)
