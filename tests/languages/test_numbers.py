"""Numbers in words."""

import pytest

from pipeline.languages.numbers import in_digits
from pipeline.languages.rules.en import in_words


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
    assert (in_words(value), in_words(value, " and ")) == (american, british)


@pytest.mark.parametrize(
    ("language", "words", "digits"),
    [
        ("en", "two hundred and fifty three euros and forty cents", "253 euros and forty cents"),
        ("en", "one point five million people", "1.5 million people"),
        ("en", "one million two hundred fifty thousand", "1,250,000"),
        ("en", "in nineteen eighty four, twenty twenty four and nineteen oh five", "in 1984, 2024 and 1905"),
        ("en", "Call five five five one two three four.", "Call 5551234."),
        ("en", "Twenty-five people, three hundred, three point one four", "Twenty-five people, three hundred, 3.14"),
        ("en", "forty-one and forty five people", "41 and 45 people"),
        ("pt", "vinte e cinco reais, trinta e um euros, duzentos e dois", "vinte e cinco reais, 31 euros, 202"),
        ("en", "two fifty, one or two, one two three four", "two fifty, one or two, one two three four"),
        (
            "en",
            "twenty first, two thirds, a hundred, half a million",
            "twenty first, two thirds, a hundred, half a million",
        ),
        ("en", "two million and a half", "two million and a half"),
        ("en", "thirteen ten, twenty twenty", "1310, 2020"),
        ("en", "twelve ten, twenty one ten", "twelve ten, twenty one ten"),  # no years
        ("en", "five one nine, three two one, four five", "519, three two one, four five"),
        ("en", "one oh two four, nine nine one hundred", "1024, nine nine one hundred"),
        ("en", "room three oh four, one zero one, three two one", "room 304, 101, three two one"),
        ("en", "oh two three, nineteen oh", "oh two three, nineteen oh"),
        ("en", "it is oh four seven two", "it is oh 472"),
        ("en", "say oh two five, five seven two one hundred", "say oh two five, five seven two one hundred"),
        ("en", "nine thousand and one, twelve thousand", "9,001, 12,000"),
        ("en", "in one thousand and sixty six, one thousand nine hundred and six", "in 1066, 1906"),  # years
        ("en", "a hundred and ten, a hundred", "110, a hundred"),
        ("pt", "mil e duzentos reais, em mil quatrocentos e dez", "1.200 reais, em 1410"),
        ("en", "two hundred first, first two hundred", "two hundred first, first two hundred"),
        ("pt", "um vírgula cinco milhões, dois milhões", "1,5 milhões, 2 milhões"),
        ("pt", "mil novecentos e oitenta e quatro", "1984"),
        ("pt", "um milhão e duzentos mil reais", "1.200.000 reais"),
        ("pt", "um milhão e meio, trinta por cento, uma ou duas", "um milhão e meio, trinta por cento, uma ou duas"),
        ("es", "doscientos cincuenta y tres", "253"),
        ("de", "ein Komma fünf Millionen", "1,5 Millionen"),
        ("fr", "deux cent cinquante-trois", "253"),
        ("zh", "twenty five", "twenty five"),
        ("en", "", ""),
    ],
)
def test_numbers_that_are_not_simple_are_written_in_digits(language, words, digits):
    assert in_digits(words, language) == digits


def test_a_number_at_the_end_of_a_beginning_may_go_on():
    said = "five thousand people and five thousand"
    assert in_digits(said, "en", complete=False) == "5,000 people and five thousand"
