"""Progress bars of recordings on standard error; a line for each recording that is done."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ..names import escaped
from .cli import is_told


class Bars:
    """The bars of the recordings in progress: a terminal has no room for many more."""

    def __init__(self, stack: ExitStack, count: int) -> None:
        """``stack`` removes the bars; ``count`` is the number of recordings. With --quiet, nothing is shown."""
        self._stack, self._started, self._count = stack, False, count
        self._ended = 0
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[done]}"),
            TimeRemainingColumn(),
        )
        self.progress = Progress(*columns, console=Console(stderr=True), disable=not is_told())
        self._all = self.progress.add_task("all recordings", total=count, done="", visible=count > 1)
        self.ended(0)

    def start(self) -> None:
        """Show bars from now on. Later calls do nothing."""
        if not self._started:
            self._started = True
            self._stack.enter_context(self.progress)
            self._stack.callback(self.progress.remove_task, self._all)  # without a terminal, what is left is printed

    def print(self, message: str) -> None:
        """Print a line above the bars."""
        if is_told():
            self.progress.console.print(message, markup=False, highlight=False, soft_wrap=True)

    def ended(self, recordings: int = 1) -> None:
        """So many more recordings have ended, done or not."""
        self._ended += recordings
        self.progress.update(self._all, completed=self._ended, done=f"{self._ended} of {self._count}")

    def numbered(self, name: str, number: int) -> str:
        """The name of a recording, after its number (from 1) if there are several."""
        return f"{number} of {self._count}, {name}" if self._count > 1 else name


class Bar:
    """The bar of one recording, a context that removes it. See ``pipeline.archives.recording_run.Progress``."""

    def __init__(self, bars: Bars, name: str, number: int) -> None:
        """``name`` as in the file system; ``number`` counts the recordings of the run from 1."""
        self._bars, self._name = bars, bars.numbered(escaped(name), number)
        self._task: TaskID | None = None
        self._done = ""

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def note(self, message: str) -> None:
        self._bars.print(message)

    def begin(self, duration_s: float | None) -> None:
        if self._task is None:
            self._bars.start()
            self._task = self._bars.progress.add_task(self._name, total=duration_s, done="")

    def update(self, done_s: float, length_s: float | None, speed: float) -> None:
        length = f"{length_s:.0f} s" if length_s else "?"
        self._done = f"{done_s:.0f} s of {length}, {speed:.1f} times real time"
        if self._task is not None:
            self._bars.progress.update(self._task, completed=done_s, total=length_s, done=self._done)

    def finished(self) -> None:
        """Print the last state as a line."""
        self._bars.print(f"{self._name}: {self._done}")

    def end(self) -> None:
        """Remove the bar."""
        if self._task is not None:
            self._bars.progress.remove_task(self._task)
            self._task = None
