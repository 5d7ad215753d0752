"""Failed calls of a recogniser or translator: each costs what it was made for, until several fail in a row."""

from __future__ import annotations

from pipeline.errors import PipelineError, one_line

MOST_IN_A_ROW = 3
"""So many calls that fail one after another end the run: the next one would fail too."""
FAILED = "failed"
"""``Transcript.rejected`` of a segment whose recognition failed."""


class FailedCalls:
    """Decides whether a run goes on without what a failed call was made for."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def worked(self) -> None:
        self._in_a_row = 0

    def reason(self, error: Exception) -> str:
        """Count a failed call and return its reason in one line.

        Raises:
            Exception: ``error``, if it ends the run: a PipelineError, or the last of ``MOST_IN_A_ROW``.
        """
        self._in_a_row += 1
        if isinstance(error, PipelineError) or self._in_a_row >= MOST_IN_A_ROW:
            raise error
        return one_line(error)
