"""Write a checkpoint in CTranslate2's format with its specification classes, without PyTorch and transformers, and run it.

The mapping follows its ``TransformersConverter`` for Marian (ctranslate2/converters/transformers.py, MarianMTLoader).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.specs import common_spec, transformer_spec

from ..errors import ModelError
from ..nmt.compiler.assemble import sinusoids
from ..nmt.compiler.checkpoint import Checkpoint
from ..nmt.tokenizer import MarianTokenizer

_ACTIVATIONS = {
    "swish": common_spec.Activation.SWISH,
    "relu": common_spec.Activation.RELU,
    "gelu": common_spec.Activation.GELU,
}
_TOKENIZER = "tokenizer"
_TOKENIZER_FILES = (
    "config.json",
    "source.spm",
    "target.spm",
    "tokenizer_config.json",
    "vocab.json",
    "target_vocab.json",
)
# Bias that masks the pad token's logit.
_MASKED = -1e9


def write_ctranslate2(checkpoint: Checkpoint, model: Path, directory: Path, quantization: str) -> None:
    """Write the model into the new ``directory``, with the tokenizer's files of ``model``.

    Args:
        quantization: CTranslate2's name of the weight type, such as "int8" or "float32".
    """
    a = checkpoint.architecture
    if a.encoder_heads != a.decoder_heads:
        raise ModelError(
            f"encoder and decoder have {a.encoder_heads} and {a.decoder_heads} heads; CTranslate2 needs equal numbers"
        )
    source, target = (_tokens(checkpoint, name) for name in ("vocab.json", "target_vocab.json"))
    pad = len(target) - 1
    if target[pad] != "<pad>":
        raise ModelError("the vocabulary does not end with <pad>, as CTranslate2 needs for Marian")
    bias = checkpoint.weights["final_logits_bias"].copy()
    bias[pad] = _MASKED
    # Marian starts decoding with the pad row. If that is zero, as it should be, CTranslate2 can start with zeros and
    # needs no pad token.
    if zero := not checkpoint.weights["decoder.embed_tokens.weight"][pad].any():
        source, target = (tokens[:-1] if tokens[-1] == "<pad>" else tokens for tokens in (source, target))
    # Arrays are copied, because quantising a specification changes them in place.
    spec = transformer_spec.TransformerSpec.from_config(
        (a.encoder_layers, a.decoder_layers), a.encoder_heads, pre_norm=False, activation=_ACTIVATIONS[a.activation]
    )
    _set_side(spec.encoder, checkpoint, "encoder", len(source))
    _set_side(spec.decoder, checkpoint, "decoder", len(target))
    spec.decoder.start_from_zero_embedding = zero
    spec.decoder.projection.weight = checkpoint.weights["lm_head.weight"][: len(target)].copy()
    spec.decoder.projection.bias = bias[: len(target)]
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.bos_token = spec.config.eos_token = "</s>"
    spec.config.unk_token = "<unk>"
    spec.config.decoder_start_token = "</s>" if zero else "<pad>"
    spec.validate()
    spec.optimize(quantization=quantization)
    directory.mkdir()
    spec.save(str(directory))
    tokenizer = directory / _TOKENIZER
    tokenizer.mkdir()
    for name in _TOKENIZER_FILES:
        if (model / name).is_file():
            shutil.copy(model / name, tokenizer)


def load_ctranslate2(directory: Path) -> Callable[[str], str]:
    """Load what ``write_ctranslate2`` has written; the function translates a text, greedily, on one thread."""
    translator = ctranslate2.Translator(str(directory), device="cpu", intra_threads=1, inter_threads=1)
    tokenizer = MarianTokenizer.load(directory / _TOKENIZER)
    code = tokenizer.target_codes[0] if tokenizer.target_codes else None  # it does not affect the time
    sides = [directory / f"{side}_vocabulary.json" for side in ("source", "target")]
    if not sides[0].exists():
        sides = [directory / "shared_vocabulary.json"] * 2
    source, target = (json.loads(path.read_text("utf-8")) for path in sides)
    ids = {token: index for index, token in enumerate(target)}

    def translate(text: str) -> str:
        tokens = [source[index] for index in tokenizer.encode(text, code)]
        (result,) = translator.translate_batch([tokens], beam_size=1)
        return tokenizer.decode([ids[token] for token in result.hypotheses[0]])

    return translate


def _tokens(checkpoint: Checkpoint, name: str) -> list[str]:
    """Return the vocabulary in order of id."""
    table: dict[str, int] = json.loads(checkpoint.files.get(name) or checkpoint.files["vocab.json"])
    return sorted(table, key=table.__getitem__)


def _set_side(spec: Any, checkpoint: Checkpoint, side: str, rows: int) -> None:
    a, weights = checkpoint.architecture, checkpoint.weights
    spec.scale_embeddings = a.embedding_scale
    spec.position_encodings.encodings = sinusoids(a.max_positions, a.d_model)
    embeddings = spec.embeddings[0] if side == "encoder" else spec.embeddings
    embeddings.weight = weights[f"{side}.embed_tokens.weight"][:rows].copy()
    for index, layer in enumerate(spec.layer):
        prefix = f"{side}.layers.{index}"
        own = f"{prefix}.self_attn"
        _set_linear(layer.self_attention.linear[0], weights, *(f"{own}.{part}_proj" for part in "qkv"))
        _set_linear(layer.self_attention.linear[1], weights, f"{own}.out_proj")
        _set_norm(layer.self_attention.layer_norm, weights, f"{own}_layer_norm")
        if side == "decoder":
            cross = f"{prefix}.encoder_attn"
            _set_linear(layer.attention.linear[0], weights, f"{cross}.q_proj")
            _set_linear(layer.attention.linear[1], weights, f"{cross}.k_proj", f"{cross}.v_proj")
            _set_linear(layer.attention.linear[2], weights, f"{cross}.out_proj")
            _set_norm(layer.attention.layer_norm, weights, f"{cross}_layer_norm")
        _set_linear(layer.ffn.linear_0, weights, f"{prefix}.fc1")
        _set_linear(layer.ffn.linear_1, weights, f"{prefix}.fc2")
        _set_norm(layer.ffn.layer_norm, weights, f"{prefix}.final_layer_norm")


def _set_linear(spec: Any, weights: Any, *names: str) -> None:
    """Set one projection, or several stacked along the output axis."""
    spec.weight = np.concatenate([weights[f"{name}.weight"] for name in names])
    spec.bias = np.concatenate([weights[f"{name}.bias"] for name in names])


def _set_norm(spec: Any, weights: Any, name: str) -> None:
    spec.gamma, spec.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]
