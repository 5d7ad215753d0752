"""Which session an id or a room stands for, without a server."""

from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.server import session_index
from pipeline.server.limits import ServerLimits
from pipeline.server.protocol import ProtocolError
from pipeline.server.session_index import ServerPlaces, SessionIndex

ROOM = "the room"


@dataclass(eq=False)
class Session:
    """What an index sees of a session."""

    id: str
    room: str | None = ROOM
    state: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(has_speaker=False))
    stopped: bool = False

    def stop(self) -> None:
        self.stopped = True


def begun(index: SessionIndex, *names: str, room: str | None = ROOM) -> list[Session]:
    sessions = [Session(name, room) for name in names]
    for session in sessions:
        index.begin(session)
    return sessions


def known(index: SessionIndex, *names: str) -> list[str | None]:
    """The ids of the sessions that these names stand for; None: no session."""
    found: list[str | None] = []
    for name in names:
        found.append(None)
        with suppress(ProtocolError):
            found[-1] = index.find(name).id
    return found


def test_a_session_is_found_by_its_id_and_the_newest_in_a_room_by_the_room():
    index = SessionIndex()
    begun(index, "first", "second")
    begun(index, "alone", room=None)
    assert known(index, "first", "second", "alone", ROOM, "other") == ["first", "second", "alone", "second", None]
    assert list(index.in_progress) == ["first", "second", "alone"]
    assert list(index.rooms) == [ROOM]


@pytest.mark.parametrize("name", ["", "None", ROOM.upper(), f"{ROOM} ", "FIRST", "ｆｉｒｓｔ"])
def test_nothing_else_is_found(name):
    index = SessionIndex()
    begun(index, "first")
    (ended,) = begun(index, "ended", room=None)
    index.end(ended, keep=True)
    assert known(index, name) == [None]


def test_a_speaker_comes_back_to_a_session_by_its_id_alone():
    index = SessionIndex()
    in_progress, ended = begun(index, "first", "ended")
    index.end(ended, keep=True)
    assert [index.with_id(name) for name in ("first", "ended")] == [in_progress, ended]
    for name in (ROOM, ""):
        with pytest.raises(ProtocolError):
            index.with_id(name)


def test_a_room_is_free_when_its_speaker_has_gone_whose_session_then_ends():
    index = SessionIndex()
    assert index.enter(ROOM) == ROOM
    (session,) = begun(index, "first")
    session.state.has_speaker = True
    with pytest.raises(ProtocolError) as refused:
        index.enter(ROOM)
    assert (refused.value.code, session.stopped) == ("room-busy", False)
    assert index.enter("another") == "another"
    session.state.has_speaker = False
    index.enter(ROOM)
    assert session.stopped


def test_a_session_that_has_ended_is_kept_until_it_is_forgotten_if_that_is_wanted():
    index = SessionIndex()
    kept, gone = begun(index, "kept", "gone", room=None)
    assert (index.end(kept, keep=True), index.end(gone, keep=False)) == (True, False)
    assert known(index, "kept", "gone") == ["kept", None]
    assert index.in_progress == {}
    index.forget(kept)
    index.forget(kept)
    assert known(index, "kept") == [None]


def test_of_those_that_have_ended_the_last_ones_are_kept(monkeypatch):
    monkeypatch.setattr(session_index, "_MOST_ENDED", 2)
    index = SessionIndex()
    for session in begun(index, "1", "2", "3", room=None):
        index.end(session, keep=True)
    assert known(index, "1", "2", "3") == [None, "2", "3"]


def test_a_room_keeps_its_last_session_until_that_leaves_it():
    index = SessionIndex()
    (session,) = begun(index, "first")
    index.end(session, keep=False)
    assert known(index, "first", ROOM) == [None, "first"]
    index.leave(session)
    assert known(index, ROOM) == [None]
    index.leave(session)


def test_an_earlier_session_that_leaves_does_not_take_the_new_one_with_it():
    index = SessionIndex()
    earlier, _ = begun(index, "earlier", "new")
    (alone,) = begun(index, "alone", room=None)
    for session in (earlier, alone):
        index.end(session, keep=False)
        index.leave(session)
    assert known(index, ROOM, "new", "earlier") == ["new", "new", None]


@dataclass
class InProgress:
    """What the places of a server see of a session."""

    over: bool = False
    lost: bool = False

    @property
    def state(self) -> "InProgress":
        return self

    calls = state


def places(*sessions: InProgress, **limits: Any) -> ServerPlaces:
    return ServerPlaces(ServerLimits(**limits), dict(enumerate(sessions)))  # type: ignore[arg-type]


@pytest.mark.parametrize(("going_on", "over", "taken"), [(0, 0, 0), (2, 0, 2), (2, 2, 2), (1, 3, 2), (0, 5, 2)])
def test_a_session_whose_text_is_final_needs_no_place_unless_there_are_as_many_again(going_on, over, taken):
    sessions = [InProgress()] * going_on + [InProgress(over=True)] * over
    assert places(*sessions).taken == taken
    for free in (0, 1):
        server = places(*sessions, max_sessions=taken + free)
        assert server.ready is (free > 0)
        with nullcontext() if free else pytest.raises(ProtocolError, match=f"has {taken} sessions"):
            server.check()


@pytest.mark.parametrize(
    ("happens", "code", "reason"),
    [
        (lambda server: setattr(server, "draining", True), "stopping", "the server is stopping"),
        (lambda server: setattr(server, "texts_hung", lambda: True), "busy", "does not answer"),
        (lambda server: server.leave(InProgress(lost=True)), "busy", "does not answer"),
        (lambda server: server._sessions.update(one=InProgress(lost=True)), "busy", "does not answer"),
    ],
    ids=["stops", "texts hang", "an ended session hangs", "a session hangs"],
)
async def test_nothing_begins_while_the_server_stops_or_a_model_does_not_answer(happens, code, reason):
    server = places(InProgress())
    server.leave(InProgress())
    with server.recording():
        assert server.ready
        happens(server)
        assert server.closed
        with pytest.raises(ProtocolError, match=reason) as refused:
            server.check()
        assert refused.value.code == code
        with pytest.raises(ProtocolError, match=reason), server.recording():
            pass
        assert (server.refused, len(server.recordings)) == ({"busy": 1}, 1)
    assert server.recordings == []


def test_a_server_whose_model_answers_in_the_end_is_ready_again():
    server, calls = places(), InProgress(lost=True)
    server.leave(calls)  # type: ignore[arg-type]
    assert server.hung
    calls.lost = False
    assert server.ready
