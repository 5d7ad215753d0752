"""Lexical shortlists of students: which tokens may be in a translation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ....errors import ModelError

_SHORTLIST = 0xF11A48D5013417F5
_SHORTLIST_HEADER = 6
# Marian fills the candidates up to a multiple of this number.
_MULTIPLE = 8


class Shortlist:
    """A lexical shortlist (lex.*.s2t.bin): which tokens of a shared vocabulary may translate those of a source."""

    def __init__(self, path: Path, vocabulary: int) -> None:
        """Read a file."""
        try:
            content = path.read_bytes()
            header = np.frombuffer(content, "<u8", _SHORTLIST_HEADER).tolist()
            magic, _checksum, self._first, _best, offsets, ids = header
            if magic != _SHORTLIST:
                raise ValueError("it does not begin like a shortlist")
            begin = 8 * _SHORTLIST_HEADER + 8 * offsets
            if begin + 4 * ids != len(content):
                raise ValueError(f"it has {len(content):,} bytes, its header needs {begin + 4 * ids:,}")
            self._offsets = np.frombuffer(content, "<u8", offsets, 8 * _SHORTLIST_HEADER).astype(np.int64)
            self._ids = np.frombuffer(content, "<u4", ids, begin)
            if (
                offsets - 1 != vocabulary
                or (ids and self._ids.max() >= vocabulary)
                or not 2 <= self._first <= vocabulary
            ):
                raise ValueError(f"it is not for a vocabulary of {vocabulary:,} pieces")
            if self._offsets[-1] != ids or (np.diff(self._offsets, prepend=0) < 0).any():
                raise ValueError("its lists overlap")
        except OSError as error:
            raise ModelError(f"{path} cannot be read ({error.strerror}); check its permissions") from error
        except ValueError as error:
            raise ModelError(f"{path} is not a readable shortlist ({error}); fetch it again") from None
        self._size = vocabulary

    def candidates(self, source: Sequence[int]) -> NDArray[np.int64]:
        """The target ids for those of a source, ascending: the most frequent, the source's own, and those listed for it."""
        taken = np.zeros(self._size, np.bool_)
        taken[: self._first] = True
        for token in set(source):
            taken[token] = True
            taken[self._ids[self._offsets[token] : self._offsets[token + 1]]] = True
        if missing := -int(np.count_nonzero(taken)) % _MULTIPLE:
            taken[np.flatnonzero(~taken)[:missing]] = True
        return np.flatnonzero(taken)
