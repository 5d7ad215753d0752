"""What speaks: a voice of an installed package by its name, or a voice of Piper (VITS), whose files the user fetches."""

from __future__ import annotations

import json
import os
import unicodedata
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..backends import open_session, quiet_options
from ..core import Samples
from ..errors import ModelError, UsageError, first_line
from ..languages import known_language, normalized_code
from .espeak import require_espeak, spelled, with_marks

WHERE = "give the .onnx file of a Piper voice, with its .onnx.json beside it (docs/live.md says where voices are)"
"""Advice for a voice that is not there, for messages."""
# Phonemes that each voice has: before all others, between them, and after them.
_BEGIN, _BETWEEN, _END = "^", "_", "$"
_INPUTS = {"input", "input_lengths", "scales"}


class Voice(Protocol):
    """Speaks one language. May be called from several threads."""

    name: str
    """The voice's name as --speak takes it."""
    language: str
    rate: int
    """Sample rate in Hz."""

    def say(self, text: str, speed: float = 1.0) -> Samples:
        """A sentence as int16 samples [n] at ``rate``; none if it has nothing that is spoken. ``speed`` 2 halves its time."""


def spoken_samples(sound: Any) -> Samples:
    """int16 [n] of a model's floats in [-1, 1], of any shape."""
    samples: Samples = (np.asarray(sound).reshape(-1).clip(-1.0, 1.0) * 32_767).astype(np.int16)
    return samples


class PiperVoice:
    """A voice in two files: NAME.onnx, and NAME.onnx.json."""

    def __init__(self, path: Path) -> None:
        """Load the voice.

        Raises:
            UsageError: there is no voice at ``path``, or espeak-ng is not installed.
            ModelError: a file is damaged or of another kind, or espeak-ng cannot read the language.
        """
        self.path = path = _model_file(path)
        self.name = str(path)
        settings = _settings(path.with_name(f"{path.name}.json"))
        try:
            code = (settings.get("language", {}).get("code") or path.name.split("-")[0]).replace("_", "-")
            self.language = normalized_code(code) if known_language(code) is not None else ""
            self.rate = int(settings["audio"]["sample_rate"])
            self._ids = {sign: [*map(int, ids)] for sign, ids in settings["phoneme_id_map"].items()}
            self._frame = [self._ids[sign] for sign in (_BEGIN, _BETWEEN, _END)]
            kind = settings.get("phoneme_type", "espeak")
            self._espeak = str(settings["espeak"]["voice"]) if kind == "espeak" else None
            defaults = {"noise_scale": 0.667, "length_scale": 1.0, "noise_w": 0.8} | settings.get("inference", {})
            self._scales = [float(defaults[name]) for name in ("noise_scale", "length_scale", "noise_w")]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ModelError(f"{path}.json is no configuration of a Piper voice ({error!r}); {WHERE}") from None
        if not self.language or kind not in ("espeak", "text") or not 8_000 <= self.rate <= 192_000:
            raise ModelError(
                f"{path}.json has the language {code!r}, phonemes of the type {kind!r} and {self.rate} Hz; expected are a "
                "known language, phonemes of espeak or text, and 8000 to 192000 Hz"
            )
        if self._espeak is not None:
            require_espeak(path.name)
        self._session = open_session(path, threads=1)
        inputs = {given.name for given in self._session.get_inputs()}
        if inputs - {"sid"} != _INPUTS:
            raise ModelError(f"{path} has the inputs {', '.join(sorted(inputs))}, not those of a Piper voice; {WHERE}")
        self._speaker = {"sid": np.zeros(1, np.int64)} if "sid" in inputs else {}
        own_name = settings.get("language", {}).get("name_native")
        self._check(str(own_name or path.stem))

    def say(self, text: str, speed: float = 1.0) -> Samples:
        """Speak a sentence; see ``Voice``."""
        begin, between, end = self._frame
        phonemes = self._phonemes(text) if any(map(str.isalnum, text)) else ""
        signs = [self._ids[sign] + between for sign in phonemes if sign in self._ids]
        if not signs:
            return np.zeros(0, np.int16)
        noise, length, noise_of_lengths = self._scales
        try:
            ids = np.array([[*begin, *between, *chain.from_iterable(signs), *end]], np.int64)
            feeds = {
                "input": ids,
                "input_lengths": np.array([ids.shape[1]], np.int64),
                "scales": np.array([noise, length / speed, noise_of_lengths], np.float32),
                **self._speaker,
            }
            (sound, *_) = self._session.run(None, feeds, quiet_options())
        except Exception as error:  # ONNX Runtime's exception classes have no common base class
            raise ModelError(f"{self.path} cannot speak {text!r}: {first_line(error)}") from error
        return spoken_samples(sound)

    def _phonemes(self, text: str) -> str:
        """What the voice reads: decomposed (NFD), with the marks at which it pauses."""
        if self._espeak is None:
            return unicodedata.normalize("NFD", text.casefold())
        return unicodedata.normalize("NFD", with_marks(spelled(text, self._espeak, self.path.name), text))

    def _check(self, own_name: str) -> None:
        """Speak once, as the first time takes longer. ``own_name``: of the language, in it."""
        if (
            self._espeak is not None
            and spelled(own_name, self._espeak, self.path.name).startswith("(en)")
            and not self.language.startswith("en")
        ):
            raise ModelError(
                f"espeak-ng here reads {own_name!r} as English, so {self.path.name} would not be understood; install a newer "
                "espeak-ng, or choose another target"
            )
        self.say(own_name)


def _model_file(path: Path) -> Path:
    """The file of a voice, which may be given by its folder."""
    if os.path.isdir(path):
        files = sorted(path.glob("*.onnx"))
        if len(files) != 1:
            names = ", ".join(file.name for file in files) or "no .onnx file"
            raise UsageError(f"{path} has {names}; {WHERE}")
        return files[0]
    if not os.path.isfile(path):
        raise UsageError(f"there is no voice {path}; {WHERE}")
    return path


def _settings(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}; {WHERE}") from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is damaged ({error}); fetch it again") from None
    if not isinstance(settings, dict):
        raise ModelError(f"{path} has no object; fetch it again")
    return settings
