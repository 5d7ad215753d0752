"""The values that cross a stage boundary. All are frozen. Times are seconds from the first sample of the audio."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .notices import Notice

SAMPLE_RATE = 16_000
"""Sample rate in Hz of all audio inside the pipeline (mono, int16)."""

Samples = NDArray[np.int16]
"""Mono PCM, int16, [n] at SAMPLE_RATE."""


def mono_int16(audio: object) -> Samples:
    """Return ``audio`` if it is int16 samples [n].

    Raises:
        ValueError: it is anything else; the message says what.
    """
    if isinstance(audio, np.ndarray) and audio.dtype == np.int16 and audio.ndim == 1:
        return audio
    got = f"{audio.dtype} {list(audio.shape)}" if isinstance(audio, np.ndarray) else type(audio).__name__
    raise ValueError(f"expected mono int16 samples [n]; got {got}")


@dataclass(frozen=True, eq=False)
class SpeechSegment:
    """A stretch of audio with speech, as cut by the endpointer."""

    id: int
    start_sample: int
    samples: Samples = field(repr=False)
    forced_cut: bool = False
    """True if the segment was cut at the maximum length and speech continues in the next one."""
    speech_end_sample: int | None = None
    """The end of the last speech frame; faint sounds and the post-roll follow it. None if unknown."""
    heard_sample: int | None = None
    """Audio received when the segment was cut. None if unknown; the end of the segment is used instead."""
    language: str | None = None
    """The language spoken. None if unknown; the recogniser detects it if there are several."""
    speech_start_sample: int | None = None
    """The beginning of the speech, with its pre-roll; a silence may precede it. None: that of the segment."""

    @property
    def start_s(self) -> float:
        return self.start_sample / SAMPLE_RATE

    @property
    def end_s(self) -> float:
        return (self.start_sample + len(self.samples)) / SAMPLE_RATE

    @property
    def speech_start_s(self) -> float:
        return max(self.start_sample, self.speech_start_sample or 0) / SAMPLE_RATE

    @property
    def speech(self) -> Samples:
        """The samples [n] without the silence before the speech."""
        return self.samples[max(0, (self.speech_start_sample or 0) - self.start_sample) :]

    @property
    def speech_end_s(self) -> float:
        return self.end_s if self.speech_end_sample is None else self.speech_end_sample / SAMPLE_RATE

    @property
    def heard_s(self) -> float:
        return self.end_s if self.heard_sample is None else self.heard_sample / SAMPLE_RATE


@dataclass(frozen=True)
class Word:
    """A word of a transcript with its times. The text includes adjoining space and punctuation."""

    text: str
    start_s: float
    end_s: float
    heard: str | None = field(default=None, kw_only=True)
    """The text that was recognised where a term of the glossary replaced it; empty if an earlier word of the term has it.
    None: this word was recognised."""
    probability: float | None = field(default=None, kw_only=True)
    """The recogniser's, 0 to 1: the mean of its tokens'. None if unknown."""


@dataclass(frozen=True)
class MissingSpeech:
    """A stretch of a segment in which sound was heard that is not in its text, although it was searched again by itself."""

    start_s: float
    end_s: float
    reason: str
    """Why what was found there is left out; see ``Transcript.rejected``."""
    text: str = ""
    """The text that was found there: it may be invented."""


@dataclass(frozen=True)
class Transcript:
    """The recognised text of one segment, with the recogniser's confidence."""

    segment_id: int
    start_s: float
    end_s: float
    text: str
    language: str
    no_speech_probability: float = 0.0
    """Whisper's probability that the window holds no speech, 0 to 1."""
    mean_log_probability: float = 0.0
    """Mean natural-log probability of the tokens."""
    compression_ratio: float = 1.0
    """UTF-8 length divided by zlib-compressed length. Above 2.4 (openai/whisper's threshold) the text is a loop."""
    previous_end: str | None = None
    """The marks heard between the previous segment's last word and this text, such as "," or "."; None if the two segments
    were not recognised in one window. A recogniser that hears a segment alone writes a full stop where the audio ends."""
    ends_surely: bool = False
    """True if the recogniser is sure that a sentence ends with this text: it takes the mark at its end for probable."""
    rejected: str | None = None
    """Why this transcript is not translated ("silence", "repetition", "uncertain", "empty"; "language": another one is spoken;
    "failed": the recogniser raised an exception), or None."""
    repeated: bool = False
    """True if the recogniser repeated a phrase endlessly. The text has the phrase once."""
    uncertain: bool = False
    """True if the text was probably said, but may be misheard. It is translated and shown, marked."""
    provisional: bool = False
    """True of a segment in a ``TranscriptSoFar`` if a longer search, for which there was no time, may find other words."""
    heard_s: float = 0.0
    """Audio received when the segment was cut."""
    speech_end_s: float | None = None
    """The end of the last speech; None if unknown."""
    words: tuple[Word, ...] = ()
    """All words; their texts, joined, are ``text``. Empty if word times are unknown."""
    steady_words: int = 0
    """Number of words at the beginning that are expected to stay, in a segment of a ``TranscriptSoFar``."""
    missing: tuple[MissingSpeech, ...] = ()
    """The stretches that are not in the text; none if all of it is ``rejected``."""
    turns: tuple[int, ...] = ()
    """The words, by index, with which another voice begins to speak: a sentence ends before each."""
    speaker: str | None = None
    """The speaker's name or number; None if unknown. Segments are counted for each speaker."""

    @property
    def is_noise(self) -> bool:
        """Whether it was rejected because nothing was said."""
        return self.rejected in ("silence", "empty")

    @property
    def is_sure(self) -> bool:
        """Whether it is neither rejected nor uncertain: what is heard before and after may rely on it."""
        return self.rejected is None and not self.uncertain


@dataclass(frozen=True)
class Confidence:
    """The translation model's confidence in a run of tokens."""

    mean_log_probability: float
    """Mean natural-log probability of all tokens, end tokens included."""
    minimum_log_probability: float
    """Natural-log probability of the least likely token."""

    @property
    def perplexity(self) -> float:
        """exp(-mean log-probability); 1 means certain."""
        return math.exp(-self.mean_log_probability)

    @classmethod
    def of(cls, log_probabilities: Sequence[float]) -> Confidence:
        """The confidence in at least one token."""
        return cls(sum(log_probabilities) / len(log_probabilities), min(log_probabilities))


@dataclass(frozen=True, eq=False)
class SegmentSoFar:
    """The segment in progress, as it will be if nothing more is said: a chance to recognise it early."""

    segment: SpeechSegment
    pausing: bool = True
    """Whether nothing has been said for a while, so that the segment may end here."""


@dataclass(frozen=True)
class TranscriptSoFar:
    """The transcripts so far of the speech that has no final text yet. A newer one replaces it."""

    transcripts: tuple[Transcript, ...]
    """The draft of each segment, the last perhaps in progress. Final transcripts of the segments follow."""


@dataclass(frozen=True)
class Pause:
    """Nothing has been said since the last segment ended."""

    start_s: float
    """The end of the last speech."""
    length_s: float


@dataclass(frozen=True)
class SoundEvent:
    """Music or singing, and no speech, for some seconds that no later segment of speech reaches back to."""

    kind: str
    """"music" or "singing"."""
    start_s: float
    end_s: float
    heard_s: float
    """Audio received when that was known."""


class _Growing:
    """Text in progress: the first ``steady`` characters are expected to stay, and what follows may change at any moment."""

    text: str
    steady: int

    @property
    def steady_text(self) -> str:
        return self.text[: self.steady]

    @property
    def draft(self) -> str:
        return self.text[self.steady :]


@dataclass(frozen=True)
class SourceText(_Growing):
    """The text recognised in a sentence in progress, as it is now.

    A newer one of the same sentence replaces it. All of it may change until the ``SourceSentence``, which is final.
    """

    sentence: int
    """Counts sentences from 0. A sentence may span several segments; a segment may hold several sentences."""
    language: str
    """The language spoken."""
    text: str
    """Empty if what was recognised has turned out to be none."""
    steady: int = 0
    """Number of characters (Unicode code points) at the beginning that are expected to stay: 98 of 100 do."""
    start_s: float = 0.0
    """The start of the sentence."""
    end_s: float = 0.0
    """The end of the text so far."""
    heard_s: float = 0.0
    """Audio received when the text was cut; no later sound affects it."""
    speaker: str | None = None
    """The speaker's name or number; None if unknown."""


@dataclass(frozen=True)
class SourceSentence:
    """A sentence that has ended. Its text is final."""

    sentence: int
    language: str
    text: str
    start_s: float = 0.0
    end_s: float = 0.0
    heard_s: float = 0.0
    words: tuple[Word, ...] = ()
    """All words; their texts, joined and stripped, are ``text``. Empty if word times are unknown."""
    before_pause: bool = True
    """Whether a pause follows the sentence, not the next word."""
    terms: tuple[str, ...] = ()
    """The terms of the glossary in the text, in order, as the glossary has them."""
    speaker: str | None = None
    """The speaker's name or number; None if unknown."""
    uncertain: bool = False
    """Whether words may be misheard; then its translations may be wrong, too."""
    sound: str | None = None
    """"music" or "singing": nothing is said, and the text says what is heard. None: it was said."""

    @property
    def steady(self) -> int:
        return len(self.text)

    def begin_at(self, share: float) -> float:
        """When the text after the given share of it, 0 to 1, begins to be said, in seconds.

        It begins with a word, the one whose beginning is nearest to the share. If word times are unknown, the time is divided
        evenly among the characters.
        """
        if not self.words:
            return self.start_s + (self.end_s - self.start_s) * share
        letters = share * sum(len(word.text.strip()) for word in self.words)
        for word in self.words:
            length = len(word.text.strip())
            if letters <= length / 2:
                return word.start_s
            letters -= length
        return self.end_s


class TargetToken(NamedTuple):
    """A token of a translation."""

    id: int | None
    """The token's id in the model's vocabulary. None if the token stands for several, as in text read back from changes."""
    log_probability: float
    """Natural logarithm."""
    end: int
    """Length of the text up to its end in characters. A token that completes no character ends where the one before does."""


@dataclass(frozen=True)
class TargetText(_Growing):
    """The translation of a sentence, as it is now: normally one target token longer than before.

    A newer one of the same sentence and language replaces it. The text is a draft until the ``Translation``, which is final.
    ``steady`` is that of ``SourceText``.
    """

    sentence: int
    """The id of the source sentence."""
    language: str
    """The language translated into."""
    text: str
    steady: int = 0
    tokens: tuple[TargetToken, ...] = ()
    """All tokens of this translation so far; what is shown of a draft may lack the text of the last of them."""
    heard_s: float = 0.0
    """Audio received when the source text was cut; no later sound affects this text. Latency measures call it the delay.
    It does not depend on the speed of the machine."""
    complete: bool = False
    """True on the last one of each translation of a sentence: the text now translates all of the source known at
    ``heard_s``, without the last words that are hidden of a draft."""


@dataclass(frozen=True)
class Translation:
    """The final translation of a sentence into one language. Its text is that of the last ``TargetText``."""

    sentence: int
    language: str
    text: str
    """May be empty: the model wrote nothing, or the source has nothing to translate."""
    confidence: Confidence | None = None
    """Probabilities of the translation's tokens; None if nothing was translated."""
    truncated: bool = False
    """True if the token limit or time limit ended the translation, or if it looped and was cut."""
    searched_again: bool = False
    """True if the first search looped or reached the token limit. A second search was made, and text of the first that
    differs from it was withdrawn."""
    guarded: int = 0
    """Number of tokens for which a guard (bad word, repetition) or a glossary excluded a likelier one."""
    heard_s: float = 0.0
    terms: tuple[str, ...] = ()
    """The terms of the glossary in the source, in order, as the glossary has them."""
    missed_terms: tuple[str, ...] = ()
    """The terms of these without an accepted translation in the text. The others are kept."""
    doubtful: bool = False
    """True if the text is what was said, because there is no translator from its language."""
    error: str | None = None
    """Why the translator failed, in one line; then there is no text. None if it did not fail."""
    instead: str | None = None
    """Why the text is the local translator's instead of that of ``nmt.url``, in one line. None if it is as configured."""

    @property
    def steady(self) -> int:
        return len(self.text)


@dataclass(frozen=True)
class EndOfInput:
    """The end of the input. It passes through every stage in order, after everything fed before it."""

    duration_s: float = 0.0


@dataclass(frozen=True)
class Correction:
    """What a person wrote in the place of a finished text; see ``pipeline.server.session``. Nothing else changes."""

    sentence: int
    language: str = ""
    """The language translated into; empty: what was said is corrected."""
    text: str = ""
    speaker: str | None = None
    """The speaker's name, with a correction of what was said; empty: nobody in particular. None: nobody corrected that."""


PipelineEvent = Transcript | SourceText | SourceSentence | TargetText | Translation | Correction | Notice | EndOfInput
"""The events that a sink or an embedding app receives."""
