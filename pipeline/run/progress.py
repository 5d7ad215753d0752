"""One progress bar on standard error, for everything that takes long before the first word: fetching, compiling."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pipeline.names import escaped

Progress = Callable[[str, float], None]
"""Called with what is being done, in the same words while it lasts, and how much of it is done (0 to 1)."""


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A bar for one thing after the other; where standard error is no terminal, a line as each begins."""
    # Imported here: most runs have nothing to fetch.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    class CursorStays(Console):
        """A process that ends while a download runs in a thread has nobody to bring the cursor back."""

        def show_cursor(self, show: bool = True) -> bool:
            return False

    console = CursorStays(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    shown = ""
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=1.0, visible=False)

        def update(what: str, done: float) -> None:
            nonlocal shown
            what = escaped(what)
            if what != shown:
                shown = what
                bar.reset(task, total=1.0, description=what, visible=True)
                if not console.is_terminal:
                    print(what, file=sys.stderr, flush=True)
            bar.update(task, completed=done)

        yield update
