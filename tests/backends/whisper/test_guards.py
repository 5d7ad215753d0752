"""Which transcripts are rejected, and why."""

import pytest

from pipeline.backends.whisper.guards import Evidence, compression_ratio, find_loop, rejection, was_said
from pipeline.store.known import Thresholds


def reason(text, no_speech=0.0, log_probability=-0.2, ended=True):
    return rejection(Evidence(text, 20, log_probability, no_speech, ended), Thresholds())


@pytest.mark.parametrize(
    "text", ["Yes.", "好。", "No.", "Thank you.", "The train to Berlin leaves at half past nine.", "OK"]
)
def test_short_and_ordinary_utterances_pass(text):
    assert reason(text) is None


def test_text_that_compresses_too_well_is_flagged_without_direct_repetition():
    text = " ".join(f"and then we go to the {place} and then we" for place in ("bank", "park", "shop", "lake") * 3)
    assert find_loop(text) is None
    assert compression_ratio(text) > Thresholds().compression_ratio
    assert reason(text) == "repetition"


@pytest.mark.parametrize("text", ["", " ", "...", "!?", "。"])
def test_a_transcript_without_a_letter_is_empty(text):
    assert reason(text) == "empty"


def test_silence_needs_both_signs():
    assert reason("Thank you.", no_speech=0.9, log_probability=-1.5) == "silence"
    assert reason("Thank you.", no_speech=0.97, log_probability=-0.8) == "silence"
    assert reason("Thank you.", no_speech=0.7, log_probability=-0.8) is None
    assert reason("Thank you.", no_speech=0.97, log_probability=-0.2) is None


def test_possible_speech_in_another_language_is_not_called_silence():
    assert reason("We get a scene in order, and we get a scene.", no_speech=0.65, log_probability=-1.1) == "uncertain"


def test_a_model_that_often_invents_text_has_stricter_thresholds():
    strict = Thresholds(log_probability=-0.7, doubtful_no_speech=0.4)

    def judged(no_speech, log_probability):
        return rejection(Evidence("I say y'all, he'll say it.", 12, log_probability, no_speech), strict)

    assert judged(0.5, -0.4) == "uncertain"
    assert judged(0.5, -0.3) is None
    assert judged(0.3, -0.6) is None
    assert judged(0.9, -0.4) == "silence"


def test_a_doubtful_transcript_is_flagged():
    assert reason("The cat sat", log_probability=-1.4) == "uncertain"


def test_a_text_of_a_word_or_two_has_a_threshold_of_its_own():
    thresholds = Thresholds(log_probability=-1.0, text_log_probability=-2.0)

    def judged(text, tokens, mean, of_text):
        return rejection(Evidence(text, tokens, mean, 0.2, text_log_probability=of_text), thresholds)

    assert judged("Two.", 2, -1.2, -1.9) is None
    assert judged("See you.", 3, -0.7, -2.7) == "uncertain"
    assert judged("Two.", 2, -1.2, None) == "uncertain"
    assert judged("Two of them came.", 6, -1.2, -1.9) == "uncertain"
    assert judged("Two of them came.", 6, -0.7, -4.9) is None


@pytest.mark.parametrize(
    "text",
    [
        "Thank you. " * 8,
        "谢谢大家" * 8,
        "going " * 40,
        "you " * 16,
        "yeah, " * 60,
        "D-D-D-D-D-D-D",
        "and then we " * 7,
        "I said yes. " + "And I said no to them. " * 6,
        "one two three four five six seven eight " * 6,
    ],
)
def test_loops_are_flagged(text):
    assert find_loop(text) is not None
    assert reason(text) == "repetition"


@pytest.mark.parametrize(
    "text",
    [
        "no no no no",
        "nine nine nine nine",
        "아니 아니 아니 아니",
        "zero " * 8,
        "W-w-w-what do you want?",
        "5-5-5-5-5-5-5-5",
        "1 1 1 1 1 1 1 1",
        "very very very very good",
        "Testing. Testing. Testing. Testing. One, two, three. Welcome to the annual meeting of the club.",
        "Thank you. Thank you. Thank you. Thank you. Thank you very much, ladies and gentlemen.",
        "Hello? Hello? Hello? Hello? Can you hear me?",
        "Never, never, never, never, in nothing great or small, large or petty, never give in.",
        "Knock knock. Knock knock.",
        "I told him again and again: no, no, no, no, no.",
        "我爱你。" * 4,
    ],
)
def test_ordinary_repetition_is_shown(text):
    assert find_loop(text) is None
    assert reason(text) is None


def test_a_truncated_search_that_ends_with_a_repeated_phrase_is_a_loop():
    text = "We went to the market and bought some bread and some bread and"
    assert find_loop(text) is None
    assert find_loop(text, ended=False) is not None
    assert find_loop("We went to the market and bought some bread", ended=False) is None


@pytest.mark.parametrize(
    ("before", "once", "times", "after"),
    [
        ("I wonder what it is. ", "Yeah, right. ", 30, ""),
        ("So. ", "look at that, ", 20, "and go."),
        ("会议开始了", "谢谢大家", 9, ""),
    ],
)
def test_a_loop_is_located(before, once, times, after):
    text = before + once * times + after
    found = find_loop(text)
    assert text[: found.begin] == before
    assert text[found.begin : found.once] == once.rstrip(" .,")
    assert text[found.end :].lstrip(" .,") == after


def test_a_long_text_and_certain_speech_may_be_a_little_less_certain():
    thresholds = Thresholds(log_probability=-0.7, doubtful_no_speech=0.4)
    text = "so I probably sound quite different than the other one did before"
    assert rejection(Evidence(text, 12, -0.8, 0.1), thresholds) is None
    assert rejection(Evidence(text, 12, -0.8, 0.5), thresholds) == "uncertain"
    assert rejection(Evidence(text, 12, -1.0, 0.1), thresholds) == "uncertain"
    assert rejection(Evidence("so I probably sound", 5, -0.8, 0.2), thresholds) == "uncertain"
    assert rejection(Evidence("so I probably sound", 5, -0.8, 0.1), thresholds) is None
    assert rejection(Evidence("so I probably sound", 5, -1.0, 0.1), thresholds) == "uncertain"
    assert rejection(Evidence("so I", 3, -0.8, 0.1), thresholds) == "uncertain"
    for repeated in ("Thank you, thank you, thank you, thank you.", "8.9, 8.9, 8.9,"):
        assert rejection(Evidence(repeated, 12, -0.8, 0.1), thresholds) == "uncertain"
        assert rejection(Evidence(repeated, 12, -0.6, 0.1), thresholds) is None


@pytest.mark.parametrize(
    ("text", "no_speech", "log_probability", "said"),
    [
        ("Testing, testing, testing, testing. One, two, three.", 0.46, -0.38, True),
        ("This is the acoustic corpus, I'm talking pretty fast here.", 0.69, -0.4, True),
        ("I have a thousand thoughts about that.", 0.13, -0.95, True),
        ("Thank you very much.", 0.67, -1.19, False),
        ("That is what I'm trying to do. I'm trying to convince these guys.", 0.42, -0.9, False),
        ("I don't know what to say, " * 2 + "but I don't know what to say.", 0.3, -0.4, True),
        ("I don't know what to say, but " * 6, 0.78, -0.38, False),
        ("A-A-A-A-A-A-A-A-A-A", 0.3, -0.4, False),
        ("Thank you.", 0.85, -0.36, False),
    ],
)
def test_uncertain_text_was_said_unless_it_loops_or_there_is_probably_no_speech(text, no_speech, log_probability, said):
    thresholds = Thresholds(log_probability=-0.7, doubtful_no_speech=0.4)
    assert was_said(Evidence(text, 20, log_probability, no_speech), thresholds) == said


@pytest.mark.parametrize(
    ("log_probability", "whole", "said"), [(-0.8, -2.5, True), (-1.2, -2.5, False), (-0.8, -3.0, False)]
)
def test_a_short_uncertain_text_was_said_if_its_tokens_and_the_whole_of_it_are_likely(log_probability, whole, said):
    thresholds = Thresholds(log_probability=-0.7, text_log_probability=-2.0)
    assert was_said(Evidence("Yes.", 2, log_probability, 0.1, text_log_probability=whole), thresholds) == said
