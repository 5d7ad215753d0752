"""The results of a run over recordings: what became of each, the table at the end, and how to resume."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
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
    from ..core import PipelineStats

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
    put: Sequence[str] = ()
    """The addresses of outputs that were put into an object store."""
    how: Begin = Begin.NEW
    damage: tuple[str, ...] = ()
    """The damage that was found in the recording, for display."""
    truncated: int = 0
    """Number of sentences whose translation looped or reached a limit and was cut."""
    without_cue: bool = False
    """Whether an output was written but has no cue."""
    error: str = ""
    """Why it failed, in one line."""
    other_language: str = ""
    """The message for a recording in another language than the configured one; empty for others."""

    def take(self, other: Result, **changes: object) -> None:
        """Say the same as another result of this job, such as that of another process, but for ``changes``."""
        for name, value in (vars(other) | changes).items():
            setattr(self, name, value)

    @property
    def summary(self) -> str:
        """The outcome, for display."""
        if self.without_cue:
            if self.other_language:
                return f"no subtitles: it is {self.other_language}"
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
        if self.other_language:
            gaps.append(f"it is {self.other_language}")
        if self.truncated:
            cut = "1 translation was" if self.truncated == 1 else f"{self.truncated} translations were"
            gaps.append(f"{cut} cut short")
        return f"{said}, but {' and '.join(gaps)}" if gaps else said

    @property
    def complete(self) -> bool:
        """Whether the job is done and nothing is known to be missing."""
        return self.outcome in ("done", "finished") and not (
            self.without_cue or self.damage or self.truncated or self.other_language
        )

    @property
    def name(self) -> str:
        """The recording, for display."""
        remote = self.job.remote
        return escaped(remote.recording) if remote and remote.recording else _shown(self.job.recording)

    def details(self) -> list[str]:
        """Lines about what was withheld, and the files that were written, for display."""
        heard = [f"heard and not shown: {self.withheld}"] if self.withheld else []
        files = [_shown(path) for path in self.outputs.values() if os.path.isfile(path)]
        return [*heard, *map(escaped, self.put), *files]

    def fail(self, error: PipelineError) -> None:
        self.outcome, self.failed, self.error = "failed", True, one_line(error)

    def count(self, *chains: PipelineStats) -> None:
        """Take the numbers of the chains that work on the recording, one for each speaker."""
        self.audio_s, self.sentences = max(chain.audio_s for chain in chains), sum(chain.sentences for chain in chains)
        self.elapsed_s = time.perf_counter() - min(chain.started for chain in chains)
        self.withheld = "; ".join(filter(None, (chain.withheld_summary(_NAMED) for chain in chains)))


def results_table(results: Sequence[Result]) -> Table:
    """The results for a terminal, which has shown errors before."""
    shown = Table(box=box.SIMPLE, pad_edge=False, collapse_padding=True)
    shown.add_column("recording", overflow="fold")
    for name in ("audio", "sentences", "speed"):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("outcome", overflow="fold")
    for result in results:
        style = "red" if result.failed else "green" if result.complete else "yellow"
        summary = result.outcome if result.failed else result.summary
        outcome = "\n".join((summary, *result.details()))
        shown.add_row(Text(result.name), *_numbers([result]), Text(outcome, style=style))
    if len(results) > 1:
        shown.add_section()
        shown.add_row(f"{len(results)} recordings", *_numbers(results), _outcomes(results))
    return shown


def plain_lines(results: Sequence[Result]) -> list[str]:
    """The results for a file or a program: a line each."""
    lines = [(result.name, [result.summary, *_said([result]), *result.details()]) for result in results]
    if len(results) > 1:
        lines.append((f"{len(results)} recordings", [_outcomes(results), *_said(results)]))
    return [f"{name}: {'; '.join(parts)}" for name, parts in lines]


def _numbers(results: Sequence[Result]) -> tuple[str, str, str]:
    """Seconds of audio, sentences, and how many times faster than real time; empty if nothing was heard."""
    audio_s = sum(result.audio_s for result in results)
    if not audio_s:
        return "", "", ""
    speed = audio_s / max(1e-9, sum(result.elapsed_s for result in results))
    return f"{audio_s:.0f} s", str(sum(result.sentences for result in results)), f"{speed:.1f} ×"


def _said(results: Sequence[Result]) -> list[str]:
    audio, sentences, speed = _numbers(results)
    plural = "" if sentences == "1" else "s"
    return [f"{audio} of audio, {sentences} sentence{plural}, {speed} real time"] if audio else []


def _outcomes(results: Sequence[Result]) -> str:
    """How many recordings had which outcome."""
    outcomes = Counter(result.summary.partition(":")[0].partition(",")[0] for result in results)
    return ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())


def _shown(path: Path) -> str:
    """A path for display, from the current folder if it is in there."""
    with suppress(OSError, ValueError):
        path = path.relative_to(os.getcwd())
    return escaped(str(path))
