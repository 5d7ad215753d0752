"""Breaking into subtitles and lines."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.media.subtitles.lines import Lines, layout
from pipeline.media.subtitles.rules import SubtitleRules
from pipeline.media.subtitles.text import atoms, is_cjk, line_limit, normalized, widths
from tests.media.subtitles.strategies import RULES, TEXTS

DEFAULT = SubtitleRules()


def flat(cues: list[Lines]) -> list[str]:
    return [line for lines in cues for line in lines]


def columns(line: str, text: str) -> int:
    return sum(widths(line, is_cjk(text)))


@given(TEXTS, RULES)
def test_nothing_is_lost(text, rules):
    text = normalized(text)
    assert "".join(flat(layout(text, rules))).replace(" ", "") == text.replace(" ", "")


@given(TEXTS, RULES)
def test_no_line_is_too_wide_and_no_cue_has_a_line_too_many(text, rules):
    text = normalized(text)
    for lines in layout(text, rules):
        assert 1 <= len(lines) <= rules.max_lines
        for line in lines:
            assert columns(line, text) <= line_limit(text, rules)
            assert line == line.strip(" ") != ""


@given(TEXTS, RULES)
def test_only_what_is_wider_than_a_line_is_broken_inside(text, rules):
    text = normalized(text)
    pieces = atoms(text)
    if any(columns(piece.rstrip(" "), text) > line_limit(text, rules) for piece in pieces):
        return
    starts, at = set(), 0
    for piece in pieces:
        starts.add(at)
        at += len(piece.replace(" ", ""))
    at = 0
    for line in flat(layout(text, rules)):
        assert at in starts
        at += len(line.replace(" ", ""))


@given(TEXTS, RULES)
def test_no_line_ends_in_a_number_or_before_a_closing_mark(text, rules):
    """The rule, written independently of the code."""
    text = normalized(text)
    if any(columns(piece.rstrip(" "), text) > line_limit(text, rules) for piece in atoms(text)):
        return
    lines = flat(layout(text, rules))
    for line, following in pairwise(lines):
        assert not re.match(r"[，。、！？：；）》」』”…]", following)
        assert not re.search(r"[（《「『“]$", line)
        assert not (re.search(r"[0-9]$", line) and re.match(r"[0-9]", following))
        assert not (re.search(r"[A-Za-z]$", line) and re.match(r"[A-Za-z]", following) and line + following in text)
        assert not (
            re.search(r"[二三四五六七八九十百千万]$", line) and re.match(r"[一二三四五六七八九十百千万]", following)
        )


@given(TEXTS, RULES, st.integers(1, 5))
def test_as_many_cues_as_asked_for_where_the_text_has_places(text, rules, count):
    text = normalized(text)
    least, pieces = len(layout(text, rules)), len(atoms(text))
    found = layout(text, rules, cues=count)
    assert "".join(flat(found)).replace(" ", "") == text.replace(" ", "")
    if least <= count <= pieces:
        assert len(found) == count


def test_short_text_is_one_line():
    assert layout("去柏林的火车几点出发？", DEFAULT) == [("去柏林的火车几点出发？",)]
    assert layout("", DEFAULT) == []


@pytest.mark.parametrize(
    ("text", "cues"),
    [
        (
            "The train to Berlin leaves at half past nine in the evening.",
            [("The train to Berlin leaves", "at half past nine in the evening.")],
        ),
        ("If it rains tomorrow, we will stay at home all day.", [("If it rains tomorrow,", "we will stay at home all day.")]),
        (
            "请把这个文件发给 International Business Machines 的史密斯先生，谢谢你们的帮助和支持。",
            [("请把这个文件发给 International", "Business Machines 的史密斯先生，"), ("谢谢你们的帮助和支持。",)],
        ),
        ("去了位于市中心的酒店，花了三百二十五块钱。", [("去了位于市中心的酒店，", "花了三百二十五块钱。")]),
    ],
)  # fmt: skip
def test_breaks_fall_at_clauses(text, cues):
    assert layout(text, DEFAULT) == cues


def test_chinese_words_are_not_broken_where_seams_mark_them():
    text = "我们在十二月三十一日晚上到达北京首都国际机场"
    words = ["我们", "在", "十二月", "三十一日", "晚上", "到达", "北京", "首都", "国际", "机场"]
    seams = {len("".join(words[:n])) for n in range(1, len(words))}
    (lines,) = layout(text, DEFAULT, seams=seams)
    assert len(lines[0]) in seams


@pytest.mark.parametrize(("widest", "cues"), [(None, 1), (40, 1), (26, 2), (13, 4)])
def test_a_subtitle_is_no_wider_than_there_is_time_for(widest, cues):
    assert len(layout("We go now, we go now, we go now, we go now.", DEFAULT, widest=widest)) == cues


def test_a_word_wider_than_a_line_is_broken_and_kept():
    assert layout("x" * 100, DEFAULT) == [("x" * 42, "x" * 42), ("x" * 16,)]


def test_an_endless_combining_sequence_is_broken_and_kept():
    text = "so " + "👩\u200d" * 22 + "👩"
    cues = layout(text, SubtitleRules())
    assert "".join(line for lines in cues for line in lines).replace(" ", "") == text.replace(" ", "")


def test_layout_time_is_linear_in_the_texts_length():
    """Quadratic work on this text would not finish."""
    assert len(flat(layout("你好，" * 5_000, DEFAULT))) >= 1_000


def test_a_last_line_one_column_too_wide_is_another_cue():
    words = ["c" * 20, "a" * 10, "b" * 10]
    lines = flat(layout(" ".join(words), SubtitleRules(line_columns=20)))
    assert lines == words
    assert flat(layout(" ".join(words), SubtitleRules(line_columns=21))) == [words[0], " ".join(words[1:])]
