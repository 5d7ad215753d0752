"""Pivot translation: two Marian models in sequence. The first translates a whole sentence before the second starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from pipeline.events import Delta, Transcript
from pipeline.nmt.model import UNDETERMINED, MarianModel, Piece, Sentence, deltas, joined
from pipeline.nmt.scripts import rewritten
from pipeline.nmt.search import GenerationOptions, OnStart


class PivotTranslator:
    """Two loaded models: ``first`` translates into the language ``via``, ``second`` from ``via`` into the target.

    The stream is like that of ``MarianModel``, with one delta per token of the second model. The sentences, their times
    and their source text are those of the transcript, even if the first model writes two sentences for one.
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
        transcript: Transcript,
        target: str | None = None,
        on_start: OnStart | None = None,
        beams: int | None = None,
    ) -> Iterator[Delta]:
        """Translate a transcript sentence by sentence; see ``MarianModel.stream``.

        ``on_start`` receives the states of both models' searches, one after the other. ``beams`` applies to both.

        Raises:
            UsageError, ModelError, DecodingStoppedError: see ``MarianModel.stream``.
        """
        if target is None:
            target = self.languages[1] or UNDETERMINED
        code = self.second.target_code(target)
        sentences = self.first.sentences(transcript, self.first.target_code(self.via))
        found = deltas(transcript, sentences, lambda each: self._pieces(each, target, code, on_start, beams), target)
        yield from rewritten(found, self.second.conversion(target))

    def _pieces(
        self, sentence: Sentence, target: str, code: str | None, on_start: OnStart | None, beams: int | None
    ) -> Iterator[Piece]:
        halfway: list[Piece] = []
        for piece in self.first.pieces([sentence.ids], self.via, on_start, beams):
            del halfway[len(halfway) - piece.dropped :]
            halfway.append(piece)
        text = "".join(piece.text for piece in halfway)
        ended = halfway[-1].token
        parts = self.second.sentences(Transcript(0, 0.0, 0.0, text, self.via), code)
        if not parts:  # the first model wrote nothing, but the sentence still needs its end token
            yield Piece(dataclasses.replace(ended, id=self.generation.end_token, guarded=False), "")
            return
        for piece in self.second.pieces([part.ids for part in parts], target, on_start, beams):
            token = piece.token
            if token.last:
                token = dataclasses.replace(
                    token,
                    truncated=token.truncated or ended.truncated,
                    searched_again=token.searched_again or ended.searched_again,
                )
            yield dataclasses.replace(piece, token=token)

    def translate(self, text: str, *, source: str | None = None, target: str | None = None) -> str:
        """Translate ``text`` and return the whole translation; languages default to those that the models name.

        Raises:
            UsageError, ModelError, DecodingStoppedError: see ``stream``.
        """
        if source is not None:
            self.first.check_languages(source, self.via)
        transcript = Transcript(0, 0.0, 0.0, text, source or self.languages[0] or "en")
        return joined(self.stream(transcript, target))
