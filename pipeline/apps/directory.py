"""``serve --directory``: one of several servers that share out rooms."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ..console import some_secret
from ..errors import UsageError
from ..server import is_origin

if TYPE_CHECKING:
    from ..server import Service


def add_directory_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("several servers")
    group.add_argument(
        "--directory",
        type=some_nats,
        metavar="nats://HOST:4222",
        help="share out rooms with the other servers that use this NATS server: a new one goes to the least loaded; @FILE: the "
        "address is in a file",
    )
    group.add_argument(
        "--reached-at",
        type=some_origin,
        metavar="ORIGIN",
        help="where clients reach this server, such as https://one.example.org (default: its own address)",
    )


def some_nats(text: str) -> str:
    """Argument type: the address of a NATS server, or @FILE. The message does not have it, since a password may be in it."""
    if not (url := some_secret(text)).startswith(("nats://", "tls://")):
        raise argparse.ArgumentTypeError("expected the address of a NATS server, such as nats://127.0.0.1:4222")
    return url


def some_origin(text: str) -> str:
    """Argument type: a scheme and a host, in small letters, as browsers write it."""
    if not (is_origin(text) and text.startswith(("http://", "https://"))):
        raise argparse.ArgumentTypeError(f"{text!r} is no scheme and host, such as https://one.example.org")
    return text.lower()


@asynccontextmanager
async def in_directory(options: argparse.Namespace, service: Service, address: str) -> AsyncIterator[None]:
    """Take part in the directory that the options name, if they do. ``address``: the server's address."""
    if options.reached_at and not options.directory:
        raise UsageError("--reached-at is for --directory; name one, or leave it out")
    async with contextlib.AsyncExitStack() as stack:
        if options.directory is not None:
            from ..server import Directory  # an extra

            service.directory = Directory(service, (options.reached_at or address).rstrip("/"))
            await stack.enter_async_context(service.directory.joined(options.directory))
        yield
