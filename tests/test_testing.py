"""The harness for the tests of a host app, used as a host app does."""

import asyncio
import wave
from pathlib import Path

import pytest

from pipeline import EndOfInput, Models, SourceSentence, StageError, TargetText, Transcript, Translation
from pipeline.testing import EndedError, Harness, demo_speech
from tests.conftest import EXAMPLES, HANG_S, write_wav

pytestmark = pytest.mark.usefixtures("loaded")


@pytest.mark.slow
async def test_audio_silence_and_end_give_cues_and_translations(tmp_path):
    speech = write_wav(tmp_path / "speech.wav", demo_speech()[: 16_000 * 3])
    async with Harness() as harness, asyncio.timeout(HANG_S):
        await harness.feed(speech)
        await harness.silence(2.0)
        first = await harness.cue()
        assert first.index == 1
        assert first.lines
        await harness.feed(speech)
        await harness.end()
        rest = await harness.rest()
        assert [cue.index for cue in rest] == list(range(2, len(rest) + 2))
        assert await harness.rest() == []
        finished = [event for event in harness.events if isinstance(event, Translation)]
        assert len(finished) == 2
        assert [await harness.translation() for _ in finished] == finished, "no event is skipped"
        assert "Berlim" in finished[0].text
        assert (await harness.event(SourceSentence)).sentence == 0
        assert isinstance(harness.events[-1], EndOfInput)


async def test_silence_ends_the_current_segment():
    async with Harness() as harness, asyncio.timeout(HANG_S):
        await harness.feed(demo_speech()[: 16_000 * 3])
        await harness.silence(2.0)
        found = await harness.event(Transcript)
    assert found.text


async def test_waiting_for_an_event_that_does_not_come_is_an_error():
    async with Harness() as harness, asyncio.timeout(HANG_S):
        await harness.silence(5.0)
        await harness.end()
        assert await harness.event(EndOfInput) == EndOfInput(5.0)
        with pytest.raises(EndedError, match="the stream ended before another cue came; 1 events had come"):
            await harness.cue()
        with pytest.raises(EndedError, match="before another translation came"):
            await harness.translation()
        with pytest.raises(EndedError, match="before TargetText came"):
            await harness.event(TargetText)


async def test_a_timeout_ends_a_wait_and_leaves_the_harness_usable():
    async with Harness() as harness:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await harness.cue()
        await harness.end()
        assert await harness.rest() == []


def test_the_next_wait_raises_the_failure_of_a_stage(demo_config, demo_models):
    class Broken:
        def transcribe(self, segments, options):
            raise RuntimeError("out of memory")

    async def work():
        async with Harness(demo_config, Models(Broken(), demo_models.translations)) as harness:
            feeding = asyncio.create_task(harness.feed(demo_speech()))
            try:
                await harness.cue()
            finally:
                await asyncio.gather(feeding, return_exceptions=True)

    with pytest.raises(StageError, match="out of memory"):
        asyncio.run(work())


def test_the_demo_speech_is_read_only():
    with pytest.raises(ValueError, match="read-only"):
        demo_speech()[:] = 0


def test_the_demo_speech_ships_with_the_package():
    with wave.open(str(Path(EXAMPLES / "travel.wav"))) as file:
        assert len(demo_speech()) == file.getnframes()


@pytest.mark.slow
async def test_drafts_and_commitments_can_be_awaited_while_somebody_speaks():
    async with Harness(live=True) as harness, asyncio.timeout(HANG_S):
        speech = demo_speech()
        await harness.feed(speech[:32_000])
        first = await harness.draft()
        assert first
        assert not [event for event in harness.events if isinstance(event, Transcript)]
        await harness.feed(speech[32_000:])
        committed = await harness.steady()
        translated = await harness.draft("pt")
        final = await harness.steady("pt")
        await harness.end()
        await harness.rest()
        sources = [event.text for event in harness.events if isinstance(event, SourceSentence)]
        finished = [event.text for event in harness.events if isinstance(event, Translation)]
        assert any(source.startswith(committed) for source in sources)
        assert translated
        assert any(text.startswith(final) for text in finished)
        with pytest.raises(EndedError, match="before another draft came"):
            while True:
                await harness.draft()
