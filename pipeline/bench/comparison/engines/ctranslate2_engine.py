"""CTranslate2, a dependency of faster-whisper."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import ctranslate2


class CTranslate2Engine:
    """Runs a directory made by ``write_ctranslate2``. ``vmap`` enables its shortlist."""

    def __init__(self, directory: str, threads: int, compute_type: str = "default", vmap: bool = False) -> None:
        self._translator = ctranslate2.Translator(
            directory, device="cpu", compute_type=compute_type, intra_threads=threads, inter_threads=1
        )
        self._vmap = vmap
        sides = [Path(directory, f"{side}_vocabulary.json") for side in ("source", "target")]
        if not sides[0].exists():
            sides = [Path(directory, "shared_vocabulary.json")] * 2
        self._source, target = (json.loads(path.read_text("utf-8")) for path in sides)
        self._ids = {token: index for index, token in enumerate(target)}

    def decode(self, source: Sequence[int], tokens: int) -> list[int]:
        return self._run(source, min_decoding_length=tokens, max_decoding_length=tokens)

    def translate(self, source: Sequence[int], limit: int) -> list[int]:
        return self._run(source, max_decoding_length=limit)

    def _run(self, source: Sequence[int], **lengths: int) -> list[int]:
        tokens = [self._source[index] for index in source]
        (result,) = self._translator.translate_batch([tokens], beam_size=1, use_vmap=self._vmap, **lengths)
        return [self._ids[token] for token in result.hypotheses[0]]
