"""Killed at any moment, a run leaves files that parse and hold all that was shown."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import srt
import webvtt

from tests.conftest import EXAMPLES


def started(outputs: dict[str, Path]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline.live", str(EXAMPLES / "travel.wav"), "--config", "demo", "--fast",
         *(text for kind, path in outputs.items() for text in (f"--{kind}", str(path)))],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole_size(tmp_path_factory: pytest.TempPathFactory) -> int:
    """Bytes of the event file of a run that nobody kills."""
    path = tmp_path_factory.mktemp("whole") / "out.jsonl"
    process = started({"jsonl": path})
    process.communicate(timeout=300)
    assert process.returncode == 0
    return path.stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_kill_9_at_a_random_moment(seed: int, whole_size: int, tmp_path: Path) -> None:
    """The moment is a random length of the event file, so that it falls into every part of the run."""
    outputs = {kind: tmp_path / f"out.{kind}" for kind in ("srt", "vtt", "jsonl")}
    process = started(outputs)
    # The last line is the end; what comes after it is no run any more.
    moment = random.Random(seed).randrange(whole_size - 500)
    while process.poll() is None:
        if outputs["jsonl"].exists() and outputs["jsonl"].stat().st_size >= moment:
            break
    process.send_signal(signal.SIGKILL)
    shown = process.communicate()[0].decode()
    assert process.returncode == -signal.SIGKILL, "it had ended before"
    for line in outputs["jsonl"].read_text("utf-8").splitlines():
        json.loads(line)
    cues = ["".join(cue.content.split()) for cue in srt.parse(outputs["srt"].read_text("utf-8"))]
    assert ["".join(cue.text.split()) for cue in webvtt.read(str(outputs["vtt"])).captions][: len(cues)] == cues
    seen = ["".join(line.split()) for line in shown.splitlines() if line.startswith(" " * 17)]
    assert "".join(cues).startswith("".join(seen))
