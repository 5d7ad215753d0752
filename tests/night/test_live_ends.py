"""A live run that is killed early or late in somebody's speech leaves final text only."""

import signal

import pytest

from tests.apps.test_live_ends import live  # noqa: F401 (a fixture)


@pytest.mark.parametrize("drafts", [1, 8, 12])
def test_kill_9_in_the_middle_of_any_draft_leaves_final_text_only(drafts, live):  # noqa: F811
    live.until("source_delta", drafts)
    live.process.kill()
    status, _ = live.end()
    assert status == -signal.SIGKILL
    live.check()
