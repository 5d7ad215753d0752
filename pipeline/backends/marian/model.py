"""A loaded Marian model: tokenizer, decoder and generation settings of one model directory.

A sentence is divided into parts (``_prepared``). Each is translated (``_tokens``; the steps of a search are in ``search.steps``) and
added to the text, token by token (``_events``).
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...core import (
    Confidence,
    DraftTokens,
    PartDraft,
    SourceSentence,
    TargetText,
    Token,
    Translation,
    TranslationRequest,
    rewritten,
    steady_sources,
)
from ...errors import ModelError, UsageError
from ...languages import sets_sentences_apart
from ...plugins import Table
from ..nmt_options import NmtConfig
from .decode import students
from .decode.decoder import DecoderState
from .decode.generation import SearchRequest, Stopwatch
from .decode.parts import ModelParts
from .model_text import ModelText, SourcePart, differs, target_or_own
from .search.beams import beam_search, greedy
from .search.recovery import LoopGuard, draft_limit, length_limit
from .search.sentence_text import Rewind, SentenceCache, SentenceText, translated
from .search.steps import PartTranslation, follow_neighbour, keep, translate
from .terms.source_terms import SourceTerm
from .terms.term_repair import Repair
from .terms.term_search import TermSearch, Wording, given


def _load_exported(directory: Path, options: NmtConfig) -> ModelParts:
    from .decode import marian  # a run of students needs none of it

    return marian.load(directory, options)


FAMILIES: tuple[Callable[[Path, NmtConfig], ModelParts | None], ...] = (students.load, _load_exported)
"""The families of models: the first one that knows the files of a directory loads it. Then those of other packages are asked."""
_MORE_FAMILIES = Table("families", "family", {})


@dataclass
class SentenceTranslation:
    """A sentence, its parts, and its translation as it is now."""

    request: TranslationRequest
    target: str
    parts: Sequence[SourcePart]
    text: SentenceText
    number: int = 0  # the part that is being translated
    is_last: bool = True  # whether it is the last one
    state: DecoderState | None = None  # of the newest search of that part
    missed: list[SourceTerm] = field(default_factory=list)

    @property
    def drafted(self) -> DraftTokens | None:
        """The drafts that this one follows."""
        return self.request.drafted if self.request.draft else None

    def begin(self, number: int) -> SourcePart:
        """Begin a part. A short one goes on from the part before it, after the neighbour that is the same for all."""
        part = self.parts[number]
        if number and (alone := part.alone) and not self.text.part[-1].truncated:
            before = self.parts[number - 1].alone or self.parts[number - 1]
            known, tokens = part.ids[: -len(alone.ids)], (token.id for token in self.text.part[:-1])
            part = replace(
                alone.after((*known, *before.ids[:-1]), (*part.begun, *tokens), part.margin), retry=part.retry
            )
        self.number, self.is_last, self.state = number, number == len(self.parts) - 1, None
        self.text.begin_part(capital=part.capital)
        return part

    def started(self, state: DecoderState) -> None:
        """A search has begun."""
        self.state = state
        if self.request.on_start is not None:
            self.request.on_start(state)

    def end(self, attention: NDArray[np.float32] | None) -> None:
        """End the part: decide what of it is steady and shown. ``attention``: of its tokens over the source, if it is a draft's."""
        text, steady = self.text, self.parts[self.number].steady
        if self.drafted is not None:
            draft = PartDraft(tuple(text.part), tuple(text.texts), self.target, steady, attention, self.is_last)
            certain, visible = self.drafted.push(self.number, draft)
            text.steady, text.shown = text.end(certain) if certain else text.steady, text.end(visible)
            return
        if self.request.drafted is not None:
            self.request.drafted.follow(self.number, text.part)
        if self.is_last:
            text.steady = text.shown

    def event(self, *, complete: bool) -> TargetText:
        sentence = self.request.sentence
        return TargetText(
            sentence=sentence.sentence,
            language=self.target,
            text=self.text.text[: self.text.shown],
            steady=self.text.steady if complete else 0,
            tokens=self.text.written,
            heard_s=sentence.heard_s,
            complete=complete,
        )

    def translation(self) -> Translation:
        sentence, tokens = self.request.sentence, self.text.tokens
        return Translation(
            sentence=sentence.sentence,
            language=self.target,
            text=self.text.text[: self.text.shown],
            confidence=Confidence.of([token.log_probability for token in tokens]) if tokens else None,
            truncated=any(token.truncated for token in tokens),
            searched_again=any(token.searched_again for token in tokens),
            guarded=sum(token.guarded for token in tokens),
            terms=tuple(term.name for part in self.parts for term in part.terms if not term.literal),
            missed_terms=tuple(term.name for term in self.missed if not term.literal),
            heard_s=sentence.heard_s,
        )


class MarianModel(ModelText):
    """A loaded model. Safe to use from several threads at once; each translation has its own state."""

    def __init__(self, parts: ModelParts, options: NmtConfig | None = None) -> None:
        self.tokenizer, self.decoder, self.generation = parts.tokenizer, parts.decoder, parts.generation
        self.languages, self.scripts = parts.languages, parts.scripts
        self.max_source_tokens, self.knows_print_only = parts.max_source_tokens, parts.knows_print_only
        self.options = options or NmtConfig()
        """The options of the search are in ``generation``, where the model's files may say otherwise."""
        self.cache = SentenceCache(self.options.cached_sentences)
        self._spellers = {}

    @classmethod
    def load(cls, directory: Path, options: NmtConfig | None = None) -> MarianModel:
        """Open the model in ``directory``, as ``options`` say; they do not choose the model.

        Raises:
            ModelError: a file is missing, damaged, or inconsistent with the others.
        """
        options = options or NmtConfig()
        parts: ModelParts | None
        try:
            parts = next(parts for load in FAMILIES if (parts := load(directory, options)) is not None)
        except ModelError as error:
            others = (_MORE_FAMILIES.make(name, directory, options) for name in _MORE_FAMILIES)
            try:
                parts = next(filter(None, others), None)
            except UsageError as failure:  # of another package, which may not know these files
                raise ModelError(f"{error}; {failure}") from error
            if parts is None:
                raise
        return cls(parts, options)

    def stream(self, request: TranslationRequest) -> Iterator[TargetText | Translation]:
        """Translate a sentence, yielding its text after each target token and, at the end, its ``Translation``.

        ``target`` defaults to the language that the model's files name.
        ``draft`` makes it a draft of a sentence in progress: the search is greedy and its length is limited by the source's
        (``draft_limit``); if it fails, it is cut instead of repeated.
        ``glossary`` has terms of the source language and their translations; see ``pipeline.backends.marian.terms.term_search``.

        The last text belongs to the end token and is ``complete``. If the sentence is searched again, what was yielded before is replaced. Text that is too long for the model, or has several sentences, is
        translated in parts. Text without tokens (blank or only zero-width characters) yields an empty ``Translation``.

        ``drafted``: the drafts before; only if the model ``attends``. The search of a ``draft`` follows the one that is shown, unless
        another token is clearly more probable, and its last text is without what is not to be shown yet, and says how much of
        it is steady. Without ``draft``, later drafts follow this translation.

        Raises:
            UsageError: see ``target_code``; ``beams`` is below 1.
            ModelError: ONNX Runtime could not run the model.
            DecodingStoppedError: a sentence's state was terminated.
        """
        sentence = self._prepared(request)
        if request.beams is not None and request.beams < 1:
            raise UsageError(f"beams is {request.beams}; expected at least 1")
        yield from rewritten(self._events(sentence), self.conversion(sentence.target), final=not request.draft)

    @property
    def attends(self) -> bool:
        """Whether the model tells which source tokens it translates, by a head that was trained for it; see ``stream``."""
        return self.decoder.guided

    def _prepared(self, request: TranslationRequest) -> SentenceTranslation:
        """Divide a sentence into parts that the model can read."""
        text, language, drafted = request.sentence.text, request.sentence.language, request.drafted
        target = target_or_own(request.target, self.languages)
        whole, after_neighbours = not request.draft, not request.draft or drafted is None
        parts = self.parts(
            text, language, target, request.glossary, complete=whole, neighbours=after_neighbours, before=request.before
        )
        if drafted is not None:
            steady_ids = self.sources(drafted.source, language, self.target_code(target))
            steady = steady_sources([part.ids for part in parts], steady_ids)
            parts = [replace(part, steady=source) for part, source in zip(parts, steady, strict=True)]
        separator = " " if sets_sentences_apart(target) else ""
        return SentenceTranslation(request, target, parts, SentenceText(self.tokenizer, separator))

    def _events(self, sentence: SentenceTranslation) -> Iterator[TargetText | Translation]:
        """Translate part by part and add the tokens to the text; the end token of the last part ends the sentence."""
        for number in range(len(sentence.parts)):
            part = sentence.begin(number)
            wording = self.wording(part.terms, sentence.target)
            for token in self._tokens(sentence, part, wording):
                if isinstance(token, Rewind):
                    sentence.text.rewind(token.kept)
                    continue
                sentence.text.push(token)
                if token.last:
                    sentence.end(self._attention(sentence))
                yield sentence.event(complete=token.last and sentence.is_last)
            if wording is not None:
                sentence.missed += wording.missing([token.id for token in sentence.text.part])
        yield sentence.translation()

    def _attention(self, sentence: SentenceTranslation) -> NDArray[np.float32] | None:
        """The attention of a part of a draft over its source, [tokens, S]; None if it is not asked for, or the part was not searched or cut."""
        tokens, state = sentence.text.part, sentence.state
        if sentence.drafted is None or state is None or tokens[-1].truncated:
            return None
        return self.decoder.attention(state, [self.generation.start_token, *(token.id for token in tokens[:-1])])

    def _tokens(
        self, sentence: SentenceTranslation, part: SourcePart, wording: Wording | None
    ) -> Iterator[Token | Rewind]:
        """The tokens of a part: given ones, or those of a search; after a neighbour, or alone."""
        if part.given:
            return iter([*given(part.given), Token(self.generation.end_token, 0.0, last=True)])
        if part.retry is not None:
            lost, instead = part.retry
            first = self._tokens(sentence, replace(part, retry=None), wording)
            return keep(
                first,
                self._tokens(sentence, instead, self.wording(instead.terms, sentence.target)),
                partial(self._matches, lost),
            )
        tokens = translate(self._plan(sentence, part, wording))
        if part.alone is None:
            return tokens
        alone = self._plan(sentence, part.alone, self.wording(part.alone.terms, sentence.target))
        return follow_neighbour(tokens, translate(alone), part.margin)

    def _matches(self, pattern: re.Pattern[str], tokens: Sequence[Token]) -> bool:
        return pattern.match(self.tokenizer.decode([token.id for token in tokens])) is not None

    def _plan(self, sentence: SentenceTranslation, part: SourcePart, wording: Wording | None) -> PartTranslation:
        """How a part is searched, what is done if that fails, what is repaired, and what is cached."""
        draft, drafted = sentence.request.draft, sentence.drafted
        stopwatch = Stopwatch(self.options.time_limit_s or math.inf)
        beams, most = min(sentence.request.beams or sys.maxsize, self.generation.beams), self.generation.max_tokens
        if draft:
            beams, most = 1, draft_limit(len(part.ids), most)
        options = replace(self.generation, beams=beams, max_tokens=most)
        limit = length_limit(len(part.ids), self.options.max_length_factor, options.max_tokens)
        preferred = drafted.shown(sentence.number) if drafted is not None else ()
        request = SearchRequest(
            self.decoder, part.ids, options, part.begun, preferred, sentence.started, stopwatch.expired
        )
        of_glossary = wording and wording.of_glossary
        plan = PartTranslation(
            replace(request, options=replace(options, max_tokens=limit)),
            partial(self._search, None if self.attends else of_glossary),
            LoopGuard(part.ids, self.tokenizer.is_plain, self.tokenizer.is_word),
            stopwatch,
            most_searches=1 if draft else 3 if options == self.generation else 2,
            cache=self.cache if drafted is None else SentenceCache(0),  # their attention is known of a search only
            key=(part.ids, part.begun, wording and wording.terms) if part.begun or wording else part.ids,
            remembers=not draft and options == self.generation,
        )
        if draft:  # its numbers stay as they are, and without a model that attends so do the terms
            wording = of_glossary if self.attends else None
        if wording is not None:
            plan.repaired = Repair(replace(request, options=replace(options, beams=1)), wording, lambda: sentence.state)
            any_token = self.attends and of_glossary is not None
            plan.uncertain = (lambda token: True) if any_token else wording.uncertain
        return plan

    def _search(self, wording: Wording | None, request: SearchRequest) -> Iterator[Token]:
        if request.options.beams > 1:
            return beam_search(request)
        return greedy(request) if wording is None else TermSearch(request, wording).tokens()

    def translate(self, text: str, *, source: str | None = None, target: str | None = None) -> str:
        """Translate ``text`` and return the whole translation; languages default to those that the model names.

        Raises:
            UsageError, ModelError, DecodingStoppedError: see ``stream``.
        """
        language = self.languages[0]
        if source is not None and differs(source, language):
            raise UsageError(f"this model does not translate from {source!r}; it translates only from {language!r}")
        return translated(self.stream(TranslationRequest(SourceSentence(0, source or language or "en", text), target)))
