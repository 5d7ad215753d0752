"""Where the new words begin in what is heard in one window after known words, and the marks before them. Pure."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...events import SpeechSegment, Transcript, Word
from ...languages.marks import CLOSERS, final_marks, letters
from .search import Search
from .words import TimedWord

# Characters of difference in the text that outweigh one second of difference in time. A word is rarely aligned more than
# half a second off, and speech has about 15 characters a second.
_CHARACTERS_PER_S = 4.0
# Share of the known text that may differ when it is heard again. More means that some of it was left out, and then
# nothing tells the rest of it from new words.
_MOST_DIFFERENCE = 0.25
# Of a short text, so many letters: a word that was cut off at its beginning, and is heard no longer.
_FEW_LETTERS = 5
# A word that goes on for longer than this after the boundary was not said before it.
_OVER_S = 0.2
# Characters of difference for each letter of a number that was written in figures before: "11" and "eleven".
_SPELT_OUT = 0.25
# The edit distance of a text from a part of another, for its length, up to which they may be the same words.
_MOST_UNLIKE = 0.5
# Natural-log probability of a full stop between two segments in one window, below which it is none.
_SURE_FULL_STOP = math.log(0.65)
# A comma in its place suits both.
_FULL_STOPS = {".": ",", "。": "，"}
# Languages that write common nouns with a capital: the first letter after such a full stop tells nothing.
_CAPITAL_NOUNS = ("de", "lb")


def first_new_word(
    known: str, words: Sequence[Word], boundary_s: float, per_s: float = _CHARACTERS_PER_S
) -> int | None:
    """The index of the first of ``words`` that is not in ``known``; their number if all are; None if it is unclear.

    ``words`` were heard in a window in which ``known`` had been heard before, up to about ``boundary_s``. Their beginning is
    the part that differs least from ``known``, in letters and digits; times decide among similar ones. A word at the
    boundary may have been cut off before, and its time may be a little wrong, so neither text nor time decides alone.
    ``per_s``: characters of difference in the text that outweigh one second of difference in time.
    """
    old = letters(known)
    costs = [float(length) for length in range(len(old) + 1)]  # of turning nothing into each beginning of ``old``
    best, found, difference = math.inf, 0, 0.0
    for index in range(len(words) + 1):
        at_s = words[index].start_s if index < len(words) else words[-1].end_s if words else boundary_s
        cost = costs[-1] + per_s * abs(at_s - boundary_s)
        if cost < best:
            best, found, difference = cost, index, costs[-1]
        for character in letters(words[index].text) if index < len(words) else "":
            costs = _next_costs(costs, old, character)
    last = words[max(0, found - 1)] if words else Word("", 0.0, 0.0)
    if last.start_s < boundary_s < last.end_s - _OVER_S and _digits(last.text) not in _digits(known):
        return None  # a number that goes on: "65,000", now "65,300"
    return found if difference <= max(_MOST_DIFFERENCE * len(old), _FEW_LETTERS) else None


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def resembles_part(text: str, whole: str) -> bool:
    """Whether half of the letters of ``text``, or more, are in this order in a part of ``whole`` of about its length."""
    there, expected = letters(whole), letters(text)
    costs = [0.0] * (len(there) + 1)  # the part may begin anywhere
    for character in expected:
        costs = _next_costs(costs, there, character)
    return bool(expected) and min(costs) <= _MOST_UNLIKE * len(expected)


def _next_costs(costs: Sequence[float], old: str, character: str) -> list[float]:
    """The next row of the edit distance (Wagner and Fischer, 1974): one more character of the new text."""
    row = [costs[0] + 1.0]
    for at, same in enumerate(old):
        added = _SPELT_OUT if same.isdigit() and character.isalpha() else 1.0
        row.append(min(costs[at] + added * (character != same), costs[at + 1] + added, row[at] + 1))
    return row


def continued(transcript: Transcript, before: Word) -> Transcript:
    """The transcript with the marks of the word ``before`` it in the same window.

    A full stop that Whisper is not sure of becomes a comma: it hears a pause, and the sentence may go on.
    """
    if before.text.rstrip().endswith(tuple(CLOSERS)):
        return transcript  # the sentence assembler corrects no marks inside a quotation or bracket
    marks = final_marks(before.text)
    unsure = isinstance(before, TimedWord) and before.log_probabilities[-1:] < (_SURE_FULL_STOP,)
    if marks in _FULL_STOPS and unsure:
        first = transcript.text[:1]
        # Not "I", "I'm", "NATO", "iPhone".
        word = "".join(transcript.text.split()[:1])
        may_be_small = word[1:].islower() and not word.startswith(("I'", "I\u2019"))
        if transcript.language not in _CAPITAL_NOUNS and may_be_small:
            transcript = with_case_of(transcript, first.lower())
        marks = _FULL_STOPS[marks]
    return dataclasses.replace(transcript, previous_end=marks)


def with_case_of(transcript: Transcript, word: str) -> Transcript:
    """The transcript with a small first letter if ``word``, its first one heard in context, begins with the same one.

    A word with more capitals, such as "OK" or "NATO", stays as it is.
    """
    first, more = transcript.text[:1], "".join(transcript.text.split()[:1])[1:]
    if not first.isupper() or more != more.lower() or word.strip()[:1] != first.lower():
        return transcript
    words = transcript.words
    if words:
        begin = words[0].text
        at = len(begin) - len(begin.lstrip())
        words = (dataclasses.replace(words[0], text=begin[:at] + first.lower() + begin[at + 1 :]), *words[1:])
    return dataclasses.replace(transcript, text=first.lower() + transcript.text[1:], words=words)


def consecutive(before: SpeechSegment, segment: SpeechSegment) -> bool:
    """Whether the two are consecutive parts of one segment."""
    return before.id == segment.id and before.start_sample + len(before.samples) == segment.start_sample


@dataclass(frozen=True)
class Continuation:
    """What was heard after the context in one window."""

    result: Search
    """With the new words, and the stretches without words after the context; their times are those of the stream."""
    before: Word | None
    """The last word of the context."""
    in_parts: bool
    """Whether the context ends with the part before it of the same segment."""

    def marked(self, transcript: Transcript) -> Transcript:
        """The transcript of the new words with the marks before them, and the case of their first letter."""
        if self.before is None:
            return transcript
        if not self.result.words:
            return dataclasses.replace(transcript, previous_end=final_marks(self.before.text))
        return continued(with_case_of(transcript, self.result.words[0].text), self.before)
