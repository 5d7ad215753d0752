"""Subtitles in the terminal: the source line, and under it the translation growing token by token."""

from __future__ import annotations

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pipeline.events import Delta, EndOfInput, PipelineEvent, Transcript


class TerminalSink:
    """Redraws the current segment in place on a terminal; prints whole lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._transcript: Transcript | None = None
        self._translation = ""
        self._live: Live | None = None

    def write(self, event: PipelineEvent) -> None:
        if self._live is None and self._console.is_terminal:
            # Not before the first event: progress bars of downloads draw on the same terminal.
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        if isinstance(event, Transcript):
            self._finish()
            self._transcript = event
            self._draw()
            if event.rejected:
                self._finish()
        elif isinstance(event, Delta):
            self._translation = self._translation[: len(self._translation) - event.withdrawn] + event.text
            self._draw()
            if event.final:
                self._finish()
        elif isinstance(event, EndOfInput):
            self._finish()

    def close(self) -> None:
        self._finish()
        if self._live:
            self._live.stop()

    def _draw(self) -> None:
        if self._live and self._transcript:
            self._live.update(drawn(self._transcript, self._translation, growing=True), refresh=True)

    def _finish(self) -> None:
        """The current segment is complete: leave it standing and go on below it."""
        if self._transcript is None:
            return
        if self._live:
            self._live.update(Text(""), refresh=True)
        if self._console.is_terminal:
            self._console.print(drawn(self._transcript, self._translation, growing=False))
        else:
            self._console.out(plain(self._transcript, self._translation), highlight=False)
        self._transcript, self._translation = None, ""


def drawn(transcript: Transcript, translation: str, growing: bool) -> Table:
    """A segment as a terminal shows it: its times, its source, and below it the translation, a cursor while it grows."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="cyan")
    grid.add_column()
    times = f"{_clock(transcript.start_s)}–{_clock(transcript.end_s)}"
    grid.add_row(times, Text(transcript.text or "…", style="bright_black"))
    if transcript.rejected:
        grid.add_row("", Text(f"(not translated: {transcript.rejected})", style="yellow"))
    else:
        grid.add_row("", Text(translation, style="bold") + Text(" ▌" if growing else "", style="cyan"))
    return grid


def plain(transcript: Transcript, translation: str) -> str:
    """The same as two lines of text, for pipes and files."""
    below = f"(not translated: {transcript.rejected})" if transcript.rejected else translation
    return f"{_clock(transcript.start_s)}–{_clock(transcript.end_s)}  {transcript.text or '…'}\n{' ' * 17}{below}"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02}:{seconds % 60:04.1f}"
