"""Where a speaker's page gets its sound from, and what it says when there is none; in Chromium."""

import asyncio
import math
import os
import signal
from base64 import b64encode
from contextlib import suppress
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pytest
from playwright.async_api import Browser, Page, expect

from pipeline.events import SAMPLE_RATE
from pipeline.server import intake
from pipeline.server.access import Access
from tests.browser.browser import (
    FAR_NAME,
    MICROPHONE,
    SHARED_TITLE,
    Texts,
    has_said,
    has_state,
    microphone_of,
    page_at,
    page_of,
    texts_of,
)
from tests.conftest import write_wav
from tests.server.conftest import speech
from tests.server.running import ask, running

SENTENCE = speech()[: 3 * SAMPLE_RATE]
"""The first sentence."""
TOKEN = "a token that nobody guesses"


async def test_without_permission_for_the_microphone_the_page_says_what_to_do(browser, service_of):
    async with page_of(browser, service_of()) as (server, page):
        await page.click("#start")
        await expect(page.get_by_role("alert")).to_contain_text("Allow it with the icon beside the page's address")
        await expect(page.locator("#start")).to_be_enabled()
        assert not server.service.sessions


async def test_over_plain_http_from_another_machine_the_page_says_what_to_do(browser, service_of):
    access = Access.of(names=[FAR_NAME])
    async with running(service_of(), access) as server, page_at(browser, f"http://{FAR_NAME}:{server.port}/") as page:
        await page.wait_for_selector("body[data-ready=yes]")
        await expect(page.get_by_role("alert")).to_contain_text("https or localhost only")
        await expect(page.locator("#start")).to_be_disabled()


async def test_a_token_is_asked_for(browser, service_of):
    async with page_of(browser, service_of(), Access.of(TOKEN), **MICROPHONE) as (_, page):
        await page.click("#start")
        await expect(page.get_by_role("alert")).to_contain_text("Type in the token first")
        await page.keyboard.type("another token")  # the field has the focus
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("The token is missing or wrong")
        await page.get_by_label("Token").fill(TOKEN)
        await page.click("#start")
        await has_state(page, "open")
        await expect(page.get_by_role("alert")).to_be_hidden()
        await page.click("#stop")
        await has_state(page, "ended")


async def test_a_full_server_says_so(browser, service_of):
    async with (
        running(service_of(max_sessions=1)) as server,
        server.connect() as other,
        page_at(browser, f"http://localhost:{server.port}/", **MICROPHONE) as page,
    ):
        assert (await ask(other, type="start"))["type"] == "started"
        await page.click("#start")
        await expect(page.get_by_role("alert")).to_have_text(
            "The server has 1 sessions, which is as many as it can serve in time; try again later."
        )
        await has_state(page, "refused")
        await expect(page.locator("#start")).to_be_enabled()


NO_FRAMES = "delete window.MediaStreamTrackProcessor;"
"""As in browsers other than Chromium: sound passes through an AudioContext."""
NO_SOUND = "window.MediaStreamTrackProcessor = class { constructor() { throw new TypeError('for pictures'); } };"
"""As in browsers that read only pictures so."""
# Captures the microphone, pauses for a moment, and goes on: samples before, in and after the pause, and what is open at the end.
CAPTURE = """async () => {
  const { capture } = await import("/static/capture.js");
  const tracks = [], contexts = [];
  const { mediaDevices } = navigator, ask = mediaDevices.getUserMedia.bind(mediaDevices), { AudioContext } = window;
  mediaDevices.getUserMedia = async (wanted) => (tracks.push(...(await ask(wanted)).getTracks()), new MediaStream(tracks));
  window.AudioContext = class extends AudioContext { constructor(options) { super(options); contexts.push(this); } };
  let heard = 0, loud = 0;
  const audio = await capture("microphone", { onAudio(samples, peak) { heard += samples.length; loud = Math.max(loud, peak); }, onEnd() {} });
  const until = async (done) => { while (!done()) await new Promise(requestAnimationFrame); };
  const counts = [];
  await until(() => heard > audio.rate && loud > 0.05);  // silence comes first
  await audio.pause();
  counts.push(heard);
  const time = performance.now();
  await until(() => performance.now() > time + 300);
  counts.push(heard);
  audio.resume();
  await until(() => heard > counts[1]);
  await audio.stop();
  counts.push(heard);
  return { counts, loud, rate: audio.rate, tracks: tracks.map((track) => track.readyState), contexts: contexts.map(({ state }) => state) };
}"""


@pytest.mark.parametrize("init", ["", NO_FRAMES, NO_SOUND], ids=["track", "context", "pictures"])
async def test_a_pause_leaves_out_audio_and_a_stop_gives_the_rest(init, browser, service_of):
    async with page_of(browser, service_of(), init=init, **MICROPHONE) as (_, page):
        found = await page.evaluate(CAPTURE)
    before, paused, after = found["counts"]
    assert before == paused < after
    # Audio comes in frames of 10 ms or pieces of 128 samples; messages have a tenth of a second, but for the last before a pause.
    piece = 128 if init else found["rate"] // 100
    assert before % piece == after % piece == 0
    assert 0.05 < found["loud"] <= 1
    assert found["tracks"] == ["ended"]
    assert found["contexts"] == (["closed"] if init else [])


# A track whose frames, of 10 ms, come when the test says; and how many were given.
FRAMES = """async () => {
let waiting, given = 0, reason;
window.MediaStreamTrackProcessor = class { readable = new ReadableStream({ start: (controller) => (waiting = controller) }); };
const add = (time, sampleRate = 48000) => waiting.enqueue(
  { sampleRate, numberOfFrames: 480, numberOfChannels: 1, timestamp: 1000 * time, copyTo: (plane) => plane.fill(0.5), close() {} });
const until = async (done) => { while (!done()) await new Promise(requestAnimationFrame); };
const later = async (time) => { await until(() => performance.now() > time); add(performance.now()); };
const begin = async (rate) => {
  const { read } = await import("/static/track.js");
  const reading = read({ stop() {} }, rate, (samples) => (given += samples.length / 480), (why) => (reason = why));
  add(performance.now());
  return reading;
};
"""
LATE = """
  const reader = await begin();
  await later(performance.now() + 20);
  const called = performance.now(), pausing = reader.pause();
  for (let age = 500; age > 0; age -= 10) add(called - age);  // were said before
  await later(called + 20);
  await pausing;
  const before = given;
  await later(performance.now() + 20);
  for (let age = 100; age > 0; age -= 10) add(performance.now() - age);  // were said in the pause
  reader.resume();
  for (const ms of [20, 30]) await later(performance.now() + ms);
  const stopping = reader.stop();
  await later(performance.now() + 20);
  await stopping;
  return [before, given];
}"""
CHANGED = """
  const reader = await begin();
  add(performance.now(), 44100);
  await until(() => reason);
  await reader.stop();
  return [given, reason];
}"""


async def test_what_waits_when_the_speaker_pauses_is_given_and_what_was_said_in_the_pause_is_not(browser, service_of):
    async with page_of(browser, service_of()) as (_, page):
        assert await page.evaluate(FRAMES + LATE) == [53, 56]


async def test_sound_that_changes_its_rate_ends_with_a_reason(browser, service_of):
    async with page_of(browser, service_of()) as (_, page):
        assert await page.evaluate(FRAMES + CHANGED) == [1, "The sound cannot be opened: 44100 Hz"]


async def test_sound_of_another_rate_than_before_is_not_read_from_its_track(browser, service_of):
    async with page_of(browser, service_of()) as (_, page):
        assert await page.evaluate(FRAMES + "return [await begin(44100), typeof await begin(48000)]; }") == [
            None,
            "object",
        ]


UNPLUGGED = """
const { mediaDevices } = navigator, ask = mediaDevices.getUserMedia.bind(mediaDevices);
mediaDevices.getUserMedia = async (wanted) => { const stream = await ask(wanted); stream.getTracks()[0].stop(); return stream; };
"""


async def test_a_microphone_that_is_gone_before_it_is_heard_is_said_to_be(browser, service_of):
    async with page_of(browser, service_of(), init=UNPLUGGED, **MICROPHONE) as (server, page):
        await page.click("#start")
        await expect(page.get_by_role("alert")).to_contain_text("was disconnected. Connect it and press Start again")
        await expect(page.locator("#start")).to_be_enabled()
        assert not server.service.sessions


async def renderers(browser: Browser) -> list[int]:
    """The processes of the browser that run pages."""
    session = await browser.new_browser_cdp_session()
    found = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
    return [process["id"] for process in found if process["type"] == "renderer"]


def send(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


HEARING = """async () => {
  while (document.querySelector("#level").value < 0.55) await new Promise(requestAnimationFrame);
}"""


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no signal that stops a process")
async def test_a_page_that_stands_still_for_a_moment_loses_nothing(browser, service_of, expected, monkeypatch):
    """As where the computer is busy with something else; sound that comes meanwhile waits. Silence in its place would end a sentence."""
    monkeypatch.setattr(intake, "_SILENT_S", math.inf)
    async with page_of(browser, service_of(), **MICROPHONE) as (_, page):
        await page.click("#start")
        await page.evaluate(HEARING)
        pages = await renderers(browser)
        assert pages
        for _ in range(5):
            try:
                send(pages, signal.SIGSTOP)
                await asyncio.sleep(0.5)
            finally:
                send(pages, signal.SIGCONT)
            await asyncio.sleep(0.2)
        await has_said(page, 4)
        await page.click("#stop")
        await has_state(page, "ended")
        assert await texts_of(page) == expected


AGENTS = {
    "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0": "crossed-out microphone",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Safari/605.1.15": (
        "Safari > Settings > Websites > Microphone"
    ),
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Mobile/15E148 "
    "Safari/604.1": "Website Settings > Microphone > Allow",
}


@pytest.mark.parametrize(("agent", "advice"), AGENTS.items(), ids=["firefox", "safari", "iphone"])
async def test_each_browser_has_its_own_way_to_allow_the_microphone(agent, advice, browser, service_of):
    async with page_of(browser, service_of(), user_agent=agent) as (_, page):
        await page.click("#start")
        await expect(page.get_by_role("alert")).to_contain_text(advice)


BLOCKED = """async () => {
  const { blocked } = await import("/static/permission.js");
  return ["Permission dismissed", "Permission denied by system"].map((message) => blocked({ message }, navigator.userAgent));
}"""


async def test_a_question_closed_and_a_system_that_forbids_are_told_apart(browser, service_of):
    async with page_of(browser, service_of()) as (_, page):
        dismissed, system = await page.evaluate(BLOCKED)
    assert "Press Start again and choose Allow" in dismissed
    assert "system's privacy settings" in system


def resembles(texts: Texts, expected: Texts) -> bool:
    """Whether the first sentence was heard. Resampled twice, sound may give "wanna" for "want to"."""
    alike = SequenceMatcher(None, texts[0, "en"], expected[0, "en"]).ratio() > 0.8
    return alike and texts.keys() == {key for key in expected if key[0] == 0}


async def test_the_sound_of_a_tab_is_translated_until_it_is_closed(browser, service_of, expected, tmp_path):
    sound = b64encode(write_wav(tmp_path / "talk.wav", SENTENCE).read_bytes()).decode()
    talk = f"<title>{SHARED_TITLE}</title><button onclick='document.querySelector(`audio`).play()'>Play</button>"
    async with page_of(browser, service_of()) as (_, page):
        other = await page.context.new_page()
        await other.set_content(f'{talk}<audio src="data:audio/wav;base64,{sound}"></audio>')
        await page.bring_to_front()
        await page.select_option("[name=kind]", "screen")
        await page.click("#start")
        await has_state(page, "open")
        await other.click("button")
        await has_said(page, 2)
        await other.close()
        await has_state(page, "ended")
        assert resembles(await texts_of(page), expected)


async def choose_file(page: Page, path: Path, pace: str = "fast") -> None:
    await page.select_option("[name=kind]", "file")
    await page.set_input_files("[name=file]", path)
    await page.select_option("[name=pace]", pace)


async def test_a_recording_is_translated_whole_even_over_plain_http(browser, service_of, expected, tmp_path):
    async with (
        running(service_of(), Access.of(names=[FAR_NAME])) as server,
        page_at(browser, f"http://{FAR_NAME}:{server.port}/") as page,
    ):
        await page.wait_for_selector("body[data-ready=yes]")
        await choose_file(page, write_wav(tmp_path / "talk.wav", speech()))
        await expect(page.get_by_role("alert")).to_be_hidden()
        await page.click("#start")
        await has_state(page, "ended")
        assert await texts_of(page) == expected
        view = str(await page.get_attribute("#viewer", "href"))
        assert "/view/" in view  # told by the server: over plain http the page has no means to compute it


async def test_a_recording_can_be_played_while_it_is_translated(browser, service_of, expected, tmp_path):
    async with page_of(browser, service_of()) as (_, page):
        await choose_file(page, write_wav(tmp_path / "talk.wav", SENTENCE), "aloud")
        await page.click("#start")
        await has_state(page, "ended")
        assert resembles(await texts_of(page), expected)


@pytest.mark.parametrize("pace", ["fast", "aloud"])
async def test_a_file_that_is_no_audio_is_said_to_be_none(pace, browser, service_of, tmp_path):
    path = tmp_path / "letter.wav"
    path.write_text("Dear reader")
    async with page_of(browser, service_of()) as (server, page):
        await choose_file(page, path, pace)
        await page.click("#start")
        await expect(page.get_by_role("alert")).to_contain_text("cannot play this file. Choose a recording such as wav")
        await expect(page.locator("#start")).to_be_enabled()
        assert not server.service.sessions


async def test_a_recording_too_long_to_decode_is_refused(browser, service_of, tmp_path):
    long = "Object.defineProperty(HTMLMediaElement.prototype, 'duration', { get: () => 7260 });"
    async with page_of(browser, service_of(), init=long) as (_, page):
        await choose_file(page, write_wav(tmp_path / "talk.wav", speech()))
        await page.click("#start")
        await expect(page.get_by_role("alert")).to_contain_text("has 121 minutes; a page can decode 60 at most")


async def test_where_tabs_cannot_be_shared_the_page_says_what_can(browser, service_of):
    phone = "delete MediaDevices.prototype.getDisplayMedia;"
    async with page_of(browser, service_of(), init=phone) as (_, page):
        await page.select_option("[name=kind]", "screen")
        await expect(page.get_by_role("alert")).to_contain_text("cannot share the sound of a tab. Use Chrome")
        await expect(page.locator("#start")).to_be_disabled()
        await page.select_option("[name=kind]", "microphone")
        await expect(page.get_by_role("alert")).to_be_hidden()
        await expect(page.locator("#start")).to_be_enabled()


async def test_a_microphone_that_gives_nothing_is_noticed(browser, service_of):
    async with page_of(browser, service_of(), init=microphone_of(np.zeros(8 * SAMPLE_RATE, np.int16))) as (_, page):
        await page.click("#start")
        await expect(page.get_by_role("alert")).to_contain_text("Nothing is heard")
        await page.click("#stop")
        await has_state(page, "ended")
