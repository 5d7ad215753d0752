"""Several servers that share out rooms: each tells the others over NATS what it has. Needs the extra ``directory``.

Nothing is stored: a server that comes hears within a second what the others have, and one that is not heard for a while is gone.
docs/capacity.md says what whoever can write to NATS can do.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from ..errors import PipelineError, UsageError
from .access import Access
from .peers import MOST_ENDED, Claim, Peer, Peers, read_report, server_message
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
_FIRST_S = 5


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

    def _claim(self, session: Session, *, leased: bool = False) -> Claim:
        """The claim of a session here. ``leased``: whether it is as strong as if somebody spoke."""
        state = 2 if session.state.over else int(not (leased or session.state.has_speaker))
        return Claim(state, "" if state else session.name, session.id, self.address)

    def check(self, first: object, access: Access, query: Mapping[str, str]) -> None:
        """Raise ProtocolError if a client's first message belongs to another server, or to one that is gone.

        ``query``: with ``placed``, a server has sent the client here; it is not sent on, since what servers know of each other is
        a second old.
        """
        if "placed" in query or (isinstance(first, Start | Resume) and not access.knows_token(first.token)):
            return
        address: str | None = None
        if isinstance(first, Start):
            address = self._place_of(first)
        elif isinstance(first, Resume | Watch | Listen):
            address = self._server_of(first)
        if address is not None and address != self.address:
            where = f"{address.replace('http', 'ws', 1)}/v1/session?placed=1"
            raise ProtocolError("elsewhere", "another server takes this; connect to its address", address=where)

    def _place_of(self, start: Start) -> str | None:
        """Where a session begins: in a room where that is, in a new room on the least loaded server. None: here."""
        if not start.room_key:
            return None
        room, places = room_name(start.room_key), self._service.places
        claim = self._in_room(room) if not places.draining else self.peers.in_room(room)
        if claim is not None and (claim.address == self.address or not self.peers.servers[claim.address].draining):
            return claim.address
        load = 1.0 if places.closed else places.taken / self._service.limits.max_sessions
        return self.peers.with_place(room, start.source, start.targets, load)

    def _server_of(self, first: Resume | Watch | Listen) -> str | None:
        """Where a session is, by its id or, for readers, by its room. None: here, or nowhere.

        Raises:
            ProtocolError: its server is gone.
        """
        name = first.session
        with contextlib.suppress(ProtocolError):
            self._service.index.with_id(name)
            return None
        if (address := self.peers.with_id(name)) is not None:
            return address
        if not isinstance(first, Resume) and (claim := self._in_room(name)) is not None:
            return claim.address
        if name in self.peers.ended:
            raise ProtocolError("no-session", "the server of this session is gone, and the session has ended")
        return None

    @asynccontextmanager
    async def joined(self, url: str) -> AsyncIterator[None]:
        """Take part for the time of the block. ``url``: of the NATS server, perhaps with a token or a password.

        Raises:
            PipelineError: it cannot be reached.
        """
        client = await self._connected(url)

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

    async def _connected(self, url: str) -> Client:
        """A client of NATS, which connects again whenever it loses the connection."""
        host = urlsplit(url).netloc.rpartition("@")[2]
        client, reason = _Client(), ""

        async def lost() -> None:
            log.warning("the directory at %s is lost; no room of another server is found until it is back", host)

        async def back() -> None:
            self._since_s = self.peers.clock()
            log.warning("the directory at %s is back", host)

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
        return client

    def _take(self, data: bytes) -> None:
        try:
            message = server_message(data)
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
            claim = self._claim(session, leased=self.peers.leased(session.id))
            if peer.claim(room).rank < claim.rank and not session.state.ending:
                log.warning("session %s ends: somebody speaks in its room on %s", session.name, peer.address)
                session.give_way("somebody speaks in this room on another server; stop there first")

    def _report(self) -> bytes:
        service = self._service
        sessions = [*service.sessions.values(), *service.rooms.values()]  # of a room, the newest comes last
        going_on = [session for session in sessions if not session.state.over]
        kept = {session.id: session.room or "" for session in sessions if session.state.over}
        speaking = {session.id: session.name for session in going_on if session.room and session.state.has_speaker}
        self.peers.tell(speaking)
        report = {
            "address": self.address,
            "capacity": service.limits.max_sessions,
            "languages": [(languages.source, languages.targets) for languages in service.languages.configured],
            "draining": service.places.closed,
            "sessions": {session.id: session.room or "" for session in going_on},
            "speaking": speaking,
            "kept": dict(list(kept.items())[-MOST_ENDED:]),
        }
        return json.dumps(report).encode()
