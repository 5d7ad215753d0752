"""A failure in any stage, source or sink, at any event, ends the run with its cause and loses no earlier output.

The tests check without a clock that everything ends: no task is left, and a run ends even if a call in it hangs
forever.
"""

import asyncio
import dataclasses
import io
import json
import threading
from functools import partial
from typing import ClassVar, TypeVar

import pytest
import srt
from rich.console import Console

from pipeline import (
    EndOfInput,
    Models,
    SourceSentence,
    SpeechTranslator,
    StageError,
    TargetText,
    Transcript,
    Translation,
)
from pipeline.apps import live_run
from pipeline.apps.live_run import LiveRun
from pipeline.backends.vad.detector import SpeechDetector
from pipeline.bench.words import scored_units
from pipeline.errors import AudioError, PipelineError, SinkError
from pipeline.media.audio.spool import SpooledSource
from pipeline.media.sinks.jsonl import JsonlSink
from pipeline.media.sinks.queued import QueuedSink
from pipeline.media.sinks.srt import SrtSink
from pipeline.media.sinks.terminal import TerminalSink
from tests.conftest import HANG_S, PHRASES, Panic, all_wait, read_wav

T = TypeVar("T")
SPEECH = read_wav(PHRASES)[: 16_000 * 11]
CHUNK = 4_000


class InjectedError(PipelineError):
    """The error raised by the tests; it ends a run at once."""


class Chunks:
    """A recording in chunks; read number ``fails_at`` raises."""

    duration_s = None
    overflows = 0

    def __init__(self, fails_at=-1, error=None, times=1):
        self.chunks = [SPEECH[i : i + CHUNK] for i in range(0, len(SPEECH), CHUNK)] * times
        self.fails_at, self.error, self.reads = fails_at, error, 0

    def read(self):
        self.reads += 1
        if self.reads - 1 == self.fails_at:
            assert self.error is not None
            raise self.error
        return self.chunks.pop(0) if self.chunks else None

    def close(self):
        self.chunks = []


class Said:
    """Replaces the recogniser: returns the recorded transcript of each segment, and may fail at one."""

    def __init__(self, transcripts, fails_at=-1):
        self.transcripts, self.fails_at = {t.segment_id: t for t in transcripts}, fails_at

    def transcribe(self, segments, options):
        if self.fails_at in [segment.id for segment in segments]:
            raise InjectedError
        said = [self.transcripts[segment.id % len(self.transcripts)] for segment in segments]
        return [
            one if (one.segment_id, one.end_s) == (segment.id, segment.end_s) else cut_to(one, segment)
            for one, segment in zip(said, segments, strict=True)
        ]


def cut_to(transcript, segment):
    """A transcript with the times of a segment that ends otherwise."""
    return dataclasses.replace(
        transcript, segment_id=segment.id, start_s=segment.speech_start_s, end_s=segment.end_s, words=(), missing=()
    )


class Failing:
    """The translation model, failing at its ``fails_at``-th event: a token, or the end of a sentence."""

    def __init__(self, models, fails_at):
        self.model, self.left = models.translations["zh"], fails_at

    def stream(self, request):
        for event in self.model.stream(request):
            if self.left == 0:
                raise InjectedError
            self.left -= 1
            yield event


@pytest.fixture(scope="module")
def clean(demo_config, demo_models):
    """The events of a run without a failure."""
    events, error = asyncio.run(ran(demo_config, demo_models, Chunks()))
    assert error is None
    assert sum(isinstance(event, Transcript) for event in events) >= 2
    return events


@pytest.fixture(scope="module")
def said(clean):
    return [event for event in clean if isinstance(event, Transcript)]


async def ran(config, models, source):
    """The events of a run and its error. Checks that the run leaves no tasks."""
    events = []
    error = None
    async with asyncio.timeout(HANG_S):
        try:
            async with SpeechTranslator(config, models) as translator:
                async for event in translator.run(source):
                    events.append(event)
        except Exception as problem:
            error = problem
        assert not translator.running
        assert asyncio.all_tasks() == {asyncio.current_task()}
    return events, error


def is_beginning(events, whole):
    return events == whole[: len(events)]


# Exceptions that are no Exception, or that asyncio or iteration would misinterpret. Each must end a run like any
# failure.
HARSH = (
    SystemExit(3),
    KeyboardInterrupt(),
    GeneratorExit(),
    asyncio.CancelledError(),
    StopIteration(),
    StopAsyncIteration(),
    Panic("index out of bounds"),
)
harsh = pytest.mark.parametrize("cause", HARSH, ids=lambda cause: type(cause).__name__)


def raising(cause):
    def fail(*_, **__):
        raise cause

    return fail


@harsh
@pytest.mark.parametrize("place", ["source", "waiting source", "detector", "recogniser", "translator", "first token"])
def test_any_base_exception_is_a_failure_of_its_stage(place, cause, demo_config, demo_models, clean, said, monkeypatch):
    source = Chunks()
    recognizer, translation = Said(said), Failing(demo_models, -1)
    if "source" in place:
        source = Chunks(30, cause)
        if place == "waiting source":
            source = SpooledSource(Waiting(source), limit_s=60)
    elif place == "detector":
        monkeypatch.setattr(SpeechDetector, "push", raising(cause))
    elif place == "recogniser":
        monkeypatch.setattr(recognizer, "transcribe", raising(cause))
    elif place == "translator":
        monkeypatch.setattr(translation, "stream", raising(cause))
    else:
        monkeypatch.setattr(translation, "stream", lambda *_: map(raising(cause), [1]))
    if place in ("recogniser", "translator", "first token") and isinstance(cause, Exception):
        pytest.skip("costs a segment or a sentence")
    events, error = asyncio.run(ran(demo_config, Models(recognizer, {"zh": translation}), source))
    assert isinstance(error, StageError)
    stages = {"detector": "VAD", "recogniser": "ASR", "translator": "NMT", "first token": "NMT"}
    assert error.stage == stages.get(place, "audio")
    reason = error.__cause__
    if isinstance(reason, RuntimeError) and isinstance(cause, StopIteration):  # raised inside a generator
        reason = reason.__cause__
    assert reason is cause
    assert type(cause).__name__ in str(error) or isinstance(error.__cause__, RuntimeError)
    if "source" in place:  # audio read before is translated
        assert events[-1] == EndOfInput(30 * CHUNK / 16_000)
    else:
        assert is_beginning(events, clean)


class Waiting:
    """A recording as a live source."""

    duration_s, overflows, backlog_s = None, 0, 0.0

    def __init__(self, source):
        self.read, self.close = source.read, source.close

    def listen(self, notify): ...


@pytest.mark.parametrize("cause", [OSError("unplugged"), Panic("unplugged")])
def test_a_source_whose_overflows_raise_ends_the_run(cause, demo_config, demo_models, said):
    class Speechless(Chunks):
        @property
        def overflows(self):
            if self.reads > 30:
                raise cause
            return 0

    models = Models(Said(said), demo_models.translations)
    events, error = asyncio.run(ran(demo_config, models, Speechless()))
    assert isinstance(error, StageError)
    assert error.__cause__ is cause
    assert events[-1] == EndOfInput(30 * CHUNK / 16_000)


@pytest.mark.parametrize("cause", [OSError("busy"), Panic("busy")])
@pytest.mark.parametrize("breaks", [False, True])
def test_a_source_that_fails_to_close_is_reported_after_an_earlier_failure(
    breaks, cause, demo_config, demo_models, said, monkeypatch, caplog
):
    source = Chunks(30, AudioError("gone")) if breaks else Chunks()
    monkeypatch.setattr(source, "close", raising(cause))
    models = Models(Said(said), demo_models.translations)
    events, error = asyncio.run(ran(demo_config, models, source))  # also checks for leftovers
    assert isinstance(events[-1], EndOfInput)
    if breaks:
        assert str(error) == "gone"
        assert "closing the source failed as well" in caplog.text
    else:
        assert isinstance(error, StageError)
        assert error.__cause__ is cause


def test_a_run_ends_if_no_thread_can_be_started_for_the_source(demo_config, demo_models, monkeypatch):
    start = threading.Thread.start

    def limited(thread):
        """Replaces Thread on a system that has reached its limit of threads."""
        if thread.name == "audio":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    events, error = asyncio.run(ran(demo_config, demo_models, Chunks()))
    assert isinstance(error, StageError)
    assert str(error) == "the audio stage failed: can't start new thread"
    assert events == [EndOfInput(0.0)]


@pytest.mark.slow
@pytest.mark.parametrize("error", [AudioError("gone"), InjectedError("gone")])
def test_audio_before_a_failed_read_is_translated(error, demo_config, demo_models, said):
    models = Models(Said(said), demo_models.translations)
    for at in range(len(Chunks().chunks) + 1):
        events, raised = asyncio.run(ran(demo_config, models, Chunks(at, error)))
        assert str(raised) in ("gone", "the audio stage failed: gone")
        assert events[-1] == EndOfInput(at * CHUNK / 16_000)
        heard = [event for event in events if isinstance(event, Transcript)]
        assert [one.text for one in heard] == [one.text for one in said[: len(heard)]]
        sentences = [event for event in events if isinstance(event, SourceSentence)]
        accepted = [transcript.text for transcript in heard if transcript.rejected is None]
        assert scored_units(" ".join(each.text for each in sentences), "en") == scored_units(" ".join(accepted), "en")
        translated = [event.sentence for event in events if isinstance(event, Translation)]
        assert translated == [each.sentence for each in sentences]


class DeadAt:
    """A sink that fails at event number ``count``."""

    def __init__(self, count, error):
        self.left, self.error = count, error

    def write(self, event):
        if self.left == 0:
            raise self.error
        self.left -= 1

    def close(self): ...


def cues(path):
    return [cue.content for cue in srt.parse(path.read_text("utf-8"))]


def into(config, models, sinks):
    """Run into sinks, close them as the program does, and return the exception."""

    async def work():
        try:
            async with asyncio.timeout(HANG_S):
                await LiveRun(Chunks(), config, sinks, models=models).run()
        except Exception as error:
            return error
        finally:
            assert asyncio.all_tasks() == {asyncio.current_task()}
        return None

    error = asyncio.run(work())
    for sink in sinks:
        sink.close()
    return error


@pytest.mark.parametrize("cause", [*HARSH, InjectedError("odd")], ids=lambda cause: type(cause).__name__)
def test_any_exception_of_a_sink_is_a_sink_error(cause, demo_config, demo_models, said, tmp_path):
    models = Models(Said(said), demo_models.translations)
    whole = tmp_path / "whole.srt"
    assert into(demo_config, models, [SrtSink(whole, demo_config.subtitles)]) is None
    error = with_a_dead_sink(3, cause, demo_config, models, whole)
    assert isinstance(error, SinkError)
    assert str(error).startswith("the sink failed: ")
    assert error.__cause__ is cause


def with_a_dead_sink(at, error, config, models, whole):
    """The exception of a run with a failing sink. Checks that the other sinks are complete."""
    paths = whole.with_name(f"{at}.srt"), whole.with_name(f"{at}.jsonl")
    # The failing sink is first: the others must still get the event at which it failed, and those ready after it.
    rules = config.subtitles
    raised = into(config, models, [DeadAt(at, error), SrtSink(paths[0], rules), JsonlSink(paths[1], rules)])
    records = [json.loads(line) for line in paths[1].read_text("utf-8").splitlines()]
    assert len([record for record in records if record["type"] not in ("events", "cue")]) > at
    found = cues(paths[0])
    assert found == cues(whole)[: len(found)]
    return raised


def until_hanging(call):
    """(event: the function hangs, event: release it, the function)."""
    hanging, go = threading.Event(), threading.Event()

    def hang(*_, **__):
        hanging.set()
        return call(go)

    return hanging, go, hang


@pytest.mark.parametrize("place", ["source", "VAD", "ASR", "NMT"])
def test_cancelling_does_not_wait_for_a_hanging_call(place, demo_config, demo_models, said, monkeypatch):
    hanging, go, hang = until_hanging(lambda go: go.wait())
    source, recognizer, translation = Chunks(), Said(said), Failing(demo_models, -1)
    places = {"source": (source, "read"), "VAD": (SpeechDetector, "push"), "ASR": (recognizer, "transcribe")}
    target, method = places.get(place, (translation, "stream"))

    def stream(*_):
        hang()
        yield from ()

    monkeypatch.setattr(target, method, stream if place == "NMT" else hang)

    async def work():
        async with (
            asyncio.timeout(HANG_S),
            SpeechTranslator(demo_config, Models(recognizer, {"zh": translation})) as translator,
        ):
            reading = asyncio.create_task(collected(translator, source))
            await asyncio.to_thread(hanging.wait)
            await translator.cancel()
            await reading
            assert not go.is_set()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    try:
        asyncio.run(work())
    finally:
        go.set()


async def collected(translator, source):
    return [event async for event in translator.run(source)]


class Hanging:
    """A sink that blocks in its first event until released; then it may raise."""

    def __init__(self, error=None):
        self.error = error
        self.hanging, self.go = threading.Event(), threading.Event()
        self.events = []

    def write(self, event):
        self.hanging.set()
        self.go.wait()
        if self.error is not None:
            raise self.error
        self.events.append(event)

    def close(self): ...


async def stages_ended(live, sink):
    """Wait until the run waits only for its hanging sink."""
    running = asyncio.create_task(live.run())
    await asyncio.to_thread(sink.hanging.wait)
    while live._translator.running:
        await asyncio.sleep(0)
    return running


def test_two_interrupts_end_a_run_with_a_hanging_sink(demo_config, demo_models, said, capsys):
    sink = Hanging()
    live = LiveRun(Chunks(), demo_config, [sink], models=Models(Said(said), demo_models.translations))

    async def work():
        running = asyncio.create_task(live.run())
        await asyncio.to_thread(sink.hanging.wait)
        live._interrupted()
        live._interrupted()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not sink.go.is_set()
        assert live.is_writing(sink)

    try:
        asyncio.run(work())
    finally:
        sink.go.set()
    assert "interrupt again to stop at once" in capsys.readouterr().err


@pytest.mark.parametrize("how", [LiveRun._interrupted, LiveRun._hung_up])
async def test_events_waiting_for_a_slow_sink_are_delivered_after_the_first_interrupt(
    how, demo_config, demo_models, clean, said
):
    sink = Hanging()
    live = LiveRun(Chunks(), demo_config, [sink], models=Models(Said(said), demo_models.translations))
    running = await stages_ended(live, sink)
    how(live)
    sink.go.set()
    await running
    assert sink.events == clean


async def test_a_hang_up_closes_the_terminal_but_not_a_redirected_output(demo_config, demo_models, clean, said):
    sink, file = Hanging(), io.StringIO()
    printed = TerminalSink(Console(file=file, width=200))
    models = Models(Said(said), demo_models.translations)
    live = LiveRun(Chunks(), demo_config, [sink, printed], models=models, terminal=printed)
    running = await stages_ended(live, sink)
    live._hung_up()
    sink.go.set()
    await running
    assert sink.events == clean
    whole = io.StringIO()
    other = TerminalSink(Console(file=whole, width=200))
    for event in clean:
        other.write(event)
    assert file.getvalue() == whole.getvalue() != ""


def test_a_translation_is_in_the_files_before_it_is_shown(demo_config, demo_models, said, monkeypatch):
    printed = io.StringIO()
    terminal = TerminalSink(Console(file=printed, width=200))
    waiting, drain = threading.Semaphore(0), QueuedSink.drain

    def counted(sink, timeout_s=None):
        waiting.release()
        return drain(sink, timeout_s)

    class File:
        early: ClassVar[list[bool]] = []

        def write(self, event):
            # Only the first: the terminal waits for all that the file was given by then, so that a second one would wait for itself.
            if isinstance(event, Translation) and not self.early:
                assert waiting.acquire(timeout=HANG_S), "the terminal does not wait for the file"
                self.early.append(event.text in printed.getvalue())

        def close(self): ...

    monkeypatch.setattr(live_run, "_FILE_WAIT_S", HANG_S)
    monkeypatch.setattr(QueuedSink, "drain", counted)
    models = Models(Said(said), demo_models.translations)
    asyncio.run(LiveRun(Chunks(), demo_config, [File(), terminal], models=models, terminal=terminal).run())
    assert File.early == [False]
    assert printed.getvalue()


def test_a_stage_that_fails_leaves_the_files_what_was_ready_before(demo_config, demo_models, clean, said, monkeypatch):
    """The translation fails at its second sentence. The file takes nothing until the run waits for it without a limit."""
    file, drain = Hanging(), QueuedSink.drain
    translated = [event for event in clean if isinstance(event, TargetText | Translation)]
    first = translated[: 1 + next(at for at, event in enumerate(translated) if isinstance(event, Translation))]

    limits = []

    def released(sink, timeout_s=None):
        limits.append(timeout_s)
        if timeout_s is None:
            file.go.set()
        return drain(sink, timeout_s)

    monkeypatch.setattr(QueuedSink, "drain", released)
    models = Models(Said(said), {"zh": Failing(demo_models, len(first))})
    try:
        assert isinstance(into(demo_config, models, [file]), StageError)
    finally:
        file.go.set()
    assert [event for event in file.events if isinstance(event, TargetText | Translation)] == first
    assert limits == [None, None], "without a display, only the end waits for the file and for the notices"


async def test_when_a_sink_fails_the_others_get_everything_translated_before(
    demo_config, demo_models, clean, said, tmp_path
):
    dying = Hanging(SinkError("disk full"))
    other = SrtSink(tmp_path / "out.srt", demo_config.subtitles)
    live = LiveRun(Chunks(), demo_config, [dying, other], models=Models(Said(said), demo_models.translations))
    running = await stages_ended(live, dying)
    dying.go.set()
    with pytest.raises(SinkError, match="disk full"):
        await running
    whole = SrtSink(tmp_path / "whole.srt", demo_config.subtitles)
    for event in clean:
        whole.write(event)
    assert cues(tmp_path / "out.srt") == cues(tmp_path / "whole.srt")


@pytest.mark.slow
async def test_a_slow_sink_holds_the_source_back_and_gets_everything_in_order(
    demo_config, demo_models, said, queues, monkeypatch
):
    monkeypatch.setattr(live_run, "QueuedSink", partial(QueuedSink, capacity=2))
    tight = dataclasses.replace(demo_config.queues, audio_chunks=1, segments=1, transcripts=1, sentences=1, events=1)
    config = dataclasses.replace(demo_config, queues=tight)
    models = Models(Said(said), demo_models.translations)
    quick, slow, source = Hanging(), Hanging(), Chunks(times=8)
    quick.go.set()
    await LiveRun(Chunks(times=8), config, [quick], models=models).run()
    queues.clear()
    running = asyncio.create_task(LiveRun(source, config, [slow], models=models).run())
    await asyncio.to_thread(slow.hanging.wait)
    while source.chunks and not all_wait(queues):
        await asyncio.sleep(0)
    assert source.chunks, "the source was read to its end though nothing was taken"
    slow.go.set()
    await running
    assert slow.events == quick.events
    assert isinstance(slow.events[-1], EndOfInput)
