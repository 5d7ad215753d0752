"""Sentence splitting loses no text and does not split where no sentence ends."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.sentences.splitting import fit, last_clause, split_sentences
from tests.conftest import examples


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "Yes.", ["Yes."]),
        ("zh", "好。", ["好。"]),
        ("en", "Mr. Smith paid 3.5 dollars. Thank you.", ["Mr. Smith paid 3.5 dollars. ", "Thank you."]),
        ("zh", "好。你好吗？我很好！", ["好。", "你好吗？", "我很好！"]),
        ("en", "no final mark", ["no final mark"]),
        ("en", "We go with plan B\u00a0. Yes.", ["We go with plan B\u00a0. ", "Yes."]),
        ("zh", "选A\u3000. 好。", ["选A\u3000. ", "好。"]),
        (
            "en",
            'He said "we have pears, etc. Then we left" and went.',
            ['He said "we have pears, etc. Then we left" and went.'],
        ),
        ("en", "We have pears, etc. Then we left.", ["We have pears, etc. ", "Then we left."]),
        ("xx", "A language it does not know. Still two.", ["A language it does not know. ", "Still two."]),
    ],
)
def test_sentences(language, text, expected):
    assert split_sentences(text, language) == expected


def test_a_text_longer_than_what_is_split_at_once_has_the_same_sentences():
    sentences = [f"The train number {number} leaves in the morning. " for number in range(300)]
    assert split_sentences("".join(sentences), "en") == sentences


@pytest.mark.parametrize("blank", ["", "   ", "\n\t "])
def test_blank_text_has_no_sentence(blank):
    assert split_sentences(blank, "en") == []


@settings(max_examples=examples(300))
@given(
    text=st.text("AbÉ好.?! \n\t\u00a0\u2009\u202f\u3000\u2028\x85", max_size=20),
    language=st.sampled_from(["en", "zh", "fr"]),
)
def test_no_kind_of_blank_causes_a_panic(text, language):
    assert "".join(split_sentences(text, language)) == (text if text.strip() else "")


@settings(max_examples=examples(200))
@given(text=st.text(min_size=1, max_size=200), limit=st.integers(1, 40))
def test_parts_fit_and_joined_are_the_sentence(text, limit):
    parts = fit(text, lambda part: len(part) <= limit)
    assert "".join(parts) == text
    assert all(len(part) <= limit for part in parts)


def test_numbers_and_times_are_not_cut():
    text = "about the offer of 12,500 dollars that was made at 10:30 in the morning"
    assert not [part for part in fit(text, lambda part: len(part) < 25) if part.rstrip().endswith(("12,", "10:"))]


def test_a_sentence_is_not_cut_at_a_clause_mark_near_its_edge():
    text = "Well, the train to London leaves at half past nine and arrives at ten"
    assert fit(text, lambda part: len(part) < 60)[0] == "Well, the train to London leaves "


def test_a_long_sentence_is_cut_at_clauses():
    text = "I went to the market, bought some fruit, and then I went home."
    assert fit(text, lambda part: len(part) < 45) == [
        "I went to the market, bought some fruit,",
        " and then I went home.",
    ]


@pytest.mark.parametrize(
    ("text", "last"),
    [("I went home, and then", " and then"), ("so, well, it is", " it is"), ("it is", None), ("it is,", None), ("10:30 now", None)],
)  # fmt: skip
def test_the_last_clause_begins_after_the_last_mark_before_words(text, last):
    at = last_clause(text)
    assert (None if at is None else text[at:]) == last
