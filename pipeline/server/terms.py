"""``/v1/terms``: terms that are proposed to speakers, from their own documents and from those of ``serve --terms-from``."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..core import Models, VocabularyRecognizer
from ..errors import UsageError
from ..glossary import Candidate, term_candidates, text_of_document
from .access import Access, bearer_token
from .protocol import ProtocolError
from .service import Service
from .uploads import UploadError, as_dict, received, while_connected


def proposed(text: str, language: str, models: Models) -> list[Candidate]:
    """The terms of a text for speech in ``language``. Blocks."""
    recognizer = models.recognizer
    return term_candidates(text, language, recognizer.pieces if isinstance(recognizer, VocabularyRecognizer) else None)


async def _proposed(path: Path, language: str, models: Models) -> list[Candidate]:
    """The terms of a document. If this is cancelled, its reader is ended, and waited for: it has a recording's place so long.

    Raises:
        UploadError: it cannot be read.
    """
    abandoned = threading.Event()
    work = asyncio.ensure_future(
        asyncio.to_thread(lambda: proposed(text_of_document(path, unwanted=abandoned.is_set), language, models))
    )
    try:
        return await asyncio.shield(work)
    except UsageError as error:
        raise UploadError(400, "bad-document", f"the document: {error}") from None
    finally:
        abandoned.set()
        await asyncio.gather(work, return_exceptions=True)


def terms_route(service: Service, access: Access) -> Route:
    """``POST`` proposes the terms of a document (``file``) for speech in ``language``; ``GET`` those of the server's documents."""

    async def posted(request: Request) -> Sequence[Candidate]:
        async with received(request, service) as upload:
            try:
                chain = service.chosen(upload.field("language") or None, ())
            except ProtocolError:  # a language that no configuration has
                chain = service.chosen(None, ())
            work = _proposed(upload.path, chain.config.languages.spoken[0], chain.models)
            return await while_connected(request.receive, work)

    async def answer(request: Request) -> Response:
        try:
            if not access.knows_token(bearer_token(request.headers.get("authorization"))):
                raise UploadError(401, "wrong-token", "the token is missing or wrong; send it as Authorization: Bearer")
            candidates = await posted(request) if request.method == "POST" else service.proposals
        except UploadError as error:
            return JSONResponse(as_dict(error), error.status)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        return JSONResponse({"terms": [{"term": candidate.term, "count": candidate.count} for candidate in candidates]})

    return Route("/v1/terms", answer, methods=["GET", "POST"])
