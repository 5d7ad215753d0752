"""Rules of what an operator does, without a server: corrections, masks, names of speakers."""

import time

import pytest

from pipeline.captions.masking import Masking
from pipeline.events import Correction, SourceSentence
from pipeline.server import corrections
from pipeline.server.corrections import Corrections
from pipeline.server.history import History
from pipeline.server.limits import ServerLimits
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


@pytest.mark.parametrize("text", ["a" * LONG, "a" * 61, "a\u202eb"])
def test_a_name_is_short_and_visible(text):
    with pytest.raises(ProtocolError) as error:
        speaker_name(text)
    assert error.value.code == "bad-speaker"
