"""The spoken language of each segment: the decision, and recognition of English and Chinese turns."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.backends.asr_options import AsrConfig
from pipeline.backends.whisper import WhisperRecognizer
from pipeline.backends.whisper.engine import FULL_WINDOW_S
from pipeline.backends.whisper.language_id import calibrated, decide, foreign_words, in_another_language, whisper_code
from pipeline.bench.words import edits, scored_units
from pipeline.core.asr.recognizer import RecognitionOptions as Options
from pipeline.errors import UsageError
from pipeline.events import SAMPLE_RATE, SpeechSegment
from tests.backends.whisper.conftest import result, watched
from tests.conftest import CHINESE, PHRASES, read_wav, spoken_texts
from tests.core.vad.test_stage import cut
from tests.remembered import remember

LANGUAGES = ("en", "zh", "de")
weights = st.floats(0, 1, allow_nan=False)
spoken = st.fixed_dictionaries(dict.fromkeys(LANGUAGES, weights))
heard = st.lists(st.tuples(spoken, st.floats(0.1, 30)), max_size=12)


@pytest.mark.parametrize(
    ("english", "before", "speech_s", "expected"),
    [
        (0.6, None, 3.0, "en"),
        (0.4, None, 3.0, "zh"),
        (0.4, None, 0.4, "zh"),  # the first segment decides by itself, however short
        (0.4, "fr", 3.0, "zh"),  # a language that is not named counts as none
        (0.5, "zh", 3.0, "zh"),
        (0.7, "zh", 3.0, "zh"),
        (0.75, "zh", 3.0, "en"),
        (0.75, "zh", 0.5, "zh"),
        (0.85, "zh", 0.5, "en"),
        (0.3, "en", 3.0, "en"),
        (0.2, "en", 3.0, "zh"),
    ],
)
def test_a_change_of_language_needs_evidence(english, before, speech_s, expected):
    assert decide({"en": english, "zh": 1 - english}, before, speech_s) == expected


@given(heard, st.sampled_from([None, *LANGUAGES]))
def test_no_language_changes_without_evidence(segments, before):
    for probabilities, speech_s in segments:
        decided = decide(probabilities, before, speech_s)
        assert decided in probabilities
        if before is None:
            assert probabilities[decided] == max(probabilities.values())
        elif decided != before:
            assert probabilities[decided] > math.exp(1.5 if speech_s < 1 else 1) * probabilities[before]
        else:
            assert max(probabilities.values()) <= math.exp(1.5 if speech_s < 1 else 1) * probabilities[before]
        before = decided


@given(spoken, spoken)
def test_calibration_removes_part_of_what_a_model_prefers_on_silence(probabilities, on_silence):
    # The square root of the preference is divided out.
    assert calibrated({"en": 0.5, "zh": 0.5}, {"en": 0.4, "zh": 0.1})["en"] == pytest.approx(1 / 3)
    found = calibrated(probabilities, on_silence)
    assert sum(found.values()) == pytest.approx(1)
    assert found == calibrated(dict(reversed(probabilities.items())), on_silence)
    even = calibrated(probabilities, dict.fromkeys(LANGUAGES, 0.1))
    for one in LANGUAGES:
        for other in LANGUAGES:
            if on_silence[one] >= on_silence[other]:
                assert found[one] * even[other] <= found[other] * even[one] * (1 + 1e-9)


@pytest.fixture(scope="module")
def two():
    recognizer = WhisperRecognizer(AsrConfig(model="base"), ["en", "zh"])
    remember(recognizer)
    return recognizer


@pytest.fixture(scope="module")
def turns():
    """Language, text and segment of each turn: two English, one Chinese (half a second), two English, two Chinese."""
    english = list(zip(spoken_texts()["phrases"], cut(read_wav(PHRASES), 1600), strict=True))
    chinese = list(zip(spoken_texts()["chinese"], cut(read_wav(CHINESE), 1600), strict=True))
    said = [("en", *english[0]), ("en", *english[1]), ("zh", *chinese[1]), ("en", *english[2]), ("en", *english[5])]
    said += [("zh", *chinese[0]), ("zh", *chinese[3])]
    placed, at = [], 0
    for number, (language, text, segment) in enumerate(said):
        speech = segment.speech
        here = SpeechSegment(number, at, speech)
        placed.append((language, text, here))
        at += len(speech) + SAMPLE_RATE
    return placed


def assert_heard(transcript, language, text):
    assert (transcript.language, transcript.rejected) == (language, None)
    assert edits(scored_units(text, language), scored_units(transcript.text, language)) <= 1, (text, transcript.text)


@pytest.mark.slow
def test_turns_in_two_languages_are_recognised_each_in_its_own(two, turns):
    before = None
    for language, text, segment in turns:
        transcript = two.transcribe([segment], Options(before=before))[0]
        assert_heard(transcript, language, text)
        if text == spoken_texts()["chinese"][0]:  # Chinese is divided into characters
            assert len(transcript.words) > 4
        before = transcript.language


@pytest.mark.slow
def test_packed_turns_share_a_window_with_their_own_language_only(two, turns):
    copy, model = watched(two)
    found = copy.transcribe([segment for _, _, segment in turns])
    assert [window_s for window_s in model.encoded if window_s != 5.0] == [10.0] * 4, "two of them, one, two and two"
    assert [one.segment_id for one in found] == [segment.id for _, _, segment in turns]
    for (language, text, _), one in zip(turns, found, strict=True):
        assert_heard(one, language, text)


@pytest.mark.slow
def test_the_language_is_detected_without_a_second_encoder_run(two, turns):
    copy, model = watched(two)
    copy.transcribe([turns[1][2]])
    assert model.encoded == [10.0]


def unwanted():
    raise AssertionError("detection of a known language")


@pytest.mark.slow
def test_a_known_language_is_not_detected_again(two, turns):
    copy, model = watched(two)
    known = [dataclasses.replace(segment, language=language) for language, _, segment in turns]
    expected = two.transcribe([known[6]])
    model.detected = unwanted
    assert_heard(copy.transcribe([known[6]], Options(before="en"))[0], *turns[6][:2])
    assert copy.transcribe([known[6]], Options(before="en")) == expected
    assert copy.draft(known[0], Options(before="zh")) == copy.draft(known[0], Options(language="en"))
    assert [one.language for one in copy.transcribe([known[0], known[6]])] == ["en", "zh"]


@pytest.mark.slow
def test_streams_that_share_a_recogniser_keep_their_languages(two, turns):
    """With probabilities as on silence there is no evidence for a change."""
    copy, model = watched(two)
    model.detected = lambda: two._on_silence
    segment = turns[2][2]
    for before in ("zh", "en"):
        assert copy.transcribe([segment], Options(before=before))[0].language == before
    later = dataclasses.replace(segment, id=7, start_sample=segment.start_sample + SAMPLE_RATE)
    found = copy.transcribe([segment, later], Options(before="zh"))
    assert [one.language for one in found] == ["zh", "zh"]


@pytest.mark.slow
def test_a_second_search_is_in_the_same_language(two, turns):
    copy, model = watched(two)
    loop = copy.engine.tokens("好的" * 40)
    model.heard = lambda number, found: found if number else result(loop)
    language, text, segment = turns[5]
    assert_heard(copy.transcribe([segment])[0], language, text)
    assert model.windows == [(10.0, 5), (FULL_WINDOW_S, 10)]


def test_one_language_is_never_detected(recognizer, two, turns):
    one, model = watched(recognizer)
    model.detected = unwanted
    english = [turns[0][2], turns[1][2]]
    assert one.detect(turns[0][2].samples) == {}
    after_chinese = Options(before="zh")
    assert one.transcribe(english[:1]) == one.transcribe(english[:1], after_chinese) == two.transcribe(english[:1])
    assert [found.language for found in one.transcribe(english, after_chinese)] == ["en", "en"]


@pytest.mark.slow
def test_the_order_of_the_languages_does_not_matter(turns):
    other = WhisperRecognizer(AsrConfig(model="base", script="traditional", prompt="Hello."), ["zh", "en"])
    assert_heard(other.transcribe([turns[0][2]])[0], *turns[0][:2])
    # The configured script is Chinese only.
    assert "火車站在哪裡" in other.transcribe([turns[5][2]])[0].text


def test_silence_is_withheld_with_two_languages(two):
    assert two.transcribe([SpeechSegment(0, 0, np.zeros(SAMPLE_RATE, np.int16))])[0].rejected is not None


@pytest.mark.slow
def test_whisper_is_asked_for_a_language_by_its_own_code():
    tags = ["nb", "fil", "jv", "iw", "zh-TW", "pt-BR"]
    assert list(map(whisper_code, [*tags, "yue", "EN"])) == ["no", "tl", "jw", "he", "zh", "pt", "yue", "en"]
    silence = SpeechSegment(0, 0, np.zeros(SAMPLE_RATE, np.int16))
    heard = WhisperRecognizer(AsrConfig(model="base"), tags)
    assert set(heard.detect(silence.samples)) == set(tags)
    assert heard.transcribe([silence])[0].language in tags


@pytest.mark.parametrize(
    ("model", "languages", "message"),
    [
        ("tiny.en", ["en", "zh"], r"is English-only, but .* one of en, zh; choose a multilingual model"),
        ("base", ["en", "xx"], "does not know the language 'xx'"),
        ("base", ["en", "en"], "the spoken languages are en, en; name one or more, each once"),
        ("base", [], "the spoken languages are none; name one or more, each once"),
    ],
)
def test_languages_that_cannot_be_told_apart_are_refused(model, languages, message):
    with pytest.raises(UsageError, match=message):
        WhisperRecognizer(AsrConfig(model=model), languages)


@pytest.mark.parametrize(
    ("text", "language", "found"),
    [
        ("我 们 什 么 时 候 见 面 ?| The| meeting| is| on| Thursday", "zh", "The meeting is on Thursday"),
        ("What| time| does| the| train| to| Berlin| leave?|你好 ,", "zh", "What time does the train to Berlin leave?"),
        ("我 要 去| New| York| City| University", "zh", None),
        ("我 用| machine| learning|来 翻 译", "zh", None),
        ("OK .", "zh", None),
        ("我 看 了| The| Lord| of| the| Rings", "zh", None),
        ("Она| купила| iPhone| Pro", "ru", None),
        ("Hello,|你 好 请 问| where", "en", "你好请问"),
        ("He| wrote| α| and| β", "en", None),
        ("Guten| Tag| Herr| Müller", "en", None),
        ("これは| 東京| タワー です", "ja", None),
        ("서울 에서| 만나 요", "ko", None),
        ("ሰላም| hello| there| my| friend| again", "am", None),
        ("1| 2| 3| 4| 5| 6", "zh", None),
    ],
)
def test_words_in_another_script_are_found(text, language, found):
    """Words are between blanks and bars; those after a bar begin with a blank if there is one."""
    words = [piece for word in text.split("|") for piece in (word.split(" ") if word.strip().count(" ") else [word])]
    run = foreign_words(words, language)
    assert (None if run is None else "".join(words[slice(*run)]).strip()) == found


@pytest.mark.parametrize(
    ("probabilities", "language", "other"),
    [
        ({"zh": 0.99, "en": 0.001}, "en", True),
        ({"zh": 0.99, "en": 0.001}, "zh", False),
        ({"es": 0.6, "pt": 0.3, "en": 0.02}, "en", False),
        ({"es": 0.85, "en": 0.12}, "en", False),
        ({"nn": 0.95, "no": 0.01}, "no", False),
        ({"da": 0.95, "no": 0.01}, "no", False),
        ({"hr": 0.95, "sr": 0.01}, "sr", False),
        ({"id": 0.95, "ms": 0.01}, "ms", False),
        ({"de": 0.95, "lb": 0.01}, "lb", False),
        ({"lb": 0.95, "de": 0.01}, "de", False),
        ({"pt": 0.98, "es": 0.01}, "es", True),
        ({}, "en", False),
    ],
)
def test_another_language_is_clearly_more_probable(probabilities, language, other):
    assert in_another_language(probabilities, language) is other
