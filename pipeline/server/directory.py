"""Several servers that share out rooms: each tells the others over NATS what it has. Needs the extra ``directory``.

Nothing is stored: a server that comes hears within a second what the others have, and one that is not heard for a while is gone.
docs/capacity.md says what whoever can write to NATS can do.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ..errors import PipelineError, UsageError
from ..languages import LanguageConfig
from .access import Access, is_origin
from .languages.served import ServedLanguages
from .limits import MOST_SESSIONS
from .protocol import Listen, ProtocolError, Resume, Start, Watch, is_room_name, room_name
from .service import Service
from .session import Session

try:
    import nats.errors
    from nats.aio.client import Client
    from nats.aio.msg import Msg
except ImportError:
    raise UsageError(
        "--directory needs the package nats-py: pip install 'streaming-speech-translation[directory]'"
    ) from None

log = logging.getLogger(__name__)

_SUBJECT = "speech-translation.servers"
_TELL_S = 1.0
GONE_S = 5.0
"""Nobody is sent to a server that is not heard for so long. If NATS is there, it is gone, and its sessions have ended."""
# A client that was sent to a server has begun there by then (``ServerLimits.first_message_s``).
_BEGIN_S = 10.0
_MOST_ENDED = 1_000
# The longest report that is read, in bytes: 2,000 sessions and their rooms take 110,000.
_LONGEST_REPORT = 200_000
_FIRST_S = 5
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
    """Its id."""
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
    """The same of sessions that have ended: their readers may not have heard of them yet."""
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


def read_report(data: bytes, now_s: float) -> Peer:
    """What a server says of itself.

    Raises:
        ValueError, TypeError, KeyError, UsageError: it is no report.
    """
    message = _parsed(data)
    address, sessions, kept = str(message["address"]), message["sessions"], message.get("kept", {})
    if not (is_origin(address) and _ADDRESS.fullmatch(address)):
        raise ValueError("the address is none")
    if not 0 < int(message["capacity"]) <= MOST_SESSIONS or len(sessions) > MOST_SESSIONS or len(kept) > _MOST_ENDED:
        raise ValueError("there are too many sessions")
    if not all(
        _SESSION.fullmatch(each) and (room == "" or is_room_name(room))
        for each, room in (*sessions.items(), *kept.items())
    ):
        raise ValueError("a session or a room has another form")
    speaking = message.get("speaking", {})
    if not all(each in sessions and _NAME.fullmatch(name) for each, name in speaking.items()):
        raise ValueError("the name of a session has another form")
    languages = tuple(LanguageConfig(source, tuple(targets)) for source, targets in message["languages"])
    return Peer(
        address=address,
        capacity=int(message["capacity"]),
        languages=ServedLanguages(languages),
        draining=bool(message["draining"]),
        sessions=dict(sessions),
        kept=dict(kept),
        speaking=dict(speaking),
        heard_s=now_s,
    )


def _parsed(data: bytes) -> Any:
    if len(data) > _LONGEST_REPORT:
        raise ValueError(f"it has {len(data)} bytes; at most {_LONGEST_REPORT} are read")
    return json.loads(data)


@dataclass
class Peers:
    """The other servers, and where a session belongs. Pure."""

    clock: Callable[[], float] = time.monotonic
    servers: dict[str, Peer] = field(default_factory=dict)
    """By address."""
    ended: dict[str, None] = field(default_factory=dict)
    """Sessions and rooms of servers that are gone, the newest last."""
    full: bool = False
    """Whether a server has been left out."""

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
            for name in list(self.ended)[:-_MOST_ENDED]:
                del self.ended[name]

    def drop_silent(self, since_s: float) -> None:
        """Drop those that have not been heard. ``since_s``: since when this server hears."""
        for peer in list(self.servers.values()):
            if self.clock() - max(peer.heard_s, since_s) > GONE_S:
                log.warning("the server %s is gone; %d sessions there have ended", peer.address, len(peer.sessions))
                self.drop(peer.address)

    @property
    def heard(self) -> list[Peer]:
        """Those that are there, as far as is known: one that is silent may have died, also while NATS is away."""
        return [peer for peer in self.servers.values() if self.clock() - peer.heard_s <= GONE_S]

    def with_id(self, session_id: str) -> str | None:
        """The address of the server with a session."""
        having = (peer for peer in self.heard if session_id in peer.sessions or session_id in peer.kept)
        return next((peer.address for peer in having), None)

    def in_room(self, room: str, *own: Claim) -> Claim | None:
        """The session that has a room. ``own``: that of this server, which comes first among equals."""
        claims = [*own, *(peer.claim(room) for peer in self.heard if room in peer.rooms)]
        return min(claims, key=lambda claim: claim.rank, default=None)

    def with_place(self, room: str, source: str | None, targets: Sequence[str], own_load: float) -> str | None:
        """The least loaded server that takes one more session, for a new room; None if that is this one."""
        for peer in self.servers.values():
            peer.given.pop(room, None)
        takes = [peer for peer in self.heard if peer.takes(source, targets) and peer.load < own_load]
        found = min(takes, key=lambda peer: peer.load, default=None)
        if found is None:
            return None
        found.given[room] = self.clock()
        return found.address


class _Client(Client):
    """A client that sends nothing in the clear to an address with tls://, where nats-py does as the server says."""

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        await super()._process_info(info, initial_connection)
        server = self._current_server
        if initial_connection and server is not None and server.uri.scheme == "tls" and not info.get("tls_required"):
            raise nats.errors.Error("it speaks no TLS, and its address begins with tls://")


class Directory:
    """This server among others."""

    def __init__(self, service: Service, address: str) -> None:
        """``address``: where browsers and the other servers' clients reach this one, such as https://one.example.org."""
        self._service, self.address, self.peers = service, address, Peers()
        self._since_s = self.peers.clock()

    @property
    def origins(self) -> list[str]:
        """The other servers' addresses, whose pages may connect."""
        return list(self.peers.servers)

    def found(self, room: str) -> dict[str, object]:
        """What ``/v1/room`` says of a room; of anything else, such as a session's id, that there is none."""
        claim = self._in_room(room)
        ended = claim is None and is_room_name(room) and room in self.peers.ended
        return {"session": claim and claim.session, "server": claim and claim.address, "ended": ended}

    def _in_room(self, room: str) -> Claim | None:
        session = self._service.rooms.get(room)
        return self.peers.in_room(room, *() if session is None else (self._claim(session),))

    def _claim(self, session: Session) -> Claim:
        state = 2 if session.over else int(not session.has_speaker)
        return Claim(state, "" if state else session.name, session.id, self.address)

    def check(self, first: object, access: Access, query: Mapping[str, str]) -> None:
        """Raise ProtocolError if a client's first message belongs to another server, or to one that is gone.

        A room goes where it is, and a new one to the least loaded server. ``query``: with ``placed``, a server has sent the client
        here; it is not sent on, since what servers know of each other is a second old.
        """
        if "placed" in query or (isinstance(first, Start | Resume) and not access.knows_token(first.token)):
            return
        address: str | None = None
        if isinstance(first, Start):
            room = room_name(first.room_key) if first.room_key else ""
            if not room:
                return
            known = self._in_room(room) if not self._service.draining else self.peers.in_room(room)
            if known is not None and (known.address == self.address or not self.peers.servers[known.address].draining):
                address = known.address
            else:
                sessions, most = self._service.taken, self._service.limits.max_sessions
                load = 1.0 if self._service.draining or self._service.hung else sessions / most
                address = self.peers.with_place(room, first.source, first.targets, load)
        elif isinstance(first, Resume | Watch | Listen):
            name = first.session
            with contextlib.suppress(ProtocolError):
                self._service.with_id(name)
                return
            address = self.peers.with_id(name)
            if address is None and not isinstance(first, Resume) and (known := self._in_room(name)) is not None:
                address = known.address
            if address is None and name in self.peers.ended:
                raise ProtocolError("no-session", "the server of this session is gone, and the session has ended")
        if address is not None and address != self.address:
            where = f"{address.replace('http', 'ws', 1)}/v1/session?placed=1"
            raise ProtocolError("elsewhere", "another server takes this; connect to its address", address=where)

    @asynccontextmanager
    async def joined(self, url: str) -> AsyncIterator[None]:
        """Take part for the time of the block. ``url``: of the NATS server, perhaps with a token or a password.

        Raises:
            PipelineError: it cannot be reached.
        """
        host = urlsplit(url).netloc.rpartition("@")[2]

        async def lost() -> None:
            log.warning("the directory at %s is lost; no room of another server is found until it is back", host)

        async def back() -> None:
            self._since_s = self.peers.clock()
            log.warning("the directory at %s is back", host)

        client, reason = _Client(), ""

        async def failed(error: Exception) -> None:
            nonlocal reason
            before = reason
            if not reason or isinstance(error, nats.errors.Error):  # what NATS says comes before a reset that follows
                reason = str(error) or type(error).__name__
            if "permissions" in reason.lower() and reason != before:
                log.warning("the directory at %s: %s", host, reason)

        try:
            await asyncio.wait_for(
                client.connect(
                    url, max_reconnect_attempts=-1, reconnect_time_wait=1, disconnected_cb=lost, reconnected_cb=back,
                    error_cb=failed, no_echo=True,
                ),
                _FIRST_S,
            )  # fmt: skip
        except (TimeoutError, OSError, ValueError, nats.errors.Error) as error:
            raise PipelineError(
                f"the directory at {host} cannot be reached ({reason or str(error) or type(error).__name__}); start nats-server "
                "there, or check the address, its password and the certificate"
            ) from None
        self._since_s = self.peers.clock()

        async def take(message: Msg) -> None:
            self._take(message.data)

        await client.subscribe(_SUBJECT, cb=take)

        async def work() -> None:
            while True:
                if client.is_connected:
                    self.peers.drop_silent(self._since_s)
                    await client.publish(_SUBJECT, self._report())
                await asyncio.sleep(_TELL_S)

        working = asyncio.create_task(work())
        try:
            yield
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            with contextlib.suppress(TimeoutError, OSError, nats.errors.Error):
                await client.publish(_SUBJECT, json.dumps({"gone": self.address}).encode())
                await asyncio.wait_for(client.flush(), _TELL_S)
            with contextlib.suppress(OSError, nats.errors.Error):  # it is away
                await client.close()

    def _take(self, data: bytes) -> None:
        try:
            message = _parsed(data)
            if "gone" in message:
                self.peers.drop(str(message["gone"]))
            elif (peer := read_report(data, self.peers.clock())).address != self.address:
                self.peers.push(peer)
                self._give_way(peer)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, UsageError) as error:
            log.warning("the directory has a report that is none (%s)", error)

    def _give_way(self, peer: Peer) -> None:
        """End sessions whose rooms another server has: both may begin one of a name while they do not hear each other."""
        for room in peer.rooms.keys() & self._service.rooms.keys():
            session = self._service.rooms[room]
            if peer.claim(room).rank < self._claim(session).rank and not session.ending:
                log.warning("session %s ends: somebody speaks in its room on %s", session.name, peer.address)
                session.give_way("somebody speaks in this room on another server; stop there first")

    def _report(self) -> bytes:
        service = self._service
        sessions = [*service.sessions.values(), *service.rooms.values()]  # of a room, the newest comes last
        kept = {each.id: each.room or "" for each in sessions if each.over}
        languages = [(one.source, one.targets) for one in service.languages.configured]
        report = {
            "address": self.address,
            "capacity": service.limits.max_sessions,
            "languages": languages,
            "draining": service.draining or service.hung,  # it takes nobody
            "sessions": {each.id: each.room or "" for each in sessions if not each.over},
            "speaking": {each.id: each.name for each in sessions if each.room and each.has_speaker},
            "kept": dict(list(kept.items())[-_MOST_ENDED:]),
        }
        return json.dumps(report).encode()
