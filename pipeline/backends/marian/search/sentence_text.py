"""A translation as it is written token by token, and kept for the next time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from ....core import TargetText, TargetToken, Token, Translation
from ..decode.tokenizer import MarianTokenizer


@dataclass(frozen=True)
class Rewind:
    """Withdraws all yielded tokens of a part after the first ``kept``; the following tokens replace them."""

    kept: int


class SentenceText:
    """The text of a sentence while its parts are written one after another."""

    def __init__(self, tokenizer: MarianTokenizer, separator: str) -> None:
        """``separator``: written between the parts."""
        self._tokenizer, self._separator = tokenizer, separator
        self.text = ""
        self.written: tuple[TargetToken, ...] = ()
        self.tokens: list[Token] = []  # the last one of each part is marked as such
        self.shown = self.steady = 0  # characters that are shown, and that are steady once the sentence is complete
        self.begin_part()

    def begin_part(self, *, capital: bool = False) -> None:
        """``capital``: whether it begins with one."""
        self._before, self._capital = len(self.tokens), capital
        self.texts: list[str] = []  # what each token of the part adds to the text
        self._detokenizer = self._tokenizer.detokenizer()

    @property
    def part(self) -> list[Token]:
        """The tokens of the part."""
        return self.tokens[self._before :]

    def push(self, token: Token) -> None:
        """Add a token, and show it."""
        text = self._detokenizer.push(token.id)
        if token.last:
            text += self._detokenizer.flush()
        if text and not any(self.texts):
            if self._capital and (first := text.lstrip())[:1].islower():
                text = text.replace(first[0], first[0].title(), 1)
            text = self._separator * bool(self.text) + text
        self.tokens.append(token)
        self.texts.append(text)
        self.text += text
        self.shown = len(self.text)
        self.written += (TargetToken(token.id, token.log_probability, len(self.text)),)

    def rewind(self, kept: int) -> None:
        """Remove the part's tokens after the first ``kept``."""
        self.text = self.text[: self.end(kept)]
        self.written = self.written[: self._before + kept]
        del self.tokens[self._before + kept :], self.texts[kept:]
        self._detokenizer = self._tokenizer.detokenizer()
        for token in self.part:
            self._detokenizer.push(token.id)

    def end(self, tokens: int) -> int:
        """Length of the text up to the end of the part's first ``tokens``."""
        until = self._before + tokens
        return self.written[until - 1].end if until else 0


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
            if (tokens := self._kept.get(source)) is not None:
                self._kept.move_to_end(source)
                self.hits += 1
            return tokens

    def put(self, source: Hashable, tokens: tuple[Token | Rewind, ...]) -> None:
        with self._lock:
            self._kept[source] = tokens
            self._kept.move_to_end(source)
            while len(self._kept) > self.bound:
                self._kept.popitem(last=False)


def translated(events: Iterable[TargetText | Translation]) -> str:
    """The text of the translation that ends ``events``."""
    return next((event.text for event in events if isinstance(event, Translation)), "")
