"""Captions of music and singing, through the whole chain."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.config.loading import SharedModels
from pipeline.core.run.options import SoundOptions
from pipeline.events import SAMPLE_RATE, SourceSentence, Translation
from pipeline.media.audio.recording import Recording
from pipeline.media.sinks.files import sink_makers
from pipeline.media.subtitles.rules import SubtitleRules
from pipeline.server.service import Service
from tests.backends.vad.test_sounds import sung, tune
from tests.chain import events_of
from tests.conftest import EXAMPLES, read_wav, write_wav
from tests.server.running import ask, finish, rest, running, speak


@pytest.fixture
def captioned(demo_config, demo_models):
    """The demo with captions of sounds: its configuration and models."""
    options = SoundOptions(captions=True)
    return replace(demo_config, sounds=options), replace(demo_models, sounds=SharedModels().sound_detector(options))


@pytest.fixture
def show(tmp_path):
    """Music of 9 s, speech, speech with music, singing of 4 s."""
    travel, rest = read_wav(EXAMPLES / "travel.wav"), np.zeros(SAMPLE_RATE, np.int16)
    spoken = travel[: 6 * SAMPLE_RATE]
    mixed = travel[7 * SAMPLE_RATE : 13 * SAMPLE_RATE]
    mixed = mixed + np.resize(tune(6) // 8, len(mixed))
    return write_wav(tmp_path / "show.wav", np.concatenate([tune(9), rest, spoken, mixed, rest, sung(4), rest]))


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_music_and_singing_have_captions_live_and_in_recordings_and_no_word_is_another(
    captioned, demo_config, demo_models, show, tmp_path
):
    config, models = captioned
    found, live = (events_of(config, models, Recording(show), live=live) for live in (False, True))

    def sentences(events):
        return [replace(each, heard_s=0.0) for each in events if isinstance(each, SourceSentence)]

    captions = {each.sentence: each for each in sentences(found) if each.sound is not None}
    assert [(each.text, each.start_s) for each in captions.values()] == [
        ("[music]", 0),
        ("[singing]", pytest.approx(24, abs=2)),
    ]
    translated = [each for each in found if isinstance(each, Translation)]
    assert [each.text for each in translated if each.sentence in captions] == ["[音乐]", "[歌声]"]
    said = [each for each in sentences(found) if each.sound is None]
    assert not any(one.start_s < each.end_s and one.end_s > each.start_s for one in captions.values() for each in said)
    assert sentences(live) == sentences(found)
    plain = sentences(events_of(demo_config, demo_models, Recording(show)))
    assert [each.text for each in plain] == [each.text for each in said]

    for kind, begins in (
        ("srt", "00:00:00,000 --> 00:00:03,000"),
        ("vtt", "00:00.000 --> 00:00:03.000"),
        ("ttml", 'end="00:00:03.000"'),
    ):
        sink = sink_makers(SubtitleRules())[kind](tmp_path / kind, languages=("zh",))
        for event in found:
            sink.write(event)
        sink.close()
        written = (tmp_path / kind).read_text("utf-8")
        assert begins in written
        assert written.index("[音乐]") < written.index("柏林") < written.index("[歌声]")


async def test_readers_of_a_session_see_them(captioned, tmp_path):
    silence = np.zeros(2 * SAMPLE_RATE, np.int16)
    async with (
        running(Service(*captioned, record=tmp_path)) as server,
        server.connect() as speaker,
        server.connect() as reader,
    ):
        session = (await ask(speaker, type="start"))["session"]
        await ask(reader, type="watch", session=session)
        await speak(speaker, np.concatenate([tune(4), silence]))
        await finish(speaker)
        found = {record["type"]: record for record in await rest(reader)}
    caption, translation = found["source_sentence"], found["translation"]
    assert (caption["text"], caption["sound"], translation["text"]) == ("[music]", "music", "[音乐]")
    assert any("[音乐]" in path.read_text("utf-8") for path in tmp_path.glob("*.zh.vtt"))
