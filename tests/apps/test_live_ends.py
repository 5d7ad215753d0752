"""The live command ended while somebody speaks, by signals, closed outputs and a full disk."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
import srt

from pipeline import SourceDelta, States
from pipeline.bench.words import scored_units
from pipeline.sinks.jsonl import read_event
from tests.conftest import HANG_S, PHRASES, ROOT, spoken_texts


class Live:
    """A run at the recording's own pace, with drafts, into files."""

    def __init__(self, folder: Path, srt_file: Path | None = None) -> None:
        self.srt, self._txt = srt_file or folder / "out.srt", folder / "out.txt"
        events = folder / "events"
        os.mkfifo(events)
        outputs = ("--srt", self.srt, "--txt", self._txt, "--jsonl", events)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pipeline.live", *map(str, (PHRASES, "--config", "demo-zh", *outputs))],
            cwd=ROOT,
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
        texts = States()
        for event in map(read_event, self.records):
            if event is not None:
                texts.push(event)
        finished = [record["text"] for record in self.of("translation")]
        written = self._txt.read_text("utf-8").splitlines() if self._txt.exists() else []
        # A kill may come between the writing of two files.
        assert written in (finished, finished[:-1]) or written[:-1] == finished
        assert all(text.endswith(("。", "？")) for text in (written[:-1] if cut else written)), "a draft"
        if self.srt.is_file():
            cues = "".join(cue.content.replace("\n", "") for cue in srt.parse(self.srt.read_text("utf-8")))
            assert "".join([*finished, *written[len(finished) :]]).startswith(cues)


def flat(text: str) -> str:
    return "".join(text.split())


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    run = Live(tmp_path)
    yield run
    run.process.kill()
    run.process.communicate()


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
@pytest.mark.parametrize("drafts", [1, 4, 8, 12])
def test_kill_9_in_the_middle_of_a_draft_leaves_final_text_only(drafts, live):
    live.until("source_delta", drafts)
    live.process.kill()
    status, _ = live.end()
    assert status == -signal.SIGKILL
    live.check()


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_an_interrupt_in_the_middle_of_a_draft_finishes_what_was_said(how, live):
    live.until("source_delta", 3)
    live.process.send_signal(how)
    status, error = live.end()
    assert status == 0, error
    live.check(cut=True)
    assert live.records[-1]["type"] == "end"
    sentences = live.of("source_sentence")
    heard = [record["text"] for record in live.of("transcript") if "rejected" not in record]
    said = scored_units(" ".join(record["text"] for record in sentences), "en")
    assert said == scored_units(" ".join(heard), "en")
    assert 3 <= len(said) < len(scored_units(" ".join(spoken_texts()["phrases"]), "en"))
    assert said[:3] == scored_units("The plane from", "en")
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
def test_a_closed_reader_ends_a_run_with_drafts(live):
    live.until("source_delta", 1)
    assert live.process.stdout is not None
    live.process.stdout.close()
    status, error = live.end()
    assert status == 1
    assert "error:" not in error  # the one who closed the pipe knows
    live.check()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_ends_a_run_with_drafts(tmp_path):
    run = Live(tmp_path, Path("/dev/full"))
    status, error = run.end()
    assert status == 1
    assert error.count("cannot write /dev/full (No space left on device)") == 1
    run.check()
    assert any(isinstance(event, SourceDelta) and not event.steady for event in map(read_event, run.records))
