"""Conversion of simplified and traditional Chinese, of whole texts and of growing ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.languages.chinese import conversion, converted_parts, settled, simplified, traditional

# Phrases that decide how a character is written, including one of the maximum length.
PHRASES = (
    "头发", "发现", "干扰", "干净", "干部", "皇后", "然后", "后天", "公里", "里面", "面条", "里程碑", "出发", "复杂", "反复", "回复",
    "丑角", "台风", "台湾", "范围", "关系", "联系", "大白日里借不出个干灯盏来", "失之毫厘差之千里",
)  # fmt: skip
PIECES = st.sampled_from([*PHRASES, *"干后里发面复台，。 1aか", "SQL注入"])
TEXTS = st.lists(PIECES, max_size=8).map("".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我想買兩張票", "我想买两张票"),
        ("頭髮乾淨，發現干擾。", "头发干净，发现干扰。"),
        ("乾隆皇帝的皇后", "乾隆皇帝的皇后"),
        ("他买了 iPhone 15，共１２，５００元", "他买了 iPhone 15，共１２，５００元"),
        ("a\x00買\ufffd😀\ud800", "a\x00买\ufffd😀\ud800"),
        ("", ""),
    ],
)
def test_text_in_simplified_characters(text, expected):
    assert simplified(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我想买两张票", "我想買兩張票"),
        ("头发干净，发现干扰。", "頭髮乾淨，發現干擾。"),
        ("因为在里面", "因為在裡面"),
        ("a\x00买", "a\x00買"),  # OpenCC stops at a null character
    ],
)
def test_text_in_traditional_characters(text, expected):
    assert traditional(text) == expected


def test_a_region_has_its_own_characters():
    assert conversion("Hant", "HK")("因为在里面") == "因為在裏面"


def test_traditional_text_is_unchanged():
    for text in ("干擾很大，皇后在臺灣裏", "嘅喺咁哋買"):
        assert traditional(text) == text
    assert traditional("干擾很大，发现了") == "干擾很大，發現了", "of two scripts, both are converted"


@given(TEXTS)
def test_a_conversion_keeps_length_and_positions(text):
    for convert in (simplified, traditional, conversion("Hant", "HK")):
        assert len(convert(text)) == len(text)
        assert all(a == b for a, b in zip(text, convert(text), strict=True) if a < "\u3000")


@given(TEXTS)
def test_the_conversion_of_settled_text_does_not_depend_on_what_follows(text):
    for convert in (conversion("Hant"), conversion("Hant", "HK"), conversion("Hans")):
        whole = convert(text)
        for end in range(len(text) + 1):
            done = settled(text[:end])
            assert convert(text[:end])[:done] == whole[:done]


def test_text_settles_at_punctuation_or_after_the_maximum_phrase_length():
    assert settled("今天出发，") == len("今天出发，")
    assert settled("今天出发，理") == len("今天出发，")
    assert settled("出" * 40) > 20
    assert settled("") == 0


def test_parts_are_converted_in_the_context_of_the_whole():
    assert converted_parts(["理", "发", "，出", "发"], traditional) == ["理", "髮", "，出", "發"]
    assert converted_parts([], traditional) == []
