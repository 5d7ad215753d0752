"""The models that configurations name: which there are, what of them is on the disk, and fetching them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.asr.whisper import RECOGNIZER_FILES, recognizer_name
from pipeline.config import AsrConfig, NmtConfig, load_config
from pipeline.errors import DownloadError, ModelError, UsageError
from pipeline.hub import FileSet
from pipeline.hub.resolve import (
    cached_model,
    cached_snapshot,
    drop_damaged,
    fetch_model,
    local_directory,
    repository_folder,
)
from pipeline.nmt.load import translation_files
from pipeline.progress import Progress
from pipeline.resources import named_configs

SPEECH, TRANSLATION = "speech", "translation"


@dataclass(frozen=True)
class NamedModel:
    """A model, and the configurations that name it."""

    kind: str
    """"speech" or "translation", or both words for a hub id of which only the repository's files can tell."""
    name: str
    """A directory or a hub id."""
    revision: str | None
    """What the configuration pins it to."""
    choices: tuple[FileSet, ...]
    configs: tuple[str, ...] = ()

    @property
    def pinned(self) -> bool:
        return self.revision is not None and re.fullmatch("[0-9a-f]{40}", self.revision) is not None


@dataclass(frozen=True)
class ModelState:
    """What of a model is on the disk."""

    state: str
    """"directory", or in the cache "complete", "partial" or "missing"."""
    path: str | None
    """The directory or the snapshot."""
    commit: str | None
    size: int
    """Bytes on the disk, of all revisions that the cache has."""


def named_models(configs: Iterable[str]) -> list[NamedModel]:
    """The models that these configurations name, names or paths, each model once, in that order.

    Raises:
        ConfigError: a configuration cannot be read.
    """
    found: dict[tuple[str, str, str | None, tuple[FileSet, ...]], list[str]] = {}
    for name in configs:
        config = load_config(name)
        speech = (SPEECH, recognizer_name(config.asr), config.asr.revision, (RECOGNIZER_FILES,))
        translation = (TRANSLATION, config.nmt.model, config.nmt.revision, translation_files(config.nmt))
        for key in (speech, translation):
            found.setdefault(key, []).append(name)
    return [NamedModel(*key, tuple(names)) for key, names in found.items()]


def state_of(model: NamedModel) -> ModelState:
    """Look at the disk; asks nobody."""
    try:
        directory = local_directory(model.name)
    except ModelError:
        return ModelState("missing", None, None, 0)
    if directory is not None:
        return ModelState("directory", str(directory), None, _disk_usage(directory))
    size = _disk_usage(repository_folder(model.name))
    snapshot = cached_snapshot(model.name, model.revision)
    if cached_model(model.name, model.revision, *model.choices):
        state = "complete"
    else:
        folder = repository_folder(model.name)
        # Another revision may be there, whole; files that no snapshot has yet are what an interrupted download left.
        begun = any(folder.glob("blobs/*.incomplete")) or (size and not any(folder.glob("snapshots/*")))
        state = "partial" if snapshot or begun else "missing"
    return ModelState(state, str(snapshot) if snapshot else None, snapshot.name if snapshot else None, size)


def models_called(name: str, revision: str | None = None) -> list[NamedModel]:
    """What ``pull NAME`` means: a configuration's models, or the one model of a hub id or Whisper size.

    A hub id that a bundled configuration pins is taken at that revision if none is given.

    Raises:
        UsageError, ConfigError: no such configuration; a revision for a whole configuration.
        ModelError: not a hub id.
    """
    bundled = named_configs()
    if name in bundled or name.endswith(".toml"):
        if revision:
            raise UsageError(f"a revision is for one model; {name} is a configuration, which names its own")
        return named_models([name])
    known = {model.name: model for model in named_models(bundled)}
    hub_id = recognizer_name(AsrConfig(model=name))
    if hub_id in known and not revision:
        return [known[hub_id]]
    if "/" not in hub_id:
        raise UsageError(
            f"nothing is called {name!r}; give a configuration ({', '.join(bundled)}, or a .toml file), a hub id such as "
            "owner/name, or a Whisper size such as small"
        )
    choices = (RECOGNIZER_FILES,) if hub_id != name else (RECOGNIZER_FILES, *translation_files(NmtConfig(model=name)))
    return [NamedModel(SPEECH if hub_id != name else f"{SPEECH} or {TRANSLATION}", hub_id, revision, choices)]


def pull(model: NamedModel, progress: Progress) -> str:
    """See to it that a model is in the cache, whole and with the right hashes; what was done, for a person.

    One pinned to a commit is asked for only if something of it is missing or damaged; others are compared with the hub.

    Raises:
        ModelError, DownloadError: see ``fetch_model``.
    """
    if local_directory(model.name) is not None:
        return f"{model.name}: a directory, nothing to fetch"
    cached = cached_model(model.name, model.revision, *model.choices)
    damaged = drop_damaged(cached) if cached else []
    if cached and model.pinned and not damaged:
        return f"{model.name}: complete and undamaged at {cached.name}"
    try:
        snapshot = fetch_model(model.name, model.revision, *model.choices, progress=progress)
    except DownloadError:
        if cached is None or damaged:
            raise
        return (
            f"{model.name}: complete and undamaged at {cached.name}; whether the hub has a newer one could not be asked"
        )
    done = f"{model.name}: complete at {snapshot.name}"
    if damaged:
        done += f"; {', '.join(damaged)} had been damaged and came again"
    return done if model.pinned else f'{done}; not pinned: revision = "{snapshot.name}" in a configuration keeps it'


def as_table(rows: Sequence[tuple[NamedModel, ModelState]]) -> str:
    """Models and their states for a person, one a line."""
    cells = [("MODEL", "KIND", "REVISION", "STATE", "SIZE", "CONFIGS")]
    for model, state in rows:
        name = os.path.relpath(model.name) if state.state == "directory" else model.name
        revision = (model.revision or state.commit or "")[:12] or "-"
        size = f"{state.size / 1e6:,.1f} MB" if state.size else "-"
        cells.append(
            (min(name, model.name, key=len), model.kind, revision, state.state, size, ", ".join(model.configs))
        )
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def _disk_usage(folder: Path) -> int:
    """Bytes of the files below, links not followed."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
