"""Several servers that share out rooms: each tells the others over NATS what it has. Needs the extra ``directory``.

Nothing is stored: a server that comes hears within a second what the others have, and one that is not heard for a while is gone.
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
from urllib.parse import urlsplit

from ..errors import PipelineError, UsageError
from ..languages.options import LanguageConfig
from .access import Access, is_origin
from .languages.served import ServedLanguages
from .limits import MOST_SESSIONS
from .protocol import Listen, ProtocolError, Resume, Start, Watch, is_room_name, room_name
from .service import Service

try:
    import nats
    import nats.errors
    from nats.aio.msg import Msg
except ImportError:
    raise UsageError(
        "--directory needs the package nats-py: pip install 'streaming-speech-translation[directory]'"
    ) from None

log = logging.getLogger(__name__)

_SUBJECT = "speech-translation.servers"
_TELL_S = 1.0
GONE_S = 5.0
"""A server that is not heard for so long is gone, and its sessions have ended."""
_MOST_SERVERS, _MOST_ENDED, _LONGEST = 1_000, 1_000, 300
_FIRST_S = 5
# It becomes part of a header.
_ADDRESS = re.compile(r"https?://[\w.:\[\]-]{1,250}", re.ASCII)


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
    heard_s: float
    given: int = 0
    """Rooms that were sent there since."""

    @property
    def known(self) -> dict[str, str]:
        """All of them, those in progress last."""
        return self.kept | self.sessions

    @property
    def load(self) -> float:
        return (len(self.sessions) + self.given) / self.capacity

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
    message = json.loads(data)
    address, sessions, kept = str(message["address"]), message["sessions"], message.get("kept", {})
    if not (is_origin(address) and _ADDRESS.fullmatch(address)):
        raise ValueError("the address is none")
    if not 0 < int(message["capacity"]) <= MOST_SESSIONS or len(sessions) > MOST_SESSIONS or len(kept) > _MOST_ENDED:
        raise ValueError("there are too many sessions")
    if not all(
        len(each) < _LONGEST and (room == "" or is_room_name(room)) for each, room in (*sessions.items(), *kept.items())
    ):
        raise ValueError("a session or a room has another form")
    languages = tuple(LanguageConfig(source, tuple(targets)) for source, targets in message["languages"])
    return Peer(
        address=address,
        capacity=int(message["capacity"]),
        languages=ServedLanguages(languages),
        draining=bool(message["draining"]),
        sessions=dict(sessions),
        kept=dict(kept),
        heard_s=now_s,
    )


@dataclass
class Peers:
    """The other servers, and where a session belongs. Pure."""

    clock: Callable[[], float] = time.monotonic
    servers: dict[str, Peer] = field(default_factory=dict)
    """By address."""
    ended: dict[str, None] = field(default_factory=dict)
    """Sessions and rooms of servers that are gone, the newest last."""

    def push(self, peer: Peer) -> None:
        """Take what a server says."""
        if peer.address not in self.servers and len(self.servers) >= _MOST_SERVERS:
            return
        self.servers[peer.address] = peer
        for name in (*peer.known, *peer.known.values()):
            self.ended.pop(name, None)

    def drop(self, address: str) -> None:
        """A server is gone."""
        if (peer := self.servers.pop(address, None)) is not None:
            self.ended |= dict.fromkeys(name for each in peer.known.items() for name in each if name)
            for name in list(self.ended)[:-_MOST_ENDED]:
                del self.ended[name]

    def drop_silent(self, since_s: float) -> None:
        """Drop those that have not been heard. ``since_s``: since when this server hears."""
        for peer in list(self.servers.values()):
            if self.clock() - max(peer.heard_s, since_s) > GONE_S:
                log.warning("the server %s is gone; %d sessions there have ended", peer.address, len(peer.sessions))
                self.drop(peer.address)

    def with_session(self, name: str) -> tuple[str, str] | None:
        """The address of the server with a session, or with the newest one in a room, and the session's id."""
        for peer in self.servers.values():
            for session, room in reversed(peer.known.items()):
                if name in (session, room):
                    return peer.address, session
        return None

    def with_room_for(self, source: str | None, targets: Sequence[str], own_load: float) -> str | None:
        """The least loaded server that takes one more session; None if that is this one."""
        takes = [peer for peer in self.servers.values() if peer.takes(source, targets) and peer.load < own_load]
        found = min(takes, key=lambda peer: peer.load, default=None)
        if found is None:
            return None
        found.given += 1
        return found.address


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

    def found(self, name: str) -> dict[str, object]:
        """What ``/v1/room`` says of a room."""
        if (session := self._service.rooms.get(name)) is not None:
            return {"session": session.id, "server": self.address, "ended": False}
        address, elsewhere = self.peers.with_session(name) or (None, None)
        return {"session": elsewhere, "server": address, "ended": elsewhere is None and name in self.peers.ended}

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
            if not room or room in self._service.rooms:
                return
            known, _ = self.peers.with_session(room) or (None, None)
            if known is not None and not self.peers.servers[known].draining:
                address = known
            else:
                sessions, most = len(self._service.sessions), self._service.limits.max_sessions
                load = 1.0 if self._service.draining else sessions / most
                address = self.peers.with_room_for(first.source, first.targets, load)
        elif isinstance(first, Resume | Watch | Listen):
            with contextlib.suppress(ProtocolError):
                self._service.find(first.session)
                return
            address, _ = self.peers.with_session(first.session) or (None, None)
            if address is None and first.session in self.peers.ended:
                raise ProtocolError("no-session", "the server of this session is gone, and the session has ended")
        if address is not None:
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

        async def failed(error: Exception) -> None:
            log.debug("the directory at %s: %s", host, type(error).__name__)

        try:
            client = await asyncio.wait_for(
                nats.connect(
                    url, max_reconnect_attempts=-1, reconnect_time_wait=1, disconnected_cb=lost, reconnected_cb=back,
                    error_cb=failed, no_echo=True,
                ),
                _FIRST_S,
            )  # fmt: skip
        except (TimeoutError, OSError, ValueError, nats.errors.Error) as error:
            reason = str(error) or type(error).__name__
            raise PipelineError(
                f"the directory at {host} cannot be reached ({reason}); start nats-server there"
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
            await client.close()

    def _take(self, data: bytes) -> None:
        try:
            message = json.loads(data)
            if "gone" in message:
                self.peers.drop(str(message["gone"]))
            elif (peer := read_report(data, self.peers.clock())).address != self.address:
                self.peers.push(peer)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, UsageError) as error:
            log.warning("the directory has a report that is none (%s)", error)

    def _report(self) -> bytes:
        service = self._service
        languages = [(one.source, one.targets) for one in service.languages.configured]
        report = {
            "address": self.address,
            "capacity": service.limits.max_sessions,
            "languages": languages,
            "draining": service.draining,
            "sessions": {session.id: session.room or "" for session in service.sessions.values()},
            "kept": dict(
                [(session.id, room) for room, session in service.rooms.items() if session.id not in service.sessions][
                    -_MOST_ENDED:
                ]
            ),
        }
        return json.dumps(report).encode()
