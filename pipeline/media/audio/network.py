"""Network streams that FFmpeg reads (HLS, RTMP, RTSP, HTTP and others): connected again when they break off."""

from __future__ import annotations

import http.client
import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import urljoin, urlsplit

import av
import numpy as np
from av.container import InputContainer
from av.packet import Packet
from av.stream import Discard

from ...core import CHUNK_SAMPLES, SAMPLE_RATE, Address, DeviceBack, DeviceLost, Samples, SourceNotice
from ...errors import AudioError, UsageError
from .capture import backoff_s
from .recording import Recording
from .spool import SpooledSource
from .timeline import LOOKED_AT, place, silence_due
from .tracks import open_input

log = logging.getLogger(__name__)

SCHEMES = frozenset({"http", "https", "rtmp", "rtmps", "rtsp", "rtsps", "rtp", "udp", "tcp", "tls"})
# A server that says nothing for so long does not answer, or has stopped.
_ANSWER_S = 10.0
# Connections in a row without audio before a stream is given up: about half a minute, and the time they take.
MOST_ATTEMPTS = 9
# What a server has kept for those who connect comes within this time.
_SETTLING = SAMPLE_RATE
_POLL_S = 0.1
_LIST_BYTES = 1 << 16


def is_stream(text: str) -> bool:
    """Whether a text is the address of a stream that may be live."""
    scheme, colon, _ = text.partition("://")
    return bool(colon) and scheme.lower() in SCHEMES


def open_stream(
    url: str, limit_s: float, *, language: str | None = None, track: int | None = None
) -> StreamSource | Recording:
    """Connect to a stream: a source that does not wait for its reader or, if it has a known length, a recording.

    Args:
        limit_s: the most audio that is kept until it is read, in seconds.
        language, track: see ``Recording``.
    """
    check_address(url)
    connect = partial(_Connection, url, language=language, track=track)
    began_s = time.monotonic()  # FFmpeg may take some seconds of sound to know what it is
    first = connect()
    if first.duration_s is not None:
        return first
    return StreamSource(NetworkStream(first.path, first, connect, lambda: time.monotonic() - began_s), limit_s)


def check_address(url: str) -> None:
    """Raise UsageError for web addresses of which FFmpeg does not say what is wrong."""
    shown = _without_secrets(url)
    try:
        text = _beginning(url)
        if "#EXT-X-STREAM-INF" in text:
            entries = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
            if entries and "#EXT-X-STREAM-INF" in _beginning(urljoin(url, entries[0].strip())):
                raise UsageError(
                    f"{shown} is a playlist of playlists; give the address of one of these: {', '.join(entries[:3])}"
                )
    except urllib.error.HTTPError as error:
        if 300 <= error.code < 400:
            raise UsageError(f"{shown} redirects without end; give the address of the stream itself") from None
        return  # FFmpeg reports it
    except (OSError, ValueError, http.client.HTTPException):  # the last of Shoutcast, which FFmpeg understands
        return
    if text.lstrip().lower().startswith(("<!doctype", "<html")):
        raise UsageError(
            f"{shown} is a web page; give the address of the stream in it, such as one that ends with .m3u8"
        )
    if text.startswith("[playlist]") or (text.startswith("#EXTM3U") and "#EXT-X-" not in text):
        raise UsageError(f"{shown} is a list of addresses; give one of them")


def _without_secrets(url: str) -> Address:
    """``url`` for messages and files, without a password and the parameters, which may be a key."""
    scheme, colon, address = url.partition("?")[0].partition("://")
    host, slash, path = address.partition("/")
    return Address(scheme + colon + host.rpartition("@")[2] + slash + path)


def _beginning(url: str) -> str:
    """The beginning of a web address's content if it is text that may be a list or a page."""
    if urlsplit(url).scheme.lower() not in ("http", "https"):
        return ""
    with urllib.request.urlopen(url, timeout=_ANSWER_S) as answer:
        head: bytes = answer.read(16)
        if not head.lstrip().lower().startswith((b"#extm3u", b"[playlist]", b"<!doctype", b"<html")):
            return ""
        body: bytes = answer.read(_LIST_BYTES)
        return (head + body).decode("utf-8", "replace")


class _Connection(Recording):
    """One connection to a stream. It is read once, and ends when the network fails."""

    path: Address
    _ADVICE = "check the address, and whether the stream is on"

    def __init__(self, url: str, *, language: str | None, track: int | None) -> None:
        self._url = url
        super().__init__(_without_secrets(url), language=language, track=track)
        if self._container.format.name == "hls":  # else every variant of a playlist would be fetched
            for other in self._container.streams:
                if other.index != self._stream.index:
                    other.discard = Discard.all

    def _open_container(self) -> InputContainer:
        # RTSP over TCP: datagrams may be lost, or kept out by a firewall.
        how = {"timeout": (_ANSWER_S, _ANSWER_S), "options": {"rtsp_flags": "prefer_tcp"}}
        began_s, pool = time.monotonic(), ThreadPoolExecutor(1, "opening")  # signals do not interrupt FFmpeg
        try:
            return pool.submit(open_input, self._url, **how).result()
        except (av.error.FFmpegError, OSError) as error:
            late = time.monotonic() - began_s > _ANSWER_S
            what = f"gives no audio within {_ANSWER_S:.0f} s" if late else f"cannot be read ({error.strerror})"
            raise AudioError(f"{self.path} {what}; {self._ADVICE}") from None
        finally:
            pool.shutdown(wait=False)

    @property
    def read_once(self) -> bool:
        return True

    def _packets(self) -> Iterator[Packet[Any]]:
        """The packets of the audio. Where the picture goes on without it, it has stopped."""
        heard_s = time.monotonic()
        for packet in self._container.demux():
            if packet.stream.index == self._stream.index:
                yield packet
                heard_s = time.monotonic()
            elif time.monotonic() - heard_s > _ANSWER_S:
                raise AudioError(f"{self.path} broke off (no sound came for {_ANSWER_S:.0f} s)")

    def _note_damage(self, error: av.error.FFmpegError, damaged: int) -> None:
        if not isinstance(error, av.error.InvalidDataError):
            silent = isinstance(error, av.error.ExitError)
            reason = f"nothing came for {_ANSWER_S:.0f} s" if silent else error.strerror
            raise AudioError(f"{self.path} broke off ({reason})")
        super()._note_damage(error, damaged)


class NetworkStream:
    """A live stream, over as many connections as it takes. Silence takes the place of the time that no connection delivers."""

    duration_s: float | None = None
    overflows = 0
    backlog_s = 0.0

    def __init__(
        self,
        name: str,
        first: Recording,
        connect: Callable[[], Recording],
        clock: Callable[[], float],
        wait: Callable[[float], object] | None = None,
    ) -> None:
        """``connect``: opens another connection. ``clock``: seconds since the first was asked for. ``wait``: sleeps so long."""
        self.name = name
        self._connection: Recording | None = first
        self._opening: Future[Recording] | None = None
        self._closed, self._reading = threading.Event(), threading.Lock()
        self._connect, self._wait = connect, wait or self._closed.wait
        self._notify: Callable[[SourceNotice], None] = lambda notice: None
        self._now: Callable[[], int] = lambda: round(clock() * SAMPLE_RATE)  # samples since the stream began
        self._delivered = 0  # samples
        self._recent: Samples = np.zeros(0, np.int16)  # the end of them
        self._first_sound = self._recent  # of the latest connection
        self._reason = ""  # why there is no connection
        self._audio = self._deliver()

    def listen(self, notify: Callable[[SourceNotice], None]) -> None:
        """Have ``notify`` called when the stream breaks off and comes back."""
        self._notify = notify

    def read(self) -> Samples | None:
        """The next audio, or silence in its place; None if the stream has ended or is given up."""
        with self._reading:
            chunk = next(self._audio, None)
            if chunk is not None:
                self._delivered += len(chunk)
                self._recent = np.concatenate([self._recent, chunk])[-LOOKED_AT:]
        if self._closed.is_set():
            self._release()
        return chunk

    def close(self) -> None:
        """Stop reading, and close the connection. A read in progress ends within ten seconds, and closes it then."""
        self._closed.set()
        self._release()

    def _release(self) -> None:
        """Close the connection unless a read is in progress."""
        if self._reading.acquire(blocking=False):
            try:
                if self._connection is not None:
                    self._connection.close()
                    self._connection = None
                if self._opening is not None:
                    self._opening.add_done_callback(_close)
            finally:
                self._reading.release()

    def _deliver(self) -> Iterator[Samples]:
        """The audio of one connection after another, each at its time, in chunks of about ``CHUNK_SAMPLES``."""
        chunks, heard_at, lost_at, lead = self._chunks(), 0, 0, -SAMPLE_RATE // 2
        while True:
            for chunk in chunks:
                heard_at = self._now()
                if not lost_at:
                    lead = max(lead, self._delivered + len(chunk) - heard_at)
                yield chunk
            if self._closed.is_set():
                return
            lost_at, heard = self._delivered, self._recent
            self._notify(DeviceLost(lost_at / SAMPLE_RATE, self.name, self._reason))
            for attempt in range(MOST_ATTEMPTS):
                yield from self._reconnect(attempt, lead)
                chunks = self._chunks()
                start, came_at = self._beginning(chunks)
                if self._closed.is_set():
                    return
                position, new = place(
                    start, heard, lost_at, self._delivered, came_at=came_at, now=self._now(), lead=lead
                )
                if len(new) or self._connection is not None:
                    break
            else:
                log.warning("%s is given up after %d attempts: %s", self.name, MOST_ATTEMPTS, self._reason)
                return
            self._notify(DeviceBack(position / SAMPLE_RATE, self.name, (came_at - heard_at) / SAMPLE_RATE))
            heard_at, new = self._now(), np.concatenate([np.zeros(position - self._delivered, np.int16), new])
            yield from self._cut(new)

    def _cut(self, samples: Samples) -> Iterator[Samples]:
        """The samples [n] in chunks, until the stream is closed."""
        for begin in range(0, len(samples), CHUNK_SAMPLES):
            if self._closed.is_set():
                return
            yield samples[begin : begin + CHUNK_SAMPLES]

    def _chunks(self) -> Iterator[Samples]:
        """The audio of the connection until it breaks off. One that begins as that before is a recording: the stream is over."""
        if (connection := self._connection) is None:
            return
        silent = True
        try:
            while not self._closed.is_set() and (chunk := connection.read()) is not None:
                if silent and chunk.any():
                    before, self._first_sound, silent = self._first_sound, chunk, False
                    if np.array_equal(before, chunk):
                        self._closed.set()
                        break
                yield chunk
            self._reason = "it ended"
        except AudioError as error:
            self._reason = self._said(error)
        self._connection = None
        connection.close()

    def _beginning(self, chunks: Iterator[Samples]) -> tuple[Samples, int]:
        """The first second of a connection, with all that comes at once, and when it began to come."""
        start, came_at = [np.zeros(0, np.int16)], 0
        for chunk in chunks:
            came_at = came_at or self._now()
            start.append(chunk)
            if self._now() - came_at >= _SETTLING:
                break
        return np.concatenate(start), came_at

    def _reconnect(self, attempt: int, lead: int) -> Iterator[Samples]:
        """Try to connect, and give silence meanwhile. What has a length by now, as a completed playlist has, has ended."""
        pool = ThreadPoolExecutor(1, "connecting")
        pool.submit(self._wait, backoff_s(attempt))
        self._opening = pool.submit(self._connect)
        pool.shutdown(wait=False)
        while not futures.wait([self._opening], _POLL_S).done:
            if self._closed.is_set():
                return
            yield from self._cut(np.zeros(silence_due(self._delivered, self._now(), lead), np.int16))
        opened, self._opening = self._opening, None
        try:
            self._connection = opened.result()
            if self._connection.duration_s is not None:
                self._closed.set()
        except (AudioError, UsageError) as error:
            self._reason = self._said(error)

    def _said(self, error: Exception) -> str:
        """The message of an error, without the name, which stands before it already."""
        return str(error).replace(f"{self.name} ", "it ", 1)


def _close(opened: Future[Recording]) -> None:
    if opened.exception() is None:
        opened.result().close()


class StreamSource(SpooledSource):
    """A network stream, read on a thread of its own. Audio that nobody has read yet is kept."""

    def close(self) -> None:
        """Close the stream. Reads deliver the audio received before, then None; FFmpeg is not waited for."""
        super().close()
        self.end()
