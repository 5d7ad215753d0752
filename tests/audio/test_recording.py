"""Recordings: whatever container, rate and channels, the same samples come out."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

import av
import numpy as np
import pytest

from pipeline.audio.pcm import PcmStream
from pipeline.audio.recording import Recording
from pipeline.audio.source import CHUNK_SAMPLES, AudioSource
from pipeline.errors import AudioError, UsageError
from pipeline.events import Samples
from tests.conftest import PHRASES, read_wav


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


def test_a_16_khz_wav_comes_out_sample_for_sample() -> None:
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
def test_other_formats_are_resampled(name: str, codec: str, rate: int, layout: str, tmp_path: Path) -> None:
    original = read_wav(PHRASES).astype(float)
    found = read_all(Recording(encode(tmp_path / name, codec, rate, layout))).astype(float)
    assert abs(len(found) - len(original)) < 16_000 * 0.15
    # The same speech, up to the codec's delay: some shift fits it well.
    size = min(len(original), len(found)) + 4096
    correlation = np.fft.irfft(np.fft.rfft(found, size) * np.conj(np.fft.rfft(original, size)), size)
    likeness = correlation.max() / np.sqrt((original**2).sum() * (found**2).sum())
    assert likeness > (0.85 if rate == 8_000 else 0.95)


def test_a_recording_joined_from_others_of_another_kind_is_read_whole(tmp_path: Path) -> None:
    parts = [("a.mp3", 44_100, "stereo"), ("b.mp3", 22_050, "mono")]
    data = b"".join(encode(tmp_path / name, "libmp3lame", rate, layout).read_bytes() for name, rate, layout in parts)
    (tmp_path / "joined.mp3").write_bytes(data)
    found = read_all(Recording(tmp_path / "joined.mp3"))
    assert len(found) == pytest.approx(2 * len(read_wav(PHRASES)), rel=0.02)


def test_samples_keep_the_times_of_the_file(tmp_path: Path) -> None:
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
            # The sound begins after five seconds, and pauses for two more in its middle.
            part.pts = start + 16_000 * (5 if start < 32_000 else 7)
            container.mux(sound.encode(part))
        for stream in (picture, sound):
            container.mux(stream.encode(None))
    silence = np.zeros(16_000, np.int16)
    expected = np.concatenate([*[silence] * 5, said[:32_000], *[silence] * 2, said[32_000:]])
    found = read_all(Recording(tmp_path / "late.mkv"))
    assert len(found) == len(expected)
    assert (found == expected).all()


def test_reading_stops_when_closed() -> None:
    source = Recording(PHRASES)
    assert source.read() is not None
    source.close()
    assert source.read() is None


def test_what_is_no_recording_is_said(tmp_path: Path) -> None:
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


def test_a_recording_without_samples_is_said(tmp_path: Path) -> None:
    path = tmp_path / "header.wav"
    path.write_bytes(PHRASES.read_bytes()[:40] + bytes(4))
    with pytest.raises(AudioError, match="holds no audio"):
        Recording(path).read()


def test_a_video_without_sound_is_said(tmp_path: Path) -> None:
    path = tmp_path / "silent.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width = stream.height = 64
        for _ in range(3):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8))))
        container.mux(stream.encode(None))
    with pytest.raises(AudioError, match="no audio stream"):
        Recording(path)


def test_a_truncated_recording_gives_what_it_has(tmp_path: Path) -> None:
    data = encode(tmp_path / "a.mp3", "libmp3lame", 44_100, "stereo").read_bytes()
    (tmp_path / "cut.mp3").write_bytes(data[: len(data) // 2])
    found = read_all(Recording(tmp_path / "cut.mp3"))
    assert len(found) == pytest.approx(len(read_wav(PHRASES)) / 2, rel=0.1)


def piped(data: bytes, sizes: Iterable[int] = ()) -> BinaryIO:
    """The reading end of a pipe into which a thread writes ``data``, in pieces of ``sizes`` first."""
    reading, writing = os.pipe()

    def write() -> None:
        rest = data
        with os.fdopen(writing, "wb", buffering=0) as stream:
            for size in sizes:
                stream.write(rest[:size])
                rest = rest[size:]
            while rest:
                rest = rest[stream.write(rest) :]

    threading.Thread(target=write, daemon=True).start()
    return os.fdopen(reading, "rb")


def test_raw_pcm_is_read_as_it_is() -> None:
    samples = read_wav(PHRASES)
    assert np.array_equal(read_all(PcmStream(piped(samples.tobytes()))), samples)


def test_raw_pcm_that_ends_within_a_sample_gives_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    samples = read_wav(PHRASES)[:5000]
    assert np.array_equal(read_all(PcmStream(piped(samples.tobytes() + b"\x01"))), samples)
    assert "ended within a sample" in caplog.text


def test_an_empty_pcm_stream_is_said() -> None:
    with pytest.raises(AudioError, match="held no audio"):
        PcmStream(piped(b"")).read()


def test_raw_pcm_arriving_in_odd_pieces_is_put_together() -> None:
    samples = read_wav(PHRASES)[:2000]
    assert np.array_equal(read_all(PcmStream(piped(samples.tobytes(), itertools.repeat(3, 1000)))), samples)


def test_a_read_that_waits_for_a_silent_writer_ends_when_closed() -> None:
    reading, writing = os.pipe()
    source = PcmStream(os.fdopen(reading, "rb"))
    found: list[Samples | None] = []
    thread = threading.Thread(target=lambda: found.append(source.read()), daemon=True)
    thread.start()
    source.close()
    thread.join(timeout=10)
    assert found == [None]
    os.close(writing)
