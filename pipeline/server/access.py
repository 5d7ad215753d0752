"""Who may use the server: the token, and the names of the hosts and pages that requests may come from. Pure."""

from __future__ import annotations

import base64
import hmac
import ipaddress
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

# A name, or an address of IPv6 in brackets; a port.
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|[^\s\[\]@/?#:\\]+)(?::[0-9]{0,5})?")
_LONGEST_HOST = 300
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_unspecified(host: str) -> bool:
    """Whether the address stands for all addresses of this machine, as 0.0.0.0 does."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


@dataclass(frozen=True)
class Access:
    """What a request must show.

    A page of another site can make a browser send requests here: WebSockets are not covered by CORS, and a name of that site
    may be made to resolve to this machine. So ``Host`` must be an address or a known name, and ``Origin``, which browsers
    send with WebSockets, must be this server's own.
    """

    token: str | None = field(default=None, repr=False)
    """What speakers must know; None: nothing."""
    names: frozenset[str] = _LOOPBACK_NAMES
    """Names of this server, in lower case. Addresses are always accepted, as no other site can have them as its name."""
    origins: frozenset[str] = frozenset()
    """Further pages that may connect, such as "https://example.org"."""

    @classmethod
    def of(cls, token: str | None = None, names: Iterable[str] = (), origins: Iterable[str] = ()) -> Access:
        """``names`` and ``origins`` are added to the server's own."""
        all_names = _LOOPBACK_NAMES | {name.lower() for name in names}
        return cls(token, all_names, frozenset(origin.rstrip("/").lower() for origin in origins))

    def knows_host(self, host: str | None) -> bool:
        """Whether the ``Host`` header names this server."""
        name = _host_name(host)
        if name is None:
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self.names
        return True

    def knows_origin(self, origin: str | None, host: str | None) -> bool:
        """Whether the page that sent the request may: this server's own, or one of ``origins``.

        Programs send no ``Origin``; browsers always do.
        """
        if origin is None:
            return True
        if len(origin) > _LONGEST_HOST:
            return False
        if origin.lower() in self.origins:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and host is not None and parts.netloc.lower() == host.lower()

    def knows_token(self, given: str | None) -> bool:
        """Whether the token is right, or none is needed. Takes the same time for any wrong token of its length."""
        return self.token is None or (given is not None and same_secret(self.token, given))


def is_host_name(name: str) -> bool:
    """Whether a ``Host`` header may have this name: ASCII, without a scheme, port or path."""
    return name.isascii() and _host_name(name) == name.lower()


def is_origin(origin: str) -> bool:
    """Whether an ``Origin`` header may have this value: a scheme and a host, such as https://example.org."""
    try:
        parts = urlsplit(origin.rstrip("/"))
    except ValueError:
        return False
    return bool(parts.scheme and parts.hostname) and origin.rstrip("/") == f"{parts.scheme}://{parts.netloc}"


def same_secret(secret: str, given: str) -> bool:
    """Whether the texts are equal, in a time that does not depend on where they differ. ``given`` may be any text."""
    return hmac.compare_digest(secret.encode(), given.encode("utf-8", "surrogatepass"))


def bearer_token(authorization: str | None) -> str | None:
    """The token in an ``Authorization`` header (RFC 6750); None without one."""
    scheme, _, token = (authorization or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def password(authorization: str | None) -> str | None:
    """The password in an ``Authorization`` header (RFC 7617), which programs send that take an address only, http://:TOKEN@host."""
    scheme, _, given = (authorization or "").partition(" ")
    with suppress(ValueError):  # no base64, or no UTF-8
        return base64.b64decode(given).decode().partition(":")[2] if scheme.lower() == "basic" else None
    return None


def _host_name(host: str | None) -> str | None:
    """The name or address in a ``Host`` header, without the port; None if it is malformed."""
    match = _HOST.fullmatch(host) if host is not None and len(host) <= _LONGEST_HOST else None
    return match[1].strip("[]").lower() if match is not None else None
