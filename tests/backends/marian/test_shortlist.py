"""Which tokens may be in a translation, by the lists of a file."""

import pytest

from pipeline.backends.marian.decode.shortlist import Shortlist
from pipeline.errors import ModelError
from tests.fixtures.student import FIRST, shortlist_file

SIZE = 40
LISTS = [[number] for number in range(SIZE)]
LISTS[20], LISTS[21] = [30, 31], [31, 32, 33]
WHOLE = shortlist_file(LISTS)


@pytest.fixture
def write(tmp_path):
    def written(content):
        (tmp_path / "lex.bin").write_bytes(content)
        return Shortlist(tmp_path / "lex.bin", SIZE)

    return written


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ((20, 0), {20, 30, 31}),  # a token of its own, and those that are listed for it
        ((20, 21, 20, 0), {20, 21, 30, 31, 32, 33}),
        ((0,), set()),
    ],
)
def test_candidates_are_the_frequent_the_sources_own_and_the_listed(write, source, found):
    candidates = write(WHOLE).candidates(source).tolist()
    assert candidates == sorted(candidates)
    assert {*range(FIRST)} | found <= {*candidates}
    assert len(candidates) % 8 == 0
    assert len(candidates) - FIRST - len(found) < 8  # filled up, with the first that are missing
    others = sorted({*candidates} - {*range(FIRST)} - found)
    assert others == [number for number in range(FIRST, SIZE) if number not in found][: len(others)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"x" + WHOLE[1:], "it does not begin like a shortlist"),
        (WHOLE[:-4], "its header needs"),
        (shortlist_file(LISTS[:-1]), "it is not for a vocabulary of 40 pieces"),
        (shortlist_file([*LISTS[:-1], [SIZE]]), "it is not for a vocabulary of 40 pieces"),
        (WHOLE[:56] + (9).to_bytes(8, "little") + WHOLE[64:], "its lists overlap"),
        (b"", "is not a readable shortlist"),
    ],
)
def test_a_damaged_file_is_refused_with_the_reason(write, content, said):
    with pytest.raises(ModelError) as error:
        write(content)
    assert said in str(error.value)
