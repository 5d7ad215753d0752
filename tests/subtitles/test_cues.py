"""Cues from deltas."""

from __future__ import annotations

from pipeline.events import Delta, Transcript
from pipeline.subtitles.cues import Cue, CueBuilder


def delta(text: str, sentence: int = 0, start_s: float = 1.0, end_s: float = 2.0, **flags: bool | int) -> Delta:
    return Delta(0, sentence, start_s, end_s, text, -0.1, 5, "source", **flags)  # type: ignore[arg-type]


def test_a_sentence_is_a_cue_when_it_ends() -> None:
    builder = CueBuilder()
    assert builder.push(Transcript(0, 1.0, 2.0, "source", "en")) is None
    assert builder.push(delta("你")) is None
    assert builder.push(delta("好")) is None
    assert builder.push(delta("。", end_of_sentence=True)) == Cue(1, 1.0, 2.0, "source", "你好。")


def test_withdrawn_text_is_not_in_the_cue() -> None:
    builder = CueBuilder()
    builder.push(delta("早上好"))
    builder.push(delta("晚上好", withdrawn=3))
    cue = builder.push(delta("", end_of_sentence=True))
    assert cue is not None
    assert cue.text == "晚上好"


def test_times_never_go_backwards_and_numbers_have_no_gap() -> None:
    builder = CueBuilder()
    times = [(1.0, 3.0), (2.5, 4.0), (3.0, 3.5), (9.0, 9.5)]
    cues = [builder.push(delta("字", start_s=a, end_s=b, end_of_sentence=True)) for a, b in times]
    assert [(cue.index, cue.start_s, cue.end_s) for cue in cues if cue] == [
        (1, 1.0, 3.0),
        (2, 3.0, 4.0),
        (3, 4.0, 4.0),
        (4, 9.0, 9.5),
    ]


def test_a_sentence_without_text_is_no_cue() -> None:
    builder = CueBuilder()
    assert builder.push(delta("", end_of_sentence=True)) is None
    cue = builder.push(delta("字", end_of_sentence=True))
    assert cue is not None
    assert cue.index == 1
