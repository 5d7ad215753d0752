"""Hypothesis strategies for subtitles: sentences in several scripts, and arbitrary text."""

from hypothesis import strategies as st

from pipeline.media.subtitles.rules import SubtitleRules

_WORDS = st.sampled_from(
    "the train, leaves Berlin at 9:30 and costs 12,500 euros well-known don't République 3.5 % ! internationally a".split()
)
_CHINESE = st.sampled_from(
    [*"我你的了天气火车北京，。、：“”《》（）——……・々", *"三百二十五 GPU 3.5 12,500 ２０ International".split()]
)
ENGLISH = st.lists(_WORDS, min_size=1, max_size=60).map(" ".join)
CHINESE = st.lists(_CHINESE, min_size=1, max_size=90).map("".join)
_MARKUP = st.sampled_from(
    [
        *"<>{}\\&;/ 1מש\u202a\u202e\u2067\ufeff\0",
        *r"<b> </b> <String> {\an8} \N \h &lt; &amp; --> 00:00:01,000 00:00:01.500 WEBVTT NOTE 42".split(),
        "Dialogue: 0",
    ]
)
_RIGHT_TO_LEFT = st.sampled_from(
    ["مرحبا", "شركة", "12,500", "GPU", "(تقريبا)؟", "שלום!", "۱۲", "International", "جدا."]
)
MARKUP = st.lists(_MARKUP, min_size=1, max_size=40).map("".join)
RIGHT_TO_LEFT = st.lists(_RIGHT_TO_LEFT, min_size=1, max_size=20).map(" ".join)
ANYTHING = st.text(st.characters(codec="utf-8"), max_size=150)
TEXTS = st.one_of(ENGLISH, CHINESE, MARKUP, RIGHT_TO_LEFT, ANYTHING)

RULES = st.builds(
    SubtitleRules,
    max_lines=st.integers(1, 3),
    line_columns=st.integers(20, 50),
    line_cjk_characters=st.integers(10, 20),
    min_duration_ms=st.integers(300, 1500),
    max_duration_ms=st.integers(4000, 9000),
    gap_ms=st.integers(0, 250),
    linger_ms=st.integers(0, 3000),
    bilingual=st.booleans(),
    position=st.sampled_from(["bottom", "top"]),
    source_position=st.sampled_from(["bottom", "top"]),
)
