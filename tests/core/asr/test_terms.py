"""Tests of a stream's glossary: which terms are expected, and how misheard ones are corrected."""

from pipeline.backends.whisper.words import TimedWord, mark_replaced
from pipeline.core.asr.terms import HeardTerms, Replacement
from pipeline.core.run.options import GlossaryOptions
from pipeline.events import Transcript
from pipeline.glossary.terms import Glossary, Term

NAMES = ("Velmora", "Quindarra", "Brontik", "Oskelund", "Taravelle", "Kubernetes")
GLOSSARY = Glossary(tuple(Term(name, None) for name in NAMES))


def _heard(text, language="en"):
    return Transcript(0, 0.0, 1.0, text, language)


def _terms(glossary=GLOSSARY, *, prompt_terms=3, correct=True):
    return HeardTerms(lambda: glossary, GlossaryOptions(None, prompt_terms, correct))


def test_the_first_terms_are_expected_until_others_are_said():
    terms = _terms()
    assert terms.expected("en") == ["Velmora", "Quindarra", "Brontik"]
    terms.heard(_heard("Taravelle and Oskelund"))
    assert terms.expected("en") == ["Oskelund", "Taravelle", "Velmora"]
    terms.heard(_heard("Taravelle"))
    assert terms.expected("en") == ["Taravelle", "Oskelund", "Velmora"]


def test_terms_that_may_have_been_misheard_are_expected():
    terms = _terms()
    terms.heard(_heard("We use Cooper netties."))
    assert terms.expected("en")[0] == "Kubernetes"


def test_a_changed_glossary_is_used_at_once():
    glossaries = [GLOSSARY]
    terms = HeardTerms(lambda: glossaries[-1], GlossaryOptions(None, 2))
    terms.heard(_heard("Brontik"))
    assert terms.expected("en") == ["Brontik", "Velmora"]
    glossaries.append(Glossary((Term("Gralbeck", None),)))
    assert terms.expected("en") == ["Gralbeck"]


def test_terms_are_those_of_the_language_spoken():
    terms = _terms(Glossary((Term("load balancer", "负载均衡器"),), ("en", "zh")))
    assert terms.expected("en") == ["load balancer"]
    assert terms.expected("zh") == ["负载均衡器"]


def test_a_near_miss_is_corrected_if_the_audio_says_so():
    asked = []

    def better(before, after, term):
        asked.append((before, after, term))
        return True

    text, replaced = _terms().corrected(" Cooper netties met Quin Dara.", "en", better)
    assert text == " Kubernetes met Quindarra."
    assert replaced == (Replacement(1, 11, "Cooper netties"), Replacement(16, 25, "Quin Dara"))
    assert {term for _, _, term in asked} == {"Kubernetes", "Quindarra"}
    assert asked[1][0] == asked[0][1]  # the second is judged in the text with the first


def test_terms_are_written_with_the_capitals_of_the_glossary():
    terms = _terms(Glossary((Term("iPhone", None), Term("load balancer", None), Term("IT", None, exact_case=True))))
    text = "Load balancer on an Iphone, IPhones and it."
    assert terms.corrected(text, "en", lambda *_: True) == ("Load balancer on an iPhone, iPhones and it.", ())


def test_nothing_is_corrected_against_the_audio_or_the_options():
    text = " Cooper netties met Quin Dara."
    assert _terms().corrected(text, "en", lambda *_: False) == (text, ())
    assert _terms(correct=False).corrected(text, "en", lambda *_: True) == (text, ())


def test_words_of_a_term_say_what_was_heard():
    words = [TimedWord(text, 0.0, 0.0) for text in (" The", " load", " balancer,", " Quindarra")]
    text = " The load balancer, Quindarra"
    replaced = [Replacement(5, 18, "lode balance or"), Replacement(20, len(text), "Quin Dara")]
    assert [word.heard for word in mark_replaced(words, replaced)] == [None, "lode balance or", "", "Quin Dara"]
    assert mark_replaced(words, ()) == words
