"""Load the translation models for a language pair, downloading them if needed, and check their languages."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core import TextTranslator
from ...store import Progress
from ..nmt_options import TRANSLATORS, NmtConfig
from .compiled import find_translation_model
from .model import MarianModel
from .routing import resolve

if TYPE_CHECKING:
    from .pivot import PivotTranslator

_OF_URL: Any = {name: getattr(NmtConfig, name) for name in ("url", "url_model", "url_timeout_s", "url_tokens")}


def find_translation_models(nmt: NmtConfig, progress: Progress | None = None) -> tuple[tuple[NmtConfig, Path], ...]:
    """Return the options and directories of the one or two models, which must be named; see ``find_translation_model``."""
    return tuple((step, find_translation_model(step, progress)) for step in nmt.steps)


def load_translation_model(
    source: str, target: str, nmt: NmtConfig, directories: Sequence[Path] = ()
) -> MarianModel | PivotTranslator:
    """Load the one or two translation models for a language pair and check that they support it. Blocks.

    Args:
        directories: one per model; by default ``find_translation_models`` finds them.

    Raises:
        ModelError: a directory is incomplete or damaged.
        DownloadError: a model is not in the cache and cannot be downloaded.
        UsageError: a model does not support its language pair; or the model is "auto" and none is known for the pair.
    """
    nmt = resolve((source, target), nmt)
    steps = zip(nmt.steps, directories, strict=True) if directories else find_translation_models(nmt)
    models = [MarianModel.load(directory, step) for step, directory in steps]
    return in_sequence(source, target, nmt, models)


def in_sequence(
    source: str, target: str, nmt: NmtConfig, models: Sequence[MarianModel]
) -> MarianModel | PivotTranslator:
    """Return the translator of one or two loaded models, which may also be in use for other language pairs.

    One of another package has no models here, and is loaded.
    """
    if nmt.plugged_in:
        return TRANSLATORS.make(nmt.backend, source, target, nmt)  # type: ignore[no-any-return]
    model: MarianModel | PivotTranslator = models[0]
    if len(models) > 1:
        from .pivot import PivotTranslator

        model = PivotTranslator(models[0], models[1], nmt.via)
    model.check_languages(source, target)
    return model


def loaded_translator(source: str, target: str, nmt: NmtConfig, models: Sequence[MarianModel]) -> TextTranslator:
    """Return the translator of loaded models, with that of an address before it if there is one."""
    local = in_sequence(source, target, nmt, models)
    if nmt.url is None:
        return local
    from ..by_address import ByAddress

    return ByAddress(local, nmt)


def loaded_as(step: NmtConfig, directory: Path) -> NmtConfig:
    """Return a key for ``MarianModel.load``: equal if the same directory is loaded with the same options."""
    return dataclasses.replace(step, model=os.path.realpath(directory), revision=None, via="none", **_OF_URL)
