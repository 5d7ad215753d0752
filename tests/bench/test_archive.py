"""The throughput of recordings: rows of one recording in processes, and the table."""

import json

import pytest

from pipeline.bench import __main__ as bench
from pipeline.bench.archive import Row, Way, as_text, ways_of
from pipeline.errors import UsageError
from tests.conftest import PHRASES, read_wav, spoken_texts, write_wav


@pytest.mark.slow
def test_recordings_are_recognised_and_translated_in_processes_and_compared_with_the_peer(tmp_path, capsys):
    for name in ("one.wav", "two.wav"):
        write_wav(tmp_path / name, read_wav(PHRASES)[: 16_000 * 8])
    (tmp_path / "one.txt").write_text(" ".join(spoken_texts()["phrases"][:2]))
    arguments = ["archive", str(tmp_path), "--config", "demo-zh", "--processes", "2"]
    assert bench.run([*arguments, "--json", str(tmp_path / "out.json")]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("2 recordings, 0.00 h, 16 words")
    rows = json.loads((tmp_path / "out.json").read_text())
    assert [(row["name"], row["processes"]) for row in rows] == [
        ("faster-whisper, batches of 8", 2),
        ("recognised", 2),
        ("translated", 2),
    ]
    for row in rows:
        assert row["words"] == 16
        assert row["wrong"] <= 3
        assert row["audio_s"] == 16.0
        assert set(row["texts"]) == {str(tmp_path / "one.wav"), str(tmp_path / "two.wav")}
    assert rows[1]["texts"] == rows[2]["texts"]


def test_hours_are_compared_with_the_first_row():
    peer = Row("peer", 1, 2, 7_200.0, 720.0, 1_200.0, 6, 60, {})
    ours = Row("recognised", 2, 1, 7_200.0, 360.0, 600.0, 3, 60, {})
    assert (ours.per_hour, ours.per_cpu_hour) == (20.0, 12.0)
    lines = as_text([peer, ours], 3).splitlines()
    assert lines[0].startswith("3 recordings, 2.00 h, 60 words")
    assert lines[2].split() == ["peer", "1", "2", "10.0", "×1.00", "6.0", "×1.00", "10.0%"]
    assert lines[3].split() == ["recognised", "2", "1", "20.0", "×2.00", "12.0", "×2.00", "5.0%"]


def test_processes_share_the_cores_unless_threads_are_configured(demo_config, monkeypatch):
    monkeypatch.setattr("pipeline.bench.archive.usable_cores", lambda: 8)
    assert demo_config.asr.threads == 1
    assert Way("recognised", demo_config, 2).in_each.asr.threads == 1
    assert Way("faster-whisper, batches of 8", demo_config).in_each.asr.threads == 8


def test_each_way_is_measured_in_each_number_of_processes(demo_config, monkeypatch):
    monkeypatch.setattr("pipeline.bench.archive.usable_cores", lambda: 2)
    found = [(way.name, way.processes, way.in_each.asr.threads) for way in ways_of(demo_config, [1, 2])]
    peer = "faster-whisper, batches of 8"
    own = [(name, count, 1) for name in ("recognised", "translated") for count in (1, 2)]
    assert found == [(peer, 1, 2), (peer, 2, 1), *own]


@pytest.mark.parametrize("counts", ["0", "2,x", ""])
def test_wrong_numbers_of_processes_are_refused(counts, capsys):
    with pytest.raises((SystemExit, UsageError)) as failure:
        bench.run(["archive", "talk.wav", "--processes", counts])
    assert "is not a whole number from 1 to 256" in str(failure.value) + capsys.readouterr().err


def test_a_recording_that_cannot_be_read_is_reported(tmp_path):
    (tmp_path / "talk.wav").write_bytes(b"not a recording")
    with pytest.raises(Exception, match=r"talk\.wav"):
        bench.run(["archive", str(tmp_path / "talk.wav"), "--config", "demo-zh"])
