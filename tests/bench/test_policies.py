"""Policies: named changes of the configuration."""

import argparse
import dataclasses

import pytest

from pipeline.asr.options import DraftModel
from pipeline.bench.live import POLICIES, Policy, _of_models, some_policies
from pipeline.config import PipelineConfig


def test_a_policy_changes_only_what_it_names():
    config = PipelineConfig()
    changed = Policy("p", "", {"asr": {"threads": 2, "beam_size": 1}}).applied(config)
    assert (changed.asr.threads, changed.asr.beam_size) == (2, 1)
    assert dataclasses.replace(changed, asr=config.asr) == config


@pytest.mark.parametrize("policy", POLICIES.values(), ids=list(POLICIES))
def test_each_policy_can_be_applied_and_is_different(policy):
    """Applying fails if a key was renamed."""
    config = policy.applied(PipelineConfig())
    others = [other.applied(PipelineConfig()) for other in POLICIES.values() if other is not policy]
    assert config not in others


def test_policies_are_chosen_by_name():
    assert [policy.name for policy in some_policies("segments, none,none")] == ["segments", "none"]
    assert some_policies("all") == list(POLICIES.values())
    with pytest.raises(argparse.ArgumentTypeError, match=r"'la-9' is not a policy; give names of none, .* or all"):
        some_policies("none,la-9")


def test_models_are_loaded_again_only_if_others_are_needed():
    config = PipelineConfig()
    without_drafts = POLICIES["none"].applied(config)
    assert _of_models(without_drafts) == _of_models(config)
    config = dataclasses.replace(config, asr=dataclasses.replace(config.asr, draft=DraftModel(model="tiny")))
    assert _of_models(POLICIES["none"].applied(config)) == _of_models(without_drafts) != _of_models(config)
    assert _of_models(POLICIES["unmasked"].applied(config)) == _of_models(config)
