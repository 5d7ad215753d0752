"""The part of OpenAI's REST interface that recognises and translates files; programs for it work with this server.

https://platform.openai.com/docs/api-reference/audio. ``/v1/audio/translations`` translates into the configured language,
not only into English. A server with several configurations has a model for each, beside the one that stands for all.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from ...core import (
    EndOfInput,
    PipelineEvent,
    SameLanguageText,
    SourceSentence,
    TargetText,
    Transcript,
    Translation,
    TranslationRequest,
    trimmed_words,
)
from ...languages import language_tag, nearest, sets_sentences_apart
from ...media import sink_makers, whisper_segment
from ..access import Access, bearer_token, password
from ..chains import Chain, loaded_voice_model
from ..guard import Rate
from ..protocol import ProtocolError, shown
from ..service import Service
from ..uploads import Upload, UploadError, as_dict, received, upload_events, while_connected

FORMATS = ("json", "text", "srt", "verbose_json", "vtt", "diarized_json")
_DIARIZED = "diarized_json"
GRANULARITIES = ("word", "segment")
_YES, _NO = ("true", "1"), ("false", "0", "")
# A part of a streamed answer that the client does not take for so long ends the connection.
_SEND_S = 20.0


@dataclass(frozen=True)
class _Wanted:
    """What a request asks for."""

    chain: Chain
    """The chain of the spoken language."""
    task: str
    """"transcribe" or "translate"."""
    language: str
    """The language of the text that is wanted."""
    format: str
    streamed: bool
    words: bool


def routes(service: Service, access: Access, _rate: Rate) -> list[BaseRoute]:
    """``/v1/audio/transcriptions``, ``/v1/audio/translations``, ``/v1/models``."""

    def guarded(handler: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                check_token(request, access)
                return await handler(request)
            except UploadError as error:
                return refusal(error)

        return answer

    async def models(request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [_model(name) for name in service.languages.models]})

    async def model(request: Request) -> Response:
        if (name := request.path_params["model"]) not in service.languages.models:
            names = ", ".join(service.languages.models)
            raise UploadError(404, "unknown-model", f"there is no such model; this server has {names}")
        return JSONResponse(_model(name))

    transcribed = FileEndpoint(service, access, lambda upload: ("transcribe", upload))
    translated = FileEndpoint(service, access, lambda upload: ("translate", upload))
    return [
        Route("/v1/audio/transcriptions", transcribed, methods=["POST"]),
        Route("/v1/audio/translations", translated, methods=["POST"]),
        Route("/v1/models", guarded(models)),
        Route("/v1/models/{model}", guarded(model)),
    ]


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "local"}


def check_token(request: Request, access: Access) -> None:
    """Raises UploadError: the token is needed, and not given."""
    authorization = request.headers.get("authorization")
    if not access.knows_token(bearer_token(authorization) or password(authorization)):
        raise UploadError(401, "wrong-token", "the token is missing or wrong; give it as the API key")


def refusal(error: UploadError) -> Response:
    """The answer in the place of a recording's text."""
    headers = {503: {"retry-after": "10"}, 401: {"www-authenticate": "Bearer"}}.get(error.status)
    return JSONResponse(as_dict(error), error.status, headers)


class FileEndpoint:
    """The ASGI endpoint that recognises or translates a file. Stops when the client goes away."""

    def __init__(
        self, service: Service, access: Access, read: Callable[[Upload], tuple[str, Upload]], name: str = "file"
    ) -> None:
        """``read``: of an upload, "transcribe" or "translate", and its fields as those of OpenAI's interface. ``name``: that of
        the file in the form.
        """
        self._service, self._access, self._read, self._name = service, access, read, name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, stream = Request(scope, receive), _EventStream(send)
        try:
            try:
                check_token(request, self._access)
                async with received(request, self._service, self._name) as upload:
                    response = await while_connected(receive, self._answer(*self._read(upload), stream))
            except UploadError as error:
                if stream.begun:
                    await stream.say({"type": "error", **as_dict(error)}, more=False)
                    return
                response = refusal(error)
            if response is not None:
                await response(scope, receive, send)
        except ClientDisconnect:
            return  # nobody reads an answer

    async def _answer(self, task: str, upload: Upload, stream: _EventStream) -> Response | None:
        """The answer; None if it was streamed."""
        service, limit_s = self._service, self._service.limits.translating_s
        wanted = await _wanted(upload, service, task)
        spoken = language_tag(wanted.chain.config.languages.spoken[0]).language
        targets = (wanted.language if task == "translate" else spoken,)  # a transcription translates nothing
        work = upload_events(upload, service, wanted.chain, targets)
        try:
            async with asyncio.timeout(limit_s), aclosing(work) as events:
                if wanted.streamed:
                    await _stream(events, wanted, stream)
                    return None
                finished = [event async for event in events if _is_finished(event)]
                return await asyncio.to_thread(_response, finished, wanted)  # an hour of subtitles takes a second
        except TimeoutError:
            raise UploadError(413, "too-long", f"translating the recording takes longer than {limit_s:g} s") from None


async def _wanted(upload: Upload, service: Service, task: str) -> _Wanted:
    """What the form asks for.

    Raises:
        UploadError: an unknown format, or a language that this server does not know.
    """
    form = upload.field("response_format", "json")
    if form not in FORMATS:
        raise UploadError(
            400, "bad-format", f"response_format is {form[:60]!r}; it must be one of {', '.join(FORMATS)}"
        )
    stream = upload.field("stream").lower()
    if stream not in (*_YES, *_NO):
        raise UploadError(400, "bad-format", f"stream is {stream[:60]!r}; it must be true or false")
    streamed = stream in _YES
    if streamed and form not in ("json", "text", _DIARIZED):
        raise UploadError(
            400, "bad-format", f"a streamed answer has no format {form}; ask for json, text or {_DIARIZED}"
        )
    granularities = upload.fields.get("timestamp_granularities[]", [])
    if unknown := set(granularities) - set(GRANULARITIES):
        raise UploadError(
            400,
            "bad-format",
            f"timestamp_granularities[] has {min(unknown)[:60]!r}; it may have {' and '.join(GRANULARITIES)}",
        )
    chain = await _chain(upload, service, task)  # last: it may take long
    languages = chain.config.languages
    if task == "translate":
        language = _target(chain, upload.field("target"))
    else:
        language = next(iter(nearest(upload.field("language"), languages.spoken)), languages.spoken[0])
    return _Wanted(chain, task, language, form, streamed, "word" in granularities)


async def _chain(upload: Upload, service: Service, task: str) -> Chain:
    """The chain for the languages of a form: those of its fields, or that which its model stands for.

    Raises:
        UploadError: there is none.
    """
    # Programs name models of OpenAI's: any other name stands for all languages.
    languages, targets = service.languages, upload.fields.get("target", [])[-1:]
    of_model = languages.models.get(upload.field("model"))
    spoken = upload.field("language") or of_model
    try:
        if of_model is not None and languages.recognising(spoken)[:1] != languages.recognising(of_model)[:1]:
            raise ProtocolError(
                "unknown-source", f"the model {upload.field('model')} does not recognise {shown(spoken)}"
            )
        if task == "transcribe":
            targets = targets or list(languages.of_transcript(spoken))
        chain = await service.obtained(spoken, targets)
        tells = upload.field("response_format") == _DIARIZED and not chain.config.speakers.auto
        return chain.telling_speakers(await loaded_voice_model(service.speakers, wanted=tells))
    except ProtocolError as error:
        code = "unknown-language" if error.code == "unknown-source" else error.code
        status = {"busy": 503, "no-space": 507, "failed": 500}.get(code, 400)
        raise UploadError(status, code, str(error)) from None


def _target(chain: Chain, wanted: str) -> str:
    """The tag of the translation, such as zh-TW; that of the chain if none is wanted."""
    languages = chain.config.languages
    if not wanted or languages.conversation:
        return next(iter(nearest(wanted, languages.targets)), languages.targets[0])
    try:
        return chain.narrowed([wanted]).config.languages.targets[0]
    except ProtocolError as error:
        raise UploadError(400, error.code, str(error)) from None


def _sentences(events: list[PipelineEvent], wanted: _Wanted) -> list[tuple[SourceSentence, str]]:
    """The sentences with the text that is wanted of each."""
    spoken = {event.sentence: event for event in events if isinstance(event, SourceSentence)}
    if wanted.task == "transcribe":
        return [(sentence, sentence.text) for sentence in spoken.values()]
    return [(spoken[event.sentence], event.text) for event in events if isinstance(event, Translation)]


def _joined(texts: Iterator[str], language: str) -> str:
    return (" " if sets_sentences_apart(language) else "").join(text for text in texts if text)


def _is_finished(event: PipelineEvent) -> bool:
    """Whether an event belongs to finished text; of a translation on the way there is one for each token."""
    if isinstance(event, TargetText):
        return event.complete
    return isinstance(event, Transcript | SourceSentence | Translation | EndOfInput)


class _LongJson(JSONResponse):
    """JSON that is written in small pieces: other threads, such as that of the loop, wait while a whole one is written."""

    def render(self, content: Any) -> bytes:
        return "".join(json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).iterencode(content)).encode()


def _response(events: list[PipelineEvent], wanted: _Wanted) -> Response:
    sentences = _sentences(events, wanted)
    text = _joined((text for _, text in sentences), wanted.language)
    match wanted.format:
        case "text":
            return PlainTextResponse(text + "\n")
        case "srt" | "vtt":
            kind = "text/plain" if wanted.format == "srt" else "text/vtt"
            return PlainTextResponse(_subtitles(events, wanted), media_type=f"{kind}; charset=utf-8")
        case "verbose_json":
            return _LongJson(_verbose(events, sentences, text, wanted))
        case "diarized_json":
            segments = [_diarized(*sentence) for sentence in sentences]
            return _LongJson({"task": wanted.task, "duration": _duration_s(events), "text": text, "segments": segments})
    return JSONResponse({"text": text})


def _verbose(
    events: list[PipelineEvent], sentences: list[tuple[SourceSentence, str]], text: str, wanted: _Wanted
) -> dict[str, Any]:
    heard = [event for event in events if isinstance(event, Transcript)]
    answer: dict[str, Any] = {
        "task": wanted.task,
        "language": wanted.language,
        "duration": _duration_s(events),
        "text": text,
        "segments": [whisper_segment(number, *each, heard) for number, each in enumerate(sentences)],
    }
    if wanted.words and wanted.task == "transcribe":
        answer["words"] = [
            {"word": word.text, "start": round(word.start_s, 3), "end": round(word.end_s, 3)}
            for sentence, _ in sentences
            for word in trimmed_words(sentence)
        ]
    return answer


def _duration_s(events: list[PipelineEvent]) -> float:
    return round(next((event.duration_s for event in events if isinstance(event, EndOfInput)), 0.0), 3)


def _diarized(sentence: SourceSentence, text: str) -> dict[str, Any]:
    """A segment of ``diarized_json``, and of its stream. A speaker who is not known has no name."""
    return {
        "type": "transcript.text.segment",
        "id": f"seg_{sentence.sentence}",
        "start": round(sentence.start_s, 3),
        "end": round(sentence.end_s, 3),
        "speaker": sentence.speaker or "",
        "text": text,
    }


def _subtitles(events: list[PipelineEvent], wanted: _Wanted) -> str:
    """The content of a subtitle file."""
    with tempfile.TemporaryDirectory(prefix="speech-") as folder:
        path = Path(folder) / f"out.{wanted.format}"
        # Without a language: events have one text of each sentence, and those of a conversation are in two languages.
        sink = sink_makers(wanted.chain.config.subtitles)[wanted.format](path)
        try:
            for event in events if wanted.task == "translate" else _as_translations(events):
                sink.write(event)
        finally:
            sink.close()
        return path.read_text("utf-8")


def _as_translations(events: list[PipelineEvent]) -> Iterator[PipelineEvent]:
    """The events with each sentence as its own translation, so that sinks of translations write what was said."""
    for event in events:
        if isinstance(event, EndOfInput):
            yield event
        elif isinstance(event, SourceSentence):
            yield event
            yield from SameLanguageText(event.language).stream(TranslationRequest(event, event.language))


class _EventStream:
    """Server-sent events, of which the first begins the answer."""

    def __init__(self, send: Send) -> None:
        self.begun = False
        self._send = send

    async def begin(self) -> None:
        """Send the header, unless it was sent. From now on the status is 200."""
        if not self.begun:
            self.begun = True
            headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def say(self, record: dict[str, Any], more: bool = True) -> None:
        """Send one event. Raises ClientDisconnect if the client does not take it."""
        await self.begin()
        body = f"data: {json.dumps(record, ensure_ascii=False)}\n\n".encode()
        try:
            async with asyncio.timeout(_SEND_S):
                await self._send({"type": "http.response.body", "body": body, "more_body": more})
        except TimeoutError:
            raise ClientDisconnect from None


async def _stream(events: AsyncIterator[PipelineEvent], wanted: _Wanted, stream: _EventStream) -> None:
    """Send the text of each sentence as it comes, then the whole."""
    whole, spoken = "", dict[int, SourceSentence]()
    async for event in events:
        await stream.begin()
        kind = SourceSentence if wanted.task == "transcribe" else Translation
        if isinstance(event, SourceSentence) and wanted.format == _DIARIZED:
            spoken[event.sentence] = event
        if isinstance(event, kind) and event.text:
            space = " " if whole and sets_sentences_apart(wanted.language) else ""
            whole += space + event.text
            await stream.say({"type": "transcript.text.delta", "delta": space + event.text})
            if wanted.format == _DIARIZED:
                await stream.say(_diarized(spoken[event.sentence], event.text))
    await stream.say({"type": "transcript.text.done", "text": whole}, more=False)
