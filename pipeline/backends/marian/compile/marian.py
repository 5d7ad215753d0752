"""Marian's own options and parameter names, as in its model files with a recurrent decoder, in the terms of transformers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from numpy.typing import NDArray

from ....errors import ModelError
from .assemble import BIAS, DECODER, ENCODER, HEAD, SHARED
from .checkpoint import FORGET, UPDATE

Options = Mapping[str, Any]

OPTIONS = "special:model.yml"
"""Name of the item that holds the options."""
# Options that change the computation → the values with which Marian computes the same as the graphs. The first value is the
# default if another version of Marian does not write the option. Options of training have no effect.
_REQUIRED_OPTIONS: dict[str, tuple[Any, ...]] = {
    "type": ("transformer",),
    "right-left": ("false",),
    "transformer-preprocess": ("",),
    "transformer-postprocess": ("dan",),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-postprocess-top": ("",),
    "transformer-decoder-autoreg": ("rnn",),
    "dec-cell": ("ssru",),
    "transformer-rnn-projection": ("false",),
    "transformer-train-position-embeddings": ("false",),
    "transformer-no-projection": ("false",),
    "transformer-no-bias": ("false",),
    "transformer-no-affine": ("false",),
    "transformer-pool": ("false",),
    "transformer-ffn-depth": ("2",),
    "transformer-decoder-ffn-depth": ("0", "2"),
    "transformer-tied-layers": ([],),
    "output-omit-bias": ("false",),
    "ulr": ("false",),
    "lemma-dim-emb": ("0",),
}
# Not gelu: Marian's is x·sigmoid(1.702 x), unlike transformers'.
_ACTIVATIONS = ("swish", "relu")
_BLOCKS = {"self": "self_attn", "context": "encoder_attn"}
_LAYER = re.compile(r"(encoder|decoder)_l([1-9]\d{0,3})_(.+)")
_WHOLE = {
    "Wemb": SHARED,
    "encoder_Wemb": ENCODER,
    "decoder_Wemb": DECODER,
    "decoder_ff_logit_out_b": BIAS,
    "decoder_ff_logit_out_W": HEAD,
    "decoder_ff_logit_out_Wt": HEAD,
}
_RECURRENT = {"W": f"{UPDATE}.weight", "Wf": f"{FORGET}.weight", "bf": f"{FORGET}.bias"}


def read_options(content: bytes | None, path: Path) -> dict[str, Any]:
    """Parse and check special:model.yml. All values stay strings."""
    if content is None:
        raise ModelError(f"{path} has no {OPTIONS} with the model's options; expected a file that Marian saved")
    try:
        options = yaml.load(content.rstrip(b"\0").decode("utf-8"), yaml.BaseLoader)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise ModelError(f"{path}: {OPTIONS} is not readable ({error}); fetch the file again") from None
    if not isinstance(options, dict):
        raise ModelError(f"{path}: {OPTIONS} does not map options to values; fetch the file again")
    for key, allowed in _REQUIRED_OPTIONS.items():
        if options.get(key, allowed[0]) not in allowed:
            raise ModelError(
                f"{path} was trained with --{key} {options[key]}; only models with {allowed[0]!r} there are supported"
            )
    if (activation := options.get("transformer-ffn-activation", "swish")) not in _ACTIVATIONS:
        raise ModelError(
            f"{path} was trained with --transformer-ffn-activation {activation}; "
            f"supported are {' and '.join(_ACTIVATIONS)}"
        )
    return options


def transformers_name(name: str) -> str:
    """Convert a parameter's name. Unknown names are kept, and are rejected as unknown later."""
    if name in _WHOLE:
        return _WHOLE[name]
    if not (layer := _LAYER.fullmatch(name)):
        return name
    prefix, rest = f"{layer[1]}.layers.{int(layer[2]) - 1}", layer[3]
    if match := re.fullmatch(r"(self|context)_([Wb])([qkvo])", rest):
        projection = "out" if match[3] == "o" else match[3]
        return f"{prefix}.{_BLOCKS[match[1]]}.{projection}_proj.{_kind(match[2])}"
    if match := re.fullmatch(r"(self|context)_Wo_ln_(scale|bias)", rest):
        return f"{prefix}.{_BLOCKS[match[1]]}_layer_norm.{_kind(match[2])}"
    if match := re.fullmatch(r"ffn_([Wb])([12])", rest):
        return f"{prefix}.fc{match[2]}.{_kind(match[1])}"
    if match := re.fullmatch(r"(rnn|ffn)_ffn_ln_(scale|bias)", rest):
        norm = "final" if match[1] == "ffn" else _BLOCKS["self"]
        return f"{prefix}.{norm}_layer_norm.{_kind(match[2])}"
    if match := re.fullmatch(r"rnn_(W|Wf|bf)", rest):
        return f"{prefix}.{_RECURRENT[match[1]]}"
    return name


def _kind(letter: str) -> str:
    return "weight" if letter in ("W", "scale") else "bias"


def transformers_array(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Convert a parameter: Marian has matrices [in, out] and vectors [1, n]. Its embeddings are [rows, d_model] too."""
    if array.ndim == 2 and array.shape[0] == 1:
        return array.reshape(-1)
    return array if is_table(name) or array.ndim != 2 else array.T


def is_table(name: str) -> bool:
    """Whether a parameter has a row for each token, [rows, d_model]."""
    return name.endswith("Wemb") or name == "decoder_ff_logit_out_Wt"


def flag(options: Options, key: str) -> bool:
    return str(options.get(key, "false")) == "true"


def number(options: Options, key: str, path: Path) -> int:
    value = str(options.get(key, ""))
    if not (value.isdecimal() and len(value) < 9):
        raise ModelError(f"{path}: {OPTIONS} says {key} {value!r}; expected a number; fetch the file again")
    return int(value)


def sizes(options: Options, path: Path) -> dict[str, Any]:
    """The sizes of the layers, and what all of Marian's transformers have in common, as in transformers' config.json."""
    ffn, heads = number(options, "transformer-dim-ffn", path), number(options, "transformer-heads", path)
    decoder_ffn = options.get("transformer-decoder-dim-ffn", "0")
    return {
        "model_type": "marian",
        "d_model": number(options, "dim-emb", path),
        "encoder_layers": number(options, "enc-depth", path),
        "decoder_layers": number(options, "dec-depth", path),
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_ffn_dim": ffn,
        "decoder_ffn_dim": ffn if decoder_ffn == "0" else number(options, "transformer-decoder-dim-ffn", path),
        "activation_function": options.get("transformer-ffn-activation", "swish"),
        "scale_embedding": True,
    }
