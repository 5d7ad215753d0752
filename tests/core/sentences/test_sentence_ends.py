"""Sentence ends in the languages of the catalogue."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.backends.marian.pairs import all_pairs
from pipeline.core.sentences import splitting
from pipeline.core.sentences.boundaries import is_end, word_lists
from pipeline.core.sentences.splitting import split_sentences
from tests.conftest import examples

PIECES = [*"""A b. Dr. ' " “ ” „ 「 」 『 』 。 ？ … ... ) ( 2. etc. né -""".split(), " ", "\n", "\r"]
SOURCES = sorted({pair.source for pair in all_pairs()})

MARKED = [line.split("\t") for line in Path(__file__).with_name("sentence_ends.tsv").read_text("utf-8").splitlines()]
"""Language and text. A bar marks each position where the text has to be split; there must be no other split."""


@pytest.mark.parametrize(("language", "marked"), MARKED)
def test_text_is_split_only_at_the_bars(language, marked):
    assert split_sentences(marked.replace("|", ""), language) == marked.split("|")


@pytest.mark.parametrize(
    ("language", "before", "after", "ends"),
    [
        ("en", "We met Dr.\n", "Smith", False),
        ("en", "We met Dr.\n\n", "Smith", None),  # a paragraph ends
        ("en", "It costs 3.", "5 dollars", False),
        ("en", "It was in 2020.", "Then it was", None),
        ("en", "“No.” ", "Anna asked.", False),
        ("en", "Ann said: “No.” ", "Anna asked.", None),  # who spoke is known
        ("en", "It was you and I. ", "Robert laughed.", None),  # no initial
        ("de", "Am 3. ", "10. 2024 war es.", False),
        ("de", "Er wohnt in Zimmer 302. ", "10 Leute warten.", None),
    ],
)
def test_what_the_rules_say_of_a_position(language, before, after, ends):
    assert is_end(before, after, word_lists(language)) is ends


@settings(max_examples=examples(150))
@given(text=st.text(max_size=120) | st.lists(st.sampled_from(PIECES)).map("".join), language=st.sampled_from(SOURCES))
def test_the_sentences_joined_are_the_text(text, language):
    assert "".join(split_sentences(text, language)) == (text if text.strip() else "")
    assert all(sentence.strip() for sentence in split_sentences(text, language))


@pytest.mark.parametrize("unit", ["He came. ", "「」。", "« a. ", "Dr. A. ", "no end ", '"a.', "„", "『。", "(etc. A"])
def test_the_work_is_linear_in_the_length_of_the_text(unit, monkeypatch):
    read = 0
    real_segment, real_is_end = splitting.segment, splitting.is_end

    def segment(language, text):
        nonlocal read
        # Upper bound for sentencex: from each character it scans the whole text.
        read += len(text) ** 2
        return real_segment(language, text)

    def is_end(before, after, known):
        nonlocal read
        read += len(before) + len(after)
        return real_is_end(before, after, known)

    monkeypatch.setattr(splitting, "segment", segment)
    monkeypatch.setattr(splitting, "is_end", is_end)
    work = []
    for length in (10_000, 40_000):
        read = 0
        split_sentences((unit * length)[:length], "en")
        work.append(read)
    assert work[1] < 8 * work[0]  # 4 times if linear, 16 times if quadratic
