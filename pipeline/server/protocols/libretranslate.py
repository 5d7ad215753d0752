"""LibreTranslate's interface for text: ``POST /translate``, ``POST /detect``, and what its programs ask first; they work here.

https://docs.libretranslate.com. The models and glossaries are those of the sessions. The source "auto" stands for the only
one that is translated into the target; of several, the language of the text is detected.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from ...backends import Markup, TextTranslation
from ...core import Decoding, MultiSourceTranslator, SameLanguageText
from ...errors import PipelineError, UsageError, described
from ...languages import AUTO_SOURCE, detected, english_name, nearest, normalized_code, same_language
from ..access import Access, bearer_token
from ..guard import Rate
from ..protocol import ProtocolError, bounded_json
from ..service import Service
from ..uploads import UploadError, body_type, bounded_body, while_connected
from . import DETECTION, PATH

log = logging.getLogger(__name__)

T = TypeVar("T")

MOST_CHARACTERS = 20_000
"""In all texts of one request: about 10 s of work."""
_MOST_TEXTS = 1_000
_BODY_BYTES = 1 << 18
_MOST_FIELDS = 32
# Requests in progress; they take turns of so many seconds.
_MOST_AT_ONCE = 32
_TURN_S = 0.05
# After the last key, before the page asks: LibreTranslate's default.
_TYPING_MS = 500


class _RefusedError(Exception):
    """A request that is refused, with the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def routes(service: Service, access: Access, rate: Rate) -> list[BaseRoute]:
    """All routes but ``/spec``, the server's own description. ``rate`` counts requests until their key is known to be right: captioning programs translate several
    times a second.
    """
    texts = _Texts(service)

    async def languages(request: Request) -> Response:
        return JSONResponse(await texts.languages())

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def settings(request: Request) -> Response:
        return JSONResponse(texts.settings(key_required=access.token is not None))

    async def allowed(request: Request) -> dict[str, Any]:
        """The fields of a request that may be answered."""
        address, limit_s = request.client.host if request.client else "", service.limits.request_s
        if not rate.allows(address):
            raise _RefusedError(429, "too many requests without their body or the right key; wait a minute")
        wrong = _RefusedError(403, "Invalid API key: give the server's token as api_key")
        early = _early_key(request)
        if early is not None and not access.knows_token(early):
            raise wrong
        try:
            async with asyncio.timeout(limit_s):
                fields = await texts.fields(request)
        except TimeoutError:
            raise _RefusedError(408, f"Invalid request: its body took longer than {limit_s:g} s") from None
        key = fields.get("api_key") or early
        if not access.knows_token(key if isinstance(key, str) else None):
            raise wrong
        rate.forget(address)
        return fields

    async def answer(request: Request, work: Callable[[dict[str, Any]], Coroutine[Any, Any, Any]]) -> Response:
        try:
            fields = await allowed(request)
            return JSONResponse(await while_connected(request.receive, work(fields)))
        except (_RefusedError, UploadError) as error:
            headers = {"retry-after": "10"} if error.status in (429, 503) else None
            return JSONResponse({"error": str(error)}, error.status, headers)
        except ClientDisconnect:
            return Response()  # nobody reads it

    async def translate(request: Request) -> Response:
        return await answer(request, texts.translate)

    async def detect(request: Request) -> Response:
        return await answer(request, texts.detect)

    return [
        Route("/languages", languages),
        Route("/health", health),
        Route("/frontend/settings", settings),
        Route(PATH, translate, methods=["POST"]),
        Route(DETECTION, detect, methods=["POST"]),
    ]


def _early_key(request: Request) -> str | None:
    """The key that comes before the body; None: it may be in it."""
    with suppress(ValueError):  # too many fields, which is said when the body has been read
        return bearer_token(request.headers.get("authorization")) or _pairs(request.scope["query_string"]).get(
            "api_key"
        )
    return None


def _parsed(kind: str, body: bytes, query: bytes) -> dict[str, Any]:
    """The fields of a body that is JSON or a form, and of a query."""
    if kind == "application/json":
        fields = bounded_json(body.decode("utf-8-sig"), 2 * (_MOST_TEXTS + _MOST_FIELDS))
        if not isinstance(fields, dict):
            raise ValueError("it is JSON, but no object")
        return fields
    return _pairs(query) | _pairs(body)


def _pairs(text: bytes) -> dict[str, str]:
    return dict(parse_qsl(text.decode(), max_num_fields=_MOST_FIELDS))


class _Texts:
    """Translates texts with the models of a service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._thread = ThreadPoolExecutor(1, "texts")  # no session waits for it
        self._reader = ThreadPoolExecutor(1, "bodies")  # several would each keep the memory of the largest
        self._count = 0
        """Requests in progress."""
        self._began_s: float | None = None  # when the piece of work in progress was begun
        service.places.texts_hung = lambda: self._hung_in_s() <= 0

    async def _run(self, work: Callable[[], T]) -> T:
        """Do a short piece of work on the thread of texts.

        Raises:
            _RefusedError: the thread has answered nothing for as long as a model may take.
        """

        def timed() -> T:
            self._began_s = time.monotonic()
            try:
                return work()
            finally:
                self._began_s = None

        answer = asyncio.get_running_loop().run_in_executor(self._thread, timed)
        try:
            while not answer.done():
                if (left_s := self._hung_in_s()) <= 0:
                    limit_s = self._service.limits.model_s
                    reason = f"the translator has not answered for {limit_s:g} s; the server has to be restarted"
                    log.error("texts: %s", reason)
                    raise _RefusedError(503, reason)
                await asyncio.wait([answer], timeout=left_s)
            return answer.result()
        finally:
            answer.cancel()

    def _hung_in_s(self) -> float:
        """Seconds until the thread of texts counts as hung, if it answers nothing."""
        began_s, now_s = self._began_s, time.monotonic()
        return self._service.limits.model_s - (now_s - began_s if began_s is not None else 0.0)

    async def fields(self, request: Request) -> dict[str, Any]:
        """The fields of the body, JSON or a form, or of the query."""
        counting, kind, query = bounded_body(request, _BODY_BYTES), body_type(request), request.scope["query_string"]
        try:
            if kind == "multipart/form-data":
                form = await counting.form(max_files=0, max_fields=_MOST_FIELDS)
                return {**await self._read("", b"", query), **form}
            return await self._read(kind, await counting.body(), query)
        except (HTTPException, ValueError) as error:
            why = error.detail if isinstance(error, HTTPException) else described(error)
            raise _RefusedError(400, f"Invalid request: the body is neither a JSON object nor a form ({why})") from None

    async def _read(self, kind: str, body: bytes, query: bytes) -> dict[str, Any]:
        return await asyncio.get_running_loop().run_in_executor(self._reader, _parsed, kind, body, query)

    async def languages(self) -> list[dict[str, Any]]:
        """The languages, each with those into which it is translated, or can be."""
        offers, targets_of = self._service.offers, dict[str, dict[str, None]]()
        more = await asyncio.to_thread(offers.pairs) if offers is not None else {}
        for source, target in [
            *self._pairs(),
            *((source, target) for source, targets in more.items() for target in targets),
        ]:
            targets_of.setdefault(source, {source: None})[target] = None
            targets_of.setdefault(target, {target: None})
        return [
            {"code": code, "name": english_name(code), "targets": list(targets)} for code, targets in targets_of.items()
        ]

    def settings(self, *, key_required: bool) -> dict[str, Any]:
        """What LibreTranslate tells its own page. The languages are the first that are translated."""
        first = self._pairs()[0]
        languages = [{"code": code, "name": english_name(code)} for code in first]
        return {
            "apiKeys": key_required,
            "charLimit": MOST_CHARACTERS,
            "filesTranslation": False,
            "frontendTimeout": _TYPING_MS,
            "keyRequired": key_required,
            "language": dict(zip(("source", "target"), languages, strict=True)),
            "suggestions": False,
            "supportedFilesFormat": [],
        }

    def _pairs(self) -> list[tuple[str, str]]:
        """The configured pairs."""
        return [
            pair
            for languages in self._service.languages.configured
            for target in languages.targets
            for pair in languages.pairs(target)
        ]

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Make room for a request for the time of the block."""
        if self._service.places.draining:
            raise _RefusedError(503, "the server is stopping; try again later")
        if self._count >= _MOST_AT_ONCE:
            raise _RefusedError(429, f"Slowdown: {self._count} requests are in progress; try again later")
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1

    async def translate(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request."""
        texts = _checked_texts(fields, "source", "target")
        with self._place():
            source, target, confidence = await self._directed(texts, fields)
            translation = await self._translation(source, target)
            markup: Markup = "html" if fields.get("format") == "html" else "text"
            translated = [await self._translated(text, markup, translation) for text in texts]
        several = isinstance(fields["q"], list)
        answer: dict[str, Any] = {"translatedText": translated if several else translated[0]}
        if fields["source"] == AUTO_SOURCE:
            language = {"confidence": confidence, "language": source}
            answer["detectedLanguage"] = [language] * len(texts) if several else language
        return answer

    async def detect(self, fields: dict[str, Any]) -> list[dict[str, Any]]:
        """The languages in which a text may be written, the likeliest first."""
        texts = _checked_texts(fields)
        try:
            with self._place():
                likely = await self._detected(texts, [language["code"] for language in await self.languages()])
        except ImportError:
            raise _RefusedError(501, "this server detects no languages; its machine has no package eldc") from None
        return [{"confidence": confidence, "language": code} for code, confidence in likely]

    async def _detected(self, texts: list[str], offered: Sequence[str]) -> list[tuple[str, float]]:
        """The languages of the texts together, each with a confidence from 0 to 100."""
        likely = await self._run(partial(detected, "\n".join(texts), offered))
        return [(code, round(100 * confidence, 1)) for code, confidence in likely]

    async def _directed(self, texts: list[str], fields: dict[str, Any]) -> tuple[str, str, float]:
        """The source language, the target, and the confidence in the source: 0 if it was not detected."""
        if (form := fields.get("format") or "text") not in ("text", "html"):
            raise _RefusedError(400, f"{str(form)[:60]} format is not supported; send text or html")
        source, target = fields["source"], _normalized(fields["target"])
        if source != AUTO_SOURCE:
            return _normalized(source), target, 0
        sources = list(
            dict.fromkeys(spoken for spoken, into in self._pairs() if spoken != into and same_language(into, target))
        )
        if len(sources) == 1:
            return sources[0], target, 0
        offered = f"name {' or '.join(sources)}" if sources else self._service.languages.described()
        if sources:
            try:
                source, confidence = (await self._detected(texts, [*sources, target]))[0]
            except ImportError:
                pass
            else:
                if source in (*sources, target):
                    return source, target, confidence
                offered = f"the text is in {source}; {offered}"
        raise _RefusedError(400, f"auto is not supported for the target {target}: {offered}")

    async def _translation(self, source: str, target: str) -> TextTranslation:
        """The translation between two languages, with the glossary and the masked words of their sessions."""
        try:
            if same_language(source, target):
                return TextTranslation(SameLanguageText(target), source, target)
            chain = await self._service.obtained(source, [target])
            if not chain.config.languages.conversation:
                chain = chain.narrowed([target])
            model = chain.models.translations[nearest(target, chain.models.translations)[0]]
            if isinstance(model, MultiSourceTranslator):
                model = await asyncio.to_thread(model.loaded, source)
        except (ProtocolError, PipelineError) as error:
            status = {"busy": 503, "no-space": 500, "failed": 500}.get(getattr(error, "code", ""), 400)
            raise _RefusedError(status, f"{source} to {target} is not supported: {error}") from None
        tag = nearest(target, chain.config.languages.targets)[0]
        return TextTranslation(model, source, tag, glossary=chain.glossary, masking=chain.masking)

    async def _translated(self, text: str, markup: Markup, translation: TextTranslation) -> str:
        """The translation of a text, which stops at its next step if this is cancelled."""
        running: list[Decoding] = []
        cancelled = False

        def started(state: Decoding) -> None:
            running[:] = [state]
            if cancelled:
                state.terminate()

        steps = translation.steps(text, markup, started)

        def turn() -> str | None:
            """Go on for a turn; the translation, once it is complete."""
            until_s = time.monotonic() + _TURN_S
            return next(whole for whole in steps if whole is not None or time.monotonic() > until_s)

        try:
            while (whole := await self._run(turn)) is None:
                pass
            return whole
        except _RefusedError:
            raise
        except Exception as error:
            log.error("a text was not translated: %s", described(error))
            raise _RefusedError(500, "Cannot translate text; the server's log says why") from error
        finally:
            cancelled = True
            for state in running:
                state.terminate()


def _checked_texts(fields: dict[str, Any], *languages: str) -> list[str]:
    """The texts of a request that has these languages, too."""
    for name in ("q", *languages):
        if not fields.get(name):
            raise _RefusedError(400, f"Invalid request: missing {name} parameter")
    texts: list[Any] = fields["q"] if isinstance(fields["q"], list) else [fields["q"]]
    if not all(isinstance(text, str) for text in (*texts, *(fields[name] for name in languages))):
        raise _RefusedError(400, "Invalid request: q must be a text or a list of texts, source and target languages")
    if (length := sum(map(len, texts))) > MOST_CHARACTERS or len(texts) > _MOST_TEXTS:
        given, most = (length, MOST_CHARACTERS) if length > MOST_CHARACTERS else (len(texts), _MOST_TEXTS)
        what = "characters" if length > MOST_CHARACTERS else "texts"
        raise _RefusedError(400, f"Invalid request: {given} {what} exceed the limit of {most}")
    return texts


def _normalized(code: str) -> str:
    try:
        return normalized_code(code)
    except UsageError:
        raise _RefusedError(400, f"{code[:60]} is not supported") from None
