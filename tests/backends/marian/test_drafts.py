"""Translations of sentences in progress: later translations replace them, and as little as possible is withdrawn."""

import asyncio
import functools
import operator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline import EndOfInput, MarianModel, NmtStage, PipelineEvent
from pipeline.core.captions.changes import Delta
from pipeline.core.captions.policy import AgreeingDrafts, updates
from pipeline.core.captions.states import common_length
from pipeline.core.nmt.stage import DirectedGlossary, NmtContext, Text, _Open
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.core.run.options import DraftOptions
from pipeline.core.run.stats import PipelineStats
from pipeline.core.run.worker import Worker
from pipeline.events import SAMPLE_RATE, SourceSentence, SourceText, SpeechSegment, TargetText, TargetToken, Translation
from pipeline.glossary.terms import Glossary, Term
from tests import drafting
from tests.conftest import make_model_dir
from tests.streams import changes

BEGINNING, WHOLE = "Where is the bank", "Where is the bank? Thank you."

WHOLE_DRAFTS = DraftOptions(mask_words=0, mask_characters=0, agreeing=1)
converse = functools.partial(drafting.converse, options=WHOLE_DRAFTS)

# Few different characters, so that texts often begin alike.
WORDS = st.text("ab ", max_size=4)
# The tokens of a translation: characters withdrawn (as many as there are, at most) and text appended.
TOKENS = st.lists(st.tuples(st.integers(0, 3) | st.just(0), WORDS), max_size=8)


def translation(tokens):
    """The events of a translation that consists of these tokens and an end token.

    Their log-probabilities are powers of two, so that a sum says which tokens it counts.
    """
    text, written = "", tuple[TargetToken, ...]()
    found: list[TargetText | Translation] = []
    for index, (withdrawn, appended) in enumerate(tokens, 1):
        kept = text[: max(0, len(text) - withdrawn)]
        text = kept + appended
        written = *(one for one in written if one.end <= len(kept)), TargetToken(index, -(2.0**index), len(text))
        found.append(TargetText(0, "zh", text, tokens=written))
    written += (TargetToken(0, -1.0, len(text)),)
    return [*found, TargetText(0, "zh", text, len(text), written, complete=True), Translation(0, "zh", text)]


def showing(text):
    """A draft that is shown; None: nothing is."""
    return TargetText(0, "zh", text, complete=True) if text else None


def texts_of(events):
    return [event for event in events if isinstance(event, TargetText)]


@given(st.text("ab ", max_size=12), TOKENS, st.booleans())
@example("abc", [(0, "abc")], False)
@example("abc", [(0, "abc")], True)
@example("abc", [(0, "ab"), (0, "cd")], False)
@example("abc", [(0, "a")], True)
def test_any_draft_becomes_the_new_text(old, tokens, final):
    *_, whole = events = translation(tokens)
    new = whole.text
    shown = TargetText(0, "zh", old, complete=True)
    found = list(updates(showing(old), iter(events), final=final))
    for text in texts_of(found):
        if old:
            assert len(text.text) >= min(len(old), len(new)), "the text shrank in between"
            assert text.complete or text.text != shown.text, "a text without a change"
        shown = text
    assert shown.text == new
    assert not final or shown.steady == len(new)
    assert [event for event in found if isinstance(event, Translation)] == ([whole] if final else [])
    if final or old != new:  # the reader is told once that everything is translated
        assert [text.complete for text in texts_of(found)] == [False] * (len(texts_of(found)) - 1) + [True]


@given(st.text("ab ", min_size=1, max_size=12), st.text("ab ", max_size=12), st.booleans())
def test_only_what_differs_is_withdrawn(old, new, final):
    found = updates(showing(old), iter(translation((0, character) for character in new)), final=final)
    told = changes([TargetText(0, "zh", old), *found])
    withdrawn = sum(event.withdrawn for event in told if isinstance(event, Delta))
    assert withdrawn == len(old) - common_length(old, new)


@given(st.text("ab ", min_size=1, max_size=12), TOKENS.filter(bool))
def test_the_log_probability_of_each_token_is_in_one_change(old, tokens):
    """Those of the draft, and of what was taken back before it was shown, are in none."""
    *_, whole, _ = events = translation(tokens)
    draft = TargetText(0, "zh", old, tokens=(TargetToken(7, -0.25, len(old)),), complete=True)
    _, *told = changes([draft, *updates(draft, iter(events), final=True)])
    found = [event for event in told if isinstance(event, Delta)]
    counted = [int(-event.log_probability) for event in found]
    written = sum(int(-token.log_probability) for token in whole.tokens)
    assert sum(counted) == functools.reduce(operator.or_, counted) == sum(counted) | written
    for event in found:
        if event.token is not None:
            assert event.log_probability == -(2.0**event.token)


@given(TOKENS)
def test_without_a_draft_before_it_the_translation_is_passed_on(tokens):
    events = translation(tokens)
    assert list(updates(None, iter(events), final=True)) == events


def steadily(drafts, agreeing):
    """What is shown after each draft, whose tokens are a character each."""
    policy, found = AgreeingDrafts(DraftOptions(mask_words=0, mask_characters=0, agreeing=agreeing)), [""]
    for text in drafts:
        events = policy.events(iter(translation((0, character) for character in text)), found[-1])
        found.append(shown_after(updates(showing(found[-1]), events, final=False), found[-1]))
    return found[1:]


def test_what_is_shown_is_taken_back_when_several_drafts_agree():
    drafts = ["ab", "abc", "xbc", "abcd", "xb", "xbc", "x", "xbcd"]
    assert steadily(drafts, 1) == drafts
    assert steadily(drafts, 2) == ["ab", "abc", "abc", "abcd", "abcd", "xbc", "xbc", "xbcd"]
    assert steadily(drafts, 3) == ["ab", "abc", "abc", "abcd", "abcd", "abcd", "x", "xbcd"]
    assert steadily(drafts, 9) == ["ab", "abc", "abc", "abcd", "abcd", "abcd", "abcd", "abcd"]


def test_a_draft_that_is_shorter_than_what_is_shown_waits_for_another():
    assert steadily(["abc", "ab", "abcd"], 2) == ["abc", "abc", "abcd"]
    assert steadily(["abc", "ab", "ab"], 2) == ["abc", "abc", "ab"]
    assert steadily(["abc", "", ""], 2) == ["abc", "abc", ""]


def test_a_longer_draft_with_another_last_word_is_shown_at_once():
    assert steadily(["O trem sai", "O trem vai para Berlim"], 4) == ["O trem sai", "O trem vai para Berlim"]
    assert steadily(["O trem sai", "O trem vai"], 4) == ["O trem sai", "O trem sai"]
    assert steadily(["O trem sai agora", "Um trem sai agora para Berlim"], 4) == ["O trem sai agora"] * 2


@given(st.lists(st.text("ab", max_size=5), max_size=8), st.integers(1, 4))
def test_drafts_that_are_held_back_leave_the_text_as_it_is(drafts, agreeing):
    found = steadily(drafts, agreeing)
    for before, draft, after in zip(["", *found], drafts, found, strict=False):
        assert after in (before, draft)
        if draft.startswith(before):
            assert after == draft


def shown_after(events, before=""):
    """The text of a sentence that was ``before``."""
    return [before, *(text.text for text in texts_of(events))][-1]


@pytest.fixture
def model(tmp_path):
    return MarianModel.load(make_model_dir(tmp_path / "model", "merged"))


def test_a_draft_is_shown_and_the_final_translation_replaces_it(model):
    drafted, finished = converse(
        model,
        [
            SourceText(0, "en", BEGINNING, steady=len(BEGINNING), heard_s=5.0),
            SourceSentence(0, "en", WHOLE, heard_s=8.0),
        ],
    )
    shown = texts_of(drafted)[-1]
    assert shown.text == model.translate(BEGINNING)
    assert {text.heard_s for text in texts_of(drafted)} == {5.0}
    *_, shown, end = finished
    assert shown.text == shown.steady_text == model.translate(WHOLE) != model.translate(BEGINNING)
    assert (end.text, end.heard_s) == (shown.text, 8.0)
    kept = common_length(model.translate(BEGINNING), model.translate(WHOLE))
    withdrawn = sum(event.withdrawn for event in changes([*drafted, *finished]) if isinstance(event, Delta))
    assert withdrawn == len(model.translate(BEGINNING)) - kept


@pytest.mark.parametrize("draft", ["", BEGINNING, WHOLE, "Thank you. Thank you. Thank you."])
def test_log_probabilities_of_a_translation_add_up_to_those_of_its_tokens(draft, model):
    """Those of the draft are not counted; those of the text that both have in common are."""
    final = SourceSentence(0, "en", WHOLE)
    found = converse(model, [*([SourceText(0, "en", draft)] if draft else []), final])
    *told, end = changes(event for of_item in found for event in of_item)[-len(found[-1]) :]
    count = len(texts_of(model.stream(TranslationRequest(final, "zh"))))  # one for each token
    assert not end.searched_again
    added = sum(event.log_probability for event in told if isinstance(event, Delta))
    assert added == pytest.approx(count * end.confidence.mean_log_probability)


def test_a_final_translation_that_equals_the_draft_only_ends_it(model):
    _, finished = converse(model, [SourceText(0, "en", BEGINNING), SourceSentence(0, "en", BEGINNING)])
    commit, end = finished
    assert commit.steady_text == commit.text == end.text == model.translate(BEGINNING) != ""
    assert commit.complete


def test_the_translation_of_withdrawn_text_is_withdrawn(model):
    """Text of a segment that turns out to be noise leaves nothing behind."""
    drafted, withdrawn, nothing, again = converse(
        model,
        [
            SourceText(0, "en", BEGINNING),
            SourceText(0, "en", "", heard_s=6.0),
            SourceText(0, "en", ""),
            SourceText(0, "en", BEGINNING),
        ],
    )
    assert withdrawn == [TargetText(0, "zh", "", heard_s=6.0, complete=True)]
    assert nothing == []
    assert shown_after(again) == shown_after(drafted) == model.translate(BEGINNING)


def test_the_next_sentences_draft_is_translated_before_this_one_ends(model):
    first, ahead, finished, more = converse(
        model,
        [
            SourceText(0, "en", BEGINNING, steady=5),
            SourceText(1, "en", "Thank"),
            SourceSentence(0, "en", BEGINNING),
            SourceText(1, "en", "Thank you."),
        ],
    )
    assert {text.sentence for text in texts_of(first)} == {0}
    assert {text.sentence for text in texts_of(ahead)} == {1}
    assert shown_after(ahead) == model.translate("Thank")
    assert {event.sentence for event in finished if isinstance(event, TargetText | Translation)} == {0}
    assert shown_after([*ahead, *more]) == model.translate("Thank you.")


def test_a_sentence_that_never_ends_does_not_hold_up_the_next(model):
    """A stage of the app's may drop its end."""
    _, after = converse(model, [SourceText(0, "en", BEGINNING), SourceText(1, "en", "Thank you.", steady=9)])
    assert shown_after(after) == model.translate("Thank you.")


def test_the_translation_of_a_draft_in_a_wrong_language_is_withdrawn(model):
    drafted, ended = converse(
        model, [SourceText(0, "en", BEGINNING), SourceSentence(0, "zh", "银行在哪里？", heard_s=5.0)]
    )
    assert shown_after(drafted)
    assert ended == [TargetText(0, "zh", "", heard_s=5.0, complete=True)]
    drafted, changed, *_ = converse(
        model, [SourceText(0, "en", "Thank"), SourceText(0, "fr", BEGINNING), SourceText(0, "fr", BEGINNING)]
    )
    assert shown_after(drafted)
    assert texts_of(changed)[0].text == ""
    assert shown_after(changed) == model.translate(BEGINNING)


@pytest.mark.parametrize("final", [True, False])
def test_an_empty_translation_withdraws_the_draft(final):
    found = list(updates(showing("abc"), iter([Translation(0, "zh", "", heard_s=2.0)]), final=final))
    assert found[0] == TargetText(0, "zh", "", heard_s=2.0, complete=True)
    assert found[1:] == ([Translation(0, "zh", "", heard_s=2.0)] if final else [])


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_nothing_is_kept_of_finished_sentences(language, model):
    """Also where the sentences of a recording are given one by one."""

    outbox: asyncio.Queue[PipelineEvent] = asyncio.Queue()
    stage, worker = NmtStage(model, asyncio.Queue(), outbox, target="zh"), Worker("NMT")
    for number in range(3):
        await stage.translate(SourceSentence(number, language, BEGINNING), worker)
    worker.close()
    assert stage._open == {}


def test_a_draft_that_does_not_change_counts_as_translated(model):
    time_s = 0.0
    stats = PipelineStats(clock=lambda: time_s, languages={"zh"})
    stats.received(16 * SAMPLE_RATE)
    stats.segment_closed(SpeechSegment(0, 0, np.zeros(16 * SAMPLE_RATE, np.int16)))
    stats.audio_samples = 16 * SAMPLE_RATE
    time_s = 1.0
    assert stats.lag_s == 16.0
    first = SourceText(0, "en", BEGINNING, heard_s=8.0)
    drafted, unchanged = converse(model, [first, replace(first, steady=len(BEGINNING), heard_s=16.0)], stats=stats)
    assert drafted
    assert unchanged == []
    assert stats.lag_s == 0.0


def test_of_waiting_changes_only_the_newest_text_is_translated(model):
    async def work():
        inbox: asyncio.Queue[Text | EndOfInput] = asyncio.Queue()
        outbox: asyncio.Queue[PipelineEvent] = asyncio.Queue()
        for item in (
            SourceText(0, "en", "Where is", heard_s=1.0),
            SourceText(0, "en", "Where is the bank.", heard_s=2.0),
            SourceSentence(0, "en", "Where is the bank?", heard_s=3.0),
            SourceText(1, "en", "Where is", heard_s=4.0),
            SourceText(1, "en", "Where is the bank", heard_s=5.0),
        ):
            inbox.put_nowait(item)
        stage = asyncio.create_task(NmtStage(model, inbox, outbox, target="zh", context=NmtContext(lambda: True)).run())
        found = [await outbox.get()]
        while not (isinstance(found[-1], TargetText) and found[-1].sentence == 1 and found[-1].complete):
            found.append(await outbox.get())
        stage.cancel()
        await asyncio.gather(stage, return_exceptions=True)
        return found

    found = asyncio.run(work())
    assert {text.heard_s for text in texts_of(found)} == {3.0, 5.0}
    ends = [event for event in found if isinstance(event, Translation)]
    assert [(event.sentence, event.text) for event in ends] == [(0, model.translate("Where is the bank?"))]


def test_what_is_spoken_in_the_target_language_has_no_draft(model):
    spoken = [SourceText(0, "zh", "谢谢"), SourceSentence(0, "zh", "谢谢。")]
    assert converse(model, spoken) == [[], []]


def test_without_drafts_only_finished_sentences_are_translated(model):
    async def work():
        inbox, outbox = drafting.WatchedQueue(), asyncio.Queue[PipelineEvent]()
        stage = asyncio.create_task(NmtStage(model, inbox, outbox, target="zh").run())
        inbox.put_nowait(SourceText(0, "en", BEGINNING))
        await inbox.idle.wait()
        inbox.put_nowait(EndOfInput())
        await stage
        return [outbox.get_nowait() for _ in range(outbox.qsize())]

    assert asyncio.run(work()) == [EndOfInput()]


def test_the_last_characters_of_a_draft_are_not_shown_until_the_sentence_ends(model):
    options = DraftOptions(mask_characters=2)
    drafted, finished = converse(
        model, [SourceText(0, "en", BEGINNING), SourceSentence(0, "en", WHOLE)], options=options
    )
    assert shown_after(drafted) == model.translate(BEGINNING)[:-2] != ""
    assert shown_after(finished) == model.translate(WHOLE)


def test_a_quarter_of_a_draft_is_shown_at_least(model):
    options = DraftOptions(mask_characters=100)
    (drafted,) = converse(model, [SourceText(0, "en", BEGINNING, heard_s=4.0)], options=options)
    whole = model.translate(BEGINNING)
    assert shown_after(drafted) == whole[: len(whole) - int(0.75 * len(whole))]
    assert (drafted[-1].complete, drafted[-1].heard_s) == (True, 4.0)


def test_all_words_are_translated_whether_they_are_committed_or_not(model):
    first, more, committed, marks = converse(
        model,
        [
            SourceText(0, "en", "Thank"),
            SourceText(0, "en", "Thank you", steady=5),
            SourceText(0, "en", "Thank you", steady=9),
            SourceText(0, "en", "Thank you.", steady=9),
        ],
    )
    assert shown_after(first) == model.translate("Thank")
    shown = shown_after(more)
    assert shown == model.translate("Thank you")
    assert committed == []
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
def test_a_draft_of_steady_text_with_a_final_mark_is_shown_as_a_whole(text, committed, whole, model):
    said = SourceText(0, "en", text, steady=committed)
    (drafted,) = converse(model, [said], options=DraftOptions(mask_characters=1))
    assert (shown_after(drafted) == model.translate(text)) == whole


def test_a_sentence_that_is_committed_whole_in_a_pause_is_shown_as_a_whole(model):
    text = "Where is the bank?"
    drafted, paused, again = converse(
        model,
        [SourceText(0, "en", text), SourceText(0, "en", text, steady=17), SourceText(0, "en", text, steady=18)],
        options=DraftOptions(mask_characters=1),
    )
    assert shown_after(drafted) == model.translate(text)[:-1]
    assert shown_after(paused) == model.translate(text)
    assert again == []


class Recorder:
    """A translator that notes what it is given."""

    def __init__(self):
        self.given: list[tuple[str, bool]] = []
        self.before: list[tuple[tuple[str, str], ...] | None] = []

    def stream(self, request):
        self.given.append((request.sentence.text, request.draft))
        self.before.append(request.before)
        if request.sentence.text == "Fails.":
            raise ValueError("it fails")
        yield from translation([(0, request.sentence.text.strip())])


def test_the_translator_is_told_which_texts_are_drafts():
    recorder = Recorder()
    said: list[Text] = [
        SourceText(0, "en", "One"),
        SourceText(0, "en", "One two"),
        SourceSentence(0, "en", "One two"),
        SourceText(1, "en", "Three"),
    ]
    converse(recorder, said)
    assert recorder.given == [("One", True), ("One two", True), ("One two", False), ("Three", True)]


def test_final_translations_alone_are_the_context_of_final_ones():
    recorder = Recorder()
    texts = ["One.", " ", "Two.", "Fails.", "Three.", "Four.", "Five.", "Six."]
    said: list[Text] = []
    for number, text in enumerate(texts):
        said += [SourceText(number, "en", f"{text} So", 3), SourceSentence(number, "en", text)]
    converse(recorder, said)
    drafts, final = recorder.before[::2], recorder.before[1::2]
    assert drafts == [()] * len(texts)
    translated = [(text, text) for text in texts if text not in (" ", "Fails.")]
    assert final[:3] == [(), tuple(translated[:1]), tuple(translated[:1])]
    assert final[-1] == tuple(translated[1:5])  # the four before it


def test_the_context_is_what_was_said_before_in_order_whatever_was_translated_first():
    recorder = Recorder()
    order = [5, 4, 6, 3, 7, 2, 8]  # as where a language is added after the sixth sentence
    converse(recorder, [SourceSentence(number, "en", f"{number}.") for number in order])
    found = {order[at]: [text for text, _ in before] for at, before in enumerate(recorder.before)}
    assert found == {
        5: [],
        4: [],
        6: ["4.", "5."],
        3: [],
        7: ["3.", "4.", "5.", "6."],
        2: [],
        8: ["4.", "5.", "6.", "7."],
    }


def given_at_once(model, items, target="zh"):
    """What a live stage puts out for items that all wait when it begins."""

    async def work():
        inbox, outbox = asyncio.Queue[Text | EndOfInput](), asyncio.Queue[PipelineEvent]()
        for item in (*items, EndOfInput()):
            inbox.put_nowait(item)
        await NmtStage(model, inbox, outbox, target=target, context=NmtContext(lambda: True)).run()
        return [outbox.get_nowait() for _ in range(outbox.qsize())]

    return asyncio.run(work())


def test_a_translator_that_tells_what_it_translates_gets_its_drafts_and_what_is_steady():
    drafted = []

    class Attending(Recorder):
        attends = True

        def stream(self, request):
            drafted.append(request.drafted and (request.drafted.source, id(request.drafted)))
            return super().stream(request)

    converse(
        Attending(),
        [SourceText(0, "en", "One two", 3), SourceText(0, "en", "One two so", 7), SourceSentence(0, "en", "One.")],
    )
    (first, drafts), (second, same), final = drafted
    assert (first, second, final) == ("One", "One two", None)
    assert drafts == same


async def test_a_draft_in_the_target_language_keeps_the_sentences_before_it():
    stage = NmtStage(Recorder(), asyncio.Queue(), asyncio.Queue(), target="zh")
    for number, language in ((0, "en"), (1, "zh"), (2, "en")):
        await stage._take(SourceText(number, language, "One"))
    for final, left in ((False, [0, 1, 2]), (True, [2])):
        await stage.translate(SourceSentence(1, "zh", "一"), Worker("NMT"), final=final)
        assert sorted(stage._open) == left


async def test_of_several_sentences_in_progress_the_first_that_changed_is_translated_first():
    recorder, outbox = Recorder(), asyncio.Queue[PipelineEvent]()
    stage = NmtStage(recorder, asyncio.Queue(), outbox, target="zh", context=NmtContext(lambda: True))
    for number, text in ((1, "Two"), (0, "One"), (2, "")):
        await stage._take(SourceText(number, "en", text))
    found = [stage._next_draft() for _ in range(3)]
    assert [draft.text if draft else None for draft in found] == ["One", "Two", None]


def test_the_third_failure_in_a_row_ends_the_run_and_a_translation_between_starts_again():
    def said(*texts):
        return [SourceSentence(number, "en", text) for number, text in enumerate(texts)]

    events = given_at_once(Recorder(), said("Fails.", "Fails.", "One.", "Fails.", "Fails."))
    assert [event.error is None for event in events if isinstance(event, Translation)] == [
        False,
        False,
        True,
        False,
        False,
    ]
    with pytest.raises(ValueError, match="it fails"):
        given_at_once(Recorder(), said("Fails.", "Fails.", "Fails."))


def test_a_translation_that_failed_is_withdrawn_and_told():
    class Breaking(Recorder):
        def stream(self, request):
            yield TargetText(0, "zh", "Eins", 4, complete=True)
            if not request.draft:
                raise ValueError("it fails")
            yield Translation(0, "zh", "Eins")

    stats = PipelineStats()
    said: list[Text] = [SourceText(0, "en", "One"), SourceSentence(0, "en", "One.", 1.0, 2.0, heard_s=2.0)]
    shown, lost = converse(Breaking(), said, stats=stats)
    assert [event.text for event in texts_of(shown)] == ["Eins"]
    assert texts_of(lost)[-1] == TargetText(0, "zh", "", heard_s=2.0, complete=True)
    assert lost[-1] == Translation(0, "zh", "", heard_s=2.0, error="it fails")
    assert stats.failures == {"NMT": "it fails"}
    assert stats.withheld_s == {"not translated into zh": 1.0}


def test_text_that_was_withdrawn_is_translated_anew():
    recorder = Recorder()
    converse(recorder, [SourceText(0, "en", text) for text in ("One", "", "One", "One")])
    assert recorder.given == [("One", True), ("One", True)]


async def test_nothing_is_withdrawn_of_an_empty_translation():
    outbox = asyncio.Queue[PipelineEvent]()
    stage = NmtStage(Recorder(), asyncio.Queue(), outbox, target="zh")
    for text, events in (("", 0), ("一", 1)):
        stage._opened(0).shown = TargetText(0, "zh", text)
        await stage._withdraw(0, 1.0)
        assert outbox.qsize() == events


@pytest.mark.parametrize(
    ("steps", "by_word", "gained"),
    [
        (["One|", "One|"], True, [True, False]),
        (["One|", "One| two"], True, [True, True]),  # another text
        (["| One two", "One| two", "One| two", "| One two"], True, [True, True, False, False]),  # more is steady
        (["One |two.", "One two.|", "One two.|"], False, [True, True, False]),  # ends like a sentence
        (["One |two", "One two|"], False, [True, False]),
    ],
)
def test_a_text_is_translated_again_if_it_is_new_or_more_of_it_is_steady(steps, by_word, gained):
    sentence, found = _Open(DraftOptions()), []
    for step in steps:
        steady, _, rest = step.partition("|")
        sentence.source = SourceText(0, "en", (steady + rest).strip(), len(steady.strip()))
        found.append(sentence.gained(sentence.source, by_word=by_word))
    assert found == gained


@pytest.mark.parametrize(
    ("text", "steady", "ends"),
    [
        ("One two.", 8, True),
        ("One two.", 7, True),  # the mark may change
        ("One two.", 6, False),
        ("One two,", 8, False),
        ("One two", 7, False),
        ("去吧。", 3, True),
        ("", 0, False),
    ],
)
def test_a_text_ends_like_a_sentence_if_its_words_are_steady_and_a_final_mark_follows(text, steady, ends):
    sentence = _Open(DraftOptions())
    assert not sentence.ends_like_a_sentence
    sentence.source = SourceText(0, "en", text, steady)
    assert sentence.ends_like_a_sentence is ends


def test_the_terms_of_a_text_are_those_of_its_language_as_they_are_now():
    terms = [Glossary((Term("cat", "猫"), Term("Acme", None)), ("en", "zh"))]
    directed, spoken = DirectedGlossary(lambda: terms[0], "zh"), DirectedGlossary(lambda: terms[0], None)
    assert [term.source for term in directed.now("en").terms] == ["cat", "Acme"]
    assert directed.now("en") is directed.now("en")
    assert [term.source for term in directed.now("fr").terms] == ["Acme"]
    assert [term.source for term in spoken.now("zh").terms] == ["猫", "Acme"]
    assert [term.source for term in directed.now("en").terms] == ["cat", "Acme"]
    terms[0] = Glossary((Term("dog", "狗"),), ("en", "zh"))
    assert [term.source for term in directed.now("en").terms] == ["dog"]
    assert directed.now("fr") is None  # no terms
