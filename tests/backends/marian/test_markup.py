"""Markup in texts that are translated: it comes back as it was, in its place, and a fragment stays one."""

from time import process_time, thread_time
from types import SimpleNamespace

import numpy as np
import pytest

from pipeline.backends.marian import forced
from pipeline.backends.marian.forced import word_alignment
from pipeline.backends.marian.terms.mark_places import Mark, Places
from pipeline.backends.marian.terms.markup import as_fragment, joined_sentences, parts, parts_of_page
from pipeline.backends.marian.text_translation import TextTranslation


def untranslated(text, **options):
    """The text through everything but a translator."""
    return "".join(
        part
        if isinstance(part, str)
        else joined_sentences([one.written(one.text, "en", "en") for one in part.sentences("en")], "en")
        for part in parts(text, **options)
    )


@pytest.mark.parametrize(
    "text",
    [
        "<i>I never saw him again,</i>\nshe said.",
        "- Where were you?\n- At home.\n\n  And you?  ",
        "<i>- Where were you?</i>\r\n<i>- At home.</i>",
        "{\\an8}Look at the {\\i1}sky{\\i0}.",
        "♪ Heard there was a secret chord ♪",
        "One line<br />another line<br>the third",
        "1\n00:00:01,000 --> 00:00:02,500\nWhere is the station?\n\n2\n00:00:03,000 --> 00:00:04,000\nOver there.",
        'Hello %1$s, click <a href="https://example.org">here</a>, {count} X1 {{name}}.',
        "&quot;Yes&quot; &amp; &lt;no&gt;",
        "**Important:** read `README.md` first. @ana #news",
        "if x < 5 and y > 3 } {",
        '<p>He said <em>"the <strong>door</strong> is open"</em>.</p> <b>Yes.</b>',
        "</i>Bad</b> <i>nesting <u><u>here</u>",
        "<v Fred>Hi <00:00:01.000>there.",
        *(
            "",
            "   ",
            "\n",
            "...",
            "?",
            "12:30",
            "{}{}<<>>",
            "<b>" * 3_000,
            "<b>a</b> " * 900,
            "{{a " * 2_000,
            "a\nb\n" * 2_000,
        ),
    ],
)
def test_a_text_that_is_not_translated_comes_back(text):
    assert untranslated(text) == text


@pytest.mark.parametrize(
    "text",
    [
        " ".join(map(str, range(10, 5_000))),
        "A678, B2-44 " * 1_600,
        "http://a.b/c\n" * 1_500,
        "<i>b7@b.com</i>; 2:30 " * 950,
    ],
    ids=["numbers", "codes", "addresses", "marks"],
)
def test_a_text_of_literals_is_not_translated(text):
    assert all(isinstance(part, str) for part in parts(text))
    assert "".join(parts(text)) == text


@pytest.mark.parametrize("text", ["2 million", "A678 or B2", "see b7@b.com", "12th", "a-" * 10_000])
def test_a_text_with_a_word_is_translated(text):
    assert not all(isinstance(part, str) for part in parts(text))


def test_halves_of_characters_are_replaced_and_nothing_else():
    assert untranslated("a \ud83d\ude00 b \ud83d c") == "a \U0001f600 b � c"


def test_lines_of_a_sentence_are_one_text_and_other_lines_are_not():
    def texts(text, **options):
        return [part.text for part in parts(text, **options) if not isinstance(part, str)]

    assert texts("I think that\nI know him,\nshe said.\nBut who?") == ["I think that I know him, she said.", "But who?"]
    assert texts("Milk\nEggs") == ["Milk", "Eggs"]
    assert texts("He met\nJohn. Yes", one_text=True) == ["He met John. Yes"]
    assert texts("- Who was\n- it?", one_text=True) == ["Who was", "it?"]


@pytest.mark.parametrize(
    ("source", "translation", "target", "expected"),
    [
        ("settings", "Configurações.", "pt", "configurações"),
        ("Settings", "Configurações.", "pt", "Configurações"),
        ("He left.", "Ele saiu.", "pt", "Ele saiu."),
        ("and so", "E assim...", "pt", "e assim..."),
        ("estou aqui", "I am here.", "en", "I am here"),
        ("it is NATO", "NATO é.", "pt", "NATO é"),
        ("then Ana left", "Ana saiu.", "pt", "Ana saiu"),
        ("NATO", "OTAN.", "pt", "OTAN"),
        ("the table", "Tisch.", "de", "Tisch"),
        ("好", "好。", "zh", "好"),
    ],
)
def test_a_fragment_gets_no_full_stop_and_no_capital(source, translation, target, expected):
    assert as_fragment(source, translation, target) == expected


def test_a_closing_tag_is_of_the_newest_open_one_of_its_name():
    (fragment,) = parts("Say <u>a <i>b <u>c</u></i> d</u> now")
    assert [(mark.text, mark.pair) for mark in fragment.marks] == [
        *(("<u>", 0), ("<i>", 1), ("<u>", 2), ("</u>", 2), ("</i>", 1), ("</u>", 0))
    ]


@pytest.mark.parametrize(
    ("translation", "written"),
    [
        ("Olá X2, diz X1.", "Olá {name}, diz {count}."),
        ("Olá, diz X1.", "Olá, diz {count} {name}."),  # a word that was lost
        ("Olá.", "{count} Olá {name}."),
    ],
)
def test_each_word_that_stays_is_in_the_translation(translation, written):
    (fragment,) = parts("Hello {count} and {name}.")
    assert fragment.written(translation, "en", "pt") == written


def test_marks_go_with_the_words_that_they_are_at():
    # "the red house." → "a casa vermelha."
    alignment = np.array([[1, 0, 0], [0, 0.1, 0.9], [0, 0.9, 0.1]], np.float32)
    places = Places("the red house.", "en", "a casa vermelha.", "pt", alignment)
    red = [Mark("<b>", 4, pair=0), Mark("</b>", 7, after=True, pair=0)]
    house = [Mark("<i>", 8, pair=0), Mark("</i>", 13, after=True, pair=0)]
    assert [at for at, _ in places.of(red)] == [7, 15]  # before the full stop, which the tag does not have
    assert [at for at, _ in places.of(house)] == [2, 6]
    assert [at for at, _ in Places("the red house.", "en", "a casa vermelha.", "pt", None).of(red)] == [2, 6]


def test_a_mark_inside_others_stays_inside_them():
    marks = [Mark("<b>", 4, pair=0), Mark("<i>", 8, pair=1), Mark("</i>", 13, after=True, pair=1)]
    marks.append(Mark("</b>", 13, after=True, pair=0))
    # "the red house" → x is the house, y is the, z is red: the outer marks are at the last two words.
    alignment = np.array([[0, 0.4, 0.45], [1, 0, 0], [0, 0.9, 0]], np.float32)
    (outer, inner, inner_end, outer_end) = (
        at for at, _ in Places("the red house", "en", "x y z", "pt", alignment).of(marks)
    )
    assert outer <= inner < inner_end <= outer_end
    # An alignment of other words is none.
    other = np.ones((2, 3), np.float32)
    assert Places("the red house", "en", "x y z", "pt", other).of(marks) == Places(
        "the red house", "en", "x y z", "pt", None
    ).of(marks)


def test_marks_around_a_word_are_around_a_word_of_a_shorter_translation():
    marks = [Mark("<b>", 4, pair=0), Mark("</b>", 5, after=True, pair=0)]
    assert [at for at, _ in Places("a b c d e f", "en", "x y", "pt", None).of(marks)] == [2, 3]


def test_a_mark_stays_in_its_line():
    places = Places("a b c d", "en", "x y z", "pt", None)
    assert [at for at, _ in places.of([Mark("\n", 1, line=True), Mark("\n", 1, line=True)])] == [2, 4]
    places = Places("a b c d e f g h i j", "en", "x y z", "pt", None)
    marks = [Mark("\n", 1, line=True), Mark("\n", 3, line=True), Mark("<img>", 6)]
    assert [at for at, _ in places.of(marks)] == [2, 4, 4]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He is <b>not</b> guilty.", "Ele <b>não</b> é culpado."),
        ("I bought <b>three green apples</b>.", "Eu comprei <b>três maçãs verdes</b>."),
        ("- Where were you?\n- At home.", "- Onde você estava?\n- Em casa."),
        ("<i>I never saw him again,</i>\nshe said.", "<i>Eu nunca o vi de novo,</i>\nela disse."),
        ("Hello %1$s, you have {count} new messages.", "Olá %1$s, você tem {count} novas mensagens."),
        ("the red house", "a casa vermelha"),
        ("@ana", "@ana"),
    ],
)
def test_a_student_translates_what_is_between_the_marks(en_pt, text, expected):
    assert TextTranslation(en_pt, "en", "pt").translate(text) == expected


def test_words_are_aligned_by_the_attention(en_pt):
    alignment = word_alignment(en_pt, "He is not guilty.", "en", "Ele não é culpado.", "pt")
    assert alignment.argmax(axis=1).tolist() == [0, 2, 1, 3]
    assert word_alignment(object(), "Yes.", "en", "Sim.", "pt") is None


def test_a_sentence_is_aligned_by_the_local_translator_unless_it_is_too_long(en_pt, monkeypatch):
    given = "He is not guilty.", "en", "Ele não é culpado.", "pt"
    assert word_alignment(SimpleNamespace(local=en_pt), *given) is not None
    monkeypatch.setattr(forced, "MOST_ALIGNED", 16)
    assert word_alignment(en_pt, *given) is not None
    monkeypatch.setattr(forced, "MOST_ALIGNED", 15)
    assert word_alignment(en_pt, *given) is None


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("<i>Yes, he is.</i>", False),
        ("He <i>is</i> here.", True),
        ("<br/>Yes, he is", False),
        ("Yes, he is <b>not</b>", True),
    ],
)
def test_marks_between_words_need_an_alignment(text, needed):
    (fragment,) = (part for part in parts(text) if not isinstance(part, str))
    assert fragment.needs_alignment is needed


def test_sentences_are_joined_as_the_language_does():
    assert joined_sentences(["", "One.", " Two.", "\nThree.", "", "Four."], "en") == "One. Two.\nThree. Four."
    assert joined_sentences(["一。", "二。"], "zh") == "一。二。"


def test_blanks_are_read_once():
    """A pattern that begins with blanks would be tried at each of them: seconds for a text of this length."""
    began = process_time()
    assert "".join(map(str, parts(" " * 20_000))) == " " * 20_000
    assert process_time() - began < 2


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("<script>a <p>b</p></script><p>One</p>", ["One"]),
        ("<PRE>a <p>b</pre\n>\n two", ["two"]),
        ("<style>a</style>b <style>c <p>d", ["b c", "d"]),
        ("<pre>a</textarea> b <p>c</p> d", ["a b", "c", "d"]),
        ("<preface>a</preface>", ["a"]),
        ("<pre>a</pre> b <pre>c</pre> d", ["b", "d"]),
        ("<script><pre></script>One</pre>", ["One"]),
    ],
)
def test_code_in_a_page_is_no_text_and_code_without_an_end_is(page, texts):
    found = parts_of_page(page)
    assert [part.text for part in found if not isinstance(part, str)] == texts
    assert "".join(part if isinstance(part, str) else part.written(part.text, "en", "en") for part in found) == page


def cost_s(divide, text):
    """The work of dividing a text."""
    began_s = thread_time()
    divide(text)
    return thread_time() - began_s


@pytest.mark.parametrize(
    "opening",
    [
        *(
            "<pre ",
            "<script>",
            "<style a",
            "<textarea",
            "<p ",
            "<p",
            "<br",
            "<br ",
            "<a ",
            "</a ",
            "</pre ",
            "<",
            "</",
            "<!--",
        ),
        *(
            "{",
            "{a",
            "{\\",
            "{\\i1}",
            "${",
            "`",
            "`a ",
            "%(",
            "%(a",
            "%1",
            "@",
            " @1",
            "#a",
            "**",
            "&",
            "&#1",
            "&a",
            "X1",
            "X1 ",
        ),
        *(
            "a\n",
            "- ",
            "-",
            ">>",
            "♪",
            ".)",
            "\x1e",
            "<a>",
            "</b>",
            "<a></b>",
            "<a><b></a>",
            "<pre></p>",
            "<pre>a</pre>",
        ),
        *("<code>", "<code>a", "<code>a</kbd>", "a<sub>", "a<sub>b</sub>", "<sub>1</sub>", "{a}b", "a{b}"),
    ],
)
def test_no_opening_takes_much_longer_than_plain_text(opening):
    # At this length, what grows with its square takes hundreds of times as long as plain text (now 15), or a page as its text (now 2).
    length = 20_000
    text, plain = opening * (length // len(opening)), "Hello there. " * (length // 13)
    assert any(cost_s(parts, text) <= 50 * cost_s(parts, plain) for _ in range(5))
    assert any(cost_s(parts_of_page, text) <= 6 * cost_s(parts, text) for _ in range(5))


@pytest.mark.parametrize("text", ["<a>w " * 1_900 + "</b>" * 2_500, "<a>" * 3_300 + "<b>w</b>" * 1_200])
def test_closing_tags_are_not_compared_with_all_open_ones(text):
    # 4 times as long as plain text; 21 times, if they were.
    plain = "Hello there. " * (len(text) // 13)
    assert any(cost_s(parts, text) <= 12 * cost_s(parts, plain) for _ in range(10))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("You have {count}items.", "You have X1 items."),
        ("{first}{last} logged in.", "X1 X2 logged in."),
        ("Use --{flag}now, or a{b}c.", "Use --X1 now, or a X2 c."),
        ('Type <code>print("hello")</code> to see.', "Type X1 to see."),
        ("Water is H<sub>2</sub>O here.", "Water is X1 here."),
        ("E is mc<sup>2</sup>.", "E is X1."),
        ("The 19<sup>th</sup> century", "The 19th century"),
        ("You have {count} items.", "You have X1 items."),
    ],
)
def test_words_that_stay_stand_apart_from_letters_beside_them(text, read):
    (fragment,) = parts(text)
    assert fragment.text == read
    if "19" not in text:  # marks of a word are around it
        assert fragment.written(read, "en", "pt") == text


def test_blanks_go_only_where_a_letter_was():
    (fragment,) = parts("You have {count}items and {more} bags.")
    assert fragment.written("Você tem X1 itens e X2 sacos.", "en", "pt") == "Você tem {count}itens e {more} sacos."


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("<b>quick <i>brown</b> fox</i>", "<b>quick <i>brown</i></b> <i>fox</i>"),
        ('<i>a <b class="k">b</i> c</b> d', '<i>a <b class="k">b</b></i> <b class="k">c</b> d'),
        ("<b>a</b> <i>b</i>", "<b>a</b> <i>b</i>"),
    ],
)
def test_tags_that_cross_are_mended_at_the_words_they_were_on(text, mended):
    (fragment,) = parts(text)
    assert fragment.written(fragment.text, "en", "pt") == mended
