"""Find the end of what was heard in audio that begins before it. Pure."""

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


def overlap(heard: Samples, start: Samples) -> int:
    """How many samples at the beginning of ``start`` are the end of ``heard``, or come before it; 0 if none are known."""
    if len(start) < _PART:
        return 0
    before, found = heard - heard.mean(), start - start.mean()
    sums = np.cumsum(np.insert(np.square(found), 0, 0.0))
    powers = sums[_PART:] - sums[:-_PART]
    length = 1 << (len(start) + _PART).bit_length()
    spectrum = np.fft.rfft(found, length)
    for end in range(len(heard), max(_PART, len(heard) - LOOKED_AT) - 1, -_PART // 2):
        part = before[end - _PART : end]
        power = float(part @ part)
        if power < _PART * _QUIET**2:
            continue
        products = np.fft.irfft(spectrum * np.conj(np.fft.rfft(part, length)), length)[: len(powers)]
        likeness = products / np.sqrt(power * np.maximum(powers, power / 4))
        at = int(np.argmax(likeness))
        if likeness[at] > _ALIKE:
            return at + _PART + len(heard) - end
    return 0
