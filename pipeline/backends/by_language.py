"""Translates each sentence from its own language, where several may be spoken: a translator for each of them."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ..core import (
    SameLanguageText,
    TargetText,
    TermTranslator,
    TextTranslator,
    Translation,
    TranslationRequest,
    attends,
    common_length,
)
from ..errors import PipelineError, UsageError, one_line
from ..glossary import Glossary, Term
from ..languages import MOST_SPOKEN, language_tag, same_language
from ..store import ModelRef, is_student, local_model
from .marian.load import loaded_translator
from .marian.model import MarianModel
from .nmt_options import NmtConfig

if TYPE_CHECKING:
    from ..config import PipelineConfig

log = logging.getLogger(__name__)

# A fetch that failed is tried again after so long: a server outlives an outage of the network.
_AGAIN_S = 60.0


def translator_by_language(
    config: PipelineConfig, target: str, translators: Callable[[NmtConfig], list[MarianModel]], *, fetches: bool
) -> ByLanguage:
    """The translator into a target: those from named languages are loaded; from any language, each when it is spoken.

    ``translators``: fetches and loads models. ``fetches``: whether models are fetched for any language that is spoken.
    """
    named = [source for source, into in config.translators if into == target]

    def load(source: str) -> TextTranslator:
        nmt = config.translator(source, target)
        students = [step.model for step in nmt.steps if is_student(step.model)]
        missing = [student for student in students if local_model(ModelRef(student)) is None]
        if missing and not (named or fetches):
            raise UsageError(f"{missing[0]} is not on this machine; it is fetched with --allow-downloads")
        return loaded_translator(source, target, nmt, translators(nmt))

    made = ByLanguage(target, load, passes=not config.languages.conversation)
    for source in named:
        made.loaded(source)
    return made


class ByLanguage:
    """The translator into one target from several languages; what is said in the target itself stays as it is.

    A translator is loaded once a finished sentence needs it; the newest stay. If one cannot be had, that is said once, and what is
    said in its language stays as it is, doubtful, until it can be. Thread-safe.
    """

    attends = True

    def __init__(
        self,
        target: str,
        load: Callable[[str], TextTranslator],
        *,
        passes: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``load``: the translator from a language; it may raise PipelineError. ``passes``: see ``passes`` in ``translator``."""
        self.passes, self._target, self._load = passes, target, load
        self._models: dict[str, TextTranslator] = {}  # language → its translator
        self._missing: dict[str, float] = {}  # language that has none → when it is tried again
        self._clock = clock
        self._lock = threading.Lock()

    def loaded(self, language: str) -> TextTranslator:
        """The translator from a language. Loads it when it is first asked for, which blocks; raises PipelineError if it cannot be had."""
        if (model := self._models.get(code := language_tag(language).language)) is None:
            with self._lock:
                if (model := self._models.get(code)) is None:
                    model = self._load(language)
                    self._models = dict([*self._models.items(), (code, model)][-MOST_SPOKEN:])
        return model

    def unspellable(self, glossary: Glossary, target: str | None = None) -> tuple[Term, ...]:
        """The terms that one of the translators that are loaded cannot write."""
        models = [model for model in tuple(self._models.values()) if isinstance(model, TermTranslator)]
        return tuple({term: None for model in models for term in model.unspellable(glossary, target)})

    def stream(self, request: TranslationRequest) -> Iterator[TargetText | Translation]:
        """Translate a sentence from its language. What is said in others stays as it is. ``drafted`` is given of each sentence in progress."""
        drafted, language = request.drafted, language_tag(request.sentence.language).language
        if (translator := self._of(language, final=drafted is None)) is None:
            yield from self._unchanged(request)
        elif drafted is None or attends(translator):
            yield from translator.stream(request)
        else:
            for event in translator.stream(replace(request, drafted=None)):
                yield replace(event, steady=0) if isinstance(event, TargetText) else event

    def _of(self, code: str, *, final: bool) -> TextTranslator | None:
        """The translator from a language; None if there is none, or not yet for a draft."""
        if same_language(code, self._target) or not (final or code in self._models):
            return None
        if self._clock() < self._missing.get(code, -math.inf):
            return None
        try:
            return self.loaded(code)
        except PipelineError as error:
            level = logging.DEBUG if code in self._missing else logging.WARNING
            self._missing[code] = self._clock() + _AGAIN_S
            log.log(level, "what is said in %s is shown as it is, not in %s: %s", code, self._target, one_line(error))
            return None

    def _unchanged(self, request: TranslationRequest) -> Iterator[TargetText | Translation]:
        """What was said; nothing of a draft whose translator is not loaded yet."""
        same, drafted = SameLanguageText(request.target or self._target), request.drafted
        is_target = same_language(request.sentence.language, self._target)
        for event in same.stream(request):
            if isinstance(event, Translation):
                yield replace(event, doubtful=not is_target)
            elif drafted is None:
                yield event
            elif event.complete and is_target:
                yield replace(event, steady=common_length(drafted.source, event.text) if same.convert is None else 0)
