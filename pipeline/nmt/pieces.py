"""A translation as pieces, one for each token, and as events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pipeline.events import Confidence, Delta, SourceSentence, Translation
from pipeline.nmt.decoder import DecoderState
from pipeline.nmt.generation import OnStart, Token
from pipeline.nmt.tokenizer import MarianTokenizer
from pipeline.sentences.growing import GrowingText


@dataclass(frozen=True)
class Piece:
    """One target token of a sentence, and the change of the sentence's text that it makes."""

    token: Token
    text: str
    """The text that the token completes."""
    withdrawn: int = 0
    """Characters removed from the end of the text before ``text`` is appended."""
    committed: int = 0
    """Length of the text if this is the last piece, else 0: the text is a draft until then."""
    tokens: tuple[Token, ...] = ()
    """On the last piece, all tokens of the sentence."""
    terms: tuple[str, ...] = ()
    """On the last piece, the glossary terms in the source."""
    missed_terms: tuple[str, ...] = ()
    """On the last piece, those without an accepted translation in the text."""


class PartText:
    """The tokens of one part of a sentence, and the text of each."""

    def __init__(self, tokenizer: MarianTokenizer, separator: str) -> None:
        """``separator``: written before the text."""
        self._tokenizer, self._separator = tokenizer, separator
        self._detokenizer = tokenizer.detokenizer()
        self.tokens: list[Token] = []
        self.texts: list[str] = []

    @property
    def ids(self) -> list[int]:
        return [token.id for token in self.tokens]

    def push(self, token: Token) -> str:
        """Add a token; return the text that it completes."""
        text = self._detokenizer.push(token.id)
        if token.last:
            text += self._detokenizer.flush()
        if text and not any(self.texts):
            text = self._separator + text
        self.tokens.append(token)
        self.texts.append(text)
        return text

    def rewind(self, kept: int) -> int:
        """Remove the tokens after the first ``kept``; return the number of characters removed."""
        withdrawn = self.length() - self.length(kept)
        del self.tokens[kept:], self.texts[kept:]
        self._detokenizer = self._tokenizer.detokenizer()
        for token in self.tokens:
            self._detokenizer.push(token.id)
        return withdrawn

    def length(self, tokens: int | None = None) -> int:
        """Characters of the text of the first ``tokens``; None: of all."""
        return sum(map(len, self.texts[:tokens]))

    def followed(self) -> list[Token]:
        """The tokens as those of a part that does not end the sentence."""
        return [replace(token, last=False, truncated=False, searched_again=False) for token in self.tokens]


class RunningSearch:
    """The state of the newest search, and the call for each one that begins."""

    def __init__(self, on_start: OnStart | None) -> None:
        self.state: DecoderState | None = None
        self._on_start = on_start

    def __call__(self, state: DecoderState) -> None:
        self.state = state
        if self._on_start is not None:
            self._on_start(state)


def translated(events: Iterable[Delta | Translation]) -> str:
    """The text of the translation that ends ``events``."""
    return next((event.text for event in events if isinstance(event, Translation)), "")


def deltas(sentence: SourceSentence, pieces: Iterable[Piece], target: str) -> Iterator[Delta | Translation]:
    """Yield one delta per piece, then the translation. The last piece ends the sentence."""
    text = GrowingText()
    tokens: tuple[Token, ...] = ()
    terms = missed = tuple[str, ...]()
    for piece in pieces:
        token, tokens = piece.token, piece.tokens
        terms, missed = piece.terms, piece.missed_terms
        text.apply(piece)
        yield Delta(
            sentence=sentence.sentence,
            language=target,
            text=piece.text,
            withdrawn=piece.withdrawn,
            committed=piece.committed,
            token=token.id,
            log_probability=token.log_probability,
            heard_s=sentence.heard_s,
            complete=token.last,
        )
    yield Translation(
        sentence=sentence.sentence,
        language=target,
        text=text.text,
        confidence=Confidence.of([token.log_probability for token in tokens]) if tokens else None,
        truncated=any(token.truncated for token in tokens[-1:]),
        searched_again=any(token.searched_again for token in tokens[-1:]),
        guarded=sum(token.guarded for token in tokens),
        terms=terms,
        missed_terms=missed,
        heard_s=sentence.heard_s,
    )
