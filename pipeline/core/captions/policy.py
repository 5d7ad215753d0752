"""What of a translation is shown, and when: hidden last words, steadiness, conversion, changes in one piece. Pure."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ...languages import spaced
from ..events import TargetText, Translation
from ..run.options import DraftOptions
from .states import common_length

if TYPE_CHECKING:
    from ...languages import Convert

# Of a short draft at most this share is hidden, so that a translation appears as soon as its source.
_MOST_HIDDEN = 0.75
# A change of at most so many characters at the end of a draft that has so many more is made at once.
_SMALL_CHANGE = 8
_WORD = re.compile(r"\s*\S+\s*$")
_LATIN_WORD_END = re.compile(r"[A-Za-z0-9]+$")


class AgreeingDrafts:
    """What is shown of the draft translations of one sentence, for a translator that does not tell what it translates.

    The last words, which change most, are hidden unless they are shown already. Text that is shown stays as it is until several
    drafts in a row agree that it must change; more text is shown at once, and so is a draft that changes only the last word but is
    longer. LocalAgreement (Liu, Spanakis and Niehues, 2020) for what is taken back, not for what is shown. What all of these drafts
    begin with is steady.
    """

    def __init__(self, options: DraftOptions) -> None:
        self._options = options
        self._newest: deque[str] = deque(maxlen=options.agreeing)  # drafts, as far as they may be shown

    def events(self, events: Iterable[TargetText | Translation], shown: str) -> Iterator[TargetText | Translation]:
        """The events of a draft as they are shown after ``shown``, the visible text of the draft before."""
        seen, empty = "", True
        for event in events:
            if isinstance(event, Translation):
                if empty:
                    self._newest.append("")
                yield event
                continue
            empty = False
            draft = self._visible(event, shown)
            if event.complete:
                yield self._agreed(draft, shown)
            elif draft.text != seen and draft.text.startswith(shown):  # only more text
                yield draft
            seen = draft.text

    def _visible(self, draft: TargetText, shown: str) -> TargetText:
        text, language = draft.text, draft.language
        again = whole_words(text, common_length(shown, text), language)
        return replace(draft, text=text[: max(again, visible_length(text, language, self._options))], steady=0)

    def _agreed(self, draft: TargetText, shown: str) -> TargetText:
        """A whole draft, or ``shown`` as it is."""
        newest = draft.text
        self._newest.append(newest)
        full, same = len(self._newest) == self._newest.maxlen, common_length(shown, newest)
        agreed = full and all(before == newest or common_length(before, newest) > same for before in self._newest)
        small = len(shown) - same <= _SMALL_CHANGE and len(newest) >= len(shown) + _SMALL_CHANGE
        text = newest if agreed or small or same == len(shown) else shown
        common = min(common_length(before, text) for before in self._newest) if full else 0
        return replace(draft, text=text, steady=whole_words(text, common, draft.language))


def visible_length(text: str, language: str, options: DraftOptions) -> int:
    """How many characters of a draft are shown: all but the last words or characters, by the language's script.

    Something of it is always shown, so that a translation appears as soon as its source.
    """
    if not spaced(language):
        hidden = min(options.mask_characters, int(len(text) * _MOST_HIDDEN))
        return whole_words(text, len(text) - hidden, language)
    end = len(text)
    for _ in range(min(options.mask_words, int(len(text.split()) * _MOST_HIDDEN))):
        match = _WORD.search(text, 0, end)
        end = match.start() if match else 0
    return end


def whole_words(text: str, length: int, language: str) -> int:
    """The greatest length up to ``length`` at which ``text`` can be cut without cutting a word."""
    if length >= len(text):
        return len(text)
    if spaced(language):
        while length and not text[length].isspace():
            length -= 1
        return length
    if (match := _LATIN_WORD_END.search(text, 0, length)) and _LATIN_WORD_END.match(text[length]):
        return match.start()
    return length


def at_once(events: Iterable[TargetText | Translation]) -> Iterator[TargetText | Translation]:
    """The events of a translation without the texts before the last."""
    newest: TargetText | None = None
    for event in events:
        if isinstance(event, TargetText):
            newest = event
            continue
        if newest is not None:
            yield newest
        yield event


def updates(
    shown: TargetText | None, events: Iterator[TargetText | Translation], *, final: bool
) -> Iterator[TargetText | Translation]:
    """The events of a translation that take the place of ``shown``, the draft of the same sentence; None: nothing is shown.

    Where nothing is shown, the events are passed on. Otherwise texts are held back until they are as long as the old one, or
    whole if they are ``final``, so that text is replaced in one change and does not shrink in between. Unless ``final``, a
    translation without a change has no events, and the ``Translation`` is left out.
    """
    old, steady = (shown.text, shown.steady) if shown is not None else ("", 0)
    text, completed, changed = old, False, not old
    for event in events:
        if isinstance(event, Translation):
            if old and not completed:  # an empty translation
                yield TargetText(event.sentence, event.language, "", heard_s=event.heard_s, complete=True)
            if final:
                yield event
            continue
        completed |= event.complete
        if old and not event.complete and (final or len(event.text) < len(old)):
            continue
        new = event.text != text
        changed |= new or (event.complete and event.steady != steady)
        if old and not new and not (event.complete and (final or changed)):
            continue
        text = event.text
        yield replace(event, steady=len(text)) if final and event.complete else event


def rewritten(
    events: Iterable[TargetText | Translation], convert: Convert | None, *, final: bool = True
) -> Iterator[TargetText | Translation]:
    """Yield the events of one sentence with converted texts, which have the length of the original.

    Text is held back until later text cannot change its conversion: until the next punctuation mark, or for some
    characters. So is what is steady in the last text, unless the translation is ``final``.
    """
    if convert is None:
        yield from events
        return
    from ...languages import settled

    waiting: list[TargetText] = []
    for event in events:
        if isinstance(event, Translation):
            yield replace(event, text=convert(event.text))
            continue
        text, whole = event.text, convert(event.text)
        waiting = [*(state for state in waiting if text.startswith(state.text)), event]  # others were taken back unseen
        end = len(text) if event.complete else settled(text)
        while waiting and len(waiting[0].text) <= end:
            ready = waiting.pop(0)
            everything = final and ready.steady == len(text)
            steady = ready.steady if everything else settled(text[: ready.steady])
            yield replace(ready, text=whole[: len(ready.text)], steady=steady if ready.complete else 0)
