"""A browser for the tests of a module, in an event loop of its own that lasts as long, and what its microphone says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.async_api import Browser, async_playwright

from pipeline import Models, PipelineConfig
from pipeline.events import SAMPLE_RATE, Samples, SourceSentence, Translation
from pipeline.server.limits import ServerLimits
from pipeline.server.service import Service
from pipeline.translator import SpeechTranslator
from tests.conftest import PHRASES, read_wav, spoken_texts
from tests.server.browser import SPOKEN, Texts, launch, with_hebrew, write_wav


def speech() -> Samples:
    """What the microphone hears after some silence."""
    return read_wav(PHRASES)[SPOKEN]


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def browser(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    # The browser may take some time to give audio, and what is said meanwhile is lost.
    samples = np.concatenate([np.zeros(3 * SAMPLE_RATE, np.int16), speech()])
    microphone = write_wav(tmp_path_factory.mktemp("microphone") / "speech.wav", samples)
    playwright = runner.run(async_playwright().start())
    browser = runner.run(launch(playwright, microphone))
    yield browser
    runner.run(browser.close())
    runner.run(playwright.stop())


@pytest.fixture(scope="module")
def service_of(demo_config: PipelineConfig, demo_models: Models) -> Callable[..., Service]:
    """Makes a service of two languages."""

    def make(record: Path | None = None, **limits: Any) -> Service:
        return Service(*with_hebrew(demo_config, demo_models), replace(ServerLimits(), **limits), record)

    return make


@pytest.fixture(scope="session")
def expected(demo_config: PipelineConfig, demo_models: Models) -> Texts:
    """The text of the recording from a translator in this process."""

    async def work(samples: Samples) -> Texts:
        async with SpeechTranslator(*with_hebrew(demo_config, demo_models), live=True) as translator:
            await translator.feed(samples)
            await translator.end()
            return {
                (event.sentence, event.language): event.text
                async for event in translator.events()
                if isinstance(event, SourceSentence | Translation)
            }

    found = asyncio.run(work(speech()))
    assert [found[0, "en"], found[1, "en"]] == spoken_texts()["phrases"][3:5]
    return found
