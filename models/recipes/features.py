"""What Whisper sees: log-mel features as faster-whisper computes them, in an eighth of its time; and disturbances of them."""

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


def warped(features: torch.Tensor, factor: float) -> torch.Tensor:
    """Features [80, frames] of a vocal tract ``factor`` times as long (Jaitly and Hinton 2013): another speaker."""
    at = (hertz_to_mel(_CENTRES * factor, "slaney") / _STEP - 1).clip(0, BANDS - 1)
    return _rows(features, at)


def bent(features: torch.Tensor, bands: np.ndarray) -> torch.Tensor:
    """Features [80, frames] whose formants are moved by so many ``bands`` [n] at points evenly spread over the bands."""
    knots = np.linspace(0, BANDS - 1, len(bands))
    return _rows(features, np.interp(np.arange(BANDS), knots, knots + bands).clip(0, BANDS - 1))


def stretched(features: torch.Tensor, times: np.ndarray) -> torch.Tensor:
    """Features [80, frames] spoken slower and faster: frames last ``times`` [n] as long, at points evenly spread over them."""
    frames = features.shape[1]
    lasts = np.interp(np.arange(frames), np.linspace(0, frames - 1, len(times)), times)
    begins = np.cumsum(lasts) - lasts
    at = np.interp(np.arange(begins[-1] + lasts[-1]), begins, np.arange(frames))
    return _rows(features.T, at).T.contiguous()


def _rows(features: torch.Tensor, at: np.ndarray) -> torch.Tensor:
    """The rows at the indices ``at``, which lie between two of them."""
    below = np.minimum(at.astype(int), len(features) - 2)
    share = torch.from_numpy((at - below).astype(np.float32))[:, None]
    return features[below] * (1 - share) + features[below + 1] * share


def blurred(features: torch.Tensor, share: float) -> torch.Tensor:
    """Features [80, frames] whose bands give ``share`` of themselves to either neighbour: harmonics drown."""
    padded = torch.cat([features[:1], features, features[-1:]])
    return (1 - 2 * share) * features + share * (padded[:-2] + padded[2:])


def rippled(features: torch.Tensor, hertz: float, depth: float) -> torch.Tensor:
    """Features [80, frames] with a ripple every ``hertz`` at low frequencies: harmonics that do not move."""
    ripple = depth * np.cos(2 * np.pi * _CENTRES / hertz) * np.clip(1.5 - _CENTRES / 2_500, 0, 1)
    return features + torch.from_numpy(ripple.astype(np.float32))[:, None]


def coloured(features: torch.Tensor, decibels: np.ndarray) -> torch.Tensor:
    """Features [80, frames] behind a filter with these gains [n] at points evenly spread over the bands."""
    gains = np.interp(np.arange(BANDS), np.linspace(0, BANDS - 1, len(decibels)), decibels) / 40
    louder = features + torch.from_numpy(gains.astype(np.float32))[:, None]
    return torch.maximum(louder, louder.max() - 2.0)
