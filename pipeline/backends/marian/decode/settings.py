"""Read and validate the JSON files of a model directory."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from ....errors import ModelError
from ...nmt_options import NmtConfig
from .generation import GenerationOptions
from .tokenizer import MarianTokenizer

log = logging.getLogger(__name__)

_TOKENS = ("pad_token_id", "eos_token_id", "decoder_start_token_id")

# Generation settings of transformers that this search does not support → the neutral value, which has no effect.
_UNSUPPORTED: dict[str, Any] = {
    "repetition_penalty": 1.0,
    "min_length": 0,
    "min_new_tokens": 0,
    "sequence_bias": None,
    "exponential_decay_length_penalty": None,
    "force_words_ids": None,
    "encoder_repetition_penalty": 1.0,
    "guidance_scale": 1.0,
    "max_time": None,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
    "encoder_no_repeat_ngram_size": 0,
    "num_beam_groups": 1,
    "diversity_penalty": 0.0,
    "do_sample": False,
}


def generation_options(
    settings: dict[str, Any], tokenizer: MarianTokenizer, options: NmtConfig, positions: int, directory: Path
) -> GenerationOptions:
    """Convert the options and ``settings`` (see ``decoding_settings``) of a model with ``positions`` to decoding options."""
    size = tokenizer.target_size
    pad = _token(settings, "pad_token_id", tokenizer.pad_token, size, directory)
    most = min(options.max_tokens, positions)
    length = integer(settings, "max_length", 512, directory)
    listed = settings.get("bad_words_ids") or []
    bad: list[Any] = listed if isinstance(listed, list) else [listed]
    words = [word for word in bad if isinstance(word, list) and all(type(i) is int and 0 <= i < size for i in word)]
    if len(words) != len(bad):
        raise ModelError(f"{directory}/generation_config.json: bad_words_ids must be lists of ids below {size}")
    penalty = settings.get("length_penalty", 1.0)
    early = settings.get("early_stopping", False)
    if not isinstance(penalty, int | float) or not abs(penalty) < 100 or early not in (True, False, "never"):
        raise ModelError(
            f"{directory}/generation_config.json: length_penalty is {penalty!r} and early_stopping {early!r}; "
            'expected a number, and true, false or "never"'
        )
    if ignored := [key for key, neutral in _UNSUPPORTED.items() if settings.get(key, neutral) not in (neutral, [])]:
        log.warning("%s: these generation settings are not supported and ignored: %s", directory, ", ".join(ignored))
    for key in ("eos_token_id", "forced_eos_token_id"):
        ends = settings.get(key)
        if isinstance(ends, list):  # transformers allows a list
            if len(ends) != 1:
                raise ModelError(
                    f"{directory}/generation_config.json: {key} is {ends!r}; only one end token is supported: "
                    "keep the one that the model was trained with"
                )
            settings = settings | {key: ends[0]}
    end = _token(settings, "eos_token_id", tokenizer.end_token, size, directory)
    return GenerationOptions(
        start_token=_token(settings, "decoder_start_token_id", pad, size, directory),
        end_token=end,
        pad_token=pad if pad != end else tokenizer.pad_token,  # the pad token is masked, the end token must not be
        # As in transformers, the end token is never a bad word: a sentence must be able to end.
        bad_words=tuple(tuple(word) for word in words if word and word != [end]),
        renormalize=settings.get("renormalize_logits") is True,
        forced_end_token=_optional_token(settings, "forced_eos_token_id", size, directory),
        forced_begin_token=_optional_token(settings, "forced_bos_token_id", size, directory),
        # transformers' max_length includes the start token, which is not generated.
        max_tokens=max(1, min(most, integer(settings, "max_new_tokens", length - 1, directory))),
        length_penalty=float(penalty),
        early_stopping=early,
        beams=options.beam_size,
        no_repeat_ngram=options.no_repeat_ngram or integer(settings, "no_repeat_ngram_size", 0, directory),
    )


def decoding_settings(config: dict[str, Any], generation_config: dict[str, Any]) -> dict[str, Any]:
    """The settings that hold for decoding, without those that are null.

    As in transformers, generation_config.json replaces the decoding settings of config.json. Special tokens that it lacks are
    still taken from config.json, because translation is impossible without them.
    """
    used = {key: value for key, value in config.items() if key in _TOKENS or not generation_config}
    return {key: value for part in (used, generation_config) for key, value in part.items() if value is not None}


def read_json(path: Path, *, required: bool) -> dict[str, Any]:
    """Read the object in a JSON file; return {} if the file is missing and not required."""
    if not path.is_file() and not required:
        return {}
    try:
        value = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ModelError(
            f"{path.parent} lacks {path.name}; copy it from the checkpoint the model was exported from"
        ) from None
    except (ValueError, OSError, RecursionError) as error:
        raise ModelError(f"{path} is not readable JSON ({error}); fetch it again") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path} must hold a JSON object; fetch it again")
    return value


def integer(settings: dict[str, Any], key: str, default: int, directory: Path) -> int:
    """Return a non-negative integer setting, or ``default`` if the key is missing."""
    value = settings.get(key, default)
    if type(value) is not int or value < 0:
        raise ModelError(f"{directory}: {key} is {value!r}; expected a whole number; fetch the settings again")
    return value


def _token(settings: dict[str, Any], key: str, default: int, size: int, directory: Path) -> int:
    value = integer(settings, key, default, directory)
    if value >= size:
        raise ModelError(
            f"{directory}: {key} is {value}, but the vocabulary has {size} entries; fetch the settings again"
        )
    return value


def _optional_token(settings: dict[str, Any], key: str, size: int, directory: Path) -> int | None:
    return None if settings.get(key) is None else _token(settings, key, 0, size, directory)


def check_separate_vocabulary(names: dict[str, Any], directory: Path) -> None:
    """Raise ModelError if tokenizer_config.json, ``names``, requires a target vocabulary that is not there."""
    if names.get("separate_vocabs") is True and not (directory / "target_vocab.json").is_file():
        raise ModelError(
            f"{directory} lacks target_vocab.json, which its tokenizer_config.json requires (separate_vocabs); "
            "copy it from the checkpoint the model was exported from"
        )


def check_vocabulary(scores: int | None, tokenizer: MarianTokenizer, directory: Path) -> None:
    """Raise ModelError if the decoder scores another number of tokens than the vocabulary has. None: it is not known."""
    if scores is not None and scores != tokenizer.target_size:
        padded = (
            "; if only the embedding was padded, python -m pipeline.models compile cuts it to the vocabulary"
            if scores > tokenizer.target_size
            else ""
        )
        raise ModelError(
            f"{directory}: the vocabulary has {tokenizer.target_size} entries, the decoder scores {scores}; "
            f"the files belong to different models: copy them from one checkpoint{padded}"
        )
