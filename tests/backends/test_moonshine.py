"""The recogniser of Moonshine, with its real weights."""

import shutil
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from pipeline import load_models
from pipeline.backends import moonshine
from pipeline.backends.asr_options import AsrConfig, DraftModel
from pipeline.backends.moonshine import HeardSpeech, MoonshineRecognizer, find_model
from pipeline.backends.whisper.words import TimedWord
from pipeline.config import load_config, parse_config, with_overrides
from pipeline.core.asr.context import HeardSegment as Known
from pipeline.core.asr.recognizer import DEFAULT, DraftRecognizer, RecognitionOptions
from pipeline.errors import ModelError, UsageError
from pipeline.events import SAMPLE_RATE, SourceSentence, SourceText, SpeechSegment
from pipeline.media.audio.recording import Recording
from pipeline.store.known import MOONSHINE
from tests.chain import events_of
from tests.conftest import ROOT, read_wav
from tests.core.asr.scripted import speech
from tests.core.vad.test_stage import cut
from tests.drafting import Pace, Steady, chunks

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


@pytest.mark.slow
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


def said(text, log_probability=-0.1, ended=True):
    """A word each half second."""
    words = [TimedWord(f" {word}", at / 2, at / 2 + 0.5) for at, word in enumerate(text.split())]
    words = [replace(word, log_probabilities=(-0.1,)) for word in words]
    words[-1:] = [replace(word, log_probabilities=(log_probability,)) for word in words[-1:]]
    return HeardSpeech(words, [p for word in words for p in word.log_probabilities], ended)


def hearing(*heard, **options):
    """A recogniser whose model hears these, whatever it is given; and what it was given."""
    given, left = [], iter(heard)
    model = SimpleNamespace(heard=lambda samples, guess="": given.append((len(samples), guess)) or next(left))
    path = SimpleNamespace(_model=model)
    return MoonshineRecognizer(replace(CONFIG, **options), None, sharing=path), given


@pytest.mark.parametrize(("log_probability", "text"), [(-0.6, "It was the best"), (-0.8, "It was the")])
def test_the_last_word_of_a_draft_is_left_out_if_it_is_probably_cut_off(log_probability, text):
    recognizer, _ = hearing(said("It was the best", log_probability))
    assert recognizer.draft(speech(0, 0.0, 2.0), DEFAULT).text == text


def test_a_draft_has_the_words_after_its_context_in_its_own_time_and_the_marks_before_them():
    recognizer, given = hearing(said("Well, it was"))
    segment = speech(0, 10.6, 11.5)
    context = (Known(speech(0, 10.0, 10.6), "Well."),)
    found = recognizer.draft(segment, RecognitionOptions(context=context, expected=" is"))
    assert given == [(24_000, "Well. is")]
    assert (found.text, found.previous_end) == ("it was", ",")
    assert [(word.start_s, word.end_s) for word in found.words] == [(10.6, 11.0), (11.0, 11.5)]


def test_a_draft_has_no_word_before_its_segment():
    recognizer, _ = hearing(said("Well, it was"))
    context = (Known(speech(0, 10.0, 12.0), "Well."),)
    found = recognizer.draft(speech(0, 12.0, 12.3), RecognitionOptions(context=context))
    assert [word.text for word in found.words] == [" it", " was"]
    assert all(12.0 <= word.start_s <= word.end_s <= 12.3 for word in found.words)


def test_segments_whose_common_text_is_doubtful_are_heard_each_alone():
    loop = said("no " * 40)
    recognizer, given = hearing(loop, said("It was"), said("the best"))
    segments = [speech(0, 0.0, 1.0), speech(1, 2.0, 3.0)]
    assert [found.text for found in recognizer.transcribe(segments)] == ["It was", "the best"]
    assert [length for length, _ in given] == [36_800, 16_000, 16_000]


def test_text_that_does_not_end_is_a_repetition_and_words_may_be_left_out():
    recognizer, _ = hearing(said("It was", ended=False), said("It was"), word_timestamps=False)
    found = [recognizer.transcribe([speech(0, 0.0, 1.0)])[0] for _ in range(2)]
    assert [(each.rejected, each.text, each.words) for each in found] == [
        ("repetition", "It was", ()), (None, "It was", ()),
    ]  # fmt: skip


def test_a_number_takes_as_long_as_it_is_said():
    sound = np.random.default_rng(0).normal(0, 3_000, 2 * SAMPLE_RATE).astype(np.int16)
    words = moonshine._timed([TimedWord(" 23", 0, 0), TimedWord(" is", 0, 0)], sound)
    assert words[0].end_s == pytest.approx(2 * 9.5 / 13, abs=0.03)  # a digit is as long as four letters
    assert (words[0].start_s, words[1].end_s) == (pytest.approx(0, abs=0.05), pytest.approx(2, abs=0.05))


def test_tokens_make_words_and_special_ones_make_none():
    model = object.__new__(moonshine.MoonshineModel)
    model._pieces = [b"<s>", "▁Hi".encode(), b"!", "▁you".encode(), "▁".encode()]
    words = model._words([0, 1, 2, 3, 4], [-9.0, -1.0, -2.0, -3.0, -4.0])
    assert [(word.text, word.log_probabilities) for word in words] == [(" Hi!", (-1.0, -2.0)), (" you", (-3.0,))]


def test_a_guess_is_written_in_the_longest_tokens_up_to_what_no_token_has():
    model = object.__new__(moonshine.MoonshineModel)
    model._ids = {piece.encode(): number for number, piece in enumerate(["▁", "▁t", "he", "▁the", "n"])}
    assert model._guessed("the then") == [3, 3, 4]
    assert model._guessed("the zoo the") == [3, 0]


@pytest.mark.parametrize("length", [1, 127, 128, 129, 300])
def test_a_token_of_any_length_is_read(length, tmp_path):
    pieces = [b"a", b"b" * length, b"c"]
    (tmp_path / "tokenizer.bin").write_bytes(
        b"".join(bytes([len(p)] if len(p) < 128 else [128 + len(p) % 128, len(p) // 128]) + p for p in pieces)
    )
    assert moonshine._pieces(tmp_path / "tokenizer.bin") == pieces


@pytest.mark.slow
def test_a_chain_runs_on_it_alone():
    table = {
        "languages": {"source": "en", "target": "pt"},
        "asr": {"backend": "moonshine", "model": "moonshine/tiny-en"},
        "nmt": {"model": "firefox/en-pt-tiny"},
    }
    config = parse_config(table, ROOT / "moonshine.toml")
    events = events_of(config, load_models(config), Recording(MEETING))
    text = " ".join(event.text for event in events if isinstance(event, SourceSentence))
    assert len(set(words(SAID)) - set(words(text))) <= 4


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
