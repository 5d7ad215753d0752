"""A live run into files: a pipe that nobody reads holds back neither the display nor the end of a cancelled run."""

import asyncio
import contextlib
import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from pipeline import EndOfInput, PipelineEvent
from pipeline.apps import live, live_run
from pipeline.apps.live_run import LiveRun
from pipeline.core.run.stats import PipelineStats
from pipeline.events import SAMPLE_RATE
from pipeline.languages.options import LanguageConfig
from pipeline.media.audio.recording import Recording
from pipeline.media.sinks.jsonl import JsonlSink
from pipeline.media.sinks.queued import QueuedSink
from pipeline.media.sinks.sink import Sink
from pipeline.media.sinks.srt import SrtSink
from pipeline.media.sinks.terminal import TerminalSink
from tests.commands import command
from tests.conftest import HANG_S, PHRASES, read_wav, write_wav


@dataclass(frozen=True)
class FullPipe:
    """A named pipe that is full of line ends."""

    path: Path
    descriptor: int
    """Reads the pipe."""

    def read(self) -> str:
        """What was written after the line ends, once all writers have closed the pipe."""
        os.set_blocking(self.descriptor, True)
        with open(self.descriptor, encoding="utf-8", closefd=False) as reader:
            return reader.read().lstrip("\n")


@pytest.mark.parametrize(
    ("taken", "stdout", "stderr", "shown"),
    [
        (False, False, False, True),
        (True, False, True, True),
        (True, True, True, False),  # both on one terminal would be mixed
        (True, False, False, False),
    ],
)
def test_the_display_gives_way_to_a_format_on_standard_output(taken, stdout, stderr, shown, monkeypatch):
    for stream, is_terminal in ((sys.stdout, stdout), (sys.stderr, stderr)):
        monkeypatch.setattr(stream, "isatty", partial(bool, is_terminal))
    assert (live.display(LanguageConfig("en", ("zh",)), taken=taken) is not None) is shown


@pytest.fixture
def full_pipe(tmp_path: Path) -> Iterator[FullPipe]:
    path = tmp_path / "pipe.jsonl"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    for size in (4096, 1):
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"\n" * size)
    os.close(writer)
    yield FullPipe(path, reader)
    os.close(reader)


class Display(TerminalSink):
    """A display that tells when it has shown everything."""

    def __init__(self, file: io.StringIO) -> None:
        super().__init__(Console(file=file, width=200), ["zh"])
        self.whole = threading.Event()

    def write(self, event: PipelineEvent) -> None:
        super().write(event)
        if isinstance(event, EndOfInput):
            self.whole.set()


@pytest.mark.slow
async def test_a_pipe_that_nobody_reads_gets_everything_in_the_end(
    full_pipe, phrase, demo_config, demo_models, tmp_path
):
    file, pipe = (JsonlSink(path, demo_config.subtitles) for path in (tmp_path / "out.jsonl", full_pipe.path))
    shown = io.StringIO()
    display = Display(shown)
    run = LiveRun(Recording(phrase), demo_config, [pipe, file, display], models=demo_models, terminal=display)
    running = asyncio.create_task(run.run())
    assert await asyncio.to_thread(display.whole.wait, HANG_S)
    assert not running.done()
    reading = asyncio.create_task(asyncio.to_thread(full_pipe.read))
    await running
    for sink in (file, pipe):
        assert not run.is_writing(sink)
        sink.close()
    written = (tmp_path / "out.jsonl").read_text("utf-8")
    assert await reading == written
    assert '"type": "translation"' in written
    assert len(shown.getvalue().splitlines()) >= 2


def test_sentences_that_a_stopped_terminal_has_not_shown_are_counted(
    tmp_path, demo_config, demo_models, monkeypatch, capsys
):
    """The terminal goes on when the file has everything. One sentence is said, without any sound of the next one."""
    write_wav(tmp_path / "sentence.wav", read_wav(PHRASES)[: 4 * SAMPLE_RATE + SAMPLE_RATE // 2])
    stopped, go = threading.Event(), threading.Event()

    class Stopped(TerminalSink):
        def write(self, event: PipelineEvent) -> None:
            stopped.set()
            go.wait()
            super().write(event)

    class File:
        def write(self, event: PipelineEvent) -> None:
            if isinstance(event, EndOfInput):
                go.set()
            else:
                assert stopped.wait(HANG_S)

        def close(self) -> None: ...

    terminal = Stopped(Console(file=io.StringIO()), ["zh"])
    terminal.is_terminal = True
    monkeypatch.setattr(live_run, "QueuedSink", partial(QueuedSink, capacity=2))
    sinks = [File(), terminal]
    source = Recording(tmp_path / "sentence.wav")
    asyncio.run(LiveRun(source, demo_config, sinks, models=demo_models, terminal=terminal).run())
    assert "1 sentence was not shown: the terminal was stopped or too slow" in capsys.readouterr().err


@pytest.mark.slow
def test_two_interrupts_end_a_run_whose_pipe_nobody_reads(full_pipe, phrase):
    quick = ("--config", "demo-zh", "--asr", "tiny.en", "--target", "en", "--fast")
    with subprocess.Popen(
        command("live", phrase, *quick, "--jsonl", full_pipe.path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as running:
        assert running.stdout
        assert running.stderr
        assert running.stdout.readline()
        running.send_signal(signal.SIGINT)
        while b"interrupt again" not in (line := running.stderr.readline()):
            assert line, "the run has ended"
        running.send_signal(signal.SIGTERM)  # a different signal, because two equal ones may be merged
        assert running.wait(HANG_S) == 130


@pytest.mark.parametrize("stalled", [False, True])
def test_a_file_that_a_cancelled_run_is_still_writing_is_not_closed(stalled, tmp_path, monkeypatch):
    """Closing may write as well: subtitles that wait for the next sentence, for example."""

    class Cancelled:
        stats = PipelineStats()

        def __init__(self, *_: object, **__: object) -> None: ...

        async def run(self) -> None:
            raise asyncio.CancelledError

        def is_writing(self, file: Sink) -> bool:
            return stalled and isinstance(file, SrtSink)

    closed: list[Sink] = []
    monkeypatch.setattr(live_run, "LiveRun", Cancelled)
    monkeypatch.setattr(SrtSink, "close", lambda sink: closed.append(sink))
    with pytest.raises(KeyboardInterrupt):
        live.run([str(PHRASES), "--config", "demo-zh", "--srt", str(tmp_path / "out.srt")])
    assert len(closed) == (not stalled)
