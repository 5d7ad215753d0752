"""Chromium with a recording as its microphone, and a network to it that fails when told."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from playwright.async_api import Browser, ConsoleMessage, Page, Playwright, Route, WebSocketRoute, expect

from pipeline.events import SAMPLE_RATE, PipelineEvent, Samples
from pipeline.server.access import Access
from pipeline.server.app import STATIC
from pipeline.server.protocol import snapshot_text
from pipeline.server.service import Service
from tests.conftest import HANG_S
from tests.server.conftest import speech
from tests.server.running import Running, Texts, running
from tests.streams import changes

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FAR_NAME = "far.example"
"""A name of this machine by which it looks like another one to the browser."""
SHARED_TITLE = "A talk in another tab"
"""The title of the tab that is chosen when a page asks for one to be shared."""
HANG_MS = 1000 * HANG_S
expect.set_options(timeout=HANG_MS)
MICROPHONE: dict[str, Any] = {"permissions": ["microphone"]}
"""Options of a page that may use it."""
# Stands for a microphone. Its clock is at ``at``, a sample of what is said; there is silence before and after that.
_GIVES = """
navigator.mediaDevices.getUserMedia = async () => new MediaStream([new MediaStreamTrackGenerator({ kind: "audio" })]);
window.MediaStreamTrackProcessor = class {
  constructor() {
    const said = new Int16Array(Uint8Array.from(atob("SAID"), (each) => each.charCodeAt(0)).buffer);
    let at, began;
    window.speak = () => { at = 0; began = performance.now() - AHEAD / 16; };
    this.readable = new ReadableStream({
      start: (controller) => {
        const give = () => {
          for (; at < Math.min(16 * (performance.now() - began), window.stops ? said.length : Infinity); at += 1600) {
            const samples = new Float32Array(1600);
            samples.set(Float32Array.from(said.subarray(at, at + 1600), (each) => each / 32767));
            controller.enqueue({
              sampleRate: 16000, numberOfFrames: 1600, numberOfChannels: 1, timestamp: 1000 * performance.now(),
              copyTo(plane) { plane.set(samples); }, close() {},
            });
          }
        };
        if (window.waits) [at, began] = [said.length, performance.now() - said.length / 16];
        else window.speak();
        this.timer = setInterval(give, 50);
        give();
      },
      cancel: () => clearInterval(this.timer),
    });
  }
};
"""
# What Chromium calls errors: a connection that is refused or cut, a header that plain HTTP cannot have, and the picture of a shared
# tab, which it counts as a camera.
_EXPECTED = ("WebSocket", "Cross-Origin-Opener-Policy", "camera is not allowed")


async def launch(playwright: Playwright, microphone: Path) -> Browser:
    """A browser whose microphone plays a WAV once, from its beginning whenever it is opened, and then is silent.

    A page that asks for a tab's sound gets that of the tab called ``SHARED_TITLE``.
    """
    return await playwright.chromium.launch(
        executable_path=CHROMIUM,
        args=[
            "--no-sandbox",  # as root there is none
            "--use-fake-device-for-media-stream",
            f"--use-file-for-fake-audio-capture={microphone}%noloop",
            f"--host-resolver-rules=MAP {FAR_NAME} 127.0.0.1",
            f"--auto-select-tab-capture-source-by-title={SHARED_TITLE}",
        ],
        ignore_default_args=["--mute-audio"],  # a muted tab is shared without its sound
    )


def microphone_of(samples: Samples, *, at_once: bool = True) -> str:
    """A script that stands for the microphone where that is not what is tested: it is not later than it says, on however slow a
    machine, and nobody waits for it.

    It has these samples of 16 kHz whenever it is opened, or if ``waits`` is true on the page, whenever that calls ``speak()``.
    Otherwise it has silence at its own pace, or nothing after the samples if ``stops`` is true.
    """
    said = b64encode(samples.astype("<i2").tobytes()).decode()
    return _GIVES.replace("SAID", said).replace("AHEAD", str(len(samples) if at_once else 0))


QUIET = microphone_of(np.zeros(0, np.int16))
"""No sound."""
TALK = microphone_of(np.concatenate([speech(), np.zeros(SAMPLE_RATE, np.int16)]))
"""Two sentences at once, and the silence that ends the second."""
SPOKEN = microphone_of(speech(), at_once=False)
"""Two sentences at the pace at which they were said."""


@dataclass
class _Kept:
    """A page that is used again and again. It opens other pages in a third of the time that a new one takes."""

    page: Page
    problems: list[str]
    snapshot: str = ""
    """What is told over the WebSocket of a page without a server."""


_kept: dict[tuple[Browser, str], list[_Kept]] = {}
"""Those that are not used at the moment, by their options."""


@asynccontextmanager
async def _page(browser: Browser, init: str, files: bool, **context: Any) -> AsyncIterator[_Kept]:
    """A page in a context of its own, on which no error is reported; ``files``: it has no server."""
    waiting = _kept.setdefault((browser, repr((init, files, sorted(context.items())))), [])
    kept = waiting.pop() if waiting else await _new_page(browser, init, files, **context)
    page = kept.page
    try:
        yield kept
        if init not in ("", QUIET, TALK) or len(page.context.pages) > 1:
            await page.context.close()
        else:
            await page.evaluate("location.host && [localStorage, sessionStorage].forEach((each) => each.clear())")
            await page.goto("about:blank")
            await page.mouse.move(0, 0)
            waiting.append(kept)
    except BaseException:
        await page.context.close()
        raise
    problems, kept.problems[:] = [*kept.problems], []
    assert not problems, problems


async def _new_page(browser: Browser, init: str, files: bool, **context: Any) -> _Kept:
    # What moves is drawn sixty times a second, by a processor that the tests need.
    opened = await browser.new_context(reduced_motion="reduce", **context)
    opened.set_default_timeout(HANG_MS)
    if init:
        await opened.add_init_script(f"if (location.host) {{ {init} }}")  # about:blank has no microphone
    kept = _Kept(await opened.new_page(), [])

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and not any(part in message.text for part in _EXPECTED):
            kept.problems.append(message.text)

    kept.page.on("pageerror", lambda error: kept.problems.append(str(error)))
    kept.page.on("console", note)
    if files:
        await opened.route("**/*", _answer)
        await opened.route_web_socket("**/v1/session*", lambda socket: _tell(socket, kept))
    return kept


@asynccontextmanager
async def page_at(browser: Browser, address: str, init: str = "", **context: Any) -> AsyncIterator[Page]:
    """A page in a context of its own, at an address. ``init``: a script that runs first.

    Raises:
        AssertionError: the page reported an error, such as a script that the content security policy blocks.
    """
    async with _page(browser, init, False, **context) as kept:
        await kept.page.goto(address)
        yield kept.page


@asynccontextmanager
async def page_of(
    browser: Browser, service: Service, access: Access | None = None, init: str = "", **context: Any
) -> AsyncIterator[tuple[Running, Page]]:
    """A server that runs, and the page that it shows speakers on its own machine; see ``page_at``."""
    async with (
        running(service, access) as server,
        page_at(browser, f"http://localhost:{server.port}/", init, **context) as page,
    ):
        yield server, page


async def texts_of(page: Page) -> Texts:
    """The text on a page when it is drawn; there must be no draft."""
    states = await page.evaluate(
        "new Promise(requestAnimationFrame).then(() => [...document.querySelectorAll('#text article p')].map((line) =>"
        " [Number(line.closest('article').dataset.number), line.lang,"
        " ...['.steady', '.draft'].map((part) => line.querySelector(part).textContent)]))"
    )
    assert not any(draft for *_, draft in states), states
    return {(sentence, language): text for sentence, language, text, _ in states}


def only(texts: Texts, *languages: str) -> Texts:
    return {key: text for key, text in texts.items() if key[1] in languages}


async def has_state(page: Page, state: str) -> None:
    await page.wait_for_selector(f"body[data-state={state}]")


async def has_said(page: Page, count: int) -> None:
    """Wait until so many translations are finished."""
    await page.locator("#spoken p").nth(count - 1).wait_for(state="attached")


class Network:
    """Forwards connections to a port of this machine, ``to``, until told not to."""

    def __init__(self, to: int) -> None:
        self.port = 0
        self.to = to
        self._stalled: set[asyncio.StreamWriter] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Network:
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Break all connections; new ones work."""
        for writer in self._writers:
            writer.transport.abort()

    def stall(self) -> None:
        """Leave all connections open but let nothing through; new ones work."""
        self._stalled |= self._writers

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self.to)
        self._writers |= {writer, server_writer}
        for pipe in (self._pipe(reader, server_writer), self._pipe(server_reader, writer)):
            task = asyncio.create_task(pipe)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                if writer not in self._stalled:
                    writer.write(data)
                    await writer.drain()
        except ConnectionError:
            pass
        finally:
            self._writers.discard(writer)
            writer.close()


@asynccontextmanager
async def page_of_files(
    browser: Browser,
    path: str,
    events: Sequence[PipelineEvent] = (),
    width: int = 1280,
    height: int = 720,
    init: str = "",
    **context: Any,
) -> AsyncIterator[Page]:
    """One of the pages without a server: its files, and a WebSocket on which a reader is told these events."""
    async with _page(browser, init, True, viewport={"width": width, "height": height}, **context) as kept:
        kept.snapshot = snapshot_text(changes(events))
        await kept.page.goto(f"http://localhost{path}")
        yield kept.page


async def _answer(route: Route) -> None:
    name = urlsplit(route.request.url).path
    page = {"": "index.html", "view": "view.html", "overlay": "overlay.html"}
    if name == "/v1/info":
        await route.fulfill(
            json={
                "source": "en",
                "targets": ["zh", "he"],
                "languages": [{"source": "en", "targets": ["zh", "he"]}],
                "token": True,
                "ready": True,
                "recorded": True,
                "speakers": True,
            }
        )
    elif name == "/v1/terms":
        await route.fulfill(json={"terms": []})
    else:
        await route.fulfill(path=STATIC / page.get(name.split("/")[1], name.removeprefix("/static/")))


def _tell(socket: WebSocketRoute, kept: _Kept) -> None:
    described = {"session": "x", "room": None, "targets": ["zh", "he"], "recorded": True}
    watching = json.dumps({"type": "watching", **described})
    socket.on_message(lambda _: [socket.send(text) for text in (watching, kept.snapshot)])
