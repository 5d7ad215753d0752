"""The base of sinks that send sentences to a place on the network while people speak."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import logging
import os
import re
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from ..core import PipelineEvent
from ..errors import UsageError
from ..media import EarlySentenceBuilder, Sentence, SentenceBuilder, SubtitleRules
from ..store import assets

log = logging.getLogger(__name__)

Clock = Callable[[], float]
"""Wall-clock seconds since the stream began."""
# Sentences that may wait: those of a minute. Captions that are older would only confuse.
_CAPACITY = 20
# Until the whole answer is there.
_ANSWER_S = 10.0
# Wait between two tries of one sentence: the first, and the longest.
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0
# Time to send what waits when the run ends.
_CLOSE_S = 5.0
# No body of an answer that is read here is longer.
_MOST_BYTES = 4_096
# Characters of a status line that are told.
_REASON = 60
# Timeouts, too many requests, and failures of the server.
_PASSING = frozenset({408, 425, 429, *range(500, 600)})


class PushError(Exception):
    """A sentence could not be sent. It is tried again, after ``wait_s`` at the earliest."""

    def __init__(self, message: str, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class PushRefusedError(PushError):
    """Nothing is sent any more, since trying again will not help."""


class PushSink(Protocol):
    """A sink that sends. ``write`` never waits for the network."""

    lost: int
    """Sentences that were not sent."""
    problem: str
    """The reason why sentences are not sent now, and which; empty: all are."""

    def begin(self, clock: Clock) -> None: ...
    def write(self, event: PipelineEvent) -> None: ...
    def close(self) -> None: ...


class Pusher(ABC):
    """Sends sentences one after another, on a thread of its own, until each has arrived.

    A place that cannot be reached costs nothing but its sentences: the run goes on. The first failure is logged, the
    newest ``_CAPACITY`` sentences wait, and what is lost is counted and logged at the end.
    """

    interval_s = 0.0
    """Between the beginnings of two sentences' sending, at least."""
    early = False
    """Whether sentences are sent as soon as they are expected to stay, not when they are final."""
    several_languages = False
    """Whether the place is told the language of each sentence, so that one takes all."""
    stays_s: float | None = None
    """After so many seconds without another sentence, ``lapse`` is called; None: never."""

    def __init__(self, name: str, languages: Sequence[str], rules: SubtitleRules) -> None:
        """``name``: for messages, without keys. ``languages``: of the translations that are sent."""
        self.name, self.problem, self.lost, self.sent = name, "", 0, 0
        self.rules, self.clock = rules, time.monotonic
        self._early = {language: EarlySentenceBuilder(language) for language in languages if self.early}
        self._builders = {
            language: self._early[language].push if self.early else _final(SentenceBuilder(language=language))
            for language in languages
        }
        self._waiting: deque[tuple[str, Sentence]] = deque()
        self._busy = self._failing = self._refused = self._closing = False
        self._close_by = 0.0
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    @abstractmethod
    def deliver(self, language: str, sentence: Sentence) -> None:
        """Send one sentence. Called on the sink's thread.

        Raises:
            PushError: it has not arrived.
        """

    def lapse(self) -> None:
        """Remove the last sentence. Called on the sink's thread, also at the end."""
        self.stays_s = None

    def hold(self, seconds: float) -> None:
        """Wait on the sink's thread while a text is read: half as long if others wait, and at the end as long as there is time."""
        with self._changed:
            until = time.monotonic() + (seconds / 2 if len(self._waiting) > 1 else seconds)
            if self._changed.wait_for(lambda: self._closing, until - time.monotonic()):
                left_s = (self._close_by - time.monotonic()) / (2 + len(self._waiting))
                self._changed.wait(max(0.0, min(until - time.monotonic(), left_s)))

    def begin(self, clock: Clock) -> None:
        """Tell the time of the stream."""
        self.clock = clock

    def write(self, event: PipelineEvent) -> None:
        for language, push in self._builders.items():
            for sentence in push(event):
                with self._changed:
                    self._waiting.append((language, sentence))
                    if self._refused or len(self._waiting) > _CAPACITY:
                        self._waiting.popleft()
                        self.lost += 1
                    self._changed.notify_all()

    def close(self) -> None:
        """Send what waits, for a bounded time, and log what was lost. Idempotent."""
        with self._changed:
            if self._closing:
                return
            self._closing, self._close_by = True, time.monotonic() + _CLOSE_S
            self._changed.notify_all()
        self._thread.join(_CLOSE_S)
        with self._changed:
            self.lost += len(self._waiting) + self._busy
            self._refused = True  # what is on its way is not counted again
            self._waiting.clear()
        if self.lost:
            log.error("%s: %d of %d sentences were not sent", self.name, self.lost, self.lost + self.sent)
        if differing := sum(sentences.differing for sentences in self._early.values()):
            log.info("%s: %d words were sent otherwise than in the final text", self.name, differing)

    def _work(self) -> None:
        while (item := self._next()) is not None:
            begun = time.monotonic()
            self._send(*item)
            with self._changed:
                self._busy = False
                self._changed.wait_for(lambda: self._closing, max(0.0, begun + self.interval_s - time.monotonic()))
        with contextlib.suppress(PushError):
            self.lapse()

    def _next(self) -> tuple[str, Sentence] | None:
        """Wait for a sentence; None when the sink was closed and none is waiting."""
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: self._waiting or self._closing, self.stays_s):
                    if not self._waiting:
                        return None
                    self._busy = True
                    return self._waiting.popleft()
            with contextlib.suppress(PushError):
                self.lapse()

    def _send(self, language: str, sentence: Sentence) -> None:
        """Try to send a sentence until it has arrived or is refused; once more after the sink was closed."""
        wait_s, last = _FIRST_WAIT_S, False
        while not last:
            last = self._closing
            try:
                self.deliver(language, sentence)
            except PushRefusedError as error:
                self.problem = f"{self.name}: {error}; nothing more is sent there"
                log.error("%s", self.problem)
                self._give_up(refused=True)
                return
            except PushError as error:
                self.problem = f"{self.name}: {error}; trying again"
                if not self._failing:
                    log.warning("%s", self.problem)
                    self._failing = True
                with self._changed:
                    self._changed.wait_for(lambda: self._closing, 0.0 if last else max(wait_s, error.wait_s))
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
            except Exception:
                log.exception("%s: a sentence could not be sent", self.name)
                break
            else:
                self._arrived()
                return
        self._give_up(refused=False)

    def _arrived(self) -> None:
        with self._changed:
            self.sent += not self._refused
        if self._failing:
            self._failing, self.problem = False, ""
            log.warning("%s: sending again; %d sentences were lost", self.name, self.lost)

    def _give_up(self, *, refused: bool) -> None:
        """Count the sentence that is being sent as lost, and those that wait if ``refused``."""
        with self._changed:
            if self._refused:
                return
            self.lost += 1 + (len(self._waiting) if refused else 0)
            self._refused, self._busy = refused, False
            if refused:
                self._waiting.clear()


def _final(builder: SentenceBuilder) -> Callable[[PipelineEvent], list[Sentence]]:
    def push(event: PipelineEvent) -> list[Sentence]:
        sentence = builder.push(event)
        return [sentence] if sentence is not None and sentence.text else []

    return push


def replace_text(path: Path, text: str) -> None:
    """Write a file so that a reader gets the old one or the whole new one."""
    new = path.with_suffix(".new")
    new.write_text(text, "utf-8", newline="\n")
    os.replace(new, path)


class _NoRedirects(HTTPRedirectHandler):
    """A redirected POST would become a GET, perhaps to another network."""

    def redirect_request(self, *_: object) -> None:
        return None


class _Remaining(io.RawIOBase):
    """The bytes that a socket receives until a deadline. A socket's own timeout begins again with each byte."""

    def __init__(self, received: Any, sock: socket.socket, by_s: float) -> None:
        self._received, self._sock, self._by_s = received, sock, by_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if (left_s := self._by_s - time.monotonic()) <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left_s)
        read: int | None = self._received.readinto(buffer)
        return read

    def close(self) -> None:
        self._received.close()
        super().close()


class _Answer(HTTPResponse):
    """An answer that has the time of the connection, as a whole."""

    def __init__(self, sock: socket.socket, *arguments: Any, by_s: float, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp = io.BufferedReader(_Remaining(self.fp.detach(), sock, by_s))


def _in_time(connection: type[HTTPConnection]) -> Callable[..., HTTPConnection]:
    """A connection whose timeout is that of the request and its answer, from its beginning to its end."""

    def connected(host: str, *, timeout: float, **options: Any) -> HTTPConnection:
        made = connection(host, timeout=timeout, **options)
        made.response_class = functools.partial(_Answer, by_s=time.monotonic() + timeout)  # type: ignore[assignment]
        return made

    return connected


class _Http(HTTPHandler):
    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_in_time(HTTPConnection), req)


class _Https(HTTPSHandler):
    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_in_time(HTTPSConnection), req)


_OPENER = build_opener(_NoRedirects, _Http, _Https)
_NOT_IN_URLS = re.compile(r"[^!-~]")


def http_address(url: str, kind: str) -> str:
    """``url`` if it is one of HTTP. The message of the error does not have its text, which may be secret."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and not _NOT_IN_URLS.search(url):
            return url
    raise UsageError(f"--push {kind}=… needs an address, such as {kind}=https://host/path?key=value; copy it whole")


def _host_of(url: str) -> str:
    """The name and port in an address, for messages."""
    return urlsplit(url).netloc.rpartition("@")[2]


class HttpPusher(Pusher):
    """Sends sentences by POST. Each has the next number, a repeated one the same."""

    kind = ""
    """The name of the kind in --push KIND=WHERE."""
    passing: frozenset[int] = frozenset()
    """Further statuses after which it is tried again."""

    def __init__(self, where: str, languages: Sequence[str], rules: SubtitleRules) -> None:
        """Raises UsageError: ``where`` is no address of HTTP."""
        self.url = http_address(where, self.kind)
        self._kept = assets() / "push" / hashlib.blake2b(self.url.encode(), digest_size=16).hexdigest()
        self.last = 0
        """Number of the last sentence that arrived there, kept in a file: it goes on after a restart."""
        with contextlib.suppress(OSError, ValueError):
            self.last = int(self._kept.read_text("ascii"))
        super().__init__(f"{self.kind} ({_host_of(where)})", languages, rules)

    def post(self, data: bytes, content: str = "text/plain; charset=utf-8", **query: object) -> None:
        """Send ``data`` and count it. Raises PushError: it has not arrived."""
        asked(self.url, data, content, self.passing, **query)
        self.last += 1
        try:
            self._kept.parent.mkdir(parents=True, exist_ok=True)
            replace_text(self._kept, str(self.last))
        except OSError as error:
            log.warning("the number of the last caption cannot be kept in %s (%s)", self._kept, error.strerror)


def asked(
    url: str,
    data: bytes | None,
    kind: str = "text/plain; charset=utf-8",
    passing: frozenset[int] = frozenset(),
    **query: object,
) -> bytes:
    """The body of the answer to a POST of ``data``, or to a GET.

    Args:
        kind: the content type of ``data``.
        passing: further statuses after which it is tried again.
        query: added to the address.

    Raises:
        PushError: there was no answer, or one that says to try again.
        PushRefusedError: the answer was any other than of success.
    """
    full = url + ("&" if urlsplit(url).query else "?") + urlencode(query) if query else url
    request = Request(full, data, {"Content-Type": kind} if data is not None else {})
    try:
        with _OPENER.open(request, timeout=_ANSWER_S) as answer:
            return bytes(answer.read(_MOST_BYTES))
    except HTTPError as error:
        error.close()
        said = f"{_host_of(url)} answers {error.code} {error.reason[:_REASON]}"
        if error.code in _PASSING | passing:
            after = error.headers.get("Retry-After", "")
            raise PushError(said, float(after) if after.isdecimal() and len(after) < 4 else 0.0) from None
        what = "it is another address now" if 300 <= error.code < 400 else "the address or its key is wrong or too old"
        raise PushRefusedError(f"{said}: {what}; copy it again") from None
    except (OSError, HTTPException) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise PushError(f"{_host_of(url)} does not answer ({str(reason) or type(reason).__name__})") from None
