"""Convert Chinese transcripts to one script, text and words alike; Whisper switches between segments. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..languages import CHINESE, language_tag

if TYPE_CHECKING:
    from ..core import Word
    from ..languages import Convert

_SCRIPTS = ("simplified", "traditional")


def script_conversions(script: str | None, languages: Sequence[str]) -> dict[str, Convert | None]:
    """The conversion of recognised text in each language to the configured ``script``; None for no conversion."""
    if script in _SCRIPTS and not any(language_tag(language).language in CHINESE for language in languages):
        raise UsageError(
            f"asr.script is {script!r} but the spoken language is {languages[0]!r}; simplified and traditional are for "
            "Chinese (zh or yue), as-heard for any language: leave the key out, or set languages.source"
        )
    conversions = {}
    for language in languages:
        code = language_tag(language).language
        wanted = script or ("simplified" if code == "zh" else "")
        conversions[language] = _conversion(wanted) if code in CHINESE and wanted in _SCRIPTS else None
    return conversions


def _conversion(script: str) -> Convert:
    from ..languages import simplified, traditional

    return simplified if script == "simplified" else traditional


def usual_script(spoken: Sequence[str]) -> str | None:
    """The script in which transcripts are written if none is configured: traditional if a language spoken says so (zh-TW)."""
    tags = map(language_tag, spoken)
    return "traditional" if any(tag.language == "zh" and tag.script == "Hant" for tag in tags) else None


def in_script(text: str, words: Sequence[Word], convert: Convert | None) -> tuple[str, list[Word]]:
    """Convert ``text`` and its ``words``. The words keep their times and still join to the text."""
    if convert is None:
        return text, list(words)
    from ..languages import converted_parts

    converted = converted_parts([word.text for word in words], convert)
    return convert(text), [replace(word, text=new) for word, new in zip(words, converted, strict=True)]
