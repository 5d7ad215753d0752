"""Names of output files: short enough, stable and unique."""

import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.archives.outputs import (
    JOURNAL_SUFFIX,
    SUFFIXES,
    Folder,
    OutputName,
    OutputNames,
    label,
    labelled,
    language_tags,
    longest_name,
    named_outputs,
    outputs_of,
    stem_of,
)
from pipeline.errors import UsageError


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("talk.wav", "talk"),
        ("talk.2024.MOV", "talk.2024"),
        ("talk.2024", "talk.2024"),  # not a recording suffix
        ("talk", "talk"),
        (".wav", ".wav"),
        ("talk.wav ", "talk.wav "),
        ("talk..wav", "talk."),
        ("talk.wav.", "talk.wav."),
    ],
)
def test_only_a_recordings_suffix_is_removed(name, stem):
    assert stem_of(name) == stem


@given(
    st.text(st.characters(exclude_characters="\0/", exclude_categories=("Cs",)), min_size=1, max_size=300),
    st.sampled_from([".srt", ".jsonl", JOURNAL_SUFFIX]),
    st.sampled_from(["", "zh-Hant"]),
)
def test_a_name_is_shortened_between_characters_and_only_where_it_must_be(stem, suffix, tag):
    name = OutputName(Path(), stem, tag).path(suffix).name
    end = f".{tag}{suffix}" if tag else suffix
    assert len(os.fsencode(name)) <= 255
    if len(os.fsencode(stem + end)) <= 255:
        assert name == stem + end
        return
    kept, _, mark = name.removesuffix(end).rpartition("~")
    assert name.endswith(end)
    assert stem.startswith(kept)
    assert len(mark) == 12
    assert (
        len(os.fsencode(kept)) > 255 - 13 - len(end) - len(JOURNAL_SUFFIX) - 4
    )  # hardly more than necessary is removed
    others = {OutputName(Path(), other, tag).path(suffix).name for other in (stem + "x", "x" + stem)}
    assert len(others | {name}) == 3


def test_all_shortened_names_of_a_recording_are_alike():
    name = OutputName(Path(), "会" * 84, "zh")
    assert len({name.path(suffix).name.removesuffix(suffix) for suffix in (".srt", ".jsonl", JOURNAL_SUFFIX)}) == 1


def test_bytes_that_are_not_utf_8_are_kept():
    stem = os.fsdecode(b"\xff\xe4" * 130)
    assert os.fsencode(OutputName(Path(), stem).path(".srt").name).startswith(b"\xff\xe4" * 100)


def test_the_file_systems_name_limit_is_used(tmp_path, monkeypatch):
    """As on an encrypting file system."""
    assert 100 < longest_name(tmp_path / "to be" / "made") <= 255
    monkeypatch.setattr(os, "pathconf", lambda *_: 143)
    assert longest_name(tmp_path) == 143
    name = OutputName(tmp_path, "x" * 140, longest=longest_name(tmp_path))
    assert len(name.path(JOURNAL_SUFFIX).name) == 143
    assert name.is_shorter(".srt")


NAMES = ["a.wav", "a.mp3", "A.ogg", "a.wav.mp3", "a.zh.wav", "A.ZH.ogg", "a.unfinished.wav"]
NAMES += ["a", "b.wav", "a.txt", "a.zh", "a.unfinished", "a.de.mp3"]
COMPOSED, DECOMPOSED = "\N{LATIN SMALL LETTER E WITH ACUTE}", "e\N{COMBINING ACUTE ACCENT}"


@pytest.mark.parametrize("tags", [{"zh": ""}, {"zh": "zh"}, {"zh": "zh", "de": "de"}])
def test_no_two_recordings_share_output_files(tmp_path, tags):
    """For any three names, in separate runs or together, all subtitles and journals differ, whichever of the recordings
    exist, even on a file system that ignores case."""
    for number, names in enumerate(itertools.combinations(NAMES, 3)):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name in names:
            (folder / name).touch()
        there = Folder(folder)
        base = tags["zh"] if len(tags) == 1 else ""
        made = [OutputNames(OutputName(folder, there.stem(name, *tags.values()), base), tags) for name in names]
        outputs = outputs_of(["srt", "jsonl"], list(tags))
        paths = [path for name in made for path in (name.journal, *map(name.path, outputs))]
        assert len({str(path).casefold() for path in paths}) == len(paths), names
        assert not {path.name for path in paths} & set(names)


@pytest.mark.parametrize(
    ("there", "name", "language", "stem"),
    [
        (["a.wav"], "a.wav", "", "a"),
        (["a.wav", "a.srt", "a.txt"], "a.wav", "", "a"),
        (["a.wav", "a.mp3"], "a.wav", "", "a.wav"),
        (["a.wav", "a.mp3"], "a.mp3", "zh", "a.mp3"),
        (["a.wav", "A.mp3"], "a.wav", "", "a.wav"),  # A.srt is a.srt on file systems that ignore case
        (["a.wav", "A.mp3"], "A.mp3", "", "A.mp3"),
        ([f"{COMPOSED}.wav", f"{DECOMPOSED}.mp3"], f"{DECOMPOSED}.mp3", "", f"{DECOMPOSED}.mp3"),
        (["film.mkv", "Film.ZH.mp4"], "film.mkv", "zh", "film.mkv"),
        (["a.wav", "a.wav.mp3"], "a.wav.mp3", "", "a.wav.mp3"),  # a.wav.srt could belong to a.wav beside a.mp3
        (["film.mkv", "film.zh.mkv"], "film.mkv", "", "film"),
        (["film.mkv", "film.zh.mkv"], "film.mkv", "zh", "film.mkv"),  # film.zh.srt belongs to film.zh.mkv
        (["a.wav"], "a.bin", "", "a.bin"),
        ([], "a.wav", "", "a"),
        (["a.unfinished.wav"], "a.unfinished.wav", "", "a.unfinished.wav"),
    ],
)
def test_output_names_depend_on_the_folders_content(tmp_path, there, name, language, stem):
    for other in there:
        (tmp_path / other).touch()
    assert Folder(tmp_path).stem(name, language) == stem


def test_folders_and_pipes_are_not_recordings(tmp_path):
    (tmp_path / "a.wav").touch()
    (tmp_path / "a.mp3").mkdir()
    os.mkfifo(tmp_path / "a.ogg")
    (tmp_path / "a.flac").symlink_to("a.wav")  # another name of the same file is not another recording
    assert Folder(tmp_path).stem("a.flac") == "a"
    assert Folder(tmp_path).stem("a.wav") == "a"


def test_the_folder_may_be_unlistable(tmp_path):
    assert Folder(tmp_path / "none").stem("a.wav") == "a"


def test_suffixes_are_in_lower_case():
    assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in SUFFIXES)


def test_a_format_has_a_file_per_language_and_jsonl_has_one_for_all():
    kinds = ["srt", "jsonl", "txt"]
    assert outputs_of(kinds, ["zh"]) == [("srt", "zh"), ("jsonl", ""), ("txt", "zh")]
    several = outputs_of(kinds, ["zh", "de"])
    assert several == [("srt", "zh"), ("srt", "de"), ("jsonl", ""), ("txt", "zh"), ("txt", "de")]
    names = OutputNames(OutputName(Path("d"), "talk"), {"zh": "zh", "de": "de"})
    found = [names.path(output).name for output in several]
    assert found == ["talk.zh.srt", "talk.de.srt", "talk.jsonl", "talk.zh.txt", "talk.de.txt"]
    assert names.journal == Path("d") / f"talk{JOURNAL_SUFFIX}"
    one = OutputNames(OutputName(Path("d"), "talk", "zh"), {"zh": "zh"})
    assert [one.path(output).name for output in outputs_of(kinds, ["zh"])] == [
        "talk.zh.srt",
        "talk.zh.jsonl",
        "talk.zh.txt",
    ]
    assert one.journal == Path("d") / f"talk.zh{JOURNAL_SUFFIX}"


@pytest.mark.parametrize("targets", [["zh"], ["zh-TW", "de"]])
def test_an_output_is_found_again_by_its_label(targets):
    outputs = outputs_of(["srt", "jsonl", "ass"], targets)
    labels = [label(output, targets) for output in outputs]
    assert len(set(labels)) == len(labels)
    assert labelled(labels, targets) == outputs
    assert labelled(labels[:1], targets) == outputs[:1]


def test_labels_name_the_language_only_if_there_are_several():
    assert [label(output, ["zh"]) for output in (("srt", "zh"), ("jsonl", ""))] == ["srt", "jsonl"]
    assert [label(output, ["zh", "de"]) for output in (("srt", "de"), ("jsonl", ""))] == ["de.srt", "jsonl"]
    assert labelled(["fr.srt", "de.srt"], ["zh", "de"]) == [("srt", "de")]


def test_several_languages_are_always_in_the_names():
    assert language_tags(["zh"], always=False) == {"zh": ""}
    assert language_tags(["zh-Hant"], always=True) == {"zh-Hant": "zh-Hant"}
    assert language_tags(["zh", "de"], always=False) == {"zh": "zh", "de": "de"}


def test_a_name_that_is_given_gets_the_language_before_its_suffix():
    given = {
        "srt": Path("d/talk.srt"),
        "jsonl": Path("talk.jsonl"),
        "vtt": Path("talk"),
        "latency-log": Path("a.b.log"),
    }
    assert named_outputs(given, ["zh"]) == {
        ("srt", "zh"): Path("d/talk.srt"),
        ("jsonl", ""): Path("talk.jsonl"),
        ("vtt", "zh"): Path("talk"),
        ("latency-log", "zh"): Path("a.b.log"),
    }
    assert named_outputs(given, ["zh", "de"]) == {
        ("srt", "zh"): Path("d/talk.zh.srt"),
        ("srt", "de"): Path("d/talk.de.srt"),
        ("jsonl", ""): Path("talk.jsonl"),
        ("vtt", "zh"): Path("talk.zh"),
        ("vtt", "de"): Path("talk.de"),
        ("latency-log", "zh"): Path("a.b.zh.log"),
        ("latency-log", "de"): Path("a.b.de.log"),
    }


@pytest.mark.parametrize("kind", ["srt", "vtt", "ass", "txt"])
def test_only_jsonl_has_several_languages_on_standard_output(kind):
    with pytest.raises(
        UsageError, match=rf"standard output cannot take the {kind} subtitles of several languages \(zh, de\)"
    ):
        named_outputs({kind: Path("-")}, ["zh", "de"])
    assert named_outputs({kind: Path("-")}, ["zh"]) == {(kind, "zh"): Path("-")}
    assert named_outputs({"jsonl": Path("-")}, ["zh", "de"]) == {("jsonl", ""): Path("-")}
