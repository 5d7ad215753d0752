"""The recognisers by their names in a configuration; ``RECOGNIZERS`` of ``asr_options.py`` says where each is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from ..core import Recognizer, StreamingRecognizer
from ..store import ModelRef
from . import whisper  # noqa: F401  # slow: imported where interrupts are quiet, not with its first use
from .asr_options import RECOGNIZERS, AsrConfig


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
    return cast(RecognizerEngine, RECOGNIZERS.load(backend)) if backend in RECOGNIZERS.own else _Installed(backend)


class _Installed:
    """A recogniser of another package, which finds its model itself."""

    def __init__(self, name: str) -> None:
        self._name = name

    def model_ref(self, config: AsrConfig) -> ModelRef:
        return ModelRef(config.model)

    def find_model(self, config: AsrConfig) -> Path:
        return Path(config.model)

    def load_model(
        self, config: AsrConfig, languages: Sequence[str], directory: Path, sharing: Any, several_calls: bool
    ) -> Recognizer | StreamingRecognizer:
        return cast("Recognizer | StreamingRecognizer", RECOGNIZERS.make(self._name, config, languages))
