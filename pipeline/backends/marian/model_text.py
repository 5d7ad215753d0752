"""What a translation model makes of text: its languages, the parts of a source as token ids, the terms in each part."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...core import SteadySource, fit, split_sentences
from ...errors import UsageError
from ...glossary import Glossary, Match, Term
from ...languages import MARKS, check_script, choose_code, final_marks, language_tag, letters, needed_conversion
from ...languages.rules import rules
from .decode.decoder import Decoder
from .decode.generation import GenerationOptions
from .decode.tokenizer import MarianTokenizer
from .preparation import ALL_RULES, TextRule, capitalised, prepared, written
from .terms import stand_ins
from .terms.literals import Literal, literals, with_named_currencies
from .terms.source_terms import SourceTerm, Speller, terms_in
from .terms.term_search import Wording

if TYPE_CHECKING:
    from ...languages import Convert

UNDETERMINED = "und"
"""ISO 639-2 code for an undetermined language."""
# Words of a sentence that is translated after a neighbour, and of one that is translated alone as well; see docs/benchmarks.md.
_SHORT, _ALWAYS = 5, 2
# Words of the sentence before, which takes as much time as one that is translated.
_NEAR = 20
# A translation of fewer words than this share of the source's has probably left something out.
_LEAST_TRANSLATED = 0.6
# Such as iPhone, which a sentence may begin with.
_CAMEL = re.compile(r"\b[a-z]+[A-Z]")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class SourcePart:
    """What the model translates at once."""

    ids: tuple[int, ...]  # source tokens, with the target code and the end token
    terms: tuple[SourceTerm, ...] = ()  # the terms of a glossary and the literals in it
    steady: SteadySource = field(default_factory=SteadySource)
    begun: tuple[int, ...] = ()  # target tokens before the translation, which are not shown: those of a neighbour
    given: tuple[int, ...] = ()  # the whole translation as target tokens, if the model is not needed for it
    alone: SourcePart | None = None  # the part without a neighbour
    margin: float | None = None  # how much likelier it must be than ``alone``: log-probability, mean of the tokens
    # What its translation must not be, and the part whose translation is taken if it is.
    retry: tuple[re.Pattern[str], SourcePart] | None = None
    capital: bool = False  # whether it begins with a capital, which its translation then has as well

    def after(self, before: tuple[int, ...], begun: tuple[int, ...], margin: float | None = None) -> SourcePart:
        """The part after a sentence and its translation; see ``ModelText.neighbour``."""

        def moved(tokens: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(len(before) + token for token in tokens)

        terms = tuple(replace(term, tokens=moved(term.tokens), inside=moved(term.inside)) for term in self.terms)
        return SourcePart((*before, *self.ids), terms, begun=begun, alone=self, margin=margin, capital=self.capital)


def target_or_own(target: str | None, languages: tuple[str | None, str | None]) -> str:
    """``target``, by default the language that a model's files name."""
    return languages[1] or UNDETERMINED if target is None else target


class ModelText:
    """What ``MarianModel`` knows of text."""

    tokenizer: MarianTokenizer
    decoder: Decoder
    generation: GenerationOptions
    languages: tuple[str | None, str | None]
    """(source, target) as two-letter codes from the model's files; None if the files do not name one."""
    scripts: tuple[str | None, str | None]
    """(source, target) scripts from the model's files, such as Hant (ISO 15924); None if not named."""
    max_source_tokens: int
    knows_print_only: bool
    """Whether sentences are translated as they would be printed; see ``pipeline.backends.marian.preparation.written``."""
    rules: frozenset[TextRule] = ALL_RULES
    """The rules that are applied to texts."""
    _spellers: dict[str, Speller]
    """Target language → how its terms are spelled."""

    def target_code(self, target: str) -> str | None:
        """Return the target code that a multilingual model needs before the source; None for a bilingual model."""
        codes: list[str] = self.tokenizer.target_codes
        if codes and target == UNDETERMINED:
            raise UsageError(
                f"this model translates into several languages; its targets are {', '.join(codes)}: "
                "choose one with --target"
            )
        if codes:
            return choose_code(target, codes)
        language = self.languages[1]
        if differs(target, language):
            raise UsageError(f"this model does not translate into {target!r}; it translates only into {language!r}")
        check_script(target, self.scripts[1])
        return None

    def conversion(self, target: str) -> Convert | None:
        """Return the conversion of translations into the script of ``target``; None if the model writes that script."""
        code = self.target_code(target)
        return needed_conversion(target, language_tag(code).script if code else self.scripts[1])

    def writing(self, target: str) -> Callable[[str], str]:
        """Rewrites the given translation of a term into ``target`` in the script that the model writes."""
        traditional = language_tag(target).script == "Hant" and self.conversion(target) is not None
        if not traditional:
            return str
        from ...languages import simplified

        return simplified

    def check_languages(self, source: str, target: str) -> None:
        """Raise UsageError if the model's files name a different language pair."""
        for asked, has, side in ((source, self.languages[0], "from"), (target, self.languages[1], "into")):
            if differs(asked, has) and not (side == "into" and self.tokenizer.target_codes):
                raise UsageError(
                    f"the translation model translates from {self.languages[0] or 'an unnamed language'} into "
                    f"{self.languages[1] or 'an unnamed language'}, not {side} {asked}; "
                    "choose the languages with --source and --target, or another translation model"
                )
        self.target_code(target)

    def sources(self, text: str, language: str, code: str | None) -> list[tuple[int, ...]]:
        """The ids of the parts of a text; ``code`` is put before each, see ``target_code``."""
        return [ids for _, _, _, ids in self._split(text, language, code)]

    def parts(
        self,
        text: str,
        language: str,
        target: str,
        glossary: Glossary | None = None,
        *,
        complete: bool = False,
        neighbours: bool = False,
        before: Sequence[tuple[str, str]] = (),
    ) -> list[SourcePart]:
        """Split a text into sentences of at most ``max_source_tokens``. Blank ones are left out.

        ``complete``: whether the text is that of a whole sentence, which may be given a mark at its end. ``neighbours``: whether a
        short sentence is put after one whose translation is known. ``before``: see ``TranslationRequest``.
        """
        code = self.target_code(target)
        first = 0 if code is None else 1  # token of text
        may_follow = neighbours and code is None and TextRule.NEIGHBOUR in self.rules
        source_parts = []
        for heard, read, words, ids in self._split(text, language, code, complete=complete):
            if neighbours and (given := self._given(prepared(heard, language), language, target)):
                source_parts.append(SourcePart(ids, given=given))
                continue
            terms = self._terms(heard, read, words, glossary, language, target, first)
            part = SourcePart(ids, terms, capital=heard[:1].isupper() and not _CAMEL.search(heard))
            margin = rules(language).neighbour_margin
            if may_follow and _is_short(read, questions=margin > 0):
                length = len(read.split())
                goes_on = length > 1 and rules(language).goes_on.match(read)
                if neighbour := self.neighbour(language, target, before if goes_on else ()):
                    part = part.after(*neighbour, margin if length > (1 if margin else _ALWAYS) else None)
            retry = self._retry(heard, language, target, glossary) if complete else None
            source_parts.append(replace(part, retry=retry))
        return source_parts

    def _retry(
        self, text: str, language: str, target: str, glossary: Glossary | None
    ) -> tuple[re.Pattern[str], SourcePart] | None:
        """What the translation of a text must not be, and the part whose translation is taken if it is; None: it is translated once."""
        retries = rules(language).retries.get(language_tag(target).language, ())
        applies = self.knows_print_only and TextRule.RETRIES in self.rules
        retry = next((one for one in retries if one.source.match(text)), None) if applies else None
        lost = retry and (retry.lost or rules(target).stated)
        if retry is None or lost is None:
            return None
        if not retry.given:
            first, *rest = text.split(" ", 1)
            text = " ".join((retry.before, self.tokenizer.with_capitals(first.lower()), *rest))
        (part, *more) = self.parts(text, language, target, glossary)
        known = self._followed([(retry.before, retry.given)], target) if retry.given else None
        return None if more else (lost, part.after(*known) if known else part)

    def _given(self, text: str, language: str, target: str) -> tuple[int, ...]:
        """The target tokens of a text that needs no model."""
        phrase = rules(language).phrases.get(language_tag(target).language, {}).get(letters(text))
        if phrase and self.knows_print_only and TextRule.PHRASES in self.rules:
            return self.speller(target).copy(phrase + final_marks(text))
        if TextRule.COPIES not in self.rules:
            return ()
        made = rest = text
        for literal in reversed(self._literals(text, language, target)):
            form = self.writing(target)(literal.term.targets[0])
            made = made[: literal.start] + form + made[literal.end :]
            rest = rest[: literal.start] + rest[literal.end :]
        return () if any(map(str.isalpha, rest)) else self.speller(target).copy(made)

    def _literals(self, text: str, language: str, target: str) -> tuple[Literal, ...]:
        if TextRule.LITERALS not in self.rules:
            return ()
        return literals(text, target, language, clock=TextRule.CLOCK_TIMES in self.rules)

    def neighbour(
        self, language: str, target: str, before: Sequence[tuple[str, str]] = ()
    ) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """What to put before a short sentence, as source tokens, and its translation as target tokens.

        Students have seen few short sentences alone, and go on with what often follows ("Obrigado por enviar uma edição."). The one
        ``before`` follows the known one: it tells who "está cansada".
        """
        known = rules(language).neighbour, rules(target).neighbour
        if not (self.knows_print_only and all(known)):
            return None
        near = [pair for pair in before[-1:] if _is_near(*pair)]
        return self._followed([known, *near], target) or self._followed([known], target)

    def _followed(
        self, pairs: Sequence[tuple[str, str]], target: str
    ) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Sentences as source tokens, and their translations as target tokens; None if the model cannot write these."""
        sources, given = map(" ".join, zip(*pairs, strict=True))
        begun = self.speller(target).spell(given)
        return None if begun is None else (tuple(self.tokenizer.encode(sources)[:-1]), begun)

    def _split(
        self, text: str, language: str, code: str | None, *, complete: bool = False
    ) -> Iterator[tuple[str, str, tuple[Literal, ...], tuple[int, ...]]]:
        """The parts of a text: as they are in it, as the tokenizer takes them, with what stands for words, and their ids."""

        def fits(text: str) -> bool:
            return len(self.tokenizer.encode(self._readable(text, language)[0], code)) <= self.max_source_tokens

        nothing = tuple(self.tokenizer.encode("", code))
        # Lone surrogates are not characters and cannot be encoded.
        for sentence in split_sentences(_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text), language):
            for part in map(str.strip, fit(self._as_printed(sentence, language, complete=complete), fits)):
                read, words = self._readable(part, language)
                ids = tuple(self.tokenizer.encode(read, code))
                if ids != nothing:  # from an empty source the model would hallucinate text
                    yield part, read, words, ids

    def _as_printed(self, sentence: str, language: str, *, complete: bool) -> str:
        """A sentence as it would be printed, if the model knows print only, and with a capital."""
        capitals = TextRule.CAPITALS in self.rules
        if self.knows_print_only:
            sentence = self.tokenizer.with_capitals(sentence) if capitals else sentence
            sentence = written(sentence, language, complete=complete, rules=self.rules)
        return capitalised(sentence, language_tag(language).language) if capitals else sentence

    def _readable(self, text: str, language: str) -> tuple[str, tuple[Literal, ...]]:
        """A part in signs that the vocabulary has, and the literals in it that stand for words."""
        text = prepared(text, language, self.scripts[0], capitals=TextRule.CAPITALS in self.rules)
        near, knows = self.tokenizer.without_unknown_signs, self.tokenizer.knows
        if self.knows_print_only and TextRule.CURRENCIES in self.rules:
            text = with_named_currencies(text, language, knows)
        if self.knows_print_only and TextRule.STAND_INS in self.rules:
            return stand_ins.readable(text, near, knows)
        return near(text), ()

    def _terms(
        self,
        heard: str,
        text: str,
        words: Sequence[Literal],
        glossary: Glossary | None,
        language: str,
        target: str,
        first: int,
    ) -> tuple[SourceTerm, ...]:
        """The terms of a glossary and the literals in a part. ``first``: the number of its first token of text."""
        matches: list[Match] = [] if glossary is None else list(self._terms_as_read(heard, text, glossary))
        for more in (words, self._literals(text, language, target)):
            matches += [new for new in more if all(new.end <= old.start or old.end <= new.start for old in matches)]
        pieces = self.tokenizer.source_pieces(text) if matches else []
        languages = language_tag(language).language, language_tag(target).language
        return terms_in(text, pieces, matches, self.writing(target), first=first, languages=languages)

    def _terms_as_read(self, heard: str, text: str, glossary: Glossary) -> Iterator[Match]:
        """The terms of a glossary in a part. They are spelled as they are heard, in traditional characters for example."""
        done = 0
        for match in glossary.found_in(heard):
            form = heard[match.start : match.end]
            if len(heard) == len(text):
                yield match
            elif (start := text.find(self.tokenizer.without_unknown_signs(form), done)) >= 0:
                done = start + len(self.tokenizer.without_unknown_signs(form))
                yield Match(start, done, match.term)

    def wording(self, terms: Sequence[SourceTerm], target: str) -> Wording | None:
        """How the terms of a part are written in ``target``; None if none is."""
        if not self.decoder.aligned:  # literals could not be repaired
            terms = [term for term in terms if not term.literal]
        return Wording(tuple(terms), self.speller(target)) if terms else None

    def unspellable(self, glossary: Glossary, target: str | None = None) -> tuple[Term, ...]:
        """The terms whose translation the model's vocabulary cannot write; they are never kept."""
        target = target_or_own(target, self.languages)
        speller, writing = self.speller(target), self.writing(target)
        written = ((term, term.source if term.target is None else writing(term.target)) for term in glossary.terms)
        return tuple(term for term, text in written if speller.spell(text) is None)

    def speller(self, target: str) -> Speller:
        if target not in self._spellers:
            self._spellers[target] = Speller(self.tokenizer, target, self.decoder.can_write)
        return self._spellers[target]


def _is_near(before: str, translation: str) -> bool:
    """Whether a short sentence may go on from another: a long one would outweigh it, and what its translation lacks would follow."""
    words = len(before.split())
    return words <= _NEAR and len(translation.split()) >= _LEAST_TRANSLATED * words


def _is_short(text: str, *, questions: bool = False) -> bool:
    """Whether a text is a statement, or a question, of a few words. Some languages' questions lose their form after a statement."""
    ends = text[-1:] in MARKS and (questions or text[-1:] not in "?？")
    return len(text.split()) <= _SHORT and ends and any(map(str.isalpha, text))


def differs(asked: str, own: str | None) -> bool:
    """Whether ``asked`` differs from ``own``, the language that the model's files name; False if they name none."""
    return own is not None and own != language_tag(asked).language
