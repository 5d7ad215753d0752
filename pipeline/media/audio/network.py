"""Network streams that FFmpeg reads (HLS, RTMP, RTSP, HTTP and others): connected again when they break off."""

from __future__ import annotations

import http.client
import logging
import threading
import time
import urllib.error
import urllib.request
from collections import deque
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
from .overlap import LOOKED_AT, overlap
from .recording import Recording
from .spool import SpooledSource
from .tracks import open_input

log = logging.getLogger(__name__)

SCHEMES = frozenset({"http", "https", "rtmp", "rtmps", "rtsp", "rtsps", "rtp", "udp", "tcp", "tls"})
# A server that says nothing for so long does not answer, or has stopped.
_ANSWER_S = 10.0
# Connections in a row without audio before a stream is given up: about half a minute, and the time they take.
MOST_ATTEMPTS = 9
# A server may keep so much for those who connect (Icecast: 64 KB), which comes within the other time.
_HELD_S, _SETTLING_S = 5.0, 1.0
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
    return StreamSource(NetworkStream(first.path, first, connect, began_s=began_s), limit_s)


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
    scheme, colon, rest = url.partition("?")[0].partition("://")
    host, slash, path = rest.partition("/")
    return Address(scheme + colon + host.rpartition("@")[2] + slash + path)


def _beginning(url: str) -> str:
    """The beginning of a web address's content if it is text that may be a list or a page."""
    if urlsplit(url).scheme.lower() not in ("http", "https"):
        return ""
    with urllib.request.urlopen(url, timeout=_ANSWER_S) as answer:
        head: bytes = answer.read(16)
        if not head.lstrip().lower().startswith((b"#extm3u", b"[playlist]", b"<!doctype", b"<html")):
            return ""
        rest: bytes = answer.read(_LIST_BYTES)
        return (head + rest).decode("utf-8", "replace")


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
        """Those of the audio. Where the picture goes on without it, it has stopped."""
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
    """A live stream, over as many connections as it takes. Silence takes the place of the time that no connection delivers.

    A server may begin with the past seconds, so that what was missed comes after all. So silence is given only once the
    stream has been away for longer, and of a new connection what was heard already is left out.
    """

    duration_s: float | None = None
    overflows = 0
    backlog_s = 0.0

    def __init__(
        self,
        name: str,
        first: Recording,
        connect: Callable[[], Recording],
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] | None = None,
        began_s: float | None = None,
    ) -> None:
        """``connect``: opens another connection. ``wait``: sleeps for so many seconds, or until the stream is closed.

        ``began_s``: when the first connection was asked for; None: now.
        """
        self.name = name
        self._connection: Recording | None = first
        self._connect, self._clock = connect, clock
        self._closed, self._reading = threading.Event(), threading.Lock()
        self._wait = wait or self._closed.wait
        self._notify: Callable[[SourceNotice], None] = lambda notice: None
        self._began_s = self._heard_at_s = clock() if began_s is None else began_s
        self._delivered = 0  # samples
        self._lead = -SAMPLE_RATE // 2  # samples that the first connection gave before their time, at most
        self._ready: Samples = np.zeros(0, np.int16)  # what is delivered before more is read
        self._heard: Samples = self._ready  # the end of what was delivered before the stream broke off
        self._recent: deque[Samples] = deque(maxlen=LOOKED_AT // CHUNK_SAMPLES)
        self._lost_at = 0  # where it broke off, in samples delivered
        self._beginning: list[Samples] | None = None  # of a connection whose place in time is not known yet
        self._began_again_s = 0.0
        self._first_sound: Samples | None = None  # of a connection
        self._fresh = True  # the connection has given none yet
        self._attempts = 0
        self._opening: Future[Recording] | None = None
        self._reason = ""

    def listen(self, notify: Callable[[SourceNotice], None]) -> None:
        """See ``LiveSource``."""
        self._notify = notify

    def read(self) -> Samples | None:
        """The next audio, or silence in its place; None if the stream has ended or is given up."""
        with self._reading:
            found = self._next()
        if self._closed.is_set():
            self._release()
        return found

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

    def _next(self) -> Samples | None:
        while not self._closed.is_set():
            if len(self._ready):
                chunk, self._ready = self._ready[:CHUNK_SAMPLES], self._ready[CHUNK_SAMPLES:]
                return self._counted(chunk)
            if self._connection is None:
                if not self._connected_again():
                    return None
                continue
            try:
                found, self._reason = self._connection.read(), "it ended"
            except AudioError as error:
                found, self._reason = None, self._said(error)
            if found is None:
                self._lose()
            elif self._begins_again(found):
                return None
            elif self._beginning is not None:
                self._began_again_s = self._began_again_s if self._beginning else self._clock()
                self._beginning.append(found)
                if self._clock() - self._began_again_s >= _SETTLING_S:
                    self._settle()
            else:
                self._heard_at_s = self._clock()
                if not self._lost_at:
                    self._lead = max(self._lead, self._delivered + len(found) - self._passed)
                return self._counted(found)
        return None

    @property
    def _passed(self) -> int:
        """In samples."""
        return round((self._clock() - self._began_s) * SAMPLE_RATE)

    def _said(self, error: Exception) -> str:
        """The message of an error, without the name, which stands before it already."""
        return str(error).replace(f"{self.name} ", "it ", 1)

    def _counted(self, samples: Samples) -> Samples:
        self._delivered += len(samples)
        self._recent.append(samples)
        return samples

    def _begins_again(self, chunk: Samples) -> bool:
        """Whether a connection begins as the one before: with a recording, which would be the same to its end."""
        if self._fresh and chunk.any():
            before, self._first_sound, self._fresh = self._first_sound, chunk, False
            return before is not None and np.array_equal(before, chunk)
        return False

    def _lose(self) -> None:
        assert self._connection is not None
        self._settle()
        self._connection.close()
        self._connection = self._beginning = None
        if not self._attempts:  # else it was away already
            self._lost_at = self._delivered + len(self._ready)
            self._heard = np.concatenate([*self._recent, self._ready])[-LOOKED_AT:]
            self._notify(DeviceLost(self._lost_at / SAMPLE_RATE, self.name, self._reason))

    def _connected_again(self) -> bool:
        """Try to connect, and give silence meanwhile; False if that has been tried often enough."""
        if self._opening is None:
            if self._attempts == MOST_ATTEMPTS:
                log.warning("%s is given up after %d attempts: %s", self.name, self._attempts, self._reason)
                return False
            pool = ThreadPoolExecutor(1, "connecting")
            pool.submit(self._wait, backoff_s(self._attempts))
            self._opening = pool.submit(self._connect)
            pool.shutdown(wait=False)
            self._attempts += 1
        if not futures.wait([self._opening], _POLL_S).done:
            held = max(0, round(_HELD_S * SAMPLE_RATE) - self._lead)
            self._ready = np.zeros(max(0, self._passed - held - self._delivered), np.int16)
            return True
        opened, self._opening = self._opening, None
        try:
            self._connection, self._beginning, self._fresh = opened.result(), [], True
        except (AudioError, UsageError) as error:
            self._reason = self._said(error)
        # With a length, as that of a playlist has which has been completed, the stream is now a recording.
        return self._connection is None or self._connection.duration_s is None

    def _settle(self) -> None:
        """Find the place of the beginning of another connection in the time of the stream."""
        chunks, self._beginning = self._beginning, None
        if not chunks:
            return
        start = np.concatenate(chunks)
        kept = max(0, len(start) - round((self._clock() - self._began_again_s) * SAMPLE_RATE))  # by the server
        known = overlap(self._heard, start)
        if 0 < known <= kept + SAMPLE_RATE // 2:
            known, missing = known + self._delivered - self._lost_at, 0
        else:
            known, missing = 0, max(0, self._passed + min(self._lead, kept) - self._delivered - len(start))
        self._ready = np.concatenate([np.zeros(missing, np.int16), start[known:]])
        if len(self._ready):
            self._attempts, away_s, self._heard_at_s = 0, self._began_again_s - self._heard_at_s, self._clock()
            self._notify(DeviceBack((self._delivered + missing) / SAMPLE_RATE, self.name, away_s))


def _close(opened: Future[Recording]) -> None:
    if opened.exception() is None:
        opened.result().close()


class StreamSource(SpooledSource):
    """A network stream, read on a thread of its own. Audio that nobody has read yet is kept."""

    def close(self) -> None:
        """Close the stream. Reads deliver the audio received before, then None; FFmpeg is not waited for."""
        super().close()
        self.end()
