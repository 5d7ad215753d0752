"""Cues from deltas: their times."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.events import Delta, EndOfInput, PipelineEvent, Transcript
from pipeline.subtitles.cues import Cue, CueBuilder
from pipeline.subtitles.rules import SubtitleRules
from pipeline.subtitles.text import normalized, reading_ms
from tests.subtitles.strategies import RULES, TEXTS

DEFAULT = SubtitleRules()


def delta(text: str, start_s: float = 1.0, end_s: float = 2.0, **fields: Any) -> Delta:
    return Delta(0, 0, start_s, end_s, text, -0.1, 5, fields.pop("source", "source"), **fields)


def sentence(text: str, start_s: float, end_s: float, final: bool = True, source: str = "source") -> Delta:
    return delta(text, start_s, end_s, end_of_sentence=True, final=final, source=source)


def built(events: list[PipelineEvent], rules: SubtitleRules = DEFAULT) -> list[Cue]:
    builder = CueBuilder(rules)
    return [cue for event in [*events, EndOfInput()] for cue in builder.push(event)]


def times(cues: list[Cue]) -> list[tuple[float, float]]:
    return [(cue.start_s, cue.end_s) for cue in cues]


@st.composite
def runs(draw: st.DrawFn) -> list[PipelineEvent]:
    """Sentences as they come from segments: in order, some overlapping a little, some without text, of any length."""
    events: list[PipelineEvent] = []
    at = 0.0
    for _ in range(draw(st.integers(1, 8))):
        start = max(0.0, at + draw(st.floats(-0.5, 3)))
        at = start + draw(st.one_of(st.floats(1, 2), st.floats(0, 12)))  # including fast speech
        text, source = draw(TEXTS), draw(TEXTS)
        cut = draw(st.integers(0, len(text)))
        events.append(delta(text[:cut], start, at, source=source))
        events.append(sentence(text[cut:], start, at, draw(st.booleans()), source))
    return events


@given(runs(), RULES)
def test_durations_and_gaps_are_kept_and_cues_never_go_back(events: list[PipelineEvent], rules: SubtitleRules) -> None:
    cues = built(events, rules)
    assert [cue.index for cue in cues] == list(range(1, len(cues) + 1))
    for cue in cues:
        duration_ms = round(1000 * (cue.end_s - cue.start_s))
        assert rules.min_duration_ms <= duration_ms <= rules.max_duration_ms
        assert len(cue.lines) <= rules.max_lines
        assert len(cue.source_lines) <= rules.max_lines
    for before, after in pairwise(cues):
        if after.continued:
            assert (after.start_s, after.lines, after.source_lines) == (before.end_s, before.lines, before.source_lines)
        else:
            assert round(1000 * (after.start_s - before.end_s)) >= rules.gap_ms


@given(TEXTS.filter(normalized), st.floats(1, 60))
def test_the_screen_is_not_empty_while_a_sentence_is_spoken(text: str, spoken_s: float) -> None:
    cues = built([sentence(text, 5.0, 5.0 + spoken_s)])
    shown = [5.0, *(moment for cue in cues for moment in (cue.start_s, cue.end_s)), 5.0 + spoken_s]
    empty_s = [after - before for before, after in zip(shown[::2], shown[1::2], strict=True)]
    assert max(empty_s) < (DEFAULT.min_duration_ms + DEFAULT.gap_ms + 2) / 1000


@given(runs(), RULES)
def test_no_text_is_lost(events: list[PipelineEvent], rules: SubtitleRules) -> None:
    said = "".join(event.text for event in events if isinstance(event, Delta))
    shown = "".join(line for cue in built(events, rules) for line in cue.lines if not cue.continued)
    assert "".join(shown.split()) == "".join(normalized(said).split())


@given(runs(), RULES)
def test_a_cue_stands_long_enough_to_be_read_unless_a_limit_ends_it(
    events: list[PipelineEvent], rules: SubtitleRules
) -> None:
    builder = CueBuilder(rules)
    for first, last in zip(events[::2], events[1::2], strict=True):  # of a sentence
        assert isinstance(first, Delta)
        assert isinstance(last, Delta)
        cues = [*builder.push(first), *builder.push(last)]
        cues += builder.flush() if last.final else []
        if last.final and normalized(first.text + last.text).strip():
            cue = cues[-1]  # of this sentence, and perhaps of a short one before it
            if cue.continued:
                continue
            duration_ms = round(1000 * (cue.end_s - cue.start_s))
            if duration_ms < reading_ms("".join(cue.lines or cue.source_lines), rules):
                assert (
                    duration_ms in (rules.max_duration_ms, rules.min_duration_ms)
                    # Lingering starts when the speech has ended.
                    or 1000 * cue.end_s >= 1000 * last.end_s + rules.linger_ms - 1
                )


@given(runs(), RULES, st.integers(0, 16))
def test_a_cue_does_not_depend_on_later_events(events: list[PipelineEvent], rules: SubtitleRules, count: int) -> None:
    builder = CueBuilder(rules)
    early = [cue for event in events[:count] for cue in builder.push(event)]
    assert built(events, rules)[: len(early)] == early


def test_a_sentence_is_a_cue_when_it_ends() -> None:
    builder = CueBuilder(DEFAULT)
    assert builder.push(Transcript(0, 1.0, 2.0, "source", "en")) == []
    assert builder.push(delta("你")) == []
    assert builder.push(delta("好")) == []
    assert builder.push(delta("。", end_of_sentence=True, final=True)) == [Cue(1, 1.0, 2.0, ("你好。",))]


def test_withdrawn_text_is_not_in_the_cue() -> None:
    (cue,) = built([delta("早上"), delta("好"), delta("晚上好", withdrawn=3), delta("", end_of_sentence=True)])
    assert cue.lines == ("晚上好",)
    (cue,) = built([delta("早上好"), delta("安", withdrawn=1), delta("", end_of_sentence=True)])
    assert cue.lines == ("早上安",)


def test_a_sentence_without_text_is_no_cue() -> None:
    assert [cue.index for cue in built([sentence("", 1, 2), sentence(" ", 2, 3), sentence("字", 4, 5)])] == [1]


def test_a_cue_that_takes_longer_to_read_than_to_say_lingers() -> None:
    # 18 characters take two seconds at nine a second.
    assert times(built([sentence("字" * 18, 1.0, 2.5)])) == [(1.0, 3.0)]
    assert times(built([sentence("字" * 18, 1.0, 2.5)], SubtitleRules(linger_ms=200))) == [(1.0, 2.7)]


def test_the_next_cue_waits_for_one_that_lingers_and_pauses_catch_up() -> None:
    cues = built([sentence("字" * 18, 1.0, 2.0), sentence("字", 2.5, 4.0), sentence("字", 6.0, 7.0)])
    assert times(cues) == [(1.0, 3.0), (3.083, 4.0), (6.0, 7.0)]


def test_a_short_answer_shares_a_cue_with_what_follows_in_its_segment() -> None:
    cues = built([sentence("好。", 1.0, 1.4, final=False), sentence("我们走吧。", 1.4, 3.0)])
    assert [(cue.lines, cue.start_s, cue.end_s) for cue in cues] == [(("好。我们走吧。",), 1.0, 3.0)]
    cues = built([sentence("Yes.", 1.0, 1.4, final=False), sentence("Let us go.", 1.4, 3.0)])
    assert cues[0].lines == ("Yes. Let us go.",)


def test_a_short_answer_alone_in_its_segment_is_shown_at_once_for_the_least_time() -> None:
    builder = CueBuilder(DEFAULT)
    assert builder.push(sentence("好。", 1.0, 1.2)) == [Cue(1, 1.0, 1.833, ("好。",))]


def test_a_short_answer_does_not_wait_for_another_segment() -> None:
    builder = CueBuilder(DEFAULT)
    assert builder.push(sentence("Yes.", 10.0, 10.4, final=False)) == []
    (shown,) = builder.push(sentence("", 10.4, 10.9))  # the segment's last sentence has no text
    assert shown.start_s == 10.0
    (later,) = builder.push(sentence("No, never.", 15.0, 16.5))
    assert later.start_s == 15.0


def test_short_utterances_spoken_steadily_do_not_fall_behind_without_end() -> None:
    """Each sentence is shorter than its cue: 0.78 s, while a cue takes 0.92 s."""
    said = [0.78 * n for n in range(150)]
    cues = built([sentence(f"{n};", start, start + 0.26) for n, start in enumerate(said)])
    shown = {int(number): cue.start_s for cue in cues for line in cue.lines for number in line.split(";") if number}
    assert list(shown) == list(range(150))
    assert max(shown[n] - start for n, start in enumerate(said)) < 4


def test_a_short_answer_before_a_long_sentence_is_a_cue_of_its_own() -> None:
    cues = built([sentence("好。", 1.0, 1.4, final=False), sentence("字" * 40, 1.4, 8.0)])
    assert cues[0].lines == ("好。",)
    assert len(cues) == 3


def test_long_speech_is_shown_in_cues_of_its_own_pace() -> None:
    text = "我妹妹明天早上将在北京介绍新产品，经理和司机都会来，请不要迟到。"
    cues = built([sentence(text, 10.0, 20.0)])
    assert len(cues) == 2
    assert cues[0].start_s == 10.0
    assert cues[1].end_s == 20.0
    assert round(cues[1].start_s - cues[0].end_s, 3) == 0.083
    first, second = ("".join(cue.lines) for cue in cues)
    assert cues[1].start_s == pytest.approx(10 + 10 * len(first) / len(first + second), abs=0.001), "not late"
    # Slow speech with little text: split at a clause if there is one …
    slow = built([sentence("首先我要说的是，谢谢大家。", 0.0, 12.0)])
    assert [cue.lines for cue in slow] == [("首先我要说的是，",), ("谢谢大家。",)]
    # … else the cue is repeated.
    assert built([sentence("好的", 0.0, 12.0)]) == [
        Cue(1, 0.0, 6.0, ("好的",)),
        Cue(2, 6.0, 12.0, ("好的",), continued=True),
    ]


def test_both_languages_keep_the_rules_of_lines() -> None:
    source = "My sister will present the new product in Beijing tomorrow morning, and the manager and the driver will both come."
    cues = built([sentence("我妹妹明天介绍产品，大家都来。", 0.0, 6.0, source=source)], SubtitleRules(bilingual=True))
    assert len(cues) == 2
    assert [cue.lines for cue in cues] == [("我妹妹明天介绍产品，",), ("大家都来。",)]
    assert " ".join(line for cue in cues for line in cue.source_lines) == source
    assert all(len(line) <= 42 for cue in cues for line in cue.source_lines)


def test_a_translation_with_no_place_to_break_still_shows_the_whole_source() -> None:
    source = "This long source sentence goes on and on, and nobody knows why it should need so many words to say yes."
    cues = built([sentence("Ja", 0.0, 6.0, source=source)], SubtitleRules(bilingual=True))
    assert [cue.lines for cue in cues] == [("Ja",), ()]
    assert " ".join(line for cue in cues for line in cue.source_lines) == source


def test_bilingual_cues_show_a_source_without_translation() -> None:
    said = [
        sentence("", 0.0, 2.0, source="Hm, hm, hm."),
        sentence("", 3.0, 3.2, source="Ah.", final=False),
        sentence("好的。", 3.2, 6.0, source="All right."),
    ]
    cues = built(said, SubtitleRules(bilingual=True))
    assert [(cue.lines, cue.source_lines) for cue in cues] == [
        ((), ("Hm, hm, hm.",)),
        (("好的。",), ("Ah. All right.",)),
    ]
    assert times(cues) == [(0.0, 2.0), (3.0, 6.0)]
    assert [cue.lines for cue in built(said)] == [("好的。",)]
