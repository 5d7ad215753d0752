"""From the channels of a recording to mono at 16 kHz: the front centre, a mix, or one channel where a mix loses the speech.

FFmpeg resamples, and knows how much of each channel of a layout belongs into mono; what is decided here, for 100 ms at a
time, is which weights the channels get:

- a layout with a front centre (3.0, 5.1, 7.1 …): the centre alone, where films have their speech, while it is heard;
- channels that cancel each other (stereo with one side inverted), or that FFmpeg leaves out (a low-frequency channel) and
  that are all there is: the loudest channel alone;
- everything else: FFmpeg's mix, so scaled that silent channels do not make the others quieter.

What is decided rests on the last few seconds, with hysteresis, so that it changes where the recording does, and seldom.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import av
import numpy as np
import numpy.typing as npt
from av.audio.codeccontext import AudioCodecContext
from av.audio.frame import AudioFrame
from av.audio.layout import AudioLayout
from av.audio.resampler import AudioResampler

from pipeline.audio.source import CHUNK_SAMPLES
from pipeline.events import SAMPLE_RATE, Samples

Floats = npt.NDArray[np.float32]

_CENTRE = "FC"  # as FFmpeg calls it
_FILM_LAYOUTS = {6: "5.1", 8: "7.1"}  # left, right, centre, low frequencies, then those at the sides and behind
_UNKNOWN = "NONE"  # a channel without a place, as of a mixer
_LOW_FREQUENCIES = {"LFE", "LFE2"}
_OF_NO_NAME = re.compile(r"\d+ channels \(")  # of a layout that lists its channels, as "3 channels (FC+FL+FR)"
# Whether channels cancel each other is judged by the energy of the last seconds, which fades with this time constant.
_MEMORY_S = 3.0
# How loud a channel is: its loudest block, which fades by so much a second. A centre that falls silent is given up when it
# has faded by 40 dB, after 10 s, and taken again at once.
_FADES_DB_S = 4.0
# A channel 40 dB below the loudest counts as silent: crosstalk and hiss are, dialogue under music is not.
_SILENT = 1e-4
# So does one below -80 dBFS. Dither and codecs leave -90 dBFS.
_FLOOR = 1e-8
# Power of the mix over what it would be if the channels had nothing in common. For two channels as loud as each other this
# is 1 + their correlation: 2 where they are the same, 0 where they are opposites, 0.5 where these have noise of their own
# as loud as they are.
_CANCELLED = 0.5
_CANCELLED_NO_MORE = 0.7
# Where the weights lose more than this of a block, measured in the same way, they are judged by that block alone: what was
# heard before, an intro of ordinary stereo perhaps, would outweigh several seconds of inverted speech.
_LOST = 0.25
# Such a block is no quieter than -20 dB of the last seconds: pauses decide nothing.
_LOUD_ENOUGH = 0.01
# Floating-point files go beyond full scale, and damaged ones to infinity.
_HEADROOM = np.float32(8)
# Another channel is taken in the place of one when it is louder by 6 dB.
_LOUDER = 4.0
# From one set of weights to the next without a click.
_FADE_SAMPLES = SAMPLE_RATE // 100


class ChannelResampler:
    """Decoded frames of one kind, at 16 kHz, their channels apart."""

    def __init__(self, layout: AudioLayout) -> None:
        self._channels = layout.nb_channels
        # Interleaved: PyAV 18 reads beyond the eighth plane of frames that have more.
        self._resampler = AudioResampler(format="flt", layout=layout, rate=SAMPLE_RATE)

    def push(self, frame: AudioFrame | None) -> Floats:
        """[n, channels], full scale is 1; None drains.

        Raises:
            av.error.FFmpegError: a rate or a number of channels (above 64) that FFmpeg does not take.
        """
        parts = [part.to_ndarray().reshape(-1, self._channels) for part in self._resampler.resample(frame)]
        samples = np.concatenate([np.zeros((0, self._channels), np.float32), *parts])
        limited: Floats = np.clip(np.nan_to_num(samples), -_HEADROOM, _HEADROOM)
        return limited


def channel_names(context: AudioCodecContext) -> tuple[str, ...]:
    """FFmpeg's names of a stream's channels, in the order of the samples. Call it once, before anything is decoded.

    A layout in another order than FFmpeg's own, as QuickTime has for 5.1 and 7.1, is replaced in ``context`` by one without
    names: PyAV 18.1 frees the list of channels of such a layout once for every frame, which aborts the process.
    """
    layout = context.layout
    names = tuple(channel.name for channel in layout.channels)
    if _OF_NO_NAME.match(layout.name):
        context.layout = f"{len(names)} channels"  # from now on the list is that of ``layout`` alone
    return names


def kind_of(frame: AudioFrame) -> tuple[str, str, int]:
    """Sample format, layout and rate: a resampler takes frames of one kind alone."""
    return frame.format.name, frame.layout.name, frame.sample_rate


def mono_weights(layout: AudioLayout) -> Floats:
    """How much of each channel FFmpeg puts into mono, [channels], sum 1; all the same where it does not know the layout."""
    count = layout.nb_channels
    even = np.full(count, 1 / count, np.float32)
    if any(channel.name == _UNKNOWN for channel in layout.channels):
        return even  # FFmpeg would take 16 microphones for the loudspeakers of a cinema
    try:
        # One sample of full scale in each channel, one channel after the other.
        frame = AudioFrame.from_ndarray(np.eye(count, dtype=np.float32).reshape(1, -1), "flt", layout.name)
        frame.sample_rate = SAMPLE_RATE
        resampler = AudioResampler(format="flt", layout="mono", rate=SAMPLE_RATE)
        parts = [*resampler.resample(frame), *resampler.resample(None)]
    except (av.error.FFmpegError, ValueError):
        return even
    weights: Floats = np.concatenate([part.to_ndarray().reshape(-1) for part in parts])
    return weights / weights.sum() if weights.sum() > 0 else even


def in_film_order(layout: AudioLayout) -> AudioLayout:
    """The layout that 6 or 8 channels without names have in films: neither MXF nor PCM in Matroska has names."""
    usual = _FILM_LAYOUTS.get(layout.nb_channels) if _is_unnamed(layout) else None
    return AudioLayout(usual) if usual else layout


def _is_unnamed(layout: AudioLayout) -> bool:
    return all(channel.name == _UNKNOWN for channel in layout.channels)


class ChannelWeights:
    """Decides how much of each channel is taken. Pure: blocks of samples in, weights out."""

    def __init__(self, mix: Floats, centre: int | None = None) -> None:
        """``mix``: the weights of the usual mix, [channels]; ``centre``: which channel is the front centre."""
        self._mix, self._centre = mix, centre
        self._loudness = np.zeros(len(mix))  # power of the loudest block, which fades
        self._loudest = np.zeros(len(mix))  # the same, and does not fade
        self._energy = np.zeros(len(mix))  # of the last seconds, high frequencies first
        self._mixed = 0.0  # and that of the mix
        self._single: int | None = None

    def next(self, block: Floats) -> Floats:
        """The weights [channels] of the next ``block``, [n, channels] samples."""
        if len(block) > 1:
            self._hear(block)
        if self._centre is not None and self._heard(self._loudness)[self._centre]:
            return self._only(self._centre)
        self._single = self._instead_of_mix()
        if self._single is not None:
            return self._only(self._single)
        counted = self._mix[self._heard(self._loudest)].sum()
        return self._mix / counted if counted > 0 else self._mix

    def _hear(self, block: Floats) -> None:
        samples, seconds = block.astype(np.float64), len(block) / SAMPLE_RATE
        power = samples.var(axis=0)
        self._loudness = np.maximum(10 ** (-_FADES_DB_S * seconds / 10) * self._loudness, power)
        self._loudest = np.maximum(self._loudest, power)
        # Differences of samples have no offset, little hum, and much of what makes speech intelligible.
        differences = np.diff(samples, axis=0)
        energy, mixed = (differences**2).mean(axis=0), float(((differences @ self._mix) ** 2).mean())
        kept = 0.0 if self._loses(energy, mixed) else float(np.exp(-seconds / _MEMORY_S))
        self._energy = kept * self._energy + seconds * energy
        self._mixed = kept * self._mixed + seconds * mixed

    def _loses(self, energy: npt.NDArray[np.float64], mixed: float) -> bool:
        """Whether the weights so far would lose a block: its energy in each channel [channels], and in the mix."""
        apart = self._apart(energy)
        loud = energy.max() > _FLOOR and apart > _LOUD_ENOUGH * self._apart(self._energy) / _MEMORY_S
        taken = mixed if self._single is None else float(energy[self._single])
        return bool(loud) and taken < _LOST * apart

    def _apart(self, energy: npt.NDArray[np.float64]) -> float:
        """The energy of the mix if the channels had nothing in common."""
        return float(self._mix.astype(np.float64) ** 2 @ energy)

    def _heard(self, power: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        return np.greater(power, max(_FLOOR, _SILENT * float(power.max())))

    def _instead_of_mix(self) -> int | None:
        """The channel to take alone, where a mix would lose what is in the channels."""
        loudest = int(self._energy.argmax())
        if self._energy[loudest] <= _FLOOR:
            return self._single
        apart = self._apart(self._energy)
        least = _CANCELLED if self._single is None else _CANCELLED_NO_MORE
        if self._mixed >= max(least * apart, _SILENT * self._energy[loudest]):
            return None
        if self._single is not None and self._energy[loudest] < _LOUDER * self._energy[self._single]:
            return self._single
        return loudest

    def _only(self, channel: int) -> Floats:
        weights = np.zeros_like(self._mix)
        weights[channel] = 1
        return weights


class MonoMixer:
    """Decoded frames of one format, layout and rate as mono samples at 16 kHz. Holds back 100 ms at most."""

    def __init__(self, layout: AudioLayout, *, names: Sequence[str] = (), film: bool = False) -> None:
        """``names``: of the channels, where ``layout`` has none. ``film``: it is a film's, so that 6 or 8 channels without
        any names are those of a cinema.
        """
        self._layout = layout
        self._mono = layout.name == "mono"
        self._apart: ChannelResampler | None = None
        self._resampler: AudioResampler | None = None
        if len(names) == layout.nb_channels and _is_unnamed(layout) and set(names) != {_UNKNOWN}:
            mix = np.array([name not in _LOW_FREQUENCIES for name in names], np.float32)
            mix /= max(1, mix.sum())
        else:
            named = in_film_order(layout) if film else layout
            names, mix = [channel.name for channel in named.channels], mono_weights(named)
        self._choice = ChannelWeights(mix, names.index(_CENTRE) if _CENTRE in names else None)
        self._before: Floats | None = None  # the last block's weights
        self._rest: Floats = np.zeros((0, layout.nb_channels), np.float32)

    @property
    def pending(self) -> int:
        """Samples that are held back."""
        return len(self._rest)

    def push(self, frame: AudioFrame) -> Iterator[Samples]:
        """Samples [n], of this frame and what was held back.

        Raises:
            av.error.FFmpegError: see ``ChannelResampler``.
        """
        if self._mono:
            self._resampler = self._resampler or AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
            yield from map(_samples, self._resampler.resample(frame))
            return
        self._apart = self._apart or ChannelResampler(self._layout)
        rest = np.concatenate([self._rest, self._apart.push(frame)])
        whole = len(rest) // CHUNK_SAMPLES * CHUNK_SAMPLES
        self._rest = rest[whole:]
        for start in range(0, whole, CHUNK_SAMPLES):
            yield self._mixed(rest[start : start + CHUNK_SAMPLES])

    def drain(self) -> Iterator[Samples]:
        """What is left, at the end or before a gap. More may be pushed then; what was learnt of the channels is kept."""
        if self._resampler is not None:
            yield from map(_samples, self._resampler.resample(None))
        if self._apart is not None:
            rest = np.concatenate([self._rest, self._apart.push(None)])
            self._rest = rest[:0]
            for start in range(0, len(rest), CHUNK_SAMPLES):
                yield self._mixed(rest[start : start + CHUNK_SAMPLES])
        self._resampler = self._apart = None

    def _mixed(self, block: Floats) -> Samples:
        after = self._choice.next(block)
        before = after if self._before is None else self._before
        self._before = after
        fade = np.minimum(np.arange(1, len(block) + 1) / _FADE_SAMPLES, 1)[:, None]
        mono = (block * (before + fade * (after - before))).sum(axis=1)
        samples: Samples = np.clip(np.rint(mono * 32_768), -32_768, 32_767).astype(np.int16)
        return samples


def _samples(part: AudioFrame) -> Samples:
    return np.asarray(part.to_ndarray(), np.int16).reshape(-1)
