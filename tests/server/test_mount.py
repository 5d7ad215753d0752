"""The server mounted into another application, below a path."""

import asyncio
import json
import re
import subprocess
import sys
from urllib.parse import urljoin

import pytest
from websockets.asyncio.client import connect

from tests.conftest import HANG_S, PHRASES, ROOT, read_wav
from tests.server.running import ask, final, finish, read_response, speak

_LINKS = re.compile(r"""(?:href|src|from|addModule\(new URL\(|new URL\()[= ]?["'](?!#)([^"'$]+\.(?:js|css|svg))["']""")


async def fetched(port: int, path: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n".encode())
    answer = read_response(await reader.read())
    writer.close()
    assert answer.status == 200, path
    return answer.body.decode()


@pytest.mark.slow
async def test_the_example_serves_pages_and_sessions_below_its_path():
    process = await asyncio.create_subprocess_exec(
        sys.executable, ROOT / "examples" / "mount_server.py", "0", stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(HANG_S):
            while (found := re.search(rb"running on http://127.0.0.1:(\d+)", await process.stderr.readline())) is None:
                pass
            port = int(found[1])
            assert "your own" in await fetched(port, "/")
            await check_links(port)
            described = json.loads(await fetched(port, "/captions/openapi.json"))
            assert described["servers"] == [{"url": "/captions"}]
            async with connect(f"ws://127.0.0.1:{port}/captions/v1/session", proxy=None) as speaker:
                session = (await ask(speaker, type="start"))["session"]
                assert "<svg" in await fetched(port, f"/captions/view/{session}/qr.svg")
                await speak(speaker, read_wav(PHRASES)[:56_000])
                assert any(language == "pt" for _, language in final(await finish(speaker)))
            process.terminate()
            await process.stderr.read()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def check_links(port: int) -> None:
    """Follow all links of the pages and scripts: what they need is below the path too."""
    seen: set[str] = set()
    waiting = ["/captions/", "/captions/view/x", "/captions/overlay/x"]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            text = await fetched(port, path)
            waiting += [urljoin(path, link) for link in _LINKS.findall(text)]
    assert {"/captions/static/worklet.js", "/captions/static/overlay.css", "/captions/static/connection.js"} <= seen
    assert all(path.startswith("/captions/") for path in seen)
