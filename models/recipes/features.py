"""What Whisper sees: log-mel features as faster-whisper computes them, in an eighth of its time; other voices of them."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from faster_whisper.feature_extractor import FeatureExtractor
from transformers.audio_utils import hertz_to_mel, mel_to_hertz

WINDOW, HOP = 400, 160  # samples at 16 kHz: 25 ms every 10 ms
_MEL = torch.from_numpy(FeatureExtractor(sampling_rate=16_000, n_fft=WINDOW, hop_length=HOP).mel_filters)

BANDS = _MEL.shape[0]
_STEP = float(hertz_to_mel(8_000, "slaney")) / (BANDS + 1)  # mels between the bands' centres
_CENTRES = np.asarray(mel_to_hertz(_STEP * np.arange(1, BANDS + 1), "slaney"))


def log_mel(audio: np.ndarray) -> torch.Tensor:
    """Features [80, frames] of float32 ``audio`` [n] in [-1, 1] at 16 kHz: those of faster-whisper's FeatureExtractor.

    One frame for every full hop and one more; values within 8 powers of ten of the loudest, (log10 + 4) / 4.
    """
    padded = F.pad(torch.from_numpy(audio)[None], (0, HOP))
    padded = F.pad(padded, (WINDOW // 2, WINDOW // 2), mode="reflect")[0]
    spectrum = torch.view_as_real(torch.fft.rfft(padded.unfold(0, WINDOW, HOP)[:-1] * torch.hann_window(WINDOW)))
    mel = (_MEL @ spectrum.square().sum(-1).T).clamp_min(1e-10).log10()
    return (torch.maximum(mel, mel.max() - 8.0) + 4.0) / 4.0


def warped(features: torch.Tensor, factor: float, shifts: np.ndarray) -> torch.Tensor:
    """Features [80, frames] of a vocal tract ``factor`` times as long (Jaitly and Hinton 2013): another speaker.

    ``shifts`` [n] move bands besides, by so many at points evenly spread over them: not all formants move alike.
    """
    at = hertz_to_mel(_CENTRES * factor, "slaney") / _STEP - 1 + _between(shifts, BANDS)
    return _interpolated(features, at)


def paced(features: torch.Tensor, lasting: np.ndarray) -> tuple[torch.Tensor, np.ndarray]:
    """Features [80, frames] said faster here and slower there, and the new index [frames] of every old frame.

    ``lasting`` [n] is how many new frames an old one lasts, at points evenly spread over them.
    """
    frames = features.shape[1]
    new = np.concatenate([[0], np.cumsum(_between(lasting, frames))[:-1]])
    old = np.interp(np.arange(int(new[-1]) + 1), new, np.arange(frames))
    return _interpolated(features.T, old).T, new


def contrasted(features: torch.Tensor, factor: float, width: int) -> torch.Tensor:
    """Features [80, frames] whose peaks stand out ``factor`` times as far from the mean of ``width`` bands (odd)."""
    smooth = F.avg_pool1d(features.T[None], width, 1, width // 2, count_include_pad=False)[0].T
    found = smooth + factor * (features - smooth)
    return torch.maximum(found, found.max() - 2.0)


def _between(points: np.ndarray, count: int) -> np.ndarray:
    """``count`` values, linear between ``points`` evenly spread over them."""
    return np.interp(np.arange(count), np.linspace(0, count - 1, len(points)), points)


def _interpolated(rows: torch.Tensor, at: np.ndarray) -> torch.Tensor:
    """``rows`` [n, m] at fractional indices ``at``; outside, the first or last of them."""
    at = at.clip(0, len(rows) - 1)
    below = np.minimum(at.astype(int), max(0, len(rows) - 2))
    share = torch.from_numpy((at - below).astype(np.float32))[:, None]
    return rows[below] * (1 - share) + rows[np.minimum(below + 1, len(rows) - 1)] * share


def coloured(features: torch.Tensor, decibels: np.ndarray) -> torch.Tensor:
    """Features [80, frames] behind a filter with these gains [n] at points evenly spread over the bands."""
    gains = _between(decibels, BANDS) / 40
    louder = features + torch.from_numpy(gains.astype(np.float32))[:, None]
    return torch.maximum(louder, louder.max() - 2.0)
