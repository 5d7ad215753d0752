"""Subtitles in the terminal: the source line, and under it the translation growing token by token."""

from __future__ import annotations

from rich.console import Console
from rich.live import Live
from rich.text import Text

from pipeline.events import Delta, EndOfInput, PipelineEvent, Transcript


class TerminalSink:
    """Redraws the current segment in place on a terminal; prints whole lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._transcript: Transcript | None = None
        self._translation = ""
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        if self._live:
            self._live.start()

    def write(self, event: PipelineEvent) -> None:
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

    def _rendered(self, growing: bool) -> Text:
        transcript = self._transcript
        assert transcript is not None
        text = Text(f"{_clock(transcript.start_s)}–{_clock(transcript.end_s)}  ", style="cyan")
        text.append(transcript.text or "…", style="dim")
        if transcript.rejected:
            return text.append(f"  (not translated: {transcript.rejected})", style="yellow")
        text.append("\n               " + self._translation, style="bold")
        return text.append(" ▌" if growing else "", style="bold cyan")

    def _draw(self) -> None:
        if self._live and self._transcript:
            self._live.update(self._rendered(growing=True), refresh=True)

    def _finish(self) -> None:
        """The current segment is complete: leave it standing and go on below it."""
        if self._transcript is None:
            return
        if self._live:
            self._live.update(Text(""))
        self._console.print(self._rendered(growing=False), soft_wrap=not self._console.is_terminal)
        self._transcript, self._translation = None, ""


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02}:{seconds % 60:04.1f}"
