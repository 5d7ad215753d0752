"""The interface of whisper-asr-webservice, by which Bazarr asks for subtitles: ``POST /asr``, ``POST /detect-language``.

https://ahmetoner.com/whisper-asr-webservice. A translation is into English there, whatever else this server translates into.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from dataclasses import replace

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from ...backends import first_speech, guessed_languages
from ...core import AudioSource
from ...errors import AudioError, PipelineError, UsageError
from ...languages import english_name
from ..access import Access
from ..guard import Rate
from ..scheduling import Priority
from ..service import Service
from ..uploads import Upload, UploadError, no_audio, open_upload, received, while_connected
from .openai import FileEndpoint, check_token, refusal

log = logging.getLogger(__name__)

OUTPUTS = {"txt": "text", "vtt": "vtt", "srt": "srt", "json": "verbose_json"}
"""Each with the name that OpenAI's interface has for it."""
TASKS = ("transcribe", "translate")
FILE = "audio_file"


def routes(service: Service, access: Access, _rate: Rate) -> list[BaseRoute]:
    """``/asr`` and ``/detect-language``."""

    async def detect(request: Request) -> Response:
        try:
            check_token(request, access)
            async with received(request, service, FILE) as upload:
                return JSONResponse(await while_connected(request.receive, _guessed(_read(upload)[1], service)))
        except UploadError as error:
            return refusal(error)
        except ClientDisconnect:
            return Response()  # nobody reads it

    return [
        Route("/asr", FileEndpoint(service, access, _read, FILE), methods=["POST"]),
        Route("/detect-language", detect, methods=["POST"]),
    ]


def _read(upload: Upload) -> tuple[str, Upload]:
    """What a request asks for: the task, and the fields of OpenAI's interface.

    Raises:
        UploadError: it is none of ``TASKS``, or a format that there is not.
    """
    task, output = upload.field("task") or TASKS[0], upload.field("output") or "txt"
    if task not in TASKS or output not in OUTPUTS:
        wrong, choices = (output, OUTPUTS) if task in TASKS else (task, TASKS)
        raise UploadError(400, "bad-format", f"there is no {wrong[:60]!r}; choose from {', '.join(choices)}")
    fields = {"language": [upload.field("language")], "response_format": [OUTPUTS[output]]}
    if task == "translate":
        fields["target"] = ["en"]
    is_pcm = upload.field("encode").lower() in ("false", "0")
    return task, replace(upload, fields=fields, is_pcm=is_pcm)


async def _guessed(upload: Upload, service: Service) -> dict[str, object]:
    """The likeliest language of an upload; none if nobody speaks in it, or the recogniser tells none."""
    chain, abandoned, opened = service.chosen(None, ()), threading.Event(), list[AudioSource]()

    def heard() -> Mapping[str, float]:
        opened.append(source := open_upload(upload, chain, service.limits))
        try:
            speech = None if abandoned.is_set() else first_speech(source, chain.config.vad)
        finally:
            source.close()
        if speech is None or abandoned.is_set():
            return {}
        with service.scheduler.slot(Priority.RECORDING):
            return guessed_languages(chain.models.recognizer, speech)

    working = asyncio.ensure_future(asyncio.to_thread(heard))
    try:
        likely = await asyncio.shield(working)
    except UploadError:
        raise
    except (AudioError, UsageError) as error:
        raise no_audio(upload, error) from None
    except Exception as error:
        log.error("no language was told: %s", error, exc_info=not isinstance(error, PipelineError))
        raise UploadError(500, "failed", "the recording failed; the server's log says why") from error
    finally:  # a recording's place is taken as long as its thread works; closing ends its reading
        abandoned.set()
        for source in opened:
            source.close()
        await asyncio.gather(working, return_exceptions=True)
    language = max(likely, key=likely.__getitem__, default="")
    name = english_name(language).lower() if language else ""
    return {"detected_language": name, "language_code": language, "confidence": likely.get(language, 0.0)}
