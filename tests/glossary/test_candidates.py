"""Terms of documents that are proposed for a glossary: names and rare words, and no others."""

import io
import multiprocessing
import zipfile
from pathlib import Path

import pytest
from docx import Document
from pptx import Presentation
from pptx.util import Inches

from pipeline.errors import UsageError
from pipeline.glossary.candidates import MOST, term_candidates
from pipeline.glossary.document_text import MOST_CHARACTERS, _lines, _within, text_of_document

TALK = """QUARTERLY REVIEW OF THE BERLIN OFFICE

The board of Marchetti Kowalski met in Berlin. Our numbers are good. Dr. Anna Weber of the University of Porto
presented GPT-4 and the iPhone app. Numbers matter, said Weber.
• NATO and the Bank of England were there
• The phosphoinositide pathway. A phosphoinositide is a lipid.
We will go to Berlin again. The board agreed.
"""


def terms(text: str, language: str = "en", **options) -> dict[str, int]:
    return {each.term: each.count for each in term_candidates(text, language, **options)}


def test_names_are_proposed_and_words_that_only_begin_a_sentence_are_not():
    found = terms(TALK)
    assert {
        "Marchetti Kowalski",
        "Anna Weber",
        "University of Porto",
        "Bank of England",
        "NATO",
        "GPT-4",
        "iPhone",
    } <= found.keys()
    assert found["Berlin"] == 3
    assert not found.keys() & {"The", "Our", "Numbers", "We", "QUARTERLY", "The board", "A", "board"}


@pytest.mark.parametrize(
    "line",
    [
        "Copyright 2024 Acme Publishing. All Rights Reserved.",
        "Slides by Ada Lorenz, Creative Commons Attribution (CC BY 4.0)",
        "Licensed under the Apache License, Version 2.0",
        "© Acme Publishing",
        "版权所有《Acme》",
    ],
)
def test_what_a_document_says_of_its_licence_is_not_proposed(line):
    assert terms(f"{line}\nWe are in Berlin.") == {"Berlin": 1}
    assert "Lorenz" in terms("The driver Lorenz has a licence, and the copy is right.")


def test_words_that_the_recognisers_vocabulary_splits_are_proposed_if_they_come_again():
    assert "phosphoinositide" not in terms(TALK)
    found = terms(TALK, pieces=lambda word: len(word) // 4)
    assert found["phosphoinositide"] == 2
    assert "presented" not in found


def test_of_german_only_the_nouns_that_are_rare():
    text = (
        "Wir sprechen über die Wirtschaft und den Rhein-Herne-Kanal. Die Wirtschaft wächst, sagt Frau Özdemir aus Köln."
    )
    found = terms(text, "de", pieces=lambda word: 5 if word in ("Özdemir", "Rhein-Herne-Kanal") else 1)
    assert {"Frau Özdemir", "Rhein-Herne-Kanal"} <= found.keys()
    assert "Wirtschaft" not in found


def test_of_chinese_latin_letters_and_titles():
    assert terms("我们用 PyTorch 训练模型，参考了《深度学习》。", "zh") == {"PyTorch": 1, "深度学习": 1}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("we saw Rome, Paris and Oslo", {"Rome", "Paris", "Oslo"}),  # a comma ends a name
        ("Ask Anna Weber. We ask her.", {"Anna Weber"}),  # its first word is written small elsewhere
        ("from Ada Bea Cleo Dora Ella Fay", {"Ada Bea Cleo Dora Ella", "Fay"}),  # five words at most
        ("we saw Rome. Numbers matter.", {"Rome"}),  # a capital that only begins a sentence says nothing
        ("we meet Anna. Anna came. The anna is a coin.", set()),  # written small elsewhere, it is a word
        ("The Bank of England, or the Bank of the north", {"Bank of England", "Bank"}),
        ("IN ROME WITH ANNA\nwe saw Rome", {"Rome"}),  # a headline does not make a name
        ("of 5 or X", set()),
    ],
)
def test_what_is_a_name(text, found):
    assert set(terms(text)) == found


def test_the_likely_and_frequent_ones_come_first_and_a_headline_counts():
    text = "we saw Rome and Oslo, then Rome, then Rome, with Anna Weber, for Anna Weber"
    assert list(terms(text)) == ["Anna Weber", "Rome", "Oslo"]  # a name of two words counts twice
    assert list(terms(text, most=2)) == ["Anna Weber", "Rome"]
    assert list(terms(text + "\nROME AGAIN\nROME AND ROME")) == ["Rome", "Anna Weber", "Oslo"]


@pytest.mark.parametrize(
    ("text", "proposed"),
    [
        ("the phosphor and the phosphor", True),
        ("the phosphor", False),  # once, it may be a slip
        ("the phos and the phos", False),  # so short that the number of pieces says nothing
        ("the Phosphor of phosphor", True),  # also as a name that is written small elsewhere
    ],
)
def test_a_rare_word_is_long_and_comes_again(text, proposed):
    assert bool(terms(text, pieces=lambda word: 4)) is proposed
    assert not terms("the phosphor and the phosphor", pieces=lambda word: 3)


def test_there_are_so_many_at_most_and_the_work_grows_with_the_text():
    text = " and ".join(f"Name{number}x" for number in range(20_000))
    assert len(term_candidates(text, "en")) == MOST
    assert (
        term_candidates("", "en") == term_candidates("x" * 100_000, "en") == term_candidates("A" * 100_000, "en") == []
    )


def pdf(text: str) -> bytes:
    """A page with one line of text."""
    content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    data, places = b"%PDF-1.4\n", list[int]()
    for number, each in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj%sendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return data + b"xref\n0 6\n0000000000 65535 f \n%strailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        table,
        len(data),
    )


def docx(text: str) -> bytes:
    document, data = Document(), io.BytesIO()
    document.add_paragraph("First.")
    document.add_table(1, 1).cell(0, 0).text = text
    document.save(data)
    return data.getvalue()


def pptx(text: str) -> bytes:
    presentation, data = Presentation(), io.BytesIO()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(Inches(1), Inches(1), Inches(1), Inches(1)).text_frame.text = text
    slide.notes_slide.notes_text_frame.text = f"Notes on {text}"
    presentation.save(data)
    return data.getvalue()


def archive(**files: bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in files.items():
            written.writestr(name.replace("__", "/").replace("_xml", ".xml"), content)
    return data.getvalue()


HTML = "<!doctype html><html><head><script>var Nobody;</script></head><body><p>Anna <b>Weber</b></p></body></html>"
DOCUMENTS = {
    "pdf": pdf("Anna Weber"), "docx": docx("Anna Weber"), "pptx": pptx("Anna Weber"), "html": HTML.encode(),
    "txt": b"Anna Weber", "utf-16": "Anna Weber".encode("utf-16"), "utf-16-be": "\ufeffAnna Weber".encode("utf-16-be"),
    "cp1252": "Anna Weber, São Paulo".encode("cp1252"),
}  # fmt: skip


def stored(folder: Path, data: bytes) -> Path:
    path = folder / "document"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_a_document_is_known_by_its_content(tmp_path, kind):
    text = text_of_document(stored(tmp_path, DOCUMENTS[kind]))
    assert "Anna Weber" in " ".join(text.split())
    assert "Nobody" not in text
    assert "Notes on" in text or kind != "pptx"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\0\1\2", "it is no document of these kinds"),
        (archive(x=b"x"), "it is no document of these kinds"),
        (b"PK\3\4 and no more", "it is damaged or protected"),
        (archive(word__document_xml=b"<no"), "it is damaged or protected"),
        (archive(word__document_xml=bytes(300 << 20)), "unpacked, it has more than 256 MiB"),
        (DOCUMENTS["pdf"][:40], "it is damaged or protected"),
        (bytes(33 << 20), "it has more than 32 MiB"),
    ],
    ids=["binary", "zip", "torn", "no docx", "bomb", "torn pdf", "large"],
)
def test_what_cannot_be_read_is_said(tmp_path, data, said):
    with pytest.raises(UsageError, match=said):
        text_of_document(stored(tmp_path, data))


def test_a_long_text_is_cut_and_reading_has_an_end(tmp_path):
    path = stored(tmp_path, b"Anna Weber. " * 200_000)
    assert len(text_of_document(path)) == MOST_CHARACTERS
    with pytest.raises(UsageError, match="reading it takes longer than 0 s"):
        text_of_document(path, limit_s=0.0)


def test_a_document_for_which_nobody_waits_is_read_no_further(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.glossary.document_text._LOOK_S", 0.0)
    with pytest.raises(UsageError, match="nobody waits for it any more"):
        text_of_document(stored(tmp_path, b"Anna Weber"), unwanted=lambda: True)
    assert multiprocessing.active_children() == []


def test_as_many_characters_are_read_as_allowed_with_the_ends_of_lines():
    whole = "\n".join(_within(["a" * (MOST_CHARACTERS - 3), "bcd", "e"]))
    assert (len(whole), whole[-4:]) == (MOST_CHARACTERS, "a\nbc")
    assert "\n".join(_within(["a" * (MOST_CHARACTERS - 1), "b"])) == "a" * (MOST_CHARACTERS - 1)


def test_what_follows_a_script_or_style_in_a_page_is_read_and_these_are_not():
    page = (
        b"<!-- x --><html><head><style>b{}</style></head><body>one<script>var x</script>two<b>three</b></body></html>"
    )
    assert [line for line in _lines(page) if line.strip()] == ["one", "two", "three"]


def test_a_text_may_begin_with_many_comments():
    # A pattern that tries every end of each comment doubles its time with each.
    comments = b"<!-- slide -->\n" * 1_000
    assert list(_lines(comments + b"# Title"))[-1] == "# Title"
    assert "".join(_lines(comments + b"<body>Title")).strip() == "Title"
