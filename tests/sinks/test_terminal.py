"""Terminal output, on an emulated screen."""

from __future__ import annotations

import errno
import io
import re
import sys

import pytest
from rich.cells import cell_len
from rich.console import Console

from pipeline.errors import SinkError
from pipeline.events import Delta, EndOfInput, PipelineEvent, Transcript
from pipeline.sinks.sink import FanOut
from pipeline.sinks.terminal import TerminalClosedError, TerminalSink, drawn, plain

EVENTS: list[PipelineEvent] = [
    Transcript(0, 0.5, 3.4, "Good morning.", "en"),
    Delta(0, 0, 0.5, 3.4, "早上", -0.1, 5, "Good morning."),
    Delta(0, 0, 0.5, 3.4, "好。", -0.1, 6, "Good morning."),
    Delta(0, 0, 0.5, 3.4, "", -0.1, 0, "Good morning.", end_of_sentence=True, final=True),
    Transcript(1, 4.0, 5.0, "", "en", rejected="silence"),
    Transcript(2, 63.0, 65.0, "Thank you.", "en"),
    Delta(2, 0, 63.0, 65.0, "谢谢。", -0.1, 0, "Thank you.", end_of_sentence=True, final=True),
    EndOfInput(66.0),
]


def shown(terminal: bool) -> list[str]:
    """The output after each event."""
    file = io.StringIO()
    sink = TerminalSink(Console(file=file, force_terminal=terminal, width=60, highlight=False, legacy_windows=False))
    found = []
    for event in EVENTS:
        sink.write(event)
        found.append(file.getvalue())
    sink.close()
    return [*found, file.getvalue()]


def visible(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_the_translation_grows_token_by_token() -> None:
    steps = [visible(text) for text in shown(terminal=True)]
    assert "Good morning." in steps[0]
    assert "早上" not in steps[0]
    assert "早上 ▌" in steps[1]
    assert "早上好。 ▌" in steps[2]
    # The finished line is printed once more without a cursor, and nothing is drawn over it.
    assert steps[3].rstrip().endswith("早上好。")


def test_a_pipe_gets_whole_lines() -> None:
    assert shown(terminal=False)[-1].splitlines() == [
        "00:00.5–00:03.4  Good morning.",
        " " * 17 + "早上好。",
        "00:04.0–00:05.0  …",
        " " * 17 + "(not translated: silence)",
        "01:03.0–01:05.0  Thank you.",
        " " * 17 + "谢谢。",
    ]


@pytest.mark.parametrize("growing", [False, True])
def test_a_long_line_without_spaces_is_wrapped_and_not_cut(growing: bool) -> None:
    chinese = "我妹妹明天早上将在会议室里向大家介绍我们公司今年秋天要推出的全部新产品和新的价格方案，请大家准时参加。"
    console = Console(file=io.StringIO(), force_terminal=True, width=50)
    console.print(drawn(Transcript(0, 0.0, 5.0, chinese[::-1], "zh"), chinese, growing))
    lines = visible(console.file.getvalue()).splitlines()  # type: ignore[attr-defined]
    assert "".join(line[17:].strip() for line in lines).removesuffix("▌").strip() == chinese[::-1] + chinese
    assert all(cell_len(line) <= 50 for line in lines)


def test_the_translation_stands_under_its_source_after_an_hour_and_a_half_too() -> None:
    source, translation = plain(Transcript(0, 7225.2, 7227.4, "What time?", "en"), "几点？").splitlines()
    assert translation.index("几") == source.index("W")


def test_times_are_rounded_before_they_are_split_into_minutes() -> None:
    assert plain(Transcript(0, 59.97, 119.94, "One.", "en"), "一。").startswith("01:00.0–01:59.9  One.")


def test_arabic_is_enclosed_in_direction_marks_without_affecting_other_text() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=60)
    console.print(drawn(Transcript(0, 0.0, 5.0, "\u202eHi\x1b[31m.\ud800", "en"), "GPU سريع جدا.", growing=False))
    source, translation = visible(console.file.getvalue()).splitlines()  # type: ignore[attr-defined]
    assert source.strip() == "00:00.0–00:05.0  Hi[31m."
    assert translation.strip() == "\u200fGPU سريع جدا.\u200f"
    assert plain(Transcript(0, 0.0, 5.0, "Hi.", "en"), "سريع\u202e").splitlines()[1].strip() == "سريع"


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(errno.EIO, "Input/output error")


class BrokenTerminal(Broken):
    def isatty(self) -> bool:
        return True


def test_a_closed_terminal_and_an_unwritable_file_are_different_failures() -> None:
    sink = TerminalSink(Console(file=BrokenTerminal()))
    with pytest.raises(TerminalClosedError, match="cannot write to the terminal"):
        sink.write(EVENTS[0])
    for forced in (False, True):  # FORCE_COLOR makes this True for a file
        sink = TerminalSink(Console(file=Broken(), force_terminal=forced))
        with pytest.raises(SinkError, match="cannot write to standard output") as failure:
            for event in EVENTS:
                sink.write(event)
        assert not isinstance(failure.value, TerminalClosedError)


def test_a_sink_that_was_dropped_while_it_wrote_has_not_failed() -> None:
    class Dropped:
        def write(self, event: PipelineEvent) -> None:
            outputs.drop(self)
            raise SinkError("gone")

        def close(self) -> None: ...

    later: list[PipelineEvent] = []

    class Later:
        write = staticmethod(later.append)

        def close(self) -> None: ...

    outputs = FanOut([Dropped(), Later()])
    outputs.write(EVENTS[0])
    outputs.write(EVENTS[1])
    assert later == EVENTS[:2]


def test_nothing_is_drawn_before_the_first_event() -> None:
    file = io.StringIO()
    sink = TerminalSink(Console(file=file, force_terminal=True))
    sink.close()
    assert file.getvalue() == ""


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_only_a_terminal_shows_how_the_run_is_doing() -> None:
    """Important for a pipe whose reader is gone: Rich reports that once and then discards all output."""
    file = io.StringIO()
    sink = TerminalSink(Console(file=file, force_terminal=True))  # as with FORCE_COLOR
    sink.show_status("lag 5.0 s")
    assert file.getvalue() == ""
    terminal = Tty()
    sink = TerminalSink(Console(file=terminal, force_terminal=True))
    sink.show_status("lag 5.0 s")
    assert "lag 5.0 s" in terminal.getvalue()
    sink.close()


@pytest.mark.parametrize(("errors", "terminal"), [(io.StringIO(), Tty()), (Tty(), io.StringIO())])
def test_redirected_standard_error_is_not_drawn_on_the_terminal(
    errors: io.StringIO, terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", errors)
    sink = TerminalSink(Console(file=terminal, force_terminal=True))
    sink.write(EVENTS[0])
    print("finishing", file=sys.stderr)
    sink.close()
    assert errors.getvalue() == "finishing\n"
    assert "finishing" not in terminal.getvalue()
