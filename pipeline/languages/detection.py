"""In which language a text is written, with the library eldc where it is installed; it knows 60."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from .tags import language_tag, nearest

# Less text may be names, or be in several languages.
_LEAST_LETTERS = 100
# More says no more.
_MOST_CHARACTERS = 20_000


@functools.cache
def _library() -> Any:
    import eldc  # not on every machine

    eldc.init()
    return eldc


def detected(text: str, offered: Sequence[str]) -> list[tuple[str, float]]:
    """The languages in which the text may be written, the likeliest first, each with a confidence from 0 to 1.

    They are among ``offered`` unless the text is surely in another one. If nothing tells: the first of them, with 0.

    Raises:
        ImportError: eldc is not installed.
    """
    eldc, text = _library(), text.encode("utf-8", "backslashreplace").decode()  # without halves of surrogate pairs
    narrow = eldc.instance()
    narrow.set_languages(sorted({language_tag(code).language for code in offered} & {*eldc.LANGUAGES}))
    detection = narrow.detect_details(text)
    if not detection.reliable and (among_all := eldc.detect_details(text)).reliable:
        detection = among_all
    return [(next(iter(nearest(code, offered)), code), score) for code, score in detection.scores.items()] or [
        (offered[0], 0.0)
    ]


def written_language(text: str, expected: str) -> str | None:
    """The language in which a text is surely written; None if there is too little of it, or nobody here can tell.

    Nobody can where ``expected`` is not among the languages that are told apart: its text would be taken for another.
    """
    try:
        eldc = _library()
    except ImportError:
        return None
    if language_tag(expected).language not in eldc.LANGUAGES or sum(map(str.isalpha, text)) < _LEAST_LETTERS:
        return None
    detection = eldc.detect_details(text[:_MOST_CHARACTERS].encode("utf-8", "replace").decode())
    return str(detection.language) if detection.reliable else None
