"""Rooms: an address for readers that stays the same from one session of a speaker to the next. Pure.

A speaker chooses a secret, the room's key. The room's name is a digest of it, so that the server keeps nothing between sessions,
the name outlives a restart, and whoever has only the name, as all readers do, cannot speak in the room.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64encode

from pipeline.server.protocol import ProtocolError

# 128 bits: nobody finds another key with the same name.
_NAME_BYTES = 16
_NAME = re.compile(r"[A-Za-z0-9_-]{22}")
# 132 random bits at least, if the characters are drawn at random, which the server cannot check.
_KEY = re.compile(r"[A-Za-z0-9_-]{22,128}")
_PREFIX = b"room:"


def room_name(key: str) -> str:
    """The name of the room whose key this is.

    Raises:
        ProtocolError: the key has another form.
    """
    if not _KEY.fullmatch(key):
        raise ProtocolError(
            "bad-room",
            "room_key must have 22 to 128 characters out of A to Z, a to z, 0 to 9, - and _, drawn at random",
        )
    digest = hashlib.sha256(_PREFIX + key.encode()).digest()[:_NAME_BYTES]
    return urlsafe_b64encode(digest).decode().rstrip("=")


def is_room_name(text: str) -> bool:
    """Whether a room could have this name."""
    return _NAME.fullmatch(text) is not None
