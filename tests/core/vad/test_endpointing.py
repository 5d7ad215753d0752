"""The endpointing rules on synthetic decisions, without a model or a clock."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.vad.endpointing import Endpointer
from pipeline.core.vad.options import VadConfig
from tests.conftest import examples

FRAME = 320  # 20 ms


def run(decisions, options=None, loud=None, audible=frozenset(), voiceless=frozenset()):
    """Frame i has the samples i*320 … i*320+319 (modulo 2¹⁵), so the samples of a segment show where it was cut."""
    endpointer = Endpointer(options or VadConfig(fill_ms=0))
    segments = []
    for i, speech in enumerate(decisions):
        samples = frame(i) if loud is None else np.full(FRAME, loud.get(i, 1000), np.int16)
        segments += endpointer.push(samples, speech, i in audible, i in voiceless)
    return segments + endpointer.flush()


def frame(i):
    return ((np.arange(FRAME) + i * FRAME) % 2**15).astype(np.int16)


def test_a_segment_has_pre_roll_and_post_roll():
    (segment,) = run([False] * 50 + [True] * 50 + [False] * 100)
    assert (segment.start_sample, len(segment.samples)) == ((50 - 5) * FRAME, (5 + 50 + 4) * FRAME)
    assert (segment.start_s, segment.speech_end_s, segment.heard_s) == (0.9, 2.0, 2.5)
    assert not segment.forced_cut


def faint(decisions):
    """Segments as (first frame, frame after the last). S is a speech frame, a an audible one, L a loud one."""
    audible, voiceless = (frozenset(i for i, one in enumerate(decisions) if one == kind) for kind in "aL")
    segments = run([decision == "S" for decision in decisions], audible=audible, voiceless=voiceless)
    return [(s.start_sample // FRAME, (s.start_sample + len(s.samples)) // FRAME) for s in segments]


def test_faint_sounds_on_both_sides_of_speech_belong_to_it():
    assert faint("." * 50 + "a" * 10 + "S" * 50 + "a" * 12 + "." * 50) == [(50 - 5, 122 + 4)]


def test_faint_sounds_reach_across_a_closure_but_not_across_a_pause():
    assert faint("." * 50 + "aaa...aaa" + "S" * 50 + "..a...a" + "." * 50) == [(50 - 5, 116 + 4)]
    assert faint("." * 50 + "aaa....aaa" + "S" * 50 + "....aaa" + "." * 50) == [(57 - 5, 110 + 4)]


def test_faint_sounds_far_from_speech_are_not_taken():
    assert faint("a" * 200 + "S" * 50 + "a" * 200) == [(200 - 25 - 5, 250 + 25)]


def test_faint_sounds_alone_are_not_a_segment_and_do_not_keep_one_open():
    assert faint("a" * 500) == []
    assert len(faint("S" * 50 + "a" * 30 + "S" * 50)) == 2


def test_a_loud_word_in_the_silence_after_speech_belongs_to_it():
    assert faint("." * 50 + "S" * 50 + "." * 18 + "L" * 14 + "." * 50) == [(50 - 5, 132 + 4)]
    assert faint("." * 50 + "S" * 50 + "." * 18 + "L" * 14 + "." * 9 + "L" * 9 + "." * 50) == [(50 - 5, 132 + 4)]


def test_loud_sound_that_is_short_or_late_or_without_speech_is_no_word():
    assert faint("." * 50 + "S" * 50 + ".LLLL" * 10 + "." * 50) == [(50 - 5, 100 + 4)]
    assert faint("." * 50 + "S" * 50 + "." * 25 + "L" * 14 + "." * 50) == [(50 - 5, 100 + 4)]
    assert faint("." * 50 + "L" * 50 + "." * 50) == []


def test_loud_sound_keeps_a_segment_open_for_a_while_only():
    assert faint("." * 50 + "S" * 50 + "L" * 500) == [(50 - 5, 100 + 45)]


def test_frames_after_a_segment_are_available_to_the_next():
    first, second = faint("S" * 50 + "." * 24 + "." + "a" * 4 + "S" * 50)
    assert (first, second) == ((0, 54), (70, 129))
    assert faint("S" * 50 + "." * 20 + "a" * 9 + "S" * 50) == [(0, 54), (65, 129)]


def test_noise_after_the_end_of_a_cut_segment_is_dropped():
    options = VadConfig(max_segment_ms=4000, cut_search_ms=1000, fill_ms=0)
    segments = run([True] * 250 + [False] * 60 + [True] * 5 + [False] * 60, options)
    assert [segment.forced_cut for segment in segments] == [True, False]


def test_the_tail_of_a_noise_burst_is_the_pre_roll_of_the_word_after_it():
    (segment,) = run([False] * 50 + [True] * 5 + [False] * 25 + [True] * 50)
    assert segment.start_sample == (50 + 5 + 25 - 5) * FRAME


def test_samples_are_those_of_the_input():
    (segment,) = run([False] * 50 + [True] * 50 + [False] * 100)
    expected = (np.arange(len(segment.samples)) + segment.start_sample) % 2**15
    assert np.array_equal(segment.samples, expected)


def test_the_end_of_the_input_delivers_the_segment_in_progress():
    (segment,) = run([False] * 10 + [True] * 30)
    assert segment.start_sample + len(segment.samples) == 40 * FRAME


def test_a_word_that_ends_with_the_input_is_not_lost():
    assert len(run([False] * 10 + [True, False] * 8)) == 1


def test_silence_and_an_empty_input_give_nothing():
    assert run([False] * 500) == []
    assert run([]) == []


def test_a_segment_begins_where_four_of_five_frames_are_speech():
    assert faint("." * 50 + "SSSS." * 4 + "." * 50) == [(50 - 5, 69 + 4)]
    assert faint("." * 50 + "S.S.S.S.S." * 5 + "." * 50) == []


def test_a_click_is_not_a_segment():
    assert run([False] * 50 + [True] * 2 + [False] * 100) == []


def test_a_noise_burst_shorter_than_speech_is_dropped_and_what_follows_is_not():
    (segment,) = run([False] * 50 + [True] * 5 + [False] * 60 + [True] * 40 + [False] * 60)
    assert segment.start_sample == (115 - 5) * FRAME


def test_a_pause_shorter_than_the_hangover_does_not_split():
    assert len(run([True] * 40 + [False] * 20 + [True] * 40 + [False] * 60)) == 1
    assert len(run([True] * 40 + [False] * 30 + [True] * 40 + [False] * 60)) == 2


def test_a_segment_has_the_short_silence_before_it_if_wanted():
    decisions = [False] * 50 + [True] * 40 + [False] * 90 + [True] * 40 + [False] * 120 + [True] * 40 + [False] * 40
    plain = run(decisions, VadConfig(fill_ms=0))
    filled = run(decisions, VadConfig(fill_ms=2000))
    assert [one.start_s for one in filled] == [plain[0].start_s, plain[0].end_s, plain[2].start_s]
    assert [one.speech_start_s for one in filled] == [one.start_s for one in plain]
    assert [one.speech_end_s for one in filled] == [one.speech_end_s for one in plain]
    assert [len(one.speech) for one in filled] == [len(one.samples) for one in plain]


def test_a_maximum_length_cut_falls_on_the_quietest_frame_near_the_limit():
    options = VadConfig(max_segment_ms=4000, cut_search_ms=1000, fill_ms=0)
    quiet = {170: 10, 40: 0}  # frame 40 is quieter, but too far from the limit at frame 200
    first, second = run([True] * 300, options, loud=quiet)
    assert first.forced_cut
    assert first.heard_s == 4.0 > first.end_s == first.speech_end_s
    assert len(first.samples) == 171 * FRAME
    assert second.start_sample == 171 * FRAME
    assert not second.forced_cut


def test_a_maximum_length_cut_never_falls_before_the_speech():
    options = VadConfig(max_segment_ms=1000, cut_search_ms=980, pre_roll_ms=500, fill_ms=0)
    first, *_ = run([False] * 50 + [True] * 100, options, loud=dict.fromkeys(range(50), 0))
    assert first.start_sample == 25 * FRAME
    assert first.end_s > 1.0


def test_a_cut_on_the_newest_frame_loses_nothing():
    options = VadConfig(max_segment_ms=4000, cut_search_ms=1000, fill_ms=0)
    first, second = run([True] * 300, options, loud={199: 0})
    assert (len(first.samples), second.start_sample, len(second.samples)) == (200 * FRAME, 200 * FRAME, 100 * FRAME)


def test_the_end_of_speech_after_a_cut_is_a_segment_however_short_it_is():
    options = VadConfig(max_segment_ms=4000, cut_search_ms=1000, fill_ms=0)
    _, rest = run([True] * 202 + [False] * 60, options, loud={199: 0})
    assert (rest.start_sample, rest.speech_end_s) == (200 * FRAME, 4.04)


@settings(max_examples=examples(200))
@given(
    runs=st.lists(st.tuples(st.booleans(), st.integers(1, 120)), max_size=20),
    maximum=st.integers(1000, 3000),
    search=st.integers(0, 900),
    hangover=st.integers(20, 800),
    pre_roll=st.integers(0, 500),
    post_roll=st.integers(0, 500),
    audible=st.frozensets(st.integers(0, 500), max_size=300),
    fill=st.sampled_from([0, 200, 900]),
)
def test_no_sample_of_speech_is_lost_or_doubled(runs, maximum, search, hangover, pre_roll, post_roll, audible, fill):
    options = VadConfig(
        fill_ms=fill,
        max_segment_ms=maximum,
        cut_search_ms=search,
        hangover_ms=hangover,
        pre_roll_ms=pre_roll,
        post_roll_ms=post_roll,
        min_speech_ms=140,
    )
    decisions = [speech for speech, count in runs for _ in range(count)]
    segments = run(decisions, options, audible=audible)
    covered = np.zeros(len(decisions) * FRAME, int)
    for segment in segments:
        span = slice(segment.start_sample, segment.start_sample + len(segment.samples))
        covered[span] += 1
        assert np.array_equal(segment.samples, (np.arange(span.start, span.stop) % 2**15))
        assert len(segment.samples) <= max(options.max_segment_ms, 1000) // 20 * FRAME
    assert covered.max(initial=0) <= 1
    assert [s.start_sample for s in segments] == sorted(s.start_sample for s in segments)
    # Speech of at least the trigger and minimum lengths is in a segment from its first sample to its last.
    start = 0
    for speech, count in runs:
        if speech and count >= 8:
            assert covered[start * FRAME : (start + count) * FRAME].all()
        start += count


def test_a_day_of_silence_holds_no_more_than_a_minute():
    endpointer = Endpointer(VadConfig(fill_ms=0))
    assert not any(endpointer.push(frame(i), False) for i in range(20_000))
    assert len(endpointer._recent) == 35
    assert endpointer.flush() == []


def test_a_segment_so_far_is_the_segment_if_nothing_more_is_said():
    decisions = [False] * 50 + [True] * 50 + [False] * 30
    endpointer = Endpointer(VadConfig(fill_ms=0))
    early = None
    closed = []
    for i, speech in enumerate(decisions):
        closed += endpointer.push(frame(i), speech)
        if endpointer.silent_ms == 200:
            early = endpointer.so_far()
    (segment,) = closed
    assert (early.id, early.start_sample, early.speech_end_s) == (0, segment.start_sample, segment.speech_end_s)
    assert np.array_equal(early.samples, segment.samples)
    assert early.heard_s == 2.2
    assert (endpointer.silent_ms, endpointer.so_far()) == (0, None)  # no segment is open


def test_noise_is_no_segment_so_far():
    endpointer = Endpointer(VadConfig(fill_ms=0))
    for i, speech in enumerate([False] * 50 + [True] * 5 + [False] * 10):
        assert endpointer.push(frame(i), speech) == []
    assert endpointer.silent_ms == 200
    assert endpointer.so_far() is None


@given(st.lists(st.booleans(), max_size=200))
def test_looking_at_a_segment_so_far_changes_nothing(decisions):
    endpointer = Endpointer(VadConfig(fill_ms=0))
    found = []
    for i, speech in enumerate(decisions):
        found += endpointer.push(frame(i), speech)
        endpointer.so_far()
    found += endpointer.flush()
    expected = run(decisions)
    assert [(s.id, s.start_sample, len(s.samples)) for s in found] == [
        (s.id, s.start_sample, len(s.samples)) for s in expected
    ]


@settings(max_examples=examples())
@given(st.lists(st.tuples(st.integers(1, 80), st.sampled_from("S.aL")), max_size=12))
def test_no_later_segment_has_speech_before_what_is_settled(stretches):
    kinds = "".join(kind * length for length, kind in stretches)
    endpointer, settled, found = Endpointer(VadConfig()), 0, []
    for number, kind in enumerate(kinds):
        for segment in endpointer.push(frame(number), kind == "S", kind == "a", kind == "L"):
            found.append((segment, settled))
        settled = max(settled, endpointer.settled)
    found += [(segment, settled) for segment in endpointer.flush()]
    assert all(segment.speech_start_sample >= before for segment, before in found)


def test_in_silence_little_is_not_settled():
    endpointer = Endpointer(VadConfig())
    for number in range(500):
        endpointer.push(frame(number), 100 <= number < 150)
    assert endpointer.received - endpointer.settled < 1.5 * 16_000
