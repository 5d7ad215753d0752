"""Subtitles stay inside the picture, as rendered by FFmpeg's libass in Matplotlib's font."""

import tempfile
import unicodedata
from pathlib import Path

import matplotlib
import pysubs2
import pytest
from fontTools.ttLib import TTFont
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.events import EndOfInput
from pipeline.media.sinks.ass import AssSink
from pipeline.media.sinks.srt import SrtSink
from pipeline.media.subtitles.fit import font_size
from pipeline.media.subtitles.rules import SubtitleRules
from tests.conftest import examples
from tests.media.subtitles import libass
from tests.media.subtitles.strategies import TEXTS
from tests.streams import spoken, translated

WIDE = [
    "W" * 42,
    "@%M" * 40,
    "W W " * 30,
    "漢" * 60,
    "한국어" * 20,
    "щЖЮ" * 30,
    "ش" * 60,
    "ກໜ" * 40,
    "👩‍👩‍👧‍👦" * 30,
    "ဤ" * 60,
    "\u2e3b" * 20,
]
STACKED = ["a" + "\u0301" * 60 + " b", "a" + "\u0316" * 12 + " b", "o\u0302\u0323"]
# Letters that few fonts have besides everyday ones; they are drawn as boxes.
ANY_LETTER = st.builds(lambda letter, count: letter * count, st.characters(codec="utf-8"), st.integers(1, 150))


def size(line: str) -> int:
    return font_size([line], 64, 1800, 50)


def test_everyday_text_keeps_its_size():
    for line in (
        "The train to Berlin leaves at half past nine",
        "THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG",
        "请把这个文件发给史密斯先生谢谢",
        "แปลภาษาแบบเรียลไทม์ได้อย่างรวดเร็วและแม่นยำมาก",
        "ជួយបកប្រែភាសាក្នុងពេលវេលាជាក់ស្តែងយ៉ាងរហ័ស",
        "12,500 دولار (تقريبا)؟ هذا كثير جدا.",
    ):
        assert size(line) == 64


def test_two_marks_above_each_other_take_no_room_beside_the_letter_and_a_third_one_does():
    assert size("a" * 40) == size("a\u0301\u0323" * 40) > size("a\u0301\u0323\u0301" * 40)


def test_text_that_cannot_be_wrapped_is_drawn_smaller():
    assert size("W" * 42) < 48
    assert size("a" + "\u0301" * 20) < 20
    assert size("") == 64
    line = "WW " * 60  # wrapped at its spaces: into as many lines as there is room for
    assert size(line) == 64 > font_size([line] * 4, 64, 1800, 50)


@pytest.mark.slow
def test_no_letter_of_a_wide_font_is_wider_than_assumed():
    font = TTFont(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf")
    height = font["OS/2"].usWinAscent + font["OS/2"].usWinDescent
    unseen = ("Mn", "Me", "Cf", "Co", "Zs")
    letters = {c: g for c, g in font.getBestCmap().items() if unicodedata.category(chr(c)) not in unseen}
    assert len(letters) > 5000
    for code, glyph in letters.items():
        # The margins are a fifteenth of the room between them.
        fitting = font_size([chr(code) * 100], 64, 1800, 50)
        assert 100 * fitting * font["hmtx"][glyph][0] / height <= 1920 - 6, chr(code)


def outside(texts: list[str], rules: SubtitleRules) -> list[str]:
    """The subtitles that touch the picture's border."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.ass"
        sink = AssSink(path, rules)
        for n, text in enumerate(texts):
            for event in (*spoken(n, "W" * 150, 10.0 * n, 10.0 * n + 9), *translated(n, [text])):
                sink.write(event)
        sink.write(EndOfInput(10.0 * len(texts)))
        sink.close()
        script = pysubs2.load(str(path), encoding="utf-8")
        for n, event in enumerate(script.events):  # one after the other, one second each
            event.start, event.end = 1000 * n, 1000 * n + 1000
        script.save(str(path))
        pictures = libass.frames(path, len(script.events)) > 40
    found = []
    for event, picture in zip(script.events, pictures, strict=True):
        if picture[:2].any() or picture[-2:].any() or picture[:, :2].any() or picture[:, -2:].any():
            found.append(event.text)
        if event.plaintext.strip().isascii() and event.plaintext.strip("\u2060 \n_"):
            assert picture.any(), f"nothing drawn of {event.text!r}"
    return found


@pytest.mark.libass
@pytest.mark.parametrize(
    "rules",
    [
        SubtitleRules(),
        SubtitleRules(max_lines=4, line_columns=200, line_cjk_characters=100, position="top"),
        SubtitleRules(max_lines=4, bilingual=True, source_position="bottom"),
    ],
)
def test_wide_and_tall_text_stays_inside_the_picture(rules):
    assert outside([*WIDE, *STACKED], rules) == []


@pytest.mark.libass
@settings(max_examples=examples(15))
@given(st.lists(st.one_of(TEXTS, ANY_LETTER), min_size=8, max_size=16))
def test_any_text_stays_inside_the_picture(texts):
    assert outside(texts, SubtitleRules()) == []


@pytest.mark.libass
@pytest.mark.parametrize("sink", [AssSink, SrtSink])
@pytest.mark.parametrize("text", ["שלום! 12,500.", "GPU מהיר 12,500."])
def test_a_full_stop_is_at_the_left_end_of_a_line_from_right_to_left(text, sink, tmp_path):
    """With the full stop the leftmost glyph is narrower than without it, and the rightmost one is the same."""

    def ink(said: str) -> list[bool]:
        path = tmp_path / f"out.{'ass' if sink is AssSink else 'srt'}"
        opened = sink(path, SubtitleRules())
        for event in (*spoken(0, "Shalom.", 0.0, 3.0), *translated(0, [said])):
            opened.write(event)
        opened.close()
        picture = libass.frames(path, 1)[0] > 100
        path.unlink()
        return [bool(column.any()) for column in picture.T]

    def first_run(columns: list[bool]) -> int:
        start = columns.index(True)
        return columns.index(False, start) - start

    with_stop, without = ink(text), ink(text[:-1])
    assert first_run(with_stop) < first_run(without)
    assert abs(first_run(with_stop[::-1]) - first_run(without[::-1])) <= 2  # anti-aliasing
