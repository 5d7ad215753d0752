"""A Whisper model in memory, which engines share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers

from ...errors import ModelError, UsageError, first_line
from ...run.machine import usable_cores
from .device import load_model

# Threads of a call unless configured, on as many cores or more: CTranslate2's default.
_DEFAULT_THREADS = 4


def _calls_at_once(threads: int) -> int:
    """The calls that the cores carry at the same time, each on ``threads`` threads."""
    cores = usable_cores()
    return max(1, cores // (threads or min(cores, _DEFAULT_THREADS)))


@dataclass(frozen=True)
class WhisperWeights:
    """A Whisper model in memory. Thread-safe: engines for different languages may share it."""

    directory: Path
    model: Any
    """``ctranslate2.models.Whisper``."""
    tokenizer: tokenizers.Tokenizer

    @property
    def calls_at_once(self) -> int:
        """How many calls run at the same time; further ones wait."""
        return int(self.model.num_workers)

    @classmethod
    def load(
        cls,
        directory: Path,
        compute_type: str = "int8",
        threads: int = 0,
        several_calls: bool = False,
        device: str = "cpu",
    ) -> WhisperWeights:
        """Load a CTranslate2 Whisper model.

        Args:
            threads: of each call; 0: up to four.
            several_calls: calls of several threads run at the same time, as many as the cores carry. Each further one takes
                about 40 MB with base.
            device: see ``load_model``.
        """
        try:
            model = load_model(
                directory,
                device,
                compute_type,
                intra_threads=threads,
                inter_threads=_calls_at_once(threads) if several_calls else 1,
            )
            return cls(directory, model, tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json")))
        except UsageError:
            raise
        except Exception as error:  # RuntimeError, ValueError; tokenizers raises plain Exception
            raise ModelError(
                f"CTranslate2 cannot load {directory}: {first_line(error)}; fetch or convert it again"
            ) from error
