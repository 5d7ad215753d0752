"""Line breaking."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.subtitles.lines import break_lines, width


def test_short_text_is_one_line() -> None:
    assert break_lines("去柏林的火车几点出发？") == ["去柏林的火车几点出发？"]
    assert break_lines("") == []


def test_spaced_text_breaks_at_spaces_and_lines_are_balanced() -> None:
    lines = break_lines("The train to Berlin leaves at half past nine in the evening.")
    assert lines == ["The train to Berlin leaves at", "half past nine in the evening."]


def test_unspaced_text_breaks_between_characters_but_not_before_marks() -> None:
    lines = break_lines("我妹妹明天早上将在北京介绍新产品，经理和司机都会来，请不要迟到。")
    assert "".join(lines) == "我妹妹明天早上将在北京介绍新产品，经理和司机都会来，请不要迟到。"
    assert len(lines) == 2
    assert all(width(line) <= 42 for line in lines)
    assert lines[1][0] not in "，。"


def test_latin_words_inside_chinese_are_not_broken() -> None:
    lines = break_lines("请把这个文件发给 International Business Machines 的史密斯先生，谢谢你们的帮助和支持。")
    assert any("International" in line for line in lines)
    assert any("Business" in line for line in lines)


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=120), st.integers(4, 60)
)
def test_nothing_is_lost(text: str, limit: int) -> None:
    assert "".join("".join(break_lines(text, limit)).split()) == "".join(text.split())
