"""The recogniser of streaming models of sherpa-onnx, alone and in the whole chain, with models made by rule."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from pipeline import SourceSentence, SourceText, Translation, load_models
from pipeline.backends.asr_options import AsrConfig
from pipeline.backends.sherpa import SherpaRecognizer
from pipeline.config import loading, parse_config
from pipeline.config.loading import load_shared
from pipeline.core.asr.recognizer import DEFAULT, StreamingRecognizer
from pipeline.errors import ModelError, PipelineError, UsageError
from pipeline.events import SAMPLE_RATE
from pipeline.media.audio.recording import Recording
from tests.backends.sherpa_models import CHINESE, HOTEL, ctc_model, transducer_model
from tests.chain import events_of
from tests.conftest import HANG_S, PHRASES, ROOT, SHIPPED_TRANSLATORS, read_wav, write_wav
from tests.drafting import Pace, Steady, chunks

MARKED = ("▁Where", "▁is", "▁it", "?")
AUDIO_S = 5


def recognizer(folder, language="en"):
    return SherpaRecognizer(AsrConfig(model=str(folder), threads=1), language, folder)


def heard(found, step_s=0.5):
    """The states of a stream to which five seconds are fed."""
    samples, step = read_wav(PHRASES)[: AUDIO_S * SAMPLE_RATE], round(step_s * SAMPLE_RATE)
    stream = found.open(DEFAULT)
    return [*(stream.feed(samples[at : at + step]) for at in range(0, len(samples), step)), stream.finish()]


def text_of(state):
    return "".join(word.text for word in state.words).strip()


@pytest.fixture(scope="module")
def ctc(tmp_path_factory):
    return recognizer(ctc_model(tmp_path_factory.mktemp("ctc")))


@pytest.mark.parametrize("make", [ctc_model, transducer_model])
def test_words_come_while_they_are_said_and_those_called_stable_stay(make, tmp_path):
    found = recognizer(make(tmp_path))
    assert isinstance(found, StreamingRecognizer)
    states = heard(found)
    assert [len(state.words) for state in states] == sorted(len(state.words) for state in states)
    for before, after in pairwise(states):
        assert [word.text for word in after.words[: before.stable]] == [w.text for w in before.words[: before.stable]]
    assert 0 < states[len(states) // 2].stable < states[-1].stable == len(states[-1].words)
    assert text_of(states[-1]).startswith("Where is the hotel where is the hotel")
    assert text_of(states[-1]).endswith(".")
    times = [time for word in states[-1].words for time in (word.start_s, word.end_s)]
    assert times == sorted(times)
    assert 0 < times[0] < times[-1] <= AUDIO_S


def test_the_text_is_the_same_however_the_audio_comes(ctc):
    with ThreadPoolExecutor(3) as threads:  # streams of one model at the same time
        found = threads.map(lambda step_s: text_of(heard(ctc, step_s)[-1]), (0.03, 0.5, AUDIO_S))
    assert len(set(found)) == 1


def test_the_last_word_is_heard_wherever_the_segment_ends(ctc):
    samples = read_wav(PHRASES)
    for end in range(2 * SAMPLE_RATE, 3 * SAMPLE_RATE, SAMPLE_RATE // 10):
        ended, longer = ctc.open(DEFAULT), ctc.open(DEFAULT)
        ended.feed(samples[:end])
        longer.feed(np.concatenate([samples[:end], np.zeros(SAMPLE_RATE, np.int16)]))
        state = ended.finish()
        assert text_of(state) == text_of(longer.finish())
        assert state.words[-1].end_s <= end / SAMPLE_RATE


def test_chinese_words_are_its_characters(tmp_path):
    words = [word.text for word in heard(recognizer(ctc_model(tmp_path, CHINESE), "zh"))[-1].words]
    assert words[:6] == ["酒", "店", "在", "哪", "里", " ok"]
    assert words[-1].endswith("。")


def test_a_script_is_chosen(tmp_path):
    config = AsrConfig(model=str(ctc_model(tmp_path, ("門",))), script="simplified")
    assert text_of(heard(SherpaRecognizer(config, "zh", tmp_path))[-1]).startswith("门门")


def test_text_with_small_letters_and_marks_is_left_as_it_is(tmp_path):
    found = recognizer(ctc_model(tmp_path, MARKED))
    assert text_of(heard(found)[-1]).startswith("Where is it? Where is it?")
    assert found.final_mark == ""


@pytest.mark.parametrize(
    ("text", "tokens", "words"),
    [
        (" SO I GO", [" SO", " I", " GO"], ["So", "I", "go"]),
        ("你 HELLO", ["你", "HEL@@", "LO"], ["你", "hello"]),
        (" ÉTÉ", [" ", "<0xC3>", "<0x89>", "T", "<0xC3>", "<0x89>"], ["Été"]),
        ("", [], []),
    ],
)
def test_words_are_joined_from_tokens(ctc, text, tokens, words):
    found = ctc.words(text, tokens, [float(at) for at in range(len(tokens))])
    assert [word.text.strip().lower() for word in found] == [word.lower() for word in words]
    assert [word.text.strip()[:1] for word in found] == [word[:1] for word in words]
    assert all(before.end_s <= after.start_s for before, after in pairwise(found))


def test_a_word_does_not_last_over_the_pause_after_it(ctc):
    first, second = ctc.words(" so i", [" so", " i"], [1.0, 5.0])
    assert (first.start_s, second.start_s) == (1.0, 5.0)
    assert first.end_s < 2.0


def test_tokens_without_times_have_that_at_which_they_came(ctc, monkeypatch):
    timed = heard(ctc)[-1].words
    model = ctc.model

    def untimed(stream):
        result = model.get_result_all(stream)
        return SimpleNamespace(text=result.text, tokens=result.tokens, timestamps=[])

    names = ("create_stream", "is_ready", "decode_stream")
    monkeypatch.setattr(ctc, "model", SimpleNamespace(**{n: getattr(model, n) for n in names}, get_result_all=untimed))
    words = heard(ctc)[-1].words
    assert [word.text for word in words] == [word.text for word in timed]
    assert max(abs(one.start_s - other.start_s) for one, other in zip(words, timed, strict=True)) < 0.6


def empty(folder):
    (folder / "tokens.txt").write_text("<blk> 0\n")


def without_tokens(folder):
    (ctc_model(folder) / "tokens.txt").unlink()


def encoder_only(folder):
    (transducer_model(folder) / "joiner-epoch-1.onnx").unlink()
    (folder / "decoder-epoch-1.onnx").unlink()


def not_streaming(folder):
    ctc_model(folder, window_size=None)


def without_a_number(folder):
    ctc_model(folder, chunk_shift=None)


def truncated(folder):
    path = ctc_model(folder) / "model.onnx"
    path.write_bytes(path.read_bytes()[:200])


def truncated_encoder(folder):
    path = transducer_model(folder) / "encoder-epoch-1.onnx"
    path.write_bytes(path.read_bytes()[:200])


def without_blank(folder):
    path = ctc_model(folder) / "tokens.txt"
    path.write_text(path.read_text("utf-8").replace("<blk>", "_"), "utf-8")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (empty, "has no ONNX files; expected are encoder, decoder and joiner"),
        (without_tokens, "tokens.txt: No such file"),
        (encoder_only, "has encoder-epoch-1.onnx; expected are"),
        (
            not_streaming,
            "model.onnx is no streaming CTC model: its metadata has .*vocab_size, and none of encoder_dims",
        ),
        (without_a_number, "cannot load .*'chunk_shift' does not exist in the metadata"),
        (truncated, "model.onnx is not a readable ONNX model"),
        (truncated_encoder, "cannot load .*Protobuf parsing failed"),
        (without_blank, "cannot load .*contains the symbol <blk>"),
    ],
)
def test_a_folder_that_is_no_model_is_refused_in_one_line(make, said, tmp_path):
    make(tmp_path)
    with pytest.raises(ModelError, match=said) as caught:
        recognizer(tmp_path)
    assert len(str(caught.value).splitlines()) == 1


def config_for(folder, model="", **more):
    table = {
        "languages": {"source": "en", "target": "zh"},
        "asr": {"backend": "sherpa-onnx", "threads": 1} | ({"model": model} if model else {}),
        "nmt": {"model": str(SHIPPED_TRANSLATORS["demo-en-zh"])},
    }
    return parse_config(table | more, folder / "mine.toml")


@pytest.mark.parametrize("model", ["", "small", "nowhere"])
def test_a_model_that_is_no_folder_is_wrong_usage(model, tmp_path):
    with pytest.raises(
        UsageError, match=r"asr\.model is .*, no folder; with asr\.backend = \"sherpa-onnx\", give a folder"
    ):
        load_models(config_for(tmp_path, model))


def test_a_folder_that_is_no_model_is_refused_before_a_translator_is_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "find_translation_models", lambda *_: pytest.fail("fetched"))
    empty(tmp_path)
    with pytest.raises(ModelError, match="has no ONNX files"):
        load_models(config_for(tmp_path, "."))


def test_what_to_install_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sherpa_onnx", None)
    with pytest.raises(PipelineError, match=r"pip install 'streaming-speech-translation\[sherpa\]'"):
        recognizer(ctc_model(tmp_path))


def test_a_plain_run_does_not_load_it():
    code = "import sys, pipeline.config.loading; print(sorted({'sherpa_onnx', 'pipeline.backends.sherpa'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=HANG_S)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """The configuration of a whole chain, and its models."""
    folder = tmp_path_factory.mktemp("chain")
    ctc_model(folder / "model")
    config = config_for(folder, "model")
    return config, load_models(config)


def sentences(events):
    return [event for event in events if isinstance(event, SourceSentence)]


@pytest.mark.slow
def test_what_is_heard_is_shown_at_once_and_translated_at_pauses(chain, monkeypatch):
    live = events_of(*chain, Steady(chunks(read_wav(PHRASES)), Pace(monkeypatch)), live=True)
    texts = [event.text for event in sentences(live)]
    assert texts.count("Where is the hotel.") >= 3
    assert all(text.startswith("Where is the ho") and text.endswith(".") for text in texts)
    first = [event for event in live[: live.index(sentences(live)[0])] if isinstance(event, SourceText)]
    assert len({event.steady for event in first}) > 3
    translations = [event for event in live if isinstance(event, Translation)]
    assert len(translations) == len(texts)
    assert sum("酒店" in event.text for event in translations) >= 4
    assert [event.text for event in sentences(events_of(*chain, Recording(PHRASES), live=False))] == texts


def test_speech_without_a_pause_ends_at_the_maximum_length(chain, tmp_path):
    config, models = chain
    frames = read_wav(PHRASES).copy()
    frames = frames[: len(frames) // 320 * 320].reshape(-1, 320)
    unbroken = frames[np.abs(frames.astype(int)).max(axis=1) > 300].reshape(-1)
    path = write_wav(tmp_path / "unbroken.wav", np.concatenate([unbroken] * 2))
    config = replace(config, vad=replace(config.vad, max_segment_ms=6_000))
    found = sentences(events_of(config, models, Recording(path), live=False))
    assert len(found) >= 3
    assert max(each.end_s - each.start_s for each in found) <= 6.5


def test_a_model_is_in_memory_once(chain):
    config, _ = chain
    other = replace(config, asr=replace(config.asr, script="as-heard"))
    one, two = (each.recognizer for each in load_shared([config, other]))
    assert one is not two
    assert one.model is two.model


def test_of_a_file_in_two_precisions_the_smaller_one_is_taken(tmp_path):
    ctc_model(tmp_path, ("▁NO",), name="a.onnx")
    ctc_model(tmp_path, HOTEL, name="b.int8.onnx")
    assert text_of(heard(recognizer(tmp_path))[-1]).startswith("Where")
