"""Known models from installed packages, whose files are read but never imported; and a cache of verified hashes."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DownloadError, UsageError
from .cache import check_room, digest_of, locked, writable
from .known import KNOWN_MODELS, KnownFile, KnownModel

if TYPE_CHECKING:
    from .progress import Progress

logger = logging.getLogger(__name__)

_LIBRARY = "streaming-speech-translation"
_BLOCK = 1 << 20

MODELS = "SPEECH_TRANSLATE_MODELS"
"""Environment variable: a folder with copies of known models, which come before those of packages and the hub."""

Verified = dict[str, list[object]]
"""Path → size in bytes, modification time in ns, and SHA-256."""


def assets() -> Path:
    """This library's folder for files made from models, in huggingface_hub's assets cache."""
    from huggingface_hub import constants

    return Path(constants.HF_ASSETS_CACHE) / _LIBRARY


def identify(directory: Path) -> KnownModel | None:
    """The known model in a directory, identified by the hash of its weights; None if unknown."""
    for model in KNOWN_MODELS:
        weights = model.files[0]
        if verified(directory / weights.name, weights):
            return model
    return None


def is_complete(directory: Path, model: KnownModel) -> bool:
    """Whether a directory has all files of a known model, with the right hashes."""
    return all(verified(directory / file.name, file) for file in model.files)


def verified(path: Path, file: KnownFile) -> bool:
    """Whether ``path`` has the file's size and hash. The hash is cached until the size or modification time changes."""
    try:
        status = path.stat()
        if status.st_size != file.size:
            return False
        place, signature = os.path.realpath(path), [status.st_size, status.st_mtime_ns, file.sha256]
        if (noted := _read_verified()).get(place) == signature:
            return True
        if digest_of(path) != file.sha256:
            return False
    except OSError:
        return False
    _write_verified(noted | {place: signature})
    return True


def forget_verified(directory: Path) -> None:
    """Drop the cached hashes of a directory's files."""
    places = {os.path.realpath(path) for path in directory.glob("*")}
    _write_verified({place: signature for place, signature in _read_verified().items() if place not in places})


def model_from_packages(
    model: KnownModel, progress: Progress = lambda what, done: None, *, join: bool = True, anew: bool = False
) -> Path | None:
    """The directory of a known model from the folder of copies or installed packages; None if they lack a file or have a wrong one.

    If one package folder has all files whole, it is used in place. Otherwise the files are joined or copied into the
    cache, once.

    Args:
        join: if False, write nothing: files not joined yet are reported at the folder of the first package.
        anew: compute all hashes again.
    """
    joined = _place_in(assets(), model)
    copied = _place_in(Path(copies), model) if (copies := os.environ.get(MODELS)) else joined
    for place in (copied, joined):
        if anew:
            forget_verified(place)
        if is_complete(place, model):
            return place
    if copied != joined and copied.is_dir():
        logger.warning("%s lacks files of %s, or has others than published, and is not used", copied, model.hub_id)
    sources = {file: _pieces(model, file) for file in model.files}
    if missing := [file.name for file, pieces in sources.items() if not pieces]:
        if len(missing) < len(model.files):
            logger.warning(
                "the installed packages of %s lack %s and are not used; %s",
                model.hub_id,
                ", ".join(missing),
                model.install,
            )
        return None
    folders = {pieces[0].parent for pieces in sources.values()}
    if len(folders) == 1 and all(pieces[0].name == file.name for file, pieces in sources.items()):
        (folder,) = folders
        if anew:
            forget_verified(folder)
        if is_complete(folder, model):
            return folder
        _warn_wrong_files(model, [file.name for file in model.files if not verified(folder / file.name, file)])
        return None
    return _join(model, sources, joined, progress) if join else next(iter(sources.values()))[0].parent


def copy_model(model: KnownModel, source: Path, folder: Path) -> Path:
    """Copy the files of a known model to where ``model_from_packages`` finds them if MODELS names ``folder``.

    Raises:
        UsageError: they cannot be written.
        DownloadError: ``source`` has other files than published.
    """
    place = _place_in(folder, model)
    if is_complete(place, model):
        return place
    try:
        place.mkdir(parents=True, exist_ok=True)
        for file in model.files:
            shutil.copyfile(source / file.name, place / file.name)
    except OSError as error:
        raise UsageError(
            f"cannot copy {model.hub_id} to {place}: {error.strerror or error}; choose another folder"
        ) from error
    if not is_complete(place, model):
        raise DownloadError(
            f"{source} has other files of {model.hub_id} than published; fetch it again: {model.install}"
        )
    return place


def _place_in(folder: Path, model: KnownModel) -> Path:
    return folder / model.hub_id.replace("/", "--") / model.revision


def _pieces(model: KnownModel, file: KnownFile) -> list[Path]:
    """The paths of a file in the packages: the whole file, one that holds it, or its pieces in order; empty if one is missing."""
    places = [place for requirement, folder in model.packages if (place := _installed(requirement, folder)) is not None]
    if file.within:
        return [path for place in places for path in sorted(place.glob(file.within))][:1]
    for place in places:
        if (place / file.name).is_file():
            return [place / file.name]
    for pattern in (f"{file.name}.part*", "part.bin"):
        pieces = [path for place in places for path in place.glob(pattern)]
        if sum(piece.stat().st_size for piece in pieces) == file.size:
            return sorted(pieces, key=lambda path: (len(path.name), path.name))  # part10 after part2
    return []


def _installed(requirement: str, folder: str) -> Path | None:
    """A folder of an installed package, or None. Only package metadata is read; nothing is imported."""
    try:
        package = importlib.metadata.distribution(requirement.partition("==")[0])
    except importlib.metadata.PackageNotFoundError:
        return None
    return Path(str(package.locate_file(folder)))


def _join(model: KnownModel, sources: dict[KnownFile, list[Path]], folder: Path, progress: Progress) -> Path | None:
    """Copy all files to ``folder``, which appears only when complete; None if a hash is wrong."""
    total, done = sum(file.size for file in sources), 0
    with writable(folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.with_name(f"{folder.name}.lock"), f"joins {model.hub_id}", progress):
            if is_complete(folder, model):
                return folder
            shutil.rmtree(folder, ignore_errors=True)
            for leftover in folder.parent.glob(f".{folder.name}.*"):  # left by a program that was killed
                shutil.rmtree(leftover, ignore_errors=True)
            check_room(model.hub_id, total, folder.parent)
            made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
            try:
                for file, pieces in sources.items():
                    if not _copy(pieces, made / file.name, file):
                        _warn_wrong_files(model, [file.name])
                        return None
                    done += file.size
                    progress(f"joining {model.hub_id} from installed packages", done / total)
                made.chmod(0o755)
                os.replace(made, folder)
            finally:
                shutil.rmtree(made, ignore_errors=True)
    for file in model.files:
        verified(folder / file.name, file)
    return folder


def _copy(pieces: Iterable[Path], target: Path, file: KnownFile) -> bool:
    """Concatenate the pieces into ``target``; returns whether the hash is right."""
    hasher = hashlib.sha256()
    with target.open("wb") as output:
        for piece in pieces:
            for block in _blocks(piece, file):
                hasher.update(block)
                output.write(block)
    return hasher.hexdigest() == file.sha256


def _blocks(piece: Path, file: KnownFile) -> Iterator[bytes]:
    try:
        with piece.open("rb") as source:
            if file.within:
                content = source.read()
                yield content[(position := content.find(file.begins)) : position + file.size]
                return
            while block := source.read(_BLOCK):
                yield block
    except OSError as error:
        raise DownloadError(
            f"{piece} of an installed package cannot be read ({error.strerror}); check its permissions, or install it again"
        ) from error


def _warn_wrong_files(model: KnownModel, names: list[str]) -> None:
    logger.warning(
        "the installed packages of %s have a different %s than published and are not used; install them again: "
        "%s --force-reinstall", model.hub_id, ", ".join(names), model.install,
    )  # fmt: skip


def _read_verified() -> Verified:
    try:
        digests = json.loads((assets() / "verified.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return digests if isinstance(digests, dict) else {}


def _write_verified(noted: Verified) -> None:
    """Write the hash cache, best effort: if the folder is not writable, hashes are computed each time."""
    path = assets() / "verified.json"
    text = json.dumps({place: signature for place, signature in noted.items() if os.path.exists(place)}, indent=0)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".", dir=path.parent) as folder:
            (Path(folder) / path.name).write_text(text, "utf-8")
            os.replace(Path(folder) / path.name, path)
