"""Numbers in English and Chinese words."""

import pytest

from pipeline.languages.numbers import chinese, chinese_digits, ends_in_number, english


@pytest.mark.parametrize(
    ("value", "american", "british", "mandarin"),
    [
        (0, "zero", "zero", "零"),
        (12, "twelve", "twelve", "一十二"),
        (20, "twenty", "twenty", "二十"),
        (99, "ninety-nine", "ninety-nine", "九十九"),
        (105, "one hundred five", "one hundred and five", "一百零五"),
        (110, "one hundred ten", "one hundred and ten", "一百一十"),
        (1001, "one thousand one", "one thousand and one", "一千零一"),
        (1010, "one thousand ten", "one thousand and ten", "一千零一十"),
        (2021, "two thousand twenty-one", "two thousand and twenty-one", "二千零二十一"),
        (
            9999,
            "nine thousand nine hundred ninety-nine",
            "nine thousand nine hundred and ninety-nine",
            "九千九百九十九",
        ),
    ],
)
def test_numbers_in_words(value, american, british, mandarin):
    assert (english(value), english(value, " and "), chinese(value)) == (american, british, mandarin)


def test_years_are_said_digit_by_digit():
    assert chinese_digits(1998) == "一九九八"
    assert chinese_digits(2020) == "二零二零"


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
