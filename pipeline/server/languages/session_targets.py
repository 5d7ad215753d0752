"""The languages into which a session is translated: those that it began with, and more while it goes on."""

from __future__ import annotations

from dataclasses import replace

from ...core import LateTargets, TextTranslator
from ...errors import UsageError
from ...languages import LanguageConfig, normalized_code, same_text
from ..limits import MOST_TARGETS, ServerLimits
from ..protocol import ProtocolError, shown


class SessionTargets:
    """The targets of one session: readers may add some, its speaker as many as a session may have."""

    def __init__(self, languages: LanguageConfig, limits: ServerLimits) -> None:
        self.languages = languages
        self.late = LateTargets(limits.kept_sentences)
        self._most, self._by_readers = limits.reader_targets, 0

    def read(self, language: str | None) -> str | None:
        """The target for a reader of the language. None: all.

        Raises:
            ProtocolError: there is none.
        """
        targets = self.languages.targets
        if language is None or (target := same_text(language, targets)) is not None:
            return language and target
        raise ProtocolError(
            "unknown-target", f"this session is not translated into {shown(language)}; choose from {', '.join(targets)}"
        )

    def wanted(self, language: str, *, by_reader: bool) -> str | None:
        """The tag of a language that is to be added; None if the session is translated into it already.

        Raises:
            ProtocolError: it is no language, or the session may have no more.
        """
        targets = self.languages.targets
        try:
            target = normalized_code(language)
        except UsageError as error:
            raise ProtocolError("unknown-target", str(error)) from None
        if same_text(target, targets) is not None:
            return None
        if self.languages.only_spoken is None:
            message = f"what is spoken in several languages is translated into {' and '.join(targets)} alone"
            raise ProtocolError("unknown-target", message)
        if by_reader and self._by_readers >= self._most:
            raise ProtocolError(
                "too-many-targets",
                f"this session is not translated into {shown(target)}, and its readers have added as many languages as they may, "
                f"{self._most}; choose from {', '.join(targets)}, or ask the speaker",
            )
        if len(targets) >= MOST_TARGETS:
            raise ProtocolError(
                "too-many-targets", f"the session has {MOST_TARGETS} targets, which is the limit: {', '.join(targets)}"
            )
        return target

    def add(self, target: str, model: TextTranslator, *, by_reader: bool) -> bool:
        """Begin to translate into a language; False if others had it added meanwhile.

        Raises:
            ProtocolError: see ``wanted``; or the session has ended.
        """
        if self.wanted(target, by_reader=by_reader) is None:
            return False
        languages = replace(self.languages, targets=(*self.languages.targets, target))
        if not self.late.add(target, model):
            raise ProtocolError("ended", "the session has ended; no language can be added any more")
        self.languages = languages
        self._by_readers += by_reader
        return True
