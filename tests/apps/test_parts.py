"""Parts of a long recording, recognised one by one, have the transcripts of a single run."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline import Models, PipelineConfig, Transcript
from pipeline.apps.parts import KnownParts, Part, can_be_split, most_parts, parts_of, transcribe_part
from pipeline.asr.whisper import WhisperRecognizer
from pipeline.audio.recording import Recording
from pipeline.events import SAMPLE_RATE, Samples, SpeechSegment
from pipeline.glossary.options import GlossaryOptions
from tests.apps.test_translate import Counting, save
from tests.conftest import EXAMPLES, read_wav


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A minute and a half of speech in several windows."""
    path = tmp_path_factory.mktemp("long") / "long.wav"
    pause = np.zeros(16_000 * 2, np.int16)
    save(
        path, np.concatenate([read_wav(EXAMPLES / "travel.wav"), pause, read_wav(EXAMPLES / "meeting.wav"), pause] * 2)
    )
    return path


def recognised(path: Path, config: PipelineConfig, recognizer: Counting, part: Part) -> list[Transcript]:
    return asyncio.run(transcribe_part(Recording(path), config, recognizer, part))


def packed(config: PipelineConfig) -> PipelineConfig:
    return replace(config, asr=replace(config.asr, join_ms=10_000))


@pytest.mark.slow
@pytest.mark.parametrize("longest_s", [5.0, 17.0, 31.0, 300.0])
def test_all_parts_together_have_every_window_once(
    long: Path, demo_config: PipelineConfig, demo_models: Models, longest_s: float
) -> None:
    config, recognizer = packed(demo_config), Counting(demo_models)
    whole = recognised(long, config, recognizer, Part(0.0, math.inf))
    assert len(whole) >= 20
    parts = parts_of(83.0, longest_s)
    assert max(part.end_s - part.begin_s for part in parts[:-1] or [Part(0, 0)]) <= longest_s
    recognizer.segments = 0
    assert [t for part in parts for t in recognised(long, config, recognizer, part)] == whole
    assert recognizer.segments == len(whole), "no window was recognised twice"


@pytest.mark.parametrize(
    ("workers", "recordings", "parts"),
    [(1, 1, 1), (2, 1, 2), (8, 1, 8), (2, 2, 2), (8, 2, 6), (2, 3, 1), (8, 15, 1), (0, 1, 1)],
)
def test_a_recording_has_no_more_parts_than_keep_the_workers_busy(workers: int, recordings: int, parts: int) -> None:
    assert most_parts(workers, recordings) == parts
    assert len(parts_of(36_000.0, 1800.0, parts)) == parts
    assert len(parts_of(1000.0, 1800.0, parts)) == 1


class AtOnce(Counting):
    """Recognises several windows at once."""

    def transcribe_packs(self, packs: Sequence[Sequence[SpeechSegment]], *options: Any) -> list[list[Transcript]]:
        recognizer = self.models.recognizer
        assert isinstance(recognizer, WhisperRecognizer)
        self.segments += sum(map(len, packs))
        return recognizer.transcribe_packs(packs, *options)


@pytest.mark.slow
def test_parts_have_the_transcripts_of_a_run_that_groups_the_windows_in_another_way(
    long: Path, demo_config: PipelineConfig, demo_models: Models
) -> None:
    config, recognizer = packed(demo_config), AtOnce(demo_models)
    whole = recognised(long, config, recognizer, Part(0.0, math.inf))
    assert len(whole) >= 20
    count, recognizer.segments = recognizer.segments, 0
    parts = [recognised(long, config, recognizer, part) for part in parts_of(83.0, 31.0)]
    assert [transcript for part in parts for transcript in part] == whole
    assert recognizer.segments == count == len(whole), "no window was recognised twice"
    most = KnownParts(recognizer, parts[0] + parts[2])
    recognizer.segments = 0
    assert asyncio.run(transcribe_part(Recording(long), config, most, Part(0.0, math.inf))) == whole
    assert recognizer.segments == len(parts[1])


class Remembering(AtOnce):
    """Recognises each window once, and counts how often each segment is asked for."""

    def __init__(self, models: Models) -> None:
        super().__init__(models)
        self._known: dict[tuple[int, ...], list[Transcript]] = {}
        self.asked: list[int] = []

    def transcribe_packs(self, packs: Sequence[Sequence[SpeechSegment]], *options: Any) -> list[list[Transcript]]:
        windows = [tuple(segment.id for segment in pack) for pack in packs]
        self.asked += [segment for window in windows for segment in window]
        if new := [pack for pack, window in zip(packs, windows, strict=True) if window not in self._known]:
            for pack, found in zip(new, super().transcribe_packs(new, *options), strict=True):
                self._known[tuple(segment.id for segment in pack)] = found
        return [self._known[window] for window in windows]


@pytest.fixture(scope="module")
def remembered(
    demo_config: PipelineConfig, demo_models: Models
) -> tuple[PipelineConfig, Remembering, list[Transcript]]:
    """Six windows in two groups: their configuration, recogniser and transcripts."""
    config = replace(demo_config, asr=replace(demo_config.asr, join_ms=4_000))
    recognizer = Remembering(demo_models)
    whole = recognised(EXAMPLES / "travel.wav", config, recognizer, Part(0.0, math.inf))
    assert len(whole) >= 6
    return config, recognizer, whole


@pytest.mark.slow
@given(st.lists(st.floats(0, 24) | st.tuples(st.integers(0, 5), st.sampled_from([-0.001, 0.0, 0.001])), max_size=4))
@example([(number, 0.0) for number in range(6)])
@settings(max_examples=10)
def test_wherever_the_joints_are_no_window_is_lost_and_none_is_recognised_twice(
    remembered: tuple[PipelineConfig, Remembering, list[Transcript]], joints: list[float | tuple[int, float]]
) -> None:
    """A joint is at a time, or at the begin of a segment: at it, before it or after it."""
    config, recognizer, whole = remembered
    times = [joint if isinstance(joint, float) else whole[joint[0]].start_s + joint[1] for joint in joints]
    bounds = [0.0, *sorted(max(0.0, time) for time in times), math.inf]
    recognizer.asked.clear()
    parts = [
        recognised(EXAMPLES / "travel.wav", config, recognizer, Part(begin, end)) for begin, end in pairwise(bounds)
    ]
    assert [transcript for part in parts for transcript in part] == whole
    assert recognizer.asked == [transcript.segment_id for transcript in whole]


@given(st.floats(0, 50), st.floats(1, 1e5), st.lists(st.floats(0, 1e6), max_size=5), st.integers())
@settings(max_examples=50)
def test_every_moment_is_in_one_part(times: float, longest_s: float, moments: list[float], bound: int) -> None:
    duration_s = times * longest_s
    parts = parts_of(duration_s, longest_s)
    ends = [*(part.end_s for part in parts[:-1]), duration_s]
    assert all(end_s - part.begin_s <= longest_s * (1 + 1e-9) for part, end_s in zip(parts, ends, strict=True))
    for moment in [*moments, parts[bound % len(parts)].begin_s]:
        segment = SpeechSegment(0, round(moment * SAMPLE_RATE), np.zeros(1, np.int16))
        assert sum(part.has([segment]) for part in parts) == 1


class Refusing(Counting):
    def transcribe_packed(self, segments: Sequence[SpeechSegment], *options: object) -> list[Transcript]:
        raise AssertionError("these are known")


@pytest.mark.slow
def test_known_transcripts_are_not_recognised_again(
    long: Path, demo_config: PipelineConfig, demo_models: Models
) -> None:
    config = packed(demo_config)
    whole = recognised(long, config, Counting(demo_models), Part(0.0, math.inf))
    known = KnownParts(Refusing(demo_models), whole)
    assert asyncio.run(transcribe_part(Recording(long), config, known, Part(0.0, math.inf))) == whole
    most = KnownParts(missing := Counting(demo_models), whole[:-1])
    assert asyncio.run(transcribe_part(Recording(long), config, most, Part(0.0, math.inf))) == whole
    assert 0 < missing.segments < 6, "only the last window was recognised"


def test_a_part_is_read_no_further_than_needed(long: Path, demo_config: PipelineConfig, demo_models: Models) -> None:
    class CountingReads(Recording):
        reads = 0

        def read(self) -> Samples | None:
            self.reads += 1
            return super().read()

    class Instant(Counting):
        """Takes no time to recognise, in which more is read."""

        def transcribe_packs(self, packs: Sequence[Sequence[SpeechSegment]], *options: Any) -> list[list[Transcript]]:
            self.segments += sum(map(len, packs))
            return [[Transcript(one.id, one.start_s, one.end_s, "", "") for one in pack] for pack in packs]

    source, recognizer = CountingReads(long), Instant(demo_models)
    asyncio.run(transcribe_part(source, packed(demo_config), recognizer, Part(0.0, 5.0)))
    assert recognizer.segments
    assert 50 < source.reads < 600, "of more than 800"


def test_a_stopped_part_recognises_no_further_window(
    long: Path, demo_config: PipelineConfig, demo_models: Models
) -> None:
    recognizer = Counting(demo_models)
    part = Part(0.0, math.inf)
    found = transcribe_part(
        Recording(long), packed(demo_config), recognizer, part, stopped=lambda: recognizer.segments > 0
    )
    assert 0 < len(asyncio.run(found)) == recognizer.segments < 10, "of more than 20"


def test_windows_that_depend_on_each_other_are_not_split(demo_config: PipelineConfig) -> None:
    assert can_be_split(packed(demo_config))
    assert not can_be_split(replace(demo_config, asr=replace(demo_config.asr, join_ms=0)))
    auto = replace(packed(demo_config), languages=replace(demo_config.languages, source="auto", targets=("zh", "en")))
    assert not can_be_split(auto)
    assert not can_be_split(replace(packed(demo_config), glossary=GlossaryOptions(file="terms.csv")))
