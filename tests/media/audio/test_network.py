"""Network streams: lists and pages are told apart, what breaks off is connected again, and a limit ends that."""

import base64
import contextlib
import http.server
import itertools
import socket
import socketserver
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import numpy as np
import pytest

from pipeline.core.notices import DeviceBack, DeviceLost, SourceNotice
from pipeline.core.source import CHUNK_SAMPLES
from pipeline.errors import AudioError, UsageError
from pipeline.events import Samples
from pipeline.media.audio import network
from pipeline.media.audio.network import (
    MOST_ATTEMPTS,
    NetworkStream,
    StreamSource,
    check_address,
    is_stream,
    open_stream,
)
from pipeline.media.audio.recording import Recording
from tests.conftest import HANG_S, PHRASES, read_wav

SPEECH = read_wav(PHRASES)[: 6 * 16_000]
# As FFmpeg writes to a pipe: the length is not known.
HEADER = PHRASES.read_bytes()[:40] + b"\xff\xff\xff\xff"


class Web:
    """A web server whose answers are made by functions of how often each path was asked for."""

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[int], bytes]] = {}
        self.asked: list[str] = []
        self.silent = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                outer.asked.append(path)
                if path == "/loop":
                    self.send_response(302)
                    self.send_header("Location", f"/loop?{len(outer.asked)}")
                    self.end_headers()
                    return
                if path == "/shoutcast":
                    self.wfile.write(b"ICY 200 OK\r\nContent-Type: audio/wav\r\n\r\n" + HEADER + SPEECH.tobytes())
                    return
                if path not in outer.answers:
                    self.send_error(404)
                    return
                content = outer.answers[path](outer.asked.count(path))
                self.send_response(200)
                if ".m3u8" in path or ".ts" in path:
                    self.send_header("Content-Length", str(len(content)))
                else:
                    self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(content)
                if path == "/hangs":
                    outer.silent.wait()

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def web() -> Iterator[Web]:
    served = Web()
    yield served
    served.silent.set()
    served.server.shutdown()
    served.server.server_close()


def read_all(source: Any) -> Samples:
    chunks = [np.zeros(0, np.int16)]
    while (chunk := source.read()) is not None:
        chunks.append(chunk)
    return np.concatenate(chunks)


def test_addresses_of_streams_are_known():
    assert all(map(is_stream, ["https://a/b.m3u8", "RTMP://a/live", "rtsp://a", "udp://239.0.0.1:1234"]))
    assert not any(map(is_stream, ["s3://a/b.wav", "a.wav", "-", "C:\\a.wav"]))


MASTER = b"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nnested.m3u8\n"


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("/loop", b"", "redirects without end"),
        ("/nested.m3u8", MASTER, "is a playlist of playlists; give the address of one of these: nested.m3u8"),
        ("/radio.m3u", b"#EXTM3U\nhttp://127.0.0.1:1/a.mp3\n", "is a list of addresses"),
        ("/radio.pls", b"[playlist]\nFile1=http://127.0.0.1:1/a.mp3\n", "is a list of addresses"),
        ("/page", b"<!DOCTYPE html><html></html>", "is a web page"),
    ],
)
def test_what_is_no_stream_is_said_to_be_none(path, content, message, web):
    web.answers[path] = lambda _: content
    with pytest.raises(UsageError, match=message):
        open_stream(web.base + path, 60.0)
    assert len(web.asked) < 15


def test_a_playlist_of_streams_is_accepted(web):
    web.answers = {"/a.m3u8": lambda _: MASTER, "/nested.m3u8": lambda _: b"#EXTM3U\n#EXT-X-TARGETDURATION:2\n"}
    check_address(f"{web.base}/a.m3u8")


def test_what_does_not_answer_is_given_up(web, monkeypatch):
    monkeypatch.setattr(network, "_ANSWER_S", 0.5)
    web.answers["/hangs"] = lambda _: b"RIFF"
    with pytest.raises(AudioError, match=r"gives no audio within .* check the address"):
        open_stream(f"{web.base}/hangs", 60.0)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(AudioError, match="gives no audio within"),  # FFmpeg says "invalid data"
    ):
        open_stream(f"rtsp://127.0.0.1:{silent.getsockname()[1]}/", 60.0)
    with pytest.raises(AudioError, match="404 Not Found"):
        open_stream(f"{web.base}/missing", 60.0)


def test_a_recording_on_the_web_is_a_recording(web, tmp_path):
    write_hls(tmp_path, web)
    recording = open_stream(f"{web.base}/live.m3u8", 60.0)
    assert isinstance(recording, Recording)
    assert recording.duration_s == pytest.approx(len(SPEECH) / 16_000, abs=0.3)
    assert len(read_all(recording)) == pytest.approx(len(SPEECH), abs=8_000)


@pytest.mark.slow
def test_segments_that_come_later_are_read(web, tmp_path):
    lines = write_hls(tmp_path, web)
    whole = "\n".join(lines).encode()
    begun = "\n".join(lines[: lines.index("live0.ts") + 1]).encode()
    web.answers["/live.m3u8"] = lambda count: whole if count > 3 else begun
    source = open_stream(f"{web.base}/live.m3u8", 60.0)
    assert isinstance(source, StreamSource)
    heard = read_all(source)
    assert np.flatnonzero(heard)[-1] == pytest.approx(len(SPEECH), abs=8_000)
    assert len(heard) - len(SPEECH) < 3 * 16_000  # it is not played again


def test_one_variant_of_a_playlist_is_fetched(web, tmp_path):
    for name in ("live", "other"):
        write_hls(tmp_path, web, name)
    entry = b"#EXT-X-STREAM-INF:BANDWIDTH=1\n%s.m3u8\n"
    web.answers["/main.m3u8"] = lambda _: b"#EXTM3U\n" + entry % b"live" + entry % b"other"
    recording = open_stream(f"{web.base}/main.m3u8", 60.0)
    web.asked.clear()  # the first segment of each tells what it is
    assert len(read_all(recording)) == pytest.approx(len(SPEECH), abs=8_000)
    assert set(web.asked) == {"/live1.ts", "/live2.ts", "/live3.ts"}


def write_hls(folder: Path, web: Web, name: str = "live") -> list[str]:
    """The speech as a playlist with segments of 2 s, which ``web`` serves; the playlist's lines."""
    write_speech(folder / f"{name}.m3u8", "hls", hls_time="2", hls_list_size="0")
    for path in folder.iterdir():
        web.answers[f"/{path.name}"] = lambda _, path=path: path.read_bytes()
    return (folder / f"{name}.m3u8").read_text().splitlines()


def write_speech(to: Path | str, container: str, picture_s: int = 0, **options: str) -> None:
    """The speech as AAC, with black pictures for ``picture_s`` seconds."""
    with av.open(str(to), "w", format=container, options=options) as made:
        video = made.add_stream("mpeg1video", rate=25, width=16, height=16) if picture_s else None
        stream = made.add_stream("aac", rate=16_000, layout="mono")
        for begin in range(0, len(SPEECH), 1_024):
            frame = av.AudioFrame.from_ndarray(SPEECH[None, begin : begin + 1_024], format="s16", layout="mono")
            frame.sample_rate, frame.pts = 16_000, begin
            made.mux(stream.encode(frame))
        made.mux(stream.encode(None))
        if video is not None:
            for number in range(picture_s * 25):
                picture = av.VideoFrame(16, 16, "yuv420p")
                picture.pts = number
                made.mux(video.encode(picture))
            made.mux(video.encode(None))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@pytest.mark.libass
def test_rtmp_is_read(monkeypatch):
    monkeypatch.setattr(network, "MOST_ATTEMPTS", 0)
    url = f"rtmp://127.0.0.1:{free_port()}/live/talk"
    command = ["ffmpeg", "-v", "error", "-t", "6", "-i", str(PHRASES), "-c:a", "aac", "-f", "flv", "-listen", "1", url]
    with subprocess.Popen(command) as server:
        source = None
        while source is None and server.poll() is None:
            with contextlib.suppress(AudioError):  # refused: it does not listen yet
                source = open_stream(url, 60.0)
        heard = read_all(source)
    assert np.flatnonzero(heard)[-1] == pytest.approx(len(SPEECH), abs=8_000)


class Camera(socketserver.StreamRequestHandler):
    """An RTSP server of one user whose sound is the speech, as PCM over the same connection, then an end."""

    timeout = 30

    def handle(self) -> None:
        asked: list[str] = self.server.asked  # type: ignore[attr-defined]
        sound = (
            b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\nm=audio 0 RTP/AVP 96\r\na=rtpmap:96 L16/16000/1\r\n"
        )
        while words := self.rfile.readline().split():
            fields = dict(line.split(b": ", 1) for line in iter(lambda: self.rfile.readline().strip(), b""))
            known = fields.get(b"Authorization") == b"Basic " + base64.b64encode(b"user:secret")
            asked += [words[0].decode(), *([fields[b"Transport"].decode()] if b"Transport" in fields else [])]
            body = sound if known and words[0] == b"DESCRIBE" else b""
            self.wfile.write(b"RTSP/1.0 " + (b"200 OK" if known else b'401 No\r\nWWW-Authenticate: Basic realm="x"'))
            self.wfile.write(
                b"\r\nCSeq: %s\r\nSession: 1\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1" % fields[b"CSeq"]
            )
            self.wfile.write(b"\r\nContent-Type: application/sdp\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            if known and words[0] == b"PLAY":
                for number, begin in enumerate(range(0, len(SPEECH), 320)):
                    packet = (
                        struct.pack(">BBHII", 128, 96, number, begin, 1)
                        + SPEECH[begin : begin + 320].astype(">i2").tobytes()
                    )
                    self.wfile.write(struct.pack(">cBH", b"$", 0, len(packet)) + packet)
                return


def test_rtsp_is_read_over_tcp_and_its_password_is_not_told(monkeypatch):
    monkeypatch.setattr(network, "backoff_s", lambda attempt: 0.0)
    monkeypatch.setattr(network, "MOST_ATTEMPTS", 1)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Camera) as server:
        server.daemon_threads = True
        server.asked = asked = list[str]()  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        place = f"127.0.0.1:{server.server_address[1]}/sound"
        with pytest.raises(AudioError, match=rf"^rtsp://{place} cannot be read \(Server returned 401"):
            open_stream(f"rtsp://user:wrong@{place}", 60.0)
        asked.clear()
        source = open_stream(f"rtsp://user:secret@{place}?key=1", 60.0)
        assert isinstance(source, StreamSource)
        notices: list[SourceNotice] = []
        source.listen(notices.append)
        heard = read_all(source)
        server.shutdown()
    assert np.array_equal(heard[: len(SPEECH)], SPEECH)
    assert "RTP/AVP/TCP" in asked[asked.index("SETUP") + 1]
    assert notices == [DeviceLost(len(SPEECH) / 16_000, f"rtsp://{place}", "it ended")]


def test_a_stream_whose_picture_goes_on_without_sound_is_lost(web, tmp_path, monkeypatch):
    write_speech(tmp_path / "film.ts", "mpegts", picture_s=60)
    web.answers["/film"] = lambda _: (tmp_path / "film.ts").read_bytes()
    monkeypatch.setattr(network, "MOST_ATTEMPTS", 0)
    source = open_stream(f"{web.base}/film", 60.0)
    seconds = itertools.count()
    monkeypatch.setattr(network, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    notices: list[SourceNotice] = []
    source.listen(notices.append)  # type: ignore[union-attr]
    read_all(source)
    assert [notice.reason for notice in notices if isinstance(notice, DeviceLost)] == [
        "it broke off (no sound came for 10 s)"
    ]


def test_a_shoutcast_radio_is_read(web):
    source = open_stream(f"{web.base}/shoutcast", 60.0)
    assert np.array_equal(source.read(), SPEECH[:1_600])
    source.close()


class Broken:
    """Stands for a connection: gives chunks, then breaks off or ends."""

    duration_s = None

    made = itertools.count(1)
    time = SimpleNamespace(now_s=0.0)
    closed = False
    stall: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, chunks: int, reason: str | None = "it broke off", sound: int | None = None) -> None:
        self.left, self.reason, self.sound = chunks, reason, sound or next(self.made)

    def read(self) -> Samples | None:
        if self.left:
            self.left -= 1
            self.time.now_s += 0.1
            return np.full(1_600, self.sound, np.int16)
        self.stall()
        if self.reason is not None:
            raise AudioError(self.reason)
        return None

    def close(self) -> None:
        self.closed = True


class Time:
    """A clock that goes on when somebody waits or audio is read."""

    def __init__(self) -> None:
        self.now_s, self.waited = 0.0, list[float]()

    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        self.waited.append(seconds)


def stream(first: Broken, *later: Broken | AudioError) -> SimpleNamespace:
    time, coming, notices = Time(), list(later), list[SourceNotice]()

    def connect() -> Any:
        found = coming.pop(0) if coming else AudioError("nobody answers")
        if isinstance(found, AudioError):
            raise found
        found.time = time
        return found

    first.time = time

    made: Any = NetworkStream("a radio", first, connect, lambda: time.now_s, time.wait)
    made.listen(notices.append)
    return SimpleNamespace(source=made, time=time, notices=notices)


def test_a_stream_that_comes_back_goes_on_after_silence_of_its_absence():
    first = Broken(10)
    found = stream(first, AudioError("refused"), AudioError("refused"), Broken(10))
    first.stall = lambda: setattr(found.time, "now_s", 11.0)
    heard = read_all(found.source)
    lost, back, again = found.notices
    assert (lost, again.device) == (DeviceLost(1.0, "a radio", "it broke off"), "a radio")
    assert isinstance(back, DeviceBack)
    assert back.away_s == pytest.approx(10 + 0.5 + 1 + 2 + 0.1)  # the last for the first chunk
    assert back.at_s == pytest.approx(1 + 10 + 0.5 + 1 + 2)
    ones = np.flatnonzero(heard)
    assert len(ones) == 20 * 1_600
    assert (ones[-1] - ones[0] + 1 - len(ones)) / 16_000 == pytest.approx(back.away_s - 0.1)


def test_the_limit_of_attempts_ends_the_stream_with_what_was_heard(caplog):
    found = stream(Broken(5))
    assert np.count_nonzero(read_all(found.source)) == 5 * 1_600
    assert len(found.time.waited) == MOST_ATTEMPTS
    assert found.time.waited[0] < found.time.waited[-1] <= 5
    assert "a radio is given up after 9 attempts: nobody answers" in caplog.text


def test_a_connection_without_audio_counts_as_an_attempt():
    found = stream(Broken(5), *[Broken(0) for _ in range(2 * MOST_ATTEMPTS)])
    read_all(found.source)
    assert len(found.time.waited) == MOST_ATTEMPTS


def test_a_recording_of_unknown_length_is_not_played_again():
    found = stream(Broken(50, None, 7), Broken(50, None, 7))
    assert np.count_nonzero(read_all(found.source)) == 50 * 1_600
    assert [type(notice) for notice in found.notices] == [DeviceLost]


def test_a_stream_that_has_become_a_recording_has_ended():
    complete = Broken(10)
    complete.duration_s = 60.0
    assert np.count_nonzero(read_all(stream(Broken(10), complete).source)) == 10 * 1_600


class Fading(Broken):
    """Begins with silence."""

    def read(self) -> Samples | None:
        chunk, self.sound = super().read(), next(self.made)
        return chunk


def test_connections_that_begin_with_silence_are_no_recording_that_begins_again():
    first, second = Fading(10), Fading(10)
    first.sound = second.sound = 0
    assert np.count_nonzero(read_all(stream(first, second).source)) == 2 * 9 * 1_600


class Radio:
    """Stands for a server that keeps so many seconds for those who connect, and whose connections break off."""

    def __init__(self, since_s: float, kept_s: float, cuts: list[tuple[float, float]]) -> None:
        """``since_s``: for how long it has been on. ``cuts``: when a connection breaks off, and for how long nobody can connect."""
        self.sound = np.random.default_rng(1).integers(-9_000, 9_000, 16_000 * 300).astype(np.int16)
        self.began_s, self.now_s, self.kept_s, self.cuts = (
            100 - since_s,
            100.0,
            kept_s,
            [(100 + at_s, away_s) for at_s, away_s in cuts],
        )

    def connect(self) -> Any:
        if self.cuts and self.cuts[0][0] <= self.now_s:
            if self.now_s < sum(self.cuts[0]):
                raise AudioError("refused")
            self.cuts.pop(0)
        at = round(max(self.began_s, self.now_s - self.kept_s) * 16_000)

        def read() -> Samples | None:
            nonlocal at
            if self.cuts and self.now_s >= self.cuts[0][0]:
                raise AudioError("it broke off")
            if self.now_s >= 200:
                return None
            if at == round(self.now_s * 16_000):
                self.now_s += 0.1
            at += 1_600
            return self.sound[at - 1_600 : at]

        return SimpleNamespace(read=read, duration_s=None, close=lambda: None)

    def wait(self, seconds: float) -> None:
        self.now_s = round(self.now_s + seconds, 1)


@pytest.mark.parametrize(
    ("since_s", "kept_s", "cuts", "missed_s"),
    [
        (60.0, 0.0, [(5.0 * number, 0.1) for number in range(1, 15)], 14 * 0.5),
        (60.0, 5.0, [(5.0 * number, 0.1) for number in range(1, 15)], 0.0),
        (60.0, 5.0, [(7.0, 3.0), (17.0, 12.0), (50.0, 30.0)], 12.5 - 5 + 32.5 - 5),
        (60.0, 20.0, [(7.0, 3.0), (27.0, 30.0)], 32.5 - 20),
        (0.0, 5.0, [(7.0, 3.0), (17.0, 3.0), (27.0, 3.0)], 0.0),
    ],
)
def test_times_stay_those_of_the_stream_after_any_number_of_cuts(since_s, kept_s, cuts, missed_s):
    radio = Radio(since_s, kept_s, cuts)
    source = NetworkStream("a radio", radio.connect(), radio.connect, lambda: radio.now_s - 100, radio.wait)
    heard = read_all(source)
    begin = round((100 - min(since_s, kept_s)) * 16_000)
    said = radio.sound[begin : begin + len(heard)]
    assert np.array_equal(heard[heard != 0], said[heard != 0])  # each sample at its time
    assert np.count_nonzero(heard == 0) / 16_000 == pytest.approx(missed_s, abs=0.2)
    assert len(heard) / 16_000 == pytest.approx(200 - begin / 16_000, abs=0.2)


def test_a_stream_that_broke_off_is_read_from_a_server_again(web, monkeypatch):
    monkeypatch.setattr(network, "backoff_s", lambda attempt: 0.0)
    parts = {2: SPEECH[:48_000], 3: SPEECH[48_000:]}  # the first request looks what it is
    web.answers["/radio"] = lambda count: HEADER + parts.get(count, SPEECH[:0]).tobytes()
    source = open_stream(f"{web.base}/radio", 60.0)
    assert isinstance(source, StreamSource)
    notices: list[SourceNotice] = []
    source.listen(notices.append)
    heard = read_all(source)
    assert np.array_equal(heard[:48_000], SPEECH[:48_000])
    assert np.array_equal(heard[-48_000:], SPEECH[48_000:])
    assert [type(notice) for notice in notices] == [DeviceLost, DeviceBack, DeviceLost]


def test_a_close_does_not_wait_for_the_server(web):
    web.answers["/hangs"] = lambda _: HEADER + SPEECH.tobytes()
    source = open_stream(f"{web.base}/hangs", 60.0)
    assert source.read() is not None
    source.close()
    read_all(source)


def test_closing_a_stream_closes_its_connection():
    first = Broken(1_000)
    source = StreamSource(stream(first).source, 60.0)
    source.start()
    assert source.read() is not None
    source.close()
    assert source._thread is not None
    source._thread.join(HANG_S)
    assert first.closed
    unread = Broken(1)
    stream(unread).source.close()
    assert unread.closed


def test_a_connection_that_comes_after_the_end_is_closed():
    late, asked, go_on = Broken(5), threading.Event(), threading.Event()

    def connect() -> Any:
        asked.set()
        go_on.wait(HANG_S)
        return late

    first: Any = Broken(1)
    source = StreamSource(NetworkStream("a radio", first, connect, lambda: 0.0, lambda seconds: None), 60.0)
    source.start()
    assert asked.wait(HANG_S)
    closed = threading.Event()
    late.close = closed.set  # type: ignore[method-assign]
    source.close()
    go_on.set()
    assert closed.wait(HANG_S)


def test_silence_is_given_while_nobody_answers():
    time, coming = Time(), threading.Event()
    first: Any = Broken(50)
    first.time = time

    def connect() -> Any:
        time.now_s += 60
        coming.wait(HANG_S)
        raise AudioError("refused")

    source = NetworkStream("a radio", first, connect, lambda: time.now_s, time.wait)
    for _ in range(50):
        assert source.read() is not None
    silence = source.read()
    coming.set()
    source.close()
    assert silence is not None
    assert not silence.any()
    assert len(silence) <= CHUNK_SAMPLES
    assert source.read() is None  # the rest of a minute
