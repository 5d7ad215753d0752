"""A loaded Marian model: tokenizer, decoder and generation settings of one model directory."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..captions.policy import rewritten
from ..errors import UsageError
from ..events import SourceSentence, TargetText, TargetToken, Translation
from ..glossary.terms import Glossary
from ..languages import known_language, language_tag, sets_sentences_apart
from .commitment import CertainSource, Commitment, PartDraft, certain_sources
from .decoder import Decoder
from .decoders import load_decoder
from .generation import GenerationOptions, OnStart, Stopwatch, Token
from .layout import find_layout
from .model_text import UNDETERMINED, ModelText, differs
from .options import NmtConfig
from .recovery import Rewind, draft_limit, recovering
from .search import beam_search, greedy
from .settings import (
    check_separate_vocabulary,
    check_vocabulary,
    decoding_settings,
    generation_options,
    integer,
    read_json,
)
from .students import MAX_SOURCE_TOKENS, find_student, load_student, student_options
from .term_repair import Repair, repairing
from .term_search import Wording, search_with_terms
from .terms import SourceTerm
from .tokenizer import MarianTokenizer
from .written import PartText, RunningSearch, SentenceCache, Written, as_events, translated


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
        if (student := find_student(directory)) is not None:
            tokenizer, decoder = load_student(student, options.threads, options.weights)
            generation = student_options(tokenizer, options)
            decoder.check([2, tokenizer.end_token], generation.start_token, generation.end_token)
            known = (student.languages, MAX_SOURCE_TOKENS)
            return cls(tokenizer, decoder, generation, *known, options=options, knows_print_only=True)
        layout = find_layout(directory, options.file_suffix)
        tokenizer = MarianTokenizer.load(directory)
        config = read_json(directory / "config.json", required=True)
        settings = decoding_settings(config, read_json(directory / "generation_config.json", required=False))
        names = read_json(directory / "tokenizer_config.json", required=False)
        check_separate_vocabulary(names, directory)
        check_vocabulary(layout.vocabulary, tokenizer, directory)
        positions = max(2, integer(config, "max_position_embeddings", 512, directory))
        generation = generation_options(settings, tokenizer, options, positions, directory)
        decoder = load_decoder(layout, options.threads)
        scores = decoder.check([tokenizer.end_token], generation.start_token, generation.end_token)
        check_vocabulary(scores, tokenizer, directory)
        source, target = names.get("source_lang"), names.get("target_lang")
        return cls(
            *(tokenizer, decoder, generation, (known_language(source), known_language(target)), positions),
            options=options,
            scripts=(_script_of(source), _script_of(target)),
        )

    def stream(
        self,
        sentence: SourceSentence,
        target: str | None = None,
        on_start: OnStart | None = None,
        beams: int | None = None,
        draft: bool = False,
        glossary: Glossary | None = None,
        commitment: Commitment | None = None,
    ) -> Iterator[TargetText | Translation]:
        """Translate a sentence, yielding its text after each target token and, at the end, its ``Translation``.

        ``target`` defaults to the language that the model's files name.
        ``on_start`` receives the state of each search before its first run, so that another thread can terminate it.
        ``beams`` can lower the number of hypotheses that the model was loaded with.
        ``draft`` makes it a draft of a sentence in progress: the search is greedy and its length is limited by the source's
        (``draft_limit``); if it fails, it is cut instead of repeated.
        ``glossary`` has terms of the source language and their translations; see ``pipeline.nmt.term_search``.

        The last text belongs to the end token, is ``complete``, and all of it is committed. If the sentence is searched
        again, what was yielded before is replaced. Text that is too long for the model, or has several sentences, is
        translated in parts. Text without tokens (blank or only zero-width characters) yields an empty ``Translation``.

        ``commitment``: the committed tokens of earlier drafts, with which the translation begins; only if the model ``appends``.
        What follows them is the result of the search from there, also if it is repeated because it looped. The last text of a
        ``draft`` is without what is not to be shown yet, and says how much of it is committed now.

        Raises:
            UsageError: see ``target_code``; ``beams`` is below 1.
            ModelError: ONNX Runtime could not run the model.
            DecodingStoppedError: a sentence's state was terminated.
        """
        target = self.languages[1] or UNDETERMINED if target is None else target
        sources, terms = self.sources_and_terms(sentence.text, sentence.language, target, glossary, complete=not draft)
        certain: list[CertainSource] = []
        if commitment is not None:
            known = self.sources(commitment.source, sentence.language, self.target_code(target))
            certain = certain_sources(sources, known)
        written = self.written(sources, target, on_start, beams, draft, commitment, certain, terms)
        final = commitment is None or not draft
        yield from rewritten(as_events(sentence, written, target), self.conversion(target), final=final)

    @property
    def appends(self) -> bool:
        """Whether the model tells which source tokens it translates, by a head that was trained for it; see ``stream``."""
        return self.decoder.guided

    def written(
        self,
        sources: Sequence[tuple[int, ...]],
        target: str,
        on_start: OnStart | None,
        beams: int | None,
        draft: bool = False,
        commitment: Commitment | None = None,
        certain: Sequence[CertainSource] = (),
        terms: Sequence[tuple[SourceTerm, ...]] = (),
    ) -> Iterator[Written]:
        """Yield the translation of one sentence, which may be given in several parts, token by token.

        Each part has an end token; only the one of the last part ends the sentence.

        ``commitment``: the tokens with which the parts begin; a ``draft`` adds to them. ``certain``: how much of each part of
        the source is committed. ``terms``: those of each part that has any, or of none.
        """
        if beams is not None and beams < 1:
            raise UsageError(f"beams is {beams}; expected at least 1")
        if commitment is not None:
            sources = commitment.laid_out(sources)
        truncated = again = False
        before: tuple[Token, ...] = ()  # of the parts before
        text, written = "", tuple[TargetToken, ...]()
        missed: tuple[str, ...] = ()
        committed = 0
        for part, source in enumerate(sources):
            found = PartText(self.tokenizer, text, written, " " if text and sets_sentences_apart(target) else "")
            known = () if commitment is None else commitment.tokens(part)
            search = RunningSearch(on_start)
            cached = not draft or commitment is None  # the attention is known of a search only
            wording = self.wording(terms[part] if part < len(terms) else (), target)
            preferred = commitment.draft(part) if draft and commitment is not None else ()
            for token in self._tokens(source, search, beams, draft, known, wording, preferred, cached=cached):
                if isinstance(token, Rewind):
                    found.rewind(token.kept)
                    continue
                found.push(token)
                shown = found.text
                truncated |= token.truncated
                again |= token.searched_again
                last = token.last and part == len(sources) - 1
                ended = token
                if token.last:
                    ended = dataclasses.replace(
                        token, last=last, truncated=last and truncated, searched_again=last and again
                    )
                if token.last and draft and commitment is not None:
                    attention = None if token.truncated else self._attention(search, found.ids, len(known))
                    of_part = certain[part] if part < len(certain) else CertainSource()
                    newest = PartDraft(tuple(found.tokens), tuple(found.texts), target, of_part, attention, last)
                    certain_tokens, shown_tokens = commitment.push(part, newest)
                    committed = found.end(certain_tokens) if certain_tokens else committed
                    shown = shown[: found.end(shown_tokens)]
                elif last:
                    committed = len(shown)
                if token.last and wording is not None:
                    missed += tuple(term.name for term in wording.missing(found.ids) if not term.literal)
                if last:
                    seen = tuple(term.name for each in terms for term in each if not term.literal)
                    tokens = (*before, *found.tokens[:-1], ended)
                    yield Written(ended, shown, found.written, committed, tokens, seen, missed)
                else:
                    yield Written(ended, shown, found.written)
            text, written = found.text, found.written
            before += found.followed()

    def _attention(self, search: RunningSearch, ids: Sequence[int], known: int) -> NDArray[np.float32] | None:
        """The attention over the source of the tokens after the first ``known``, [tokens, S]; None without a search."""
        if (state := search.state) is None:
            return None
        history = [self.generation.start_token, *ids[:-1]]
        self.decoder.reveal(state)
        self.decoder.truncate(state, known)
        return self.decoder.attention(state, history[known:])

    def _tokens(
        self,
        source: tuple[int, ...],
        on_start: OnStart | None,
        beams: int | None,
        draft: bool,
        committed: Sequence[Token] = (),
        wording: Wording | None = None,
        preferred: Sequence[int] = (),
        *,
        cached: bool = True,
    ) -> Iterator[Token | Rewind]:
        """Yield the tokens of one sentence: from the cache, or generated within the time limit and checked.

        The ``committed`` tokens come first. ``preferred``: see ``greedy``. ``cached``: whether the cache may be used.
        """
        key = source if wording is None else (source, wording.terms)
        if cached and not committed and (known := self.cache.get(key)) is not None:
            yield from known
            return
        yield from committed
        if committed and (committed[-1].last or not source):
            if not committed[-1].last:
                yield Token(self.generation.end_token, 0.0, last=True)
            return
        begun = [token.id for token in committed]
        stopwatch = Stopwatch(self.options.time_limit_s or math.inf)
        options = dataclasses.replace(self.generation, beams=min(beams or sys.maxsize, self.generation.beams))
        if draft:
            options = dataclasses.replace(options, beams=1, max_tokens=draft_limit(len(source), options.max_tokens))
        running = RunningSearch(on_start)
        tokens = recovering(
            lambda chosen: self._search(source, chosen, running, stopwatch.expired, begun, wording, preferred),
            options,
            source,
            self.tokenizer.is_plain,
            self.tokenizer.is_word,
            length_factor=self.options.max_length_factor,
            retry=not draft,
            widen=options == self.generation,
            expired=stopwatch.expired,
            committed=begun,
        )
        if wording is not None and not draft:
            single = dataclasses.replace(options, beams=1)
            repair = Repair(self.decoder, source, single, wording, running, stopwatch.expired, begun)
            tokens = repairing(tokens, repair, wording.uncertain)
        found: list[Token | Rewind] = []
        while True:
            with stopwatch:  # exclude the time that the consumer takes between two tokens
                token = next(tokens, None)
            if token is None:
                return
            # Cache withdrawn tokens too. A sentence then gives the same deltas whether it is cached or not, and a
            # resumed run writes the same files.
            found.append(token)
            ended = isinstance(token, Token) and token.last
            if ended and not draft and not begun and options == self.generation and not stopwatch.expired():
                self.cache.put(key, tuple(found))
            yield Rewind(len(begun) + token.kept) if isinstance(token, Rewind) else token

    def _search(
        self,
        source: tuple[int, ...],
        options: GenerationOptions,
        on_start: OnStart | None,
        expired: Callable[[], bool],
        committed: Sequence[int],
        wording: Wording | None,
        preferred: Sequence[int],
    ) -> Iterator[Token]:
        terms = None if wording is None else wording.of_glossary
        if terms is not None and options.beams == 1:
            return search_with_terms(self.decoder, source, options, terms, on_start, expired, committed=committed)
        if options.beams > 1:
            return beam_search(self.decoder, source, options, on_start, expired, committed=committed)
        return greedy(self.decoder, source, options, on_start, expired, committed=committed, preferred=preferred)

    def translate(self, text: str, *, source: str | None = None, target: str | None = None) -> str:
        """Translate ``text`` and return the whole translation; languages default to those that the model names.

        Raises:
            UsageError, ModelError, DecodingStoppedError: see ``stream``.
        """
        own = self.languages[0]
        if source is not None and differs(source, own):
            raise UsageError(f"this model does not translate from {source!r}; it translates only from {own!r}")
        return translated(self.stream(SourceSentence(0, source or own or "en", text), target))


def _script_of(code: object) -> str | None:
    return language_tag(code).script if isinstance(code, str) else None
