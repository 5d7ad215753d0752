"""The text of a sentence as it stands, source or translation: a newer state replaces an older one of the same text. Pure.

A text is a draft until its ``SourceSentence`` or ``Translation``; then it is final, and no other state of it follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from ..events import PipelineEvent, SourceSentence, SourceText, TargetText, Translation

State = SourceText | SourceSentence | TargetText | Translation
"""The text of a sentence: in progress, or as it ended."""


class TextChangeError(ValueError):
    """A state of a text that is final already, or one with more steady text than there is."""


def key(state: State) -> tuple[int, str]:
    """Sentence and language of a text, "" for the source: a draft may change the language of a source text."""
    return state.sentence, state.language if isinstance(state, TargetText | Translation) else ""


class OpenTexts:
    """The newest states of all sentences in progress: recognised, and translated into each language."""

    def __init__(self) -> None:
        self._texts: dict[tuple[int, str], SourceText | TargetText] = {}
        self._final: dict[str, int] = {}
        """The last sentence whose text is final, by language, "" for the source."""

    def push(self, event: PipelineEvent) -> SourceText | TargetText | None:
        """Take the next event; return the state before of the text that it has, None if there is none.

        Raises:
            TextChangeError: the text is final, or has more steady text than there is.
        """
        if not isinstance(event, State):
            return None
        number, language = key(event)
        if isinstance(event, SourceText | TargetText):
            self._check(event, number, language)
            before = self._texts.get((number, language))
            self._texts[number, language] = event
            if not event.text and (isinstance(event, SourceText) or event.complete):  # withdrawn, perhaps for ever
                del self._texts[number, language]
            return before
        self._final[language] = max(number, self._final.get(language, -1))
        return self._texts.pop((number, language), None)

    def _check(self, event: SourceText | TargetText, number: int, language: str) -> None:
        what = f"the translation into {language}" if language else "the text"
        if language == "" and number <= self._final.get(language, -1):
            raise TextChangeError(f"{what} of sentence {number} is final; it cannot become {event.text!r}")
        if not 0 <= event.steady <= len(event.text):
            raise TextChangeError(
                f"{what} of sentence {number} is {event.text!r}, with {event.steady} steady characters"
            )

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
