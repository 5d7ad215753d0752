"""Drafts, translations of sentences in progress: their length, and what of them is shown."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from pipeline.events import Delta, Translation
from pipeline.languages import spaced
from pipeline.run.drafts import DraftOptions
from pipeline.sentences.growing import GrowingText, common_length, edit

# Maximum target tokens of a draft: factor × source tokens + constant. Of the demo translators' drafts for 2,786 beginnings
# of 240 sentences, 8 were longer, all of them loops or inventions; of the final translations none was.
_LENGTH_FACTOR, _EXTRA_TOKENS = 2.0, 6
# Of a short draft at most this share is hidden, so that a translation appears as soon as its source. Characters taken back per
# final character, at a mask of 6 characters, on 108 s of speech: 1/2 0.36, 2/3 0.28, 3/4 0.25, 17/20 0.27.
_MOST_HIDDEN = 0.75
# A change of at most so many characters at the end of a draft that has so many more is made at once. With the settings of
# ``DraftOptions``, on 109 s of read speech: 2.8 s from a word to its translation in Portuguese rather than 3.2 s, and 0.42 words
# withdrawn per final word rather than 0.39; Chinese: 3.0 s rather than 3.1 s, 0.58 rather than 0.56.
_SMALL_CHANGE = 8
_WORD = re.compile(r"\s*\S+\s*$")
_LATIN_WORD_END = re.compile(r"[A-Za-z0-9]+$")


def draft_limit(source_tokens: int, max_tokens: int) -> int:
    """The maximum number of tokens of a draft, including the end token."""
    return min(max_tokens, math.ceil(_LENGTH_FACTOR * source_tokens) + _EXTRA_TOKENS)


def masked(events: Iterator[Delta | Translation], shown: str, options: DraftOptions) -> Iterator[Delta | Translation]:
    """The events of a draft without its last words; see ``visible_length``.

    ``shown`` is the visible text of the draft before. Text of it that the draft repeats is not hidden again. A change has
    the log-probabilities of the tokens that it completes.
    """
    text, seen = GrowingText(), ""
    waiting: list[tuple[int, Delta]] = []  # (length of the text up to the token's end, the token's change)
    for event in events:
        if isinstance(event, Translation):
            yield event
            continue
        text.apply(replace(event, committed=0))
        waiting = [(end, token) for end, token in waiting if end <= len(text) - len(event.text)]
        waiting.append((len(text), event))
        now = text.text
        length = visible_length(now, event.language, options)
        length = max(length, whole_words(now, common_length(shown, now), event.language))
        withdrawn, appended = edit(seen, now[:length])
        if not (withdrawn or appended or event.complete):
            continue
        seen = now[:length]
        told = [token for end, token in waiting if end <= length]
        waiting = [(end, token) for end, token in waiting if end > length]
        yield replace(
            event,
            text=appended,
            withdrawn=withdrawn,
            committed=0,
            token=told[0].token if len(told) == 1 else None,
            log_probability=sum(token.log_probability for token in told),
        )


class Steady:
    """Keeps a draft translation as it is until several drafts in a row agree that it must change.

    More text is shown at once, and so is a draft that changes only the last word but is longer. LocalAgreement (Liu, Spanakis and Niehues, 2020) for what is taken back, not for what is shown.
    """

    def __init__(self, agreeing: int) -> None:
        """``agreeing``: number of drafts; 1 follows every draft."""
        self._newest: deque[str] = deque(maxlen=agreeing)  # drafts, as far as they may be shown

    def events(self, events: Iterator[Delta | Translation], shown: str) -> Iterator[Delta | Translation]:
        """The events of a draft, or events that leave ``shown`` as it is."""
        text, passed = GrowingText(), ""
        held: list[Delta] = []
        end: list[Translation] = []
        for event in events:
            if isinstance(event, Translation):
                end.append(event)
                continue
            text.apply(event)
            held.append(event)
            if text.text.startswith(shown):  # only more text
                yield from held
                held, passed = [], text.text
        now = text.text
        self._newest.append(now)
        if held:
            same = common_length(shown, now)
            agreed = all(draft == now or common_length(draft, now) > same for draft in self._newest)
            small = len(shown) - same <= _SMALL_CHANGE and len(now) >= len(shown) + _SMALL_CHANGE
            if small or (agreed and len(self._newest) == self._newest.maxlen):
                yield from held
            else:
                yield replace(held[-1], withdrawn=len(passed), text=shown, committed=0, token=None)
        yield from end


def visible_length(text: str, language: str, options: DraftOptions) -> int:
    """How many characters of a draft are shown: all but the last words or characters, by the language's script.

    Something of it is always shown, so that a translation appears as soon as its source.
    """
    words = min(options.mask_words, int(len(text.split()) * _MOST_HIDDEN))
    return masked_length(text, language, words, min(options.mask_characters, int(len(text) * _MOST_HIDDEN)))


def masked_length(text: str, language: str, words: int, characters: int) -> int:
    """The length of ``text`` without its last words or, in a language without spaces, its last characters."""
    if not spaced(language):
        return whole_words(text, max(0, len(text) - characters), language)
    end = len(text)
    for _ in range(words):
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
