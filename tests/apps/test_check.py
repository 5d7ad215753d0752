"""speech-translate check: what it prints, and its exit status."""

import pytest

from pipeline.apps import check
from pipeline.errors import UsageError
from pipeline.events import EndOfInput, PipelineEvent
from pipeline.media.sinks.srt import SrtSink
from pipeline.media.sinks.vtt import VttSink
from pipeline.media.subtitles.rules import SubtitleRules
from tests.streams import spoken, translated

SENTENCES = [
    ("The restaurant opens at six o'clock in the evening.", "O restaurante abre às 6 horas da noite."),
    ("It takes ten minutes to walk to the restaurant.", "Leva 10 minutos a pé do restaurante."),
    ("Had he married a more amiable woman, he might have been made still more respectable than he was.",
     "Se ele se casasse com uma mulher mais amável, ele poderia ter sido feito ainda mais respeitável."),
]  # fmt: skip


def talk() -> list[PipelineEvent]:
    """Sentences that are said at 18 characters a second, with pauses."""
    events: list[PipelineEvent] = []
    at_s = 1.0
    for number, (source, text) in enumerate(SENTENCES):
        events += spoken(number, source, at_s, at_s + len(source) / 18)
        events += translated(number, [text], language="pt")
        at_s += len(source) / 18 + 1.0
    return [*events, EndOfInput(at_s)]


@pytest.mark.parametrize("sink", [SrtSink, VttSink])
@pytest.mark.parametrize("bilingual", [False, True])
@pytest.mark.parametrize("source_position", ["top", "bottom"])
def test_files_of_this_package_keep_the_rules(tmp_path, sink, bilingual, source_position, capsys):
    path = tmp_path / "talk.srt"
    rules = SubtitleRules(bilingual=bilingual, source_position=source_position)
    file = sink(path, rules)
    for event in talk():
        file.write(event)
    file.close()
    assert check.run([str(path), *(["--bilingual"] if bilingual else [])]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "all 4 subtitles keep the rules\n")


def test_violations_are_lines_with_their_place_and_the_status_is_1(tmp_path, capsys):
    path = tmp_path / "talk.srt"
    path.write_text(
        "1\n00:00:01,000 --> 00:00:02,000\nYes.\n\n2\n00:00:02,000 --> 00:00:03,000\nYes.\n\n"
        "3\n00:00:04,000 --> 00:00:06,000\nVery well.\n",
        "utf-8",
    )
    assert check.run([str(path)]) == 1
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        f"{path}:6: 00:00:02,000 0 ms after the one before; at least 83 ms are asked",
        f"{path}:6: 00:00:02,000 repeats the one before",
    ]
    assert said.err == "1 of 3 subtitles break a rule\n"
    assert check.run([str(path), "--preset", "bbc"]) == 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, r"cannot read .*talk\.srt \(No such file or directory\)"),
        (b"\xff\xfe1\x00", r"talk\.srt is not in UTF-8 \(byte 0\)"),
        (b"RIFF....WAVE", r"talk\.srt: it has no subtitles; expected SubRip or WebVTT"),
        (b"1\n1 --> 2\n", r"talk\.srt: line 2 is '1 --> 2'; expected times"),
    ],
)
def test_a_file_that_cannot_be_checked_is_one_line(tmp_path, data, said):
    path = tmp_path / "talk.srt"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(UsageError, match=said) as error:
        check.run([str(path)])
    assert error.value.exit_status == 2
