"""Translates subtitles: sentences go on over them, are translated whole, and are laid out in the same times. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise

from ..nmt.terms.markup import NEXT, Fragment, joined_sentences, parts
from .documents import FileCue
from .lines import layout
from .rules import SubtitleRules

_LONG_PAUSE_MS = 5_000
"""No sentence goes on after it."""
_TAG = r"<[^<>\n]*>|\{[^{}\n]*\}"
_PIECE = re.compile(rf"(?P<tag>{_TAG})|(?P<blank>\s+)|\S")
# The end of a line that stays one: someone else speaks, or sings.
_LINE_END = re.compile(rf"\n(?!(?:{_TAG}|\s)*(?:[-–—‐♩-♯\[(]|>>|[^\W\d_a-zß-öø-ÿ][^\W\d_a-zß-öø-ÿ .'’]*:))")


def translated_cues(
    cues: Sequence[FileCue], translation: Callable[[Fragment], str], languages: tuple[str, str], rules: SubtitleRules
) -> list[str]:
    """The text of each subtitle in the other language, with its markup.

    ``translation``: of a sentence, with its marks. ``languages``: that of the subtitles, and the one to translate into.
    """
    source, target = languages
    found: list[str] = []
    for run in _runs(cues):
        whole = ""
        for part in parts(NEXT.join(_LINE_END.sub(" ", cue.text) for cue in run), one_text=True):
            whole += (
                part if isinstance(part, str) else joined_sentences([*map(translation, part.sentences(source))], target)
            )
        found += whole.split(NEXT)
    texts = ["\n".join(_laid_out(line.strip(), rules) for line in text.split("\n")) for text in found]
    if rules.bilingual:
        return [f"{text}\n{cue.text}" if text != cue.text else text for text, cue in zip(texts, cues, strict=True)]
    return texts


def _runs(cues: Sequence[FileCue]) -> Iterator[Sequence[FileCue]]:
    """The subtitles in which a sentence may go on from one to the next."""
    start = 0
    for number, (one, two) in enumerate(pairwise(cues), 1):
        apart_ms = 0 if one.end_ms is None or two.start_ms is None else two.start_ms - one.end_ms
        if one.voice != two.voice or not 0 <= apart_ms < _LONG_PAUSE_MS:
            yield cues[start:number]
            start = number
    yield cues[start:]


def _laid_out(line: str, rules: SubtitleRules) -> str:
    """A text with the best line breaks."""
    pieces = list(_PIECE.finditer(line))
    shown = " ".join("".join(" " if one["blank"] else one.group() for one in pieces if not one["tag"]).split())
    lines = [each for cue in layout(shown, rules, cues=1) for each in cue]
    ends = set(accumulate(len("".join(each.split())) for each in lines[:-1]))
    text, count = "", 0
    for piece in pieces:
        if piece["blank"] and count in ends:
            text, ends = f"{text}\n", ends - {count}
        elif piece["blank"] or piece["tag"]:
            text += piece.group()
        else:
            if count in ends:  # between two characters
                text, ends = f"{text}\n", ends - {count}
            text, count = text + piece.group(), count + 1
    return text
