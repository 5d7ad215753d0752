"""Subtitle files that are translated: their subtitles, and the same file with other texts. Needs the extra ``subtitles``.

pysubs2 reads SubRip and ASS, and ttconv converts from and into WebVTT and TTML. Of these two, only the texts are replaced in
the file, because ttconv does not keep names, notes and styles.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..errors import UsageError
from ..languages.rules import rules

KINDS = {"srt": "srt", "vtt": "vtt", "ass": "ass", "ssa": "ssa", "ttml": "ttml", "dfxp": "ttml"}
"""Suffix → format."""
_NEEDED = "translating subtitles needs pysubs2 and ttconv: pip install 'streaming-speech-translation[subtitles]'"
_TIMES = re.compile(r"(?:(\d+):)?(\d\d):(\d\d)\.(\d{3})[ \t]+-->[ \t]+(?:(\d+):)?(\d\d):(\d\d)\.(\d{3})\b.*")
_VOICE = re.compile(r"<v[.\s]([^>]*)>")
_BLANKS = re.compile(r"\s+")
_PIECE = re.compile(r"\n|<(?P<closing>/?)e(?P<number>\d+)/?>|[^\n<]+|<")
_NAMESPACE = "http://www.w3.org/ns/ttml"
for _prefix, _of_it in {"": "", "tts": "#styling", "ttp": "#parameter", "ttm": "#metadata"}.items():
    ElementTree.register_namespace(_prefix, _NAMESPACE + _of_it)
_TTML = f"{{{_NAMESPACE}}}"


@dataclass(frozen=True)
class FileCue:
    """A subtitle of a file."""

    start_ms: int | None
    """None if only the file's other elements say so, like ``end_ms``."""
    end_ms: int | None
    text: str
    """With its line breaks and markup."""
    voice: str = ""
    """Who speaks, or its style: what differs is no part of the same sentence."""


class Document(Protocol):
    """A subtitle file."""

    cues: list[FileCue]
    reversed_times: int
    """How many subtitles ended before they began; they get a second."""

    def written(self, texts: Sequence[str]) -> str:
        """The file with other texts, one for each of the subtitles. May be called once."""
        ...


def decoded(content: bytes, language: str) -> tuple[str, str]:
    """The text of a file, and the encoding that it was taken for."""
    boms = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"", "utf-8"))
    for bom, encoding in boms:
        if content.startswith(bom):
            try:
                return content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n"), encoding
            except UnicodeDecodeError:
                break
    encoding = rules(language).encoding
    return content.decode(encoding, "replace").replace("\r\n", "\n").replace("\r", "\n"), encoding


def read_document(text: str, kind: str) -> Document:
    """The file with the content ``text`` in the format ``kind``.

    Raises:
        UsageError: it has no subtitles in this format; or the extra is not installed.
    """
    try:
        document: Document = _Vtt(text) if kind == "vtt" else _Ttml(text) if kind == "ttml" else _Pysubs(text, kind)
    except UsageError:
        raise
    except Exception as error:  # the libraries' own and others
        raise UsageError(
            f"it cannot be read as {kind} ({str(error).splitlines()[0][:100] if str(error) else type(error).__name__})"
        ) from error
    if not document.cues:
        raise UsageError(f"it has no subtitles in the format {kind}")
    return document


class _Pysubs:
    """SubRip, ASS and SSA."""

    def __init__(self, text: str, kind: str) -> None:
        self._kind = kind
        self._file = _parsed(text, kind, keep_html_tags=True)
        shown = [event for event in self._file if not event.is_comment and not event.is_drawing]
        self._events = [event for event in shown if kind != "srt" or event.text.strip()]
        reversed_events = [event for event in self._events if event.end <= event.start]
        self.reversed_times = len(reversed_events)
        for event in reversed_events:
            event.end = event.start + 1000
        self.cues = [
            FileCue(one.start, one.end, _plain_breaks(one.text), f"{one.style}\n{one.name}") for one in self._events
        ]

    def written(self, texts: Sequence[str]) -> str:
        for event, text in zip(self._events, texts, strict=True):
            event.text = text.replace("\n", r"\N")
        return str(self._file.to_string(self._kind, **({"keep_ssa_tags": True} if self._kind == "srt" else {})))


class _Vtt:
    """WebVTT: blocks of lines, with a blank line between two."""

    reversed_times = 0

    def __init__(self, text: str) -> None:
        if not text.startswith("WEBVTT"):
            raise UsageError("it does not begin with WEBVTT")
        self._blocks = [block.split("\n") for block in re.split(r"(\n{2,})", text)]
        self._at: list[tuple[int, int]] = []  # block, line of the times
        self.cues = []
        for number, lines in enumerate(self._blocks):
            for line, content in enumerate(lines[:2]):
                if (times := _TIMES.fullmatch(content)) is not None:
                    self._at.append((number, line))
                    start_ms, end_ms = (_ms(times.groups()[at : at + 4]) for at in (0, 4))
                    said = "\n".join(lines[line + 1 :])
                    self.cues.append(FileCue(start_ms, end_ms, said, "".join(_VOICE.findall(said)[:1])))
                    break

    def written(self, texts: Sequence[str]) -> str:
        for (number, line), text in zip(self._at, texts, strict=True):
            self._blocks[number][line + 1 :] = [text]
        return "".join("\n".join(lines) for lines in self._blocks)


class _Ttml:
    """TTML: the paragraphs of an XML file. The elements in a paragraph are tags of its text, such as <e1>."""

    reversed_times = 0

    def __init__(self, text: str) -> None:
        self._root = ElementTree.fromstring(text)
        if not self._root.tag.startswith(_TTML):
            raise UsageError("its root is no element of TTML")
        self._elements: list[ElementTree.Element] = []
        self._paragraphs = list(self._root.iter(f"{_TTML}p"))
        self.cues = [
            FileCue(None, None, self._inner(each).strip(), f"{each.get('region')}\n{each.get('style')}")
            for each in self._paragraphs
        ]

    def _inner(self, element: ElementTree.Element) -> str:
        text = _BLANKS.sub(" ", element.text or "")
        for child in element:
            if child.tag == f"{_TTML}br":
                text += "\n"
            else:
                name = f"e{len(self._elements)}"
                self._elements.append(child)
                within = self._inner(child) if child.tag == f"{_TTML}span" else None
                text += f"<{name}/>" if within is None else f"<{name}>{within}</{name}>"
            text += _BLANKS.sub(" ", child.tail or "")
        return text

    def written(self, texts: Sequence[str]) -> str:
        for paragraph, text in zip(self._paragraphs, texts, strict=True):
            self._fill(paragraph, text)
        return ElementTree.tostring(self._root, "unicode", xml_declaration=True) + "\n"

    def _fill(self, paragraph: ElementTree.Element, text: str) -> None:
        paragraph[:], paragraph.text = [], ""
        inside = [paragraph]
        for piece in _PIECE.finditer(text):
            token, closing, number = piece.group(), piece["closing"], piece["number"]
            if number and closing:
                inside[1:] = inside[1:-1]
            elif number or token == "\n":
                child = self._elements[int(number)] if number else ElementTree.Element(f"{_TTML}br")
                child.tail = ""
                inside[-1].append(child)
                if child.tag == f"{_TTML}span":
                    child[:], child.text = [], ""
                    inside.append(child)
            elif len(inside[-1]):
                inside[-1][-1].tail = (inside[-1][-1].tail or "") + token
            else:
                inside[-1].text = (inside[-1].text or "") + token


def converted(text: str, kind: str, wanted: str) -> str:
    """A subtitle file in another format, with what both formats and SubRip have of its styles."""
    if kind == wanted:
        return text
    if kind in ("vtt", "ttml"):
        from ttconv.imsc import reader as imsc_reader
        from ttconv.srt import writer as srt_writer
        from ttconv.vtt import reader as vtt_reader

        if kind == "vtt":
            model = vtt_reader.to_model(io.StringIO(text), None)
        else:
            model = imsc_reader.to_model(ElementTree.ElementTree(ElementTree.fromstring(text)))
        text, kind = srt_writer.from_model(model), "srt"
    if wanted == kind:
        return text
    if wanted in ("ass", "ssa"):
        return str(_parsed(text, kind).to_string(wanted))
    text = _parsed(text, kind, keep_html_tags=True).to_string("srt")
    if wanted == "srt":
        return text
    from ttconv.imsc import writer as imsc_writer
    from ttconv.srt import reader as srt_reader
    from ttconv.vtt import writer as vtt_writer

    model = srt_reader.to_model(io.StringIO(text))
    if wanted == "vtt":
        return str(vtt_writer.from_model(model))
    return ElementTree.tostring(imsc_writer.from_model(model).getroot(), "unicode", xml_declaration=True) + "\n"


def _parsed(text: str, kind: str, **options: Any) -> Any:
    # pysubs2 takes a number at the end of a SubRip text for that of the next subtitle.
    return _pysubs2().SSAFile.from_string(text + "\n\n0\n" * (kind == "srt"), kind, **options)


def _pysubs2() -> Any:
    try:
        import pysubs2
        import ttconv.model  # noqa: F401
    except ImportError:
        raise UsageError(_NEEDED) from None
    return pysubs2


def _plain_breaks(text: str) -> str:
    return text.replace(r"\N", "\n").replace(r"\n", " ").replace(r"\h", "\u00a0")


def _ms(parts: Sequence[str | None]) -> int:
    hours, minutes, seconds, milliseconds = (int(part or 0) for part in parts)
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds
