"""Segments of silence, and a recogniser whose answers are given."""

import numpy as np

from pipeline.events import SAMPLE_RATE, SpeechSegment, Transcript, Word

SAID = ("It", "was", "the", "best", "of", "times")


def speech(number, start_s, end_s, *, cut=False, language=None):
    start, end = round(start_s * SAMPLE_RATE), round(end_s * SAMPLE_RATE)
    return SpeechSegment(number, start, np.zeros(end - start, np.int16), cut, end, end, language=language)


class Scripted:
    """Hears ``said``, a word each half second of the stream, over and over, in whatever part of it.

    The calls for segments ``failing`` fail, and so do those for several segments with one of them.
    """

    def __init__(self, said=SAID, failing=(), error=None):
        self.said, self.failing, self.error = said, failing, error or OSError("connection refused")
        self.calls = []
        """The segments that were recognised together."""
        self.drafts = []
        """What each draft was heard after, and what was heard."""

    def _words(self, segment):
        """Those that begin in the segment and have nearly ended."""
        numbers = range(round(2 * segment.start_s + 0.499), round(2 * (segment.end_s + 0.3) + 0.001))
        words = (Word(f" {self.said[at % len(self.said)]}", at / 2, at / 2 + 0.5) for at in numbers)
        return tuple(word for word in words if word.end_s <= segment.end_s + 0.3)

    def _transcript(self, segment):
        words = self._words(segment)
        text = "".join(word.text for word in words).strip()
        return Transcript(
            *(segment.id, segment.start_s, segment.end_s, text, "en"),
            words=words, heard_s=segment.heard_s, speech_end_s=segment.speech_end_s,
        )  # fmt: skip

    def draft(self, segment, options):
        found = self._transcript(segment)
        self.drafts.append((" ".join(each.text for each in options.context), found.text))
        return found

    def transcribe(self, segments, options):
        self.calls.append([segment.id for segment in segments])
        if any(segment.id in self.failing for segment in segments):
            raise self.error
        return [self._transcript(segment) for segment in segments]
