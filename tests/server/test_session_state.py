"""Who speaks in a session, what becomes of audio, and when and why the session ends; without a session."""

from collections.abc import Callable

import pytest

from pipeline.server.limits import ServerLimits
from pipeline.server.protocol import ProtocolError
from pipeline.server.session_state import Phase, SessionState

BEGAN_S = 1_000.0
FIRST, SECOND = "first connection", "second connection"


@pytest.fixture
def state() -> SessionState:
    return SessionState(ServerLimits(resume_s=30.0, idle_s=300.0, session_s=3_600.0), BEGAN_S)


@pytest.mark.parametrize(
    ("happens", "has_speaker"),
    [
        (lambda state: None, True),
        (lambda state: state.disconnect(FIRST, BEGAN_S), False),
        (lambda state: state.disconnect(SECOND, BEGAN_S), True),
        (lambda state: state.connect(SECOND), True),
        (lambda state: state.end(Phase.SAID), False),
        (lambda state: state.end(Phase.STOPPED), False),
        (lambda state: setattr(state, "over", True), False),
    ],
    ids=["nothing", "gone", "an earlier one is gone", "connected again", "said everything", "stopped", "over"],
)
def test_a_session_has_a_speaker_who_is_connected_and_has_not_finished(
    happens: Callable[[SessionState], None], has_speaker, state
):
    assert (state.has_speaker, state.ending) == (False, False)
    state.connect(FIRST)
    happens(state)
    assert state.has_speaker is has_speaker
    assert state.ending is (not has_speaker and state.speaker is FIRST)


def test_a_speaker_whose_connection_is_lost_may_come_back_for_some_time(state):
    assert not state.is_deserted(BEGAN_S + 1_000)  # nobody has been there
    state.connect(FIRST)
    assert not state.is_deserted(BEGAN_S + 1_000)
    state.disconnect(FIRST, BEGAN_S + 5)
    assert [state.is_deserted(BEGAN_S + later_s) for later_s in (5, 35, 35.5)] == [False, False, True]


def test_an_earlier_connection_that_is_lost_late_does_not_count_as_the_speakers(state):
    state.connect(FIRST)
    state.disconnect(FIRST, BEGAN_S)
    state.connect(SECOND)
    state.disconnect(FIRST, BEGAN_S)
    assert state.speaker is SECOND
    assert not state.is_deserted(BEGAN_S + 1_000)


@pytest.mark.parametrize(
    ("idle_s", "lasted_s", "code"),
    [(300.0, 300.0, None), (300.5, 300.5, "idle"), (0, 3_600, None), (0, 3_600.5, "too-long"), (301, 3_601, "idle")],
)
def test_a_session_has_limits(idle_s, lasted_s, code, state):
    now_s = BEGAN_S + lasted_s
    state.heard_s = now_s - idle_s
    failure = state.exceeded(now_s)
    assert (failure and failure.code) == code


@pytest.mark.parametrize(
    ("phase", "failure", "taken"),
    [
        (Phase.OPEN, None, True),
        (Phase.SAID, None, True),  # where it is refused
        (Phase.STOPPED, None, False),
        (Phase.DISCARDED, None, False),
        (Phase.OPEN, ProtocolError("failed", "a stage"), False),
    ],
)
def test_audio_is_taken_of_the_speakers_newest_connection_until_the_session_is_stopped(phase, failure, taken, state):
    state.connect(FIRST)
    state.connect(SECOND)
    state.end(phase, failure)
    connections = [None, FIRST, SECOND]
    assert [state.takes_audio(connection) for connection in connections] == [taken, False, taken]


def test_the_first_reason_for_the_end_is_told_and_no_phase_comes_back(state):
    first, second = ProtocolError("idle", "no audio"), ProtocolError("failed", "a model")
    state.end(Phase.DISCARDED)
    for failure in (first, None, second):
        state.end(Phase.STOPPED, failure)
    assert (state.phase, state.failure) == (Phase.DISCARDED, first)
