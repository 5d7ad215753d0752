"""The segments before a segment, after which it is recognised."""

import dataclasses

import numpy as np

from pipeline.core.asr.context import Context, gaps, same_audio
from pipeline.events import SAMPLE_RATE, SpeechSegment, Transcript


def segment(number, start_s, length_s=2.0):
    return SpeechSegment(number, round(start_s * SAMPLE_RATE), np.zeros(round(length_s * SAMPLE_RATE), np.int16))


def heard(one, language="en", rejected=None):
    return Transcript(one.id, one.start_s, one.end_s, f"text {one.id}", language, rejected=rejected)


def context_of(*said, limit_ms=8_000, long_pause_ms=2_000):
    context = Context(limit_ms, long_pause_ms)
    for one in said:
        context.push(one, heard(one))
    return context


def ids(found):
    return [each.segment.id for each in found]


def test_the_newest_segments_that_fit_are_kept_oldest_first():
    said = [segment(number, 2.5 * number) for number in range(5)]
    found = context_of(*said).before(segment(5, 12.5), 15_000)
    assert ids(found) == [2, 3, 4]  # 3 × 2 s and two pauses of 0.3 s
    assert [each.text for each in found] == ["text 2", "text 3", "text 4"]
    assert ids(context_of(*said, limit_ms=4_300).before(segment(5, 12.5), 15_000)) == [3, 4]
    assert ids(context_of(*said, limit_ms=1_999).before(segment(5, 12.5), 15_000)) == []
    assert ids(context_of(*said, limit_ms=0).before(segment(5, 12.5), 15_000)) == []


def test_a_long_segment_has_less_before_it():
    said = [segment(number, 2.5 * number) for number in range(3)]
    context = context_of(*said)
    assert ids(context.before(segment(3, 7.5, 11.0), 15_000)) == [2]
    assert ids(context.before(segment(3, 7.5, 13.0), 15_000)) == []
    assert ids(context.before(segment(3, 7.5, 1.0), 15_000)) == [0, 1, 2]


def test_a_long_pause_ends_what_is_being_said():
    assert ids(context_of(segment(0, 0.0)).before(segment(1, 3.9), 15_000)) == [0]
    context = context_of(segment(0, 0.0))
    assert context.before(segment(1, 4.0), 15_000) == ()
    context.push(segment(1, 4.0), heard(segment(1, 4.0)))
    assert ids(context.before(segment(2, 6.5), 15_000)) == [1]


def test_a_pause_begins_where_speech_ends():
    """The segment's audio goes on after the last speech."""
    said = dataclasses.replace(segment(0, 0.0), speech_end_sample=round(1.5 * SAMPLE_RATE))
    assert context_of(said).before(segment(1, 3.6), 15_000) == ()


def test_another_language_and_rejected_audio_begin_anew():
    context = context_of(segment(0, 0.0))
    context.push(segment(1, 2.5), heard(segment(1, 2.5), "zh"))
    assert ids(context.before(segment(2, 5.0), 15_000)) == [1]
    context.push(segment(2, 5.0), heard(segment(2, 5.0), "zh", "silence"))
    assert context.before(segment(3, 7.5), 15_000) == ()
    context.push(segment(3, 7.5), heard(segment(3, 7.5), "zh"))
    assert ids(context.before(segment(4, 10.0), 15_000)) == [3]
    context.push(segment(4, 10.0), heard(segment(4, 10.0), "zh"))
    assert ids(context.before(segment(5, 12.5), 15_000)) == [3, 4]


def test_what_is_heard_of_the_open_group_follows_in_a_copy():
    context, more = context_of(segment(0, 0.0)), segment(1, 2.5)
    copy = context.followed_by([(more, heard(more))])
    assert ids(copy.before(segment(2, 5.0), 15_000)) == [0, 1]
    assert ids(context.before(more, 15_000)) == [0]


def test_between_segments_is_the_real_pause_up_to_a_limit():
    said = [segment(0, 0.0), segment(1, 2.0), segment(2, 4.1), segment(3, 7.0), segment(4, 8.9)]
    assert gaps(said) == [0, 1_600, 4_800, 0]


def test_what_may_be_misheard_is_no_context():
    context = context_of(segment(0, 0.0))
    context.push(segment(1, 2.5), dataclasses.replace(heard(segment(1, 2.5)), uncertain=True))
    assert context.before(segment(2, 5.0), 15_000) == ()
    context.push(segment(2, 5.0), heard(segment(2, 5.0)))
    assert ids(context.before(segment(3, 7.5), 15_000)) == [2]


def test_a_segment_is_what_it_was_if_nothing_of_it_changed():
    one = segment(0, 1.0)
    others = [segment(1, 1.0), segment(0, 1.1), segment(0, 1.0, 2.1), dataclasses.replace(one, samples=one.samples + 1)]
    assert same_audio(one, segment(0, 1.0))
    assert not any(same_audio(one, other) for other in others)
