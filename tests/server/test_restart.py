"""A server under load that is killed, drained, and started again: what its clients had is in the records, and nothing else is
left."""

import asyncio
import json
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from openai import APIConnectionError, AsyncOpenAI
from websockets.exceptions import ConnectionClosed

from pipeline.core.captions.changes import States
from pipeline.events import Samples, SourceText, TargetText
from pipeline.media.sinks.jsonl import read_event
from tests.conftest import PHRASE_SECONDS, PHRASES, read_wav
from tests.server.running import CHUNK, Texts, ask, final, heard, rest, say
from tests.server.test_serve import Command, command

SPEECH = read_wav(PHRASES)[: round(2 * PHRASE_SECONDS * 16_000)]
UPLOADED = PHRASES.read_bytes()[: 44 + round(PHRASE_SECONDS * 32_000)]
SPEAKERS = 3
# The server waits for everything, however slow the machine is.
PATIENT = "from pipeline.server.limits import ServerLimits as L; L.__init__.__kwdefaults__['drain_s'] = 1e6"


class Client:
    """A speaker who sends faster than it is translated, a reader, and what each of them has got."""

    def __init__(self, server: Command) -> None:
        self._server = server
        self.started: dict[str, Any] = {}
        self.spoken: list[dict[str, Any]] = []
        self.read: list[dict[str, Any]] = []
        self.sent = 0
        self.came = asyncio.Event()
        """A translation has come."""

    async def run(self, samples: Samples) -> None:
        """Speak, end, and read what comes until the server is gone."""
        async with self._server.connect() as speaker, self._server.connect() as reader:
            self.started = await ask(speaker, type="start")
            await say(reader, type="watch", session=self.started["session"])
            speaking = asyncio.create_task(self._speak(speaker, samples))
            reading = asyncio.create_task(_collect(reader, self.read))
            try:
                while True:
                    self.spoken.append(await heard(speaker))
                    if self.spoken[-1]["type"] == "translation":
                        self.came.set()
            except ConnectionClosed:
                pass
            await asyncio.gather(speaking, reading)

    async def _speak(self, speaker: Any, samples: Samples) -> None:
        try:
            for begin in range(0, len(samples), CHUNK):
                await speaker.send(samples[begin : begin + CHUNK].astype("<i2").tobytes())
                self.sent = begin + CHUNK
            await say(speaker, type="end")
        except ConnectionClosed:
            pass


async def transcribed(server: Command) -> str | None:
    """The text of a file that is uploaded; None if the server has gone."""
    async with AsyncOpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="any", max_retries=0) as client:
        try:
            return (await client.audio.transcriptions.create(model="any", file=UPLOADED)).text
        except APIConnectionError:
            return None


async def _collect(reader: Any, records: list[dict[str, Any]]) -> None:
    records += await rest(reader)


def committed(lines: Sequence[dict[str, Any]]) -> Texts:
    """The committed text of each sentence and language in these messages or lines: what is shown and never changes."""
    found, states = Texts(), States()
    for line in lines:
        if line["type"] == "snapshot":
            states = States()
        for record in line["events"] if line["type"] == "snapshot" else [line]:
            state = states.push(event) if (event := read_event(record)) is not None else None
            if isinstance(state, SourceText | TargetText):
                found[state.sentence, state.language] = state.steady_text
    return found


def kept_in(folder: Path) -> list[list[dict[str, Any]]]:
    """The lines of each record."""
    return [[json.loads(line) for line in path.read_text("utf-8").splitlines()] for path in folder.glob("*.jsonl")]


def is_kept(shown: Sequence[dict[str, Any]], records: Sequence[list[dict[str, Any]]]) -> bool:
    """Whether one of the records has all committed text that a client was shown."""
    texts = committed(shown)
    return any(
        all(kept.get(text, "").startswith(value) for text, value in texts.items()) for kept in map(committed, records)
    )


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_clients_had_is_in_the_records_and_nothing_else_is_left(number, tmp_path, monkeypatch):
    records, temporary = tmp_path / "records", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))

    async def work() -> tuple[list[Client], str | None]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        options = ["--record", records, "--port", str(port)]
        async with command(*options, before=PATIENT) as server, asyncio.TaskGroup() as group:
            uploading = group.create_task(transcribed(server))
            clients = [Client(server) for _ in range(SPEAKERS)]
            # Voices that begin at different places.
            for index, client in enumerate(clients):
                group.create_task(client.run(SPEECH[index * 8_000 :]))
            for client in clients:
                await client.came.wait()
            server.process.send_signal(number)
            await server.status()
        async with command(*options) as again, again.connect() as speaker:  # at once, at the same address
            await say(speaker, type="resume", session=clients[0].started["session"], key=clients[0].started["key"])
            assert (await rest(speaker))[-1]["code"] == "no-session"
            client = Client(again)
            await client.run(SPEECH[:56_000])
            assert final(client.spoken)
            assert client.spoken[-1]["type"] == "end"
        return clients, await uploading

    clients, text = asyncio.run(work())
    kept = kept_in(records)
    assert len(kept) == SPEAKERS + 1
    assert text or number is signal.SIGKILL
    for client in clients:
        assert committed(client.spoken)
        assert is_kept(client.spoken, kept)
        assert is_kept(client.read, kept)
        if number is signal.SIGTERM:  # all of what was heard was translated and delivered
            assert client.spoken[-1]["type"] == "end"
            assert client.read[-1]["type"] == "end"
            assert final(client.spoken) == final(client.read)
    assert not list(temporary.iterdir())
