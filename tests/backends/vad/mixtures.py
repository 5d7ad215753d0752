"""Labelled mixtures of clean speech with rooms and noises, and scores of a detector on them. No file is read here.

A seed determines all scenes. Sounds are float32 samples in [-1, 1] at 16 kHz; labels are booleans, one per 10 ms step.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.bench.play import segments_of
from pipeline.core.vad.options import VadConfig
from pipeline.events import SAMPLE_RATE, Samples, SpeechSegment

Sound = NDArray[np.float32]
Labels = NDArray[np.bool_]
Rng = np.random.Generator

STEP = SAMPLE_RATE // 100
"""Samples per label."""
# The endpoint delay is measured where no speech follows for this long.
_PAUSE_S = 0.6
# A clean signal this far below its loud parts is not speech. Synthetic voices pause in digital silence.
_BELOW_LOUD_DB = 35.0
_SILENCE_DB = -75.0
# Shorter pauses count as speech, as for human annotators (DIHARD's guidelines say 200 ms).
_PAUSE_STEPS = 20


@dataclass(frozen=True)
class Scene:
    """A labelled recording."""

    kind: str
    samples: Samples
    labels: Labels
    """[len(samples) // 160]"""


def speech_labels(clean: Sound) -> Labels:
    """Label the speech in a recording without noise; [len // 160]."""
    level = levels_db(clean)
    if not len(level):
        return np.zeros(0, np.bool_)
    loud_db = float(np.percentile(level[level > level.max() - 40], 90))
    speech = level > max(loud_db - _BELOW_LOUD_DB, _SILENCE_DB)
    edges = np.flatnonzero(np.diff(np.concatenate([[True], speech, [True]]).astype(np.int8)))
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        if begin > 0 and end < len(speech) and end - begin < _PAUSE_STEPS:
            speech[begin:end] = True
    return np.asarray(speech)


def levels_db(sound: Sound) -> NDArray[np.float64]:
    """Return the level of each 10 ms in dB relative to full scale; [len // 160]."""
    steps = sound[: len(sound) // STEP * STEP].reshape(-1, STEP).astype(np.float64)
    return np.asarray(10 * np.log10(np.mean(np.square(steps), axis=1) + 1e-12))


def utterances(recordings: Sequence[Samples]) -> list[Sound]:
    """Cut recordings without noise at pauses of 0.5 s or more, keeping 50 ms around each part."""
    found: list[Sound] = []
    for recording in recordings:
        sound = np.asarray(recording, np.float32) / np.float32(32768)
        speech = np.flatnonzero(speech_labels(sound))
        for part in np.split(speech, np.flatnonzero(np.diff(speech) > 50) + 1):
            if len(part) >= 20:
                found.append(sound[max(0, part[0] - 5) * STEP : (part[-1] + 6) * STEP])
    return found


def conversation(spoken: Sequence[Sound], seconds: float, rng: Rng) -> tuple[Sound, Labels]:
    """Join utterances in random order, varied by ±3 dB, after pauses of 0.4 to 4 s (the first: 0.4 s)."""
    parts: list[Sound] = []
    while sum(map(len, parts)) < seconds * SAMPLE_RATE:
        sound = spoken[int(rng.integers(len(spoken)))]
        loud = 10 ** (rng.uniform(-3, 3) / 20) * 0.1 / np.sqrt(np.mean(np.square(sound)))
        pause = np.exp(rng.uniform(np.log(0.4), np.log(4.0))) if parts else 0.4
        parts += [np.zeros(round(pause * SAMPLE_RATE), np.float32), (sound * loud).astype(np.float32)]
    sound = np.concatenate(parts)[: round(seconds * SAMPLE_RATE)]
    labels = np.concatenate(
        [speech_labels(part) if part.any() else np.zeros(len(part) // STEP, np.bool_) for part in _whole_steps(parts)]
    )
    return np.concatenate(_whole_steps(parts))[: len(sound)], labels[: len(sound) // STEP]


def _whole_steps(parts: Sequence[Sound]) -> list[Sound]:
    return [part[: len(part) // STEP * STEP] for part in parts]


def in_room(sound: Sound, reverberation_s: float, direct_db: float, rng: Rng) -> Sound:
    """Add reverberation: an exponentially decaying tail of noise (Polack's model) after the direct sound.

    Args:
        reverberation_s: time in which the tail falls by 60 dB.
        direct_db: energy of the direct sound relative to the tail; negative beyond the critical distance.
    """
    time = np.arange(round(reverberation_s * SAMPLE_RATE)) / SAMPLE_RATE
    tail = rng.standard_normal(len(time)) * 10 ** (-3 * time / reverberation_s)
    tail[: SAMPLE_RATE * 5 // 1000] = 0  # the first reflection comes 5 ms after the direct sound
    tail *= 10 ** (-direct_db / 20) / np.sqrt(np.sum(np.square(tail)))
    tail[0] = 1.0
    size = 1 << int(len(sound) + len(tail)).bit_length()
    wet = np.fft.irfft(np.fft.rfft(sound, size) * np.fft.rfft(tail, size), size)[: len(sound)]
    return wet.astype(np.float32)


def _coloured(exponent: float) -> Callable[[int, Rng], Sound]:
    def noise(length: int, rng: Rng) -> Sound:
        spectrum = np.fft.rfft(rng.standard_normal(length))
        frequency = np.maximum(np.fft.rfftfreq(length, 1 / SAMPLE_RATE), 20.0)
        return np.fft.irfft(spectrum * frequency**-exponent, length).astype(np.float32)

    return noise


def _fan(length: int, rng: Rng) -> Sound:
    """Ventilation: brown noise that slowly swells, with the tone of the blades."""
    time = np.arange(length) / SAMPLE_RATE
    brown = _coloured(1.0)(length, rng)
    swell = 1 + 0.4 * np.sin(2 * np.pi * rng.uniform(0.1, 0.5) * time)
    tone = np.sin(2 * np.pi * rng.uniform(90, 240) * time)
    return np.asarray(swell * brown / brown.std() + 0.3 * tone, np.float32)


def _clicks(length: int, rng: Rng) -> Sound:
    """Typing: about eight key strokes per second, each a few ms of ringing."""
    sound = rng.standard_normal(length) * 0.003
    for start in rng.integers(0, max(1, length - 800), max(1, length * 8 // SAMPLE_RATE)):
        time = np.arange(800) / SAMPLE_RATE
        ring = np.sin(2 * np.pi * rng.uniform(1500, 5000) * time) + rng.standard_normal(800)
        sound[start : start + 800] += (
            rng.uniform(0.3, 1) * ring[: length - start] * np.exp(-time * 400)[: length - start]
        )
    return sound.astype(np.float32)


def _music(length: int, rng: Rng) -> Sound:
    """Decaying chords of four notes with overtones, two chords per second."""
    sound = np.zeros(length)
    for start in range(0, length, SAMPLE_RATE // 2):
        time = np.arange(min(SAMPLE_RATE, length - start)) / SAMPLE_RATE
        for note in rng.choice(np.arange(45, 76), 4, replace=False):
            base = 440 * 2 ** ((note - 69) / 12)
            tones = sum(np.sin(2 * np.pi * base * k * time) / k**1.5 for k in range(1, 6))
            sound[start : start + len(time)] += tones * np.exp(-3 * time)
    return sound.astype(np.float32)


NOISES: dict[str, Callable[[int, Rng], Sound]] = {
    "white": _coloured(0.0),
    "pink": _coloured(0.5),
    "fan": _fan,
    "clicks": _clicks,
    "music": _music,
}


def babble(spoken: Sequence[Sound], length: int, rng: Rng, voices: int = 12) -> Sound:
    """A crowd: so many simultaneous voices that none is intelligible."""
    sound = np.zeros(length, np.float32)
    for _ in range(voices):
        line = np.concatenate([spoken[i] for i in rng.permutation(len(spoken))])
        line = np.tile(line, length // len(line) + 1)[:length]
        sound += np.roll(line, rng.integers(length))
    return sound


def mixed(speech: Sound, noise: Sound, snr_db: float, labels: Labels) -> Sound:
    """Add noise so that its level is ``snr_db`` below the level of the labelled speech."""
    spoken = np.repeat(labels, STEP)
    power = np.mean(np.square(speech[: len(spoken)][spoken]))
    gain = np.sqrt(power / np.mean(np.square(noise)) / 10 ** (snr_db / 10))
    return np.asarray(speech + gain * noise, np.float32)


def at_level(sound: Sound, level_db: float) -> Samples:
    """Return int16 samples with an RMS level of ``level_db`` relative to full scale; peaks are clipped."""
    gain = 10 ** (level_db / 20) / max(float(np.sqrt(np.mean(np.square(sound)))), 1e-9)
    return np.asarray(np.round(np.clip(sound * gain, -1, 1) * 32767), np.int16)


class _Setting(NamedTuple):
    kind: str
    noise: str
    snr_db: float
    level_db: tuple[float, float]
    room: tuple[float, float] | None = None
    """``reverberation_s`` and ``direct_db`` of ``in_room``."""


def _settings(noises: Sequence[str]) -> list[_Setting]:
    return [
        _Setting("clean", "pink", 50, (-30, -15)),
        _Setting("clean, soft", "pink", 35, (-50, -42)),
        _Setting("meeting room", "pink", 25, (-40, -25), (0.4, 0.0)),
        _Setting("far field", "pink", 15, (-50, -40), (0.7, -6.0)),
        *(_Setting(f"{noise} {snr} dB", noise, snr, (-40, -20)) for noise in noises for snr in (20, 10, 5, 0)),
        *(_Setting(f"babble {snr} dB", "babble", snr, (-35, -20)) for snr in (20, 10)),
    ]


def speech_scenes(recordings: Sequence[Samples], noises: Sequence[str], seconds: float, seed: int) -> list[Scene]:
    """Return scenes at random levels: clean, meeting room, far field, each noise at 20 to 0 dB, a crowd."""
    rng = np.random.default_rng(seed)
    spoken = utterances(recordings)
    scenes = []
    for setting in _settings(noises):
        sound, labels = conversation(spoken, seconds, rng)
        if setting.room is not None:
            sound = in_room(sound, *setting.room, rng)
        length = len(sound)
        noise = babble(spoken, length, rng) if setting.noise == "babble" else NOISES[setting.noise](length, rng)
        samples = at_level(mixed(sound, noise, setting.snr_db, labels), rng.uniform(*setting.level_db))
        scenes.append(Scene(setting.kind, samples, labels))
    return scenes


def noise_scenes(noises: Sequence[str], seconds: float, seed: int) -> list[Scene]:
    """Return scenes without speech: silence, each noise at three levels, each noise starting halfway."""
    rng = np.random.default_rng(seed)
    length = round(seconds * SAMPLE_RATE)
    no_speech = np.zeros(length // STEP, np.bool_)
    scenes = [Scene("silence", np.zeros(length, np.int16), no_speech)]
    for name in noises:
        for level_db in (-60, -40, -20):
            scenes.append(Scene(f"{name} {level_db} dBFS", at_level(NOISES[name](length, rng), level_db), no_speech))
        begins = at_level(NOISES[name](length, rng), -30)
        begins[: length // 2] = 0
        scenes.append(Scene(f"{name} begins", begins, no_speech))
    return scenes


@dataclass
class Score:
    """Sums over scenes, in seconds."""

    speech_s: float = 0.0
    kept_s: float = 0.0
    """Speech inside segments."""
    segments_s: float = 0.0
    false_s: float = 0.0
    """Non-speech inside segments, in scenes with speech."""
    noise_s: float = 0.0
    taken_s: float = 0.0
    """Time inside segments, in scenes without speech."""
    delays_s: list[float] = field(default_factory=list)
    """From each end of speech until its segment was emitted."""

    def add(self, scene: Scene, segments: Sequence[SpeechSegment]) -> None:
        inside = covered(segments, len(scene.labels))
        if not scene.labels.any():
            self.noise_s += len(scene.labels) / 100
            self.taken_s += float(inside.sum()) / 100
            return
        self.speech_s += float(scene.labels.sum()) / 100
        self.kept_s += float((inside & scene.labels).sum()) / 100
        self.segments_s += float(inside.sum()) / 100
        self.false_s += float((inside & ~scene.labels).sum()) / 100
        self.delays_s += endpoint_delays(scene.labels, segments)

    @property
    def kept(self) -> float:
        return self.kept_s / max(self.speech_s, 1e-9)

    @property
    def false(self) -> float:
        return self.false_s / max(self.segments_s, 1e-9)

    @property
    def taken(self) -> float:
        return self.taken_s / max(self.noise_s, 1e-9)


def covered(segments: Iterable[SpeechSegment], steps: int) -> Labels:
    """Return which 10 ms steps lie inside a segment; [steps]."""
    inside = np.zeros(steps, np.bool_)
    for segment in segments:
        inside[segment.start_sample // STEP : (segment.start_sample + len(segment.samples)) // STEP] = True
    return inside


def endpoint_delays(labels: Labels, segments: Sequence[SpeechSegment]) -> list[float]:
    """Return the seconds from each end of speech before a pause until the segment that contains it was emitted."""
    delays: list[float] = []
    pause = round(_PAUSE_S * 100)
    for end in np.flatnonzero(labels[:-1] & ~labels[1:]) + 1:
        if end + pause <= len(labels) and not labels[end : end + pause].any():
            found = [
                segment.heard_s - end / 100 for segment in segments if segment.start_s < end / 100 <= segment.heard_s
            ]
            delays += found[-1:]
    return delays


def measure(scenes: Iterable[Scene], config: VadConfig) -> Score:
    """Score one detector over scenes."""
    total = Score()
    for scene in scenes:
        total.add(scene, segments_of(scene.samples, config))
    return total
