"""Greedy decoding with transformers' ``generate``, which optimum's models share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def generate(model: Any, source: Sequence[int], **lengths: int) -> list[int]:
    """Return the generated ids without the start token, with the end token."""
    with torch.inference_mode():
        ids = torch.tensor([list(source)])
        found = model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), num_beams=1, do_sample=False, **lengths
        )
    generated: list[int] = found[0].tolist()[1:]
    return generated


class GenerateEngine:
    """An engine for any model with transformers' ``generate``."""

    def __init__(self, model: Any) -> None:
        self._model = model
        settings = model.generation_config
        settings.forced_eos_token_id = None  # sentences are cut at our length without a forced end token
        settings.max_length = None  # otherwise transformers warns at every sentence that two lengths are given
        self._end = settings.eos_token_id

    def decode(self, source: Sequence[int], tokens: int) -> list[int]:
        return generate(self._model, source, min_new_tokens=tokens, max_new_tokens=tokens)

    def translate(self, source: Sequence[int], limit: int) -> list[int]:
        ids = generate(self._model, source, max_new_tokens=limit)
        return ids[:-1] if ids[-1] == self._end else ids
