"""Fetch the missing models of a chain, and load them."""

from __future__ import annotations

import dataclasses
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast
from weakref import WeakValueDictionary

from ..backends import (
    AsrConfig,
    LanguagePair,
    MarianModel,
    NmtConfig,
    engine,
    find_translation_models,
    in_sequence,
    load_silero,
    loaded_as,
    loaded_translator,
    usual_script,
)
from ..core import (
    AddSpeakers,
    DraftRecognizer,
    Models,
    Recognizer,
    SameLanguageText,
    SoundOptions,
    SpeakerOptions,
    StreamingRecognizer,
    TextTranslator,
    import_stages,
)
from ..errors import DownloadError, MemoryLimitError, ModelError, UsageError
from ..languages import language_tag
from ..store import is_student, known_translator, megabytes

if TYPE_CHECKING:
    from ..core import SoundDetector
    from .config import PipelineConfig

# Memory that a loaded translator takes, for the size of its files: 40 to 60 MB for the 25 MB of a tiny student.
_MEMORY_FACTOR = 2


def load_models(config: PipelineConfig) -> Models:
    """Fetch models that are not in the cache, one after the other, then load all in parallel. Blocks.

    A translation model that serves several targets with the same options is loaded once.

    Raises:
        ModelError, DownloadError: see ``RecognizerEngine`` and ``find_translation_models``.
        UsageError: see ``PipelineConfig.translators``; or a model does not support its language pair, or does not know the
            spoken language.
    """
    return load_shared([config])[0]


def load_translations(config: PipelineConfig) -> dict[str, TextTranslator]:
    """The translator into each target alone, for texts; see ``load_models``."""
    shared, translators = SharedModels(), dict[str, TextTranslator]()
    for (source, target), nmt in config.translators.items():
        if target not in config.languages.mixed:
            translators[target] = in_sequence(source, target, nmt, shared.translators(nmt))
    return {target: translators.get(target) or SameLanguageText(target) for target in config.languages.targets}


def load_shared(
    configs: Sequence[PipelineConfig], *, several_calls: bool = False, shared: SharedModels | None = None
) -> list[Models]:
    """The models of several configurations, in their order. What is the same with the same options is loaded once.

    Args:
        several_calls: recognition for several streams runs at the same time; see ``WhisperWeights.load``.
        shared: the models of earlier calls, which are used again; those of this call are added.

    Raises:
        MemoryLimitError: see ``SharedModels``.
        ModelError, DownloadError, UsageError: see ``load_models``.
    """
    if any(config.has_drafts for config in configs):
        import_stages()
    shared = shared or SharedModels()
    voices = [shared.voice_model(config.speakers) for config in configs]
    sounds = [shared.sound_detector(config.sounds) for config in configs]
    # Fail before any download if no model is known for a language pair.
    options = [config.translators for config in configs]
    if any(config.vad.detector != "webrtc" for config in configs):
        load_silero()  # takes a few ms; all streams share the session
    plans = [_find(config, of_pairs) for config, of_pairs in zip(configs, options, strict=True)]
    speech = dict.fromkeys(model for plan in plans for model in (plan.recognizer, plan.drafter) if model is not None)
    unique = {loaded_as(*step): step for plan in plans for _, steps in plan.translators.values() for step in steps}
    shared.make_room({key: directory for key, (_, directory) in unique.items()})
    with ThreadPoolExecutor(len(speech) + len(unique)) as pool:
        recognizers = {model: pool.submit(shared.recognizers.__getitem__, model) for model in shared.recognizers}
        # Of those that share one model in memory.
        firsts = {model.weights: recognizer for model, recognizer in reversed(recognizers.items())}
        for model in speech:
            if model not in recognizers:
                recognizers[model] = pool.submit(model.load, firsts.get(model.weights), several_calls)
            firsts.setdefault(model.weights, recognizers[model])
        models = {key: pool.submit(shared.translator, key, *step) for key, step in unique.items()}
        translations: list[dict[str, TextTranslator]] = [
            {
                target: SameLanguageText(target)
                for target in config.languages.targets
                if config.languages.is_spoken(target)
            }
            | {
                target: loaded_translator(source, target, nmt, [models[loaded_as(*step)].result() for step in steps])
                for (source, target), (nmt, steps) in plan.translators.items()
            }
            | _by_language(config, shared)
            for config, plan in zip(configs, plans, strict=True)
        ]
        shared.recognizers |= {model: recognizers[model].result() for model in speech}
        return [
            Models(
                recognizers[plan.recognizer].result(),
                {target: of_targets[target] for target in config.languages.targets},
                cast(DraftRecognizer, recognizers[plan.drafter].result()) if plan.drafter is not None else None,
                of_voices,
                of_sounds,
            )
            for config, plan, of_targets, of_voices, of_sounds in zip(
                configs, plans, translations, voices, sounds, strict=True
            )
        ]


def _by_language(config: PipelineConfig, shared: SharedModels) -> dict[str, TextTranslator]:
    """The translators into the targets that are spoken in several languages."""
    if not config.languages.mixed:
        return {}
    from ..backends import translator_by_language

    return {
        target: translator_by_language(config, target, shared.translators, fetches=shared.fetches)
        for target in config.languages.mixed
    }


@dataclass(frozen=True)
class _Speech:
    """A recogniser to be loaded."""

    asr: AsrConfig
    spoken: tuple[str, ...]
    directory: Path
    drafts_for: AsrConfig | None = None
    """The options of the model for which it drafts."""

    @property
    def weights(self) -> tuple[str, str, str, str, int]:
        """The part of the options by which recognisers can share a model in memory if it is equal."""
        asr = self.asr
        return asr.backend, os.path.realpath(self.directory), asr.device, asr.compute_type, asr.threads

    def load(
        self, sharing: Future[Recognizer | StreamingRecognizer] | None, several_calls: bool
    ) -> Recognizer | StreamingRecognizer:
        """Load it. ``sharing``: another recogniser with the same model, which was submitted before."""
        with _as_draft_model(self.drafts_for) if self.drafts_for is not None else nullcontext():
            same = sharing.result() if sharing is not None else None
            return engine(self.asr.backend).load_model(self.asr, self.spoken, self.directory, same, several_calls)


class SharedModels:
    """Models in memory for several calls of ``load_shared``, which come one after another.

    Recognisers stay. A translator that nobody uses any more stays until another one needs its room.
    """

    def __init__(self, limit_bytes: float = math.inf, *, fetches: bool = True) -> None:
        """``limit_bytes``: of all translators together. ``fetches``: a language that is spoken may have its translator fetched."""
        self.loading = threading.RLock()
        """Held by who loads translators while others may."""
        self.fetches = fetches
        self.recognizers: dict[_Speech, Recognizer | StreamingRecognizer] = {}
        self.limit_bytes = limit_bytes
        self._voices: dict[Path, AddSpeakers] = {}
        self._sounds: SoundDetector | None = None
        self._translators: WeakValueDictionary[NmtConfig, MarianModel] = WeakValueDictionary()
        self._sizes: dict[NmtConfig, int] = {}
        self._kept: dict[NmtConfig, MarianModel] = {}  # the last used last
        self._lock = threading.Lock()

    def voice_model(self, options: SpeakerOptions) -> AddSpeakers | None:
        """The model that tells voices apart, if that is wanted."""
        if not options.auto:
            return None
        from ..backends import VoiceModel, voice_model_folder, with_speakers

        if (path := voice_model_folder(options)) not in self._voices:
            self._voices[path] = partial(with_speakers, VoiceModel(path))
        return self._voices[path]

    def sound_detector(self, options: SoundOptions) -> SoundDetector | None:
        """The detector of music and singing; None unless they have captions."""
        if options.captions and self._sounds is None:
            from ..backends import FireRedDetector

            self._sounds = FireRedDetector()
        return self._sounds if options.captions else None

    def voices_on_demand(self, options: SpeakerOptions) -> Callable[[], AddSpeakers | None]:
        """Loads the model that tells voices apart when it is first called.

        Raises:
            UsageError, ModelError: there is no such model.
        """
        from ..backends import voice_model_folder

        wanted = dataclasses.replace(options, auto=True)
        voice_model_folder(wanted)
        return partial(self.voice_model, wanted)

    @property
    def used_bytes(self) -> int:
        """Memory of all translators, about."""
        return sum(self._sizes.get(key, 0) for key in self._translators)

    def make_room(self, directories: Mapping[NmtConfig, Path]) -> None:
        """Drop translators that nobody uses, those first that were not used for the longest time.

        Raises:
            MemoryLimitError: the others, with those of ``directories``, take more than the limit.
        """
        for key, directory in directories.items():
            files = [path for path in directory.rglob("*") if path.is_file()]
            self._sizes[key] = _MEMORY_FACTOR * sum(path.stat().st_size for path in files)
        unused = [key for key in self._kept if key not in directories]
        while (needed := sum(self._sizes[key] for key in {*self._translators, *directories})) > self.limit_bytes:
            if not unused:
                raise MemoryLimitError(
                    f"the translators in use would take {megabytes(needed)}, and {megabytes(int(self.limit_bytes))} are allowed "
                    "(--model-memory); try again when other sessions have ended, or choose languages that are in use"
                )
            del self._kept[unused.pop(0)]

    def translator(self, key: NmtConfig, nmt: NmtConfig, directory: Path) -> MarianModel:
        """A translator that is in memory already, or is loaded. Several different ones may be loaded at once."""
        model = self._translators.get(key) or MarianModel.load(directory, nmt)
        with self._lock:
            self._translators[key] = model
            self._kept.pop(key, None)
            self._kept[key] = model
        return model

    def translators(self, nmt: NmtConfig) -> list[MarianModel]:
        """The one or two models of the options, which are fetched if need be; others may load meanwhile."""
        models = find_translation_models(nmt)
        with self.loading:
            steps = {loaded_as(*step): step for step in models}
            self.make_room({key: directory for key, (_, directory) in steps.items()})
            return [self.translator(key, *step) for key, step in steps.items()]


@dataclass(frozen=True)
class _Found:
    """The paths of the models of a configuration."""

    recognizer: _Speech
    drafter: _Speech | None
    translators: Mapping[LanguagePair, tuple[NmtConfig, Sequence[tuple[NmtConfig, Path]]]]
    """For each target, from one language: the translation options, and the one or two models."""


def _find(config: PipelineConfig, options: Mapping[LanguagePair, NmtConfig]) -> _Found:
    """Find the models of a configuration; fetch those that are not in the cache."""
    spoken = tuple(language_tag(language).language for language in config.languages.spoken)
    script = config.asr.script or usual_script(config.languages.spoken)
    asr, draft = dataclasses.replace(config.asr, script=script), config.draft_model
    recognizer, drafter = _Speech(asr, spoken, _speech_model(asr)), None
    if draft is not None:
        draft = dataclasses.replace(draft, script=script)
        with _as_draft_model(asr):
            directory = _speech_model(draft)
        if directory != recognizer.directory:  # else the recogniser makes its own drafts
            drafter = _Speech(draft, spoken, directory, asr)
    single = {pair: nmt for pair, nmt in options.items() if pair[1] not in config.languages.mixed}
    return _Found(recognizer, drafter, {pair: (nmt, find_translation_models(nmt)) for pair, nmt in single.items()})


def _speech_model(asr: AsrConfig) -> Path:
    if is_student(asr.model) or known_translator(asr.model) is not None:
        raise UsageError(
            f"{asr.model} is a translator, not a speech model; give a directory, a Whisper size such as small, or a hub id"
        )
    return engine(asr.backend).find_model(asr)


@contextmanager
def _as_draft_model(asr: AsrConfig) -> Iterator[None]:
    """Say in errors of the draft model that it is this one, and for which model it drafts."""
    try:
        yield
    except (DownloadError, ModelError, UsageError) as error:
        raise type(error)(f"asr.draft.model, {asr.draft.model}, which drafts for {asr.model}: {error}") from error
