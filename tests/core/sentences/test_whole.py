"""The words of a sentence are those of its text."""

import pytest

from pipeline.core.sentences.splitting import trimmed_words
from pipeline.events import SourceSentence, Word


@pytest.mark.parametrize(
    ("language", "pieces", "words"),
    [
        ("en", [" At", " 2", ":30", ",", " 1", ",250", ",000", "."], ["At", "2:30,", "1,250,000."]),
        ("en", [" 83", ".5", "%", " well", "-known", " I", "'m"], ["83.5%", "well-known", "I'm"]),
        ("zh", ["我", "们", "，", "好", "。"], ["我", "们，", "好。"]),
    ],
)
def test_pieces_without_a_blank_belong_to_the_word_before(language, pieces, words):
    timed = tuple(Word(text, at, at + 1.0) for at, text in enumerate(pieces))
    found = trimmed_words(SourceSentence(0, language, "".join(pieces).strip(), words=timed))
    assert [word.text for word in found] == words
    assert [word.start_s for word in found[1:]] == [word.end_s for word in found[:-1]]
    assert (found[0].start_s, found[-1].end_s) == (0.0, len(pieces))


@pytest.mark.parametrize(
    ("language", "text", "words"), [("en", "Yes, I.", ["Yes,", "I."]), ("zh", "好的。", ["好", "的。"])]
)
def test_without_times_the_time_is_divided(language, text, words):
    found = trimmed_words(SourceSentence(0, language, text, 1.0, 4.0))
    assert [word.text for word in found] == words
    assert (found[0].start_s, found[-1].end_s) == (1.0, 4.0)
