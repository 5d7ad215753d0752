"""Terms of a glossary in translations: found in the source, written where the model looks at them, and counted."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import EndOfInput, MarianModel, NmtStage
from pipeline.backends.marian.compile.measure import chrf
from pipeline.backends.marian.decode.generation import SearchRequest
from pipeline.backends.marian.decode.tokenizer import SPACE
from pipeline.backends.marian.pivot import PivotTranslator
from pipeline.backends.marian.search.beams import greedy
from pipeline.backends.marian.terms.literals import Literal
from pipeline.backends.marian.terms.source_terms import SourceTerm, Speller, glued, kept, piece_spans, terms_in
from pipeline.backends.marian.terms.term_search import TermSearch, Wording
from pipeline.backends.nmt_options import NmtConfig
from pipeline.core.nmt.draft_tokens import Token
from pipeline.core.nmt.stage import NmtContext
from pipeline.core.nmt.translator import TranslationRequest, unspellable, warn_unspellable
from pipeline.core.run.stats import PipelineStats
from pipeline.events import SourceSentence, SourceText, TargetText, Translation
from pipeline.glossary.files import load_glossary
from pipeline.glossary.terms import Glossary, Term
from pipeline.languages.options import LanguageConfig
from tests.conftest import SHIPPED_TRANSLATORS, examples, golden, make_model_dir

SET = Path(__file__).parent / "terms"
GLOSSARY = load_glossary(SET / "glossary.tsv")
PAIRS = [line.split("\t") for line in (SET / "sentences.tsv").read_text("utf-8").splitlines()]
DIRECTIONS = [("en", "zh"), ("zh", "en")]
CHANG = Term("Chang Wei", "张伟")
HOTEL = Term("Grand Harbour Hotel", "大海饭店")
BOTH = Glossary((CHANG, HOTEL))


@pytest.fixture(scope="module")
def models():
    return {
        source: MarianModel.load(SHIPPED_TRANSLATORS[f"demo-{source}-{target}"], NmtConfig(cached_sentences=0))
        for source, target in DIRECTIONS
    }


@pytest.fixture(scope="module")
def english(models):
    return models["en"]


def translation(model, text, glossary=None, language="en"):
    *_, shown, end = model.stream(TranslationRequest(SourceSentence(0, language, text), glossary=glossary))
    assert shown.text == shown.steady_text == end.text
    return end


def has_terms(text, glossary, source):
    """Whether each term of a source has its translation in ``text``. By the text alone, each translation once."""
    found = []
    for match in glossary.found_in(source):
        target = match.term.targets[0].lower()
        found.append(target in text.lower())
        text = text.lower().replace(target, " ", 1)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("source", "target"), DIRECTIONS)
def test_the_terms_of_the_test_set_are_translated_as_given(models, source, target):
    glossary, model, at = GLOSSARY.between(source, target), models[source], int(source == "zh")
    unspellable = {term.source for term in model.unspellable(glossary)}
    texts, references = [pair[at] for pair in PAIRS], [pair[1 - at] for pair in PAIRS]
    before = [translation(model, text, None, source) for text in texts]
    after = [translation(model, text, glossary, source) for text in texts]
    right = {False: 0, True: 0}
    wanted = 0
    for text, plain, with_terms in zip(texts, before, after, strict=True):
        spellable = [match.term.source not in unspellable for match in glossary.found_in(text)]
        assert with_terms.terms == tuple(match.term.source for match in glossary.found_in(text))
        assert plain.terms == ()
        missed = has_terms(with_terms.text, glossary, text).count(False)
        assert len(with_terms.missed_terms) == missed
        wanted += sum(spellable)
        right[False] += sum(has_terms(plain.text, glossary, text))
        right[True] += sum(has_terms(with_terms.text, glossary, text))
    scores = [chrf([one.text for one in each], references) for each in (before, after)]
    print(
        f"{source}-{target}: {right[True]} of {wanted} terms, {right[False]} without; chrF {scores[1]:.1f}, {scores[0]:.1f}"
    )
    assert wanted > 100
    assert right[True] >= 0.95 * wanted > 10 * right[False]
    assert scores[1] >= scores[0]


@pytest.mark.slow
@pytest.mark.parametrize(("source", "target"), DIRECTIONS)
def test_sentences_without_terms_are_translated_as_without_a_glossary(models, source, target):
    glossary = GLOSSARY.between(source, target)
    for row in golden(f"demo-{source}-{target}")[:40]:
        assert not glossary.found_in(row["source"])
        for other in (glossary, Glossary()):
            sentence = SourceSentence(0, source, row["source"])
            assert list(models[source].stream(TranslationRequest(sentence, glossary=other))) == list(
                models[source].stream(TranslationRequest(sentence))
            )


@given(st.lists(st.integers(4, 4000), min_size=1, max_size=12), st.integers(0, 3))
@settings(max_examples=examples(25))
def test_without_terms_the_search_gives_the_tokens_of_greedy_search(english, source, known):
    ids, options = [*source, english.tokenizer.end_token], english.generation
    committed = [token.id for token in greedy(SearchRequest(english.decoder, ids, options))][:-1][:known]
    nothing = Wording((), Speller(english.tokenizer, "zh", english.decoder.can_write))
    found = list(TermSearch(SearchRequest(english.decoder, ids, options, committed), nothing).tokens())
    plain = list(greedy(SearchRequest(english.decoder, ids, options, committed=committed)))
    assert [token.id for token in found] == [token.id for token in plain]


def test_a_translation_of_the_models_own_is_left_as_it_is(english):
    text = "I bought a new laptop yesterday."
    plain = translation(english, text)
    own = Glossary((Term("laptop", "笔记本电脑"), Term("yesterday", "昨日", target_variants=("昨天",))))
    found = translation(english, text, own)
    assert (found.text, found.guarded) == (plain.text, 0)
    assert (found.terms, found.missed_terms) == (("laptop", "yesterday"), ())


def test_a_term_is_translated_once_each_time_it_occurs(english):
    for text, times in (("Chang Wei is my friend.", 1), ("Chang Wei called Chang Wei yesterday.", 2)):
        assert translation(english, text, BOTH).text.count("张伟") == times


def test_no_letters_are_added_to_a_term(models):
    """After the name, the 42 likeliest tokens would go on with its last word."""
    glossary = Glossary((Term("Nova Mini", None),))
    found = translation(models["zh"], "Nova Mini对我们来说太贵了。", glossary, "zh")
    assert found.text.startswith("Nova Mini ")
    assert (found.text.count("Mini"), found.missed_terms) == (1, ())


def test_a_term_that_the_vocabulary_cannot_write_is_reported(english):
    terms = Glossary((Term("Chang Wei", "龘龘"), Term("laptop", "笔记本")))
    assert english.unspellable(terms) == terms.terms[:1]
    text = "Chang Wei bought a laptop."
    found = translation(english, text, terms)
    assert (found.terms, found.missed_terms) == (("Chang Wei", "laptop"), ("Chang Wei",))


def test_a_term_in_traditional_characters_is_written_through_simplified_ones(english):
    terms = Glossary((Term("load balancer", "負載均衡器"), Term("Chang Wei", "龘龘")))
    assert english.unspellable(terms) == terms.terms
    assert english.unspellable(terms, "zh-Hant") == terms.terms[1:]
    *_, found = english.stream(
        TranslationRequest(SourceSentence(0, "en", "We need a new load balancer."), "zh-Hant", glossary=terms)
    )
    assert "負載均衡器" in found.text
    assert found.missed_terms == ()


def test_without_an_alignment_head_terms_are_reported_as_missed(tmp_path):
    model = MarianModel.load(make_model_dir(tmp_path / "merged", "merged"))
    assert not model.decoder.aligned
    text = golden("tiny-marian")[0]["source"]
    word = text.split()[0]
    plain, found = translation(model, text), translation(model, text, Glossary((Term(word, "zzz"),)))
    assert (found.text, found.terms, found.missed_terms) == (plain.text, (word,), (word,))


def test_beams_and_drafts_keep_terms_too():
    model = MarianModel.load(SHIPPED_TRANSLATORS["demo-en-zh"], NmtConfig(beam_size=3))
    text = "Chang Wei is waiting at the station."
    assert "张伟" in translation(model, text, BOTH).text
    for part in ("Chang Wei is", "Chang Wei is waiting at the"):
        *_, end = model.stream(TranslationRequest(SourceSentence(0, "en", part), glossary=BOTH, draft=True))
        assert end.terms == ("Chang Wei",)


def test_a_cached_sentence_has_the_terms_of_its_glossary():
    model = MarianModel.load(SHIPPED_TRANSLATORS["demo-en-zh"])
    text = "Do you know Chang Wei?"
    plain = translation(model, text)
    first, again = translation(model, text, BOTH), translation(model, text, BOTH)
    assert model.cache.hits == 1
    assert first == again != plain
    assert translation(model, text) == plain


WORDS = ("Chang Wei", "Grand Harbour Hotel", "the", "station", "yesterday", "I", "met", "at", "waits", "friend")


def test_the_stage_takes_the_glossary_as_it_is_now(english):
    current = [Glossary()]
    text = "Do you know Chang Wei?"
    stats = PipelineStats()

    async def run():
        inbox: asyncio.Queue[SourceText | SourceSentence | EndOfInput] = asyncio.Queue()
        outbox: asyncio.Queue[TargetText | Translation | EndOfInput] = asyncio.Queue()
        context = NmtContext(stats=stats, glossary=lambda: current[0])
        stage = NmtStage(english, inbox, outbox, target="zh", context=context)
        task = asyncio.create_task(stage.run())
        found: list[Translation] = []
        for number in range(2):
            await inbox.put(SourceSentence(number, "en", text))
            while not isinstance(event := await outbox.get(), Translation):
                pass
            found.append(event)
            current[0] = Glossary((CHANG, Term("know", "龘")))
        await inbox.put(EndOfInput())
        await task
        return found

    plain, with_terms = asyncio.run(run())
    assert (plain.terms, "张伟" in plain.text) == ((), False)
    assert "张伟" in with_terms.text
    assert (with_terms.terms, with_terms.missed_terms) == (("know", "Chang Wei"), ("know",))
    assert (stats.translated_terms, dict(stats.missed_terms)) == (2, {"know": 1})
    assert "1 of 2 terms translated as given; missed 1: know" in stats.summary()


def test_two_models_in_sequence_keep_terms(models):
    pivot = PivotTranslator(models["zh"], models["en"], "en")
    found = pivot.stream(
        TranslationRequest(SourceSentence(0, "zh", "你认识张伟吗？"), "zh", glossary=Glossary((Term("张伟", "Lena"),)))
    )
    *_, end = found
    assert (end.terms, end.missed_terms) == (("张伟",), ())
    assert "Lena" in end.text


def test_pieces_are_matched_with_characters():
    pieces = [f"{SPACE}I", f"{SPACE}met", SPACE, "张", "伟", "."]
    assert piece_spans("I met 张伟.", pieces) == [(0, 1), (2, 5), (0, 0), (6, 7), (7, 8), (8, 9)]
    assert piece_spans("½ cup", [f"{SPACE}1", "⁄2", f"{SPACE}cup"]) == [(0, 1), (0, 1), (2, 5)]
    assert piece_spans("I met", [f"{SPACE}I"]) is None
    assert piece_spans("I met", [f"{SPACE}You", f"{SPACE}met"]) is None


def test_a_piece_with_other_text_is_looked_at_and_never_hidden():
    glossary = Glossary((Term("云端", "cloud"),))
    text = "在云端。"
    (term,) = terms_in(text, [SPACE, "在云", "端", "。"], glossary.found_in(text), first=1)
    assert (term.tokens, term.inside) == ((2, 3), (3,))
    (term,) = terms_in("云端好", [SPACE, "云端", "好"], glossary.found_in("云端好"))
    assert (term.tokens, term.inside) == ((1,), (1,))  # not the blank before it


def test_a_translation_is_written_as_the_model_writes_and_in_the_number_of_the_source():
    tickets = Term("ticket", "passagem", target_variants=("passagens",))
    acme, cloud = Term("Acmess", None), Term("cloud", "云", target_variants=("雲",))
    text = "Acmess cloud tickets"

    def written(form):
        return form.replace("ss", "ß")

    found = terms_in(text, [], Glossary((acme, cloud, tickets)).found_in(text), written, languages=("en", "pt"))
    assert [term.targets for term in found] == [("Acmess",), ("云", "雲"), ("paßagens", "paßagem")]
    (literal,) = terms_in("tickets", [], [Literal(0, 7, tickets)], languages=("en", "pt"))
    assert literal.targets == ("passagem", "passagens")  # is written in one way


def test_accepted_translations_are_counted_once_for_each_term():
    two = [SourceTerm("a", (0,), (0,), ("merge request", "pull request")) for _ in range(2)]
    assert kept(two, "A pull request and a merge request") == [True, True]
    assert kept(two, "Pull requests!") == [True, False]
    assert kept(two, "A pull requester") == [False, False]
    numbers = [SourceTerm("a", (0,), (0,), forms) for forms in (("trem", "trens"), ("trens", "trem"))]
    assert kept(numbers, "O trem") == [True, False]  # one term in both numbers


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("pull", None),
        ("Pull request", True),
        ("pull requests", True),
        ("a pull request", True),
        ("pull requester", False),
        ("push", False),
    ],
)
def test_a_spelling_in_progress_is_followed(text, spelled):
    assert SourceTerm("a", (0,), (0,), ("pull request",)).spells(text) is spelled


def test_a_translation_goes_on_where_the_steady_text_ends_in_it():
    term = SourceTerm("x", (0,), (0,), ("Grand Harbour Hotel",))
    texts = ("at the Grand", "at the grand harbour", "Hotel Gran", "grand piano", "", "the Legrand")
    assert [term.begun_by(text) for text in texts] == [*(5, 13, 4, 0, 0, 0)]
    assert not glued("在", "Grand")
    assert glued("DeGrand"[:2], "Grand")


@pytest.mark.parametrize(
    ("text", "begun"),
    [
        ("at 9", True),
        ("at 9:30 a", True),
        ("at 1", True),
        ("at 9:30 p", True),
        ("at", False),
        ("", False),
        ("at 9:30 x", False),
    ],
)
def test_a_time_goes_on_after_its_beginning_or_a_part_of_its_number(text, begun):
    term = SourceTerm("x", (0,), (0,), ("9:30 a.m.",), literal=True, refused=("9:30 p.m.",))
    assert term.is_begun_by(text) is begun


def test_terms_are_spelled_for_their_place(models):
    for language, before, text in (
        ("en", "", "cloud"),
        ("en", "the", "cloud"),
        ("en", "the (", "cloud"),
        ("zh", "我", "张伟"),
    ):
        model = models["zh" if language == "en" else "en"]
        ids = Speller(model.tokenizer, language, model.decoder.can_write).spell(text, before)
        begins = model.tokenizer.target_piece(ids[0]).startswith(SPACE)
        assert begins == (before in ("", "the"))
        assert model.tokenizer.decode(ids) == text


def test_hidden_source_tokens_are_out_of_view(english):
    (ids,) = english.sources("Chang Wei is my friend.", "en", None)
    decoder, start = english.decoder, english.generation.start_token
    known = next(iter(greedy(SearchRequest(decoder, ids, english.generation)))).id
    state = decoder.encode(ids)
    decoder.step(state, start)
    fewer = state.fork()
    decoder.hide(fewer, [0, 2])
    decoder.step(fewer, known)
    row = decoder.attended(fewer)
    assert row is not None
    assert len(row) == len(ids) - 2
    assert float(np.sum(row)) == pytest.approx(1, abs=1e-3)
    first = decoder.step(state, known)
    again = decoder.encode(ids)
    decoder.step(again, start)
    assert np.array_equal(decoder.step(again, known), first)  # the first state is as it was
    fewer = decoder.revealed(fewer)
    decoder.step(fewer, start)
    assert np.array_equal(decoder.step(fewer, known), first)
    row = decoder.attended(fewer)
    assert row is not None
    assert len(row) == len(ids)


def test_the_lines_of_a_translation_name_its_terms():
    from pipeline.media.sinks.jsonl import line, read_event

    event = Translation(1, "zh", "张伟", terms=("Chang Wei", "hotel"), missed_terms=("hotel",))
    assert read_event(json.loads(line(event))) == event


def test_tokens_of_a_given_translation_count_as_certain(english):
    *_, shown, end = english.stream(
        TranslationRequest(SourceSentence(0, "en", "Do you know Chang Wei?"), glossary=BOTH)
    )
    given_by_glossary = [token for token in shown.tokens if shown.text[: token.end].endswith(("张", "张伟"))]
    assert [one.log_probability for one in given_by_glossary] == [0.0, 0.0]
    assert end.guarded >= 2
    assert Token(1, 0.0, last=False).guarded is False


class Refusing:
    """A translator that can write no term."""

    def stream(self, request):
        yield from ()

    def unspellable(self, glossary, target=None):
        return glossary.terms


@pytest.mark.parametrize(("count", "more"), [(20, "term19"), (21, "term19 and 1 more")])
def test_twenty_terms_that_cannot_be_written_are_named(caplog, count, more):
    glossary = Glossary(tuple(Term(f"term{number}", "词") for number in range(count)), ("en", "zh"))
    warn_unspellable(glossary, LanguageConfig("en", ("zh", "en")), {"zh": Refusing(), "en": object()})
    (message,) = caplog.messages
    assert message.startswith(f"the model that translates into zh cannot write the translation of {count} of the")
    assert message.endswith(f", {more}")


def test_the_terms_that_cannot_be_written_are_those_of_the_pair():
    glossary = Glossary((Term("cat", "猫"), Term("Acme", None)), ("en", "zh"))
    languages = LanguageConfig("zh", ("en", "de"))
    assert unspellable(glossary, languages, {"en": Refusing(), "de": Refusing()}) == {
        "en": ("猫", "Acme"),
        "de": ("Acme",),
    }
    assert unspellable(Glossary(), languages, {"en": Refusing()}) == {}
