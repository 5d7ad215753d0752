"""Progress bars of recordings on standard error; a line for each recording that is done."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from pipeline.names import escaped


class Bars:
    """The bars of the recordings in progress: a terminal has no room for many more."""

    def __init__(self, stack: ExitStack) -> None:
        """``stack`` removes the bars."""
        self._stack, self._started = stack, False
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[done]}"),
            TimeRemainingColumn(),
        )
        self.progress = Progress(*columns, console=Console(stderr=True))

    def start(self) -> None:
        """Show bars from now on. Later calls do nothing."""
        if not self._started:
            self._started = True
            self._stack.enter_context(self.progress)

    def print(self, message: str) -> None:
        """Print a line above the bars."""
        self.progress.console.print(message, markup=False, highlight=False, soft_wrap=True)


class Bar:
    """The bar of one recording, a context that removes it. See ``pipeline.apps.recording_run.Progress``."""

    def __init__(self, bars: Bars, name: str) -> None:
        """``name`` as in the file system."""
        self._bars, self._name = bars, escaped(name)
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
