"""Labels of sounds and speakers in subtitles: where they are, and what becomes of them."""

import pytest

from pipeline.documents.labels import labels, translated_label


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("[door slams]", ["door slams"]),
        ("<i>(he sighs)</i>", ["he sighs"]),
        ("JOHN: [sighs] No. [laughs]", ["sighs", "laughs"]),
        ("- [sighs] [laughs] ♪ [music] ♪", ["sighs", "laughs", "music"]),
        ("Yes. [a door] No.", ["a door"]),
        ("I do [sighs] not know.", []),  # a sentence goes on around it
        ("(sighs) No.", ["sighs"]),
        ("(Berlin) is large.", []),  # in round brackets, what is not in the table is text
        ("He left. (He was late.)", []),
        ("[He was late.]", []),
    ],
)
def test_labels_are_at_the_ends_of_sentences(text, inside):
    assert [text[start:end] for start, end in labels(text, ("en", "pt"))] == inside


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("gasps", "ofega"),
        ("Gasps", "Ofega"),
        ("DOOR SLAMS", "PORTA BATE"),
        ("♪ soft music ♪", "♪ música suave ♪"),
        ("♪", "♪"),
        ("gargles", "gargles"),  # a word alone is kept, since it would be read as another
        ("London", "Outra coisa"),
        ("MAN SHOUTS NAMES", "OUTRA COISA"),
        ("doorbell jingles", "doorbell jingles"),  # half of it is left over
        ("DOORBELL JINGLES", "DOORBELL JINGLES"),
        ("Mary is late", "Outra coisa"),
    ],
)
def test_a_label_is_translated_by_the_table_or_whole_or_kept(label, expected):
    def translation(text):
        return "doorbell anéis" if text.startswith("doorbell") else "outra coisa"

    assert translated_label(label, translation, ("en", "pt")) == expected


def test_the_table_is_read_in_both_directions_and_other_languages_have_none():
    def translation(text):
        return f"<{text}>"

    assert translated_label("suspiros", translation, ("pt-BR", "en-US")) == "sighs"
    assert translated_label("ri", translation, ("pt", "en")) == "laughs"
    assert translated_label("gasps", translation, ("en", "de")) == "<gasps>"
    assert translated_label("gasps", translation, ("en", "en")) == "<gasps>"
    assert translated_label("animal noises", lambda _: "ruidos de animal", ("en", "es")) == "ruidos de animal"
