"""Subtitles for the computer's own output, as in the README: PULSE_SOURCE selects the monitor of an output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import srt

from tests.conftest import HANG_S, PHRASES, spoken_texts

pytestmark = [
    pytest.mark.microphone,
    pytest.mark.skipif("VIRTUAL_MICROPHONE" not in os.environ, reason="no PulseAudio; .ci/run sets one up"),
]


@pytest.fixture
def speakers() -> Iterator[str]:
    """An output that the microphone does not record."""
    load = ["pactl", "load-module", "module-null-sink", "sink_name=speakers", "rate=48000", "channels=2"]
    module = subprocess.run(load, check=True, capture_output=True, timeout=HANG_S).stdout.decode().strip()
    yield "speakers"
    subprocess.run(["pactl", "unload-module", module], check=True, timeout=HANG_S)


def test_the_output_of_the_computer_is_subtitled(speakers: str, tmp_path: Path) -> None:
    listed = subprocess.run(["pactl", "list", "short", "sources"], check=True, capture_output=True, timeout=HANG_S)
    assert f"{speakers}.monitor" in listed.stdout.decode()
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline.live", "--device", "pulse", "--config", "demo-zh", "--srt", tmp_path / "out.srt"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"PULSE_SOURCE": f"{speakers}.monitor"},
    )  # fmt: skip
    watchdog = threading.Timer(120, process.kill)
    watchdog.daemon = True
    watchdog.start()
    try:
        assert process.stderr is not None
        while b"listening to" not in (line := process.stderr.readline()):
            assert line, "the run ended before it listened"
        subprocess.run(["paplay", f"--device={speakers}", str(PHRASES)], check=True, timeout=HANG_S)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=HANG_S)
        assert process.returncode == 0, error.decode()
    finally:
        process.kill()
        process.wait()
        watchdog.cancel()
    assert len(list(srt.parse((tmp_path / "out.srt").read_text("utf-8")))) == len(spoken_texts()["phrases"])
