"""Sentences are spoken in order, faster and with gaps when too many wait; an output that fails costs its sentences alone."""

import logging
import threading
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import DeviceError
from pipeline.events import Samples, TargetText
from pipeline.speaking.speaker import Speaker, Utterance, UtteranceQueue
from pipeline.speaking.speaker import spoken as voiced
from tests.conftest import HANG_S
from tests.streams import spoken, translated

LONG = "Das ist ein Satz, der allein schon länger ist als alles, was zusammen gesprochen wird: {}."


def long(number):
    return LONG.format(number)


def waiting(*texts, language="de"):
    found = UtteranceQueue(language)
    for at, text in enumerate(texts):
        found.add(text, float(at))
    return found


def taken(found):
    utterance, speed, skipped = found.take()
    return utterance.texts, speed > 1, skipped


def test_one_sentence_is_spoken_at_its_own_speed():
    assert taken(waiting(long(0))) == ((long(0),), False, [])


def test_while_another_one_waits_speech_is_faster():
    found = waiting(long(0), long(1))
    assert taken(found) == ((long(0),), True, [])
    assert taken(found) == ((long(1),), False, [])


def test_older_ones_are_skipped_so_that_one_waits_at_most():
    found = waiting(*map(long, range(5)))
    assert taken(found) == ((long(3),), True, [long(0), long(1), long(2)])
    assert taken(found) == ((long(4),), False, [])
    assert not found


def test_short_sentences_are_spoken_together():
    found = waiting("Ja.", "Gut.", "Wo ist das?", long(0), "Nein.")
    assert found.since == 0.0
    assert taken(found) == ((long(0),), True, ["Ja.", "Gut.", "Wo ist das?"])
    assert taken(waiting("Ja.", "Gut.", "Wo ist das?")) == (("Ja.", "Gut.", "Wo ist das?"), False, [])
    assert taken(waiting("好。", "在哪里？", language="zh")) == (("好。", "在哪里？"), False, [])
    assert taken(waiting("我想要一个两晚的房间。", "请问火车站在什么地方？", language="zh"))[0] == (
        "我想要一个两晚的房间。",
    )


@pytest.mark.parametrize(("second", "together"), [("b" * 50, True), ("b" * 51, False)])
def test_sentences_of_sixty_letters_are_spoken_together_and_have_waited_since_the_first(second, together):
    found = waiting("a" * 10, second)
    assert found.since == 0.0
    assert taken(found) == ((("a" * 10, second), False, []) if together else (("a" * 10,), True, []))


def test_a_masked_word_is_not_spoken_and_the_marks_of_others_are():
    said = []

    class Voice:
        language, rate = "de", 16_000

        def say(self, text: str, speed: float = 1.0) -> Samples:
            said.append((text, speed))
            return np.zeros(len(text), np.int16)

    samples = voiced(Voice(), Utterance(("ein m*** Wort", "2 * 3", "gut"), 0.0), 1.5)
    assert said == [("ein  Wort", 1.5), ("2  3", 1.5), ("gut", 1.5)]
    assert len(samples) == 9 + 4 + 3


@given(st.lists(st.one_of(st.none(), st.text(min_size=1, max_size=80)), max_size=60))
def test_each_sentence_is_spoken_or_said_to_be_skipped_in_order(steps):
    """A step adds a sentence, or takes an utterance (None)."""
    found, order, given_texts = UtteranceQueue("de"), [], [text for text in steps if text is not None]
    for text in [*steps, *[None] * len(steps)]:
        if text is not None:
            found.add(text, 0.0)
        elif found:
            utterance, _, skipped = found.take()
            order += [*skipped, *utterance.texts]
            found_now = len(found._utterances)
            assert found_now <= 1
    assert order == given_texts


class SpellingVoice:
    """Says each sentence as a single sample: its length, and with a minus if it is fast."""

    language, rate = "de", 16_000

    def say(self, text: str, speed: float = 1.0) -> Samples:
        if text == "kaputt":
            raise ValueError("no such phoneme")
        return np.array([len(text) * (-1 if speed > 1 else 1)] if text[0].isalpha() else [], np.int16)


class HeldOutput:
    """Plays when the test says so."""

    def __init__(self) -> None:
        self.played: list[list[int]] = []
        self.begun = threading.Semaphore(0)
        self.held = threading.Semaphore(0)
        self.closed = self.finished = False
        self.fails: Callable[[], None] = lambda: None

    def play(self, samples: Samples) -> None:
        self.played.append(samples.tolist())
        self.begun.release()
        assert self.held.acquire(timeout=HANG_S)
        self.fails()

    def finish(self) -> None:
        self.finished = True

    def close(self) -> None:
        self.closed = True
        self.held.release(100)


@pytest.fixture
def output():
    return HeldOutput()


def say(speaker, *texts, language="de"):
    for number, text in enumerate(texts):
        for event in [*spoken(number, "Where?"), *translated(number, [text], language=language)]:
            speaker.write(event)


def test_a_sentence_is_spoken_once_as_soon_as_it_is_steady_and_more_follows(output):
    speaker = Speaker(SpellingVoice(), "de", output)
    for event in (TargetText(0, "de", long(0), len(long(0))), TargetText(1, "de", "Gut so", 3)):
        speaker.write(event)
    assert output.begun.acquire(timeout=HANG_S)
    say(speaker, long(0), "Gut so.")
    output.held.release(100)
    speaker.finish()
    assert output.played == [[len(long(0))], [len("Gut so.")]]


def test_what_comes_while_one_is_spoken_waits_and_the_oldest_is_skipped(output, caplog):
    speaker = Speaker(SpellingVoice(), "de", output)
    say(speaker, long(0))
    assert output.begun.acquire(timeout=HANG_S)
    say(speaker, long(1), long(2), long(3))
    output.held.release(100)
    speaker.finish()
    assert output.finished
    size = len(long(0))
    assert output.played == [[size], [-size], [size]]
    assert (speaker.spoken, speaker.skipped, speaker.lost) == (3, 1, 0)
    (line,) = caplog.messages
    assert line == f"the voice is behind, and does not speak: {long(1)}"
    assert speaker.summary().startswith("3 of 4 sentences spoken, 0.")
    assert speaker.summary().endswith("1 skipped to keep up")
    speaker.close()
    assert output.closed


def test_other_languages_drafts_and_empty_translations_are_not_spoken(output):
    speaker = Speaker(SpellingVoice(), "de", output)
    say(speaker, "Salut", language="fr")
    say(speaker, "")
    for event in translated(1, ["Noch ", "nicht"], language="de")[:-1]:
        speaker.write(event)
    speaker.finish()
    assert output.played == []
    assert speaker.summary() == ""


def test_closing_ends_at_once(output):
    speaker = Speaker(SpellingVoice(), "de", output)
    say(speaker, long(0), long(1))
    assert output.begun.acquire(timeout=HANG_S)
    speaker.close()
    speaker.close()
    assert len(output.played) == 1
    assert not output.finished


def test_a_device_that_fails_is_said_once_and_speaks_again(output, caplog):
    def fails():
        raise DeviceError("the output device 'USB' stopped")

    speaker = Speaker(SpellingVoice(), "de", output)
    output.fails = fails
    for _ in range(2):
        say(speaker, long(0))
        assert output.begun.acquire(timeout=HANG_S)
        output.held.release()
    say(speaker, long(1))
    assert output.begun.acquire(timeout=HANG_S)
    output.fails = lambda: None
    output.held.release()
    speaker.finish()
    assert (speaker.spoken, speaker.lost) == (1, 2)
    assert caplog.messages == [
        "a sentence is not heard: the output device 'USB' stopped",
        "the voice is heard again; 2 sentences were lost",
    ]
    assert "2 lost" in speaker.summary()


def test_a_voice_that_fails_costs_its_sentence(output, caplog):
    caplog.set_level(logging.WARNING)
    speaker = Speaker(SpellingVoice(), "de", output)
    output.held.release(100)
    say(speaker, "kaputt")
    while not speaker.lost:
        threading.Event().wait(0.001)
    say(speaker, "geht", "4")
    speaker.finish()
    assert output.played == [[4]]
    assert (speaker.spoken, speaker.lost) == (2, 1)
    assert caplog.messages[0] == "a sentence is not heard: no such phoneme"


def test_each_failure_after_a_sentence_that_was_heard_is_said(output, caplog):
    speaker = Speaker(SpellingVoice(), "de", output)
    output.held.release(100)
    for text in ("kaputt", "kaputt", "geht", "geht", "kaputt"):
        done = speaker.spoken + speaker.lost
        say(speaker, text)
        while speaker.spoken + speaker.lost == done:
            threading.Event().wait(0.001)
    speaker.finish()
    assert caplog.messages == [
        "a sentence is not heard: no such phoneme",
        "the voice is heard again; 2 sentences were lost",
        "a sentence is not heard: no such phoneme",
    ]


def test_all_sentences_that_are_spoken_together_are_lost_together(output):
    speaker = Speaker(SpellingVoice(), "de", output)
    say(speaker, long(0))
    assert output.begun.acquire(timeout=HANG_S)
    say(speaker, "geht", "kaputt")
    output.held.release(100)
    speaker.finish()
    assert (speaker.spoken, speaker.lost) == (1, 2)
    assert speaker.summary().startswith("1 of 3 sentences spoken")


def test_captions_of_sounds_are_not_said():
    found = waiting("[Musik]", "Ja [leise].", "[Gesang]")
    assert taken(found) == (("Ja [leise].",), False, [])
    assert not found
