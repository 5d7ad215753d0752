"""What the ASR stage needs of a recogniser. No engine is imported; see ``pipeline.backends.whisper`` for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ...errors import PipelineError
from ..events import Samples, SpeechSegment, Transcript, Word
from .context import HeardSegment

if TYPE_CHECKING:
    from .terms import HeardTerms


@dataclass(frozen=True)
class RecognitionOptions:
    """What the stage knows of the speech to recognise, and wants. A recogniser may ignore all of it."""

    language: str | None = None
    """The language spoken, if it is known."""
    before: str | None = None
    """The language of the last segment, if several may be spoken."""
    context: Sequence[HeardSegment] = ()
    """The segments before, as far as they belong to what is being said, and their text; oldest first."""
    terms: HeardTerms | None = None
    """The glossary of the stream."""
    expected: str = ""
    """The text that the last draft heard after the context."""
    brief: bool = False
    """More may be said at once: leave out what takes long where a search fails, and call the transcript provisional."""


DEFAULT = RecognitionOptions()
# How far a transcript's times may be outside of its segment.
_SLACK_S = 1.0


class DraftRefusedError(Exception):
    """Raised for a draft when others need the recogniser more. Nothing was recognised; ask again with more speech."""


class Recognizer(Protocol):
    """Recognises segments that have ended or pause.

    Its calls come one after another, on a thread of the stage's own, so they may block. A transcript has the id and times of
    its segment. Those that are not to be translated are ``rejected``, and those that may be misheard ``uncertain``.

    Raises:
        PipelineError: from any method; the run ends.
        Exception: any other costs the segment, which is "failed" then. Three in a row end the run.
    """

    def transcribe(self, segments: Sequence[SpeechSegment], options: RecognitionOptions) -> list[Transcript]:
        """Recognise consecutive segments, at least one; return a transcript for each.

        Several have no context.
        """
        ...


@runtime_checkable
class DraftRecognizer(Recognizer, Protocol):
    """A recogniser that also recognises a segment in progress, again and again."""

    def draft(self, segment: SpeechSegment, options: RecognitionOptions) -> Transcript | None:
        """Recognise what has been said of a segment; None if what was heard is doubtful.

        The transcript has words. Once some are known, ``segment`` begins after them, and they are the ``context``.

        Raises:
            DraftRefusedError: others need the recogniser more.
        """
        ...


@dataclass(frozen=True)
class PartialText:
    """The words that a stream has heard so far."""

    words: Sequence[Word]
    """The words, with times in seconds from the first sample of the stream."""
    stable: int
    """Number of words at the beginning that later results begin with, too."""
    language: str


class RecognitionStream(Protocol):
    """One segment of speech in a ``StreamingRecognizer``."""

    def feed(self, samples: Samples) -> PartialText:
        """Take the next samples [n]; return what has been heard so far."""
        ...

    def finish(self) -> PartialText:
        """The segment has ended; return all of it. Nothing is called any more."""
        ...


@runtime_checkable
class StreamingRecognizer(Protocol):
    """Recognises speech as it comes, and keeps what it knows of it in a stream. ``Recognizer`` says how it is called."""

    def open(self, options: RecognitionOptions) -> RecognitionStream:
        """A stream for a segment that has begun. A stream that is not wanted any more is dropped without ``finish``."""
        ...


@runtime_checkable
class BatchRecognizer(Protocol):
    """Recognises several groups of segments at once, which takes less time."""

    def transcribe_batch(
        self, groups: Sequence[Sequence[SpeechSegment]], options: RecognitionOptions
    ) -> list[list[Transcript]]:
        """Recognise groups of consecutive segments of a recording in one language; return the transcripts of each group."""
        ...


@runtime_checkable
class LanguageDetector(Protocol):
    """Tells the languages that may be spoken apart."""

    def detect(self, samples: Samples) -> Mapping[str, float]:
        """The probability of each of them in ``samples`` [n]; their sum is 1. Empty if it is unknown."""
        ...


@runtime_checkable
class LanguageGuesser(Protocol):
    """Guesses the language of speech among all that it knows."""

    def guess(self, samples: Samples) -> Mapping[str, float]:
        """The probability of each language, by its two-letter code, in ``samples`` [n], of which 30 s are heard at most."""
        ...


@runtime_checkable
class ConcurrentRecognizer(Protocol):
    """Takes several calls at once, and runs its encoder alone, so that its speed can be measured."""

    @property
    def calls_at_once(self) -> int:
        """How many calls run at the same time; further ones wait."""

    @property
    def on_gpu(self) -> bool:
        """Whether the recogniser computes on a GPU."""

    def run_encoder(self, samples: Samples) -> object:
        """Run the encoder on ``samples`` [n]."""
        ...


@runtime_checkable
class MultilingualRecognizer(Protocol):
    """Knows more languages than those that it is configured for."""

    def knows(self, language: str) -> bool:
        """Whether the recogniser was trained for the language."""
        ...


@runtime_checkable
class VocabularyRecognizer(Protocol):
    """Tells which words are rare in its vocabulary."""

    def pieces(self, word: str) -> int:
        """Into how many pieces its vocabulary splits a word."""
        ...


@runtime_checkable
class SharedRecognizer(Protocol):
    """A recogniser that others use too."""

    @property
    def waited_s(self) -> float:
        """Seconds that the newest draft waited for others before it was computed."""


@runtime_checkable
class HearsWhole(Protocol):
    """A recogniser of drafts that hears a segment best from its beginning, because it does not know where words end."""

    hears_whole: bool


def check_transcripts(segments: Sequence[SpeechSegment], result: object) -> None:
    """Check what a recogniser, which may be a host's own, has returned for segments.

    Raises:
        PipelineError: it is not a transcript for each of them.
    """
    if (fault := _fault(segments, result)) is not None:
        raise PipelineError(
            f"the recogniser returned {fault}; expected a list of {len(segments)} of type Transcript, one for each segment in "
            "their order, with the segment's id and times in it, in seconds of the stream"
        )


def _fault(segments: Sequence[SpeechSegment], result: object) -> str | None:
    if not isinstance(result, list | tuple):
        return "None" if result is None else f"an object of type {type(result).__name__}"
    for item in result:
        if not isinstance(item, Transcript):
            return f"a list with {'None' if item is None else f'an object of type {type(item).__name__}'}"
    if len(result) != len(segments):
        return f"{len(result)} transcripts" if result else "an empty list"
    for segment, item in zip(segments, result, strict=True):
        if item.segment_id != segment.id:
            return f"a transcript of segment {item.segment_id} for segment {segment.id}"
        times = [item.start_s, item.end_s, *((item.words[0].end_s, item.words[-1].start_s) if item.words else ())]
        begin_s, end_s = segment.start_s, segment.end_s
        for at_s in times:
            if not begin_s - _SLACK_S <= at_s <= end_s + _SLACK_S:  # or not a number
                return f"a time of {at_s:.1f} s for the segment from {begin_s:.1f} to {end_s:.1f} s"
    return None


class StreamedSegments:
    """A ``DraftRecognizer`` with a stream for the segment in progress, which is fed what is new in it.

    Drafts are of whole segments; ``steady_words`` is the number of stable ones.
    """

    def __init__(self, recognizer: StreamingRecognizer) -> None:
        self._recognizer = recognizer
        self._stream: RecognitionStream | None = None
        self._segment: tuple[int, int] = (-1, 0)
        """The id and the first sample of the segment in the stream."""
        self._length = 0
        """Number of samples fed."""

    def draft(self, segment: SpeechSegment, options: RecognitionOptions) -> Transcript | None:
        """Recognise a segment in progress: its stream is fed what is new."""
        return _transcript(segment, self._recognised(segment, options, ended=False))

    def transcribe(self, segments: Sequence[SpeechSegment], options: RecognitionOptions) -> list[Transcript]:
        """Recognise segments that have ended or pause: the stream of each is fed the rest."""
        transcripts = [_transcript(segment, self._recognised(segment, options, ended=True)) for segment in segments]
        return [replace(transcript, steady_words=0) for transcript in transcripts]

    def _recognised(self, segment: SpeechSegment, options: RecognitionOptions, *, ended: bool) -> PartialText:
        """The text heard in the segment. A stream that has ended, failed or heard more than the segment is replaced."""
        stream, begin = self._stream, self._length
        self._stream = None
        if stream is None or self._segment != (segment.id, segment.start_sample) or begin > len(segment.samples):
            stream, begin = self._recognizer.open(options), 0
        partial = stream.feed(segment.samples[begin:])
        if ended:
            return stream.finish()
        self._stream, self._segment, self._length = stream, (segment.id, segment.start_sample), len(segment.samples)
        return partial


def by_segment(recognizer: Recognizer | StreamingRecognizer) -> Recognizer:
    """The recogniser, or one for a single audio that passes its segments to a stream each."""
    return StreamedSegments(recognizer) if isinstance(recognizer, StreamingRecognizer) else recognizer


def _transcript(segment: SpeechSegment, partial: PartialText) -> Transcript:
    if not isinstance(partial, PartialText):
        raise PipelineError(
            f"the recogniser's stream returned an object of type {type(partial).__name__}; expected a PartialText"
        )
    words = tuple(
        replace(word, start_s=word.start_s + segment.start_s, end_s=word.end_s + segment.start_s)
        for word in partial.words
    )
    text = "".join(word.text for word in words).strip()
    return Transcript(
        segment_id=segment.id,
        start_s=segment.speech_start_s,
        end_s=segment.end_s,
        text=text,
        language=partial.language,
        rejected=None if text else "empty",
        heard_s=segment.heard_s,
        speech_end_s=segment.speech_end_s,
        words=words,
        steady_words=partial.stable,
    )
