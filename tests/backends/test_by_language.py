"""Several languages may be spoken: each sentence is translated from its own, by the real recogniser and students."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from pipeline.backends.by_language import ByLanguage
from pipeline.backends.marian.pairs import student_routes
from pipeline.backends.marian.routing import resolve
from pipeline.config import load_config, with_overrides
from pipeline.config.loading import SharedModels, load_shared
from pipeline.core.nmt.draft_tokens import DraftTokens
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.errors import DownloadError, UsageError
from pipeline.events import SAMPLE_RATE, SourceSentence, SourceText, TargetText, Translation
from pipeline.languages.options import LanguageConfig
from pipeline.media.audio.recording import Recording
from pipeline.media.sinks.jsonl import line, read_event
from tests.chain import events_of
from tests.commands import loaded_once
from tests.conftest import ROOT, read_wav, write_wav
from tests.fixtures.student import write_student
from tests.store.catalogue_server import serving_catalogue

ENGLISH = read_wav(ROOT / "examples/audio/novel.wav")[: round(6.9 * SAMPLE_RATE)]
PORTUGUESE = read_wav(ROOT / "examples/audio-pt/lisbon.wav")[: round(8.2 * SAMPLE_RATE)]
CHINESE = read_wav(ROOT / "tests/media/audio/chinese.wav")[: round(2.7 * SAMPLE_RATE)]
PAUSE = np.zeros(round(2.5 * SAMPLE_RATE), np.int16)
DEMO = load_config("demo")


def loaded(config, shared=None):
    with loaded_once():
        return load_shared([config], shared=shared)


def talk(path, *parts):
    return Recording(write_wav(path, np.concatenate([samples for part in parts for samples in (part, PAUSE)])))


def said(events):
    """(language, what was said, its translation) of each sentence; None: it has none."""
    translated = {event.sentence: event for event in events if isinstance(event, Translation)}
    sentences = [event for event in events if isinstance(event, SourceSentence)]
    return [(one.language, one.text, translated.get(one.sentence)) for one in sentences]


@pytest.fixture
def catalogue(tmp_path, monkeypatch):
    """Has a random student from Chinese into English."""
    with serving_catalogue(tmp_path, monkeypatch) as served:
        write_student(tmp_path / "chinese", pair="zhen")
        served.add("tiny", "Release", tmp_path / "chinese", "zh-en")
        yield served


@pytest.mark.slow
def test_each_sentence_is_translated_from_the_language_that_is_named_and_spoken(tmp_path):
    config = with_overrides(DEMO, source="en,pt", targets="en")
    (models,) = loaded(config)
    for live in (False, True):
        recording = talk(tmp_path / "talk.wav", PORTUGUESE, ENGLISH, PORTUGUESE)
        events = events_of(config, models, recording, live=live)
        found = said(events)
        assert [language for language, *_ in found] == ["pt", "pt", "en", "pt", "pt"]
        for language, source, translation in found:
            assert (translation.text == source) == (language == "en")
            assert not translation.doubtful
        assert found[0][2].text.endswith(("to Lisbon, please.", "to Lisbon please."))
        assert found[2][1].startswith("And Mr. John Dashwood")
    number = next(event.sentence for event in events if isinstance(event, SourceSentence) and event.language == "en")
    drafts = [event for event in events if isinstance(event, SourceText) and event.sentence == number]
    shown = [event.text for event in events if isinstance(event, TargetText) and event.sentence == number]
    assert {draft.text for draft in drafts if draft.language == "en"} & {*shown[:-1]}  # as it is being said


@pytest.mark.slow
def test_of_any_language_the_translator_is_fetched_when_it_is_spoken(tmp_path, catalogue):
    config = with_overrides(DEMO, source="auto", targets="en")
    (models,) = loaded(config)
    events = events_of(config, models, talk(tmp_path / "two.wav", PORTUGUESE, ENGLISH))
    assert [language for language, *_ in said(events)] == ["pt", "pt", "en"]
    assert catalogue.asked == []  # the one from Portuguese is there
    found = said(events_of(config, models, talk(tmp_path / "three.wav", CHINESE, ENGLISH)))
    assert [language for language, *_ in found] == ["zh", "en"]
    assert any("zhen" in path for path in catalogue.asked)
    assert found[0][2] is not None
    assert found[0][2].text != found[0][1]
    assert found[1][2].text == found[1][1]


@pytest.mark.slow
def test_what_has_no_translator_is_shown_as_it_is_and_that_is_said_once(tmp_path, catalogue, caplog):
    config = with_overrides(DEMO, source="auto", targets="en")
    (models,) = loaded(config, SharedModels(fetches=False))
    with caplog.at_level(logging.WARNING):
        found = said(events_of(config, models, talk(tmp_path / "talk.wav", CHINESE, ENGLISH, CHINESE)))
    assert [language for language, *_ in found] == ["zh", "en", "zh"]
    assert [translation.text for *_, translation in found] == [source for _, source, _ in found]
    assert [translation.doubtful for *_, translation in found] == [True, False, True]
    (told,) = [record.message for record in caplog.records if "is shown as it is" in record.message]
    assert told.startswith("what is said in zh is shown as it is, not in en: firefox/zh-en is not on this machine")
    assert catalogue.asked == []


def test_of_three_languages_in_a_conversation_each_is_translated_into_the_others():
    config = with_overrides(DEMO, source="auto", targets=("en", "pt", "de"))
    assert config.languages.mixed == config.languages.spoken == ("en", "pt", "de")
    assert list(config.translators) == [
        ("pt", "en"), ("de", "en"), ("en", "pt"), ("de", "pt"), ("en", "de"), ("pt", "de"),
    ]  # fmt: skip
    assert config.translators["en", "pt"] == DEMO.nmt  # its own
    assert [step.model for step in config.translators["pt", "de"].steps] == ["firefox/pt-en", "firefox/en-de"]


def test_any_language_is_each_from_which_students_translate():
    for target in ("en", "pt", "zh"):
        sources = {source for source, into in student_routes() if into == target}
        assert {*LanguageConfig("auto", target).spoken} == {target, *sources}


def test_a_model_is_kept_for_the_pair_that_it_names():
    student = replace(DEMO.nmt, model="firefox/pt-en")
    assert resolve(("pt-BR", "en"), student, one_of_several=True) is student
    assert resolve(("es", "en"), student, one_of_several=True).model == "firefox/es-en"
    assert resolve(("es", "en"), student) is student
    with pytest.raises(UsageError, match="from 'la' into 'en'"):
        resolve(("la", "en"), student, one_of_several=True)


class Source:
    """Stands for a translator: it says from which language it translates."""

    def __init__(self, language):
        self.language = language

    def stream(self, request):
        text, number = f"from {self.language}", request.sentence.sentence
        yield TargetText(number, "en", text, steady=len(text), complete=True)
        yield Translation(number, "en", text)


def test_translators_are_loaded_for_final_text_and_so_many_stay(caplog):
    loaded, now, offline = [], [0.0], {"xx"}

    def load(language):
        loaded.append(language)
        if language in offline:
            raise DownloadError("no network")
        return Source(language)

    model = ByLanguage("en", load, passes=True, clock=lambda: now[0])

    def texts(language, **named):
        return [
            (event.text, event.steady)
            for event in model.stream(TranslationRequest(SourceSentence(0, language, "Foo bar."), **named))
        ]

    drafted = DraftTokens()
    drafted.source = "Foo"
    assert texts("pt", drafted=drafted) == [("Foo bar.", 8)]  # the end, which is not shown of a draft
    assert loaded == []
    assert texts("pt-BR") == texts("pt") == [("from pt", 7), ("from pt", 7)]
    assert texts("pt", drafted=drafted) == [("from pt", 0), ("from pt", 7)]  # it does not tell what it translates
    assert texts("en", drafted=drafted)[0] == ("Foo bar.", 3)
    assert texts("xx")[-1] == texts("xx")[-1] == ("Foo bar.", 8)
    assert loaded == ["pt", "xx"]
    doubtful = [
        [*model.stream(TranslationRequest(SourceSentence(0, code, "Foo bar.")))][-1].doubtful for code in ("en", "xx")
    ]
    assert doubtful == [False, True]

    now[0] = 61.0
    assert texts("xx")[-1] == ("Foo bar.", 8)
    assert len(caplog.records) == 1
    now[0] = 122.0
    offline.clear()
    assert texts("xx")[-1] == ("from xx", 7)
    assert loaded == ["pt", "xx", "xx", "xx"]
    for number in range(40):
        model.loaded(f"{'abcdefghij'[number // 10]}{'klmnopqrst'[number % 10]}")
    assert len(model._models) == 16
    assert list(model._models)[-1] == "dt"  # the newest


def test_a_draft_in_other_characters_is_not_steady():
    for target, steady in (("zh", 1), ("zh-TW", 0)):  # later words may change the conversion
        model, drafted = ByLanguage(target, Source, passes=True), DraftTokens()
        drafted.source = "我"
        request = TranslationRequest(SourceSentence(0, "zh", "我发"), drafted=drafted)
        assert [event.steady for event in model.stream(request) if isinstance(event, TargetText)] == [steady]


@pytest.mark.slow
def test_a_translator_that_cannot_be_had_is_an_error_where_its_language_is_named(tmp_path, catalogue):
    catalogue.answer = b"{}"
    with pytest.raises(DownloadError):
        load_shared([with_overrides(DEMO, source="en,zh", targets="en")])


def test_the_mark_is_in_jsonl_only_where_it_is_set():
    plain = Translation(0, "pt", "a")
    assert "doubtful" not in line(plain)
    record = {"type": "translation", "sentence": 0, "language": "pt", "text": "a", "doubtful": True}
    assert read_event(record) == replace(plain, doubtful=True)
