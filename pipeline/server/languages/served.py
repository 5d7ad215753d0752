"""Which of a server's configurations serves what a client asks for. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...errors import UsageError
from ...languages import AUTO_SOURCE, LanguageConfig, language_tag, nearest, normalized_code, same_language
from ..limits import MOST_NAMED_TARGETS
from ..protocol import ProtocolError, shown

MODEL = "speech-translation"
"""The name of the server's model for programs that want one."""


@dataclass(frozen=True)
class ServedLanguages:
    """The languages of a server's configurations, the default first."""

    configured: tuple[LanguageConfig, ...]

    def __post_init__(self) -> None:
        for number, languages in enumerate(self.configured):
            if any(_same_source(languages.source, before.source) for before in self.configured[:number]):
                raise UsageError(
                    f"two configurations are for the spoken language {languages.source!r}; name all targets in one of them"
                )

    @property
    def spoken(self) -> tuple[str, ...]:
        """All languages that are recognised, each once."""
        return tuple(dict.fromkeys(language for languages in self.configured for language in languages.spoken))

    @property
    def targets(self) -> tuple[str, ...]:
        """All languages that are translated into, each once."""
        return tuple(dict.fromkeys(target for languages in self.configured for target in languages.targets))

    @property
    def models(self) -> dict[str, str | None]:
        """Name of a model → the spoken language that it stands for; None: any. One configuration has one model."""
        several = self.configured if len(self.configured) > 1 else ()
        return {MODEL: None, **{f"{MODEL}-{languages.source}": languages.source for languages in several}}

    def find(self, source: str | None, targets: Sequence[str]) -> int:
        """The number of the first configuration that recognises ``source`` and translates into all ``targets``.

        A configuration for one language comes before one that recognises which of two is spoken, and one that names the
        targets before one that has other scripts or regions of their languages. If there is neither, the language spoken is a
        target, too: its text is the transcript. It is no target alone if any of several languages may be spoken.

        Args:
            source: None: any.
            targets: empty: any.

        Raises:
            ProtocolError: there is none.
        """
        if len(targets) > MOST_NAMED_TARGETS:
            raise ProtocolError("unknown-target", f"{len(targets)} targets; at most {MOST_NAMED_TARGETS} may be named")
        candidates = self.recognising(source)
        if not candidates:
            any_source = [AUTO_SOURCE] * any(languages.source == AUTO_SOURCE for languages in self.configured)
            sources = ", ".join((*self.spoken, *any_source))
            message = f"this server does not recognise {shown(source)}; it recognises {sources}"
            raise ProtocolError("unknown-source", message)
        offered = [self.configured[number] for number in candidates]
        fitting = [all(nearest(target, languages.targets) for target in targets) for languages in offered]
        named = [set(targets) <= set(languages.targets) for languages in offered]
        spoken = [
            all(nearest(target, languages.targets) or languages.is_spoken(target) for target in targets)
            for languages in offered
        ]
        if source is None and len(offered) > 1:  # it is not known which language is spoken: something is translated
            translates = [any(nearest(target, languages.targets) for target in targets) for languages in offered]
            spoken = [fits and some for fits, some in zip(spoken, translates, strict=True)]
        for fits in (named, fitting, spoken):
            if any(fits):
                return candidates[fits.index(True)]
        unmet = (target for target in targets if not any(nearest(target, languages.targets) for languages in offered))
        missing = next(unmet, None)
        into = f"into {shown(missing)}" if missing is not None else f"into {shown(', '.join(targets))} at once"
        if len(self.configured) == 1:
            raise ProtocolError(
                "unknown-target", f"this server does not translate {into}; choose from {', '.join(offered[0].targets)}"
            )
        from_source = f"{shown(source)} " if source is not None else ""
        raise ProtocolError(
            "unknown-target", f"this server does not translate {from_source}{into}; it translates {self.described()}"
        )

    def of_transcript(self, source: str | None) -> tuple[str, ...]:
        """The targets to ask for where nothing but the transcript is wanted: the language itself if it is not configured."""
        return () if source is None or self.recognising(source) else (source,)

    def described(self) -> str:
        """What is translated, for a message: "en into zh, zh into en"."""
        return ", ".join(
            f"{' and '.join(languages.targets)} into each other ({AUTO_SOURCE})"
            if languages.conversation
            else f"{'any language' if languages.source == AUTO_SOURCE else languages.source} into {' and '.join(languages.targets)}"
            for languages in self.configured
        )

    def recognising(self, source: str | None) -> list[int]:
        """The numbers of the configurations that recognise the language."""
        numbers = range(len(self.configured))
        exact = [n for n in numbers if source is None or _same_source(source, self.configured[n].source)]
        return exact or [
            n for n in numbers if any(_same_source(source or "", language) for language in self.configured[n].spoken)
        ]


def narrowed(languages: LanguageConfig, targets: Sequence[str]) -> LanguageConfig:
    """The languages with these targets only, in their own order, then the language spoken; with all if none are named.

    A target may be written in any way, and have another script or region than that of ``languages``.

    Raises:
        ProtocolError: the languages are those of a conversation, and less than two are left.
    """
    places = {
        normalized_code(target): languages.targets.index(near[0]) if near else len(languages.targets)
        for target in targets
        if (near := nearest(target, languages.targets)) or languages.is_spoken(target)
    }
    wanted = tuple(sorted(places, key=places.__getitem__)) or languages.targets
    if languages.conversation and len({language_tag(target).language for target in wanted}) < 2:
        raise ProtocolError(
            "unknown-target", f"this conversation needs two languages of {', '.join(languages.targets)}"
        )
    return replace(languages, targets=wanted)


def _same_source(source: str, other: str) -> bool:
    return source == other if AUTO_SOURCE in (source, other) else same_language(source, other)
