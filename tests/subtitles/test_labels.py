"""Labels of sounds and speakers in subtitles: where they are, and what becomes of them."""

import pytest

from pipeline.subtitles.labels import _TABLE, labels, sound_label, translated_label


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


def test_sounds_have_labels_in_more_languages():
    assert sound_label("music", "en") == "[music]"
    assert sound_label("singing", "pt-BR") == "[cantando]"
    assert [sound_label("music", code) for code in ("zh", "zh-CN", "zh-TW", "nb")] == [
        "[音乐]",
        "[音乐]",
        "[音樂]",
        "[musikk]",
    ]
    assert sound_label("music", "xh") == "[♪]"


def test_rows_of_the_table_have_the_first_languages_or_all():
    header, *rows = [line.split("\t") for line in _TABLE.read_text("utf-8").splitlines()]
    assert len({*header}) == len(header)
    assert {row[0]: len(row) for row in rows if len(row) != 2} == {"music": len(header), "singing": len(header)}
    assert all(cell.strip() == cell != "" for row in rows for cell in row)
