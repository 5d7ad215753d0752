"""The parts of a source text: sentences that fit the model, as token ids, with the glossary terms in each."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.glossary.terms import Glossary
from pipeline.languages import language_tag
from pipeline.nmt.literals import literals
from pipeline.nmt.preparation import capitalised, prepared
from pipeline.nmt.terms import SourceTerm, terms_in
from pipeline.nmt.tokenizer import MarianTokenizer
from pipeline.sentences.splitting import fit, split_sentences

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class SourcePart:
    """What the model translates at once."""

    heard: str
    """The text as it is in the sentence."""
    text: str
    """The text as the tokenizer takes it."""
    ids: tuple[int, ...]
    """Source tokens, with the target code and the end token."""


def source_parts(
    text: str,
    language: str,
    tokenizer: MarianTokenizer,
    code: str | None,
    script: str | None,
    most_tokens: int,
    as_printed: Callable[[str], str] = str,
) -> list[SourcePart]:
    """Split a text into sentences of at most ``most_tokens``. Blank ones are left out.

    ``as_printed`` changes a sentence to what the model knows best; see ``preparation.written``. ``code`` is put before each sentence; see ``MarianModel.target_code``. ``script``: that of the model's source language.
    """

    def written(text: str) -> str:
        return tokenizer.without_unknown_signs(prepared(text, language, script))

    def fits(text: str) -> bool:
        return len(tokenizer.encode(written(text), code)) <= most_tokens

    # Lone surrogates are not characters and cannot be encoded.
    text = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
    nothing = tokenizer.encode("", code)
    found = map(as_printed, split_sentences(text, language))
    wholes = [capitalised(whole, language_tag(language).language) for whole in found]
    heard = [part.strip() for whole in wholes for part in fit(whole, fits)]
    texts = [(part, written(part)) for part in heard]
    parts = [SourcePart(part, text, tuple(tokenizer.encode(text, code))) for part, text in texts]
    # From an empty source the model would hallucinate text.
    return [part for part in parts if part.ids != tuple(nothing)]


def terms_of_parts(
    parts: Sequence[SourcePart],
    glossary: Glossary | None,
    tokenizer: MarianTokenizer,
    source: str,
    target: str,
    code: str | None,
    written: Callable[[str], str] = str,
) -> list[tuple[SourceTerm, ...]]:
    """The terms of a glossary and the literals in each part; empty if no part has any.

    ``written`` rewrites a translation in the script that the model writes.
    """
    found = []
    for part in parts:
        # Terms are spelled as they are heard, in traditional characters for example. The spans are the same in the prepared
        # text if only characters were replaced.
        same = len(part.heard) == len(part.text)
        matches = () if glossary is None else glossary.found_in(part.heard if same else part.text)
        numbers = [
            one
            for one in literals(part.text, target, source)
            if all(one.end <= two.start or two.end <= one.start for two in matches)
        ]
        pieces = tokenizer.source_pieces(part.text) if matches or numbers else []
        first = 0 if code is None else 1
        terms = terms_in(part.text, pieces, matches, written, first=first)
        found.append((*terms, *terms_in(part.text, pieces, numbers, written, first=first)))
    return found if any(found) else []
