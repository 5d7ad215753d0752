"""Thai, which uses the full stop only in abbreviations, not at the end of a sentence."""

import re

from .record import Rules

RULES = Rules(separators=",.", own_digits=True, abbreviation=re.compile(r"[ก-๛]\.\s*$"))
