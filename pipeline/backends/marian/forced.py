"""A translation that is given instead of searched for: which words translate which."""

from __future__ import annotations

import numpy as np

from ...languages import spaced
from .decode.tokenizer import SPACE
from .model import MarianModel
from .terms.mark_places import MOST_ALIGNED, Alignment


def word_alignment(model: object, text: str, language: str, translation: str, target: str) -> Alignment | None:
    """Which words of a translation translate which of its source; None if the model cannot tell."""
    model = getattr(model, "local", model)
    if not isinstance(model, MarianModel) or not (spaced(language) and spaced(target) and model.decoder.aligned):
        return None
    source_words, target_words = len(text.split()), len(translation.split())
    parts = model.parts(text, language, target, complete=True)
    if len(parts) != 1 or not translation or source_words * target_words > MOST_ALIGNED:
        return None
    source, tokens = parts[0].ids, [*model.tokenizer.target_tokens(translation), model.generation.end_token]
    state = model.decoder.encode(source)
    attention = model.decoder.attention(state, [model.generation.start_token, *tokens[:-1]])
    if attention is None:
        return None
    of_source = np.cumsum([model.tokenizer.source_piece(token).startswith(SPACE) for token in source]) - 1
    of_target = np.cumsum([model.tokenizer.target_piece(token).startswith(SPACE) for token in tokens]) - 1
    if of_source[-1] != source_words - 1 or of_target[-1] != target_words - 1 or of_source[0] or of_target[0]:
        return None
    words = np.zeros((target_words, source_words), np.float32)
    np.add.at(words, (of_target[:-1, None], of_source[None, :-1]), attention[:-1, :-1])
    words /= np.maximum(words.sum(axis=1, keepdims=True), 1e-6)
    return words
