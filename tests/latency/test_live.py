"""The latency log of a real run at a recording's own pace."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.conftest import HANG_S, PHRASE_SECONDS


def test_a_live_run_logs_when_what_it_shows_came(phrase: Path, tmp_path: Path) -> None:
    outputs = ["--latency-log", tmp_path / "instances.log", "--jsonl", tmp_path / "out.jsonl"]
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.live", phrase, "--config", "demo", *outputs],
        capture_output=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    # There would be a warning if the clock ran ahead of the audio, or stood still.
    assert "faster than real time" not in done.stderr.decode()
    (line,) = [json.loads(line) for line in (tmp_path / "instances.log").read_text("utf-8").splitlines()]
    events = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    deltas = [event for event in events if event["type"] == "delta"]
    assert line["prediction"] == "".join("".join(delta["text"] for delta in deltas).split()) != ""
    assert line["delays"] == [
        round(delta["heard_s"] * 1000, 1) for delta in deltas for character in delta["text"] if character.strip()
    ]
    assert line["elapsed"] == sorted(line["elapsed"])
    assert all(elapsed >= delay for elapsed, delay in zip(line["elapsed"], line["delays"], strict=True))
    assert line["source"] == [str(phrase)]
    assert line["source_length"] == PHRASE_SECONDS * 1000
