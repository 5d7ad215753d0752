"""Inside a host app: overlapping stages, shared models, asyncio's own tools, and no leftovers."""

import asyncio
import dataclasses
import os
import subprocess
import sys
import threading
import typing

import numpy as np
import pytest

import pipeline
from pipeline import EndOfInput, Models, PipelineEvent, SpeechTranslator, Transcript, Translation
from pipeline.backends.marian.search.sentence_text import SentenceCache
from tests.conftest import EXAMPLES, HANG_S, PHRASES, all_wait, read_wav


async def translated(config, models, samples):
    async with SpeechTranslator(config, models) as translator, asyncio.TaskGroup() as group:

        async def feed():
            await translator.feed(samples)
            await translator.end()

        group.create_task(feed())
        return [event async for event in translator.events()]


def test_every_event_is_a_frozen_value_that_the_package_exports():
    kinds = typing.get_args(PipelineEvent)
    assert len(kinds) == 15
    for kind in kinds:
        assert kind.__dataclass_params__.frozen
        assert getattr(pipeline, kind.__name__) is kind
        assert kind.__name__ in pipeline.__all__


def test_the_package_lists_its_public_names():
    assert {*pipeline.__all__} <= {*dir(pipeline)}
    sections = {
        type(value).__name__ for name, value in vars(pipeline.PipelineConfig()).items() if name != "nmt_overrides"
    }
    assert sections <= {*pipeline.__all__}


async def test_a_target_without_a_translator_is_an_error(demo_config, demo_models):
    languages = dataclasses.replace(demo_config.languages, targets=("zh", "de", "fr"))
    config = dataclasses.replace(demo_config, languages=languages)
    with pytest.raises(pipeline.PipelineError, match="no translator into de and fr; give one for each .* zh, de, fr$"):
        async with SpeechTranslator(config, demo_models):
            pass
    models = dataclasses.replace(demo_models, translations={})
    stages = [stage for stage in pipeline.standard_stages() if stage.name != "NMT"]
    async with SpeechTranslator(config, models, stages=stages) as transcriber:  # translates nothing
        assert transcriber.running


async def test_audio_that_is_fed_after_a_cancel_is_an_error_of_this_package(demo_config, demo_models):
    with pytest.raises(ExceptionGroup) as raised:
        async with SpeechTranslator(demo_config, demo_models) as translator, asyncio.TaskGroup() as group:
            await translator.cancel()
            group.create_task(translator.feed(np.zeros(160, np.int16)))
    assert raised.group_contains(pipeline.PipelineError, match="after end\\(\\) or cancel\\(\\)")


class Together:
    """A recogniser and a translation model that continue only when the other stages work on later speech."""

    def __init__(self, stats):
        self.heard = [threading.Event() for _ in range(100)]
        self.recognising = [threading.Event() for _ in range(100)]
        self.translating = [threading.Event() for _ in range(100)]
        self.met = []
        closed = stats.segment_closed

        def segment_closed(segment):
            self.heard[segment.id].set()
            closed(segment)

        stats.segment_closed = segment_closed

    def transcribe(self, segments, options):
        (segment,) = segments
        self.recognising[segment.id].set()
        if segment.id == 2:
            self.meet("recognition of 2", self.translating[0], self.heard[3])
        return [Transcript(segment.id, segment.start_s, segment.end_s, "Where is the hotel?", "en")]

    def stream(self, request):
        sentence = request.sentence
        self.translating[sentence.sentence].set()
        if sentence.sentence == 0:
            self.meet("translation of 0", self.recognising[2], self.heard[3])
        yield Translation(sentence.sentence, "zh", "")

    def meet(self, who, *others):
        assert all(other.wait(HANG_S) for other in others), f"{who} was alone"
        self.met.append(who)


async def test_stages_work_on_three_stretches_of_speech_at_once(demo_config):
    alone = dataclasses.replace(demo_config.sentences, long_pause_ms=0)  # each segment is a group, and a sentence
    translator = SpeechTranslator(dataclasses.replace(demo_config, sentences=alone))
    together = Together(translator.stats)
    translator._models = Models(together, {"zh": together})
    async with translator, asyncio.TaskGroup() as group:

        async def feed():
            await translator.feed(read_wav(PHRASES))
            await translator.end()

        group.create_task(feed())
        assert [event async for event in translator.events()]
    assert sorted(together.met) == ["recognition of 2", "translation of 0"]


@pytest.mark.slow
def test_instances_share_loaded_models_and_do_not_mix(demo_config, demo_models, monkeypatch):
    monkeypatch.setattr("pipeline.config.loading.load_models", lambda config: pytest.fail("models were loaded again"))
    monkeypatch.setattr(
        demo_models.translations["zh"], "cache", SentenceCache(0)
    )  # so that both decode at the same time
    inputs = [read_wav(PHRASES)[: 16_000 * 9], read_wav(EXAMPLES / "meeting.wav")[: 16_000 * 8]]

    async def alone():
        return [await translated(demo_config, demo_models, samples) for samples in inputs]

    async def together():
        return await asyncio.gather(*(translated(demo_config, demo_models, samples) for samples in inputs))

    expected = asyncio.run(alone())
    assert expected[0] != expected[1]
    assert asyncio.run(together()) == expected


@pytest.mark.slow
async def test_a_client_that_does_not_read_does_not_block_another(demo_config, demo_models, queues):
    tight = dataclasses.replace(demo_config.queues, audio_chunks=1, segments=1, transcripts=1, sentences=1, events=1)
    samples = read_wav(PHRASES)
    expected = await translated(demo_config, demo_models, samples)
    queues.clear()
    config = dataclasses.replace(demo_config, queues=tight)
    async with SpeechTranslator(config, demo_models) as stuck, asyncio.TaskGroup() as group:
        feeding = group.create_task(stuck.feed(np.tile(samples, 2)))
        while not all_wait(queues) and not feeding.done():
            await asyncio.sleep(0)
        assert await translated(demo_config, demo_models, samples) == expected
        assert not feeding.done()
        feeding.cancel()
    assert isinstance(expected[-1], EndOfInput)


async def test_another_tasks_failure_ends_the_translation(demo_config, demo_models):
    class HostError(Exception):
        pass

    async def host(translator):
        await translator.feed(read_wav(PHRASES)[: 16_000 * 5])
        raise HostError

    with pytest.raises(BaseExceptionGroup) as caught:
        async with SpeechTranslator(demo_config, demo_models) as translator, asyncio.TaskGroup() as group:
            group.create_task(host(translator))
            async for _ in translator.events():
                pass
    assert caught.group_contains(HostError)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("turns", range(1, 6))
async def test_a_cancelled_cancel_still_ends_the_reader(turns, demo_config, demo_models):
    async with SpeechTranslator(demo_config, demo_models) as translator:

        async def read():
            return [event async for event in translator.events()]

        reading = asyncio.create_task(read())
        await asyncio.sleep(0)
        cancelling = asyncio.create_task(translator.cancel())
        for _ in range(turns):
            await asyncio.sleep(0)
        cancelling.cancel()
        await asyncio.gather(cancelling, return_exceptions=True)
        async with asyncio.timeout(HANG_S):
            assert await reading == []


def test_a_timeout_on_feed_or_end_ends_only_that_call(demo_config, demo_models):
    tight = dataclasses.replace(demo_config.queues, audio_chunks=1, segments=1, transcripts=1, sentences=1, events=1)
    config = dataclasses.replace(demo_config, queues=tight)
    held = threading.Event()

    class Held:
        def transcribe(self, segments, options):
            held.wait()
            return demo_models.recognizer.transcribe(segments, options)

    async def work():
        async with SpeechTranslator(config, Models(Held(), demo_models.translations)) as translator:
            try:
                feeding = asyncio.create_task(translator.feed(np.tile(read_wav(PHRASES), 3)))
                while translator.stats.segments < 1:  # it is being recognised, and the VAD has no room for its pauses
                    await asyncio.sleep(0)
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await feeding
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await translator.end()
            finally:
                held.set()
            ending = asyncio.create_task(translator.end())
            events = [event async for event in translator.events()]
            await ending
            return events

    events = asyncio.run(work())
    assert isinstance(events[-1], EndOfInput)
    assert any(isinstance(event, Translation) for event in events)


@pytest.mark.slow
async def test_feeding_an_hour_at_once_does_not_block_the_loop(demo_config, demo_models):
    roomy = dataclasses.replace(demo_config.queues, audio_chunks=100_000)
    turns = 0

    async def other():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    config = dataclasses.replace(demo_config, queues=roomy)
    async with SpeechTranslator(config, demo_models) as translator:
        running = asyncio.create_task(other())
        await translator.feed(np.zeros(16_000 * 3_600, np.int16))
        running.cancel()
    assert turns >= 36_000


async def test_an_idle_translator_does_nothing(demo_config, demo_models):
    """No polling: while nothing is fed, the loop is idle, and there are no threads besides the workers."""
    loop = asyncio.get_running_loop()
    threads = threading.active_count()
    async with SpeechTranslator(demo_config, demo_models) as translator:
        reading = asyncio.create_task(anext(translator.events()))
        while translator._outbox._getters == 0:
            await asyncio.sleep(0)
        for _ in range(100):  # until all tasks wait
            await asyncio.sleep(0)
        assert threading.active_count() - threads <= 4
        scheduled = list(loop._scheduled)
        assert scheduled == [], "something wakes up by the clock"
        assert len(loop._ready) == 0, "something runs without a cause"
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


@pytest.mark.slow
def test_the_telemetry_of_the_model_runtime_is_off(tmp_path):
    """Telemetry would write files to the user's cache. It is also off if a CI system's variables are set."""
    code = "from pipeline import load_config, load_models; load_models(load_config('demo-zh'))"
    kept = {key: os.environ[key] for key in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH") if key in os.environ}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANG_S, env=kept | {"HOME": str(tmp_path)})
    written = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    # Only the speech model joined from packages.
    assert [path for path in written if "streaming-speech-translation" not in path.parts] == []
    code = "import os, pipeline; print(os.environ['ORT_DISABLE_TELEMETRY'])"  # a host app that enables telemetry
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, env=kept | {"ORT_DISABLE_TELEMETRY": "0"}
    )
    assert done.stdout == b"0\n"
