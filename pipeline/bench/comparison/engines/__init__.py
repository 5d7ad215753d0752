"""The engines that are compared: their common protocol, their descriptions, and how to open one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Protocol


class Engine(Protocol):
    """A loaded model. Batch 1, greedy."""

    def decode(self, source: Sequence[int], tokens: int) -> list[int]:
        """Return exactly ``tokens`` target ids, even if the sentence would be shorter or longer.

        Args:
            source: ids, including the end token.
        """

    def translate(self, source: Sequence[int], limit: int) -> list[int]:
        """Return the target ids up to where the model ends, at most ``limit``, without the end token."""


@dataclass(frozen=True)
class Candidate:
    """An engine and its model files, not loaded. Plain values, because it is sent to another process as JSON."""

    name: str
    engine: str
    """One of ``ENGINES``."""
    directory: str
    weight_bytes: int
    """Bytes of weights read per further token: decoder layers and output rows; 0 if unknown."""
    settings: Mapping[str, str | int | bool] = field(default_factory=dict)
    """Keyword arguments of the engine class."""
    shortlist: int = 0
    """Number of target tokens that can be generated; 0: all."""
    lossless: bool = False
    """True for fp32 weights and all output rows: all lossless candidates must generate the same ids."""


# Imported when opened, so that a process that measures one engine's memory does not load the others.
ENGINES = {
    "pipeline": "OwnEngine",
    "ctranslate2": "CTranslate2Engine",
}


def import_engine(engine: str) -> Callable[..., Engine]:
    """Import an engine class. Call the result with ``(directory, threads, **settings)`` to open a model."""
    found: Callable[..., Engine] = getattr(
        import_module(f"pipeline.bench.comparison.engines.{engine}_engine"), ENGINES[engine]
    )
    return found


def open_engine(candidate: Candidate, threads: int) -> Engine:
    """Load the candidate's model to run with ``threads`` threads."""
    return import_engine(candidate.engine)(candidate.directory, threads, **candidate.settings)
