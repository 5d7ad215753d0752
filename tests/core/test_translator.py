"""The whole chain on real speech: order, drain, cancel, failure, back-pressure."""

import asyncio
import contextlib
import dataclasses
import threading
import wave
from itertools import pairwise

import numpy as np
import pytest

from pipeline import (
    EndOfInput,
    Models,
    SourceSentence,
    SourceText,
    SpeechTranslator,
    StageError,
    TargetText,
    Transcript,
    Translation,
)
from pipeline.backends.vad.detector import SpeechDetector
from pipeline.bench.words import scored_units
from pipeline.core.captions.states import OpenTexts
from pipeline.core.source import as_samples
from pipeline.core.stages import standard_stages
from pipeline.core.vad.stage import VadStage
from pipeline.media.audio.recording import Recording
from pipeline.testing import Harness
from tests.chain import events_of
from tests.conftest import EXAMPLES, HANG_S, PHRASES, all_wait, read_wav, spoken_texts


async def collect(events):
    return [event async for event in events]


def translate(config, models, path):
    return events_of(config, models, Recording(path))


def test_every_utterance_becomes_chinese_in_order(demo_config, demo_models):
    events = translate(demo_config, demo_models, EXAMPLES / "travel.wav")
    duration = len(read_wav(EXAMPLES / "travel.wav")) / 16_000
    transcripts = [event for event in events if isinstance(event, Transcript)]
    assert len(transcripts) == len(spoken_texts()["travel"])
    assert isinstance(events[-1], EndOfInput)
    assert events[-1].duration_s == pytest.approx(duration)
    assert all(0 <= each.start_s < each.end_s <= each.heard_s <= duration for each in transcripts)
    sentences = [event for event in events if isinstance(event, SourceSentence)]
    assert [scored_units(each.text, "en") for each in sentences] == [
        scored_units(text, "en") for text in spoken_texts()["travel"]
    ]
    assert [each.sentence for each in sentences] == list(range(len(sentences)))
    for before, after in pairwise(sentences):
        assert 0 <= before.start_s < before.end_s <= after.start_s < after.end_s <= duration
    texts = OpenTexts()
    ended = set()
    for event in events:
        text = texts.push(event)
        if isinstance(event, SourceSentence | Translation):
            assert text.steady_text == text.text == event.text
            ended.add((event.sentence, event.language))
        if isinstance(event, TargetText):  # a recording has no drafts: a sentence is translated when it has ended
            assert (event.sentence, "en") in ended
            assert event.heard_s == sentences[event.sentence].heard_s
        if isinstance(event, SourceText | TargetText):
            assert (event.sentence, event.language) not in ended
    assert ended == {(each.sentence, language) for each in sentences for language in ("en", "zh")}
    translations = [event.text for event in events if isinstance(event, Translation)]
    assert all(any("\u4e00" <= character <= "\u9fff" for character in text) for text in translations)


async def test_a_live_run_shows_a_draft_of_a_sentence_that_may_go_on(demo_config, demo_models):
    speech = read_wav(EXAMPLES / "travel.wav")
    first_segment = round(3.0 * 16_000)  # its sentence and less silence than ends one
    texts = OpenTexts()
    finished = []
    async with Harness(demo_config, demo_models, live=True) as harness, asyncio.timeout(HANG_S):
        await harness.feed(speech[:first_segment])
        draft = await harness.event(TargetText)
        assert (draft.sentence, draft.steady) == (0, 0)
        assert not any(isinstance(event, SourceSentence) for event in harness.events)
        await harness.feed(speech[first_segment:])
        await harness.end()
        await harness.rest()
    for event in harness.events:
        text = texts.push(event)  # raises if committed text is withdrawn
        if isinstance(event, SourceSentence | Translation):
            assert text.steady_text == text.text == event.text
        if isinstance(event, Translation):
            finished.append(event)
    assert [each.sentence for each in finished] == list(range(len(spoken_texts()["travel"])))


def test_audio_fed_in_chunks_gives_the_same_as_the_whole_recording(demo_config, demo_models):
    async def work(chunk):
        async with SpeechTranslator(demo_config, demo_models) as translator:
            reading = asyncio.create_task(collect(translator.events()))
            samples = read_wav(PHRASES)
            for start in range(0, len(samples), chunk):
                await translator.feed(samples[start : start + chunk].tobytes())
            await translator.end()
            await translator.end()
            return await reading

    expected = translate(demo_config, demo_models, PHRASES)
    assert asyncio.run(work(333)) == expected
    assert asyncio.run(work(10_000_000)) == expected


async def test_a_buffer_may_be_reused_after_feed_returns(demo_config, demo_models):
    samples = read_wav(PHRASES)
    async with SpeechTranslator(demo_config, demo_models) as translator:
        reading = asyncio.create_task(collect(translator.events()))
        with pytest.raises(ValueError, match="got 3 bytes, an odd number"):
            await translator.feed(b"123")
        buffer = np.zeros(16_000, np.int16)
        for start in range(0, len(samples), len(buffer)):
            part = buffer[: len(samples[start : start + len(buffer)])]
            part[:] = samples[start : start + len(buffer)]
            await translator.feed(part)
            buffer[:] = 9_999  # the caller reuses its buffer
        await translator.end()
        found = await reading
    assert found == await asyncio.to_thread(translate, demo_config, demo_models, PHRASES)


async def test_silence_ends_without_a_subtitle(demo_config, demo_models):
    async with SpeechTranslator(demo_config, demo_models) as translator:
        reading = asyncio.create_task(collect(translator.events()))
        await translator.feed(np.zeros(16_000 * 60, np.int16))
        await translator.end()
        found = await reading
    assert found == [EndOfInput(60.0)]


async def test_feeding_waits_while_nobody_reads(demo_config, demo_models, queues):
    """All queues fill up to their bounds. With an unbounded queue, feeding would finish."""
    tight = dataclasses.replace(demo_config.queues, audio_chunks=4, segments=1, transcripts=2, sentences=5, events=3)
    config = dataclasses.replace(demo_config, queues=tight)
    async with SpeechTranslator(config, demo_models) as translator:
        feeding = asyncio.create_task(translator.feed(np.tile(read_wav(PHRASES), 4)))
        while not feeding.done() and not all_wait(queues):
            await asyncio.sleep(0)
        assert not feeding.done()
        assert sorted(queue.maxsize for queue in queues) == [1, 2, 3, 4, 5, 5]
        feeding.cancel()


class FailingRecognizer:
    """Replaces the recogniser; fails from its second segment on."""

    def __init__(self, models):
        self.recognizer, self.calls = models.recognizer, 0

    def transcribe(self, segments, options):
        self.calls += 1
        if self.calls >= 2:
            raise RuntimeError("out of memory")
        return self.recognizer.transcribe(segments, options)


def test_a_failing_stage_reaches_the_caller_with_its_cause(demo_config, demo_models):
    models = Models(FailingRecognizer(demo_models), demo_models.translations)
    seen = []

    async def work():
        async with SpeechTranslator(demo_config, models) as translator:
            async for event in translator.run(Recording(PHRASES)):
                seen.append(event)

    with pytest.raises(StageError, match="the ASR stage failed: out of memory") as caught:
        asyncio.run(work())
    assert caught.value.stage == "ASR"
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert any(isinstance(event, Transcript) and event.segment_id == 0 for event in seen)


def test_feeding_a_failed_chain_raises_instead_of_hanging(demo_config, demo_models):
    models = Models(FailingRecognizer(demo_models), demo_models.translations)

    async def work():
        async with SpeechTranslator(demo_config, models) as translator:
            reading = asyncio.create_task(collect(translator.events()))
            try:
                while True:
                    await translator.feed(read_wav(PHRASES))
            finally:
                await asyncio.gather(reading, return_exceptions=True)

    with pytest.raises(StageError, match="out of memory"):
        asyncio.run(work())


async def test_cancelling_with_a_full_outbox_ends_the_reader_too(demo_config, demo_models):
    config = dataclasses.replace(demo_config, queues=dataclasses.replace(demo_config.queues, events=1))
    async with SpeechTranslator(config, demo_models) as translator:
        feeding = asyncio.create_task(translator.feed(read_wav(PHRASES)))
        while not translator._outbox.full():
            await asyncio.sleep(0)
        await translator.cancel()
        with pytest.raises(ValueError, match="after end"):
            await asyncio.gather(feeding)
            await translator.feed(b"\0\0")
        found = await collect(translator.events())
    assert found == []


def test_a_stage_that_cannot_be_created_is_a_failure(demo_config, demo_models):
    def make(*_):
        raise ValueError("no such detector")

    first, *others = standard_stages()
    stages = [dataclasses.replace(first, make=make), *others]

    async def work():
        async with SpeechTranslator(demo_config, demo_models, stages=stages) as translator:
            await collect(translator.run(Recording(PHRASES)))

    with pytest.raises(StageError, match="no such detector"):
        asyncio.run(work())


async def test_end_does_not_overtake_a_feed_in_progress(demo_config, demo_models):
    config = dataclasses.replace(demo_config, queues=dataclasses.replace(demo_config.queues, audio_chunks=1))
    samples = read_wav(PHRASES)
    async with SpeechTranslator(config, demo_models) as translator:
        reading = asyncio.create_task(collect(translator.events()))
        feeding = asyncio.create_task(translator.feed(samples))
        await asyncio.sleep(0)
        await translator.end()
        await feeding
        last = (await reading)[-1]
        assert isinstance(last, EndOfInput)
    assert last.duration_s == len(samples) / 16_000


async def test_misuse_raises_a_clear_value_error(demo_config, demo_models):
    translator = SpeechTranslator(demo_config, demo_models)
    with pytest.raises(ValueError, match="not running"):
        await translator.feed(b"\0\0")
    with pytest.raises(ValueError, match="use it as an async context manager"):
        await anext(translator.run(Recording(PHRASES)))
    with pytest.raises(ValueError, match="not running"):
        await translator.feed(b"")
    with pytest.raises(ValueError, match="not running"):
        async with asyncio.timeout(HANG_S):
            await anext(translator.events())
    async with translator:
        with pytest.raises(ValueError, match="expected mono int16"):
            await translator.feed(np.zeros(10, np.float32))
        with pytest.raises(ValueError, match="expected mono int16 samples .* got list"):
            await translator.feed([0, 0])
        with pytest.raises(ValueError, match=r"got float32 \[5\]"):
            await translator.feed(memoryview(np.zeros(5, np.float32)))
        with pytest.raises(ValueError, match=r"got int16 \[2, 3\]"):
            await translator.feed(memoryview(np.zeros((2, 3), np.int16)))
        with pytest.raises(ValueError, match="got 3 bytes, an odd number"):
            await translator.feed(memoryview(b"abc"))
        with pytest.raises(ValueError, match="serves one stream"):
            await translator.__aenter__()
        await translator.end()
        with pytest.raises(ValueError, match="serves one stream"):
            await anext(translator.run(Recording(PHRASES)))
        with pytest.raises(ValueError, match="after end"):
            await translator.feed(b"\0\0")
    with pytest.raises(ValueError, match="serves one stream"):
        await translator.__aenter__()
    over = SpeechTranslator(demo_config, demo_models)
    async with over:
        await over.cancel()
        with pytest.raises(ValueError, match="not running"):
            await anext(over.run(Recording(PHRASES)))


async def test_memoryviews_of_samples_are_accepted(demo_config, demo_models):
    samples = read_wav(PHRASES)[:1_600]
    views = [
        memoryview(samples),
        memoryview(samples.tobytes()),
        memoryview(np.repeat(samples, 2))[::2],
        bytearray(samples),
    ]
    assert all(np.array_equal(as_samples(view), samples) for view in views)
    async with SpeechTranslator(demo_config, demo_models) as translator:
        for view in views:
            await translator.feed(view)
        await translator.end()
        (end,) = [event async for event in translator.events() if isinstance(event, EndOfInput)]
    assert end.duration_s == len(views) * len(samples) / 16_000


def test_audio_of_a_cancelled_feed_does_not_count_as_lag(demo_config, demo_models, monkeypatch):
    """Otherwise it would count as lag forever, and a live run would never end its overload measures."""
    config = dataclasses.replace(demo_config, queues=dataclasses.replace(demo_config.queues, audio_chunks=1))
    go, real = threading.Event(), VadStage._push

    def held(stage, samples):
        go.wait()
        return real(stage, samples)

    monkeypatch.setattr(VadStage, "_push", held)

    async def work():
        async with SpeechTranslator(config, demo_models) as translator:
            for _ in range(4):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await translator.feed(np.zeros(1_600, np.int16))
            go.set()
            await translator.end()
            (end,) = [event async for event in translator.events()]
            assert 0 < end.duration_s < 0.4
            assert translator.stats.received_samples == translator.stats.audio_samples

    try:
        asyncio.run(work())
    finally:
        go.set()


async def test_reading_after_the_end_ends_at_once(demo_config, demo_models):
    async with SpeechTranslator(demo_config, demo_models) as translator, asyncio.timeout(HANG_S):

        async def read():
            return [event async for event in translator.events()]

        readers = [asyncio.create_task(read()) for _ in range(2)]
        await translator.end()
        assert sorted(map(len, await asyncio.gather(*readers))) == [0, 1]
        assert await read() == []


async def test_reading_after_taking_what_was_ready_ends_at_once(demo_config, demo_models):
    async with SpeechTranslator(demo_config, demo_models) as translator, asyncio.timeout(HANG_S):
        await translator.end()
        while not (taken := translator.take_ready()):
            await asyncio.sleep(0)
        assert taken == [EndOfInput()]
        assert translator.take_ready() == [event async for event in translator.events()] == []


def detector_threads(monkeypatch):
    """The names of the threads on which speech is detected from now on, one for each chunk."""
    threads = []
    push = SpeechDetector.push

    def noted(self, samples):
        threads.append(threading.current_thread().name)
        return push(self, samples)

    monkeypatch.setattr(SpeechDetector, "push", noted)
    return threads


def test_speech_in_a_recording_is_detected_on_the_thread_that_reads_it(tmp_path, demo_config, demo_models, monkeypatch):
    threads = detector_threads(monkeypatch)
    with wave.open(str(tmp_path / "quiet.wav"), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(bytes(2 * 16_000 * 30))

    async def run(*, paced):
        async with SpeechTranslator(demo_config, demo_models) as translator:
            async for _ in translator.run(Recording(tmp_path / "quiet.wav"), paced=paced):
                pass

    async def first(chunks):
        running = asyncio.create_task(run(paced=True))
        while len(threads) < chunks:
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run(paced=False))
    assert threads.count("audio") > 200, "of 300: the last ones follow the last read"
    threads.clear()
    asyncio.run(first(3))
    assert set(threads) == {"VAD"}, "a live source is waited for on its own thread"


class StalledSource:
    """Three chunks of silence. The next read waits until the source is closed."""

    duration_s = None
    overflows = 0

    def __init__(self):
        self.waits, self._closed = threading.Event(), threading.Event()
        self._left = 3

    def read(self):
        if self._left:
            self._left -= 1
            return np.zeros(1_600, np.int16)
        self.waits.set()
        assert self._closed.wait(HANG_S)
        return None

    def close(self):
        self._closed.set()


async def test_a_source_that_stalls_holds_back_no_chunk_and_not_the_end(demo_config, demo_models, monkeypatch):
    threads = detector_threads(monkeypatch)
    source = StalledSource()
    async with SpeechTranslator(demo_config, demo_models) as translator, asyncio.timeout(HANG_S):
        events = asyncio.create_task(collect(translator.run(source)))
        await asyncio.to_thread(source.waits.wait, HANG_S)
        await translator.end()
        found = await events
    assert found == [EndOfInput(0.3)]
    assert threads == ["VAD"] * 3
