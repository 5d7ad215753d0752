"""Recordings as they are translated with Whisper and Marian: sentences with pauses in them, and half an hour without growing."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline import Models, PipelineConfig
from pipeline.apps import translate
from pipeline.events import SpeechSegment
from tests.apps.test_translate import KINDS, ONE_BY_ONE, Counting, files, save, sources
from tests.conftest import EXAMPLES, HANG_S, read_wav


@pytest.fixture
def translated(demo_models: Models, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, Counting]]:
    """Runs the command with the demo models, which may fail; returns status and counts."""

    def run(*arguments: str | Path, **failures: int) -> tuple[int, Counting]:
        counting = Counting(demo_models, **failures)

        async def loaded(config: PipelineConfig) -> Models:
            return replace(demo_models, recognizer=counting, translations={"zh": counting})

        monkeypatch.setattr(translate, "_load", loaded)
        return translate.run(list(map(str, arguments))), counting

    return run


@pytest.fixture(scope="module")
def with_pauses(tmp_path_factory: pytest.TempPathFactory, demo_models: Models) -> Path:
    """Read speech with a second of silence in the middle of each sentence, and a configuration beside it."""
    samples = read_wav(EXAMPLES / "novel.wav")
    heard = demo_models.recognizer.transcribe([SpeechSegment(0, 0, samples[: 28 * 16_000])])[0]
    pieces, at = [], 0
    for first, second, third in zip(heard.words, heard.words[1:], heard.words[2:], strict=False):
        middle = round(8_000 * (first.end_s + second.start_s))
        unbroken = not any(mark in word.text for mark in ".?!" for word in (first, second, third))
        if unbroken and middle > at + 3 * 16_000:
            around = [slice(p - 160, p + 160) for p in range(middle - 1_600, middle + 1_600, 80)]
            quietest = min(around, key=lambda part: float(np.abs(samples[part].astype(np.float32)).mean()))
            cut = quietest.start + 160
            pieces += [samples[at:cut], np.zeros(16_000, np.int16)]
            at = cut
    assert len(pieces) >= 6
    folder = tmp_path_factory.mktemp("pauses")
    save(folder / "phrases.wav", np.concatenate([*pieces, samples[at:]]))
    apart = ONE_BY_ONE.read_text("utf-8")
    (folder / "apart.toml").write_text(apart)
    (folder / "joined.toml").write_text(apart.replace("long_pause_ms = 0", ""))
    return folder


def test_a_sentence_with_a_pause_in_it_is_translated_as_one(translated, tmp_path, with_pauses):
    for name in ("joined", "apart"):
        configured = ("--config", with_pauses / f"{name}.toml", "--output-dir", tmp_path / name)
        status, _ = translated(with_pauses / "phrases.wav", "--format", "srt,jsonl", *configured)
        assert status == 0
    joined, apart = sources(tmp_path / "joined"), sources(tmp_path / "apart")
    assert len(joined) < len(apart)
    assert sum(text.rstrip()[-1] in '.?!”"' for text in joined) >= len(joined) - 1
    assert sum(text.rstrip()[-1] in '.?!”"' for text in apart) < len(apart) - 1


@pytest.mark.parametrize("token", [5, 17, 29])
def test_a_run_goes_on_in_a_sentence_with_a_pause(translated, tmp_path, with_pauses, token):
    configured = ("--format", KINDS, "--config", with_pauses / "joined.toml")
    arguments = (with_pauses / "phrases.wav", *configured, "--output-dir")
    assert translated(*arguments, tmp_path / "whole")[0] == 0
    assert translated(*arguments, tmp_path / "cut", fail_at_token=token)[0] == 1
    status, second = translated(*arguments, tmp_path / "cut")
    assert status == 0
    assert files(tmp_path / "cut") == files(tmp_path / "whole")
    assert second.tokens < len((tmp_path / "whole" / "phrases.jsonl").read_text("utf-8").splitlines())


MEASURED = """
import json, sys
from pipeline.apps import translate
from pipeline.bench.processes import resident_mb
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.backends.machine import keep_freed_memory
keep_freed_memory()  # as pipeline.translate.main
sizes = []
def count(self, stats, real=translate.Result.count):
    real(self, stats)
    if stats.audio_s >= 150 * (len(sizes) + 1):
        sizes.append(resident_mb())
translate.Result.count = count
status = translate.run(sys.argv[1:])
print(json.dumps(sizes))
sys.exit(status)
"""
"""``pipeline.translate``, which prints the process's memory, in MB, after each two and a half minutes of audio."""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc")
def test_memory_does_not_grow_with_the_recording(tmp_path):
    """Half an hour, a quarter of it speech; the samples alone would be 58 MB.

    It runs in its own process, so that memory of other tests is not counted.
    """
    travel, meeting = (read_wav(EXAMPLES / f"{name}.wav")[: 16_000 * 8] for name in ("travel", "meeting"))
    pause = np.zeros(16_000 * 22, np.int16)
    save(tmp_path / "long.flac", np.tile(np.concatenate([travel, pause, meeting, pause]), 30))
    arguments = [str(tmp_path / "long.flac"), "--format", KINDS, "--config", "demo-zh"]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *arguments], capture_output=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    sizes = json.loads(done.stdout.splitlines()[-1])
    print(sizes)
    assert len(sizes) >= 10
    # Windows of different lengths fill the allocator's pools, mostly in the first half; later it took 11 MB at once. What is
    # kept grows with each sample: the audio by 5 MB, 29 MB in the second half.
    half = len(sizes) // 2
    growth = np.diff(sizes[half - 1 :])
    assert np.median(growth) < 0.5
    assert sum(growth) < 20
