"""Options: the languages of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..errors import UsageError
from . import language_tag, normalized_code, same_language

AUTO_SOURCE = "auto"
"""Source language that means: one of the two targets, recognised from the speech."""


@dataclass(frozen=True)
class LanguageConfig:
    """The languages of a run."""

    # The language spoken, as a tag of BCP 47 (en, pt-BR). "auto" recognises which of two targets is spoken, and the translation is into the other one.
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
        object.__setattr__(self, "source", source if source == AUTO_SOURCE else normalized_code(source))  # frozen
        object.__setattr__(self, "targets", tuple(map(normalized_code, targets)))
        for conflict in _conflicts(source, targets):
            raise UsageError(conflict)

    @property
    def spoken(self) -> tuple[str, ...]:
        """The languages that may be spoken: the source, or the two targets if it is "auto"."""
        return self.targets if self.source == AUTO_SOURCE else (self.source,)

    @property
    def only_spoken(self) -> str | None:
        """The language spoken; None if it may be one of two."""
        return self.source if self.source != AUTO_SOURCE else None

    def is_spoken(self, target: str) -> bool:
        """Whether the text in ``target`` is the transcript; False if either of two languages may be spoken."""
        return self.source != AUTO_SOURCE and same_language(self.source, target)

    @property
    def translated(self) -> tuple[str, ...]:
        """The targets that need a translation model."""
        return tuple(target for target in self.targets if not self.is_spoken(target))

    def source_of(self, target: str) -> str:
        """The language from which ``target`` is translated."""
        if self.source != AUTO_SOURCE:
            return self.source
        return next(language for language in self.targets if language != target)

    def pair(self, target: str) -> tuple[str, str]:
        """(source, target) of the translation into ``target``."""
        return self.source_of(target), target


def as_codes(languages: str | Sequence[str]) -> tuple[str, ...]:
    """Language codes as a tuple. A str is one code, not a sequence of its letters."""
    return (languages,) if isinstance(languages, str) else tuple(languages)


def _conflicts(source: str, targets: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with the languages: one sentence each."""
    if not targets:
        yield "no target language is given; name at least one"
    for number, target in enumerate(targets):
        for earlier in targets[:number]:
            if language_tag(earlier) == language_tag(target):
                yield f"the target {target!r} is given twice{'' if earlier == target else f', first as {earlier!r}'}"
    languages = [language_tag(target).language for target in targets]
    if source == AUTO_SOURCE and (len(set(languages)) != 2 or len(targets) != 2):
        yield (
            'the source "auto" recognises which of two languages is spoken and translates into the other: give '
            f"exactly two languages as targets, such as en and zh, instead of {' and '.join(targets)}"
        )
