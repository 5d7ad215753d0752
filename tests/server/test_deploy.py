"""The files in examples/deploy: nginx and Caddy before a server that runs, the unit, and the container's command."""

import asyncio
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import AsyncOpenAI
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from pipeline import Models, PipelineConfig
from pipeline.apps.listening import access_of
from pipeline.apps.options import configured_several
from pipeline.apps.serve import arguments
from pipeline.bench.words import scored_units
from pipeline.server.access import Access
from pipeline.server.limits import ServerLimits
from tests.conftest import HANG_S, PHRASES, ROOT, read_wav, spoken_texts
from tests.server.running import Running, final, heard, rest, running, say, serving, speak
from tests.server.test_openai import SPEECH
from tests.server.test_serve import certificate, openssl

__all__ = ["certificate"]  # a fixture

DEPLOY = ROOT / "examples" / "deploy"
NAME, TOKEN = "captions.example", "0123456789abcdef"
LONG = bytes(20 << 20)
"""More than what sockets and proxies hold."""
PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
NGINX, CADDY = (shutil.which(name, path=PATH) for name in ("nginx", "caddy"))


def replaced(text: str, *changes: tuple[str, str]) -> str:
    """The text with each part replaced; every one must be there."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def nginx(folder: Path, port: int, server: int, cert: Path, key: Path) -> list[str]:
    """The command that runs nginx with the example on these ports."""
    http = replaced(
        (DEPLOY / "nginx.conf").read_text("utf-8"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("http://127.0.0.1:8000;", f"http://127.0.0.1:{server};"),
        ("/etc/ssl/captions.example.pem", str(cert)),
        ("/etc/ssl/captions.example.key", str(key)),
    )
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    user = "user root;" if os.name == "posix" and os.getuid() == 0 else ""  # reads the test's own folders
    main = f"daemon off; {user} pid {folder}/pid; error_log stderr; events {{}}"
    (folder / "nginx.conf").write_text(f"{main}\nhttp {{ access_log off; {temporary}\n{http}\n}}\n", "utf-8")
    return [str(NGINX), "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]


def caddy(folder: Path, port: int, server: int, cert: Path, key: Path) -> list[str]:
    """The command that runs Caddy with the example on these ports."""
    site = replaced(
        (DEPLOY / "Caddyfile").read_text("utf-8"),
        (f"{NAME} {{", f"https://{NAME}:{port} {{\n\ttls {cert} {key}"),
        ("127.0.0.1:8000", f"127.0.0.1:{server}"),
    )
    (folder / "Caddyfile").write_text(
        f"{{\n\tadmin off\n\tauto_https off\n\tdefault_bind 127.0.0.1\n}}\n{site}", "utf-8"
    )
    return [str(CADDY), "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


PROXIES = [
    pytest.param(
        command, marks=pytest.mark.skipif(found is None, reason=f"needs {name}, which .ci/run installs"), id=name
    )
    for name, command, found in (("nginx", nginx, NGINX), ("caddy", caddy, CADDY))
]


class Held:
    """Routes that show whether the proxy passes bytes on as they come."""

    def __init__(self) -> None:
        self.sent, self.taken = asyncio.Event(), asyncio.Event()
        self.routes = [
            Route("/down", self.down),
            Route("/up", self.up, methods=["POST"]),
            Route("/client", self.client),
        ]

    async def down(self, request: Request) -> Response:
        async def parts() -> AsyncIterator[str]:
            yield "first"
            await self.taken.wait()  # until the client has it
            yield "last"

        return StreamingResponse(parts())

    async def up(self, request: Request) -> Response:
        async for part in request.stream():
            if part:
                self.sent.set()
        return Response()

    async def client(self, request: Request) -> Response:
        assert request.client is not None
        return JSONResponse([request.client.host, request.url.scheme, request.headers["host"].partition(":")[0]])


class Proxied:
    """A server behind a proxy, as clients reach it: under its name, at a port of this machine."""

    def __init__(self, server: Running, held: Held, port: int, context: ssl.SSLContext) -> None:
        self.server, self.held, self.port, self.context = server, held, port, context

    def http(self, **options: Any) -> httpx.AsyncClient:
        host = {"Host": f"{NAME}:{self.port}"}
        return httpx.AsyncClient(
            base_url=f"https://127.0.0.1:{self.port}", verify=self.context, headers=host, timeout=HANG_S, **options
        )

    def connect(self, origin: str) -> connect:
        """A WebSocket of a page."""
        return connect(
            f"wss://{NAME}/v1/session", host="127.0.0.1", port=self.port, ssl=self.context, proxy=None,
            max_size=None, origin=origin, server_hostname="localhost",
        )  # fmt: skip


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@asynccontextmanager
async def proxying(command: Sequence[str], folder: Path, port: int) -> AsyncIterator[None]:
    """Run a proxy for the time of the block, from when it listens on the port."""
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command,
            env={**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)},
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        while True:
            assert process.returncode is None, (folder / "log").read_text("utf-8")
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.01)
            else:
                writer.close()
                break
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


@asynccontextmanager
async def proxied(
    command: Callable[[Path, int, int, Path, Path], list[str]],
    config: PipelineConfig,
    models: Models,
    certificate: tuple[Path, Path],
    folder: Path,
) -> AsyncIterator[Proxied]:
    held, port = Held(), free_port()
    access = Access.of(TOKEN, [NAME])
    async with (
        running(serving(config, models), access, held.routes, proxies=["127.0.0.1"]) as server,
        proxying(command(folder, port, server.port, *certificate), folder, port),
    ):
        yield Proxied(server, held, port, ssl.create_default_context(cafile=str(certificate[0])))


@pytest.mark.slow
@openssl
@pytest.mark.parametrize("command", PROXIES)
async def test_pages_sessions_and_files_pass_the_proxy(command, demo_config, demo_models, certificate, tmp_path):
    async with proxied(command, demo_config, demo_models, certificate, tmp_path) as proxy, proxy.http() as http:
        page = await http.get("/")
        assert page.status_code == 200
        assert "content-security-policy" in page.headers
        assert (await http.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})).status_code in (403, 404)
        async with proxy.connect(f"https://{NAME}") as speaker, proxy.connect(f"https://{NAME}") as reader:
            await say(speaker, type="start", token=TOKEN)
            await say(reader, type="watch", session=(await heard(speaker))["session"])
            await speak(speaker, read_wav(PHRASES)[:56_000])
            await say(speaker, type="end")
            spoken, read = await asyncio.gather(rest(speaker), rest(reader))
            assert final(spoken) == final(read)
            assert {language for _, language in final(spoken)} == {"en", "zh"}
            assert speaker.close_code == reader.close_code == 1000
        with pytest.raises(InvalidStatus, match="403"):
            await proxy.connect("https://elsewhere.example")
        client = AsyncOpenAI(base_url=f"{http.base_url}/v1/", api_key=TOKEN, max_retries=0, http_client=http)
        heard_text = (await client.audio.transcriptions.create(model="any", file=("talk.wav", SPEECH))).text
        said = scored_units(spoken_texts()["phrases"][0], "en")  # numbers as words: which, depends on the processor
        assert scored_units(heard_text, "en")[: len(said)] == said


@openssl
@pytest.mark.parametrize("command", PROXIES)
async def test_bytes_pass_the_proxy_as_they_come(command, demo_config, demo_models, certificate, tmp_path):
    async with proxied(command, demo_config, demo_models, certificate, tmp_path) as proxy, proxy.http() as http:
        async with http.stream("GET", "/down") as answer:
            parts = answer.aiter_text()
            assert await anext(parts) == "first"
            proxy.held.taken.set()
            assert "".join([part async for part in parts]) == "last"

        async def body() -> AsyncIterator[bytes]:
            yield b"first"
            await proxy.held.sent.wait()  # until the server has it
            yield b"last"

        assert (await http.post("/up", content=body())).status_code == 200


@openssl
@pytest.mark.parametrize("command", PROXIES)
async def test_a_refused_upload_gets_the_servers_answer(command, demo_config, demo_models, certificate, tmp_path):
    async with proxied(command, demo_config, demo_models, certificate, tmp_path) as proxy, proxy.http() as http:
        for headers, status in (({"Authorization": "Bearer wrong"}, 401), ({"Origin": "https://other.example"}, 403)):
            answer = await http.post("/v1/audio/transcriptions", files={"file": LONG}, headers=headers)
            assert answer.status_code == status


@openssl
@pytest.mark.skipif(sys.platform != "linux", reason="needs several addresses of the loopback interface")
@pytest.mark.parametrize("command", PROXIES)
async def test_the_server_knows_the_clients_address(command, demo_config, demo_models, certificate, tmp_path):
    async with proxied(command, demo_config, demo_models, certificate, tmp_path) as proxy:
        transport = httpx.AsyncHTTPTransport(verify=proxy.context, local_address="127.0.0.3")
        async with proxy.http(transport=transport) as http:
            found = await http.get("/client", headers={"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "http"})
            assert found.json() == ["127.0.0.3", "https", NAME]


def test_nginx_has_room_and_time_for_what_the_server_allows():
    text, limits = (DEPLOY / "nginx.conf").read_text("utf-8"), ServerLimits()
    (room,) = re.findall(r"client_max_body_size (\d+)m;", text)
    assert int(room) << 20 > limits.upload_bytes  # the form is larger than its file
    (hours,) = re.findall(r"proxy_read_timeout (\d+)h;", text)
    assert int(hours) * 3600 > limits.translating_s


def test_nginx_gives_a_lost_machine_up_before_the_pages_do():
    """A client that gives up earlier keeps nginx from leaving the server out."""
    (seconds,) = re.findall(r"proxy_connect_timeout (\d+)s;", (DEPLOY / "nginx.conf").read_text("utf-8"))
    script = (ROOT / "pipeline" / "server" / "static" / "connection.js").read_text("utf-8")
    (silent_ms,) = re.findall(r"const SILENT_MS = (\d+);", script)
    assert 1_000 * 2 * int(seconds) < int(silent_ms), "the next server may be lost too"


def commands() -> dict[str, list[str]]:
    """The options of the server in the unit, and in the container's file."""
    unit = (DEPLOY / "speech-translation.service").read_text("utf-8").replace("\\\n", " ")
    (start,) = re.findall(r"^ExecStart=\S+ -m pipeline\.serve (.*)$", unit, re.MULTILINE)
    lines = (DEPLOY / "Containerfile").read_text("utf-8").splitlines()
    entry, rest = (json.loads(line.split(maxsplit=1)[1]) for line in lines if line.startswith(("ENTRYPOINT", "CMD")))
    assert entry[:3] == ["python", "-m", "pipeline.serve"]
    return {"unit": shlex.split(start), "container": [*entry[3:], *rest]}


@pytest.mark.parametrize("name", ["unit", "container"])
def test_the_command_starts_a_server_that_others_may_reach(name, tmp_path):
    (tmp_path / "token").write_text(TOKEN)
    options = arguments().parse_args(commands()[name])
    assert options.token_file.name == "token"
    options.token_file = tmp_path / "token"
    assert access_of(options).token == TOKEN
    assert configured_several(options)


def test_the_unit_is_valid(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    unit = tmp_path / "speech-translation.service"
    text = (DEPLOY / "speech-translation.service").read_text("utf-8")
    unit.write_text(replaced(text, ("/opt/speech-translation/bin/python", sys.executable)), "utf-8")
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    said = [line for line in (done.stdout + done.stderr).splitlines() if unit.name in line]
    assert (done.returncode, said) == (0, []), done.stderr
    for number in re.findall(r"TimeoutStopSec=(\d+)", text):
        assert int(number) > 30  # the server's own limit
