"""Bosnian."""

from dataclasses import replace

from . import sh

RULES = replace(sh.RULES, separators=".,")
