"""Files that clients upload: counted while they come, kept in a folder of the server's own, translated, deleted."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from ..core import (
    SAMPLE_RATE,
    AudioSource,
    PipelineEvent,
    PipelineStats,
    Samples,
    SourceSentence,
    SpeechTranslator,
    Transcript,
    Worker,
)
from ..errors import AudioError, PipelineError, StageError, UsageError
from ..media import PcmRecording, Recording
from .chains import Chain
from .limits import ServerLimits
from .protocol import ProtocolError, shown
from .service import Service
from .session_record import new_name
from .unanswered import ModelCalls, Unanswered, longest_call_s

log = logging.getLogger(__name__)

T = TypeVar("T")

_BLOCK_BYTES = 1 << 20
_WATCH_S = 0.25
# A call of a recording's takes as much longer than a session's at most: it recognises several windows at once, and nobody waits for each.
_PATIENCE = 10
# Where Linux gives the open files of a process a path.
_OPEN_FILES = Path("/proc/self/fd")
# Beside the file: its header and the other fields.
_FORM_BYTES = 1 << 16
_TYPE_CHARACTERS = 2_000


class UploadError(PipelineError):
    """An upload that is refused. ``status`` is the HTTP status, ``code`` tells programs."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass(frozen=True)
class Upload:
    """A file that was received, and the other fields of its form, or of the query."""

    path: Path
    fields: dict[str, list[str]]
    is_pcm: bool = False
    """Whether it is 16 kHz mono 16-bit little-endian PCM without a header."""

    def field(self, name: str, default: str = "") -> str:
        """The last value of a field."""
        return (self.fields.get(name) or [default])[-1]


@asynccontextmanager
async def received(request: Request, service: Service, name: str = "file") -> AsyncIterator[Upload]:
    """The file ``name`` of a multipart form; it exists inside the block, and the server has room to translate it there.

    Its name at the client's is not used.

    Raises:
        UploadError: there is no room; the file is too large, comes too slowly or cannot be kept; the body is no form with
            a file.
        ClientDisconnect: the client has gone.
    """
    with _room(service):
        form = await _form(request, service.limits)
        try:
            file = form.get(name)
            if not isinstance(file, UploadFile):
                raise UploadError(
                    400, "no-file", f"the form has no file; send one as multipart/form-data with the name {name}"
                )
            fields: dict[str, list[str]] = {}
            for key, value in request.query_params.multi_items():
                fields.setdefault(key, []).append(value)
            fields |= {key: [value for value in form.getlist(key) if isinstance(value, str)] for key in form}
            async with _path_of(file) as path:
                yield Upload(path, fields)
        finally:
            await form.close()


@contextmanager
def _room(service: Service) -> Iterator[None]:
    try:
        with service.places.recording():
            yield
    except ProtocolError as error:
        raise UploadError(503, error.code, str(error)) from None
    except asyncio.CancelledError:
        if not service.places.draining:
            raise
        raise UploadError(503, "stopping", "the server stopped before the recording was translated") from None


async def _form(request: Request, limits: ServerLimits) -> FormData:
    if (kind := body_type(request)) != "multipart/form-data":
        raise UploadError(400, "no-file", f"the request is {kind or 'without a type'}; send a multipart/form-data")
    try:
        async with asyncio.timeout(limits.upload_s):
            body = bounded_body(paced_body(request, limits), limits.upload_bytes)
            return await body.form(max_files=1, max_fields=32)
    except TimeoutError:
        raise UploadError(408, "too-slow", f"the upload took longer than {limits.upload_s:g} s") from None
    except OSError as error:
        raise _not_kept(error) from error
    except (HTTPException, MultiPartException, ValueError) as error:  # ValueError: errors of python-multipart
        raise UploadError(400, "bad-form", f"the form cannot be read: {getattr(error, 'detail', error)}") from None


def body_type(request: Request) -> str:
    """The type of the body, such as application/json.

    Raises:
        UploadError: it is a form that is not in UTF-8, or its header is too long.
    """
    header = request.headers.get("content-type", "")
    if len(header) > _TYPE_CHARACTERS:
        raise UploadError(400, "bad-form", f"the content type has {len(header)} characters; at most {_TYPE_CHARACTERS}")
    kind, parameters = parse_options_header(header)
    charset = parameters.get(b"charset", b"utf-8").decode("latin-1")
    # Decoding 1 MB of punycode would take minutes.
    if kind == b"multipart/form-data" and charset.lower() not in ("utf-8", "utf8", "us-ascii"):
        raise UploadError(400, "bad-form", f"the form is in {charset[:60]!r}; it must be in UTF-8")
    return kind.decode("latin-1")


def paced_body(request: Request, limits: ServerLimits) -> Request:
    """The request, whose body ends with an UploadError once it comes more slowly than it must: it keeps others from a place."""
    count, began_s = 0, asyncio.get_running_loop().time()

    async def receive() -> Message:
        nonlocal count
        try:
            async with asyncio.timeout_at(began_s + limits.request_s + count / limits.upload_pace):
                message = await request.receive()
        except TimeoutError:
            reason = (
                f"the upload comes with less than {limits.upload_pace} bytes a second; try again with a faster network"
            )
            raise UploadError(408, "too-slow", reason) from None
        count += len(message.get("body", b""))
        return message

    return Request(request.scope, receive)


def bounded_body(request: Request, limit: int) -> Request:
    """The request, whose body ends with an UploadError once it is larger than ``limit`` bytes."""
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


@asynccontextmanager
async def _path_of(file: UploadFile) -> AsyncIterator[Path]:
    """A path under which the file can be opened inside the block.

    It has no name in a folder, so that a killed process leaves nothing. Where open files have no path, it is copied.
    """

    def stored() -> int:
        number = file.file.fileno()  # moves it from memory to the disk
        file.file.flush()
        return number

    try:
        path = _OPEN_FILES / str(await asyncio.to_thread(stored))
    except OSError as error:
        raise _not_kept(error) from error
    if path.exists():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="speech-") as folder:
        path = Path(folder) / "upload"
        await _copy(file, path)
        yield path


async def _copy(file: UploadFile, path: Path) -> None:
    worker = Worker("upload")
    try:
        with await worker.run(lambda: path.open("wb")) as copy:
            while block := await file.read(_BLOCK_BYTES):
                await worker.run(lambda block=block: copy.write(block))  # type: ignore[misc]
    except OSError as error:
        raise _not_kept(error) from error
    finally:
        worker.close()


def _not_kept(error: OSError) -> UploadError:
    log.error("an upload could not be kept: %s", error)
    return UploadError(507, "no-space", "the server cannot keep the file; its log says why")


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of ``work``, which is cancelled when the client goes away. The body must have been read."""

    async def leave() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(leave())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnect
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


class _Bounded:
    """A source that fails after a number of seconds of audio, whatever its file says of its length."""

    def __init__(self, source: AudioSource, limit_s: float) -> None:
        if source.duration_s is not None and source.duration_s > limit_s:
            source.close()
            raise _too_long(limit_s)
        self.duration_s = source.duration_s
        self._source, self._limit_s, self._count = source, limit_s, 0

    @property
    def overflows(self) -> int:
        return self._source.overflows

    def read(self) -> Samples | None:
        samples = self._source.read()
        self._count += 0 if samples is None else len(samples)
        if self._count > self._limit_s * SAMPLE_RATE:
            raise _too_long(self._limit_s)
        return samples

    def close(self) -> None:
        self._source.close()


def _too_long(limit_s: float) -> UploadError:
    return UploadError(413, "too-long", f"the recording is longer than {limit_s:g} s, which is the limit")


async def upload_events(
    upload: Upload, service: Service, chain: Chain, targets: tuple[str, ...]
) -> AsyncGenerator[PipelineEvent, None]:
    """The events of a recording, as fast as the machine gives; sessions in progress come first.

    Args:
        targets: those of the chain that are wanted.

    Raises:
        UploadError: it is not audio, it is too long, a stage failed, or nothing of what was said was understood.
    """
    worker, name, stats, failure = Worker("upload"), new_name(), PipelineStats(), " (given up)"
    began_s = stats.clock()
    try:
        source = await worker.run(lambda: open_upload(upload, chain, service.limits))
        chain = service.for_recording(chain, targets)
        async with (
            SpeechTranslator(
                chain.config, chain.models, glossary=chain.glossary, masking=chain.masking.fresh()
            ) as translator,
            aclosing(translator.run(source)) as events,
            _answering(translator, chain, service),
        ):
            stats, lost, understood = translator.stats, None, False
            async for event in events:
                for stage, why in translator.stats.failures.items():  # an answer with a gap is no answer
                    raise StageError(stage, RuntimeError(why))
                understood |= isinstance(event, SourceSentence) and event.text != ""
                if isinstance(event, Transcript) and event.rejected is not None and not event.is_noise:
                    lost = lost or event
                yield event
        if lost is not None and not understood:
            raise _not_understood(lost)
        failure = ""
    except UploadError as error:
        failure = f" ({error.code})"
        raise
    except (AudioError, UsageError) as error:
        failure = " (no-audio)"
        raise no_audio(upload, error) from None
    except PipelineError as error:
        failure = " (failed)"
        log.error("recording %s failed: %s", name, error)
        raise UploadError(500, "failed", "the recording failed; the server's log says why") from error
    finally:
        worker.close()
        log.info(
            "recording %s ended%s: %.1f s of audio, %d sentences, translated in %.1f s",
            name, failure, stats.audio_s, stats.sentences, stats.clock() - began_s,
        )  # fmt: skip


@asynccontextmanager
async def _answering(translator: SpeechTranslator, chain: Chain, service: Service) -> AsyncIterator[None]:
    """End the events of a translator inside the block when one of its models does not answer. Raises PipelineError after it."""
    unanswered = Unanswered(_PATIENCE * longest_call_s(chain.config, service.limits), time.monotonic())
    calls = ModelCalls(translator.stats, chain.models, service.scheduler, unanswered)

    async def watch() -> str:
        while True:
            await asyncio.sleep(_WATCH_S)
            if (hung := calls.hung(time.monotonic())) is not None:
                await translator.cancel()
                return hung[0]

    watching = asyncio.create_task(watch())
    try:
        yield
        if watching.done():
            raise PipelineError(f"{watching.result()}; restart the server")
    finally:
        watching.cancel()
        service.places.leave(calls)


def _not_understood(lost: Transcript) -> UploadError:
    """The refusal in the place of an empty text, from which a client would conclude that nothing was said."""
    why = "it is in another language" if lost.rejected == "language" else f"{lost.rejected}: {shown(lost.text)}"
    return UploadError(
        400, "not-understood",
        f"speech was heard at {lost.start_s:.1f} s, but not understood as {lost.language} ({why}); "
        "name the language that is spoken (the field language), or send a clearer recording",
    )  # fmt: skip


def open_upload(upload: Upload, chain: Chain, limits: ServerLimits) -> AudioSource:
    """The audio of an upload, which fails where it is longer than the limit. Raises UsageError, AudioError, UploadError."""
    kind = PcmRecording if upload.is_pcm else Recording
    return _Bounded(kind(upload.path, language=chain.config.languages.only_spoken), limits.recording_s)


def no_audio(upload: Upload, error: PipelineError) -> UploadError:
    """What a client is told of a file that cannot be read."""
    return UploadError(400, "no-audio", str(error).replace(str(upload.path), "the file"))


def as_dict(error: UploadError) -> dict[str, Any]:
    """An error as OpenAI's interface tells it."""
    kind = "invalid_request_error" if error.status < 500 else "server_error"
    return {"error": {"message": str(error), "type": kind, "param": None, "code": error.code}}
