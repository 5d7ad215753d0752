"""Several servers that share out rooms over NATS: where a room is begun, how readers find it, and what the end of a server is."""

import asyncio
import json
import re
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import nats
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from pipeline.errors import PipelineError
from pipeline.server.access import Access
from pipeline.server.directory import Directory
from pipeline.server.peers import Peers
from pipeline.server.service import Service
from tests.conftest import HANG_S, PHRASES, ROOT, read_wav
from tests.server.running import Running, ask, final, rest, running, say, speak, until
from tests.server.test_deploy import free_port, replaced
from tests.server.test_directory_rules import KEY, ROOM, having, report
from tests.server.test_serve import Command, certificate, command, openssl

__all__ = ["certificate"]  # a fixture

NATS = shutil.which("nats-server")
needs_nats = pytest.mark.skipif(NATS is None, reason="nats-server is not installed; .ci/run installs it")
SPEECH = read_wav(PHRASES)[:32_000]


@asynccontextmanager
async def directory(folder: Path, *options: str | Path, port: int | None = None) -> AsyncIterator[str]:
    """A NATS server for the time of the block: its address. ``options``: instead of a token."""
    assert NATS is not None
    port = port or free_port()
    log = folder / f"nats-{time.monotonic_ns()}.log"
    process = await asyncio.create_subprocess_exec(
        NATS, "--addr", "127.0.0.1", "--port", str(port), "--log", log, *(options or ("--auth", "a-token"))
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


async def told_again(server: Running) -> None:
    """Wait for a report of each of the others."""
    before_s = max(peer.heard_s for peer in known(server).servers.values())
    await until(lambda: all(peer.heard_s > before_s for peer in known(server).servers.values()))


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
                await until(lambda: known(second).in_room(ROOM) is not None)
                for server in servers:
                    await until(lambda server=server: server is third or known(server).in_room(ROOM) is not None)
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
                second.service.places.draining = True
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
async def test_who_asks_for_a_room_without_its_name_is_told_of_no_session(new_service, tmp_path):
    access = Access.of("a-token-of-the-speakers")
    services = [new_service() for _ in range(3)]
    async with (
        directory(tmp_path) as url,
        serving_together(url, *services, access=access) as (first, second, third),
        third.connect() as speaker,
    ):
        session = (await ask(speaker, type="start", token=access.token))["session"]
        await until(lambda: all(known(server).with_id(session) == third.url for server in (first, second)))
        for server in (first, second):
            for query in ("", "?name", "?name=", "?name=&name=", "?name=None", "?name=%00", f"?name={session}"):
                answer = json.loads((await server.get(f"/v1/room{query}")).body)
                assert answer == {"session": None, "server": None, "ended": False}
            async with server.connect() as reader:
                assert (await ask(reader, type="watch", session=""))["code"] == "no-session"


@pytest.mark.slow
@needs_nats
async def test_a_burst_of_rooms_is_shared_out_although_reports_come_before_the_speakers(new_service, tmp_path):
    services = [new_service(max_sessions=1), new_service(max_sessions=8), new_service(max_sessions=8)]
    async with (
        directory(tmp_path) as url,
        serving_together(url, *services) as (first, second, third),
        first.connect() as one,
    ):
        assert (await ask(one, type="start"))["type"] == "started"
        places: Counter[str] = Counter()
        for number in range(6):
            async with first.connect() as speaker:
                sent = await ask(speaker, type="start", room_key=f"{KEY}-{number}")
            places[sent["address"]] += 1
            if number % 2:
                await told_again(first)
        assert places == {place(second): 3, place(third): 3}


@pytest.mark.slow
@needs_nats
async def test_forged_servers_take_no_more_room_in_answers_than_there_is(new_service, tmp_path):
    async with directory(tmp_path) as url, serving_together(url, new_service(), new_service()) as (first, second):
        forger = await nats.connect(url)
        for number in range(1000):
            await forger.publish(
                "speech-translation.servers", report(address=f"https://{'a' * 230}{number:04d}.example")
            )
        await forger.close()
        await until(lambda: known(first).full)
        answer = await first.get("/")
        assert sum(len(name) + len(value) + 4 for name, value in answer.headers.items()) < 4096
        assert f"ws://127.0.0.1:{second.port};" in answer.headers["content-security-policy"]


@pytest.fixture
def closed(tmp_path: Path, certificate: tuple[Path, Path]) -> tuple[str | Path, ...]:
    """The options of a NATS server with the configuration of the documentation, and a user for others."""
    (config,) = re.findall(r"```\n(listen: .*?)```", (ROOT / "docs" / "capacity.md").read_text("utf-8"), re.DOTALL)
    other = '{ user: other, password: "right", permissions: { publish: "other.>", subscribe: "other.>" } }'
    changes = (
        ("nats.pem", str(certificate[0])),
        ("nats.key", str(certificate[1])),
        ("A-LONG-PASSWORD", "right"),
        ("] }", f"{other} ] }}"),
    )
    path = tmp_path / "nats.conf"
    path.write_text(replaced(config, *changes, ("tls {", "tls { timeout: 60, ")), "utf-8")
    return "--config", path


@pytest.mark.slow
@needs_nats
@openssl
async def test_a_directory_with_tls_and_users_is_closed_to_others(
    new_service, tmp_path, closed, certificate, monkeypatch, caplog
):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    async with directory(tmp_path, *closed, port=(port := free_port())):
        url = f"tls://captions:right@localhost:{port}"
        async with serving_together(url, new_service(), new_service()) as (first, second):
            other = Directory(new_service(), "http://forged:1")
            async with other.joined(f"tls://other:right@localhost:{port}"):
                await until(lambda: "permissions violation" in caplog.text.lower())
                await told_again(first)
                assert list(known(first).servers) == [second.url]
                assert other.peers.servers == {}
            async with first.connect() as reader:
                assert (await ask(reader, type="watch", session=ROOM))["code"] == "no-session"


@pytest.mark.slow
@needs_nats
@openssl
@pytest.mark.parametrize(
    ("user", "trusted", "secure", "said"),
    [
        ("captions:wrong", True, True, "Authorization Violation"),
        ("captions:right", False, True, "certificate verify failed"),
        ("captions:right", True, False, "it speaks no TLS"),
    ],
)
async def test_nothing_is_said_to_a_directory_that_does_not_prove_itself_or_does_not_know_this_server(
    user, trusted, secure, said, new_service, tmp_path, closed, certificate, monkeypatch
):
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    async with directory(
        tmp_path, *(closed if secure else ("--user", "captions", "--pass", "right")), port=(port := free_port())
    ):
        with pytest.raises(
            PipelineError, match=rf"the directory at localhost:{port} cannot be reached .*{said}"
        ) as caught:
            async with Directory(new_service(), "http://127.0.0.1:1").joined(f"tls://{user}@localhost:{port}"):
                pass
        assert user.partition(":")[2] not in str(caught.value)


@pytest.mark.slow
@needs_nats
async def test_a_directory_that_is_not_there_is_said_without_its_password(new_service):
    port = free_port()
    with pytest.raises(PipelineError, match=rf"the directory at 127\.0\.0\.1:{port} cannot be reached") as caught:
        async with Directory(new_service(), "http://127.0.0.1:1").joined(f"nats://secret@127.0.0.1:{port}"):
            pass
    assert "secret" not in str(caught.value)


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


@needs_nats
@pytest.mark.slow
async def test_a_server_that_dies_with_the_directory_is_not_given_out_while_that_is_away(new_service, tmp_path):
    services, port = (new_service(max_sessions=4), new_service(max_sessions=4)), free_port()
    async with AsyncExitStack() as stack:
        async with directory(tmp_path, port=port) as url:
            first, second = await stack.enter_async_context(serving_together(url, *services))
            dying = await stack.enter_async_context(command("--directory", url, "--max-sessions", "100"))
            await until(lambda: all(len(known(server).servers) == 2 for server in (first, second)))
            async with at(place(dying)) as speaker:
                assert (await ask(speaker, type="start", room_key=KEY))["type"] == "started"
                await until(lambda: all(known(server).in_room(ROOM) is not None for server in (first, second)))
                assert (await asked(first))["code"] == "elsewhere"
                dying.process.kill()
                await dying.process.wait()
        for server in (first, second):  # NATS has gone, too
            await until(lambda server=server: known(server).heard == [])
            assert await found(server) == {"session": None, "server": None, "ended": False}
            async with server.connect() as reader:
                assert (await ask(reader, type="watch", session=ROOM))["code"] == "no-session"
        async with first.connect() as other, first.connect() as speaker:
            assert (await ask(other, type="start"))["type"] == "started"
            session = (await ask(speaker, type="start", room_key=KEY))["session"]
            assert (await asked(second))["type"] == "started"  # which cannot know
            async with directory(tmp_path, port=port):
                await until(lambda: all(len(known(server).servers) == 1 for server in (first, second)))
                await until(lambda: having(known(second)) == (first.url, session))
                async with second.connect() as again:
                    assert (await ask(again, type="start", room_key=KEY[1:]))["type"] == "started"


@needs_nats
@pytest.mark.slow
async def test_of_two_talks_in_a_room_that_begin_while_the_directory_is_away_one_goes_on(new_service, tmp_path):
    port = free_port()
    async with AsyncExitStack() as stack:
        async with directory(tmp_path, port=port) as url:
            first, second = await stack.enter_async_context(serving_together(url, new_service(), new_service()))
        one, two, reader = [await stack.enter_async_context(each.connect()) for each in (first, second, second)]
        session = (await ask(one, type="start", room_key=KEY))["session"]
        assert (await ask(two, type="start", room_key=KEY))["type"] == "started"
        assert (await ask(reader, type="watch", session=ROOM))["type"] == "watching"
        (ending,) = second.service.sessions.values()
        ending.name = f"9{ending.name[1:]}"  # it has begun later, if both have in one second
        await speak(two, SPEECH)
        await until(lambda: ending.intake.received == len(SPEECH))
        async with directory(tmp_path, port=port):
            told = await rest(two)
            assert [each["type"] for each in told[-2:]] == ["end", "error"]
            assert (told[-1]["code"], "on another server" in told[-1]["message"]) == ("room-busy", True)
            text = final(told)
            read = await rest(reader)
            assert (read[-1]["type"], final(read)) == ("end", text)
            assert text  # what was heard is translated
            for server in (first, second):
                await until(lambda server=server: having(known(server)) in (None, (first.url, session)))
                assert await found(server) == {"session": session, "server": first.url, "ended": False}
            async with second.connect() as late:
                assert (await ask(late, type="watch", session=ROOM))["address"] == place(first)
            await speak(one, SPEECH)
            await say(one, type="end")
            assert final(await rest(one)) == text


async def asked(server: Running | Command) -> dict[str, Any]:
    """What a speaker is told who begins a room."""
    async with server.connect() as speaker:
        return await ask(speaker, type="start", room_key=KEY)
