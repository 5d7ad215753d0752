"""The script of a translation: the code that has a multilingual model write it, or the conversion of the model's Chinese."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pipeline.errors import UsageError
from pipeline.events import Delta
from pipeline.languages import CHINESE, TWO_LETTERS, LanguageTag, language_tag
from pipeline.languages.chinese import Convert, conversion, settled

# Target codes of multilingual models, the preferred first.
_PREFERRED_CODES = {"zh": ("cmn_Hans", "zho_Hans", "cmn", "zho", "zh"), "sh": ("hrv", "srp_Latn", "bos_Latn")}


def choose_code(target: str, codes: Sequence[str]) -> str:
    """The one of a multilingual model's target ``codes`` that stands for ``target``: in the script that it asks for, or in
    another where it can be converted.

    Raises:
        UsageError: there is none.
    """
    tag = language_tag(target)
    of_language = [code for code in codes if language_tag(code).language == tag.language]
    exact = [code for code in of_language if (tag.script or tag.region) and language_tag(code) == tag]
    candidates = [
        *([target] if target != tag.language else []),
        *exact,
        *_PREFERRED_CODES.get(tag.language, ()),
        tag.language,
        *(long for long, two in TWO_LETTERS.items() if two == tag.language),
        *of_language,  # in one script, such as aze_Latn
    ]
    candidates = [code for code in candidates if code in codes]
    if not candidates:
        raise UsageError(
            f"this model does not translate into {target!r}; its targets are {', '.join(codes)}: choose one with --target"
        )
    written = [code for code in candidates if tag.script in (None, language_tag(code).usual_script)]
    if not written and not _convertible(tag):
        raise UsageError(
            f"this model does not write {tag.language!r} in the script {tag.script}, as {target!r} asks; for that language it "
            f"has {', '.join(of_language)}: choose one with --target, or another translation model"
        )
    return (written or candidates)[0]


def check_script(target: str, written: str | None) -> None:
    """Refuse a script that a bilingual model does not write. ``written`` is the one that the model's files name, if they do.

    Raises:
        UsageError: ``target`` asks for another, and it is not converted to it.
    """
    tag = language_tag(target)
    writes = written or LanguageTag(tag.language).usual_script
    if tag.script not in (None, writes) and not _convertible(tag):
        raise UsageError(
            f"this model does not write {tag.language!r} in the script {tag.script}, as {target!r} asks: it writes {writes}, and "
            f"only Chinese is converted, to Hans or Hant; give --target {tag.language}, or choose another translation model"
        )


def needed_conversion(target: str, written: str | None) -> Convert | None:
    """What converts Chinese to the script that ``target`` asks for; None where it asks for none, or the model writes it.

    ``written`` is the model's script as far as its files or its target code name one. Where they do not, it may be mixed.
    """
    tag = language_tag(target)
    if not _convertible(tag) or tag.script in (None, written):
        return None
    if tag.script == "Hant" and written is None and LanguageTag(tag.language).usual_script == "Hant":
        return None
    return conversion(tag.script, tag.region)


def rewritten(deltas: Iterable[Delta], convert: Convert | None) -> Iterator[Delta]:
    """The deltas with their texts converted: those of a sentence make up what its text is converted to.

    A delta comes once no later text can change how its own is converted: after the next mark, or some characters later.
    """
    if convert is None:
        yield from deltas
        return
    sentence = _Sentence(convert)
    for delta in deltas:
        yield from sentence.push(delta)
        if delta.end_of_sentence:
            sentence = _Sentence(convert)
    yield from sentence.released(everything=True)


class _Sentence:
    """The text of a sentence so far, as it was written and as it was handed on."""

    def __init__(self, convert: Convert) -> None:
        self._convert = convert
        self._text = self._shown = ""
        self._waiting: list[Delta] = []  # whose texts are the end of the text

    def push(self, delta: Delta) -> Iterator[Delta]:
        """One more delta; those that can be handed on, converted."""
        if delta.withdrawn:  # of what was handed on
            yield from self.released(everything=True)
        self._text = delta.applied_to(self._text)
        self._waiting.append(delta)
        yield from self.released(everything=delta.end_of_sentence)

    def released(self, *, everything: bool) -> Iterator[Delta]:
        end = len(self._text) if everything else settled(self._text)
        whole = self._convert(self._text)
        at = len(self._text) - sum(len(delta.text) for delta in self._waiting)
        while self._waiting and at + len(self._waiting[0].text) <= end:
            delta = self._waiting.pop(0)
            # Where text was withdrawn, what is left before it may be converted otherwise in its new context.
            pairs = zip(self._shown[:at], whole, strict=False)
            same = next((index for index, (old, new) in enumerate(pairs) if old != new), min(at, len(self._shown)))
            withdrawn, at = len(self._shown) - same, at + len(delta.text)
            yield replace(delta, withdrawn=withdrawn, text=whole[same:at])
            self._shown = whole[:at]


def _convertible(tag: LanguageTag) -> bool:
    return tag.language in CHINESE and tag.script in ("Hans", "Hant")
