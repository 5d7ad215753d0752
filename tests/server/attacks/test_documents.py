"""Whoever has the token, and authors of what is uploaded: recordings and documents that are small and take much, and texts."""

import asyncio
import io
import json

import av
import httpx
import numpy as np
import pytest

from tests.conftest import HANG_S
from tests.server.attacks.attacking import Server, attacked
from tests.server.attacks.test_requests import request
from tests.server.test_openai import flac_of_silence

pytestmark = pytest.mark.slow


def at_rate(kind: str, codec: str, rate: int, samples: int, layout: str) -> bytes:
    """A recording in one long frame at a rate at which nobody records."""
    file, options = io.BytesIO(), {"frame_size": str(samples)}
    with av.open(file, "w", format=kind) as container:
        stream = container.add_stream(codec, rate=rate, layout=layout, options=options if codec == "flac" else {})
        channels = 2 if layout == "stereo" else 1
        frame = av.AudioFrame.from_ndarray(np.zeros((1, samples * channels), np.int16), "s16", layout)
        frame.sample_rate = rate
        container.mux([*stream.encode(frame), *stream.encode(None)])
    return file.getvalue()


async def upload(server: Server, data: bytes, path: str = "/v1/audio/transcriptions") -> httpx.Response:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=HANG_S) as http:
        return await http.post(path, files={"file": data})


async def test_a_small_recording_takes_little_memory_beside_a_talk(tmp_path):
    bombs = [
        at_rate("matroska", "pcm_s16le", 1, count, layout) for count in (2_000, 20_000) for layout in ("mono", "stereo")
    ]
    bombs += [at_rate("flac", "flac", 1, 20_000, "mono"), flac_of_silence(300, tmp_path)]
    async with attacked(recording_s=60.0) as server:
        await server.talk()
        await upload(server, flac_of_silence(1, tmp_path))
        before, most_mb = await server.figures(), 0.0

        async def attack() -> None:
            nonlocal most_mb
            for bomb in bombs:
                answer = await upload(server, bomb)
                assert (answer.status_code, answer.json()["error"]["code"]) in ((400, "no-audio"), (413, "too-long"))
                most_mb = max(most_mb, (await server.figures()).memory_mb)

        await server.loses_nothing_beside(attack)
        assert most_mb - before.memory_mb < 60.0
        assert not server.log


async def test_a_document_that_takes_long_keeps_no_place_when_its_client_has_left():
    page = b"<!-- slide -->\n" * 26 + b"<body>" + b"<p>Anna Weber</p>" * 200_000
    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + page + b"\r\n--x--\r\n"
    async with attacked() as server:
        for _ in range(2):
            _, writer = await server.opened()
            writer.write(request("POST", "/v1/terms", {"Content-Type": "multipart/form-data; boundary=x"}, form))
            await writer.drain()
            writer.transport.abort()
        for document in (page[:400], b"<p>Anna Weber</p>"):
            while (answer := await upload(server, document, "/v1/terms")).status_code == 503:  # until both have ended
                await asyncio.sleep(0.01)
            assert answer.status_code in (200, 400)
        assert not server.log


OPENINGS = [
    "<pre ",
    "<script>",
    "<style",
    "<p ",
    "<a><b>",
    "</p>",
    "{\\i1}",
    "**a ",
    " @a",
    "&amp;",
    "X1 {a} ",
    "a\n",
    ".)",
    "- ",
]
OPENINGS += [
    "http://a.b/c ",
    "1.000,",
    "\u200d",
    "e\u0301",
    "\u202e",
    "\0",
    "__0__ ",
    "Mr. ",
    "中",
    "12/12/12 ",
    '"',
    "♪",
    "a-",
    "A",
]


@pytest.mark.parametrize("route", ["/translate", "/detect"])
async def test_no_text_takes_the_server_much_longer_than_a_plain_one(route):
    async with attacked() as server:

        async def cost_s(text: str, form: str) -> float:
            asked = (
                {"q": text, "source": "en", "target": "zh", "format": form} if route == "/translate" else {"q": text}
            )
            before = await server.figures()
            body = json.dumps(asked).encode()
            answer = await server.sent(request("POST", route, {"Content-Type": "application/json"}, body))
            assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 501")), answer[:200]
            after = await server.figures()
            return after.cpu_s - before.cpu_s

        await cost_s("Hello there.", "text")
        for form in ("text", "html"):
            plain_s = await cost_s("Hello there. " * 1_500, form)
            costs = {opening: await cost_s(opening * (19_990 // len(opening)), form) for opening in OPENINGS}
            # Ten thousand sentences of two characters take 13 times as long; what grows with the square, more than a hundred times.
            assert {opening: cost / plain_s for opening, cost in costs.items() if cost > 40 * plain_s} == {}
        assert not server.log


async def test_one_text_takes_little_memory_with_a_real_translator():
    async with attacked(translators="real") as server:

        async def translated(text: str) -> None:
            body = json.dumps({"q": text, "source": "en", "target": "zh"}).encode()
            answer = await server.sent(request("POST", "/translate", {"Content-Type": "application/json"}, body))
            assert answer.startswith(b"HTTP/1.1 200"), answer[:300]

        await translated("We went to the market.")
        before = await server.figures()
        await translated("http://a.b/c " * 1_538)
        await server.gives_back(before, 200.0)
