"""Which segments are recognised together."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.asr.groups import LIMIT_MS, Groups, lead
from pipeline.events import SAMPLE_RATE, EndOfInput, Pause, SpeechSegment
from tests.core.asr.scripted import speech


def grouped(*items, single=False):
    """The ids of the segments of each group."""
    groups = Groups(single=single)
    closed = [group for item in (*items, EndOfInput()) for group in groups.push(item)]
    return [[segment.id for segment in group] for group in closed]


@pytest.mark.parametrize(("cut", "expected"), [(False, [[0], [1]]), (True, [[0, 1]])])
def test_a_group_closes_at_the_end_of_a_segment_but_not_at_a_cut(cut, expected):
    assert grouped(speech(0, 0, 2, cut=cut), speech(1, 2.5, 4)) == expected


def test_a_segment_is_a_group_as_soon_as_it_has_ended():
    groups, said = Groups(), speech(0, 0, 2)
    assert groups.push(said) == [(said,)]
    assert groups.open == ()


def test_if_each_segment_is_a_group_a_cut_closes_it_too():
    assert grouped(speech(0, 0, 2, cut=True), speech(1, 2, 4), single=True) == [[0], [1]]


def test_nothing_but_silence_after_a_cut_closes_a_group():
    groups, said = Groups(), speech(0, 0, 2, cut=True)
    assert groups.push(said) == []
    assert groups.push(Pause(2.0, 0.8)) == [(said,)]


def test_a_group_closes_before_a_segment_for_which_it_has_no_room():
    cuts = [speech(0, 0, 9, cut=True), speech(1, 9, 18, cut=True)]
    assert grouped(*cuts, speech(2, 18, 19)) == [[0, 1, 2]]
    assert grouped(*cuts, speech(2, 18, 19.5)) == [[0, 1], [2]]


@pytest.mark.parametrize(("sure_ms", "closed"), [(7_000, []), (9_000, [[0]])])
def test_a_segment_in_progress_that_may_yet_be_cut_closes_nothing_before_its_cut_would(sure_ms, closed):
    groups = Groups(sure_ms=sure_ms)
    groups.push(speech(0, 0, 10, cut=True))
    reached = groups.reached(speech(1, 10.5, 20))
    assert [[segment.id for segment in group] for group in reached] == closed


def test_another_language_begins_a_group():
    said = [
        speech(number, number, number + 1, cut=True, language=each) for number, each in enumerate(["en", "zh", "zh"])
    ]
    assert grouped(*said) == [[0], [1, 2]]


BEFORE = (speech(0, 0, 3), speech(1, 4, 7), speech(2, 8, 10))


@pytest.mark.parametrize(
    ("before", "group", "expected"),
    [
        (BEFORE, [speech(3, 11, 12.9)], [1, 2]),  # with all three, it would be longer than the window
        (BEFORE, [speech(3, 11, 13)], []),  # long enough to be heard by itself
        (BEFORE, [speech(3, 12, 13)], []),  # too long ago
        (BEFORE, [speech(3, 11.9, 13)], [1, 2]),
        (BEFORE, [speech(3, 11, 12, language="pt")], []),
        ((speech(0, 0, 3), speech(1, 5, 7), speech(2, 8, 10)), [speech(3, 11, 12)], [1, 2]),
        ((speech(0, 0, 3), speech(1, 4, 5.9), speech(2, 8, 10)), [speech(3, 11, 12)], [2]),
        (BEFORE, [speech(3, 11, 11.5, cut=True), speech(4, 11.5, 12)], [1, 2]),
        (BEFORE, [speech(3, 11, 12, cut=True), speech(4, 12, 13)], []),
        ((), [speech(0, 0, 1)], []),
    ],
)
def test_a_short_group_is_heard_with_what_was_said_just_before_it(before, group, expected):
    assert [segment.id for segment in lead(before, tuple(group))] == expected


def test_the_silence_before_a_short_group_does_not_make_it_long():
    before, silence_s = speech(2, 8, 10.9), 1.5
    silent = replace(speech(3, 11, 14), speech_start_sample=round((11 + silence_s) * SAMPLE_RATE))
    assert lead((before,), (silent,)) == (before,)


@st.composite
def spoken(draw):
    """Segments and pauses as the VAD puts them out."""
    items, at_s = [], 0.0
    for number in range(draw(st.integers(1, 12))):
        end_s = at_s + draw(st.integers(1, 100)) / 10
        forced = draw(st.booleans())
        items.append(speech(number, at_s, end_s, cut=forced))
        at_s = end_s + (0 if forced else draw(st.integers(2, 25)) / 10)
        items += [Pause(end_s, length_s) for length_s in (0.8, 1.0, 2.0) if end_s + length_s <= at_s and not forced]
    return items


@given(spoken(), st.booleans(), st.integers(1, 20))
def test_a_segment_in_progress_closes_the_groups_that_it_closes_when_it_has_ended(items, single, step):
    plain, early = Groups(single=single), Groups(single=single)
    found = [], []
    for item in (*items, EndOfInput()):
        found[0].extend(plain.push(item))
        if isinstance(item, SpeechSegment):
            for length in range(1_600, len(item.samples), step * 1_600):
                end = item.start_sample + length
                found[1].extend(early.reached(replace(item, samples=item.samples[:length], speech_end_sample=end)))
        found[1].extend(early.push(item))
    numbers = [[[segment.id for segment in group] for group in groups] for groups in found]
    assert numbers[0] == numbers[1]
    assert [number for group in numbers[0] for number in group] == [
        item.id for item in items if isinstance(item, SpeechSegment)
    ]
    assert all(sum(len(segment.samples) for segment in group) * 1000 <= LIMIT_MS * SAMPLE_RATE for group in found[0])
