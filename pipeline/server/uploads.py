"""Files that clients upload: counted while they come, kept in a folder of the server's own, translated, deleted."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.types import Message

from pipeline.audio.recording import Recording
from pipeline.errors import AudioError, PipelineError, UsageError
from pipeline.events import PipelineEvent
from pipeline.run.worker import Worker
from pipeline.server.protocol import ProtocolError
from pipeline.server.service import Service
from pipeline.translator import SpeechTranslator

_BLOCK_BYTES = 1 << 20
# Beside the file: its header and the other fields.
_FORM_BYTES = 1 << 16


class UploadError(PipelineError):
    """An upload that is refused. ``status`` is the HTTP status, ``code`` tells programs."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass(frozen=True)
class Upload:
    """A file that was received, and the other fields of its form."""

    path: Path
    fields: dict[str, list[str]]

    def field(self, name: str, default: str = "") -> str:
        """The last value of a field."""
        return (self.fields.get(name) or [default])[-1]


@asynccontextmanager
async def received(request: Request, service: Service) -> AsyncIterator[Upload]:
    """The file of a multipart form; it exists inside the block.

    Its name at the client's is not used. Raises UploadError if it is too large, comes too slowly, or is no form with a file.
    """
    limits = service.limits
    form = None
    try:
        try:
            async with asyncio.timeout(limits.upload_s):
                form = await _counted(request, limits.upload_bytes).form(max_files=1, max_fields=32)
        except TimeoutError:
            raise UploadError(408, "too-slow", f"the upload took longer than {limits.upload_s:.0f} s") from None
        except (HTTPException, MultiPartException) as error:
            raise UploadError(400, "bad-form", f"the form cannot be read: {getattr(error, 'detail', error)}") from None
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise UploadError(
                400, "no-file", "the form has no file; send one as multipart/form-data with the name file"
            )
        fields = {name: [value for value in form.getlist(name) if isinstance(value, str)] for name in form}
        with tempfile.TemporaryDirectory(prefix="speech-") as folder:
            path = Path(folder) / "upload"
            await _copy(file, path)
            yield Upload(path, fields)
    finally:
        if isinstance(form, FormData):
            await form.close()


def _counted(request: Request, limit: int) -> Request:
    """The request, whose body ends with an error once it is larger than ``limit`` bytes."""
    count = 0
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > limit + _FORM_BYTES:
        raise UploadError(413, "too-large", f"the upload has {int(declared)} bytes; at most {limit} are allowed")

    async def receive() -> Message:
        nonlocal count
        message = await request.receive()
        count += len(message.get("body", b""))
        if count > limit + _FORM_BYTES:
            raise UploadError(413, "too-large", f"the upload has more than {limit} bytes, which is the limit")
        return message

    return Request(request.scope, receive)


async def _copy(file: UploadFile, path: Path) -> None:
    worker = Worker("upload")
    try:
        with await worker.run(lambda: path.open("wb")) as copy:
            while block := await file.read(_BLOCK_BYTES):
                await worker.run(lambda block=block: copy.write(block))  # type: ignore[misc]
    finally:
        worker.close()


async def translated(path: Path, service: Service, targets: tuple[str, ...]) -> AsyncGenerator[PipelineEvent, None]:
    """The events of a recording, as fast as the machine gives; sessions in progress come first.

    Raises:
        UploadError: it is not audio, or the server has no room for another one.
        StageError: see ``SpeechTranslator.run``.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(service.recording())
        except ProtocolError as error:
            raise UploadError(503, error.code, str(error)) from None
        try:
            recording = await asyncio.to_thread(Recording, path, language=service.config.languages.only_spoken)
        except (AudioError, UsageError) as error:
            raise UploadError(400, "no-audio", str(error).replace(str(path), "the file")) from None
        config, models = service.for_recording(targets)
        async with (
            SpeechTranslator(config, models) as translator,
            aclosing(translator.run(recording)) as events,
        ):
            try:
                async for event in events:
                    yield event
            except AudioError as error:
                raise UploadError(400, "no-audio", str(error).replace(str(path), "the file")) from None


def as_dict(error: UploadError) -> dict[str, Any]:
    """An error as OpenAI's interface tells it."""
    kind = "invalid_request_error" if error.status < 500 else "server_error"
    return {"error": {"message": str(error), "type": kind, "param": None, "code": error.code}}
