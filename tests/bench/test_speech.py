"""python -m pipeline.bench speech: the shipped table, and archives made here instead of downloads from the index."""

import hashlib
import re
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pipeline.bench import speech
from pipeline.bench.__main__ import run
from pipeline.errors import DownloadError, SinkError
from tests.conftest import EXAMPLES, read_wav

TRAVEL = EXAMPLES / "travel.wav"
COLUMNS = ["source", "name", "package", "version", "platform", "sha256", "member", "start", "end", "licence", "text"]
LICENCES = "ours: MIT (this project); from made-here 1.0\n"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "speech.tsv"
    monkeypatch.setattr(speech, "_TABLE", path)
    return path


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A source archive with a recording, and the same recording without header."""
    (tmp_path / "travel.raw").write_bytes(read_wav(TRAVEL).tobytes())
    path = tmp_path / "made_here-1.0.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        tar.add(TRAVEL, "made_here-1.0/data/travel.wav")
        tar.add(tmp_path / "travel.raw", "made_here-1.0/data/travel.raw")
    return path


@pytest.fixture
def downloads(archive: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the requested packages; each download returns ``archive``."""
    names: list[str] = []

    def download(clip: speech.PublishedClip, folder: Path) -> Path:
        names.append(clip.package)
        return Path(archive.rename(folder / archive.name))

    monkeypatch.setattr(speech, "download", download)
    return names


def write_table(path: Path, archive: Path, *rows: str, platform: str = "", sha256: str = "") -> None:
    """Write a table. Each row: name, member, start, end and text, separated by |."""
    sha256 = sha256 or hashlib.sha256(archive.read_bytes()).hexdigest()
    lines = ["# Made for a test.", "\t".join(COLUMNS)]
    for row in rows:
        name, member, start, end, text = row.split("|")
        fields = ("ours", name, "made-here", "1.0", platform, sha256, member, start, end, "MIT (this project)", text)
        lines.append("\t".join(fields))
    path.write_text("\n".join(lines) + "\n", "utf-8")


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_table_is_well_formed():
    assert speech._TABLE.read_text("utf-8").startswith("# ")
    clips = speech.published_clips()
    assert len(clips) == 45
    assert {*speech._READING} <= {clip.name for clip in clips}
    assert len({clip.name for clip in clips}) == len(clips)
    for clip in clips:
        assert re.fullmatch(r"[\w-]+/[\w-]+", f"{clip.source}/{clip.name}")
        assert re.fullmatch("[0-9a-f]{64}", clip.sha256)
        assert re.fullmatch(r"[\d.]+", clip.version)
        assert clip.licence == clip.licence.strip() != ""
        assert clip.text == clip.text.strip() != ""
        assert (clip.start, clip.end) == ("", "") or 0 <= float(clip.start) < float(clip.end)
        in_source_archive = clip.member.startswith(f"{clip.package.replace('-', '_')}-{clip.version}/")
        assert in_source_archive == (not clip.platform)
    archives = {(clip.package, clip.version, clip.platform, clip.sha256) for clip in clips}
    assert len(archives) == len({clip.package for clip in clips}) == len({clip.sha256 for clip in clips})


def test_recordings_parts_and_raw_samples_are_written_as_wav_with_texts(table, archive, downloads, tmp_path, capsys):
    wav, raw = "made_here-1.0/data/travel.wav", "made_here-1.0/data/travel.raw"
    write_table(table, archive, f"whole|{wav}|||All of it.", f"part|{wav}|1.5|4|A part.", f"raw|{raw}|||Süß.")
    folder = tmp_path / "new" / "speech"
    assert run(["speech", str(folder)]) == 0
    assert downloads == ["made-here"]
    clips = [f"ours/{name}.{kind}" for name in ("part", "raw", "whole") for kind in ("txt", "wav")]
    assert files_in(folder) == ["LICENCES.txt", *clips]
    samples = read_wav(TRAVEL)
    for name, expected in (("whole", samples), ("part", samples[24_000:64_000]), ("raw", samples)):
        assert np.array_equal(read_wav(folder / "ours" / f"{name}.wav"), expected)
    assert (folder / "ours" / "part.txt").read_text("utf-8") == "A part.\n"
    assert (folder / "ours" / "raw.txt").read_text("utf-8") == "Süß.\n"
    assert (folder / "LICENCES.txt").read_text("utf-8") == LICENCES
    assert capsys.readouterr().out == f"made-here 1.0: 3 clips\n{folder}: 3 clips\n"


def test_existing_clips_are_kept_and_missing_ones_downloaded(table, archive, downloads, tmp_path, monkeypatch):
    monkeypatch.setattr(speech, "_READING", ("two", "one"))
    wav = "made_here-1.0/data/travel.wav"
    write_table(table, archive, f"one|{wav}|0|1|One.", f"two|{wav}|1|2|Two.")
    folder, original = tmp_path / "speech", archive.read_bytes()
    assert run(["speech", str(folder)]) == 0
    reading, samples = tmp_path / "reading.wav", read_wav(TRAVEL)
    assert run(["speech", str(folder), "--reading", str(reading)]) == 0
    assert np.array_equal(read_wav(reading), np.concatenate([samples[16_000:32_000], samples[:16_000]]))
    assert reading.with_suffix(".txt").read_text("utf-8") == "Two. One.\n"
    (folder / "ours" / "one.txt").write_text("Corrected by hand.\n")
    assert downloads == ["made-here"]
    # An interrupted run leaves a clip with its text but without its WAV file.
    (folder / "ours" / "two.wav").rename(folder / "ours" / "two.part")
    archive.write_bytes(original)
    assert run(["speech", str(folder)]) == 0
    assert downloads == ["made-here"] * 2
    assert (folder / "ours" / "one.txt").read_text() == "Corrected by hand.\n"
    assert files_in(folder / "ours") == ["one.txt", "one.wav", "two.txt", "two.wav"]
    assert np.array_equal(read_wav(folder / "ours" / "two.wav"), read_wav(TRAVEL)[16_000:32_000])


@pytest.mark.usefixtures("downloads")
@pytest.mark.parametrize(
    ("member", "sha256", "message"),
    [
        ("travel.wav", "0" * 64, r"has the SHA-256 \w{64}; expected 0{64}"),
        ("none", "", "lacks made_here-1.0/data/none"),
    ],
)
def test_another_archive_is_refused(member, sha256, message, table, archive, tmp_path):
    write_table(table, archive, f"one|made_here-1.0/data/{member}|||One.", sha256=sha256)
    with pytest.raises(DownloadError, match=rf"made_here-1.0.tar.gz {message}"):
        run(["speech", str(tmp_path / "speech")])
    assert files_in(tmp_path / "speech") == []


def test_a_folder_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SinkError, match=rf"cannot write {tmp_path}/file \(File exists\)"):
        run(["speech", str(tmp_path / "file")])


@pytest.fixture
def only_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel that is the only package pip can find."""
    folder = tmp_path / "index"
    folder.mkdir()
    path = folder / "made_here-1.0-py3-none-manylinux_2_34_x86_64.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.write(TRAVEL, "made_here/travel.wav")
        wheel.writestr("made_here-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: made-here\nVersion: 1.0\n")
        wheel.writestr("made_here-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-manylinux_2_34_x86_64\n")
        wheel.writestr("made_here-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return path


@pytest.mark.slow
def test_pip_downloads_a_wheel_of_any_platform_and_its_errors_are_reported(table, only_index, tmp_path):
    row = "one|made_here/travel.wav|||One."
    for options, message in (
        ({}, r"could not download made-here 1\.0 \(Could not find a version .*finished clips"),
        ({"platform": "manylinux_2_34_x86_64", "sha256": "0" * 64}, "DO NOT MATCH THE HASHES"),
    ):
        write_table(table, only_index, row, **options)
        with pytest.raises(DownloadError, match=message):
            run(["speech", str(tmp_path / "speech")])
    assert files_in(tmp_path / "speech") == []
    write_table(table, only_index, row, platform="manylinux_2_34_x86_64")
    assert run(["speech", str(tmp_path / "speech")]) == 0
    assert np.array_equal(read_wav(tmp_path / "speech" / "ours" / "one.wav"), read_wav(TRAVEL))
