"""Two models in sequence: the translation equals two separate ones, and the stream is like that of one model."""

from dataclasses import replace

import pytest

from pipeline import MarianModel
from pipeline.backends.marian.decode.decoder import DecoderState
from pipeline.backends.marian.pivot import PivotTranslator
from pipeline.backends.marian.search.sentence_text import translated
from pipeline.backends.nmt_options import NmtConfig
from pipeline.core.nmt.draft_tokens import Token
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.errors import DecodingStoppedError, UsageError
from pipeline.events import Confidence, SourceSentence, TargetText, Translation, Word
from pipeline.glossary.terms import Glossary, Term
from tests.conftest import ROOT, make_model_dir

TEXT = "Where is the station? Thank you. What time is it?"
SENTENCES = ["Where is the station?", "Thank you.", "What time is it?"]
BACK = ROOT / "models" / "demo" / "nmt-zh-en"


def pivot(folder, **loading):
    """English through Chinese into English."""
    first = MarianModel.load(make_model_dir(folder / "first", "merged"), NmtConfig(**loading))
    return PivotTranslator(first, MarianModel.load(BACK, NmtConfig(**loading)), "zh")


@pytest.fixture
def both(tmp_path):
    return pivot(tmp_path)


def sentence(text=TEXT):
    return SourceSentence(3, "en", text, 10.0, 16.0, heard_s=17.0)


def stream(model, text, target="en"):
    *texts, translation = model.stream(TranslationRequest(sentence(text), target))
    assert isinstance(translation, Translation)
    return [each for each in texts if isinstance(each, TargetText)], translation


def by_hand(both, text):
    return both.second.translate(both.first.translate(text), source="zh")


def plant(model, text, tokens):
    """Make ``model`` translate the sentence ``text`` to these tokens."""
    (source,) = model.sources(text, "en", None)
    model.cache.put(source, tuple(tokens))


def tokens(model, text):
    model.translate(text)
    (source,) = model.sources(text, "en", None)
    found = model.cache.get(source)
    assert found
    return [token for token in found if isinstance(token, Token)]


def test_the_translation_equals_two_separate_translations(both):
    expected = [by_hand(both, sentence) for sentence in SENTENCES]
    assert len({*expected}) == 3
    assert [both.translate(sentence) for sentence in SENTENCES] == expected
    assert both.translate(TEXT) == by_hand(both, TEXT)
    assert both.languages == ("en", "en")


def test_the_stream_has_the_form_of_a_single_models_stream(both):
    for text in (TEXT, SENTENCES[0]):
        for texts, translation in (stream(both, text), stream(both.first, text, "zh")):
            assert {(each.sentence, each.heard_s) for each in (*texts, translation)} == {(3, 17.0)}
            assert len({each.language for each in (*texts, translation)}) == 1
            tokens = texts[-1].tokens
            assert [each.tokens for each in texts] == [tokens[:count] for count in range(1, len(tokens) + 1)]
            assert [each.text for each in texts] == [translation.text[: token.end] for token in tokens]
            assert texts[-1].text == translation.text
            assert [each.complete for each in texts] == [False] * (len(texts) - 1) + [True]
            assert [each.steady for each in texts] == [0] * (len(texts) - 1) + [len(translation.text)]
            assert translation.confidence == Confidence.of([token.log_probability for token in tokens])


def test_a_sentence_stays_one_if_the_first_model_writes_two(both):
    halves = [tokens(both.first, text) for text in SENTENCES[:2]]
    plant(both.first, "Hello.", [*(token for token in halves[0] if not token.last), *halves[1]])
    texts, translation = stream(both, "Hello.")
    assert translation.text == " ".join(by_hand(both, text) for text in SENTENCES[:2])
    assert [each.complete for each in texts] == [False] * (len(texts) - 1) + [True]


def test_a_sentence_ends_even_if_the_first_model_writes_nothing(both):
    plant(both.first, "Hello.", [Token(both.first.generation.end_token, -0.5, last=True)])
    assert stream(both, "Hello.") == ([], Translation(3, "en", "", heard_s=17.0))
    texts, translation = stream(both, "Thank you. Hello.")
    assert translation.text == by_hand(both, "Thank you.")
    assert texts[-1].complete


def test_text_without_tokens_has_an_empty_translation(both):
    assert stream(both, " ") == ([], Translation(3, "en", "", heard_s=17.0))


def test_a_first_step_that_was_cut_off_marks_the_sentence(both):
    whole = tokens(both.first, SENTENCES[0])
    assert not stream(both, SENTENCES[0])[1].truncated
    plant(both.first, SENTENCES[0], [*whole[:-1], replace(whole[-1], truncated=True)])
    assert stream(both, SENTENCES[0])[1].truncated


def test_beams_apply_to_both_models(tmp_path):
    wide, narrow = (
        pivot(tmp_path / name, beam_size=beams, cached_sentences=0) for name, beams in (("wide", 4), ("narrow", 1))
    )
    texts = ["Where can I buy a ticket for the train to the airport?", *SENTENCES]
    assert any(wide.translate(text) != narrow.translate(text) for text in texts)
    for text in texts:
        assert translated(wide.stream(TranslationRequest(sentence(text), "en", beams=1))) == narrow.translate(text)


def test_a_sentence_that_comes_again_is_translated_once(both):
    first = stream(both, SENTENCES[0])
    assert (both.first.cache.hits, both.second.cache.hits) == (0, 0)
    assert stream(both, SENTENCES[0]) == first
    assert (both.first.cache.hits, both.second.cache.hits) == (1, 1)


@pytest.mark.parametrize("step", [0, 1])
def test_either_model_can_be_stopped(step, both):
    begun: list[DecoderState] = []

    def started(state):
        begun.append(state)
        if len(begun) == step + 1:
            state.terminate()

    with pytest.raises(DecodingStoppedError):
        list(both.stream(TranslationRequest(sentence(SENTENCES[0]), "en", started)))
    assert len(begun) == step + 1
    assert both.translate(SENTENCES[1])


def test_the_languages_of_both_are_checked(both):
    both.check_languages("en", "en")
    for source, target in (("fr", "en"), ("en", "fr")):
        with pytest.raises(UsageError, match="the translation model translates from"):
            both.check_languages(source, target)
    with pytest.raises(UsageError, match="from en into zh"):
        PivotTranslator(both.first, both.second, "de").check_languages("en", "en")
    with pytest.raises(UsageError, match="translates from en into zh, not from fr"):
        both.translate("Bonjour.", source="fr")


class Step:
    """One of two models: it makes what the test says, and cannot write some words."""

    def __init__(self, made, unknown=()):
        self.made, self.unknown, self.languages = made, unknown, ("en", "en")
        self.asked: list[TranslationRequest] = []

    def stream(self, request):
        self.asked.append(request)
        yield self.made

    def unspellable(self, glossary, target=None):
        return tuple(term for term in glossary.terms if term.targets[0] in self.unknown)


@pytest.mark.parametrize("what", ["truncated", "searched_again"])
@pytest.mark.parametrize("of", [(False, False), (True, False), (False, True)])
def test_what_is_said_of_one_of_two_translations_holds_for_both(what, of):
    first, second = (Step(Translation(3, "en", text, **{what: is_so})) for text, is_so in zip("ab", of, strict=True))
    (made,) = PivotTranslator(first, second, "pt").stream(TranslationRequest(sentence("A bee"), "de"))
    assert (made.text, getattr(made, what)) == ("b", any(of))


def test_the_second_model_gets_the_first_translation_without_the_words_of_the_source():
    first, second = Step(Translation(3, "pt", "Uma abelha")), Step(Translation(3, "de", "Eine Biene"))
    said = replace(sentence("A bee"), words=(Word("A bee", 10.0, 16.0),))
    request = TranslationRequest(said, "de", before=[("Look.", "Sieh.")])
    list(PivotTranslator(first, second, "pt").stream(request))
    assert (first.asked[0].target, second.asked[0].target) == ("pt", "de")
    assert first.asked[0].before == second.asked[0].before == ()
    assert second.asked[0].sentence == replace(said, language="pt", text="Uma abelha", words=())


def test_a_term_is_carried_by_its_translation_or_its_source_or_not_at_all():
    bee, ant, fly = Term("bee", "Biene"), Term("ant", "蚂蚁", ("ants",), ("蚁",)), Term("fly", "苍蝇")
    terms = Glossary((bee, ant, fly))
    first = Step(Translation(3, "pt", "x"), ("蚂蚁", "苍蝇", "fly"))
    second = Step(Translation(3, "de", "Biene 蚁"), ("Biene",))
    pivot = PivotTranslator(first, second, "pt")
    (made,) = pivot.stream(TranslationRequest(sentence("A bee, an ant and a fly"), "de", glossary=terms))
    assert [(term.source, term.target) for term in first.asked[0].glossary.terms] == [("bee", "Biene"), ("ant", "ant")]
    assert [(term.source, term.targets) for term in second.asked[0].glossary.terms] == [
        ("Biene", ("Biene",)),
        ("ant", ("蚂蚁", "蚁")),
    ]
    assert (made.terms, made.missed_terms) == (("bee", "ant", "fly"), ("fly",))
    assert pivot.unspellable(terms) == (bee, fly)
