"""Subtitle files, read back by independent parsers."""

import errno
import html
import itertools
import json
import mmap
import os
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pysubs2
import pytest
import srt
import ttconv.imsc.reader
import ttconv.isd
import ttconv.model
import webvtt
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.captions.changes import States
from pipeline.errors import SinkError, UsageError
from pipeline.events import (
    Confidence,
    EndOfInput,
    PipelineEvent,
    SourceSentence,
    SourceText,
    Transcript,
    Translation,
    Word,
)
from pipeline.media.sinks.cue_file import timestamp
from pipeline.media.sinks.files import FORMATS, open_sinks, sink_makers
from pipeline.media.sinks.jsonl import line, read_event
from pipeline.media.sinks.sink import Sink, close_all, write_all
from pipeline.media.subtitles.rules import SubtitleRules
from tests.conftest import examples
from tests.media.subtitles.strategies import RULES, TEXTS
from tests.streams import spoken, states, translated

TEXTS_SAID = [
    "去柏林的火车几点出发？",
    "a ---> b & <i>c</i> {\\an8}",
    "我妹妹明天早上将在北京介绍新产品，经理和司机都会来，请不要迟到。",
]
SOURCE = "Where is it?"
DEFAULT = SubtitleRules()
BILINGUAL = SubtitleRules(bilingual=True)


def events(texts: list[str] = TEXTS_SAID) -> list[PipelineEvent]:
    found: list[PipelineEvent] = []
    for i, text in enumerate(texts):
        start_s, end_s = 3600.0 + 5 * i, 3604.0 + 5 * i
        found += [Transcript(i, start_s, end_s, SOURCE, "en"), *spoken(i, SOURCE, start_s, end_s), *translated(i, text)]
    return [*found, EndOfInput(3700.0)]


def flat(text: str) -> str:
    return "".join(text.split())


def opened(folder: Path, rules: SubtitleRules = DEFAULT, *, resume: bool = False) -> tuple[dict[str, Path], list[Sink]]:
    paths = {kind: folder / f"out.{kind}" for kind in FORMATS}
    return paths, open_sinks(
        {(kind, ""): path for kind, path in paths.items()}, None, sink_makers(rules, resume=resume)
    )


def write(folder: Path, count: int | None = None, rules: SubtitleRules = DEFAULT) -> dict[str, Path]:
    paths, sinks = opened(folder, rules)
    for event in events()[:count]:
        write_all(sinks, event)
    for sink in sinks:
        sink.close()
    return paths


def parsed(paths: dict[str, Path]) -> dict[str, list[tuple[int, int, str]]]:
    """What other programs read from each format: start and end in ms, and the text without blanks."""
    subs = {kind: pysubs2.load(str(paths[kind]), encoding="utf-8", format_=kind) for kind in ("srt", "ass")}
    found = {
        f"{kind} by pysubs2": [(line.start, line.end, flat(line.plaintext)) for line in lines]
        for kind, lines in subs.items()
    }
    found["srt by srt"] = [
        (round(cue.start.total_seconds() * 1000), round(cue.end.total_seconds() * 1000), flat(cue.content))
        for cue in srt.parse(paths["srt"].read_text("utf-8"))
    ]
    found["vtt by webvtt"] = [
        (_ms(cue.start), _ms(cue.end), flat(html.unescape(re.sub("</?c.source>|</c>", "", cue.raw_text))))
        for cue in webvtt.read(str(paths["vtt"])).captions
    ]
    found["ttml by ttconv"] = ttml_cues(paths["ttml"])
    return found


def ttml_cues(path: Path) -> list[tuple[int, int, str]]:
    """What a renderer of IMSC shows, with its times: one entry for each state of the picture that has text."""
    document = ttconv.imsc.reader.to_model(ElementTree.parse(path))
    times = ttconv.isd.ISD.significant_times(document)
    found = []
    for begin, end in itertools.pairwise([*times, None]):
        state = ttconv.isd.ISD.from_model(document, begin)
        texts = (
            [
                one.get_text()
                for region in state.iter_regions()
                for one in region.dfs_iterator()
                if isinstance(one, ttconv.model.Text)
            ]
            if state
            else []
        )
        if text := flat("".join(texts)):
            found.append((round(begin * 1000), round((end or 0) * 1000), text))
    return found


def _ms(stamp: str) -> int:
    hours, minutes, seconds = stamp.split(":")
    return round((int(hours) * 3600 + int(minutes) * 60 + float(seconds)) * 1000)


def cues_of(paths: dict[str, Path]) -> list[tuple[int, int, str]]:
    """The expected content, from the cues in the JSON lines."""
    records = [json.loads(line) for line in paths["jsonl"].read_text("utf-8").splitlines()]
    return [
        (round(r["start_s"] * 1000), round(r["end_s"] * 1000), flat("".join(r["lines"] + r.get("source_lines", []))))
        for r in records
        if r["type"] == "cue"
    ]


def unmarked(text: str) -> str:
    """``text`` without the invisible characters that the sinks add, and with one form of braces, because SubRip and ASS
    have no plain ones."""
    return re.sub("[\u2060\u200e\u200f\u202b\u202c]", "", text).translate(str.maketrans("｛｝", "{}"))


def test_other_programs_read_the_same_from_every_format(tmp_path):
    paths = write(tmp_path)
    cues = cues_of(paths)
    assert len(cues) == 4  # the third sentence takes two
    read = parsed(paths)
    assert [(a, b, unmarked(text)) for a, b, text in read["srt by srt"]] == cues
    assert paths["srt"].read_text("utf-8").count("-->") == len(cues)
    assert [(a, b) for a, b, _ in read["srt by pysubs2"]] == [(a, b) for a, b, _ in cues]
    assert [(a, b) for a, b, _ in read["vtt by webvtt"]] == [(a, b) for a, b, _ in cues]
    assert [(a, b, unmarked(text)) for a, b, text in read["ttml by ttconv"]] == cues
    assert [(a, b) for a, b, _ in read["ass by pysubs2"]] == [(a // 10 * 10, b // 10 * 10) for a, b, _ in cues]
    assert unmarked(read["srt by pysubs2"][1][2]) == "a--->b&<i>c</i>{\\an8}"
    assert unmarked(read["ass by pysubs2"][1][2]) == "a--->b&<i>c</i>{\\an8}"
    # libass detects each line's direction and wraps lines that are too wide.
    script = pysubs2.load(str(paths["ass"]), encoding="utf-8")
    assert [style.encoding for style in script.styles.values()] == [-1, -1]
    assert script.info["WrapStyle"] == "0"
    assert paths["txt"].read_text("utf-8").splitlines() == TEXTS_SAID
    vtt = paths["vtt"].read_text("utf-8")
    assert "a ---&gt; b &amp; &lt;i&gt;c&lt;/i&gt; {\\an8}" in vtt
    assert "line:" not in vtt
    # Lines follow the rules.
    assert all(len(line) <= 16 for cue in srt.parse(paths["srt"].read_text("utf-8")) for line in unmarked(cue.content).split("\n")
               if not line.isascii())  # fmt: skip


def test_jsonl_has_every_event_and_every_cue(tmp_path):
    paths = write(tmp_path)
    records = [json.loads(line) for line in paths["jsonl"].read_text("utf-8").splitlines()]
    assert records[-1]["type"] == "end"
    assert records[0] == {"type": "events", "version": 4}
    assert len([record for record in records[1:] if record["type"] != "cue"]) == len(events())
    read = [event for record in records if (event := read_event(record)) is not None]
    assert states(read) == events()[:-1]
    ended = next(n for n, record in enumerate(records) if record["type"] == "translation")
    assert records[ended + 1]["type"] == "cue"


def test_every_format_says_who_speaks(tmp_path):
    paths, sinks = opened(tmp_path)
    names = ["Ana & <b>", "Ana & <b>", "Ben, Jr."]
    for event in events(["Um avião.", "Chega às sete.", "Onde?"]):
        if isinstance(event, SourceText | SourceSentence):
            event = replace(event, speaker=names[event.sentence])
        write_all(sinks, event)
    close_all(sinks)
    found = {kind: path.read_text("utf-8") for kind, path in paths.items()}
    assert [html.unescape(caption.voice) for caption in webvtt.from_string(found["vtt"])] == names
    assert [caption.text for caption in webvtt.from_string(found["vtt"])] == ["Um avião.", "Chega às sete.", "Onde?"]
    assert [event.name for event in pysubs2.SSAFile.from_string(found["ass"])] == [*names[:2], "Ben; Jr."]
    assert found["txt"] == "Ana & <b>: Um avião.\nChega às sete.\nBen, Jr.: Onde?\n"
    shown = [cue.content.replace("\u2060", "") for cue in srt.parse(found["srt"])]
    assert shown == ["Ana & <b>: Um avião.", "Chega às sete.", "Ben, Jr.: Onde?"]
    paragraphs = ElementTree.fromstring(found["ttml"]).iter("{http://www.w3.org/ns/ttml}p")
    assert ["".join(each.itertext()) for each in paragraphs] == shown
    records = [json.loads(each) for each in found["jsonl"].splitlines()]
    for kind in ("source_delta", "source_sentence", "cue"):
        assert [record["speaker"] for record in records if record["type"] == kind] == names
    known = [read_event(record) for record in records if record["type"] == "source_delta"]
    assert [event.speaker for event in map(States().push, known)] == names


def test_jsonl_leaves_out_repeated_words_and_empty_values(tmp_path):
    words = (Word("Yes,", 1.0, 1.25), Word(" now.", 1.5, 2.0))
    transcript = Transcript(0, 1.0, 2.0, "Yes, now.", "en", words=words, turns=(1,))
    said = SourceSentence(0, "en", "Yes, now.", 1.0, 2.0, 2.00005, words)
    assert json.loads(line(transcript)) == {
        "type": "transcript", "segment_id": 0, "start_s": 1.0, "end_s": 2.0, "text": "Yes, now.", "language": "en"
    }  # fmt: skip
    assert json.loads(line(said))["words"] == [
        {"text": "Yes,", "start_s": 1.0, "end_s": 1.25},
        {"text": " now.", "start_s": 1.5, "end_s": 2.0},
    ]
    assert json.loads(line(said))["heard_s"] == 2.0
    for event in (transcript, said, Translation(0, "zh", "是。", Confidence(-0.25, -0.5), missed_terms=("Yes",))):
        assert read_event(json.loads(line(event, exact=True))) == event


def test_both_languages_in_every_format(tmp_path):
    paths = write(tmp_path, rules=BILINGUAL)
    first = next(srt.parse(paths["srt"].read_text("utf-8")))
    assert first.content.splitlines() == ["去柏林的火车几点出发？", "Where is it?"]
    captions = webvtt.read(str(paths["vtt"])).captions
    assert [flat(cue.text) for cue in captions[:2]] == ["Whereisit?", "去柏林的火车几点出发？"]
    assert captions[0].start == captions[1].start
    assert "--> 01:00:04.000 line:0\n<c.source>Where is it?</c>\n" in paths["vtt"].read_text("utf-8")
    lines = pysubs2.load(str(paths["ass"]), encoding="utf-8")
    assert [(line.style, line.plaintext) for line in lines][:2] == [
        ("Source", "Where is it?"),
        ("Translation", "去柏林的火车几点出发？"),
    ]
    assert (lines.styles["Source"].alignment, lines.styles["Translation"].alignment) == (8, 2)
    assert paths["txt"].read_text("utf-8").startswith("去柏林的火车几点出发？\nWhere is it?\n\n")
    ttml = paths["ttml"].read_text("utf-8")
    assert (
        '<p region="bottom" begin="01:00:00.000" end="01:00:04.000"><span style="box">去柏林的火车几点出发？</span></p>\n'
        in ttml
    )
    assert (
        '<p region="top" begin="01:00:00.000" end="01:00:04.000" xml:lang="en"><span style="box">Where is it?<' in ttml
    )


def test_what_may_be_misheard_is_marked_on_request_and_always_in_jsonl(tmp_path):
    said = [
        replace(event, uncertain=True) if isinstance(event, SourceSentence) else event for event in events(["好的。"])
    ]
    for mark in (False, True):
        folder = tmp_path / str(mark)
        folder.mkdir()
        paths, sinks = opened(folder, replace(BILINGUAL, mark_uncertain=mark))
        for event in said:
            write_all(sinks, event)
        close_all(sinks)
        for kind in ("txt", "srt", "vtt", "ttml"):
            written = paths[kind].read_text("utf-8")
            assert ("好的。 [?]" in written, "Where is it? [?]" in written) == (mark, mark), kind
            assert ("好的。" in written, "Where is it?" in written) == (True, True), kind
        (record,) = (each for each in map(json.loads, paths["jsonl"].open()) if each["type"] == "source_sentence")
        assert (record["text"], record["uncertain"]) == ("Where is it?", True)
        assert read_event(record).uncertain


def test_a_source_without_a_translation_is_in_every_format(tmp_path):
    paths, sinks = opened(tmp_path, BILINGUAL)
    for event in events(["", "好的。"]):
        write_all(sinks, event)
    close_all(sinks)
    assert paths["txt"].read_text("utf-8") == "Where is it?\n\n好的。\nWhere is it?\n\n"
    for kind in ("srt", "vtt", "ass"):
        assert paths[kind].read_text("utf-8").count("Where is it?") == 2
    records = [json.loads(line) for line in paths["jsonl"].read_text("utf-8").splitlines()]
    assert [cue["source_lines"] for cue in records if cue["type"] == "cue"] == [["Where is it?"]] * 2


def test_positions_are_the_configured_ones(tmp_path):
    paths = write(tmp_path, rules=SubtitleRules(bilingual=True, position="top", source_position="top"))
    captions = webvtt.read(str(paths["vtt"])).captions
    assert captions[0].lines == ["去柏林的火车几点出发？", "<c.source>Where is it?</c>"]
    assert "--> 01:00:04.000 line:0\n去" in paths["vtt"].read_text("utf-8")
    lines = pysubs2.load(str(paths["ass"]), encoding="utf-8")
    assert lines[0].text == r"去柏林的火车几点出发？\N{\rSource}Where is it?"
    assert lines.styles["Translation"].alignment == 8


def test_each_language_has_its_own_direction(tmp_path):
    paths, sinks = opened(tmp_path, BILINGUAL)
    for event in (*spoken(0, SOURCE, 1.0, 3.0), *translated(0, ["أين؟ GPU."])):
        write_all(sinks, event)
    close_all(sinks)
    arabic = "\u202bأين؟ GPU.\u202c"
    assert f"\n{arabic}\n{SOURCE}\n" in paths["srt"].read_text("utf-8")
    assert f"\n{arabic}\n" in paths["vtt"].read_text("utf-8")
    assert f",,{arabic}\n" in paths["ass"].read_text("utf-8")
    assert paths["txt"].read_text("utf-8") == f"أين؟ GPU.\n{SOURCE}\n\n"


@settings(max_examples=examples(40))
@given(st.lists(TEXTS, min_size=1, max_size=4), RULES)
def test_any_text_is_read_back_after_every_sentence(texts, rules):
    with tempfile.TemporaryDirectory() as folder:
        paths, sinks = opened(Path(folder), rules)
        for event in events(texts):
            write_all(sinks, event)
            if isinstance(event, Translation):
                cues = cues_of(paths)
                read = parsed(paths)
                texts_written = [(a, b, unmarked(text)) for a, b, text in cues]
                assert [(a, b, unmarked(text)) for a, b, text in read["srt by srt"]] == texts_written
                assert [(a, b, unmarked(text)) for a, b, text in read["srt by pysubs2"]] == texts_written
                assert paths["srt"].read_text("utf-8").count("-->") == len(cues)
                # Here a source has its own cue, before the translation or after it.
                everything = sorted("".join(text for _, _, text in texts_written))
                assert sorted(unmarked("".join(text for _, _, text in read["vtt by webvtt"]))) == everything
                assert sorted(unmarked("".join(text for _, _, text in read["ass by pysubs2"]))) == everything
                shown = "".join(text for _, _, text in read["ttml by ttconv"])
                assert sorted(unmarked(shown)) == [c for c in everything if c not in "\ufffe\uffff"]
        for sink in sinks:
            sink.close()


def test_a_sentence_that_waits_for_the_next_is_written_when_the_run_is_cut_short(tmp_path):
    paths, sinks = opened(tmp_path)
    for event in (*spoken(0, "Yes.", 1.0, 1.2, before_pause=False), *translated(0, "好。")):
        write_all(sinks, event)
    assert cues_of(paths) == []
    for sink in sinks:
        sink.close()
    assert cues_of(paths) == [(1000, 1833, "好。")]
    assert parsed(paths)["srt by srt"] == [(1000, 1833, "好。")]


def test_a_sentence_that_waits_for_the_next_is_left_to_the_run_that_resumes(tmp_path):
    paths, sinks = opened(tmp_path, resume=True)
    for event in (*spoken(0, "Yes.", 1.0, 1.2, before_pause=False), *translated(0, "好。")):
        write_all(sinks, event)
    close_all(sinks)
    assert cues_of(paths) == []
    assert "好" not in "".join(paths[kind].read_text("utf-8") for kind in ("srt", "vtt", "ass", "ttml"))


def test_a_run_without_results_leaves_an_existing_file_alone(tmp_path):
    (tmp_path / "out.srt").write_text("precious")
    _, sinks = opened(tmp_path)
    for sink in sinks:
        sink.close()
    assert (tmp_path / "out.srt").read_text() == "precious"
    assert not (tmp_path / "out.vtt").exists()


def test_a_run_with_results_replaces_the_whole_file(tmp_path):
    (tmp_path / "out.srt").write_text("old\n" * 1000)
    write(tmp_path)
    assert len(list(srt.parse((tmp_path / "out.srt").read_text("utf-8")))) == 4


@pytest.mark.parametrize("torn", [0, 7, 400])
def test_a_resumed_run_never_has_less_than_the_one_before_and_ends_the_same(tmp_path, torn):
    for folder in ("whole", "cut"):
        (tmp_path / folder).mkdir()
    whole = write(tmp_path / "whole")
    paths, sinks = opened(tmp_path / "cut")
    for event in events()[: len(events()) // 2]:
        write_all(sinks, event)
    for sink in sinks:
        sink._file.close()  # as when the process is killed
    for path in paths.values():
        path.write_bytes(path.read_bytes() + b"x" * torn)
    before = {path: path.stat().st_size - torn for path in paths.values()}
    _, sinks = opened(tmp_path / "cut", resume=True)
    for event in events():
        write_all(sinks, event)
        assert all(path.stat().st_size >= size for path, size in before.items())
    for kind, path in paths.items():
        assert path.read_bytes() == whole[kind].read_bytes()


def test_a_resumed_run_that_ends_earlier_leaves_nothing_of_the_one_before(tmp_path):
    paths, sinks = opened(tmp_path)
    for event in events():
        write_all(sinks, event)
    close_all(sinks)
    (tmp_path / "short").mkdir()
    few = [*events(TEXTS_SAID[:2])]
    short, sinks = opened(tmp_path / "short")
    _, again = opened(tmp_path, resume=True)
    for event in few:
        write_all([*sinks, *again], event)
    close_all([*sinks, *again])
    assert {kind: path.read_bytes() for kind, path in paths.items()} == {
        kind: path.read_bytes() for kind, path in short.items()
    }


def test_a_full_disk_keeps_what_was_written_and_leaves_no_empty_file(tmp_path, monkeypatch):
    (sink,) = open_sinks({("srt", ""): tmp_path / "out.srt"}, None, sink_makers(DEFAULT))
    everything = events()
    half = len(everything) // 2
    real_write = os.write

    def full_disk(descriptor: int, data: bytes) -> int:
        """Simulates a disk with ten bytes of free space."""
        if len(data) > 10:
            return real_write(descriptor, data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for event in everything[:half]:
        sink.write(event)
    before = (tmp_path / "out.srt").read_bytes()
    monkeypatch.setattr(os, "write", full_disk)
    with pytest.raises(SinkError, match="No space left"):
        for event in everything[half:]:
            sink.write(event)
    assert (tmp_path / "out.srt").read_bytes() == before
    with pytest.raises(SinkError, match="No space left"):
        open_sinks({("ass", ""): tmp_path / "out.ass"}, None, sink_makers(DEFAULT))
    assert [path.name for path in tmp_path.iterdir()] == ["out.srt"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("nowhere/out.srt", "No such file or directory"), ("out.srt", "Too many levels of symbolic links")],
)
def test_a_file_that_cannot_be_created_is_named_in_the_error(tmp_path, name, reason):
    (tmp_path / "out.srt").symlink_to("out.srt")
    with pytest.raises(UsageError, match=rf"cannot write .*{name} \({reason}\)"):
        open_sinks({("srt", ""): tmp_path / name}, tmp_path / "talk.wav", sink_makers(DEFAULT))


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there that leave a file readable")
def test_two_runs_never_write_the_same_file(tmp_path):
    paths, sinks = opened(tmp_path)
    write_all(sinks, events()[0])
    with pytest.raises(UsageError, match=r"out\.srt is being written by another run"):
        opened(tmp_path)
    for sink in sinks:
        sink.close()
    _, sinks = opened(tmp_path)  # an ended run has no lock
    for sink in sinks:
        sink.close()
    assert paths["vtt"].read_text() == "WEBVTT\n\n"


def test_a_pipe_gets_the_end_of_a_document_once_at_its_end(tmp_path):
    path = tmp_path / "pipe.ttml"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    (sink,) = open_sinks({("ttml", ""): path}, None, sink_makers(DEFAULT))
    for event in events():
        sink.write(event)
    sink.close()
    with open(reader, encoding="utf-8") as pipe:
        document = pipe.read()
    assert document.count("</tt>") == 1
    assert len(list(ElementTree.fromstring(document).iter("{http://www.w3.org/ns/ttml}p"))) == 4


def test_timestamps_round_to_the_millisecond():
    assert timestamp(3599.9996, ",") == "01:00:00,000"
    assert timestamp(59.9994, ".") == "00:00:59.999"
    assert timestamp(36000.5, ",") == "10:00:00,500"


def test_a_new_file_is_valid_from_the_start(tmp_path):
    paths, _ = opened(tmp_path)
    assert webvtt.read(str(paths["vtt"])).captions == []
    assert ttml_cues(paths["ttml"]) == []
    assert len(pysubs2.load(str(paths["ass"]))) == 0


def test_no_file_is_written_twice_and_never_the_recording(tmp_path):
    (tmp_path / "talk.wav").write_bytes(b"sound")
    with pytest.raises(UsageError, match=r"talk\.wav is also the recording; choose another place for the srt file"):
        open_sinks({("srt", ""): tmp_path / "sub" / ".." / "talk.wav"}, tmp_path / "talk.wav", sink_makers(DEFAULT))
    with pytest.raises(UsageError, match="is also the file for srt; choose another place for the vtt file"):
        open_sinks({("srt", ""): tmp_path / "out", ("vtt", ""): tmp_path / "out"}, None, sink_makers(DEFAULT))
    assert (tmp_path / "talk.wav").read_bytes() == b"sound"
    assert not (tmp_path / "out").exists()


# Writes all events to the given folder, prints when it starts, and waits to be killed.
WRITER = """
import sys
from pathlib import Path
from tests.media.sinks.test_files import events, opened, write_all, TEXTS_SAID
_, sinks = opened(Path(sys.argv[1]))
print("ready", flush=True)
for event in events(TEXTS_SAID * 200):
    write_all(sinks, event)
sys.stdin.read()
"""


@pytest.mark.slow
def test_kill_9_at_random_moments_leaves_whole_files(tmp_path):
    moments = random.Random(8)
    for n in range(2):
        folder = tmp_path / str(n)
        folder.mkdir()
        command = [sys.executable, "-c", WRITER, str(folder)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        moment = moments.randrange(100_000)
        while (folder / "out.jsonl").stat().st_size < moment:
            select.select([], [], [], 0.001)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        paths = {kind: folder / f"out.{kind}" for kind in FORMATS}
        lines = paths["jsonl"].read_text("utf-8").split("\n")
        cues = sum('"type": "cue"' in line for line in lines[:-1])
        # Sinks are written in turn, so they differ by at most one sentence.
        assert all(abs(len(read) - cues) <= 2 for read in parsed(paths).values())
        # The kernel may end a write at a page's end.
        assert lines[-1] == "" or paths["jsonl"].stat().st_size % mmap.PAGESIZE == 0


def test_a_sink_that_fails_to_close_costs_others_no_cue(tmp_path, monkeypatch):
    paths, sinks = opened(tmp_path)
    for event in (*spoken(0, "Yes.", 1.0, 1.2, before_pause=False), *translated(0, "好。")):
        write_all(sinks, event)
    monkeypatch.setattr(sinks[FORMATS.index("jsonl")]._file, "_descriptor", os.open(tmp_path / "out.srt", os.O_RDONLY))
    with pytest.raises(SinkError, match="cannot write"):
        close_all(sinks)
    assert "好。" in paths["srt"].read_text("utf-8")
    assert "好。" in paths["vtt"].read_text("utf-8")


def test_no_jsonl_line_is_split_by_any_reader(tmp_path):
    paths, sinks = opened(tmp_path)
    text = "a\x85b\u2028c\u2029d\ne"
    for event in (*spoken(0, "Yes.", 1.0, 2.0), *translated(0, [text])):
        write_all(sinks, event)
    *_, delta, translation, cue = (json.loads(line) for line in paths["jsonl"].read_text("utf-8").splitlines())
    assert delta["text"] == translation["text"] == text
    assert cue["lines"] == ["a b c d e"]
