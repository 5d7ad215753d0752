"""Whether a file is in another language than the configuration's: by its name, its text, or its speech."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

from ..core import VadConfig
from ..languages import confusable, english_name, known_language, same_language, written_language
from ..languages.rules import has_rules

FLAGS = frozenset({"forced", "foreign", "default", "sdh", "cc", "hi"})
"""After the language in the names of media servers (Plex, Jellyfin, Kodi). "hi" is Hindi where that is translated."""
# Of the languages that a model hears, the likeliest says something if it is this probable.
_SURE = 0.8


def of_text(path: Path, text: str, spoken: str) -> str | None:
    """The language of subtitles that are not in ``spoken``; None if they are, or nothing tells."""
    written = written_language(text, spoken)
    return _other(written, spoken) if written is not None else of_name(path, spoken)


def of_speech(path: Path, spoken: str, vad: VadConfig, recognizer: object, track: int | None) -> str | None:
    """The language of a recording that is not in ``spoken``; None if it is, or nothing tells. ``track``: see ``Recording``.

    Raises:
        PipelineError: the recording cannot be read.
    """
    from ..backends import first_speech, guessed_languages  # slow, and not needed for subtitles
    from ..media import Recording

    with closing(Recording(path, language=spoken, track=track)) as source:
        shares = guessed_languages(recognizer, first_speech(source, vad))
    if not shares:
        return of_name(path, spoken)
    heard = max(shares, key=shares.__getitem__)
    return _other(heard, spoken) if shares[heard] >= _SURE else None


def of_name(path: Path, spoken: str) -> str | None:
    """The language that the name of a file ends with, as film.es and film.spa.forced do, if it is not ``spoken``."""
    parts = re.split(r"(?<=.)\.", path.stem)[1:]
    while parts and parts[-1].lower() in FLAGS:
        parts.pop()
    code = known_language(parts[-1]) if parts else None
    return (
        _other(code, spoken) if code is not None and has_rules(code) else None
    )  # many words are codes of small languages


def said(language: str, spoken: str) -> str:
    """The message for a file in another language: what is wrong, and what to do."""
    return f"in {english_name(language)}, not in {english_name(spoken)}: give --source {language}"


def _other(language: str, spoken: str) -> str | None:
    return None if same_language(language, spoken) or confusable(language, spoken) else language
