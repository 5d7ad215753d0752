"""Numbers, codes and addresses: found in the source, and written as they are, or as the language writes them, in the translation."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import MarianModel, load_translation_model
from pipeline.backends.marian.decode.generation import SearchRequest
from pipeline.backends.marian.search.beams import greedy
from pipeline.backends.marian.terms.clock_times import time_forms, times
from pipeline.backends.marian.terms.literals import literals
from pipeline.backends.marian.terms.source_terms import SourceTerm, Speller, kept
from pipeline.backends.marian.terms.term_repair import Repair
from pipeline.backends.marian.terms.term_search import Wording
from pipeline.backends.nmt_options import NmtConfig
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.events import SourceSentence
from pipeline.glossary.terms import Glossary, Term
from tests.backends.marian.literal_lines import lines, sentences
from tests.conftest import SHIPPED_TRANSLATORS


@pytest.fixture(scope="module")
def models():
    return {
        source: MarianModel.load(SHIPPED_TRANSLATORS[f"demo-{source}-{target}"], NmtConfig(cached_sentences=0))
        for source, target in (("en", "zh"), ("zh", "en"))
    }


def preferred(text, target):
    source = "en" if text.isascii() else "zh"
    return [(text[match.start : match.end], match.term.targets[0]) for match in literals(text, target, source)]


@pytest.mark.parametrize(
    ("text", "target", "found"),
    [
        ("Coffee was $4.25 for 12 of us.", "zh", [("$4.25", "4.25美元"), ("12", "12")]),
        ("A budget of $2.5 million, 8 billion people", "zh", [("$2.5 million", "250万美元"), ("8 billion", "80亿")]),
        ("600,000 of 1,250", "zh", [("600,000", "60万"), ("1,250", "1250")]),
        ("in 1998, on the 22nd", "zh", [("1998", "1998"), ("22nd", "22")]),
        ("call 555-1234 or +49 123 4567", "zh", [("555-1234", "555-1234"), ("+49 123 4567", "+49 123 4567")]),
        ("www.example.com or a.b@example.org.", "zh", [(one, one) for one in ("www.example.com", "a.b@example.org")]),
        ("COVID-19 in B2B, A4", "zh", [("COVID-19", "COVID-19"), ("B2B", "B2B"), ("A4", "A4")]),
        ("2021年有420万包裹，1.2万人", "en", [("2021", "2021"), ("420万", "4.2 million"), ("1.2万", "12,000")]),
        ("8月30日，19号，10号线，12号楼", "en", [("30日", "30th"), ("19号", "19th"), ("10", "10"), ("12", "12")]),
        ("10000日元", "en", [("10000", "10,000")]),
        ("82000美元和$20", "en", [("82000", "82,000"), ("$20", "$20")]),
        ("2.5 million, 19 people, 3,500 and 1998", "de", [("3,500", "3.500"), ("1998", "1998")]),
        (
            "$1,250.50 and 19.99, 42.195",
            "pt",
            [("$1,250.50", "1.250,50 dólares"), ("19.99", "19,99"), ("42.195", "42,195")],
        ),
        (
            "$1.153 billion and Python 3.11 and iOS 17.4",
            "pt",
            [("$1.153 billion", "1,153"), ("3.11", "3.11"), ("17.4", "17.4")],
        ),
        (
            "report_v2.pdf at example.com.br, 3.11.7",
            "pt",
            [(one, one) for one in ("report_v2.pdf", "example.com.br", "3.11.7")],
        ),
        ("1998 and www.example.com", "ar", [("www.example.com", "www.example.com")]),
        (
            "In 2021 300 people, 030 1234 5678",
            "zh",
            [("2021", "2021"), ("300", "300"), ("030 1234 5678", "030 1234 5678")],
        ),
        ("会议10点30分开始，60分钟，90年代，10月", "en", [("10点30分", "10:30"), ("60", "60")]),
        ("我的手机号码是13800138000。", "en", [("13800138000", "13800138000")]),
        ("from 2021-2022 on 9/11 in the 1990s, 3 to 1, 35万6千", "zh", []),
        (
            "at 10:30, 6 PM, at 9 in the morning",
            "zh",
            [("10:30", "10点30分"), ("6 PM", "晚上6点"), ("9 in the morning", "上午9点")],
        ),
        (
            "at 11:30 a.m., at 12:30 p.m., at 1:30 p.m.",
            "zh",
            [("11:30 a.m.", "上午11点30分"), ("12:30 p.m.", "中午12点30分"), ("1:30 p.m.", "下午1点30分")],
        ),
        ("13800138000 on 2024-03-05 in 12A", "zh", [(one, one) for one in ("13800138000", "2024-03-05", "12A")]),
        ("2,345,000, 23,456,000", "zh", [("2,345,000", "234.5万"), ("23,456,000", "23456000")]),
    ],
)
def test_what_must_be_in_the_translation(text, target, found):
    assert preferred(text, target) == found


@pytest.mark.parametrize(
    ("text", "target", "translations"),
    [
        ("12 of 1,250", "zh", ["1250个中的12个", "1,250, 12"]),
        ("$600,000", "zh", ["600000美元", "60万块"]),
        ("250万", "en", ["2,500,000", "2.5 million"]),
        ("3.50 and 1,234.56", "de", ["3,50 und 1.234,56", "3,5 und 1234,56"]),
        ("1,250,000", "fr", ["1\u202f250\u202f000", "1 250 000"]),
        ("600,000", "ja", ["60万人"]),
        ("63.4美元", "en", ["$63.40"]),
    ],
)
def test_other_ways_to_write_a_literal_are_accepted(text, target, translations):
    terms = [SourceTerm(match.term.source, (), (), match.term.targets) for match in literals(text, target)]
    assert terms
    for translation in translations:
        assert all(kept(terms, translation)), translation


def test_of_many_literals_the_first_eight_are_looked_at():
    text = " and ".join(map(str, range(21, 40)))
    assert [literal.term.source for literal in literals(text, "zh")] == [str(number) for number in range(21, 29)]


@pytest.mark.parametrize(
    ("text", "accepted", "refused"),
    [
        ("1,234,567,890,123", True, False),  # may be written without separators
        ("1,234,567,890,123,456", False, False),  # a serial number may not
        ("see example.com", False, True),
    ],
)
def test_what_else_is_accepted_and_refused(text, accepted, refused):
    (literal,) = literals(text, "zh")
    assert (literal.term.source.replace(",", "") in literal.term.targets[:2]) == accepted or "," not in text
    assert literal.refused == (("example.com-",) if refused else ())


def test_a_number_whose_separator_is_unknown_has_no_value():
    assert literals("3.500", "en", "sv")[0].term.targets == ("3.500", "3,500")
    assert "3.5" in literals("3.500", "en", "en")[0].term.targets


def test_a_date_may_have_its_day_and_month_in_the_other_order():
    assert literals("9/11/2001", "zh")[0].term.targets == ("9/11/2001", "11/9/2001")


def test_a_time_has_the_name_of_noon_if_it_is_known_to_be_noon():
    forms = {text: literals(text, "zh")[0].term.targets for text in ("at 12 p.m.", "at 12:00", "at 12:30 p.m.")}
    assert {text: "中午" in each for text, each in forms.items()} == {
        "at 12 p.m.": True,
        "at 12:00": False,
        "at 12:30 p.m.": False,
    }


@given(
    st.text("0123456789,.-+$€:/ @wW.abZ万亿千百月日号\n", max_size=80), st.sampled_from(["en", "zh", "de", "ar", "und"])
)
def test_any_text_has_literals_in_order_that_do_not_overlap(text, target):
    found = literals(text, target)
    bounds = [place for match in found for place in (match.start, match.end)]
    assert bounds == sorted(bounds)
    assert len(found) <= 8
    for match in found:
        assert all(form.strip() for form in match.term.targets)


def translated(model, text, glossary=None):
    *_, shown, end = model.stream(
        TranslationRequest(SourceSentence(0, model.languages[0] or "", text), glossary=glossary)
    )
    assert shown.text == shown.steady_text == end.text
    return end


@pytest.mark.parametrize(
    ("source", "text", "wanted"),
    [
        ("en", "The coffee was $4.25 and the sandwich was $12.", ["4.25美元", "12美元"]),
        ("en", "The budget is $2.5 million.", ["250万"]),
        ("en", "Please call 555-1234.", ["555-1234"]),
        ("en", "Visit www.example.com for details.", ["www.example.com"]),
        ("en", "Send it to anna.smith@example.com.", ["把它寄到anna.smith@example.com"]),
        ("en", "Let's meet at 2:30.", ["2点30分"]),
        ("en", "Please call me at 3 p.m.", ["请下午3点给我打电话"]),
        ("zh", "请在早上6点叫醒我。", ["at 6 a.m."]),
        ("zh", "我的手机号码是13800138000。", ["number is 13800138000."]),
        ("en", "We were founded in 1998, and today we make parts for 14 car brands.", ["1998", "14"]),
        ("zh", "我的地址是柳树巷27号5B，电梯密码4091。", ["27", "4091"]),
        ("zh", "嗯，我想想，上次审计是2021年，还是2022年？", ["2021", "2022"]),
        ("zh", "价格是$20。", ["$20"]),
    ],
)
def test_a_translation_has_the_literals_of_its_source(models, source, text, wanted):
    made = translated(models[source], text)
    assert [one for one in wanted if one not in made.text] == []
    assert made.terms == made.missed_terms == ()  # those of glossaries


def test_a_literal_is_written_once(models):
    """It takes the place of the digits that the model wrote for it."""
    for text, digits in (
        ("In this city alone, we're talking about 600,000 people.", "60"),
        ("The carpet costs $5,800.", "5800"),
    ):
        made = translated(models["en"], text).text
        assert "".join(filter(str.isdigit, made)) == digits, made


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("en", "My room number is 212."),
        ("en", "The coffee was $4.25 and the sandwich was $12."),
        ("zh", "它建于1784年，1855年改成茶馆。"),
    ],
)
def test_a_wrong_number_is_not_shown(models, source, text):
    model = models[source]
    texts = [each.text for each in model.stream(TranslationRequest(SourceSentence(0, source, text)))]
    assert all(after.startswith(before) for before, after in pairwise(texts))
    assert len(texts) > 5, "one for each token"
    literal = model.parts(text, source, model.languages[1])[0].terms[0]
    search = greedy(SearchRequest(model.decoder, model.sources(text, source, None)[0], model.generation))
    assert not literal.spells(model.tokenizer.decode([token.id for token in search])), (
        "the search alone writes it wrong"
    )


def test_terms_of_a_glossary_that_have_digits_are_the_glossarys(models):
    made = translated(models["en"], "We fly with Flight 1998 tomorrow.", Glossary((Term("Flight 1998", "空客航班"),)))
    assert "空客航班" in made.text
    assert "1998" not in made.text
    assert made.terms == ("Flight 1998",)


def test_a_glossary_does_not_change_how_numbers_are_searched(models):
    speller = Speller(models["en"].tokenizer, "zh", models["en"].decoder.can_write)
    term, literal = SourceTerm("Berlin", (1,), (1,), ("柏林",)), SourceTerm("212", (2,), (2,), ("212",), literal=True)
    of_glossary = Wording((term, literal), speller).of_glossary
    assert of_glossary.terms == (term,)
    assert Wording((literal,), speller).of_glossary is None


def test_sentences_without_literals_have_no_terms(models):
    """So their tokens are those of the search."""
    text = "We are meeting at ten o'clock."
    assert literals(text, "zh") == ()
    assert [part.terms for part in models["en"].parts(text, "en", "zh")] == [()]


@pytest.mark.parametrize(
    ("pair", "said", "kept"),
    [
        ("en-pt", "The population is 13,800,138,000.", "13.800.138.000"),
        ("en-pt", "He paid £3,000 for it.", "3.000 libras por isso"),
        ("en-pt", "In 2021-2022 sales fell by 7.25%.", "2021-2022, as vendas caíram 7,25%"),
        ("pt-en", "O preço é R$ 1.250,50.", "1,250.50"),
        ("pt-en", "A reunião é às 9h30.", "at 9:30."),
        ("pt-en", "Custa 19,99 €.", "19.99 euros"),
        ("en-pt", "We will meet at 11:45 PM in front of the station.", "às 23h45 em"),
        ("en-pt", "The train to Berlin leaves at half past nine.", "às 9:30."),
        ("en-pt", "The meeting is on Thursday at 2.30.", "às 2:30."),
        ("pt-en", "O jantar é às sete e meia da noite.", "7:30 p.m."),
        (
            "en-pt",
            "Read https://example.com/~anna/notes before the meeting.",
            "https://example.com/~anna/notes antes da reunião.",
        ),
    ],
)
def test_a_student_keeps_literals_in_the_way_the_language_writes_them(pair, said, kept):
    source, target = pair.split("-")
    model = load_translation_model(source, target, NmtConfig(f"firefox/{pair}-tiny"))
    assert kept in model.translate(said)


def test_currency_signs_that_the_vocabulary_lacks_are_read_as_words():
    model = load_translation_model("en", "pt", NmtConfig("firefox/en-pt-tiny"))
    said = "€50, £1,250.50, ¥7,000, €2.5 million, -€3, 30€, in € and $5."
    (part,) = model.parts(said, "en", "pt")
    read = "50 euros, 1,250.50 pounds, 7,000 yen, 2.5 million euros, -3 euros, 30 euros, in euros and $5."
    assert list(part.ids) == model.tokenizer.encode(read)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("source", "target"), [("en", "pt"), ("pt", "en")])
def test_students_keep_99_percent_of_the_literals(source, target, seed):
    """In their kind and with the target language's conventions, once."""
    model = load_translation_model(source, target, NmtConfig(f"firefox/{source}-{target}-tiny"))
    count = 40 if seed == 1 else 200
    wrong = [
        (line.text, made)
        for line in lines(source, target, count, seed)
        if not line.is_right(made := model.translate(line.text))
    ]
    assert len(wrong) <= count // 100, wrong


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("source", "target"), [("en", "pt"), ("pt", "en")])
def test_students_lose_no_word_for_a_literal(source, target, count):
    """Each literal is in the translation once, no other number is, and nothing follows the end of the sentence."""
    model = load_translation_model(source, target, NmtConfig(f"firefox/{source}-{target}-tiny"))
    made = {each.text: (each, model.translate(each.text)) for each in sentences(source, target, count)}
    wrong = {text: translation for text, (each, translation) in made.items() if not each.is_right(translation)}
    assert len(wrong) <= count // 100 + 1, wrong


@pytest.mark.parametrize(
    ("pair", "text", "wanted"),
    [
        ("en-pt", "We sold 31,536,000 tickets.", "Nós vendemos 31.536.000 bilhetes."),
        ("en-pt", "12:30", "12h30"),
        ("en-pt", "$1,250.50", "1.250,50 dólares"),
        ("en-pt", "anna@example.com", "anna@example.com"),
        ("en-pt", "-12.5", "-12,5"),
        ("en-pt", "It costs €50 and £45.", "Custa 50 euros e 45 libras."),
        ("en-pt", "I was born in nineteen eighty four.", "Eu nasci em 1984."),
        ("en-pt", "My number is five five five one two three four.", "Meu número é 5551234."),
        ("en-pt", "We raised €2.5 million last year.", "Nós levantamos 2,5 milhões de euros no ano passado."),
        ("en-pt", "Pay in €, the ¥ is weak.", "Pague em euros, o iene é fraco."),
        ("pt-en", "Custa 50 € e 45 £.", "It costs 50 euros and 45 pounds."),
        ("pt-en", "12h30 em Lisboa.", "12:30 in Lisbon."),
        ("pt-en", "Nos anos 1960 tudo mudou.", "In the 1960s everything changed."),
        ("pt-en", "No século 19, Lisboa mudou.", "In the 19th century, Lisbon changed."),
        ("pt-en", "Nasci no dia 21.", "I was born on the 21st."),
        ("pt-en", "São 24 horas de viagem.", "It's 24 hours of travel."),
        ("pt-en", "Das 8h30 às 17h.", "From 8:30 a.m. to 5 p.m."),
        ("pt-en", "Leia em publico.pt/ciencia.", "Read in publico.pt/ciencia."),
        ("en-pt", "It's at sapo.pt/noticias.", "Está no sapo.pt/noticias."),
        ("en-pt", "The loan is ¥5,000,000.", "O empréstimo é de 5.000.000 de ienes."),
        ("en-pt", "Version 2.10 is out.", "A versão 2.10 está fora."),
        ("pt-en", "A temperatura caiu para menos 12,5 graus.", "The temperature dropped to -12.5 degrees."),
    ],
)
def test_literals_take_the_place_of_what_was_written_for_them(pair, text, wanted):
    model = load_translation_model(*pair.split("-"), NmtConfig(f"firefox/{pair}-tiny"))
    assert model.translate(text) == wanted


@pytest.mark.parametrize(
    ("accepted", "text", "count"),
    [
        ("exemplo.com", "escreva para ana@exemplo.com ou visite exemplo.com.", 1),
        ("234.567", "1.234.567 e 234.567.", 1),
        ("$300", "R$300 or $300", 1),
    ],
)
def test_a_literal_is_no_part_of_a_longer_one(accepted, text, count):
    assert len(SourceTerm("", (), (), (accepted,), literal=True).found_in(text)) == count


@pytest.mark.parametrize(
    ("language", "text", "found"),
    [
        ("en", "We meet at 9:30 a.m., 6PM, at 12 am and at 14:30.", [("9:30 a.m.", 9, 30), ("6PM", 18, 0), ("12 am", 0, 0), ("14:30", 14, 30)]),
        ("en", "at 2.30, by 2.30", [("2.30", 2, 30)]),
        ("en", "I take 2 in the morning, 3.5 at night and 3 am; at 9 at night.", [("3 am", 3, 0), ("9 at night", 21, 0)]),
        ("pt", "Aberto 24h, dura 2h30; às 9h30, às 9 da noite, das 14h, às 7:20.", [("9h30", 9, 30), ("9 da noite", 21, 0), ("14h", 14, 0), ("7:20", 7, 20)]),
        ("pt", "Entre 12h30 e 14h, 15h, um filme de 1h45; 7h15.", [("12h30", 12, 30), ("14h", 14, 0), ("7h15", 7, 15)]),
        ("zh", "早上6点半、晚上12点、3点建议，13:05", [("早上6点半", 6, 30), ("晚上12点", 0, 0), ("13:05", 13, 5)]),
        ("de", "um 9:30 Uhr, 25:10, 1:2", [("9:30", 9, 30)]),
    ],
)  # fmt: skip
def test_times_of_day(language, text, found):
    assert [(text[time.start : time.end], time.hour, time.minute) for time in times(text, language)] == found


@pytest.mark.parametrize(
    ("language", "text", "target", "right", "wrong"),
    [
        ("en", "at 9:30 a.m.", "pt", ["às 9h30", "às 9:30 da manhã"], ["às 9h30 da noite", "às 21h30", "às 9:30 p.m."]),
        ("en", "at 9:30 p.m.", "pt", ["às 21h30", "às 9:30 da noite"], ["às 9h30", "às 9:30 PM", "às 9:30 da manhã"]),
        ("pt", "às 9h30", "en", ["at 9:30"], ["at 9:30 p.m.", "at 9:30 in the evening", "at 9:30 AM", "at 19:30"]),
        ("pt", "às 22h", "en", ["at 10 p.m.", "at 22:00", "at 10 at night"], ["at 10", "at 10 a.m."]),
        ("pt", "às 0h30", "en", ["at 12:30 a.m.", "at 0:30"], ["at 12:30", "at 12:30 p.m."]),
        ("zh", "早上6点", "en", ["at 6 a.m.", "at 6am", "at 6 in the morning"], ["at 6 p.m.", "at 6"]),
        ("en", "at 2 p.m.", "zh", ["下午2点", "下午2点钟", "14:00"], ["晚上2点半", "上午2点", "2点"]),
        ("en", "at 9:30 p.m.", "de", ["um 21:30 Uhr", "um 9.30 Uhr abends"], ["um 19:30 Uhr"]),
    ],
)  # fmt: skip
def test_ways_to_write_a_time(language, text, target, right, wrong):
    (match,) = literals(text, target, language)
    (time,) = times(text, language)
    assert match.term.targets[0] == time_forms(time, target)[0][0]
    term = SourceTerm(match.term.source, (), (), match.term.targets, literal=True, refused=match.refused)
    assert [one for one in right if not kept([term], one)[0]] == []
    assert [one for one in wrong if kept([term], one)[0]] == []


@pytest.mark.parametrize(
    ("text", "known"),
    [("at 0:30", True), ("at 14:30", True), ("at 9:30 p.m.", True), ("at 9:30", False), ("at 12:30", False)],
)
def test_some_times_say_which_half_of_the_day_is_meant(text, known):
    assert [time.known for time in times(text, "en")] == [known]


def test_a_long_list_of_literals_that_cannot_be_written_is_given_up(monkeypatch):
    model = load_translation_model("en", "pt", NmtConfig("firefox/en-pt-tiny", cached_sentences=0))
    tried = []
    monkeypatch.setattr(Repair, "_written", lambda self, tokens, term: iter(tried.append(term.name) or ()))
    model.translate(f"Write to {', '.join(f'a{number}@b.com' for number in range(101, 120))}.")
    assert len(tried) == 2


@pytest.mark.parametrize(
    ("translation", "looked_at", "mended"),
    [
        ("314号和999号房间是空的。", {"314": 0.9, "999": 0.3}, "314号和275号房间是空的。"),
        ("314号和999号房间是空的。", {"314": 0.9, "999": 0.1}, None),  # the model does not look at it there
        ("314号房间是空的。", {"314": 0.9}, None),  # the place of the other number
        ("888号和999号房间是空的。", {"888": 0.3, "999": 0.9}, "888号和275号房间是空的。"),
    ],
)
def test_a_number_takes_the_place_of_what_was_written_for_it_and_of_no_other(models, translation, looked_at, mended):
    assert mended_by(models["en"], "Rooms 314 and 275 are free.", "275", translation, looked_at) == mended


def test_a_time_that_ends_with_a_full_stop_ends_a_sentence_with_one(models):
    found = mended_by(models["zh"], "我们早上9点半见面。", "早上9点半", "We meet at 8:15.", {"8:15": 0.9})
    assert found == "We meet at 9:30 a.m."


def mended_by(model, text, name, translation, looked_at):
    """A translation with the literal of this name in its place. ``looked_at``: the attention of what is written so."""
    source, target = model.languages
    (part,) = model.parts(text, source, target, complete=True)
    wording, speller = model.wording(part.terms, target), model.speller(target)
    (term,) = (term for term in part.terms if term.name == name)
    ids = [*speller.spell(translation), model.generation.end_token]
    shares, written = np.zeros(len(ids)), ""
    for at, token in enumerate(ids):
        written += speller.piece(token)
        begun = next(
            (one for one in looked_at if written.endswith(tuple(one[:n] for n in range(1, len(one) + 1)))), None
        )
        shares[at] = looked_at[begun] if begun else 0.0
    repair = Repair(SearchRequest(model.decoder, part.ids, model.generation), wording, lambda: None)
    found = repair._mended(SimpleNamespace(term=term, ids=ids, shares=shares))
    return None if found is None else speller.text([*ids[: found[0]], *found[1], *ids[found[2] :]])
