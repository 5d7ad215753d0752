"""Chromium with a recording as its microphone, and a network to it that fails when told."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, ConsoleMessage, Page, Playwright, Route, WebSocketRoute, expect

from pipeline.events import PipelineEvent
from pipeline.server.access import Access
from pipeline.server.app import STATIC
from pipeline.server.protocol import snapshot_text
from pipeline.server.service import Service
from tests.conftest import HANG_S
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


@asynccontextmanager
async def page_at(browser: Browser, address: str, init: str = "", **context: Any) -> AsyncIterator[Page]:
    """A page in a context of its own, at an address. ``init``: a script that runs first.

    Raises:
        AssertionError: the page reported an error, such as a script that the content security policy blocks.
    """
    problems: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and not any(part in message.text for part in _EXPECTED):
            problems.append(message.text)

    opened = await browser.new_context(**context)
    opened.set_default_timeout(HANG_MS)
    if init:
        await opened.add_init_script(init)
    page = await opened.new_page()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", note)
    try:
        await page.goto(address)
        yield page
    finally:
        await opened.close()
    assert not problems, problems


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

    async def answer(route: Route) -> None:
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

    def tell(socket: WebSocketRoute) -> None:
        described = {"session": "x", "room": None, "targets": ["zh", "he"], "recorded": True}
        socket.on_message(
            lambda _: [socket.send(text) for text in (json.dumps({"type": "watching", **described}), whole)]
        )

    whole = snapshot_text(changes(events))
    opened = await browser.new_context(viewport={"width": width, "height": height}, **context)
    opened.set_default_timeout(HANG_MS)
    await opened.route("**/*", answer)
    await opened.route_web_socket("**/v1/session*", tell)
    if init:
        await opened.add_init_script(init)
    page = await opened.new_page()
    try:
        await page.goto(f"http://localhost{path}")
        yield page
    finally:
        await opened.close()
