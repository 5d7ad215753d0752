"""The recogniser of Moonshine, with its real weights."""

import shutil
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from pipeline import load_models
from pipeline.asr import moonshine
from pipeline.asr.context import HeardSegment as Known
from pipeline.asr.moonshine import MoonshineRecognizer, find_model
from pipeline.asr.options import AsrConfig, DraftModel
from pipeline.asr.recognizer import DEFAULT, DraftRecognizer, RecognitionOptions
from pipeline.audio.recording import Recording
from pipeline.config import load_config, parse_config, with_overrides
from pipeline.errors import ModelError, UsageError
from pipeline.events import SAMPLE_RATE, SourceSentence, SourceText, SpeechSegment
from pipeline.store.known import MOONSHINE
from tests.chain import events_of
from tests.conftest import ROOT, read_wav
from tests.drafting import Pace, Steady, chunks
from tests.vad.test_stage import cut

CONFIG = AsrConfig(backend="moonshine", model="moonshine/tiny-en", threads=1)
MEETING = ROOT / "examples" / "audio" / "meeting.wav"
SAID = (
    "The meeting is on Thursday at 2.30. Please send me the budget before Friday. My sister will present the new product tomorrow morning. "
    "There are 11 people in the meeting room. Let's take a break for 20 minutes."
)


@pytest.fixture(scope="module")
def recognizer():
    return MoonshineRecognizer(CONFIG, find_model(CONFIG))


@pytest.fixture(scope="module")
def segments():
    return cut(read_wav(MEETING), 1600)


def words(text):
    return [word.strip(".,").lower() for word in text.replace(":", ".").split()]


def test_speech_is_recognised_with_words_whose_times_are_in_its_sound(recognizer, segments):
    assert isinstance(recognizer, DraftRecognizer)
    found = recognizer.transcribe(segments)
    heard = words(" ".join(each.text for each in found))
    assert len(set(words(SAID)) - set(heard)) <= 3
    for segment, transcript in zip(segments, found, strict=True):
        assert transcript.rejected is None
        assert "".join(word.text for word in transcript.words).strip() == transcript.text
        times = [time for word in transcript.words for time in (word.start_s, word.end_s)]
        assert segment.start_s <= min(times) < max(times) <= segment.end_s
        assert all(before.start_s <= after.start_s for before, after in pairwise(transcript.words))


def test_a_guess_saves_runs_of_the_decoder_and_changes_next_to_nothing(recognizer, segments, monkeypatch):
    model, runs = recognizer._model, []
    step = model._step
    monkeypatch.setattr(model, "_step", lambda *given: runs.append(given) or step(*given))
    samples = segments[0].samples
    alone = model.heard(samples)
    without = len(runs)
    for guess in (alone.text, alone.text.replace("Thursday", "Tuesday"), "Something else entirely"):
        runs.clear()
        assert words(model.heard(samples, guess).text)[:6] == words(alone.text)[:6]
        assert len(runs) <= without + 1
    runs.clear()
    model.heard(samples, alone.text)
    assert 3 * len(runs) < without


def test_a_draft_goes_on_after_the_words_that_are_known(recognizer, segments):
    segment, *_ = segments
    middle = segment.start_sample + len(segment.samples) // 2
    before, after = (
        replace(segment, samples=segment.samples[: middle - segment.start_sample]),
        replace(segment, start_sample=middle, samples=segment.samples[middle - segment.start_sample :]),
    )
    known = recognizer.draft(before, DEFAULT)
    found = recognizer.draft(after, RecognitionOptions(context=(Known(before, known.text),)))
    whole = recognizer.transcribe([segment])[0].text
    assert words(known.text)[:3] == words(whole)[:3]
    assert words(f"{known.text} {found.text}")[-3:] == words(whole)[-3:]
    assert all(word.start_s >= after.start_s for word in found.words)


def test_a_draft_that_repeats_itself_is_none(recognizer, segments, monkeypatch):
    heard = recognizer._model.heard(segments[0].samples)
    looping = replace(heard, words=[*heard.words, *heard.words[-3:], *heard.words[-3:]])
    monkeypatch.setattr(recognizer, "_model", SimpleNamespace(heard=lambda *given: looping))
    assert recognizer.draft(segments[0], DEFAULT) is None


def test_what_does_not_end_is_withheld(recognizer, segments, monkeypatch):
    monkeypatch.setattr(moonshine, "_TOKENS_PER_S", 0.0)
    assert recognizer.transcribe(segments[:1])[0].rejected == "repetition"


@pytest.mark.parametrize("length", [0, 1, 500])
def test_next_to_no_sound_is_no_error(recognizer, length):
    segment = SpeechSegment(0, 0, np.zeros(length, np.int16))
    assert recognizer.transcribe([segment])[0].end_s == segment.end_s


@pytest.mark.parametrize("length", [1, 127, 128, 129, 300])
def test_a_token_of_any_length_is_read(length, tmp_path):
    pieces = [b"a", b"b" * length, b"c"]
    (tmp_path / "tokenizer.bin").write_bytes(
        b"".join(bytes([len(p)] if len(p) < 128 else [128 + len(p) % 128, len(p) // 128]) + p for p in pieces)
    )
    assert moonshine._pieces(tmp_path / "tokenizer.bin") == pieces


def test_a_chain_runs_on_it_alone():
    table = {
        "languages": {"source": "en", "target": "pt"},
        "asr": {"backend": "moonshine", "model": "moonshine/tiny-en"},
        "nmt": {"model": "firefox/en-pt-tiny"},
    }
    config = parse_config(table, ROOT / "moonshine.toml")
    events = events_of(config, load_models(config), Recording(MEETING))
    text = " ".join(event.text for event in events if isinstance(event, SourceSentence))
    assert len(set(words(SAID)) - set(words(text))) <= 3


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_it_makes_the_drafts_of_another_model_whose_final_text_is_the_same(monkeypatch):
    demo = load_config("demo")
    config = replace(demo, asr=replace(demo.asr, draft=DraftModel("moonshine/tiny-en", backend="moonshine")))
    models = load_models(config)
    assert isinstance(models.drafter, MoonshineRecognizer)
    samples = read_wav(MEETING)[: 7 * SAMPLE_RATE]
    live = events_of(config, models, Steady(chunks(samples), Pace(monkeypatch)), live=True)
    drafted = events_of(demo, replace(models, drafter=None), Steady(chunks(samples), Pace(monkeypatch)), live=True)
    texts = [[each.text for each in run if isinstance(each, SourceSentence)] for run in (live, drafted)]
    assert texts[0] == texts[1]
    first = next(each for each in live if isinstance(each, SourceText) and each.text)
    assert first.heard_s < 2.5
    assert words(first.text)[0] == "the"


def test_drafts_of_another_language_are_those_of_the_model_for_final_text():
    demo = load_config("demo")
    config = replace(demo, asr=replace(demo.asr, draft=DraftModel("moonshine/tiny-en", backend="moonshine")))
    assert config.draft_model is not None
    assert with_overrides(config, source="pt", targets="en").draft_model is None


def test_a_model_that_is_none_is_refused_in_one_line(tmp_path):
    with pytest.raises(UsageError, match=r"'small' is no model of Moonshine; give moonshine/tiny-en \(pip install"):
        find_model(replace(CONFIG, model="small"))
    with pytest.raises(ModelError, match="lacks encoder_model"):
        find_model(replace(CONFIG, model=str(tmp_path)))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("tokenizer.bin", lambda data: data[:1000], "tokenizer.bin"),
        ("encoder_model.ort", lambda data: data[:1000], "cannot load"),
        ("decoder_model_merged.ort", None, "no model of Moonshine"),
    ],
)
def test_damaged_files_are_refused_in_one_line(tmp_path, name, content, said):
    source = find_model(CONFIG)
    for file in MOONSHINE.files:
        shutil.copyfile(source / file.name, tmp_path / file.name)
    data = (source / name).read_bytes()
    other = (source / "encoder_model.ort").read_bytes()
    (tmp_path / name).write_bytes(content(data) if content else other)
    with pytest.raises(ModelError, match=said) as raised:
        MoonshineRecognizer(replace(CONFIG, model=str(tmp_path)), tmp_path)
    assert "\n" not in str(raised.value)
