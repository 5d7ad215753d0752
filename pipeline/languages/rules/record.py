"""The record that each language fills in. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..marks import letters


@dataclass(frozen=True)
class Rules:
    """What is known of a language."""

    neighbour: str = ""
    """"I know that.": the sentence that a short one is translated after; see ``pipeline.nmt.model_text``."""
    phrases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Target language → short texts that are not translated word by word, as ``letters``, and their translations."""
    fillers: re.Pattern[str] | None = None
    """Sounds that mean nothing, with the comma after them."""
    stutter: re.Pattern[str] | None = None
    """Words that are said twice only by mistake."""

    def phrase(self, text: str, target: str) -> str | None:
        """The translation of a whole text, without marks at its end, if it is one of ``phrases``."""
        return self.phrases.get(target, {}).get(letters(text))


def fillers(sounds: str) -> re.Pattern[str]:
    """``sounds``: a pattern. Those with a hyphen (uh-huh) are left out only between commas, since they may be an answer."""
    answer = rf"(?:{sounds}|mm+)(?:-(?:{sounds}|huh))+"
    return re.compile(
        rf"(?<![\w\"'“‘-])(?:{sounds})(?![\w-]),? *|^{answer}, *|, *{answer}(?=,|[.!?…]*$)", re.IGNORECASE
    )


def stutter(words: str) -> re.Pattern[str]:
    """``words``: a pattern of those that are said twice only by mistake."""
    return re.compile(rf"\b({words})(?:,? \1)+\b", re.IGNORECASE)
