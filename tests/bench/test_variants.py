"""What the benchmark of live runs plays."""

import dataclasses

from pipeline.backends.asr_options import DraftModel
from pipeline.bench.live import _of_models, variants
from pipeline.config import PipelineConfig


def test_a_run_without_drafts_is_compared_with_the_configured_one():
    config = PipelineConfig()
    assert variants(config, compare=False) == {"drafts": config}
    compared = variants(config, compare=True)
    assert [(name, one.drafts.enabled) for name, one in compared.items()] == [("none", False), ("drafts", True)]
    assert dataclasses.replace(compared["none"], drafts=config.drafts) == config == compared["drafts"]


def test_models_are_loaded_again_only_if_others_are_needed():
    config = PipelineConfig()
    without_drafts = variants(config, compare=True)["none"]
    assert _of_models(without_drafts) == _of_models(config)
    config = dataclasses.replace(config, asr=dataclasses.replace(config.asr, draft=DraftModel(model="tiny")))
    assert _of_models(variants(config, compare=True)["none"]) == _of_models(without_drafts) != _of_models(config)
