"""What docs/security.md promises: who is let in, and what is answered, logged and kept."""

import asyncio
import json
import logging
import os
import re
import threading
from typing import Any

import pytest

from pipeline.errors import AudioError
from pipeline.media.audio.recording import Recording
from pipeline.server.access import Access
from tests.conftest import EXAMPLES, HANG_S, PHRASES, ROOT, read_wav
from tests.server.running import Running, ask, rest, running, say, speak, until

TOKEN = "0123456789abcdef"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SPEECH = read_wav(PHRASES)[:32_000]


@pytest.mark.parametrize(
    ("path", "status", "kept"),
    [
        ("/", 200, "no-cache"),
        ("/view/x", 200, "no-cache"),
        ("/static/index.js", 200, "no-cache"),
        ("/v1/info", 200, "no-store"),
        ("/metrics", 200, "no-store"),
        ("/missing", 404, "no-store"),
        ("/static/../app.py", 404, "no-store"),
        ("/static/..%2fapp.py", 404, "no-store"),
        ("/static/%2e%2e/%2e%2e/app.py", 404, "no-store"),
        ("/static//etc/passwd", 404, "no-store"),
        ("/static/%00", 404, "no-store"),
        ("/static/" + "a" * 5_000, 404, "no-store"),
        ("/view/x/qr.svg", 404, "no-store"),
    ],
)
async def test_every_answer_has_the_headers(path, status, kept, new_service):
    async with running(new_service()) as server:
        answer = await server.get(path)
        assert (answer.status, answer.headers["cache-control"]) == (status, kept)
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers


async def test_other_names_and_other_sites_pages_are_refused(new_service):
    async with running(new_service()) as server:
        refused = await server.get("/v1/info", {"Host": "evil.example"})
        assert refused.status == 421
        assert "content-security-policy" in refused.headers
        path, other = "/v1/audio/transcriptions", {"Origin": "http://evil.example"}
        assert (await server.get(path, other, "POST")).status == 403
        assert (await server.get(path, {"Origin": server.url}, "POST")).status == 400


async def test_pages_of_allowed_sites_may_use_the_interfaces_and_no_others(new_service):
    site, path = {"Origin": "https://example.org"}, "/v1/audio/transcriptions"
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization, x-any"}
    access = Access.of(TOKEN, origins=["https://Example.org/"])
    async with running(new_service(), access) as server:
        preflight = await server.get(path, {**site, **asked}, "OPTIONS")
        assert preflight.status == 200
        assert preflight.headers["access-control-allow-origin"] == "https://example.org"
        assert "POST" in preflight.headers["access-control-allow-methods"]
        assert preflight.headers["access-control-allow-headers"] == "authorization, x-any"
        for status, headers in ((401, site), (400, {**site, **BEARER})):
            answer = await server.get(path, headers, "POST")
            assert (answer.status, answer.headers["access-control-allow-origin"]) == (status, "https://example.org")
        other = await server.get("/v1/info", {"Origin": "https://other.example"})
        assert "access-control-allow-origin" not in other.headers
        assert (await server.get(path, {"Origin": "https://other.example", **asked}, "OPTIONS")).status == 403


async def test_figures_and_files_need_the_token(new_service):
    access = Access.of(TOKEN)
    async with running(new_service(), access) as server:
        for path, method in (("/metrics", "GET"), ("/v1/models", "GET"), ("/v1/audio/transcriptions", "POST")):
            for headers in ({}, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": f"Basic {TOKEN}"}):
                assert (await server.get(path, headers, method)).status == 401
            assert (await server.get(f"{path}?token={TOKEN}", {}, method)).status == 401
        assert (await server.get("/metrics", BEARER)).status == 200
        for path in ("/", "/v1/info", "/healthz", "/readyz"):
            assert (await server.get(path)).status == 200


async def test_tokens_cannot_be_tried_without_end(new_service):
    access = Access.of(TOKEN)
    async with running(new_service(connections_a_minute=3), access) as server:
        wrong = {"Authorization": "Bearer wrong"}
        assert [(await server.get("/v1/models", wrong)).status for _ in range(4)] == [401, 401, 401, 429]
        assert (await server.get("/v1/models", BEARER)).status == 429
        assert (await server.get("/v1/info")).status == 200


@pytest.mark.parametrize(("proxies", "status"), [([], 429), (["127.0.0.1"], 401)])
async def test_forwarded_addresses_are_believed_of_a_named_proxy_alone(proxies, status, new_service):
    limited = new_service(connections_a_minute=1)
    async with running(limited, Access.of(TOKEN), proxies=proxies) as server:
        for number in range(3):
            wrong = {"Authorization": "Bearer wrong", "X-Forwarded-For": f"192.0.2.{number}"}
            answer = await server.get("/v1/models", wrong)
        assert answer.status == status


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (r'{"type": "start", "token": "\ud800"}', "wrong-token"),
        (r'{"type": "\ud800"}', "bad-message"),
        (r'{"type": "start", "\ud800": 1}', "bad-message"),
        (r'{"type": "watch", "session": "\ud800"}', "no-session"),
        ("[" * 100_000, "bad-message"),
        ('{"type": "start", "sample_rate": ' + "9" * 10_000 + "}", "bad-message"),
    ],
)
async def test_strange_text_is_answered(message, code, new_service, caplog):
    async with running(new_service(), Access.of(TOKEN)) as server, server.connect() as socket:
        await socket.send(message)
        (answer,) = await rest(socket)
        assert answer["code"] == code
        assert len(answer["message"]) < 300
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_secrets_are_not_logged(new_service, caplog):
    async def work() -> dict[str, Any]:
        async with running(new_service(resume_s=0.0), Access.of(TOKEN)) as server:
            async with server.connect() as speaker:
                started = await ask(speaker, type="start", token=TOKEN)
                await speak(speaker, SPEECH)
            async with server.connect() as reader:
                await say(reader, type="watch", session=started["session"])
                await rest(reader)
            await server.get("/metrics", BEARER)
            return started

    with caplog.at_level(logging.DEBUG, "pipeline"):
        started = asyncio.run(work())
    assert "did not come back" in caplog.text
    assert "2.0 s of audio" in caplog.text
    for secret in (TOKEN, started["session"], started["key"]):
        assert secret not in caplog.text


async def test_requests_that_no_websocket_can_have_are_not_logged_and_do_not_stay(new_service, caplog):
    async with running(new_service()) as server:
        upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
        many = {f"X-{number}": "x" for number in range(200)}
        assert (await server.get("/v1/session", {**upgrade, **many})).status == 431
        assert (await server.get("/v1/session", {**upgrade, "X": "x" * 10_000})).status == 431
        async with server.connect() as socket:
            socket.transport.write(b"\x81\x82" + bytes(4) + b"\xff\xff")  # text that is not UTF-8, masked with zeros
            assert await rest(socket) == []
            assert socket.close_code == 1007
        await until(lambda: not server.server.server_state.connections)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_messages_are_not_compressed(new_service):
    async with running(new_service()) as server, server.connect() as socket:
        assert socket.response is not None
        assert "sec-websocket-extensions" not in socket.response.headers


async def test_the_code_of_a_page_is_drawn_for_sessions_alone(new_service):
    async with running(new_service()) as server, server.connect() as speaker:
        session = (await ask(speaker, type="start"))["session"]
        drawn = await server.get(f"/view/{session}/qr.svg")
        assert (drawn.status, drawn.headers["content-type"]) == (200, "image/svg+xml")
        assert b"<svg" in drawn.body
        assert (await server.get(f"/view/{'x' * 2_000}/qr.svg")).status == 404


async def transcribed(server: Running, name: str, data: bytes, parameters: str = "") -> tuple[int, dict[str, Any]]:
    """Upload a file under a name of the client's; the status and the answer. ``parameters``: more of the content type."""
    part = f'--X\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    body = part + data + b"\r\n--X--\r\n"
    head = (
        f"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: close\r\n"
        f"Content-Type: multipart/form-data; boundary=X{parameters}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    answer = await server.raw(head.encode() + body)
    return int(answer.split(b" ")[1]), json.loads(answer.split(b"\r\n\r\n", 1)[1])


@pytest.mark.parametrize("name", ["../../escaped", "/escaped", "..\\escaped", "a\\0b", "%2e%2e%2fescaped", "a" * 1_000])
def test_names_of_uploads_are_not_used(name, new_service, own_folder):
    async def work() -> tuple[int, dict[str, Any]]:
        async with running(new_service()) as server:
            return await transcribed(server, name, b"no audio")

    status, answer = asyncio.run(work())
    assert (status, answer["error"]["code"]) == (400, "no-audio")
    assert str(own_folder) not in answer["error"]["message"]
    assert not list(own_folder.iterdir())
    assert not list(own_folder.parent.glob("**/*escaped*"))


@pytest.mark.parametrize("charset", ["punycode", "idna", "utf-16", "unicode_escape", "x" * 1_000])
async def test_forms_are_read_as_utf_8_alone(charset, new_service):
    # The time of decoding punycode grows with the square of the length.
    async with running(new_service()) as server:
        status, answer = await transcribed(server, "x", b"no audio", f"; charset={charset}")
        assert (status, answer["error"]["code"]) == (400, "bad-form")
        assert answer["error"]["message"].endswith("it must be in UTF-8")
        assert len(answer["error"]["message"]) < 300
        status, answer = await transcribed(server, "x", b"no audio", '; charset="UTF-8"')
        assert (status, answer["error"]["code"]) == (400, "no-audio")


PLAYLISTS = {
    "itself": "ffconcat version 1.0\nfile upload\n",
    "neighbour": "ffconcat version 1.0\nfile other.wav\n",
    "hls": "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nother.wav\n#EXT-X-ENDLIST\n",
    "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio 5004 RTP/AVP 0\n",
}


@pytest.mark.parametrize("text", PLAYLISTS.values(), ids=list(PLAYLISTS))
def test_uploads_that_name_other_files_are_refused(text, tmp_path):
    (tmp_path / "other.wav").symlink_to(EXAMPLES / "travel.wav")
    (tmp_path / "upload").write_text(text)
    files = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    with pytest.raises(AudioError, match="not audio"):
        Recording(tmp_path / "upload")
    if files is not None:
        assert set(os.listdir("/proc/self/fd")) == files
    Recording(tmp_path / "other.wav").close()


def test_nothing_is_kept_of_a_session(new_service, own_folder, monkeypatch):
    monkeypatch.chdir(own_folder)
    threads = set(threading.enumerate())

    async def work() -> None:
        async with running(new_service()) as server, server.connect() as speaker:
            session = (await ask(speaker, type="start"))["session"]
            await speak(speaker, SPEECH)
            await say(speaker, type="end")
            assert (await rest(speaker))[-1]["type"] == "end"
            async with server.connect() as reader:
                await say(reader, type="watch", session=session)
                assert (await rest(reader))[-1]["code"] == "no-session"

    asyncio.run(work())
    assert not list(own_folder.iterdir())
    for thread in set(threading.enumerate()) - threads:
        thread.join(HANG_S)
        assert not thread.is_alive()


def test_every_promise_and_attack_names_its_tests():
    page = (ROOT / "docs" / "security.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.endswith(" test |")]
    assert len(rows) > 20
    named = set()
    for row in rows:
        tests = re.findall(r"`((?:\w+/)?test_\w+\.py)::(test_\w+)`", row)
        assert tests, row
        named |= {test for _, test in tests}
        for file, test in tests:
            found = [path.read_text("utf-8") for path in (ROOT / "tests").rglob(file)]
            assert any(f"def {test}(" in text for text in found), test
    attacks = "".join(path.read_text("utf-8") for path in (ROOT / "tests/server/attacks").glob("test_*.py"))
    assert set(re.findall(r"def (test_\w+)", attacks)) <= named
