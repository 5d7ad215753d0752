"""Where the audio of a new connection lies on the time line of a network stream. Pure."""

from __future__ import annotations

import numpy as np

from ...core import SAMPLE_RATE, Samples

LOOKED_AT = 3 * SAMPLE_RATE
"""Samples at the end of what was heard of which parts are looked for."""
_PART = SAMPLE_RATE // 2
# Correlation from which two parts are the same. Decoders that began at different places give nearly the same samples.
_ALIKE = 0.9
# Parts below -60 dBFS may be the silence of anywhere.
_QUIET = 33.0
# A server may keep so much for those who connect (Icecast: 64 KB).
_HELD = 5 * SAMPLE_RATE


def place(
    start: Samples, heard: Samples, lost_at: int, delivered: int, *, came_at: int, now: int, lead: int
) -> tuple[int, Samples]:
    """Where the beginning of a connection lies on the time line, and what of it [n] is new. Silence fills a gap before it.

    A server may begin with the past seconds. What of them was heard, or has silence in its place already, is dropped.
    Positions and times are in samples since the stream began.

    Args:
        start: all that the connection has given since ``came_at``.
        heard: the end of what was delivered until the stream broke off at ``lost_at``; ``LOOKED_AT`` samples are enough.
        delivered: the end of what was delivered, with silence.
        lead: how much audio the first connection had delivered before its time, at most.
    """
    kept = max(0, len(start) - (now - came_at))  # by the server: it came faster than in real time
    repeated = overlap(heard, start)
    if 0 < repeated <= kept + SAMPLE_RATE // 2:
        return delivered, start[repeated + delivered - lost_at :]
    return max(delivered, now + min(lead, kept) - len(start)), start


def silence_due(delivered: int, now: int, lead: int) -> int:
    """How many samples of silence take the place of audio that no server can have kept. Arguments as in ``place``."""
    return max(0, now - max(0, _HELD - lead) - delivered)


def overlap(heard: Samples, start: Samples) -> int:
    """How many samples at the beginning of ``start`` are the end of ``heard``, or come before it; 0 if none are known."""
    if len(start) < _PART:
        return 0
    before, searched = heard - heard.mean(), start - start.mean()
    sums = np.cumsum(np.insert(np.square(searched), 0, 0.0))
    powers = sums[_PART:] - sums[:-_PART]
    length = 1 << (len(start) + _PART).bit_length()
    spectrum = np.fft.rfft(searched, length)
    for end in range(len(heard), max(_PART, len(heard) - LOOKED_AT) - 1, -_PART // 2):
        part = before[end - _PART : end]
        power = float(part @ part)
        if power < _PART * _QUIET**2:
            continue
        products = np.fft.irfft(spectrum * np.conj(np.fft.rfft(part, length)), length)[: len(powers)]
        likeness = products / np.sqrt(power * np.maximum(powers, power / 4))
        index = int(np.argmax(likeness))
        if likeness[index] > _ALIKE:
            return index + _PART + len(heard) - end
    return 0
