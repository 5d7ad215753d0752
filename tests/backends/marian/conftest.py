"""Translators that several files of tests use, and what a search finds."""

import pytest

from pipeline import MarianModel, NmtConfig
from pipeline.backends.marian.decode.generation import SearchRequest
from pipeline.backends.marian.load import load_translation_model
from pipeline.backends.marian.search.beams import greedy


@pytest.fixture(scope="session")
def en_pt():
    model = load_translation_model("en", "pt", NmtConfig("firefox/en-pt-tiny"))
    assert isinstance(model, MarianModel)
    return model


def found_ids(model, source, search=greedy, **more):
    """The ids that a search finds with the options that a model was loaded with."""
    return [token.id for token in search(SearchRequest(model.decoder, source, model.generation, **more))]
