"""Which options of voice activity go together."""

import pytest

from pipeline.core.vad.options import VadConfig


@pytest.mark.parametrize(
    ("options", "filled_ms"),
    [
        ({}, 6_000),
        ({"fill_ms": 300}, 300),
        ({"max_segment_ms": 2_000}, 1_159),  # without the longest opening: pre-roll, faint sound, trigger, least speech
        ({"max_segment_ms": 2_000, "pre_roll_ms": 1_300}, 0),
    ],
)
def test_a_segment_has_room_for_speech_after_the_silence_before_it(options, filled_ms):
    assert VadConfig(**options).filled_ms == filled_ms


@pytest.mark.parametrize(
    ("good", "bad", "conflict"),
    [
        ({"cut_search_ms": 9_999}, {"cut_search_ms": 10_000}, "cut_search_ms"),
        ({"release_threshold": 0.6}, {"release_threshold": 0.61}, "release_threshold"),
        ({"post_roll_ms": 500}, {"post_roll_ms": 501}, "post_roll_ms"),
        ({"max_segment_ms": 3_001, "pre_roll_ms": 2_000, "faint_ms": 760}, {"pre_roll_ms": 2_000, "faint_ms": 760, "max_segment_ms": 3_000}, "max_segment_ms"),
        ({"hangover_ms": 9_999}, {"hangover_ms": 10_000}, "hangover_ms"),
    ],
)  # fmt: skip
def test_options_contradict_each_other_from_here_on(good, bad, conflict):
    searched = {"cut_search_ms": 1_000, "post_roll_ms": 80}
    assert list(VadConfig(**{**searched, **good}).conflicts()) == []
    (found,) = VadConfig(**{**searched, **bad}).conflicts()
    assert found.startswith(f"vad.{conflict}")
