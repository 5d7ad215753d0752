"""What servers that share out rooms tell each other, and where a session or a room is. Pure: the caller tells the time."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from ..languages import LanguageConfig
from .access import is_origin
from .languages.served import ServedLanguages
from .limits import MOST_SESSIONS
from .protocol import ProtocolError, is_room_name

log = logging.getLogger(__name__)

GONE_S = 5.0
"""Nobody is sent to a server that is not heard for so long. If NATS is there, it is gone, and its sessions have ended."""
# A client that was sent to a server has begun there by then (``ServerLimits.first_message_s``).
_BEGIN_S = 10.0
# A report has reached the other servers by then.
_REACHED_S = 2.0
MOST_ENDED = 1_000
"""Sessions that have ended in one report."""
# The longest report that is read, in bytes: 2,000 sessions and their rooms take 110,000.
_LONGEST_REPORT = 200_000
# It becomes part of a header.
_ADDRESS = re.compile(r"https?://[\w.:\[\]-]{1,250}", re.ASCII)
# Characters of all servers' addresses. They are in a header of every answer; a proxy takes 4 KiB of headers, as nginx does.
_MOST_CHARACTERS = 3_000
_SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAME = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}", re.ASCII)


class Claim(NamedTuple):
    """A session in a room. Of several, the one with the least ``rank`` has the room."""

    state: int
    """0: somebody speaks; 1: its speaker is away; 2: it has ended."""
    name: str
    """While somebody speaks, ``Session.name``, which begins with the time of its beginning; else ""."""
    session: str
    """The id of the session."""
    address: str

    @property
    def rank(self) -> tuple[int, str]:
        return self.state, self.name


@dataclass
class Peer:
    """Another server, as it was heard last."""

    address: str
    """Such as https://one.example.org, without a path."""
    capacity: int
    languages: ServedLanguages
    draining: bool
    sessions: dict[str, str]
    """The id of each session → the name of its room, or ""."""
    kept: dict[str, str]
    """The same, id → room or "", of sessions that have ended: their readers may not have heard of them yet."""
    speaking: dict[str, str]
    """The id of each session in a room in which somebody speaks → its name."""
    heard_s: float
    given: dict[str, float] = field(default_factory=dict)
    """Rooms that were sent there and have not begun → when they were."""

    @cached_property
    def rooms(self) -> dict[str, str]:
        """The name of each room → the id of its newest session: that in progress, else the one that has ended last."""
        return {room: session for session, room in (self.kept | self.sessions).items() if room}

    def claim(self, room: str) -> Claim:
        """Its session in a room that it has."""
        session = self.rooms[room]
        state = int(session not in self.speaking) if session in self.sessions else 2
        return Claim(state, self.speaking.get(session, ""), session, self.address)

    @property
    def load(self) -> float:
        return (len(self.sessions) + len(self.given)) / self.capacity

    def takes(self, source: str | None, targets: Sequence[str]) -> bool:
        """Whether it has room for one more session in these languages."""
        with contextlib.suppress(ProtocolError):
            self.languages.find(source, targets)
            return not self.draining and self.load < 1
        return False


def server_message(data: bytes) -> Any:
    """A message of a server: a report, or the address of one that is gone. Raises ValueError: it is too long, or not JSON."""
    if len(data) > _LONGEST_REPORT:
        raise ValueError(f"it has {len(data)} bytes; at most {_LONGEST_REPORT} are read")
    return json.loads(data)


def read_report(data: bytes, now_s: float) -> Peer:
    """What a server says of itself.

    Raises:
        ValueError, TypeError, KeyError, UsageError: it is no report.
    """
    message = server_message(data)
    address, capacity = str(message["address"]), int(message["capacity"])
    sessions, kept, speaking = message["sessions"], message.get("kept", {}), message.get("speaking", {})
    if not (is_origin(address) and _ADDRESS.fullmatch(address)):
        raise ValueError("the address is none")
    if not 0 < capacity <= MOST_SESSIONS or len(sessions) > MOST_SESSIONS or len(kept) > MOST_ENDED:
        raise ValueError("there are too many sessions")
    rooms = (*sessions.items(), *kept.items())
    if not all(_SESSION.fullmatch(session) and (room == "" or is_room_name(room)) for session, room in rooms):
        raise ValueError("a session or a room has another form")
    if not all(session in sessions and _NAME.fullmatch(name) for session, name in speaking.items()):
        raise ValueError("the name of a session has another form")
    languages = ServedLanguages(tuple(LanguageConfig(source, tuple(into)) for source, into in message["languages"]))
    return Peer(address, capacity, languages, bool(message["draining"]), sessions, kept, speaking, now_s)


@dataclass
class Peers:
    """The other servers, and where a session belongs."""

    clock: Callable[[], float] = time.monotonic
    servers: dict[str, Peer] = field(default_factory=dict)
    """By address."""
    ended: dict[str, None] = field(default_factory=dict)
    """Sessions and rooms of servers that are gone, the newest last."""
    full: bool = False
    """Whether a server has been left out."""
    told: dict[str, float] = field(default_factory=dict)
    """Sessions of this server → when the others were last told that somebody speaks there."""

    def tell(self, speaking: Iterable[str]) -> None:
        """The others are told that somebody speaks in these sessions of this server."""
        self.told = {session: told_s for session, told_s in self.told.items() if self.leased(session)}
        self.told |= dict.fromkeys(speaking, self.clock())

    def leased(self, session: str) -> bool:
        """Whether a session here keeps its room although its speaker is away: a younger one elsewhere may still end because of
        what it was told. If this one gave way to it meanwhile, both would end.
        """
        return session in self.told and self.clock() - self.told[session] < _REACHED_S

    def push(self, peer: Peer) -> None:
        """Take what a server says. One whose address finds no place is left out."""
        before = self.servers.get(peer.address)
        if before is None and sum(map(len, self.servers)) + len(peer.address) > _MOST_CHARACTERS:
            if not self.full:
                log.warning(
                    "the directory has more servers than find place (%d); %s is one", len(self.servers), peer.address
                )
            self.full = True
            return
        given = before.given.items() if before is not None else ()
        peer.given = {room: at_s for room, at_s in given if room not in peer.rooms and peer.heard_s - at_s < _BEGIN_S}
        self.servers[peer.address] = peer
        for name in (*peer.sessions, *peer.kept, *peer.rooms):
            self.ended.pop(name, None)

    def drop(self, address: str) -> None:
        """A server is gone."""
        if (peer := self.servers.pop(address, None)) is not None:
            self.full = False
            self.ended |= dict.fromkeys((*peer.kept, *peer.sessions, *peer.rooms))
            for name in list(self.ended)[:-MOST_ENDED]:
                del self.ended[name]

    def drop_silent(self, since_s: float) -> None:
        """Drop servers that have not been heard. ``since_s``: since when this server hears."""
        for peer in list(self.servers.values()):
            if self.clock() - max(peer.heard_s, since_s) > GONE_S:
                log.warning("the server %s is gone; %d sessions there have ended", peer.address, len(peer.sessions))
                self.drop(peer.address)

    @property
    def heard(self) -> list[Peer]:
        """Servers that are there, as far as is known: one that is silent may have died, also while NATS is away."""
        return [peer for peer in self.servers.values() if self.clock() - peer.heard_s <= GONE_S]

    def with_id(self, session_id: str) -> str | None:
        """The address of the server with a session."""
        addresses = (peer.address for peer in self.heard if session_id in peer.sessions or session_id in peer.kept)
        return next(addresses, None)

    def in_room(self, room: str, *own: Claim) -> Claim | None:
        """The session that has a room. ``own``: the claim of this server, which comes first among equals."""
        claims = [*own, *(peer.claim(room) for peer in self.heard if room in peer.rooms)]
        return min(claims, key=lambda claim: claim.rank, default=None)

    def with_place(self, room: str, source: str | None, targets: Sequence[str], own_load: float) -> str | None:
        """The least loaded server that takes one more session, for a new room; None if that is this one."""
        for peer in self.servers.values():
            peer.given.pop(room, None)
        freer = [peer for peer in self.heard if peer.takes(source, targets) and peer.load < own_load]
        freest = min(freer, key=lambda peer: peer.load, default=None)
        if freest is None:
            return None
        freest.given[room] = self.clock()
        return freest.address
