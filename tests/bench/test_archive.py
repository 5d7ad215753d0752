"""The throughput of recordings: rows of one recording in processes, and the table."""

from __future__ import annotations

import json
import wave
from pathlib import Path

import pytest

from pipeline.bench import __main__ as bench
from pipeline.bench.archive import Row, Way, as_text
from pipeline.config import PipelineConfig
from pipeline.errors import UsageError
from tests.conftest import PHRASES, read_wav, spoken_texts


def test_recordings_are_recognised_and_translated_in_processes_and_compared_with_the_peer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one.wav", "two.wav"):
        with wave.open(str(tmp_path / name), "wb") as file:
            file.setparams((1, 2, 16_000, 0, "NONE", ""))
            file.writeframes(read_wav(PHRASES)[: 16_000 * 8].tobytes())
    (tmp_path / "one.txt").write_text(" ".join(spoken_texts()["phrases"][:2]))
    arguments = ["archive", str(tmp_path), "--config", "demo", "--processes", "2"]
    assert bench.run([*arguments, "--json", str(tmp_path / "out.json")]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("2 recordings, 0.00 h, 16 words")
    rows = json.loads((tmp_path / "out.json").read_text())
    assert [(row["name"], row["processes"]) for row in rows] == [
        ("faster-whisper, batches of 8", 1),
        ("recognised", 2),
        ("translated", 2),
    ]
    for row in rows:
        assert row["words"] == 16
        assert row["wrong"] <= 3
        assert row["audio_s"] == 16.0
        assert set(row["texts"]) == {str(tmp_path / "one.wav"), str(tmp_path / "two.wav")}
    assert rows[1]["texts"] == rows[2]["texts"]


def test_hours_are_compared_with_the_first_row() -> None:
    peer = Row("peer", 1, 2, 7_200.0, 720.0, 1_200.0, 6, 60, {})
    ours = Row("recognised", 2, 1, 7_200.0, 360.0, 600.0, 3, 60, {})
    assert (ours.per_hour, ours.per_core_hour) == (20.0, 12.0)
    lines = as_text([peer, ours], 3).splitlines()
    assert lines[0].startswith("3 recordings, 2.00 h, 60 words")
    assert lines[2].split() == ["peer", "1", "2", "10.0", "6.0", "×1.00", "10.0%"]
    assert lines[3].split() == ["recognised", "2", "1", "20.0", "12.0", "×2.00", "5.0%"]


def test_processes_share_the_cores_unless_threads_are_configured(
    demo_config: PipelineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.bench.archive._cores", lambda: 8)
    assert demo_config.asr.threads == 1
    assert Way("recognised", demo_config, 2).in_each.asr.threads == 1
    assert Way("faster-whisper, batches of 8", demo_config).in_each.asr.threads == 8


@pytest.mark.parametrize("counts", ["0", "2,x", ""])
def test_wrong_numbers_of_processes_are_refused(counts: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises((SystemExit, UsageError)) as failure:
        bench.run(["archive", "talk.wav", "--processes", counts])
    assert "is not a list of numbers of processes" in str(failure.value) + capsys.readouterr().err


def test_a_recording_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "talk.wav").write_bytes(b"not a recording")
    with pytest.raises(Exception, match=r"talk\.wav"):
        bench.run(["archive", str(tmp_path / "talk.wav"), "--config", "demo"])
