"""Rules of what an operator does, without a server: corrections, masks, names of speakers."""

import asyncio
import time

import pytest

from pipeline.core.captions.masking import Masking
from pipeline.core.notices import Paused, Resumed
from pipeline.events import Correction, PipelineEvent, SourceSentence, SourceText, Translation
from pipeline.server import corrections
from pipeline.server.corrections import Corrections
from pipeline.server.history import History
from pipeline.server.intake import Intake
from pipeline.server.limits import ServerLimits
from pipeline.server.operator import Operator
from pipeline.server.protocol import Correct, Mask, ProtocolError
from pipeline.server.speakers import Speakers, speaker_name

LONG = 1_000_000


@pytest.fixture
def history() -> History:
    kept = History(10)
    kept.push(SourceSentence(0, "en", "We met Marc there, Ann.", 0.0, 2.0))
    return kept


@pytest.fixture
def checks(history: History) -> Corrections:
    return Corrections(ServerLimits(), history, Masking(), time.monotonic)


def test_a_word_of_a_corrected_line_is_masked(history, checks):
    history.push(checks.checked(Correct(0, "We met Mark there, Ann.")))
    masked = checks.checked(Mask(0, "Mark"))
    assert masked == Correction(0, "", "We met M*** there, Ann.", None)
    history.push(masked)
    assert checks.checked(Mask(0, "Ann")).text == "We met M*** there, A**."
    with pytest.raises(ProtocolError, match='does not have the word "Marc"'):
        checks.checked(Mask(0, "Marc"))


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (Correct(0, "a " * LONG), "bad-correction"),
        (Correct(0, " " * LONG), "bad-correction"),
        (Correct(0, "a" * 1_001), "bad-correction"),
        (Correct(0, speaker="a" * LONG), "bad-speaker"),
        (Mask(0, "a" + "\u0301\u0323" * LONG), "bad-word"),
        (Mask(0, "ab " * LONG), "bad-word"),
    ],
)
def test_long_text_is_refused(wanted, code, checks):
    with pytest.raises(ProtocolError) as error:
        checks.checked(wanted)
    assert error.value.code == code
    assert len(str(error.value)) < 300


def test_a_session_has_so_many_masks(checks, monkeypatch):
    monkeypatch.setattr(corrections, "_MOST_MASKS", 1)
    checks.checked(Mask(0, "Ann"))
    with pytest.raises(ProtocolError, match="1 words of this session are masked"):
        checks.checked(Mask(0, "Marc"))


def test_a_masked_word_is_masked_in_later_corrections(history, checks):
    checks.checked(Mask(0, "Marc"))
    assert checks.checked(Correct(0, "Marc left.")).text == "M*** left."
    history.push(Translation(0, "pt", "Marc saiu."))
    assert checks.checked(Correct(0, "Marc saiu.", "pt")).text == "Marc saiu."  # masked in its language alone


def test_the_name_and_the_text_of_a_line_are_corrected_one_after_the_other(history, checks):
    for wanted, text, speaker in [
        (Correct(0, speaker=" Ann\n"), "We met Marc there, Ann.", "Ann"),
        (Correct(0, "We met Mark."), "We met Mark.", "Ann"),
        (Correct(0, speaker=""), "We met Mark.", ""),
        (Mask(0, "Mark"), "We met M***.", ""),
    ]:
        history.push(corrected := checks.checked(wanted))
        assert (corrected.text, corrected.speaker) == (text, speaker)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (Correct(1, "x"), "no-line"),
        (Correct(0, "x", "pt"), "no-line"),
        (Correct(2, "x"), "no-line"),
        (Correct(0, speaker="Ann", language="de"), "bad-correction"),
        (Mask(0, "Mar"), "bad-word"),
    ],
)
def test_what_is_refused_does_not_count_as_a_correction(wanted, code, history):
    history.push(Translation(0, "de", "Wir trafen Marc."))
    history.push(SourceText(2, "en", "A sentence in progress"))
    checks = Corrections(ServerLimits(corrections_a_minute=1), history, Masking(), lambda: 0.0)
    with pytest.raises(ProtocolError) as refused:
        checks.checked(wanted)
    assert refused.value.code == code
    checks.checked(Correct(0, "x"))
    with pytest.raises(ProtocolError, match="1 lines were corrected in a minute"):
        checks.checked(Correct(0, "x"))


def test_each_sentence_has_the_name_that_holds_in_its_middle():
    speakers = Speakers()
    speakers.change(0.0, "Ann")
    speakers.change(50.0, "Bob")
    speakers.change(70.0, "")
    sentences = [
        SourceSentence(number, "en", "x", at, at + 4.0) for number, at in enumerate((1, 10, 47, 49, 60, 69, 80))
    ]
    named = [speakers.named(sentence) for sentence in sentences]
    assert [each.speaker for each in named] == ["Ann", "Ann", "Ann", "Bob", "Bob", None, None]


def test_a_draft_of_the_next_sentence_does_not_lose_the_name_of_the_one_before_it():
    speakers = Speakers()
    speakers.change(0.0, "Ann")
    speakers.change(50.0, "Bob")
    assert speakers.named(SourceText(1, "en", "x", 0, 52.0, 54.0)).speaker == "Bob"
    assert speakers.named(SourceSentence(0, "en", "x", 46.0, 49.0)).speaker == "Ann"


class Voices:
    """Sentences of voices that are told apart, one after another, each of 2 s."""

    def __init__(self) -> None:
        self.speakers, self.count = Speakers(), 0

    def name(self, voice: str) -> str | None:
        """The speaker of the next sentence, which begins at three times its number."""
        start_s, self.count = 3.0 * self.count, self.count + 1
        said = SourceSentence(self.count - 1, "en", "Yes.", start_s, start_s + 2.0, speaker=voice)
        return self.speakers.named(said).speaker


def test_a_name_that_is_given_while_a_voice_speaks_stays_with_that_voice():
    said = Voices()
    assert said.name("1") == "1"
    said.speakers.change(3.0, "Ann")
    assert [said.name(voice) for voice in ("1", "2", "1")] == ["Ann", "2", "Ann"]
    said.speakers.change(12.0, "Ann")  # again: it is the other voice's all the same
    assert [said.name(voice) for voice in ("2", "1")] == ["2", "Ann"]
    said.speakers.change(19.5, "Bob")  # too late for this sentence, in time for the next
    assert [said.name(voice) for voice in ("2", "2", "1")] == ["2", "Bob", "Ann"]
    said.speakers.change(27.0, "")
    assert [said.name(voice) for voice in ("1", "2")] == ["1", "Bob"]


def test_a_draft_has_no_name_where_voices_are_told_apart():
    said = Voices()
    said.speakers.change(0.0, "Ann")
    assert said.speakers.named(SourceText(0, "en", "Yes.", 0, 0.0, 1.0)).speaker == "Ann"  # of no voice yet
    assert said.name("1") == "Ann"
    said.speakers.change(3.0, "Bob")
    assert said.speakers.named(SourceText(1, "en", "Yes.", 0, 3.0, 5.0)).speaker is None
    assert said.name("1") == "Bob"


def test_a_corrected_name_is_that_of_all_that_the_voice_says_from_then_on():
    said = Voices()
    assert [said.name(voice) for voice in ("1", "2")] == ["1", "2"]
    said.speakers.correct(0, "Ann")
    said.speakers.correct(99, "Bob")  # no such sentence
    assert [said.name(voice) for voice in ("1", "2")] == ["Ann", "2"]
    said.speakers.correct(2, "")
    assert said.name("1") == "1"


async def test_a_pause_is_told_once_and_not_after_the_end(checks):
    told: list[PipelineEvent] = []

    async def tell(event: PipelineEvent) -> None:
        told.append(event)

    intake = Intake(16_000, 60.0)
    operator = Operator(checks, intake, asyncio.Lock(), tell)
    for on in (False, True, True, False):
        await operator.pause(on)
        intake.push(bytes(2 * 16_000))
    intake.end()
    await operator.pause(True)
    assert told == [Paused(1.0), Resumed(3.0)]
    assert not operator.paused


async def test_a_name_holds_from_the_audio_on_that_comes_next_and_a_corrected_one_for_its_voice(history, checks):
    told: list[PipelineEvent] = []

    async def tell(event: PipelineEvent) -> None:
        told.append(event)

    intake = Intake(16_000, 60.0)
    operator = Operator(checks, intake, asyncio.Lock(), tell)
    intake.push(bytes(2 * 10 * 16_000))
    assert operator.name_speaker(" Ann  B. ") == "Ann B."
    named = [operator.speakers.named(SourceSentence(0, "en", "x", at, at + 2.0)).speaker for at in (7.0, 9.5)]
    assert named == [None, "Ann B."]
    operator.speakers.named(SourceSentence(0, "en", "x", 12.0, 14.0, speaker="1"))
    await operator.correct(Correct(0, "We met."))
    await operator.correct(Correct(0, speaker="Bob"))
    assert [(event.text, event.speaker) for event in told] == [("We met.", None), ("We met Marc there, Ann.", "Bob")]
    assert operator.speakers.named(SourceSentence(1, "en", "x", 15.0, 16.0, speaker="1")).speaker == "Bob"


@pytest.mark.parametrize("text", ["a" * LONG, "a" * 61, "a\u202eb"])
def test_a_name_is_short_and_visible(text):
    with pytest.raises(ProtocolError) as error:
        speaker_name(text)
    assert error.value.code == "bad-speaker"
