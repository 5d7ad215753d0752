"""The glossary of one session: the server's, or one that the speaker sends. docs/server-programs.md describes the messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ConfigError
from ..glossary import Glossary
from .protocol import ProtocolError

if TYPE_CHECKING:
    from ..glossary import CurrentGlossary

_MOST_CHARACTERS = 1 << 16
_MOST_TERMS = 1_000
_NAME = "of this session"


class SessionGlossary:
    """The glossary of one session, which may be replaced at any time."""

    def __init__(self, current: CurrentGlossary | None) -> None:
        """``current``: the server's glossary, if it has one."""
        self._current = current
        self._own: Glossary | None = None

    def __call__(self) -> Glossary:
        if self._own is not None:
            return self._own
        return self._current() if self._current is not None else _NONE

    def replace(self, glossary: Glossary) -> None:
        """Use this one from the next sentence on."""
        self._own = glossary


_NONE = Glossary()


def read_glossary(text: str) -> Glossary:
    """The glossary in a message. Takes some milliseconds.

    Raises:
        ProtocolError: it is too long, or has mistakes; the message names them by line.
    """
    if len(text) > _MOST_CHARACTERS:
        raise ProtocolError(
            "bad-glossary", f"the glossary has {len(text)} characters; it may have {_MOST_CHARACTERS} at most"
        )
    from ..glossary import parse_glossary

    try:
        return parse_glossary(text, _NAME, most_terms=_MOST_TERMS)
    except ConfigError as error:
        raise ProtocolError("bad-glossary", str(error)) from None
