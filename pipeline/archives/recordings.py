"""The recordings of a run, and the plan for each: which files to write, and which exist already."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import NoReturn

from ..config import PipelineConfig
from ..console import standard_input
from ..errors import FileInUseError, UsageError
from ..media import in_use, is_blank
from ..names import STANDARD_OUTPUT
from .outputs import (
    JOURNAL_SUFFIX,
    SUFFIXES,
    Folder,
    Output,
    OutputName,
    OutputNames,
    label,
    labelled,
    longest_name,
    outputs_of,
    stem_of,
)

# How many wrong lines one message names.
_NAMED = 10


class Begin(Enum):
    """How to start a recording."""

    NEW = "new"
    RESUME = "resume"
    SKIP = "skip"


@dataclass(frozen=True)
class Remote:
    """Addresses of a job's files in object stores; None: on this machine."""

    recording: str | None
    folder: str | None
    """The address at which the subtitles are stored."""


@dataclass(frozen=True)
class Job:
    """A recording and its subtitle files."""

    recording: Path
    outputs: dict[Output, Path]
    names: OutputNames
    """The names of the outputs, of the journal, and of files in other formats."""
    remote: Remote | None = None

    @property
    def journal(self) -> Path:
        """The path of the journal, which has all target languages."""
        return self.names.journal

    @property
    def is_shortened(self) -> bool:
        """Whether the recording's name is too long for an output's suffix."""
        return any(map(self.names.is_shorter, self.outputs))

    def missing(self) -> dict[Output, Path]:
        """Outputs that do not exist, or have no cue from an earlier run.

        A file without a cue counts if another language has one in this format: that language was not translated into.
        """
        there = {output for output, path in self.outputs.items() if os.path.isfile(path)}
        shown = {output for output in there if not is_blank(self.outputs[output], kind=output[0])}
        kinds = {kind for kind, _ in shown}
        return {
            output: path
            for output, path in self.outputs.items()
            if output not in there or (output not in shown and output[0] not in kinds)
        }


@dataclass(frozen=True)
class Options:
    """Options of all recordings of a run."""

    config: PipelineConfig
    overwrite: bool = False
    audio_track: int | None = None
    """The number of the audio track in each recording, from 1; None chooses by the source language."""
    speakers: tuple[str, ...] = ()
    """The names of those who speak, one in each channel; empty: the channels are mixed."""
    aside: bool = False
    """Write each subtitle file under another name, and rename it when it is complete: other machines read the folder."""
    strict: bool = False
    """Recordings in another language than the one configured are refused; else they are named."""


def read_manifest(path: Path) -> list[Path]:
    """The recordings and folders that a manifest names, in its order.

    Empty lines and lines that begin with # are skipped. A relative path counts from the manifest's folder. The text is
    UTF-8, with or without a byte order mark; names that are not keep their bytes. "-" is standard input, whose paths count
    from the current folder.
    """
    if path == STANDARD_OUTPUT:  # the same "-"
        content, folder, name = standard_input().read(), Path(), "standard input"
    else:
        try:
            content, folder, name = path.read_bytes(), path.parent, str(path)
        except OSError as error:
            raise UsageError(f"the manifest {path} cannot be read ({error.strerror}); give a text file") from error
    text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    recordings: list[Path] = []
    wrong = []
    for number, line in enumerate(text.split("\n"), 1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        recording = folder / os.path.expanduser(entry)
        if "\0" in entry or not os.path.exists(recording):
            wrong.append(f"line {number}: no such file: {entry}")
        recordings.append(recording)
    if wrong:
        more = f"; and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
        raise UsageError(f"{name}: {'; '.join(wrong[:_NAMED])}{more}; correct these lines, or begin them with #")
    if not recordings:
        raise UsageError(f"{name} names no recording; give one path a line")
    return recordings


def find_recordings(named: Sequence[Path]) -> list[tuple[Path, Path]]:
    """Find recordings; each is returned once, with its folder relative to the named folder that contains it.

    Folders are searched recursively; hidden files and folders are skipped.
    """
    # Unlike Path.resolve, realpath does not raise for a link to itself.
    recordings: dict[str, tuple[Path, Path]] = {}
    for path in named:
        if os.path.isdir(path):
            inside = sorted(_inside(path))
            if not inside:
                raise UsageError(f"{path} has no recordings; their names end in {', '.join(sorted(SUFFIXES))}")
            for recording in inside:
                recordings.setdefault(os.path.realpath(recording), (recording, recording.parent.relative_to(path)))
        elif os.path.isfile(path):  # unlike Path.is_file, does not raise for a name that is too long
            recordings.setdefault(os.path.realpath(path), (path, Path()))
        else:
            raise UsageError(f"{_problem(path)}: {path}; give the paths of recordings or of folders that hold some")
    return list(recordings.values())


def _problem(path: Path) -> str:
    try:
        path.stat()
    except PermissionError:
        return "permission denied"
    except OSError:
        return "no such file"
    return "neither a file nor a folder"


def _unreadable(error: OSError) -> NoReturn:
    raise UsageError(
        f"the folder {error.filename} cannot be searched ({error.strerror}); check its permissions"
    ) from error


def _inside(folder: Path) -> Iterator[Path]:
    for here, folders, files in os.walk(folder, onerror=_unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            path = Path(here) / name
            if name.startswith(".") or path.suffix.lower() not in SUFFIXES:
                continue
            # Skip named pipes: opening one would wait for a writer. Keep files without permission: the run reports
            # them.
            if os.path.isfile(path) or not os.path.exists(path):
                yield path


def plan(named: Sequence[Path], kinds: Sequence[str], output_dir: Path | None, tags: Mapping[str, str]) -> list[Job]:
    """Plan the outputs of each recording, beside it unless ``output_dir`` is given.

    The journal, and formats whose file has all languages, have a tag only if there is one target.

    Args:
        tags: target language → its tag before the suffixes, or ""; see ``language_tags``.
    """
    jobs: dict[str, Job] = {}  # by real path
    folders: dict[Path, Folder] = {}
    longest: dict[Path, int] = {}
    language = "".join(tags.values()) if len(tags) == 1 else ""
    for recording, below in find_recordings(named):
        there = recording.parent
        folder = output_dir / below if output_dir else there
        if there not in folders:
            folders[there] = Folder(there)
        if folder not in longest:
            longest[folder] = longest_name(folder)
        name = OutputName(
            folder, folders[there].stem(recording.name, *tags.values(), "karaoke"), language, longest[folder]
        )
        plain = replace(name, stem=stem_of(recording.name))
        if name != plain:
            from . import (
                journal,  # as below, of the process that translates: the one that shares recordings out seldom needs it
            )

            if journal.is_of(plain.path(JOURNAL_SUFFIX), recording):
                name = plain  # begun before another recording with the same stem was added
        key = os.path.join(os.path.realpath(folder), name.stem)
        names = OutputNames(name, tags)
        outputs = {output: names.path(output) for output in outputs_of(kinds, list(tags))}
        if key in jobs:
            raise UsageError(
                f"{jobs[key].recording} and {recording} would both write {next(iter(outputs.values()))}; give their "
                "common parent folder, whose subfolders are kept, or translate one separately with another --output-dir"
            )
        jobs[key] = Job(recording, outputs, names)
    return list(jobs.values())


def by_size(jobs: Iterable[Job]) -> list[Job]:
    """The jobs, the largest recordings first, whatever their order."""
    return sorted(jobs, key=lambda job: (-_size(job.recording), os.fsencode(job.recording)))


def _size(recording: Path) -> int:
    try:
        return os.stat(recording).st_size
    except OSError:  # no such file: reported when its turn comes
        return 0


def check_unused(jobs: Iterable[Job]) -> None:
    """Check that no other run is writing a file of these jobs."""
    for job in jobs:
        for path in (job.journal, *job.outputs.values()):
            if in_use(path):
                raise FileInUseError(
                    f"{path} is being written by another run; wait for it to end, or choose another folder"
                )


def begin(
    job: Job, config: PipelineConfig, *, overwrite: bool, audio_track: int | None = None, speakers: Sequence[str] = ()
) -> tuple[Begin, dict[Output, Path]]:
    """How to start a job now, and which files to write.

    Existing files with a cue stay as they are, unless ``overwrite`` is set. Everything that an interrupted run began is
    finished, in other formats, too.
    """
    from . import journal

    begun = None if overwrite else journal.read_journal_header(job.journal)
    missing = job.missing()
    if not overwrite and (other := _other_journal(job, config)) is not None:
        raise UsageError(
            f"{other} was begun for the same files with other languages; finish it with the options it was begun with, or "
            "start again with --overwrite"
        )
    if not overwrite and begun is None and not missing:
        return Begin.SKIP, {}
    folder = job.journal.parent
    if os.path.isdir(folder) and not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"the folder {folder} is not writable; choose another with --output-dir")
    if overwrite:
        return Begin.NEW, _begun_outputs(job) | job.outputs
    if begun is None:
        return Begin.NEW, missing
    labels: list[str] = begun["formats"]
    problem = journal.difference(begun, journal.header(job.recording, config, labels, audio_track, speakers))
    outputs = _begun_outputs(job)
    # Existing files that were not begun by that run are older, and stay as they are.
    if problem is None and missing.keys() - outputs.keys():
        kinds = dict.fromkeys(kind for kind, _ in outputs)
        same = kinds.keys() >= {kind for kind, _ in missing}
        problem = f"for {' and '.join(labels)} alone" if same else f"with --format {','.join(kinds)}"
    if problem is not None:
        raise UsageError(
            f"{job.journal} was begun {problem}; finish it with the same version and options, or start again with --overwrite"
        )
    return Begin.RESUME, outputs


def _other_journal(job: Job, config: PipelineConfig) -> Path | None:
    """The journal of another run that began some of the job's files, if there is one.

    A run into several languages and one into a single language, with that language in its file names, have journals of
    different names.
    """
    from . import journal

    names, targets = job.names, config.languages.targets
    if len(targets) == 1 and not names.base.language:
        return None
    tags = [""] if len(targets) == 1 else list(names.tags.values())
    for path in (replace(names.base, language=tag).path(JOURNAL_SUFFIX) for tag in tags):
        if os.path.isfile(path) and journal.is_of(path, job.recording):
            others = (journal.read_journal_header(path) or {}).get("languages.targets", ())
            if len(others) != len(targets) and set(others) & set(targets):
                return path
    return None


def labels_of(job: Job, outputs: Iterable[Output]) -> list[str]:
    """The names of outputs for the journal of ``job``."""
    return [label(output, list(job.names.tags)) for output in outputs]


def _begun_outputs(job: Job) -> dict[Output, Path]:
    """The files that an interrupted run began; empty if its journal is missing or unreadable."""
    from . import journal

    try:
        begun = journal.read_journal_header(job.journal)
    except UsageError:
        begun = None
    labels: list[str] = begun["formats"] if begun else []
    return {output: job.names.path(output) for output in labelled(labels, list(job.names.tags))}
