"""Hub models in the streaming layout: compiled on first use, kept beside the hub's own cache."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

from pipeline.config import NmtConfig
from pipeline.errors import HubUnreachableError, ModelError
from pipeline.hub import FileSet, resolve_model
from pipeline.hub.resolve import cached_commit, held, local_directory, readable
from pipeline.hub.transfer import digest_of
from pipeline.nmt.compiler import VERSION
from pipeline.progress import Progress, progress_bar

logger = logging.getLogger(__name__)

_LIBRARY = "streaming-speech-translation"
_FILES_MADE = "files.json"
_FILES = ("config.json", "source.spm", "target.spm", "vocab.json")
_OPTIONAL_FILES = ("target_vocab.json", "generation_config.json", "tokenizer_config.json")


def find_translation_model(config: NmtConfig, progress: Progress | None = None) -> Path:
    """The directory of the configured translation model: fetched if it is not in the cache, and compiled there.

    A model that the compiler refuses is run as it is, with a warning, if the repository has ONNX files for that.

    Raises:
        ModelError: see ``resolve_model``; or it can neither be compiled nor run as it is.
        DownloadError: see ``resolve_model``.
    """
    if not is_compiled(config):
        return resolve_model(config.model, config.revision, *translation_files(config), progress=progress)
    if (compiled := cached_compiled(config)) is not None:
        return compiled
    snapshot = resolve_model(config.model, config.revision, *translation_files(config), progress=progress)
    try:
        return compile_into_cache(config, snapshot, progress)
    except ModelError as error:
        if isinstance(error.__cause__, OSError):
            raise  # the disk's fault, not the model's
        refusal = error
    while all(choice.missing_from(snapshot) for choice in _exports("")):
        # It came in a form that cannot be run as it is: another may be one that the compiler understands, or that can.
        others = [choice for choice in translation_files(config) if choice.missing_from(snapshot)]
        try:
            snapshot = resolve_model(config.model, config.revision, *others, progress=progress)
        except (ModelError, HubUnreachableError):
            raise refusal from None
        try:
            return compile_into_cache(config, snapshot, progress)
        except ModelError as error:
            refusal = error
    logger.warning("%s is run as it was fetched, which is slower: it cannot be compiled: %s", config.model, refusal)
    return snapshot


def is_compiled(config: NmtConfig) -> bool:
    """Whether a model is to be run in the streaming layout made here; a directory is taken as it is.

    Raises:
        ModelError: the model is neither a directory nor a hub id.
    """
    return config.weights != "as-is" and not config.file_suffix and local_directory(config.model) is None


def translation_files(config: NmtConfig) -> tuple[FileSet, ...]:
    """What of a hub repository is needed: any of these will do."""
    if config.weights == "as-is" or config.file_suffix:
        return _exports(config.file_suffix)
    from pipeline.nmt.compiler.huggingface import can_read_pytorch  # takes a while

    checkpoints = ["model.safetensors", "pytorch_model.bin"] if can_read_pytorch() else ["model.safetensors"]
    # Half precision keeps 11 bits of a weight: enough for whatever is compiled to fewer.
    half = _exports("_fp16") if config.weights != "fp32" else ()
    return (*_exports(""), *half, *(FileSet((*_FILES, name), _OPTIONAL_FILES) for name in checkpoints))


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
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with held(folder.with_name(f"{folder.name}.lock"), f"compiles {config.model}", progress):
            if not _is_whole(folder):
                shutil.rmtree(folder, ignore_errors=True)
                for left in folder.parent.glob(f".{folder.name}.*"):  # by a program that was killed
                    shutil.rmtree(left, ignore_errors=True)
                compile_model(snapshot, folder, weights=config.weights, progress=progress)
                made = json.dumps(_as_made(folder))
                (folder / _FILES_MADE).write_text(made)  # last: without it the model is not whole
    except OSError as error:
        raise ModelError(
            f"cannot write to {folder.parent}: {error.strerror or error}; make room or give the right to write, or set "
            "HF_ASSETS_CACHE to another folder"
        ) from error
    return folder


def _folder(config: NmtConfig, commit: str) -> Path:
    """Where a compiled model is kept: the place that huggingface_hub sets aside for what libraries make of models."""
    from huggingface_hub import constants

    repository = Path(constants.HF_ASSETS_CACHE) / _LIBRARY / config.model.replace("/", "--")
    return repository / f"{commit}-{config.weights}-v{VERSION}"


def _exports(suffix: str) -> tuple[FileSet, ...]:
    """An ONNX export in one precision, in the folder that the hub's converters use or at the top, as optimum leaves it."""
    return tuple(
        FileSet((*_FILES, *graphs), _OPTIONAL_FILES, tuple(f"{graph}?data*" for graph in graphs))
        for folder in ("onnx/", "")
        for graphs in [(f"{folder}encoder_model{suffix}.onnx", f"{folder}decoder_model_merged{suffix}.onnx")]
    )
