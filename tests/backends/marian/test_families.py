"""The table of families of translation models."""

import dataclasses

from pipeline import MarianModel
from pipeline.backends.marian import model
from pipeline.backends.marian.decode import marian, students
from pipeline.backends.nmt_options import NmtConfig
from tests.conftest import TINY


def test_a_directory_is_loaded_by_the_first_family_that_knows_its_files(tmp_path, monkeypatch):
    assert students.load(TINY, NmtConfig()) is None  # it has no student
    asked = []

    def own(directory, options):
        asked.append(directory)
        known = (directory / "own.txt").is_file()
        return dataclasses.replace(marian.load(TINY, options), languages=("la", "tlh")) if known else None

    monkeypatch.setattr(model, "FAMILIES", (own, *model.FAMILIES))
    (tmp_path / "own.txt").write_text("")
    assert MarianModel.load(tmp_path).languages == ("la", "tlh")
    assert MarianModel.load(TINY).languages == ("en", "zh")
    assert asked == [tmp_path, TINY]
