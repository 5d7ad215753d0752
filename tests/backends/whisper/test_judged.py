"""Which of two searches is better, and which words of a draft are kept: values in, without a model."""

import math
from types import SimpleNamespace

import pytest

from pipeline.backends.whisper.engine import Hypothesis
from pipeline.backends.whisper.search import Search, contradict
from pipeline.backends.whisper.transcripts import Transcripts
from pipeline.backends.whisper.words import TimedWord
from pipeline.events import MissingSpeech
from pipeline.store.known import Thresholds
from tests.core.asr.scripted import speech

ENGLISH = SimpleNamespace(language="en")


def search(text="Yes.", *, tokens=9, mean=-0.2, rejected=None, ended=True, words=(), missing=()):
    found = Hypothesis(tuple(range(tokens)), text, mean, mean, 0.0, ended)
    return Search(ENGLISH, found, rejected, tuple(words), tuple(missing))


@pytest.mark.parametrize(
    ("first", "second", "tokens", "expected"),
    [("Yes.", "No.", 3, True), ("Yes.", "yes", 3, False), ("Yes.", "No, it is not so.", 4, False)],
)
def test_short_texts_that_differ_contradict_each_other(first, second, tokens, expected):
    assert contradict(search(first), search(second, tokens=tokens)) == expected


def test_the_better_search_is_accepted_then_without_a_repetition_then_more_probable():
    ranked = [
        search(rejected="repetition", mean=-0.1), search(rejected="uncertain", mean=-0.9), search(rejected="silence", mean=-0.5),
        search(mean=-0.8), search(mean=-0.3),
    ]  # fmt: skip
    assert sorted([*ranked[2:], *ranked[:2]], key=lambda one: one.better) == ranked


@pytest.mark.parametrize(
    ("options", "sure"),
    [({"mean": -0.3}, True), ({"mean": -0.31}, False), ({"ended": False}, False), ({"rejected": "uncertain"}, False)],
)
def test_a_greedy_search_is_sure_if_it_ended_accepted_and_probable(options, sure):
    assert search(**options).sure == sure


def test_what_was_heard_is_moved_with_what_was_not():
    moved = search(words=[TimedWord(" Yes.", 0.5, 1.0)], missing=[MissingSpeech(2.0, 3.0, "uncertain")]).moved(10.0)
    assert [(each.start_s, each.end_s) for each in (*moved.words, *moved.missing)] == [(10.5, 11.0), (12.0, 13.0)]


def kept(*probabilities, said="It was the best of times", judged=False):
    """The words that are kept of a draft whose words have these mean log-probabilities."""
    words = [
        TimedWord(f" {word}", at / 2, at / 2 + 0.5, log_probabilities=(probability,) * 2)
        for at, (word, probability) in enumerate(zip(said.split(), probabilities, strict=False))
    ]
    found = Transcripts(Thresholds(), {"en": None}, timed=True).sure(
        speech(0, 0.0, 30.0), search(words=words), judged=judged
    )
    return None if found is None else found.text


@pytest.mark.parametrize(
    ("probabilities", "judged", "text"),
    [
        ([-0.1, -0.1, -0.1, -0.6], False, "It was the best"),
        ([-0.1, -0.1, -0.1, -0.7], False, "It was the"),  # it is probably cut off
        ([-0.1, -0.1, -0.1, -9.0, -0.1], False, "It was the"),  # two are left out, as the text is doubtful with them
        ([-0.1, -0.1, -9.0, -9.0, -0.1], False, None),  # but no more
        ([-2.5, -2.5, -2.5, -0.1], False, None),
        ([-2.5, -2.5, -2.5, -0.1], True, "It was the best"),  # the whole of it has passed the checks
        ([-0.8], False, None),
        ([], False, None),
    ],
)
def test_doubtful_words_at_the_end_of_a_draft_are_left_out(probabilities, judged, text):
    assert kept(*probabilities, judged=judged) == text


def test_a_loop_is_no_draft_however_it_was_judged():
    assert kept(*[-0.1] * 20, said="no " * 20, judged=True) is None


def test_nothing_is_kept_of_a_draft_whose_words_have_no_plausible_times():
    words = [TimedWord(" Yes", 5.0, 5.5, log_probabilities=(-0.1,) * 4)]
    transcripts = Transcripts(Thresholds(), {"en": None}, timed=True)
    assert transcripts.sure(speech(0, 0.0, 6.0), search(words=words)) is not None
    assert transcripts.sure(speech(0, 0.0, 2.0), search(words=words)) is None


@pytest.mark.parametrize(
    ("text", "of_mark", "sure"),
    [
        (" times.", 0.91, True),
        (" times.", 0.89, False),
        (" times,", 0.99, False),
        (" times", 0.99, False),
        (" times...", 0.99, False),
        (" है।", 0.99, False),
    ],
)
def test_a_sentence_surely_ends_with_a_final_mark_that_is_probable(text, of_mark, sure):
    word = TimedWord(text, 0.0, 1.0, log_probabilities=(-2.0, math.log(of_mark)))
    found = Transcripts(Thresholds(), {"en": None}, timed=True).alone(
        speech(0, 0.0, 1.0), search(text.strip(), words=[word])
    )
    assert found.ends_surely == sure
