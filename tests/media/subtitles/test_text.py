"""Display width, reading time, and where text may break."""

import pytest

from pipeline.media.subtitles.rules import SubtitleRules
from pipeline.media.subtitles.text import (
    COST_CLAUSE,
    COST_DOUBTFUL,
    COST_INSIDE,
    COST_PHRASE,
    COST_SENTENCE,
    COST_SHORT_WORD,
    COST_WORD,
    atoms,
    break_cost,
    clusters,
    is_cjk,
    normalized,
    reading_ms,
    width,
)

RULES = SubtitleRules()


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("abc", 3),
        ("你好", 4),
        ("你好，", 6),
        ("ＡＢ", 4),
        ("e\u0301", 1),
        ("“你好”——", 12),
        ("“hello”—", 8),
        ("한국어", 6),
        ("ｶﾅ", 2),
        ("👩\u200d🚀", 4),
        ("👍🏽", 2),
    ],
)
def test_width_counts_columns(text, columns):
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("The train, at 3.5 km/h.", ["The ", "train, ", "at ", "3.5 ", "km/h."]),
        ("well-known don't", ["well-known ", "don't"]),
        ("你好，世界。", ["你", "好，", "世", "界。"]),
        ("他说：“你好！”", ["他", "说：", "“你", "好！”"]),
        ("《三体》很好", ["《三", "体》", "很", "好"]),
        ("买3.5公斤GPU卡", ["买", "3.5", "公", "斤", "GPU", "卡"]),
        ("共12,500人", ["共", "12,500", "人"]),
        ("在２０２４年", ["在", "２０２４", "年"]),
        ("１２：３０开始", ["１２：３０", "开", "始"]),
        ("三百二十五人", ["三百二十五", "人"]),
        ("三点五倍", ["三点五", "倍"]),
        ("百分之五十的人", ["百分之五十", "的", "人"]),
        ("三分之二", ["三分之二"]),
        ("十分之好", ["十", "分", "之", "好"]),
        ("约5,000万元", ["约", "5,000万", "元"]),
        ("１，０００个", ["１，０００", "个"]),
        ("第1，2章", ["第", "1，", "2", "章"]),
        ("一：二", ["一：", "二"]),
        ("上午三点走", ["上", "午", "三", "点", "走"]),
        ("约翰·史密斯", ["约", "翰·", "史", "密", "斯"]),
        ("真的……好——吗？", ["真", "的……", "好——", "吗？"]),
        ("Il y a 12 500 euros !", ["Il ", "y ", "a ", "12 500 ", "euros !"]),
        ("« Bonjour »", ["« Bonjour »"]),
        ("10\u00a0% de", ["10\u00a0% ", "de"]),
        ("uses .NET today", ["uses ", ".NET ", "today"]),
        ("오늘 날씨가", ["오늘 ", "날씨가"]),
        ("售价$50元", ["售", "价", "$50", "元"]),
        ("ครับ\u200bผม", ["ครับ\u200b", "ผม"]),
        ("カップ麺々", ["カッ", "プ", "麺々"]),
        ("ちょっとキャンプ", ["ちょっ", "と", "キャ", "ン", "プ"]),
        ("👍🏽👍🏽", ["👍🏽", "👍🏽"]),
    ],
)
def test_text_breaks_only_where_it_may(text, pieces):
    assert atoms(text) == pieces


def test_a_break_after_a_clause_is_better_than_elsewhere():
    text = "我们走吧，明天的火车"
    after_clause, inside_word, before_particle = 5, 6, text.index("的")
    assert break_cost(text, after_clause) < break_cost(text, inside_word)
    assert break_cost(text, 8, seams={8}) < break_cost(text, 6, seams={8})
    assert break_cost(text, before_particle) > break_cost(text, before_particle + 1)
    english = "The cat, the dog"
    assert break_cost(english, 9) < break_cost(english, 4)
    assert break_cost(english, 13) > break_cost("Some cats", 5)


@pytest.mark.parametrize(
    ("before", "after", "starts", "cost"),
    [
        ("Yes. ", "No", {}, COST_SENTENCE),
        ("Yes; ", "no", {}, COST_CLAUSE),
        ("the ", "house", {}, COST_SHORT_WORD),
        ("this ", "house", {}, COST_WORD),
        ("at 12 ", "trains", {}, COST_WORD),  # no article
        ("在", "家", {}, COST_WORD),  # nothing is known of its words
        ("在", "家", {"seams": {1}}, COST_WORD),
        ("在", "家", {"seams": {1}, "phrases": {1}}, COST_WORD),
        ("在", "家", {"seams": {1}, "phrases": {2}}, COST_DOUBTFUL),  # one of the two says so
        ("在", "家", {"seams": {2}, "phrases": {2}}, COST_INSIDE),
        ("第3", "章", {"seams": {2}}, COST_INSIDE),  # a number stays with its word
        ("我", "的家", {"seams": {1}}, COST_INSIDE),
        ("ครับ ", "ผม", {}, COST_PHRASE),
    ],
)
def test_the_cost_of_a_break(before, after, starts, cost):
    assert break_cost(before + after, len(before), **starts) == cost


@pytest.mark.parametrize(("mark", "cost"), [*((m, COST_SENTENCE) for m in "؟۔।॥"), *((m, COST_CLAUSE) for m in "،؛")])
def test_the_marks_of_other_scripts_end_sentences_and_clauses(mark, cost):
    text = f"الميزانية{mark} الجديدة"
    assert break_cost(text, text.index(" ") + 1) == cost


def test_reading_time_is_each_scripts_own():
    assert reading_ms("你" * 9, RULES) == 1000
    assert reading_ms("a" * 17, RULES) == 1000
    assert reading_ms("你" * 9 + "a" * 17, RULES) == 2000
    assert reading_ms("e\u0301" * 17, RULES) == 1000
    assert reading_ms("の" * 4, RULES) == 1000


def test_a_quoted_name_does_not_change_the_script():
    assert is_cjk("请把这个文件发给 International Business Machines。")
    assert not is_cjk("He pronounced 北京 badly, as foreigners do.")
    assert not is_cjk("3.5")


def test_blanks_and_control_characters_are_cleaned_and_no_break_spaces_kept():
    assert normalized("a \x07 b") == "a b"
    assert normalized(" a\n\tb\u2028c\x00d 10\u00a0% ") == "a b cd 10\u00a0%"


def test_direction_controls_and_byte_order_marks_are_removed():
    assert normalized("\ufeffa \u202ab\u202e \u2067c") == "a b c"
    assert normalized("a\u200fb\u200c") == "a\u200fb\u200c"


@pytest.mark.parametrize("text", ["\u202a", " \u200b\u2060 ", "\u00a0", "\x00"])
def test_invisible_text_is_empty(text):
    assert normalized(text) == ""


def test_clusters_keep_combining_characters():
    assert clusters("e\u0301a👩\u200d🚀") == ["e\u0301", "a", "👩\u200d🚀"]
