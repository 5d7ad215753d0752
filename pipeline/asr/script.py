"""Convert Chinese transcripts to one script, text and words alike; Whisper switches between segments. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import UsageError
from ..events import Word
from ..languages import CHINESE, language_tag
from ..languages.chinese import Convert, divided, simplified, traditional

AS_HEARD = "as-heard"
_CONVERSIONS: dict[str, Convert] = {"simplified": simplified, "traditional": traditional}


def script_conversion(script: str | None, language: str) -> Convert | None:
    """The conversion of recognised ``language`` text to the configured ``script``; None for no conversion."""
    tag = language_tag(language)
    if script is None:
        return simplified if tag.language == "zh" else None
    if script == AS_HEARD:
        return None
    if tag.language not in CHINESE or script not in _CONVERSIONS:
        raise UsageError(
            f"asr.script is {script!r} but the spoken language is {language!r}; simplified and traditional are for "
            "Chinese (zh or yue), as-heard for any language: leave the key out, or set languages.source"
        )
    return _CONVERSIONS[script]


def usual_script(spoken: Sequence[str]) -> str | None:
    """The script in which transcripts are written if none is configured: traditional if a language spoken says so (zh-TW)."""
    tags = map(language_tag, spoken)
    return "traditional" if any(tag.language == "zh" and tag.script == "Hant" for tag in tags) else None


def script_conversions(script: str | None, languages: Sequence[str]) -> dict[str, Convert | None]:
    """The ``script_conversion`` of each language; a script that only some of them use applies to those."""
    chinese = [language for language in languages if language_tag(language).language in CHINESE]
    if script in _CONVERSIONS and chinese:
        return {
            language: script_conversion(script if language in chinese else None, language) for language in languages
        }
    return {language: script_conversion(script, language) for language in languages}


def in_script(text: str, words: Sequence[Word], convert: Convert | None) -> tuple[str, list[Word]]:
    """Convert ``text`` and its ``words``. The words keep their times and still join to the text."""
    if convert is None:
        return text, list(words)
    converted = divided([word.text for word in words], convert)
    return convert(text), [replace(word, text=one) for word, one in zip(words, converted, strict=True)]
