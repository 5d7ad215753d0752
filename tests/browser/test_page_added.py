"""The readers' page has a session translated into one more language; in Chromium."""

import asyncio
import json

from playwright.async_api import expect

from pipeline.server.speaking import SessionVoices
from pipeline.speaking.voice import PiperVoice
from tests.browser.browser import Network, page_at
from tests.browser.test_page_layout import MISFITS, TOUCHED_PX
from tests.conftest import PHRASE_SECONDS, PHRASES, read_wav
from tests.server.running import ask, finish, heard, running, speak
from tests.speaking.voices import made_voice

SPEECH = read_wav(PHRASES)[: round(2 * PHRASE_SECONDS * 16_000)]


def chooser(page):
    return page.get_by_role("combobox", name="Language")


async def spoken(server, speaker):
    """Begin a session, and speak until a sentence is translated; the address of its page for readers."""
    started = await ask(speaker, type="start")
    await speak(speaker, SPEECH)
    while (await heard(speaker))["type"] != "translation":
        pass
    return f"http://localhost:{server.port}/view/{started['session']}"


async def test_a_reader_finds_a_language_that_the_session_does_not_have(browser, offering, catalogue, tmp_path):
    catalogue.open.clear()
    voice = PiperVoice(made_voice(tmp_path, "pt"))
    service = offering(voices=lambda targets: SessionVoices([voice], targets, 1))
    async with running(service) as server, server.connect() as speaker:
        address = await spoken(server, speaker)
        async with page_at(browser, address) as page, page_at(browser, f"{address}?language=pt") as other:
            field = chooser(page)
            await expect(field).to_have_value("中文 (Chinese)")
            await field.fill("germ")
            await expect(page.locator("#language-choices li")).to_have_text(["Deutsch (German)"])
            await field.press("Enter")
            await expect(page.locator("#preparing")).to_contain_text("fetching firefox/en-de")
            catalogue.open.set()
            await expect(page.locator("#preparing")).to_be_hidden()
            await expect(page.locator("#text article p.target[lang=de]").first).to_be_visible()
            await page.reload()
            await expect(page.locator("#text article p.target[lang=de]").first).to_be_visible()
            # The address asks for a language that is on this machine.
            await expect(other.locator("#text article p.target[lang=pt]").first).to_be_visible()
            await expect(chooser(other)).to_have_value("português (Portuguese)")
            await expect(other.locator("#listen")).to_be_visible()
            await expect(page.locator("#listen")).to_be_hidden()
            texts = [each for each in await finish(speaker) if each["type"] == "translation"]
            last = max(each["sentence"] for each in texts)
            for one, language in ((page, "de"), (other, "pt")):
                row = one.locator(f"#text article[data-number='{last}'] p.target")
                await expect(row).to_have_attribute("lang", language)
                found = [each["text"] for each in texts if (each["sentence"], each["language"]) == (last, language)]
                await expect(row).to_have_text(found[0])
            await expect(page.get_by_role("alert")).to_be_hidden()


async def test_a_language_that_cannot_be_added_is_said(browser, offering, catalogue):
    catalogue.server.shutdown()
    catalogue.server.server_close()
    async with running(offering(reader_targets=1)) as server, server.connect() as speaker:
        address = await spoken(server, speaker)
        async with page_at(browser, address, viewport={"width": 320, "height": 568}, has_touch=True) as page:
            field, alert = chooser(page), page.get_by_role("alert")
            await field.fill("Deutsch")
            await field.press("Enter")
            await expect(alert).to_contain_text("The models for these languages cannot be had")
            await expect(field).to_have_value("中文 (Chinese)")
            await expect(page.locator("#text article p.target[lang=zh]").first).to_be_visible()
            assert await page.evaluate(MISFITS, TOUCHED_PX) == []
            await field.fill("Portug")
            await field.press("Enter")
            await expect(page.locator("#text article p.target[lang=pt]").first).to_be_visible()
            await expect(alert).to_be_hidden()
            await field.fill("Deutsch")
            await field.press("Enter")
            await expect(alert).to_contain_text("No more languages can be added to this talk.")
            await expect(field).to_have_value("português (Portuguese)")


async def test_a_lost_connection_asks_again(browser, offering, catalogue):
    catalogue.open.clear()
    async with running(offering()) as server, server.connect() as speaker, Network(server.port) as network:
        address = await spoken(server, speaker)
        sent = asyncio.Queue()
        async with page_at(browser, "about:blank") as page:
            page.on("websocket", lambda socket: socket.on("framesent", lambda text: sent.put_nowait(json.loads(text))))
            await page.goto(address.replace(str(server.port), str(network.port)))
            field = chooser(page)
            await field.fill("Deutsch")
            await field.press("Enter")
            asked = {"type": "add_target", "language": "de"}
            assert [(await sent.get())["type"], await sent.get()] == ["watch", asked]
            network.cut()
            assert [(await sent.get())["type"], await sent.get()] == ["watch", asked]
            catalogue.open.set()
            await expect(page.locator("#text article p.target[lang=de]").first).to_be_visible()
