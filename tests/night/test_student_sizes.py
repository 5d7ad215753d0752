"""Students of the published sizes, and of the largest vocabulary, compared with numpy."""

import pytest

from tests.backends.marian.conftest import found_ids
from tests.backends.marian.test_students import SOURCES, expected, load
from tests.fixtures.student import SHAPES, write_student


@pytest.mark.parametrize("split", [False, True], ids=["shared", "split"])
@pytest.mark.parametrize("name", SHAPES)
def test_published_shapes_give_the_tokens_of_the_reference(name, split, tmp_path):
    student = write_student(tmp_path, split=split, shape=SHAPES[name])
    for weights in ("fp32", "auto"):
        model = load(tmp_path, weights)
        found = [found_ids(model, source) for source in SOURCES]
        wanted = [expected(student, source) for source in SOURCES]
        if weights == "fp32":
            assert found == wanted
        first = sum(one[0] == other[0] for one, other in zip(found, wanted, strict=True))
        assert first >= len(SOURCES) - 1, "in 8 bits, rounding may change a close choice"


@pytest.mark.parametrize("split", [False, True], ids=["shared", "split"])
def test_a_vocabulary_of_64_000_pieces_gives_the_tokens_of_the_reference(split, tmp_path):
    student = write_student(tmp_path, split=split, pieces=64_000)
    model = load(tmp_path)
    assert model.tokenizer.target_size == 64_001
    found = set()
    for source in (*SOURCES, [63_999, 40_000, 0]):
        ids = found_ids(model, source)
        assert ids == expected(student, source)
        found |= set(ids)
    assert max(found) > 32_768
