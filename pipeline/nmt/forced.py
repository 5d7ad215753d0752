"""A translation that is given instead of searched for: how likely a model finds it, and which words translate which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..languages import spaced
from .decode.recurrent import RecurrentDecoder
from .decode.tokenizer import SPACE
from .model import MarianModel
from .terms.mark_places import MOST_ALIGNED, Alignment
from .terms.markup import Fragment


@dataclass(frozen=True)
class ForcedTranslation:
    """What a model says of a translation, token by token, with the end token."""

    source: tuple[int, ...]
    """Source tokens."""
    tokens: tuple[int, ...]
    log_probabilities: NDArray[np.float64]
    """[tokens]"""
    attention: NDArray[np.float32] | None
    """[tokens, source tokens]; None if the model gives out none."""


def force_translation(model: MarianModel, source: Sequence[int], translation: str) -> ForcedTranslation:
    """Feed a translation to a model token by token."""
    tokens = (*model.tokenizer.target_tokens(translation), model.generation.end_token)
    decoder, rows, scores = model.decoder, [], []
    state = decoder.encode(source, also=tokens) if isinstance(decoder, RecurrentDecoder) else decoder.encode(source)
    for before, token in zip((model.generation.start_token, *tokens), tokens, strict=False):
        logits = decoder.step(state, before)
        known = logits[logits > -np.inf].astype(np.float64)
        scores.append(float(logits[token]) - float(np.logaddexp.reduce(known)))
        if (row := decoder.attended(state)) is not None:
            rows.append(row.copy())
    attention = np.stack(rows) if rows and len({len(row) for row in rows}) == 1 else None
    return ForcedTranslation(tuple(source), tokens, np.array(scores), attention)


def place_marks(sentence: Fragment, model: object, language: str, translation: str, target: str) -> str:
    """The translation of a sentence by ``model`` with the marks of the sentence in their places."""
    alignment = None
    if sentence.needs_alignment:
        alignment = word_alignment(model, sentence.text, language, translation, target)
    return sentence.written(translation, language, target, alignment)


def word_alignment(model: object, text: str, language: str, translation: str, target: str) -> Alignment | None:
    """Which words of a translation translate which of its source; None if the model cannot tell."""
    model = getattr(model, "local", model)
    if not isinstance(model, MarianModel) or not (spaced(language) and spaced(target) and model.decoder.aligned):
        return None
    said, found = len(text.split()), len(translation.split())
    parts = model.parts(text, language, target, complete=True)
    if len(parts) != 1 or not translation or said * found > MOST_ALIGNED:
        return None
    fed = force_translation(model, parts[0].ids, translation)
    if fed.attention is None:
        return None
    of_source = np.cumsum([model.tokenizer.source_piece(token).startswith(SPACE) for token in fed.source]) - 1
    of_target = np.cumsum([model.tokenizer.target_piece(token).startswith(SPACE) for token in fed.tokens]) - 1
    if of_source[-1] != said - 1 or of_target[-1] != found - 1 or of_source[0] or of_target[0]:
        return None
    words = np.zeros((found, said), np.float32)
    np.add.at(words, (of_target[:-1, None], of_source[None, :-1]), fed.attention[:-1, :-1])
    words /= np.maximum(words.sum(axis=1, keepdims=True), 1e-6)
    return words
