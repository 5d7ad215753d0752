"""A loaded Marian model: tokenizer, decoder and generation settings of one model directory."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...core import (
    Confidence,
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
from .decode.decoder import Decoder
from .decode.generation import GenerationOptions, SearchRequest, Stopwatch
from .decode.parts import ModelParts
from .decode.tokenizer import MarianTokenizer
from .model_text import ModelText, SourcePart, differs, target_or_own
from .search.beams import beam_search, greedy
from .search.recovery import LoopGuard, Rewind, draft_limit, recovering, without_rewinds
from .search.sentence_text import RunningSearch, SentenceCache, SentenceText, translated
from .terms.term_repair import Repair, repairing
from .terms.term_search import TermSearch, Wording, given


def _is_better(after: Sequence[Token | Rewind], alone: Sequence[Token | Rewind], margin: float) -> bool:
    """Whether a translation after the neighbour is better than one without it: likelier by the margin and the share or, where a
    margin is asked for, so much shorter that the other has something invented ("Obrigado por enviar uma edição." for "Thank you for
    coming."), and less likely by no more than the margin for each token.
    """
    likelihood, other = _likelihood(after), _likelihood(alone)
    if not margin:
        return likelihood > other
    fewer = len(list(without_rewinds(alone))) - len(list(without_rewinds(after)))
    return likelihood > max(other + margin, _SHARE * other) or (
        fewer >= _INVENTED and likelihood > other - margin * fewer
    )


def _likelihood(tokens: Iterable[Token | Rewind]) -> float:
    """The mean log-probability of the tokens of a translation."""
    found = [token.log_probability for token in without_rewinds(tokens)]
    return sum(found) / len(found) if found else -math.inf


# Tokens; and a share of the log-probability. Of 508 texts of two to five English words that a neighbour changes (Tatoeba), 62 are better
# and 30 worse with both, 79 and 49 by the margin and the tokens alone.
_INVENTED, _SHARE = 2, 0.6


def _load_exported(directory: Path, options: NmtConfig) -> ModelParts:
    from .decode import marian  # a run of students needs none of it

    return marian.load(directory, options)


FAMILIES: tuple[Callable[[Path, NmtConfig], ModelParts | None], ...] = (students.load, _load_exported)
"""The families of models: the first one that knows the files of a directory loads it. Then those of other packages are asked."""
_MORE_FAMILIES = Table("families", "family", {})


class MarianModel(ModelText):
    """A loaded model. Safe to use from several threads at once; each translation has its own state."""

    def __init__(
        self,
        tokenizer: MarianTokenizer,
        decoder: Decoder,
        generation: GenerationOptions,
        languages: tuple[str | None, str | None],
        max_source_tokens: int,
        *,
        options: NmtConfig | None = None,
        scripts: tuple[str | None, str | None] = (None, None),
        knows_print_only: bool = False,
    ) -> None:
        self.tokenizer, self.decoder, self.generation = tokenizer, decoder, generation
        self.languages, self.scripts = languages, scripts
        self.max_source_tokens = max_source_tokens
        self.options = options or NmtConfig()
        """Of these, ``generation`` has the search's, unless the model's files say otherwise."""
        self.knows_print_only = knows_print_only
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
        return cls(**vars(parts), options=options)

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
        sentence, drafted = request.sentence, request.drafted
        target = target_or_own(request.target, self.languages)
        parts = self.parts(
            sentence.text,
            sentence.language,
            target,
            request.glossary,
            complete=not request.draft,
            neighbours=not request.draft or drafted is None,
        )
        if drafted is not None:
            known = self.sources(drafted.source, sentence.language, self.target_code(target))
            steady = steady_sources([part.ids for part in parts], known)
            parts = [replace(part, steady=of_it) for part, of_it in zip(parts, steady, strict=True)]
        events = self._events(request, target, parts)
        yield from rewritten(events, self.conversion(target), final=not request.draft)

    @property
    def attends(self) -> bool:
        """Whether the model tells which source tokens it translates, by a head that was trained for it; see ``stream``."""
        return self.decoder.guided

    def _events(
        self, request: TranslationRequest, target: str, parts: Sequence[SourcePart]
    ) -> Iterator[TargetText | Translation]:
        """Yield the translation of a sentence in several parts; each has an end token, and that of the last one ends the sentence."""
        if request.beams is not None and request.beams < 1:
            raise UsageError(f"beams is {request.beams}; expected at least 1")
        sentence, drafted = request.sentence, request.drafted
        missed: list[str] = []
        text, steady, shown = SentenceText(self.tokenizer, " " if sets_sentences_apart(target) else ""), 0, 0
        for number, part in enumerate(parts):
            if number and (alone := part.alone) and not text.part[-1].truncated:  # short: goes on from the one before
                before = parts[number - 1].alone or parts[number - 1]
                part = alone.after(before.ids[:-1], tuple(token.id for token in text.part[:-1]), part.margin)
            search, wording = RunningSearch(request.on_start), self.wording(part.terms, target)
            last = number == len(parts) - 1
            text.begin_part(capital=part.capital)
            for token in self._tokens(part, number, request, target, search, wording):
                if isinstance(token, Rewind):
                    text.rewind(token.kept)
                    continue
                text.push(token)
                shown = len(text.text)
                if token.last and drafted is not None and not request.draft:
                    drafted.follow(number, text.part)
                if token.last and drafted is not None and request.draft:
                    attention = self._attention(search, text.part)
                    draft = PartDraft(tuple(text.part), tuple(text.texts), target, part.steady, attention, last)
                    certain, visible = drafted.push(number, draft)
                    steady, shown = text.end(certain) if certain else steady, text.end(visible)
                elif token.last and last:
                    steady = shown
                complete = token.last and last
                yield TargetText(
                    sentence=sentence.sentence,
                    language=target,
                    text=text.text[:shown],
                    steady=steady if complete else 0,
                    tokens=text.written,
                    heard_s=sentence.heard_s,
                    complete=complete,
                )
            if wording is not None:
                found = wording.missing([one.id for one in text.part])
                missed += [term.name for term in found if not term.literal]
        yield Translation(
            sentence=sentence.sentence,
            language=target,
            text=text.text[:shown],
            confidence=Confidence.of([token.log_probability for token in text.tokens]) if text.tokens else None,
            truncated=any(token.truncated for token in text.tokens),
            searched_again=any(token.searched_again for token in text.tokens),
            guarded=sum(token.guarded for token in text.tokens),
            terms=tuple(term.name for part in parts for term in part.terms if not term.literal),
            missed_terms=tuple(missed),
            heard_s=sentence.heard_s,
        )

    def _attention(self, search: RunningSearch, tokens: Sequence[Token]) -> NDArray[np.float32] | None:
        """The attention of the tokens over the source, [tokens, S]; None without a search, or if it was cut."""
        if (state := search.state) is None or tokens[-1].truncated:
            return None
        return self.decoder.attention(state, [self.generation.start_token, *(token.id for token in tokens[:-1])])

    def _tokens(
        self,
        part: SourcePart,
        number: int,
        asked: TranslationRequest,
        target: str,
        search: RunningSearch,
        wording: Wording | None,
    ) -> Iterator[Token | Rewind]:
        """Yield the tokens of one part: from the cache or from a search that is checked."""
        if part.given:
            yield from given(part.given)
            yield Token(self.generation.end_token, 0.0, last=True)
            return
        if part.margin is not None and part.alone is not None:
            ways = (replace(part, margin=None), wording), (part.alone, self.wording(part.alone.terms, target))
            after, other = (list(self._tokens(way, number, asked, target, search, terms)) for way, terms in ways)
            yield from after if _is_better(after, other, part.margin) else other
            return
        source, draft, drafted = part.ids, asked.draft, asked.drafted
        key = (source, part.begun, wording and wording.terms) if part.begun or wording else source
        # The attention of a draft is known of a search only.
        if not (draft and drafted is not None) and (cached := self.cache.get(key)) is not None:
            yield from cached
            return
        stopwatch = Stopwatch(self.options.time_limit_s or math.inf)
        generation = self._generation(source, asked)
        preferred = drafted.shown(number) if draft and drafted is not None else ()
        request = SearchRequest(self.decoder, source, generation, part.begun, preferred, search, stopwatch.expired)
        tokens = self._searched(request, search, wording, draft=draft)
        found: list[Token | Rewind] = []
        while True:
            with stopwatch:  # exclude the time that the consumer takes between two tokens
                token = next(tokens, None)
            if token is None:
                return
            if (alone := part.alone) is not None and not found and isinstance(token, Token) and token.last:
                # Nothing follows the neighbour.
                yield from self._tokens(alone, number, asked, target, search, self.wording(alone.terms, target))
                return
            # Cache withdrawn tokens too. A sentence then gives the same deltas whether it is cached or not, and a
            # resumed run writes the same files.
            found.append(token)
            ended = isinstance(token, Token) and token.last
            if ended and not draft and generation == self.generation and not stopwatch.expired():
                self.cache.put(key, tuple(found))
            yield token

    def _searched(
        self, request: SearchRequest, search: RunningSearch, wording: Wording | None, *, draft: bool
    ) -> Iterator[Token | Rewind]:
        """Yield the tokens of a search, which is checked for loops and for missing terms."""
        terms = None if wording is None else wording.of_glossary
        tokens = recovering(
            partial(self._search, None if self.attends else terms),
            request,
            LoopGuard(request.source, self.tokenizer.is_plain, self.tokenizer.is_word),
            length_factor=self.options.max_length_factor,
            retry=not draft,
            widen=request.options == self.generation,
        )
        if draft:
            wording = terms if self.attends else None
        if wording is None:
            return tokens
        single = replace(request, options=replace(request.options, beams=1))
        replaces = self.attends and terms is not None
        return repairing(tokens, Repair(single, wording, search), lambda token: replaces or wording.uncertain(token))

    def _generation(self, source: Sequence[int], asked: TranslationRequest) -> GenerationOptions:
        beams, most = min(asked.beams or sys.maxsize, self.generation.beams), self.generation.max_tokens
        if asked.draft:
            beams, most = 1, draft_limit(len(source), most)
        return replace(self.generation, beams=beams, max_tokens=most)

    def _search(self, wording: Wording | None, request: SearchRequest) -> Iterator[Token]:
        if request.options.beams > 1:
            return beam_search(request)
        return greedy(request) if wording is None else TermSearch(request, wording).tokens()

    def translate(self, text: str, *, source: str | None = None, target: str | None = None) -> str:
        """Translate ``text`` and return the whole translation; languages default to those that the model names.

        Raises:
            UsageError, ModelError, DecodingStoppedError: see ``stream``.
        """
        own = self.languages[0]
        if source is not None and differs(source, own):
            raise UsageError(f"this model does not translate from {source!r}; it translates only from {own!r}")
        return translated(self.stream(TranslationRequest(SourceSentence(0, source or own or "en", text), target)))
