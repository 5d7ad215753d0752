"""WebSockets of strangers, readers and speakers: what they send costs little, stays nowhere, and takes nothing from others' talks."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from tests.server.attacks.attacking import HELD_MS, SPEECH, Server, attacked, closed, elsewhere
from tests.server.running import ask, final, finish, heard, say, speak
from tests.server.test_connections import masked
from tests.server.test_hostile import TEXTS, VALUES

pytestmark = pytest.mark.slow

START, WATCH = {"type": "start"}, {"type": "watch", "session": "A" * 22}
FIELDS = TEXTS | VALUES | {"lists": "[" + "[]," * 34_900 + "[]]", "objects": "[" + "{}," * 30_000 + "{}]"}
MESSAGES = {name: f'{{"type": "start", "source": {value}}}' for name, value in FIELDS.items()} | FIELDS
MESSAGES |= {"nothing": "", "many": json.dumps(dict.fromkeys(map(str, range(40_000)), 1)), "letters": "€" * 340_000}
FRAMES = {
    "pings": masked(9) * 43_000,
    "long pings": masked(9, b"a" * 125) * 8_000,
    "pongs": masked(10) * 43_000,
    "empty texts": masked(1) * 43_000,
    "empty audio": masked(2) * 43_000,
    "fragments": (masked(1, end=False) + masked(0, end=False) * 1_000 + masked(0)) * 40,
    "fragments and pings": masked(1, end=False) + (masked(0, end=False) + masked(9) * 30) * 1_000,
    "messages": masked(1, b'{"type":"watch","session":"x"}') * 10_000,
    "half a text": masked(1, b"\xe2\x82"),
    "unknown": masked(3) * 1_000,
    "huge": b"\x81\xff" + (1 << 62).to_bytes(8, "big") + bytes(4),
}


async def send_frames(server: Server, path: str, first: dict[str, Any] | None, data: bytes) -> None:
    """Send bytes on a WebSocket, and wait until the server has read all or ends the connection."""
    async with server.connect(path, local_addr=elsewhere()) as socket:
        if first is not None:
            await say(socket, **first)
        socket.transport.write(data)
        with suppress(OSError):  # the server has closed it
            socket.transport.write_eof()
        await closed(socket)


@pytest.mark.parametrize("path", ["/v1/session", "/v1/realtime", "/v1/realtime/translations"])
async def test_no_first_message_and_no_frames_hold_the_others_or_stay(path):
    async with attacked("--max-sessions", "50", resume_s=0.0) as server:
        await server.talk()
        before, wrong, answers = await server.figures(), [], []

        async def send(text: str) -> None:
            async with server.connect(path, local_addr=elsewhere()) as socket:
                with suppress(ConnectionClosed):
                    await socket.send(text)
                    record = json.loads(await socket.recv())
                    while record["type"] in ("session.created", "preparing"):
                        record = json.loads(await socket.recv())
                    answers.append(record)

        async def check(name: str, attack: Callable[[], Any]) -> None:
            if (held_ms := await server.holds(attack)) > HELD_MS:
                wrong.append(f"{name}: {held_ms:.0f} ms")

        for name, text in MESSAGES.items():
            await check(name, lambda text=text: send(text))
        for first in (None, START, WATCH):
            for name, data in FRAMES.items():
                await check(f"{first} {name}", lambda first=first, data=data: send_frames(server, path, first, data))
        assert not wrong
        assert all(each["type"] == "error" and "failed" not in str(each) and len(str(each)) < 2_000 for each in answers)
        await server.gives_back(before, 15.0)
        assert not server.log


READER = {
    "languages that it has": {"type": "add_target", "language": "zh"},
    "languages that nobody has": {"type": "add_target", "language": "xx-bad"},
    "long languages": {"type": "add_target", "language": "a" * 64},
    "endless languages": {"type": "add_target", "language": "en-x-" + "a1b2-" * 100_000 + "a"},
    "private languages": {"type": "add_target", "language": "en-x-this-session-is-hacked"},
    "audio": None,
    "a correction": {"type": "correct", "sentence": 0, "text": "wrong"},
    "a mask": {"type": "mask", "sentence": 0, "text": "best"},
    "an end": {"type": "end"},
    "a pause": {"type": "pause", "on": True},
    "a name": {"type": "speaker", "name": "Eve"},
    "a resumption": {"type": "resume", "session": "", "key": "A" * 22},
    "another watch": WATCH,
}


async def test_nothing_that_a_reader_sends_changes_a_talk_or_is_read_without_end(tmp_path):
    """Each sends its message 30,000 times, which is two seconds of work, and reads what it is answered."""
    (token := tmp_path / "token").write_text("a-token-of-the-speakers")
    async with attacked("--token-file", token) as server:
        alone = await server.talk(token="a-token-of-the-speakers")
        before = await server.figures()
        async with server.connect() as speaker, server.connect(local_addr=elsewhere()) as other:
            session = (await ask(speaker, type="start", token="a-token-of-the-speakers"))["session"]
            await ask(other, type="watch", session=session)

            async def attack(message: dict[str, Any] | None) -> None:
                async with server.connect(local_addr=elsewhere()) as reader:
                    await ask(reader, type="watch", session=session)
                    data = bytes(100) if message is None else json.dumps(message).encode()
                    if len(data) < 126:
                        reader.transport.write(masked(2 if message is None else 1, data) * 30_000)
                    else:
                        await reader.send(data.decode())
                    await closed(reader)

            async with asyncio.TaskGroup() as group:
                attacks = [group.create_task(attack(message)) for message in READER.values()]
                spent_s = [-1.0, before.loop_s]
                while spent_s[-1] - spent_s[-2] > 0.02:  # until the server reads no more than their pace lets it
                    await asyncio.sleep(0.2)
                    spent_s.append((await server.figures()).loop_s)
                assert not all(each.done() for each in attacks)
                await speak(speaker, SPEECH)
                records = await finish(speaker)
            assert final(records) == alone
            assert (await server.figures()).loop_s - before.loop_s < 2.5
            read: list[dict[str, Any]] = []
            while not read or read[-1]["type"] != "end":
                read.append(await heard(other))
            assert final(read) == alone
            assert not {"pause", "speaker"} & {each["type"] for each in (*records, *read)}
            assert not [each for each in read if "hacked" in str(each)]
        await server.gives_back(before)
        assert not server.log


@pytest.mark.parametrize("rate", [8_000, 11_025, 96_000])
async def test_no_length_of_audio_in_a_message_holds_the_others(rate):
    async with attacked() as server:

        async def attack() -> None:
            async with server.connect(local_addr=elsewhere()) as speaker:
                assert (await ask(speaker, type="start", sample_rate=rate))["type"] == "started"
                await speaker.send(bytes(range(256)) * 4_096)
                await say(speaker, type="speaker", name="Eve")  # is answered after it
                while (await heard(speaker))["type"] != "speaker":
                    pass

        assert await server.holds(attack) <= HELD_MS
        assert not server.log


async def test_readers_that_do_not_read_are_cut_and_take_little_memory():
    async with attacked(max_viewers=60) as server:
        alone, before = await server.talk(), await server.figures()
        async with server.connect() as speaker:
            session = (await ask(speaker, type="start"))["session"]
            readers = [await server.connect(local_addr=elsewhere()) for _ in range(60)]
            for reader in readers:
                await ask(reader, type="watch", session=session)
                reader.transport.pause_reading()
            await speak(speaker, SPEECH)
            assert final(await finish(speaker)) == alone
            assert (await server.figures()).memory_mb - before.memory_mb < 0.5 * len(readers)
        for reader in readers:
            reader.transport.abort()
        await server.gives_back(before, 15.0)
        assert not server.log
