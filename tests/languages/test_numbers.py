"""Numbers in English words."""

import pytest

from pipeline.languages.numbers import ends_in_number, english


@pytest.mark.parametrize(
    ("value", "american", "british"),
    [
        (0, "zero", "zero"),
        (12, "twelve", "twelve"),
        (99, "ninety-nine", "ninety-nine"),
        (105, "one hundred five", "one hundred and five"),
        (1010, "one thousand ten", "one thousand and ten"),
        (2021, "two thousand twenty-one", "two thousand and twenty-one"),
    ],
)
def test_numbers_in_words(value, american, british):
    assert (english(value), english(value, " and ")) == (american, british)


@pytest.mark.parametrize(
    ("text", "open_"),
    [
        ("It costs 12 pounds.", True), ("It is 83 million,", True), ("at seven", True), ("about twenty-five.", True),
        ("three point", True), ("A cidade tem 83 milhões", True), ("现在是7点。", True), ("Where is it?", False),
        ("12 of them came", False), ("", False),
    ],
)  # fmt: skip
def test_a_text_may_end_in_a_number_that_goes_on(text, open_):
    assert ends_in_number(text) is open_
