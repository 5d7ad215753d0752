"""What is known of single languages: a file each, which fills in a record. It is imported when the language is used. Pure."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from ..tags import language_tag
from .record import Rules

# The other modules have longer names than codes.
_KNOWN = frozenset(module.name for module in pkgutil.iter_modules(__path__) if len(module.name) <= 3)
# Languages without a file, of which this alone is known.
_OWN_DIGITS = frozenset("as ckb dz fa gu km kn ks lo mni my ne or ps sat sd te ur uz".split())  # noqa: SIM905
_NONE, _ONLY_OWN_DIGITS = Rules(), Rules(own_digits=True)


def rules(language: str) -> Rules:
    """The rules of a language; none are known of most."""
    code = language_tag(language).language
    return _rules(code) if code in _KNOWN else _ONLY_OWN_DIGITS if code in _OWN_DIGITS else _NONE


def has_rules(language: str) -> bool:
    """Whether more is known of a language than its digits."""
    return language_tag(language).language in _KNOWN


@cache
def _rules(code: str) -> Rules:
    record: Rules = import_module(f".{code}", __name__).RULES
    return record
