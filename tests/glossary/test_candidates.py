"""Terms of documents that are proposed for a glossary: names and rare words, and no others."""

import io
import zipfile
from pathlib import Path

import pytest
from docx import Document
from pptx import Presentation
from pptx.util import Inches

from pipeline.errors import UsageError
from pipeline.glossary.candidates import MOST, candidates
from pipeline.glossary.document_text import MOST_CHARACTERS, document_text

TALK = """QUARTERLY REVIEW OF THE BERLIN OFFICE

The board of Marchetti Kowalski met in Berlin. Our numbers are good. Dr. Anna Weber of the University of Porto
presented GPT-4 and the iPhone app. Numbers matter, said Weber.
• NATO and the Bank of England were there
• The phosphoinositide pathway. A phosphoinositide is a lipid.
We will go to Berlin again. The board agreed.
"""


def terms(text: str, language: str = "en", **options) -> dict[str, int]:
    return {each.term: each.count for each in candidates(text, language, **options)}


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


def test_there_are_so_many_at_most_and_the_work_grows_with_the_text():
    text = " and ".join(f"Name{number}x" for number in range(20_000))
    assert len(candidates(text, "en")) == MOST
    assert candidates("", "en") == candidates("x" * 100_000, "en") == candidates("A" * 100_000, "en") == []


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
    "txt": b"Anna Weber", "utf-16": "Anna Weber".encode("utf-16"), "cp1252": "Anna Weber, São Paulo".encode("cp1252"),
}  # fmt: skip


def stored(folder: Path, data: bytes) -> Path:
    path = folder / "document"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_a_document_is_known_by_its_content(tmp_path, kind):
    text = document_text(stored(tmp_path, DOCUMENTS[kind]))
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
        document_text(stored(tmp_path, data))


def test_a_long_text_is_cut_and_reading_has_an_end(tmp_path):
    path = stored(tmp_path, b"Anna Weber. " * 200_000)
    assert len(document_text(path)) == MOST_CHARACTERS
    with pytest.raises(UsageError, match="reading it takes longer than 0 s"):
        document_text(path, limit_s=0.0)
