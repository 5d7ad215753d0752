"""The recognisers by their names in a configuration: each has a module, which ``BACKENDS`` of ``options.py`` names."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from ..core import Recognizer, StreamingRecognizer
from ..store import ModelRef
from . import whisper  # noqa: F401  # slow: imported where interrupts are quiet, not with its first use
from .asr_options import BACKENDS, AsrConfig


class RecognizerEngine(Protocol):
    """What the module of a recogniser has."""

    def model_ref(self, config: AsrConfig) -> ModelRef:
        """What the configured name means."""
        ...

    def find_model(self, config: AsrConfig) -> Path:
        """The directory of the configured model; fetched if necessary.

        Raises:
            UsageError, ModelError, DownloadError: there is none, or the recogniser is not installed.
        """
        ...

    def load_model(
        self, config: AsrConfig, languages: Sequence[str], directory: Path, sharing: Any, several_calls: bool
    ) -> Recognizer | StreamingRecognizer:
        """Load the model of a directory.

        Args:
            languages: those that are spoken.
            sharing: a recogniser of the same module that has the model in memory already; None: there is none.
            several_calls: recognition for several streams runs at the same time.
        """
        ...


def engine(backend: str) -> RecognizerEngine:
    """The recogniser of a name in the configuration."""
    return cast(RecognizerEngine, import_module(f".{BACKENDS[backend].module}", __package__))
