"""The command: what it refuses, TLS, and signals."""

import asyncio
import gc
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from websockets.asyncio.client import connect

from pipeline.apps.listening import tls_context
from pipeline.apps.self_signed import self_signed
from pipeline.apps.serve import run
from pipeline.errors import UsageError
from tests.conftest import HANG_S, PHRASE_SECONDS, PHRASES, ROOT, read_wav
from tests.server.running import ask, rest, say, speak

TOKEN = "0123456789abcdef"
SPEECH = read_wav(PHRASES)
openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="makes the certificate with openssl")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for this machine that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    paths = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", str(paths[0]), "-keyout", str(paths[1])]
    subprocess.run([*command, *names], check=True, capture_output=True)
    return paths


@pytest.fixture(scope="module")
def token_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("token") / "token"
    path.write_text(f"{TOKEN}\n")
    return path


def refused(*options: str | Path) -> str:
    """What the command says before it ends."""
    with pytest.raises(UsageError) as error:
        run(["--config", "demo-zh", *map(str, options)])
    return str(error.value)


def test_other_machines_need_a_token():
    assert "no token is set; give --token-file" in refused("--host", "0.0.0.0")
    assert "no token is set; give --token-file" in refused("--host", "::")
    assert "no token is set; give --token-file" in refused("--proxy", "127.0.0.1")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--allow-host", "https://captions.example"),
        ("--allow-host", "captions.example:443"),
        ("--allow-host", "captions.example/"),
        ("--allow-host", "bücher.example"),
        ("--allow-origin", "captions.example"),
        ("--allow-origin", "https://captions.example/page"),
        ("--allow-origin", "null"),
    ],
)
def test_names_that_no_request_can_have_are_invalid_usage(option, value, token_file):
    said = refused("--token-file", token_file, option, value)
    assert f"{option} is" in said
    assert "such as" in said


@pytest.mark.parametrize("value", ["proxy.example", "*", "10.0.0.1/8"])
def test_a_proxy_is_named_by_its_address(value, token_file, capsys):
    with pytest.raises(SystemExit) as ended:
        run(["--config", "demo-zh", "--token-file", str(token_file), "--proxy", value])
    assert ended.value.code == 2
    assert "give that of the proxy, such as 127.0.0.1" in capsys.readouterr().err


def test_a_token_file_must_have_a_token(tmp_path):
    file = tmp_path / "token"
    assert "cannot read the token file" in refused("--token-file", file)
    assert "cannot read the token file" in refused("--token-file", tmp_path)
    file.write_bytes(b"\xff" * 20)
    assert "it is not text" in refused("--token-file", file)
    for text in ("", "short", "0123456789abcde\n", "a" * 16 + "\n" + "b" * 16, "0123456789 abcdef", "ä" * 16):
        file.write_text(text, "utf-8")
        said = refused("--token-file", file)
        assert "at least 16" in said
        assert not text.strip() or text.strip() not in said


@openssl
def test_a_certificate_needs_its_key(certificate, tmp_path):
    cert, key = certificate
    assert "--tls-cert is given without --tls-key" in refused("--tls-cert", cert)
    assert "--tls-key is given without --tls-cert" in refused("--tls-key", key)
    assert "cannot use the certificate" in refused("--tls-cert", cert, "--tls-key", tmp_path / "missing")
    assert "cannot use the certificate" in refused("--tls-cert", key, "--tls-key", key)
    (tmp_path / "text").write_text("no certificate")
    said = refused("--tls-cert", tmp_path / "text", "--tls-key", key)
    assert said.endswith("[SSL] PEM lib; give two PEM files that belong together")
    other = tmp_path / "other.pem"
    subprocess.run(["openssl", "genrsa", "-out", other, "2048"], check=True, capture_output=True)
    assert "cannot use the certificate" in refused("--tls-cert", cert, "--tls-key", other)
    locked = tmp_path / "locked.pem"
    lock = ["openssl", "rsa", "-in", key, "-aes256", "-passout", "pass:secret", "-out", locked]
    subprocess.run(lock, check=True, capture_output=True)
    assert "has a password" in refused("--tls-cert", cert, "--tls-key", locked)


def test_an_own_certificate_excludes_another(token_file, certificate):
    assert "leave --tls-cert and --tls-key out" in refused("--tls", "auto", "--tls-cert", certificate[0])


def test_an_own_certificate_must_be_kept(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot keep the certificate of --tls auto in .*file/self-signed.pem: "):
        self_signed(["localhost"], tmp_path / "file")


def test_an_own_certificate_stays_while_it_names_the_machine(tmp_path):
    names = ["localhost", "127.0.0.1", "::1", "192.0.2.5"]
    path, first = self_signed(names, tmp_path)
    assert self_signed(names[1:], tmp_path) == (path, first)
    path, second = self_signed([*names, "192.0.2.6"], tmp_path)
    assert second != first
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    for damaged in (b"", path.read_bytes()[:400]):
        path.write_bytes(damaged)
        assert self_signed(names, tmp_path)[1] not in (first, second)
        tls_context(path, path)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize(("days", "stays"), [(30, False), (40, True)])
def test_an_own_certificate_is_renewed_before_it_expires(days, stays, tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.apps.self_signed._VALID", timedelta(days=days))
    first, second = (self_signed(["localhost"], tmp_path)[1] for _ in range(2))
    assert (first == second) is stays


def test_an_address_must_be_free_and_ours(token_file):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = refused("--port", str(taken.getsockname()[1]))
        assert "cannot listen on 127.0.0.1" in said
        assert "in use; choose another --host or --port" in said
    # 192.0.2.0/24 is for documentation: no machine has such an address.
    for host in ("192.0.2.1", "name.invalid"):
        assert f"cannot listen on {host}" in refused("--host", host, "--token-file", token_file)


def test_missing_packages_are_named(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name in ("uvicorn", "segno") else find(name, *rest)
    )
    assert "the server needs uvicorn, segno; install them with pip" in refused()


def test_records_need_a_folder(tmp_path):
    (tmp_path / "file").touch()
    assert "cannot write records into" in refused("--record", tmp_path / "file")


class Command:
    """The command in a process of its own, and what it has written."""

    def __init__(self, process: asyncio.subprocess.Process, said: bytes) -> None:
        self.process, self.said = process, said
        found = re.search(rb"serving on (https?)://[^/]*:(\d+)/", said)
        assert found is not None, said.decode()
        self.secure, self.port = found[1] == b"https", int(found[2])

    def connect(self, context: ssl.SSLContext | None = None) -> connect:
        scheme = "wss" if self.secure else "ws"
        return connect(f"{scheme}://127.0.0.1:{self.port}/v1/session", ssl=context, max_size=None, proxy=None)

    async def status(self) -> int:
        """Wait for the end of the process."""
        assert self.process.stderr is not None
        self.said += await self.process.stderr.read()
        return await self.process.wait()


@asynccontextmanager
async def command(*options: str | Path, before: str = "") -> AsyncIterator[Command]:
    """Start the command with the demo's translator and the smallest recogniser on a free port; kill it at the end if it still runs.

    ``before``: Python that the process runs first.
    """
    program = ["-c", f"{before}; from pipeline.serve import main; main()"] if before else ["-m", "pipeline.serve"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *program, "--config", "demo-zh", "--asr", "tiny.en", "--port", "0", *map(str, options),
        stderr=subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(HANG_S):
            assert process.stderr is not None
            said = b""
            while b"serving on" not in said and (line := await process.stderr.readline()):
                said += line
            yield Command(process, said)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.slow
@openssl
async def test_sigterm_lets_speakers_end_over_tls(certificate, token_file, tmp_path):
    cert, key = certificate
    phrase = SPEECH[: round(PHRASE_SECONDS * 16_000)]
    options = ["--tls-cert", cert, "--tls-key", key, "--token-file", token_file, "--record", tmp_path / "records"]
    async with command(*options) as server:
        assert server.secure
        context = ssl.create_default_context(cafile=str(cert))
        async with server.connect(context) as speaker:
            await ask(speaker, type="start", token=TOKEN)
            await speak(speaker, phrase)
            while json.loads(await speaker.recv()).get("received") != len(phrase):
                pass
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"no TLS, \x1b[31m\r\n\r\n")
            await reader.read()
            writer.close()
            server.process.send_signal(signal.SIGTERM)
            records = await rest(speaker)
            assert records[-1]["type"] == "end"
            assert records[-1]["duration_s"] == pytest.approx(len(phrase) / 16_000, abs=1e-4)
            assert speaker.close_code == 1000
        assert await server.status() == 0
        first, second, *lines = server.said.decode().splitlines()
        assert first.startswith("serving on https://127.0.0.1:")
        assert second.startswith("stopping:")
        assert [line.split()[:2] for line in lines] == [["INFO:", "session"]]
    (jsonl,) = (tmp_path / "records").glob("*.jsonl")
    assert jsonl.stat().st_mode & 0o777 == 0o600
    assert json.loads(jsonl.read_text("utf-8").splitlines()[-1])["type"] == "end"


@pytest.mark.slow
def test_a_laptop_serves_its_network_with_a_certificate_of_its_own(token_file, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path))

    async def work() -> bytes:
        async with command("--tls", "auto", "--host", "0.0.0.0", "--token-file", token_file) as server:
            assert server.process.stderr is not None
            line = await server.process.stderr.readline()
            path = Path(re.findall(rb"its certificate is in (\S+\.pem);", line)[0].decode())
            assert path.is_relative_to(tmp_path)
            assert os.stat(path).st_mode & 0o777 == 0o600
            context = ssl.create_default_context(cafile=str(path))
            async with server.connect(context) as speaker:
                assert (await ask(speaker, type="start", token=TOKEN))["type"] == "started"
            for host in re.findall(rb"https://([\d.]+):", server.said):  # none on a machine without a network
                address = f"wss://{host.decode()}:{server.port}/v1/session"
                async with connect(address, ssl=context, proxy=None) as speaker:
                    await say(speaker, type="end")
            return line

    first, second = asyncio.run(work()), asyncio.run(work())
    assert first == second  # the fingerprint, too


@pytest.mark.slow
async def test_malformed_forms_are_not_logged():
    body = b"what a client writes"
    head = f"Content-Type: multipart/form-data; boundary=X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    async with command() as server:
        for path in ("/translate", "/v1/audio/transcriptions"):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}".encode() + body)
            assert (await reader.readline()).split()[1] == b"400"
            writer.close()
        server.process.send_signal(signal.SIGTERM)
        assert await server.status() == 0
        assert len(server.said.splitlines()) == 2  # where it serves, and that it stops


@pytest.mark.slow
async def test_a_second_signal_ends_at_once():
    # The drain would last until everything is translated.
    patient = "from pipeline.server.limits import ServerLimits as L; L.__init__.__kwdefaults__['drain_s'] = 1e6"
    async with command(before=patient) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        for _ in range(3):
            await speak(speaker, SPEECH)
        server.process.send_signal(signal.SIGINT)
        assert server.process.stderr is not None
        assert b"stopping" in await server.process.stderr.readline()
        server.process.send_signal(signal.SIGTERM)
        records = await rest(speaker)
        assert not records or records[-1]["type"] != "end"
        assert await server.status() == 0


@pytest.mark.slow
def test_sigterm_while_models_are_loaded_ends_at_once():
    # Loading takes for ever here, so that the signal surely comes within it.
    program = """
import sys, threading
from pipeline.apps import serve
from pipeline.console.cli import main_program
def load_shared(configs, **_):
    print("loading", flush=True)
    threading.Event().wait()
serve.load_shared = load_shared
main_program(serve.run)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program, "--config", "demo-zh", "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == b"loading\n"
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=HANG_S)
    assert (process.returncode, said) == (130, b"")


def test_models_are_left_out_of_collections_of_garbage(monkeypatch):
    def measured(models: object) -> int:
        raise UsageError(str(gc.get_freeze_count()))

    monkeypatch.setattr("pipeline.apps.serve.load_shared", lambda *_, **__: [])
    monkeypatch.setattr("pipeline.apps.serve.measured_sessions", measured)
    try:
        assert int(refused("--port", "0", "--max-sessions", "auto")) > 10_000
    finally:
        gc.unfreeze()


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
def test_as_many_files_may_be_open_as_the_system_allows():
    program = """
import resource
from pipeline.apps.serve import within_files
from pipeline.server.limits import ServerLimits
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 700))
print(within_files(ServerLimits(connections=500)).connections, resource.getrlimit(resource.RLIMIT_NOFILE))
print(within_files(ServerLimits(connections=501)).connections)
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
print(within_files(ServerLimits()).connections)
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, cwd=ROOT, timeout=HANG_S)
    assert done.stdout.decode().split("\n")[:3] == ["500 (700, 700)", "500", "16"]
    assert b"at most 500 connections, as this process may open 700 files" in done.stderr
