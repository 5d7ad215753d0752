"""How the files that a recording becomes are named: by its own name, its language, and what lies beside it."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from pipeline.apps.journal import SUFFIX as JOURNAL_SUFFIX

# What counts as a recording in a folder; a file that is named is one whatever its name. FFmpeg reads them all.
_AUDIO = "aac ac3 aif aifc aiff amr ape au caf flac m4a m4b mka mp2 mp3 oga ogg opus ra spx tta voc w64 wav wma wv"
_VIDEO = "3g2 3gp asf avi divx f4v flv m2ts m4v mkv mov mp4 mpeg mpg mts mxf ogv rm ts vob webm wmv"
SUFFIXES = frozenset(f".{name}" for name in (_AUDIO + " " + _VIDEO).split())

# Bytes of a name on nearly all file systems; some that encrypt have 143, and VFAT says more than it holds.
_LONGEST_NAME = 255
# Of 48 bits: of ten thousand names, two get the same one with a probability of 2e-7.
_HASH_DIGITS = 12


@dataclass(frozen=True)
class OutputName:
    """All files of one recording: ``folder``/``stem`` and a suffix, or a shorter name where that is too long."""

    folder: Path
    stem: str
    language: str = ""
    """A language tag, which stands before the suffix; "" for none."""
    longest: int = _LONGEST_NAME
    """Bytes that a name in ``folder`` may have."""

    def path(self, suffix: str) -> Path:
        end = self._tag + suffix
        if _fits(self.stem + end, self.longest):
            return self.folder / (self.stem + end)
        # The journal's suffix is the longest: what is shortened is the same for all of them.
        room = self.longest - len(os.fsencode(self._tag)) - max(len(suffix), len(JOURNAL_SUFFIX))
        return self.folder / (shortened(self.stem, room) + end)

    def is_shorter(self, suffix: str) -> bool:
        """Whether the name had to be shortened for this suffix."""
        return not _fits(self.stem + self._tag + suffix, self.longest)

    @property
    def _tag(self) -> str:
        return f".{self.language}" if self.language else ""


def _fits(name: str, longest: int) -> bool:
    return len(os.fsencode(name)) <= longest


def shortened(stem: str, longest: int) -> str:
    """Whole characters of the beginning of ``stem``, "~", and a hash of all of it: ``longest`` bytes at most. Always the same
    for the same stem."""
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
    """Bytes that a name in ``folder``, which need not be there yet, may have."""
    place = os.path.realpath(folder)
    while not os.path.isdir(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    try:
        found = os.pathconf(place, "PC_NAME_MAX")
    except (AttributeError, OSError, ValueError):  # Windows has none
        return _LONGEST_NAME
    return min(found, _LONGEST_NAME) if found > 0 else _LONGEST_NAME


def stem_of(name: str) -> str:
    """A recording's name without the suffix of a recording. Of "talk.2024" nothing is a suffix."""
    stem, dot, suffix = name.rpartition(".")
    return stem if stem and f"{dot}{suffix}".lower() in SUFFIXES else name


class Folder:
    """The recordings of one folder, which decide on each other's names."""

    def __init__(self, path: Path) -> None:
        try:
            entries = os.listdir(path)
        except OSError:  # it may not be searched: what is named in it can be read all the same
            entries = []
        recordings = [name for name in entries if stem_of(name) != name and _is_recording(path / name)]
        self._names = {_folded(name) for name in recordings}
        self._files: dict[str, set[str]] = {}
        """Folded stem → the files of that stem; links to one are one."""
        for name in recordings:
            self._files.setdefault(_folded(stem_of(name)), set()).add(os.path.realpath(path / name))
        self._path = path

    def stem(self, name: str, language: str = "") -> str:
        """What the files of the recording ``name`` are called before their suffix: its stem, or its whole name where files
        of that stem could be another recording's too. It depends on nothing but the names in the folder and ``language``,
        so that a later run finds the same."""
        stem = stem_of(name)
        claims = {_folded(stem), _folded(f"{stem}.{language}")} if language else {_folded(stem)}
        own = {os.path.realpath(self._path / name)}
        shared = any(claim in self._names or self._files.get(claim, own) - own for claim in claims)
        if not shared and not f"{stem}.jsonl".endswith(JOURNAL_SUFFIX):
            return stem
        # A whole name without a suffix is no different from the stem.
        return name if name != stem else name + _hash(name)


def _folded(name: str) -> str:
    """The same for names that are one to file systems which ignore case and Unicode composition, as on Windows and macOS."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _is_recording(path: Path) -> bool:
    # What may not be looked at counts, lest the names change with its permissions; pipes and folders do not.
    return os.path.isfile(path) or not os.path.exists(path)


def _hash(name: str) -> str:
    return "~" + hashlib.blake2b(os.fsencode(name), digest_size=_HASH_DIGITS // 2).hexdigest()
