"""The text of a document: PDF, DOCX, PPTX, HTML or plain text. Needs the extra ``documents``.

A document is read in a process of its own, whose time and memory are limited: readers of such formats can be made to work for hours.
"""

from __future__ import annotations

import io
import multiprocessing
import re
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ..errors import UsageError, described

MOST_BYTES = 32 << 20
MOST_CHARACTERS = 1_000_000
"""The most characters that are read of a document."""
_LIMIT_S = 60.0
# How often a reader is ended for which nobody waits any more.
_LOOK_S = 0.2
_MEMORY_BYTES = 1 << 30
_UNPACKED_BYTES = 256 << 20
_MOST_PAGES = 2_000
_HTML = re.compile(rb"\s*+(?:<!--.*?-->\s*+)*+<(?:!doctype html|html|head|body)", re.IGNORECASE | re.DOTALL)
_KINDS = "PDF, DOCX, PPTX, HTML and plain text are read"


def text_of_document(path: Path, limit_s: float = _LIMIT_S, unwanted: Callable[[], bool] = lambda: False) -> str:
    """The text of a document. Blocks.

    ``unwanted``: whether nobody waits for it any more; is asked again and again.

    Raises:
        UsageError: it cannot be read, or is none of these; the message begins without its name. Or the extra is not installed,
            or it is unwanted.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"it cannot be read ({error.strerror})") from None
    if len(data) > MOST_BYTES:
        raise UsageError(f"it has more than {MOST_BYTES >> 20} MiB")
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(data, sending), daemon=True)
    process.start()
    sending.close()
    until_s = time.monotonic() + limit_s
    try:
        while not receiving.poll(max(0.0, min(_LOOK_S, until_s - time.monotonic()))):
            if unwanted():
                raise UsageError("nobody waits for it any more")
            if time.monotonic() >= until_s:
                raise UsageError(f"reading it takes longer than {limit_s:g} s")
        good, text = receiving.recv()
    except EOFError:
        raise UsageError("reading it takes too much memory, or ended the reader") from None
    finally:
        process.kill()
        process.join()
        receiving.close()
    if not good:
        raise UsageError(text)
    return str(text)


def _work(data: bytes, sending: Connection) -> None:
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    try:
        sending.send((True, "\n".join(_within(_lines(data)))))
    except UsageError as error:
        sending.send((False, str(error)))
    except ImportError as error:
        needed = "pip install 'streaming-speech-translation[documents]'"
        sending.send((False, f"reading it needs the package {error.name}: {needed}"))
    except Exception as error:  # the readers' own, and others
        sending.send((False, f"it is damaged or protected ({described(error)[:100]})"))


def _within(lines: Iterable[str]) -> Iterator[str]:
    remaining = MOST_CHARACTERS
    for line in lines:
        if remaining <= 0:
            return
        yield line[:remaining]
        remaining -= len(line) + 1


def _lines(data: bytes) -> Iterator[str]:
    if b"%PDF-" in data[:1024]:
        return _of_pdf(data)
    if data[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = {entry.filename: entry.file_size for entry in archive.infolist()}
        if sum(names.values()) > _UNPACKED_BYTES:
            raise UsageError(f"unpacked, it has more than {_UNPACKED_BYTES >> 20} MiB")
        if "word/document.xml" in names:
            return _of_docx(data)
        if "ppt/presentation.xml" in names:
            return _of_pptx(data)
    elif _HTML.match(data):
        return _of_html(data)
    elif (text := _plain(data)) is not None:
        return iter(text.splitlines())
    raise UsageError(f"it is no document of these kinds: {_KINDS}")


def _plain(data: bytes) -> str | None:
    for encoding in ("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", "cp1252"):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        return None if "\0" in text else text
    return None


def _of_pdf(data: bytes) -> Iterator[str]:
    from pypdf import PdfReader

    for page in islice(PdfReader(io.BytesIO(data)).pages, _MOST_PAGES):
        yield page.extract_text()


def _of_docx(data: bytes) -> Iterator[str]:
    from docx import Document
    from docx.oxml.ns import qn
    from docx.text.paragraph import Paragraph

    document = Document(io.BytesIO(data))
    for paragraph in document.element.body.iter(qn("w:p")):  # those in tables, too
        yield Paragraph(paragraph, document).text


def _of_pptx(data: bytes) -> Iterator[str]:
    from pptx import Presentation

    for slide in Presentation(io.BytesIO(data)).slides:
        yield from _of_shapes(slide.shapes)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            yield slide.notes_slide.notes_text_frame.text


def _of_shapes(shapes: Any) -> Iterator[str]:
    for shape in shapes:
        if hasattr(shape, "shapes"):  # a group
            yield from _of_shapes(shape.shapes)
        elif shape.has_text_frame:
            yield shape.text_frame.text
        elif getattr(shape, "has_table", False):
            yield from (cell.text for row in shape.table.rows for cell in row.cells)


def _of_html(data: bytes) -> Iterator[str]:
    from lxml import html

    root = html.document_fromstring(data, parser=html.HTMLParser(huge_tree=False, no_network=True))
    for element in root.iter():
        if isinstance(element.tag, str) and element.tag not in ("script", "style", "template"):
            yield element.text or ""
        yield element.tail or ""
