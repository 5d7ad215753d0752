"""Names of a recording's output files: from its own name, the language, and the other recordings in its folder."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from pipeline.apps.journal import SUFFIX as JOURNAL_SUFFIX

# Suffixes of recordings in a folder, all read by FFmpeg. A file named explicitly may have any name.
_AUDIO = "aac ac3 aif aifc aiff amr ape au caf flac m4a m4b mka mp2 mp3 oga ogg opus ra spx tta voc w64 wav wma wv"
_VIDEO = "3g2 3gp asf avi divx f4v flv m2ts m4v mkv mov mp4 mpeg mpg mts mxf ogv rm ts vob webm wmv"
SUFFIXES = frozenset(f".{name}" for name in (_AUDIO + " " + _VIDEO).split())

# Bytes. The limit of nearly all file systems; some encrypting ones have 143, and VFAT reports more than it takes.
_LONGEST_NAME = 255
# 48 bits: the probability of a collision among ten thousand names is 2e-7.
_HASH_DIGITS = 12


@dataclass(frozen=True)
class OutputName:
    """The file names of one recording: ``folder``/``stem`` plus a suffix, shortened if too long."""

    folder: Path
    stem: str
    language: str = ""
    """A language tag before the suffix, or ""."""
    longest: int = _LONGEST_NAME
    """Maximum bytes of a name in ``folder``."""

    def path(self, suffix: str) -> Path:
        end = self._tag + suffix
        if _fits(self.stem + end, self.longest):
            return self.folder / (self.stem + end)
        # Reserve room for the journal's suffix, the longest, so that all names are shortened alike.
        room = self.longest - len(os.fsencode(self._tag)) - max(len(suffix), len(JOURNAL_SUFFIX))
        return self.folder / (shortened(self.stem, room) + end)

    def is_shorter(self, suffix: str) -> bool:
        """Whether the name is shortened for this suffix."""
        return not _fits(self.stem + self._tag + suffix, self.longest)

    @property
    def _tag(self) -> str:
        return f".{self.language}" if self.language else ""


def _fits(name: str, longest: int) -> bool:
    return len(os.fsencode(name)) <= longest


def shortened(stem: str, longest: int) -> str:
    """Shorten ``stem`` to at most ``longest`` bytes: its first characters, "~", and a hash of all of it.

    The result depends only on the arguments.
    """
    mark = _hash(stem)
    room = longest - len(mark)
    kept = 0
    for character in stem:
        room -= len(os.fsencode(character))
        if room < 0:
            break
        kept += 1
    return stem[:kept] + mark


def longest_name(folder: Path) -> int:
    """Maximum bytes of a name in ``folder``, which need not exist yet."""
    place = os.path.realpath(folder)
    while not os.path.isdir(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    try:
        found = os.pathconf(place, "PC_NAME_MAX")
    except (AttributeError, OSError, ValueError):  # not on Windows
        return _LONGEST_NAME
    return min(found, _LONGEST_NAME) if found > 0 else _LONGEST_NAME


def stem_of(name: str) -> str:
    """A recording's name without a known recording suffix; "talk.2024" has none."""
    stem, dot, suffix = name.rpartition(".")
    return stem if stem and f"{dot}{suffix}".lower() in SUFFIXES else name


class Folder:
    """The recordings of one folder, which affect each other's output names."""

    def __init__(self, path: Path) -> None:
        try:
            entries = os.listdir(path)
        except OSError:  # not listable, but files in it may still be readable by name
            entries = []
        recordings = [name for name in entries if stem_of(name) != name and _is_recording(path / name)]
        self._names = {_folded(name) for name in recordings}
        self._files: dict[str, set[str]] = {}
        """Folded stem → the files with that stem; links to the same file count once."""
        for name in recordings:
            self._files.setdefault(_folded(stem_of(name)), set()).add(os.path.realpath(path / name))
        self._path = path

    def stem(self, name: str, language: str = "") -> str:
        """The base name of the output files of the recording ``name``.

        It is the recording's stem, or its whole name if files of that stem could belong to another recording. It
        depends only on the names in the folder and ``language``, so that a later run finds the same files.
        """
        stem = stem_of(name)
        claims = {_folded(stem), _folded(f"{stem}.{language}")} if language else {_folded(stem)}
        own = {os.path.realpath(self._path / name)}
        shared = any(claim in self._names or self._files.get(claim, own) - own for claim in claims)
        if not shared and not f"{stem}.jsonl".endswith(JOURNAL_SUFFIX):
            return stem
        # A name without a suffix equals its stem: add a hash.
        return name if name != stem else name + _hash(name)


def _folded(name: str) -> str:
    """Fold names that are equal on file systems which ignore case and Unicode composition (Windows, macOS)."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _is_recording(path: Path) -> bool:
    # Count files without permission too, so that names do not change with permissions. Pipes and folders do not count.
    return os.path.isfile(path) or not os.path.exists(path)


def _hash(name: str) -> str:
    return "~" + hashlib.blake2b(os.fsencode(name), digest_size=_HASH_DIGITS // 2).hexdigest()
