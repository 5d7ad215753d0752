"""Translators that several files of tests use."""

import pytest

from pipeline import MarianModel
from pipeline.config import NmtConfig
from pipeline.nmt.load import load_translation_model


@pytest.fixture(scope="session")
def en_pt() -> MarianModel:
    model = load_translation_model("en", "pt", NmtConfig("firefox/en-pt-tiny"))
    assert isinstance(model, MarianModel)
    return model
