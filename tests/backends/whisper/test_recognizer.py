"""Whisper on real audio: recognition, second searches, and rejection."""

import dataclasses
import json

import faster_whisper
import numpy as np
import pytest

from pipeline.backends.asr_options import AsrConfig
from pipeline.backends.whisper import WhisperRecognizer, engine, search
from pipeline.backends.whisper import recognizer as whisper
from pipeline.backends.whisper.engine import FULL_WINDOW_S, Hypothesis
from pipeline.backends.whisper.files import _SIZES, find_recognizer, thresholds
from pipeline.backends.whisper.guards import Evidence, rejection
from pipeline.backends.whisper.search import SearchOptions
from pipeline.bench.words import edits, scored_units
from pipeline.core.asr.context import HeardSegment
from pipeline.core.asr.recognizer import RecognitionOptions
from pipeline.core.run.stats import PipelineStats
from pipeline.errors import ModelError, UsageError
from pipeline.events import SAMPLE_RATE, SpeechSegment
from pipeline.media.sinks.jsonl import line, read_event
from pipeline.store.known import KNOWN_MODELS, Thresholds
from tests.backends.whisper.conftest import Watched, result, watched
from tests.conftest import CHINESE, EXAMPLES, PHRASES, read_wav, spoken_texts
from tests.core.vad.test_stage import cut
from tests.fixtures.random_whisper import random_whisper

# (Hz, onsets per second): music-like tones that webrtcvad takes for speech.
CHORDS = ((262, 0.5), (330, 0.7), (392, 1.1))


@pytest.fixture(scope="module")
def tiny_en():
    return WhisperRecognizer(AsrConfig(model="tiny.en"), "en")


# Maximum word errors in the tests' phrases and the longest demo recording.
@pytest.mark.slow
@pytest.mark.parametrize(("recording", "most"), [(PHRASES, 0.05), (EXAMPLES / "day.wav", 0.05)])
def test_speech_is_recognised_with_few_errors(recognizer, recording, most):
    wrong = total = 0
    for segment, said in zip(cut(read_wav(recording), 1600), spoken_texts()[recording.stem], strict=True):
        transcript = recognizer.transcribe([segment])[0]
        print(f"{said} => {transcript.text} ({transcript.mean_log_probability:.2f})")
        assert transcript.rejected is None
        assert (transcript.start_s, transcript.end_s) == (segment.speech_start_s, segment.end_s)
        wrong += edits(scored_units(said, "en"), scored_units(transcript.text, "en"))
        total += len(scored_units(said, "en"))
    assert wrong / total <= most


def faster(number, speed):
    """A phrase at another speed, pitch included."""
    samples = cut(read_wav(PHRASES), 1600)[number].samples
    sound = np.fft.irfft(np.fft.rfft(samples), round(len(samples) / speed))
    loud = 0.06 * 2**15 / np.sqrt(np.mean(sound**2))
    return SpeechSegment(0, 0, (sound * loud).round().clip(-(2**15), 2**15 - 1).astype(np.int16))


@pytest.mark.slow
def test_what_may_be_misheard_is_shown_and_what_is_invented_is_withheld(recognizer):
    """A synthetic voice at 1.7 times its speed can still be understood; at 1.85 times, another sentence cannot."""

    (shown,) = recognizer.transcribe([faster(2, 1.7)])
    print(shown)
    assert (shown.rejected, shown.uncertain) == (None, True)
    assert edits(scored_units("This umbrella costs $12.", "en"), scored_units(shown.text, "en")) <= 2
    assert "".join(word.text for word in shown.words).strip() == shown.text
    assert read_event(json.loads(line(shown, exact=True))) == shown
    (withheld,) = recognizer.transcribe([faster(1, 1.85)])
    print(withheld)
    assert (withheld.rejected, withheld.uncertain, withheld.words) == ("uncertain", False, ())


def test_uncertain_text_of_speech_in_another_language_is_withheld(recognizer):
    copy, model = watched(recognizer)
    model.detected = lambda: {"en": 0.02, "de": 0.98}
    (withheld,) = copy.transcribe([faster(2, 1.7)])
    assert (withheld.rejected, withheld.words) == ("language", ())


@pytest.mark.slow
def test_speech_over_music_is_heard_in_its_context(recognizer):
    """Music-like tones 10 dB softer than the speech, the whole recording as one window."""
    samples = read_wav(PHRASES).astype(np.float64)
    t = np.arange(len(samples)) / SAMPLE_RATE
    music = sum(np.sin(2 * np.pi * f * t) * (np.sin(2 * np.pi * t * rate) > 0) for f, rate in CHORDS)
    loud = np.sqrt(np.mean(samples[np.abs(samples) > 500] ** 2))
    mixed = samples + music * loud / np.std(music) * 10 ** (-10 / 20)
    over = mixed.clip(-32768, 32767).astype(np.int16)
    found = recognizer.transcribe(
        [dataclasses.replace(s, samples=over[s.start_sample :][: len(s.samples)]) for s in cut(read_wav(PHRASES), 1600)]
    )
    said, heard = (
        scored_units(" ".join(texts), "en") for texts in (spoken_texts()["phrases"], [one.text for one in found])
    )
    assert all(one.rejected is None for one in found)
    assert edits(said, heard) <= 0.1 * len(said)


@pytest.mark.slow
def test_packed_segments_are_heard_as_well_and_keep_a_transcript_each(recognizer):
    segments = cut(read_wav(PHRASES), 1600)
    found = recognizer.transcribe(segments)
    assert [one.segment_id for one in found] == [segment.id for segment in segments]
    for one, segment, said in zip(found, segments, spoken_texts()["phrases"], strict=True):
        assert edits(scored_units(said, "en"), scored_units(one.text, "en")) <= 1, (said, one.text)
        assert (one.start_s, one.end_s) == (segment.speech_start_s, segment.end_s)
        assert "".join(word.text for word in one.words).strip() == one.text
        assert all(segment.start_s - 0.1 <= word.start_s <= word.end_s <= segment.end_s + 0.1 for word in one.words)


@pytest.mark.slow
def test_windows_recognised_at_once_have_the_transcripts_of_each_alone(recognizer, phrases):
    segments = phrases
    packs = [segments[:4], segments[4:], segments[2:3], segments[1:], segments]
    alone = [recognizer.transcribe_batch([pack])[0] for pack in packs]
    copy, model = watched(recognizer)
    assert copy.transcribe_batch(packs) == alone
    assert model.searches[0] == (3, 1), "the windows of one length share the decoder's runs"
    said = spoken_texts()["phrases"]
    assert [one.segment_id for each in alone[:2] for one in each] == [segment.id for segment in segments]
    for one in (one for each in alone[:2] for one in each):
        assert (
            edits(scored_units(said[one.segment_id], "en"), scored_units(one.text, "en")) <= 2
        )  # "wanna" for "want to"
    assert recognizer.transcribe_batch(packs[1:3]) == alone[1:3]


@pytest.mark.slow
def test_windows_of_several_languages_are_not_recognised_at_once():
    both = WhisperRecognizer(AsrConfig(model="base"), ["en", "zh"])
    with pytest.raises(ValueError, match="windows of 2 languages cannot be recognised at once"):
        both.transcribe_batch([cut(read_wav(PHRASES), 1600)[:1]])


@pytest.mark.slow
def test_packed_segments_without_speech_among_them_get_no_text(recognizer):
    first, second, *_ = cut(read_wav(PHRASES), 1600)
    silence = SpeechSegment(1, 0, np.zeros(2 * SAMPLE_RATE, np.int16))
    parts = [first, silence, second]
    at, placed = 0, []
    for number, part in enumerate(parts):
        placed.append(dataclasses.replace(part, id=number, start_sample=at, speech_end_sample=None))
        at += len(part.samples) + SAMPLE_RATE
    found = recognizer.transcribe(placed)
    assert [one.rejected is None for one in found] == [True, False, True]
    said = spoken_texts()["phrases"]
    assert scored_units(found[2].text, "en") == scored_units(said[1], "en")


@pytest.mark.slow
@pytest.mark.parametrize("model", ["base", "tiny.en"])
@pytest.mark.parametrize("kind", ["silence", "noise", "tone", "chords"])
def test_no_speech_gives_nothing_to_translate(recognizer, tiny_en, model, kind):
    t = np.arange(16_000 * 12) / 16_000
    signal = {
        "silence": np.zeros(len(t)),
        "noise": np.random.default_rng(1).standard_normal(len(t)) * 0.02,
        "tone": np.sin(2 * np.pi * 440 * t) * 0.1,
        "chords": sum(np.sin(2 * np.pi * f * t) * (np.sin(2 * np.pi * t * r) > 0) for f, r in CHORDS) * 0.1,
    }[kind]
    heard = {"base": recognizer, "tiny.en": tiny_en}[model]
    transcript = heard.transcribe([SpeechSegment(0, 0, (signal * 32767).astype(np.int16))])[0]
    assert transcript.rejected is not None, transcript


def test_a_transcript_carries_its_confidence(recognizer):
    transcript = recognizer.transcribe([cut(read_wav(PHRASES), 1600)[0]])[0]
    assert -1 < transcript.mean_log_probability < 0
    assert 0 <= transcript.no_speech_probability < 0.5
    assert 0.5 < transcript.compression_ratio < 2


def test_a_draft_of_short_speech_has_a_shorter_window_than_its_final_text(recognizer, phrases):
    copy, model = watched(recognizer)
    known = HeardSegment(phrases[0], copy.transcribe([phrases[0]])[0].text)
    assert copy.draft(phrases[1], RecognitionOptions(context=[known]))
    copy.draft(phrases[1], RecognitionOptions())
    seconds = (len(phrases[0].samples) + len(phrases[1].samples)) / SAMPLE_RATE
    assert 5.0 < seconds < 6.5, "with the context, drafts need no longer window"
    assert model.encoded == [10.0, 7.5, 7.5]


def test_a_confident_result_is_searched_once_in_the_short_window(recognizer, phrases):
    copy, model = watched(recognizer)
    copy.transcribe(phrases[:1])
    assert model.windows == [(10.0, 5)]


def test_probable_silence_is_not_searched_again(recognizer):
    copy, model = watched(recognizer)
    (found,) = copy.transcribe([SpeechSegment(0, 0, np.zeros(SAMPLE_RATE * 2, np.int16))])
    assert found.rejected is not None
    assert model.windows == [(10.0, 5)] * 2  # the text is short, and judged without timestamps


def test_no_more_than_four_windows_share_the_decoders_runs(recognizer, phrases):
    copy, model = watched(recognizer)
    encoded = copy.engine.encode(phrases[0].samples, 5.0)
    found = copy.engine.generate_several([encoded] * 5, 1)
    assert model.searches == [(4, 1), (1, 1)]
    assert {one.text for one in found} == {recognizer.engine.generate(encoded, 1).text}


@pytest.mark.slow
def test_windows_are_searched_greedily_and_only_the_unsure_ones_with_more_hypotheses(recognizer, monkeypatch):
    copy, model = watched(recognizer)
    engine = recognizer.engine
    encoded = [engine.encode(one.samples, 10.0) for one in cut(read_wav(PHRASES), 1600)[:2]]
    sure = [recognizer._searcher.search(each, SearchOptions(1)).hypothesis.log_probability for each in encoded]
    assert abs(sure[0] - sure[1]) > 0.001
    monkeypatch.setattr(search, "_SURE", sum(sure) / 2)
    found = copy._searcher.search_several(encoded, SearchOptions(5))
    assert model.searches == [(2, 1), (1, 5)]
    beams = [5 if each == min(sure) else 1 for each in sure]
    again = [engine.generate(*each) for each in zip(encoded, beams, strict=True)]
    assert [one.hypothesis.tokens for one in found] == [one.tokens for one in again]


@pytest.mark.slow
@pytest.mark.parametrize("doubtful", [True, False])
def test_a_brief_recognition_leaves_out_the_second_search_and_says_so(recognizer, phrases, monkeypatch, doubtful):
    copy, model = watched(recognizer)
    monkeypatch.setattr(search, "_SURE", 0.0)  # so that both search with all hypotheses
    monkeypatch.setattr(copy._searcher, "worth_second_search", lambda result: doubtful)
    ((brief,),) = copy.transcribe_batch([phrases[:1]], RecognitionOptions(brief=True))
    assert model.windows == [(10.0, 1), (10.0, 5)]
    assert brief.provisional == doubtful
    ((whole,),) = copy.transcribe_batch([phrases[:1]], RecognitionOptions())
    assert (FULL_WINDOW_S in {window_s for window_s, _ in model.windows}) == doubtful
    assert not whole.provisional
    assert doubtful or brief == whole


@pytest.mark.slow
@pytest.mark.parametrize("beams", [1, 5])
@pytest.mark.parametrize("brief", [True, False])
def test_a_pack_whose_brief_search_reaches_the_limit_is_provisional(recognizer, phrases, brief, beams):
    """A longer search may end, and would be believed."""
    copy, model = watched(recognizer)
    copy.config = dataclasses.replace(copy.config, beam_size=beams)
    loop = copy.engine.tokens(" So we go on" * 80)
    model.heard = lambda number, found: found if number else result(loop, found.scores[0], found.no_speech_prob)
    (heard,) = copy.transcribe_batch([phrases[:2]], RecognitionOptions(brief=brief))
    assert [(each.rejected, each.provisional) for each in heard] == [(None, brief)] * 2


@pytest.mark.slow
@pytest.mark.parametrize("loops", [1, 2])
def test_a_loop_is_searched_again_and_cut_if_it_persists(recognizer, phrases, loops):
    copy, model = watched(recognizer)

    def looping(number, found):
        tokens = (*found.sequences_ids[0], *copy.engine.tokens(" So we go on" * 20))
        return result(tokens, found.scores[0], found.no_speech_prob) if number < loops else found

    model.heard = looping
    (transcript,) = copy.transcribe(phrases[:1])
    assert model.windows == [(10.0, 5), (FULL_WINDOW_S, 10)]
    assert (transcript.rejected, transcript.repeated) == (None, loops == 2)
    # The repeated phrase was never said, so not even one occurrence is kept.
    assert scored_units(transcript.text, "en") == scored_units(spoken_texts()["phrases"][0], "en")


@pytest.mark.slow
def test_a_word_that_two_searches_hear_differently_is_rejected(recognizer, monkeypatch):
    segment = cut(read_wav(PHRASES), 1600)[0]
    heard = iter(["Dero.", "Bureau.", "Two.", "two"])
    sure = iter([-3.0, -1.0, -3.0, -1.0])

    def generate(encoded, beams, prompt=(), **options):
        if options.get("timestamps", True):  # a short text is searched again without them
            return Hypothesis(recognizer.engine.tokens("two"), "two", -0.6, -1.0, 0.1, True)
        return Hypothesis(recognizer.engine.tokens("two"), next(heard), -0.6, next(sure), 0.1, True)

    monkeypatch.setattr(recognizer.engine, "generate", generate)
    monkeypatch.setattr(search, "unheard", lambda *_: [])  # the rest of the phrase
    first, second = recognizer.transcribe([segment])[0], recognizer.transcribe([segment])[0]
    assert (first.text, first.rejected) == ("Dero.", "uncertain")
    assert (second.text, second.rejected) == ("two", None)


def test_a_search_that_reaches_its_token_limit_is_marked(recognizer, monkeypatch):
    encoded = recognizer.engine.encode(cut(read_wav(PHRASES), 1600)[0].samples, 10.0)
    whole = recognizer.engine.generate(encoded, 5)
    assert whole.ended
    monkeypatch.setattr(engine, "_MOST_GENERATED", 6)
    for prompt in ((), recognizer.engine.tokens("A plane from Tokyo, and what one says of it on the phone.")):
        part = recognizer.engine.generate(encoded, 5, prompt)
        assert not part.ended
        assert 4 <= len(part.tokens) <= 7


@pytest.mark.slow
def test_a_window_with_more_text_than_fits_is_recognised_segment_by_segment(recognizer, monkeypatch):
    segments = cut(read_wav(PHRASES), 1600)
    monkeypatch.setattr(engine, "_MOST_GENERATED", 30)
    found = recognizer.transcribe(segments)
    for one, said in zip(found, spoken_texts()["phrases"], strict=True):
        assert edits(scored_units(said, "en"), scored_units(one.text, "en")) <= 1, (said, one.text)


@pytest.mark.slow
def test_words_assigned_to_a_neighbour_are_not_transcribed_twice(recognizer, monkeypatch):
    segments = cut(read_wav(PHRASES), 1600)[:3]
    monkeypatch.setattr(whisper, "unpack", lambda words, packed: [[*words], [], []])
    found = recognizer.transcribe(segments)
    for one, said in zip(found, spoken_texts()["phrases"], strict=False):
        assert edits(scored_units(said, "en"), scored_units(one.text, "en")) <= 1, (said, one.text)


@pytest.mark.slow
def test_a_phrase_said_four_times_is_shown(recognizer):
    """Says "Where is the post office?" four times and then something else; greedy: a wider search repeats less."""
    phrases = cut(read_wav(PHRASES), 1600)
    pause = np.zeros(SAMPLE_RATE * 3 // 10, np.int16)
    question, other = phrases[1].samples, phrases[3].samples
    samples = np.concatenate([part for sound in (*[question] * 4, other) for part in (sound, pause)])
    transcript = recognizer.transcribe_batch([[SpeechSegment(0, 0, samples)]])[0][0]
    said = spoken_texts()["phrases"]
    assert transcript.rejected is None
    assert edits(scored_units(" ".join([said[1]] * 4 + [said[3]]), "en"), scored_units(transcript.text, "en")) <= 1


def test_a_window_shorter_than_the_models_minimum_is_refused():
    with pytest.raises(UsageError, match=r"asr.window_s is 3; base needs at least 10 s"):
        WhisperRecognizer(AsrConfig(model="base", window_s=3.0), "en")


def test_the_window_grows_with_the_speech_and_keeps_a_second_of_padding(recognizer):
    """In steps: CTranslate2 keeps memory for each length that it has seen."""

    def window(seconds):
        return recognizer.engine.features(np.zeros(round(seconds * SAMPLE_RATE), np.int16), 10.0).shape[2] / 100

    assert [window(s) for s in (0.0, 9.0, 9.01, 11.5, 14.0, 28.9, 30.0)] == [10.0, 10.0, 12.5, 12.5, 15.0, 30.0, 30.0]
    with pytest.raises(ValueError, match=r"30\.1 s of audio; Whisper takes 30 s at once"):
        window(30.1)


@pytest.mark.slow
def test_hotwords_decide_how_a_name_is_spelt(recognizer):
    segment = next(s for s in cut(read_wav(PHRASES), 1600) if s.id == 4)  # "I want to go to Shanghai next week."
    assert "Shanghai" in recognizer.transcribe([segment])[0].text
    spelt = WhisperRecognizer(AsrConfig(model="base", hotwords="Shang-Hai, the city of Shang-Hai"), "en")
    assert "Shang-Hai" in spelt.transcribe([segment])[0].text


def test_a_long_prompt_is_refused():
    with pytest.raises(UsageError, match=r"have 5\d\d tokens together; Whisper takes 223 at most.*shorten them"):
        WhisperRecognizer(AsrConfig(model="tiny.en", prompt="word " * 500), "en")


def test_thresholds_follow_the_model_and_can_be_configured():
    for known in KNOWN_MODELS:
        assert thresholds(AsrConfig(), known) == known.thresholds
        own = thresholds(AsrConfig(log_probability_threshold=-0.5, no_speech_threshold=0.2), known)
        assert (own.log_probability, own.text_log_probability) == (-0.5, -1.5)
        assert (own.no_speech, own.doubtful_no_speech) == (0.2, known.thresholds.doubtful_no_speech)
        # These thresholds withhold nothing.
        none = thresholds(AsrConfig(log_probability_threshold=-100.0, no_speech_threshold=1.0), known)
        assert none.doubtful_no_speech == 1.0
        assert rejection(Evidence("Two.", 2, -5.0, 0.99, text_log_probability=-20.0), none) is None
        assert own.compression_ratio == known.thresholds.compression_ratio


def test_a_missing_file_is_named(tmp_path):
    for path in find_recognizer(AsrConfig(model="tiny.en")).iterdir():
        if path.name != "tokenizer.json":
            (tmp_path / path.name).symlink_to(path)
    with pytest.raises(ModelError, match=r"lacks tokenizer\.json"):
        WhisperRecognizer(AsrConfig(model=str(tmp_path)), "en")


def test_a_damaged_model_is_one_clear_error(tmp_path):
    for path in find_recognizer(AsrConfig(model="tiny.en")).iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes()[:1000] if path.name == "model.bin" else path.read_bytes())
    with pytest.raises(ModelError, match="cannot load"):
        WhisperRecognizer(AsrConfig(model=str(tmp_path)), "en")


def test_a_language_that_the_model_lacks_is_refused():
    with pytest.raises(UsageError, match="does not know the language 'zh'; it knows only English"):
        WhisperRecognizer(AsrConfig(model="tiny.en"), "zh")
    with pytest.raises(UsageError, match="does not know the language 'xx'; it knows"):
        WhisperRecognizer(AsrConfig(model="base"), "xx")


@pytest.mark.slow
def test_a_model_with_128_mel_bands_runs(tmp_path, caplog):
    """128 mel bands, as in large-v3. The weights are random, so this only tests that it runs."""
    made = random_whisper(tmp_path / "large", find_recognizer(AsrConfig(model="base")), mels=128)
    heard = WhisperRecognizer(AsrConfig(model=str(made)), "en")
    assert "is not a known model; using Whisper's default thresholds" in caplog.text
    assert heard.thresholds == Thresholds()
    segment = cut(read_wav(PHRASES), 1600)[0]
    assert heard.engine.features(segment.samples, 10.0).shape == (1, 128, 1000)
    assert heard.transcribe([segment])[0].segment_id == 0


def test_a_model_with_non_finite_scores_is_reported_as_damaged(recognizer):
    weights = recognizer.engine.weights
    model = Watched(weights.model)
    model.heard = lambda _, found: result(found.sequences_ids[0], float("nan"))
    with pytest.raises(ModelError, match="is damaged: its scores are not finite"):
        WhisperRecognizer(AsrConfig(model="base"), "en", weights=dataclasses.replace(weights, model=model))


@pytest.fixture(scope="module")
def with_noise():
    """A segment of two sentences with two seconds of noise between them, and when that begins and ends in seconds."""
    first, second = cut(read_wav(PHRASES), 1600)[:2]
    noise = np.random.default_rng(1).normal(0, 800, 2 * SAMPLE_RATE).astype(np.int16)
    samples = np.concatenate([first.samples, noise, second.samples])
    start_s = 10.0 + len(first.samples) / SAMPLE_RATE
    return SpeechSegment(0, 10 * SAMPLE_RATE, samples), start_s, start_s + 2.0


@pytest.mark.slow
@pytest.mark.parametrize("way", ["alone", "packed", "together", "draft"])
def test_sound_without_words_is_listed_where_it_is(recognizer, with_noise, way):
    segment, start_s, end_s = with_noise
    before = cut(read_wav(PHRASES), 1600)[2]
    clear = dataclasses.replace(before, id=1, start_sample=40 * SAMPLE_RATE)
    match way:
        case "alone":
            found = recognizer.transcribe([segment])[0]
        case "packed":
            found, other = recognizer.transcribe([segment, clear])
            assert other.missing == ()
        case "together":
            ((found, _),) = recognizer.transcribe_batch([[segment, clear]])
        case _:
            draft = recognizer.draft(segment)
            assert draft is not None
            found = draft
    assert edits(scored_units(" ".join(spoken_texts()["phrases"][:2]), "en"), scored_units(found.text, "en")) <= 2
    (missing,) = found.missing
    assert abs(missing.start_s - start_s) < 0.5
    assert abs(missing.end_s - end_s) < 0.8  # the next word's time begins early
    stats = PipelineStats()
    stats.transcribed(found)
    assert [(each.start_s, each.end_s) for each in stats.withheld] == [(missing.start_s, missing.end_s)]
    assert read_event(json.loads(line(found, exact=True))) == found


def chinese():
    return cut(read_wav(CHINESE), 1600)


@pytest.mark.slow
def test_speech_in_another_language_is_not_shown_as_nonsense(recognizer):
    """Alone, and in one window with English; one of a second may say "Okay."""
    english, *_ = cut(read_wav(PHRASES), 1600)
    later = english.start_sample + 6 * SAMPLE_RATE
    other = dataclasses.replace(chinese()[3], id=1, start_sample=later, speech_start_sample=None)
    context = [HeardSegment(english, spoken_texts()["phrases"][0])]
    for found in (
        recognizer.transcribe([other])[0],
        recognizer.transcribe([english, other])[1],
        recognizer.transcribe_batch([[english, other]])[0][1],
    ):
        # How a processor rounds products of 8 bits may make one of them uncertain.
        assert found.rejected in ("language", "uncertain")
        assert found.segment_id == 1
    assert recognizer.draft(other) is None
    assert recognizer.draft(other, RecognitionOptions(context=context)) is None
    first, _ = recognizer.transcribe([english, other])
    assert scored_units(first.text, "en") == scored_units(spoken_texts()["phrases"][0], "en")


@pytest.mark.slow
def test_of_two_languages_in_one_segment_only_the_text_of_the_one_is_kept():
    said, english = chinese()[0], cut(read_wav(PHRASES), 1600)[0]
    joined = np.concatenate([said.samples, np.zeros(SAMPLE_RATE // 5, np.int16), english.samples])
    found = WhisperRecognizer(AsrConfig(model="base"), "zh").transcribe([SpeechSegment(0, 0, joined)])[0]
    assert found.rejected is None
    assert scored_units(found.text, "zh") == scored_units(spoken_texts()["chinese"][0], "zh")
    assert found.words[-1].end_s < len(said.samples) / SAMPLE_RATE + 0.5


def test_sizes_are_those_that_faster_whisper_knows():
    assert list(_SIZES) == faster_whisper.available_models()
