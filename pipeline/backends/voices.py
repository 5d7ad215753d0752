"""The models of voices: how many people speak at each moment of a stretch of sound, and a vector of a voice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..core import SAMPLE_RATE, Samples, SpeakerOptions
from ..errors import ModelError, UsageError
from ..store import VOICES, model_from_packages
from .onnx_session import open_session, quiet_options, translate_ort_errors

HOP_SAMPLES, _FRAMES = 270, 589
WINDOW_SAMPLES = _FRAMES * HOP_SAMPLES
"""Sound that is heard at once for who speaks when, about 10 s, in frames of ``HOP_SAMPLES`` (PyanNet, Bredin, 2023)."""
# The model takes 10 s; its first frame sees 991 samples, and its hop is in their middle.
_TAKEN_SAMPLES, _BEFORE_SAMPLES = 160_000, (991 - HOP_SAMPLES) // 2
# Loudness of speech, root mean square, over 0.5 s.
_LEVEL_FRAMES, _LOUDNESS, _SILENCE = 30, 0.1, 2e-4
_INPUTS = {
    "segmentation": [("waveforms", [1, _TAKEN_SAMPLES])],
    "embedding": [("fbank", ["num_frames", 80]), ("weights", ["num_frames"])],
}

# Kaldi's filter banks, of which WeSpeaker's models take the logarithms: frames of 25 ms, 10 ms apart.
_FFT, _FRAME, _HOP, _BANDS, _LOWEST_HZ = 512, 400, 160, 80, 20.0
_PREEMPHASIS, _LEAST_POWER = np.float32(0.97), np.float32(1.1920929e-07)

Activity = NDArray[np.bool_]
"""[frames, 3]: whether each of up to three voices is heard. Which voice is which holds for one window only."""
Vector = NDArray[np.float32]
"""[256], of length 1."""


def voice_model_folder(options: SpeakerOptions) -> Path:
    """The folder of the models: the installed package's, copied out of it, or the configured one.

    Raises:
        UsageError, ModelError: there is none.
    """
    if options.model is None:
        if (folder := model_from_packages(VOICES)) is None:
            raise UsageError(f"speakers.auto needs models of voices; install the package with them: {VOICES.install}")
        return folder
    folder = Path(options.model)
    if missing := [file.name for file in VOICES.files if not (folder / file.name).is_file()]:
        raise ModelError(f"{folder} has no {' and no '.join(missing)}; speakers.model is a folder with both")
    return folder


class VoiceModel:
    """pyannote's segmentation of speakers and WeSpeaker's ResNet34 (Wang et al., 2023). Thread-safe."""

    def __init__(self, folder: Path) -> None:
        """Raises ModelError: there are no such models."""
        self._paths = {kind: folder / f"{kind}.ort" for kind in _INPUTS}
        self._sessions = {kind: open_session(path, 1) for kind, path in self._paths.items()}
        for kind, expected in _INPUTS.items():
            inputs = [(port.name, port.shape[1:]) for port in self._sessions[kind].get_inputs()]
            if inputs != expected:
                raise ModelError(f"{self._paths[kind]} has the inputs {inputs}; expected {expected}")
        self._filters = _mel_filters()

    def activity(self, samples: Samples, *, levelled: bool = False) -> Activity:
        """Who speaks when in at most a window of sound [n]: n // ``HOP_SAMPLES`` frames.

        ``levelled``: of a quiet voice beside a loud one, too, but less well told apart.
        """
        sound = np.zeros((1, 1, _TAKEN_SAMPLES), np.float32)
        scaled = np.asarray(samples / np.float32(32_768), np.float32)
        sound[0, 0, _BEFORE_SAMPLES : _BEFORE_SAMPLES + len(samples)] = _levelled(scaled) if levelled else scaled
        return self._run("segmentation", {"waveforms": sound})[0, : len(samples) // HOP_SAMPLES] > 0.5

    def vector(self, samples: Samples) -> Vector | None:
        """The vector of the voice in speech [n]; None if it is shorter than a frame."""
        if len(samples) < _FRAME:
            return None
        features = self._features(samples)
        weights = np.ones(features.shape[:1], np.float32)
        vector = self._run("embedding", {"fbank": features[None], "weights": weights[None]})[0]
        return np.asarray(vector / (np.linalg.norm(vector) + 1e-9), np.float32)

    def _run(self, kind: str, feeds: dict[str, NDArray[np.float32]]) -> NDArray[np.float32]:
        with translate_ort_errors(self._paths[kind], 0, options := quiet_options()):
            return np.asarray(self._sessions[kind].run(None, feeds, options)[0])

    def _features(self, samples: Samples) -> NDArray[np.float32]:
        """Kaldi's filter banks [frames, 80], each band less its mean."""
        frames = np.lib.stride_tricks.sliding_window_view(samples, _FRAME)[::_HOP].astype(np.float32)
        frames -= frames.mean(axis=1, keepdims=True)
        frames -= _PREEMPHASIS * np.hstack([frames[:, :1], frames[:, :-1]])
        power = np.abs(np.fft.rfft(frames * np.hamming(_FRAME), _FFT, axis=1)) ** 2
        bands = np.log(np.maximum(power @ self._filters, _LEAST_POWER)).astype(np.float32)
        return np.asarray(bands - bands.mean(axis=0), np.float32)


def _levelled(sound: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sound [n] that is as loud everywhere, over ``_LEVEL_FRAMES``; what is softer than ``_SILENCE`` stays softer."""
    frames = sound[: len(sound) // HOP_SAMPLES * HOP_SAMPLES].reshape(-1, HOP_SAMPLES)
    if len(frames) < _LEVEL_FRAMES:
        return sound
    power = np.convolve(np.square(frames).mean(axis=1), np.full(_LEVEL_FRAMES, 1 / _LEVEL_FRAMES), "same")
    gains = np.repeat(_LOUDNESS / np.maximum(np.sqrt(power), _SILENCE), HOP_SAMPLES)
    return np.asarray(sound * np.pad(gains, (0, len(sound) - len(gains)), "edge"), np.float32)


def _mel_filters() -> NDArray[np.float64]:
    """Kaldi's triangles, equal in width on the mel scale [257, 80]."""

    def mel(hertz: NDArray[np.float64] | float) -> NDArray[np.float64]:
        return np.asarray(1127.0 * np.log1p(np.asarray(hertz) / 700.0))

    edges = np.linspace(mel(_LOWEST_HZ), mel(SAMPLE_RATE / 2), _BANDS + 2)
    bins = mel(np.arange(_FFT // 2 + 1) * SAMPLE_RATE / _FFT)[:, None]
    left, middle, right = edges[:-2], edges[1:-1], edges[2:]
    return np.asarray(np.maximum(0, np.minimum((bins - left) / (middle - left), (right - bins) / (right - middle))))
