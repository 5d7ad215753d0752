"""What the reader of a run is told beside its events, and what is counted. No stage runs."""

import asyncio

import pytest

from pipeline import EndOfInput, Models, SourceSentence, SpeechTranslator, load_config
from pipeline.core.captions.masking import Masking
from pipeline.core.notices import AudioLost, DeviceBack, DeviceLost, LoadChanged, Paused
from pipeline.events import SAMPLE_RATE

END = EndOfInput(1.0)


def translator(**options):
    return SpeechTranslator(load_config("demo"), Models(None, {}), **options)


def test_losses_and_returns_of_the_device_are_counted_and_told_once_in_order():
    told = [
        AudioLost(1.0, 0.0, "full"), AudioLost(3.0, 1.5, "room"), DeviceLost(4.0, "Mic", "gone"),
        DeviceBack(9.0, "Mic", 5.0), AudioLost(9.5, 0.5, "late"),
    ]  # fmt: skip
    run = translator()
    for notice in told:
        run._on_source_notice(notice)
    assert (run.stats.lost_s, run.stats.reconnections) == (2.0, 1)
    assert run.take_ready() == told
    assert run.take_ready() == []


def test_of_notices_that_nobody_reads_the_newest_are_kept():
    run = translator()
    for second in range(300):
        run._notify(Paused(second))
    assert [notice.at_s for notice in run.take_ready()] == list(range(44, 300))


async def reading(run, *items, notices=()):
    """What a reader gets that waits already when ``items`` and then notices come."""
    run._ended = True
    found = []

    async def read():
        async for event in run.events():
            found.append(event)

    task = asyncio.create_task(read())
    await asyncio.sleep(0)
    for notice in notices:
        run._notify(notice)
    for item in items:
        run._outbox.put_nowait(item)
    run._notices.append(Paused(9.0))
    await task
    return found


async def test_a_reader_that_waits_is_told_at_once_and_the_end_is_last():
    first, second = Paused(1.0), Paused(2.0)
    sentence = SourceSentence(0, "en", "Yes.")
    assert await reading(translator(), sentence, END, notices=(first, second)) == [
        first, second, Paused(9.0), sentence, END,
    ]  # fmt: skip
    assert await reading(translator(), END) == [Paused(9.0), END]


async def test_after_the_run_was_cancelled_nothing_more_is_told():
    run = translator()
    run._notify(Paused(1.0))
    run._outbox.put_nowait(SourceSentence(0, "en", "Yes."))
    await run.cancel()
    assert run.take_ready() == []


def test_words_are_masked_for_a_reader_who_stops_early_too():
    run = translator(masking=Masking([("en", "damn")]))
    run._outbox.put_nowait(SourceSentence(0, "en", "Damn."))
    assert [event.text for event in run.take_ready()] == ["D***."]


@pytest.mark.parametrize("live", [True, False])
def test_only_a_live_run_is_behind_and_the_longest_lag_is_remembered(live):
    run = translator(live=live)
    now_s = 0.0
    run.stats.clock = lambda: now_s
    run.stats.received(SAMPLE_RATE)
    now_s = 9.0
    run.stats.received(9 * SAMPLE_RATE)
    run._observe_lag()
    assert run.stats.load_level == int(live)
    run.stats.audio_samples = 10 * SAMPLE_RATE
    run._observe_lag()
    assert (run.stats.load_level, run.stats.longest_lag_s) == (0, 10.0)
    assert run.take_ready() == ([LoadChanged(1, 10.0), LoadChanged(0, 0.0)] if live else [])
