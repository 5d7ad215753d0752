"""Choosing one of several audio tracks, and reporting the choice."""

import os
import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from av.stream import Disposition

from pipeline.apps import live
from pipeline.errors import AudioError, UsageError
from pipeline.events import Samples
from pipeline.languages import is_tag_of
from pipeline.media.audio.recording import Recording, read_audio
from pipeline.media.audio.tracks import Sound as Found
from pipeline.media.audio.tracks import Track, choose_track, listed
from tests.commands import run
from tests.conftest import PHRASES, read_wav
from tests.media.audio import films
from tests.media.audio.films import Sound, film, likeness, tones
from tests.media.audio.test_recording import read_all

SAID = read_wav(PHRASES)[: 3 * 16_000]
MUSIC = tones(len(SAID), 1)[0]
SILENCE = np.zeros_like(SAID)
DEFAULT, COMMENT, DESCRIPTION = Disposition.default, Disposition.comment, Disposition.visual_impaired


def track(
    samples: Samples,
    language: str = "",
    disposition: Disposition | None = None,
    title: str = "",
    codec: str = "pcm_s16le",
    begins_s: float = 0.0,
) -> Sound:
    return Sound(samples[None], codec, "mono", language, title, disposition, begins_s)


@pytest.mark.parametrize(
    ("tracks", "right"),
    [
        ((track(MUSIC, "rus", DEFAULT), track(SAID, "eng")), "it is tagged as the source language, en"),
        ((track(MUSIC, "chi"), track(SAID, "eng", DEFAULT)), "it is tagged as the source language, en"),
        ((track(SAID, "en-GB"), track(MUSIC, "ger", DEFAULT)), "it is tagged as the source language, en"),
        (
            (track(MUSIC, "eng", COMMENT), track(SAID, "eng")),
            "source language, en, the first of these that can be used",
        ),
        ((track(MUSIC, "eng"), track(SAID, "eng", DEFAULT)), "source language, en, and is the default"),
        ((track(MUSIC, "eng", DEFAULT | DESCRIPTION), track(SAID, "eng")), "the first of these"),
        ((track(MUSIC, "eng", title="Director's commentary"), track(SAID, "eng")), "the first of these"),
        ((track(MUSIC, "fre"), track(SAID, "ger", DEFAULT)), "the file's default, and none is tagged as the source"),
        ((track(MUSIC, "und"), track(SAID, "und", DEFAULT)), "the file's default, and none is tagged"),
        ((track(SILENCE), track(SAID)), "the first that can be used, .*; track 1 is silent"),
        ((track(SILENCE, "und", DEFAULT), track(SAID, "und")), "track 1 is silent"),
        ((track(SILENCE, "eng"), track(SAID, "eng")), "source language, en, .*; track 1 is silent"),
        ((track(SILENCE[:800], "eng"), track(SAID, "eng", begins_s=1.0)), "; track 1 is silent"),
        ((track(SAID), track(MUSIC)), "the first that can be used"),
        ((track(SAID, "eng", DEFAULT), track(MUSIC, "eng", DEFAULT)), "the first of these"),
    ],
)
def test_the_right_track_is_chosen_and_reported(tracks, right, tmp_path):
    path = film(tmp_path / "a.mkv", *tracks)
    (number,) = (number for number, sound in enumerate(tracks, 1) if np.array_equal(sound.channels[0], SAID))
    note = Recording(path, language="en").track_note or ""
    assert note.startswith(f"a.mkv: audio track {number} (")
    assert "), one of 2, is used because " in note
    assert re.search(right, note)
    assert f"choose another with --audio-track N: {3 - number} (" in note
    found = read_all(Recording(path, language="en"))
    assert likeness(found, SAID)[0] > 0.99


@pytest.mark.parametrize("suffix", ["mp4", "ts", "mov", "mka", "webm"])
def test_tags_are_read_in_every_container(suffix, tmp_path):
    codec = {"ts": "mp2", "webm": "libopus"}.get(suffix, "aac")
    tracks = track(MUSIC, "rus", codec=codec), track(SAID, "eng", codec=codec)
    found = read_all(Recording(film(tmp_path / f"a.{suffix}", *tracks), language="en"))
    assert likeness(found, SAID)[0] > 0.97


def test_a_tag_that_is_not_utf_8_is_shown_escaped(tmp_path):
    path = film(tmp_path / "a.mkv", track(SAID, "eng", title="Entrevista, manha"), track(MUSIC, "eng"))
    path.write_bytes(path.read_bytes().replace(b"manha", b"manh\xe3"))
    with pytest.raises(UsageError, match=re.escape(r'1 (eng, mono, "Entrevista, manh\xe3"')):
        Recording(path, track=3)


def test_without_a_language_the_default_is_chosen(tmp_path):
    path = film(tmp_path / "a.mkv", track(MUSIC, "rus"), track(SAID, "eng", DEFAULT))
    assert likeness(read_audio(path), SAID)[0] > 0.99


def test_a_track_with_a_silent_beginning_is_not_silent(tmp_path):
    """A dubbed track of a film in which speech begins late."""
    pause = np.zeros(25 * 16_000, np.int16)
    late, music = np.concatenate([pause, SAID, SAID, SAID]), tones(len(pause) + 3 * len(SAID), 1)[0]
    path = film(tmp_path / "a.mkv", track(music, "rus", DEFAULT, codec="flac"), track(late, "eng", codec="flac"))
    source = Recording(path, language="en")
    assert "audio track 2 (eng" in (source.track_note or "")
    assert len(read_all(source)) == len(late)


def test_a_track_may_change_its_rate_before_anything_is_heard(tmp_path, monkeypatch):
    """As between two programmes of a broadcast."""
    parts = []
    for rate, second in ((48_000, SILENCE), (44_100, SAID)):
        monkeypatch.setattr(films, "RATE", rate)
        tracks = track(SILENCE, codec="mp2"), track(second, codec="mp2")
        parts.append(film(tmp_path / f"{rate}.ts", *tracks).read_bytes())
    (tmp_path / "a.ts").write_bytes(b"".join(parts))
    source = Recording(tmp_path / "a.ts", language="en")
    assert "audio track 2 (no language, mono), one of 2" in (source.track_note or "")


def test_a_single_track_is_not_reported(tmp_path):
    path = film(tmp_path / "a.mkv", track(SAID, "rus"), picture=[0, 1, 2])
    assert Recording(path, language="en").track_note is None


def test_a_track_is_chosen_by_number(tmp_path):
    path = film(tmp_path / "a.mkv", track(MUSIC, "eng", DEFAULT), track(SILENCE, "eng"), track(SAID, "rus"))
    source = Recording(path, language="en", track=3)
    assert "audio track 3 (rus, mono), one of 3, is used because it was requested" in (source.track_note or "")
    assert likeness(read_all(source), SAID)[0] > 0.99


def test_the_error_for_a_missing_track_lists_the_tracks(tmp_path):
    path = film(tmp_path / "a.mkv", track(MUSIC, "rus", DEFAULT), track(SAID, "eng", title="本\u3000編\x1b[2J"))
    listed = r"1 \(rus, mono, default\), 2 \(eng, mono, \"本\u3000編\\x1b\[2J\"\)$"
    for number in (0, 3, 9):
        with pytest.raises(UsageError, match=rf"has no audio track {number}; choose from its 2 tracks: {listed}"):
            Recording(path, track=number)


def unknown_codec(path: Path, *codecs: bytes) -> Path:
    """Rename codecs in a Matroska file to unknown ones."""
    data = path.read_bytes()
    for codec in codecs:
        assert codec in data
        data = data.replace(codec, b"A_X" + codec[3:])
    path.write_bytes(data)
    return path


def test_a_track_that_cannot_be_decoded_is_skipped_and_reported(tmp_path):
    path = film(tmp_path / "a.mkv", track(MUSIC, "eng", DEFAULT, codec="libopus"), track(SAID, "rus"))
    unknown_codec(path, b"A_OPUS")
    source = Recording(path, language="en")
    assert re.search(r"track 2 \(rus, mono\).*; track 1 cannot be decoded", source.track_note or "")
    assert likeness(read_all(source), SAID)[0] > 0.99
    with pytest.raises(AudioError, match=r"audio track 1 of .* has an unknown codec; choose one of: 2 \(rus"):
        Recording(path, track=1)


def test_a_damaged_track_is_skipped(tmp_path):
    path = film(tmp_path / "a.mkv", track(MUSIC, "eng", codec="flac"), track(SAID, "rus", codec="libopus"))
    data = path.read_bytes()
    parts = data.split(b"\xff\xf8")  # sync code of a FLAC frame
    assert len(parts) > 5
    path.write_bytes(b"\x00\x00".join(parts))
    source = Recording(path, language="en")
    assert "track 1 cannot be decoded" in (source.track_note or "")
    assert likeness(read_all(source), SAID)[0] > 0.97


def test_a_recording_without_a_decodable_track_is_an_error(tmp_path):
    path = film(tmp_path / "a.mkv", track(SAID, codec="libopus"), track(SAID, codec="aac"))
    with pytest.raises(AudioError, match="has audio with an unknown codec"):
        Recording(unknown_codec(path, b"A_OPUS", b"A_AAC"))


@pytest.mark.skipif(sys.platform == "win32", reason="has no named pipes in folders")
def test_a_track_of_a_pipe_is_chosen_by_tags(tmp_path):
    path = film(tmp_path / "a.mkv", track(MUSIC, "rus", DEFAULT), track(SAID, "eng"))
    os.mkfifo(tmp_path / "pipe.mkv")
    threading.Thread(target=(tmp_path / "pipe.mkv").write_bytes, args=[path.read_bytes()], daemon=True).start()
    source = Recording(tmp_path / "pipe.mkv", language="en")
    assert "pipe.mkv: audio track 2 (eng" in (source.track_note or "")
    assert likeness(read_all(source), SAID)[0] > 0.99


@pytest.mark.parametrize(
    ("tag", "language", "same"),
    [
        *((tag, "zh", True) for tag in ("chi", "zho", "cmn", "zh", "zh-Hans", "zh_TW", "cmn-Hant-TW", "ZHO")),
        *((tag, "zh", False) for tag in ("yue", "und", "", "jpn", "Chinese")),
        ("ger", "de", True),
        ("deu", "de", True),
        ("fre", "fr", True),
        ("dut", "nl", True),
        ("en_us", "en", True),
        ("eng,fra", "fr", True),
        ("nob", "no", True),
        ("heb", "iw", True),
        ("por", "pt-BR", True),
        ("yue", "yue", True),
        ("en", "de", False),
    ],
)
def test_tags_of_languages(tag, language, same):
    assert is_tag_of(tag, language) == same


def test_a_silent_track_loses_to_one_in_another_language():
    tracks = [
        Track(1, "eng", "", "stereo", "aac", default=True, secondary=False, decodable=True),
        Track(2, "rus", "", "stereo", "aac", default=False, secondary=False, decodable=True),
    ]
    assert choose_track(tracks, {}, "en").track.number == 1
    choice = choose_track(tracks, {1: Found.SILENT, 2: Found.HEARD}, "en")
    assert choice.track.number == 2
    assert choice.reason.endswith("track 1 is silent")
    choice = choose_track(tracks, {1: Found.SILENT, 2: Found.SILENT}, "en")
    assert choice.track.number == 1
    assert "silent in all passages that were read" in choice.reason


def test_of_many_tracks_the_first_twenty_are_listed():
    tracks = [
        Track(at, "eng", "", "mono", "aac", default=False, secondary=False, decodable=True) for at in range(1, 24)
    ]
    assert listed(tracks[:20]).endswith("20 (eng, mono)")
    assert listed(tracks).endswith("20 (eng, mono), and 3 more")


@pytest.mark.slow
def test_the_command_reports_the_track_and_refuses_a_missing_one(tmp_path):
    path = film(tmp_path / "a.mkv", track(MUSIC, "chi"), track(SAID, "eng", DEFAULT))
    done = run("live", path, "--config", "demo-zh", "--fast", "--jsonl", tmp_path / "a.jsonl")
    assert done.returncode == 0
    assert b"a.mkv: audio track 2 (eng, mono, default), one of 2, is used because" in done.stderr
    assert '"type": "transcript"' in (tmp_path / "a.jsonl").read_text("utf-8")
    done = run("live", path, "--config", "demo-zh", "--fast", "--audio-track", "9")
    assert done.returncode == 2
    assert b"has no audio track 9; choose from its 2 tracks: 1 (chi, mono), 2 (eng, mono, default)" in done.stderr


@pytest.mark.parametrize("arguments", [("-",), ("--mic",), ("--device", "1")])
def test_the_option_is_refused_for_inputs_without_tracks(arguments, capsys):
    with pytest.raises(UsageError, match="--audio-track chooses a track of a recording"):
        live.run([*arguments, "--audio-track", "1", "--config", "demo-zh"])
