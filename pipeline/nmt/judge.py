"""The student of the other direction as a judge: how likely it finds the source when it is given the translation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from .compiled import local_student
from .forced import forced
from .model import MarianModel
from .routing import student_routes

# Mean log-probability of the source's tokens. A loss of one word of six gives about -3; right translations have -0.1 to -1.5.
_DOUBTFUL = -2.6
# Words of the source. Shorter ones have several right translations, which do not tell which of them was said.
_LEAST_WORDS = 3


def other_direction(model: MarianModel) -> tuple[str, Path] | None:
    """The name and the directory of the student that translates back, if it is on this machine."""
    source, target = model.languages
    route = student_routes().get((target or "", source or ""), ())
    if len(route) != 1 or not model.decoder.guided:
        return None
    directory = local_student(route[0].repository)
    return None if directory is None else (route[0].repository, directory)


def judged_by(back: MarianModel, languages: tuple[str | None, str | None]) -> Callable[[str, str], bool]:
    """Whether a translation of a text is doubtful, by the model that translates back."""
    source, target = (language or "" for language in languages)

    def doubtful(text: str, translation: str) -> bool:
        if len(text.split()) < _LEAST_WORDS:
            return False
        parts = back.parts(translation, target, source, complete=True)
        if len(parts) != 1:
            return not parts
        scores = forced(back, parts[0].ids, text).log_probabilities
        known = scores[np.isfinite(scores)]  # without letters that the vocabulary lacks
        return bool(known.size and known.mean() < _DOUBTFUL)

    return doubtful
