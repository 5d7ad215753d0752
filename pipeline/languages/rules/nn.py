"""Norwegian Nynorsk: the rules of Bokmål."""

from .no import RULES as RULES
