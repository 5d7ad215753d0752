"""The live command ended while somebody speaks, by signals, closed outputs and a full disk."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pytest
import srt

from pipeline import SourceDelta, States
from pipeline.bench.words import scored_units
from pipeline.media.sinks.jsonl import read_event
from tests.commands import command, quick_config, run
from tests.conftest import HANG_S, PHRASES, read_wav, spoken_texts, write_wav


def spoken(folder: Path) -> Path:
    """A recording of some sentences, of which the first is short."""
    return write_wav(folder / "spoken.wav", read_wav(PHRASES)[int(4.5 * 16_000) :])


TEXTS = spoken_texts()["phrases"][1:]


class Live:
    """A process at the recording's own pace, with drafts, into files."""

    def __init__(self, folder: Path) -> None:
        self.srt, self._txt = folder / "out.srt", folder / "out.txt"
        events = folder / "events"
        os.mkfifo(events)
        outputs = ("--srt", self.srt, "--txt", self._txt, "--jsonl", events)
        self.process = subprocess.Popen(
            command("live", spoken(folder), "--config", quick_config(folder, "zh"), *outputs),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        self.shown = ""
        """What was printed."""
        self._events: IO[str] = events.open(encoding="utf-8")
        self.records: list[dict[str, Any]] = []

    def until(self, kind: str, count: int) -> None:
        """Read events until ``count`` of this kind have come: ``source_delta`` changes the text of a sentence."""
        while len(self.of(kind)) < count:
            line = self._events.readline()
            assert line, self.process.stderr and self.process.stderr.read()
            self.records.append(json.loads(line))
        assert not self.of("end")

    def until_shown(self, start: str) -> str:
        """Read what is printed up to the first line that begins so; that line."""
        assert self.process.stdout is not None
        return next(line for line in map(bytes.decode, self.process.stdout) if line.startswith(start))

    def end(self) -> tuple[int, str]:
        """Read the other events; the exit status, and what was printed on standard error."""
        self.records += map(json.loads, self._events)
        self._events.close()
        stdout = self.process.stdout
        if stdout is not None and not stdout.closed:
            self.shown = stdout.read().decode()
        assert self.process.stderr is not None
        error = self.process.stderr.read().decode()
        assert "Traceback" not in error
        return self.process.wait(HANG_S), error

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [record for record in self.records if record["type"] == kind]

    def check(self, *, cut: bool = False) -> None:
        """The files hold finished translations, in order, and the events change nothing that is final.

        ``cut``: the last sentence was not said to its end, so its translation may have no final mark.
        """
        check_events(self.records)
        finished = [record["text"] for record in self.of("translation")]
        written = self._txt.read_text("utf-8").splitlines() if self._txt.exists() else []
        # A kill may come between the writing of two files.
        assert written in (finished, finished[:-1]) or written[:-1] == finished
        assert all(text.endswith(("。", "？")) for text in (written[:-1] if cut else written)), "a draft"
        if self.srt.is_file():
            cues = "".join(cue.content.replace("\n", "") for cue in srt.parse(self.srt.read_text("utf-8")))
            assert "".join([*finished, *written[len(finished) :]]).startswith(cues)


def check_events(records: Sequence[dict[str, Any]]) -> None:
    """The events change nothing that is final."""
    texts = States()
    for event in map(read_event, records):
        if event is not None:
            texts.push(event)


def flat(text: str) -> str:
    return "".join(text.split())


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    started = Live(tmp_path)
    yield started
    started.process.kill()
    started.process.communicate()


@pytest.mark.slow
def test_kill_9_leaves_all_that_was_shown_and_final_text_only(live):
    # Translations are indented in the terminal.
    shown = [live.until_shown(" " * 17)]
    live.process.kill()
    status, _ = live.end()
    assert status == -signal.SIGKILL
    live.check()
    # A line that was not ended may be in progress.
    shown += [
        line for line in live.shown.splitlines(keepends=True) if line.startswith(" " * 17) and line.endswith("\n")
    ]
    cues = "".join(flat(cue.content) for cue in srt.parse(live.srt.read_text("utf-8")))
    assert cues.startswith(flat("".join(shown)))


@pytest.mark.slow
def test_kill_9_in_the_middle_of_a_draft_leaves_final_text_only(live):
    live.until("source_delta", 4)
    live.process.kill()
    status, _ = live.end()
    assert status == -signal.SIGKILL
    live.check()


@pytest.mark.slow
def test_an_interrupt_in_the_middle_of_a_draft_finishes_what_was_said(live):
    live.until("source_delta", 3)
    live.process.send_signal(signal.SIGINT)
    status, error = live.end()
    assert status == 0, error
    live.check(cut=True)
    assert live.records[-1]["type"] == "end"
    sentences = live.of("source_sentence")
    heard = [record["text"] for record in live.of("transcript") if "rejected" not in record]
    said = scored_units(" ".join(record["text"] for record in sentences), "en")
    assert said == scored_units(" ".join(heard), "en")
    assert 3 <= len(said) < len(scored_units(" ".join(TEXTS), "en"))
    assert said[:3] == scored_units("Where is the", "en")
    assert [r.get("sentence", 0) for r in live.of("translation")] == [r.get("sentence", 0) for r in sentences]


@pytest.mark.slow
def test_a_second_interrupt_in_the_middle_of_a_draft_ends_at_once(live):
    live.until("source_delta", 2)
    live.process.send_signal(signal.SIGINT)
    live.process.send_signal(signal.SIGTERM)  # a different signal, because two equal ones may be merged
    status, error = live.end()
    assert status == 130, error
    live.check()
    assert not live.of("end")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "error"), [("full", "cannot write /dev/full (No space left on device)"), ("closed", "")]
)
def test_a_full_disk_or_a_closed_reader_ends_a_run_with_drafts(end, error, tmp_path):
    """In this process, at the recording's own pace."""
    outputs = ("--srt", "/dev/full" if end == "full" else tmp_path / "out.srt", "--jsonl", tmp_path / "out.jsonl")
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer if end == "closed" else os.devnull, "wb") as stdout:
        os.close(writer) if end == "full" else None
        done = run("live", spoken(tmp_path), "--config", quick_config(tmp_path, "zh"), *outputs, stdout=stdout)
    assert done.returncode == 1
    said = done.stderr.decode()
    assert "Traceback" not in said
    assert said.count("error:") == said.count(error or "error:") == bool(error)  # who closed the pipe knows
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    check_events(records)
    assert any(isinstance(event, SourceDelta) and not event.steady for event in map(read_event, records))
    assert not any(record["type"] == "end" for record in records)
