"""Routes whose module is imported at the first request for one of them: a server is asked for few of all that it has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence

from starlette.routing import BaseRoute, Route, Router, WebSocketRoute
from starlette.types import Receive, Scope, Send

Paths = Mapping[str, Collection[str]]
"""Path → its methods; none: it is a WebSocket's."""


def deferred(paths: Paths, load: Callable[[], Sequence[BaseRoute]]) -> list[BaseRoute]:
    """Routes that stand for those that ``load`` gives, which have these paths and methods. It is called off the loop, once."""
    app = _Deferred(load)
    return [
        Route(path, app, methods=methods) if methods else WebSocketRoute(path, app) for path, methods in paths.items()
    ]


class _Deferred:
    """The ASGI application of these routes."""

    def __init__(self, load: Callable[[], Sequence[BaseRoute]]) -> None:
        self._load = load
        self._loading = asyncio.Lock()
        self._router: Router | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._router is None:
            async with self._loading:
                if self._router is None:
                    self._router = Router(await asyncio.to_thread(self._load), redirect_slashes=False)
        await self._router(scope, receive, send)
