"""Short texts: greetings, thanks, answers, orders and questions of up to four words, which students have seen rarely alone."""

import re
from collections import Counter
from pathlib import Path

import pytest

from pipeline import load_translation_model
from pipeline.backends.marian.model_text import _is_short
from pipeline.backends.marian.preparation import ALL_RULES, TextRule, written
from pipeline.backends.marian.search.sentence_text import translated
from pipeline.backends.marian.text_translation import TextTranslation
from pipeline.backends.nmt_options import NmtConfig
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.events import SourceSentence, TargetText
from pipeline.glossary.terms import Glossary, Term
from pipeline.languages.rules import rules


@pytest.fixture(scope="module")
def students():
    return {
        pair: load_translation_model(*pair.split("-"), NmtConfig(f"firefox/{pair}-tiny")) for pair in ("en-pt", "pt-en")
    }


def short_texts(pair):
    """Each text, and the pattern of what is accepted of it without marks, apostrophes and capitals."""
    table = Path(__file__).with_name(f"short_{pair.replace('-', '_')}.tsv").read_text("utf-8")
    return [tuple(line.split("\t")) for line in table.splitlines()]


def is_accepted(made, pattern):
    bare = " ".join(re.findall(r"\w+", re.sub("['’]", "", made.casefold())))
    return re.fullmatch(pattern, bare) is not None


@pytest.mark.parametrize("part", [pytest.param(5, id="a fifth"), pytest.param(1, id="all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("pair", ["en-pt", "pt-en"])
def test_nine_of_ten_short_texts_are_translated_right(students, pair, part):
    texts = short_texts(pair)[::part]
    made = {text: students[pair].translate(text) for text, _ in texts}
    wrong = {text: made[text] for text, pattern in texts if not is_accepted(made[text], pattern)}
    assert len(texts) >= 150 // part
    assert len(wrong) <= len(texts) // 10, wrong


@pytest.mark.parametrize(
    ("pair", "text", "wanted"),
    [
        ("en-pt", "Thank you.", "Obrigado."),
        ("en-pt", "Congratulations!", "Parabéns!"),
        ("en-pt", "Bye!", "Tchau!"),
        ("en-pt", "Thank you. Thank you. Goodbye.", "Obrigado. Obrigado. Adeus."),
        ("en-pt", "Mm-hmm, I agree.", "Eu concordo."),
        ("en-pt", "Uh-huh.", "Aham."),
        ("pt-en", "Obrigada.", "Thank you."),
        ("pt-en", "Tá.", "Okay."),
        ("pt-en", "Hã-hã.", "Uh-huh."),
    ],
)
def test_a_short_text_is_translated_without_what_often_follows_it(students, pair, text, wanted):
    assert students[pair].translate(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Você fala inglês?", "Do you speak English?"),
        ("Vocês concordam?", "Do you agree?"),
        ("Alguém quer café?", "Does anyone want coffee?"),
    ],
)
def test_a_short_question_stays_one(students, text, wanted):
    assert students["pt-en"].translate(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Chove muito aqui?", "Does it rain a lot here?"),
        ("Ken joga tênis?", "Does Ken play tennis?"),
        ("Mais café?", "More coffee?"),
        ("Ele ganha mil e quinhentos reais.", "He earns 1,500 reais."),
    ],
)
def test_what_has_lost_its_form_or_person_is_translated_again(students, monkeypatch, text, wanted):
    model = students["pt-en"]
    assert model.translate(text) == wanted
    monkeypatch.setattr(model, "rules", ALL_RULES - {TextRule.RETRIES})
    assert (model.translate(text) == wanted) is (text == "Mais café?")


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("Você quer sair, Tom?", True),
        ("Você sabe, quer sair?", False),
        ("Você quer sair, né?", False),
        ("Onde está, Tom?", False),
    ],
)
def test_a_question_to_somebody_by_name_is_translated_again(text, again):
    assert bool(rules("pt").retries["en"][0].source.match(text)) is again


@pytest.mark.parametrize(("text", "stated"), [("Tom and Mary help themselves?", True), ("A shelf?", False)])
def test_a_question_of_themselves_without_its_form_is_a_statement(text, stated):
    assert bool(rules("en").stated.match(text)) is stated


def test_a_short_sentence_follows_the_one_before_it(students):
    assert students["en-pt"].translate("Turn right. Go straight. Stop.") == "Vire à direita. Vá em frente. Pare."
    (first, second) = students["en-pt"].parts("Turn right. Go straight.", "en", "pt", complete=True, neighbours=True)
    assert first.begun
    assert second.begun


def test_the_sentence_before_tells_who_is_meant(students):
    model = students["pt-en"]
    sister, brother = (
        TextTranslation(model, "pt", "en").translate(f"{who} ligou. Está cansad{end}.")
        for who, end in (("Minha irmã", "a"), ("Meu irmão", "o"))
    )
    assert sister.endswith("She's tired.")
    assert brother.endswith("He's tired.")
    before = [("Minha irmã ligou.", "My sister called.")]
    (known,) = model.parts("Está cansada.", "pt", "en", complete=True, neighbours=True)
    long = [("Minha irmã " + 20 * "muito " + "alta ligou.", "My sister called.")]
    cut = [("Minha irmã ligou ontem à noite e disse que não vem ao jantar.", "My sister called last night.")]
    for given in (long, cut):
        assert model.parts("Está cansada.", "pt", "en", complete=True, neighbours=True, before=given) == [known]
    for text in ("Choveu.", "Estou cansada."):  # one word; the subject is known
        (alone,) = model.parts(text, "pt", "en", complete=True, neighbours=True)
        assert model.parts(text, "pt", "en", complete=True, neighbours=True, before=before) == [alone]
    (after,) = model.parts("Está cansada.", "pt", "en", complete=True, neighbours=True, before=before)
    assert after.begun[: len(known.begun)] == known.begun != after.begun


@pytest.mark.slow
def test_the_sentence_before_mends_more_than_it_harms(students):
    model, right = students["pt-en"], Counter[tuple[str, bool]]()
    table = Path(__file__).with_name("dialogues_pt_en.tsv").read_text("utf-8")
    for kind, first, second, reference, pattern in (line.split("\t") for line in table.splitlines()):
        before = ((first, model.translate(first)),)
        for follows in (False, True):
            said = SourceSentence(0, "pt", second)
            made = translated(model.stream(TranslationRequest(said, before=before * follows)))
            right[kind, follows] += made == reference or re.search(pattern, made, re.IGNORECASE) is not None
    assert right["related", True] >= right["related", False] + 5
    assert right["unrelated", True] >= right["unrelated", False] - 1


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("pt", "Está cansada.", True),
        ("pt", "Não, já não trabalha.", True),
        ("pt", "Sim, são.", True),
        ("pt", "Estão cansados.", True),
        ("pt", "Dá aula lá.", True),
        ("pt", "Fui eu.", True),
        ("pt", "Fui ao mercado.", False),
        ("pt", "Tive fome.", False),
        ("pt", "Boa noite.", False),
        ("pt", "Estou cansada.", False),
        ("pt", "Ela está cansada.", False),
        ("pt", "Ninguém sabe.", False),
        ("pt", "Seu pai ligou.", False),
        ("pt", "Perdi o trem.", False),
        ("en", "It is old.", False),
        ("es", "Está cansada.", False),
    ],
)
def test_the_sentence_before_is_for_sentences_whose_subject_it_tells(language, text, expected):
    assert bool(rules(language).goes_on.match(text)) is expected


@pytest.mark.parametrize(
    ("after", "other", "taken"),
    [(-0.5, -1.0, True), (-0.7, -1.0, False), (-0.02, -0.08, True), (-0.04, -0.08, False), (-0.96, -1.0, False)],
)
def test_a_text_of_several_words_has_a_neighbour_if_it_is_likelier_by_the_margin_and_the_share(
    students, monkeypatch, after, other, taken
):
    model, text = students["en-pt"], "Your order is ready."
    monkeypatch.setattr(model, "rules", ALL_RULES - {TextRule.NEIGHBOUR})
    alone = model.translate(text)
    monkeypatch.setattr(model, "rules", ALL_RULES)
    likelihoods = iter([after, other])
    monkeypatch.setattr("pipeline.backends.marian.search.steps._likelihood", lambda tokens: next(likelihoods))
    assert (model.translate(text) != alone) is taken


@pytest.mark.parametrize(
    ("pair", "text", "margin"),
    [
        ("en-pt", "Sorry.", None),
        ("en-pt", "We've arrived.", 0.05),
        ("pt-en", "Ninguém sabe.", None),
        ("pt-en", "Ninguém sabe disso.", 0.0),
    ],
)
def test_one_word_and_two_of_portuguese_always_have_a_neighbour(students, pair, text, margin):
    (part,) = students[pair].parts(text, *pair.split("-"), complete=True, neighbours=True)
    assert part.begun
    assert part.margin == margin


def test_a_question_has_a_neighbour_in_english_only(students):
    assert students["en-pt"].translate("What's it like in Australia?") == "Como é na Austrália?"
    (english,) = students["en-pt"].parts("Do you agree?", "en", "pt", complete=True, neighbours=True)
    (portuguese,) = students["pt-en"].parts("Vocês concordam?", "pt", "en", complete=True, neighbours=True)
    assert english.begun
    assert not portuguese.begun


@pytest.mark.parametrize(("after", "is_said"), [(-0.05, False), (-0.2, True)])
def test_what_a_student_goes_on_with_from_other_texts_is_not_said(students, monkeypatch, after, is_said):
    likelihoods = iter([after, 0.0])
    monkeypatch.setattr("pipeline.backends.marian.search.steps._likelihood", lambda tokens: next(likelihoods))
    assert (students["en-pt"].translate("Thank you for coming.") != "Obrigado por vir.") is is_said


def test_a_translation_begins_with_a_capital_if_its_source_does(students):
    assert students["en-pt"].translate("It lasted 1:45.") == "Durou 1:45."
    assert students["pt-en"].translate("O pH é 7,365.").startswith(("The pH", "pH"))


def test_the_neighbour_of_a_short_text_is_not_shown(students):
    events = list(students["en-pt"].stream(TranslationRequest(SourceSentence(0, "en", "Thank you."))))
    shown = [event.text for event in events if isinstance(event, TargetText)]
    assert all("Obrigado.".startswith(text) for text in shown)
    assert shown[-1] == events[-1].text == "Obrigado."
    assert (
        shown
        == [
            event.text for event in students["en-pt"].stream(TranslationRequest(SourceSentence(1, "en", "Thank you.")))
        ][:-1]
    )


def test_a_short_text_keeps_the_terms_of_a_glossary(students):
    *_, made = students["en-pt"].stream(
        TranslationRequest(
            SourceSentence(0, "en", "Berlin is old."), glossary=Glossary((Term("Berlin", "Nova Lisboa"),))
        )
    )
    assert made.text == "Nova Lisboa é antiga."
    assert made.terms == ("Berlin",)


def test_a_draft_that_ends_like_a_sentence_has_a_neighbour_too(students):
    assert (
        translated(students["en-pt"].stream(TranslationRequest(SourceSentence(0, "en", "Thank you."), draft=True)))
        == "Obrigado."
    )


@pytest.mark.parametrize(
    ("language", "said", "left"),
    [
        ("en", "Mm-hmm, I agree.", "I agree."),
        ("en", "So, mm-hmm, we go on.", "So, we go on."),
        ("en", "Yes, hmm-hmm.", "Yes."),
        ("en", "Uh-huh.", "Uh-huh."),
        ("en", 'She said "mm-hmm" and "um".', 'She said "mm-hmm" and "um".'),
        ("pt", "Hã-hã, eu vou.", "eu vou."),
    ],
)
def test_sounds_with_a_hyphen_are_left_out_or_stay_whole(language, said, left):
    assert written(said, language, complete=True) == left


@pytest.mark.parametrize(
    ("text", "short", "in_all"),
    [
        ("Yes.", True, True),
        ("I do not know.", True, True),
        ("I really do not know.", True, True),
        ("I really do not know it.", False, False),
        ("Do you know?", False, True),
        ("I do", False, False),  # in progress
        ("I do,", False, False),
        ("314!", False, False),
        ("", False, False),
    ],
)
def test_a_statement_of_five_words_is_short_and_so_is_a_question_where_it_keeps_its_form(text, short, in_all):
    assert _is_short(text) is short
    assert _is_short(text, questions=True) is in_all
