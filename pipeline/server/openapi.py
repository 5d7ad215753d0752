"""The description of the server's HTTP interface, ``/openapi.json`` (OpenAPI 3.1). Pages and WebSockets are not in it.

The kind of a value is written as a Python type, ``("a", "b")`` for one of these texts, ``(kind, other)`` for one of these kinds,
``[kind]`` for a list, and ``{"field": kind}`` for an object; a field with a question mark may be missing.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from types import NoneType
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .access import Access
from .languages.served import ServedLanguages
from .protocols import DETECTION, PATH
from .protocols.openai import FORMATS, GRANULARITIES
from .protocols.whisper_asr import FILE, OUTPUTS, TASKS

Json = dict[str, Any]

_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
_TYPES: dict[type, Json] = {kind: {"type": name} for kind, name in (_NAMES | {NoneType: "null"}).items()}
_TYPES[bytes] = {"contentMediaType": "application/octet-stream"}
_PAIR = {"source": str, "targets": [str]}
_PAIRS = {"configured": [_PAIR], "offered": [_PAIR], "downloads": bool}
_INFO: Json = {**_PAIR, "languages": [_PAIR], "subtitles": dict, "address": (str, NoneType)}
_INFO |= dict.fromkeys(("more", "token", "ready", "recorded", "speakers"), bool)
_MODEL = {"id": str, "object": ("model",), "created": int, "owned_by": str}
_ERROR = {"error": {"message": str, "type": ("invalid_request_error", "server_error"), "param": NoneType, "code": str}}
_SEGMENT = {"id": int, "start": float, "end": float, "text": str, "seek": int, "tokens": [int]}
_SEGMENT |= {"avg_logprob": float, "compression_ratio": float, "no_speech_prob": float, "temperature": float}
_DETAILED: Json = {"task": ("transcribe", "translate"), "language": str, "duration": float, "text": str}
_DETAILED |= {"segments": [_SEGMENT], "words?": [{"word": str, "start": float, "end": float}]}
_TURN: Json = {"type": ("transcript.text.segment",), "start": float, "end": float}
_TURN |= dict.fromkeys(("id", "speaker", "text"), str)
_DIARIZED: Json = {"task": ("transcribe", "translate"), "duration": float, "text": str, "segments": [_TURN]}
_UNDESCRIBED = ("text/plain", "text/vtt", "text/event-stream")
"""The other content types of a recording's text."""

_TERM, _DOCUMENT = {"term": str, "count": int}, {"file": bytes, "language?": str}
_DESCRIPTIONS = {"/openapi.json": "describe", "/spec": "describeAlike"}
"""Path → the name of the operation. The second is where LibreTranslate has its own."""
_ROOM: Json = {"session": (str, NoneType), "server?": (str, NoneType), "ended?": bool}


def _paths(languages: ServedLanguages, more: bool) -> Json:
    models = {"object": ("list",), "data": [_MODEL]}
    targets = tuple(dict.fromkeys((*languages.targets, *languages.spoken)))
    form: Json = {
        "file": bytes,
        "model?": str,
        "language?": str,
        "target?": str if more else targets,
        "response_format?": FORMATS,
    }
    form |= {"stream?": bool, "timestamp_granularities[]?": [GRANULARITIES]}
    errors = dict.fromkeys((400, 401, 408, 413, 500, 503, 507), _ERROR)
    uploaded: Json = {
        "result": ({"text": str}, _DETAILED, _DIARIZED),
        "errors": errors,
        "body": {"multipart/form-data": form},
    }
    sent: Json = {"errors": errors, "body": {"multipart/form-data": {FILE: bytes}}}
    spoken = {"detected_language": str, "language_code": str, "confidence": float}
    asr = {"task": TASKS, "language": str, "output": tuple(OUTPUTS), "encode": bool}
    asked = {"q": (str, list), "source": str, "target": str, "format?": ("text",), "api_key?": str}
    bodies = {"application/json": asked, "application/x-www-form-urlencoded": {**asked, "q": str}}
    answer = {"translatedText": (str, list), "detectedLanguage?": (dict, list)}
    texts = {kind: {name: body[name] for name in ("q", "api_key?")} for kind, body in bodies.items()}
    refusals: Json = {"errors": {status: {"error": str} for status in (400, 413, 429, 500, 503)}}
    undetected: Json = {"errors": refusals["errors"] | {501: {"error": str}}}
    wanted = {"source": str, "target": [str]}
    paths: Json = {
        "/v1/models": {"get": _operation("listModels", models, {401: _ERROR})},
        "/v1/models/{model}": {"get": _operation("getModel", _MODEL, {401: _ERROR, 404: _ERROR}, path={"model": str})},
        "/v1/info": {"get": _operation("getInfo", _INFO)},
        "/v1/languages": {
            "get": _operation("listPairs", _PAIRS, query={"here": str}),
            "post": _operation("prepareLanguages", str, dict.fromkeys((400, 401, 503), _ERROR), query=wanted),
        },
        "/v1/terms": {
            "get": _operation("listTerms", {"terms": [_TERM]}, {401: _ERROR}),
            "post": _operation("proposeTerms", {"terms": [_TERM]}, errors, {"multipart/form-data": _DOCUMENT}),
        },
        "/v1/room": {"get": _operation("getRoom", _ROOM, query={"name": str})},
        "/v1/audio/transcriptions": {"post": _operation("transcribe", **uploaded)},
        "/v1/audio/translations": {"post": _operation("translate", **uploaded)},
        "/asr": {"post": _operation("recognise", _DETAILED, **sent, query=asr)},
        "/detect-language": {"post": _operation("detectSpoken", spoken, **sent, query={"encode": bool})},
        "/languages": {"get": _operation("listLanguages", [{"code": str, "name": str, "targets": [str]}])},
        PATH: {"post": _operation("translateText", answer, body=bodies, **refusals)},
        DETECTION: {
            "post": _operation("detectLanguage", [{"confidence": float, "language": str}], body=texts, **undetected)
        },
        "/health": {"get": _operation("isAlive", {"status": ("ok",)})},
        "/frontend/settings": {"get": _operation("getSettings", dict)},
        "/healthz": {"get": _operation("isHealthy", str)},
        "/readyz": {"get": _operation("isReady", ("ready\n", "full\n"), {503: ("stopping\n",)})},
        "/metrics": {"get": _operation("getMetrics", str, {401: str})},
        **{path: {"get": _operation(name, dict)} for path, name in _DESCRIPTIONS.items()},
    }
    for operation in (methods["post"]["responses"] for methods in paths.values() if "post" in methods):
        operation["403"] = {"description": "The page that asks may not", "content": _content(str)}
    for path in (PATH, DETECTION):
        paths[path]["post"]["responses"]["403"]["content"] |= _content({"error": str})
    paths["/v1/languages"]["post"]["responses"]["200"]["content"] = {"application/x-ndjson": {}}
    for path in ("/v1/audio/transcriptions", "/v1/audio/translations", "/asr"):
        content = paths[path]["post"]["responses"]["200"]["content"]
        content |= {kind: {} for kind in _UNDESCRIBED}
    return paths


def description(languages: ServedLanguages, access: Access, *, more: bool = False) -> Json:
    """The description for a server's languages. With a token, the operations that need it say so."""
    try:
        release = version("streaming-speech-translation")
    except PackageNotFoundError:
        release = "0"
    document: Json = {"openapi": "3.1.0", "info": {"title": "Streaming speech translation", "version": release}}
    document["paths"] = paths = _paths(languages, more)
    if access.token is not None:
        document["components"] = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
        for operation in (operation for methods in paths.values() for operation in methods.values()):
            operation["security"] = [{"token": []}] if "401" in operation["responses"] else []
    return document


def _operation(
    name: str, result: Any, errors: dict[int, Any] | None = None, body: Json | None = None, **parameters: Json
) -> Json:
    """An operation. ``errors``: status → the answer; ``body``: content type → its fields; ``parameters``: by their place."""
    answers = {200: result, 421: str, 429: str, **(errors or {})}
    operation: Json = {"operationId": name}
    operation["responses"] = {
        str(status): {"description": "The answer" if status == 200 else "Refused", "content": _content(kind)}
        for status, kind in answers.items()
    }
    operation["parameters"] = [
        {"name": name, "in": place, "required": place == "path", "schema": _schema(kind)}
        for place, kinds in parameters.items()
        for name, kind in kinds.items()
    ]
    if body is not None:
        content = {kind: {"schema": _schema(fields, closed=False)} for kind, fields in body.items()}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _content(kind: Any) -> Json:
    """Texts are plain, all others JSON."""
    is_text = kind is str or (isinstance(kind, tuple) and isinstance(kind[0], str))
    return {"text/plain" if is_text else "application/json": {"schema": _schema(kind)}}


def _schema(kind: Any, *, closed: bool = True) -> Json:
    """The JSON Schema of a kind. ``closed``: an object has no other fields."""
    match kind:
        case type():
            return _TYPES[kind]
        case [item] if isinstance(kind, list):
            return {"type": "array", "items": _schema(item)}
        case [str(), *_]:
            return {"enum": list(kind)}
        case [*_]:
            return {"anyOf": [_schema(part) for part in kind]}
    fields = {name.rstrip("?"): _schema(part) for name, part in kind.items()}
    required = [name for name in kind if not name.endswith("?")]
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": not closed}


def openapi_routes(languages: ServedLanguages, access: Access, *, more: bool) -> list[Route]:
    """``/openapi.json``, and ``/spec``, where LibreTranslate has it."""
    content = description(languages, access, more=more)

    async def describe(request: Request) -> Response:
        # The paths are below that of an application into which the server is mounted.
        return JSONResponse({**content, "servers": [{"url": request.scope.get("root_path") or "/"}]})

    return [Route(path, describe) for path in _DESCRIPTIONS]
