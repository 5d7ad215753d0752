"""Files of this package without a cue are detected, and no others."""

import pytest

from pipeline.core.notices import LoadChanged
from pipeline.events import EndOfInput, PipelineEvent, Transcript
from pipeline.media.sinks.blank import is_blank
from pipeline.media.sinks.files import FORMATS, sink_makers
from pipeline.media.subtitles.rules import SubtitleRules
from tests.streams import spoken, translated

REJECTED = Transcript(0, 0.0, 1.0, "What?", "en", rejected="uncertain")
SHOWN: list[PipelineEvent] = [
    Transcript(1, 1.0, 2.0, "Yes.", "en"),
    *spoken(0, "Yes.", 1.0, 2.0),
    *translated(0, ["是。"]),
]


@pytest.mark.parametrize(
    "rules", [SubtitleRules(), SubtitleRules(bilingual=True, source_position="top")], ids=["plain", "bilingual"]
)
@pytest.mark.parametrize("kind", FORMATS)
def test_an_output_is_blank_without_a_cue_and_not_blank_with_one(tmp_path, kind, rules):
    path = tmp_path / "out"
    for events, blank in (
        ([EndOfInput(1.0)], True),
        ([REJECTED, LoadChanged(1, 6.0), EndOfInput(1.0)], True),
        ([REJECTED, *SHOWN, EndOfInput(2.0)], False),
    ):
        sink = sink_makers(rules)[kind](path)
        for event in events:
            sink.write(event)
        sink.close()
        assert is_blank(path, kind) == blank, path.read_text("utf-8")
        path.unlink()


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("srt", b"mine"),
        ("srt", b"\n"),
        ("txt", b" "),
        ("vtt", b"WEBVTT\n\nNOTE mine\n"),
        ("vtt", b"\xef\xbb\xbfWEBVTT\n\n"),
        ("ass", b"[Script Info]\n\n[V4+ Styles]\nStyle: Mine,Arial,20\n\n[Events]\n"),
        ("ass", b"[Script Info]\n\n[V4+ Styles]\n\n[Events]\nDialogue: 0,0:00:00.00,0:00:01.00,Default,,0,0,0,,Mine\n"),
        ("ass", b"[Script Info]\n" + b"; mine\n" * 2_000),
        ("jsonl", b'{"type": "transcript", "rejected": "uncertain"}\n{"mine": 1}\n'),
        ("jsonl", b'{"type": "cue", "index": 1}\n'),
        ("jsonl", b'{"type": "events", "version": 4}\n{"type": "source_delta", "text": "Yes"}\n'),
        ("jsonl", b'{"type": "source_sentence", "text": "Yes."}\n'),
        ("jsonl", b'{"type": "translation", "text": "\xe6\x98\xaf"}\n'),
        ("jsonl", b'{"type": "transcript", "text": "\\"rejected\\": \\""}\n'),
    ],
)
def test_a_file_of_another_program_is_not_blank(tmp_path, kind, content):
    path = tmp_path / "out"
    path.write_bytes(content)
    assert not is_blank(path, kind)


def test_a_missing_file_is_not_blank(tmp_path):
    assert not is_blank(tmp_path / "none.srt", "srt")
    assert not is_blank(tmp_path, "jsonl")
