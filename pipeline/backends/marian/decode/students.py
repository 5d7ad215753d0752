"""The files of a Firefox Translations student in a directory, and the model that they make."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ....errors import ModelError
from ....languages import known_language
from ...machine import give_back_memory
from ...nmt_options import NmtConfig
from .generation import GenerationOptions
from .parts import ModelParts
from .shortlist import Shortlist
from .tokenizer import MarianTokenizer

MAX_SOURCE_TOKENS = 100
"""From about this length on, students leave words out or repeat themselves; longer sentences are translated in parts."""
_MODEL, _LEX = "model*.bin", "lex*.bin"
_VOCABULARIES = ("vocab*.spm", "srcvocab*.spm", "trgvocab*.spm")
# model.enpt.intgemm.alphas.bin: one of the two is English.
_PAIR = re.compile(r"\.((en)(\w{2,8})|(\w{2,8})(en))\.")


@dataclass(frozen=True)
class StudentFiles:
    """The files of one model."""

    model: Path
    source: Path
    """SentencePiece model, which is the vocabulary."""
    target: Path
    """The source vocabulary's file if both sides share one."""
    shortlist: Path | None
    """Used only with a shared vocabulary: with two, names are lost, because no source token can be copied."""
    languages: tuple[str | None, str | None]
    """(source, target) as two-letter codes."""


def find_student(directory: Path) -> StudentFiles | None:
    """The files of the student in a directory; None if there is no model.bin with a vocabulary."""
    if not os.path.isdir(directory):  # Path.is_dir raises for long names
        return None
    models, shared, sources, targets = (sorted(directory.glob(name)) for name in (_MODEL, *_VOCABULARIES))
    if not models or not (shared or sources or targets):
        return None
    if len(models) > 1 or len(shared) > 1 or bool(shared) == bool(sources or targets) or len(sources) != len(targets):
        names = ", ".join(path.name for path in (*models, *shared, *sources, *targets))
        raise ModelError(
            f"{directory} has {names}; expected the files of one model: a model.*.bin, and a vocab.*.spm or a srcvocab.*.spm "
            "with a trgvocab.*.spm"
        )
    pair = _PAIR.search(models[0].name)
    for path in (*shared, *sources, *targets, *(lex := sorted(directory.glob(_LEX)))):
        other = _PAIR.search(path.name)
        if pair and other and pair[1] != other[1]:
            raise ModelError(f"{path} is of another model than {models[0].name}; fetch the files of one model")
    source, target = (shared * 2) or (sources[0], targets[0])
    languages = (None, None) if pair is None else ("en", pair[3]) if pair[2] else (pair[4], "en")
    return StudentFiles(
        model=models[0],
        source=source,
        target=target,
        shortlist=lex[0] if shared and lex else None,
        languages=(known_language(languages[0]), known_language(languages[1])),
    )


def load(directory: Path, options: NmtConfig) -> ModelParts | None:
    """The parts of a student; None if the directory has none. Weights other than "fp32" are the file's, of 8 bits."""
    if (files := find_student(directory)) is None:
        return None
    # Slow: imports onnx.
    from ..compile.student import read_student
    from .recurrent import RecurrentDecoder

    tokenizer = MarianTokenizer.from_pieces(files.source, files.target)
    checkpoint = read_student(files.model)
    a = checkpoint.architecture
    for path, pieces, rows in (
        (files.source, tokenizer.size - 1, a.source_vocabulary),
        (files.target, tokenizer.target_size - 1, a.target_vocabulary),
    ):
        if pieces != rows:
            raise ModelError(
                f"{path} has {pieces:,} pieces, the embedding of {files.model.name} {rows:,} rows; they must be of the "
                "same model"
            )
    decoder = RecurrentDecoder(
        checkpoint,
        files.model,
        options.threads,
        weights="fp32" if options.weights == "fp32" else "int8",
        shortlist=None if files.shortlist is None else Shortlist(files.shortlist, a.source_vocabulary),
        banned=[index for index in range(a.target_vocabulary) if tokenizer.is_reserved(index)],
    )
    del checkpoint
    give_back_memory()
    pad = tokenizer.target_size - 1
    generation = GenerationOptions(
        start_token=pad,  # the decoder then sees no token
        end_token=tokenizer.end_token,
        pad_token=pad,
        max_tokens=options.max_tokens,
        beams=options.beam_size,
        no_repeat_ngram=options.no_repeat_ngram,
    )
    decoder.check([2, tokenizer.end_token], generation.start_token, generation.end_token)
    return ModelParts(tokenizer, decoder, generation, files.languages, MAX_SOURCE_TOKENS, knows_print_only=True)
