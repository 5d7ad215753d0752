"""Options: the languages of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..errors import UsageError
from .tags import language_tag, normalized_code, same_language

AUTO_SOURCE = "auto"
"""Source language that means: one of the targets, recognised from the speech; with one target, any that is translated into it."""
MOST_SPOKEN = 16
"""Languages that may be named as spoken. Each has a translator in memory."""
# Those of any language: English, and what students translate into it and so into all their targets.
_ANY = "en ar az be bg bn bs ca cs da de el es et fa fi fr gu he hi hr hu id is it ja kn ko lt lv ml ms nl nn no pl pt ro ru sk sl sq sr sv ta te th tr uk vi zh".split()  # noqa: SIM905


@dataclass(frozen=True)
class LanguageConfig:
    """The languages of a run."""

    # The language spoken, as a tag of BCP 47 (en, pt-BR); several, such as "en,pt,es": that of each segment is recognised. "auto" recognises which of the
    # targets is spoken and translates into the others or, with one target, from any language that students translate into it.
    source: str = "en"
    # The languages to translate into. For the language spoken, the text is the transcript, without a translation model. A script or region selects how the
    # translation is written: zh-TW, zh-HK and zh-Hant are traditional Chinese, zh-CN and zh-Hans simplified; sr-Latn is
    # for a model that writes Serbian in both scripts. Without one, Chinese stays as the model writes it.
    targets: tuple[str, ...] = ("zh",)

    def __post_init__(self) -> None:
        for key, codes in (("source", self.source), ("targets", self.targets)):
            several = key == "targets" and isinstance(codes, list | tuple)
            if not all(isinstance(code, str) and code for code in (codes if several else [codes])):
                raise UsageError(f"LanguageConfig.{key} is {codes!r}; expected language codes, such as 'en'")
        source, targets = self.source, as_codes(self.targets)  # as they were given, for messages
        if source.count(",") < MOST_SPOKEN and source != AUTO_SOURCE:
            codes = ",".join(normalized_code(code.strip()) for code in source.split(","))
            object.__setattr__(self, "source", codes)  # frozen
        object.__setattr__(self, "targets", tuple(map(normalized_code, targets)))
        for conflict in _conflicts(source, targets):
            raise UsageError(conflict)

    @property
    def spoken(self) -> tuple[str, ...]:
        """The languages that may be spoken."""
        if self.source != AUTO_SOURCE:
            return tuple(self.source.split(","))
        if self.conversation:
            return self.targets
        return (*self.targets, *(language for language in _ANY if not same_language(language, self.targets[0])))

    @property
    def only_spoken(self) -> str | None:
        """The language spoken; None if it may be one of several."""
        return self.source if self.source != AUTO_SOURCE and "," not in self.source else None

    @property
    def conversation(self) -> bool:
        """Whether the targets are spoken, and what is said in one is translated into the others."""
        return self.source == AUTO_SOURCE and len(self.targets) > 1

    def is_spoken(self, target: str) -> bool:
        """Whether the text in ``target`` is the transcript; False if one of several languages may be spoken."""
        return self.only_spoken is not None and same_language(self.only_spoken, target)

    @property
    def translated(self) -> tuple[str, ...]:
        """The targets that need a translation model."""
        return tuple(target for target in self.targets if not self.is_spoken(target))

    def pairs(self, target: str) -> list[tuple[str, str]]:
        """(source, target) of each translation into ``target``."""
        only_one = self.only_spoken is not None
        return [(source, target) for source in self.spoken if only_one or not same_language(source, target)]

    def pair(self, target: str) -> tuple[str, str]:
        """The source and target of the only translation into ``target``; of several, the first."""
        return self.pairs(target)[0]

    @property
    def mixed(self) -> tuple[str, ...]:
        """The targets that have a translator from each of several languages, or are spoken beside others."""
        one_each = self.only_spoken is not None or (self.conversation and len(self.targets) == 2)
        return () if one_each else self.targets


def as_codes(languages: str | Sequence[str]) -> tuple[str, ...]:
    """Language codes as a tuple. A str is one code, not a sequence of its letters."""
    return (languages,) if isinstance(languages, str) else tuple(languages)


def _conflicts(source: str, targets: tuple[str, ...]) -> Iterator[str]:
    """Errors in the choice of languages, a sentence each."""
    if len(spoken := [code.strip() for code in source.split(",")]) > MOST_SPOKEN:
        yield f"{len(spoken)} languages are named as spoken, and {MOST_SPOKEN} may be; name one target and the source {AUTO_SOURCE!r} instead"
        return
    for number, code in enumerate(spoken):
        if any(same_language(code, earlier) for earlier in spoken[:number]):
            yield f"the spoken language {code!r} is given twice; name each once"
    if not targets:
        yield "no target language is given; name at least one"
    for number, target in enumerate(targets):
        for earlier in targets[:number]:
            if language_tag(earlier) == language_tag(target):
                yield f"the target {target!r} is given twice{'' if earlier == target else f', first as {earlier!r}'}"
    languages = [language_tag(target).language for target in targets]
    if source == AUTO_SOURCE and len(set(languages)) < len(targets):
        yield (
            'the source "auto" recognises which of the targets is spoken and translates into the others: give '
            f"different languages as targets, such as en and zh, instead of {' and '.join(targets)}"
        )
