"""Translations are spoken to those who listen: over the server's WebSocket, OpenAI's interface, and on the page."""

import asyncio
import base64
import json
import subprocess
import sys
import threading

import pytest
from websockets.exceptions import ConnectionClosed

from pipeline.apps.speaking import voices_for
from pipeline.core.notices import TranslationLost
from pipeline.events import Translation
from pipeline.server.limits import ServerLimits
from pipeline.server.service import Service
from pipeline.server.speaking import Listener, SessionVoices
from pipeline.speaking.voice import PiperVoice
from tests.conftest import PHRASE_SECONDS
from tests.server.conftest import speech
from tests.server.running import ask, finish, rest, running, speak, until, with_hebrew
from tests.server.test_realtime import SPEECH, connected
from tests.speaking.voices import made_voice

FASTER = 10
"""Than the speech of ``made_voice``, so that the tests do not wait for it."""


class Counting(PiperVoice):
    """Keeps what it was asked to say."""

    def __init__(self, path):
        self.said = []
        super().__init__(path)

    def say(self, text, speed=1.0):
        self.said.append(text)
        return super().say(text, speed)


@pytest.fixture
def voice(tmp_path):
    found = Counting(made_voice(tmp_path, "he", inference={"length_scale": 1 / FASTER}))
    found.said.clear()
    return found


@pytest.fixture
def service(demo_config, demo_models, voice):
    limits = ServerLimits(connections_a_minute=10_000, max_viewers=2)
    return Service(
        *with_hebrew(demo_config, demo_models), limits,
        voices=lambda targets: SessionVoices([voice], targets, limits.max_viewers),
    )  # fmt: skip


def speaking():
    """The threads that speak."""
    return [thread for thread in threading.enumerate() if thread.name == "voice"]


async def listening(socket, session, language="he"):
    return await ask(socket, type="listen", session=session, language=language)


async def hear(socket):
    """All speech and messages until the end."""
    pcm, messages = [], []
    with pytest.raises(ConnectionClosed) as closed:
        while True:
            data = await socket.recv()
            if isinstance(data, bytes):
                pcm.append(data)
            elif json.loads(data)["type"] != "status":
                messages.append(json.loads(data))
    assert closed.value.rcvd.code == 1000
    return pcm, messages


@pytest.mark.slow
async def test_all_who_listen_hear_each_sentence_which_is_made_once(service, voice, expected):
    async with (
        running(service) as server,
        server.connect() as speaker,
        server.connect() as one,
        server.connect() as two,
    ):
        started = await ask(speaker, type="start", targets=["he", "zh"])
        assert started["voices"] == ["he"]
        described = await listening(one, started["session"])
        assert (described["type"], described["sample_rate"]) == ("listening", 24_000)
        await listening(two, started["session"])
        hearing = asyncio.gather(hear(one), hear(two))
        await speak(speaker, speech())
        await finish(speaker)
        (pcm, messages), other = await hearing
    assert other == (pcm, messages)
    assert messages == [{"type": "end"}]
    sentences = [expected[number, "he"] for number in range(2)]
    assert voice.said == sentences
    seconds = sum(map(len, pcm)) / 2 / SessionVoices.rate
    letters = sum(len(text.removeprefix("תרגום")) for text in sentences)
    assert seconds == pytest.approx(
        (2 * letters + 3 * 2) * 0.05 / FASTER, rel=0.35
    )  # a second one that waits is faster
    await until(lambda: not speaking())


async def test_nothing_is_made_while_nobody_listens(service, voice):
    async with running(service) as server, server.connect() as speaker:
        started = await ask(speaker, type="start")
        async with server.connect() as listener:
            await listening(listener, started["session"])
        await until(lambda: not speaking())
        await speak(speaker, speech())
        await finish(speaker)
    assert voice.said == []


async def test_who_listens_to_a_language_that_is_lost_is_told(voice):
    voices = SessionVoices([voice], ["he", "zh"], most=2)
    async with voices.listener("he") as listener:
        voices.write(Translation(0, "he", "FIRST."))
        voices.write(TranslationLost("zh", "another one"))
        voices.write(TranslationLost("he", "its translator does not answer"))
        assert isinstance(await listener.take(), bytes)  # what was translated before is heard
        assert await listener.take() is None
        assert listener.failure is not None
        assert str(listener.failure) == "the translation into he has stopped: its translator does not answer"
    assert voices.languages == []
    voices.end()


@pytest.mark.parametrize(
    ("language", "code", "words"),
    [
        ("zh", "unknown-target", 'no voice speaks "zh" in this session; there is he'),
        ("x\ud800", "unknown-target", "no voice"),
    ],
)
async def test_a_language_without_a_voice_is_refused(language, code, words, service):
    async with running(service) as server, server.connect() as speaker, server.connect() as listener:
        started = await ask(speaker, type="start")
        error = await listening(listener, started["session"], language)
    assert (error["type"], error["code"]) == ("error", code)
    assert words in error["message"]


async def test_one_listener_too_many_is_told_so(service):
    async with running(service) as server, server.connect() as speaker:
        started = await ask(speaker, type="start")
        async with server.connect() as one, server.connect() as two, server.connect() as three:
            for socket in (one, two):
                assert (await listening(socket, started["session"]))["type"] == "listening"
            assert (await listening(three, started["session"]))["code"] == "busy"


async def test_an_address_does_not_keep_all_places_of_listeners(service):
    async with running(service) as server, server.connect() as speaker:
        started = await ask(speaker, type="start")
        async with server.connect() as one, server.connect() as two, server.connect() as own:
            for socket in (one, two):
                await listening(socket, started["session"])
            async with server.connect(local_addr=("127.0.0.2", 0)) as other:
                assert (await listening(other, started["session"]))["type"] == "listening"
                assert (await rest(two))[-1]["code"] == "busy"
                assert (await listening(own, started["session"]))["code"] == "busy"


async def test_a_listener_has_nothing_to_say(service):
    async with running(service) as server, server.connect() as speaker, server.connect() as listener:
        started = await ask(speaker, type="start")
        await listening(listener, started["session"])
        assert (await ask(listener, type="end"))["message"] == "nothing may come after listen"


async def test_a_server_without_voices_says_so(new_service):
    async with running(new_service()) as server, server.connect() as speaker, server.connect() as listener:
        started = await ask(speaker, type="start")
        assert started["voices"] == []
        assert "start it with --speak" in (await listening(listener, started["session"]))["message"]


async def test_a_slow_listener_is_told_what_it_missed():
    listener = Listener()
    for number in range(5):
        listener.push(bytes([number]))
    listener.push(2)
    listener.push(None)
    assert [await listener.take() for _ in range(5)] == [4, b"\x02", b"\x03", b"\x04", None]


async def test_a_listener_whose_place_is_given_away_is_told_nothing_of_what_it_missed():
    listener = Listener()
    for number in range(5):
        listener.push(bytes([number]))
    listener.displace()
    assert await listener.take() is None
    assert listener.failure is not None


@pytest.mark.slow
async def test_clients_of_openai_hear_the_translation(service, voice):
    async with running(service) as server, connected(server) as connection:
        await connection.recv()
        await connection.session.update(session={"audio": {"output": {"language": "he"}}})
        sentence = SPEECH[: round(PHRASE_SECONDS * 48_000)]
        await connection.session.input_audio_buffer.append(audio=base64.b64encode(sentence).decode())
        await connection.session.close()
        events = [event async for event in connection]
    frames = [event for event in events if event.type == "session.output_audio.delta"]
    assert {(frame.sample_rate, frame.channels, frame.format) for frame in frames} == {(24_000, 1, "pcm16")}
    sound = [base64.b64decode(frame.delta) for frame in frames]
    assert {len(part) for part in sound} == {9_600}
    letters = sum(len(text.removeprefix("תרגום")) for text in voice.said)
    seconds = (2 * letters + 3 * len(voice.said)) * 0.05 / FASTER
    assert seconds * 0.7 < len(b"".join(sound)) / 48_000 < seconds + 0.2 * len(voice.said)
    assert events[-1].type == "session.closed"


async def test_in_a_language_without_a_voice_they_get_text_alone(service, voice):
    async with running(service) as server, connected(server) as connection:
        await connection.recv()
        await connection.session.input_audio_buffer.append(audio=base64.b64encode(SPEECH[:96_000]).decode())
        await connection.session.close()
        kinds = {event.type async for event in connection}
    assert "session.output_audio.delta" not in kinds
    assert voice.said == []


def test_a_server_without_voices_imports_nothing_of_them():
    program = "import sys; import pipeline.apps.serve, pipeline.server.app; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "pipeline.server.app" in loaded
    assert not [
        name for name in loaded if name.startswith(("pipeline.speaking", "pipeline.server.speaking", "sounddevice"))
    ]


def test_the_option_takes_voices_of_several_languages(tmp_path, capsys):
    paths = [made_voice(tmp_path / language, language) for language in ("he", "pt-BR", "de")]
    of_session = voices_for(paths, ["he", "pt"], 100)
    assert of_session(["zh", "pt", "he"]).languages == ["pt", "he"]
    assert "is heard only if somebody chooses its language: no target is de" in capsys.readouterr().err
    assert voices_for([], ["he"], 100) is None
