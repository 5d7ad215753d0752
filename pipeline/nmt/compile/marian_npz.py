"""Reads Marian's own format, as in OPUS-MT's archives: model.npz, decoder.yml, vocabularies and SentencePiece models.

Marian's parameters and options (special:model.yml in the model file) are converted to those of transformers, as the
published opus-mt checkpoints were: a row is added to the embeddings for <pad>, which starts the decoder and for which
Marian has no token.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from ...errors import ModelError, one_line
from .assemble import BIAS, DECODER, ENCODER, HEAD, SHARED
from .marian import OPTIONS, Options, flag, read_options, sizes, transformers_array, transformers_name

Weights = dict[str, NDArray[Any]]

_SOURCE_LANGUAGE = re.compile(r"^\* source language\(s\): *(\w+) *$", re.MULTILINE)
_TARGET_LANGUAGE = re.compile(r"^\* target language\(s\): *(\w+) *$", re.MULTILINE)
# A line of a vocabulary in YAML.
_ENTRY = re.compile(r"(.+?) *: *(\d{1,8}) *")
# Marian has no limit. The published conversions have 512, or d_model if that is larger.
_MAX_POSITIONS = 512


def read_npz(directory: Path) -> tuple[Weights, dict[str, Any], dict[str, bytes]]:
    """Read an unpacked archive: (weights by transformers' names, config, settings files)."""
    decoder_options = _read_yaml(directory / "decoder.yml") if (directory / "decoder.yml").is_file() else {}
    path = _find_files(directory, decoder_options, "models", "*.npz")[0]
    arrays = _read_arrays(path)
    stored = arrays.pop(OPTIONS, None)
    options = read_options(None if stored is None else stored.tobytes(), path)
    shared = flag(options, "tied-embeddings-all") or flag(options, "tied-embeddings-src")
    tied = flag(options, "tied-embeddings-all") or flag(options, "tied-embeddings")
    # Pop one by one, so that arrays that are copied below are not in memory twice.
    weights = {transformers_name(name): transformers_array(name, arrays.pop(name)) for name in list(arrays)}
    rows = _add_pad(weights, SHARED if shared else ENCODER, SHARED if shared else DECODER, path)
    tables = _read_vocabularies(directory, decoder_options, shared, rows)
    pad, end = rows[1], tables[-1]["</s>"]
    config = sizes(options, path)
    config |= {
        "architectures": ["MarianMTModel"],
        "is_encoder_decoder": True,
        "max_position_embeddings": max(_MAX_POSITIONS, config["d_model"]),
        "vocab_size": rows[0] + 1,
        "decoder_vocab_size": rows[1] + 1,
        "bos_token_id": 0,
        "share_encoder_decoder_embeddings": shared,
        "tie_word_embeddings": tied,
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
        "eos_token_id": end,
        "forced_eos_token_id": end,
    }
    return weights, config, _settings_files(directory, decoder_options, tables, pad, end)


def _read_arrays(path: Path) -> Weights:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, MemoryError) as error:
        raise ModelError(f"{path} is not a readable Marian model ({error}); unpack the archive again") from None
    except (zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise ModelError(f"{path} is damaged ({error}); unpack the archive again") from None


def _add_pad(weights: Weights, source: str, target: str, path: Path) -> tuple[int, int]:
    """Add a row of zeros for <pad> to embeddings and output. Returns the previous numbers of source and target rows."""
    for name in {source, target, BIAS}:
        if name not in weights or weights[name].ndim != (1 if name == BIAS else 2):
            raise ModelError(f"{path} is incomplete: it has no {name} of the expected shape; unpack the archive again")
    rows = len(weights[source]), len(weights[target])
    for name in {source, target, BIAS, HEAD} & weights.keys():
        array = weights[name]
        weights[name] = np.concatenate([array, np.zeros((1, *array.shape[1:]), array.dtype)])
    return rows


def _read_vocabularies(
    directory: Path, decoder_options: Options, shared: bool, rows: tuple[int, int]
) -> list[dict[str, int]]:
    """Read one joint vocabulary, or the source's and the target's, and add <pad> at the end."""
    paths = _find_files(directory, decoder_options, "vocabs", "*vocab.yml")
    paths = [paths[0]] if paths[0] == paths[-1] else [paths[0], paths[-1]]
    if shared and len(paths) > 1:
        raise ModelError(
            f"{directory} has two vocabularies, but one embedding for both sides; they must be of the same model"
        )
    tables = [read_vocabulary(path) for path in paths]
    for path, table, side in ((paths[0], tables[0], 0), (paths[-1], tables[-1], 1)):
        if len(table) != rows[side]:
            raise ModelError(
                f"{path} has {len(table)} pieces, the embedding {rows[side]} rows; they must be of the same model"
            )
    for path, table in zip(paths, tables, strict=True):
        if "<pad>" in table:
            raise ModelError(f"{path} has a <pad>; expected none, as <pad> is added to start the decoder with zeros")
        table["<pad>"] = len(table)
    return tables


def _settings_files(
    directory: Path, decoder_options: Options, tables: list[dict[str, int]], pad: int, end: int
) -> dict[str, bytes]:
    """Generate transformers' settings files from decoder.yml and the vocabularies."""
    generation: dict[str, Any] = {
        "bad_words_ids": [[pad]],
        "decoder_start_token_id": pad,
        "eos_token_id": end,
        "forced_eos_token_id": end,
        "max_length": _MAX_POSITIONS,
        "pad_token_id": pad,
    }
    beams, exponent = str(decoder_options.get("beam-size", "")), str(decoder_options.get("normalize", ""))
    if beams.isdecimal() and int(beams):
        generation["num_beams"] = int(beams)
    if re.fullmatch(r"\d{1,2}(\.\d{1,6})?", exponent):
        generation["length_penalty"] = float(exponent)  # both divide a score by length ** exponent
    card = directory / "README.md"
    text = card.read_text("utf-8", "replace") if card.is_file() else ""
    source, target = _SOURCE_LANGUAGE.search(text), _TARGET_LANGUAGE.search(text)
    tokenizer = {
        "separate_vocabs": len(tables) > 1,
        "model_max_length": _MAX_POSITIONS,
        **({"source_lang": source[1]} if source else {}),
        **({"target_lang": target[1]} if target else {}),
    }
    names = ("vocab.json", "target_vocab.json")
    files = {name: _json(table) for name, table in zip(names, tables, strict=False)}
    return files | {"generation_config.json": _json(generation), "tokenizer_config.json": _json(tokenizer)}


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=0).encode("utf-8")


def _find_files(directory: Path, decoder_options: Options, key: str, pattern: str) -> list[Path]:
    """The files that decoder.yml names under ``key`` (without their folders), or else the one matching ``pattern``."""
    named = decoder_options.get(key)
    names = [Path(str(name)).name for name in named] if isinstance(named, list) else []
    if key == "models" and len(names) > 1:
        raise ModelError(f"{directory}/decoder.yml names {len(names)} models, an ensemble; keep one to compile")
    if names:
        paths = [directory / name for name in names]
        if missing := [path.name for path in paths if not path.is_file()]:
            raise ModelError(f"{directory}/decoder.yml names {missing[0]}, which is missing; unpack the archive again")
        return paths
    found = sorted(directory.glob(pattern))
    if len(found) != 1:
        listed = ", ".join(path.name for path in found) or "none"
        raise ModelError(
            f"{directory} must have one {pattern}, or a decoder.yml that names it under {key}; found {listed}"
        )
    return found


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        value = yaml.load(path.read_text("utf-8"), yaml.BaseLoader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise ModelError(f"{path} is not readable YAML ({one_line(error)}); unpack the archive again") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path} does not map options to values; unpack the archive again")
    return value


def read_vocabulary(path: Path) -> dict[str, int]:
    """Read the id of each piece. The ids are 0 to the number of pieces - 1, each once."""
    if path.suffix == ".spm":
        raise ModelError(
            f"{path}, a SentencePiece model, is the vocabulary; only archives with a vocab.yml can be read"
        )
    try:
        text = path.read_bytes().decode("utf-8")
        if path.suffix in (".yml", ".yaml"):
            table = _from_yaml(text)
        elif path.suffix == ".json":
            table = json.loads(text)
        else:
            table = {piece: index for index, piece in enumerate(_lines(text))}
        whole = sorted(table.values()) == list(range(len(table))) and bool(table)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, yaml.YAMLError) as error:
        raise ModelError(f"{path} is not a readable vocabulary ({error}); unpack the archive again") from None
    if not whole:
        raise ModelError(
            f"{path} must give its {len(table)} pieces the ids 0 to {len(table) - 1}, each once; unpack the archive again"
        )
    if missing := [token for token in ("</s>", "<unk>") if token not in table]:
        raise ModelError(f"{path} has no {' and no '.join(missing)}: not a Marian vocabulary")
    return table


def _from_yaml(text: str) -> dict[str, int]:
    """Parse a flat YAML map line by line.

    Vocabularies made from web text have control characters and Unicode separators as pieces. A YAML parser would reject
    the former and break lines at the latter.
    """
    table: dict[str, int] = {}
    key = ""
    for row, line in enumerate(_lines(text), 1):
        if line.startswith("? "):  # a long key; its value is in the next line
            key = line[2:]
            continue
        match = _ENTRY.fullmatch(key + line)
        if match:
            table[_scalar(match[1])] = int(match[2])
        elif line.strip() not in ("", "---"):
            raise ValueError(f"line {row} is {line[:40]!r}, not a piece and its id")
        key = ""
    return table


def _lines(text: str) -> list[str]:
    """Split at line feeds only: str.splitlines would also split at characters that are pieces."""
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _scalar(text: str) -> str:
    """Decode a YAML key: plain, in single quotes, or in double quotes with escapes."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        return str(yaml.load(text, yaml.BaseLoader)) if "\\" in text else text[1:-1]
    return text
