"""LRU cache of translations, for sentences that come again ("Thank you.")."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

from pipeline.nmt.generation import Token
from pipeline.nmt.recovery import Rewind


class SentenceCache:
    """Maps source ids, with the terms if a glossary has any of them, to the tokens that their search yielded. Thread-safe."""

    def __init__(self, bound: int) -> None:
        """Keep at most ``bound`` sentences; 0 disables the cache."""
        self.bound = bound
        self.hits = 0
        self._kept: OrderedDict[Hashable, tuple[Token | Rewind, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, source: Hashable) -> tuple[Token | Rewind, ...] | None:
        with self._lock:
            if (found := self._kept.get(source)) is not None:
                self._kept.move_to_end(source)
                self.hits += 1
            return found

    def put(self, source: Hashable, tokens: tuple[Token | Rewind, ...]) -> None:
        with self._lock:
            self._kept[source] = tokens
            self._kept.move_to_end(source)
            while len(self._kept) > self.bound:
                self._kept.popitem(last=False)
