"""Texts of several sentences: markup, glossary, masked words, and a caller that takes turns or stops."""

import pytest

from pipeline.backends.marian.text_translation import TextTranslation
from pipeline.core import Masking, TargetText, Translation
from pipeline.errors import DecodingStoppedError, PipelineError
from pipeline.glossary import Glossary, Term


class Capitals:
    """Stands for a translator: writes each sentence in capitals, or fails with ``error``."""

    def __init__(self, error=None):
        self.seen, self.error = [], error

    def stream(self, request):
        self.seen.append(request.sentence.text)
        text = request.sentence.text.upper()
        yield TargetText(0, request.target, text, complete=True)
        yield Translation(0, request.target, text, error=self.error)


class KnowsTerms(Capitals):
    def stream(self, request):
        if request.glossary is not None:
            (term,) = request.glossary.terms
            yield Translation(0, request.target, term.target)
        yield from super().stream(request)

    def unspellable(self, glossary, target=None):
        return ()


@pytest.mark.parametrize(
    ("markup", "seen", "expected"),
    [
        ("text", ["He met", "John.", "Yes."], "<p>HE MET\nJOHN. YES.</p>"),
        ("html", ["He met John.", "Yes."], "<p>HE MET\nJOHN. YES.</p>"),
        ("subtitles", ["He met John.", "Yes."], "<p>HE MET\nJOHN. YES.</p>"),
    ],
)
def test_sentences_are_translated_and_all_else_stays(markup, seen, expected):
    model = Capitals()
    assert TextTranslation(model, "en", "pt").translate("<p>He met\nJohn. Yes.</p>", markup) == expected
    assert model.seen == seen


def test_the_code_of_a_page_stays_and_a_text_of_no_words_is_not_translated():
    model = Capitals()
    translation = TextTranslation(model, "en", "pt")
    page = "<script>var a = 1;</script><p>{}</p>"
    assert translation.translate(page.format("Yes."), "html") == page.format("YES.")
    assert [translation.translate(text) for text in ("", "\n", "12:30")] == ["", "\n", "12:30"]
    assert model.seen == ["Yes."]


def test_masked_words_are_masked_in_the_translation_and_not_in_tags():
    model = TextTranslation(Capitals(), "en", "pt", masking=Masking([("pt", "house"), ("en", "red")]))
    assert model.translate('A red <a href="/house">house</a>') == 'A RED <a href="/house">H****</a>'


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("A <b>house</b> is red.", "A <b>H****</b> IS RED."),
        ("Go @house now.", "GO @h**** NOW."),
        ("#house", "#h****"),
        ('<pre class="house">house</pre><style>house</style>', '<pre class="house">h****</pre><style>house</style>'),
        ("<pre><style>house</style> house</pre>", "<pre><style>house</style> h****</pre>"),
        ("@house <style>\n#house", "@h**** <style>\n#h****"),
        ("{house}", "{house}"),
        ("Hello {house} `rm house` %(house)s.", "HELLO {house} `rm house` %(house)s."),
    ],
)
def test_masked_words_do_not_move_tags_and_are_masked_where_nothing_is_translated(text, masked):
    model = TextTranslation(Capitals(), "en", "pt", masking=Masking([("pt", "house")]))
    assert model.translate(text, "html") == masked


def test_a_masked_word_that_looks_like_a_stand_in_loses_nothing_that_is_put_back():
    model = TextTranslation(Capitals(), "en", "pt", masking=Masking([("pt", "x1")]))
    assert model.translate("Hello @bob now.") == "HELLO @bob NOW."


def test_the_glossary_is_asked_before_each_text_unless_the_translator_knows_none():
    targets = iter(["casa", "lar"])

    def glossary():
        return Glossary((Term("house", next(targets)),))

    translation = TextTranslation(KnowsTerms(), "en", "pt", glossary=glossary)
    assert [translation.translate("A house. A house."), translation.translate("A house.")] == ["casa casa", "lar"]
    assert TextTranslation(Capitals(), "en", "pt", glossary=glossary).translate("A house.") == "A HOUSE."
    assert TextTranslation(KnowsTerms(), "en", "pt", glossary=Glossary).translate("A house.") == "A HOUSE."


def test_each_sentence_comes_with_the_one_before_it_and_no_server_is_asked():
    class Asked(Capitals):
        def stream(self, request):
            self.seen.append((request.before, request.remote))
            text = request.sentence.text.upper()
            yield Translation(0, request.target, text)

    model = Asked()
    TextTranslation(model, "en", "pt").translate("One. Two. Three.")
    assert model.seen == [((), False), ((("One.", "ONE."),), False), ((("Two.", "TWO."),), False)]


def test_another_caller_has_its_turn_after_each_step():
    *steps, text = TextTranslation(Capitals(), "en", "pt").steps("Yes. <b>No.</b>")
    assert (steps, text) == ([None, None], "YES. <b>NO.</b>")


def test_a_search_that_is_stopped_ends_the_text(en_pt):
    steps = TextTranslation(en_pt, "en", "pt").steps("Where is the hotel?", on_start=lambda state: state.terminate())
    with pytest.raises(DecodingStoppedError):
        list(steps)


def test_a_sentence_that_is_not_translated_fails_the_text():
    with pytest.raises(PipelineError, match="no answer"):
        TextTranslation(Capitals("no answer"), "en", "pt").translate("Yes.")
