"""Routes whose module is imported when one of them is asked for."""

import asyncio
import threading

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from pipeline.server.access import Access
from pipeline.server.deferred import deferred
from pipeline.server.guard import Rate
from pipeline.server.protocols import PATHS, PROTOCOLS


async def asked(app: Starlette, path: str, method: str = "GET") -> int:
    """The status of the answer."""
    statuses = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b""}

    async def send(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": []}
    await app(scope, receive, send)
    (status,) = statuses
    return status


async def test_the_first_requests_load_the_routes_once_and_not_on_the_loop():
    loaded = []

    def load() -> list[Route]:
        loaded.append(threading.current_thread())

        async def answer(request: Request) -> PlainTextResponse:
            return PlainTextResponse(request.path_params["name"])

        return [Route("/texts/{name}", answer, methods=["GET"])]

    app = Starlette(routes=deferred({"/texts/{name}": ("GET",)}, load))
    assert await asked(app, "/other") == 404
    assert await asked(app, "/texts/a", "POST") == 405
    assert loaded == []
    assert await asyncio.gather(*(asked(app, f"/texts/{name}") for name in "abc")) == [200] * 3
    assert len(loaded) == 1
    assert loaded[0] is not threading.current_thread()


@pytest.mark.parametrize("name", PATHS)
def test_a_protocol_has_the_routes_that_stand_for_it(name, new_service):
    routes = PROTOCOLS.make(name, new_service(), Access(), Rate(1))
    stand_ins = deferred(PATHS[name], list)
    assert [(type(one), one.path, getattr(one, "methods", None)) for one in routes] == [
        (type(one), one.path, getattr(one, "methods", None)) for one in stand_ins
    ]
