"""Where a server listens, and who may use it: addresses, ports, sockets, TLS, the token, and the number of open files."""

from __future__ import annotations

import argparse
import errno
import ipaddress
import logging
import socket
import ssl
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..console import importing, whole_number
from ..errors import UsageError
from ..server import MOST_SESSIONS, Access, is_host_name, is_loopback, is_origin, is_unspecified

log = logging.getLogger(__name__)

_SHORTEST_TOKEN = 16
_SHORT = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
# asyncio waits a second (ACCEPT_RETRY_DELAY) when a connection cannot be accepted.
_RETRY_S, _TOLD_S = 0.9, 60.0


def some_network(text: str) -> str:
    """An address or a network, such as 127.0.0.1 or 10.0.0.0/8."""
    try:
        return str(ipaddress.ip_network(text)) if "/" in text else str(ipaddress.ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no address; give that of the proxy, such as 127.0.0.1 or 10.0.0.0/8"
        ) from None


def some_ports(text: str) -> range:
    """Argument type: a port, or the ports from one to another."""
    number = whole_number(0, 65_535)
    first, dash, last = text.partition("-")
    ports = range(number(first), number(last if dash else first) + 1)
    if not ports:
        raise argparse.ArgumentTypeError(f"{text!r} has no port; write the lower one first")
    return ports


def addresses(listener: socket.socket, scheme: str) -> list[str]:
    """The addresses of the page: on this machine, and from others if it listens on all addresses and one is known."""
    host, port = listener.getsockname()[:2]
    hosts = ["localhost", *outward(host)] if is_unspecified(host) else [host]
    return [f"{scheme}://{f'[{one}]' if ':' in one else one}:{port}/" for one in hosts]


def outward(host: str) -> list[str]:
    """The address of this machine for others, if a server listens on all addresses (``host``) and one is known."""
    if is_unspecified(host):
        with (
            suppress(OSError),
            socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as probe,
        ):
            # Chooses the interface that leads elsewhere, and sends nothing. These addresses are for documentation.
            probe.connect(("2001:db8::1" if ":" in host else "192.0.2.1", 9))
            return [probe.getsockname()[0]]
    return []


def wyoming_address(uri: str) -> tuple[str, int]:
    """Host and port of a URI such as tcp://127.0.0.1:10300."""
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or port is None or uri.lower() not in (f"tcp://{host}:{port}", f"tcp://[{host}]:{port}"):
        raise UsageError(f"--wyoming is {uri!r}; give an address such as tcp://127.0.0.1:10300")
    if not is_loopback(host):
        raise UsageError(
            f"other machines can reach --wyoming {uri}, and the protocol has no token; use tcp://127.0.0.1:{port}, and a "
            "tunnel (ssh -L) from elsewhere"
        )
    return host, port


def tls_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """The TLS settings of a server; None without a certificate."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        given, missing = ("--tls-cert", "--tls-key") if key is None else ("--tls-key", "--tls-cert")
        raise UsageError(f"{given} is given without {missing}; https needs both")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = error.strerror if isinstance(error, FileNotFoundError) else str(error).partition(" (_ssl.c")[0]
        raise UsageError(
            f"cannot use the certificate {certificate} with the key {key}: {reason}; give two PEM files that belong together"
        ) from None
    return context


def own_tls(options: argparse.Namespace, access: Access) -> tuple[ssl.SSLContext | None, str]:
    """The TLS settings for ``--tls auto``, and a line that says what certificate they have."""
    if options.tls_cert or options.tls_key:
        raise UsageError("--tls auto makes a certificate; leave --tls-cert and --tls-key out, or leave it out")
    with importing():
        from ..store import assets
        from .self_signed import self_signed
    names = {name for name in access.names if name.isascii() and not is_unspecified(name)}
    path, fingerprint = self_signed({*names, *outward(options.host)}, assets() / "tls")
    return tls_context(
        path, path
    ), f"its certificate is in {path}; browsers ask once whether to trust it; SHA-256: {fingerprint}"


def _no_password() -> str:
    raise ValueError("the key has a password; give one without")


class ShortageError(OSError):
    """No connection can be accepted for now: the process or the machine lacks descriptors or memory."""


class ListeningSocket(socket.socket):
    """A listening socket that says in one line a minute that it cannot accept.

    asyncio then stops reading it for a second, but first tries again as often as its backlog, with a traceback each time.
    """

    _retry_s = _told_s = float("-inf")

    def accept(self) -> tuple[socket.socket, Any]:
        now_s = time.monotonic()
        if now_s < self._retry_s:
            raise BlockingIOError
        try:
            return super().accept()
        except OSError as error:
            if error.errno not in _SHORT:
                raise
            if now_s - self._told_s >= _TOLD_S:
                self._told_s = now_s
                log.error("connections wait, as none can be accepted: %s (limit on files: ulimit -n)", error.strerror)
            self._retry_s = now_s + _RETRY_S
            raise ShortageError(error.errno, error.strerror) from None


@contextmanager
def listening(host: str, *ports: int) -> Iterator[socket.socket]:
    """A socket that listens on the address, which is this machine's, and the first port that is free."""
    try:
        listener = _listener(host, ports)
    except (OSError, UnicodeError, OverflowError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        reason = reason.partition(" (while attempting")[0]  # create_server adds the address
        which = f"port {ports[0]}" if len(ports) == 1 else f"any port from {ports[0]} to {ports[-1]}"
        raise UsageError(
            f"cannot listen on {host}, {which}: {reason}; choose another --host or --port (8000-8019 takes the first that is "
            "free)"
        ) from None
    with listener:
        yield listener


def _listener(host: str, ports: Sequence[int]) -> socket.socket:
    for port in ports:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            listener = ListeningSocket(fileno=socket.create_server(infos[0][4][:2], family=infos[0][0]).detach())
        except OSError as error:
            if error.errno == errno.EADDRINUSE and port != ports[-1]:
                continue
            raise
        # For connections too, which inherit it; asyncio does not set it on those of a socket without a protocol number.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    raise ValueError("no port is given")


def allow_files(wanted: int) -> int:
    """Let this process open as many files as it may; how many, or ``wanted`` where there is no limit."""
    if sys.platform == "win32":
        return wanted
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(soft, wanted) if hard == resource.RLIM_INFINITY else hard  # macOS refuses infinity
    if soft != resource.RLIM_INFINITY and soft < highest:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
            soft = highest
    return wanted if soft == resource.RLIM_INFINITY else soft


def access_of(options: argparse.Namespace) -> Access:
    """The checks that the options ask for."""
    token = None if options.token_file is None else read_token(options.token_file)
    if token is None and (options.proxy or not is_loopback(options.host)):
        where, option = ("the proxy", "--proxy") if options.proxy else (options.host, "--host")
        raise UsageError(
            f"other machines can reach {where}, and no token is set; give --token-file FILE, with a token for speakers, "
            f"or leave {option} out to serve this machine only"
        )
    for name in options.allow_host:
        if not is_host_name(name):
            raise UsageError(
                f"--allow-host is {name!r}; give a name alone, such as captions.example, without https:// or a port"
            )
    for origin in options.allow_origin:
        if not is_origin(origin):
            raise UsageError(f"--allow-origin is {origin!r}; give a scheme and a name, such as https://example.org")
    return Access.of(token, [socket.gethostname(), options.host, *options.allow_host], options.allow_origin)


def read_token(path: Path) -> str:
    """The token in a file: its text without blanks at the ends."""
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(
            f"cannot read the token file {path}: {reason}; write a token into it, such as openssl rand -hex 16 gives"
        ) from None
    if len(token) < _SHORTEST_TOKEN or not (token.isascii() and token.isprintable()) or " " in token:
        raise UsageError(
            f"the token in {path} has {len(token)} characters; it must have at least {_SHORTEST_TOKEN}, all ASCII, without "
            "blanks, in one line, such as openssl rand -hex 16 gives"
        )
    return token


def some_sessions(text: str) -> int | None:
    """Argument type: a number of sessions; None for auto."""
    if text == "auto":
        return None
    try:
        return whole_number(1, MOST_SESSIONS)(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}; or give auto") from None
