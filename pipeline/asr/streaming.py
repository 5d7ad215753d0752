"""A recogniser that emits partial text itself, for the segments of one audio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..events import SpeechSegment, Transcript
from .recognizer import PartialText, RecognitionOptions, RecognitionStream, Recognizer, StreamingRecognizer


class StreamedSegments:
    """A ``DraftRecognizer`` with a stream for the segment in progress, which is fed what is new in it.

    Drafts are of whole segments; ``committed_words`` is the number of stable ones.
    """

    def __init__(self, recognizer: StreamingRecognizer) -> None:
        self._recognizer = recognizer
        self._stream: RecognitionStream | None = None
        self._segment: tuple[int, int] = (-1, 0)
        """The id and the first sample of the segment in the stream."""
        self._length = 0
        """Number of samples fed."""

    def draft(self, segment: SpeechSegment, options: RecognitionOptions) -> Transcript | None:
        """See ``DraftRecognizer``."""
        return _transcript(segment, self._recognised(segment, options, ended=False))

    def transcribe(self, segments: Sequence[SpeechSegment], options: RecognitionOptions) -> list[Transcript]:
        """See ``Recognizer``."""
        return [_transcript(segment, self._recognised(segment, options, ended=True)) for segment in segments]

    def _recognised(self, segment: SpeechSegment, options: RecognitionOptions, *, ended: bool) -> PartialText:
        """What is heard in the segment. A stream that has ended, failed or heard more than the segment is replaced."""
        stream, begin = self._stream, self._length
        self._stream = None
        if stream is None or self._segment != (segment.id, segment.start_sample) or begin > len(segment.samples):
            stream, begin = self._recognizer.open(options), 0
        found = stream.feed(segment.samples[begin:])
        if ended:
            return stream.finish()
        self._stream, self._segment, self._length = stream, (segment.id, segment.start_sample), len(segment.samples)
        return found


def by_segment(recognizer: Recognizer | StreamingRecognizer) -> Recognizer:
    """The recogniser, or one for a single audio that passes its segments to a stream each."""
    return StreamedSegments(recognizer) if isinstance(recognizer, StreamingRecognizer) else recognizer


def _transcript(segment: SpeechSegment, found: PartialText) -> Transcript:
    words = tuple(
        replace(word, start_s=word.start_s + segment.start_s, end_s=word.end_s + segment.start_s)
        for word in found.words
    )
    text = "".join(word.text for word in words).strip()
    return Transcript(
        *(segment.id, segment.speech_start_s, segment.end_s, text, found.language),
        rejected=None if text else "empty",
        heard_s=segment.heard_s,
        speech_end_s=segment.speech_end_s,
        words=words,
        committed_words=found.stable,
    )
