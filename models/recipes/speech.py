"""Speech for the recogniser: recorded and kept, then disturbed anew whenever it is drawn."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from voices import SAMPLE_RATE, TRAINING_VOICES, random_prosody, speak

SHARD = 500
Voice = Callable[[random.Random], str]
Job = tuple[Path, list[str], list[str], int]  # a shard: where to, texts, voices, seed


@dataclass(frozen=True)
class Clip:
    """One sentence as one voice spoke it."""

    text: str
    voice: str
    samples: np.ndarray  # int16 [n] at 16 kHz, on disk until read


@dataclass(frozen=True)
class Utterance:
    """What one training segment holds: its audio, and each sentence with the seconds where it begins and ends."""

    audio: np.ndarray  # float32 [n] in [-1, 1]
    sentences: tuple[tuple[float, float, str], ...]


# --- recorded -------------------------------------------------------------------------------------------------------


def _speak_shard(job: Job) -> None:
    path, texts, voices, seed = job
    rng = random.Random(seed)
    spoken = [
        (speak(text, voice, **random_prosody(rng)).clip(-1, 1) * 32767).astype(np.int16)
        for text, voice in zip(texts, voices, strict=True)
    ]
    audio = path.with_suffix(".partial.npy")  # renamed: a training that reads the old file goes on reading it
    np.save(audio, np.concatenate(spoken))
    audio.rename(path)
    about = {"texts": texts, "voices": voices, "ends": np.cumsum([len(clip) for clip in spoken]).tolist()}
    partial = path.with_suffix(".partial")  # last, whole or not at all: it says that the shard is complete
    partial.write_text(json.dumps(about))
    partial.rename(path.with_suffix(".json"))


def _missing(folder: Path, sets: dict[str, tuple[list[str], Voice]], seed: int) -> list[Job]:
    """The shards of ``sets`` that ``folder`` lacks or has otherwise."""
    jobs = []
    for name, (texts, voice) in sets.items():
        rng = random.Random(f"{seed} {name}")
        for start in range(0, len(texts), SHARD):
            chunk = texts[start : start + SHARD]
            chosen = [voice(rng) for _ in chunk]
            path = folder / f"{name}-{start:06d}.npy"
            about = path.with_suffix(".json")
            kept = json.loads(about.read_text()) if about.exists() else {}
            if (kept.get("texts"), kept.get("voices")) != (chunk, chosen):
                jobs.append((path, chunk, chosen, seed + start))
    return jobs


def _too_many(folder: Path, sets: dict[str, tuple[list[str], Voice]]) -> list[Path]:
    """Shards in ``folder`` of more texts than their set has now."""
    return [
        about
        for name, (texts, _) in sets.items()
        for about in folder.glob(f"{name}-[0-9]*.json")
        if int(about.stem.removeprefix(f"{name}-")) >= len(texts)
    ]


def unlike(folder: Path, sets: dict[str, tuple[list[str], Voice]], seed: int) -> bool:
    """Whether ``make_speech`` would change anything."""
    return bool(_missing(folder, sets, seed) or _too_many(folder, sets))


def make_speech(folder: Path, sets: dict[str, tuple[list[str], Voice]], seed: int, workers: int | None = None) -> None:
    """Speak every set of texts, each by voices drawn for it, into ``folder``; as many at once as there are cores.

    What is there is kept if they are the same; what is there of more texts than a set has now is deleted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for about in _too_many(folder, sets):
        about.unlink()
        about.with_suffix(".npy").unlink()
    jobs = _missing(folder, sets, seed)
    with ProcessPoolExecutor(workers) as pool:
        for done, _ in enumerate(pool.map(_speak_shard, jobs), 1):
            print(f"speech: {done} of {len(jobs)} shards", flush=True)


def load_speech(folder: Path, name: str) -> list[Clip]:
    """All recordings of a set, and of those whose names begin with its name and a hyphen. Exits if there are none."""
    clips: list[Clip] = []
    for path in sorted(folder.glob(f"{name}-*.json")):
        about = json.loads(path.read_text())
        audio = np.load(path.with_suffix(".npy"), mmap_mode="r")
        parts = np.split(audio, about["ends"][:-1])
        clips += [Clip(*row) for row in zip(about["texts"], about["voices"], parts, strict=True)]
    if not clips:
        sys.exit(f"{folder} has no recordings of {name!r}: speak them first (--stage speech)")
    return clips


def drawing_weights(clips: list[Clip]) -> np.ndarray:
    """How often each of ``clips`` is to be heard beside the others: as its engine is, in equal parts."""
    engines = [clip.voice.partition(":")[0] for clip in clips]
    recorded = Counter(engines)
    return np.array([TRAINING_VOICES[engine].heard / recorded[engine] for engine in engines])


def takes(clips: list[Clip], size: int, most: int) -> list[np.ndarray]:
    """The numbers of all ``clips``, about ``size`` of like length together.

    Those whose weight is above the median come as many times as it says, up to ``most``.
    """
    weights = drawing_weights(clips)
    numbers = np.repeat(np.arange(len(clips)), np.rint(weights / np.median(weights)).clip(1, most).astype(int))
    lengths = np.array([len(clip.samples) for clip in clips])[numbers]
    # By a length drawn around each take's own: equal ones would bring all takes of a clip together.
    about = lengths * np.random.default_rng(1).uniform(0.9, 1.1, len(lengths))
    return np.array_split(numbers[np.argsort(about)], max(1, len(numbers) // size))


# --- disturbed ------------------------------------------------------------------------------------------------------


def fast_length(count: int) -> int:
    """The next length of the forms 2^k and 3·2^k: transforms of prime lengths take ten times as long."""
    power = 1 << (count - 1).bit_length()
    return power * 3 // 4 if power * 3 // 4 >= count else power


def noise(rng: np.random.Generator, count: int) -> np.ndarray:
    """White to brownish noise, or a hum of a few tones, of unit power."""
    if rng.random() < 0.15:
        t = np.arange(count) / SAMPLE_RATE
        wave = sum(rng.random() * np.sin(2 * np.pi * f * t) for f in rng.uniform(50, 2000, size=4))
    else:
        spectrum = np.fft.rfft(rng.standard_normal(fast_length(count), dtype=np.float32))
        spectrum /= np.arange(1, len(spectrum) + 1) ** rng.uniform(0, 0.8)
        wave = np.fft.irfft(spectrum)[:count]
    return wave / max(1e-9, float(np.sqrt(np.mean(np.square(wave)))))


def music(rng: np.random.Generator, count: int) -> np.ndarray:
    """Notes with overtones, one to three at a time, of about unit power: what is no speech but has pitch."""
    t = np.arange(count) / SAMPLE_RATE
    wave = np.zeros(count)
    for _ in range(int(rng.integers(1, 4))):
        length = int(SAMPLE_RATE * rng.uniform(0.1, 0.8))
        for start in range(0, count, length):
            pitch = 110 * 2 ** (rng.integers(0, 36) / 12)
            span = t[start : start + length] - t[start]
            fall = np.exp(-span * rng.uniform(0.5, 6))
            wave[start : start + length] += fall * sum(
                np.sin(2 * np.pi * pitch * k * span) / k for k in range(1, int(rng.integers(2, 7)))
            )
    return wave / max(1e-9, float(np.sqrt(np.mean(np.square(wave)))))


def room(rng: np.random.Generator, audio: np.ndarray) -> np.ndarray:
    """``audio`` as a microphone hears it in a room: the direct sound and a tail that decays by 60 dB; farther is duller."""
    length = int(SAMPLE_RATE * rng.uniform(0.1, 0.5))
    tail = rng.standard_normal(length) * np.exp(-6.9 * np.arange(length) / length) * rng.uniform(0.03, 0.3)
    tail[0] = 1.0
    size = fast_length(len(audio) + length)
    spectrum = np.fft.rfft(audio, size) * np.fft.rfft(tail, size)
    if rng.random() < 0.4:  # far away: highs are lost on the way
        spectrum /= 1 + (np.fft.rfftfreq(size, 1 / SAMPLE_RATE) / rng.uniform(1500, 5000)) ** 2
    return np.fft.irfft(spectrum, size)[: len(audio)]


def band(rng: np.random.Generator, audio: np.ndarray) -> np.ndarray:
    """``audio`` over a line that passes 300 Hz to 3.4 kHz or a little more."""
    size = fast_length(len(audio))
    spectrum = np.fft.rfft(audio, size)
    hertz = np.fft.rfftfreq(size, 1 / SAMPLE_RATE)
    spectrum[(hertz < rng.uniform(80, 300)) | (hertz > rng.uniform(3300, 6000))] *= 0.01
    return np.fft.irfft(spectrum, size)[: len(audio)]


def resized(audio: np.ndarray, factor: float) -> np.ndarray:
    """Played ``factor`` times as fast: another length of the vocal tract, another voice."""
    return np.interp(np.arange(0, len(audio) - 1, factor), np.arange(len(audio)), audio)


def extent(audio: np.ndarray) -> tuple[int, int]:
    """First and last sample that are louder than a fiftieth of the peak."""
    loud = np.flatnonzero(np.abs(audio) > 0.02 * np.abs(audio).max(initial=1e-9))
    return (int(loud[0]), int(loud[-1])) if len(loud) else (0, len(audio))


def utterance(rng: np.random.Generator, clips: list[Clip]) -> Utterance:
    """One segment as an endpointer would cut it: silence around, voice, level, room and noise drawn at random.

    Without clips a few seconds of silence, noise or music in which nobody speaks.
    """
    parts = [np.zeros(int(SAMPLE_RATE * rng.uniform(0.0, 0.5) * rng.random()))]
    sentences = []
    factor = float(np.clip(rng.normal(1, 0.06), 0.85, 1.18))
    for clip in clips:
        samples = resized(np.asarray(clip.samples, np.float64) / 32768, factor)
        first, last = extent(samples)
        at = sum(map(len, parts))
        sentences.append(((at + first) / SAMPLE_RATE, (at + last) / SAMPLE_RATE, clip.text))
        parts += [samples, np.zeros(int(SAMPLE_RATE * rng.uniform(0.0, 0.7) * rng.random()))]
    if not clips:
        count = int(SAMPLE_RATE * rng.uniform(0.3, 4))
        kind = rng.random()
        sound = np.zeros(count) if kind < 0.15 else music(rng, count) if kind < 0.5 else noise(rng, count)
        parts.append(sound * 10 ** rng.uniform(-4, -0.7))
    audio = np.concatenate(parts)
    power = max(1e-4, float(np.sqrt(np.mean(np.square(audio)))))
    if rng.random() < 0.2:
        audio = room(rng, audio)
    if rng.random() < 0.1:
        audio = band(rng, audio)
    if rng.random() < 0.5:
        audio = audio + noise(rng, len(audio)) * power * 10 ** (-rng.uniform(6, 45) / 20)
    audio = audio * 10 ** rng.uniform(-1.3, 0.3)
    return Utterance(audio.clip(-1, 1).astype(np.float32), tuple(sentences))
