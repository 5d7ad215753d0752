"""Mozilla's catalogues of translators: models.json, and the records of Remote Settings, which Firefox uses. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

_FILE = re.compile(r"(?:model|vocab|srcvocab|trgvocab|lex)\.[\w.-]+\.(?:bin|spm)")
_PACKED = {"application/zstd": "zst"}
# Most preferred first. Others, and none, come last.
_STATUSES = ("Release", "Release Desktop", "Release Android", "Nightly")
_ARCHITECTURES = ("base-memory", "base", "tiny")
_TYPES = ("model", "vocab", "srcvocab", "trgvocab", "lex")
MOST_BYTES = 1 << 29
"""The most bytes of a catalogue, and of a file when it is unpacked."""


@dataclass(frozen=True)
class CatalogueFile:
    """A file of a model."""

    name: str
    """The file's name when it is unpacked."""
    url: str
    packing: str
    """"gz", "zst" or "": how it is packed."""
    size: int | None = None
    """Bytes of the unpacked file, if the catalogue lists it."""
    sha256: str | None = None


def best_in_models_json(pair: str, catalogue: dict[str, Any]) -> tuple[CatalogueFile, ...]:
    """The files of the best model of a pair, the model first: released, then the more exact architecture; none if there is no model.

    Raises:
        ValueError, LookupError, TypeError, AttributeError: the catalogue is not what is expected.
    """
    entries = sorted(
        catalogue["models"].get(pair, []),
        key=lambda entry: (_rank(entry, "releaseStatus", _STATUSES), _rank(entry, "architecture", _ARCHITECTURES)),
    )
    if not entries:
        return ()
    files = dict(entries[0]["files"])
    base, model = catalogue["baseUrl"].rstrip("/"), files.pop("model")
    listed = [CatalogueFile("", f"{base}/{model['path']}", "gz", model["uncompressedSize"], model["uncompressedHash"])]
    listed += [CatalogueFile("", f"{base}/{file['path']}", "gz") for file in files.values() if file]
    return _checked(pair, (replace(file, name=file.url.rsplit("/", 1)[-1].removesuffix(".gz")) for file in listed))


def best_in_records(pair: str, records: dict[str, Any], attachments: str) -> tuple[CatalogueFile, ...]:
    """The files of the best model of a pair, the model first, from records of Remote Settings: one record for each file.

    The records are those of translations-models or translations-models-v2; the newest version that is for everybody is
    taken. ``attachments``: the address at which the files' locations begin.
    """
    versions: dict[tuple[Any, ...], dict[str, Any]] = {}
    for record in records["data"]:
        codes = [
            _code(record.get(new, record.get(old)))
            for new, old in (("sourceLanguage", "fromLang"), ("targetLanguage", "toLang"))
        ]
        if "-".join(codes) == pair and not record.get("filter_expression") and record["fileType"] in _TYPES:
            rank = -_rank(record, "architecture", _ARCHITECTURES)
            version = (*(int(part) for part in re.findall(r"\d+", record["version"])),)
            versions.setdefault((version, rank), {})[record["fileType"]] = record
    whole = {version: files for version, files in versions.items() if "model" in files}
    if not whole:
        return ()
    files = whole[max(whole)]
    listed = []
    for kind in (kind for kind in _TYPES if kind in files):
        record, packed = files[kind], files[kind]["attachment"]
        packing = _PACKED.get(packed["mimetype"], "")
        size, digest = (
            (record["decompressedSize"], record["decompressedHash"]) if packing else (packed["size"], packed["hash"])
        )
        listed.append(
            CatalogueFile(record["name"], f"{attachments.rstrip('/')}/{packed['location']}", packing, size, digest)
        )
    return _checked(pair, listed)


def _checked(pair: str, files: Iterable[CatalogueFile]) -> tuple[CatalogueFile, ...]:
    checked = tuple(files)
    for file in checked:
        if not file.url.startswith(("https://", "http://")) or ".." in file.url or not _FILE.fullmatch(file.name):
            raise ValueError(f"the files of {pair} have unexpected names")
        is_complete = (
            type(file.size) is int and 0 < file.size < MOST_BYTES and re.fullmatch("[0-9a-f]{64}", file.sha256 or "")
        )
        if not is_complete and (file is checked[0] or file.size is not None or file.sha256 is not None):
            raise ValueError(f"{file.name} has no size and hash")
    return checked


def _code(language: str) -> str:
    """A language in the names of models: zh_hant for zh-Hant, zh for zh-Hans."""
    return language.lower().replace("-", "_").removesuffix("_hans")


def _rank(entry: dict[str, Any], key: str, order: tuple[str, ...]) -> int:
    return order.index(entry[key]) if entry.get(key) in order else len(order)
