"""What is compared: one class an engine, all with the same calls, and how to open one from a description of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Protocol


class Engine(Protocol):
    """A loaded model. Batch 1, greedy."""

    def decode(self, source: Sequence[int], tokens: int) -> list[int]:
        """Target ids, exactly ``tokens`` of them: a sentence does not end before, and does not go on.

        Args:
            source: ids with the end token.
        """

    def translate(self, source: Sequence[int], limit: int) -> list[int]:
        """Target ids as the model ends them, ``limit`` at most, without the end token."""


@dataclass(frozen=True)
class Candidate:
    """An engine with a model's files, not yet loaded. Plain values: it goes to another process as JSON."""

    name: str
    engine: str
    """One of ``ENGINES``."""
    directory: str
    weight_bytes: int
    """Weights read for one further token: the decoder's layers and the output rows."""
    settings: Mapping[str, str | int | bool] = field(default_factory=dict)
    """Keyword arguments of the engine's own."""
    shortlist: int = 0
    """Target tokens that can come out; 0: all."""
    lossless: bool = False
    """fp32 weights and all output rows: its ids must be those of the others that are."""


# Loaded when opened: a process that measures one engine's memory holds nothing of the others.
ENGINES = {
    "pipeline": "OwnEngine",
    "ctranslate2": "CTranslate2Engine",
    "optimum": "OptimumEngine",
    "transformers": "TransformersEngine",
}


def import_engine(engine: str) -> Callable[..., Engine]:
    """Import what ``engine`` needs; the result opens a model: ``(directory, threads, **settings)``."""
    found: Callable[..., Engine] = getattr(
        import_module(f"pipeline.bench.comparison.engines.{engine}_engine"), ENGINES[engine]
    )
    return found


def open_engine(candidate: Candidate, threads: int) -> Engine:
    """Load the candidate's model to run on ``threads`` threads."""
    return import_engine(candidate.engine)(candidate.directory, threads, **candidate.settings)
