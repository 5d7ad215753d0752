"""The models of voices, on real speech."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from pipeline.backends.asr_options import AsrConfig
from pipeline.backends.moonshine import find_model
from pipeline.backends.voices import HOP_SAMPLES, WINDOW_SAMPLES, VoiceModel, voice_model_folder
from pipeline.core.run.options import SpeakerOptions
from pipeline.errors import ModelError, UsageError
from pipeline.events import SAMPLE_RATE
from pipeline.store import packages
from tests.conftest import ROOT, read_wav

AUTO = SpeakerOptions(auto=True)
EXAMPLES = ROOT / "examples" / "audio"
READER, SYNTHETIC = (read_wav(EXAMPLES / f"{name}.wav") for name in ("novel", "meeting"))


@pytest.fixture(scope="module")
def model():
    return VoiceModel(voice_model_folder(AUTO))


def seconds(samples, begin_s, end_s):
    return samples[round(begin_s * SAMPLE_RATE) : round(end_s * SAMPLE_RATE)]


def test_vectors_of_one_voice_are_far_more_alike_than_those_of_two(model):
    reader = [model.vector(seconds(READER, at, at + 3)) for at in (1, 4)]
    synthetic = [model.vector(seconds(SYNTHETIC, at, at + 2)) for at in (1, 7)]
    assert min(reader[0] @ reader[1], synthetic[0] @ synthetic[1]) > 0.5
    assert max(one @ other for one in reader for other in synthetic) < 0.3
    assert np.linalg.norm(reader[0]) == pytest.approx(1)


def test_a_vector_does_not_depend_on_how_loud_the_voice_is(model):
    loud = seconds(READER, 1, 4)
    assert model.vector(loud) @ model.vector(loud // 4) > 0.95


def test_one_voice_is_heard_at_a_time_where_people_take_turns(model):
    turns = np.concatenate([seconds(READER, 1, 4), seconds(SYNTHETIC, 7, 10)])
    active = model.activity(turns)
    assert len(active) * HOP_SAMPLES == pytest.approx(len(turns), abs=2 * HOP_SAMPLES)
    first, second = active[: len(active) // 2].mean(axis=0), active[len(active) // 2 :].mean(axis=0)
    assert first.argmax() != second.argmax()
    assert min(first.max(), second.max()) > 0.6
    assert max(first[second.argmax()], second[first.argmax()]) < 0.1


def test_a_quiet_voice_beside_a_loud_one_is_heard_where_sound_is_levelled(model):
    sound = np.concatenate([seconds(READER, 1, 4), seconds(SYNTHETIC, 7, 10) // 150])
    plain, levelled = model.activity(sound).any(axis=1), model.activity(sound, levelled=True).any(axis=1)
    quiet = slice(len(plain) // 2 + 30, None)
    assert plain[quiet].mean() < 0.1
    assert levelled[quiet].mean() > 0.6


@pytest.mark.parametrize("samples", [0, 399, 16_000, WINDOW_SAMPLES])
def test_silence_has_no_voice(model, samples):
    assert not model.activity(np.zeros(samples, np.int16)).any()
    assert (model.vector(np.zeros(samples, np.int16)) is None) == (samples < 400)


def test_models_that_are_none_are_refused_in_one_line(tmp_path, monkeypatch):
    mine = replace(AUTO, model=str(tmp_path))
    with pytest.raises(ModelError, match=r"has no segmentation\.ort and no embedding\.ort"):
        voice_model_folder(mine)
    shutil.copyfile(voice_model_folder(AUTO) / "segmentation.ort", tmp_path / "segmentation.ort")
    other = find_model(AsrConfig(backend="moonshine", model="moonshine/tiny-en")) / "encoder_model.ort"
    shutil.copyfile(other, tmp_path / "embedding.ort")
    with pytest.raises(ModelError, match="embedding.ort has the inputs .*expected .*fbank"):
        VoiceModel(voice_model_folder(mine))
    (tmp_path / "segmentation.ort").write_bytes(b"no graph")
    with pytest.raises(ModelError, match="cannot load"):
        VoiceModel(tmp_path)
    monkeypatch.setattr(packages, "_installed", lambda *place: None)
    monkeypatch.setattr(packages, "is_complete", lambda *place: False)
    with pytest.raises(UsageError, match=r"pip install moonshine-voice==0\.0\.73"):
        voice_model_folder(AUTO)
