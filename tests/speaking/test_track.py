"""Speech in a WAV file: at the times of the stream, whatever the speed of the run."""

import tracemalloc
import wave

import numpy as np
import pytest

from pipeline.errors import UsageError
from pipeline.speaking.track import SpokenTrack
from pipeline.speaking.voice import PiperVoice
from tests.speaking.voices import RATE, SAMPLES_A_SIGN, made_voice, signs_in
from tests.streams import translated


@pytest.fixture(scope="module")
def voice(tmp_path_factory):
    return PiperVoice(made_voice(tmp_path_factory.mktemp("voice")))


def read(path):
    with wave.open(str(path), "rb") as file:
        assert file.getparams()[:3] == (1, 2, RATE)
        return np.frombuffer(file.readframes(file.getnframes()), np.int16)


def say(track, *sentences, language="de"):
    """Sentences are (text, when it was heard)."""
    for number, (text, heard_s) in enumerate(sentences):
        for event in translated(number, [text], language=language, heard_s=heard_s):
            track.write(event)


def starts(samples):
    """When speech begins, in seconds, and what is said."""
    begins = samples == int(32_767 / 64)  # the level of "^", the first sign
    firsts = np.flatnonzero(np.diff(begins.astype(int), prepend=0) == 1)
    return [(round(first / RATE, 2), signs_in(samples[first:]).partition("$")[0][1:]) for first in firsts]


WORDS = "abcdefghijklmnopqrstuvwxyz " * 3  # 81 signs are 8.5 s


def test_each_sentence_begins_when_it_was_heard_or_after_the_one_before(voice, tmp_path):
    track = SpokenTrack(voice, tmp_path / "out.wav", ["de"])
    say(track, ("eins", 1.5), (WORDS, 5.0), ("zwei", 6.0), ("salut", 7.0))
    say(track, ("salut", 7.0), language="fr")
    track.close()
    track.close()
    found = starts(read(tmp_path / "out.wav"))
    assert [text for _, text in found][:2] == ["eins", WORDS]
    assert [at for at, _ in found][:2] == [1.5, 5.0]
    length_s = (2 * len(WORDS) + 3) * SAMPLES_A_SIGN / RATE
    assert found[2] == (pytest.approx(5.0 + length_s, abs=0.02), "zwei")
    assert [text for _, text in found[2:]] == ["zwei", "salut"]


def test_nothing_of_an_older_file_is_left(voice, tmp_path):
    path = tmp_path / "out.wav"
    path.write_bytes(bytes(1_000_000))
    track = SpokenTrack(voice, path, ["de"])
    say(track, ("eins", 0.0))
    track.close()
    assert path.stat().st_size == 44 + 2 * len(read(path)) < 1_000_000


def test_when_too_much_waits_speech_is_faster_and_the_oldest_is_skipped(voice, tmp_path, caplog):
    track = SpokenTrack(voice, tmp_path / "out.wav", ["de"])
    say(track, *[(f"{WORDS}{sign}", 1.0 + at) for at, sign in enumerate("abcd")])
    track.close()
    assert caplog.messages == [f"the voice is behind, and does not speak: {WORDS}b"]
    samples = read(tmp_path / "out.wav")
    signs = 2 * len(WORDS) + 5
    assert len(samples) == RATE + signs * (2 * SAMPLES_A_SIGN + round(SAMPLES_A_SIGN / 1.35))


def test_of_two_sentences_heard_at_once_the_first_is_spoken_faster(voice, tmp_path):
    track = SpokenTrack(voice, tmp_path / "out.wav", ["de"])
    say(track, (WORDS, 1.0), (WORDS, 1.0))
    track.close()
    signs = 2 * len(WORDS) + 3
    assert len(read(tmp_path / "out.wav")) == RATE + signs * (SAMPLES_A_SIGN + round(SAMPLES_A_SIGN / 1.35))


def test_the_file_is_whole_after_each_sentence(voice, tmp_path):
    track = SpokenTrack(voice, tmp_path / "out.wav", ["de"])
    say(track, ("eins", 1.0), ("zwei", 9.0))
    assert starts(read(tmp_path / "out.wav")) == [(1.0, "eins")]
    track.close()


def test_a_long_silence_takes_little_memory(voice, tmp_path):
    track = SpokenTrack(voice, tmp_path / "out.wav", ["de"])
    say(track, ("eins", 300.0))
    tracemalloc.start()
    try:
        track.close()
        assert tracemalloc.get_traced_memory()[1] < 300 * RATE / 2
    finally:
        tracemalloc.stop()
    assert starts(read(tmp_path / "out.wav")) == [(300.0, "eins")]


def test_a_file_is_kept_until_something_is_spoken(voice, tmp_path):
    (tmp_path / "old.wav").write_text("old")
    SpokenTrack(voice, tmp_path / "old.wav", ["de"]).close()
    assert (tmp_path / "old.wav").read_text() == "old"
    SpokenTrack(voice, tmp_path / "new.wav", ["de"]).close()
    assert not (tmp_path / "new.wav").exists()
    (tmp_path / "long.wav").write_bytes(bytes(1_000_000))
    track = SpokenTrack(voice, tmp_path / "long.wav", ["de"])
    say(track, ("ja", 0.0))
    track.close()
    assert starts(read(tmp_path / "long.wav")) == [(0.0, "ja")]


def test_a_file_that_cannot_be_written_is_wrong_usage(voice, tmp_path):
    with pytest.raises(UsageError, match="cannot write"):
        SpokenTrack(voice, tmp_path / "nowhere" / "out.wav", ["de"])


def test_masked_words_are_left_out(voice, tmp_path):
    track = SpokenTrack(voice, tmp_path / "out.wav", ["de"])
    say(track, ("ein m*** wort", 0.0))
    track.close()
    assert starts(read(tmp_path / "out.wav")) == [(0.0, "ein  wort")]
