"""What is known of single languages: one record each. Pure."""

from __future__ import annotations

from .. import language_tag
from . import de, en, es, fr, it, pt
from .record import Rules

_RULES = {"de": de.RULES, "en": en.RULES, "es": es.RULES, "fr": fr.RULES, "it": it.RULES, "pt": pt.RULES}
_NONE = Rules()


def rules(language: str) -> Rules:
    """The rules of a language; none are known of most."""
    return _RULES.get(language_tag(language).language, _NONE)
