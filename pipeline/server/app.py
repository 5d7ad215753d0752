"""The ASGI application. It does not depend on uvicorn and can be mounted into another application."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import segno
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from .access import Access, bearer_token, is_loopback, is_unspecified
from .deferred import Paths, deferred
from .guard import BodyDrain, Guard, Rate
from .metrics import Metrics
from .protocol import is_room_name
from .protocols import DETECTION, PATH, PATHS, PROTOCOLS
from .service import Service
from .websocket import Connection

STATIC = Path(__file__).parent / "static"
_GET_POST = ("GET", "POST")
_LANGUAGES: Paths = {"/v1/languages": _GET_POST}
_TERMS: Paths = {"/v1/terms": _GET_POST}
_DESCRIPTIONS: Paths = {"/openapi.json": ("GET",), "/spec": ("GET",)}


def create_app(
    service: Service,
    access: Access | None = None,
    routes: Sequence[BaseRoute] = (),
    shared_at: Callable[[], str | None] = lambda: None,
    protocols: Sequence[str] = (),
) -> Starlette:
    """The pages, the WebSocket, and what operators ask.

    Args:
        access: who may use it; by default everybody who reaches it under a name of this machine's loopback.
        routes: more routes behind the same checks.
        shared_at: the address of the first page for other machines, such as "http://192.168.1.5:8000/"; None if none is known.
        protocols: those of installed packages that are served, too.
    """
    access = access or Access()
    refused: Counter[str] = Counter()
    answers = _Answers(service, access, Metrics(service, refused), shared_at)
    rate = Rate(service.limits.connections_a_minute)
    middleware = [
        Middleware(BodyDrain, limits=service.limits),
        Middleware(
            Guard,
            access=access,
            rate=rate,
            refused=refused,
            uncounted=(PATH, DETECTION),
            peers=lambda: service.directory.origins if service.directory is not None else [],
        ),
    ]
    if access.origins:  # those that the guard lets in
        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=sorted(access.origins),
                allow_methods=["GET", "POST"],
                allow_headers=["*"],
                expose_headers=["retry-after"],
            )
        )
    return Starlette(
        routes=[
            Route("/", _page("index.html")),
            Route("/view/{session}", _page("view.html")),
            Route("/view/{session}/qr.svg", answers.code),
            Route("/overlay/{session}", _page("overlay.html")),
            Route("/v1/info", answers.info),
            Route("/v1/room", answers.room),
            WebSocketRoute("/v1/session", Connection.endpoint(service, access)),
            Route("/healthz", answers.healthy),
            Route("/readyz", answers.ready),
            Route("/metrics", answers.metrics),
            *deferred(_LANGUAGES, partial(_languages, service, access)),
            *deferred(_TERMS, partial(_terms, service, access)),
            *(
                route
                for name, paths in PATHS.items()
                for route in deferred(paths, partial(PROTOCOLS.make, name, service, access, rate))
            ),
            *(route for name in protocols for route in PROTOCOLS.make(name, service, access, rate)),
            *deferred(_DESCRIPTIONS, partial(_descriptions, service, access)),
            *routes,
            Mount("/static", _Static(directory=STATIC)),
        ],
        middleware=middleware,
    )


def _languages(service: Service, access: Access) -> list[BaseRoute]:
    from .languages.route import languages_route

    return [languages_route(service, access)]


def _terms(service: Service, access: Access) -> list[BaseRoute]:
    from .terms import terms_route

    return [terms_route(service, access)]


def _descriptions(service: Service, access: Access) -> list[BaseRoute]:
    from .openapi import openapi_routes

    return [*openapi_routes(service.languages, access, more=service.offers is not None)]


class _Answers:
    """The server's own short answers."""

    def __init__(self, service: Service, access: Access, metrics: Metrics, shared_at: Callable[[], str | None]) -> None:
        self._service, self._access, self._metrics, self._shared_at = service, access, metrics, shared_at

    async def info(self, request: Request) -> Response:
        service, languages = self._service, self._service.languages.configured
        return JSONResponse(
            {
                "source": languages[0].source,
                "targets": list(languages[0].targets),
                "languages": [{"source": pair.source, "targets": list(pair.targets)} for pair in languages],
                "more": service.offers is not None,
                "token": self._access.token is not None,
                "ready": service.places.ready,
                "address": self._address(request),
                "recorded": service.record is not None,
                "speakers": service.speakers is not None,
                "subtitles": asdict(service.subtitles),
            }
        )

    async def room(self, request: Request) -> Response:
        """Readers ask this again and again until a session begins."""
        name = request.query_params.get("name", "")
        if self._service.directory is not None:
            return JSONResponse(self._service.directory.found(name))
        session = self._service.rooms.get(name)
        return JSONResponse({"session": session.id if session is not None else None})

    async def ready(self, request: Request) -> Response:
        if self._service.places.draining:
            return PlainTextResponse("stopping\n", 503)
        if self._service.places.hung:
            return PlainTextResponse("a model does not answer\n", 503)
        return PlainTextResponse("ready\n" if self._service.places.ready else "full\n")

    async def healthy(self, request: Request) -> Response:
        return PlainTextResponse("ok\n")

    def _address(self, request: Request) -> str | None:
        """Where other machines find the first page, if the name in this request is for this machine alone."""
        host = request.url.hostname or ""
        return self._shared_at() if is_loopback(host) or is_unspecified(host) else None

    async def code(self, request: Request) -> Response:
        """A QR code of the page for readers, at the address by which this request came, or one that others reach."""
        session = request.path_params["session"]
        if session not in self._service.sessions and not is_room_name(session):  # a long text takes long to draw
            return PlainTextResponse("there is no such session\n", 404)
        page: object = request.url.replace(path=request.url.path.removesuffix("/qr.svg"), query="")
        if (address := self._address(request)) is not None:
            page = f"{address}view/{session}"
        image = io.BytesIO()
        segno.make(str(page), error="m").save(image, kind="svg", scale=4, border=4)
        return Response(image.getvalue(), media_type="image/svg+xml")

    async def metrics(self, request: Request) -> Response:
        if not self._access.knows_token(bearer_token(request.headers.get("authorization"))):
            return PlainTextResponse(
                "give the token: Authorization: Bearer TOKEN\n", 401, {"www-authenticate": "Bearer"}
            )
        return Response(self._metrics.text(), media_type=self._metrics.content_type)


class _Static(StaticFiles):
    """Files that the browser may keep, and asks for again."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        response = super().file_response(*arguments, **options)
        response.headers["cache-control"] = "no-cache"
        return response


def _page(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:
        return FileResponse(STATIC / name, headers={"cache-control": "no-cache"})

    return page
