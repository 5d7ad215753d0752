"""Reads Marian's vocabulary files, which map pieces to ids, in YAML, JSON or plain text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

from pipeline.errors import ModelError

_ENTRY = re.compile(r"(.+?) *: *(\d{1,8}) *")


def read_vocabulary(path: Path) -> dict[str, int]:
    """Read the id of each piece. The ids are 0 to the number of pieces - 1, each once.

    Raises:
        ModelError: the file is missing, damaged, or in another format.
    """
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
    for number, line in enumerate(_lines(text), 1):
        if line.startswith("? "):  # a long key; its value is in the next line
            key = line[2:]
            continue
        match = _ENTRY.fullmatch(key + line)
        if match:
            table[_scalar(match[1])] = int(match[2])
        elif line.strip() not in ("", "---"):
            raise ValueError(f"line {number} is {line[:40]!r}, not a piece and its id")
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
