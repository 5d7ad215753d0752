"""Subtitle files that are translated: their subtitles, and the same file with other texts.

pysubs2 reads SubRip, ASS, MicroDVD and SAMI, and ttconv converts from and into TTML. Of TTML and WebVTT, only the texts are replaced in
the file, to keep names, notes and styles.
"""

from __future__ import annotations

import html
import io
import logging
import re
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

from ..errors import UsageError
from ..languages.rules import rules
from ..media.subtitles import escapes

WRITTEN_KINDS = {"srt": "srt", "vtt": "vtt", "ass": "ass", "ssa": "ssa", "ttml": "ttml", "dfxp": "ttml"}
"""Suffix → format, of those that are read and written."""
KINDS = WRITTEN_KINDS | {"sub": "microdvd", "smi": "sami", "sami": "sami"}
"""Suffix → format, of those that are read."""
_TIME = r"(?:(\d+):)?(\d\d):(\d\d)(?:[.,](\d{3}))?"
_TIMES = re.compile(rf"{_TIME}[ \t]*-->[ \t]*{_TIME}(?!\d).*")
# SubRip's line of times, after a number or a blank line; without hours or milliseconds in some files.
_SRT_TIME = r"(?:(\d+):)?(\d+):(\d+)(?:[.,:](\d{1,3}))?"
_SRT_TIMES = re.compile(rf"^(?<![^\d\n]\n)([ \t]*-?){_SRT_TIME}([ \t]*-->[ \t]*-?){_SRT_TIME}(?!\S)", re.MULTILINE)
_MOST_H = {"srt": 99, "ass": 9, "ssa": 9}  # pysubs2 writes no more
# What XML cannot have, and no subtitle needs.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_TAG = r"</?[A-Za-z][^<>]*>"
_SRT_TAG = _TAG + r"|\{\\[^{}]*\}"
_AT_TOP = re.compile(r"\{\\an[789]\}")
# WebVTT's text above a word, <rt>, is put after it.
_COMMON_TAGS = {name: name for name in ("<b>", "</b>", "<i>", "</i>", "<u>", "</u>")} | {"<rt>": "(", "</rt>": ")"}
# When each word is spoken, as in automatic captions: of other words in a translation.
_WORD_TIME = re.compile(r"<(?:\d+:)?\d\d:\d\d\.\d{3}>")
_WORD_CLASS = re.compile(r"</?c>")
# What stands in braces, and is no override: shown by no player that knows ASS. Also what looks like the mark of one.
_COMMENT = re.compile(r"\{(?!\\(?!=))[^{}]*\}")
_COMMENT_MARK = re.compile(r"\{\\=(\d+)\}")
_VOICE = re.compile(r"<v[.\s]([^>]*)>")
_BLANKS = re.compile(r"\s+")
_PIECE = re.compile(r"\n|<(?P<closing>/?)e(?P<number>\d+)/?>|[^\n<]+|<")
_NAMESPACE = "http://www.w3.org/ns/ttml"
for _prefix, _of_it in {"": "", "tts": "#styling", "ttp": "#parameter", "ttm": "#metadata"}.items():
    ElementTree.register_namespace(_prefix, _NAMESPACE + _of_it)
_TTML = f"{{{_NAMESPACE}}}"
_TTML_VOICE = ("region", "style", f"{{{_NAMESPACE}#metadata}}agent")
_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


@dataclass(frozen=True)
class FileCue:
    """A subtitle of a file."""

    start_ms: int | None
    """The begin in milliseconds; None, like ``end_ms``, if only the file's other elements tell it."""
    end_ms: int | None
    text: str
    """The text with its line breaks and markup."""
    voice: str = ""
    """The speaker, or the style: a sentence does not go on in a subtitle with another one."""


class Document(Protocol):
    """A subtitle file."""

    cues: list[FileCue]
    reversed_times: int
    """How many subtitles ended before they began; they get a second."""

    def written(self, texts: Sequence[str], language: str = "") -> str:
        """The file with other texts, one for each of the subtitles, in ``language`` if it says one. May be called once."""
        ...


def decoded(content: bytes, language: str) -> tuple[str, str]:
    """The text of a file, and the encoding that it was taken for."""
    # Without a mark, half of the bytes of UTF-16 are zero where the text is markup and times.
    wide = "utf-16-le" if content[1:2] == b"\0" else "utf-16-be" if content[:1] == b"\0" else "utf-8"
    boms = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"", wide))
    for bom, encoding in boms:
        if content.startswith(bom):
            try:
                return _plain(content.decode(encoding)), encoding
            except UnicodeDecodeError:
                break
    encoding = rules(language).encoding
    return _plain(content.decode(encoding, "replace")), encoding


def _plain(text: str) -> str:
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def read_document(text: str, kind: str) -> Document:
    """The file with the content ``text`` in the format ``kind``.

    Raises:
        UsageError: it has no subtitles in this format.
    """
    with _reading(kind):
        document: Document = _Vtt(text) if kind == "vtt" else _Ttml(text) if kind == "ttml" else _Pysubs(text, kind)
    if not document.cues:
        raise UsageError(f"it has no subtitles in the format {kind}")
    return document


@contextmanager
def _reading(kind: str) -> Iterator[None]:
    """Errors of libraries as one of ours, without their warnings of single values."""
    try:
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            yield
    except UsageError:
        raise
    except Exception as error:  # the libraries' own and others
        reason = str(error).splitlines()[0][:100] if str(error) else type(error).__name__
        raise UsageError(f"it cannot be read as {kind} ({reason})") from error


class _Pysubs:
    """SubRip, ASS and SSA; and MicroDVD and SAMI, which are written as SubRip."""

    def __init__(self, text: str, kind: str) -> None:
        self._kind = kind if kind in WRITTEN_KINDS else "srt"
        self._options = {"keep_ssa_tags": True} if kind == "srt" else {}
        self._comments: list[str] = []
        self._has_overrides = self._kind != "srt" or "{\\" in text
        self._file = _parsed(text, kind, keep_html_tags=True)
        if kind == "sami":  # a text is shown until the next, which may be empty
            for line, following in pairwise(self._file):
                line.end = following.start
            self._file.events = [event for event in self._file if event.text.strip()]
        shown = [event for event in self._file if not event.is_comment and not event.is_drawing]
        self._events = [event for event in shown if self._kind != "srt" or event.text.strip()]
        reversed_events = [event for event in self._events if event.end <= event.start]
        self.reversed_times = len(reversed_events)
        for event in reversed_events:
            event.end = event.start + 1000
        self.cues = [
            FileCue(line.start, line.end, self._text(line.text), f"{line.style}\n{line.name}\n{_place(line.text)}")
            for line in self._events
        ]

    def _text(self, text: str) -> str:
        """A text with its line breaks, and a mark for each comment."""

        def mark(comment: re.Match[str]) -> str:
            self._comments.append(comment.group())
            return rf"{{\={len(self._comments) - 1}}}"

        return _plain_breaks(_COMMENT.sub(mark, text) if self._has_overrides else text)

    def written(self, texts: Sequence[str], language: str = "") -> str:
        for event, text in zip(self._events, texts, strict=True):
            event.text = _COMMENT_MARK.sub(lambda mark: self._comments[int(mark[1])], text.replace("\n", r"\N"))
        return str(self._file.to_string(self._kind, **self._options))


def _place(text: str) -> str:
    """The overrides that say where a text stands."""
    return "".join(re.findall(r"\\(?:an?\d+|pos\([^)]*\)|move\([^)]*\))", text))


class _Vtt:
    """WebVTT: blocks of lines, with a blank line between two. A line with --> ends a text, too."""

    reversed_times = 0

    def __init__(self, text: str) -> None:
        if not text.startswith("WEBVTT"):
            raise UsageError("it does not begin with WEBVTT")
        self._lines = lines = text.split("\n")
        self._at: list[tuple[int, int]] = []  # the first line of a text, and the line after its last
        self.cues = []
        number = line_of_block = 0
        while number < len(lines):
            line_of_block = line_of_block + 1 if lines[number] else 0
            times = _TIMES.fullmatch(lines[number])
            number += 1
            if times is None or line_of_block > 2:
                continue
            start, line_of_block = number, 0
            while number < len(lines) and lines[number] and "-->" not in lines[number]:
                number += 1
            said = "\n".join(lines[start:number])
            if _WORD_TIME.search(said):
                said = _WORD_CLASS.sub("", _WORD_TIME.sub("", said))
            start_ms, end_ms = (_ms(times.groups()[group : group + 4]) for group in (0, 4))
            self._at.append((start, number))
            self.cues.append(FileCue(start_ms, end_ms, said, "".join(_VOICE.findall(said)[:1])))

    def written(self, texts: Sequence[str], language: str = "") -> str:
        for (start, end), text in reversed([*zip(self._at, texts, strict=True)]):
            self._lines[start:end] = [text] if text else []
        whole = "\n".join(self._lines)
        return re.sub(r"\A((?:.+\n)+Language: ).*", rf"\g<1>{language}", whole) if language else whole


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
            FileCue(None, None, self._inner(element).strip(), "\n".join(element.get(name, "") for name in _TTML_VOICE))
            for element in self._paragraphs
        ]

    def _inner(self, element: ElementTree.Element) -> str:
        text = _ttml_text(element.text)
        for child in element:
            if child.tag == f"{_TTML}br":
                text += "\n"
            else:
                name = f"e{len(self._elements)}"
                self._elements.append(child)
                within = self._inner(child) if child.tag == f"{_TTML}span" else None
                text += f"<{name}/>" if within is None else f"<{name}>{within}</{name}>"
            text += _ttml_text(child.tail)
        return text

    def written(self, texts: Sequence[str], language: str = "") -> str:
        for paragraph, text in zip(self._paragraphs, texts, strict=True):
            self._fill(paragraph, text)
        if language and _XML_LANG in self._root.attrib:
            self._root.set(_XML_LANG, language)
        return ElementTree.tostring(self._root, "unicode", xml_declaration=True) + "\n"

    def _fill(self, paragraph: ElementTree.Element, text: str) -> None:
        paragraph[:], paragraph.text = [], ""
        inside = [paragraph]
        for piece in _PIECE.finditer(text):
            token, closing, number = html.unescape(piece.group()), piece["closing"], piece["number"]
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


def _ttml_text(text: str | None) -> str:
    """Text of an element; what looks like a tag in it is none."""
    return html.escape(_BLANKS.sub(" ", text or ""), quote=False)


def converted(text: str, kind: str, wanted: str, language: str = "") -> str:
    """A subtitle file in another format, with what both formats and SubRip have of its styles. ``language``: that of its texts.

    Raises:
        UsageError: its times or styles cannot be read, or the other format cannot have them.
    """
    kind = kind if kind in WRITTEN_KINDS else "srt"  # as it is written
    if kind == wanted:
        return text
    logging.getLogger("ttconv").setLevel(logging.CRITICAL)  # it names each tag that it leaves out
    with _reading(kind):
        if kind == "vtt":
            text, kind = _srt_of_vtt(text), "srt"
        elif kind == "ttml":
            text, kind = _srt_of_ttml(text), "srt"
        if wanted in ("ass", "ssa"):
            return _file_text(_parsed(text, kind), wanted)
        if kind != "srt":
            text = _file_text(_parsed(text, kind), "srt")
        return _vtt_of_srt(text) if wanted == "vtt" else _ttml_of_srt(text, language) if wanted == "ttml" else text


def _srt_of_vtt(text: str) -> str:
    import pysubs2

    file = pysubs2.SSAFile()
    for cue in _Vtt(text).cues:
        said = _retagged(cue.text, _TAG, lambda part: escapes.srt(html.unescape(part)))
        file.append(pysubs2.SSAEvent(cue.start_ms or 0, cue.end_ms or 0, said.replace("\n", r"\N")))
    return _file_text(file, "srt")


def _vtt_of_srt(text: str) -> str:
    from pysubs2.time import ms_to_str

    blocks = ["WEBVTT\n"]
    for event in sorted(_parsed(text, "srt", keep_html_tags=True), key=lambda event: event.start):
        times = " --> ".join(f"{ms_to_str(ms, fractions=True):0>12}" for ms in (event.start, event.end))
        top = " line:0" if _AT_TOP.search(event.text) else ""
        said = _retagged(_plain_breaks(event.text), _SRT_TAG, _vtt_text)
        blocks.append(f"{times}{top}\n{said}\n")
    return "\n".join(blocks)


def _vtt_text(text: str) -> str:
    return escapes.vtt(html.unescape(text).replace(escapes.JOINER, ""))


def _srt_of_ttml(text: str) -> str:
    from ttconv.imsc import reader as imsc_reader
    from ttconv.srt import writer as srt_writer

    root = ElementTree.fromstring(text.replace("&lt;", f"&lt;{escapes.JOINER}"))
    for element in root.iter():  # what is in another region than the element around it would be left out
        element.attrib.pop("region", None)
        element[:] = [child for child in element if child.tag != f"{_TTML}layout"]
    return str(srt_writer.from_model(imsc_reader.to_model(ElementTree.ElementTree(root))))


def _ttml_of_srt(text: str, language: str) -> str:
    from ttconv.imsc import writer as imsc_writer
    from ttconv.srt import reader as srt_reader
    from ttconv.style_properties import NamedColors

    color = "|".join(["#[0-9a-f]{6}", *NamedColors.__members__])  # no others can be read
    text = re.sub(rf"(?i)<font\b(?![^>]*\bcolor=[\"']?(?:{color})[\"'\s>])[^>]*>", '<font color="white">', text)
    text = _file_text(_parsed(text, "srt", keep_html_tags=True), "srt")  # without overrides
    root = imsc_writer.from_model(srt_reader.to_model(io.StringIO(text))).getroot()
    root.set(_XML_LANG, language)
    return ElementTree.tostring(root, "unicode", xml_declaration=True).replace(escapes.JOINER, "") + "\n"


def _retagged(text: str, tags: str, plain: Callable[[str], str]) -> str:
    """Lines with those of their tags that SubRip and WebVTT have; ``plain`` is what other text becomes."""

    def kept(tag: str) -> str:
        return _COMMON_TAGS.get(re.sub(r"[ .][^>]*", "", tag).lower(), "")

    lines = [re.split(f"({tags})", line) for line in text.split("\n")]
    return "\n".join("".join((plain, kept)[index % 2](piece) for index, piece in enumerate(line)) for line in lines)


def _file_text(file: Any, kind: str) -> str:
    last_h = max((event.end for event in file), default=0) // 3_600_000
    if last_h > _MOST_H[kind]:
        raise UsageError(f"a subtitle is at {last_h} h; {kind} has at most {_MOST_H[kind]} h")
    return str(file.to_string(kind))


def _parsed(text: str, kind: str, **options: Any) -> Any:
    if kind == "srt":
        # pysubs2 takes a number at the end of a SubRip text for that of the next subtitle.
        text = _SRT_TIMES.sub(_whole_times, text) + "\n\n0\n"
    import pysubs2

    try:
        return pysubs2.SSAFile.from_string(text, kind, **options)
    except pysubs2.UnknownFPSError as error:
        raise UsageError("it has no frame rate; add one as its first line, such as {1}{1}25") from error


def _whole_times(times: re.Match[str]) -> str:
    """SubRip's line of times with hours and milliseconds."""
    sign, *start, arrow = times.groups()[:6]
    return sign + _srt_time(start) + arrow + _srt_time(times.groups()[6:])


def _srt_time(parts: Sequence[str | None]) -> str:
    hours, minutes, seconds, fraction = parts
    if int(hours or 0) > _MOST_H["srt"]:
        raise UsageError(f"a subtitle is at {hours} h; give a file of at most {_MOST_H['srt']} h")
    return f"{hours or 0:0>2}:{minutes:0>2}:{seconds:0>2},{fraction or '000'}"


def _plain_breaks(text: str) -> str:
    return text.replace(r"\N", "\n").replace(r"\n", " ").replace(r"\h", "\u00a0")


def _ms(parts: Sequence[str | None]) -> int:
    hours, minutes, seconds, milliseconds = (int(part or 0) for part in parts)
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds
