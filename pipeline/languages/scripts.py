"""The script of a translation: choice of a multilingual model's target code, or conversion of Chinese output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import UsageError
from .tags import CHINESE, LanguageTag, language_tag, nearest

if TYPE_CHECKING:
    from .chinese import Convert


def choose_code(target: str, codes: Sequence[str]) -> str:
    """Return the code for ``target`` among the target ``codes`` of a multilingual model.

    The code is in the requested script, or in another script if the output can be converted.
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
    """Reject a script that a bilingual model does not write. ``written`` is the script named in the model's files."""
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
    from .chinese import conversion  # as elsewhere: few runs convert anything

    return conversion(tag.script, tag.region)


def _convertible(tag: LanguageTag) -> bool:
    return tag.language in CHINESE and tag.script in ("Hans", "Hant")
