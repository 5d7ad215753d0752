"""The text of a sentence as it stands, source or translation: a newer state replaces an older one of the same text. Pure.

The text has two parts: committed text, which never changes, and a draft after it, which may.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from ..events import PipelineEvent, SourceSentence, SourceText, TargetText, Translation

State = SourceText | SourceSentence | TargetText | Translation
"""The text of a sentence: in progress, or as it ended."""


class TextChangeError(ValueError):
    """A state of a text does not begin with what was committed before."""


def key(state: State) -> tuple[int, str]:
    """Sentence and language of a text, "" for the source: a draft may change the language of a source text."""
    return state.sentence, state.language if isinstance(state, TargetText | Translation) else ""


def replacing(before: State | None, now: State) -> None:
    """Check that ``now`` may replace ``before``, the newest state of the same text.

    Raises:
        TextChangeError: committed text would change, or more is committed than there is.
    """
    text, committed = ("", 0) if before is None else (before.text, before.committed)
    if committed <= now.committed <= len(now.text) and now.text.startswith(text[:committed]):
        return
    what = f"the translation into {now.language}" if isinstance(now, TargetText | Translation) else "the text"
    raise TextChangeError(
        f"{what} of sentence {now.sentence} is {text!r} with {committed} characters committed; it cannot become "
        f"{now.text!r} with {now.committed} committed: committed text stays as it is, and only text that is there is committed"
    )


class OpenTexts:
    """The newest states of all sentences in progress: recognised, and translated into each language."""

    def __init__(self) -> None:
        self._texts: dict[tuple[int, str], SourceText | TargetText] = {}

    def push(self, event: PipelineEvent) -> SourceText | TargetText | None:
        """Take the next event; return the state before of the text that it has, None if there is none.

        Raises:
            TextChangeError: see ``replacing``.
        """
        if isinstance(event, SourceText | TargetText):
            before = self._texts.get(key(event))
            replacing(before, event)
            self._texts[key(event)] = event
            if not event.text and (isinstance(event, SourceText) or event.complete):  # withdrawn, perhaps for ever
                del self._texts[key(event)]
            return before
        return self._texts.pop(key(event), None) if isinstance(event, SourceSentence | Translation) else None

    def forget_until(self, sentence: int) -> None:
        """Drop the texts of the sentences before."""
        self._texts = {each: text for each, text in self._texts.items() if each[0] >= sentence}

    def get(self, sentence: int, language: str = "") -> SourceText | TargetText | None:
        """The newest state of a sentence in progress: of its translation into ``language``, by default of the source."""
        return self._texts.get((sentence, language))


def place_of(event: PipelineEvent, newest_first: Iterable[PipelineEvent]) -> int | None:
    """The place, counted from the end (-1, -2 …), of the waiting state that ``event`` replaces; None if there is none.

    So a slow reader skips states, and texts begin in the order in which they were written. Other texts in progress, such
    as those in another language, may wait between the two.
    """
    if not isinstance(event, SourceText | TargetText):
        return None
    for back, waiting in enumerate(newest_first, 1):
        if not isinstance(waiting, SourceText | TargetText):
            return None
        if key(waiting) == key(event):
            return -back
    return None


def common_length(first: Sequence[object], second: Sequence[object]) -> int:
    """Length of the common beginning."""
    if second[: len(first)] == first:  # nearly always: a text that has grown
        return len(first)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
