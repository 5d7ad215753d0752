"""Sentences that go on over pauses: when they end, and that nothing is lost or changed."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.events import Transcript, Word
from pipeline.sentences.assembler import SentenceAssembler
from pipeline.sentences.options import SentenceOptions
from pipeline.sentences.splitting import split_sentences

OPTIONS = SentenceOptions()


def heard(number: int, text: str, start_s: float, end_s: float, language: str = "en", words: bool = True) -> Transcript:
    """A transcript whose words, if it has any, take the same time each."""
    parts = text.split(" ") if words and text else []
    each_s = (end_s - start_s) / max(1, len(parts))
    timed = tuple(
        Word((" " if at else "") + part, start_s + at * each_s, start_s + (at + 1) * each_s)
        for at, part in enumerate(parts)
    )
    return Transcript(number, start_s, end_s, text, language, speech_end_s=end_s, heard_s=end_s, words=timed)


def assembled(*transcripts: Transcript, options: SentenceOptions = OPTIONS) -> list[Transcript]:
    assembler = SentenceAssembler(options)
    found: list[Transcript | None] = []
    for transcript in transcripts:
        found += [assembler.before(transcript), assembler.push(transcript)]
    return [one for one in [*found, assembler.end()] if one is not None]


def texts(*transcripts: Transcript, options: SentenceOptions = OPTIONS) -> list[str]:
    return [one.text for one in assembled(*transcripts, options=options)]


def test_a_sentence_goes_on_over_pauses() -> None:
    (whole,) = assembled(
        heard(0, "And so my fellow Americans,", 0.0, 3.0),
        heard(1, "ask not", 3.1, 4.9),
        heard(2, "what your country can do for you,", 5.3, 7.7),
        heard(3, "ask what you can do for your country.", 8.1, 11.0),
    )
    assert whole.text == (
        "And so my fellow Americans, ask not what your country can do for you, ask what you can do for your country."
    )
    assert (whole.segment_id, whole.start_s, whole.end_s, whole.heard_s) == (3, 0.0, 11.0, 11.0)
    assert whole.span(28, 35) == (3.1, 4.9)  # "ask not"


def test_what_has_ended_does_not_wait_for_what_has_not() -> None:
    first = heard(0, "Hello. My name is", 0.0, 4.0)
    assembler = SentenceAssembler(OPTIONS)
    ended = assembler.push(first)
    assert ended is not None
    assert (ended.text, ended.start_s, ended.speech_end_s) == ("Hello. ", 0.0, 1.0)
    second = heard(1, "Ann.", 5.0, 6.0)
    assert assembler.before(second) is None
    rest = assembler.push(second)
    assert rest is not None
    assert (rest.text, rest.start_s, rest.end_s) == ("My name is Ann.", 1.0, 6.0)
    assert assembler.end() is None


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (heard(1, "ask not.", 6.0, 7.0), ["My fellow Americans,", "ask not."]),  # after a long pause
        (heard(1, "frag nicht.", 3.5, 5.0, "de"), ["My fellow Americans,", "frag nicht."]),
        (replace(heard(1, "hm", 3.5, 5.0), rejected="uncertain"), ["My fellow Americans,"]),
        (heard(1, "ask not.", 3.5, 5.0), ["My fellow Americans, ask not."]),
    ],
)
def test_what_ends_an_open_sentence(second: Transcript, expected: list[str]) -> None:
    assert texts(heard(0, "My fellow Americans,", 0.0, 3.0), second) == expected


def test_a_sentence_does_not_go_on_for_ever() -> None:
    parts = [heard(n, f"and then {n}", 3.0 * n, 3.0 * n + 2.5) for n in range(20)]
    found = assembled(*parts)
    assert len(found) > 1
    assert all(one.end_s - one.start_s < OPTIONS.max_sentence_ms / 1000 + 3.0 for one in found)


@pytest.mark.parametrize(
    ("first", "second", "language", "expected"),
    [
        ("I saw Dr.", "Smith.", "en", ["I saw Dr. Smith."]),
        ("It is over.", "Thank you.", "en", ["It is over.", "Thank you."]),
        ("我们明天上午", "十点见面。", "zh", ["我们明天上午十点见面。"]),
        ("好。", "走吧。", "zh", ["好。", "走吧。"]),
        ("Wait…", "I am coming.", "en", ["Wait…", "I am coming."]),
    ],
)
def test_final_marks(first: str, second: str, language: str, expected: list[str]) -> None:
    assert texts(heard(0, first, 0.0, 2.0, language), heard(1, second, 2.8, 4.0, language)) == expected


def test_without_a_pause_that_joins_every_segment_stands_alone() -> None:
    parts = [heard(0, "My fellow Americans,", 0.0, 3.0), heard(1, "ask not.", 3.0, 5.0)]
    assert assembled(*parts, options=SentenceOptions(long_pause_ms=0)) == parts


def test_words_that_are_not_known_share_the_time_of_their_segment() -> None:
    (whole,) = assembled(heard(0, "My fellow Americans,", 0.0, 3.0, words=False), heard(1, "ask not.", 3.5, 5.0))
    assert [word.text for word in whole.words] == ["My fellow Americans,", " ask", " not."]
    assert whole.span(0, 20) == (0.0, 3.0)


TEXTS = st.lists(
    st.sampled_from(["Hello.", "my", "name", "is", "Dr.", "Ann,", "3.5", "Why?", "“No.”", "yes", "M.", "…", "etc."]),
    max_size=6,
).map(" ".join)


@given(st.lists(st.tuples(TEXTS, st.floats(0.1, 4.0), st.floats(0.0, 3.0), st.booleans(), st.booleans()), max_size=8))
def test_nothing_is_lost_or_changed(parts: list[tuple[str, float, float, bool, bool]]) -> None:
    transcripts, at = [], 0.0
    for number, (text, length_s, pause_s, words, rejected) in enumerate(parts):
        one = heard(number, text, at, at + length_s, words=words)
        transcripts.append(replace(one, rejected="uncertain") if rejected else one)
        at += length_s + pause_s
    found = assembled(*transcripts)
    said = "".join(one.text for one in transcripts if one.rejected is None)
    assert "".join("".join(one.text for one in found).split()) == "".join(said.split())
    for one in found:
        assert "".join(word.text for word in one.words).strip() in (one.text.strip(), "")
        assert one.start_s <= one.end_s
        times = [time for word in one.words for time in (word.start_s, word.end_s)]
        assert times == sorted(times)
    for before, after in pairwise(found):
        assert before.segment_id <= after.segment_id
        assert before.start_s <= after.start_s
    ended = [sentence for one in found for sentence in split_sentences(one.text, "en")]
    assert len(ended) <= len([s for one in transcripts if not one.rejected for s in split_sentences(one.text, "en")])
