"""The values that cross a stage boundary. All are frozen. Times are seconds from the first sample of the audio."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

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

    @property
    def start_s(self) -> float:
        return self.start_sample / SAMPLE_RATE

    @property
    def end_s(self) -> float:
        return (self.start_sample + len(self.samples)) / SAMPLE_RATE

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
    rejected: str | None = None
    """Why this transcript is not translated ("silence", "repetition", "uncertain", "empty"), or None."""
    repeated: bool = False
    """True if the recogniser repeated a phrase endlessly. The text has the phrase once."""
    heard_s: float = 0.0
    """Audio received when the segment was cut."""
    speech_end_s: float | None = None
    """The end of the last speech; None if unknown."""
    words: tuple[Word, ...] = ()
    """All words; their texts, joined, are ``text``. Empty if word times are unknown."""

    def span(self, begin: int, end: int) -> tuple[float, float]:
        """Start and end time of the characters ``begin`` to ``end`` of the text, in seconds.

        Word times are used if known; otherwise the time is divided evenly among the characters.
        """
        over_s = self.end_s if self.speech_end_s is None else self.speech_end_s
        length = len(self.text.rstrip())
        if not self.words:
            a, b = (self.start_s + (over_s - self.start_s) * min(at, length) / max(1, length) for at in (begin, end))
            return a, b
        at = -(len(self.words[0].text) - len(self.words[0].text.lstrip()))
        said: list[Word] = []
        for word in self.words:
            first, at = at + len(word.text) - len(word.text.lstrip()), at + len(word.text)
            if at > begin and first < end:
                said.append(word)
        if not said:
            return over_s, over_s
        # For the end of the last word, the endpointer is more accurate than the alignment.
        return said[0].start_s, max(said[0].start_s, over_s if end >= length else said[-1].end_s)


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


@dataclass(frozen=True)
class Delta:
    """A change of the translation: the text of one target token, appended."""

    segment_id: int
    sentence: int
    """Index of the sentence within its segment, from 0."""
    start_s: float
    end_s: float
    text: str
    """The appended text. Empty if the token completes no character; may be empty at the end of a sentence."""
    log_probability: float
    """Natural-log probability of the token."""
    token: int
    """The token's id in the model's vocabulary."""
    source: str
    """The sentence being translated."""
    end_of_sentence: bool = False
    final: bool = False
    """True on the segment's last delta: the segment's text is complete."""
    withdrawn: int = 0
    """Characters removed from the end of the sentence before ``text`` is appended; 0 unless the search is repeated."""
    truncated: bool = False
    """True on a sentence's last delta if the token limit or time limit ended it, or if it looped and was cut."""
    searched_again: bool = False
    """True on a sentence's last delta if the first search looped or reached the token limit. A second search was made,
    and text of the first that differs from it was withdrawn."""
    guarded: bool = False
    """True if a guard (bad word, repetition) excluded a likelier token."""
    sentence_confidence: Confidence | None = None
    """Set on a sentence's last delta."""
    segment_confidence: Confidence | None = None
    """Set on the final delta."""
    heard_s: float = 0.0
    """Audio received when the segment was cut; no later sound affects this text. Latency measures call it the delay. It
    does not depend on the speed of the machine."""

    def applied_to(self, text: str) -> str:
        """Apply this delta to ``text``, the result of all earlier deltas."""
        return text[: len(text) - self.withdrawn] + self.text


@dataclass(frozen=True)
class EndOfInput:
    """The end of the input. It passes through every stage in order, after everything fed before it."""

    duration_s: float = 0.0


@dataclass(frozen=True)
class LoadChanged:
    """The stages fell behind a live source, or caught up; see ``pipeline.run.overload`` for the measures taken."""

    level: int
    """0: as configured; 1: shorter segments and narrower searches; 2: waiting segments are joined as well."""
    lag_s: float


@dataclass(frozen=True)
class AudioLost:
    """Audio was lost: the device was not read in time, or the backlog was full."""

    at_s: float
    lost_s: float
    """0 if the device does not report how much was lost."""
    reason: str


@dataclass(frozen=True)
class DeviceLost:
    """The microphone stopped delivering audio. Silence replaces its audio until it is back."""

    at_s: float
    device: str
    reason: str


@dataclass(frozen=True)
class DeviceBack:
    """The microphone, or another one of the same name, delivers audio again."""

    at_s: float
    device: str
    away_s: float


@dataclass(frozen=True)
class Paused:
    """Listening is paused. Silence replaces the audio until ``Resumed``."""

    at_s: float


@dataclass(frozen=True)
class Resumed:
    at_s: float


SourceNotice = AudioLost | DeviceLost | DeviceBack | Paused | Resumed
"""An event of a live source. It reaches the reader at once, ahead of text still being translated."""

Notice = SourceNotice | LoadChanged
"""Information about the run, not text. A sink may ignore it."""

PipelineEvent = Transcript | Delta | Notice | EndOfInput
"""The events that a sink or an embedding app receives."""
