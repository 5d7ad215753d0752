"""Fetch the missing models of a chain, and load them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.asr.files import find_recognizer
from pipeline.asr.options import AsrConfig
from pipeline.asr.recognizer import DraftRecognizer, Recognizer
from pipeline.asr.whisper import WhisperRecognizer
from pipeline.config import PipelineConfig, pinned_revisions
from pipeline.errors import DownloadError, ModelError, UsageError
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
    drafter: DraftRecognizer | None = None
    """A smaller recogniser for drafts, if one is configured."""


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
        UsageError: see ``translation_options``; or a model does not support its language pair, or does not know the
            spoken language.
    """
    options = translation_options(config)  # fail before any download if no model is known for a language pair
    if config.vad.detector != "webrtc":
        load_silero()  # takes a few ms; all streams share the session
    speech = find_recognizer(config.asr)
    drafts, draft_speech = config.draft_model, speech
    if drafts is not None:
        with _as_draft_model(config.asr):
            draft_speech = find_recognizer(drafts)
    found = {target: find_translation_models(nmt) for target, nmt in options.items()}
    steps = {target: list(zip(nmt.steps, found[target], strict=True)) for target, nmt in options.items()}
    unique = {loaded_as(*step): step for of_target in steps.values() for step in of_target}
    spoken = [config.languages.source]
    if config.languages.only_spoken is None:  # targets, which may name a script
        spoken = [language_tag(language).language for language in config.languages.spoken]
    with ThreadPoolExecutor(2 + len(unique)) as pool:
        recognizer = pool.submit(WhisperRecognizer, config.asr, spoken, speech)
        drafter: Future[WhisperRecognizer] | None = None
        if drafts is not None and draft_speech != speech:  # a model that commits is its own draft model
            drafter = pool.submit(_load_drafter, config.asr, drafts, spoken, draft_speech)
        models: dict[NmtConfig, Future[MarianModel]] = {
            key: pool.submit(load_model, *step) for key, step in unique.items()
        }
        translations = {
            target: in_sequence(
                *config.languages.pair(target), nmt, [models[loaded_as(*step)].result() for step in steps[target]]
            )
            for target, nmt in options.items()
        }
        return Models(recognizer.result(), translations, drafter.result() if drafter is not None else None)


def _load_drafter(asr: AsrConfig, drafts: AsrConfig, spoken: str | Sequence[str], directory: Path) -> WhisperRecognizer:
    with _as_draft_model(asr):
        return WhisperRecognizer(drafts, spoken, directory)


@contextmanager
def _as_draft_model(asr: AsrConfig) -> Iterator[None]:
    """Say in errors of the draft model that it is this one, and for which model it drafts."""
    try:
        yield
    except (DownloadError, ModelError, UsageError) as error:
        raise type(error)(f"asr.draft.model, {asr.draft.model}, which drafts for {asr.model}: {error}") from error
