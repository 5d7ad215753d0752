"""This project's decoder, in any layout."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from pipeline.nmt.model import MarianModel
from pipeline.nmt.search import generate

_NO_TOKEN = -1
"""Not the id of any token."""


class OwnEngine:
    def __init__(self, directory: str, threads: int, suffix: str = "") -> None:
        self._model = MarianModel.load(
            Path(directory), suffix=suffix, threads=threads, max_tokens=100_000, cached_sentences=0
        )
        self._generation = dataclasses.replace(self._model.generation, beams=1)

    def decode(self, source: Sequence[int], tokens: int) -> list[int]:
        # An end token is fed back like any other token. The work is the same.
        endless = dataclasses.replace(self._generation, end_token=_NO_TOKEN, forced_end_token=None, max_tokens=tokens)
        return [token.id for token in generate(self._model.decoder, source, endless)]

    def translate(self, source: Sequence[int], limit: int) -> list[int]:
        options = dataclasses.replace(self._generation, forced_end_token=None, max_tokens=limit)
        ids = [token.id for token in generate(self._model.decoder, source, options)]
        return ids[:-1] if ids[-1] == options.end_token else ids
