"""Requests of strangers: every route and every header, with what takes long to parse, is answered soon and leaves nothing."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from starlette.routing import Mount, Route, WebSocketRoute

from pipeline import load_config
from pipeline.server.app import create_app
from pipeline.server.service import Service
from tests.fixtures.scripted.loading import Models, Recognizer, Translator
from tests.server.attacks.attacking import HELD_MS, attacked

pytestmark = pytest.mark.slow

HEAD_BYTES = 15_000
"""Of a request before its body; the parser refuses more than 16 KiB."""
HEADERS = """Accept Accept-Encoding Access-Control-Request-Headers Authorization Connection Content-Length Content-Type Cookie Expect
Host If-Modified-Since If-None-Match Origin Range Sec-WebSocket-Extensions Sec-WebSocket-Key Sec-WebSocket-Protocol
Sec-WebSocket-Version Transfer-Encoding Upgrade X-Forwarded-For X-Forwarded-Proto""".split()
VALUES = ["a", "a,", "a;b=", "[", "a.", '"\\"', "bytes=0-1,", "Basic ", "1"]
FORM = b'--x\r\nContent-Disposition: form-data; name="q"'
BODIES = {
    "application/json": [
        b"[" + b"[]," * 80_000 + b"[]]",
        b'{"q": [' + b"{}," * 80_000 + b"{}]}",
        b"[" * 240_000,
        b'{"q":' * 40_000,
        b'{"q": "' + b"\\n" * 120_000 + b'"}',
        b'{"q": [' + b'"",' * 60_000 + b'""]}',
        b'{"q": ' + b"9" * 240_000 + b"}",
    ],
    "application/x-www-form-urlencoded": [b"a=b&" * 60_000, b"q=" + b"%41" * 80_000, b"&" * 240_000],
    "multipart/form-data; boundary=x": [
        FORM + b"\r\n\r\n" + b"\r" * 240_000 + b"\r\n--x--\r\n",
        FORM + b"\r\n\r\n" + b"\r\n--" * 60_000 + b"\r\n--x--\r\n",
        (FORM + b"\r\n\r\na\r\n") * 4_000 + b"--x--\r\n",
        b"--x\r\n" + b"a:b\r\n" * 48_000 + b"\r\na\r\n--x--\r\n",
        b"--x\r\nContent-Disposition: form-data" + b";a=b" * 60_000 + b"\r\n\r\na\r\n--x--\r\n",
        FORM.replace(b'"q"', b'"' + b"q" * 240_000 + b'"') + b"\r\n\r\na\r\n--x--\r\n",
    ],
}
UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "YWFhYWFhYWFhYWFhYWFhYQ==",
}


def routes() -> list[tuple[str, str, dict[str, str]]]:
    """Each method and path of the application, with the headers that it needs."""
    config = load_config("demo-zh")
    service = Service(config, Models(Recognizer(), {"zh": Translator()}))  # type: ignore[arg-type]
    found = []
    for route in create_app(service).routes:
        match route:
            case WebSocketRoute():
                found.append(("GET", route.path, UPGRADE))
            case Route():
                path = route.path.replace("{session}", "A" * 22).replace("{model}", "speech-translation")
                found += [(method, path, {}) for method in sorted(route.methods or ()) if method != "HEAD"]
            case Mount():
                found.append(("GET", f"{route.path}/index.js", {}))
    return found


def request(method: str, path: str, headers: dict[str, str], body: bytes = b"", more: str = "") -> bytes:
    given = {
        "Host": "127.0.0.1",
        "Connection": "close",
        **({"Content-Length": str(len(body))} if body else {}),
        **headers,
    }
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return ("\r\n".join(lines) + f"\r\n{more}\r\n").encode("latin-1") + body


def hostile(
    method: str, path: str, needed: dict[str, str], headers: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, bytes]]:
    """Requests of one route that take long to read, and what they are."""
    for query in ("a&", "a=b&", "name=%41&", "name=", "%41", "+"):
        yield f"query {query}", request(method, f"{path}?{query * (HEAD_BYTES // len(query))}", needed)
    names = "&".join(f"{number:x}" for number in range(HEAD_BYTES // 5))
    yield "query of many names", request(method, f"{path}?{names}", needed)
    for part in ("/a", "/..", "%2f", "/%41"):
        yield f"path {part}", request(method, path + part * (HEAD_BYTES // len(part)), needed)
    yield "many headers", request(method, path, needed, more="a:b\r\n" * (HEAD_BYTES // 5))
    for name, value in headers:
        yield f"{name}: {value}", request(method, path, needed | {name: value * (HEAD_BYTES // len(value))})
    yield "endless", request(method, path, needed, more="a:" + "b" * 200_000 + "\r\n")
    if "Upgrade" in needed:
        yield "frames before an answer", request(method, path, needed) + b"\xff" * 600_000
    yield "pipelined", request(method, path, {"Connection": "keep-alive", **needed}) * 500
    chunked = {"Transfer-Encoding": "chunked", "Content-Type": "application/json"} | needed
    yield "chunks", request(method, path, chunked) + b"1\r\na\r\n" * 40_000 + b"0\r\n\r\n"
    for kind, bodies in BODIES.items() if method == "POST" else ():
        for body in bodies:
            yield f"{kind} {body[:60]!r}", request(method, path, {"Content-Type": kind}, body)


@pytest.fixture
def step():
    """Of how many long headers a route is sent one, each route others, with other values; all of them, in tests/night."""
    return 10  # shares no factor with the number of values


async def test_no_request_of_a_stranger_to_any_route_holds_the_others(step, tmp_path):
    (token := tmp_path / "token").write_text("a-token-of-the-speakers")
    async with attacked("--token-file", token) as server:
        wrong = []

        async def send(name: str, data: bytes) -> None:
            answer = await server.sent(data, whole=False)
            if answer and not answer.startswith((b"HTTP/1.1 1", b"HTTP/1.1 2", b"HTTP/1.1 3", b"HTTP/1.1 4")):
                wrong.append(f"{name}: {answer[:60]!r}")

        for number, (method, path, needed) in enumerate(routes()):
            begin, every = (0, 1) if path.startswith("/static") else (number % step, step)  # files alone have ranges
            requests = dict(hostile(method, path, needed, [*product(HEADERS, VALUES)][begin::every]))
            await server.figures()
            for name, data in requests.items():
                await send(name, data)
            if (await server.figures()).held_ms > HELD_MS:  # which, if it was not another program
                held = {name: await server.holds(lambda: send(name, data)) for name, data in requests.items()}  # noqa: B023
                wrong += [
                    f"{method} {path} {name}: {held_ms:.0f} ms" for name, held_ms in held.items() if held_ms > HELD_MS
                ]
        assert not wrong
        assert not server.log


def forms(name: bytes) -> dict[str, bytes]:
    """Uploads whose fields or file take long to read."""
    file, filename = b"RIFF" + bytes(2_000), b'name="%s"; filename="a.wav"' % name

    def form(*parts: tuple[bytes, bytes]) -> bytes:
        heads = (b"--x\r\nContent-Disposition: form-data; " + head + b"\r\n\r\n" + value for head, value in parts)
        return b"\r\n".join([*heads, b"--x--\r\n"])

    found = {"a file": form((filename, file)), "no file": form((filename.partition(b";")[0], file))}
    for field in ("language", "model", "target", "task", "output", "response_format", "stream"):
        for value in (b"en-", b"a", b"\xc3\xa9"):
            data = form((b'name="%s"' % field.encode(), value * (900_000 // len(value))), (filename, file))
            found[f"{field} {value!r}"] = data
    for field in ("target", "timestamp_granularities[]"):
        parts = [(b'name="%s"' % field.encode(), b"%d-" % n * 10_000) for n in range(31)]
        found[f"many of {field}"] = form(*parts, (filename, file))
    for content in (b"\0", b"\r", b"\r\n-", b"\r\n--x", b"RIFF"):
        found[f"a file of {content!r}"] = form((filename, content * (900_000 // len(content))))
    for more in (b";a=b", b"\r\na:b"):
        found[f"a head of {more!r}"] = form((filename + more * 200_000, file))
    return found


UPLOADS = {"v1/audio/transcriptions": b"file", "asr": b"audio_file", "detect-language": b"audio_file"}


@pytest.mark.parametrize("path", UPLOADS)
async def test_no_upload_of_a_client_holds_the_others(path):
    kind, bodies = {"Content-Type": "multipart/form-data; boundary=x"}, forms(UPLOADS[path])
    names = "&".join(f"{number:x}" for number in range(HEAD_BYTES // 5))
    sent = {what: request("POST", f"/{path}", kind, body) for what, body in bodies.items()}
    sent["a query of many names"] = request("POST", f"/{path}?{names}", kind, bodies["a file"])
    async with attacked(max_recordings=len(sent)) as server:
        wrong = []

        async def send(what: str) -> None:
            answer = await server.sent(sent[what])
            if len(answer) > 1_500 or not answer.startswith((b"HTTP/1.1 2", b"HTTP/1.1 4")):
                wrong.append(f"{what}: {answer[-1_000:]!r}")

        await server.figures()
        await asyncio.gather(*map(send, sent))
        if (await server.figures()).held_ms > HELD_MS:
            held = {what: await server.holds(lambda: send(what)) for what in sent}  # noqa: B023
            wrong += [f"{what}: {held_ms:.0f} ms" for what, held_ms in held.items() if held_ms > HELD_MS]
        assert not wrong
        assert not server.log


async def test_bodies_leave_no_memory_and_a_talk_loses_nothing_beside_them():
    async with attacked() as server:

        async def attack() -> None:
            for kind, bodies in BODIES.items():
                for body in bodies:
                    await server.sent(request("POST", "/translate", {"Content-Type": kind}, body))

        await server.talk()
        await attack()
        before = await server.figures()
        await server.loses_nothing_beside(attack)
        await server.gives_back(before, 20.0)
