"""A configuration with its models, and the part of it that a session or recording needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..config import PipelineConfig, with_overrides
from ..core import Masking, Models, SameLanguageText, TextTranslator, warn_unspellable
from ..errors import UsageError
from ..glossary import GlossaryFile, load_masked
from ..languages import nearest
from .languages.served import narrowed
from .protocol import ProtocolError

if TYPE_CHECKING:
    from ..core import AddSpeakers


@dataclass(frozen=True)
class Chain:
    """A configuration and its models."""

    config: PipelineConfig
    models: Models
    glossary: GlossaryFile | None = None
    """The glossary of the configuration, if it has one."""
    masking: Masking = field(default_factory=Masking)
    """Masks the words that the configuration lists."""

    def narrowed(self, targets: Sequence[str]) -> Chain:
        """The chain with these targets only; with all if none are named.

        Raises:
            ProtocolError: see ``pipeline.server.languages.served.narrowed``; or a model does not write the script of a target.
        """
        languages, models = narrowed(self.config.languages, targets), self.models.translations
        translations: dict[str, TextTranslator] = {}
        for target in languages.targets:
            try:
                if languages.is_spoken(target):
                    translations[target] = SameLanguageText(target)
                    continue
                translations[target] = model = models[nearest(target, models)[0]]
                check = getattr(model, "check_languages", None)
                if target not in models and check is not None:
                    check(*languages.pair(target))
            except UsageError as error:
                raise ProtocolError("unknown-target", str(error)) from None
        config = with_overrides(self.config, targets=languages.targets)
        return Chain(config, replace(self.models, translations=translations), self.glossary, self.masking)

    def telling_speakers(self, model: AddSpeakers | None) -> Chain:
        """The chain with each sentence's speaker, told by this model; as it is without one."""
        if model is None:
            return self
        config = with_overrides(self.config, speakers=True)
        return replace(self, config=config, models=replace(self.models, voices=model))


async def loaded_voice_model(load: Callable[[], AddSpeakers | None] | None, *, wanted: bool) -> AddSpeakers | None:
    """The model that tells speakers apart, for a session that asks for it.

    Raises:
        ProtocolError: the server has none to load.
    """
    if not wanted:
        return None
    if load is None:
        raise ProtocolError("no-speakers", "this server tells no speakers apart; start it with --allow-speakers")
    return await asyncio.to_thread(load)


def chain_of(config: PipelineConfig, models: Models) -> Chain:
    """A chain with the glossary of its configuration. Terms that its models cannot write are named in the log."""
    file, masking = config.glossary.file, Masking(load_masked(config.captions.masked))
    if file is None:
        return Chain(config, models, masking=masking)
    glossary = GlossaryFile(Path(file))
    glossary.check_with(lambda terms: warn_unspellable(terms, config.languages, models.translations))
    return Chain(config, models, glossary, masking)
