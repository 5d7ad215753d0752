"""Small rules of the server around its sessions, without a server: capacity, turns, uploads, connections."""

import asyncio
from collections.abc import Hashable, Iterator
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from starlette.requests import Request

from pipeline import Models, PipelineConfig
from pipeline.config.loading import SharedModels
from pipeline.errors import UsageError
from pipeline.events import SAMPLE_RATE, Samples, Transcript
from pipeline.glossary.terms import Glossary, Term
from pipeline.server import uploads
from pipeline.server.connections import Overdue, Settings
from pipeline.server.glossary import SessionGlossary, read_glossary
from pipeline.server.guard import Rate
from pipeline.server.languages import offers
from pipeline.server.languages.offers import Offers
from pipeline.server.limits import ServerLimits
from pipeline.server.protocol import ProtocolError, Start, room_name
from pipeline.server.pushes import Pushes
from pipeline.server.service import Service
from pipeline.server.shares import CountInSecond
from pipeline.server.uploads import Upload, UploadError
from tests.server.running import until

KEY = "key-of-a-room-of-this-test"
ROOM = room_name(KEY)


def service_with(config: PipelineConfig, models: Models, **limits: Any) -> Service:
    return Service(config, models, ServerLimits(**limits))


async def ended(service: Service) -> None:
    """Wait until all its sessions have ended."""
    await asyncio.gather(*service._tasks)


async def test_a_server_has_so_many_sessions_and_counts_those_that_have_ended(demo_config, demo_models):
    service = service_with(demo_config, demo_models, max_sessions=2)
    first, second = service.start(Start()), service.start(Start(room_key=KEY))
    assert not service.places.ready
    for wanted in (Start(), Start(source="xx")):
        with pytest.raises(ProtocolError, match="the server has 2 sessions"):
            service.start(wanted)
    first.readers.detach(first.attach())  # has everything
    assert service.index.find(ROOM) is second
    await first.hear(bytes(2 * SAMPLE_RATE))
    first.readers._resets = 3
    for session in (first, second):
        session.stats.busy_s["a stage"] = 2.0
        session.end()
    assert service.totals().busy_s["a stage"] == 4.0
    await ended(service)
    assert (service.places.ready, service.ended.sessions, service.totals().resets, service.sessions) == (True, 2, 3, {})
    assert service.totals().audio_s == 1.0
    assert service.totals().busy_s["a stage"] == 4.0
    assert service.rooms == {ROOM: second}  # its readers may not have noticed it yet
    with pytest.raises(ProtocolError, match="no such session"):
        service.index.find(first.id)
    with pytest.raises(ProtocolError):
        service.start(Start(source="xx"))
    assert service.places.refused == {"busy": 2, "unknown-source": 1}


async def test_a_session_whose_text_was_missed_is_kept_unless_the_server_stops(demo_config, demo_models):
    for stops in (False, True):
        service = service_with(demo_config, demo_models)
        session = service.start(Start())
        session.readers.detach(session.attach(), served=False)
        session.end()
        service.places.draining = stops
        await ended(service)
        if stops:
            with pytest.raises(ProtocolError, match="no such session"):
                service.index.find(session.id)
        else:
            assert service.index.find(session.id) is session
        for task in service._keeping:
            task.cancel()


async def test_a_server_that_drains_ends_its_sessions_and_starts_none(demo_config, demo_models):
    service = service_with(demo_config, demo_models)
    session = service.start(Start())
    await service.drain()
    assert (session.intake.ended, service.sessions, session.state.failure) == (True, {}, None)
    with pytest.raises(ProtocolError, match="the server is stopping"):
        service.start(Start())
    with pytest.raises(ProtocolError, match="the server is stopping"), service.places.recording():
        pass
    assert service.places.refused == {"stopping": 1, "busy": 1}


async def test_so_many_recordings_are_translated_at_once(demo_config, demo_models):
    service = service_with(demo_config, demo_models, max_recordings=2)
    with service.places.recording():
        with pytest.raises(ZeroDivisionError), service.places.recording():
            raise ZeroDivisionError
        with service.places.recording():
            with pytest.raises(ProtocolError, match="it is translating 2 recordings"), service.places.recording():
                pass
            assert (len(service.places.recordings), service.places.refused["busy"]) == (2, 1)
    assert service.places.recordings == []


async def test_the_first_session_without_another_one_has_the_turn_to_be_pushed(caplog):
    opened: list[str] = []

    def open_sinks(config: str) -> list[Any]:
        if config == "wrong":
            raise UsageError("no such language")
        opened.append(config)
        return []

    pushes = Pushes(open_sinks)  # type: ignore[arg-type]

    def session(name: str) -> Any:
        return SimpleNamespace(name=name, config=name, stats=None, state=SimpleNamespace(ending=False))

    async with pushes.turn(session("first")) as first:
        async with pushes.turn(session("second")) as second:
            assert (first.problem, second.problem) == (
                "",
                "captions of another session are sent elsewhere now, not of this one",
            )
        async with pushes.turn(session("third")):
            pass
    async with pushes.turn(session("wrong")) as wrong:
        await until(lambda: wrong.problem == "no such language" and not pushes._turns)
        async with pushes.turn(session("fourth")) as fourth:
            assert fourth.problem == ""
    assert opened == ["first", "fourth"]
    assert [record.getMessage() for record in caplog.records] == [
        "session second is not pushed, since another one is",
        "session third is not pushed, since another one is",
        "session wrong is not pushed: no such language",
    ]


async def test_a_session_that_begins_while_one_is_finished_is_pushed_after_it_as_a_whole():
    """``[`` and ``]``: a place is opened and closed; in the third session nothing can be sent."""
    happened: list[object] = []

    class Place:
        problem = ""

        def begin(self, clock: object) -> None:
            happened.append("[")

        def write(self, event: object) -> None:
            happened.append(event)

        def close(self) -> None:
            happened.append("]")

    pushes, sessions = Pushes(lambda _: [Place()]), list[Any]()  # type: ignore[list-item]

    def session() -> Any:
        sessions.append(SimpleNamespace(name="x", config=None, stats=None, state=SimpleNamespace(ending=False)))
        return sessions[-1]

    async with pushes.turn(session()) as first:
        await until(lambda: bool(happened))
        sessions[0].state.ending = True
        async with AsyncExitStack() as others:
            second = await others.enter_async_context(pushes.turn(session()))
            third = await others.enter_async_context(pushes.turn(session()))
            for number in range(200):
                second.write(f"second {number}")
            third.write("third")
            first.write("first")
            assert second.problem == ""
            assert third.problem != ""
            ended = asyncio.create_task(others.aclose())
            await until(second.ended.is_set)
            assert not ended.done()
            first.write("first again")
            assert happened == ["[", "first", "first again"]
    await ended
    assert happened == ["[", "first", "first again", "]", "[", *(f"second {number}" for number in range(200)), "]"]


def test_the_newest_count_of_an_address_is_taken_back():
    now_s = 0.0
    rate = Rate(2, lambda: now_s)
    assert rate.allows("a")
    now_s = 30.0
    assert rate.allows("a")
    rate.forget("a")
    rate.forget("b")
    assert [rate.allows("a"), rate.allows("a")] == [True, False]
    now_s = 60.0  # the first has become old, the refused one was not counted
    assert [rate.allows("a"), rate.allows("a")] == [True, False]


def test_of_very_many_addresses_the_last_are_known(monkeypatch):
    monkeypatch.setattr("pipeline.server.guard._MAX_ADDRESSES", 2)
    rate = Rate(1, lambda: 0.0)
    assert [rate.allows(address) for address in ("a", "b", "a", "c", "a", "b")] == [
        True,
        True,
        False,
        True,
        False,
        True,
    ]


def test_pings_are_counted_within_a_second_alone():
    small = CountInSecond()
    assert [small.add(*each) for each in ((2, 0.1), (3, 0.9), (0, 1.0), (4, 1.5), (1, 7.0))] == [2, 5, 0, 4, 1]


class States(Overdue):
    """Connections that are in the states that a test says."""

    def __init__(self) -> None:
        super().__init__(ServerLimits())
        self.state: Hashable = None

    def _state(self, connection: Any) -> tuple[Hashable, float]:
        return self.state, 10.0


class Connection:
    """Stands for a connection."""


def test_a_connection_is_overdue_when_it_stays_in_a_state_for_too_long():
    overdue, one = States(), Connection()
    steps = [(None, 0, False), (None, 99, False), ("a", 100, False), ("a", 109, False), ("a", 110, True), ("b", 111, False),
             ("a", 120, False), ("a", 129, False), (None, 131, False), (None, 139, False), (None, 159, False), ("a", 160, False), ("a", 170, True)]  # fmt: skip
    for state, now_s, found in steps:
        overdue.state = state
        assert overdue.among([one], now_s) == ([one] if found else []), now_s  # type: ignore[list-item, comparison-overlap]


@pytest.mark.parametrize(
    ("proxies", "client", "known"),
    [
        ([], ("192.0.2.1", 1), False),
        (["192.0.2.0/24"], None, False),
        (["192.0.2.0/24"], ("192.0.2.9", 1), True),
        (["192.0.2.0/24", "2001:db8::1"], ("2001:db8::1", 1), True),
        (["192.0.2.0/24"], ("198.51.100.1", 1), False),
    ],
)
def test_a_proxy_is_known_by_its_address(proxies, client, known):
    assert Settings(lambda *_: None, ServerLimits(), proxies).is_proxy(client) is known  # type: ignore[arg-type]


class Source:
    """Blocks of half a second, and the length that the file says."""

    overflows = 0

    def __init__(self, blocks: int, duration_s: float | None = None) -> None:
        self.duration_s, self.closed, self._blocks = duration_s, False, iter(range(blocks))

    def read(self) -> Samples | None:
        return np.zeros(SAMPLE_RATE // 2, np.int16) if next(self._blocks, None) is not None else None

    def close(self) -> None:
        self.closed = True


def blocks(source: Any) -> Iterator[Samples]:
    while (samples := source.read()) is not None:
        yield samples


def test_a_recording_is_as_long_as_its_audio_whatever_its_file_says():
    assert len(list(blocks(uploads._Bounded(Source(4), 2.0)))) == 4
    assert len(list(blocks(uploads._Bounded(Source(4, 2.0), 2.0)))) == 4
    with pytest.raises(UploadError, match="longer than 2 s") as refused:
        list(blocks(uploads._Bounded(Source(5, 1.0), 2.0)))
    assert (refused.value.status, refused.value.code) == (413, "too-long")
    long = Source(1, 2.5)
    with pytest.raises(UploadError, match="longer than 2 s"):
        uploads._Bounded(long, 2.0)
    assert long.closed


def request(headers: dict[str, str], *body: bytes) -> Request:
    messages = iter([{"type": "http.request", "body": part, "more_body": True} for part in body])

    async def receive() -> Any:
        return next(messages)

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "POST", "headers": raw}, receive)


async def test_what_has_come_of_an_upload_gives_the_rest_time():
    limits, coming = ServerLimits(request_s=0.0, upload_pace=1), request({}, bytes(1_000), bytes(1))

    async def receive() -> Any:
        if reads:
            await asyncio.sleep(0.001)  # the rest does not lie ready
        reads.append(await coming.receive())
        return reads[-1]

    reads: list[Any] = []
    body = uploads.paced_body(Request(coming.scope, receive), limits)
    assert [len((await body.receive())["body"]) for _ in range(2)] == [1_000, 1]
    with pytest.raises(UploadError, match="comes with less than 1 bytes a second"):
        await uploads.paced_body(Request(coming.scope, asyncio.Event().wait), limits).receive()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("declared", "sizes", "refused"),
    [
        ("x", (100, uploads._FORM_BYTES), None),
        ("x", (101, uploads._FORM_BYTES), "has more than 100 bytes"),
        (str(101 + uploads._FORM_BYTES), (), "has 65637 bytes; at most 100"),
        (str(100 + uploads._FORM_BYTES), (1,), None),
    ],
)
async def test_an_upload_has_so_many_bytes(declared, sizes, refused):
    async def read() -> None:
        bounded = uploads.bounded_body(request({"content-length": declared}, *map(bytes, sizes)), 100)
        for _ in sizes:
            await bounded.receive()

    if refused is None:
        await read()
    else:
        with pytest.raises(UploadError, match=refused) as error:
            await read()
        assert error.value.status == 413


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("", ""),
        ("Application/JSON; charset=x", "application/json"),
        ("multipart/form-data; boundary=x", "multipart/form-data"),
        ("multipart/form-data; boundary=x; charset=UTF-8", "multipart/form-data"),
        ("multipart/form-data; boundary=x; charset=punycode", None),
        ("x" * 2_001, None),
    ],
)
def test_a_form_is_in_utf_8(header, kind):
    asked = request({"content-type": header})
    if kind is None:
        with pytest.raises(UploadError):
            uploads.body_type(asked)
    else:
        assert uploads.body_type(asked) == kind


def test_the_last_value_of_a_field_counts(tmp_path):
    upload = Upload(tmp_path, {"language": ["en", "pt"], "none": []})
    assert (upload.field("language"), upload.field("none"), upload.field("other", "x")) == ("pt", "", "x")


@pytest.mark.parametrize(
    ("reason", "why"), [("language", r"\(it is in another language\)"), ("uncertain", r'\(uncertain: "Hm"\)')]
)
def test_why_nothing_was_understood_is_said(reason, why):
    lost = Transcript(0, 1.26, 2.0, "Hm", "en", rejected=reason)
    error = uploads._not_understood(lost)
    with pytest.raises(UploadError, match=rf"heard at 1\.3 s, but not understood as en {why}"):
        raise error
    assert (error.status, uploads.as_dict(error)["error"]["type"]) == (400, "invalid_request_error")
    assert uploads.as_dict(UploadError(503, "busy", "x"))["error"]["type"] == "server_error"


async def test_work_for_a_client_that_goes_is_cancelled_and_other_messages_are_ignored():
    messages = [{"type": "http.disconnect"}, {"type": "http.request"}]

    async def receive() -> Any:
        return messages.pop() if messages else await asyncio.get_running_loop().create_future()

    stopped = asyncio.Event()

    async def work() -> str:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            stopped.set()
        return "never"

    with pytest.raises(uploads.ClientDisconnect):
        await uploads.while_connected(receive, work())
    assert stopped.is_set()
    assert await uploads.while_connected(receive, asyncio.sleep(0, "done")) == "done"


def test_the_terms_of_a_session_take_the_place_of_the_servers():
    servers, own = Glossary((Term("a", "b"),)), Glossary((Term("c", "d"),))
    for current, before in ((None, Glossary()), (lambda: servers, servers)):
        glossary = SessionGlossary(current)
        assert glossary() == before
        for terms in (own, Glossary()):
            glossary.replace(terms)
            assert glossary() is terms


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bank\tb\n" + " " * 65_530, "the glossary has 65537 characters"),
        ("".join(f"term{number}\tx\n" for number in range(1_001)), "1001 terms; 1000 are allowed"),
    ],
)
def test_a_glossary_of_a_session_is_limited(text, said):
    with pytest.raises(ProtocolError, match=said) as refused:
        read_glossary(text)
    assert refused.value.code == "bad-glossary"
    assert len(read_glossary("bank\tb\n" + " " * 65_529).terms) == 1


@pytest.fixture
def prepared(demo_config: PipelineConfig, demo_models: Models, monkeypatch: pytest.MonkeyPatch) -> Offers:
    """Offers whose preparations end never."""

    async def never(*_: object) -> None:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(Offers, "_prepare", never)
    return Offers([(demo_config, demo_models)], SharedModels(), downloads=True)


async def test_a_few_languages_are_prepared_at_once_each_for_all_who_ask(prepared, monkeypatch):
    monkeypatch.setattr(offers, "_MOST_AT_ONCE", 2)
    first = prepared.prepare("en", ["de"])
    assert prepared.prepare("eng", ["de", "DE"]) is first
    second = prepared.prepare("en", ["fr"])
    with pytest.raises(ProtocolError, match="the server is preparing other languages"):
        prepared.prepare("en", ["it"])
    assert prepared.prepare("en", ["fr"]) is second
    for one in (first, second):
        one.work.cancel()


async def test_nothing_is_prepared_once_the_server_stops(prepared):
    prepared.close()
    with pytest.raises(ProtocolError, match="the server is preparing other languages"):
        prepared.prepare("en", ["de"])


@pytest.mark.parametrize(
    ("source", "targets", "languages"),
    [
        (None, [], ("en", ("zh",))),
        (None, ["de", "FR", "deu"], ("en", ("de", "fr"))),
        ("en-GB", ["en"], ("en-GB", ("en",))),
        ("de", [], ("de", ("zh",))),
        ("zh", [], ("zh", ("zh",))),
    ],
)
async def test_what_is_prepared_where_somebody_leaves_a_language_out(source, targets, languages, prepared):
    assert prepared._wanted(source, targets) == languages


async def test_nothing_is_prepared_when_the_server_stops_or_for_too_many_languages(prepared):
    with pytest.raises(ProtocolError, match="9 targets; a session may have 8"):
        prepared.prepare("en", list("abcdefghi"))
    prepared.close()
    with pytest.raises(ProtocolError, match="busy|preparing other"):
        prepared.prepare("en", ["de"])
