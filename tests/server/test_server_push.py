"""A server sends finished sentences elsewhere, those of one session at a time."""

import json
import logging

import pytest

from pipeline.apps import serve
from pipeline.apps.pushes import Where, open_pushes
from pipeline.errors import SinkError, UsageError
from pipeline.push import push
from pipeline.server.pushes import Pushes
from pipeline.server.service import Service
from tests.conftest import PHRASE_SECONDS, PHRASES, read_wav
from tests.push.test_push import Server
from tests.server.running import ask, final, finish, heard, running, speak, until

SPEECH = read_wav(PHRASES)[: round(PHRASE_SECONDS * 16_000)]


def chinese(records):
    return [text for (_, language), text in final(records).items() if language == "zh"]


@pytest.fixture
def place(monkeypatch, tmp_path):
    """A webhook."""
    monkeypatch.setattr(push, "assets", lambda: tmp_path)
    server = Server()
    yield server
    server.close()


@pytest.mark.slow
async def test_sessions_are_sent_one_after_another(demo_config, demo_models, place, caplog):
    def opened(config):
        return open_pushes([Where("webhook", "zh", place.url)], config.languages.targets, config.subtitles)

    texts = []
    service = Service(demo_config, demo_models, pushes=Pushes(opened))
    async with running(service) as server:
        async with server.connect() as first, server.connect() as second:
            for speaker in (first, second):  # in this order
                await ask(speaker, type="start")
            await speak(second, SPEECH)
            records = await finish(second)
            assert final(records)
            assert [one["message"] for one in records if one["type"] == "push"] == [
                "captions of another session are sent elsewhere now, not of this one"
            ]
            await speak(first, SPEECH)
            texts += chinese(await finish(first))
        await until(lambda: not service.sessions)
        async with server.connect() as english, server.connect() as third:
            await ask(english, type="start", targets=["en"])
            while "is no target" not in (await heard(english)).get("message", ""):
                pass
            await finish(english)
            await until(lambda: len(service.sessions) == 0)
            await ask(third, type="start")
            await speak(third, SPEECH)
            texts += chinese(await finish(third))
    said = [json.loads(place.next().body) for _ in texts]
    assert [(one["seq"], one["text"]) for one in said] == list(enumerate(texts, 1))
    assert place.asked.empty()
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 2
    assert warnings[0].endswith("is not pushed, since another one is")
    assert warnings[1].endswith("is for a language that is no target; there is en")


@pytest.mark.slow
async def test_a_place_that_fails_is_logged_and_the_session_goes_on(demo_config, demo_models, caplog):
    class Full:
        lost, problem = 0, ""

        def begin(self, clock):
            self.clock = clock

        def write(self, event):
            raise SinkError("cannot write (No space left on device)")

        def close(self):
            raise SinkError("cannot close")

    service = Service(demo_config, demo_models, pushes=Pushes(lambda _: [Full()]))
    async with running(service) as server, server.connect() as speaker:
        await ask(speaker, type="start")
        await speak(speaker, SPEECH)
        assert final(await finish(speaker))
    errors = [record.getMessage().partition(": ")[2] for record in caplog.records if record.levelno == logging.ERROR]
    assert errors == ["cannot write (No space left on device)", "cannot close"]


@pytest.mark.slow
async def test_a_place_that_fails_otherwise_is_logged_and_the_session_goes_on(demo_config, demo_models, caplog):
    class Broken:
        lost, problem = 0, ""

        def begin(self, clock):
            raise RuntimeError("no clock")

        def write(self, event):
            raise KeyError("text")

        def close(self):
            raise OSError("cannot close")

    def full(config):
        raise OSError(28, "No space left on device")

    for opened in (full, lambda _: [Broken()]):
        service = Service(demo_config, demo_models, pushes=Pushes(opened))
        async with running(service) as server, server.connect() as speaker:
            await ask(speaker, type="start")
            await speak(speaker, SPEECH)
            assert final(await finish(speaker))
    said = [
        record.getMessage().partition(" ")[2].partition(" ")[2]
        for record in caplog.records
        if record.levelno >= logging.WARNING
    ]
    assert said == [
        "is not pushed: [Errno 28] No space left on device",
        "is not pushed: no clock",
        "Broken failed: 'text'",
        "cannot close",
    ]


@pytest.mark.parametrize(
    ("where", "words"),
    [("zoom.de=https://zoom.example/x", "no target"), ("webhook=ftp://x.example", "needs an address")],
)
def test_mistakes_end_the_command_before_it_serves(where, words):
    with pytest.raises(UsageError, match=words):
        serve.run(["--config", "demo-zh", "--port", "0", "--push", where])
