"""A run killed at any moment leaves valid files with everything that was shown."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import srt
import webvtt

from tests.conftest import EXAMPLES, HANG_S, read_wav

# Three sentences, and a pause that ends the last one.
SPEECH = np.pad(read_wav(EXAMPLES / "travel.wav")[: 16_000 * 12], (0, 2 * 16_000)).tobytes()


def started(outputs: dict[str, Path]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline.live", "-", "--config", "demo-zh", "--fast",
         *(text for kind, path in outputs.items() for text in (f"--{kind}", str(path)))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole_size(tmp_path_factory: pytest.TempPathFactory) -> int:
    """Bytes of the event file of a run that is not killed, without its last line, the end of input."""
    path = tmp_path_factory.mktemp("whole") / "out.jsonl"
    process = started({"jsonl": path})
    process.communicate(SPEECH, timeout=HANG_S)
    assert process.returncode == 0
    return sum(map(len, path.read_bytes().splitlines(keepends=True)[:-1]))


def say(process: subprocess.Popen[bytes]) -> None:
    """Write all speech and leave the input open, so that the run cannot end by itself."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(SPEECH)
        process.stdin.flush()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_kill_9_at_a_random_moment(seed: int, whole_size: int, tmp_path: Path) -> None:
    """Kill at a random length of the event file, so that every part of a run is covered."""
    outputs = {kind: tmp_path / f"out.{kind}" for kind in ("srt", "vtt", "jsonl")}
    process = started(outputs)
    speaker = threading.Thread(target=say, args=(process,))
    speaker.start()
    moment = random.Random(seed).randrange(whole_size - 500)  # runs may differ in one digit of a probability
    while process.poll() is None and not (outputs["jsonl"].exists() and outputs["jsonl"].stat().st_size >= moment):
        time.sleep(0.001)  # leaves the processor to the run
    process.send_signal(signal.SIGKILL)
    speaker.join()
    shown = process.communicate()[0].decode()
    assert process.returncode == -signal.SIGKILL, "it had ended before"
    for line in outputs["jsonl"].read_text("utf-8").splitlines():
        json.loads(line)
    seen = "".join("".join(line.split()) for line in shown.splitlines() if line.startswith(" " * 17))
    srt_cues = ["".join(cue.content.split()) for cue in srt.parse(outputs["srt"].read_text("utf-8"))]
    vtt_cues = ["".join(cue.text.split()) for cue in webvtt.read(str(outputs["vtt"])).captions]
    # A kill may come between the writing of two files.
    assert abs(len(srt_cues) - len(vtt_cues)) <= 1
    assert all(one == other for one, other in zip(srt_cues, vtt_cues, strict=False))
    for cues in (srt_cues, vtt_cues):
        assert "".join(cues).startswith(seen)
