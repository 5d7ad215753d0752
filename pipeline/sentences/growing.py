"""The text of a sentence as its changes build it: the one place where changes are applied. Pure.

The text has two parts: committed text, which never changes, and a draft after it, which may. A change removes characters
from the end, appends others, and says how much of the result is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Protocol

from pipeline.events import Delta, PipelineEvent, SourceDelta, SourceSentence, Translation


class Change(Protocol):
    """What ``SourceDelta`` and ``Delta`` have in common."""

    @property
    def text(self) -> str: ...
    @property
    def withdrawn(self) -> int: ...
    @property
    def committed(self) -> int: ...


class TextChangeError(ValueError):
    """A change withdraws text that is committed or does not exist."""


@dataclass(frozen=True)
class Piece:
    """The text that one change appended."""

    text: str
    mark: Any = None
    """What the caller wants to remember of the change, such as its time."""


@dataclass(frozen=True)
class Applied:
    """The effect of a change on the pieces of a text."""

    withdrawn: tuple[Piece, ...] = ()
    """The pieces removed, in text order, the first one perhaps only in part."""
    appended: tuple[Piece, ...] = ()
    """The kept part of a piece removed in part, then the new piece."""

    @property
    def withdrawn_text(self) -> str:
        """The characters withdrawn."""
        kept = self.appended[0].text if self.withdrawn and self.appended and self._kept else ""
        return "".join(piece.text for piece in self.withdrawn)[len(kept) :]

    _kept: bool = False


class GrowingText:
    """The text of one sentence in one language: the result of all its changes so far."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        """The text, as the changes appended it. A change that appends nothing has an empty piece."""
        self.committed = 0
        """Length of the committed text in characters."""
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def text(self) -> str:
        """The whole text: committed, then draft."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def committed_text(self) -> str:
        return self.text[: self.committed]

    @property
    def draft(self) -> str:
        return self.text[self.committed :]

    def apply(self, change: Change, mark: object = None) -> Applied:
        """Apply the next change. ``mark`` is kept with the piece that it appends.

        Raises:
            TextChangeError: the change withdraws committed text, or more text than there is, or commits less than before
                or more than there is. The text is left as it was.
        """
        kept_length = self._length - change.withdrawn
        length = kept_length + len(change.text)
        if change.withdrawn < 0 or kept_length < self.committed:
            raise TextChangeError(
                f"a change withdraws {change.withdrawn} of {self._length} characters, of which {self.committed} are "
                "committed; only the draft after them may be withdrawn"
            )
        if not self.committed <= change.committed <= length:
            raise TextChangeError(
                f"a change commits {change.committed} characters of {length}; at least the {self.committed} committed "
                "before and at most all of them are allowed"
            )
        withdrawn: list[Piece] = []
        left = change.withdrawn
        while left > 0:
            withdrawn.insert(0, self.pieces.pop())
            left -= len(withdrawn[0].text)
        appended = [replace(withdrawn[0], text=withdrawn[0].text[:-left])] if left < 0 else []
        appended.append(Piece(change.text, mark))
        self.pieces += appended
        self.committed, self._length = change.committed, length
        return Applied(tuple(withdrawn), tuple(appended), _kept=left < 0)


class OpenTexts:
    """The texts of all sentences in progress: recognised, and translated into each language."""

    def __init__(self) -> None:
        self._texts: dict[tuple[int, str, bool], GrowingText] = {}

    def push(self, event: PipelineEvent, mark: object = None) -> GrowingText | None:
        """Take the next event; return the text that it changes or completes, None for other events.

        Raises:
            TextChangeError: see ``GrowingText.apply``.
        """
        if isinstance(event, SourceDelta | Delta):
            text = self._texts.setdefault(_key(event), GrowingText())
            text.apply(event, mark)
            return text
        if isinstance(event, SourceSentence | Translation):
            return self._texts.pop(_key(event), GrowingText())
        return None

    def forget(self, language: str) -> None:
        """Drop the translations into a language that is no longer translated into."""
        for key in [key for key in self._texts if key[1:] == (language, False)]:
            del self._texts[key]


def _key(event: SourceDelta | SourceSentence | Delta | Translation) -> tuple[int, str, bool]:
    # A draft may change the language of a source text.
    source = isinstance(event, SourceDelta | SourceSentence)
    return event.sentence, "" if source else event.language, source


def edit(old: str, new: str) -> tuple[int, str]:
    """The smallest change at the end that turns ``old`` into ``new``: characters withdrawn, text appended."""
    same = common_length(old, new)
    return len(old) - same, new[same:]


def common_length(first: Sequence[object], second: Sequence[object]) -> int:
    """Length of the common beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def merged(first: SourceDelta | Delta, second: SourceDelta | Delta) -> SourceDelta | Delta | None:
    """Two consecutive changes of one text as one change; None if they belong to different texts."""
    if _key(first) != _key(second):
        return None
    beyond = max(0, second.withdrawn - len(first.text))  # reaches into the text before ``first``
    text = first.text[: max(0, len(first.text) - second.withdrawn)] + second.text
    withdrawn = first.withdrawn + beyond
    if isinstance(first, Delta) and isinstance(second, Delta):
        score = first.log_probability + second.log_probability
        return replace(second, text=text, withdrawn=withdrawn, token=None, log_probability=score)
    return replace(second, text=text, withdrawn=withdrawn)


def merged_with(newest_first: Iterable[PipelineEvent], event: PipelineEvent) -> tuple[int, PipelineEvent] | None:
    """An event merged with the last waiting change of the same text, and that change's index, counted from the end: -1, -2 …

    The merged change takes the place of the waiting one, so that texts begin in the order in which they were written.
    Changes of other texts, such as those in another language, may wait between the two. None if there is no such change.
    """
    if not isinstance(event, SourceDelta | Delta):
        return None
    for back, waiting in enumerate(newest_first, 1):
        if not isinstance(waiting, SourceDelta | Delta):
            return None
        if (both := merged(waiting, event)) is not None:
            return -back, both
    return None
