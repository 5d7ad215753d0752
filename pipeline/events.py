"""The values that cross a stage boundary. All are frozen; all times are seconds in the audio from its first sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE = 16_000
"""Samples a second of all audio inside the pipeline (mono, int16)."""

Samples = NDArray[np.int16]
"""Mono PCM, int16, [n] at SAMPLE_RATE."""


def mono_int16(audio: object) -> Samples:
    """``audio`` if it is int16 samples [n].

    Raises:
        ValueError: anything else, and what it is.
    """
    if isinstance(audio, np.ndarray) and audio.dtype == np.int16 and audio.ndim == 1:
        return audio
    got = f"{audio.dtype} {list(audio.shape)}" if isinstance(audio, np.ndarray) else type(audio).__name__
    raise ValueError(f"expected mono int16 samples [n]; got {got}")


@dataclass(frozen=True, eq=False)
class SpeechSegment:
    """A stretch of audio that holds speech, as the endpointer cut it."""

    id: int
    start_sample: int
    samples: Samples = field(repr=False)
    forced_cut: bool = False
    """True where the maximum length cut it and speech goes on in the next segment."""
    speech_end_sample: int | None = None
    """After the last frame that was speech; faint sounds and the post-roll follow. None where nobody looked."""
    heard_sample: int | None = None
    """Audio that had been heard when the segment was cut. None where nobody counted: then no more than the segment."""

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
    """A word of a transcript, with the space and the marks that belong to it, and when it was said."""

    text: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Transcript:
    """What was said in one segment, and how sure the recogniser is of it."""

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
    """UTF-8 length over zlib-compressed length; loops are above 2.4 (openai/whisper's threshold)."""
    rejected: str | None = None
    """Why this transcript is not translated ("silence", "repetition", "uncertain", "empty"), or None."""
    repeated: bool = False
    """True where the recogniser repeated a phrase without end, and the text has it once."""
    heard_s: float = 0.0
    """Audio that had been heard when the segment was cut."""
    speech_end_s: float | None = None
    """Where the last speech ended; None where nobody looked."""
    words: tuple[Word, ...] = ()
    """All words of the text, joined they are it; none where their times are not known."""

    def span(self, begin: int, end: int) -> tuple[float, float]:
        """When the characters from ``begin`` to ``end`` of the text were said, in seconds: by the words' times, or
        else as if each character took the same time."""
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
        # Of where the last word ends the endpointer is surer than the alignment.
        return said[0].start_s, max(said[0].start_s, over_s if end >= length else said[-1].end_s)


@dataclass(frozen=True)
class Confidence:
    """How sure the translation model was of a stretch of tokens."""

    mean_log_probability: float
    """Natural logarithm, over all tokens, end tokens included."""
    minimum_log_probability: float
    """Of the least likely token."""

    @property
    def perplexity(self) -> float:
        """exp(-mean log-probability): 1 is certain."""
        return math.exp(-self.mean_log_probability)

    @classmethod
    def of(cls, log_probabilities: Sequence[float]) -> Confidence:
        """Of at least one token."""
        return cls(sum(log_probabilities) / len(log_probabilities), min(log_probabilities))


@dataclass(frozen=True)
class Delta:
    """A change of the translation: one target token's text, appended."""

    segment_id: int
    sentence: int
    """Index of the sentence within its segment, from 0."""
    start_s: float
    end_s: float
    text: str
    """Appended text; may be empty (a token that completes no character, the end of a sentence)."""
    log_probability: float
    """Natural-log probability of the token."""
    token: int
    """The token's id in the model's vocabulary."""
    source: str
    """The sentence being translated."""
    end_of_sentence: bool = False
    final: bool = False
    """True on the segment's last delta: its text is complete."""
    withdrawn: int = 0
    """Characters of this sentence withdrawn before ``text`` is appended: 0 unless its search is made again."""
    truncated: bool = False
    """True on a sentence's last delta when the token or time limit ended it, not the model, or it looped and was cut."""
    searched_again: bool = False
    """True on a sentence's last delta when the first search looped or met the token limit: another one was made, and what
    the first had shown beyond it was withdrawn."""
    guarded: bool = False
    """True where a guard (bad word, repetition) kept a likelier token out."""
    sentence_confidence: Confidence | None = None
    """On a sentence's last delta."""
    segment_confidence: Confidence | None = None
    """On the final delta."""
    heard_s: float = 0.0
    """Audio that had been heard when the segment was cut: no later sound has a part in this text. What the field's
    latency measures call the delay; it does not depend on how fast this machine computes."""

    def applied_to(self, text: str) -> str:
        """``text``, which the deltas before this one made, changed by it."""
        return text[: len(text) - self.withdrawn] + self.text


@dataclass(frozen=True)
class EndOfInput:
    """The input is over: travels in order through every stage and drains what came before it."""

    duration_s: float = 0.0


@dataclass(frozen=True)
class LoadChanged:
    """The stages fell behind a live source, or caught up; see ``pipeline.run.overload`` for what they do about it."""

    level: int
    """0: all is as configured, 1: segments are shorter and searches narrower, 2: catching up."""
    lag_s: float


@dataclass(frozen=True)
class AudioLost:
    """Audio was lost: the device was not read in time, or the backlog is full."""

    at_s: float
    lost_s: float
    """How much; 0 where the device does not say."""
    reason: str


@dataclass(frozen=True)
class DeviceLost:
    """The microphone delivers nothing more; until it is back, silence takes the place of what it would hear."""

    at_s: float
    device: str
    reason: str


@dataclass(frozen=True)
class DeviceBack:
    """The microphone, or one of the same name, is heard again."""

    at_s: float
    device: str
    away_s: float


@dataclass(frozen=True)
class Paused:
    """Listening is paused; until ``Resumed``, silence takes the place of what would be heard."""

    at_s: float


@dataclass(frozen=True)
class Resumed:
    at_s: float


SourceNotice = AudioLost | DeviceLost | DeviceBack | Paused | Resumed
"""What happened to a live source. Reaches the reader at once, ahead of what is still being translated."""

Notice = SourceNotice | LoadChanged
"""About the run, not of its text: a sink that has no place for one ignores it."""

PipelineEvent = Transcript | Delta | Notice | EndOfInput
"""What a sink or an embedding app receives."""
