"""A progress bar on standard error for slow steps before the first output: fetching and compiling models."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..names import escaped

logger = logging.getLogger(__name__)

Progress = Callable[[str, float], None]
"""Called with the description of a step, constant during the step, and the part of it that is done (0 to 1)."""


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A bar for one step after another. If standard error is not a terminal, print a line when each step begins.

    Nothing is shown if this package's logger does not show warnings (``--quiet``).
    """
    # Imported here because most runs fetch nothing.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    class VisibleCursorConsole(Console):
        """Never hides the cursor: a process that ends during a download in a thread could not show it again."""

        def show_cursor(self, show: bool = True) -> bool:
            return False

    console = VisibleCursorConsole(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    shown, shows = "", logger.isEnabledFor(logging.WARNING)
    with Progress(*columns, console=console, transient=True, disable=not (console.is_terminal and shows)) as bar:
        task = bar.add_task("", total=1.0, visible=False)

        def update(what: str, done: float) -> None:
            nonlocal shown
            what = escaped(what)
            if what != shown:
                shown = what
                bar.reset(task, total=1.0, description=what, visible=True)
                if shows and not console.is_terminal:
                    print(what, file=sys.stderr, flush=True)
            bar.update(task, completed=done)

        yield update
