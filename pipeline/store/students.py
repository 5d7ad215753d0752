"""Firefox Translations' students by name (firefox/en-de) in the cache."""

from __future__ import annotations

import json
import re
from pathlib import Path

from .cache import digest_of, writable
from .packages import assets

PREFIX = "firefox/"
MANIFEST = "files.json"
_NAME = re.compile(r"firefox/[a-z]{2,3}(?:_[a-z]+)?-[a-z]{2,3}(?:_[a-z]+)?")


def is_student(name: str) -> bool:
    """Whether a model's name is one of Mozilla's catalogue."""
    return _NAME.fullmatch(name) is not None


def cached_student(name: str) -> Path | None:
    """The directory of a student in the cache if it is complete."""
    folder = student_folder(name)
    try:
        whole = all((folder / file).stat().st_size == size for file, (size, _) in manifest_of(folder).items())
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return folder if whole else None


def drop_damaged_student(name: str) -> bool:
    """Remove a cached student whose files have other hashes than when they were fetched; whether it did."""
    if (folder := cached_student(name)) is None:
        return False
    if all(digest_of(folder / file) == digest for file, (_, digest) in manifest_of(folder).items()):
        return False
    with writable(folder):
        (folder / MANIFEST).unlink()
    return True


def student_folder(name: str) -> Path:
    """Where a student is cached, whether it is there or not."""
    return assets() / "firefox" / name.removeprefix(PREFIX)


def manifest_of(folder: Path) -> dict[str, tuple[int, str]]:
    """The size and hash of each file of a student, as it was fetched; the model first."""
    manifest: dict[str, tuple[int, str]] = json.loads((folder / MANIFEST).read_text())
    return manifest
