"""What was said, with the times of its words, as other programs read it: whisper's JSON and TSV, LRC, and ASS for karaoke."""

import csv
import json
import re

import av
import pysubs2
import pytest
from pysubs2.formats.substation import parse_tags

from pipeline.events import EndOfInput, PipelineEvent, SourceSentence, Transcript, Word
from pipeline.media.sinks.files import SPOKEN, sink_makers
from pipeline.media.subtitles.rules import SubtitleRules
from tests.commands import run
from tests.conftest import EXAMPLES
from tests.streams import translated

# The fields of a result of openai/whisper 20250625 with word_timestamps=True.
RESULT = {"text", "segments", "language"}
SEGMENT = set("id seek start end text tokens temperature avg_logprob compression_ratio no_speech_prob words".split())
WORD = {"word", "start", "end", "probability"}
LETTER = re.compile(r"\w")


def sentence(
    number: int, text: str, start_s: float, language: str = "en", speaker: str | None = None
) -> SourceSentence:
    """A sentence in which each word, or character of Chinese, takes half a second."""
    pieces = list(text) if language == "zh" else [f" {word}" for word in text.split()]
    words = tuple(
        Word(piece, start_s + at / 2, start_s + at / 2 + 0.5, probability=0.75) for at, piece in enumerate(pieces)
    )
    return SourceSentence(number, language, text, start_s, words[-1].end_s, words=words, speaker=speaker)


SAID = [sentence(0, "Where is <i>it</i> {now}?", 1.0), sentence(1, "[1] Here\\N.", 62.5)]
LONG = "We have looked at all of these numbers again, and we think that the next year will be better than the last one was."


def written(folder, kind, sentences=SAID, *, whole=True, resume=False):
    path = folder / f"out.{kind}"
    sink = sink_makers(SubtitleRules(), resume=resume)[kind](path, languages=["zh"])
    for each in sentences:
        events: list[PipelineEvent] = [
            Transcript(each.sentence, each.start_s, each.end_s, each.text, each.language, 0.1, -0.2, 1.3),
            each,
            *translated(each.sentence, "是的。"),
        ]
        for event in events:
            sink.write(event)
    if whole:
        sink.write(EndOfInput(70.0))
    sink.close()
    return path


def test_the_json_has_the_fields_of_openai_whisper_and_pysubs2_takes_it_for_its(tmp_path):
    result = json.loads(written(tmp_path, "json").read_text("utf-8"))
    assert result.keys() == RESULT
    assert [each.keys() for each in result["segments"]] == [SEGMENT, SEGMENT]
    assert all(word.keys() == WORD for each in result["segments"] for word in each["words"])
    assert [each["id"] for each in result["segments"]] == [0, 1]
    assert result["segments"][0]["avg_logprob"] == -0.2
    assert result["language"] == "en"
    assert result["text"] == "".join(each["text"] for each in result["segments"])
    assert all(each["text"] == "".join(word["word"] for word in each["words"]) for each in result["segments"])
    subtitles = pysubs2.load_from_whisper(result)
    assert [(each.start, each.end, each.text) for each in subtitles] == [
        (1000, 3000, "Where is <i>it</i> {now}?"),
        (62500, 63500, "[1] Here\\N."),
    ]


def test_the_json_names_who_speaks_and_chinese_has_no_blanks(tmp_path):
    two = [sentence(0, "你好。", 0.0, "zh", "A"), sentence(1, "再见。", 3.0, "zh", "B")]
    result = json.loads(written(tmp_path, "json", two).read_text("utf-8"))
    assert result["text"] == "你好。再见。"
    assert [each["speaker"] for each in result["segments"]] == ["A", "B"]
    assert [word["word"] for word in result["segments"][0]["words"]] == ["你", "好。"]


def test_a_json_file_is_valid_after_each_sentence_and_whole_if_it_is_closed_early(tmp_path):
    path = written(tmp_path, "json", SAID[:1], whole=False, resume=True)
    result = json.loads(path.read_text("utf-8"))
    assert [each["text"] for each in result["segments"]] == [" " + SAID[0].text]
    assert result.keys() == {"segments"}  # the run that resumes ends it
    again = written(tmp_path, "json", SAID, resume=True).read_text("utf-8")
    path.unlink()
    assert again == written(tmp_path, "json").read_text("utf-8")
    path.unlink()
    assert json.loads(written(tmp_path, "json", whole=False).read_text("utf-8")).keys() == RESULT


def kept_by(sink, events):
    """What a sink knows of what was heard, after each event."""
    found = []
    for event in events:
        sink.write(event)
        found.append([one.segment_id for one in sink._heard])
    return found


def test_a_segment_counts_for_each_sentence_in_it_and_is_then_forgotten(tmp_path):
    sink = sink_makers(SubtitleRules())["json"](tmp_path / "out.json")
    first, second, third = (sentence(number, "One two", at) for number, at in enumerate((1.0, 2.0, 6.0)))
    noise = Transcript(7, 1.0, 3.0, "What?", "en", 0.9, -9.0, 9.0, rejected="uncertain")
    heard = Transcript(0, 1.0, 3.0, "One two. One two.", "en", 0.1, -0.5, 1.3)
    assert kept_by(sink, [noise, heard, first, second, third, EndOfInput(9.0)]) == [[], [0], [0], [0], [], []]
    sink.close()
    result = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert [each["avg_logprob"] for each in result["segments"]] == [-0.5, -0.5, 0.0]


def test_the_language_of_a_file_is_that_of_its_first_sentence_and_blank_ones_are_left_out(tmp_path):
    said = [sentence(0, "Yes.", 1.0), sentence(1, "好。", 3.0, "zh"), SourceSentence(2, "en", "\u200b", 5.0, 6.0)]
    result = json.loads(written(tmp_path, "json", said).read_text("utf-8"))
    assert (result["language"], len(result["segments"])) == ("en", 2)


@pytest.mark.parametrize("kind", ["tsv", "lrc"])
def test_a_speaker_is_named_when_another_one_spoke_before(tmp_path, kind):
    names = ("Ana", "Ana", "Ben", None, "Ben")
    said = [sentence(number, "Yes.", 2.0 * number, speaker=name) for number, name in enumerate(names)]
    lines = written(tmp_path, kind, said).read_text("utf-8").splitlines()[-len(names) :]
    assert [re.findall(r"Ana|Ben", line) for line in lines] == [["Ana"], [], ["Ben"], [], ["Ben"]]


def test_the_tsv_is_whispers(tmp_path):
    rows = list(csv.DictReader(written(tmp_path, "tsv").open(encoding="utf-8"), dialect="excel-tab"))
    assert rows[0] == {"start": "1000", "end": "3000", "text": "Where is <i>it</i> {now}?"}
    assert rows[1]["start"] == "62500"


def test_ffmpeg_reads_the_lines_of_lrc_at_their_times_and_each_word_has_its_own(tmp_path):
    path = written(tmp_path, "lrc")
    lines = path.read_text("utf-8").splitlines()
    assert re.findall(r"<(\d\d:\d\d\.\d\d)>", lines[0]) == [f"00:0{at / 2:.2f}" for at in range(2, 7)]
    with av.open(str(path)) as container:
        packets = [packet for packet in container.demux() if packet.size]
        assert [float(packet.pts * packet.time_base) for packet in packets] == [1.0, 62.5]
    plain = [re.sub(r"\u2060|<[\d:.]+>|^\[[\d:.]+\]", "", line) for line in lines]
    assert plain == [each.text for each in SAID]


@pytest.mark.parametrize(
    ("said", "count"),
    [(SAID[0], 1), (sentence(0, LONG, 1.0), 2), (sentence(0, "去柏林的火车几点出发？" * 3, 1.0, "zh"), 2)],
)
def test_a_karaoke_word_lights_up_when_it_is_said(tmp_path, said, count):
    events = [
        each for each in pysubs2.load(str(written(tmp_path, "karaoke", [said])), format_="ass") if not each.is_comment
    ]
    assert len(events) >= count
    lit = []
    for event in events:
        at = event.start
        for length, text in re.findall(r"\{\\k(\d+)\}([^{]*)", event.text):
            lit.append((at, text.replace(r"\N", "").replace("\u2060", "").strip()))
            at += 10 * int(length)
        assert abs(at - event.end) <= 10
        assert all(not part or "{" not in part for part, _ in parse_tags(event.text))
    wanted = said.text.translate(str.maketrans("{}", "｛｝"))
    assert "".join(text for _, text in lit) == wanted.replace(" ", "")
    starts = {round(1000 * word.start_s) for word in said.words}
    assert all(at in starts for at, text in lit if LETTER.search(text))


def test_no_karaoke_word_lights_up_before_those_that_come_before_it(tmp_path):
    """The words of a recogniser of somebody else's may have any times."""
    words = (Word("We", 1.0, 1.4), Word(" go", 2.0, 2.2), Word(" now", 1.5, 1.8))
    path = written(tmp_path, "karaoke", [SourceSentence(0, "en", "We go now", 1.0, 2.2, words=words)])
    assert re.findall(r"\{\\k(-?\d+)\}", path.read_text("utf-8")) == ["100", "0", "0"]


@pytest.mark.slow
def test_a_recording_gets_one_file_of_what_was_said_for_all_targets(tmp_path):
    options = ["--config", "demo", "--target", "pt,en", "--format", ",".join(SPOKEN), "--output-dir", str(tmp_path)]
    assert run("translate", EXAMPLES / "travel.wav", *options).returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        f"travel.{kind}" for kind in ("json", "tsv", "lrc", "karaoke.ass")
    }
    for path in tmp_path.iterdir():
        text = re.sub(r"<[\d:.]+>|\{\\k\d+\}", "", path.read_text("utf-8"))
        assert "train to Berlin" in text
        assert "trem" not in text
    result = json.loads((tmp_path / "travel.json").read_text("utf-8"))
    words = [word for each in result["segments"] for word in each["words"]]
    assert all(word.keys() == WORD and 0 < word["probability"] <= 1 for word in words)
