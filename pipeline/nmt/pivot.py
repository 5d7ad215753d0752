"""Pivot translation: two Marian models in sequence. The first translates a whole sentence before the second starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from pipeline.events import Delta, SourceSentence, Translation
from pipeline.nmt.commitment import Commitment
from pipeline.nmt.drafts import Draft
from pipeline.nmt.generation import GenerationOptions, OnStart
from pipeline.nmt.model import UNDETERMINED, MarianModel
from pipeline.nmt.pieces import Piece, deltas, translated
from pipeline.nmt.scripts import rewritten
from pipeline.sentences.growing import GrowingText


class PivotTranslator:
    """Two loaded models: ``first`` translates into the language ``via``, ``second`` from ``via`` into the target.

    The stream is like that of ``MarianModel``, with one delta per token of the second model. If the first model writes two
    sentences for one, they are still one translation.
    Probabilities and confidences are those of the second model. Safe to use from several threads at once.
    """

    def __init__(self, first: MarianModel, second: MarianModel, via: str) -> None:
        self.first, self.second, self.via = first, second, via
        self.languages = (first.languages[0], second.languages[1])
        """(source, target) as two-letter codes from the models' files; None if the files do not name one."""

    @property
    def generation(self) -> GenerationOptions:
        """Generation options of the second model."""
        return self.second.generation

    def check_languages(self, source: str, target: str) -> None:
        """Raise UsageError if a model's files name a different language pair."""
        self.first.check_languages(source, self.via)
        self.second.check_languages(self.via, target)

    def stream(
        self,
        sentence: SourceSentence,
        target: str | None = None,
        on_start: OnStart | None = None,
        beams: int | None = None,
        draft: Draft | None = None,
    ) -> Iterator[Delta | Translation]:
        """Translate a sentence; see ``MarianModel.stream``.

        ``on_start`` receives the states of both models' searches, one after the other. ``beams`` applies to both.

        Raises:
            UsageError, ModelError, DecodingStoppedError: see ``MarianModel.stream``.
        """
        yield from self._stream(sentence, target, on_start, beams, draft, None)

    def append(
        self,
        sentence: SourceSentence,
        commitment: Commitment,
        target: str | None = None,
        on_start: OnStart | None = None,
        beams: int | None = None,
        draft: Draft | None = None,
    ) -> Iterator[Delta | Translation]:
        """As ``MarianModel.append``. Only the second model's tokens are committed, when its translations agree on them.

        Raises:
            UsageError, ModelError, DecodingStoppedError: see ``MarianModel.stream``.
        """
        yield from self._stream(sentence, target, on_start, beams, draft, commitment)

    def _stream(
        self,
        sentence: SourceSentence,
        target: str | None,
        on_start: OnStart | None,
        beams: int | None,
        draft: Draft | None,
        commitment: Commitment | None,
    ) -> Iterator[Delta | Translation]:
        if target is None:
            target = self.languages[1] or UNDETERMINED
        sources = self.first.sources(sentence.text, sentence.language, self.first.target_code(self.via))
        found = deltas(sentence, self._pieces(sources, target, on_start, beams, draft, commitment), target)
        yield from rewritten(found, self.second.conversion(target), final=commitment is None or draft is None)

    def _pieces(
        self,
        sources: Sequence[tuple[int, ...]],
        target: str,
        on_start: OnStart | None,
        beams: int | None,
        draft: Draft | None,
        commitment: Commitment | None,
    ) -> Iterator[Piece]:
        code = self.second.target_code(target)
        if not sources:
            yield from self.second.pieces((), target, on_start, beams, draft, commitment)
            return
        first = None if draft is None else draft.of_first_model()
        halfway = GrowingText()
        for piece in self.first.pieces(sources, self.via, on_start, beams, first):
            halfway.apply(piece, piece.token)
        ended = halfway.pieces[-1].mark
        parts = self.second.sources(halfway.text, self.via, code)
        begun = commitment is not None and commitment.tokens(0)
        if not parts and not begun:  # the first model wrote nothing, but the sentence still needs its end token
            end = dataclasses.replace(ended, id=self.generation.end_token, guarded=False)
            yield Piece(end, "", tokens=(end,))
            return
        for piece in self.second.pieces(parts, target, on_start, beams, draft, commitment):
            token = piece.token
            if token.last:
                token = dataclasses.replace(
                    token,
                    truncated=token.truncated or ended.truncated,
                    searched_again=token.searched_again or ended.searched_again,
                )
            yield dataclasses.replace(piece, token=token, tokens=(*piece.tokens[:-1], token) if piece.tokens else ())

    def translate(self, text: str, *, source: str | None = None, target: str | None = None) -> str:
        """Translate ``text`` and return the whole translation; languages default to those that the models name.

        Raises:
            UsageError, ModelError, DecodingStoppedError: see ``stream``.
        """
        if source is not None:
            self.first.check_languages(source, self.via)
        return translated(self.stream(SourceSentence(0, source or self.languages[0] or "en", text), target))
