"""Final text is the same live, fast, fed and as a recording, with drafts or without, and on a slow machine."""

import asyncio
from dataclasses import replace

import pytest

from pipeline import Models, SourceSentence, SpeechTranslator, Translation, load_config, load_models
from pipeline.apps.translate import for_recordings
from pipeline.events import SAMPLE_RATE
from pipeline.media.audio.recording import Recording
from tests.chain import events_of
from tests.commands import loaded_once
from tests.conftest import EXAMPLES, ROOT, read_wav, write_wav
from tests.drafting import Pace, Slow, Steady, chunks

RECORDINGS = {"demo-zh": EXAMPLES / "travel.wav", "demo-pt-en": ROOT / "examples" / "audio-pt" / "lisbon.wav"}


@pytest.fixture(scope="module", params=RECORDINGS)
def case(request, tmp_path_factory):
    """A configuration, its models, some sentences, and their final text as a recording."""
    config = load_config(request.param)
    with loaded_once():  # what is compared is what is made of what was heard
        models = load_models(config)
    said = read_wav(RECORDINGS[request.param])[: 13 * SAMPLE_RATE]
    audio = write_wav(tmp_path_factory.mktemp("talk") / "talk.wav", said)
    expected = final(events_of(for_recordings(config), models, Recording(audio)))
    assert len(expected) >= 6
    return config, models, audio, expected


def final(events):
    """The final texts, source and translation, with their languages and times, in the order of the sentences."""
    kept = [event for event in events if isinstance(event, SourceSentence | Translation)]
    kept.sort(key=lambda event: (event.sentence, isinstance(event, Translation)))
    return [
        (each.sentence, each.language, each.text)
        + ((each.start_s, each.end_s) if isinstance(each, SourceSentence) else ())
        for each in kept
    ]


def with_drafts(config, enabled):
    return replace(config, drafts=replace(config.drafts, enabled=enabled))


@pytest.fixture
def pace(monkeypatch):
    return Pace(monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("drafts", [True, False])
def test_live_text_is_that_of_the_recording(drafts, case, pace):
    config, models, audio, expected = case
    source = Steady(chunks(read_wav(audio)), pace)
    events = events_of(with_drafts(config, drafts), models, source, live=True)
    assert final(events) == expected


@pytest.mark.slow
def test_a_recogniser_slower_than_real_time_hears_the_same(case, pace):
    config, models, audio, _ = case
    alone = Models(Slow(models.recognizer, pace, 0.0, 0.0, slow=()), models.translations)  # a group at a time
    expected = final(events_of(for_recordings(config), alone, Recording(audio)))
    pace.forget()
    slow = Slow(models.recognizer, pace, draft_s=0.7, final_s=4.0, slow=range(1_000))
    source = Steady(chunks(read_wav(audio)), pace)
    events = events_of(config, Models(slow, models.translations), source, live=True)
    assert final(events) == expected


@pytest.mark.parametrize("drafts", [True, False])
def test_a_live_run_at_full_speed_gives_the_same_text(drafts, case):
    config, models, audio, expected = case
    assert final(events_of(with_drafts(config, drafts), models, Recording(audio), live=False)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("chunk_ms", [7, 3_000])
def test_chunks_of_any_length_give_the_same_text(chunk_ms, live, case):
    config, models, audio, expected = case

    async def work():
        async with SpeechTranslator(config, models, live=live) as translator:

            async def feed():
                for chunk in chunks(read_wav(audio), chunk_ms * SAMPLE_RATE // 1000):
                    await translator.feed(chunk.tobytes())
                await translator.end()

            feeding = asyncio.create_task(feed())
            events = [event async for event in translator.events()]
            await feeding
            return events

    assert final(asyncio.run(work())) == expected
