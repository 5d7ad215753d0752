"""Which transcripts are believed."""

from __future__ import annotations

import pytest

from pipeline.asr.guards import compression_ratio, loops, rejection
from pipeline.config import AsrConfig


def reason(text: str, no_speech: float = 0.0, log_probability: float = -0.2) -> str | None:
    return rejection(text, no_speech, log_probability, compression_ratio(text), AsrConfig())


@pytest.mark.parametrize(
    "text", ["Yes.", "好。", "No.", "Thank you.", "The train to Berlin leaves at half past nine.", "OK"]
)
def test_short_and_ordinary_utterances_pass(text: str) -> None:
    assert reason(text) is None


def test_text_that_compresses_too_well_is_flagged_though_nothing_repeats_in_a_row() -> None:
    text = " ".join(f"and then we go to the {place} and then we" for place in ("bank", "park", "shop", "lake") * 3)
    assert not loops(text)
    assert compression_ratio(text) > AsrConfig().compression_ratio_threshold
    assert reason(text) == "repetition"


@pytest.mark.parametrize("text", ["", " ", "...", "!?", "。"])
def test_a_transcript_without_a_letter_is_empty(text: str) -> None:
    assert reason(text) == "empty"


def test_silence_needs_both_signs() -> None:
    assert reason("Thank you.", no_speech=0.9, log_probability=-1.5) == "silence"
    assert reason("Thank you.", no_speech=0.97, log_probability=-0.8) == "silence"
    assert reason("Thank you.", no_speech=0.7, log_probability=-0.8) is None
    assert reason("Thank you.", no_speech=0.97, log_probability=-0.2) is None


def test_what_the_recogniser_doubts_is_flagged() -> None:
    assert reason("The cat sat", log_probability=-1.4) == "uncertain"


@pytest.mark.parametrize(
    "text",
    [
        "Thank you. Thank you. Thank you. Thank you. Thank you.",
        "谢谢大家谢谢大家谢谢大家谢谢大家谢谢大家谢谢大家",
        "going " * 40,
        "you " * 16,
        "five four " * 4,
        "and then we and then we and then we and then we",
        "one two three four five six seven eight " * 4,
        "谢谢观看，谢谢观看，谢谢观看，谢谢观看",
        "我爱你。" * 4,
    ],
)
def test_loops_are_flagged(text: str) -> None:
    assert reason(text) == "repetition"


@pytest.mark.parametrize(
    "text",
    [
        "no no no no",
        "nine nine nine nine",
        "아니 아니 아니 아니",
        "zero " * 8,
        "1 1 1 1 1 1 1 1",
        "that that is is",
        "bye bye",
        "very very very very good",
    ],
)
def test_natural_repetition_is_not_a_loop(text: str) -> None:
    assert not loops(text)
