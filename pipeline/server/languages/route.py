"""``/v1/languages``: the languages that a server offers, and their preparation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ..access import Access, bearer_token
from ..protocol import ProtocolError
from ..service import Service
from ..uploads import UploadError, as_dict
from .offers import Preparation


def languages_route(service: Service, access: Access) -> Route:
    """``GET /v1/languages`` lists pairs. ``POST`` prepares one, and answers with a line of JSON for each step and the end."""

    async def listed(request: Request) -> Response:
        configured = [{"source": pair.source, "targets": list(pair.targets)} for pair in service.languages.configured]
        offers, more = service.offers, list[dict[str, object]]()
        if offers is not None:
            here = request.query_params.get("here", "") not in ("", "0")
            pairs = await asyncio.to_thread(partial(offers.pairs, fetch=not here))
            more = [{"source": source, "targets": targets} for source, targets in pairs.items()]
        downloads = offers is not None and offers.downloads
        return JSONResponse({"configured": configured, "offered": more, "downloads": downloads})

    async def prepare(request: Request) -> Response:
        asked = request.query_params
        try:
            if not access.knows_token(bearer_token(request.headers.get("authorization"))):
                raise UploadError(401, "wrong-token", "the token is missing or wrong; send it as Authorization: Bearer")
            try:
                preparation = service.prepare(asked.get("source"), asked.getlist("target"))
            except ProtocolError as error:
                raise _as_answer(error) from None
        except UploadError as error:
            return JSONResponse(as_dict(error), error.status)
        return StreamingResponse(_steps(preparation), media_type="application/x-ndjson")

    async def answer(request: Request) -> Response:
        return await (prepare if request.method == "POST" else listed)(request)

    return Route("/v1/languages", answer, methods=["GET", "POST"])


async def _steps(preparation: Preparation | None) -> AsyncIterator[str]:
    if preparation is not None:
        async for doing, part in preparation.steps():
            yield _line({"doing": doing, "part": round(part, 3)})
        try:
            await preparation.chain()
        except ProtocolError as error:
            yield _line(as_dict(_as_answer(error)))
            return
    yield _line({"ready": True})


def _as_answer(error: ProtocolError) -> UploadError:
    return UploadError(503 if error.code == "busy" else 400, error.code, str(error))


def _line(record: dict[str, object]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"
