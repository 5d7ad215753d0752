"""Detection of loops in translations, and how much of a looping translation is kept."""

import pytest

from pipeline.nmt.search.recovery import Loop, LoopGuard, kept_tokens, length_limit

SOURCE = [10, 11, 12, 13, 0]


def loops(source, tokens, plain=False, marks=()):
    return LoopGuard(source, lambda index: plain, lambda index: index not in marks).loop(tokens)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([5, 7, 7, 7, 7], Loop(2, 1)),
        ([5, 7, 8, 7, 8, 7, 8, 7, 8], Loop(3, 2)),
        ([5, 1, 2, 3, 1, 2, 3, 1, 2, 3], Loop(4, 3)),
        ([7, 7, 7], None),
        ([7, 8, 7, 8, 7, 8], None),
        ([1, 2, 3, 4, 1, 2, 3, 4], None),
        ([7, 7, 7, 7, 9], None),  # not at the end: it was found before
        ([], None),
    ],
)
def test_a_repeating_phrase_is_a_loop(tokens, expected):
    assert loops(SOURCE, tokens) == expected


def test_repeats_in_the_source_allow_repeats_in_the_translation():
    never_never = [4, 9, 4, 9, 4, 9, 4, 9, 0]
    assert loops(never_never, [5, 6] * 4) is None
    assert loops(never_never, [5, 6] * 6) is None
    assert loops(never_never, [5, 6] * 7) == Loop(2, 2)


def test_unknown_words_and_marks_in_the_source_allow_no_words_to_repeat():
    unknown, comma = 1, 2
    foreign = [3, unknown, 3, unknown, 3, unknown, 0]  # 3: a space
    assert loops(foreign, [7] * 4, marks=(unknown, 3)) == Loop(1, 1)
    assert loops([10, comma, comma, 11, 0], [5, 6] * 4, marks=(comma,)) == Loop(2, 2)
    assert loops([10, comma, 10, comma, 11, 0], [5, 6] * 4, marks=(comma,)) is None
    exclamation_marks = [10, *[comma] * 20, 0]
    assert loops(exclamation_marks, [6] * 22, plain=True, marks=(comma,)) is None
    assert loops(exclamation_marks, [6] * 23, plain=True, marks=(comma,)) == Loop(1, 1)


def test_zeros_of_a_number_are_not_a_loop():
    assert loops(SOURCE, [1, *[3] * 9], plain=True) is None
    assert loops(SOURCE, [3] * 12, plain=True) == Loop(1, 1)


def test_the_limit_grows_with_the_source_up_to_the_models_limit():
    assert [length_limit(n, 3.0, 256) for n in (1, 10, 200)] == [19, 46, 256]
    assert length_limit(10, 0.0, 256) == 256


def test_kept_tokens_end_before_the_first_repetition():
    assert kept_tokens([5, 6, 7, 7, 7, 7], Loop(3, 1), 5) == 3
    assert kept_tokens([1, 2, 3, 4, 1, 2, 3, 9], None, 5) == 4
    assert kept_tokens(list(range(100)), None, 4) == 14
    assert kept_tokens([1, 2, 3], None, 4) == 3
