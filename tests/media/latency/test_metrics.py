"""Latency measures compared with hand-computed cases."""

import pytest

from pipeline.media.latency.delay_measures import (
    Reference,
    average_lagging,
    length_adaptive_average_lagging,
    long_yaal,
    mean_scores,
    normalized_erasure,
    stream_scores,
)
from pipeline.media.latency.emissions import Emission


def test_a_text_one_unit_behind_its_source_lags_by_that_unit():
    # d = 1, 2, 3 s of 3 s; the ideal is 0, 1, 2 s.
    assert average_lagging([1000, 2000, 3000], 3000, 3) == 1000


def test_only_units_up_to_the_first_that_had_the_whole_source_count():
    # τ = 2: (1000 - 0 + 4000 - 1000) / 2; later units do not count.
    assert average_lagging([1000, 4000, 4000, 4000], 4000, 4) == 2000
    assert average_lagging([4000, 4000, 4000], 4000, 3) == 4000


def test_a_text_that_ends_early_counts_to_its_last_unit():
    # τ = 2, although no unit had the whole source: (1000 - 0 + 2500 - 1000) / 2.
    assert average_lagging([1000, 2500], 4000, 4) == 1250


def test_a_text_that_came_after_its_source_lags_by_its_first_delay():
    assert average_lagging([5200, 5300], 4000, 2) == 5200


def test_too_much_text_lowers_average_lagging_but_not_the_length_adaptive_form():
    # Four units where the reference has two. AL: ideal 0, 2, 4, 6 s → (1 + 0 - 1 - 2) / 4 s. LAAL: ideal 0, 1, 2, 3 s.
    delays = [1000, 2000, 3000, 4000]
    assert average_lagging(delays, 4000, 2) == -500
    assert length_adaptive_average_lagging(delays, 4000, 2) == 1000


def test_a_short_text_has_the_same_lagging_in_both():
    assert length_adaptive_average_lagging([1000, 2500], 4000, 4) == average_lagging([1000, 2500], 4000, 4)


@pytest.mark.parametrize(("delays", "source_ms", "units"), [([], 1000, 1), ([1.0], 0, 1), ([1.0], 1000, 0)])
def test_empty_input_has_no_lagging(delays, source_ms, units):
    with pytest.raises(ValueError, match="must be more than 0"):
        average_lagging(delays, source_ms, units)


def test_what_comes_after_the_recording_does_not_count_in_long_yaal():
    assert long_yaal([1000, 4000, 9000, 9000], 4000, 4) == (1000 + 3000 + 7000 + 6000) / 4
    assert long_yaal([1000, 4000, 9000, 9000], 4000, 2, 9000) == (1000 + 3000) / 2
    assert long_yaal([9000], 4000, 1, 9000) is None
    late = mean_scores([(Reference(("a",), 5000, 1000), [Emission("a", 9000, 9000)])], 9000)
    assert late is not None
    assert (late.laal_ms, late.yaal_ms, late.computation_aware_yaal_ms) == (4000, None, None)


def test_erasure_is_what_was_withdrawn_for_each_unit_kept():
    assert normalized_erasure(3, 12) == 0.25
    assert normalized_erasure(0, 12) == 0
    assert normalized_erasure(0, 0) == 0


def test_a_streams_scores_are_means_over_its_sentences():
    references = [
        Reference(("a", "b"), 0, 2000),
        Reference(("c", "d"), 3000, 2000),
        Reference(("never", "said"), 6000, 500),
    ]
    emissions = [
        Emission("a", 1000, 1100),
        Emission("b", 2500, 2600),
        Emission("c", 5500, 5900),
        Emission("d", 5500, 6000),
    ]
    scores = stream_scores(emissions, references)
    assert scores is not None
    # First sentence: (1000 + 2500 - 1000) / 2 = 1250; second: τ = 1, 5500 - 3000 = 2500.
    # LongYAAL counts the last unit, too: (2500 + 2500 - 1000) / 2.
    assert (scores.laal_ms, scores.yaal_ms) == (1875, 1625)
    # With the clock: (1100 + 2600 - 1000) / 2 = 1350; 5900 - 3000 = 2900, and with the last unit (2900 + 3000 - 1000) / 2.
    assert (scores.computation_aware_laal_ms, scores.computation_aware_yaal_ms) == (2125, 1900)
    assert (scores.sentences, scores.empty) == (2, 1)


def test_a_stream_without_text_has_no_scores():
    assert stream_scores([], [Reference(("a",), 0, 1000)]) is None
