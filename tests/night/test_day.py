"""Twelve minutes of speech, silence and noise through the whole chain and all files: nothing is lost, no memory is kept."""

import asyncio
import ctypes
import json
import math
import os
import platform
import subprocess
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from pipeline import (
    Models,
    PipelineConfig,
    PipelineEvent,
    SourceSentence,
    SpeechTranslator,
    Transcript,
    Translation,
    load_config,
    load_models,
)
from pipeline.bench.processes import resident_mb
from pipeline.console.cli import settle
from pipeline.events import SAMPLE_RATE, Samples
from pipeline.languages.marks import letters
from pipeline.media.latency.emissions import unit_of
from pipeline.media.sinks.files import FORMATS, open_sinks, sink_makers
from pipeline.media.sinks.latency_log import open_latency_log
from pipeline.media.sinks.sink import write_all
from tests.conftest import EXAMPLES, HANG_S, ROOT, read_wav

RECORDINGS = ("travel", "meeting")
MINUTES = 12
# The pools of ONNX Runtime, CTranslate2 and oneDNN grow by 3 to 12 MB in the first half hour. Nine minutes of audio are 17 MB.
POOLS_MB = 14.0


def scenes(seed: int) -> Iterator[tuple[str, Samples]]:
    """Recordings, silence and noise in random order, each with a second of quiet after it."""
    rng = np.random.default_rng(seed)
    left = MINUTES * 60 * SAMPLE_RATE
    while left > 0:
        name = str(rng.choice([*RECORDINGS, "", ""]))
        if name:
            sound = read_wav(EXAMPLES / f"{name}.wav") * rng.uniform(0.5, 1.0)
        else:
            loud = rng.choice([0.0, np.exp(rng.uniform(*np.log((50.0, 1500.0))))])
            sound = rng.normal(0.0, loud, round(rng.uniform(10.0, 40.0) * SAMPLE_RATE))
        sound = np.concatenate([sound, np.zeros(SAMPLE_RATE)])
        sound += rng.normal(0.0, 3.0, len(sound))  # a microphone is never silent
        left -= len(sound)
        yield name, np.clip(np.round(sound), -32768, 32767).astype(np.int16)


def held_mb() -> float:
    """Resident memory without what lies free in glibc's pools."""
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)
    return resident_mb()


async def simulated(folder: Path) -> dict[str, object]:
    """Run the twelve minutes: what was said and heard, and the least memory held in each minute of audio, in MB."""
    config = load_config("demo-zh")
    models = load_models(config)
    settle()
    alone = {name: await collected(config, models, read_wav(EXAMPLES / f"{name}.wav")) for name in RECORDINGS}
    held: dict[int, float] = {}
    spoken: list[tuple[str, float]] = []
    files = {(kind, ""): folder / f"day.{kind}" for kind in FORMATS}
    log = open_latency_log(folder / "log.jsonl", unit_of("zh"), "zh")
    log.start("day.wav", lambda: 0.0)
    sinks = [*open_sinks(files, None, sink_makers(config.subtitles)), log]

    def take(event: PipelineEvent) -> None:
        write_all(sinks, event)
        if isinstance(event, Transcript):
            minute = int(event.end_s // 60)
            held[minute] = min(held_mb(), held.get(minute, math.inf))

    def day() -> Iterator[Samples]:
        end_s = 0.0
        for name, samples in scenes(0):
            end_s += len(samples) / SAMPLE_RATE
            spoken.append((name, end_s))
            yield samples

    events = await collected(config, models, *day(), take=take)
    for sink in sinks:
        sink.close()
    ends_s = [end_s for _, end_s in spoken]
    said = [[letters(one.text) for one in transcripts(alone[name])] if name else [] for name, _ in spoken]
    heard: list[list[str]] = [[] for _ in spoken]
    for one in transcripts(events):
        heard[bisect_left(ends_s, one.end_s - 0.5)].append(letters(one.text))
    alike = sum((Counter(one) & Counter(other)).total() for one, other in zip(said, heard, strict=True))
    sentences = [event for event in events if isinstance(event, SourceSentence)]
    return {
        "heard": "".join(letters(one.text) for one in transcripts(events)),
        "in_sentences": "".join(letters(sentence.text) for sentence in sentences),
        "sentences": [sentence.sentence for sentence in sentences],
        "translated": [event.sentence for event in events if isinstance(event, Translation)],
        "spoken": sum(map(len, said)),
        "alike": alike,
        "held_mb": [held[minute] for minute in sorted(held)],
    }


async def collected(
    config: PipelineConfig, models: Models, *parts: Samples, take: Callable[[PipelineEvent], None] = lambda event: None
) -> list[PipelineEvent]:
    """The transcripts, sentences and translations of a stream of ``parts``; ``take`` gets every event."""
    kept: list[PipelineEvent] = []

    async def feed() -> None:
        for samples in parts:
            await translator.feed(samples)
        await translator.end()

    async with SpeechTranslator(config, models) as translator, asyncio.TaskGroup() as group:
        group.create_task(feed())
        async for event in translator.events():
            take(event)
            if isinstance(event, Transcript | SourceSentence | Translation):
                kept.append(event)
    return kept


def transcripts(events: list[PipelineEvent]) -> list[Transcript]:
    return [event for event in events if isinstance(event, Transcript) and event.rejected is None]


@pytest.mark.timeout(HANG_S)
def test_twelve_minutes_lose_nothing_and_keep_no_memory(tmp_path):
    """In a process of its own, so that memory left behind by other tests does not count."""
    command = [sys.executable, "-m", "tests.night.test_day", str(tmp_path)]
    environment = os.environ | {"MALLOC_ARENA_MAX": "1"}  # how many of glibc's pools are in use is chance
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["in_sentences"] == found["heard"] != ""
    assert found["translated"] == found["sentences"] == list(range(len(found["sentences"])))
    # Noise before a sentence decides whether Whisper writes "six" or "6": 0.92 were heard alike in hours.
    assert found["alike"] >= 0.85 * found["spoken"] >= 0.85 * 20
    settled = found["held_mb"][2:MINUTES]
    print(found["held_mb"])
    assert np.polyfit(range(len(settled)), settled, 1)[0] * (len(settled) - 1) < POOLS_MB


if __name__ == "__main__":
    print(json.dumps(asyncio.run(simulated(Path(sys.argv[1])))))
