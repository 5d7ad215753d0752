"""Take the picture of the page in docs/: python -m docs.screenshots [FOLDER], or `make pictures`

Writes page.png into docs/ (a demo run in a desktop's window, light), or with a FOLDER all sizes and colours into it, to look at.
page.png has the finished lines that it shows in its description; each is what the demo makes of the whole recording.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.async_api import Page, ViewportSize, async_playwright

from docs.picture import finished, words
from pipeline import SourceSentence, Translation, load_config, load_models
from pipeline.server.service import Service
from tests.browser.browser import launch, page_at
from tests.conftest import EXAMPLES, ROOT
from tests.server.running import running

AUDIO = EXAMPLES / "travel.wav"
SIZES = {"desktop": ViewportSize(width=1280, height=800), "phone": ViewportSize(width=375, height=812)}
WINDOW = ViewportSize(width=1100, height=580)
"""Of the picture in docs/."""
LINES = 4
"""So many finished lines at least stand before the sentence that is being said."""
WAIT_MS = 60_000

# While somebody is heard, and a translation has a draft.
_IN_A_SENTENCE = """(lines) => document.querySelector("#level").value > 0.6 && document.querySelector("#text .target .draft:not(:empty)") &&
  document.querySelectorAll("#text p[data-done]").length >= lines"""
_FINISHED = """[...document.querySelectorAll("#text p[data-done]")].map((line) =>
  [Number(line.closest("article").dataset.number), line.lang, line.textContent])"""


async def main(folder: Path | None) -> None:
    config = load_config("demo")
    service = Service(config, load_models(config))
    async with running(service) as server, async_playwright() as playwright:
        browser = await launch(playwright, AUDIO)
        address = f"http://localhost:{server.port}/"
        async with page_at(browser, address, permissions=["microphone"], viewport=SIZES["desktop"]) as page:
            await page.click("#start")
            await page.evaluate("document.documentElement.dataset.size = '130'")
            await page.wait_for_function(_IN_A_SENTENCE, arg=LINES, timeout=WAIT_MS)
            if folder is None:
                await picture(page, ROOT / "docs" / "page.png")
                return
            for name, size in SIZES.items():
                for theme in ("light", "dark"):
                    await page.set_viewport_size(size)
                    await page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                    await page.screenshot(path=folder / f"{name}-{theme}.png")


async def picture(page: Page, path: Path) -> None:
    """Write what the page shows. A line that the demo does not make of the whole recording is an error."""
    await page.set_viewport_size(WINDOW)
    taken = await page.screenshot()
    lines = [(number, language, text) for number, language, text in await page.evaluate(_FINISHED)]
    sentences = [event for event in await finished(AUDIO) if isinstance(event, SourceSentence | Translation)]
    made = {(event.sentence, event.language): words(event.text) for event in sentences}
    if others := [line for line in lines if made.get((line[0], line[1])) != words(line[2])]:
        sys.exit(f"the page shows what the demo does not make of {AUDIO.name}; take the picture again: {others}")
    description = PngInfo()
    description.add_itxt("Description", json.dumps(lines, ensure_ascii=False))
    Image.open(io.BytesIO(taken)).save(path, pnginfo=description, optimize=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if sys.argv[1:] else None))
