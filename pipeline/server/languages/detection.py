"""In which language a text is written, with the library eldc where it is installed; it knows 60."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ...languages import language_tag, nearest
from ..protocol import sendable


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
    eldc, text = _library(), sendable(text)
    narrow = eldc.instance()
    narrow.set_languages(sorted({language_tag(code).language for code in offered} & {*eldc.LANGUAGES}))
    found = narrow.detect_details(text)
    if not found.reliable and (among_all := eldc.detect_details(text)).reliable:
        found = among_all
    return [(next(iter(nearest(code, offered)), code), score) for code, score in found.scores.items()] or [
        (offered[0], 0.0)
    ]
