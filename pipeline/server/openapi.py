"""The description of the server's HTTP interface, ``/openapi.json`` (OpenAPI 3.1). Pages and WebSockets are not in it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .access import Access
from .libretranslate import MOST_CHARACTERS, PATH
from .openai import FORMATS, GRANULARITIES
from .served_languages import ServedLanguages

Json = dict[str, Any]

_STRING: Json = {"type": "string"}
_NUMBER: Json = {"type": "number"}
_SECONDS: Json = {"type": "number", "minimum": 0}
_BOOLEAN: Json = {"type": "boolean"}

# Answers that are no result: status → what it means.
_ERRORS = {
    400: "The form, its file, or a field cannot be used",
    401: "The token is missing or wrong",
    404: "There is no such model",
    408: "The upload took too long",
    413: "The file is too large, or its audio too long",
    500: "The recording failed",
    503: "The server is translating as many recordings as it may, or it is stopping",
    507: "The server cannot keep the file",
}
# Those of the checks that come before any other, as plain text.
_GUARD_ERRORS = {
    403: "The page that sent the request may not",
    421: "The Host header names another server",
    429: "Too many connections of one address",
}


def description(languages: ServedLanguages, access: Access) -> Json:
    """The description for a server's languages. With a token, the operations that need it say so."""
    try:
        release = version("streaming-speech-translation")
    except PackageNotFoundError:
        release = "0"
    models = list(languages.models)
    found: Json = {
        "openapi": "3.1.0",
        "info": {"title": "Streaming speech translation", "version": release},
        "paths": {
            "/v1/audio/transcriptions": {"post": _upload("transcribe", "Recognise a recording", languages, access)},
            "/v1/audio/translations": {"post": _upload("translate", "Translate a recording", languages, access)},
            "/v1/models": {"get": _get("listModels", "The models", _json("Models"), access, 401)},
            "/v1/models/{model}": {
                "get": _get("getModel", "A model", _json("Model"), access, 401, 404),
                "parameters": [
                    {"name": "model", "in": "path", "required": True, "schema": {**_STRING, "examples": models}}
                ],
            },
            "/languages": {
                "get": _get("listLanguages", "The languages of texts, as of LibreTranslate", _json("Languages"))
            },
            PATH: {"post": _translate()},
            "/v1/info": {"get": _get("getInfo", "What the server does", _json("Info"))},
            "/v1/languages": {
                "get": _get("listPairs", "The languages that it offers", _json("Pairs")),
                "post": _prepare(access),
            },
            "/v1/room": {
                "get": _get("getRoom", "The newest session in a room", _json("Room")),
                "parameters": [{"name": "name", "in": "query", "schema": _STRING}],
            },
            "/healthz": {"get": _get("isHealthy", "Whether the process works", _text("It does"))},
            "/readyz": {
                "get": _get("isReady", "Whether the server takes work", _text("It does", ["ready\n", "full\n"]))
            },
            "/metrics": {"get": _get("getMetrics", "Figures for Prometheus", _text("Figures"), access)},
            "/openapi.json": {"get": _get("describe", "This description", _json("Description"))},
        },
        "components": {"schemas": _schemas(models)},
    }
    found["paths"]["/readyz"]["get"]["responses"]["503"] = _text("The server is stopping", ["stopping\n"])
    if access.token is not None:
        found["paths"]["/metrics"]["get"]["responses"]["401"] = _text(_ERRORS[401])
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return found


def _get(name: str, summary: str, result: Json, access: Access | None = None, *errors: int) -> Json:
    return _operation(name, summary, {"200": result}, access, errors, (421, 429))


def _operation(
    name: str, summary: str, results: Json, access: Access | None, errors: tuple[int, ...], guard: tuple[int, ...]
) -> Json:
    """An operation; ``access`` is given if it needs the token."""
    responses = results | {str(status): _json("Error", _ERRORS[status]) for status in errors}
    responses |= {str(status): _text(_GUARD_ERRORS[status]) for status in guard}
    security: Json = {"security": [{"token": []}]} if access is not None and access.token is not None else {}
    return {"operationId": name, "summary": summary, "responses": responses, **security}


def _prepare(access: Access) -> Json:
    source: Json = {"name": "source", "in": "query", "schema": _STRING}
    target: Json = {"name": "target", "in": "query", "schema": _list(_STRING)}
    steps: Json = {"description": "A line of JSON for each step and the end", "content": {"application/x-ndjson": {}}}
    summary = "Fetch and load the models of languages"
    operation = _operation("prepareLanguages", summary, {"200": steps}, access, (400, 401, 503), (403, 421, 429))
    return {**operation, "parameters": [source, target]}


def _upload(task: str, summary: str, languages: ServedLanguages, access: Access) -> Json:
    fields: Json = {
        "file": {"contentMediaType": "application/octet-stream", "description": "Any container that FFmpeg reads"},
        "model": {**_STRING, "description": f"One of {', '.join(languages.models)}; any other is the first"},
        "language": {**_STRING, "description": f"The spoken language, one of {', '.join(languages.spoken)}"},
        "target": {
            "enum": list(dict.fromkeys((*languages.targets, *languages.spoken))),
            "description": "The language that is translated into; the spoken one for what was said",
        },
        "response_format": {"enum": list(FORMATS), "default": "json"},
        "stream": {**_BOOLEAN, "default": False, "description": "Server-sent events; for json and text"},
        "timestamp_granularities[]": {"type": "array", "items": {"enum": list(GRANULARITIES)}},
    }
    form: Json = {"type": "object", "properties": fields, "required": ["file"]}
    subtitles: Json = {"schema": _STRING}
    result: Json = {
        "description": "The text, in the format that was asked for",
        "content": {
            "application/json": {"schema": {"anyOf": [_reference("Text"), _reference("Detailed")]}},
            "text/plain": subtitles,
            "application/x-subrip": subtitles,
            "text/vtt": subtitles,
            "text/event-stream": {},
        },
    }
    errors = (400, 401, 408, 413, 500, 503, 507)
    operation = _operation(task, summary, {"200": result}, access, errors, (403, 421, 429))
    operation["responses"]["503"]["headers"] = {"Retry-After": {"schema": {"type": "string", "pattern": "^[0-9]+$"}}}
    operation["requestBody"] = {"required": True, "content": {"multipart/form-data": {"schema": form}}}
    return operation


def _translate() -> Json:
    text: Json = {**_STRING, "minLength": 1, "maxLength": MOST_CHARACTERS}
    fields: Json = {"source": _STRING, "target": _STRING, "format": {"enum": ["text"]}, "api_key": _STRING}
    many: Json = {"anyOf": [text, _list(text)]}
    body: Json = {
        kind: {"schema": {"type": "object", "properties": {"q": q, **fields}, "required": ["q", "source", "target"]}}
        for kind, q in (("application/json", many), ("application/x-www-form-urlencoded", text))
    }
    operation = _operation("translateText", "Translate text, as LibreTranslate does", {}, None, (), (403, 421))
    refused = {status: _json("Refusal", "The text is not translated") for status in ("400", "413", "429", "500", "503")}
    operation["responses"] |= {"200": _json("Translated"), **refused}
    operation["responses"]["403"]["content"] |= refused["400"]["content"]
    return {**operation, "requestBody": {"required": True, "content": body}}


def _reference(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(name: str, meaning: str = "The answer") -> Json:
    return {"description": meaning, "content": {"application/json": {"schema": _reference(name)}}}


def _text(meaning: str, values: list[str] | None = None) -> Json:
    return {"description": meaning, "content": {"text/plain": {"schema": {"enum": values} if values else _STRING}}}


def _object(**properties: Json) -> Json:
    """An object that has all of these fields and no others."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list(item: Json) -> Json:
    return {"type": "array", "items": item}


def _schemas(models: list[str]) -> Json:
    segment = _object(
        id={"type": "integer", "minimum": 0},
        start=_SECONDS,
        end=_SECONDS,
        text=_STRING,
        avg_logprob={"type": "number", "maximum": 0},
        compression_ratio=_NUMBER,
        no_speech_prob={"type": "number", "minimum": 0, "maximum": 1},
        seek={"const": 0},
        temperature={"const": 0},
        tokens={"type": "array", "maxItems": 0},
    )
    detailed = _object(
        task={"enum": ["transcribe", "translate"]},
        language=_STRING,
        duration=_SECONDS,
        text=_STRING,
        segments=_list(segment),
    )
    detailed["properties"]["words"] = _list(_object(word=_STRING, start=_SECONDS, end=_SECONDS))
    model = _object(id={"enum": models}, object={"const": "model"}, created={"const": 0}, owned_by=_STRING)
    error = _object(
        message=_STRING, type={"enum": ["invalid_request_error", "server_error"]}, param={"type": "null"}, code=_STRING
    )
    languages: Json = {"source": _STRING, "targets": _list(_STRING)}
    return {
        "Text": _object(text=_STRING),
        "Detailed": detailed,
        "Model": model,
        "Models": _object(object={"const": "list"}, data=_list(_reference("Model"))),
        "Info": _object(
            **languages,
            languages=_list(_object(**languages)),
            more=_BOOLEAN,
            token=_BOOLEAN,
            ready=_BOOLEAN,
            recorded=_BOOLEAN,
            address={"type": ["string", "null"]},
        ),
        "Pairs": _object(
            configured=_list(_object(**languages)), offered=_list(_object(**languages)), downloads=_BOOLEAN
        ),
        "Room": _object(session={"type": ["string", "null"]}),
        "Error": _object(error=error),
        "Languages": _list(_object(code=_STRING, name=_STRING, targets=_list(_STRING))),
        "Refusal": _object(error=_STRING),
        "Translated": {
            "type": "object",
            "properties": {"translatedText": {"anyOf": [_STRING, _list(_STRING)]}, "detectedLanguage": {}},
            "required": ["translatedText"],
        },
        "Description": {"type": "object", "required": ["openapi", "info", "paths"]},
    }


def openapi_route(languages: ServedLanguages, access: Access) -> Route:
    """``/openapi.json``."""
    content = description(languages, access)

    async def describe(request: Request) -> Response:
        # The paths are below that of an application into which the server is mounted.
        return JSONResponse({**content, "servers": [{"url": request.scope.get("root_path") or "/"}]})

    return Route("/openapi.json", describe)
