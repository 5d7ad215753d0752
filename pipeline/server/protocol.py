"""The messages of the server's own WebSocket, read and checked. docs/server-programs.md describes them. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core import ChangeEvent, Paused, Resumed
from ..languages import LONGEST_CODE
from ..media import line
from .limits import MOST_NAMED_TARGETS

VERSION = 2
_LOWEST_RATE, _HIGHEST_RATE = 8_000, 192_000
# What of a JSON text takes long to read: escapes, of which a glossary of 65,536 characters may have as many; quotation marks that are
# not escaped; lists and objects, each of which brings Python's next collection of garbage nearer; and what is not in strings, such as
# numbers of 4,000 digits. The most of all is read in 4 ms.
_MOST_ESCAPES, _MOST_QUOTES, _MOST_BRACKETS, _MOST_OUTSIDE = 70_000, 1_000, 256, 1 << 14
# One that does not end is one, too, so that the whole text is looked at once.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+\\?(?:"|\Z)', re.DOTALL)
# A glossary that has nothing but escapes, and as much again.
_LONGEST_TEXT = 1 << 19
# A room is an address for readers that stays the same from one session of a speaker to the next. The speaker chooses a secret, the
# room's key. The room's name is a digest of it, so that the server keeps nothing between sessions, the name outlives a restart, and
# whoever has only the name, as all readers do, cannot speak in the room. 128 bits: nobody finds another key with the same name.
_ROOM_BYTES = 16
_ROOM_NAME = re.compile(r"[A-Za-z0-9_-]{22}")
# 132 random bits at least, if the characters are drawn at random, which the server cannot check.
_ROOM_KEY = re.compile(r"[A-Za-z0-9_-]{22,128}")
_ROOM_PREFIX = b"room:"


class ProtocolError(Exception):
    """A message that is not understood or not allowed. ``code`` tells programs, the message tells people."""

    def __init__(self, code: str, message: str, **more: str) -> None:
        """``more``: further fields of the message."""
        super().__init__(message)
        self.code, self.more = code, more


@dataclass(frozen=True)
class Start:
    """A speaker begins a session."""

    sample_rate: int = 16_000
    source: str | None = None
    """None: as configured."""
    targets: tuple[str, ...] = ()
    """Empty: all that are configured."""
    token: str = field(default="", repr=False)
    glossary: str | None = None
    """The text of a glossary file (TSV); None: the server's glossary."""
    room_key: str = field(default="", repr=False)
    """The secret of the speaker's room; empty: no room."""
    speakers: bool = False
    """Whether voices are told apart, where the configuration does not say so."""


@dataclass(frozen=True)
class Resume:
    """A speaker comes back after its connection was lost."""

    session: str
    key: str = field(repr=False)
    token: str = field(default="", repr=False)


@dataclass(frozen=True)
class Watch:
    """A reader asks for a session's text."""

    session: str
    """Or the name of a room: the session in progress there."""
    language: str | None = None
    """Whose translations; None: all."""


@dataclass(frozen=True)
class Listen:
    """A listener asks for the speech of a session's translations."""

    session: str
    """Or the name of a room, as in ``Watch``."""
    language: str


@dataclass(frozen=True)
class End:
    """The speaker has finished: everything heard is still translated."""


@dataclass(frozen=True)
class NewGlossary:
    """The speaker replaces the glossary of the session."""

    text: str
    """The text of a glossary file (TSV)."""


@dataclass(frozen=True)
class Correct:
    """The speaker replaces a finished text, or the name of who said it."""

    sentence: int
    text: str | None = None
    language: str = ""
    """The target of the translation that is corrected; empty: what was said."""
    speaker: str | None = None
    """Empty: nobody in particular."""


@dataclass(frozen=True)
class Mask:
    """The speaker masks a word of a finished text, and from now on in its language."""

    sentence: int
    text: str
    language: str = ""
    """The target of the translation that has the word; empty: what was said."""


@dataclass(frozen=True)
class Speaker:
    """Who speaks from now on."""

    name: str
    """Empty: nobody in particular."""


@dataclass(frozen=True)
class Pause:
    """What is said is not heard until ``on`` is false."""

    on: bool


@dataclass(frozen=True)
class AddTarget:
    """A reader or the speaker asks for one more language."""

    language: str


Message = Start | Resume | Watch | Listen | End | NewGlossary | Correct | Mask | Speaker | Pause | AddTarget

_SENT = "which the server sends when a session starts"
_FIELDS: dict[str, dict[str, type]] = {
    "start": {
        "version": int,
        "sample_rate": int,
        "source": str,
        "targets": list,
        "token": str,
        "glossary": str,
        "room_key": str,
        "speakers": bool,
    },
    "resume": {"version": int, "session": str, "key": str, "token": str},
    "watch": {"version": int, "session": str, "language": str},
    "end": {},
    "glossary": {"version": int, "text": str},
    "listen": {"version": int, "session": str, "language": str},
    "correct": {"version": int, "sentence": int, "language": str, "text": str, "speaker": str},
    "mask": {"version": int, "sentence": int, "language": str, "text": str},
    "speaker": {"version": int, "name": str},
    "pause": {"version": int, "on": bool},
    "add_target": {"version": int, "language": str},
}
# Characters of a field at most; what replaces a text or a glossary has limits of its own.
_LONGEST = {"language": LONGEST_CODE, "source": LONGEST_CODE, "token": 4_096}
_LONGEST |= dict.fromkeys(("session", "key", "room_key"), 128)
_NEEDED = {
    "resume": {"session": _SENT, "key": _SENT},
    "watch": {"session": _SENT},
    "listen": {"session": _SENT, "language": "which is one of the voices that the server names"},
    "glossary": {"text": "which is that of a glossary file"},
    "correct": {"sentence": "the number of the corrected one"},
    "mask": {"sentence": "the number of the one that has the word", "text": "which is the word"},
    "speaker": {"name": "which is that of who speaks"},
    "pause": {"on": "which is true or false"},
    "add_target": {"language": "into which the session is to be translated, too"},
}
_KINDS: dict[str, type[Message]] = {
    "resume": Resume,
    "watch": Watch,
    "listen": Listen,
    "end": End,
    "glossary": NewGlossary,
    "correct": Correct,
    "mask": Mask,
    "speaker": Speaker,
    "pause": Pause,
    "add_target": AddTarget,
}


def read_message(text: str) -> Message:
    """The message in a WebSocket's text frame.

    Raises:
        ProtocolError: it is no JSON object, its type or a field is unknown, or a value is not allowed.
    """
    check_length("the message", text, _LONGEST_TEXT)
    record = read_object(text)
    kind = record.pop("type", None)
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise ProtocolError("bad-message", f"the type is {shown(kind)}; it must be one of {', '.join(_FIELDS)}")
    for name, value in record.items():
        if name not in _FIELDS[kind]:
            allowed = ", ".join(_FIELDS[kind]) or "none"
            raise ProtocolError("bad-message", f"{kind} has no field {shown(name)}; it may have: {allowed}")
        if type(value) is not _FIELDS[kind][name] or (isinstance(value, int) and value.bit_length() > 64):
            raise ProtocolError("bad-message", f"{name} is {shown(value)}; it must be {_FIELDS[kind][name].__name__}")
        if name in _LONGEST:
            check_length(name, record[name], _LONGEST[name])
    if record.pop("version", VERSION) != VERSION:
        raise ProtocolError("bad-version", f"this server speaks version {VERSION} of the protocol only")
    for name, explanation in _NEEDED.get(kind, {}).items():
        if name not in record:
            raise ProtocolError("bad-message", f"a message of type {kind} needs {name}, {explanation}")
    if kind == "correct" and not {"text", "speaker"} & record.keys():
        raise ProtocolError("bad-message", "a message of type correct needs text, which replaces the line, or speaker")
    return _start(record) if kind == "start" else _KINDS[kind](**record)


def read_object(text: str) -> dict[str, Any]:
    """The JSON object in a text.

    Raises:
        ProtocolError: it is none, or has too many values.
    """
    try:
        record = bounded_json(text)
    except ValueError as error:
        raise ProtocolError("bad-message", f"the message cannot be read: {error}; send an object with a type") from None
    if not isinstance(record, dict):
        raise ProtocolError("bad-message", f"the message is a JSON {_json_type(record)}; send an object with a type")
    return record


def bounded_json(text: str, most_quotes: int = _MOST_QUOTES) -> Any:
    """The value of a text of JSON, which is read in some milliseconds.

    Raises:
        ValueError: it has too many values, or is not JSON.
    """
    quotes = text.count('"') - text.count('\\"') + text.count('\\\\"')
    if quotes > most_quotes or text.count("\\") > _MOST_ESCAPES:
        raise ValueError("it has too many values or escapes")
    outside = _STRING.sub("", text)
    if len(outside) > _MOST_OUTSIDE or outside.count("[") + outside.count("{") > _MOST_BRACKETS:
        raise ValueError("it has too many values")
    try:
        return json.loads(text)
    except ValueError:
        raise ValueError("it is not JSON") from None


def check_length(name: str, text: str, most: int, code: str = "bad-message") -> None:
    """Check the length of a text that a client wrote, before anything is done with it.

    Raises:
        ProtocolError: it is too long.
    """
    if len(text) > most:
        raise ProtocolError(code, f"{name} has {len(text)} characters; it may have {most} at most")


def kind_of(message: Message) -> str:
    """The type of a message."""
    return next((kind for kind, message_type in _KINDS.items() if isinstance(message, message_type)), "start")


def _start(record: dict[str, Any]) -> Start:
    check_rate(record.get("sample_rate", Start.sample_rate))
    targets = record.pop("targets", [])
    if not (len(targets) <= MOST_NAMED_TARGETS and all(isinstance(target, str) for target in targets)):
        raise ProtocolError("bad-message", f"targets must be a list of at most {MOST_NAMED_TARGETS} language codes")
    for target in targets:
        check_length("a target", target, LONGEST_CODE)
    return Start(**record, targets=tuple(targets))


def check_rate(rate: int) -> None:
    """Check a sample rate in Hz.

    Raises:
        ProtocolError: it is out of range.
    """
    if not _LOWEST_RATE <= rate <= _HIGHEST_RATE:
        raise ProtocolError(
            "bad-sample-rate",
            f"the sample rate is {shown(rate)} Hz; it must be from {_LOWEST_RATE} to {_HIGHEST_RATE} Hz",
        )


def room_name(key: str) -> str:
    """The name of the room whose key this is.

    Raises:
        ProtocolError: the key has another form.
    """
    if not _ROOM_KEY.fullmatch(key):
        raise ProtocolError(
            "bad-room",
            "room_key must have 22 to 128 characters out of A to Z, a to z, 0 to 9, - and _, drawn at random",
        )
    digest = hashlib.sha256(_ROOM_PREFIX + key.encode()).digest()[:_ROOM_BYTES]
    return urlsafe_b64encode(digest).decode().rstrip("=")


def is_room_name(text: str) -> bool:
    """Whether a room could have this name."""
    return _ROOM_NAME.fullmatch(text) is not None


def event_text(event: ChangeEvent) -> str:
    """An event as the text of a frame: the line of the JSONL format, but for a pause: ``resumed`` is another message here."""
    if isinstance(event, Paused | Resumed):
        return message_text("pause", on=isinstance(event, Paused), at_s=round(event.at_s, 4))
    return line(event).rstrip("\n")


def snapshot_text(events: Sequence[ChangeEvent]) -> str:
    """A ``snapshot`` message: the reader replaces what it has of these sentences."""
    return f'{{"type": "snapshot", "events": [{", ".join(map(event_text, events))}]}}'


def message_text(kind: str, **values: object) -> str:
    """A message of the server that is no event."""
    return json.dumps({"type": kind, **values}, ensure_ascii=False)


def sendable(text: str) -> str:
    """``text`` without halves of surrogate pairs, which JSON may have and UTF-8 may not."""
    return text.encode("utf-8", "backslashreplace").decode()


def shown(value: object) -> str:
    """A value of a message for an error: its JSON, not more than its beginning, or what it is."""
    if isinstance(value, list | dict):
        return f"a JSON {_json_type(value)}"
    text = sendable(json.dumps(value[:60] if isinstance(value, str) else value, ensure_ascii=False))
    return text if len(text) <= 60 else f"{text[:60]}…"


def _json_type(value: object) -> str:
    return {list: "array", dict: "object", str: "string", bool: "boolean", type(None): "null"}.get(
        type(value), "number"
    )
