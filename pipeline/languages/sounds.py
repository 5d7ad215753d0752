"""Captions of sounds that are heard where nobody speaks."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from .tags import language_tag

_TABLE = Path(__file__).with_name("sounds.tsv")


def sound_label(sound: str, language: str) -> str:
    """The caption of "music" or "singing", such as "[music]"; "[♪]" in languages that the table lacks."""
    tag = language_tag(language)
    labels = _labels().get(f"{tag.language}-{tag.script}") or _labels().get(tag.language) or {}
    return f"[{labels.get(sound, '♪')}]"


@cache
def _labels() -> Mapping[str, Mapping[str, str]]:
    """The labels of sounds, by language, or language and script."""
    with _TABLE.open(encoding="utf-8", newline="") as lines:
        return {row["language"]: row for row in csv.DictReader(lines, delimiter="\t")}
