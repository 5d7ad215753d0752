"""Names of output files: from a recording's name, the languages, and the other recordings in its folder; or given."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import UsageError
from ..media import SPOKEN, file_suffix
from ..names import STANDARD_OUTPUT

JOURNAL_SUFFIX = ".unfinished.jsonl"
# Suffixes of recordings in a folder, all read by FFmpeg. A file named explicitly may have any name.
_AUDIO = "aac ac3 aif aifc aiff amr ape au caf flac m4a m4b mka mp2 mp3 oga ogg opus ra spx tta voc w64 wav wma wv"
_VIDEO = "3g2 3gp asf avi divx f4v flv m2ts m4v mkv mov mp4 mpeg mpg mts mxf ogv rm ts vob webm wmv"
SUFFIXES = frozenset(f".{name}" for name in (_AUDIO + " " + _VIDEO).split())

Output = tuple[str, str]
"""(format, target language); the language is "" for a format with one file for all languages."""
# Formats with one file for all target languages: it has all, or none.
_ALL_LANGUAGES = SPOKEN | {"jsonl"}

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
        return self.folder / (shortened_stem(self.stem, room) + end)

    def is_shorter(self, suffix: str) -> bool:
        """Whether the name is shortened for this suffix."""
        return not _fits(self.stem + self._tag + suffix, self.longest)

    @property
    def _tag(self) -> str:
        return f".{self.language}" if self.language else ""


@dataclass(frozen=True)
class OutputNames:
    """The file names of one recording in all formats and target languages."""

    base: OutputName
    """The name of the journal, and of files that have all languages."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Target language → its tag in file names, or ""; see ``language_tags``."""

    def path(self, output: Output) -> Path:
        return self._name(output).path(file_suffix(output[0]))

    def is_shorter(self, output: Output) -> bool:
        """Whether the name is shortened."""
        return self._name(output).is_shorter(file_suffix(output[0]))

    @property
    def journal(self) -> Path:
        return self.base.path(JOURNAL_SUFFIX)

    def _name(self, output: Output) -> OutputName:
        kind, target = output
        if kind in SPOKEN:
            return replace(self.base, language="")
        return self.base if kind in _ALL_LANGUAGES else replace(self.base, language=self.tags[target])


def outputs_of(kinds: Sequence[str], targets: Sequence[str]) -> list[Output]:
    """The outputs in the formats ``kinds``: a file per target language, or one for all languages."""
    return [(kind, target) for kind in kinds for target in (("",) if kind in _ALL_LANGUAGES else targets)]


def label(output: Output, targets: Sequence[str]) -> str:
    """The name of an output in a journal: the format, after the language if there are several targets: ``zh.srt``."""
    kind, target = output
    return f"{target}.{kind}" if target and len(targets) > 1 else kind


def labelled(labels: Sequence[str], targets: Sequence[str]) -> list[Output]:
    """The outputs that ``label`` gave the names ``labels``; those of other targets are left out."""
    kinds = [name.rpartition(".")[2] for name in labels]
    outputs = {label(output, targets): output for output in outputs_of(kinds, targets)}
    return [outputs[name] for name in labels if name in outputs]


def language_tags(targets: Sequence[str], *, always: bool) -> dict[str, str]:
    """Target language → its tag in file names, where players look for it. It is "" for a single target, unless ``always``."""
    return {target: target if always or len(targets) > 1 else "" for target in targets}


def named_outputs(given: Mapping[str, Path], targets: Sequence[str]) -> dict[Output, Path]:
    """The files for names given by the user, format → path.

    With several targets, each language has a file, with the language before the suffix: talk.srt gives talk.zh.srt and
    talk.de.srt. A format whose file has all languages keeps the name.
    """
    if len(targets) > 1:
        for kind, path in given.items():
            if path == STANDARD_OUTPUT and kind not in _ALL_LANGUAGES:
                raise UsageError(
                    f"standard output cannot take the {kind} subtitles of several languages ({', '.join(targets)}); name a "
                    "file, or write jsonl, which has all languages"
                )
    tags = language_tags(targets, always=False)
    return {
        (kind, target): _with_tag(given[kind], tags[target] if target else "")
        for kind, target in outputs_of(list(given), targets)
    }


def _with_tag(path: Path, tag: str) -> Path:
    """The path with a language before its suffix."""
    if not tag:
        return path
    if path.name in ("", "..") or (os.path.exists(path) and not os.path.isfile(path)):
        kind = "a folder" if os.path.isdir(path) else "a pipe or a device"
        raise UsageError(
            f"{path} is {kind}, but each target language needs its own file, named after it; name a file, or choose one "
            "target"
        )
    return path.with_name(f"{path.stem}.{tag}{path.suffix}")


def _fits(name: str, longest: int) -> bool:
    return len(os.fsencode(name)) <= longest


def shortened_stem(stem: str, longest: int) -> str:
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
        limit = os.pathconf(place, "PC_NAME_MAX")
    except (AttributeError, OSError, ValueError):  # not on Windows
        return _LONGEST_NAME
    return min(limit, _LONGEST_NAME) if limit > 0 else _LONGEST_NAME


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
            self._files.setdefault(_folded(stem_of(name)), set()).add(_identity(path / name))
        self._path = path

    def stem(self, name: str, *languages: str) -> str:
        """The base name of the output files of the recording ``name``.

        It is the recording's stem, or its whole name if files of that stem could belong to another recording. It
        depends only on the names in the folder and ``languages``, the tags in the file names, so that a later run finds
        the same files.
        """
        stem = stem_of(name)
        claims = {_folded(stem), *(_folded(f"{stem}.{language}") for language in languages if language)}
        identities = {_identity(self._path / name)}
        shared = any(claim in self._names or self._files.get(claim, identities) - identities for claim in claims)
        if not shared and not f"{stem}.jsonl".endswith(JOURNAL_SUFFIX):
            return stem
        # A name without a suffix equals its stem: add a hash.
        return name if name != stem else name + _hash(name)


def _folded(name: str) -> str:
    """Fold names that are equal on file systems which ignore case and Unicode composition (Windows, macOS)."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _identity(path: Path) -> str:
    return os.path.realpath(path)


def _is_recording(path: Path) -> bool:
    # Count files without permission too, so that names do not change with permissions. Pipes and folders do not count.
    return os.path.isfile(path) or not os.path.exists(path)


def _hash(name: str) -> str:
    return "~" + hashlib.blake2b(os.fsencode(name), digest_size=_HASH_DIGITS // 2).hexdigest()


def make_folder(folder: Path) -> None:
    """Create a folder for outputs, with its parents."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot create the folder {folder} ({error.strerror}); choose another with --output-dir"
        ) from error
