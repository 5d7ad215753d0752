"""Recordings with several tracks, channels and pictures, made for tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
from av.audio.frame import AudioFrame
from av.stream import Disposition

from pipeline.events import Samples

RATE = 48_000
"""Sample rate of all tracks; every encoder supports it."""
_PICTURES = {".mxf": "mpeg2video", ".webm": "libvpx", ".ts": "mpeg2video"}


@dataclass(frozen=True)
class Sound:
    """An audio track."""

    channels: Samples
    """[channels, n] at 16 kHz."""
    codec: str = "pcm_s16le"
    layout: str = "mono"
    language: str = ""
    title: str = ""
    disposition: Disposition | None = None
    begins_s: float = 0.0


def film(path: Path, *sounds: Sound, picture: Sequence[float] = (), cover: bool = False) -> Path:
    """Write a file; its suffix selects the container. ``picture``: times of the video frames, in seconds."""
    # The default muxer for .m4a accepts covers only as streams copied from another file.
    with av.open(str(path), "w", format="mp4" if path.suffix == ".m4a" else None) as container:
        packets = []
        if picture:
            shown = container.add_stream(_PICTURES.get(path.suffix, "mpeg4"), rate=25, width=64, height=64)
            shown.pix_fmt = "yuv420p"
        if cover:
            art = container.add_stream("mjpeg", rate=1, width=16, height=16, pix_fmt="yuvj420p")
            art.disposition = Disposition.attached_pic.value
        streams = []
        for sound in sounds:
            stream = container.add_stream(sound.codec, rate=RATE, layout=sound.layout)
            stream.metadata.update({"language": sound.language} if sound.language else {})
            stream.metadata.update({"title": sound.title} if sound.title else {})
            stream.disposition = (sound.disposition or Disposition(0)).value
            streams.append(stream)
        if picture:
            for at_s in picture:
                frame = av.VideoFrame(64, 64, "yuv420p")
                frame.time_base, frame.pts = Fraction(1, 25), round(at_s * 25)
                packets += shown.encode(frame)
            packets += shown.encode(None)
        for stream, sound in zip(streams, sounds, strict=True):
            resampler = av.AudioResampler(
                format=stream.format, layout=sound.layout, rate=RATE, frame_size=stream.codec_context.frame_size
            )
            frame = AudioFrame.from_ndarray(sound.channels.T.reshape(1, -1), format="s16", layout=sound.layout)
            frame.sample_rate, frame.time_base, frame.pts = 16_000, Fraction(1, 16_000), 0
            encoded = []
            for part in (*resampler.resample(frame), *resampler.resample(None)):
                encoded += stream.encode(part)
            encoded += stream.encode(None)
            for packet in encoded:
                if packet.pts is not None:  # None for the last packet of FLAC, which has no audio
                    late = round(sound.begins_s / packet.time_base)
                    packet.pts, packet.dts = packet.pts + late, (packet.dts or 0) + late
            packets += encoded
        if cover:
            packets = [
                *art.encode(av.VideoFrame.from_ndarray(np.zeros((16, 16, 3), np.uint8))),
                *art.encode(None),
                *packets,
            ]
        for packet in sorted(packets, key=lambda packet: float((packet.dts or 0) * packet.time_base)):
            container.mux(packet)
    return path


def tones(count: int, channels: int, level: float = 3_000) -> Samples:
    """A stand-in for music: different tones in each channel, [channels, count]."""
    at = np.arange(count) / 16_000
    chords = [sum(np.sin(2 * np.pi * 110 * (1 + n) * (k + 2) * at) for k in range(3)) for n in range(channels)]
    return (np.array(chords) * level / 3).astype(np.int16)


def likeness(found: Samples, said: Samples) -> tuple[float, float, float]:
    """Compare ``found`` to ``said``: the correlation at the best shift (1 if identical), the gain there in dB, and the
    shift in seconds."""
    a, b = (samples.astype(np.float64) for samples in (found, said))
    size = len(a) + len(b)
    fit: npt.NDArray[np.float64] = np.fft.irfft(np.fft.rfft(a, size) * np.conj(np.fft.rfft(b, size)), size)
    shift = int(fit.argmax())
    gain = float(fit.max() / (b**2).sum())
    shift -= size * (shift > size // 2)
    return float(fit.max() / np.sqrt((a**2).sum() * (b**2).sum())), 20 * np.log10(max(gain, 1e-9)), shift / 16_000
