"""A browser for the tests, in an event loop of its own that lasts as long."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pipeline.events import SAMPLE_RATE
from tests.conftest import write_wav
from tests.server.conftest import catalogue, expected, new_service, offering, service_of, shared, speech  # noqa: F401

if TYPE_CHECKING:
    from playwright.async_api import Browser

if find_spec("playwright") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="session")
def browser(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    from playwright.async_api import async_playwright

    from tests.browser.browser import CHROMIUM, launch

    if CHROMIUM is None:
        pytest.skip("no Chromium; .ci/run installs one, and CHROMIUM may name one")
    # The browser may take some time to give audio, and what is said meanwhile is lost.
    samples = np.concatenate([np.zeros(3 * SAMPLE_RATE, np.int16), speech()])
    microphone = write_wav(tmp_path_factory.mktemp("microphone") / "speech.wav", samples)
    playwright = runner.run(async_playwright().start())
    browser = runner.run(launch(playwright, microphone))
    yield browser
    runner.run(browser.close())
    runner.run(playwright.stop())
