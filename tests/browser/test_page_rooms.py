"""The address for readers, over sessions, reloads and copies of the speaker's page; in Chromium."""

import re

from playwright.async_api import Page, expect

from pipeline.config import PipelineConfig
from pipeline.errors import UsageError
from pipeline.push.push import PushSink
from pipeline.server.pushes import Pushes
from tests.browser.browser import QUIET, TALK, Network, has_said, has_state, only, page_at, page_of, texts_of
from tests.browser.test_page import downloaded
from tests.conftest import write_wav
from tests.server.conftest import speech
from tests.server.running import ask, running, until
from tests.server.test_directory import directory, needs_nats, serving_together


async def room_of(page: Page) -> str:
    await page.wait_for_selector("body[data-ready=yes]")
    return str(await page.get_attribute("#viewer", "href"))


def test_readers_get_an_address_that_other_machines_reach(runner, browser, service_of):
    async def work(shared_at: str | None) -> str:
        async with (
            running(service_of(), shared_at=shared_at) as server,
            page_at(browser, f"http://localhost:{server.port}/") as page,
        ):
            room = await room_of(page)
            await page.click("#share summary")
            if shared_at is None:  # no other device reaches it
                await expect(page.locator("#local")).to_be_visible()
                await expect(page.locator("#qr")).to_be_hidden()
            else:
                await expect(page.locator("#local")).to_be_hidden()
                await expect(page.locator("#qr")).not_to_have_js_property("naturalWidth", 0)
            return room

    assert runner.run(work("https://192.0.2.5:8000/")).startswith("https://192.0.2.5:8000/view/")
    assert runner.run(work(None)).startswith("http://localhost:")


async def test_readers_stay_from_one_session_to_the_next(browser, service_of, expected, tmp_path):
    """They come before the first session, and need no other address for the second. All are told that text is recorded."""
    recording = write_wav(tmp_path / "talk.wav", speech())
    (folder := tmp_path / "records").mkdir()

    async def speak(speaker: Page, reader: Page) -> None:
        await speaker.click("#start")
        await has_state(speaker, "ended")
        await has_state(reader, "ended")

    async with page_of(browser, service_of(folder)) as (server, speaker):
        room = await room_of(speaker)
        async with page_at(browser, f"{room}?language=zh") as reader, page_at(browser, "about:blank") as overlay:
            await has_state(reader, "waiting")
            await expect(reader.locator("#recorded")).to_be_hidden()
            await expect(speaker.locator("#recorded")).to_be_visible()
            await speaker.select_option("[name=kind]", "file")
            await speaker.set_input_files("[name=file]", recording)
            await speak(speaker, reader)
            await expect(reader.locator("#recorded")).to_be_visible()
            assert await texts_of(reader) == only(expected, "en", "zh")
            await expect(reader.locator("#state")).to_contain_text("The next talk appears here")
            await overlay.goto(room.replace("/view/", "/overlay/"))
            await speaker.click("#start")
            assert await room_of(speaker) == room
            await expect(overlay.locator(".target").last).to_have_text(expected[1, "zh"])
            await expect(reader.locator("article:not(.earlier)")).to_have_count(2)
            await expect(reader.locator("article.earlier")).to_have_count(2)
            await expect(reader.locator(".divider")).to_have_count(1)
            await has_state(speaker, "ended")
            await expect(speaker.locator("article.earlier")).to_have_count(2)
        assert server.service.ended.sessions == 2


async def test_all_are_told_that_a_disk_is_full(browser, service_of, tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.server.session.new_name", lambda: "x")
    monkeypatch.setattr("pipeline.server.websocket._STATUS_S", 0.01)
    recording = write_wav(tmp_path / "talk.wav", speech())
    (folder := tmp_path / "records").mkdir()
    (folder / "x.jsonl").symlink_to("/dev/full")
    async with page_of(browser, service_of(folder)) as (_, speaker), page_at(browser, await room_of(speaker)) as reader:
        await speaker.select_option("[name=kind]", "file")
        await speaker.set_input_files("[name=file]", recording)
        await speaker.click("#start")
        await expect(speaker.locator("#problem")).to_contain_text("The text is no longer recorded")
        await has_state(reader, "ended")
        await expect(reader.locator("#recorded")).to_be_hidden()


async def test_the_speaker_is_told_what_is_not_sent_elsewhere(browser, service_of, tmp_path):
    def refuse(config: PipelineConfig) -> list[PushSink]:
        raise UsageError(f"--push zoom.xx is for a language that is no target; there is {config.languages.targets[0]}")

    service = service_of()
    service._pushes = Pushes(refuse)
    recording = write_wav(tmp_path / "talk.wav", speech())
    async with page_of(browser, service) as (_, speaker):
        await speaker.select_option("[name=kind]", "file")
        await speaker.set_input_files("[name=file]", recording)
        await speaker.click("#start")
        await expect(speaker.locator("#problem")).to_have_text(
            "--push zoom.xx is for a language that is no target; there is zh."
        )


async def test_a_reload_of_the_speaker_goes_on_with_the_session(browser, service_of):
    """The microphone of the test begins anew when it is opened again, so that the sentences come a second time."""
    async with page_of(browser, service_of(), init=TALK) as (server, speaker):
        room = await room_of(speaker)
        await speaker.click("#start")
        await has_said(speaker, 2)
        await speaker.reload()
        await has_state(speaker, "open")
        await expect(speaker.locator("#state")).to_have_text("Paused")
        await expect(speaker.locator("article[data-number='0'] p")).to_have_count(3)
        assert await room_of(speaker) == room
        await expect(speaker.locator("#spoken p")).to_have_count(0)  # it was said before
        await expect(speaker.get_by_role("button", name="Continue")).to_be_focused()
        await speaker.keyboard.press("Enter")
        await expect(speaker.locator("#state")).to_have_text("Listening")
        await has_said(speaker, 3)  # what exactly, depends on the speed of the machine
        await speaker.click("#stop")
        await has_state(speaker, "ended")
        texts = await texts_of(speaker)
        assert all(texts[number, language] for number in (0, 2) for language in ("en", "zh", "he"))
        begun = [text for (_, language), text in texts.items() if language == "en" and "brother" in text]
        assert len(begun) == 2, f"what was said as soon as it was heard again is there: {texts}"
        assert server.service.ended.sessions == 1
        await speaker.reload()  # nothing is left to go on with
        await room_of(speaker)
        await has_state(speaker, "idle")


async def test_a_session_that_ended_before_the_page_was_back_is_said(browser, service_of):
    async with page_of(browser, service_of(resume_s=0.0), init=QUIET) as (server, speaker):
        await speaker.click("#start")
        await has_state(speaker, "open")
        await speaker.goto("about:blank")
        await until(lambda: not server.service.sessions)
        await speaker.goto(f"http://localhost:{server.port}/")
        await expect(speaker.get_by_role("alert")).to_have_text(
            "The session has ended meanwhile. Press Start to begin another one."
        )
        await expect(speaker.locator("#start")).to_be_enabled()


async def test_after_a_server_was_killed_the_pages_say_what_is_kept(browser, service_of, expected):
    """The one that is started in its place knows neither the session nor its room."""
    async with (
        running(service_of()) as server,
        running(service_of()) as next_server,
        Network(server.port) as network,
        page_at(browser, f"http://localhost:{network.port}/", TALK) as speaker,
        page_at(browser, "about:blank") as reader,
    ):
        await reader.goto(f"{await room_of(speaker)}?language=zh")
        await speaker.click("#start")
        await has_said(speaker, 2)
        await expect(reader.locator(".target").first).to_have_text(expected[0, "zh"])
        network.to = next_server.port
        network.cut()
        await has_state(speaker, "refused")
        await expect(speaker.get_by_role("alert")).to_have_text(
            re.compile(
                r"The session has ended meanwhile\. .* What was said until 0:0\d stays on this page and can be downloaded\. "
            )
        )
        assert (await downloaded(speaker, "txt")).startswith(expected[0, "zh"])
        await has_state(reader, "cut")
        await expect(reader.locator("#state")).to_contain_text("its last words may be missing")
        await expect(reader.locator(".target").first).to_have_text(expected[0, "zh"])


# A copy waits for a lock that the page before a reload may hold a little longer; here nothing frees it.
IMPATIENT = "AbortSignal.timeout = ((timeout) => (ms) => timeout.call(AbortSignal, ms / 10))(AbortSignal.timeout);"


async def test_a_copy_of_the_tab_takes_a_room_of_its_own(browser, service_of):
    async with page_of(browser, service_of(), init=QUIET + IMPATIENT) as (_, speaker):
        room = await room_of(speaker)
        await expect(speaker.locator("#renew")).to_be_enabled()
        await speaker.click("#start")
        await has_state(speaker, "open")
        await expect(speaker.locator("#renew")).to_be_disabled()
        async with speaker.expect_popup() as opening:
            await speaker.evaluate("window.open(location.href)")  # the browser copies what the tab has stored
        copy = await opening.value
        assert await copy.evaluate("sessionStorage.length") > 0
        assert await room_of(copy) != room
        await has_state(copy, "idle")
        await has_state(speaker, "open")
        await speaker.click("#stop")
        await has_state(speaker, "ended")
        await speaker.click("#share summary")
        await speaker.click("#renew")
        await expect(speaker.locator("#viewer")).not_to_have_attribute("href", room)


async def test_pages_tell_a_proxy_their_room(browser, service_of, tmp_path):
    """So that speaker and readers reach the same one of several servers."""
    recording = write_wav(tmp_path / "talk.wav", speech()[:16_000])
    asked: list[str] = []
    async with (
        running(service_of()) as server,
        page_at(browser, f"http://localhost:{server.port}/") as speaker,
        page_at(browser, "about:blank") as reader,
    ):
        for page in (speaker, reader):
            page.on("websocket", lambda socket: asked.append(socket.url))
        room = await room_of(speaker)
        await reader.goto(room)
        await has_state(reader, "waiting")
        await speaker.select_option("[name=kind]", "file")
        await speaker.set_input_files("[name=file]", recording)
        await speaker.click("#start")
        await has_state(speaker, "ended")
        name = room.rpartition("/")[2]
        assert set(asked) == {f"ws://localhost:{server.port}/v1/session?room={name}"}
    assert len(asked) >= 2


@needs_nats
async def test_pages_go_on_where_a_directory_sends_them(browser, service_of, expected, tmp_path):
    recording = write_wav(tmp_path / "talk.wav", speech())
    services = service_of(max_sessions=1), service_of()
    async with (
        directory(tmp_path) as url,
        serving_together(url, *services) as (first, second),
        first.connect() as other,
        page_at(browser, f"{first.url}/") as speaker,
    ):
        assert (await ask(other, type="start"))["type"] == "started"
        room = await room_of(speaker)
        async with page_at(browser, f"{room}?language=zh") as reader:
            await has_state(reader, "waiting")
            await speaker.select_option("[name=kind]", "file")
            await speaker.set_input_files("[name=file]", recording)
            await speaker.click("#start")
            await until(lambda: len(second.service.sessions) == 1)
            await has_state(speaker, "ended")
            await has_state(reader, "ended")
            assert await texts_of(reader) == only(expected, "en", "zh")
        assert second.service.ended.sessions == 1
