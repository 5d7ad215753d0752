"""Translations of sentences in progress: later translations replace them, and as little as possible is withdrawn."""

from __future__ import annotations

import asyncio
import functools
import operator
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline import Delta, EndOfInput, MarianModel, NmtStage, PipelineEvent
from pipeline.events import SAMPLE_RATE, SourceDelta, SourceSentence, SpeechSegment, Translation
from pipeline.nmt.drafts import Steady
from pipeline.nmt.generation import OnStart
from pipeline.nmt.stage import Text, updates
from pipeline.nmt.translator import TextTranslator
from pipeline.run.drafts import DraftOptions
from pipeline.run.stats import PipelineStats
from pipeline.run.worker import Worker
from pipeline.sentences.growing import GrowingText, common_length
from tests.conftest import make_model_dir

BEGINNING, WHOLE = "Where is the bank", "Where is the bank? Thank you."

WHOLE_DRAFTS = DraftOptions(mask_words=0, mask_characters=0, agreeing=1)

# Few different characters, so that texts often begin alike.
WORDS = st.text("ab ", max_size=4)
# The tokens of a translation: characters withdrawn (as many as there are, at most) and text appended.
TOKENS = st.lists(st.tuples(st.integers(0, 3) | st.just(0), WORDS), max_size=8)


def translation(tokens: Iterable[tuple[int, str]]) -> list[Delta | Translation]:
    """The events of a translation that consists of these tokens and an end token.

    Their log-probabilities are powers of two, so that a sum says which tokens it counts.
    """
    text, found = "", []
    for index, (withdrawn, appended) in enumerate(tokens, 1):
        withdrawn = min(withdrawn, len(text))
        text = text[: len(text) - withdrawn] + appended
        found.append(Delta(0, "zh", appended, withdrawn, token=index, log_probability=-(2.0**index)))
    end = Delta(0, "zh", "", committed=len(text), token=0, log_probability=-1.0, complete=True)
    return [*found, end, Translation(0, "zh", text)]


def draft(text: str) -> GrowingText:
    shown = GrowingText()
    shown.apply(Delta(0, "zh", text))
    return shown


@given(st.text("ab ", max_size=12), TOKENS, st.booleans())
@example("abc", [(0, "abc")], False)
@example("abc", [(0, "abc")], True)
@example("abc", [(0, "ab"), (0, "cd")], False)
@example("abc", [(0, "a")], True)
def test_the_changes_turn_any_draft_into_the_new_text(old: str, tokens: list[tuple[int, str]], final: bool) -> None:
    *_, whole = events = translation(tokens)
    assert isinstance(whole, Translation)
    new = whole.text
    shown = draft(old)
    found = list(updates(old, iter(events), final=final))
    changes = [event for event in found if isinstance(event, Delta)]
    for change in changes:
        before = shown.text
        shown.apply(change)
        if old:
            assert len(shown) >= min(len(old), len(new)), "the text shrank in between"
            assert change.complete or shown.text != before, "a change without effect"
    assert shown.text == new
    assert shown.committed == (len(new) if final else 0)
    assert [event for event in found if isinstance(event, Translation)] == ([whole] if final else [])
    if final or old != new:  # the reader is told once that everything is translated
        assert [change.complete for change in changes] == [False] * (len(changes) - 1) + [True]


@given(st.text("ab ", min_size=1, max_size=12), st.text("ab ", max_size=12), st.booleans())
def test_only_what_differs_is_withdrawn(old: str, new: str, final: bool) -> None:
    found = updates(old, iter(translation((0, character) for character in new)), final=final)
    withdrawn = sum(event.withdrawn for event in found if isinstance(event, Delta))
    assert withdrawn == len(old) - common_length(old, new)


@given(st.text("ab ", min_size=1, max_size=12), TOKENS.filter(bool))
def test_the_log_probability_of_each_token_is_in_one_change(old: str, tokens: list[tuple[int, str]]) -> None:
    events = translation(tokens)
    found = [event for event in updates(old, iter(events), final=True) if isinstance(event, Delta)]
    counted = [int(-event.log_probability) for event in found]
    everything = 2 ** (len(tokens) + 1) - 1
    assert sum(counted) == functools.reduce(operator.or_, counted) == everything
    for event in found:
        if event.token is not None:
            assert event.log_probability == -(2.0**event.token)


@given(TOKENS)
def test_without_a_draft_before_it_the_translation_is_passed_on(tokens: list[tuple[int, str]]) -> None:
    events = translation(tokens)
    assert list(updates("", iter(events), final=True)) == events


def steadily(drafts: Sequence[str], agreeing: int) -> list[str]:
    """What is shown after each draft, whose changes are a character each."""
    steady, shown, found = Steady(agreeing), GrowingText(), []
    for text in drafts:
        events = steady.events(iter(translation((0, character) for character in text)), shown.text)
        for event in updates(shown.text, events, final=False):
            assert isinstance(event, Delta)
            shown.apply(event)
        found.append(shown.text)
    return found


def test_what_is_shown_is_taken_back_when_several_drafts_agree() -> None:
    drafts = ["ab", "abc", "xbc", "abcd", "xb", "xbc", "x", "xbcd"]
    assert steadily(drafts, 1) == drafts
    assert steadily(drafts, 2) == ["ab", "abc", "abc", "abcd", "abcd", "xbc", "xbc", "xbcd"]
    assert steadily(drafts, 3) == ["ab", "abc", "abc", "abcd", "abcd", "abcd", "x", "xbcd"]
    assert steadily(drafts, 9) == ["ab", "abc", "abc", "abcd", "abcd", "abcd", "abcd", "abcd"]


def test_a_draft_that_is_shorter_than_what_is_shown_waits_for_another() -> None:
    assert steadily(["abc", "ab", "abcd"], 2) == ["abc", "abc", "abcd"]
    assert steadily(["abc", "ab", "ab"], 2) == ["abc", "abc", "ab"]
    assert steadily(["abc", "", ""], 2) == ["abc", "abc", ""]


def test_a_longer_draft_with_another_last_word_is_shown_at_once() -> None:
    assert steadily(["O trem sai", "O trem vai para Berlim"], 4) == ["O trem sai", "O trem vai para Berlim"]
    assert steadily(["O trem sai", "O trem vai"], 4) == ["O trem sai", "O trem sai"]
    assert steadily(["O trem sai agora", "Um trem sai agora para Berlim"], 4) == ["O trem sai agora"] * 2


@given(st.lists(st.text("ab", max_size=5), max_size=8), st.integers(1, 4))
def test_drafts_that_are_held_back_leave_the_text_as_it_is(drafts: list[str], agreeing: int) -> None:
    found = steadily(drafts, agreeing)
    for before, draft, after in zip(["", *found], drafts, found, strict=False):
        assert after in (before, draft)
        if draft.startswith(before):
            assert after == draft


class WatchedQueue(asyncio.Queue[Text | EndOfInput]):
    """A queue that knows when its reader waits for the next item."""

    def __init__(self) -> None:
        super().__init__()
        self.idle = asyncio.Event()

    async def get(self) -> Text | EndOfInput:
        if self.empty():
            self.idle.set()
        return await super().get()


def converse(
    model: TextTranslator,
    items: Sequence[Text],
    stats: PipelineStats | None = None,
    options: DraftOptions = WHOLE_DRAFTS,
) -> list[list[PipelineEvent]]:
    """What the stage puts out for each item, each given once the one before has been dealt with."""

    async def work() -> list[list[PipelineEvent]]:
        inbox = WatchedQueue()
        outbox: asyncio.Queue[PipelineEvent] = asyncio.Queue()
        stage = NmtStage(model, inbox, outbox, target="zh", drafts=lambda: True, options=options, stats=stats)
        running = asyncio.create_task(stage.run())
        found = []
        for item in items:
            inbox.put_nowait(item)
            inbox.idle.clear()
            await inbox.idle.wait()
            found.append([outbox.get_nowait() for _ in range(outbox.qsize())])
        inbox.put_nowait(EndOfInput())
        await running
        return found

    return asyncio.run(work())


def shown_after(events: Iterable[PipelineEvent], before: str = "") -> str:
    """The text of a sentence once these changes are applied."""
    text = draft(before) if before else GrowingText()
    for event in events:
        if isinstance(event, Delta):
            text.apply(event)
    return text.text


@pytest.fixture
def model(tmp_path: Path) -> MarianModel:
    return MarianModel.load(make_model_dir(tmp_path / "model", "merged"))


def test_a_draft_is_shown_and_the_final_translation_replaces_and_commits_it(model: MarianModel) -> None:
    drafted, finished = converse(
        model,
        [
            SourceDelta(0, "en", BEGINNING, committed=len(BEGINNING), heard_s=5.0),
            SourceSentence(0, "en", WHOLE, heard_s=8.0),
        ],
    )
    shown = GrowingText()
    for event in drafted:
        assert isinstance(event, Delta)
        shown.apply(event)
    assert shown.text == model.translate(BEGINNING)
    assert (shown.committed, {event.heard_s for event in drafted}) == (0, {5.0})
    *changes, end = finished
    for event in changes:
        assert isinstance(event, Delta)
        shown.apply(event)
    assert shown.text == model.translate(WHOLE) != model.translate(BEGINNING)
    assert shown.committed == len(shown.text)
    assert isinstance(end, Translation)
    assert (end.text, end.heard_s) == (shown.text, 8.0)
    kept = common_length(model.translate(BEGINNING), model.translate(WHOLE))
    assert sum(event.withdrawn for event in changes) == len(model.translate(BEGINNING)) - kept


@pytest.mark.parametrize("draft", ["", BEGINNING, WHOLE, "Thank you. Thank you. Thank you."])
def test_log_probabilities_of_a_translation_add_up_to_those_of_its_tokens(draft: str, model: MarianModel) -> None:
    """Those of the draft are not counted; those of the text that both have in common are."""
    final = SourceSentence(0, "en", WHOLE)
    *_, finished = converse(model, [*([SourceDelta(0, "en", draft)] if draft else []), final])
    *changes, end = finished
    assert isinstance(end, Translation)
    assert end.confidence is not None
    count = sum(isinstance(event, Delta) for event in model.stream(final, "zh"))  # one for each token
    assert not end.searched_again
    found = sum(event.log_probability for event in changes if isinstance(event, Delta))
    assert found == pytest.approx(count * end.confidence.mean_log_probability)


def test_a_final_translation_that_equals_the_draft_only_commits_it(model: MarianModel) -> None:
    _, finished = converse(model, [SourceDelta(0, "en", BEGINNING), SourceSentence(0, "en", BEGINNING)])
    commit, end = finished
    assert isinstance(commit, Delta)
    assert (commit.text, commit.withdrawn, commit.complete) == ("", 0, True)
    assert commit.committed == len(model.translate(BEGINNING)) > 0
    assert isinstance(end, Translation)
    assert end.text == model.translate(BEGINNING)


def test_the_translation_of_withdrawn_text_is_withdrawn(model: MarianModel) -> None:
    """Text of a segment that turns out to be noise leaves nothing behind."""
    drafted, withdrawn, nothing, again = converse(
        model,
        [
            SourceDelta(0, "en", BEGINNING),
            SourceDelta(0, "en", "", withdrawn=len(BEGINNING), heard_s=6.0),
            SourceDelta(0, "en", ""),
            SourceDelta(0, "en", BEGINNING),
        ],
    )
    (change,) = withdrawn
    assert change == Delta(0, "zh", "", len(model.translate(BEGINNING)), heard_s=6.0, complete=True)
    assert nothing == []
    assert shown_after(again) == shown_after(drafted) == model.translate(BEGINNING)


def test_the_next_sentences_draft_is_translated_before_this_one_ends(model: MarianModel) -> None:
    first, ahead, finished, more = converse(
        model,
        [
            SourceDelta(0, "en", BEGINNING, committed=5),
            SourceDelta(1, "en", "Thank"),
            SourceSentence(0, "en", BEGINNING),
            SourceDelta(1, "en", " you."),
        ],
    )
    assert {event.sentence for event in first if isinstance(event, Delta)} == {0}
    assert {event.sentence for event in ahead if isinstance(event, Delta)} == {1}
    assert shown_after(ahead) == model.translate("Thank")
    assert {event.sentence for event in finished if isinstance(event, Delta | Translation)} == {0}
    assert shown_after([*ahead, *more]) == model.translate("Thank you.")


def test_a_sentence_that_never_ends_does_not_hold_up_the_next(model: MarianModel) -> None:
    """A stage of the app's may drop its end."""
    _, after = converse(model, [SourceDelta(0, "en", BEGINNING), SourceDelta(1, "en", "Thank you.", committed=9)])
    assert shown_after(after) == model.translate("Thank you.")


def test_the_translation_of_a_draft_in_a_wrong_language_is_withdrawn(model: MarianModel) -> None:
    drafted, ended = converse(
        model, [SourceDelta(0, "en", BEGINNING), SourceSentence(0, "zh", "银行在哪里？", heard_s=5.0)]
    )
    shown = shown_after(drafted)
    assert shown
    assert ended == [Delta(0, "zh", "", len(shown), heard_s=5.0, complete=True)]
    drafted, changed, *_ = converse(
        model, [SourceDelta(0, "en", "Thank"), SourceDelta(0, "fr", BEGINNING, withdrawn=5), SourceDelta(0, "fr", "")]
    )
    assert isinstance(changed[0], Delta)
    assert (changed[0].text, changed[0].withdrawn) == ("", len(shown_after(drafted)))
    assert shown_after(changed, shown_after(drafted)) == model.translate(BEGINNING)


@pytest.mark.parametrize("final", [True, False])
def test_an_empty_translation_withdraws_the_draft(final: bool) -> None:
    found = list(updates("abc", iter([Translation(0, "zh", "", heard_s=2.0)]), final=final))
    assert found[0] == Delta(0, "zh", "", 3, heard_s=2.0, complete=True)
    assert found[1:] == ([Translation(0, "zh", "", heard_s=2.0)] if final else [])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_is_kept_of_finished_sentences(language: str, model: MarianModel) -> None:
    """Also where the sentences of a recording are given one by one."""

    async def work() -> None:
        outbox: asyncio.Queue[PipelineEvent] = asyncio.Queue()
        stage, worker = NmtStage(model, asyncio.Queue(), outbox, target="zh"), Worker("NMT")
        for number in range(3):
            await stage.translate(SourceSentence(number, language, BEGINNING), worker)
        worker.close()
        assert stage._open == {}

    asyncio.run(work())


def test_the_next_sentence_begins_with_an_empty_translation(model: MarianModel) -> None:
    *_, drafted, finished = converse(
        model,
        [
            SourceDelta(0, "en", BEGINNING),
            SourceSentence(0, "en", BEGINNING),
            SourceDelta(1, "en", BEGINNING),
            SourceSentence(1, "en", BEGINNING),
        ],
    )
    assert not any(event.withdrawn for event in drafted if isinstance(event, Delta))
    assert "".join(event.text for event in drafted if isinstance(event, Delta)) == model.translate(BEGINNING)
    assert {event.sentence for event in (*drafted, *finished) if isinstance(event, Delta | Translation)} == {1}


def test_a_draft_that_does_not_change_counts_as_translated(model: MarianModel) -> None:
    time_s = 0.0
    stats = PipelineStats(clock=lambda: time_s, languages={"zh"})
    stats.received(16 * SAMPLE_RATE)
    stats.segment_closed(SpeechSegment(0, 0, np.zeros(16 * SAMPLE_RATE, np.int16)))
    stats.audio_samples = 16 * SAMPLE_RATE
    time_s = 1.0
    assert stats.lag_s == 16.0
    first = SourceDelta(0, "en", BEGINNING, heard_s=8.0)
    drafted, unchanged = converse(
        model, [first, SourceDelta(0, "en", "", committed=len(BEGINNING), heard_s=16.0)], stats
    )
    assert drafted
    assert unchanged == []
    assert stats.lag_s == 0.0


def test_of_waiting_changes_only_the_newest_text_is_translated(model: MarianModel) -> None:
    async def work() -> list[PipelineEvent]:
        inbox: asyncio.Queue[Text | EndOfInput] = asyncio.Queue()
        outbox: asyncio.Queue[PipelineEvent] = asyncio.Queue()
        for item in (
            SourceDelta(0, "en", "Where is", heard_s=1.0),
            SourceDelta(0, "en", " the bank.", heard_s=2.0),
            SourceSentence(0, "en", "Where is the bank?", heard_s=3.0),
            SourceDelta(1, "en", "Where is", heard_s=4.0),
            SourceDelta(1, "en", " the bank", heard_s=5.0),
        ):
            inbox.put_nowait(item)
        stage = asyncio.create_task(NmtStage(model, inbox, outbox, target="zh", drafts=lambda: True).run())
        found = [await outbox.get()]
        while not (isinstance(found[-1], Delta) and found[-1].sentence == 1 and found[-1].complete):
            found.append(await outbox.get())
        stage.cancel()
        await asyncio.gather(stage, return_exceptions=True)
        return found

    found = asyncio.run(work())
    assert {event.heard_s for event in found if isinstance(event, Delta)} == {3.0, 5.0}
    ends = [event for event in found if isinstance(event, Translation)]
    assert [(event.sentence, event.text) for event in ends] == [(0, model.translate("Where is the bank?"))]


def test_what_is_spoken_in_the_target_language_has_no_draft(model: MarianModel) -> None:
    spoken = [SourceDelta(0, "zh", "谢谢"), SourceSentence(0, "zh", "谢谢。")]
    assert converse(model, spoken) == [[], []]


def test_without_drafts_only_finished_sentences_are_translated(model: MarianModel) -> None:
    async def work() -> list[PipelineEvent]:
        inbox, outbox = WatchedQueue(), asyncio.Queue[PipelineEvent]()
        stage = asyncio.create_task(NmtStage(model, inbox, outbox, target="zh").run())
        inbox.put_nowait(SourceDelta(0, "en", BEGINNING))
        await inbox.idle.wait()
        inbox.put_nowait(EndOfInput())
        await stage
        return [outbox.get_nowait() for _ in range(outbox.qsize())]

    assert asyncio.run(work()) == [EndOfInput()]


def test_the_last_characters_of_a_draft_are_not_shown_until_the_sentence_ends(model: MarianModel) -> None:
    options = DraftOptions(mask_characters=2)
    drafted, finished = converse(
        model, [SourceDelta(0, "en", BEGINNING), SourceSentence(0, "en", WHOLE)], None, options
    )
    assert shown_after(drafted) == model.translate(BEGINNING)[:-2] != ""
    assert shown_after(finished, shown_after(drafted)) == model.translate(WHOLE)


def test_a_quarter_of_a_draft_is_shown_at_least(model: MarianModel) -> None:
    options = DraftOptions(mask_characters=100)
    (drafted,) = converse(model, [SourceDelta(0, "en", BEGINNING, heard_s=4.0)], None, options)
    whole = model.translate(BEGINNING)
    assert shown_after(drafted) == whole[: len(whole) - int(0.75 * len(whole))]
    assert isinstance(drafted[-1], Delta)
    assert (drafted[-1].complete, drafted[-1].heard_s) == (True, 4.0)


def test_committed_words_are_translated_and_the_draft_only_before_there_are_any(model: MarianModel) -> None:
    first, draft_only, committed, marks = converse(
        model,
        [
            SourceDelta(0, "en", "Thank"),
            SourceDelta(0, "en", " you uh", committed=5),
            SourceDelta(0, "en", "", withdrawn=3, committed=9),
            SourceDelta(0, "en", ".", committed=9),
        ],
    )
    shown = shown_after(first)
    assert shown == model.translate("Thank")
    assert draft_only == []
    shown = shown_after(committed, shown)
    assert shown == model.translate("Thank you")
    assert shown_after(marks, shown) == model.translate("Thank you.")


@pytest.mark.parametrize(
    ("text", "committed", "whole"),
    [
        ("Where is the bank?", 18, True),
        ("Where is the bank?", 17, True),
        ("Where is the bank?", 5, False),
        ("Where is the bank", 17, False),
        ("Where is the bank,", 18, False),
    ],
)
def test_a_draft_of_committed_text_with_a_final_mark_is_shown_as_a_whole(
    text: str, committed: int, whole: bool, model: MarianModel
) -> None:
    said = SourceDelta(0, "en", text, committed=committed)
    (drafted,) = converse(model, [said], None, DraftOptions(mask_characters=1))
    assert (shown_after(drafted) == model.translate(text)) == whole


def test_a_sentence_that_is_committed_whole_in_a_pause_is_shown_as_a_whole(model: MarianModel) -> None:
    text = "Where is the bank?"
    drafted, paused, again, resumed = converse(
        model,
        [
            SourceDelta(0, "en", text),
            SourceDelta(0, "en", "", committed=17),
            SourceDelta(0, "en", "", committed=18),
            SourceDelta(0, "en", " I", committed=18),
        ],
        None,
        DraftOptions(mask_characters=1),
    )
    shown = shown_after(drafted)
    assert shown == model.translate(text)[:-1]
    assert shown_after(paused, shown) == model.translate(text)
    assert again == resumed == []


class Recorder:
    """A translator that notes what it is given."""

    def __init__(self) -> None:
        self.given: list[tuple[str, bool]] = []

    def stream(
        self,
        sentence: SourceSentence,
        target: str | None,
        on_start: OnStart | None = None,
        beams: int | None = None,
        draft: bool = False,
    ) -> Iterator[Delta | Translation]:
        self.given.append((sentence.text, draft))
        yield from translation([(0, sentence.text)])


def test_the_translator_is_told_which_texts_are_drafts() -> None:
    recorder = Recorder()
    said: list[Text] = [
        SourceDelta(0, "en", "One"),
        SourceDelta(0, "en", " two"),
        SourceSentence(0, "en", "One two"),
        SourceDelta(1, "en", "Three"),
    ]
    converse(recorder, said)
    assert recorder.given == [("One", True), ("One two", True), ("One two", False), ("Three", True)]
