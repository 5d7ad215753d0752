"""Recordings of any container, rate and channels give the same samples."""

import io
import itertools
import os
import resource
import socket
import sys
import threading
import wave
from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

import av
import numpy as np
import pytest
from av.audio.frame import AudioFrame

from pipeline.core.source import CHUNK_SAMPLES, AudioSource
from pipeline.errors import AudioError, UsageError
from pipeline.events import Samples
from pipeline.media.audio.pcm import PcmStream
from pipeline.media.audio.recording import Recording, _silence
from tests.conftest import HANG_S, PHRASES, read_wav
from tests.media.audio.films import likeness


def read_all(source: AudioSource) -> Samples:
    chunks = []
    while (chunk := source.read()) is not None:
        assert chunk.dtype == np.int16
        assert 1 <= len(chunk) <= CHUNK_SAMPLES
        chunks.append(chunk)
    return np.concatenate(chunks)


def encode(path: Path, codec: str, rate: int, layout: str) -> Path:
    """The phrases in another format."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.layout = layout
        resampler = av.AudioResampler(
            format=stream.format, layout=layout, rate=rate, frame_size=stream.codec_context.frame_size
        )
        frame = av.AudioFrame.from_ndarray(read_wav(PHRASES)[None], format="s16", layout="mono")
        frame.sample_rate = 16_000
        for part in (*resampler.resample(frame), *resampler.resample(None)):
            container.mux(stream.encode(part))
        container.mux(stream.encode(None))
    return path


def test_a_16_khz_wav_comes_out_sample_for_sample():
    source = Recording(PHRASES)
    samples = read_wav(PHRASES)
    assert source.duration_s == pytest.approx(len(samples) / 16_000, abs=0.01)
    assert np.array_equal(read_all(source), samples)


@pytest.mark.parametrize(
    ("name", "codec", "rate", "layout"),
    [
        ("a.mp3", "libmp3lame", 44_100, "stereo"),
        ("a.flac", "flac", 48_000, "mono"),
        ("a.m4a", "aac", 48_000, "stereo"),
        ("a.ogg", "libopus", 48_000, "mono"),
        ("a.wav", "pcm_s16le", 8_000, "mono"),
        ("a.webm", "libopus", 48_000, "stereo"),
    ],
)
def test_other_formats_are_resampled(name, codec, rate, layout, tmp_path):
    original = read_wav(PHRASES).astype(float)
    found = read_all(Recording(encode(tmp_path / name, codec, rate, layout))).astype(float)
    assert abs(len(found) - len(original)) < 16_000 * 0.15
    # The same speech up to the codec's delay, so compare at the best shift.
    size = min(len(original), len(found)) + 4096
    correlation = np.fft.irfft(np.fft.rfft(found, size) * np.conj(np.fft.rfft(original, size)), size)
    likeness = correlation.max() / np.sqrt((original**2).sum() * (found**2).sum())
    assert likeness > (0.85 if rate == 8_000 else 0.95)


@pytest.mark.slow
def test_a_recording_concatenated_from_other_formats_is_read_whole(tmp_path):
    parts = [("a.mp3", 44_100, "stereo"), ("b.mp3", 22_050, "mono")]
    data = b"".join(encode(tmp_path / name, "libmp3lame", rate, layout).read_bytes() for name, rate, layout in parts)
    (tmp_path / "joined.mp3").write_bytes(data)
    found = read_all(Recording(tmp_path / "joined.mp3"))
    assert len(found) == pytest.approx(2 * len(read_wav(PHRASES)), rel=0.02)


def test_samples_keep_the_times_of_the_file(tmp_path):
    said = read_wav(PHRASES)[: 16_000 * 4]
    with av.open(str(tmp_path / "late.mkv"), "w") as container:
        picture = container.add_stream("ffv1", rate=1, width=16, height=16, pix_fmt="yuv420p")
        sound = container.add_stream("pcm_s16le", rate=16_000, layout="mono")
        for second in range(12):
            frame = av.VideoFrame(16, 16, "yuv420p")
            frame.pts = second
            container.mux(picture.encode(frame))
        for start in range(0, len(said), 1_600):
            part = av.AudioFrame.from_ndarray(said[None, start : start + 1_600], format="s16", layout="mono")
            part.sample_rate, part.time_base = 16_000, Fraction(1, 16_000)
            # The sound begins after five seconds and has a gap of two seconds in the middle.
            part.pts = start + 16_000 * (5 if start < 32_000 else 7)
            container.mux(sound.encode(part))
        for stream in (picture, sound):
            container.mux(stream.encode(None))
    silence = np.zeros(16_000, np.int16)
    expected = np.concatenate([*[silence] * 5, said[:32_000], *[silence] * 2, said[32_000:]])
    found = read_all(Recording(tmp_path / "late.mkv"))
    assert len(found) == len(expected)
    assert (found == expected).all()


def test_without_a_duration_an_implausible_timestamp_makes_no_gap(tmp_path):
    """Browsers record without a duration. A damaged timestamp must not become days of silence."""
    said = read_wav(PHRASES)[: 16_000 * 2]
    with av.open(str(tmp_path / "live.webm"), "w", format="webm", options={"live": "1"}) as container:
        sound = container.add_stream("libopus", rate=48_000, layout="mono")
        for start in range(0, len(said), 320):
            part = av.AudioFrame.from_ndarray(
                np.repeat(said[start : start + 320], 3)[None], format="s16", layout="mono"
            )
            part.sample_rate, part.time_base, part.pts = 48_000, Fraction(1, 48_000), 3 * start
            for packet in sound.encode(part):
                if start >= 16_000:
                    packet.pts = packet.dts = packet.pts + int(20 * 86_400 / packet.time_base)
                container.mux(packet)
    source = Recording(tmp_path / "live.webm")
    assert source.duration_s is None
    chunks = 0
    while source.read() is not None:
        chunks += 1
        assert chunks < 100
    assert 15 < chunks < 25


def many_channels(path: Path, channels: Samples) -> Path:
    """A WAV file of unnamed channels, [channels, n]."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(len(channels))
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(channels.T.tobytes())
    return path


def test_unnamed_channels_are_averaged_without_the_silent_ones(tmp_path):
    said = read_wav(PHRASES)[:16_000]
    channels = np.zeros((18, len(said)), np.int16)
    channels[3], channels[17] = said, said
    assert (read_all(Recording(many_channels(tmp_path / "mixer.wav", channels))) == said).all()


def test_planes_of_many_channels_are_read(tmp_path):
    said = read_wav(PHRASES)[: 16_000 * 3]
    path = tmp_path / "mixer.ogg"
    with av.open(str(path), "w") as container:
        sound = container.add_stream("libopus", rate=48_000, layout="18 channels", options={"mapping_family": "255"})
        channels = np.zeros((3 * len(said), 18), np.int16)
        channels[:, 17] = np.repeat(said, 3)
        frame = av.AudioFrame.from_ndarray(channels.reshape(1, -1), format="s16", layout="18 channels")
        frame.sample_rate = 48_000
        container.mux([*sound.encode(frame), *sound.encode(None)])
    alike, gain_db, _ = likeness(read_all(Recording(path)), said)
    assert alike > 0.95
    assert abs(gain_db) < 1


def test_more_channels_than_can_be_resampled_are_refused_with_advice(tmp_path):
    path = many_channels(tmp_path / "wall.wav", np.zeros((70, 1_000), np.int16))
    with pytest.raises(AudioError, match="cannot be resampled .*70 channels.*; give a recording"):
        read_all(Recording(path))


def test_the_error_for_an_unsupported_rate_names_the_file(tmp_path):
    path = tmp_path / "fast.wav"
    data = bytearray(PHRASES.read_bytes()[:8_000])
    data[24:28] = (2**31 - 1).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(AudioError, match=r"fast\.wav has audio that cannot be resampled"):
        read_all(Recording(path))


@pytest.mark.parametrize("tracks", [1, 2])
@pytest.mark.parametrize("rate", [1, 3_999, 384_001])
def test_rates_at_which_nobody_records_are_refused(rate, tracks, tmp_path):
    """At 1 Hz, a file of 4 kB was an hour of audio in one piece."""
    with av.open(str(tmp_path / "a.mka"), "w") as container:
        streams = [container.add_stream("pcm_s16le", rate=rate, layout="mono") for _ in range(tracks)]
        for stream in streams:
            frame = AudioFrame.from_ndarray(np.ones((1, 2_000), np.int16), "s16", "mono")
            frame.sample_rate = rate
            container.mux([*stream.encode(frame), *stream.encode(None)])
    with pytest.raises(AudioError, match=f"cannot be resampled .*{rate} Hz.*; give a recording of 4000 to 384000 Hz"):
        read_all(Recording(tmp_path / "a.mka"))


@pytest.mark.skipif(sys.platform == "win32", reason="its file names have no colons")
def test_a_file_name_that_looks_like_a_protocol_is_opened_as_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("2024-05-01T10:30:00.wav").write_bytes(PHRASES.read_bytes())
    assert len(read_all(Recording(Path("2024-05-01T10:30:00.wav")))) == len(read_wav(PHRASES))


def test_reading_stops_when_closed():
    source = Recording(PHRASES)
    assert source.read() is not None
    source.close()
    assert source.read() is None


def test_the_errors_for_files_that_are_no_recordings(tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        Recording(tmp_path / "none.wav")
    with pytest.raises(UsageError, match="is a folder"):
        Recording(tmp_path)
    with pytest.raises(AudioError, match="name too long"):
        Recording(tmp_path / ("x" * 300 + ".wav"))
    (tmp_path / "text.wav").write_text("this is not audio" * 100)
    with pytest.raises(AudioError, match="not audio that can be read"):
        Recording(tmp_path / "text.wav")
    (tmp_path / "empty.wav").write_bytes(b"")
    with pytest.raises(AudioError, match="not audio that can be read"):
        Recording(tmp_path / "empty.wav")


def test_a_recording_without_samples_is_an_error(tmp_path):
    path = tmp_path / "header.wav"
    path.write_bytes(PHRASES.read_bytes()[:40] + bytes(4))
    with pytest.raises(AudioError, match="holds no audio"):
        Recording(path).read()


def test_a_video_without_sound_is_an_error(tmp_path):
    path = tmp_path / "silent.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width = stream.height = 64
        for _ in range(3):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8))))
        container.mux(stream.encode(None))
    with pytest.raises(AudioError, match="no audio stream"):
        Recording(path)


def test_a_truncated_recording_is_read_up_to_its_end(tmp_path):
    data = encode(tmp_path / "a.mp3", "libmp3lame", 44_100, "stereo").read_bytes()
    (tmp_path / "cut.mp3").write_bytes(data[: len(data) // 2])
    found = read_all(Recording(tmp_path / "cut.mp3"))
    assert len(found) == pytest.approx(len(read_wav(PHRASES)) / 2, rel=0.1)


def test_damage_is_told_once_and_ends_the_reading_after_a_thousand_packets(caplog):
    recording, error = Recording(PHRASES), av.error.InvalidDataError(1, "Invalid data")
    for damaged in range(1, 1_001):
        recording._note_damage(error, damaged)
    assert (recording.damage, len(caplog.records)) == (["damaged in places"], 1)
    with pytest.raises(AudioError, match="too damaged to continue"):
        recording._note_damage(error, 1_001)


@pytest.mark.parametrize("count", [0, 1, 1_600, 4_000])
def test_a_gap_has_its_length_in_chunks(count):
    chunks = list(_silence(count))
    assert sum(map(len, chunks)) == count
    assert max(map(len, chunks), default=0) <= CHUNK_SAMPLES


@pytest.mark.parametrize(("name", "codec"), [("a.ts", "mp2"), ("a.opus", "libopus")])
def test_audio_after_damage_is_read(name, codec, tmp_path):
    data = bytearray(encode(tmp_path / name, codec, 48_000, "mono").read_bytes())
    whole = read_all(Recording(tmp_path / name))
    (tmp_path / name).write_bytes(data[: len(data) // 4] + bytes(len(data) // 4) + data[len(data) // 2 :])
    found = read_all(Recording(tmp_path / name))
    last = 16_000 * 3
    assert len(found) > len(whole) * 0.7
    assert np.corrcoef(found[-last:], whole[-last:])[0, 1] > 0.99


@pytest.mark.slow
def test_a_named_pipe_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.mp3")
    path = encode(tmp_path / "a.mp3", "libmp3lame", 44_100, "stereo")
    threading.Thread(target=(tmp_path / "pipe.mp3").write_bytes, args=[path.read_bytes()], daemon=True).start()
    piped, whole = Recording(tmp_path / "pipe.mp3"), Recording(path)
    assert (piped.read_once, whole.read_once) == (True, False)
    assert np.array_equal(read_all(piped), read_all(whole))


def test_close_ends_the_read_of_a_named_pipe_without_data(tmp_path):
    path = tmp_path / "pipe.wav"
    os.mkfifo(path)
    data = encode(tmp_path / "a.wav", "pcm_s16le", 16_000, "mono").read_bytes()[:400_000]
    held = threading.Event()

    def write() -> None:
        with suppress(BrokenPipeError), path.open("wb") as stream:
            stream.write(data)
            held.wait()

    threading.Thread(target=write, daemon=True).start()
    source = Recording(path)
    first = source.read()
    source.close()
    assert source.read() is None
    # close() ends a read in progress: FFmpeg waits for no more data.
    rest: list[Samples] = []
    inside = threading.Thread(target=lambda: rest.extend(source._chunks), daemon=True)
    inside.start()
    inside.join(timeout=HANG_S)
    assert not inside.is_alive()
    held.set()
    assert first is not None
    samples = np.concatenate([first, *rest])
    assert np.array_equal(samples, read_wav(PHRASES)[: len(samples)])


def piped(data: bytes, sizes: Iterable[int] = ()) -> BinaryIO:
    """The read end of a pipe. A thread writes ``data`` to it, first in pieces of ``sizes``, then the rest."""
    reading, writing = os.pipe()

    def write() -> None:
        rest = data
        with suppress(BrokenPipeError), os.fdopen(writing, "wb", buffering=0) as stream:
            for size in sizes:
                stream.write(rest[:size])
                rest = rest[size:]
            while rest:
                rest = rest[stream.write(rest) :]

    threading.Thread(target=write, daemon=True).start()
    return os.fdopen(reading, "rb")


def test_raw_pcm_is_read_unchanged():
    samples = read_wav(PHRASES)
    assert np.array_equal(read_all(PcmStream(piped(samples.tobytes()))), samples)


def test_raw_pcm_is_read_from_any_descriptor():
    samples = read_wav(PHRASES)[:5000]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2000)), hard))
    try:
        with piped(samples.tobytes()) as stream:
            high = os.dup2(stream.fileno(), 1500)  # select.select fails above 1,023
        with os.fdopen(high, "rb") as moved:
            assert np.array_equal(read_all(PcmStream(moved)), samples)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("name", "codec", "kind"),
    [
        ("a.mp3", "libmp3lame", "MP3"),
        ("a.opus", "libopus", "Ogg"),
        ("a.flac", "flac", "FLAC"),
        ("a.webm", "libopus", "WebM"),
    ],
)
def test_a_container_format_instead_of_raw_pcm_is_refused(name, codec, kind, tmp_path):
    data = encode(tmp_path / name, codec, 48_000, "stereo").read_bytes()
    with pytest.raises(AudioError, match=rf"begins like .*{kind}; expected raw 16 kHz mono.*ffmpeg -i - -f s16le"):
        PcmStream(piped(data)).read()


def test_wav_is_accepted_as_raw_pcm_only_with_the_expected_format(tmp_path):
    data = encode(tmp_path / "a.wav", "pcm_s16le", 44_100, "stereo").read_bytes()
    with pytest.raises(AudioError, match="begins like WAV"):
        PcmStream(piped(data)).read()
    assert len(read_all(PcmStream(piped(PHRASES.read_bytes())))) == len(PHRASES.read_bytes()) // 2


def test_sound_that_looks_like_a_header_later_is_sound():
    samples = np.frombuffer(bytes(2 * CHUNK_SAMPLES) + b"OggS" + bytes(60), "<i2")
    assert np.array_equal(read_all(PcmStream(piped(samples.tobytes()))), samples)


class InPieces:
    """Replaces a pipe whose writer sends one piece at a time."""

    def __init__(self, data: bytes, *sizes: int) -> None:
        self.stream, self.sizes = io.BytesIO(data), iter(sizes)

    def read(self, most: int) -> bytes:
        return self.stream.read(min(most, next(self.sizes, most)))


@pytest.mark.parametrize("sizes", [(12, 8, 16, 8), (3, 1, 1, 30), (2, 2)])
def test_a_header_may_arrive_in_pieces(sizes, tmp_path):
    wrong = encode(tmp_path / "a.wav", "pcm_s16le", 44_100, "stereo").read_bytes()
    right = PHRASES.read_bytes()
    source = PcmStream(piped(b""))
    source._pipe = InPieces(wrong, *sizes)
    with pytest.raises(AudioError, match="begins like WAV"):
        source.read()
    source._pipe = InPieces(right, *sizes)
    assert len(read_all(source)) == len(right) // 2


def test_raw_pcm_that_ends_within_a_sample_gives_the_rest(caplog):
    samples = read_wav(PHRASES)[:5000]
    assert np.array_equal(read_all(PcmStream(piped(samples.tobytes() + b"\x01"))), samples)
    assert "ended within a sample" in caplog.text


def test_an_empty_pcm_stream_is_an_error():
    with pytest.raises(AudioError, match="held no audio"):
        PcmStream(piped(b"")).read()


def test_raw_pcm_arriving_in_odd_pieces_is_put_together():
    samples = read_wav(PHRASES)[:2000]
    assert np.array_equal(read_all(PcmStream(piped(samples.tobytes(), itertools.repeat(3, 1000)))), samples)


def test_close_ends_a_read_that_waits_for_data():
    reading, writing = os.pipe()
    source = PcmStream(os.fdopen(reading, "rb"))
    found: list[Samples | None] = []
    thread = threading.Thread(target=lambda: found.append(source.read()), daemon=True)
    thread.start()
    source.close()
    thread.join(timeout=HANG_S)
    assert found == [None]
    os.close(writing)


@pytest.mark.parametrize(
    ("head", "kind"),
    [(b"RIFF", "WAV"), (b"RF64", "WAV"), (b"RIFX", "WAV"), (b"FORM", "AIFF"), (b"OggS", "Ogg"), (b"fLaC", "FLAC")],
)
def test_every_known_container_header_is_refused(head, kind):
    with pytest.raises(AudioError, match=f"begins like {kind}"):
        PcmStream(piped(head + bytes(3200))).read()


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("a.flac", "flac"),
        ("a.wav", "pcm_s16le"),
        ("a.aiff", "pcm_s16be"),
        ("a.mp3", "libmp3lame"),
        ("a.webm", "libopus"),
        ("a.wv", "wavpack"),
    ],
)
def test_a_recording_that_was_cut_off_is_reported(name, codec, tmp_path, caplog):
    whole, half = encode(tmp_path / name, codec, 48_000, "mono"), tmp_path / f"half{name}"
    half.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    for path in (whole, half):
        recording = Recording(path)
        read_all(recording)
        assert ("it was cut off" in caplog.text) == (path == half)
        assert any(one.startswith("cut off after") for one in recording.damage) == (path == half)


@pytest.mark.parametrize("size", [0, 0x7FFFF000, 0xFFFFFFFF])
def test_a_wav_file_that_was_written_to_a_pipe_is_not_cut_off(size, tmp_path):
    data = PHRASES.read_bytes()
    at = data.index(b"data") + 4
    (tmp_path / "a.wav").write_bytes(data[:at] + size.to_bytes(4, "little") + data[at + 4 :])
    recording = Recording(tmp_path / "a.wav")
    assert len(read_all(recording)) == len(read_wav(PHRASES))
    assert not recording.damage


def test_a_playlist_is_no_recording_and_opens_no_other_file_and_no_connection(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.media.audio.pipe.GROWS_S", 0.1)
    encode(tmp_path / "a.ts", "aac", 16_000, "mono")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/a.ts"
        for name, text in {
            "a.m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{}\n#EXT-X-ENDLIST\n",
            "a.ffconcat": "ffconcat version 1.0\nfile {}\n",
        }.items():
            playlist = tmp_path / name
            for reference in ("a.ts", address):
                playlist.write_text(text.format(reference))
                for growing in (False, True):
                    with pytest.raises(AudioError, match="not audio that can be read"):
                        Recording(playlist, growing=growing)
        with pytest.raises(BlockingIOError):
            server.accept()
