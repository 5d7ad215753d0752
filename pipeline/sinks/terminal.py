"""Subtitles in the terminal: the source line, and below it the translation as it grows token by token."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pipeline.errors import SinkError
from pipeline.events import Delta, EndOfInput, PipelineEvent, Transcript
from pipeline.subtitles.bidi import RIGHT_TO_LEFT_MARK, right_to_left
from pipeline.subtitles.text import harmless


class TerminalClosedError(SinkError):
    """The terminal that showed the subtitles is gone."""


class TerminalSink:
    """Redraws the current segment in place on a terminal; prints whole lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        # Check now: a closed terminal no longer says it is one. FORCE_COLOR does not make a file a terminal.
        self.is_terminal = console.file.isatty()
        self._transcript: Transcript | None = None
        self._translation = ""
        self._live: Live | None = None
        self._drawing = False  # whether the live display started; it cannot without a reader
        self._status = ""

    def show_status(self, line: str) -> None:
        """Show the run's status below the subtitles; terminals only."""
        if not self.is_terminal:
            return
        self._status = line
        with suppress(OSError, SystemExit):  # the next event reports it
            self._start()
            self._draw()

    def write(self, event: PipelineEvent) -> None:
        """Take one event.

        Raises:
            TerminalClosedError: the terminal is gone.
            SinkError, BrokenPipeError: the output cannot be written.
        """
        try:
            self._take(event)
        except BrokenPipeError:
            raise
        except SystemExit as error:  # raised by rich if the reader of a pipe is gone
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from error
        except OSError as error:
            if self.is_terminal:
                raise TerminalClosedError(f"cannot write to the terminal ({error.strerror})") from error
            raise SinkError(f"cannot write to standard output ({error.strerror})") from error

    def _take(self, event: PipelineEvent) -> None:
        self._start()
        if isinstance(event, Transcript):
            self._finish()
            self._transcript = event
            self._draw()
            if event.rejected:
                self._finish()
        elif isinstance(event, Delta):
            self._translation = event.applied_to(self._translation)
            self._draw()
            if event.final:
                self._finish()
        elif isinstance(event, EndOfInput):
            self._finish()

    def close(self) -> None:
        with suppress(OSError, SystemExit):  # closed, or its reader is gone: already reported
            self._finish()
            if self._live and self._drawing:
                self._live.stop()

    def _start(self) -> None:
        if self._live is None and self._console.is_terminal:
            # Started by the first event: until then, download progress bars draw on the same terminal. Text on standard
            # error is drawn above the display, unless one of the two is a file.
            redirect = self.is_terminal and sys.stderr is not None and sys.stderr.isatty()
            self._live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stderr=redirect)
            self._live.start()
            self._drawing = True

    def _draw(self) -> None:
        if self._live:
            growing = [drawn(self._transcript, self._translation, growing=True)] if self._transcript else []
            status = [Text(self._status, style="dim", no_wrap=True, overflow="ellipsis")] if self._status else []
            self._live.update(Group(*growing, *status), refresh=True)

    def _finish(self) -> None:
        """Print the completed segment permanently and continue below it."""
        transcript, translation = self._transcript, self._translation
        if transcript is None:
            return
        self._transcript, self._translation = None, ""
        self._draw()
        if self._console.is_terminal:
            self._console.print(drawn(transcript, translation, growing=False))
        else:
            self._console.out(plain(transcript, translation), highlight=False)


def drawn(transcript: Transcript, translation: str, growing: bool) -> Table:
    """A segment as shown in a terminal: times, source, and below it the translation, with a cursor while growing."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="cyan")
    grid.add_column(overflow="fold")  # Chinese has no spaces to wrap at
    times = f"{_clock(transcript.start_s)}–{_clock(transcript.end_s)}"
    grid.add_row(times, Text(_shown(transcript.text) or "…", style="bright_black"))
    if transcript.rejected:
        grid.add_row("", Text(f"(not translated: {transcript.rejected})", style="yellow"))
    else:
        grid.add_row("", Text(_shown(translation), style="bold") + Text(" ▌" if growing else "", style="cyan"))
    return grid


def plain(transcript: Transcript, translation: str) -> str:
    """A segment as two lines of text for pipes and files, without direction marks."""
    below = f"(not translated: {transcript.rejected})" if transcript.rejected else harmless(translation)
    times = f"{_clock(transcript.start_s)}–{_clock(transcript.end_s)}  "
    return f"{times}{harmless(transcript.text) or '…'}\n{' ' * len(times)}{below}"


def _shown(text: str) -> str:
    """``text`` for a terminal, in logical order, as terminals that lay out Arabic and Hebrew expect.

    Right-to-left marks at both ends place neutral characters there. No embeddings: terminals differ in handling them.
    """
    text = harmless(text)
    return f"{RIGHT_TO_LEFT_MARK}{text}{RIGHT_TO_LEFT_MARK}" if right_to_left(text) else text


def _clock(seconds: float) -> str:
    tenths = round(10 * seconds)
    return f"{tenths // 600:02}:{tenths % 600 // 10:02}.{tenths % 10}"
