"""Failures, cancels and closed readers at every event of a live run with drafts, not only at some."""

import pytest

from tests.test_draft_failures import (
    recorded,
    runs,
    test_a_recogniser_that_fails_at_any_call,
    test_a_run_interrupted_twice_at_any_event,
    test_a_run_that_stops_at_any_event,
    test_a_sink_that_fails_at_any_event_costs_the_others_nothing,
    test_a_stage_that_fails_at_any_event,
    test_a_translator_that_fails_at_any_event,
    whole,
)

__all__ = [
    "recorded",
    "runs",
    "test_a_recogniser_that_fails_at_any_call",
    "test_a_run_interrupted_twice_at_any_event",
    "test_a_run_that_stops_at_any_event",
    "test_a_sink_that_fails_at_any_event_costs_the_others_nothing",
    "test_a_stage_that_fails_at_any_event",
    "test_a_translator_that_fails_at_any_event",
    "whole",
]


@pytest.fixture
def step():
    return 1
