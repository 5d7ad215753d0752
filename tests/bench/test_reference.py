"""Reading reference translations."""

import math

import pytest

from pipeline.bench.live import read_reference
from pipeline.errors import UsageError
from pipeline.media.latency.delay_measures import Reference

SRT = "1\n00:00:01,000 --> 00:00:02,500\n早上\n好。\n\n2\n01:00:03,000 --> 01:00:04,000\n \n\n3\n01:00:05,000 --> 01:00:06,000\nYes.\n\n"


def test_timed_references_have_one_sentence_per_cue(tmp_path):
    (tmp_path / "a.srt").write_text(SRT, "utf-8")
    (tmp_path / "a.vtt").write_text("WEBVTT\n\n" + SRT.replace(",", "."), "utf-8")
    expected = [Reference(("早", "上", "好", "。"), 1000, 1500), Reference(tuple("Yes."), 3_605_000, 1000)]
    assert read_reference(tmp_path / "a.srt", "char") == read_reference(tmp_path / "a.vtt", "char") == expected


def test_a_text_file_is_one_sentence_of_infinite_length(tmp_path):
    expected = [Reference(("Good", "morning.", "The", "meeting."), 0, math.inf)]
    for name, encoding in (("a.txt", "utf-8"), ("b.TXT", "utf-8-sig")):
        (tmp_path / name).write_text("Good morning.\nThe meeting.\n", encoding)
        assert read_reference(tmp_path / name, "word") == expected


def test_markup_is_removed(tmp_path):
    srt = "1\n00:00:01,000 --> 00:00:02,000\n{\\an8}<i>Q&A:\na < b</i> {x}\n"
    vtt = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>Q&amp;A: <00:01.500>a &lt; b</v> {x}\n"
    expected = [Reference(("Q&A:", "a", "<", "b", "{x}"), 1000, 1000)]
    for name, text, encoding in (("a.srt", srt, "utf-8"), ("b.VTT", vtt, "utf-8-sig"), ("c.SRT", srt, "utf-8-sig")):
        (tmp_path / name).write_text(text, encoding)
        assert read_reference(tmp_path / name, "word") == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("nowhere.srt", None, "cannot read the reference"),
        ("a.doc", b"", "give .srt or .vtt with times"),
        ("a.txt", b"\xff\xfe\x00", "give a file in UTF-8"),
        ("a.srt", b"\x00\x01", "cannot read the reference .*: it has no subtitles"),
        ("a.vtt", b"WEBVTT\n\n", "it has no subtitles"),
        ("a.txt", b" \n", "contains no sentence"),
    ],
)
def test_an_invalid_reference_is_a_usage_error(name, content, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read_reference(tmp_path / name, "char")
