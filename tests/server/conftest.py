"""A browser for the tests of a module, in an event loop of its own that lasts as long."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import numpy as np
import pytest
from playwright.async_api import Browser, async_playwright

from pipeline.events import SAMPLE_RATE
from tests.conftest import PHRASES, read_wav
from tests.server.browser import SPOKEN, launch, write_wav


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def browser(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    # The browser may take some time to give audio, and what is said meanwhile is lost.
    samples = np.concatenate([np.zeros(3 * SAMPLE_RATE, np.int16), read_wav(PHRASES)[SPOKEN]])
    microphone = write_wav(tmp_path_factory.mktemp("microphone") / "speech.wav", samples)
    playwright = runner.run(async_playwright().start())
    browser = runner.run(launch(playwright, microphone))
    yield browser
    runner.run(browser.close())
    runner.run(playwright.stop())
