"""Two servers behind nginx with the files in examples/deploy: a room's readers reach the server of its speaker."""

import asyncio
import ssl
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect

from pipeline.server.access import Access
from pipeline.server.protocol import room_name
from tests.conftest import HANG_S, PHRASES, read_wav
from tests.server.running import ask, final, rest, running, say, speak, until
from tests.server.test_deploy import DEPLOY, NAME, NGINX, TOKEN, free_port, nginx, proxying, replaced
from tests.server.test_serve import Command, certificate, command, openssl

__all__ = ["certificate"]  # a fixture

SPEECH = read_wav(PHRASES)[:32_000]
KEYS = [f"key-of-a-room-for-a-test-{number}" for number in range(40)]
# Readers come from another address than speakers.
SPEAKER, READER = "127.0.0.1", "127.0.0.3"


def nginx_for(servers: list[int], folder: Path, port: int, cert: Path, key: Path) -> list[str]:
    """The command that runs nginx with the examples before servers at these ports."""
    found = nginx(folder, port, 8000, cert, key)
    several = replaced(
        (DEPLOY / "nginx-several.conf").read_text("utf-8"),
        *(
            (f"server 127.0.0.1:800{number} ", f"server 127.0.0.1:{server} ")
            for number, server in enumerate(servers, 1)
        ),
    )
    text = replaced(
        (folder / "nginx.conf").read_text("utf-8"),
        ("proxy_pass http://127.0.0.1:8000;", "proxy_pass http://speech_servers;"),
        ("http { ", f"http {{ {several}"),
    )
    (folder / "nginx.conf").write_text(text, "utf-8")
    return found


class Site:
    """What clients reach through the proxy."""

    def __init__(self, port: int, cert: Path) -> None:
        self._port, self._context = port, ssl.create_default_context(cafile=str(cert))

    def connect(self, room: str, address: str) -> connect:
        return connect(
            f"wss://{NAME}/v1/session?room={room}", host="127.0.0.1", port=self._port, ssl=self._context, proxy=None,
            max_size=None, origin=f"https://{NAME}", server_hostname="localhost", local_addr=(address, 0),
        )  # fmt: skip

    async def newest(self, room: str) -> str | None:
        """The session in a room, as the readers' page asks."""
        transport = httpx.AsyncHTTPTransport(verify=self._context, local_address=READER)
        host = {"Host": f"{NAME}:{self._port}"}
        async with httpx.AsyncClient(transport=transport, headers=host, timeout=HANG_S) as http:
            return await _session(http, f"https://127.0.0.1:{self._port}", room)

    async def start(self, speaker: ClientConnection, key: str) -> dict[str, Any]:
        return await ask(speaker, type="start", room_key=key, token=TOKEN)


async def _session(http: httpx.AsyncClient, url: str, room: str) -> str | None:
    found: str | None = (await http.get(f"{url}/v1/room", params={"name": room})).json()["session"]
    return found


async def has(server: Command, room: str) -> bool:
    """Whether a server has a session in the room."""
    async with httpx.AsyncClient(timeout=HANG_S) as http:
        return await _session(http, f"http://127.0.0.1:{server.port}", room) is not None


async def speak_and_read(site: Site, speaker: ClientConnection, key: str) -> None:
    room = room_name(key)
    found = {await site.newest(room) for _ in range(5)}
    assert None not in found, "servers are asked in turn"
    (session,) = found
    async with site.connect(room, READER) as reader:
        assert (await ask(reader, type="watch", session=room))["session"] == session
        await speak(speaker, SPEECH)
        await say(speaker, type="end")
        spoken, read = await asyncio.gather(rest(speaker), rest(reader))
    assert final(spoken) == final(read) != {}


@pytest.mark.slow
@openssl
@pytest.mark.skipif(NGINX is None, reason="needs nginx, which .ci/run installs")
@pytest.mark.skipif(sys.platform != "linux", reason="needs several addresses of the loopback interface")
async def test_rooms_are_shared_out_and_move_when_their_server_is_killed(certificate, tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKEN)
    options = ["--token-file", token, "--allow-host", NAME, "--proxy", "127.0.0.1", "--max-sessions", "40"]
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(command(*options)) for _ in range(2)]
        port = free_port()
        nginx = nginx_for([server.port for server in servers], tmp_path, port, *certificate)
        await stack.enter_async_context(proxying(nginx, tmp_path, port))
        site = Site(port, certificate[0])
        speakers: dict[bool, tuple[ClientConnection, str]] = {}  # in a room on each server
        for key in KEYS:
            speaker = await stack.enter_async_context(site.connect(room_name(key), SPEAKER))
            assert (await site.start(speaker, key))["type"] == "started"
            first, second = [await has(server, room_name(key)) for server in servers]
            assert first != second
            if first in speakers:
                await speaker.close()
            speakers.setdefault(first, (speaker, key))
            if len(speakers) == len(servers):
                break
        assert len(speakers) == len(servers), "all rooms are on one server"
        await asyncio.gather(*(speak_and_read(site, *each) for each in speakers.values()))

        servers[0].process.kill()
        await servers[0].process.wait()
        _, key = speakers[True]
        async with site.connect(room_name(key), SPEAKER) as speaker:
            assert (await site.start(speaker, key))["type"] == "started"
            assert await has(servers[1], room_name(key))
            await speak_and_read(site, speaker, key)


@openssl
@pytest.mark.skipif(NGINX is None, reason="needs nginx, which .ci/run installs")
async def test_servers_with_too_many_connections_are_not_left_out(new_service, certificate, tmp_path):
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(
                running(new_service(connections=1, request_s=HANG_S), Access.of(TOKEN, [NAME]), proxies=["127.0.0.1"])
            )
            for _ in range(2)
        ]
        port = free_port()
        proxy = nginx_for([server.port for server in servers], tmp_path, port, *certificate)
        await stack.enter_async_context(proxying(proxy, tmp_path, port))
        context = ssl.create_default_context(cafile=str(certificate[0]))
        host = {"Host": f"{NAME}:{port}", "Connection": "close"}
        http = await stack.enter_async_context(httpx.AsyncClient(verify=context, headers=host, timeout=HANG_S))

        async def status() -> int:
            return (await http.get(f"https://127.0.0.1:{port}/healthz")).status_code

        held = [await asyncio.open_connection("127.0.0.1", server.port) for server in servers]
        connections = [server.server.server_state.connections for server in servers]
        await until(lambda: all(connections))
        assert [await status() for _ in range(3)] == [503] * 3
        for _, writer in held:
            writer.close()
        await until(lambda: not any(connections))
        assert await status() == 200
