"""Build translated sentences from deltas. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from pipeline.events import Delta, PipelineEvent
from pipeline.subtitles.text import is_cjk, normalized


@dataclass(frozen=True)
class Sentence:
    """A complete sentence and its time."""

    start_s: float
    end_s: float
    source: str
    text: str
    """Normalized; empty only if nothing was translated but the source is shown."""
    seams: frozenset[int] = frozenset()
    """Token boundaries as positions in ``text``."""
    final: bool = True
    """Whether it is the last of its segment."""

    def joined(self, other: Sentence) -> Sentence:
        """This sentence and the next one, ``other``, combined."""
        text = _join_texts(self.text, other.text)
        shift = len(text) - len(other.text)
        seams = self.seams | {shift + seam for seam in other.seams} | {shift}
        source = _join_texts(self.source, other.source)
        return Sentence(self.start_s, max(self.end_s, other.end_s), source, text, seams, other.final)


class SentenceBuilder:
    """Builds sentences from deltas. A sentence without text is dropped, unless its source is shown."""

    def __init__(self, *, bilingual: bool = False) -> None:
        self._bilingual = bilingual
        self._tokens: list[str] = []

    def push(self, event: PipelineEvent) -> Sentence | None:
        """Take one event; return the sentence it completes, if any."""
        if not isinstance(event, Delta):
            return None
        self._withdraw(event.withdrawn)
        self._tokens.append(event.text)
        if not event.end_of_sentence:
            return None
        raw, seams = "".join(self._tokens), frozenset(accumulate(map(len, self._tokens)))
        self._tokens = []
        text, source = normalized(raw), normalized(event.source)
        if not (text or (self._bilingual and source)):
            return None
        if text != raw:
            seams = frozenset(len(normalized(raw[:seam])) for seam in seams)
        return Sentence(event.start_s, event.end_s, source, text, seams, event.final)

    def _withdraw(self, count: int) -> None:
        while count > 0 and self._tokens:
            last = self._tokens.pop()
            if len(last) > count:
                self._tokens.append(last[:-count])
            count -= len(last)


def _join_texts(first: str, second: str) -> str:
    if not (first and second):
        return first or second
    return first + ("" if is_cjk(first) and is_cjk(second) else " ") + second
