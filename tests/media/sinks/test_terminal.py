"""Terminal output, on an emulated screen."""

import errno
import io
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from pipeline.core.notices import TranslationLost
from pipeline.errors import SinkError
from pipeline.events import EndOfInput, PipelineEvent, SourceSentence, SourceText, TargetText, Transcript, Translation
from pipeline.media.sinks.sink import FanOut, close_all
from pipeline.media.sinks.terminal import Passage, TerminalClosedError, TerminalSink, drawn, plain
from tests.streams import spoken, translated

GOOD_MORNING = spoken(0, "Good morning.", 0.5, 3.4)
WITHHELD = Transcript(1, 4.0, 5.0, "Thank you.", "en", rejected="uncertain")
THANK_YOU = spoken(1, "Thank you.", 63.0, 65.0)
EVENTS: list[PipelineEvent] = [
    Transcript(0, 0.5, 3.4, "Good morning.", "en"),
    *GOOD_MORNING,
    *translated(0, ["早上", "好。", ""]),
    WITHHELD,
    Transcript(2, 63.0, 65.0, "Thank you.", "en"),
    *THANK_YOU,
    *translated(1, ["谢谢。"]),
    EndOfInput(66.0),
]


def steps(
    events: Sequence[PipelineEvent], terminal: bool, languages: Sequence[str] = (), *, whole: bool = False
) -> list[str]:
    """What each event adds to the output, without colours and cursor movements; last, what closing adds."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=60, highlight=False, legacy_windows=False)
    sink = TerminalSink(console, languages, whole=whole)
    lengths = [0]
    for event in events:
        sink.write(event)
        lengths.append(len(file.getvalue()))
    sink.close()
    lengths.append(len(file.getvalue()))
    return [visible(file.getvalue()[before:after]) for before, after in pairwise(lengths)]


def visible(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_the_translation_grows_token_by_token():
    heard, source, ended, first, second, *_, finished = steps(EVENTS[:7], terminal=True)[:7]
    assert heard == ""
    assert "Good morning." in source
    assert "早上" not in source + ended
    assert "早上 ▌" in first
    assert "早上好。 ▌" in second
    # The finished line is printed once more without a cursor, and nothing is drawn over it.
    assert finished.rstrip().endswith("早上好。")


def test_whole_sentences_alone_are_shown_if_asked():
    events = [*EVENTS[:2], *EVENTS[3:6], EVENTS[2], *translated(0, ["早上好。"])]
    *before, ended, _, complete = steps(events, terminal=True, languages=["zh"], whole=True)[: len(events)]
    assert "".join(before).strip() == ""
    assert "Good morning." in ended
    assert "早上" not in ended, "its translation is not final"
    assert "早上好。" in complete


def test_a_pipe_gets_whole_lines():
    assert "".join(steps(EVENTS, terminal=False)).splitlines() == [
        "00:00.5–00:03.4  Good morning.",
        " " * 17 + "早上好。",
        "01:03.0–01:05.0  Thank you.",
        " " * 17 + "谢谢。",
    ]


def test_a_draft_is_replaced_in_source_and_translation():
    events: list[PipelineEvent] = [
        SourceText(0, "en", "I see.", 5, 0.5, 1.0),
        TargetText(0, "zh", "我明白。"),
        SourceText(0, "en", "I see the sea.", 14, 0.5, 2.0),
        TargetText(0, "zh", "我看见大海。", 6, complete=True),
        SourceSentence(0, "en", "I see the sea.", 0.5, 2.0),
        Translation(0, "zh", "我看见大海。"),
    ]
    shown = steps(events, terminal=True)
    assert "I see." in shown[0]
    assert "我明白。 ▌" in shown[1]
    assert "00:00.5–00:02.0  I see the sea." in shown[2]
    assert "我看见大海。 ▌" in shown[3]
    assert "".join(steps(events, terminal=False)) == f"00:00.5–00:02.0  I see the sea.\n{' ' * 17}我看见大海。\n"


def dim(passage: Passage) -> str:
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=80)
    return "".join(part.text for part in console.render(drawn(passage, growing=True)) if part.style and part.style.dim)


@pytest.mark.parametrize("source", ["I see the sea", "أرى البحر"])
def test_text_that_may_change_is_dim(source):
    translations = (("zh", "我看见"), ("de", "Ich sehe"))
    assert dim(Passage(0.0, 5.0, source, translations)) == ""
    steady = {"": len(source) - 3, "zh": 0, "de": len("Ich sehe")}
    assert dim(Passage(0.0, 5.0, source, translations, steady=steady)) == source[-3:] + "我看见"


def test_nothing_is_left_of_a_draft_of_noise():
    events: list[PipelineEvent] = [
        SourceText(0, "en", "Thank you"),
        TargetText(0, "zh", "谢谢"),
        SourceText(0, "en", ""),
        SourceText(0, "en", "Good"),
        TargetText(0, "zh", ""),
        SourceText(0, "en", ""),
        EndOfInput(9.0),
    ]
    shown = steps(events, terminal=True)
    assert "Thank you" in shown[0]
    assert visible(shown[2]).strip() == ""
    assert "Good" in shown[3]
    assert "…" not in "".join(shown)
    assert "".join(steps(events, terminal=False)) == ""


def test_a_draft_of_noise_does_not_hold_up_what_follows():
    events: list[PipelineEvent] = [
        SourceText(0, "en", "Thank you"),
        SourceText(0, "en", ""),
        *GOOD_MORNING,
        *translated(0, ["早上好。"]),
    ]
    lines = [line for step in steps(events, terminal=False) for line in step.splitlines() if line.strip()[:1] == "0"]
    assert [line.split("  ")[1] for line in lines] == ["Good morning."]


def test_sentences_stay_in_their_order_when_a_draft_is_withdrawn_and_comes_back():
    events: list[PipelineEvent] = [
        SourceText(0, "en", "Hello."),
        SourceText(1, "en", "I sea"),
        SourceText(0, "en", ""),
        *spoken(0, "Hello there."),
        *translated(0, ["你好。"]),
        *spoken(1, "I see."),
        *translated(1, ["我明白。"]),
    ]
    lines = [line[17:] for step in steps(events, terminal=False, languages=["zh"]) for line in step.splitlines()]
    assert lines == ["Hello there.", "你好。", "I see.", "我明白。"]


def test_each_language_has_a_line_and_a_sentence_waits_for_all():
    events = [
        *GOOD_MORNING,
        *translated(0, ["早上好。"]),
        *THANK_YOU,
        *translated(1, ["谢谢。"]),
        *translated(0, ["Guten Morgen."], language="de"),
        *translated(1, ["Danke."], language="de"),
    ]
    shown = steps(events, terminal=False, languages=["zh", "de"])
    assert shown[:9] == [""] * 9
    assert shown[9].splitlines() == [
        "00:00.5–00:03.4  Good morning.",
        " " * 17 + "zh: 早上好。",
        " " * 17 + "de: Guten Morgen.",
    ]
    assert shown[11].splitlines() == ["01:03.0–01:05.0  Thank you.", " " * 17 + "zh: 谢谢。", " " * 17 + "de: Danke."]
    drawing = steps(events, terminal=True, languages=["zh", "de"])[8]
    assert re.search(
        r"zh\s+早上好。 ▌\s+de\s+Guten Morgen. ▌\s+01:03.0–01:05.0  Thank you.\s+zh\s+谢谢。 ▌\s+de\s+▌", drawing
    )


def test_languages_are_in_the_configured_order_whichever_comes_first():
    german, chinese = translated(0, ["Guten Morgen."], language="de"), translated(0, ["早上好。"])
    events = [*GOOD_MORNING, *german, *chinese]
    assert "".join(steps(events, terminal=False, languages=["zh", "de"])).splitlines() == [
        "00:00.5–00:03.4  Good morning.",
        " " * 17 + "zh: 早上好。",
        " " * 17 + "de: Guten Morgen.",
    ]
    source, _, first, _, second, *_ = steps(events, terminal=True, languages=["zh", "de"])
    assert re.search(r"Good morning\.\s+zh\s+▌\s+de\s+▌", source)
    assert re.search(r"zh\s+▌\s+de\s+Guten Morgen\. ▌", first)
    assert re.search(r"zh\s+早上好。 ▌\s+de\s+Guten Morgen\. ▌", second)


def test_a_sentence_spoken_in_one_of_the_languages_has_no_line_for_it():
    source, *_ = steps(spoken(0, "谢谢。", language="zh"), terminal=True, languages=["zh", "de"])
    assert re.fullmatch(r"\s*00:00\.0–00:01\.0  谢谢。\s+▌\s*", source)


@pytest.mark.parametrize(("rewritten", "lines"), [((), 1), (("zh-TW",), 2)])
def test_what_is_in_the_language_spoken_is_shown_once_unless_it_is_rewritten(rewritten, lines):
    file = io.StringIO()
    sink = TerminalSink(Console(file=file, width=60), ["zh-TW"], rewritten)
    for event in [*spoken(0, "谢谢。", language="zh"), *translated(0, ["謝謝。"], language="zh-TW")]:
        sink.write(event)
    assert len(file.getvalue().splitlines()) == lines  # as soon as it is complete
    sink.close()


def test_a_lost_language_is_not_waited_for():
    events = [*GOOD_MORNING, *translated(0, ["早上好。"]), TranslationLost("de", "broken"), *THANK_YOU]
    shown = steps([*events, *translated(1, ["谢谢。"])], terminal=False, languages=["zh", "de"])
    assert shown[:4] == [""] * 4
    assert shown[4].splitlines() == ["00:00.5–00:03.4  Good morning.", " " * 17 + "早上好。"]
    assert "谢谢。" in shown[8]


@pytest.mark.parametrize("languages", [["zh"], ["zh", "de"]])
def test_a_sentence_in_the_other_language_does_not_hurry_the_one_before(languages):
    """It needs no translation into that language, but comes after a sentence that does."""
    chinese = spoken(1, "谢谢。", 4.0, 5.0, language="zh")
    german = translated(0, ["Guten Morgen."], language="de"), translated(1, ["Danke."], language="de")
    events = [*GOOD_MORNING, *chinese, *translated(0, ["早上好。"])]
    if "de" in languages:
        events += [*german[0], *german[1]]
    shown = steps(events, terminal=False, languages=languages)
    assert shown[:5] == [""] * 5
    assert "".join(shown).splitlines() == [
        "00:00.5–00:03.4  Good morning.",
        *(
            [" " * 17 + "早上好。"]
            if languages == ["zh"]
            else [f"{' ' * 17}zh: 早上好。", f"{' ' * 17}de: Guten Morgen."]
        ),
        "00:04.0–00:05.0  谢谢。",
        *([" " * 17 + "Danke."] if "de" in languages else []),
    ]


def test_a_sentence_that_lost_its_end_does_not_hold_back_the_later_ones():
    """As behind a ``QueuedSink`` for the latest text."""
    shown = steps([GOOD_MORNING[0], *THANK_YOU, *translated(1, ["谢谢。"])], terminal=False)
    assert shown[4].splitlines() == [
        "00:00.5–00:03.4  Good morning.",
        "01:03.0–01:05.0  Thank you.",
        " " * 17 + "谢谢。",
    ]


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("reason", ["silence", "empty", "repetition", "uncertain"])
def test_text_that_is_not_reliable_is_not_shown(reason, terminal):
    events = [
        replace(WITHHELD, rejected=reason),
        *GOOD_MORNING,
        WITHHELD,
        *translated(0, ["早上好。"]),
        EndOfInput(70.0),
    ]
    shown = "".join(steps(events, terminal))
    assert "Good morning." in shown
    assert "Thank you." not in shown
    assert "00:04.0" not in shown


@pytest.mark.parametrize("growing", [False, True])
def test_a_long_line_without_spaces_is_wrapped_and_not_cut(growing):
    chinese = "我妹妹明天早上将在会议室里向大家介绍我们公司今年秋天要推出的全部新产品和新的价格方案，请大家准时参加。"
    console = Console(file=io.StringIO(), force_terminal=True, width=50)
    console.print(drawn(Passage(0.0, 5.0, chinese[::-1], (("zh", chinese),)), growing))
    lines = visible(console.file.getvalue()).splitlines()
    assert "".join(line[17:].strip() for line in lines).removesuffix("▌").strip() == chinese[::-1] + chinese
    assert all(cell_len(line) <= 50 for line in lines)


def test_times_are_rounded_and_the_translation_stands_under_its_source():
    source, translation = plain(Passage(7225.2, 7227.4, "What time?", (("zh", "几点？"),))).splitlines()
    assert translation.index("几") == source.index("W")
    assert plain(Passage(59.97, 119.94, "One.", (("zh", "一。"),))).startswith("01:00.0–01:59.9  One.")


def test_arabic_is_enclosed_in_direction_marks_without_affecting_other_text():
    console = Console(file=io.StringIO(), force_terminal=True, width=60)
    console.print(drawn(Passage(0.0, 5.0, "\u202eHi\x1b[31m.\ud800", (("ar", "GPU سريع جدا."),)), growing=False))
    source, translation = visible(console.file.getvalue()).splitlines()
    assert source.strip() == "00:00.0–00:05.0  Hi[31m."
    assert translation.strip() == "\u200fGPU سريع جدا.\u200f"
    assert plain(Passage(0.0, 5.0, "Hi.", (("ar", "سريع\u202e"),))).splitlines()[1].strip() == "سريع"


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(errno.EIO, "Input/output error")


class BrokenTerminal(Broken):
    def isatty(self) -> bool:
        return True


def test_a_closed_terminal_and_an_unwritable_file_are_different_failures():
    sink = TerminalSink(Console(file=BrokenTerminal()))
    with pytest.raises(TerminalClosedError, match="cannot write to the terminal"):
        sink.write(EVENTS[0])
    for forced in (False, True):  # FORCE_COLOR makes this True for a file
        sink = TerminalSink(Console(file=Broken(), force_terminal=forced))
        with pytest.raises(SinkError, match="cannot write to standard output") as failure:
            for event in EVENTS:
                sink.write(event)
        assert not isinstance(failure.value, TerminalClosedError)


def test_a_sink_that_was_dropped_while_it_wrote_has_not_failed():
    class Dropped:
        def write(self, event: PipelineEvent) -> None:
            outputs.drop(self)
            raise SinkError("gone")

        def close(self) -> None: ...

    later: list[PipelineEvent] = []

    class Later:
        write = staticmethod(later.append)

        def close(self) -> None: ...

    outputs = FanOut([Dropped(), Later()])
    outputs.write(EVENTS[0])
    outputs.write(EVENTS[1])
    assert later == EVENTS[:2]


def test_a_sink_that_fails_gets_nothing_more_and_the_others_do():
    taken: list[str] = []

    def writer(name: str, *failures: Exception) -> Any:
        left = list(failures)

        def write(event: PipelineEvent) -> None:
            taken.append(name)
            if left:
                raise left.pop(0)

        return SimpleNamespace(write=write, close=lambda: None)

    first, second, third = (
        writer("a"),
        writer("b", SinkError("gone"), SinkError("twice")),
        writer("c", ValueError("odd")),
    )
    outputs = FanOut([first, second, third])
    with pytest.raises(SinkError, match="gone"):  # the first of the failures
        outputs.write(EVENTS[0])
    assert [outputs.has(each) for each in (first, second, third)] == [True, False, False]
    outputs.write(EVENTS[1])
    assert taken == ["a", "b", "c", "a"]


def test_all_sinks_are_closed_from_the_last_though_one_fails():
    closed: list[str] = []

    def closing(name: str) -> Any:
        def close() -> None:
            closed.append(name)
            if name == "b":
                raise SinkError("gone")

        return SimpleNamespace(close=close)

    with pytest.raises(SinkError, match="gone"):
        close_all(list(map(closing, "abc")))
    assert closed == ["c", "b", "a"]


def test_nothing_is_drawn_before_the_first_event():
    file = io.StringIO()
    sink = TerminalSink(Console(file=file, force_terminal=True))
    sink.close()
    assert file.getvalue() == ""


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_only_a_terminal_shows_how_the_run_is_doing():
    """Important for a pipe whose reader is gone: Rich reports that once and then discards all output."""
    file = io.StringIO()
    sink = TerminalSink(Console(file=file, force_terminal=True))  # as with FORCE_COLOR
    sink.show_status("lag 5.0 s")
    assert file.getvalue() == ""
    terminal = Tty()
    sink = TerminalSink(Console(file=terminal, force_terminal=True))
    sink.show_status("lag 5.0 s")
    assert "lag 5.0 s" in terminal.getvalue()
    sink.close()


@pytest.mark.parametrize(("errors", "terminal"), [(io.StringIO(), Tty()), (Tty(), io.StringIO())])
def test_redirected_standard_error_is_not_drawn_on_the_terminal(errors, terminal, monkeypatch):
    monkeypatch.setattr(sys, "stderr", errors)
    sink = TerminalSink(Console(file=terminal, force_terminal=True))
    sink.write(EVENTS[0])
    print("finishing", file=sys.stderr)
    sink.close()
    assert errors.getvalue() == "finishing\n"
    assert "finishing" not in terminal.getvalue()
