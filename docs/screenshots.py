"""Take the picture of the page in docs/: python -m docs.screenshots [FOLDER]

Writes page.png into docs/ (a demo run in a desktop's window, light), or with a FOLDER all sizes and colours into it, to look at.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from playwright.async_api import ViewportSize, async_playwright

from pipeline import load_config, load_models
from pipeline.server.service import Service
from tests.conftest import EXAMPLES, ROOT
from tests.server.browser import launch, page_at
from tests.server.running import running

SIZES = {"desktop": ViewportSize(width=1280, height=800), "phone": ViewportSize(width=390, height=844)}
WINDOW = ViewportSize(width=1100, height=580)
"""Of the picture in docs/."""
SENTENCE = 2
"""The picture is taken in the middle of it, counted from 0."""

_SPEAKING = """new Promise((resolve) => {
  const look = () => (document.querySelector("#level").value > 0.6 ? resolve() : requestAnimationFrame(look));
  look();
})"""


async def main(folder: Path | None) -> None:
    config = load_config("demo")
    service = Service(config, load_models(config))
    async with running(service) as server, async_playwright() as playwright:
        browser = await launch(playwright, EXAMPLES / "travel.wav")
        address = f"http://localhost:{server.port}/"
        async with page_at(browser, address, permissions=["microphone"], viewport=SIZES["desktop"]) as page:
            await page.click("#start")
            await page.evaluate("document.documentElement.dataset.size = '130'")
            await page.locator(f"#text article[data-number='{SENTENCE}'] .target .draft:not(:empty)").wait_for()
            await page.evaluate(_SPEAKING)
            if folder is None:
                await page.set_viewport_size(WINDOW)
                await page.screenshot(path=ROOT / "docs" / "page.png")
                return
            for name, size in SIZES.items():
                for theme in ("light", "dark"):
                    await page.set_viewport_size(size)
                    await page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                    await page.screenshot(path=folder / f"{name}-{theme}.png")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if sys.argv[1:] else None))
