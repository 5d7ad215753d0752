"""A machine that is too slow for drafts, by simulated time: they are left out while the run is behind, and nothing else is."""

import asyncio
import dataclasses

import numpy as np
import pytest

from pipeline import LoadChanged, Models, PipelineEvent, SourceSentence, SpeechTranslator, Transcript, Translation
from pipeline.apps.controls import NoticeSink
from pipeline.bench.words import edits, scored_units
from pipeline.core.run.overload import OverloadOptions
from pipeline.core.run.stats import PipelineStats
from pipeline.events import SAMPLE_RATE
from tests.conftest import HANG_S, PHRASES, read_wav, spoken_texts
from tests.core.run.test_overload import letters
from tests.drafting import Pace, Slow, Steady, at_once, chunks
from tests.streams import changes

# Ten times what Whisper base takes on two cores for a draft, and for a segment with five hypotheses.
DRAFT_S, FINAL_S = 3.0, 6.0


# From the beginning, or once drafts have been shown.
@pytest.mark.parametrize(
    "slow", [pytest.param(range(4), marks=pytest.mark.slow), range(5, 8)], ids=["at first", "later"]
)
def test_drafts_are_left_out_while_behind_and_nothing_that_was_said_is(
    slow, demo_config, demo_models, monkeypatch, capsys
):
    overload = OverloadOptions(behind_s=3.0, caught_up_s=1.0)
    queues = dataclasses.replace(demo_config.queues, segments=100, audio_chunks=1_000)
    config = dataclasses.replace(demo_config, overload=overload, queues=queues)
    pace = Pace(monkeypatch)
    recognizer = Slow(demo_models.recognizer, pace, DRAFT_S, FINAL_S, slow)
    speech = read_wav(PHRASES)
    speech = np.concatenate([speech, speech[: 6 * SAMPLE_RATE]])
    events: list[PipelineEvent] = []
    drafted: list[int] = []  # drafts before each change of the load

    async def work() -> PipelineStats:
        models = Models(recognizer, demo_models.translations)
        async with SpeechTranslator(config, models, live=True) as translator:
            stats = recognizer.stats = translator.stats
            at_once(stats)
            async for event in translator.run(Steady(chunks(speech), pace)):
                events.append(event)
                NoticeSink().write(event)
                if isinstance(event, LoadChanged):
                    drafted.append(len(recognizer.levels))
            return stats

    stats = asyncio.run(asyncio.wait_for(work(), HANG_S))
    levels = [event for event in events if isinstance(event, LoadChanged)]
    assert [change.level for change in levels] == [1, 0] * (len(levels) // 2) != []
    assert drafted[::2] == drafted[1::2], "no draft while behind"
    assert 0 < drafted[0] < len(recognizer.levels) == stats.drafts, "drafts before and after"
    assert set(recognizer.levels) == {0}
    assert stats.undrafted >= 1
    assert f"lag {levels[0].lag_s:.1f} s: no drafts" in capsys.readouterr().err
    assert f"{stats.undrafted} segments without drafts to keep up" in stats.details()
    assert (stats.load_level, stats.lag_s) == (0, 0.0)

    changes(events)  # raises if final text changes
    transcripts = [event for event in events if isinstance(event, Transcript)]
    assert [event.segment_id for event in transcripts] == list(range(stats.segments))
    sentences = [event for event in events if isinstance(event, SourceSentence)]
    assert [event.sentence for event in events if isinstance(event, Translation)] == [s.sentence for s in sentences]
    heard = letters(transcript.text for transcript in transcripts if transcript.rejected is None)
    assert letters(sentence.text for sentence in sentences) == heard
    said = [*spoken_texts()["phrases"], spoken_texts()["phrases"][0]]
    for text, sentence in zip(said, sentences, strict=False):
        assert edits(scored_units(text, "en"), scored_units(sentence.text, "en")) <= 1, sentence.text
