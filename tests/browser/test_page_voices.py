"""The page speaks the translations to who asks for it."""

import asyncio

import numpy as np
from playwright.async_api import expect

from tests.browser.browser import page_at
from tests.server.conftest import speech
from tests.server.running import ask, rest, running, say, speak, until
from tests.server.test_voices import service, voice  # noqa: F401  # fixtures

HEARD = """
window.heard = [];
const start = AudioBufferSourceNode.prototype.start;
AudioBufferSourceNode.prototype.start = function (at) {
  const { sampleRate, duration } = this.buffer;
  window.heard.push({ at, sampleRate, duration, peak: Math.max(...this.buffer.getChannelData(0)) });
  start.call(this, at);
};
"""


SOMETHING = "async () => { while (!window.heard.length) await new Promise(requestAnimationFrame); }"


def test_a_reader_listens_by_one_button(runner, browser, service, voice):  # noqa: F811
    async def work():
        async with running(service) as server, server.connect() as speaker:
            session = (await ask(speaker, type="start"))["session"]
            async with page_at(browser, f"{server.url}/view/{session}?language=zh", HEARD) as page:
                button = page.locator("#listen")
                await expect(page.locator("body")).to_have_attribute("data-state", "open")
                await expect(button).to_be_hidden()  # no voice speaks Chinese here
                await page.select_option("#language", "he")
                await button.click()
                await expect(button).to_have_attribute("aria-pressed", "true")
                await until(lambda: bool(server.service.sessions[session].voices._speaking))
                reading = asyncio.create_task(rest(speaker))
                await speak(speaker, np.concatenate([speech(), np.zeros(48_000, np.int16)]))
                await page.evaluate(SOMETHING)
                await button.click()
                await expect(button).to_have_attribute("aria-pressed", "false")
                await until(lambda: not server.service.sessions[session].voices._speaking)
                await button.click()
                await until(lambda: bool(server.service.sessions[session].voices._speaking))
                await say(speaker, type="end")
                await reading
                await expect(button).to_have_attribute("aria-pressed", "false")
                return await page.evaluate("window.heard")

    found = runner.run(work())
    assert all(one["sampleRate"] == 24_000 and 0.1 < one["peak"] < 1 for one in found)
    assert 1 <= len(found) <= len(voice.said)
