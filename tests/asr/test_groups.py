"""Which segments are recognised together."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.asr.groups import LIMIT_MS, Groups
from pipeline.events import SAMPLE_RATE, EndOfInput, Pause, SpeechSegment
from tests.asr.scripted import speech


def grouped(*items, pause_ms=1_000):
    """The ids of the segments of each group."""
    groups = Groups(pause_ms)
    closed = [group for item in (*items, EndOfInput()) for group in groups.push(item)]
    return [[segment.id for segment in group] for group in closed]


@pytest.mark.parametrize(
    ("pause_ms", "length_s", "expected"),
    [(1_000, 0.9, [[0, 1]]), (1_000, 1.0, [[0], [1]]), (2_000, 1.9, [[0, 1]]), (0, 0.1, [[0], [1]])],
)
def test_a_pause_closes_a_group(pause_ms, length_s, expected):
    assert grouped(speech(0, 0, 2), Pause(2.0, length_s), speech(1, 5, 7), pause_ms=pause_ms) == expected


@pytest.mark.parametrize(
    ("end_s", "length_s", "pause_ms", "expected"),
    [
        (8.9, 0.8, 2_000, [[0, 1]]), (9.0, 0.8, 2_000, [[0], [1]]),
        (9.0, 0.7, 2_000, [[0, 1]]), (9.0, 0.5, 500, [[0], [1]]),
    ],
)  # fmt: skip
def test_a_shorter_pause_closes_a_long_group(end_s, length_s, pause_ms, expected):
    assert grouped(speech(0, 0, end_s), Pause(end_s, length_s), speech(1, 11, 12), pause_ms=pause_ms) == expected


@pytest.mark.parametrize(("cut", "expected"), [(False, [[0], [1]]), (True, [[0, 1]])])
def test_the_longest_groups_close_at_any_pause_but_not_at_a_cut(cut, expected):
    assert grouped(speech(0, 0, 14, cut=cut), speech(1, 14.1, 15)) == expected


@pytest.mark.parametrize("at_s", [0, 100])
def test_a_full_group_ends_at_its_longest_pause_but_not_near_its_beginning(at_s):
    times = [(0, 2), (2.9, 10), (10.6, 13)]
    begun = [speech(number, at_s + begin_s, at_s + end_s, cut=True) for number, (begin_s, end_s) in enumerate(times)]
    assert grouped(*begun, speech(3, at_s + 13.3, at_s + 20)) == [[0, 1], [2, 3]]
    assert grouped(*begun, speech(3, at_s + 13.7, at_s + 20.5)) == [[0, 1, 2], [3]]


def test_of_equal_pauses_the_last_ends_a_full_group():
    begun = [speech(0, 0, 2, cut=True), speech(1, 2.5, 10, cut=True), speech(2, 10.5, 13, cut=True)]
    assert grouped(*begun, speech(3, 13.5, 20.5)) == [[0, 1, 2], [3]]


def test_a_short_group_stays_whole_before_a_segment_for_which_it_has_no_room():
    assert grouped(speech(0, 0, 3, cut=True), speech(1, 3.5, 5, cut=True), speech(2, 5.2, 25)) == [[0, 1], [2]]


@pytest.mark.parametrize(("sure_ms", "closed"), [(7_000, []), (9_000, [[0]])])
def test_a_segment_in_progress_that_may_yet_be_cut_closes_nothing_before_its_cut_would(sure_ms, closed):
    groups = Groups(1_000, sure_ms)
    groups.push(speech(0, 0, 10, cut=True))
    reached = groups.reached(speech(1, 10.5, 20))
    assert [[segment.id for segment in group] for group in reached] == closed


def test_another_language_begins_a_group():
    said = [speech(0, 0, 1, language="en"), speech(1, 1, 2, language="zh"), speech(2, 2, 3, language="zh")]
    assert grouped(*said) == [[0], [1, 2]]


def test_a_pause_before_the_group_closes_nothing():
    assert grouped(speech(0, 5, 6), Pause(3.0, 2.0), speech(1, 6.5, 7)) == [[0, 1]]
    assert grouped(speech(0, 5, 6), speech(1, 6.5, 7), Pause(6.0, 2.0), speech(2, 7.5, 8)) == [[0, 1, 2]]


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


@given(spoken(), st.sampled_from([0, 1_000, 2_000]), st.integers(1, 20))
def test_a_segment_in_progress_closes_the_groups_that_it_closes_when_it_has_ended(items, pause_ms, step):
    plain, early = Groups(pause_ms), Groups(pause_ms)
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
