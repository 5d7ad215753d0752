"""Text to measure a model with: given by the user, shipped beside the model, or made up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import UsageError

SHIPPED = ("sample.tsv", "sample.txt")
"""Names under which a directory may ship text to measure with; see ``read_sample``."""


@dataclass(frozen=True)
class Sample:
    """Sentences to translate."""

    sources: tuple[str, ...]
    references: tuple[str, ...] = ()
    """A translation of each; none where there are none, and fp32's stand for them."""
    made_up: bool = False
    """Drawn from the source vocabulary: good for finding out what can come out, not for judging how good it is."""

    def halves(self) -> tuple[Sample, Sample]:
        """Every other sentence, and the rest: one half to fit to, the other to measure with."""
        first, second = (Sample(self.sources[at::2], self.references[at::2], self.made_up) for at in (1, 0))
        return first, second


def read_sample(path: Path) -> Sample:
    """Read lines of source text, each with its translation after a tab or none with one.

    Raises:
        UsageError: no such file, no text, or translations for some lines only.
    """
    lines = [line.split("\t") for line in read_lines(path, "sample")]
    other = next((line for line in lines if len(line) != min(len(lines[0]), 2)), None)
    if not lines or other:
        unlike = f"; one that is unlike the first: {' '.join(other)[:60]!r}" if other else ""
        raise UsageError(
            f"the sample {path} has {len(lines)} lines of text; expected at least one, and either all of them text alone "
            f"or all of them text, a tab and its translation{unlike}"
        )
    return Sample(tuple(line[0] for line in lines), tuple(line[1] for line in lines if len(line) == 2))


def read_lines(path: Path, what: str) -> list[str]:
    """The lines of a UTF-8 file that are not blank.

    Raises:
        UsageError: it cannot be read; ``what`` says what it is for.
    """
    try:
        # Not splitlines, which breaks at a form feed and at Unicode's other separators, too.
        return [line for line in path.read_text("utf-8-sig").split("\n") if line.strip()]
    except (OSError, ValueError) as error:
        raise UsageError(f"the {what} {path} cannot be read as UTF-8 text: {error}") from None
