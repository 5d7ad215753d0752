"""Uploads while the server drains: those in progress end within the limit, new ones are refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

import openai
import pytest
from openai import AsyncOpenAI

from pipeline import Models, PipelineConfig
from pipeline.bench.words import scored_units
from pipeline.server.scheduling import Priority
from tests.conftest import spoken_texts
from tests.server.running import Running, running, serving, until
from tests.server.test_openai import SPEECH

TALK = ("talk.wav", SPEECH)


@asynccontextmanager
async def draining(
    config: PipelineConfig, models: Models, drain_s: float
) -> AsyncIterator[tuple[Running, AsyncOpenAI, asyncio.Task[str], ExitStack]]:
    """A server that was told to stop, and a recording that waits for the recogniser until the stack is closed."""
    service = serving(config, models, drain_s=drain_s)
    with ExitStack() as stack:
        stack.enter_context(service.scheduler.slot(Priority.FINAL))
        async with (
            running(service) as server,
            AsyncOpenAI(base_url=server.address, api_key="any", max_retries=0) as client,
        ):

            async def recognised() -> str:
                return (await client.audio.transcriptions.create(model="any", file=TALK)).text

            uploading = asyncio.create_task(recognised())
            await until(lambda: service.scheduler.waiting)
            server.stop()
            yield server, client, uploading, stack


async def test_uploads_in_progress_are_recognised_and_new_ones_refused(demo_config, demo_models):
    async with draining(demo_config, demo_models, 1e6) as (server, client, uploading, stack):
        while (await server.get("/readyz")).status != 503:
            pass
        with pytest.raises(openai.InternalServerError, match="the server is stopping") as refused:
            await client.audio.transcriptions.create(model="any", file=TALK)
        assert (refused.value.status_code, refused.value.code) == (503, "busy")
        assert int(refused.value.response.headers["retry-after"]) > 0
        stack.close()
        said = scored_units(
            " ".join(spoken_texts()["phrases"][:2]), "en"
        )  # numbers as words: which, depends on the processor
        assert scored_units(await uploading, "en")[: len(said)] == said


async def test_uploads_that_last_longer_than_the_limit_are_cut(demo_config, demo_models):
    async with draining(demo_config, demo_models, 0.0) as (server, _, uploading, _):
        with pytest.raises(openai.APIError):
            await uploading
        assert len(server.service.places.recordings) == 0
