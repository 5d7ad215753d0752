"""Languages beyond the configured ones: their models are fetched and loaded when somebody asks for them."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import AsyncIterator, Sequence
from weakref import WeakValueDictionary

from ...backends import (
    DraftModel,
    LanguagePair,
    NmtConfig,
    find_translation_models,
    is_same_pair,
    language_code,
    looked_up,
    student_routes,
)
from ...config import PipelineConfig, SharedModels, load_shared, with_overrides
from ...core import Models, MultilingualRecognizer, Worker
from ...errors import MemoryLimitError, NoSpaceError, PipelineError, UsageError, one_line
from ...languages import normalized_code, same_language
from ...store import ModelRef, Progress, local_model
from ..chains import Chain, chain_of
from ..limits import MOST_TARGETS
from ..protocol import ProtocolError, shown

log = logging.getLogger(__name__)

# Languages that are prepared at the same time.
_MOST_AT_ONCE = 4
_TELL_S = 0.5
Languages = tuple[str, tuple[str, ...]]
"""(source, targets), as tags of BCP 47."""


class _StoppedError(PipelineError):
    """The server is stopping."""


class Preparation:
    """Languages whose models are being fetched and loaded."""

    def __init__(self, languages: Languages) -> None:
        self.languages = languages
        self.doing = "loading the models"
        """The step, for people."""
        self.part = 0.0
        """How much of it is done, from 0 to 1."""
        self.work: asyncio.Task[Chain]

    async def steps(self) -> AsyncIterator[tuple[str, float]]:
        """``doing`` and ``part`` again and again, until the work has ended. It goes on if nobody waits for it."""
        while not self.work.done():
            yield self.doing, self.part
            await asyncio.wait({self.work}, timeout=_TELL_S)

    async def chain(self) -> Chain:
        """The configuration with its models.

        Raises:
            ProtocolError: they cannot be fetched or loaded.
        """
        return await asyncio.shield(self.work)


class Offers:
    """Prepares pairs of languages that students of Firefox Translations cover, directly or through English.

    Whoever asks for languages that are being prepared gets the same preparation. Speech is recognised by a configured model.
    """

    def __init__(
        self, configured: Sequence[tuple[PipelineConfig, Models]], shared: SharedModels, *, downloads: bool = False
    ) -> None:
        """``shared``: has the models of ``configured``. ``downloads``: models that are not on this machine are fetched."""
        self.downloads = downloads
        self._shared = shared
        self._configs = [config for config, _ in configured]
        self._bases = [(config, models.recognizer) for config, models in configured]
        self._routes = {pair: steps for pair, steps in student_routes().items() if self._hearing(pair[0])}
        self._chains: WeakValueDictionary[Languages, Chain] = WeakValueDictionary()
        self._running: dict[Languages, Preparation] = {}
        self._closed = False

    def pairs(self, *, fetch: bool = True) -> dict[str, list[str]]:
        """Source → the targets that can be prepared. Blocks: looks at which models are on this machine.

        ``fetch``: whether who asks may have models fetched.
        """
        students = {step.repository for steps in self._routes.values() for step in steps}
        if not (self.downloads and fetch):
            students = {name for name in students if local_model(ModelRef(name)) is not None}
        pairs: dict[str, list[str]] = {}
        for (source, target), steps in sorted(self._routes.items()):
            if all(step.repository in students for step in steps):
                pairs.setdefault(source, []).append(target)
        return pairs

    def prepared(self, source: str | None, targets: Sequence[str]) -> Chain | None:
        """A chain that was prepared and is in use."""
        try:
            return self._chains.get(self._wanted(source, targets))
        except ProtocolError:
            return None

    def prepare(self, source: str | None, targets: Sequence[str], *, fetch: bool = True) -> Preparation:
        """Begin to prepare the models for these languages, unless that is in progress.

        Args:
            source: None: that of the first configuration.
            targets: empty: those of the first configuration, or the language spoken if that is none.
            fetch: whether who asks may have models fetched.

        Raises:
            ProtocolError: the languages are not offered, or too many are being prepared.
        """
        languages = self._wanted(source, targets)
        if (running := self._running.get(languages)) is not None:
            return running
        self._check(*languages, fetch=self.downloads and fetch)
        if len(self._running) >= _MOST_AT_ONCE or self._closed:
            raise ProtocolError("busy", "the server is preparing other languages; try again in a minute")
        preparation = Preparation(languages)
        preparation.work = asyncio.create_task(self._prepare(preparation))
        preparation.work.add_done_callback(
            lambda work: None if work.cancelled() else work.exception()
        )  # told to who asks
        self._running[languages] = preparation
        return preparation

    def close(self) -> None:
        """Begin nothing more, and end the downloads in progress at their next block."""
        self._closed = True

    async def _prepare(self, preparation: Preparation) -> Chain:
        def progress(doing: str, part: float) -> None:
            preparation.doing, preparation.part = doing, part
            if self._closed:
                raise _StoppedError("the server is stopping")

        worker = Worker("languages")
        try:
            chain = self._chains.get(preparation.languages)
            if chain is None:
                chain = await worker.run(lambda: self._load(*preparation.languages, progress))
        except Exception as error:
            source, targets = preparation.languages
            unexpected = not isinstance(error, PipelineError)
            log.warning("preparing %s into %s: %s", source, ", ".join(targets), one_line(error), exc_info=unexpected)
            raise _told(error) from error
        finally:
            worker.close()
            del self._running[preparation.languages]
        self._chains[preparation.languages] = chain
        return chain

    def _load(self, source: str, targets: tuple[str, ...], progress: Progress) -> Chain:
        config = self._config(source, targets)
        for nmt in config.translators.values():
            find_translation_models(nmt, progress)  # fetches, while others load
        progress("loading the models", 0.0)
        with self._shared.loading:
            (models,) = load_shared([config], several_calls=True, shared=self._shared)
        return chain_of(config, models)

    def _config(self, source: str, targets: tuple[str, ...]) -> PipelineConfig:
        """The configuration whose recogniser hears the source, with models for the targets."""
        base = next((config for config in self._hearing(source) if config.languages.is_spoken(source)), None)
        if base is None:  # what the configuration says of its own language is not for this one
            base = self._hearing(source)[0]
            asr = dataclasses.replace(base.asr, prompt="", hotwords="", script=None, draft=DraftModel())
            base = dataclasses.replace(base, asr=asr, glossary=dataclasses.replace(base.glossary, file=None))
        config = with_overrides(base, source=source, targets=targets)
        students = dataclasses.replace(base.nmt, backend=NmtConfig.backend)
        for target in config.languages.translated:
            pair = config.languages.pair(target)
            config = config.with_nmt(target, self._own(pair) or looked_up(pair, students))
        return config

    def _hearing(self, source: str) -> list[PipelineConfig]:
        """The configurations whose recogniser knows the language."""
        return [
            config
            for config, recognizer in self._bases
            if config.languages.is_spoken(source)
            or (isinstance(recognizer, MultilingualRecognizer) and recognizer.knows(source))
        ]

    def _own(self, pair: LanguagePair) -> NmtConfig | None:
        """The configured translation options for a pair."""
        for config in self._configs:
            for target in {*config.languages.translated}.difference(config.languages.mixed):
                if is_same_pair(config.languages.pair(target), pair):
                    return config.nmt_for(target)
        return None

    def _missing(self, pair: LanguagePair) -> list[str]:
        """The students of a pair that are not on this machine."""
        steps = () if self._own(pair) is not None else self._routes[_codes(pair)]
        return [step.repository for step in steps if local_model(ModelRef(step.repository)) is None]

    def _wanted(self, source: str | None, targets: Sequence[str]) -> Languages:
        if len(targets) > MOST_TARGETS:
            raise ProtocolError("unknown-target", f"{len(targets)} targets; a session may have {MOST_TARGETS}")
        first = self._configs[0].languages
        spoken = _tag(source, "unknown-source") if source is not None else first.spoken[0]
        wanted = tuple(dict.fromkeys(_tag(target, "unknown-target") for target in targets))
        default = [target for target in first.targets if self._translates((spoken, target))]
        return spoken, wanted or tuple(default) or (spoken,)

    def _translates(self, pair: LanguagePair) -> bool:
        return same_language(*pair) or self._own(pair) is not None or _codes(pair) in self._routes

    def _check(self, source: str, targets: Sequence[str], *, fetch: bool) -> None:
        if not self._hearing(source):
            raise ProtocolError("unknown-source", f"the speech model of this server does not know {shown(source)}")
        for target in targets:
            if not self._translates((source, target)):
                raise ProtocolError("unknown-target", f"no model translates {shown(source)} into {shown(target)}")
            if not fetch and not same_language(source, target) and (missing := self._missing((source, target))):
                has = "for who has its token" if self.downloads else "if it is started with --allow-downloads"
                raise ProtocolError(
                    "unknown-target",
                    f"this server does not have {' and '.join(missing)}, which translates {shown(source)} into "
                    f"{shown(target)}; it fetches models {has}",
                )


def _tag(language: str, code: str) -> str:
    try:
        return normalized_code(language)
    except UsageError as error:
        raise ProtocolError(code, str(error)) from None


def _codes(pair: LanguagePair) -> LanguagePair:
    return language_code(pair[0]), language_code(pair[1])


def _told(error: Exception) -> ProtocolError:
    """What clients are told of a failure. The log has the rest, such as the server's folders."""
    match error:
        case MemoryLimitError() | _StoppedError():
            return ProtocolError("busy", str(error))
        case NoSpaceError():
            return ProtocolError(
                "no-space",
                "the disk of the server is full; whoever runs it must make room, then choose these languages again",
            )
        case UsageError():
            return ProtocolError("unknown-target", str(error))
        case PipelineError():
            return ProtocolError("no-models", f"the models for these languages cannot be had: {error}")
    return ProtocolError("failed", "the models for these languages cannot be loaded; the log of the server says why")
