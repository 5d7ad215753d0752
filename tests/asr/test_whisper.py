"""faster-whisper with the demo model, on real audio."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from faster_whisper import WhisperModel
from faster_whisper.tokenizer import Tokenizer
from faster_whisper.transcribe import get_suppressed_tokens
from measure import edits, words

from pipeline import Models, PipelineConfig, load_config
from pipeline.asr.whisper import WhisperRecognizer
from pipeline.errors import ModelError, UsageError
from pipeline.events import SpeechSegment
from tests.conftest import EXAMPLES, PHRASES, read_wav, spoken_texts
from tests.vad.test_stage import cut


# Word error rate at most: what the tests say, and the longest of the demo's recordings.
@pytest.mark.parametrize(("recording", "most"), [(PHRASES, 0.2), (EXAMPLES / "day.wav", 0.05)])
def test_speech_comes_through_mostly_right(demo_models: Models, recording: Path, most: float) -> None:
    wrong = total = 0
    threshold = load_config("demo").asr.log_probability_threshold
    for segment, said in zip(cut(read_wav(recording), 1600), spoken_texts()[recording.stem], strict=True):
        transcript = demo_models.recognizer.transcribe(segment)
        print(f"{said} => {transcript.text} ({transcript.mean_log_probability:.2f})")
        assert transcript.rejected is None
        # One processor's instructions and another's differ by 0.003: what is shown must not hang on that.
        assert abs(transcript.mean_log_probability - threshold) > 0.01
        assert (transcript.start_s, transcript.end_s) == (segment.start_s, segment.end_s)
        wrong += edits(words(said), words(transcript.text))
        total += len(words(said))
    assert wrong / total <= most


# (Hz, how often a second it sets in): music-like, and webrtcvad takes it for speech.
CHORDS = ((262, 0.5), (330, 0.7), (392, 1.1))


@pytest.mark.parametrize("kind", ["silence", "noise", "tone", "chords"])
def test_no_speech_gives_nothing_to_translate(demo_models: Models, kind: str) -> None:
    t = np.arange(16_000 * 12) / 16_000
    signal = {
        "silence": np.zeros(len(t)),
        "noise": np.random.default_rng(1).standard_normal(len(t)) * 0.02,
        "tone": np.sin(2 * np.pi * 440 * t) * 0.1,
        "chords": sum(np.sin(2 * np.pi * f * t) * (np.sin(2 * np.pi * t * r) > 0) for f, r in CHORDS) * 0.1,
    }[kind]
    transcript = demo_models.recognizer.transcribe(SpeechSegment(0, 0, (signal * 32767).astype(np.int16)))
    assert transcript.rejected is not None, transcript


def test_doubt_travels_with_the_transcript(demo_models: Models) -> None:
    transcript = demo_models.recognizer.transcribe(cut(read_wav(PHRASES), 1600)[0])
    assert -1 < transcript.mean_log_probability < 0
    assert 0 <= transcript.no_speech_probability < 0.5
    assert 0.5 < transcript.compression_ratio < 2


def test_a_missing_file_is_named(demo_config: PipelineConfig, tmp_path: Path) -> None:
    for path in Path(demo_config.asr.model).iterdir():
        if path.name != "tokenizer.json":
            (tmp_path / path.name).symlink_to(path)
    with pytest.raises(ModelError, match=r"lacks tokenizer\.json"):
        WhisperRecognizer(dataclasses.replace(demo_config.asr, model=str(tmp_path)), "en")


def test_a_damaged_model_is_one_clear_error(demo_config: PipelineConfig, tmp_path: Path) -> None:
    for path in Path(demo_config.asr.model).iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes()[:1000] if path.name == "model.bin" else path.read_bytes())
    with pytest.raises(ModelError, match="cannot load"):
        WhisperRecognizer(dataclasses.replace(demo_config.asr, model=str(tmp_path)), "en")


def test_a_language_that_the_model_lacks_is_refused(demo_config: PipelineConfig) -> None:
    with pytest.raises(UsageError, match="does not know the language 'zh'; it knows en"):
        WhisperRecognizer(demo_config.asr, "zh")


def test_words_may_begin_with_a_lone_space(demo_config: PipelineConfig) -> None:
    """Those whose first letters no piece joins to the space; faster-whisper never writes the first piece of " -"."""
    model = WhisperModel(demo_config.asr.model, device="cpu", compute_type="int8")
    space = model.hf_tokenizer.encode(" umbrella").ids[0]
    assert space == model.hf_tokenizer.encode(" ").ids[0]
    assert space not in get_suppressed_tokens(Tokenizer(model.hf_tokenizer, multilingual=False), [-1])
    assert space not in json.loads((Path(demo_config.asr.model) / "config.json").read_text())["suppress_ids_begin"]


def test_a_length_penalty_prefers_longer_hypotheses(demo_config: PipelineConfig) -> None:
    lengths = []
    for penalty in (0.0, 10.0):
        rng = np.random.default_rng(1)
        config = dataclasses.replace(demo_config.asr, beam_size=5, length_penalty=penalty)
        recognizer, length = WhisperRecognizer(config, "en"), 0
        for segment in cut(read_wav(PHRASES), 1600)[:6]:
            noise = rng.normal(0, 3 * segment.samples.std(), len(segment.samples))  # much to doubt
            doubtful = (segment.samples + noise).clip(-32768, 32767).astype(np.int16)
            length += len(recognizer.transcribe(dataclasses.replace(segment, samples=doubtful)).text)
        lengths.append(length)
    assert lengths[0] < lengths[1]
