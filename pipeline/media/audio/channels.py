"""Downmix a recording to mono at 16 kHz: the front centre, a mix, or one channel if a mix would lose the speech.
Or take one channel for one speaker.

FFmpeg resamples, and supplies the weight of each channel of a layout in a mono mix. This module chooses the weights for
each block of 100 ms:

- a layout with a front centre (3.0, 5.1, 7.1 …): the centre alone while it is audible, because films have speech there;
- channels that cancel each other (stereo with one side inverted), or only channels that FFmpeg leaves out of a mix
  (such as a low-frequency channel): the loudest channel alone;
- everything else: FFmpeg's mix, scaled so that silent channels do not make the others quieter.

The choice depends on the last few seconds, with hysteresis, so that it changes only when the recording does.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

import av
import numpy as np
import numpy.typing as npt
from av.audio.codeccontext import AudioCodecContext
from av.audio.frame import AudioFrame
from av.audio.layout import AudioLayout
from av.audio.resampler import AudioResampler

from ...core import CHUNK_SAMPLES, SAMPLE_RATE, Samples
from .frames import pieces

Floats = npt.NDArray[np.float32]

_CENTRE = "FC"  # FFmpeg's name
_FILM_LAYOUTS = {6: "5.1", 8: "7.1"}  # order: left, right, centre, low frequencies, sides and back
_UNKNOWN = "NONE"  # a channel without a position, as from a mixer
_LOW_FREQUENCIES = {"LFE", "LFE2"}
_CUSTOM_LAYOUT = re.compile(r"\d+ channels \(")  # a layout that lists its channels: "3 channels (FC+FL+FR)"
# Time constant of the averaged energies by which cancellation is detected.
_MEMORY_S = 3.0
# Decay of a channel's peak loudness in dB per second. A centre that falls silent is given up after 10 s, at -40 dB, and
# selected again at once when it is audible.
_DECAY_DB_PER_S = 4.0
# A channel this far below the loudest (-40 dB, as power) is silent: crosstalk and hiss, but not dialogue under music.
_SILENT_RATIO = 1e-4
# A channel below this power (-80 dBFS) is silent as well. Dither and codec noise are at -90 dBFS.
_SILENT_POWER = 1e-8
# Power of the mix relative to that of uncorrelated channels. For two equally loud channels it is 1 + their correlation:
# 2 for identical ones, 0 for opposite ones, 0.5 for opposite ones with independent noise of the same level. Below the
# first limit the channels cancel each other, until the second is reached.
_CANCELLED_BELOW = 0.5
_CANCELLED_UNTIL = 0.7
# If the current weights keep less than this part of a block (same measure), forget the averages and judge by the block
# alone. Otherwise earlier audio, such as an intro in ordinary stereo, would outweigh several seconds of inverted
# speech.
_KEPT_RATIO = 0.25
# Only blocks above this part (-20 dB) of the average power are judged in this way, so pauses are not.
_LOUD_RATIO = 0.01
# Clipping limit. Floating-point files may exceed full scale, and damaged ones contain infinity.
_HEADROOM = np.float32(8)
# Switch from one single channel to another if that is this much louder (6 dB, as power).
_SWITCH_RATIO = 4.0
# Others are heard in a speaker's channel as well: an echo, the other end of a line, a microphone in the same room. The channel has
# nothing of its own while it is quieter than the loudest other one by so many dB: what it usually is while the other one
# is heard, plus 8, within these limits; at first, 10. The other one is measured over 0.4 s, because an echo is late.
_CROSSTALK_MARGIN_DB, _CROSSTALK_LEAST_DB, _CROSSTALK_MOST_DB, _CROSSTALK_FIRST_DB = 8.0, -35.0, -6.0, -10.0
_CROSSTALK_BLOCKS, _OWN_BLOCKS = 4, 2
# Usually: in the quietest quarter of up to a minute, once there is a second. In the rest both may speak.
_USUAL_BLOCKS, _FEW_BLOCKS, _USUAL_SHARE = 600, 10, 0.25
# The same while so much of its power is a copy of a louder channel, or of an equally loud one before it (within 1 dB).
_COPIED, _EQUAL = 0.9, 1.26
# Crossfade between two sets of weights, to avoid clicks.
_FADE_SAMPLES = SAMPLE_RATE // 100


class ChannelResampler:
    """Resamples decoded frames of one format to 16 kHz and keeps their channels separate."""

    def __init__(self, layout: AudioLayout) -> None:
        self._channels = layout.nb_channels
        # Interleaved, because PyAV 18 reads out of bounds for frames with more than eight planes.
        self._resampler = AudioResampler(format="flt", layout=layout, rate=SAMPLE_RATE)

    def push(self, frame: AudioFrame | None) -> Floats:
        """Return samples [n, channels] with full scale 1; ``frame`` None drains the resampler.

        Raises:
            av.error.FFmpegError: FFmpeg does not support the rate or the number of channels (above 64).
        """
        parts = [part.to_ndarray().reshape(-1, self._channels) for part in self._resampler.resample(frame)]
        samples = np.concatenate([np.zeros((0, self._channels), np.float32), *parts])
        limited: Floats = np.clip(np.nan_to_num(samples), -_HEADROOM, _HEADROOM)
        return limited


def channel_names(context: AudioCodecContext) -> tuple[str, ...]:
    """FFmpeg's names of a stream's channels, in sample order. Call this once, before decoding.

    A layout with a channel order other than FFmpeg's, such as QuickTime's 5.1 and 7.1, is replaced in ``context`` by
    one without names: PyAV 18.1 frees the channel list of such a layout once per frame, which aborts the process.
    """
    layout = context.layout
    names = tuple(channel.name for channel in layout.channels)
    if _CUSTOM_LAYOUT.match(layout.name):
        context.layout = f"{len(names)} channels"  # now only ``layout`` owns the list
    return names


def mono_weights(layout: AudioLayout) -> Floats:
    """FFmpeg's weights of the channels in a mono mix, [channels], sum 1; equal weights for an unknown layout."""
    count = layout.nb_channels
    even = np.full(count, 1 / count, np.float32)
    if any(channel.name == _UNKNOWN for channel in layout.channels):
        return even  # FFmpeg would treat 16 unnamed channels as a surround layout
    try:
        # Sample i has full scale in channel i only.
        frame = AudioFrame.from_ndarray(np.eye(count, dtype=np.float32).reshape(1, -1), "flt", layout.name)
        frame.sample_rate = SAMPLE_RATE
        resampler = AudioResampler(format="flt", layout="mono", rate=SAMPLE_RATE)
        parts = [*resampler.resample(frame), *resampler.resample(None)]
    except (av.error.FFmpegError, ValueError):
        return even
    weights: Floats = np.concatenate([part.to_ndarray().reshape(-1) for part in parts])
    return weights / weights.sum() if weights.sum() > 0 else even


def in_film_order(layout: AudioLayout) -> AudioLayout:
    """The usual film layout for 6 or 8 unnamed channels. MXF and PCM in Matroska do not name channels."""
    usual = _FILM_LAYOUTS.get(layout.nb_channels) if _is_unnamed(layout) else None
    return AudioLayout(usual) if usual else layout


def _is_unnamed(layout: AudioLayout) -> bool:
    return all(channel.name == _UNKNOWN for channel in layout.channels)


class Weights(Protocol):
    def next(self, block: Floats) -> Floats:
        """The weights [channels] of the next ``block``, [n, channels] samples."""
        ...


class SpeakerWeights:
    """Takes one channel, and silence while that has only what others say. Pure."""

    def __init__(self, channel: int) -> None:
        """``channel``: counted from 0. If there is none of this number, all is silent."""
        self._own = channel
        self._recent: deque[npt.NDArray[np.float64]] = deque(maxlen=_CROSSTALK_BLOCKS)
        """The products of the channels in each block, [channels, channels]; on the diagonal their energies."""
        self._loudest = 0.0  # energy of the loudest block of any channel
        self._quieter_db: dict[int, deque[float]] = {}
        """How loud the channel was in comparison with each other one, while that was heard."""

    def next(self, block: Floats) -> Floats:
        """The weight of each channel for a block [n, channels]: 1 for the speaker's while the speaker is heard in it, else 0."""
        weights = np.zeros(block.shape[1], np.float32)
        if self._own < len(weights):
            differences = np.diff(block.astype(np.float64), axis=0)  # without DC offset and hum
            self._recent.append(differences.T @ differences)
            weights[self._own] = len(weights) == 1 or not self._is_of_another(len(weights))
        return weights

    def _is_of_another(self, count: int) -> bool:
        """Whether the channel has only what is said in another one of the ``count`` channels."""
        channel, products = self._own, np.mean(self._recent, axis=0)
        energies = products.diagonal()
        self._loudest = max(self._loudest, float(energies.max()))
        other = max((each for each in range(count) if each != channel), key=lambda each: energies[each])
        if energies[other] <= max(_SILENT_POWER, _SILENT_RATIO * self._loudest):
            return False
        newest = np.mean([each[channel, channel] for each in list(self._recent)[-_OWN_BLOCKS:]])
        quieter_db = 10 * np.log10(max(float(newest / energies[other]), _SILENT_POWER))
        usual = self._quieter_db.setdefault(other, deque(maxlen=_USUAL_BLOCKS))
        if quieter_db < 0 and energies[other] > _LOUD_RATIO * self._loudest:
            usual.append(quieter_db)
        is_calibrated = len(usual) >= _FEW_BLOCKS
        limit_db = np.quantile(usual, _USUAL_SHARE) + _CROSSTALK_MARGIN_DB if is_calibrated else _CROSSTALK_FIRST_DB
        if quieter_db < min(max(limit_db, _CROSSTALK_LEAST_DB), _CROSSTALK_MOST_DB):
            return True
        copied = products[channel, other] ** 2 >= _COPIED * energies[channel] * energies[other]
        return bool(copied and energies[other] * (_EQUAL if other < channel else 1 / _EQUAL) > energies[channel])


class ChannelWeights:
    """Chooses the weight of each channel. Pure: blocks of samples in, weights out."""

    def __init__(self, mix: Floats, centre: int | None = None) -> None:
        """``mix``: weights of the normal mix, [channels]. ``centre``: index of the front centre, or None."""
        self._mix, self._centre = mix, centre
        self._loudness = np.zeros(len(mix))  # power of the loudest block, with decay
        self._loudest = np.zeros(len(mix))  # the same without decay
        self._channel_energy = np.zeros(len(mix))  # average over the last seconds, high frequencies emphasised
        self._mix_energy = 0.0  # the same for the mix
        self._single: int | None = None

    def next(self, block: Floats) -> Floats:
        """The weight of each channel, [channels], for a block [n, channels]."""
        if len(block) > 1:
            self._measure(block)
        if self._centre is not None and self._audible(self._loudness)[self._centre]:
            return self._one_channel(self._centre)
        self._single = self._choose_single()
        if self._single is not None:
            return self._one_channel(self._single)
        counted = self._mix[self._audible(self._loudest)].sum()
        return self._mix / counted if counted > 0 else self._mix

    def _measure(self, block: Floats) -> None:
        samples, seconds = block.astype(np.float64), len(block) / SAMPLE_RATE
        power = samples.var(axis=0)
        self._loudness = np.maximum(10 ** (-_DECAY_DB_PER_S * seconds / 10) * self._loudness, power)
        self._loudest = np.maximum(self._loudest, power)
        # Differences of samples have no DC offset and little hum, and keep the frequencies that make speech
        # intelligible.
        differences = np.diff(samples, axis=0)
        energy, mixed = (differences**2).mean(axis=0), float(((differences @ self._mix) ** 2).mean())
        kept = 0.0 if self._would_lose(energy, mixed) else float(np.exp(-seconds / _MEMORY_S))
        self._channel_energy = kept * self._channel_energy + seconds * energy
        self._mix_energy = kept * self._mix_energy + seconds * mixed

    def _would_lose(self, energy: npt.NDArray[np.float64], mixed: float) -> bool:
        """Whether the current weights would lose a block with this energy in each channel [channels] and in the mix."""
        uncorrelated = self._uncorrelated_energy(energy)
        loud = (
            energy.max() > _SILENT_POWER
            and uncorrelated > _LOUD_RATIO * self._uncorrelated_energy(self._channel_energy) / _MEMORY_S
        )
        taken = mixed if self._single is None else float(energy[self._single])
        return bool(loud) and taken < _KEPT_RATIO * uncorrelated

    def _uncorrelated_energy(self, energy: npt.NDArray[np.float64]) -> float:
        """The energy that the mix would have if the channels were uncorrelated."""
        return float(self._mix.astype(np.float64) ** 2 @ energy)

    def _audible(self, power: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        return np.greater(power, max(_SILENT_POWER, _SILENT_RATIO * float(power.max())))

    def _choose_single(self) -> int | None:
        """The channel to use alone because a mix would lose the speech; None for the mix."""
        loudest = int(self._channel_energy.argmax())
        if self._channel_energy[loudest] <= _SILENT_POWER:
            return self._single
        uncorrelated = self._uncorrelated_energy(self._channel_energy)
        least = _CANCELLED_BELOW if self._single is None else _CANCELLED_UNTIL
        if self._mix_energy >= max(least * uncorrelated, _SILENT_RATIO * self._channel_energy[loudest]):
            return None
        if (
            self._single is not None
            and self._channel_energy[loudest] < _SWITCH_RATIO * self._channel_energy[self._single]
        ):
            return self._single
        return loudest

    def _one_channel(self, channel: int) -> Floats:
        weights = np.zeros_like(self._mix)
        weights[channel] = 1
        return weights


class MonoMixer:
    """Converts decoded frames of one format, layout and rate to mono at 16 kHz. Holds back at most 100 ms."""

    def __init__(
        self, layout: AudioLayout, *, names: Sequence[str] = (), film: bool = False, speaker: int | None = None
    ) -> None:
        """``names``: names of the channels if ``layout`` has none. ``film``: the recording is a film, so 6 or 8 unnamed
        channels have the usual film layout. ``speaker``: the channel to take; see ``SpeakerWeights``.
        """
        self._layout = layout
        self._mono = layout.name == "mono" and speaker is None
        self._channel_resampler: ChannelResampler | None = None
        self._mono_resampler: AudioResampler | None = None
        if len(names) == layout.nb_channels and _is_unnamed(layout) and set(names) != {_UNKNOWN}:
            mix = np.array([name not in _LOW_FREQUENCIES for name in names], np.float32)
            mix /= max(1, mix.sum())
        else:
            named = in_film_order(layout) if film else layout
            names, mix = [channel.name for channel in named.channels], mono_weights(named)
        centre = names.index(_CENTRE) if _CENTRE in names else None
        self._weights: Weights = ChannelWeights(mix, centre) if speaker is None else SpeakerWeights(speaker)
        self._last_weights: Floats | None = None
        self._held_back: Floats = np.zeros((0, layout.nb_channels), np.float32)

    @property
    def pending(self) -> int:
        """Number of samples held back."""
        return len(self._held_back)

    def push(self, frame: AudioFrame) -> Iterator[Samples]:
        """Yield samples [n] of this frame and those held back.

        Raises:
            AudioError, av.error.FFmpegError: see ``pieces`` and ``ChannelResampler``.
        """
        if self._mono:
            self._mono_resampler = self._mono_resampler or AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
            for piece in pieces(frame):
                yield from map(_samples, self._mono_resampler.resample(piece))
            return
        self._channel_resampler = self._channel_resampler or ChannelResampler(self._layout)
        for piece in pieces(frame):
            samples = np.concatenate([self._held_back, self._channel_resampler.push(piece)])
            whole = len(samples) // CHUNK_SAMPLES * CHUNK_SAMPLES
            self._held_back = samples[whole:]
            for start in range(0, whole, CHUNK_SAMPLES):
                yield self._mixed(samples[start : start + CHUNK_SAMPLES])

    def drain(self) -> Iterator[Samples]:
        """Yield the remaining samples, at the end or before a gap. More frames may follow; the weights are kept."""
        if self._mono_resampler is not None:
            yield from map(_samples, self._mono_resampler.resample(None))
        if self._channel_resampler is not None:
            samples = np.concatenate([self._held_back, self._channel_resampler.push(None)])
            self._held_back = samples[:0]
            for start in range(0, len(samples), CHUNK_SAMPLES):
                yield self._mixed(samples[start : start + CHUNK_SAMPLES])
        self._mono_resampler = self._channel_resampler = None

    def _mixed(self, block: Floats) -> Samples:
        after = self._weights.next(block)
        before = after if self._last_weights is None else self._last_weights
        self._last_weights = after
        fade = np.minimum(np.arange(1, len(block) + 1) / _FADE_SAMPLES, 1)[:, None]
        mono = (block * (before + fade * (after - before))).sum(axis=1)
        samples: Samples = np.clip(np.rint(mono * 32_768), -32_768, 32_767).astype(np.int16)
        return samples


def _samples(part: AudioFrame) -> Samples:
    return np.asarray(part.to_ndarray(), np.int16).reshape(-1)
