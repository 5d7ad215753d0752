"""The English voice of the package hibari-tts, which has its model, and rules and dictionaries of pronunciation."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..core import Samples
from ..errors import ModelError, UsageError, first_line
from ..store import HIBARI, is_complete
from .voice import spoken_samples


class HibariVoice:
    """A small model that was trained on what Kokoro's voice af_heart says."""

    name = HIBARI.size
    language = "en-US"
    rate = 24_000

    def __init__(self) -> None:
        """Raises UsageError: the package is not installed, or has other files than published."""
        try:
            import hibari
        except ImportError as error:
            raise UsageError(f"the voice {self.name} is not installed; {HIBARI.install}") from error
        if not is_complete(Path(hibari.__file__).parent / "assets", HIBARI):
            raise UsageError(f"{hibari.__file__} has other models than published; {HIBARI.install} --force-reinstall")
        self._model = hibari.Hibari(threads=1)
        self.say("English")  # the first time takes longer

    def say(self, text: str, speed: float = 1.0) -> Samples:
        """A sentence as int16 samples [n] at ``rate``; none if it has nothing that is spoken."""
        if not any(map(str.isalnum, text)):
            return np.zeros(0, np.int16)
        try:
            return spoken_samples(self._model(text, speed, seed=0))
        except Exception as error:  # of ONNX Runtime, and of the package's rules
            raise ModelError(f"{self.name} cannot speak {text!r}: {first_line(error)}") from error
