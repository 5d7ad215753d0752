"""A run of half a minute of speech that is cut anywhere and resumed writes what an uninterrupted run writes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.archives.test_resume import Command, check_cuts, running, uninterrupted
from tests.conftest import EXAMPLES


@pytest.fixture(scope="module", params=[False, True], ids=["packed", "glossary"])
def command(request, demo_models):
    with running(Command(EXAMPLES / "travel.wav", glossary=request.param), lambda: demo_models) as found:
        yield found


@pytest.fixture(scope="module")
def whole(command, tmp_path_factory):
    return uninterrupted(command, tmp_path_factory.mktemp("whole"))


@settings(max_examples=12)
@given(st.lists(st.floats(0.0, 1.0, exclude_max=True), min_size=1, max_size=3))
def test_a_run_cut_at_any_events_ends_up_with_the_same_files(command, whole, cuts):
    check_cuts(command, *whole, cuts)
