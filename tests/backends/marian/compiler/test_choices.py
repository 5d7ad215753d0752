"""What the compiler chooses: the rows that are kept, the sentences that are measured, and the sizes of blocks."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pipeline.backends.marian.compile.assemble import DECODER, ENCODER, HEAD, SHARED, _tie, abbreviated
from pipeline.backends.marian.compile.build import _check_arguments, _producible_rows, _shortlisted_rows
from pipeline.backends.marian.compile.measure import Sample, TranslatedSample, compare
from pipeline.backends.marian.compile.quantize import block_size
from pipeline.backends.marian.decode.generation import GenerationOptions
from pipeline.errors import ModelError, UsageError

OPTIONS = GenerationOptions(start_token=9, end_token=0, pad_token=9, max_tokens=5)


def model_of(target_ids, characters=(), frequencies=None):
    tokenizer = SimpleNamespace(
        target_ids=set(target_ids),
        target_characters=set(characters),
        target_frequencies=lambda lines: Counter(frequencies),
    )
    return SimpleNamespace(tokenizer=tokenizer, generation=OPTIONS)


@pytest.mark.parametrize(
    ("translations", "rows"),
    [(((1, 2, 0), (3, 0)), [0, 1, 2, 3, 9]), (((1, 7, 0),), list(range(10))), ((), [0, 1, 2, 3, 9])],
)
def test_the_rows_of_the_target_are_kept_unless_a_translation_has_others(translations, rows):
    assert _producible_rows(model_of({1, 2, 3}), np.arange(10), translations).tolist() == rows


@pytest.mark.parametrize(
    ("size", "rows"),
    [
        (3, [0, 5, 9]),  # what the search needs, and the most frequent piece
        (4, [0, 4, 5, 9]),
        (6, [0, 1, 2, 4, 5, 9]),  # then characters
        (99, [0, 1, 2, 4, 5, 9]),
    ],
)
def test_a_shortlist_has_the_most_frequent_pieces_and_then_characters(size, rows):
    model = model_of({1, 2, 4, 5, 6}, characters={2, 1, 6}, frequencies={4: 2, 5: 8})
    assert _shortlisted_rows(model, np.array([0, 1, 2, 4, 5, 9]), [], size).tolist() == rows
    with pytest.raises(UsageError, match="none of the model's pieces"):
        _shortlisted_rows(model_of({1}, frequencies={}), np.arange(10), [], size)


@pytest.mark.parametrize(("weights", "size", "said"), [("int9", 16, "not 'int9'"), ("auto", 15, "of 15 rows is too")])
def test_what_the_compiler_is_asked_for_is_checked(weights, size, said):
    with pytest.raises(UsageError, match=said):
        _check_arguments(weights, size)
    _check_arguments("auto", 16)


def test_of_a_sample_the_first_and_each_second_sentence_are_measured():
    sample = Sample(("a", "b", "c", "d", "e"), ("A", "B", "C", "D", "E"))
    calibration, evaluation = sample.halves()
    assert (calibration.sources, calibration.references) == (("b", "d"), ("B", "D"))
    assert (evaluation.sources, evaluation.references) == (("a", "c", "e"), ("A", "C", "E"))


def test_a_loss_is_against_the_references_or_else_against_fp32():
    fp32, other = (TranslatedSample((), (), (text,), 1.0) for text in ("the cat", "the dog"))
    assert compare("int4", other, fp32, Sample(("x",), ("the dog",))).chrf_loss < 0
    assert compare("int4", other, fp32, Sample(("x",))).chrf_loss > 0
    assert compare("fp32", fp32, fp32, Sample(("x",))).chrf_loss == 0


@pytest.mark.parametrize(("columns", "size"), [(256, 128), (192, 64), (96, 32), (48, 16), (20, 16)])
def test_a_block_is_the_longest_that_divides_the_columns(columns, size):
    assert block_size(columns) == size


@pytest.mark.parametrize(
    ("names", "shown"), [("ab", "a, b"), ("cab", "a, b, c"), ("dcab", "a, b, c and 1 more"), ("", "")]
)
def test_three_names_are_shown(names, shown):
    assert abbreviated(names) == shown


@pytest.mark.parametrize(
    ("names", "share", "tied", "found"),
    [
        ((SHARED,), True, True, {ENCODER, DECODER, HEAD}),
        ((SHARED, HEAD), True, False, {ENCODER, DECODER, HEAD}),
        ((ENCODER, DECODER), False, True, {ENCODER, DECODER, HEAD}),
        ((ENCODER, DECODER), False, False, {ENCODER, DECODER}),
    ],
)
def test_a_tied_matrix_has_all_of_its_names(names, share, tied, found):
    weights = {name: np.ones((2, 2), np.float32) for name in names}
    _tie(weights, share, tied, Path("x"))
    assert weights.keys() == found
    for at, name in enumerate((SHARED, ENCODER, DECODER, HEAD)):  # each of several copies must be equal
        copies = {each: np.full((2, 2), float(each == name), np.float32) for each in (SHARED, ENCODER, DECODER, HEAD)}
        with pytest.raises(ModelError, match="differ, but the config ties them"):
            _tie(copies, True, True, Path(str(at)))
