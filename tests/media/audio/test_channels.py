"""The mono mix contains the speech, whichever channels it is in."""

import wave
from contextlib import suppress
from pathlib import Path

import av
import numpy as np
import pytest

from pipeline.bench.words import scored_units
from pipeline.errors import AudioError
from pipeline.events import Samples, SpeechSegment
from pipeline.media.audio.channels import ChannelWeights, MonoMixer, mono_weights
from pipeline.media.audio.recording import read_audio
from tests.conftest import PHRASES, read_wav
from tests.media.audio.films import Sound, film, likeness, tones

SAID = read_wav(PHRASES)[: 4 * 16_000]
OTHER = read_wav(PHRASES)[8 * 16_000 : 12 * 16_000]
# Variable frame rate: the first video frame is long after or long before the beginning of the sound.
IRREGULAR = (0, 0.04, 0.2, 0.24, 1.0, 1.04, 2.48, 3.8)
REGULAR = tuple(frame / 25 for frame in range(100))


def in_centre(layout: str, speech: Samples = SAID) -> Samples:
    """Speech in the centre, or in all channels without one, and music in the others."""
    names = [channel.name for channel in av.AudioLayout(layout).channels]
    if "FC" not in names:
        return np.stack([speech] * len(names))
    channels = tones(len(speech), len(names))
    channels[names.index("FC")] = speech
    if "LFE" in names:
        channels[names.index("LFE")] = 0
    return channels


def of_channels(path: Path, *channels: Samples, codec: str = "pcm_s16le", layout: str = "stereo") -> Samples:
    return read_audio(film(path, Sound(np.stack(channels), codec, layout)))


FILMS = [
    ("a.mkv", "aac", "stereo", IRREGULAR),
    ("a.mkv", "aac", "5.1", IRREGULAR),
    ("a.mkv", "ac3", "5.1(side)", IRREGULAR),
    ("a.mkv", "libopus", "7.1", IRREGULAR),
    ("a.mkv", "flac", "3.0", IRREGULAR),
    ("a.mkv", "pcm_s16le", "5.1", IRREGULAR),
    ("a.mp4", "aac", "stereo", IRREGULAR),
    ("a.mp4", "aac", "7.1", IRREGULAR),
    ("a.mp4", "eac3", "5.1(side)", IRREGULAR),
    ("a.mov", "pcm_s16le", "5.1", IRREGULAR),
    ("a.mov", "alac", "stereo", IRREGULAR),
    ("a.ts", "mp2", "stereo", REGULAR),
    ("a.ts", "ac3", "5.1(side)", REGULAR),
    ("a.mxf", "pcm_s16le", "stereo", REGULAR),
    ("a.mxf", "pcm_s16le", "5.1", REGULAR),
    ("a.mxf", "pcm_s16le", "7.1", REGULAR),
    ("a.webm", "libopus", "stereo", IRREGULAR),
    ("a.webm", "libopus", "5.1", IRREGULAR),
    ("a.mka", "flac", "7.1", ()),
    ("a.mka", "libopus", "5.1", ()),
]


@pytest.mark.parametrize(("name", "codec", "layout", "picture"), FILMS)
def test_a_films_sound_is_its_speech(name, codec, layout, picture, tmp_path):
    found = read_audio(film(tmp_path / name, Sound(in_centre(layout), codec, layout), picture=picture))
    alike, gain_db, _ = likeness(found, SAID)
    assert alike > 0.97  # below 1 for codecs that shift by a fraction of a sample
    assert abs(gain_db) < 0.5
    assert abs(len(found) - len(SAID)) < 1_600


@pytest.mark.slow
@pytest.mark.parametrize(("name", "layout"), [("a.mkv", "5.1(side)"), ("a.mp4", "7.1"), ("a.mxf", "5.1")])
def test_a_films_transcript_is_that_of_clean_speech(name, layout, tmp_path, demo_models):
    codec = {"a.mkv": "ac3", "a.mp4": "aac", "a.mxf": "pcm_s16le"}[name]
    path = film(tmp_path / name, Sound(in_centre(layout), codec, layout), picture=REGULAR)
    heard, clean = (
        demo_models.recognizer.transcribe([SpeechSegment(0, 0, samples)])[0].text
        for samples in (read_audio(path), SAID)
    )
    assert heard.replace("7", "seven") == clean.replace("7", "seven")


@pytest.mark.parametrize(
    ("layout", "tag", "centre", "low"),
    [("7.1", 128 << 16 | 8, 2, 3), ("5.1", 124 << 16 | 6, 0, 5)],
    ids=["MPEG_7_1_C", "MPEG_5_1_D"],
)
def test_channels_in_quicktime_order_are_read(layout, tag, centre, low, tmp_path):
    """Written by FFmpeg 5 and editing programs; FFmpeg 8 reads them as lists of channels."""
    channels = tones(len(SAID), av.AudioLayout(layout).nb_channels)
    channels[low], channels[centre] = 0, SAID
    path = film(tmp_path / "a.mov", Sound(channels, "pcm_s16le", layout))
    data = path.read_bytes()
    at = data.index(b"chan") + 8  # after version and flags: layout number, channel bitmap
    assert data[at : at + 4] == (1 << 16).to_bytes(4)
    path.write_bytes(data[:at] + tag.to_bytes(4) + bytes(4) + data[at + 8 :])
    for found in (read_audio(path), read_audio(path)):
        alike, gain_db, _ = likeness(found, SAID)
        assert alike > 0.99
        assert abs(gain_db) < 0.5


@pytest.mark.parametrize("scale", [-1.0, -0.97, -0.5])
def test_stereo_of_opposite_polarity_is_not_mixed(scale, tmp_path):
    noise = np.random.default_rng(7).normal(0, 60, (2, len(SAID)))
    channels = [np.rint(SAID + noise[0]).astype(np.int16), np.rint(scale * SAID + noise[1]).astype(np.int16)]
    alike, gain_db, _ = likeness(of_channels(tmp_path / "a.mka", *channels), SAID)
    assert alike > 0.98
    assert abs(gain_db) < 1


def test_the_transcript_of_inverted_stereo_is_that_of_clean_speech(tmp_path, demo_models):
    found = of_channels(tmp_path / "a.m4a", SAID, -SAID, codec="aac")
    heard, clean = (
        demo_models.recognizer.transcribe([SpeechSegment(0, 0, samples)])[0].text for samples in (found, SAID)
    )
    assert scored_units(heard, "en") == scored_units(clean, "en")  # 7 or seven


def test_speech_that_becomes_inverted_is_heard_at_once(tmp_path):
    """Also after a louder intro in ordinary stereo, which would dominate the averages for many seconds."""
    intro = np.tile(tones(len(OTHER), 1, 20_000), (2, 3))
    found = of_channels(tmp_path / "a.mka", *np.concatenate([intro, [SAID, -SAID]], axis=1))
    alike, gain_db, shift_s = likeness(found[intro.shape[1] :], SAID)
    assert alike > 0.99
    assert abs(gain_db) < 0.5
    assert shift_s == 0


def test_after_inverted_stereo_another_speaker_in_one_channel_is_heard_at_once(tmp_path):
    left, right = np.concatenate([SAID, np.zeros_like(OTHER)]), np.concatenate([-SAID, OTHER])
    found = of_channels(tmp_path / "a.mka", left, right)
    alike, gain_db, _ = likeness(found[len(SAID) :], OTHER)
    assert alike > 0.99
    assert gain_db > -6.5


def test_two_speakers_a_channel_each_are_both_heard(tmp_path):
    silence = np.zeros_like(SAID)
    left, right = np.concatenate([SAID, silence]), np.concatenate([silence, OTHER])
    found = of_channels(tmp_path / "a.mka", left, right)
    for said, part in ((SAID, found[: len(SAID)]), (OTHER, found[len(SAID) :])):
        alike, gain_db, _ = likeness(part, said)
        assert alike > 0.99
        assert gain_db > -6.5


@pytest.mark.parametrize(
    ("layout", "channel"),
    [("stereo", 1), ("5.1", 0), ("5.1", 3), ("7.1", 7), ("quad", 3), ("2.1", 2), ("7.1.4", 11), ("22.2", 12)],
)
def test_speech_in_a_single_channel_keeps_its_level(layout, channel, tmp_path):
    """Also in channels that FFmpeg leaves out of its mix: low frequencies, top, back."""
    channels = np.zeros((av.AudioLayout(layout).nb_channels, len(SAID)), np.int16)
    channels[channel] = SAID
    alike, gain_db, _ = likeness(of_channels(tmp_path / "a.wav", *channels, layout=layout), SAID)
    assert alike > 0.99
    assert abs(gain_db) < 0.5


def test_if_the_centre_is_silent_the_other_channels_are_mixed(tmp_path):
    faint = np.rint(np.random.default_rng(1).normal(0, 3, len(SAID))).astype(np.int16)  # noise, -80 dBFS
    channels = [SAID, SAID, faint, faint, faint, faint]
    alike, gain_db, _ = likeness(of_channels(tmp_path / "a.mka", *channels, layout="5.1"), SAID)
    assert alike > 0.99
    assert abs(gain_db) < 0.5


def test_a_centre_that_begins_later_is_used_from_there_on(tmp_path):
    music = tones(3 * len(SAID), 6)
    music[2] = music[3] = 0
    music[2, len(SAID) : 2 * len(SAID)] = SAID
    found = of_channels(tmp_path / "a.mka", *music, layout="5.1")
    opening, speech = found[: len(SAID)], found[len(SAID) : 2 * len(SAID)]
    assert np.abs(opening).max() > 1_000  # the other channels, while the centre is silent
    assert likeness(speech, SAID)[0] > 0.99
    assert np.abs(found[2 * len(SAID) + 1_600 :]).max() < 100  # and not during pauses of the speech


def test_speech_is_kept_when_a_broadcast_changes_to_stereo(tmp_path):
    silence = np.zeros(12 * 16_000, np.int16)
    centre = np.concatenate([SAID, np.zeros_like(silence), np.zeros_like(OTHER)])
    front = np.concatenate([np.zeros_like(SAID), tones(len(silence), 1)[0], OTHER])
    rest = np.zeros_like(centre)
    found = of_channels(tmp_path / "a.mka", front, front, centre, rest, rest, rest, layout="5.1")
    assert likeness(found[: len(SAID)], SAID)[0] > 0.99
    assert likeness(found[-len(OTHER) :], OTHER)[0] > 0.99


def test_a_recording_whose_channels_change_is_read_whole(tmp_path):
    """As in recordings of broadcasts: AC-3 that changes from stereo to 5.1."""
    parts = [
        film(tmp_path / "a.ac3", Sound(np.stack([SAID, SAID]), "ac3", "stereo")),
        film(tmp_path / "b.ac3", Sound(in_centre("5.1(side)", OTHER), "ac3", "5.1(side)")),
    ]
    (tmp_path / "joined.ac3").write_bytes(b"".join(path.read_bytes() for path in parts))
    found = read_audio(tmp_path / "joined.ac3")
    assert likeness(found[: len(SAID)], SAID)[0] > 0.97
    assert likeness(found[len(SAID) :], OTHER)[0] > 0.97


def test_what_was_held_back_before_a_gap_is_not_heard_again_after_it():
    mixer = MonoMixer(av.AudioLayout("stereo"))
    for level in (1_000, 2_000):
        frame = av.AudioFrame.from_ndarray(np.full((1, 2 * 2_000), level, np.int16), "s16", "stereo")
        frame.sample_rate = 16_000
        heard = np.concatenate([*mixer.push(frame), *mixer.drain()])
        assert (heard == np.full(2_000, level)).all()


def test_the_choice_does_not_flip_in_stereo_with_room_and_music():
    """A channel is mixed all the time or not at all, so no switch is audible."""
    random = np.random.default_rng(3)
    speech = np.tile(SAID, 5) / 32_768
    room = random.normal(0, 0.02, (2, len(speech)))
    music = tones(len(speech), 2) / 32_768
    stereo = np.stack([speech, np.roll(speech, 40)]) + room + music
    weights = ChannelWeights(mono_weights(av.AudioLayout("stereo")))
    chosen = {tuple(weights.next(block.astype(np.float32))) for block in np.split(stereo.T, len(speech) // 1_600)}
    assert chosen == {(0.5, 0.5)}


def test_the_memory_of_the_weights_does_not_grow():
    weights = ChannelWeights(np.full(2, 0.5, np.float32))
    sizes = set()
    for _ in range(200):
        weights.next(np.ones((1_600, 2), np.float32))
        sizes.add(sum(value.nbytes for value in vars(weights).values() if isinstance(value, np.ndarray)))
    assert len(sizes) == 1


def test_samples_that_are_not_numbers_do_not_break_the_choice(tmp_path):
    path = film(tmp_path / "a.wav", Sound(in_centre("5.1"), "pcm_f32le", "5.1"))
    data = bytearray(path.read_bytes())
    broken = np.array([np.nan, np.inf, -np.inf, 1e30], np.float32).tobytes()
    at = data.index(b"data") + 8 + 24 * 24_000
    data[at : at + len(broken)] = broken
    path.write_bytes(data)
    found = read_audio(path)
    assert len(found) == len(SAID)
    assert likeness(found[20_000:], SAID[20_000:])[0] > 0.99


@pytest.mark.parametrize("begins_s", [0.0, 10.0])
@pytest.mark.parametrize("name", ["a.mka", "a.mkv"])
def test_timestamps_that_begin_late_do_not_count_as_cut_off(name, begins_s, tmp_path, caplog):
    path = film(tmp_path / name, Sound(SAID[None], "aac", begins_s=begins_s))
    assert len(read_audio(path)) == pytest.approx(len(SAID), abs=1_600)
    assert "cut off" not in caplog.text


@pytest.mark.parametrize("begins_s", [0.0, 10.0])
def test_a_cut_off_recording_is_reported_for_any_start_time(begins_s, tmp_path, caplog):
    path = film(tmp_path / "a.mka", Sound(np.stack([read_wav(PHRASES)] * 2), "aac", "stereo", begins_s=begins_s))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with suppress(AudioError):
        read_audio(path)
    assert "it was cut off" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(("name", "codec"), [("a.flac", "flac"), ("a.m4a", "aac"), ("a.mp3", "libmp3lame")])
def test_a_recording_with_a_cover_is_not_a_film(name, codec, tmp_path, caplog):
    """The mix is the speech, and a cut-off file is reported as without a cover."""
    whole = read_wav(PHRASES)
    path = film(tmp_path / name, Sound(np.stack([whole, whole]), codec, "stereo"), cover=True)
    with av.open(str(path)) as container:
        assert len(container.streams.video) == 1
    assert likeness(read_audio(path), whole)[0] > 0.97
    assert "cut off" not in caplog.text
    if name == "a.flac":  # the index of an MP4 is at its end, and an MP3 stores no duration
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        with suppress(AudioError):
            read_audio(path)
        assert "it was cut off" in caplog.text


def test_sound_keeps_its_time_where_the_picture_begins_long_before(tmp_path):
    sound = Sound(in_centre("5.1"), "aac", "5.1", begins_s=7.0)
    found = read_audio(film(tmp_path / "a.mkv", sound, picture=[0.04 * frame for frame in range(280)]))
    alike, _, shift_s = likeness(found, SAID)
    assert alike > 0.97
    assert shift_s == pytest.approx(7.0, abs=0.05)


@pytest.mark.parametrize(("rate", "width"), [(8_000, 1), (384_000, 4), (44_100, 2), (11_025, 2)])
def test_any_rate_and_sample_size_is_read(rate, width, tmp_path):
    at = np.arange(rate) / rate
    tone = np.sin(2 * np.pi * 440 * at)
    data = (tone * 64 + 128).astype(np.uint8) if width == 1 else (tone * 2 ** (8 * width - 2)).astype(f"<i{width}")
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((2, width, rate, 0, "NONE", ""))
        file.writeframes(np.repeat(data, 2).tobytes())
    found = read_audio(tmp_path / "a.wav")[1_600:-1_600] / 32_768
    assert np.sqrt(2 * (found**2).mean()) == pytest.approx(0.5, rel=0.05)
