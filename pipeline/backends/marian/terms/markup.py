"""Text with markup: what of it is translated, and where its marks stand in the translation. Pure.

Tags, ASS overrides, line breaks, dashes of a dialogue and music notes are marks between words. They are taken out of the text,
and put where the translations of the words around them are. Placeholders, mentions and code are words that stay as they are:
codes such as X1 stand for them, which translators copy.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, count, takewhile

from ....core import split_sentences
from ....languages import CLOSERS, MARKS, sets_sentences_apart
from ....languages.rules import rules
from .literals import stays
from .mark_places import Alignment, Mark, Places

NEXT = "\x1e"
"""Stands between the subtitles of one text, and is kept like a line break."""
_TOKEN = re.compile(
    r"""
    (?P<word> <(code|kbd|samp)\b [^<>]* > [^<]{0,1000} </(code|kbd|samp)\s*>
        | (?<!\w) \w{0,20} <su[bp]> (?!st<|nd<|rd<|th<) [\w+-]{1,9} </su[bp]> \w{0,20}
        | %(?:\d+\$)?[sdif@](?!\w) | %\(\w+\)[sdif] | \$?\{\{?[\w.,:\ -]+\}?\} | `[^`\n]+`
        | (?<![\w@]) [@\#] \w* [^\W\d] \w* )
    | (?P<line> (?<![^\S\n\x1e]) [^\S\n\x1e]* (?: <br\s*/?> \n? | [\n\x1e] ) [^\S\n\x1e]* )
    | (?P<open> < (?P<opened> [A-Za-z][\w.:-]* ) (?: \s [^<>\n]* )? (?<!/) > | \{\\ (?P<style>[ibus]) 1\} )
    | (?P<close> </ (?P<closed> [A-Za-z][\w.:-]* ) \s* > | \{\\ (?P<styled>[ibus]) 0\} )
    | (?P<bold> \*\* )
    | (?P<mark> < (?=[\w!?/]) [^<>\n]* > | \{\\ [^{}\n]* \} | [♩-♯\U0001f3b5\U0001f3b6]+ | [<>{}] | &[lg]t; )
    """,
    re.VERBOSE,
)
# In a page: what parts texts. What is between a tag with code and the closing one is none.
_BLOCK = re.compile(
    r"""<(?: (?P<code>script|style|pre|textarea)\b | /?(?: p|div|li|[uo]l|h[1-6r]|table|t[rdh]|thead|tbody|section|article|header
    |footer|nav|main|aside|blockquote|d[ltd]|figure|figcaption|form|option|select|title|head|html|body|caption|address|label|button)\b [^<>]* > )""",
    re.IGNORECASE | re.VERBOSE,
)
_SCRIPT = re.compile(r"<(script|style)\b", re.IGNORECASE)
_SCRIPT_END = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style")}
# What is no text of its own, such as a tag or a placeholder; and what is.
_SHOWN = re.compile(r"<[^<>]*>|`[^`\n]*`|\{[^{}\n]*\}|%\(\w+\)\w|(?P<shown>[^<`{%]+|.)", re.DOTALL)
_CODE_END = re.compile(r"</(script|style|pre|textarea)\s*>", re.IGNORECASE)
_DASH = re.compile(r"\s*(?:[-–—‐]+|>>+)(?=\s|[^\W\d])\s*")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]\w{1,30});", re.IGNORECASE)
_BLANKS = re.compile(r"\s+")
_ENDED = re.compile(rf"[{MARKS}:;][{re.escape(CLOSERS)}\s]*$")
# Of a line that goes on from the one before.
_GOES_ON = re.compile(r"[^\W\d_A-Z]|I\b")
_NEAR = 8
"""Tokens looked at on either side of a line break."""
_STAND_IN = re.compile(r"\b(X\d+)\b")
_LAST_STAND_IN, _STAND_IN_PLACE = re.compile(r"\bX\d{1,8}$"), re.compile(r"( ?)\b(X\d+)\b( ?)")
# A first word that is no name, and may be written in small letters within a sentence.
_FIRST_WORD = re.compile(r"(?!I\b)[^\W\d_][^\WA-Z\d_]*(?![\w.])")


@dataclass(frozen=True)
class Fragment:
    """A text to translate, and what is put into its translation."""

    text: str
    marks: tuple[Mark, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)  # what stands for a word that stays as it is → that word
    entities: Mapping[str, str] = field(default_factory=dict)  # character → the reference that stood for it
    touching: frozenset[tuple[str, bool]] = frozenset()  # keys of ``words`` with a letter beside them; whether after

    @property
    def needs_alignment(self) -> bool:
        """Whether a mark stands between two words."""
        return any(self.text[: mark.at].strip() and self.text[mark.at :].strip() for mark in self.marks)

    def sentences(self, language: str) -> list[Fragment]:
        """The sentences, each with its marks."""
        texts = split_sentences(self.text, language)
        starts = list(accumulate(map(len, texts), initial=0))[:-1]
        inside: list[list[Mark]] = [[] for _ in texts]
        for mark in self.marks:
            number = max(0, (bisect_left if mark.after else bisect_right)(starts, mark.at) - 1)
            inside[number].append(replace(mark, at=mark.at - starts[number]))
        return [
            replace(self, text=text.rstrip(), marks=tuple(of_it)) for text, of_it in zip(texts, inside, strict=True)
        ]

    def written(
        self,
        translation: str,
        source: str,
        target: str,
        alignment: Alignment | None = None,
        mask: Callable[[str], str] = str,
    ) -> str:
        """The translation of a sentence with its marks, and no more of a sentence than the text is.

        ``mask``: hides words of a text, whose length it keeps.
        """
        text = as_fragment(self.text, translation, target)
        lost = [
            Mark(f" {name}", self.text.index(name) + len(name), after=True)
            for name in (found.group() for found in _STAND_IN.finditer(self.text))
            if name in self.words and name not in text
        ]
        found = Places(self.text, source, text, target, alignment).of([*self.marks, *lost])
        # Now that the places are known; words that are put back are masked there.
        text = "".join(each if each in self.words else mask(each) for each in _STAND_IN.split(text))
        pieces, before = [], 0
        for at, mark in sorted(found, key=lambda one: (one[0], not one[1].after, not one[1].line)):
            piece = text[before:at]
            pieces += [self._with_entities(piece.rstrip() if mark.line else piece)]
            pieces += [mark.text if at or mark not in lost else f"{mark.text.lstrip()} "]
            before = at
        whole = "".join([*pieces, self._with_entities(text[before:])])
        return _STAND_IN_PLACE.sub(lambda found: self._word(found, mask), whole)

    def _word(self, match: re.Match[str], mask: Callable[[str], str]) -> str:
        before, name, after = match.groups()
        blanks = ("" if (name, side) in self.touching else blank for side, blank in ((False, before), (True, after)))
        return masked(self.words.get(name, name), mask).join(blanks)

    def _with_entities(self, text: str) -> str:
        return "".join(self.entities.get(character, character) for character in text) if self.entities else text


def parts(text: str, *, one_text: bool = False) -> list[str | Fragment]:
    """What a text is made of: blanks, line breaks and what is the same in every language as they are, and what is to be translated.

    ``one_text``: every line goes on in the next, unless its sentence ends or someone else speaks.
    """
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # without halves of characters
    pieces: list[str | Fragment] = []
    tokens: list[tuple[str, str, str]] = []  # kind, text, name of a tag
    end = 0
    for token in _TOKEN.finditer(text):
        tokens += [("text", text[end : token.start()], "")] * (token.start() > end)
        name = token["opened"] or token["closed"] or token["style"] or token["styled"] or ""
        tokens.append((token.lastgroup or "mark", token.group(), name.lower()))
        end = token.end()
    tokens += [("text", text[end:], "")] * (end < len(text))
    begin = 0
    for number, (kind, line, _) in enumerate(tokens):
        if kind == "line" and not _goes_on(
            tokens[max(begin, number - _NEAR) : number], tokens[number + 1 : number + 1 + _NEAR], one_text=one_text
        ):
            pieces += [*_chunk(tokens[begin:number]), line]
            begin = number + 1
    return [*pieces, *_chunk(tokens[begin:])]


def parts_of_page(text: str) -> list[str | Fragment]:
    """What a page of HTML is made of, see ``parts``: the content of each block is one text, and code is kept."""
    pieces: list[str | Fragment] = []
    code_ends: dict[str, list[int]] = {}
    for closing in _CODE_END.finditer(text):
        code_ends.setdefault(closing[1].lower(), []).append(closing.end())
    done = 0
    for block in _BLOCK.finditer(text):
        end = block.end()
        if (name := block["code"]) is not None:
            ends = code_ends.get(name.lower(), [])
            number = bisect_right(ends, end)
            end = ends[number] if number < len(ends) else 0
        if end > done <= block.start():  # complete, and not in code
            blanks = _BLANKS.match(text, end)
            end = blanks.end() if blanks else end
            pieces += [*parts(text[done : block.start()], one_text=True), text[block.start() : end]]
            done = end
    return [*pieces, *parts(text[done:], one_text=True)]


def joined_sentences(sentences: Sequence[str], target: str) -> str:
    """The translations of sentences of one fragment."""
    blank = " " if sets_sentences_apart(target) else ""
    text = ""
    for sentence in sentences:
        text += (blank if text and sentence and not sentence[0].isspace() else "") + sentence
    return text


def masked(text: str, mask: Callable[[str], str]) -> str:
    """Text that is not translated, with words hidden by ``mask``; tags, scripts, styles, placeholders and code stay."""
    pieces, done = [], 0
    while (code := _SCRIPT.search(text, done)) is not None:
        if (end := _SCRIPT_END[code[1].lower()].search(text, code.end())) is None:
            break
        pieces += [_masked(text[done : code.start()], mask), text[code.start() : end.start()]]
        done = end.start()
    return "".join([*pieces, _masked(text[done:], mask)])


def _masked(text: str, mask: Callable[[str], str]) -> str:
    return _SHOWN.sub(lambda match: mask(match.group()) if match["shown"] else match.group(), text)


def as_fragment(source: str, translation: str, target: str) -> str:
    """A translation without the full stop and the capital that its source has not."""
    bare = source.rstrip()
    if bare and not _ENDED.search(bare) and translation.endswith(("。", ".")) and not translation.endswith(".."):
        translation = translation[:-1]
    first = _FIRST_WORD.match(translation)
    small = bare[:1].islower() and not rules(target).capital_nouns
    if small and first is not None and first.group() not in bare:
        translation = translation[0].lower() + translation[1:]
    return translation


def _goes_on(before: Sequence[tuple[str, str, str]], after: Sequence[tuple[str, str, str]], *, one_text: bool) -> bool:
    """Whether the sentence of a line goes on in the next."""
    said = "".join(text for kind, text, _ in before if kind in ("text", "word")).rstrip()
    following = "".join(
        text for kind, text, _ in takewhile(lambda token: token[0] != "line", after) if kind in ("text", "word")
    ).lstrip()
    if not said or not following or _ENDED.search(said) or _DASH.match(following):
        return False
    return one_text or _GOES_ON.match(following) is not None


class _Reader:
    """Makes a fragment of tokens."""

    def __init__(self, tokens: Sequence[tuple[str, str, str]]) -> None:
        self._tokens = tokens
        self.text = ""
        self.marks: list[Mark] = []
        self.words: dict[str, str] = {}
        self.entities: dict[str, str] = {}
        self.touching: set[tuple[str, bool]] = set()
        taken = {match.group() for kind, text, _ in tokens if kind == "text" for match in _STAND_IN.finditer(text)}
        self._names = (name for name in (f"X{number}" for number in count(1)) if name not in taken)

    def read(self) -> Fragment:
        words = [n for n, (kind, text, _) in enumerate(self._tokens) if kind in ("text", "word") and text.strip()]
        last = max(words, default=-1)
        opened: list[tuple[str, int]] = []  # tags without their closing ones: name, number among the marks
        names, closed_later = Counter[str](), Counter(name for kind, _, name in self._tokens if kind == "close")
        for number, (kind, text, name) in enumerate(self._tokens):
            if kind in ("text", "word"):
                self._add(self._plain(text) if kind == "text" else self._stand_in(text))
                continue
            bold = kind == "bold" and names["**"] > 0
            after = kind == "close" or bold or number > last
            self._mark(text, after=after, line=kind == "line", last=number > last)
            name = "**" if kind == "bold" else name
            closed_later[name] -= kind == "close"
            if kind == "open" or (kind == "bold" and not bold):
                opened.append((name, len(self.marks) - 1))
                names[name] += 1
            elif names[name]:
                inner, closing = [opened.pop()], self.marks.pop()
                while inner[-1][0] != name:
                    inner.append(opened.pop())
                names.subtract(other for other, _ in inner)
                opening = inner.pop()[1]
                is_empty = self.marks[opening].at >= len(self.text.rstrip())  # no word is in between
                if is_empty and not self.marks[opening].after:
                    closing = replace(closing, text=text, at=self.marks[opening].at, after=False)
                pair = None if is_empty else opening
                mended = [
                    tag for tag in inner[:_NEAR] if self.marks[tag[1]].text[0] == "<" and closed_later[tag[0]] > 0
                ]
                for other, place in mended:  # closed too late: closed before, and opened again after
                    self.marks[place] = replace(self.marks[place], pair=place)
                    self.marks.append(replace(closing, text=f"</{other}>", pair=place))
                self.marks[opening] = replace(self.marks[opening], pair=pair)
                self.marks.append(replace(closing, pair=pair))
                for other, place in reversed(mended):
                    opened.append((other, len(self.marks)))
                    names[other] += 1
                    self.marks.append(replace(self.marks[place], at=len(self.text), pair=None))
        return Fragment(self.text, tuple(self.marks), self.words, self.entities, frozenset(self.touching))

    def _add(self, text: str) -> None:
        """Add text; the blanks at its ends are those of the marks beside them, if there is no word on the other side."""
        text = _BLANKS.sub(" ", text)
        name = _LAST_STAND_IN.search(self.text, max(0, len(self.text) - 9))
        at_mark = self.marks and self.marks[-1].at == len(self.text)
        if name and name.group() in self.words and text[:1].isalnum() and not at_mark:
            self.touching.add((name.group(), True))
            text = f" {text}"
        if (not self.text or self.text.endswith(" ")) and text.startswith(" "):
            if self.marks and self.marks[-1].at == len(self.text) and not (self.text and self.marks[-1].after):
                self.marks[-1] = replace(self.marks[-1], text=self.marks[-1].text + " ")
            text = text[1:]
        if not self.text and self.marks and (dash := _DASH.match(text)):
            self.marks.append(Mark(dash.group(), 0))
            text = text[dash.end() :]
        self.text += text

    def _mark(self, text: str, *, after: bool, line: bool, last: bool) -> None:
        if line or (len(text) == 1 and not after):  # a sign between two words
            self.text = f"{self.text.rstrip()} ".lstrip()
        bare = self.text.rstrip()
        if after and len(bare) < len(self.text):
            text = f" {text}"
            self.text = bare if last else self.text  # the blank is that of this mark
        self.marks.append(Mark(text, len(bare) if after else len(self.text), after, line))

    def _stand_in(self, word: str) -> str:
        name = next(self._names)
        if self.text[-1:].isalpha():
            self.touching.add((name, False))
            self.text += " "
        self.words[name] = word
        return name

    def _plain(self, text: str) -> str:
        def character(reference: re.Match[str]) -> str:
            sign = html.unescape(reference.group())
            if len(sign) == 1 and not sign.isspace():
                self.entities[sign] = reference.group()
            return sign

        return _ENTITY.sub(character, text)


def _chunk(tokens: Sequence[tuple[str, str, str]]) -> list[str | Fragment]:
    """A line or several, of which each goes on in the next: blanks and a dash at its ends, and a fragment."""
    whole = "".join(text for _, text, _ in tokens)
    if all(stays(word) for kind, text, _ in tokens if kind == "text" for word in text.split()):
        return [whole] if whole else []
    tokens = list(tokens)
    before = after = ""
    if tokens[0][0] == "text":
        text = tokens[0][1]
        dash = _DASH.match(text)
        before = dash.group() if dash else text[: len(text) - len(text.lstrip())]
        tokens[0] = ("text", text[len(before) :], "")
    if tokens[-1][0] == "text":
        text = tokens[-1][1]
        after = text[len(text.rstrip()) :]
        tokens[-1] = ("text", text.rstrip(), "")
    return [*filter(None, [before]), _Reader(tokens).read(), *filter(None, [after])]
