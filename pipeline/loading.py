"""Fetch the missing models of a chain, and load them."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from pipeline.asr.files import find_recognizer
from pipeline.asr.recognizer import Recognizer
from pipeline.asr.whisper import WhisperRecognizer
from pipeline.config import PipelineConfig, pinned_revisions
from pipeline.languages import language_tag
from pipeline.nmt.load import find_translation_models, in_sequence, load_model, loaded_as
from pipeline.nmt.model import MarianModel
from pipeline.nmt.options import NmtConfig
from pipeline.nmt.pairs import AUTO
from pipeline.nmt.routing import check_shared, resolved
from pipeline.nmt.stage import TextTranslator
from pipeline.vad.silero import load_silero


@dataclass(frozen=True)
class Models:
    """Loaded models. Several translators may share them."""

    recognizer: Recognizer
    translations: Mapping[str, TextTranslator]
    """Target language → its translator."""


def translation_options(config: PipelineConfig) -> dict[str, NmtConfig]:
    """The translation options of each target language, with the models that "auto" stands for.

    Raises:
        UsageError: no model is known for a language pair; or several targets share a model that cannot serve them all.
    """
    languages = config.languages
    check_shared(config.nmt, [languages.pair(target) for target in config.sharing_targets])
    options = {target: config.nmt_for(target) for target in languages.targets}
    pinned = pinned_revisions() if any(nmt.model == AUTO for nmt in options.values()) else {}
    return {target: resolved(*languages.pair(target), nmt, pinned) for target, nmt in options.items()}


def load_models(config: PipelineConfig) -> Models:
    """Fetch models that are not in the cache, one after the other, then load all in parallel. Blocks.

    A translation model that serves several targets with the same options is loaded once.

    Raises:
        ModelError, DownloadError: see ``find_recognizer`` and ``find_translation_models``.
        UsageError: see ``translation_options``; or a model does not support its language pair.
    """
    options = translation_options(config)  # fail before any download if no model is known for a language pair
    if config.vad.detector != "webrtc":
        load_silero()  # takes a few ms; all streams share the session
    speech = find_recognizer(config.asr)
    found = {target: find_translation_models(nmt) for target, nmt in options.items()}
    steps = {target: list(zip(nmt.steps, found[target], strict=True)) for target, nmt in options.items()}
    unique = {loaded_as(*step): step for of_target in steps.values() for step in of_target}
    spoken = [config.languages.source]
    if config.languages.only_spoken is None:  # targets, which may name a script
        spoken = [language_tag(language).language for language in config.languages.spoken]
    with ThreadPoolExecutor(1 + len(unique)) as pool:
        recognizer = pool.submit(WhisperRecognizer, config.asr, spoken, speech)
        models: dict[NmtConfig, Future[MarianModel]] = {
            key: pool.submit(load_model, *step) for key, step in unique.items()
        }
        translations = {
            target: in_sequence(
                *config.languages.pair(target), nmt, [models[loaded_as(*step)].result() for step in steps[target]]
            )
            for target, nmt in options.items()
        }
        return Models(recognizer.result(), translations)
