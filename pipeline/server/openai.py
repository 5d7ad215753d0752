"""The part of OpenAI's REST interface that recognises and translates files; programs for it work with this server.

https://platform.openai.com/docs/api-reference/audio. ``/v1/audio/translations`` translates into the configured language,
not only into English.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from pipeline.events import Delta, EndOfInput, PipelineEvent, SourceDelta, SourceSentence, Translation
from pipeline.languages import same_language, sets_sentences_apart
from pipeline.server.access import Access
from pipeline.server.service import Service
from pipeline.server.uploads import Upload, UploadError, as_dict, received, translated
from pipeline.sinks.files import sink_makers

_FORMATS = ("json", "text", "srt", "verbose_json", "vtt")
_MODEL = "speech-translation"


@dataclass(frozen=True)
class _Wanted:
    """What a request asks for."""

    task: str
    """"transcribe" or "translate"."""
    language: str
    """Of the text that is wanted."""
    format: str
    streamed: bool
    words: bool


def openai_routes(service: Service, access: Access) -> list[BaseRoute]:
    """``/v1/audio/transcriptions``, ``/v1/audio/translations``, ``/v1/models``."""

    def guarded(handler: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                scheme, _, token = request.headers.get("authorization", "").partition(" ")
                if not access.knows_token(token if scheme.lower() == "bearer" else None):
                    raise UploadError(401, "wrong-token", "the token is missing or wrong; give it as the API key")
                return await handler(request)
            except UploadError as error:
                headers = {"retry-after": "10"} if error.status == 503 else None
                return JSONResponse(as_dict(error), error.status, headers)

        return answer

    async def transcribe(request: Request) -> Response:
        return await _answer(request, service, "transcribe")

    async def translate(request: Request) -> Response:
        return await _answer(request, service, "translate")

    async def models(request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [_model()]})

    async def model(request: Request) -> Response:
        if request.path_params["model"] != _MODEL:
            raise UploadError(404, "unknown-model", f"there is no such model; the only one is {_MODEL}")
        return JSONResponse(_model())

    return [
        Route("/v1/audio/transcriptions", guarded(transcribe), methods=["POST"]),
        Route("/v1/audio/translations", guarded(translate), methods=["POST"]),
        Route("/v1/models", guarded(models)),
        Route("/v1/models/{model}", guarded(model)),
    ]


def _model() -> dict[str, Any]:
    return {"id": _MODEL, "object": "model", "created": 0, "owned_by": "local"}


async def _answer(request: Request, service: Service, task: str) -> Response:
    async with AsyncExitStack() as stack:
        upload = await stack.enter_async_context(received(request, service))
        wanted = _wanted(upload, service, task)
        targets = (wanted.language,) if task == "translate" else service.config.languages.targets[:1]
        events = await stack.enter_async_context(aclosing(translated(upload.path, service, targets)))
        if wanted.streamed:
            return StreamingResponse(_streamed(events, wanted, stack.pop_all()), media_type="text/event-stream")
        found = [event async for event in events]
        return _response(found, wanted, service)
    raise AssertionError("the stack suppresses no exception")


def _wanted(upload: Upload, service: Service, task: str) -> _Wanted:
    """What the form asks for.

    Raises:
        UploadError: an unknown format, or a language that this server does not know.
    """
    languages = service.config.languages
    form = upload.field("response_format", "json")
    if form not in _FORMATS:
        raise UploadError(400, "bad-format", f"response_format is {form!r}; it must be one of {', '.join(_FORMATS)}")
    spoken = upload.field("language")
    if spoken and not any(same_language(spoken, one) for one in languages.spoken):
        raise UploadError(
            400,
            "unknown-language",
            f"this server does not recognise {spoken!r}; it recognises {', '.join(languages.spoken)}",
        )
    target = upload.field("target", languages.targets[0])
    if target not in languages.targets:
        raise UploadError(
            400,
            "unknown-target",
            f"this server does not translate into {target!r}; choose from {', '.join(languages.targets)}",
        )
    streamed = upload.field("stream").lower() in ("true", "1")
    if streamed and form not in ("json", "text"):
        raise UploadError(400, "bad-format", f"a streamed answer has no format {form}; ask for json or text")
    granularities = upload.fields.get("timestamp_granularities[]", [])
    language = target if task == "translate" else languages.spoken[0]
    return _Wanted(task, language, form, streamed, "word" in granularities)


def _sentences(events: list[PipelineEvent], wanted: _Wanted) -> list[tuple[SourceSentence, str]]:
    """The sentences with the text that is wanted of each."""
    spoken = {event.sentence: event for event in events if isinstance(event, SourceSentence)}
    if wanted.task == "transcribe":
        return [(sentence, sentence.text) for sentence in spoken.values()]
    return [(spoken[event.sentence], event.text) for event in events if isinstance(event, Translation)]


def _joined(texts: Iterator[str], language: str) -> str:
    return (" " if sets_sentences_apart(language) else "").join(text for text in texts if text)


def _response(events: list[PipelineEvent], wanted: _Wanted, service: Service) -> Response:
    sentences = _sentences(events, wanted)
    text = _joined((text for _, text in sentences), wanted.language)
    match wanted.format:
        case "text":
            return PlainTextResponse(text + "\n")
        case "srt" | "vtt":
            kind = "application/x-subrip" if wanted.format == "srt" else "text/vtt"
            return PlainTextResponse(_subtitles(events, wanted, service), media_type=f"{kind}; charset=utf-8")
        case "verbose_json":
            return JSONResponse(_verbose(events, sentences, text, wanted))
    return JSONResponse({"text": text})


def _verbose(
    events: list[PipelineEvent], sentences: list[tuple[SourceSentence, str]], text: str, wanted: _Wanted
) -> dict[str, Any]:
    duration_s = next((event.duration_s for event in events if isinstance(event, EndOfInput)), 0.0)
    found: dict[str, Any] = {
        "task": wanted.task,
        "language": wanted.language,
        "duration": round(duration_s, 3),
        "text": text,
        "segments": [
            {"id": number, "start": round(sentence.start_s, 3), "end": round(sentence.end_s, 3), "text": said}
            for number, (sentence, said) in enumerate(sentences)
        ],
    }
    if wanted.words and wanted.task == "transcribe":
        found["words"] = [
            {"word": word.text.strip(), "start": round(word.start_s, 3), "end": round(word.end_s, 3)}
            for sentence, _ in sentences
            for word in sentence.words
        ]
    return found


def _subtitles(events: list[PipelineEvent], wanted: _Wanted, service: Service) -> str:
    """The content of a subtitle file."""
    with tempfile.TemporaryDirectory(prefix="speech-") as folder:
        path = Path(folder) / f"out.{wanted.format}"
        sink = sink_makers(service.config.subtitles)[wanted.format](path, [wanted.language])
        try:
            for event in events if wanted.task == "translate" else _as_translations(events):
                sink.write(event)
        finally:
            sink.close()
        return path.read_text("utf-8")


def _as_translations(events: list[PipelineEvent]) -> Iterator[PipelineEvent]:
    """The events with each sentence as its own translation, so that sinks of translations write what was said."""
    for event in events:
        if isinstance(event, SourceDelta | EndOfInput):
            yield event
        elif isinstance(event, SourceSentence):
            yield event
            text = event.text
            yield Delta(event.sentence, event.language, text, committed=len(text), heard_s=event.heard_s, complete=True)
            yield Translation(event.sentence, event.language, text, heard_s=event.heard_s)


async def _streamed(events: AsyncIterator[PipelineEvent], wanted: _Wanted, stack: AsyncExitStack) -> AsyncIterator[str]:
    """Server-sent events: the text of each sentence as it comes, then the whole."""
    async with stack:
        whole = ""
        try:
            async for event in events:
                kind = SourceSentence if wanted.task == "transcribe" else Translation
                if isinstance(event, kind) and event.text:
                    space = " " if whole and sets_sentences_apart(wanted.language) else ""
                    whole += space + event.text
                    yield _sse({"type": "transcript.text.delta", "delta": space + event.text})
            yield _sse({"type": "transcript.text.done", "text": whole})
        except UploadError as error:
            yield _sse({"type": "error", **as_dict(error)})


def _sse(record: dict[str, Any]) -> str:
    return f"data: {json.dumps(record, ensure_ascii=False)}\n\n"
