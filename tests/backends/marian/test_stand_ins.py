"""Letters and signs that the vocabulary of a student lacks: names keep theirs, and other signs stay where they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import load_translation_model
from pipeline.backends.marian.terms.stand_ins import readable
from pipeline.backends.nmt_options import NmtConfig
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.events import SourceSentence
from pipeline.glossary.terms import Glossary, Term

# Names with letters that neither student's vocabulary has.
NAMES = (
    "Wałęsa", "Łukasz", "Paweł", "Stanisław", "Weiß", "Strauß", "Großmann", "Søren", "Jørgen", "Bjørn", "Østergaard",
    "Đorđe", "Nguyễn", "Þóra", "Guðrún", "Hafþór", "Ægir", "Kjærgaard", "Sigurður", "Işık", "Yıldız", "İnönü", "Œdipe",
    "Lefèbvre", "Dvořák", "Škoda", "Žižek", "Čapek", "Müller", "Köhler", "Ångström", "Öcalan", "Ħamrun", "Ceaușescu",
    "Țepeș", "Erdoğan", "Kőszegi", "Hernández", "Peña", "Zoë",
)  # fmt: skip


@pytest.fixture(scope="module")
def students():
    """In fp32: with 8 bits, the wording depends on how a processor rounds."""
    return {
        pair: load_translation_model(*pair.split("-"), NmtConfig(f"firefox/{pair}-tiny", weights="fp32"))
        for pair in ("en-pt", "pt-en")
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pair", "text"), [("en-pt", "Yesterday I met {} at the station."), ("pt-en", "Ontem eu vi {} na estação.")]
)
def test_names_keep_their_letters(students, pair, text):
    model = students[pair]
    made = {name: model.translate(text.format(name)) for name in NAMES}
    near = model.tokenizer.without_unknown_signs
    damaged = {name: each for name, each in made.items() if name not in each and near(name) not in each}
    assert damaged == {}
    assert sum(name in each for name, each in made.items()) >= 38


@pytest.mark.parametrize(
    ("pair", "text", "wanted"),
    [
        ("en-pt", "He wrote Война и мир in 1869.", "Ele escreveu Война и мир em 1869."),
        ("en-pt", "The 🐍 ate the 🐁.", "O 🐍 comeu o 🐁."),
        ("en-pt", "🎉 Happy birthday, Ana! 🎂", "🎉 Feliz aniversário, Ana! 🎂"),
        ("en-pt", "👍", "👍"),
        ("en-pt", "♪ I love you ♪", "♪ Eu te amo ♪"),
        ("en-pt", "The ratio is < 5.", "A proporção é < 5."),
        ("en-pt", "Use {name} here.", "Use {name} aqui."),
        ("en-pt", "I met @anna and #team yesterday.", "Eu conheci @anna e #team ontem."),
        ("pt-en", "👍", "👍"),
        ("pt-en", "O João mora em 東京.", "John lives in 東京."),
    ],
)
def test_signs_stay_where_they_are(students, pair, text, wanted):
    assert students[pair].translate(text) == wanted


@pytest.mark.parametrize(
    "text", [*NAMES, "Война и мир", "a 👍 b", "x < y", "R$ 50", "@a #b ~c ^d {e} \\f", "\u200d\ufe0f"]
)
def test_a_student_reads_no_unknown_token(students, text):
    for model in students.values():
        (source,) = model.sources(f"I see {text} here.", "en", None)
        assert model.tokenizer.unknown_token not in source


def test_a_term_with_letters_that_the_vocabulary_lacks_is_found(students):
    glossary = Glossary((Term("Weiß", "Branco"),))
    *_, made = students["en-pt"].stream(
        TranslationRequest(SourceSentence(0, "en", "I met Mr. Weiß in 東京."), glossary=glossary)
    )
    assert made.terms == ("Weiß",)
    assert "Branco" in made.text
    assert "東京" in made.text


@given(st.text("abÉłß東😀@{}.,!\"' 0Q7\n€", max_size=30))
def test_what_stands_for_words_gives_the_text_again(text):
    read, words = readable(text, lambda each: each.replace("ł", "l"), lambda each: not set(each) & set("東😀@{}€"))
    for word in reversed(words):
        read = read[: word.start] + word.term.targets[0] + read[word.end :]
    assert read.replace("ł", "l") == text.replace("ł", "l")


def test_a_code_that_no_word_is_stands_for_several_words_in_a_row():
    read, words = readable("Q7 sees 東京 😀 now 東", str, str.isascii)
    assert read == "Q7 sees Q8 now Q9"
    assert [(word.term.source, word.term.target) for word in words] == [("Q8", "東京 😀"), ("Q9", "東")]
