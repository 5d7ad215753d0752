"""Serbian."""

from dataclasses import replace

from . import sh

RULES = replace(sh.RULES, separators=".,", encoding="cp1251")
