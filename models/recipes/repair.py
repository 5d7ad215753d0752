"""Training of a few pieces alone, for a translator whose target vocabulary lacked them: all other weights are kept."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tatoeba import Pair

if TYPE_CHECKING:
    from transformers import MarianMTModel

_DIGIT = re.compile(r"\d")


def train_only(model: MarianMTModel, ids: Sequence[int]) -> None:
    """Freeze all weights but the embeddings of ``ids``, which the output shares."""
    embedding = model.model.shared.weight
    for parameter in model.parameters():
        parameter.requires_grad_(parameter is embedding)
    chosen = embedding.new_zeros(len(embedding), 1)
    chosen[list(ids)] = 1
    embedding.register_hook(lambda gradient: gradient * chosen)


def pairs_with(characters: str, pairs: Sequence[Pair], seed: int) -> list[Pair]:
    """The pairs with one of ``characters`` in the target or a number on both sides, and about as many others.

    The others show where the pieces must stay improbable.
    """
    found = [
        (source, target)
        for source, target in pairs
        if (_DIGIT.search(source) and _DIGIT.search(target)) or not set(characters).isdisjoint(target)
    ]
    return found + random.Random(seed).sample(pairs, min(len(found), len(pairs)))
