"""Count the words that are lost, doubled or wrong in quick turns: clips joined at random, with ``transcribe`` beside it."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
import wave
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import av
import numpy as np
from av.audio.frame import AudioFrame

from ..apps import for_recordings
from ..config import PipelineConfig
from ..core import SAMPLE_RATE, Models, PipelineStats, Samples, SourceSentence
from ..media import Recording, aligned
from .play import faster_whisper, load_for_long_run
from .words import scored_units

_SPEEDS = (0.8, 1.3)
_LONG_PAUSES_S = (2.0, 12.0)
_LONG_SHARE = 0.15
_CLIPS = 38
_NOISE = 10.0  # standard deviation, of 32,768: digital silence would be too easy
_LEAST_RUN = 3
_PEER_BEAMS = 5


@dataclass(frozen=True)
class QuickTurns:
    """Clips in random order, each at a speed of its own."""

    samples: Samples
    text: str


@dataclass
class Count:
    """Counts of the words of a reference that were lost, doubled or misheard."""

    name: str
    words: int = 0
    wrong: int = 0
    """Edit distance between what was recognised and the reference, in words."""
    lost: list[str] = field(default_factory=list)
    """Runs of three or more words that are not in the text."""
    doubled: list[str] = field(default_factory=list)
    """Runs of three or more words that the reference does not have."""
    listed_s: float = 0.0
    """Seconds that are listed as heard and not shown."""
    seconds: float = 0.0
    audio_s: float = 0.0

    def add(self, reference: Sequence[str], hypothesis: Sequence[str]) -> None:
        self.words += len(reference)
        pairs = aligned(reference, hypothesis)
        self.wrong += sum(i is None or j is None or reference[i] != hypothesis[j] for i, j in pairs)
        self.lost += _runs([reference[i] if i is not None and j is None else None for i, j in pairs])
        self.doubled += _runs([hypothesis[j] if j is not None and i is None else None for i, j in pairs])

    @property
    def line(self) -> str:
        return (
            f"{sum(len(run.split()) for run in self.lost):6}  {sum(len(run.split()) for run in self.doubled):7}  "
            f"{self.wrong:6}  {self.wrong / max(1, self.words):6.1%}  {self.listed_s:8.1f}  {self.seconds:7.1f}"
        )


def _runs(words: Iterable[str | None]) -> list[str]:
    """The runs of words without a gap that are long enough."""
    groups = (
        [word for word in group if word] for there, group in groupby(words, lambda word: word is not None) if there
    )
    return [" ".join(group) for group in groups if len(group) >= _LEAST_RUN]


def joined_clips(
    clips: Sequence[tuple[Samples, str]], seed: int, pauses_s: tuple[float, float] = (0.1, 0.7), *, long: bool = False
) -> QuickTurns:
    """Clips in random order with short pauses; ``long``: some of 2 to 12 s, too.

    Args:
        clips: speech [n], int16 at 16 kHz, without silence around it; and its text.
    """
    chance, texts = random.Random(seed), []
    parts = [np.zeros(SAMPLE_RATE // 2, np.int16)]
    for samples, text in chance.sample(list(clips), min(_CLIPS, len(clips))):
        pause_s = chance.uniform(*(_LONG_PAUSES_S if long and chance.random() < _LONG_SHARE else pauses_s))
        parts += [at_speed(samples, chance.uniform(*_SPEEDS)), np.zeros(round(pause_s * SAMPLE_RATE), np.int16)]
        texts.append(text)
    whole = np.concatenate([*parts, np.zeros(SAMPLE_RATE, np.int16)])
    noise = np.random.default_rng(seed).normal(0, _NOISE, len(whole))
    return QuickTurns(np.clip(whole + noise, -32768, 32767).astype(np.int16), " ".join(texts))


def at_speed(samples: Samples, speed: float) -> Samples:
    """Speech [n] faster or slower at the same pitch, by FFmpeg's atempo."""
    graph = av.filter.Graph()
    source = graph.add_abuffer(sample_rate=SAMPLE_RATE, format="s16", layout="mono")
    tempo, sink = graph.add("atempo", str(speed)), graph.add("abuffersink")
    source.link_to(tempo)
    tempo.link_to(sink)
    graph.configure()
    frame = AudioFrame.from_ndarray(samples[None], format="s16", layout="mono")
    frame.sample_rate = SAMPLE_RATE
    graph.push(frame)
    graph.push(None)
    parts: list[Samples] = []
    while True:
        try:
            parts.append(graph.pull().to_ndarray()[0])
        except (EOFError, av.error.BlockingIOError):
            return np.concatenate(parts)


def counted(turns: Sequence[QuickTurns], config: PipelineConfig, *, live: bool) -> list[Count]:
    """What ``transcribe``, recordings and, with ``live``, live runs at real pace make of the turns.

    Args:
        config: its targets are the language spoken, so that nothing is translated.
    """
    language = config.languages.source
    ways: dict[str, Callable[[Path, Samples, Count], str]] = {"faster-whisper, transcribe": _peer(config)}
    ways["recordings"] = _chain(for_recordings(config), paced=False)
    if live:
        ways["live, real pace"] = _chain(config, paced=True)
    counts = [Count(name) for name in ways]
    with tempfile.TemporaryDirectory() as folder:
        for number, turn in enumerate(turns):
            path = Path(folder) / f"{number}.wav"
            with wave.open(str(path), "wb") as file:
                file.setparams((1, 2, SAMPLE_RATE, 0, "NONE", ""))
                file.writeframes(turn.samples.tobytes())
            for count, text_of in zip(counts, ways.values(), strict=True):
                began = time.perf_counter()
                text = text_of(path, turn.samples, count)
                count.seconds += time.perf_counter() - began
                count.audio_s += len(turn.samples) / SAMPLE_RATE
                count.add(scored_units(turn.text, language), scored_units(text, language))
    return counts


def _peer(config: PipelineConfig) -> Callable[[Path, Samples, Count], str]:
    model = faster_whisper(config.asr)

    def text_of(path: Path, samples: Samples, count: Count) -> str:
        floats = samples.astype(np.float32) / 32768.0
        segments, _ = model.transcribe(floats, language=config.languages.source, beam_size=_PEER_BEAMS)
        return " ".join(segment.text for segment in segments)

    return text_of


def _chain(config: PipelineConfig, *, paced: bool) -> Callable[[Path, Samples, Count], str]:
    models: list[Models] = []

    async def run(path: Path) -> tuple[str, PipelineStats]:
        from ..core import SpeechTranslator

        models[:] = models or [await load_for_long_run(config)]
        texts: list[str] = []
        async with (
            SpeechTranslator(config, models[0]) as translator,
            aclosing(translator.run(Recording(path), paced=paced)) as events,
        ):
            async for event in events:
                if isinstance(event, SourceSentence):
                    texts.append(event.text)
            return " ".join(texts), translator.stats

    def text_of(path: Path, samples: Samples, count: Count) -> str:
        text, stats = asyncio.run(run(path))
        count.listed_s += sum(stats.withheld_s.values())
        return text

    return text_of


def as_text(counts: Sequence[Count], runs: int) -> str:
    """Format the counts, one line for each, and the runs of words that were lost or doubled."""
    width = max(len(count.name) for count in counts)
    first = counts[0]
    lines = [
        f"{runs} recordings of turns, {first.words} words, {first.audio_s:.0f} s",
        f"{'':{width}}  {'lost':>6}  {'doubled':>7}  {'wrong':>6}  {'':>6}  {'listed s':>8}  {'s':>7}",
        *(f"{count.name:{width}}  {count.line}" for count in counts),
    ]
    for count in counts:
        lines += [f"{count.name}, lost: {run}" for run in count.lost]
        lines += [f"{count.name}, doubled: {run}" for run in count.doubled]
    return "\n".join([
        *lines, "lost, doubled: words in runs of three or more; listed: seconds of speech that are said to be heard and not shown"
    ])  # fmt: skip
