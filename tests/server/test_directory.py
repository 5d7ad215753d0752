"""Several servers that share out rooms over NATS: where a room is begun, how readers find it, and what the end of a server is."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from pipeline.errors import PipelineError, UsageError
from pipeline.server.access import Access
from pipeline.server.directory import GONE_S, Directory, Peers, read_report
from pipeline.server.protocol import ProtocolError, Start, room_name
from pipeline.server.service import Service
from tests.conftest import HANG_S, PHRASES, read_wav
from tests.server.running import Running, ask, final, rest, running, say, speak, until
from tests.server.test_deploy import free_port
from tests.server.test_serve import Command, command

NATS = shutil.which("nats-server")
needs_nats = pytest.mark.skipif(NATS is None, reason="nats-server is not installed; .ci/run installs it")
KEY = "key-of-a-room-on-some-server"
ROOM = room_name(KEY)
SPEECH = read_wav(PHRASES)[:32_000]
LANGUAGES = [("en", ["zh"])]


@asynccontextmanager
async def directory(folder: Path) -> AsyncIterator[str]:
    """A NATS server with a token, for the time of the block: its address."""
    assert NATS is not None
    port = free_port()
    log = folder / "nats.log"
    process = await asyncio.create_subprocess_exec(
        NATS, "--addr", "127.0.0.1", "--port", str(port), "--auth", "a-token", "--log", str(log)
    )
    try:
        async with asyncio.timeout(HANG_S):
            while not log.exists() or "Server is ready" not in log.read_text():
                await asyncio.sleep(0.01)
            yield f"nats://a-token@127.0.0.1:{port}"
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@asynccontextmanager
async def serving_together(url: str, *services: Service, access: Access | None = None) -> AsyncIterator[list[Running]]:
    """Servers in one directory, from when each knows all others."""
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(running(service, access)) for service in services]
        for server in servers:
            server.service.directory = Directory(server.service, server.url)
            await stack.enter_async_context(server.service.directory.joined(url))
        await until(lambda: all(len(known(server).servers) == len(servers) - 1 for server in servers))
        yield servers


def known(server: Running) -> Peers:
    assert server.service.directory is not None
    return server.service.directory.peers


async def found(server: Running | Command, room: str = ROOM) -> dict[str, Any]:
    async with httpx.AsyncClient(timeout=HANG_S) as http:
        answer = await http.get(f"http://127.0.0.1:{server.port}/v1/room", params={"name": room})
    result: dict[str, Any] = answer.json()
    return result


def at(address: str) -> connect:
    return connect(address, max_size=None, proxy=None)


def place(server: Running | Command) -> str:
    return f"ws://127.0.0.1:{server.port}/v1/session?placed=1"


@pytest.mark.slow
@needs_nats
async def test_a_room_begins_on_the_least_loaded_server_and_readers_are_sent_there(new_service, tmp_path):
    services = [new_service(max_sessions=2), new_service(max_sessions=8), new_service(max_sessions=4)]
    async with directory(tmp_path) as url, serving_together(url, *services) as servers:
        first, second, third = servers
        async with first.connect() as one, second.connect() as two, first.connect() as speaker:
            for other in (one, two):  # without a room, a client stays where it is
                assert (await ask(other, type="start"))["type"] == "started"
            await until(lambda: known(first).servers[second.url].load > 0)
            sent = await ask(speaker, type="start", room_key=KEY)
            assert (sent["code"], sent["address"]) == ("elsewhere", place(third))
            async with at(sent["address"]) as placed, second.connect() as reader:
                session = (await ask(placed, type="start", room_key=KEY))["session"]
                await until(lambda: known(second).with_session(ROOM) is not None)
                for server in servers:
                    await until(lambda server=server: server is third or known(server).with_session(ROOM) is not None)
                    assert await found(server) == {"session": session, "server": third.url, "ended": False}
                assert (await ask(reader, type="watch", session=ROOM))["address"] == place(third)
                async with first.connect() as again:  # the speaker's key leads to its room, too
                    assert (await ask(again, type="start", room_key=KEY))["address"] == place(third)
                async with at(place(third)) as watching:
                    assert (await ask(watching, type="watch", session=ROOM))["session"] == session
                    await speak(placed, SPEECH)
                    await say(placed, type="end")
                    assert final(await rest(watching)) == final(await rest(placed)) != {}
                # Whoever asks a little later is sent there as well.
                await until(lambda: not known(first).servers[third.url].sessions)
                assert await found(first) == {"session": session, "server": third.url, "ended": False}
                async with second.connect() as late:
                    assert (await ask(late, type="watch", session=ROOM))["address"] == place(third)


@pytest.mark.slow
@needs_nats
async def test_a_server_that_drains_or_is_full_gets_no_room_and_one_that_leaves_is_forgotten(new_service, tmp_path):
    services = [new_service(max_sessions=2), new_service(max_sessions=2), new_service(max_sessions=1)]
    async with directory(tmp_path) as url, AsyncExitStack() as stack:
        first, second = await stack.enter_async_context(serving_together(url, *services[:2]))
        async with serving_together(url, services[2]) as (third,):
            await until(lambda: len(known(third).servers) == 2)
            async with first.connect() as one, third.connect() as three:
                for other in (one, three):
                    assert (await ask(other, type="start"))["type"] == "started"
                second.service.draining = True
                await until(
                    lambda: known(first).servers[second.url].draining and known(first).servers[third.url].load == 1
                )
                async with first.connect() as speaker:
                    assert (await ask(speaker, type="start", room_key=KEY))["type"] == "started"
        await until(lambda: list(known(first).servers) == [second.url])


@needs_nats
async def test_pages_of_a_server_may_connect_to_the_others_and_no_others(new_service, tmp_path):
    async with directory(tmp_path) as url, serving_together(url, new_service(), new_service()) as (first, second):
        policy = (await first.get("/")).headers["content-security-policy"]
        assert f"connect-src 'self' ws://127.0.0.1:{second.port};" in policy
        async with first.connect(origin=second.url) as page:
            assert (await ask(page, type="watch", session="none"))["code"] == "no-session"
        with pytest.raises(InvalidStatus, match="403"):
            async with first.connect(origin="https://example.org"):
                pass
        assert (await first.get("/v1/languages", {"Origin": second.url}, "POST")).status == 403


@needs_nats
async def test_who_has_no_token_is_told_of_no_other_server(new_service, tmp_path):
    access = Access.of("a-token-of-the-speakers")
    services = new_service(max_sessions=1), new_service(max_sessions=1)
    async with (
        directory(tmp_path) as url,
        serving_together(url, *services, access=access) as (first, second),
        first.connect() as one,
    ):
        assert (await ask(one, type="start", token=access.token))["type"] == "started"
        async with first.connect() as speaker:
            assert (await ask(speaker, type="start", room_key=KEY))["code"] == "wrong-token"
        async with first.connect() as speaker:
            sent = await ask(speaker, type="start", room_key=KEY, token=access.token)
            assert sent["address"] == place(second)


@pytest.mark.slow
@needs_nats
async def test_a_directory_that_is_not_there_is_said_without_its_password(new_service):
    port = free_port()
    with pytest.raises(PipelineError, match=rf"the directory at 127\.0\.0\.1:{port} cannot be reached") as caught:
        async with Directory(new_service(), "http://127.0.0.1:1").joined(f"nats://secret@127.0.0.1:{port}"):
            pass
    assert "secret" not in str(caught.value)


def report(**changes: object) -> bytes:
    said = {"address": "http://one:8000", "capacity": 4, "languages": LANGUAGES, "draining": False, "sessions": {}}
    return json.dumps(said | changes).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"{}", b"\xff", b'"x"', report(address="one"), report(address="http://one/path"),
        report(address="http://one; script-src *"), report(address="javascript://one"), report(capacity=0),
        report(sessions={"x": "no room"}), report(sessions={"x" * 1000: ""}), report(sessions=[1]), report(languages=[["", []]]),
        report(languages=[1]), report(languages=LANGUAGES * 2), report(sessions={str(n): "" for n in range(2000)}),
        report(kept={"x": "no room"}), report(kept=[1]), report(kept={str(n): "" for n in range(2000)}),
    ],
)  # fmt: skip
def test_a_report_of_another_form_is_left_out(new_service, data):
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError, UsageError)):
        read_report(data, 0.0)
    here = Directory(new_service(), "http://here")
    here._take(data)
    assert here.peers.servers == {}


def test_a_room_goes_to_a_server_of_its_languages_with_the_lowest_load():
    peers = Peers(lambda: 0.0)
    for name, capacity, sessions, languages in (
        ("one", 4, 2, LANGUAGES), ("two", 10, 4, LANGUAGES), ("three", 4, 0, [("zh", ["en"])]),
    ):  # fmt: skip
        said = {f"{name}-{n}": "" for n in range(sessions)}
        peers.push(
            read_report(report(address=f"http://{name}", capacity=capacity, sessions=said, languages=languages), 0.0)
        )
    assert peers.with_room_for("en", ["zh"], 0.9) == "http://two"
    assert peers.with_room_for("en", ["zh"], 0.9) == "http://one"  # the first has got one since, and both have half
    assert peers.with_room_for("en", ["zh"], 0.3) is None
    assert peers.with_room_for("zh", ["en"], 0.3) == "http://three"
    assert peers.with_room_for("zh", ["en"], 0.0) is None
    assert peers.with_room_for("fr", [], 0.9) is None


def test_a_room_on_a_server_that_drains_is_begun_anew_elsewhere(new_service):
    here, start = Directory(new_service(), "http://here"), Start(room_key=KEY)
    here._take(report(sessions={"session": ROOM}))
    with pytest.raises(ProtocolError, match="another server takes this"):
        here.check(start, Access(), {})
    here._take(report(sessions={"session": ROOM}, draining=True))
    here.check(start, Access(), {})


def test_the_sessions_of_a_server_that_is_not_heard_have_ended_unless_the_directory_was_away():
    now = [0.0]
    peers = Peers(lambda: now[0])
    peers.push(read_report(report(sessions={"session": ROOM}, kept={"earlier": ROOM}), now[0]))
    now[0] = 3 * GONE_S
    peers.drop_silent(since_s=2.5 * GONE_S)
    assert peers.with_session(ROOM) == ("http://one:8000", "session")
    peers.drop_silent(since_s=0.0)
    assert peers.with_session(ROOM) is None
    assert {ROOM, "session", "earlier"} == set(peers.ended)
    peers.push(read_report(report(sessions={"another": ROOM}), now[0]))
    assert set(peers.ended) == {"session", "earlier"}


@needs_nats
@pytest.mark.slow
async def test_a_server_that_is_killed_in_mid_talk_ends_its_rooms_and_the_talk_goes_on_elsewhere(tmp_path):
    async with directory(tmp_path) as url, AsyncExitStack() as stack:
        options = ["--directory", url, "--max-sessions", "1"]
        servers = [await stack.enter_async_context(command(*options)) for _ in range(3)]
        first, *others = servers
        async with first.connect() as one:
            assert (await ask(one, type="start"))["type"] == "started"
            async with asyncio.timeout(HANG_S):
                while (sent := await asked(first)).get("code") != "elsewhere":
                    await asyncio.sleep(0.1)
            killed = next(server for server in others if sent["address"] == place(server))
            (left,) = (server for server in others if server is not killed)
            speaker = await stack.enter_async_context(at(sent["address"]))
            session = (await ask(speaker, type="start", room_key=KEY))["session"]
            await speak(speaker, SPEECH)
            async with asyncio.timeout(HANG_S):
                while (await found(first))["session"] != session:
                    await asyncio.sleep(0.1)
                killed.process.kill()
                while not (await found(first))["ended"]:
                    await asyncio.sleep(0.1)
            assert await found(first) == {"session": None, "server": None, "ended": True}
            async with first.connect() as reader:
                told = await ask(reader, type="watch", session=ROOM)
            assert (told["code"], "has ended" in told["message"]) == ("no-session", True)
            assert (await asked(first))["address"] == place(left)


async def asked(server: Command) -> dict[str, Any]:
    """What a speaker is told who begins a room."""
    async with server.connect() as speaker:
        return await ask(speaker, type="start", room_key=KEY)
