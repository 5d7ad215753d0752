"""Word alignment for guided attention: IBM model 1 on pieces, in both directions."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

_FLOOR = 1e-9  # weight of piece pairs that did not occur together
_LEAST = 1e-7  # weight of piece pairs that are remembered, about one in fifteen


class Alignments:
    """Alignment probabilities of source and target pieces, learned from pairs of id lists (Brown et al. 1993).

    Multiplying the tables of both directions prevents frequent pieces ("the", "的") from aligning with everything.
    """

    def __init__(self, pairs: list[tuple[list[int], list[int]]], iterations: int = 6) -> None:
        self.size = 1 + max(max(*source, *target) for source, target in pairs)
        cells, rows, columns = [], [], []
        row = column = 0
        for source, target in pairs:
            s, t = np.asarray(source), np.asarray(target)
            cells.append((s[None, :] * self.size + t[:, None]).ravel())
            rows.append(row + np.repeat(np.arange(len(t)), len(s)))
            columns.append(column + np.tile(np.arange(len(s)), len(t)))
            row, column = row + len(t), column + len(s)
        keys, inverse = np.unique(np.concatenate(cells), return_inverse=True)

        def estimate(segments: np.ndarray, given: np.ndarray) -> np.ndarray:
            table = np.ones(len(keys))
            for _ in range(iterations):
                share = table[inverse]
                share /= np.bincount(segments, share)[segments]
                count = np.bincount(inverse, share)
                table = count / np.bincount(given, count)[given]
            return table

        forward = estimate(np.concatenate(rows), keys // self.size)
        table = forward * estimate(np.concatenate(columns), keys % self.size)
        self.keys, self.table = keys[table > _LEAST], table[table > _LEAST]

    def save(self, path: Path) -> None:
        """Replace the file atomically, also while another process saves the same."""
        partial = path.with_suffix(f".{os.getpid()}.npz")
        np.savez_compressed(partial, size=self.size, keys=self.keys, table=self.table.astype(np.float32))
        partial.rename(path)

    @classmethod
    def load(cls, path: Path) -> Alignments:
        """Read what ``save`` wrote."""
        found = cls.__new__(cls)
        with np.load(path) as saved:
            found.size, found.keys, found.table = int(saved["size"]), saved["keys"], saved["table"].astype(float)
        return found

    def __call__(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """The target attention for ids [B, S] and [B, T]: [B, T, S], where each row sums to 1."""
        keys = sources[:, None, :] * self.size + targets[:, :, None]
        at = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        weight = np.where(self.keys[at] == keys, self.table[at], 0.0) + _FLOOR
        return weight / weight.sum(-1, keepdims=True)
