"""Subtitle files, read back by independent parsers."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pysubs2
import pytest
import srt
import webvtt

from pipeline.errors import SinkError, UsageError
from pipeline.events import Delta, EndOfInput, PipelineEvent, Transcript
from pipeline.subtitles.files import FORMATS, open_sinks, timestamp

TEXTS = [
    "去柏林的火车几点出发？",
    "a --> b & <i>c</i>",
    "我妹妹明天早上将在北京介绍新产品，经理和司机都会来，请不要迟到。",
]


def events() -> list[PipelineEvent]:
    found: list[PipelineEvent] = []
    for i, text in enumerate(TEXTS):
        found.append(Transcript(i, 3600.0 + i, 3600.75 + i, "source", "en"))
        found += [Delta(i, 0, 3600.0 + i, 3600.75 + i, c, -0.5, 7, "source") for c in text]
        found.append(Delta(i, 0, 3600.0 + i, 3600.75 + i, "", -0.1, 0, "source", end_of_sentence=True, final=True))
    return [*found, EndOfInput(3700.0)]


def flat(text: str) -> str:
    return "".join(text.split())


def write(folder: Path, count: int | None = None) -> dict[str, Path]:
    paths = {kind: folder / f"out.{kind}" for kind in FORMATS}
    sinks = open_sinks(paths)
    for event in events()[:count]:
        for sink in sinks:
            sink.write(event)
    # Not closed: a process that is killed does not close either.
    return paths


def test_srt_and_vtt_are_what_other_programs_read(tmp_path: Path) -> None:
    paths = write(tmp_path)
    by_srt = list(srt.parse(paths["srt"].read_text("utf-8")))
    assert [cue.index for cue in by_srt] == [1, 2, 3]
    by_pysubs2 = pysubs2.load(str(paths["srt"]), encoding="utf-8")
    assert [(line.start, line.end) for line in by_pysubs2] == [
        (3600000 + 1000 * i, 3600750 + 1000 * i) for i in range(3)
    ]
    by_webvtt = webvtt.read(str(paths["vtt"]))
    assert [cue.start for cue in by_webvtt] == ["01:00:00.000", "01:00:01.000", "01:00:02.000"]
    texts = [flat(cue.content).replace("->", "-->") for cue in by_srt]
    assert texts == [flat(text) for text in TEXTS]
    assert "&lt;i&gt;" in paths["vtt"].read_text("utf-8")


def test_jsonl_has_every_event_and_agrees(tmp_path: Path) -> None:
    paths = write(tmp_path)
    records = [json.loads(line) for line in paths["jsonl"].read_text("utf-8").splitlines()]
    assert [record["type"] for record in records][-1] == "end"
    assert len(records) == len(events())
    for i, text in enumerate(TEXTS):
        assert "".join(r["text"] for r in records if r["type"] == "delta" and r["segment_id"] == i) == text
    assert paths["txt"].read_text("utf-8").splitlines() == TEXTS


def test_files_are_valid_after_every_event(tmp_path: Path) -> None:
    for count in range(1, len(events())):
        paths = write(tmp_path, count)
        ended = sum(isinstance(e, Delta) and e.final for e in events()[:count])
        assert len(list(srt.parse(paths["srt"].read_text("utf-8")))) == ended
        assert len(webvtt.read(str(paths["vtt"])).captions) == ended
        assert len(paths["jsonl"].read_text("utf-8").splitlines()) == count


def test_a_run_without_results_leaves_an_existing_file_alone(tmp_path: Path) -> None:
    (tmp_path / "out.srt").write_text("precious")
    sinks = open_sinks({"srt": tmp_path / "out.srt", "vtt": tmp_path / "out.vtt"})
    for sink in sinks:
        sink.close()
    assert (tmp_path / "out.srt").read_text() == "precious"
    assert not (tmp_path / "out.vtt").exists()


def test_a_run_with_results_replaces_the_whole_file(tmp_path: Path) -> None:
    (tmp_path / "out.srt").write_text("old\n" * 1000)
    write(tmp_path)
    assert len(list(srt.parse((tmp_path / "out.srt").read_text("utf-8")))) == 3


def test_a_full_disk_keeps_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (sink,) = open_sinks({"srt": tmp_path / "out.srt"})
    everything = events()
    half = len(everything) // 2
    real_write = os.write

    def full_disk(descriptor: int, data: bytes) -> int:
        """Stands for a disk with room for ten bytes more."""
        if len(data) > 10:
            return real_write(descriptor, data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for event in everything[:half]:
        sink.write(event)
    before = (tmp_path / "out.srt").read_bytes()
    monkeypatch.setattr(os, "write", full_disk)
    with pytest.raises(SinkError, match="No space left"):
        for event in everything[half:]:
            sink.write(event)
    assert (tmp_path / "out.srt").read_bytes() == before


def test_a_file_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot write .*nowhere/out\.srt \(No such file or directory\)"):
        open_sinks({"srt": tmp_path / "nowhere" / "out.srt"})


def test_timestamps_round_to_the_millisecond() -> None:
    assert timestamp(3599.9996, ",") == "01:00:00,000"
    assert timestamp(59.9994, ".") == "00:00:59.999"
    assert timestamp(36000.5, ",") == "10:00:00,500"


def test_a_new_file_is_valid_from_the_start(tmp_path: Path) -> None:
    open_sinks({"vtt": tmp_path / "out.vtt"})
    assert webvtt.read(str(tmp_path / "out.vtt")).captions == []


def test_no_file_is_written_twice_and_never_the_recording(tmp_path: Path) -> None:
    (tmp_path / "talk.wav").write_bytes(b"sound")
    with pytest.raises(UsageError, match=r"talk\.wav is the recording too; give --srt a file of its own"):
        open_sinks({"srt": tmp_path / "sub" / ".." / "talk.wav"}, tmp_path / "talk.wav")
    with pytest.raises(UsageError, match="is the file for srt too; give --vtt"):
        open_sinks({"srt": tmp_path / "out", "vtt": tmp_path / "out"})
    assert (tmp_path / "talk.wav").read_bytes() == b"sound"
    assert not (tmp_path / "out").exists()
