"""Words and syllables of scripts without spaces. Spaces in the examples show where a line may break."""

from itertools import accumulate, pairwise

import pytest

from pipeline.media.subtitles.breaks import has_kana, phrase_starts, syllable_starts
from pipeline.media.subtitles.lines import layout
from pipeline.media.subtitles.rules import SubtitleRules
from pipeline.media.subtitles.text import atoms, clusters

# Syllables that the spelling makes certain; ambiguous ones are joined.
SYLLABLES = [
    "ມື້ ນີ້ ພວກ ເຮົາ ຈະ ເວົ້າ ກ່ຽວ ກັບ ເຕັກ ໂນ ໂລ ຊີ ໃໝ່ ທີ່ ຊ່ວຍ ແປ ພາ ສາ",
    "ຂອງ ຂ້ອຍ ຕ້ອງ ໄປ ພົບ ໝູ່ ນອນ ສວນ ຫຼາຍ ໂທລະ ສັບ ໜັງ ສື",
    "ထို မြန် မာ နိုင် ငံ ကျွန် တော် တို့ ဘာ သာ စ"[:-2],
    "ပြော ကြ ပါ မည် အ"[:-2],
    "ថ្ងៃ នេះ យើង នឹង និ យាយ អំ ពី",
    "ភា សា ក្នុង ពេល វេ លា ជាក់ ស្តែង យ៉ាង",
    "នៅ ភ្នំ ពេញ ទាំងអស់ គ្នា",
]
THAI = ["สวัสดีครับวันนี้เราจะพูดเกี่ยวกับเทคโนโลยีใหม่ที่ช่วยแปลภาษา", "น้องสาวของฉันจะแนะนำผลิตภัณฑ์ใหม่ให้ทุกคนรู้จักในห้องประชุม"]
# Segmented by hand; compound words may be broken in the middle.
THAI_WORDS = [
    "สวัส ดี ครับ วัน นี้ เรา จะ พูด เกี่ยว กับ เทค โน โลยี ใหม่ ที่ ช่วย แปล ภาษา",
    "น้อง สาว ของ ฉัน จะ แนะ นำ ผลิต ภัณฑ์ ใหม่ ให้ ทุก คน รู้ จัก ใน ห้อง ประ ชุม",
]


@pytest.mark.parametrize("spelled", SYLLABLES)
def test_syllables_begin_where_the_spelling_says(spelled):
    pieces = spelled.split(" ")
    assert atoms("".join(pieces)) == pieces


@pytest.mark.parametrize(("text", "words"), list(zip(THAI, THAI_WORDS, strict=True)))
def test_thai_breaks_at_words(text, words):
    allowed = set(accumulate(map(len, words.split(" "))))
    assert syllable_starts(text) <= allowed
    assert len(syllable_starts(text)) >= len(allowed) // 2


@pytest.mark.parametrize("text", ["เพราะ" * 30, "ເພາະ" * 30, "ကျွန်ုပ်" * 20, "ក្រុង" * 20, "क्षत्रिय" * 20])
def test_a_letter_keeps_its_vowels_however_narrow_the_line(text):
    lines = [line for lines in layout(text, SubtitleRules(line_columns=20)) for line in lines]
    for pieces in (clusters(text), lines):
        assert len(pieces) > 1
        for before, after in pairwise(pieces):
            assert before[-1] not in "เແ\u1039\u17d2\u094d"
            assert after[0] not in "ะະາຳ\u103b\u103d\u1039\u103a\u17d2\u17bb\u094d"


@pytest.mark.parametrize("text", ["ๆ", "ฯ", "ໆ", "។", "៕", "ៗ", "၊", "။"])
def test_no_line_begins_with_a_mark_that_closes(text):
    assert atoms("ab " + text + " cd") == ["ab " + text + " ", "cd"]


def test_lao_and_khmer_break_between_words_where_seams_mark_them():
    words = ["ພວກເຮົາ", "ຈະ", "ເວົ້າ", "ກ່ຽວກັບ", "ເຕັກໂນໂລຊີ", "ໃໝ່", "ທີ່", "ຊ່ວຍ", "ແປພາສາ"]
    text = "".join(words)
    seams = set(accumulate(map(len, words)))
    (lines,) = layout(text, SubtitleRules(line_columns=22), seams=seams)
    assert len(lines) == 2
    assert len(lines[0]) in seams


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("明日の会議室で新しい製品を紹介します", "明日の 会議室で 新しい 製品を 紹介します"),
        ("如果明天下雨我们就待在家里看电影", "如果 明天 下雨 我们 就 待 在 家里 看 电影"),
        ("在會議裡向大家介紹我們公司", "在 會議 裡 向 大家 介紹 我們 公司"),
    ],
)
def test_phrases_of_japanese_and_chinese(text, phrases):
    starts = set(accumulate(map(len, phrases.split(" "))))
    assert phrase_starts(text) - {0} == starts - {len(text)}


@pytest.mark.parametrize(
    "lines",
    [
        ("私たちは来年の春に", "新しい店を開く予定です"),
        ("この電車は次の駅で", "急行列車の通過を待ちます"),
        ("如果明天下雨我们就待在", "家里看电影然后一起做晚饭"),
        ("他昨天晚上在图书馆遇到了", "小学时候的数学老师"),
    ],
)
def test_lines_end_with_a_phrase(lines):
    assert layout("".join(lines), SubtitleRules()) == [lines]


@pytest.mark.parametrize(
    ("text", "japanese"),
    [("字字字字字字字の", True), ("字字字字字字字字の", False), ("の", True), ("字", False), ("a", False)],
)
def test_an_eighth_of_the_letters_of_japanese_are_kana(text, japanese):
    assert has_kana(text) is japanese


def test_spaced_languages_have_no_phrases():
    assert phrase_starts("The train leaves.") == frozenset() == syllable_starts("오늘 날씨가 좋다")
