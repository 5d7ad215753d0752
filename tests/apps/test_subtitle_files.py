"""``translate FILE.srt``: subtitles from subtitles."""

import pytest

from pipeline.apps.subtitle_files import with_subtitles
from pipeline.apps.translate import run
from pipeline.errors import UsageError

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


def test_the_subtitles_of_recordings_are_no_input(film, tmp_path):
    assert with_subtitles([tmp_path], ["pt"]) == ([], [film])
    (tmp_path / "talk.wav").touch()
    assert with_subtitles([tmp_path, film], ["pt"]) == ([tmp_path], [film])
