"""Make a random Marian checkpoint of opus-mt's size, as large and as fast as a real one, and write it."""

from __future__ import annotations

import json
import random
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from pipeline.nmt.compiler.assemble import BIAS, DECODER, ENCODER, HEAD, SHARED
from pipeline.nmt.compiler.checkpoint import Architecture, Array, Checkpoint, expected_shapes

OPUS_MT = Architecture(
    d_model=512,
    encoder_layers=6,
    decoder_layers=6,
    encoder_heads=8,
    decoder_heads=8,
    encoder_ffn=2048,
    decoder_ffn=2048,
    activation="swish",
    embedding_scale=512**0.5,
    max_positions=512,
    source_vocabulary=65_001,
    target_vocabulary=65_001,
)
"""The size of opus-mt-en-zh and most other opus-mt models, with tied embeddings."""
_SAMPLE_TOKENS = 32

_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
_SPECIAL = 2  # </s>, <unk>; <pad> is the last
_SOURCE_BIAS = -30.0


def random_checkpoint(architecture: Architecture, words: list[str], seed: int = 0) -> Checkpoint:
    """Draw a model.

    Half of the vocabulary is for the source and half for the target, similar to a joint opus-mt vocabulary.

    Args:
        words: source words to include as pieces, so that their sentences have a typical number of tokens.
    """
    rng = np.random.default_rng(seed)
    pad = architecture.target_vocabulary - 1
    weights = {name: _draw(name, shape, rng) for name, shape in expected_shapes(architecture).items()}
    weights[ENCODER] = weights[HEAD] = weights[DECODER]
    weights[DECODER][pad] = 0
    source, target = _pieces(architecture.source_vocabulary - _SPECIAL - 1, words, random.Random(seed))
    # As in a trained model, source pieces have a low bias and are never generated, because they are never targets.
    weights[BIAS][_SPECIAL : _SPECIAL + len(source)] = _SOURCE_BIAS
    weights[BIAS][pad] = 0
    tokens = ["</s>", "<unk>", *source, *target, "<pad>"]
    generation = {
        "bad_words_ids": [[pad]],
        "decoder_start_token_id": pad,
        "eos_token_id": 0,
        "forced_eos_token_id": 0,
        # Random weights rarely end a sentence, so the compiler would translate its sample to the last position.
        "max_length": min(_SAMPLE_TOKENS, architecture.max_positions),
        "num_beams": 1,
        "pad_token_id": pad,
    }
    files = {
        "source.spm": _sentencepiece(source),
        "target.spm": _sentencepiece(target),
        "vocab.json": json.dumps({token: index for index, token in enumerate(tokens)}).encode(),
        "generation_config.json": json.dumps(generation).encode(),
        "tokenizer_config.json": json.dumps({"source_lang": "en", "target_lang": "zh"}).encode(),
    }
    return Checkpoint(architecture, weights, _config(architecture, pad), files, "random weights")


def write_transformers(checkpoint: Checkpoint, directory: Path) -> None:
    """Write a checkpoint in transformers' format into ``directory``, which must exist."""
    weights = dict(checkpoint.weights)
    shared, tied = weights[ENCODER] is weights[DECODER], weights[HEAD] is weights[DECODER]
    if shared:
        del weights[ENCODER]
        weights[SHARED] = weights.pop(DECODER)
    if tied:
        del weights[HEAD]
    weights[BIAS] = weights[BIAS][None]
    named = {name if name in (BIAS, HEAD) else f"model.{name}": value for name, value in weights.items()}
    save_file(named, directory / "model.safetensors", {"format": "pt"})
    config = {**checkpoint.config, "share_encoder_decoder_embeddings": shared, "tie_word_embeddings": tied}
    (directory / "config.json").write_text(json.dumps(config, indent=1), "utf-8")
    for name, content in checkpoint.files.items():
        (directory / name).write_bytes(content)


def _draw(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Draw weights on the scale of a trained model: matrices preserve the scale of their input, norms are about 1."""
    values = rng.standard_normal(shape, np.float32)
    if len(shape) == 2:
        return values * np.float32(shape[1] ** -0.5)
    return values * np.float32(0.02) + np.float32(name.endswith("norm.weight"))


def _config(architecture: Architecture, pad: int) -> dict[str, Any]:
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "activation_function": architecture.activation,
        "d_model": architecture.d_model,
        "encoder_layers": architecture.encoder_layers,
        "decoder_layers": architecture.decoder_layers,
        "encoder_attention_heads": architecture.encoder_heads,
        "decoder_attention_heads": architecture.decoder_heads,
        "encoder_ffn_dim": architecture.encoder_ffn,
        "decoder_ffn_dim": architecture.decoder_ffn,
        "max_position_embeddings": architecture.max_positions,
        "scale_embedding": True,
        "vocab_size": architecture.source_vocabulary,
        "decoder_vocab_size": architecture.target_vocabulary,
        "decoder_start_token_id": pad,
        "pad_token_id": pad,
        "eos_token_id": 0,
        "bos_token_id": 0,
    }


def _pieces(count: int, words: list[str], rng: random.Random) -> tuple[list[str], list[str]]:
    """Return ``count`` distinct pieces, split into source and target: characters, ``words``, and random words."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    source = [_SPACE, *letters, *letters.upper(), *"0123456789.,?!'-", *(_SPACE + word for word in words)]
    source = list(dict.fromkeys(source))
    half = count // 2
    if len(source) > half:
        raise ValueError(f"a vocabulary of {count} pieces has no room for {len(source)} source pieces")
    drawn: dict[str, None] = {}
    taken = set(source)
    while len(source) + len(drawn) < count:
        piece = rng.choice([_SPACE, ""]) + "".join(rng.choices(letters, k=rng.randint(3, 8)))
        if piece not in taken:
            drawn[piece] = None
    made = list(drawn)
    fill = half - len(source)
    return source + made[:fill], made[fill:]


def _sentencepiece(pieces: list[str]) -> bytes:
    """Build a unigram model of these pieces that prefers long ones. Training one would take more than a second."""
    spm: Any = import_module("sentencepiece.sentencepiece_model_pb2")
    model = spm.ModelProto()
    kinds = spm.ModelProto.SentencePiece
    model.pieces.add(piece="</s>", score=0.0, type=kinds.CONTROL)
    model.pieces.add(piece="<unk>", score=0.0, type=kinds.UNKNOWN)
    for piece in pieces:
        model.pieces.add(piece=piece, score=-10.0, type=kinds.NORMAL)
    model.trainer_spec.model_type = spm.TrainerSpec.UNIGRAM
    model.trainer_spec.vocab_size = len(model.pieces)
    model.trainer_spec.eos_id, model.trainer_spec.unk_id = 0, 1
    model.trainer_spec.bos_id = model.trainer_spec.pad_id = -1
    model.normalizer_spec.name = "identity"
    serialised: bytes = model.SerializeToString()
    return serialised
