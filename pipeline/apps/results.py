"""The results of a run over recordings: what became of each, the table at the end, and how to resume."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from ..errors import PipelineError, one_line
from ..names import escaped
from .outputs import Output
from .recordings import Begin, Job

if TYPE_CHECKING:
    from ..run.stats import PipelineStats

# How many withheld stretches the table names one by one; the JSONL has all.
_NAMED = 3


@dataclass
class Result:
    """The result of a job."""

    job: Job
    outcome: str = "not begun"
    failed: bool = False
    audio_s: float = 0.0
    elapsed_s: float = 0.0
    sentences: int = 0
    withheld: str = ""
    """Speech that was heard but withheld, for display."""
    outputs: dict[Output, Path] = field(default_factory=dict)
    how: Begin = Begin.NEW
    damage: tuple[str, ...] = ()
    """What was missing in the recording, for display."""
    truncated: int = 0
    """Number of sentences whose translation looped or reached a limit and was cut."""
    without_cue: bool = False
    """Whether an output was written but has no cue."""
    error: str = ""
    """Why it failed, in one line."""

    @property
    def summary(self) -> str:
        """The outcome, for display."""
        if self.without_cue:
            if self.withheld:
                return "no subtitles: everything heard was withheld; is --source right? The next run tries again"
            reason = "the translation is empty" if self.sentences else "no speech was found"
            return f"no subtitles: {reason}; the next run tries again"
        if self.failed:
            return f"{self.outcome}: {escaped(self.error)}" if self.error else self.outcome
        if not self.outputs:
            return self.outcome
        said = f"{self.outcome}, under a shorter name" if self.job.is_shortened else self.outcome
        gaps = [f"the recording is {' and '.join(self.damage)}"] if self.damage else []
        if self.truncated:
            cut = "1 translation was" if self.truncated == 1 else f"{self.truncated} translations were"
            gaps.append(f"{cut} cut short")
        return f"{said}, but {' and '.join(gaps)}" if gaps else said

    @property
    def complete(self) -> bool:
        """Whether the job is done and nothing is known to be missing."""
        return self.outcome in ("done", "finished") and not (self.without_cue or self.damage or self.truncated)

    def files(self) -> list[str]:
        """The files that were written, for display."""
        return [str(path) for path in self.outputs.values() if os.path.isfile(path)]

    def fail(self, error: PipelineError) -> None:
        self.outcome, self.failed, self.error = "failed", True, one_line(error)

    def count(self, *chains: PipelineStats) -> None:
        """Take the numbers of the chains that work on the recording, one for each speaker."""
        self.audio_s, self.sentences = max(each.audio_s for each in chains), sum(each.sentences for each in chains)
        self.elapsed_s = time.perf_counter() - min(each.started for each in chains)
        self.withheld = "; ".join(filter(None, (each.withheld_summary(_NAMED) for each in chains)))


def summary(results: Sequence[Result]) -> Table:
    """The results as a table."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("recording", overflow="fold")
    for name in ("audio", "sentences", "times real time"):
        table.add_column(name, justify="right")
    table.add_column("heard and not shown", overflow="fold")
    table.add_column("outcome", overflow="fold")
    for result in results:
        numbers = ["", "", ""]
        if result.audio_s:
            speed = result.audio_s / max(1e-9, result.elapsed_s)
            numbers = [f"{result.audio_s:.0f} s", str(result.sentences), f"{speed:.1f}"]
        files = "".join(f"\n{escaped(path)}" for path in result.files())
        style = "red" if result.failed else "green" if result.complete else "yellow"
        recording, outcome = Text(escaped(str(result.job.recording))), Text(result.summary + files, style=style)
        table.add_row(recording, *numbers, Text(result.withheld), outcome)
    if len(results) > 1:
        _add_total(table, results)
    return table


def _add_total(table: Table, results: Sequence[Result]) -> None:
    """Add the last row: sums, and how many recordings had which outcome."""
    audio_s, elapsed_s = sum(result.audio_s for result in results), sum(result.elapsed_s for result in results)
    outcomes = Counter(result.summary.partition(":")[0].partition(",")[0] for result in results)
    table.add_section()
    table.add_row(
        f"{len(results)} recordings",
        f"{audio_s:.0f} s" if audio_s else "",
        str(sum(result.sentences for result in results)) if audio_s else "",
        f"{audio_s / max(1e-9, elapsed_s):.1f}" if audio_s else "",
        "",
        ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()),
    )
