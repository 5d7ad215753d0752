"""``translate FILE.srt``: subtitles from subtitles."""

from pathlib import Path

import pytest

from pipeline.apps import subtitle_files
from pipeline.apps.subtitle_files import name_parts, with_subtitles
from pipeline.apps.translate import run
from pipeline.errors import ModelError, UsageError

SRT = "1\n00:00:01,000 --> 00:00:02,500\n<i>He is not</i>\n\n2\n00:00:02,600 --> 00:00:04,000\n<b>guilty</b>.\n"
EXPECTED = "1\n00:00:01,000 --> 00:00:02,500\n<i>Ele não é</i>\n\n2\n00:00:02,600 --> 00:00:04,000\n<b>culpado</b>.\n\n"


@pytest.fixture
def film(tmp_path):
    (path := tmp_path / "film.en.srt").write_text(SRT)
    return path


def test_a_file_a_folder_and_what_is_there_already(film, capsys):
    assert run([str(film.parent), "--config", "demo"]) == 0
    assert capsys.readouterr().err == f"{film}: subtitles: 2, in {film.with_name('film.pt.srt')}\n"
    assert film.with_name("film.pt.srt").read_text() == EXPECTED
    assert run([str(film.parent), "--config", "demo"]) == 0
    assert capsys.readouterr().err == f"{film}: already there: left as it is, --overwrite replaces it\n"
    assert sorted(path.name for path in film.parent.iterdir()) == ["film.en.srt", "film.pt.srt"]


@pytest.mark.slow
def test_what_is_there_is_replaced_only_if_that_is_asked_for(film, capsys):
    old = film.with_name("film.pt.srt")
    old.write_text("old")
    assert run([str(film), "--config", "demo", "--format", "srt,vtt"]) == 0
    assert (old.read_text(), film.with_name("film.pt.vtt").exists()) == ("old", True)
    assert run([str(film), "--config", "demo", "--overwrite"]) == 0
    assert old.read_text() == EXPECTED
    capsys.readouterr()


def test_other_formats_both_languages_and_another_folder(film, tmp_path):
    out = tmp_path / "out"
    more = ["--bilingual", "--format", "vtt,srt", "--output-dir", str(out)]
    assert run([str(film), "--config", "demo", *more]) == 0
    assert "<b>culpado</b>.\n<b>guilty</b>." in (out / "film.pt.srt").read_text()
    assert (out / "film.pt.vtt").read_text().startswith("WEBVTT\n")


def test_a_glossary_and_masked_words_hold(film, tmp_path):
    (tmp_path / "terms.tsv").write_text("guilty\tculpadíssimo\n")
    (tmp_path / "masked.txt").write_text("ele\n")
    more = ["--glossary", str(tmp_path / "terms.tsv"), "--masked", str(tmp_path / "masked.txt")]
    assert run([str(film), "--config", "demo", *more]) == 0
    written = film.with_name("film.pt.srt").read_text()
    assert "culpadíssimo" in written
    assert "E** " in written


def test_an_interrupt_names_the_file_that_is_not_written(film, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(subtitle_files._Translator, "translate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run([str(film), "--config", "demo"])
    assert f"interrupted: {film} is not written" in capsys.readouterr().err
    assert not film.with_name("film.pt.srt").exists()


def test_a_wrong_file_is_one_line_and_costs_no_other(film, capsys):
    (film.parent / "a.ttml").write_text("<tt")
    (film.parent / "b.srt").write_bytes("1\n00:00:01,000 --> 00:00:00,500\ncafé\n".encode("latin-1"))
    assert run([str(film.parent), "--config", "demo"]) == 1
    assert [line.partition(": ")[2] for line in capsys.readouterr().err.splitlines()] == [
        f"{film.parent / 'a.ttml'}: it cannot be read as ttml (unclosed token: line 1, column 0)",
        "it is not UTF-8, and was read as cp1252",
        "subtitles that end before they begin get 1 s: 1",
        f"subtitles: 1, in {film.parent / 'b.pt.srt'}",
        f"subtitles: 2, in {film.parent / 'film.pt.srt'}",
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--source", "auto", "--target", "en,pt"], "name it with --source"),
        (["--format", "jsonl"], "the format 'jsonl'"),
    ],
)
def test_wrong_usage(film, options, said):
    with pytest.raises(UsageError, match=said):
        run([str(film), "--config", "demo", *options])


def test_a_file_that_is_not_there_is_named_before_any_work(film):
    with pytest.raises(UsageError, match=r"no such file: .*gone\.srt"):
        run([str(film), str(film.with_name("gone.srt")), "--config", "demo"])
    assert not film.with_name("film.pt.srt").exists()


def test_a_folder_that_cannot_be_made_is_named_before_any_work(film, capsys):
    with pytest.raises(UsageError, match="cannot create the folder"):
        run([str(film), "--config", "demo", "--output-dir", str(film / "out")])
    assert capsys.readouterr().err == ""


def test_a_translator_that_cannot_be_loaded_ends_the_run_with_one_error(film, tmp_path):
    (tmp_path / "other.srt").write_text(SRT)
    (tmp_path / "run.toml").write_text(f"[languages]\nsource = 'en'\ntarget = 'pt'\n[nmt]\nmodel = '{tmp_path}'\n")
    with pytest.raises(ModelError):
        run([str(tmp_path), "--config", str(tmp_path / "run.toml")])


def test_a_long_name_is_shortened(tmp_path):
    names = [f"{'a' * length}.srt" for length in (230, 246)]
    for name in names:
        (tmp_path / name).write_text(SRT)
    assert run([str(tmp_path), "--config", "demo"]) == 0
    written = {path.name for path in tmp_path.iterdir()} - {*names}
    assert f"{'a' * 230}.pt.srt" in written
    assert len(written) == 2


def test_the_subtitles_of_recordings_are_no_input(film, tmp_path):
    assert with_subtitles([tmp_path], ["pt"]) == ([], [(film, Path())])
    (tmp_path / "talk.wav").touch()
    assert with_subtitles([tmp_path, film], ["pt"]) == ([tmp_path], [(film, Path())])


@pytest.mark.parametrize(
    ("stem", "language", "parts"),
    [
        ("film", "en", ("film", "", [])),
        ("film.en", "en", ("film", "en", [])),
        ("film.eng", "en", ("film", "eng", [])),
        ("film.en-US", "en", ("film", "en-US", [])),
        ("film.en", "en-GB", ("film", "en", [])),
        ("film.en.forced", "en", ("film", "en", ["forced"])),
        ("film.EN.SDH.default", "en", ("film", "EN", ["SDH", "default"])),
        ("film.cc", "en", ("film", "", ["cc"])),
        ("film.en.hi", "en", ("film", "en", ["hi"])),
        ("film.hi", "hi", ("film", "hi", [])),
        ("film.fr", "en", ("film.fr", "", [])),
        ("the.man.2024", "en", ("the.man.2024", "", [])),
        ("en", "en", ("en", "", [])),
        ("forced", "en", ("forced", "", [])),
    ],
)
def test_names_as_media_servers_have_them(stem, language, parts):
    assert name_parts(stem, language) == parts


def test_files_that_were_written_before_and_pictures_are_no_input(tmp_path):
    for name in ("film.en.sdh.srt", "film.pt.sdh.srt", "film.pt.srt", "disc.sub", "disc.idx", "old.sub"):
        (tmp_path / name).touch()
    found = with_subtitles([tmp_path], ["pt"])[1]
    assert [path.name for path, _ in found] == ["film.en.sdh.srt", "old.sub"]


@pytest.mark.parametrize(
    ("names", "options", "said"),
    [
        (["a/film.srt", "b/film.srt"], ["--output-dir", "out"], "would both write out/film.pt.srt"),
        (["film.srt", "film.vtt"], ["--format", "srt"], "would both write film.pt.srt"),
        (["film.srt", "film.en.srt"], [], "film.srt and film.en.srt would both write film.pt.srt"),
        (["film.en.srt", "film.pt.srt"], [], "film.en.srt would be written into film.pt.srt, which is read"),
    ],
)
def test_two_files_with_one_output_are_refused(names, options, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(SRT)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match=said):
        run([*names, "--config", "demo", "--overwrite", *options])
    assert sorted(tmp_path.rglob("*")) == before


def test_subfolders_of_a_folder_are_kept(tmp_path):
    for name in ("s1", "s2"):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "e1.srt").write_text(SRT)
    assert run([str(tmp_path / "in"), "--config", "demo", "--output-dir", str(tmp_path / "out")]) == 0
    found = sorted(path.relative_to(tmp_path).as_posix() for path in (tmp_path / "out").rglob("*.srt"))
    assert found == ["out/s1/e1.pt.srt", "out/s2/e1.pt.srt"]


def test_subtitles_that_get_too_long_are_said_and_old_formats_become_subrip(tmp_path, capsys):
    (path := tmp_path / "film.sub").write_text("{1}{1}25\n{25}{50}" + "This is a very long story about the house. " * 3)
    assert run([str(path), "--config", "demo"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        f"{path}: subtitles with more than 2 lines: 1",
        f"{path}: subtitles: 1, in {tmp_path / 'film.pt.srt'}",
    ]
    assert (tmp_path / "film.pt.srt").read_text().startswith("1\n00:00:01,000 --> 00:00:02,000\n")
