"""Several servers that share out rooms: what each takes of the others' reports, and where a room or a session is. No NATS."""

import json
from collections import Counter
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.apps.directory import some_nats, some_origin
from pipeline.errors import UsageError
from pipeline.server import directory
from pipeline.server import peers as peers_rules
from pipeline.server.access import Access
from pipeline.server.directory import Directory
from pipeline.server.peers import GONE_S, Claim, Peers, read_report
from pipeline.server.protocol import Listen, ProtocolError, Resume, Start, Watch, room_name
from pipeline.server.session_index import ServerPlaces
from tests.server.running import NewService

KEY = "key-of-a-room-on-some-server"
ROOM, ROOM_2 = room_name(KEY), room_name(KEY[1:])
LANGUAGES = [("en", ["zh"])]
EARLY, LATE, LATER = (
    f"20261129T23{time}Z-{number}" for time, number in (("0000", "f" * 8), ("0001", "a" * 8), ("0001", "b" * 8))
)
"""Names of sessions, which tell their age."""


def report(name: str = "one", **changes: object) -> bytes:
    said = {"address": f"http://{name}", "capacity": 4, "languages": LANGUAGES, "draining": False, "sessions": {}}
    return json.dumps(said | changes).encode()


def session_here(name: str, room: str | None = None, *, speaks: bool = False, over: bool = False) -> Any:
    """What a directory sees of a session of its own server."""
    return SimpleNamespace(id=name, room=room, name=EARLY, state=SimpleNamespace(has_speaker=speaks, over=over))


def having(peers: Peers, *own: Claim) -> tuple[str, str] | None:
    """The address of the server that has the room, and the session's id."""
    claim = peers.in_room(ROOM, *own)
    return claim and (claim.address, claim.session)


@pytest.fixture
def here(new_service: NewService) -> Directory:
    """A server beside the server http://one, which has a session in a room, and one that is gone."""
    found = Directory(new_service(max_sessions=4), "http://here")
    found._take(report(sessions={"there": ROOM, "alone": ""}))
    found._take(report("two", sessions={"lost": "r" * 22}))
    found._take(b'{"gone": "http://two"}')
    return found


TOKEN = Access(token="secret")


@pytest.mark.parametrize(
    ("first", "access", "query", "code"),
    [
        (Start(room_key=KEY), Access(), {}, "elsewhere"),
        (Start(room_key=KEY), Access(), {"placed": "1"}, None),
        (Start(), Access(), {}, None),
        (Start(room_key="another-room-of-this-test"), Access(), {}, None),
        (Start(room_key=KEY), TOKEN, {}, None),
        (Start(room_key=KEY, token="secret"), TOKEN, {}, "elsewhere"),
        (Resume("there", "k"), TOKEN, {}, None),
        (Resume("there", "k"), Access(), {}, "elsewhere"),
        (Watch("there"), TOKEN, {}, "elsewhere"),
        (Watch(ROOM), Access(), {}, "elsewhere"),
        (Listen("alone", "zh"), Access(), {}, "elsewhere"),
        (Watch("lost"), Access(), {}, "no-session"),
        (Watch("r" * 22), Access(), {}, "no-session"),
        (Watch("unknown"), Access(), {}, None),
    ],
)
def test_a_client_is_sent_where_its_session_is(first, access, query, code, here):
    if code is None:
        here.check(first, access, query)
        return
    with pytest.raises(ProtocolError) as sent:
        here.check(first, access, query)
    assert sent.value.code == code
    if code == "elsewhere":
        assert sent.value.more == {"address": "ws://one/v1/session?placed=1"}


@pytest.mark.parametrize(
    ("state", "sessions", "elsewhere"),
    [("", 1, False), ("", 2, True), ("", 3, True), ("draining", 0, True), ("hung", 0, True)],
)
def test_a_new_room_begins_on_the_least_loaded_server_that_takes_it(state, sessions, elsewhere, here, monkeypatch):
    here._take(report(sessions={"only": ""}))
    monkeypatch.setattr(ServerPlaces, "hung", state == "hung")
    here._service.places.draining = state == "draining"
    assert json.loads(here._report())["draining"] == bool(state)
    here._service.sessions |= dict.fromkeys(map(str, range(sessions)), session_here("here"))
    expected = pytest.raises(ProtocolError, match="another server takes this") if elsewhere else nullcontext()
    with expected:
        here.check(Start(room_key="another-room-of-this-test"), Access(), {})


def test_a_room_here_stays_here_and_what_is_known_of_a_room_is_told(here):
    assert here.found(ROOM) == {"session": "there", "server": "http://one", "ended": False}
    assert here.found("r" * 22) == {"session": None, "server": None, "ended": True}
    assert here.found("unknown") == {"session": None, "server": None, "ended": False}
    here._service.rooms[ROOM] = here._service.sessions["mine"] = session_here("mine", speaks=True)
    assert here.found(ROOM) == {"session": "mine", "server": "http://here", "ended": False}
    here.check(Start(room_key=KEY), Access(), {})


def test_a_server_does_not_take_its_own_report(here):
    here._take(report("here", sessions={"own": ""}))
    assert list(here.peers.servers) == ["http://one"]


def test_a_report_has_the_last_rooms_whose_sessions_have_ended(here, monkeypatch):
    monkeypatch.setattr(directory, "MOST_ENDED", 2)
    monkeypatch.setattr(ServerPlaces, "hung", False)
    for number in range(4):
        here._service.rooms[f"room-{number}"] = session_here(
            f"id-{number}", f"room-{number}", speaks=number == 0, over=number > 0
        )
    here._service.sessions["id-0"] = here._service.rooms["room-0"]
    here._service.sessions["alone"] = session_here("alone", speaks=True)
    said = json.loads(here._report())
    assert said["sessions"] == {"id-0": "room-0", "alone": ""}
    assert said["speaking"] == {"id-0": EARLY}
    assert said["kept"] == {"id-2": "room-2", "id-3": "room-3"}
    for number in (2, 4):  # whose last text is being delivered
        room = "room-2" if number == 2 else None
        here._service.sessions[f"id-{number}"] = session_here(f"id-{number}", room, over=True)
    monkeypatch.setattr(directory, "MOST_ENDED", 4)
    said = json.loads(here._report())
    assert said["sessions"] == {"id-0": "room-0", "alone": ""}
    assert said["kept"] == {"id-2": "room-2", "id-4": "", "id-1": "room-1", "id-3": "room-3"}


def test_the_newest_of_what_has_ended_is_remembered_and_of_the_servers_so_many(monkeypatch):
    monkeypatch.setattr(peers_rules, "MOST_ENDED", 2)
    monkeypatch.setattr(peers_rules, "_MOST_CHARACTERS", 20)
    peers = Peers(lambda: 0.0)
    for name, capacity in (("one", 4), ("two", 4), ("three", 4), ("one", 5)):
        sessions = {f"{name}-1": "", f"{name}-2": ""}
        peers.push(read_report(report(name, capacity=capacity, sessions=sessions), 0.0))
    assert {address: peer.capacity for address, peer in peers.servers.items()} == {"http://one": 5, "http://two": 4}
    for address in ("http://one", "http://two", "http://none"):
        peers.drop(address)
    assert list(peers.ended) == ["two-1", "two-2"]


def test_a_room_is_that_of_the_newest_session_there():
    peers = Peers(lambda: 0.0)
    peers.push(read_report(report(sessions={"a": ROOM, "b": ROOM}, kept={"old": ROOM}), 0.0))
    assert having(peers) == ("http://one", "b")
    peers.push(read_report(report(kept={"old": ROOM, "b": ROOM}), 0.0))
    assert having(peers) == ("http://one", "b")
    assert peers.with_id("old") == "http://one"


@pytest.mark.parametrize(
    ("claims", "first"),
    [
        ([(0, LATER), (0, EARLY), (0, LATE)], 1),  # the oldest
        ([(0, LATER), (0, LATE)], 1),  # of the same second: by what is random in their names
        ([(1, ""), (0, LATER)], 1),  # one where somebody speaks
        ([(2, ""), (1, "")], 1),  # one that has not ended
        ([(1, ""), (1, "")], 0),
        ([(2, ""), (2, "")], 0),
    ],
)
def test_of_several_sessions_in_a_room_one_has_it_on_whichever_server_one_asks(claims, first):
    for own in range(len(claims)):
        peers = Peers(lambda: 0.0)
        for number, (state, name) in enumerate(claims):
            if number != own:
                said = {"kept" if state == 2 else "sessions": {f"s{number}": ROOM}}
                speaking = {f"s{number}": name} if name else {}
                peers.push(read_report(report(f"{number}", speaking=speaking, **said), 0.0))
        mine = Claim(*claims[own], session=f"s{own}", address=f"http://{own}")
        equal = claims[own][:2] == claims[first]  # then each server has it
        assert having(peers, mine) == (f"http://{own if equal else first}", f"s{own if equal else first}")


@pytest.mark.parametrize(
    ("own_speaks", "speaking", "ends"),
    [
        (True, {"s": EARLY}, True),
        (True, {"s": LATER}, False),
        (True, {}, False),
        (False, {"s": LATER}, True),
        (False, {}, False),
    ],
    ids=["is younger", "is older", "the other's is away", "its speaker is away", "both are away"],
)
async def test_a_session_gives_way_to_another_in_its_room(own_speaks, speaking, ends, new_service, caplog):
    here = Directory(service := new_service(), "http://here")
    session = service.start(Start(room_key=KEY))
    session.name = LATE
    feed = session.connect(speaker := object())
    if not own_speaks:
        session.disconnect(speaker, feed)
    for _ in range(2):  # the other's report, and the next one
        here._take(report(sessions={"s": ROOM}, speaking=speaking))
    assert session.state.ending is ends
    back = session.connect(speaker := object())
    for told in [*([feed] if own_speaks else []), back]:  # also if it comes back
        assert (told.failure and told.failure.code) == ("room-busy" if ends else None)
    assert session.state.failure is None  # for readers, it ends
    told = [record.getMessage() for record in caplog.records]
    assert told == [f"session {LATE} ends: somebody speaks in its room on http://one"] * ends
    expected = {"session": "s", "server": "http://one"} if ends else {"session": session.id, "server": "http://here"}
    assert here.found(ROOM) == {**expected, "ended": False}
    for message in (Watch(ROOM), Start(room_key=KEY)):  # whoever comes now
        with pytest.raises(ProtocolError, match="another server takes this") if ends else nullcontext():
            here.check(message, Access(), {})
    here.check(Watch(session.id), Access(), {})
    for told in (feed, back):
        session.disconnect(speaker, told)
    await service.drain()


async def test_one_of_two_talks_goes_on_if_the_speaker_of_the_older_leaves_while_reports_cross(new_service):
    now, services = [0.0], [new_service(), new_service()]
    older, younger = [Directory(service, f"http://{n}") for n, service in enumerate(services)]
    sessions = [service.start(Start(room_key=KEY)) for service in services]
    for name, session, server in zip((EARLY, LATE), sessions, (older, younger), strict=True):
        session.name, server.peers.clock = name, lambda: now[0]
    speaker = object()
    feeds = [session.connect(speaker) for session in sessions]
    reports = [server._report() for server in (older, younger)]
    sessions[0].disconnect(speaker, feeds[0])
    older._take(reports[1])
    assert not sessions[0].state.ending
    now[0] = 1.0
    older._take(younger._report())  # still before the older one's report has come
    younger._take(reports[0])
    assert [session.state.ending for session in sessions] == [False, True]
    now[0] = 60.0
    older._take(reports[1])  # somebody speaks there who was never told of the older one
    assert sessions[0].state.ending
    sessions[1].disconnect(speaker, feeds[1])
    for service in services:
        await service.drain()


def test_a_server_gets_as_many_rooms_as_it_takes_and_none_when_it_drains():
    peers = Peers(lambda: 0.0)
    peers.push(read_report(report(capacity=2), 0.0))
    assert [peers.with_place(str(n), "en", [], 1.0) for n in range(3)] == ["http://one", "http://one", None]
    peers.push(read_report(report(capacity=9, draining=True), 0.0))
    assert peers.with_place("3", "en", ["zh"], 1.0) is None


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"{}", b"\xff", b'"x"', report(address="one"), report(address="http://one/path"),
        report(address="http://one; script-src *"), report(address="javascript://one"), report(capacity=0),
        report(sessions={"x": "no room"}), report(sessions={"x" * 1000: ""}), report(sessions={"": ""}), report(sessions={"\ud800": ""}), report(sessions=[1]), report(languages=[["", []]]),
        report(languages=[1]), report(languages=LANGUAGES * 2), report(sessions={str(n): "" for n in range(2000)}),
        report(kept={"x": "no room"}), report(sessions={"x": ROOM}, speaking={"x": "no name"}), report(speaking={"x": EARLY}), report(speaking=[1]), report(kept=[1]), report(kept={str(n): "" for n in range(2000)}),
        report(padding=" " * 200_000),
    ],
)  # fmt: skip
def test_a_report_of_another_form_is_left_out(new_service, data):
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError, UsageError)):
        read_report(data, 0.0)
    here = Directory(new_service(), "http://here")
    here._take(data)
    assert here.peers.servers == {}


def test_the_address_of_the_directory_is_kept_in_a_file_and_the_servers_own_is_written_as_browsers_do(tmp_path):
    (tmp_path / "directory").write_text("tls://captions:right@host\n")
    assert some_nats(f"@{tmp_path / 'directory'}") == "tls://captions:right@host"
    assert some_origin("https://One.Example.org") == "https://one.example.org"


def test_a_room_goes_to_a_server_of_its_languages_with_the_lowest_load():
    peers = Peers(lambda: 0.0)
    for name, capacity, sessions, languages in (
        ("one", 4, 2, LANGUAGES), ("two", 10, 4, LANGUAGES), ("three", 4, 0, [("zh", ["en"])]),
    ):  # fmt: skip
        said = {f"{name}-{n}": "" for n in range(sessions)}
        peers.push(
            read_report(report(address=f"http://{name}", capacity=capacity, sessions=said, languages=languages), 0.0)
        )
    assert peers.with_place("a", "en", ["zh"], 0.9) == "http://two"
    assert peers.with_place("b", "en", ["zh"], 0.9) == "http://one"  # the first has got one since, and both have half
    assert peers.with_place("c", "en", ["zh"], 0.3) is None
    assert peers.with_place("d", "zh", ["en"], 0.3) == "http://three"
    assert peers.with_place("e", "zh", ["en"], 0.0) is None
    assert peers.with_place("f", "fr", [], 0.9) is None


def test_a_room_on_a_server_that_drains_is_begun_anew_elsewhere(new_service):
    here, start = Directory(new_service(), "http://here"), Start(room_key=KEY)
    here._take(report(sessions={"session": ROOM}))
    with pytest.raises(ProtocolError, match="another server takes this"):
        here.check(start, Access(), {})
    here._take(report(sessions={"session": ROOM}, draining=True))
    here.check(start, Access(), {})


async def test_a_room_of_this_server_is_begun_anew_elsewhere_when_it_drains(new_service):
    here, start = Directory(service := new_service(), "http://here"), Start(room_key=KEY)
    here._take(report())
    service.start(start)
    here.check(start, Access(), {})
    await service.drain()
    with pytest.raises(ProtocolError, match="another server takes this"):
        here.check(start, Access(), {})


def test_the_sessions_of_a_server_that_is_not_heard_have_ended_unless_the_directory_was_away():
    now = [0.0]
    peers = Peers(lambda: now[0])
    peers.push(read_report(report(sessions={"session": ROOM}, kept={"earlier": ROOM}), now[0]))
    now[0] = 3 * GONE_S
    peers.drop_silent(since_s=2.5 * GONE_S)
    assert list(peers.servers) == ["http://one"]
    assert peers.in_room(ROOM) is None  # it may have died meanwhile
    peers.drop_silent(since_s=0.0)
    assert peers.servers == {}
    assert {ROOM, "session", "earlier"} == set(peers.ended)
    peers.push(read_report(report(sessions={"another": ROOM}), now[0]))
    assert set(peers.ended) == {"session", "earlier"}


def test_a_room_is_found_by_its_name_and_a_session_by_its_id_and_nothing_by_anything_else(new_service):
    here = Directory(new_service(), "http://here")
    here._take(report(sessions={"without-a-room": "", "in-a-room": ROOM}, kept={"earlier": ROOM, "ended": ROOM_2}))
    nothing: dict[str, Any] = {"session": None, "server": None, "ended": False}
    names = [
        "",
        "None",
        "null",
        "without-a-room",
        "in-a-room",
        ROOM.swapcase(),
        f" {ROOM}",
        f"{ROOM}\0",
        full_width(ROOM),
    ]
    assert [here.found(name) for name in names] == [nothing] * len(names)
    assert here.found(ROOM) == {"session": "in-a-room", "server": "http://one", "ended": False}
    assert here.found(ROOM_2)["session"] == "ended"
    for message in (Watch(""), Watch("None"), Listen("", "zh"), Resume("", "key"), Resume(ROOM, "key")):
        here.check(message, Access(), {})
    for message in (Watch("without-a-room"), Watch(ROOM), Listen("earlier", "zh"), Resume("in-a-room", "key")):
        with pytest.raises(ProtocolError, match="another server takes this"):
            here.check(message, Access(), {})
    here._take(b'{"gone": "http://one"}')
    assert [here.found(name) for name in names] == [nothing] * len(names)
    assert here.found(ROOM) == {"session": None, "server": None, "ended": True}
    with pytest.raises(ProtocolError, match="the server of this session is gone"):
        here.check(Watch("without-a-room"), Access(), {})


def full_width(text: str) -> str:
    """The same letters for NFKC."""
    return text.translate({n: n + 0xFEE0 for n in range(33, 127)})


def test_a_session_in_progress_comes_before_one_that_has_ended_on_another_server():
    peers = Peers(lambda: 0.0)
    for name, sessions, kept in (
        ("one", {}, {"1": ROOM}),
        ("two", {"2": "", "3": ROOM}, {"4": ROOM}),
        ("six", {}, {"5": ROOM}),
    ):
        peers.push(read_report(report(address=f"http://{name}", sessions=sessions, kept=kept), 0.0))
    assert having(peers) == ("http://two", "3")
    peers.drop("http://two")
    assert having(peers) == ("http://one", "1")


def test_rooms_of_a_server_are_given_out_while_it_is_heard_whether_the_directory_is_there_or_not():
    now = [0.0]
    peers = Peers(lambda: now[0])
    said = report(sessions={"session": ROOM})
    peers.push(read_report(said, now[0]))

    def given() -> list[object]:
        return [peers.in_room(ROOM), peers.with_id("session"), peers.with_place(ROOM_2, "en", ["zh"], 1.0)]

    now[0] = GONE_S
    assert None not in given()
    now[0] += 0.1
    assert given() == [None, None, None]
    peers.push(read_report(said, now[0]))
    assert None not in given()


def test_a_burst_of_rooms_whose_speakers_are_slow_is_shared_out_and_those_that_do_not_come_are_forgotten():
    now = [0.0]
    peers = Peers(lambda: now[0])

    def tell(**sessions: dict[str, str]) -> None:
        for name in ("one", "two", "three"):
            said = report(address=f"http://{name}", capacity=10, sessions=sessions.get(name, {}))
            peers.push(read_report(said, now[0]))

    rooms = [room_name(f"{KEY}-{n}") for n in range(9)]
    places: list[str | None] = []
    for room in rooms:  # a report comes after each
        tell()
        places.append(peers.with_place(room, "en", ["zh"], 1.0))
        now[0] += 0.5
    assert Counter(places) == {"http://one": 3, "http://two": 3, "http://three": 3}
    tell(one={"first": rooms[0]})
    assert [peer.load for peer in peers.servers.values()] == [0.3] * 3
    assert peers.with_place(rooms[1], "en", ["zh"], 1.0) == "http://two"  # asked again: it is counted once
    assert [peer.load for peer in peers.servers.values()] == [0.3] * 3
    now[0] += 10.0
    tell(one={"first": rooms[0]})
    assert [peer.load for peer in peers.servers.values()] == [0.1, 0.0, 0.0]


def test_the_addresses_of_all_servers_have_room_in_a_header(caplog):
    peers = Peers(lambda: 0.0)
    for n in range(1000):
        peers.push(read_report(report(address=f"https://{'a' * 230}{n:04d}.example"), 0.0))
    assert 10 < len(peers.servers) < 20
    assert sum(map(len, peers.servers)) <= 3000
    assert [record.getMessage()[:50] for record in caplog.records] == [
        "the directory has more servers than find place (12"
    ]
    first = next(iter(peers.servers))
    peers.push(read_report(report(address=first, sessions={"session": ROOM}), 0.0))  # one that is known goes on
    assert having(peers) == (first, "session")
    peers.drop(first)
    for said in (report(), report(address=first)):
        peers.push(read_report(said, 0.0))
    assert ("http://one" in peers.servers, first in peers.servers, len(caplog.records)) == (True, False, 2)
    few = Peers(lambda: 0.0)
    for n in range(100):
        few.push(read_report(report(address=f"https://room{n}.example.org"), 0.0))
    assert len(few.servers) == 100
