"""Files in another language than the one to translate from: they are named, and refused with --strict."""

from pathlib import Path

import numpy as np
import pytest

from pipeline.apps.translate import run
from pipeline.archives import other_language
from pipeline.backends.guessed_language import first_speech
from pipeline.core.vad.options import VadConfig
from pipeline.languages.detection import written_language
from pipeline.media.audio.recording import Recording
from tests.conftest import CHINESE, PHRASES, read_wav, write_wav

SPANISH = [
    "La estación está cerca del hotel, a la derecha de la plaza.",
    "Quiero una habitación para dos noches, por favor.",
    "No sabía que el tren salía tan temprano.",
]
ENGLISH = [
    "The station is near the hotel, to the right of the square.",
    "I would like a room for two nights, please.",
    "I did not know that the train leaves so early.",
]


@pytest.fixture
def eldc():
    pytest.importorskip("eldc")


def subtitles(path: Path, texts: list[str]) -> Path:
    cues = [f"{n}\n00:00:{5 * n:02},000 --> 00:00:{5 * n + 4:02},000\n{text}\n" for n, text in enumerate(texts, 1)]
    path.write_text("\n".join(cues), "utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "spoken", "found"),
    [
        ("film.es.srt", "en", "es"),
        ("film.spa.forced.srt", "en", "es"),
        ("film.spa.forced.sdh.srt", "en", "es"),
        ("talk.pt-BR.mp3", "en", "pt"),
        ("film.pb.srt", "en", "pt"),
        ("film.eng.sdh.srt", "en", None),
        ("film.en-US.srt", "en", None),
        ("film.hi.srt", "en", None),
        ("film.da.srt", "no", None),
        ("film.srt", "en", None),
        ("es.srt", "en", None),
        ("final.cut.mp3", "en", None),  # the codes of small languages
        ("take.two.old.mp3", "en", None),
    ],
)
def test_the_name_of_a_file_ends_with_its_language(name, spoken, found):
    assert other_language.of_name(Path(name), spoken) == found


@pytest.mark.parametrize(
    ("texts", "expected", "found"),
    [
        (SPANISH, "en", "es"),
        (ENGLISH, "en-GB", "en"),
        (SPANISH, "gl", None),  # Galician is not told apart, and would be Portuguese
        (SPANISH[:1], "en", None),
        (["1, 2, 3. " * 99], "en", None),
        (["\ud800" * 200, *SPANISH], "en", "es"),
    ],
)
def test_a_text_has_a_language_if_there_is_enough_of_it(texts, expected, found, eldc):
    assert written_language("\n".join(texts), expected) == found


@pytest.mark.parametrize(
    ("texts", "name", "found"),
    [
        (SPANISH, "film.srt", "es"),
        (SPANISH, "film.en.srt", "es"),
        (ENGLISH, "film.es.srt", None),
        (ENGLISH[:1], "film.es.srt", "es"),
    ],
)
def test_enough_text_says_more_than_the_name(texts, name, found, eldc):
    assert other_language.of_text(Path(name), "\n".join(texts), "en") == found


def test_without_the_library_the_name_says_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "eldc", None)
    monkeypatch.setattr("pipeline.languages.detection._library", lambda: __import__("eldc"))
    assert other_language.of_text(Path("film.srt"), "\n".join(SPANISH), "en") is None
    assert other_language.of_text(Path("film.es.srt"), "\n".join(ENGLISH), "en") == "es"


def test_subtitles_are_named_and_refused_with_strict(tmp_path, capsys, eldc):
    path, written = subtitles(tmp_path / "film.srt", SPANISH), tmp_path / "film.pt.srt"
    assert run([str(path), "--config", "demo", "--strict"]) == 1
    problem = "it is in Spanish, not in English: give --source es"
    assert (capsys.readouterr().err, written.exists()) == (f"error: {path}: {problem}\n", False)
    assert run([str(path), "--config", "demo"]) == 0
    assert (capsys.readouterr().err.splitlines()[0], written.exists()) == (f"{path}: {problem}", True)
    subtitles(path, ENGLISH)
    assert run([str(path), "--config", "demo", "--strict", "--overwrite"]) == 0
    assert problem not in capsys.readouterr().err


def test_the_first_speech_is_heard_after_any_silence(tmp_path):
    speech, silence = read_wav(PHRASES)[: 10 * 16_000], np.zeros(20 * 16_000, np.int16)
    path = write_wav(tmp_path / "late.wav", np.concatenate([silence, *[speech, silence] * 4]))
    found = first_speech(Recording(path), VadConfig())
    assert len(found) == 30 * 16_000
    assert np.abs(found[: 2 * 16_000]).max() > 3_000
    for length in (0, 1, 40 * 16_000):  # nobody speaks
        assert len(first_speech(_Samples(np.zeros(length, np.int16)), VadConfig())) == 0
    short = first_speech(_Samples(speech), VadConfig())
    assert 5 * 16_000 < len(short) <= len(speech)
    assert len(first_speech(_Samples(speech[: 2 * 16_000]), VadConfig())) > 16_000  # it ends while somebody speaks


class _Samples:
    """A source of samples, in pieces."""

    duration_s, overflows = None, 0

    def __init__(self, samples):
        self._pieces = iter(np.split(samples, range(1_600, len(samples), 1_600)))

    def read(self):
        return next(self._pieces, None)

    def close(self):
        pass


@pytest.mark.slow
def test_a_recording_is_named_by_its_speech_and_refused_with_strict(tmp_path, capsys):
    (tmp_path / "english.zh.wav").symlink_to(PHRASES)
    path = write_wav(tmp_path / "talk.wav", read_wav(CHINESE)[: 10 * 16_000])
    command = [str(tmp_path), "--config", "demo", "--output-dir", str(tmp_path / "out")]
    problem = "in Chinese, not in English: give --source zh"
    assert run([*command, "--strict"]) == 1
    said = capsys.readouterr()
    assert f"{path} is {problem}" in said.err
    assert "in Chinese" not in said.out.splitlines()[0]  # whatever its name says
    assert [one.name for one in (tmp_path / "out").glob("*.srt")] == ["english.zh.srt"]
    assert run(command) == 0
    assert f"it is {problem}" in capsys.readouterr().out
