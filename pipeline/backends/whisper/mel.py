"""Whisper's mel filters, applied so that the result does not depend on the number of processor cores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class MelFilters:
    """Triangular filters as a sparse matrix, for the ``@`` of faster-whisper's ``FeatureExtractor``.

    NumPy's own product goes to a BLAS that divides it among threads, and with their number the last bits of the features
    change: enough for another text in 6 % of sentences. Here each sum has the few bins of its filter, in order.
    """

    def __init__(self, weights: NDArray[np.float32]) -> None:
        """``weights``: [filters, bins], the non-zero ones of a filter in consecutive bins."""
        self._bands: list[tuple[slice, NDArray[np.float32]]] = []
        for row in weights:
            bins = np.flatnonzero(row)
            band = slice(bins[0], bins[-1] + 1) if len(bins) else slice(0, 0)
            self._bands.append((band, row[band, None]))

    def __matmul__(self, spectrum: NDArray[np.float32]) -> NDArray[np.float32]:
        """The power in each filter [filters, frames] of a power spectrum [bins, frames]."""
        rows = np.ascontiguousarray(spectrum)
        powers = np.empty((len(self._bands), rows.shape[1]), np.float32)
        for power, (band, weights) in zip(powers, self._bands, strict=True):
            np.add.reduce(weights * rows[band], axis=0, out=power)
        return powers
