"""Texts in another language than that in which they were recognised."""

import pytest

from pipeline.asr.whisper.language_id import foreign_words, in_another_language


@pytest.mark.parametrize(
    ("text", "language", "found"),
    [
        ("我 们 什 么 时 候 见 面 ?| The| meeting| is| on| Thursday", "zh", "The meeting is on Thursday"),
        ("What| time| does| the| train| to| Berlin| leave?|你好 ,", "zh", "What time does the train to Berlin leave?"),
        ("我 要 去| New| York| City| University", "zh", None),
        ("我 用| machine| learning|来 翻 译", "zh", None),
        ("OK .", "zh", None),
        ("我 看 了| The| Lord| of| the| Rings", "zh", None),
        ("Она| купила| iPhone| Pro", "ru", None),
        ("Hello,|你 好 请 问| where", "en", "你好请问"),
        ("He| wrote| α| and| β", "en", None),
        ("Guten| Tag| Herr| Müller", "en", None),
        ("これは| 東京| タワー です", "ja", None),
        ("서울 에서| 만나 요", "ko", None),
        ("ሰላም| hello| there| my| friend| again", "am", None),
        ("1| 2| 3| 4| 5| 6", "zh", None),
    ],
)
def test_words_in_another_script_are_found(text, language, found):
    """Words are between blanks and bars; those after a bar begin with a blank if there is one."""
    words = [piece for word in text.split("|") for piece in (word.split(" ") if word.strip().count(" ") else [word])]
    run = foreign_words(words, language)
    assert (None if run is None else "".join(words[slice(*run)]).strip()) == found


@pytest.mark.parametrize(
    ("probabilities", "language", "other"),
    [
        ({"zh": 0.99, "en": 0.001}, "en", True),
        ({"zh": 0.99, "en": 0.001}, "zh", False),
        ({"es": 0.6, "pt": 0.3, "en": 0.02}, "en", False),
        ({"es": 0.85, "en": 0.12}, "en", False),
        ({"nn": 0.95, "no": 0.01}, "no", False),
        ({"da": 0.95, "no": 0.01}, "no", False),
        ({"hr": 0.95, "sr": 0.01}, "sr", False),
        ({"id": 0.95, "ms": 0.01}, "ms", False),
        ({"de": 0.95, "lb": 0.01}, "lb", False),
        ({"lb": 0.95, "de": 0.01}, "de", False),
        ({"pt": 0.98, "es": 0.01}, "es", True),
        ({}, "en", False),
    ],
)
def test_another_language_is_clearly_more_probable(probabilities, language, other):
    assert in_another_language(probabilities, language) is other
