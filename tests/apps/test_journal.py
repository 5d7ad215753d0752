"""What a resumed run takes from a journal."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pipeline import Models
from pipeline.apps.journal import JournalSink, KnownSpeech, KnownTranslation, difference, header, read_header
from pipeline.config import load_config, with_overrides
from pipeline.errors import UsageError
from pipeline.events import Delta, SpeechSegment, Transcript, Word
from tests.conftest import PHRASES, read_wav
from tests.vad.test_stage import cut

SAID = Transcript(
    0, 1.0, 5.0, "Where is the bank? Where is the hotel?", "en", words=(Word(" Where", 1.1, 1.25),), speech_end_s=4.9
)
HEADER = {"type": "journal", "version": 1, "formats": ["srt"]}


def deltas(models: Models) -> list[Delta]:
    return list(models.translations["zh"].stream(SAID, "zh"))


def journal_of(path: Path, events: list[Transcript | Delta]) -> Path:
    sink = JournalSink(path, HEADER, resume=False)
    for event in events:
        sink.write(event)
    sink.close()
    return path


@pytest.mark.parametrize("torn", [b"", b'{"type": "delta", "segm'])
def test_a_segment_resumes_after_its_last_complete_sentence(demo_models: Models, tmp_path: Path, torn: bytes) -> None:
    whole = deltas(demo_models)
    first_ends = next(n for n, delta in enumerate(whole, 1) if delta.end_of_sentence)
    assert first_ends < len(whole)
    for kept in range(len(whole) + 1):
        path = journal_of(tmp_path / f"{kept}.jsonl", [SAID, *whole[:kept]])
        path.write_bytes(path.read_bytes() + torn)
        assert list(KnownTranslation(demo_models.translations["zh"], path).stream(SAID, "zh")) == whole


def test_transcripts_come_back_exactly(demo_models: Models, tmp_path: Path) -> None:
    segments = cut(read_wav(PHRASES), 1600)[:2]
    heard = demo_models.recognizer.transcribe(segments[0])
    speech = KnownSpeech(demo_models.recognizer, journal_of(tmp_path / "journal", [heard]))
    assert speech.transcribe(segments[0]) == heard
    assert speech.transcribe(segments[1]).segment_id == segments[1].id


def test_segments_that_differ_from_the_journals_are_refused(demo_models: Models, tmp_path: Path) -> None:
    speech = KnownSpeech(demo_models.recognizer, journal_of(tmp_path / "journal", [SAID]))
    with pytest.raises(UsageError, match=r"from 1\.00 to 5\.00 s where this run finds one from 2\.00 to .*--overwrite"):
        speech.transcribe(SpeechSegment(0, 32_000, read_wav(PHRASES)[:16_000]))


@pytest.mark.parametrize(
    "damage", [b"{x}\n", b"[1]\n", b'{"type": "delta", "text": 5}\n', b'{"type": "transcript", "x": 1}\n']
)
def test_a_damaged_line_is_reported(demo_models: Models, tmp_path: Path, damage: bytes) -> None:
    path = journal_of(tmp_path / "journal", [SAID])
    path.write_bytes(path.read_bytes() + damage)
    with pytest.raises(UsageError, match=r"journal is damaged \(.*\); start again with --overwrite"):
        KnownTranslation(demo_models.translations["zh"], path)


def test_a_resumed_run_keeps_a_header_with_unknown_keys(demo_models: Models, tmp_path: Path) -> None:
    """Another version may write such a header; later lines are read by their offset in the file."""
    said = deltas(demo_models)
    path = tmp_path / "journal"
    sink = JournalSink(path, HEADER | {"asr.retired": 1}, resume=False)
    for event in (SAID, *said):
        sink.write(event)
    sink.close()
    before = path.read_bytes()
    sink = JournalSink(path, HEADER, resume=True)
    for event in (SAID, *said):
        sink.write(event)
    sink.close()
    assert path.read_bytes() == before


def test_a_transcript_in_another_script_is_not_resumed() -> None:
    config = load_config("demo-zh-en")
    begun = header(PHRASES, config, ["srt"])
    shown = dataclasses.replace(config, asr=dataclasses.replace(config.asr, script="traditional"))
    assert difference(begun, header(PHRASES, shown, ["srt"])) == "with asr.script = None, which is now 'traditional'"
    begun = header(PHRASES, with_overrides(config, targets=("zh-Hant_tw",)), ["srt"])
    assert difference(begun, header(PHRASES, with_overrides(config, targets=("zh-hant-TW",)), ["srt"])) is None
    assert difference(begun, header(PHRASES, with_overrides(config, targets=("zh-HK",)), ["srt"])) is not None


def test_a_name_too_long_for_its_journal_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"File name too long\); choose another --output-dir"):
        read_header(tmp_path / ("x" * 250 + ".unfinished.jsonl"))


def test_a_file_with_an_incomplete_header_is_not_a_journal(tmp_path: Path) -> None:
    assert read_header(tmp_path / "none") is None
    for torn in (b"", b'{"type": "journal"'):
        (tmp_path / "some").write_bytes(torn)
        assert read_header(tmp_path / "some") is None


@pytest.mark.parametrize(
    "content",
    [
        b"no json\n",
        b'{"type": "delta"}\n',
        b"[1]\n",
        b'{"type": "journal", "formats": ["../x"]}\n',
        b'{"type": "journal"}\n',
    ],
)
def test_a_file_without_a_journal_header_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "some").write_bytes(content)
    with pytest.raises(UsageError, match=r"some is not a journal; start again with --overwrite"):
        read_header(tmp_path / "some")
