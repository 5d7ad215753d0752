"""The VAD stage on real speech."""

import asyncio
import threading
from itertools import pairwise

import numpy as np
import pytest

from pipeline.backends.vad.detector import SpeechDetector, WebRtcVad
from pipeline.backends.vad.silero import SileroVad
from pipeline.core.stages import Queue
from pipeline.core.vad.options import VadConfig
from pipeline.core.vad.sounds import Heard
from pipeline.core.vad.stage import VadStage
from pipeline.events import EndOfInput, Pause, SegmentSoFar, SoundEvent, SpeechSegment
from tests.chain import through
from tests.conftest import PHRASES, read_wav, spoken_texts


def stage_output(samples, chunk, pauses_ms=()):
    chunks = [samples[start : start + chunk] for start in range(0, len(samples), chunk)]
    *items, end = through(
        lambda *queues: VadStage(VadConfig(), lambda: SpeechDetector(VadConfig()), *queues, pauses_ms=pauses_ms),
        *chunks,
    )
    assert end.duration_s == pytest.approx(len(samples) / 16_000)
    return items


def cut(samples, chunk):
    return [item for item in stage_output(samples, chunk) if isinstance(item, SpeechSegment)]


def test_each_spoken_sentence_is_one_segment():
    segments = cut(read_wav(PHRASES), 1600)
    assert len(segments) == len(spoken_texts()["phrases"])
    assert all(1.0 < segment.end_s - segment.start_s < 6.0 for segment in segments)


@pytest.mark.parametrize("chunk", [1, 319, 320, 50_000])
def test_segments_do_not_depend_on_how_the_audio_was_chunked(chunk):
    samples = read_wav(PHRASES)[: 16_000 * 5]
    expected = cut(samples, 1600)
    found = cut(samples, chunk)
    assert [(s.start_sample, len(s.samples)) for s in found] == [(s.start_sample, len(s.samples)) for s in expected]
    assert all(np.array_equal(a.samples, b.samples) for a, b in zip(found, expected, strict=True))


def test_the_last_word_is_delivered_when_the_input_ends_in_it():
    samples = read_wav(PHRASES)
    first = cut(samples, 1600)[0]
    end = first.start_sample + len(first.samples) - 16_000  # inside the last words
    (segment,) = cut(samples[: end + 7], 1600)
    assert segment.start_sample + len(segment.samples) == end + 7


def test_a_segment_has_the_amount_of_audio_received_when_it_was_cut():
    """Undecided frames count as well, so that the reported delay is the reader's."""
    stage = VadStage(VadConfig(), lambda: SpeechDetector(VadConfig()), asyncio.Queue(), asyncio.Queue())
    found = 0
    for number, frame in enumerate(read_wav(PHRASES)[: 16_000 * 9].reshape(-1, 320), 1):
        for segment in stage._push(frame):
            assert segment.heard_sample == 320 * number
            found += 1
    assert found == 2


def with_pauses(*pauses_s):
    """Phrases with these times of silence after each, besides the silence at their own ends."""
    phrases = cut(read_wav(PHRASES), 1600)
    parts = [
        (phrase.speech, np.zeros(round(16_000 * s), np.int16)) for phrase, s in zip(phrases, pauses_s, strict=False)
    ]
    return np.concatenate([np.zeros(16_000, np.int16), *(part for both in parts for part in both)])


def test_a_pause_is_reported_each_time_that_it_reaches_a_length():
    items = stage_output(with_pauses(2.5, 1.2, 2.5), 1600, (2_000, 0, 1_000))
    assert "".join(type(item).__name__[0] for item in items) == "SPPSPSPP"
    assert [item.length_s for item in items if isinstance(item, Pause)] == [1.0, 2.0, 1.0, 1.0, 2.0]
    for segment, following in pairwise(items):
        if isinstance(segment, SpeechSegment) and isinstance(following, Pause):
            assert following.start_s == segment.speech_end_s


@pytest.mark.parametrize("chunk", [112, 320, 48_000])
def test_pauses_do_not_depend_on_how_the_audio_was_chunked(chunk):
    samples = with_pauses(1.05, 0.95, 2.5)
    expected = [item for item in stage_output(samples, 1600, (1_000, 2_000)) if isinstance(item, Pause)]
    assert [item for item in stage_output(samples, chunk, (1_000, 2_000)) if isinstance(item, Pause)] == expected
    assert len(expected) > 2


def test_a_pause_is_reported_when_the_audio_completes_it_and_not_before():
    samples = with_pauses(3.0)
    segment, pause = stage_output(samples, 160, (1_500,))
    assert isinstance(pause, Pause)
    end = round(16_000 * (segment.speech_end_s + 1.5))
    assert stage_output(samples[:end], 160, (1_500,))[1:] == [pause]
    assert len(stage_output(samples[: end - 160], 160, (1_500,))) == 1


def test_no_pause_comes_before_speech_or_during_it():
    assert stage_output(np.zeros(16_000 * 4, np.int16), 1600, (1_000,)) == []
    first, second = stage_output(with_pauses(0.6, 0.6), 1600, (1_500,))
    assert isinstance(first, SpeechSegment)
    assert isinstance(second, SpeechSegment)


def test_both_detectors_run_on_the_stages_own_thread(monkeypatch):
    ran_on = {}
    for kind, method in ((SileroVad, "__init__"), (SileroVad, "push"), (WebRtcVad, "is_speech")):
        real = getattr(kind, method)

        def spied(*args, kind=kind, real=real, **named):
            ran_on.setdefault(kind.__name__, set()).add(threading.current_thread())
            return real(*args, **named)

        monkeypatch.setattr(kind, method, spied)
    assert cut(read_wav(PHRASES)[: 16_000 * 5 + 7], 1600)
    assert ran_on.keys() == {"SileroVad", "WebRtcVad"}
    (thread,) = set.union(*ran_on.values())
    assert thread is not threading.current_thread()
    thread.join(60)
    assert not thread.is_alive(), "the thread outlives its stage"


def test_samples_of_another_type_are_refused():
    """Silero would take float samples for near silence."""
    with pytest.raises(ValueError, match=r"expected mono int16 samples \[n\]; got float32 \[1600\]"):
        cut(np.zeros(1600, np.float32), 1600)


async def fed_in_chunks(make, samples):
    """What a VAD stage puts out if it is read while it runs."""
    inbox, outbox = Queue(), Queue()
    found = []
    stage = asyncio.create_task(make(inbox, outbox).run())
    for start in range(0, len(samples), 1600):
        inbox.put_nowait(samples[start : start + 1600])
    inbox.put_nowait(EndOfInput())
    while not found or not isinstance(found[-1], EndOfInput):
        found.append(await outbox.get())
    await stage
    return found


class Watched:
    """A stage whose frames are decided here, looked at after each of them."""

    def __init__(self, early=True, **options):
        self.stage = VadStage(
            VadConfig(fill_ms=0, **options),
            lambda: SpeechDetector(VadConfig()),
            asyncio.Queue(),
            asyncio.Queue(),
            early=lambda: early,
        )

    def look(self, decisions):
        """What is announced: S for speech in progress, P for a pause."""
        found = ""
        for one in decisions:
            self.stage._endpointer.push(np.zeros(320, np.int16), one == "s")
            if (so_far := self.stage._segment_so_far()) is not None:
                found += "P" if so_far.pausing else "S"
        return found


def test_each_pause_is_announced_once_when_it_is_long_enough():
    watched = Watched(early_ms=200)
    assert watched.look("s" * 20) == "S" * 14  # once it is no noise
    assert watched.look("." * 9) == "S" * 9
    assert watched.look("." * 10) == "P"
    assert watched.look("s" * 3 + "." * 12) == "S" * 12 + "P"
    assert watched.look("." * 30) == ""  # the segment has ended


@pytest.mark.parametrize(("early", "early_ms", "expected"), [(True, 0, "S" * 8), (False, 200, "")])
def test_pauses_are_not_announced_unless_wanted(early, early_ms, expected):
    watched = Watched(early, early_ms=early_ms)
    assert watched.look("s" * 14 + "." * 20) == expected


def test_nothing_is_announced_behind_what_waits():
    watched = Watched()
    watched.look("s" * 20)
    watched.stage.outbox.put_nowait(Pause(0.0, 1.0))
    assert watched.look("s" * 5) == ""


@pytest.mark.parametrize("early", [True, False])
def test_a_segment_is_announced_before_it_ends_if_asked_for(early):
    found = asyncio.run(
        fed_in_chunks(
            lambda *queues: VadStage(VadConfig(), lambda: SpeechDetector(VadConfig()), *queues, early=lambda: early),
            read_wav(PHRASES),
        )
    )
    announced = {item.segment.id: item.segment for item in found if isinstance(item, SegmentSoFar)}
    closed = [item for item in found if isinstance(item, SpeechSegment)]
    assert len(closed) > 2
    if not early:
        assert announced == {}
        return
    same = [
        segment.id
        for segment in closed
        if segment.id in announced and np.array_equal(announced[segment.id].samples, segment.samples)
    ]
    assert len(same) > len(closed) / 2
    order = [(item.segment.id, 0) if isinstance(item, SegmentSoFar) else (item.id, 1) for item in found[:-1]]
    assert order == sorted(order)


@pytest.mark.parametrize("early", [True, False])
def test_a_segment_in_progress_is_passed_on_with_every_chunk_of_speech(early):
    found = asyncio.run(
        fed_in_chunks(
            lambda *queues: VadStage(VadConfig(), lambda: SpeechDetector(VadConfig()), *queues, early=lambda: early),
            read_wav(PHRASES),
        )
    )
    growing = [item for item in found if isinstance(item, SegmentSoFar) and not item.pausing]
    if not early:
        assert growing == []
        return
    closed = {item.id: item for item in found if isinstance(item, SpeechSegment)}
    assert {item.segment.id for item in growing} == set(closed)
    for item in growing:
        so_far, whole = item.segment, closed[item.segment.id]
        assert so_far.start_sample == whole.start_sample
        assert so_far.speech_end_s <= whole.speech_end_s
        same = min(len(so_far.samples), len(whole.samples))
        assert np.array_equal(so_far.samples[:same], whole.samples[:same])
    assert len(growing) > 20


def test_no_segment_in_progress_is_put_behind_what_waits():
    chunks = read_wav(PHRASES)[: 9 * 16_000].reshape(-1, 1_600)
    first, *rest = through(
        lambda *queues: VadStage(VadConfig(), lambda: SpeechDetector(VadConfig()), *queues, early=lambda: True), *chunks
    )
    assert isinstance(first, SegmentSoFar)
    assert {type(item) for item in rest} == {SpeechSegment, EndOfInput}


class Anywhere:
    """Hears music in whatever it is given."""

    def heard(self, window):
        return Heard(0.0, 0.0, 1.0)


def with_sounds(samples, chunk):
    chunks = [samples[start : start + chunk] for start in range(0, len(samples), chunk)]
    *found, _ = through(
        lambda *queues: VadStage(VadConfig(), lambda: SpeechDetector(VadConfig()), *queues, sounds=Anywhere()), *chunks
    )
    return found


@pytest.mark.parametrize("chunk", [112, 48_000])
def test_a_sound_comes_after_the_speech_in_it_and_does_not_depend_on_how_the_audio_was_chunked(chunk):
    samples = np.concatenate(
        [read_wav(PHRASES)[: 16_000 * 9], np.zeros(16_000 * 3, np.int16)]
    )  # the last sound ends with the audio
    found = with_sounds(samples, chunk)
    sounds = [each for each in found if isinstance(each, SoundEvent)]
    assert [each.start_s for each in sounds] == [0, 3, 6, 9]
    for number, each in enumerate(found):
        if isinstance(each, SoundEvent):
            segments = [later for later in found[number:] if isinstance(later, SpeechSegment)]
            assert all(later.speech_start_s >= each.end_s for later in segments)
    assert sounds == [each for each in with_sounds(samples, 1600) if isinstance(each, SoundEvent)]
