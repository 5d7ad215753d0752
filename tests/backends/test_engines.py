"""The table of recognisers: each has a module that is loaded by its name."""

import inspect
from dataclasses import replace

import pytest

from pipeline.backends.asr_options import RECOGNIZERS, AsrConfig, DraftModel, backend_of
from pipeline.backends.engines import RecognizerEngine, engine
from pipeline.config import PipelineConfig
from pipeline.core.bounds import allowed_choices
from pipeline.errors import ConfigError
from pipeline.languages.options import LanguageConfig


@pytest.mark.parametrize("name", RECOGNIZERS.own)
def test_each_has_the_functions_of_an_engine(name):
    module, functions = engine(name), ("find_model", "load_model", "model_ref")
    for function in functions:
        wanted = [*inspect.signature(getattr(RecognizerEngine, function)).parameters][1:]
        assert [*inspect.signature(getattr(module, function)).parameters] == wanted


def test_a_configuration_may_name_each():
    fields = {kind: kind.__dataclass_fields__["backend"] for kind in (AsrConfig, DraftModel)}
    assert allowed_choices(fields[AsrConfig]) is RECOGNIZERS
    assert allowed_choices(fields[DraftModel]) == ("whisper", "moonshine")


@pytest.mark.parametrize("name", [name for name in RECOGNIZERS.own if backend_of(name).only is not None])
def test_one_that_knows_one_language_is_refused_for_others(name):
    with pytest.raises(ConfigError, match=f'asr.backend is "{name}", which hears English, and languages.source is'):
        PipelineConfig(languages=LanguageConfig("pt", ("en",)), asr=AsrConfig(backend=name))
    PipelineConfig(languages=LanguageConfig("en-GB", ("pt",)), asr=AsrConfig(backend=name))


def test_a_draft_model_has_the_options_of_the_model_but_its_own_thresholds():
    judged = {"no_speech_threshold": 0.5, "log_probability_threshold": -2.0, "compression_ratio_threshold": 3.0}
    config = AsrConfig(model="big", revision="1", beam_size=3, **judged)
    assert config.of_draft_model is None
    drafting = replace(config, draft=DraftModel("tiny"))
    assert drafting.of_draft_model == AsrConfig(model="tiny", beam_size=3)
    drafting = replace(config, draft=DraftModel("tiny", "2", "moonshine"))
    assert drafting.of_draft_model == AsrConfig(backend="moonshine", model="tiny", revision="2", beam_size=3)
