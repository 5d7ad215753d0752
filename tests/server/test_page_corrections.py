"""A speaker corrects finished lines on the page, with the keyboard alone; with a server and the demo's models."""

import srt
from playwright.async_api import expect

from tests.server.browser import HANG_MS, MICROPHONE, NEEDS_BROWSER, has_said, has_state, page_at, page_of
from tests.server.test_page import downloaded, enter_on

pytestmark = NEEDS_BROWSER
expect.set_options(timeout=HANG_MS)

FIRST = "#text article:first-of-type .target[lang=zh]"
SECOND = "#text article:nth-of-type(2) .target[lang=zh]"
FOCUSED = "document.activeElement.lang + ' ' + document.activeElement.closest('article')?.dataset.number"
NEW = "更正的第一句 <b>。"


async def test_a_line_is_corrected_with_the_keyboard(browser, service_of, expected):
    service = service_of(corrections_a_minute=1)
    async with page_of(browser, service, **MICROPHONE) as (_, speaker):
        await expect(speaker.locator("#start")).to_be_enabled()
        await enter_on(speaker, "start")
        await has_state(speaker, "open")
        view = f"{await speaker.get_attribute('#viewer', 'href')}?language=zh"
        async with page_at(browser, view) as reader:
            await has_said(speaker, 4)
            await enter_on(speaker, "pause")
            await expect(speaker.locator("#state")).to_have_text("Paused")
            await expect(speaker.locator(SECOND)).to_have_text(expected[1, "zh"])
            await enter_on(speaker, "text")
            while await speaker.evaluate(FOCUSED) != "zh 0":
                await speaker.keyboard.press("ArrowUp")
            await speaker.keyboard.press("Enter")
            field = speaker.get_by_label("Correct this line")
            await expect(field).to_be_focused()
            await expect(field).to_have_value(expected[0, "zh"])
            await speaker.keyboard.type("discarded")
            await speaker.keyboard.press("Escape")
            await expect(speaker.locator(FIRST)).to_have_text(expected[0, "zh"])
            assert await speaker.evaluate(FOCUSED) == "zh 0"
            await speaker.keyboard.press("Enter")
            await speaker.keyboard.press("ControlOrMeta+A")
            await speaker.keyboard.insert_text(NEW)
            await speaker.keyboard.press("Enter")
            for page in (speaker, reader):
                await expect(page.locator(f"{FIRST} .committed")).to_have_text(NEW)
                await expect(page.locator(f"{FIRST} .mark")).to_have_text("corrected")
                await expect(page.locator("#spoken p").last).to_have_text(f"corrected {NEW}")
            assert await speaker.evaluate(FOCUSED) == "zh 0"
            async with page_at(browser, view) as late:
                await expect(late.locator(f"{FIRST} .committed")).to_have_text(NEW)
                await expect(late.locator("#spoken p")).to_have_count(0)
            cues = list(srt.parse(await downloaded(reader, "srt")))
            assert [cue.content for cue in cues] == [NEW, expected[1, "zh"]]
            assert not await reader.locator("p[tabindex]").count()  # readers choose no lines
            # Once more, by a click: too soon.
            await speaker.locator(SECOND).click()
            await expect(field).to_have_value(expected[1, "zh"])
            await field.fill("第二句")
            await field.press("Enter")
            await expect(speaker.get_by_role("alert")).to_contain_text("Too many lines were corrected")
            await expect(speaker.locator(f"{SECOND} .committed")).to_have_text(expected[1, "zh"])
            await enter_on(speaker, "stop")
            await has_state(speaker, "ended")
            await speaker.locator(SECOND).click()
            await expect(field).to_have_count(0)
