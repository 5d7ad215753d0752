"""Text for measuring a model: given by the user, shipped with the model, or made up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import UsageError

SHIPPED = ("sample.tsv", "sample.txt")
"""File names of a sample in a model's directory; see ``read_sample``."""


@dataclass(frozen=True)
class Sample:
    """Sentences to translate."""

    sources: tuple[str, ...]
    references: tuple[str, ...] = ()
    """A translation of each sentence, or empty: then fp32's translations are the references."""
    made_up: bool = False
    """Drawn from the source vocabulary. Shows which tokens a model can produce, but says nothing about quality."""

    def halves(self) -> tuple[Sample, Sample]:
        """Split into alternating sentences: one half for calibration, the other for measuring."""
        first, second = (Sample(self.sources[at::2], self.references[at::2], self.made_up) for at in (1, 0))
        return first, second


def read_sample(path: Path) -> Sample:
    """Read lines of source text, either all with a tab and their translation or all without.

    Raises:
        UsageError: the file is unreadable or empty, or only some lines have a translation.
    """
    lines = [line.split("\t") for line in read_lines(path, "sample")]
    other = next((line for line in lines if len(line) != min(len(lines[0]), 2)), None)
    if not lines or other:
        difference = f"; a line that differs from the first: {' '.join(other)[:60]!r}" if other else ""
        raise UsageError(
            f"the sample {path} has {len(lines)} lines of text; expected at least one, and either all "
            f"of them text only or all of them text, a tab and its translation{difference}"
        )
    return Sample(tuple(line[0] for line in lines), tuple(line[1] for line in lines if len(line) == 2))


def read_lines(path: Path, what: str) -> list[str]:
    """Read the non-blank lines of a UTF-8 file. ``what`` names the file's purpose in errors.

    Raises:
        UsageError: the file cannot be read.
    """
    try:
        # str.splitlines would also split at form feeds and at Unicode separators.
        return [line for line in path.read_text("utf-8-sig").split("\n") if line.strip()]
    except (OSError, ValueError) as error:
        raise UsageError(f"the {what} {path} cannot be read as UTF-8 text: {error}") from None
