"""Hub models in the streaming layout: compiled on first use, kept beside the hub's own cache."""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

from pipeline.errors import HubUnreachableError, ModelError
from pipeline.nmt.compiler import VERSION
from pipeline.nmt.exports import (
    OPTIONAL_SETTINGS,
    SETTINGS,
    compilable_exports,
    fallback_exports,
    runnable_exports,
)
from pipeline.nmt.options import NmtConfig
from pipeline.run.progress import Progress, progress_bar
from pipeline.store import FileSet, resolve_model
from pipeline.store.lock import held
from pipeline.store.packages import assets
from pipeline.store.resolve import cached_commit, local_directory, readable
from pipeline.store.transfer import digest_of

logger = logging.getLogger(__name__)

_FILES_MADE = "files.json"


def find_translation_model(config: NmtConfig, progress: Progress | None = None) -> Path:
    """The directory of the configured translation model: fetched if it is not in the cache, and compiled there.

    A model that the compiler refuses is run as it is, with a warning, if the repository has ONNX files for that.

    Raises:
        ModelError: see ``resolve_model``; or it can neither be compiled nor run as it is.
        DownloadError: see ``resolve_model``.
    """
    if not is_compiled(config):
        directory = resolve_model(config.model, config.revision, *translation_files(config), progress=progress)
        return directory if local_directory(config.model) is not None else _as_it_is(config, directory)
    if (compiled := cached_compiled(config)) is not None:
        return compiled
    snapshot = resolve_model(config.model, config.revision, *translation_files(config), progress=progress)
    try:
        return compile_into_cache(config, snapshot, progress)
    except ModelError as error:
        if isinstance(error.__cause__, OSError):
            raise  # the disk's fault, not the model's
        refusal = error
    while not any(export.is_in(snapshot) for export in runnable_exports("")):
        # It came in a form that cannot be run as it is, or in 8 bits: another may be one that the compiler understands, or
        # that runs as it is and is more exact.
        others = [choice for choice in translation_files(config) if choice.missing_from(snapshot)]
        try:
            snapshot = resolve_model(config.model, config.revision, *others, progress=progress)
        except (ModelError, HubUnreachableError):
            if any(export.is_in(snapshot) for export in fallback_exports()):
                break
            raise refusal from None
        try:
            return compile_into_cache(config, snapshot, progress)
        except ModelError as error:
            refusal = error
    logger.warning("%s is run as it was fetched, which is slower: it cannot be compiled: %s", config.model, refusal)
    return _as_it_is(config, snapshot)


def _as_it_is(config: NmtConfig, snapshot: Path) -> Path:
    """A directory from which ONNX Runtime takes a fetched export.

    Raises:
        ModelError: it cannot be written.
    """
    exports = runnable_exports(config.file_suffix) if not is_compiled(config) else fallback_exports()
    export = next(export for export in exports if export.is_in(snapshot))
    folder = _folder(config, snapshot.name).parent
    with _writable(folder):
        return export.placed(snapshot, folder, config.file_suffix)


def is_compiled(config: NmtConfig) -> bool:
    """Whether a model is to be run in the streaming layout made here; a directory is taken as it is.

    Raises:
        ModelError: the model is neither a directory nor a hub id.
    """
    return config.weights != "as-is" and not config.file_suffix and local_directory(config.model) is None


def translation_files(config: NmtConfig) -> tuple[FileSet, ...]:
    """What of a hub repository is needed: any of these will do."""
    if config.weights == "as-is" or config.file_suffix:
        return tuple(export.files() for export in runnable_exports(config.file_suffix))
    from pipeline.nmt.compiler.huggingface import can_read_pytorch  # takes a while

    checkpoints = ["model.safetensors", "pytorch_model.bin"] if can_read_pytorch() else ["model.safetensors"]
    # Half precision keeps 11 bits of a weight: enough for whatever is compiled to fewer.
    exports = compilable_exports(half=config.weights != "fp32")
    return (
        *(export.files() for export in exports),
        *(FileSet((*SETTINGS, name), OPTIONAL_SETTINGS) for name in checkpoints),
        *(export.files() for export in fallback_exports()),
    )


def cached_compiled(config: NmtConfig) -> Path | None:
    """The compiled model, if it is in the cache, and whole."""
    folder = _folder(config, cached_commit(config.model, config.revision))
    with readable(folder):
        return folder if _is_whole(folder) else None


def _is_whole(folder: Path) -> bool:
    """Whether all files of a compiled model are there, as long as they were made."""
    made = _noted(folder)
    return made is not None and {name: size for name, (size, _) in made.items()} == {
        path.name: path.stat().st_size for path in folder.iterdir() if path.name != _FILES_MADE
    }


def _noted(folder: Path) -> dict[str, tuple[int, str]] | None:
    """Size and hash of every file, as the model was made; None where that was not noted, or not here."""
    try:
        return {name: (size, digest) for name, (size, digest) in json.loads((folder / _FILES_MADE).read_text()).items()}
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, AttributeError):
        return None


def _as_made(folder: Path) -> dict[str, tuple[int, str]]:
    files = [path for path in folder.iterdir() if path.name != _FILES_MADE]
    return {path.name: (path.stat().st_size, digest_of(path)) for path in files}


def drop_damaged_compiled(config: NmtConfig) -> bool:
    """Compare a compiled model in the cache with what was made; True if it differs: it is then made again.

    Raises:
        DownloadError: the cache cannot be read.
        ModelError: it cannot be written.
    """
    folder = _folder(config, cached_commit(config.model, config.revision))
    with readable(folder):
        if not _is_whole(folder) or _as_made(folder) == _noted(folder):
            return False
    try:
        (folder / _FILES_MADE).unlink(missing_ok=True)
    except OSError as error:
        raise ModelError(f"{folder} is damaged and cannot be removed: {error.strerror or error}; remove it") from error
    return True


def compile_into_cache(config: NmtConfig, snapshot: Path, progress: Progress | None = None) -> Path:
    """Compile a fetched model, unless another program has done so meanwhile; the directory to load.

    Raises:
        ModelError: the compiler refuses the model, or the cache cannot be written.
    """
    if progress is None:
        with progress_bar() as bar:
            return compile_into_cache(config, snapshot, bar)
    from pipeline.nmt.compiler.build import compile_model

    folder = _folder(config, snapshot.name)
    with _writable(folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with held(folder.with_name(f"{folder.name}.lock"), f"compiles {config.model}", progress):
            if not _is_whole(folder):
                shutil.rmtree(folder, ignore_errors=True)
                for left in folder.parent.glob(f".{folder.name}.*"):  # by a program that was killed
                    shutil.rmtree(left, ignore_errors=True)
                compile_model(snapshot, folder, weights=config.weights, progress=progress)
                made = json.dumps(_as_made(folder))
                (folder / _FILES_MADE).write_text(made)  # last: without it the model is not whole
    return folder


@contextlib.contextmanager
def _writable(folder: Path) -> Iterator[None]:
    """Say what cannot be written in the cache, as a ModelError."""
    try:
        yield
    except OSError as error:
        raise ModelError(
            f"cannot write to {folder}: {error.strerror or error}; make room or give the right to write, or set "
            "HF_ASSETS_CACHE to another folder"
        ) from error


def _folder(config: NmtConfig, commit: str) -> Path:
    """Where a compiled model is kept."""
    repository = assets() / config.model.replace("/", "--")
    return repository / f"{commit}-{config.weights}-v{VERSION}"
