"""What is heard in one window after known words: its marks and the case of its first letter. Pure."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from ...core import SpeechSegment, Transcript, Word
from ...languages import CLOSERS, final_marks
from ...languages.rules import rules
from .search import Search
from .words import TimedWord

# Natural-log probability of a full stop between two segments in one window, below which it is none.
_SURE_FULL_STOP = math.log(0.65)
# A comma in its place suits both.
_FULL_STOPS = {".": ",", "。": "，"}


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
        # Where common nouns have capitals, the first letter after such a full stop tells nothing.
        if may_be_small and not rules(transcript.language).capital_nouns:
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
