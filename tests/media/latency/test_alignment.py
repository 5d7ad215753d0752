"""Alignment and splitting by edit distance."""

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from pipeline.bench.words import edits
from pipeline.media.latency.alignment import aligned, resegment

units = st.text("abc", max_size=8).map(list)


def test_units_are_paired_with_the_fewest_edits():
    assert aligned(["a", "b"], ["a", "b"]) == [(0, 0), (1, 1)]
    assert aligned(["a", "x", "c"], ["a", "b", "c"]) == [(0, 0), (1, 1), (2, 2)]
    assert aligned(["a", "c"], ["a", "b", "c"]) == [(0, 0), (None, 1), (1, 2)]
    assert aligned(["a", "b", "c"], ["a", "c"]) == [(0, 0), (1, None), (2, 1)]
    assert aligned(["a"], []) == [(0, None)]
    assert aligned([], ["a"]) == [(None, 0)]
    assert aligned([], []) == []


def test_the_end_may_stay_open():
    assert aligned(["a", "b"], ["a", "b", "c", "d"], open_end=True) == [(0, 0), (1, 1)]
    # A word that was not heard at first: with "c" paired with "b" there would be as many edits, and fewer equal pairs.
    assert aligned(["a", "c"], ["a", "b", "c", "d"], open_end=True) == [(0, 0), (None, 1), (1, 2)]
    # Without a partner near by, a word stands in the place of the next one.
    assert aligned(["a", "x"], ["a", "b", "c", "x"], open_end=True) == [(0, 0), (1, 1)]
    assert aligned([], ["a"], open_end=True) == []


@given(units, units)
def test_an_alignment_has_as_many_differences_as_there_are_edits(reference, hypothesis):
    found = aligned(reference, hypothesis)
    assert [i for i, _ in found if i is not None] == list(range(len(reference)))
    assert [j for _, j in found if j is not None] == list(range(len(hypothesis)))
    different = sum(i is None or j is None or reference[i] != hypothesis[j] for i, j in found)
    assert different == edits(reference, hypothesis)


@given(units, units)
def test_with_an_open_end_the_best_beginning_is_aligned(reference, hypothesis):
    found = aligned(reference, hypothesis, open_end=True)
    different = sum(i is None or j is None or reference[i] != hypothesis[j] for i, j in found)
    assert different == min(edits(reference, hypothesis[:end]) for end in range(len(hypothesis) + 1))


def test_a_stream_is_cut_where_its_sentences_end():
    assert resegment([["a", "b"], ["c", "d", "e"]], ["a", "b", "c", "d", "e"]) == [2, 5]
    assert resegment([["a", "b"], ["c", "d", "e"]], ["a", "x", "c", "e"]) == [2, 4]
    assert resegment([["a", "b"], ["c", "d"], ["e"]], ["a", "b", "e"]) == [2, 2, 3]
    assert resegment([["a"], ["b"]], ["y", "a", "b", "z"]) == [2, 4]
    assert resegment([["a"], ["b"]], []) == [0, 0]


sentences = st.lists(st.text("ab", max_size=4).map(list), min_size=1, max_size=4)


@given(sentences, st.text("ab", max_size=8).map(list))
def test_no_cut_costs_more_edits_than_the_whole(references, hypothesis):
    cuts = resegment(references, hypothesis)
    assert cuts == sorted(cuts)
    assert cuts[-1] == len(hypothesis)
    parts = [hypothesis[begin:end] for begin, end in zip([0, *cuts], cuts, strict=False)]
    assert sum(map(edits, references, parts)) == edits([*chain(*references)], hypothesis)
