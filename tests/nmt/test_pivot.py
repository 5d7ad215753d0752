"""Two models in sequence: the translation equals two separate ones, and the stream is like that of one model."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline import Delta, EndOfInput, MarianModel, NmtStage, PipelineEvent, Transcript
from pipeline.errors import DecodingStoppedError, UsageError
from pipeline.events import Confidence
from pipeline.nmt.decoder import DecoderState
from pipeline.nmt.pivot import PivotTranslator
from pipeline.nmt.search import Token
from tests.conftest import ROOT, make_model_dir

TEXT = "Where is the station? Thank you. What time is it?"
SENTENCES = ["Where is the station?", "Thank you.", "What time is it?"]
BACK = ROOT / "models" / "demo" / "nmt-zh-en"


def pivot(folder: Path, **loading: int) -> PivotTranslator:
    """English through Chinese into English."""
    first = MarianModel.load(make_model_dir(folder / "first", "merged"), **loading)  # type: ignore[arg-type]
    return PivotTranslator(first, MarianModel.load(BACK, **loading), "zh")  # type: ignore[arg-type]


@pytest.fixture
def both(tmp_path: Path) -> PivotTranslator:
    return pivot(tmp_path)


def transcript(text: str = TEXT) -> Transcript:
    return Transcript(3, 10.0, 16.0, text, "en", heard_s=17.0)


def by_hand(both: PivotTranslator, text: str) -> str:
    return both.second.translate(both.first.translate(text), source="zh")


def plant(model: MarianModel, text: str, tokens: list[Token]) -> None:
    """Make ``model`` translate the sentence ``text`` to these tokens."""
    (sentence,) = model.sentences(transcript(text), None)
    model.cache.put(sentence.ids, tuple(tokens))


def tokens(model: MarianModel, text: str) -> list[Token]:
    model.translate(text)
    (sentence,) = model.sentences(transcript(text), None)
    found = model.cache.get(sentence.ids)
    assert found
    return list(found)


def test_the_translation_equals_two_separate_translations(both: PivotTranslator) -> None:
    expected = [by_hand(both, sentence) for sentence in SENTENCES]
    assert len({*expected}) == 3
    assert both.translate(TEXT) == " ".join(expected)
    assert both.languages == ("en", "en")


def test_the_stream_has_the_form_of_a_single_models_stream(both: PivotTranslator) -> None:
    found = list(both.stream(transcript(), "en"))
    one = list(both.first.stream(transcript(), "zh"))
    ends = [delta for delta in found if delta.end_of_sentence]
    for side in ("sentence", "source", "start_s", "end_s", "segment_id", "heard_s"):
        assert [getattr(delta, side) for delta in ends] == [
            getattr(delta, side) for delta in one if delta.end_of_sentence
        ]
    assert [delta.source for delta in ends] == SENTENCES
    assert [delta.final for delta in found] == [False] * (len(found) - 1) + [True]
    for index, end in enumerate(ends):
        probabilities = [delta.log_probability for delta in found if delta.sentence == index]
        assert len(probabilities) > 2  # a delta a token
        assert end.sentence_confidence == Confidence.of(probabilities)
    assert found[-1].segment_confidence == Confidence.of([delta.log_probability for delta in found])


def test_a_sentence_stays_one_if_the_first_model_writes_two(both: PivotTranslator) -> None:
    halves = [tokens(both.first, text) for text in SENTENCES[:2]]
    plant(both.first, "Hello.", [*(token for token in halves[0] if not token.last), *halves[1]])
    found = list(both.stream(transcript("Hello."), "en"))
    assert "".join(delta.text for delta in found) == " ".join(by_hand(both, text) for text in SENTENCES[:2])
    assert [delta.end_of_sentence for delta in found] == [False] * (len(found) - 1) + [True]
    assert {delta.sentence for delta in found} == {0}
    assert {delta.source for delta in found} == {"Hello."}


def test_a_sentence_ends_even_if_the_first_model_writes_nothing(both: PivotTranslator) -> None:
    plant(both.first, "Hello.", [Token(both.first.generation.end_token, -0.5, last=True)])
    (only,) = both.stream(transcript("Hello."), "en")
    assert (only.text, only.final, only.end_of_sentence, only.log_probability) == ("", True, True, -0.5)
    found = list(both.stream(transcript("Thank you. Hello."), "en"))
    assert "".join(delta.text for delta in found) == by_hand(both, "Thank you.")
    assert found[-1].final


def test_a_first_step_that_was_cut_off_marks_the_sentence(both: PivotTranslator) -> None:
    whole = tokens(both.first, SENTENCES[0])
    assert not any(delta.truncated for delta in both.stream(transcript(SENTENCES[0]), "en"))
    plant(both.first, SENTENCES[0], [*whole[:-1], replace(whole[-1], truncated=True)])
    found = list(both.stream(transcript(SENTENCES[0]), "en"))
    assert [delta.truncated for delta in found] == [False] * (len(found) - 1) + [True]


def test_beams_apply_to_both_models(tmp_path: Path) -> None:
    wide, narrow = (
        pivot(tmp_path / name, beams=beams, cached_sentences=0) for name, beams in (("wide", 4), ("narrow", 1))
    )
    texts = ["Where can I buy a ticket for the train to the airport?", *SENTENCES]
    assert any(wide.translate(text) != narrow.translate(text) for text in texts)
    for text in texts:
        narrowed = "".join(delta.text for delta in wide.stream(transcript(text), "en", beams=1))
        assert narrowed == narrow.translate(text)


def test_a_sentence_that_comes_again_is_translated_once(both: PivotTranslator) -> None:
    first = list(both.stream(transcript(), "en"))
    assert list(both.stream(transcript(), "en")) == first
    assert (both.first.cache.hits, both.second.cache.hits) == (3, 3)


@pytest.mark.parametrize("step", [0, 1])
def test_either_model_can_be_stopped(step: int, both: PivotTranslator) -> None:
    begun: list[DecoderState] = []

    def started(state: DecoderState) -> None:
        begun.append(state)
        if len(begun) == step + 1:
            state.terminate()

    with pytest.raises(DecodingStoppedError):
        list(both.stream(transcript(), "en", started))
    assert len(begun) == step + 1
    assert both.translate(SENTENCES[1])


def test_on_start_receives_the_states_of_both_models(both: PivotTranslator) -> None:
    begun: list[DecoderState] = []
    list(both.stream(transcript(), "en", begun.append))
    assert len(begun) == 2 * len(SENTENCES)


def test_cancelling_the_stage_stops_the_decode_in_flight(both: PivotTranslator) -> None:
    begun: list[DecoderState] = []
    encode = both.second.decoder.encode
    both.second.decoder.encode = lambda source, on_start=None: _noted(encode(source, on_start), begun)  # type: ignore[method-assign]

    async def work() -> list[PipelineEvent]:
        inbox: asyncio.Queue[Transcript | EndOfInput] = asyncio.Queue()
        outbox: asyncio.Queue[PipelineEvent] = asyncio.Queue()
        inbox.put_nowait(transcript())
        task = asyncio.create_task(NmtStage(both, inbox, outbox, target="en").run())
        found = [await outbox.get(), await outbox.get()]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return found

    _, first = asyncio.run(work())
    assert isinstance(first, Delta)
    assert begun[0].options.terminate


def _noted(state: DecoderState, begun: list[DecoderState]) -> DecoderState:
    begun.append(state)
    return state


def test_the_languages_of_both_are_checked(both: PivotTranslator) -> None:
    both.check_languages("en", "en")
    for source, target in (("fr", "en"), ("en", "fr")):
        with pytest.raises(UsageError, match="the translation model translates from"):
            both.check_languages(source, target)
    with pytest.raises(UsageError, match="from en into zh"):
        PivotTranslator(both.first, both.second, "de").check_languages("en", "en")
    with pytest.raises(UsageError, match="translates from en into zh, not from fr"):
        both.translate("Bonjour.", source="fr")
