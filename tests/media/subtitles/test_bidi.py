"""The direction of lines."""

import pytest

from pipeline.media.subtitles.bidi import directed, right_to_left

RLE, PDF, RLM, LRM = "\u202b", "\u202c", "\u200f", "\u200e"


def test_text_without_right_to_left_letters_has_no_marks():
    assert directed(["Where is it?", "12,500"]) == ["Where is it?", "12,500"]
    assert directed(["你好，世界。"]) == ["你好，世界。"]


def test_each_line_is_embedded_from_right_to_left():
    lines = ["مرحبا بكم! هل تعلمون أن السعر", "12,500 دولار (تقريبا)؟ هذا كثير جدا."]
    assert directed(lines) == [f"{RLE}{line}{PDF}" for line in lines]


@pytest.mark.parametrize("line", ["GPU من NVIDIA سريع جدا.", "(IBM) شركة كبيرة"])
def test_a_line_that_begins_with_another_letter_is_marked(line):
    assert directed([line]) == [f"{RLE}{RLM}{line}{PDF}"]


def test_a_line_without_letters_has_the_direction_of_its_subtitle():
    assert directed(["دولار", "12,500."])[1] == f"{RLE}{RLM}12,500.{PDF}"
    assert directed(["He said in Hebrew:", "שלום"]) == ["He said in Hebrew:", f"{LRM}שלום"]
    assert directed(["He said in Hebrew, twice: שלום", "12,500."])[1] == f"{LRM}12,500."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("שלום", True),
        ("این قیمت ۱۲٬۵۰۰ دلار است", True),
        ("شركة International Business Machines تعلن.", True),
        ("GPU من NVIDIA سريع جدا", True),
        ("He said שלום to me.", False),
        ("12,500", False),
        ("", False),
    ],
)
def test_the_direction_of_a_text(text, expected):
    assert right_to_left(text) is expected
