"""Hub models compiled to the streaming layout on first use, and cached beside the hub's own cache."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from ...errors import HubUnreachableError, ModelError
from ...store import (
    PREFIX,
    FileSet,
    ModelRef,
    Progress,
    assets,
    cached_commit,
    digest_of,
    is_student,
    known_translator,
    local_directory,
    locked,
    progress_bar,
    resolve_model,
    translate_read_errors,
)
from ..nmt_options import NmtConfig
from .compile import VERSION

logger = logging.getLogger(__name__)

_MANIFEST = "files.json"


def find_translation_model(config: NmtConfig, progress: Progress | None = None) -> Path:
    """Return the directory of the configured translation model. Download and compile it if it is not cached.

    If the compiler rejects the model and the repository has runnable ONNX files, log a warning and use those files.
    """
    compiles = is_compiled(config)
    if compiles and (compiled := cached_compiled(config)) is not None:
        return compiled
    ref = translator_ref(config)
    if not compiles:
        directory = resolve_model(ref, progress)
        as_it_is = config.model.startswith(PREFIX) or local_directory(config.model) is not None
        return directory if as_it_is else _runnable_directory(config, directory)
    snapshot = resolve_model(ref, progress)
    try:
        return compile_into_cache(config, snapshot, progress)
    except ModelError as error:
        if isinstance(error.__cause__, OSError):
            raise  # a disk error; the model itself may be fine
        refusal = error
    from .decode.exports import fallback_exports, runnable_exports

    while not any(export.is_in(snapshot) for export in runnable_exports("")):
        # The downloaded files cannot be run as they are, or have only 8 bits. Other files of the repository may
        # compile, or may run as they are with higher precision.
        others = tuple(choice for choice in ref.files if choice.missing_from(snapshot))
        try:
            snapshot = resolve_model(replace(ref, files=others), progress)
        except (ModelError, HubUnreachableError):
            if any(export.is_in(snapshot) for export in fallback_exports()):
                break
            raise refusal from None
        try:
            return compile_into_cache(config, snapshot, progress)
        except ModelError as error:
            refusal = error
    logger.warning("%s cannot be compiled and is run as downloaded, which is slower: %s", config.model, refusal)
    return _runnable_directory(config, snapshot)


def _runnable_directory(config: NmtConfig, snapshot: Path) -> Path:
    """Return a directory from which ONNX Runtime can load a downloaded export."""
    from .decode.exports import fallback_exports, runnable_exports

    exports = runnable_exports(config.file_suffix) if not is_compiled(config) else fallback_exports()
    export = next(export for export in exports if export.is_in(snapshot))
    folder = _cache_directory(config, snapshot.name).parent
    with _translate_write_errors(folder):
        return export.runnable_directory(snapshot, folder, config.file_suffix)


def is_compiled(config: NmtConfig) -> bool:
    """Whether the model has to be compiled to the streaming layout. Local directories and students are used as they are."""
    if config.model.startswith(PREFIX) or local_directory(config.model) is not None:
        return False
    return config.weights != "as-is" and not config.file_suffix


def translator_ref(config: NmtConfig) -> ModelRef:
    """What the name of a translation model means; of a repository, the files from which it can be compiled or run."""
    if (model := known_translator(config.model)) is not None:
        files = FileSet(tuple(file.name for file in model.files))
        return ModelRef(config.model, config.revision, (files,), model.licence)
    if is_student(config.model):
        sets: tuple[FileSet, ...] = (FileSet(("model.*.bin", "*vocab.*.spm")),)
    else:
        if Path(config.model).is_dir():  # what is missing is told when the model is looked for
            return ModelRef(config.model, config.revision)
        sets = tuple(_hub_files(config))
    from .pairs import licence_of

    return ModelRef(config.model, config.revision, sets, licence_of(config.model))


def _hub_files(config: NmtConfig) -> Iterator[FileSet]:
    from .decode.exports import OPTIONAL_SETTINGS, SETTINGS, compilable_exports, fallback_exports, runnable_exports

    if config.weights == "as-is" or config.file_suffix:
        yield from (export.files() for export in runnable_exports(config.file_suffix))
        return
    from .compile.huggingface import can_read_pytorch  # slow import

    checkpoints = ["model.safetensors", "pytorch_model.bin"] if can_read_pytorch() else ["model.safetensors"]
    # Half precision keeps 11 bits of a weight, which is enough if the model is compiled to fewer bits.
    yield from (export.files() for export in compilable_exports(half=config.weights != "fp32"))
    yield from (FileSet((*SETTINGS, name), OPTIONAL_SETTINGS) for name in checkpoints)
    yield from (export.files() for export in fallback_exports())


def cached_compiled(config: NmtConfig) -> Path | None:
    """Return the directory of the compiled model if it is in the cache and complete."""
    folder = _cache_directory(config, _cached_commit(config))
    with translate_read_errors(folder):
        return folder if _is_complete(folder) else None


def _is_complete(folder: Path) -> bool:
    """Whether all files of a compiled model are present with their recorded sizes."""
    made = _read_manifest(folder)
    return made is not None and {name: size for name, (size, _) in made.items()} == {
        path.name: path.stat().st_size for path in folder.iterdir() if path.name != _MANIFEST
    }


def _read_manifest(folder: Path) -> dict[str, tuple[int, str]] | None:
    """Return the size and hash of every file as recorded after compilation; None if there is no valid record."""
    try:
        return {name: (size, digest) for name, (size, digest) in json.loads((folder / _MANIFEST).read_text()).items()}
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, AttributeError):
        return None


def _sizes_and_hashes(folder: Path) -> dict[str, tuple[int, str]]:
    files = [path for path in folder.iterdir() if path.name != _MANIFEST]
    return {path.name: (path.stat().st_size, digest_of(path)) for path in files}


def drop_damaged_compiled(config: NmtConfig) -> bool:
    """Verify the hashes of a cached compiled model. If they differ, return True and mark it for recompilation."""
    folder = _cache_directory(config, _cached_commit(config))
    with translate_read_errors(folder):
        if not _is_complete(folder) or _sizes_and_hashes(folder) == _read_manifest(folder):
            return False
    try:
        (folder / _MANIFEST).unlink(missing_ok=True)
    except OSError as error:
        raise ModelError(f"{folder} is damaged and cannot be removed: {error.strerror or error}; remove it") from error
    return True


def compile_into_cache(config: NmtConfig, snapshot: Path, progress: Progress | None = None) -> Path:
    """Compile a downloaded model unless another process already did, and return the directory to load."""
    from .compile.build import compile_model

    folder = _cache_directory(config, snapshot.name)
    bar = nullcontext(progress) if progress is not None else progress_bar()
    with bar as progress, _translate_write_errors(folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.with_name(f"{folder.name}.lock"), f"compiles {config.model}", progress):
            if not _is_complete(folder):
                shutil.rmtree(folder, ignore_errors=True)
                for left in folder.parent.glob(f".{folder.name}.*"):  # leftovers of a killed process
                    shutil.rmtree(left, ignore_errors=True)
                compile_model(snapshot, folder, weights=config.weights, progress=progress)
                made = json.dumps(_sizes_and_hashes(folder))
                (folder / _MANIFEST).write_text(made)  # written last: it marks the model as complete
    return folder


@contextmanager
def _translate_write_errors(folder: Path) -> Iterator[None]:
    """Translate write errors in the cache to ModelError."""
    try:
        yield
    except OSError as error:
        raise ModelError(
            f"cannot write to {folder}: {error.strerror or error}; free disk space, allow writing there, or set "
            "HF_ASSETS_CACHE to another folder"
        ) from error


def _cached_commit(config: NmtConfig) -> str:
    return cached_commit(ModelRef(config.model, config.revision))


def _cache_directory(config: NmtConfig, commit: str) -> Path:
    """Return the cache directory of a compiled model."""
    repository = assets() / config.model.replace("/", "--")
    return repository / f"{commit}-{config.weights}-v{VERSION}"
