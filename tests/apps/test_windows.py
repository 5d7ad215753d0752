"""What differs on Windows, simulated: signals without handlers of the loop, and the keys of a console."""

import asyncio
import io
import signal
import sys
from types import SimpleNamespace

import pytest

from pipeline.apps.controls import controls
from pipeline.console import cli, signals
from pipeline.console.keys import space_bar
from tests.conftest import HANG_S
from tests.media.audio.portaudio import FakePortAudio, ended


class WindowsLoop(asyncio.SelectorEventLoop):
    def add_signal_handler(self, *_):
        raise NotImplementedError


def on_windows(run):
    async def in_time():
        async with asyncio.timeout(HANG_S):
            return await run()

    with asyncio.Runner(loop_factory=WindowsLoop) as runner:
        return runner.run(in_time())


class Console(io.StringIO):
    """Standard input, and msvcrt: the keys that were typed, one after the other."""

    def __init__(self, keys):
        super().__init__()
        self.keys = list(keys)

    def isatty(self):
        return True

    def fileno(self):
        raise AssertionError("a console is read by msvcrt")

    def kbhit(self):
        return bool(self.keys)

    def getwch(self):
        return self.keys.pop(0)  # waits where nothing was typed: an error here


@pytest.fixture
def console(monkeypatch):
    def typed(keys):
        console = Console(keys)
        monkeypatch.setattr(sys, "stdin", console)
        monkeypatch.setitem(sys.modules, "msvcrt", console)
        return console

    return typed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_calls_its_handler_on_the_loop_and_is_as_before_afterwards(number):
    before = signal.getsignal(number)

    async def run():
        came = asyncio.Event()
        inside = signal.getsignal(number)
        with signals.handled({number: came.set}):
            signal.raise_signal(number)
            assert not came.is_set()  # not in the midst of something else
            await came.wait()
        return inside is signal.getsignal(number)

    assert on_windows(run)
    assert signal.getsignal(number) is before


def test_a_signal_wakes_a_loop_that_waits():
    async def run():
        came = asyncio.Event()
        with signals.handled({signal.SIGINT: came.set}):
            asyncio.get_running_loop().run_in_executor(None, signal.raise_signal, signal.SIGINT)
            await came.wait()

    on_windows(run)


def test_ctrl_break_ends_like_ctrl_c(monkeypatch):
    """SIGUSR2 stands for SIGBREAK."""
    monkeypatch.setattr(cli, "ENDING", [signal.SIGINT, signal.SIGUSR2, signal.SIGTERM])
    monkeypatch.setattr(cli.os, "_exit", sys.exit)
    monkeypatch.setattr(sys, "stderr", None)
    handlers = {number: signal.getsignal(number) for number in cli.ENDING}
    try:
        with pytest.raises(SystemExit) as end:
            cli.main_program(lambda _: signal.raise_signal(signal.SIGUSR2) or 0)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert end.value.code == 130


def test_the_signals_of_keys_are_those_that_the_system_has():
    assert [signal.SIGINT] == signals.FROM_KEYS
    assert signals.ENDING == [signal.SIGINT, signal.SIGTERM]


def test_the_space_bar_is_read_from_a_console(console):
    # Alt+D is "\0 ", an arrow "\xe0H". The letter à, typed last, begins nothing.
    typed = console("x \0 \xe0H \xe0")

    async def run():
        pressed = []
        done = asyncio.Event()
        with space_bar(lambda: (pressed.append(1), done.set() if len(pressed) == 2 else None)):
            await done.wait()
            while typed.keys:
                await asyncio.sleep(0)
        return len(pressed)

    assert on_windows(run) == 2


def test_a_microphone_is_paused_and_ended_from_a_console(console, monkeypatch):
    for name in ("SIGHUP", "SIGUSR1", "SIGCONT"):
        monkeypatch.delattr(signal, name)
    monkeypatch.setitem(sys.modules, "sounddevice", FakePortAudio(("Mic", 1, 16_000)))
    from pipeline.media.audio.microphone import Microphone

    typed = console("")

    async def run():
        loop, notices, interrupted = asyncio.get_running_loop(), asyncio.Queue(), asyncio.Event()
        with ended(Microphone()) as microphone:
            microphone.listen(lambda notice: loop.call_soon_threadsafe(notices.put_nowait, type(notice).__name__))
            with controls(interrupted=interrupted.set, hung_up=lambda: None, microphone=microphone):
                said = []
                for _ in range(2):
                    typed.keys.append(" ")
                    said.append(await notices.get())
                signal.raise_signal(signal.SIGINT)
                await interrupted.wait()
        return said

    assert on_windows(run) == ["Paused", "Resumed"]


def test_without_a_console_no_keys_are_read(monkeypatch):
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace())
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    async def run():
        with space_bar(lambda: None):
            return len(asyncio.all_tasks())

    assert on_windows(run) == 1
