"""Resolve a model's name to a directory: an existing one, a cached snapshot, installed packages, or the hub."""

from __future__ import annotations

import os
import re
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DownloadError, ModelError, UsageError
from .cache import cached_commit, repository_folder, translate_read_errors
from .known import FileSet, KnownModel, known_model, known_translator
from .packages import is_complete, model_from_packages
from .students import cached_student, is_student

if TYPE_CHECKING:
    from .progress import Progress


@dataclass(frozen=True)
class ModelRef:
    """A model's name, resolved: where the model is from, and which of its files are needed."""

    source: str
    """A directory, a hub id, or a student of Firefox Translations, such as firefox/en-de."""
    revision: str | None = None
    """The commit, tag or branch of a hub id; None: the newest."""
    files: tuple[FileSet, ...] = ()
    """Any one of these sets is enough."""
    licence: str | None = None
    """The model's licence; None: not known."""

    @classmethod
    def named(cls, source: str, revision: str | None, *files: FileSet) -> ModelRef:
        """A model that is taken at its known revision if it is known and the revision is not another one."""
        if (model := known_model(source, revision)) is None:
            return cls(source, revision, files)
        return cls(source, model.revision, files, model.licence)

    @property
    def known(self) -> KnownModel | None:
        """The model's entry in the table of known models; None if it has none."""
        return known_model(self.source, self.revision)

    @property
    def pinned(self) -> bool:
        """Whether the revision is a commit."""
        return self.revision is not None and re.fullmatch("[0-9a-f]{40}", self.revision) is not None


def resolve_model(ref: ModelRef, progress: Progress | None = None) -> Path:
    """The directory of a model, which is fetched if it is not on this machine: the set of its files with the fewest bytes.

    A known model (``pipeline.store.known``) is looked for in installed packages first, and used only with its known hashes.
    Without ``progress``, a bar on standard error shows it.
    """
    if (local := local_model(ref)) is not None:
        return local
    from .progress import progress_bar  # as all below: most runs fetch nothing

    with nullcontext(progress) if progress is not None else progress_bar() as shown:
        if is_student(ref.source):
            from .firefox import fetch_student

            return fetch_student(ref.source, shown)
        if (model := ref.known) is None:
            from .hub import fetch_model

            return fetch_model(ref, shown)
        if (installed := model_from_packages(model, shown)) is not None:
            return installed
        if model.revision and (cached := cached_model(replace(ref, revision=model.revision))) is not None:
            raise DownloadError(
                f"{cached} does not hold the files of {model.hub_id} as published; fetch the damaged ones again with: "
                f"python -m pipeline.models pull {model.size}"
            )
        from .hub import fetch_known

        return fetch_known(model, ref, shown)


def local_model(ref: ModelRef) -> Path | None:
    """The directory itself, a cached student or the smaller one of an installed package, or the cached snapshot if it is whole."""
    if is_student(ref.source):
        smaller = known_translator(f"{ref.source}-tiny")
        return cached_student(ref.source) or (model_from_packages(smaller) if smaller is not None else None)
    if (directory := local_directory(ref.source)) is not None:
        return directory
    if (model := ref.known) is None:
        return cached_model(ref)
    cached = cached_model(replace(ref, revision=model.revision)) if model.revision else None
    return cached if cached is not None and is_complete(cached, model) else None


def local_directory(model: str) -> Path | None:
    """``model`` as a path if it is a directory, None if it may be a hub id."""
    if os.path.isdir(model):  # unlike Path.is_dir, does not raise for a name that is too long
        return Path(model)
    if os.path.exists(model):
        raise ModelError(f"{model} is a file; give the directory that holds the model")
    if model.count("/") != 1 or model.startswith((".", "/", "~")):
        raise UsageError(
            f"no such model directory: {model}; give an existing directory, or a hub id such as owner/name"
        )
    # A slow import that only hub models need.
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(model)
    except HFValidationError as error:
        raise ModelError(f"{model} is neither a directory nor a hub id: {error}") from None
    return None


def cached_snapshot(ref: ModelRef) -> Path | None:
    """The cached snapshot of a repository at a revision, complete or not, or None. Its name is the commit."""
    snapshot = repository_folder(ref.source) / "snapshots" / cached_commit(ref)
    with translate_read_errors(snapshot):
        return snapshot if snapshot.is_dir() else None


def cached_model(ref: ModelRef) -> Path | None:
    """The cached snapshot if it has all files of one of the sets, else None."""
    snapshot = cached_snapshot(ref)
    # An interrupted download leaves an incomplete snapshot.
    if snapshot is None:
        return None
    with translate_read_errors(snapshot):
        return snapshot if any(not choice.missing_from(snapshot) for choice in ref.files) else None
