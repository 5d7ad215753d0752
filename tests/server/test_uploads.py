"""Uploaded files: where they are kept, and what becomes of those in progress when the server stops."""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from openai import AsyncOpenAI

from pipeline.server import uploads
from pipeline.server.scheduling import Priority
from pipeline.server.service import Service
from tests.conftest import PHRASE_SECONDS, PHRASES, read_wav
from tests.server.running import Running, running, until
from tests.server.test_openai import wav_of

SPEECH = wav_of(read_wav(PHRASES)[: round(PHRASE_SECONDS * 16_000)])


def files_below(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.glob("**/*") if path.is_file()]


async def transcribed(server: Running) -> str:
    async with AsyncOpenAI(base_url=server.address, api_key="any", max_retries=0) as client:
        try:
            answer = await client.audio.transcriptions.create(model="speech-translation", file=SPEECH)
        except Exception as error:
            return f"{getattr(error, 'status_code', '')} {getattr(error, 'code', error)}"
        return answer.text


@asynccontextmanager
async def in_progress(server: Running) -> AsyncIterator[asyncio.Task[str]]:
    """A recording that is translated; it cannot end inside the block."""
    service = server.service
    with service.scheduler.slot(Priority.FINAL):
        working = asyncio.create_task(transcribed(server))
        await until(lambda: service.scheduler.waiting)
        yield working


@pytest.mark.slow
def test_a_recording_in_progress_is_translated_before_the_server_ends(new_service):
    async def work() -> tuple[str, str]:
        service = new_service()
        async with running(service) as server:
            expected = await transcribed(server)
            async with in_progress(server) as working:
                draining = asyncio.create_task(service.drain())
                await until(lambda: service.places.draining)
                await asyncio.sleep(0)
                assert not draining.done()
            await draining
            return expected, await working

    expected, text = asyncio.run(work())
    assert text == expected
    assert len(text.split()) > 3


async def test_a_recording_that_takes_too_long_is_told_that_the_server_stops(new_service, own_folder, caplog):
    async with running(new_service(drain_s=0.0)) as server:
        async with in_progress(server) as working:
            server.stop()
            assert await working == "503 stopping"
        assert len(server.service.places.recordings) == 0
    assert not os.listdir(own_folder)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, open files have no path")
async def test_a_file_has_no_name_while_it_is_translated(new_service, own_folder):
    async with running(new_service()) as server, in_progress(server):
        assert not os.listdir(own_folder)


@pytest.mark.slow
def test_a_file_is_copied_where_open_files_have_no_path(new_service, own_folder, monkeypatch):
    monkeypatch.setattr(uploads, "_OPEN_FILES", own_folder / "missing")

    async def work(service: Service) -> None:
        async with running(service) as server:
            async with in_progress(server) as working:
                assert files_below(own_folder) == [SPEECH]
            assert len((await working).split()) > 3

    asyncio.run(work(new_service()))
    assert not os.listdir(own_folder)
