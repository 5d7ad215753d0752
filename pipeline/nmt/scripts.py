"""The script of a translation: choice of a multilingual model's target code, or conversion of Chinese output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pipeline.errors import UsageError
from pipeline.events import Delta, Translation
from pipeline.languages import CHINESE, LanguageTag, language_tag, nearest
from pipeline.languages.chinese import Convert, conversion, settled
from pipeline.sentences.growing import GrowingText, common_length


def choose_code(target: str, codes: Sequence[str]) -> str:
    """Return the code for ``target`` among the target ``codes`` of a multilingual model.

    The code is in the requested script, or in another script if the output can be converted.

    Raises:
        UsageError: no code fits.
    """
    tag, candidates = language_tag(target), nearest(target, codes)
    if not candidates:
        raise UsageError(
            f"this model does not translate into {target!r}; its targets are {', '.join(codes)}: "
            "choose one with --target"
        )
    written = [code for code in candidates if tag.script in (None, language_tag(code).usual_script)]
    if not written and not _convertible(tag):
        raise UsageError(
            f"this model does not write {tag.language!r} in the script {tag.script}, as {target!r} asks; for that "
            f"language it has {', '.join(candidates)}: choose one with --target, or another translation model"
        )
    return (written or candidates)[0]


def check_script(target: str, written: str | None) -> None:
    """Reject a script that a bilingual model does not write. ``written`` is the script named in the model's files.

    Raises:
        UsageError: ``target`` names another script and the output cannot be converted to it.
    """
    tag = language_tag(target)
    if tag.script is None or _convertible(tag):
        return
    writes = written or LanguageTag(tag.language).usual_script
    if tag.script != writes:
        raise UsageError(
            f"this model does not write {tag.language!r} in the script {tag.script}, as {target!r} asks: it writes "
            f"{writes}, and only Chinese can be converted (to Hans or Hant); give --target {tag.language}, or choose "
            "another translation model"
        )


def needed_conversion(target: str, written: str | None) -> Convert | None:
    """Return the conversion to the Chinese script that ``target`` names.

    Return None if ``target`` names no script or the model already writes it. ``written`` is the script named in the
    model's files or target code. If it is None, the model may write mixed scripts.
    """
    tag = language_tag(target)
    if not _convertible(tag) or tag.script in (None, written):
        return None
    if tag.script == "Hant" and written is None and LanguageTag(tag.language).usual_script == "Hant":
        return None
    return conversion(tag.script, tag.region)


def rewritten(
    events: Iterable[Delta | Translation], convert: Convert | None, *, final: bool = True
) -> Iterator[Delta | Translation]:
    """Yield the events of one sentence with converted texts. The deltas add up to the conversion of the whole sentence.

    A delta is held back until later text cannot change its conversion: until the next punctuation mark, or for some
    characters. So is what the last delta commits, unless the translation is ``final``.
    """
    if convert is None:
        yield from events
        return
    sentence = _SentenceConverter(convert, final=final)
    for event in events:
        if isinstance(event, Delta):
            yield from sentence.push(event)
        else:
            yield from sentence.take_ready(everything=True)
            yield replace(event, text=convert(event.text))


class _SentenceConverter:
    """The text of a sentence so far: the original and the converted part that was passed on."""

    def __init__(self, convert: Convert, *, final: bool) -> None:
        self._convert, self._final = convert, final
        self._text = GrowingText()
        self._emitted = ""
        self._pending: list[Delta] = []  # held back; their texts are the end of ``_text``

    def push(self, delta: Delta) -> Iterator[Delta]:
        """Add a delta and yield the converted deltas that are ready."""
        if delta.withdrawn:  # refers to text that must have been passed on
            yield from self.take_ready(everything=True)
        self._text.apply(delta)
        self._pending.append(delta)
        yield from self.take_ready(everything=delta.complete)

    def take_ready(self, *, everything: bool) -> Iterator[Delta]:
        text = self._text.text
        end = len(text) if everything else settled(text)
        whole = self._convert(text)
        at = len(text) - sum(len(delta.text) for delta in self._pending)
        while self._pending and at + len(self._pending[0].text) <= end:
            delta = self._pending.pop(0)
            # After a withdrawal, the remaining text before it may convert differently in its new context.
            same = min(at, common_length(self._emitted[:at], whole))
            withdrawn, at = len(self._emitted) - same, at + len(delta.text)
            committed = min(at, self._committed(text, delta)) if delta.complete else 0
            yield replace(delta, withdrawn=withdrawn, text=whole[same:at], committed=committed)
            self._emitted = whole[:at]

    def _committed(self, text: str, delta: Delta) -> int:
        """How many characters of the conversion of ``text`` are final when those are that ``delta`` commits."""
        whole = self._final and delta.committed == len(text)
        return delta.committed if whole else settled(text[: delta.committed])


def _convertible(tag: LanguageTag) -> bool:
    return tag.language in CHINESE and tag.script in ("Hans", "Hant")
