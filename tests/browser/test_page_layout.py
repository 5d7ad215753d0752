"""How the pages look and are used, in Chromium without a server: colours, sizes, phones, the keyboard."""

import json

import pytest
from playwright.async_api import Page, expect

from pipeline.events import SourceSentence, SourceText, TargetText, Translation
from pipeline.media.sinks.jsonl import line
from tests.browser.browser import page_of_files
from tests.browser.test_page_scripts import records
from tests.streams import spoken, translated

PAGES = pytest.mark.parametrize("path", ["/", "/view/x"])
PHONES = pytest.mark.parametrize("size", [(390, 844), (320, 568)], ids=["390x844", "320x568"])
TOUCHED_PX = 44
"""The least height of what a finger touches (WCAG 2.2, 2.5.5)."""

# Draws a sentence with steady text and a draft in two languages, and opens everything that the page has.
SHOW_ALL = """async (events) => {
  const { Board } = await import("/static/render.js");
  const { Texts } = await import("/static/texts.js");
  const texts = new Texts();
  const board = new Board(document.querySelector("#text"), document.querySelector("#spoken"), document.querySelector("#newest"));
  const empty = document.querySelector(".empty");
  board.begin(texts);
  events.forEach((event) => texts.apply(event));
  board.changed(texts.sentences.keys());
  board.draw();
  if (empty) document.querySelector("#text").prepend(empty);
  document.querySelectorAll("[hidden]").forEach((each) => (each.hidden = false));
  document.querySelectorAll("details").forEach((each) => (each.open = true));
  document.querySelector("#problem").textContent = "Problem";
  for (const [name, text] of [["#lag", "12:10 of 1:00:00 · 12 readers"], ["#viewer", "http://localhost/view/MC5GvP6-u0bOpiSjZHKaPg"]]) {
    const element = document.querySelector(name);
    if (element) element.textContent = text;
  }
  document.querySelectorAll("#start, #renew").forEach((each) => (each.disabled = false));
}"""
# The lowest contrast of any text that can be seen, by WCAG 2.2: [ratio, text].
LOWEST = """() => {
  const parsed = (color) => color.match(/[\\d.]+/g).map(Number);
  const luminance = (color) => {
    const [red, green, blue] = parsed(color).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if ((parsed(color)[3] ?? 1) > 0) return color;
    }
  };
  const found = [...document.body.querySelectorAll("*")]
    .filter((each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    .filter((each) => each.checkVisibility() && !each.closest(".unseen, .skip, option"))
    .map((each) => {
      const [one, other] = [luminance(getComputedStyle(each).color), luminance(ground(each))];
      return [(Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05), each.textContent.trim()];
    });
  return [found.length, found.sort((one, other) => one[0] - other[0])[0]];
}"""
DRAFTED = [*spoken(0, "A sentence."), *translated(0, ["一句"]), SourceText(1, "en", "Half a sen", 4, 1.0, 2.0, 2.0)]
DRAFTED += [TargetText(1, "zh", "半句", 1), TargetText(1, "he", "חצי", 1)]
TWO_FRAMES = "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))"
LINES = "[...document.querySelectorAll('#text .target')].map((line) => [line.lang, getComputedStyle(line).direction])"


async def shown(page: Page, path: str) -> None:
    """Wait until a page is there, and show everything that it has."""
    await page.wait_for_selector("body[data-ready=yes]" if path == "/" else "body[data-state=open]")
    await page.evaluate(SHOW_ALL, records(DRAFTED))


@PAGES
async def test_text_has_enough_contrast_in_light_and_dark(path, browser):
    async def lowest(page: Page, theme: str, contrast: str) -> tuple[int, tuple[float, str]]:
        await page.evaluate(
            "(values) => Object.assign(document.documentElement.dataset, values)",
            {"theme": theme, "contrast": contrast},
        )
        found: tuple[int, tuple[float, str]] = await page.evaluate(LOWEST)
        return found

    async with page_of_files(browser, path) as page:
        await shown(page, path)
        grounds = set()
        for theme in ("light", "dark"):
            for contrast in ("normal", "high"):
                count, (ratio, text) = await lowest(page, theme, contrast)
                assert count > (25 if path == "/" else 15)
                assert ratio >= 4.5, f"{text!r} in {theme}, contrast {contrast}: {ratio:.2f}"
            grounds.add(await page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert len(grounds) == 2
        assert await page.evaluate(LINES) == [["zh", "ltr"], ["he", "rtl"], ["zh", "ltr"]]


# How the lines of translations are marked: [text, underline, title, what screen readers are told].
MARKED = """() => [...document.querySelectorAll("#text .target")].map((line) => {
  const steady = line.querySelector(".steady");
  const style = getComputedStyle(steady);
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = "var(--problem)";
  const same = style.textDecorationColor === getComputedStyle(probe).color;
  probe.remove();
  const said = [...document.querySelectorAll("#spoken p")].map((each) => each.textContent);
  return [steady.textContent, `${style.textDecorationLine} ${style.textDecorationStyle} ${same}`, steady.title, line.textContent, said];
})"""


@PAGES
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_a_doubtful_translation_is_underlined_until_it_is_corrected(path, theme, browser):
    async with page_of_files(browser, path) as page:
        await page.wait_for_selector("body[data-ready=yes]" if path == "/" else "body[data-state=open]")
        await page.evaluate("(theme) => (document.documentElement.dataset.theme = theme)", theme)
        doubtful = [*records(spoken(0, "A sentence.")), json.loads(line(Translation(0, "zh", "一句", doubtful=True)))]
        await page.evaluate(SHOW_ALL, doubtful)
        told = ["may be wrong 一句"]
        assert await page.evaluate(MARKED) == [
            ["一句", "underline dotted true", "may be wrong", "一句may be wrong", told]
        ]
        correction = {"type": "correction", "sentence": 0, "language": "zh", "text": "两句"}
        await page.evaluate(SHOW_ALL, [*doubtful, correction])
        assert (await page.evaluate(MARKED))[-1][:3] == ["两句", "none solid false", ""]


@PAGES
async def test_a_sentence_that_may_be_misheard_is_underlined_with_its_translation(path, browser):
    said = SourceSentence(0, "en", "He lost it.", uncertain=True)
    misheard = [json.loads(line(each)) for each in (said, Translation(0, "zh", "他丢了。"))]
    async with page_of_files(browser, path) as page:
        await page.wait_for_selector("body[data-ready=yes]" if path == "/" else "body[data-state=open]")
        await page.evaluate(SHOW_ALL, misheard)
        seen = MARKED.replace(".target", ".target, #text .source")
        marked = await page.evaluate(seen)
        assert [each[:4] for each in marked] == [
            [text, "underline dotted true", "may be wrong", f"{text}may be wrong"]
            for text in ("He lost it.", "他丢了。")
        ]
        assert "may be wrong 他丢了。" in marked[0][4]
        correction = {"type": "correction", "sentence": 0, "text": "He lost hope."}
        await page.evaluate(SHOW_ALL, [*misheard, correction])
        source_line, translation = (await page.evaluate(seen))[-2:]
        assert source_line[:3] == ["He lost hope.", "none solid false", ""]
        assert translation[2] == "may be wrong", "it is of what was misheard"


# What sticks out of the window to the right, and controls that are too small for a finger or whose letters make iOS zoom in.
MISFITS = """(least) => {
  const seen = [...document.body.querySelectorAll("*")].filter((each) => each.checkVisibility() && !each.closest(".unseen, .skip"));
  const name = (each) => each.id || each.name || each.textContent.trim().slice(0, 20) || each.tagName;
  const wide = seen.filter((each) => each.getBoundingClientRect().right > innerWidth + 0.5 || each.getBoundingClientRect().left < -0.5);
  const small = seen.filter((each) => each.matches("button, select, input, summary") && each.getBoundingClientRect().height < least);
  const zoomed = seen.filter((each) => each.matches("select, input") && parseFloat(getComputedStyle(each).fontSize) < 16);
  const scrolls = document.scrollingElement.scrollWidth > innerWidth ? ["page"] : [];
  return [...wide, ...small, ...zoomed].map(name).concat(scrolls);
}"""
WIDE_WORD = [*spoken(3, "Donaudampfschiffahrtsgesellschaft" * 4), *translated(3, ["多" * 90])]


@PAGES
@PHONES
async def test_everything_fits_on_a_phone(path, size, browser):
    width, height = size
    async with page_of_files(browser, path, WIDE_WORD, width, height, has_touch=True, is_mobile=True) as page:
        await shown(page, path)
        assert await page.evaluate(MISFITS, TOUCHED_PX) == []


# What a menu cannot show whole, and whether the panel ends within the window and all of it within the panel.
CUT = """() => {
  const panel = document.querySelector("#display .panel");
  const texts = [...panel.querySelectorAll("select")].flatMap((each) => {
    const style = getComputedStyle(each);
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = style.font;
    const room = each.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return [...each.options].map(({ text }) => text).filter((text) => pen.measureText(text).width > room);
  });
  return [texts, panel.getBoundingClientRect().bottom <= innerHeight, panel.scrollWidth <= panel.clientWidth];
}"""


@pytest.mark.parametrize(
    ("path", "size", "languages"),
    [("/", (320, 568), ("en", "pt", "zh", "es", "de", "fr")), ("/view/x", (568, 320), ("en",))],
    ids=["upright", "on its side"],
)
async def test_what_can_be_chosen_of_the_display_is_whole_on_a_phone(path, size, languages, browser):
    width, height = size
    async with page_of_files(browser, path, width=width, height=height, has_touch=True, is_mobile=True) as page:
        for language in languages:
            await page.goto(f"http://localhost{path}?ui={language}")
            await page.click("#display summary")
            assert await page.evaluate(CUT) == [[], True, True], language


# The left edges of the boxes, and the most pixels from a box to its term.
PROPOSED = """() => {
  const labels = [...document.querySelectorAll("#glossary .proposed label")];
  const box = (label) => label.querySelector("input").getBoundingClientRect();
  const gaps = labels.map((label) => {
    const text = document.createRange();
    text.selectNodeContents(label.childNodes[1]);
    return text.getBoundingClientRect().left - box(label).right;
  });
  return [new Set(labels.map((label) => box(label).left)).size, labels.length, Math.max(...gaps)];
}"""


@pytest.mark.parametrize("width", [1280, 320])
async def test_proposed_terms_stand_in_columns_beside_their_boxes(width, browser):
    terms = [{"term": term, "count": 3} for term in ("NATO", "Marchetti Kowalski", "Ada", "University of Porto")]
    async with page_of_files(browser, "/", width=width, height=800) as page:
        await page.route("**/v1/terms", lambda route: route.fulfill(json={"terms": terms}))
        await page.wait_for_selector("body[data-ready=yes]")
        await page.click("#glossary summary")
        await expect(page.locator("#glossary .proposed label")).to_have_count(4)
        columns, count, gap = await page.evaluate(PROPOSED)
        assert columns <= (count - 1 if width > 1000 else 1)
        assert 0 < gap < 16


# Goes on with Tab from the beginning until an element comes again: [name, whether the focus can be seen].
FOCUSED = """() => {
  const found = document.activeElement;
  const style = getComputedStyle(found);
  const label = found.labels?.[0]?.textContent.trim().split("\\n")[0].trim();
  return [found.getAttribute("aria-label") || label || found.textContent.trim(), parseFloat(style.outlineWidth) >= 2 && style.outlineStyle !== "none"];
}"""
ORDER = {
    "/": [
        "Skip to the text",
        "Terms",
        "Display",
        "Share",
        "Speech and translation",
        "Sound from",
        "Translate",
        "Token",
        "Start",
    ],
    "/view/x": ["Skip to the text", "Language", "Display", "Download", "Speech and translation"],
}


@PAGES
def test_the_keyboard_reaches_everything_in_order_and_the_focus_is_seen(path, runner, browser):
    async def work() -> list[tuple[str, bool]]:
        async with page_of_files(browser, path) as page:
            await page.wait_for_selector("body[data-ready=yes]" if path == "/" else "body[data-state=open]")
            found: list[tuple[str, bool]] = []
            for _ in ORDER[path]:
                await page.keyboard.press("Tab")
                found.append(await page.evaluate(FOCUSED))
            return found

    found = runner.run(work())
    for (name, _), wanted in zip(found, ORDER[path], strict=True):
        assert name.startswith(wanted), found
    assert all(seen for _, seen in found), found


@PAGES
async def test_every_control_has_a_name(path, browser):
    async with page_of_files(browser, path) as page:
        await shown(page, path)
        snapshot = await page.locator("body").aria_snapshot()
    kinds = ("button", "combobox", "textbox", "meter", "link", "img", "region", "log")
    controls = [line.strip("- ").rstrip(":") for line in snapshot.splitlines() if line.strip("- ").startswith(kinds)]
    assert len(controls) > 8
    assert [line for line in controls if '"' not in line] == []


SHOW_FIELDS = "(names) => document.querySelectorAll('#setup .field, #swap').forEach((each) => (each.hidden = !each.matches(names)))"
MICROPHONE_FIELDS, RECORDING_FIELDS = "#setup .field:has(select), #swap", "#setup .field:not(#device), #swap"
BAR = "[...document.querySelectorAll('header, #controls')].reduce((sum, each) => sum + each.offsetHeight, 0)"
# The middles of what stands beside Start, in pixels from the top.
ROW = """() => [...document.querySelectorAll("#setup .field, #start")].filter((each) => each.checkVisibility()).map((each) => {
  const { top, bottom } = each.getBoundingClientRect();
  return Math.round((top + bottom) / 2);
})"""


async def test_the_bars_are_low_and_everything_to_choose_is_in_one_row(browser):
    async with page_of_files(browser, "/", height=800) as page:
        await page.wait_for_selector("body[data-ready=yes]")
        for names in (MICROPHONE_FIELDS, RECORDING_FIELDS):
            await page.evaluate(SHOW_FIELDS, names)
            assert await page.evaluate(BAR) < 120
            row = await page.evaluate(ROW)
            assert len(row) >= 5
            assert len(set(row)) == 1, row


async def test_downloads_are_out_of_the_way_on_a_phone_during_the_talk(browser):
    async with page_of_files(browser, "/", width=390, height=844) as page:
        await page.wait_for_selector("body[data-ready=yes]")
        await page.evaluate("document.querySelector('#download').hidden = false")  # as once a session was there
        await expect(page.locator("#download")).to_be_visible()
        await page.evaluate("document.body.dataset.running = 'yes'")
        await expect(page.locator("#download")).to_be_hidden()


async def test_what_was_said_is_told_apart_from_its_translation(browser):
    style = "(line) => [getComputedStyle(line).color, getComputedStyle(line).fontWeight]"
    async with page_of_files(browser, "/view/x", DRAFTED) as page:
        said, translated = [await page.locator(f"#text .{kind}").first.evaluate(style) for kind in ("source", "target")]
    assert said[0] != translated[0]
    assert int(said[1]) < int(translated[1])


TALK = [event for n in range(30) for event in (*spoken(n, f"Sentence {n}."), *translated(n, [f"第{n}句"]))]
FROM_THE_END = "(list) => list.scrollHeight - list.scrollTop - list.clientHeight"


@pytest.mark.parametrize("setting", [("size", "220"), ("size", "85"), ("layout", "beside"), ("layout", "target")])
async def test_the_end_stays_in_sight_when_the_letters_change(setting, browser):
    async with page_of_files(browser, "/view/x", TALK) as page:
        text, newest = page.locator("#text"), page.locator("#newest")
        await expect(page.locator("#text article")).to_have_count(30)
        await page.click("#display summary")
        await page.locator(f"[name={setting[0]}]").select_option(setting[1])
        await page.evaluate(TWO_FRAMES)
        assert await text.evaluate(FROM_THE_END) < 2
        await expect(newest).to_be_hidden()
        # A reader of earlier text is left there.
        await text.evaluate("(list) => list.scrollTo(0, 0)")
        await expect(newest).to_be_visible()
        await page.locator(f"[name={setting[0]}]").select_option(index=1)
        await page.evaluate(TWO_FRAMES)
        assert await text.evaluate(FROM_THE_END) > 100


async def test_nothing_moves_where_that_is_not_wanted(browser):
    async with page_of_files(browser, "/view/x") as page:
        await page.emulate_media(reduced_motion="reduce")
        await page.wait_for_selector("body[data-state=open][data-live=yes]")
        assert await page.evaluate("document.getAnimations().length") == 0


# Counts in ``locks`` how often the screen was asked to stay on, less how often it was let go.
LOCKS = """
window.locks = [0, 0];
navigator.wakeLock.request = async () => {
  locks[0] += 1;
  return { release() { locks[1] += 1; } };
};
"""


async def test_the_screen_stays_on_while_somebody_reads(browser):
    async with page_of_files(browser, "/view/x", init=LOCKS) as page:
        await page.wait_for_selector("body[data-state=open]")
        found = await page.evaluate("locks")
    assert found == [1, 0]


@PAGES
async def test_sentences_in_progress_are_not_shown_where_that_is_not_wanted(path, browser):
    async with page_of_files(browser, path) as page:
        await shown(page, path)
        await expect(page.locator("#text .target:visible")).to_have_count(3)
        await page.select_option("[name=sentences]", "whole", force=True)
        await expect(page.locator("#text .target:visible")).to_have_text(["一句"])
        await expect(page.locator("#text article:visible")).to_have_count(1)
