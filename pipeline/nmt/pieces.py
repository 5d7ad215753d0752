"""A translation as pieces, one for each token, and as events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pipeline.events import Confidence, Delta, SourceSentence, Translation
from pipeline.nmt.generation import Token
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


def translated(events: Iterable[Delta | Translation]) -> str:
    """The text of the translation that ends ``events``."""
    return next((event.text for event in events if isinstance(event, Translation)), "")


def deltas(sentence: SourceSentence, pieces: Iterable[Piece], target: str) -> Iterator[Delta | Translation]:
    """Yield one delta per piece, then the translation. The last piece ends the sentence."""
    text = GrowingText()
    tokens: tuple[Token, ...] = ()
    for piece in pieces:
        token, tokens = piece.token, piece.tokens
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
        heard_s=sentence.heard_s,
    )
