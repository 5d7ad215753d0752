"""Transcripts of Chinese in one script, text and words alike. Whisper writes either, from one segment to the next. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.errors import UsageError
from pipeline.events import Word
from pipeline.languages import CHINESE, language_tag
from pipeline.languages.chinese import Convert, divided, simplified, traditional

AS_HEARD = "as-heard"
_CONVERSIONS: dict[str, Convert] = {"simplified": simplified, "traditional": traditional}


def script_conversion(script: str | None, language: str) -> Convert | None:
    """What a recogniser's text of ``language`` is converted by, for the configured ``script``; None for nothing.

    Raises:
        UsageError: the language is not written in that script.
    """
    tag = language_tag(language)
    if script is None:
        return simplified if tag.language == "zh" else None
    if script == AS_HEARD:
        return None
    if tag.language not in CHINESE or script not in _CONVERSIONS:
        raise UsageError(
            f"asr.script is {script!r}, and the language spoken {language!r}; allowed are simplified and traditional where it is "
            "Chinese (zh or yue), and as-heard: leave the key out, or set languages.source"
        )
    return _CONVERSIONS[script]


def in_script(text: str, words: Sequence[Word], convert: Convert | None) -> tuple[str, list[Word]]:
    """``text`` and its ``words`` converted; the words, joined, are the text as before, and keep their times."""
    if convert is None:
        return text, list(words)
    converted = divided([word.text for word in words], convert)
    return convert(text), [replace(word, text=one) for word, one in zip(words, converted, strict=True)]
