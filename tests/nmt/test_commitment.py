"""Translations of sentences in progress that are committed word by word: nothing of them is ever taken back."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pipeline import Delta, EndOfInput, MarianModel, NmtStage, PipelineEvent, SpeechTranslator
from pipeline.config import PipelineConfig
from pipeline.errors import UsageError
from pipeline.events import SourceDelta, SourceSentence, Translation
from pipeline.languages.chinese import conversion
from pipeline.loading import Models
from pipeline.nmt.beams import beam_search
from pipeline.nmt.checked import Rewind, checked
from pipeline.nmt.commitment import (
    CertainSource,
    Commitment,
    PartDraft,
    appended,
    attending,
    certain_sources,
    whole_tokens,
)
from pipeline.nmt.compiler.build import compile_model
from pipeline.nmt.generation import GenerationOptions, Token
from pipeline.nmt.pivot import PivotTranslator
from pipeline.nmt.scripts import rewritten
from pipeline.nmt.search import greedy
from pipeline.nmt.stage import Text
from pipeline.nmt.translator import TextTranslator
from pipeline.run.drafts import DraftOptions
from pipeline.sentences.growing import GrowingText, TextChangeError
from tests.conftest import SHIPPED_TRANSLATORS, TINY, golden, make_model_dir
from tests.nmt.test_checked import Looping

BY_WORD = DraftOptions(commit="word", mask_words=1, mask_characters=1)
WORDS = [
    "where",
    "is",
    "the",
    "bank",
    "?",
    "thank",
    "you",
    ".",
    "I",
    "don't",
    "know",
    ",",
    "the",
    "meeting",
    "begins",
    "at",
    "two",
]


def tokens_of(ids: Sequence[int], end: int = 0) -> tuple[Token, ...]:
    return (*(Token(one, -0.5, last=False) for one in ids), Token(end, -0.1, last=True))


def part_draft(
    texts: Sequence[str],
    certain: CertainSource | None = None,
    attention: NDArray[np.float32] | None = None,
    language: str = "zh",
) -> PartDraft:
    """A draft in which each text is a token of its own number."""
    ids = [hash(text) % 10_000 + 1 for text in texts]
    return PartDraft(tokens_of(ids), (*texts, ""), language, certain, attention)


# The rules


def test_tokens_are_committed_until_one_attends_to_source_that_may_change() -> None:
    rows = np.array([[0.9, 0.1, 0, 0], [0.2, 0.7, 0.1, 0], [0.1, 0.5, 0.4, 0], [1, 0, 0, 0]], np.float32)
    assert [attending(rows, certain) for certain in range(5)] == [0, 1, 2, 4, 4]


def test_attention_decides_where_it_is_known() -> None:
    commitment = Commitment(BY_WORD)
    rows = np.array([[1, 0, 0], [0.85, 0.15, 0], [0.5, 0.5, 0], [0, 0, 1]], np.float32)
    assert commitment.push(0, part_draft("甲乙丙", CertainSource(1), rows)) == 2
    assert [token.last for token in commitment.tokens(0)] == [False, False]
    # Only the tokens that follow have rows.
    assert commitment.push(0, part_draft("甲乙丁戊", CertainSource(2), rows[:1].repeat(3, 0))) == 4


def test_translations_must_agree_where_attention_is_unknown() -> None:
    commitment = Commitment(BY_WORD)
    found = []
    for source, text in [
        ("A", "甲乙丙"),
        ("A", "甲乙丁"),
        ("A b", "甲乙戊己"),
        ("A b c", "甲乙戊庚辛"),
        ("A b c d", "甲乙戊庚"),
    ]:
        commitment.source = commitment.text = source
        found.append(commitment.push(0, part_draft(text)))
    # Of the last one, 庚 is masked.
    assert found == [0, 0, 2, 3, 3]


def test_a_later_translation_of_the_same_source_replaces_the_one_before() -> None:
    commitment = Commitment(BY_WORD)
    for source, text, expected in [("A", "甲乙丙", 0), ("A b", "丁乙丙", 0), ("A b", "甲乙丙", 2)]:
        commitment.source = commitment.text = source
        assert commitment.push(0, part_draft(text)) == expected


@pytest.mark.parametrize(
    "heard",
    [
        [("A", "A b"), ("A b", "A b")],
        [("A", "A b"), ("A b", "A b c"), ("A b", "A b")],  # a word was withdrawn
    ],
)
def test_translations_of_one_text_do_not_agree_because_more_of_it_is_committed(heard: list[tuple[str, str]]) -> None:
    commitment = Commitment(BY_WORD)
    for commitment.source, commitment.text in heard:
        assert commitment.push(0, part_draft("甲乙丙" if commitment.text == "A b" else "丁")) == 0
    commitment.source = commitment.text = "A b c"
    assert commitment.push(0, part_draft("甲乙丙丁")) == 3


@pytest.mark.parametrize(
    ("texts", "language", "expected"),
    [
        (["Das", " Haus", " ist"], "de", [0, 1, 2, 2]),  # the last word may go on
        (["Das", " Hau", "s", " ist", "."], "de", [0, 1, 1, 3, 3, 3]),
        (["Ja", ",", " gut", "."], "de", [0, 0, 2, 2, 2]),
        (["我", "很", "好", "。"], "zh", [0, 1, 2, 3, 3]),
        (["我", "用", "Wi", "Fi", "吧"], "zh", [0, 1, 2, 2, 4, 5]),
        (["我", "用", "Wi", "Fi"], "zh", [0, 1, 2, 2, 2]),
        (["我", "", "", "𠮷", "吧"], "zh", [0, 1, 1, 1, 4, 5]),  # one character of several tokens
        (["。", "？"], "zh", [0, 0, 0]),
        ([], "zh", [0]),
    ],
)
def test_whole_words_are_committed_and_no_marks_at_the_end(
    texts: list[str], language: str, expected: list[int]
) -> None:
    assert [whole_tokens(texts, count, language) for count in range(len(texts) + 1)] == expected


def test_a_part_is_complete_when_words_after_it_are_committed() -> None:
    first, second = (1, 2, 3, 0), (4, 5, 0)
    assert certain_sources([first], [(1, 2, 0)]) == [CertainSource(2)]
    assert certain_sources([first], [first]) == [CertainSource(3)]
    assert certain_sources([first, second], [first]) == [CertainSource(3), CertainSource(0)]
    assert certain_sources([first, second], [first, (4, 0)]) == [CertainSource(3, complete=True), CertainSource(1)]
    assert certain_sources([first], []) == [CertainSource(0)]


def test_a_part_waits_for_those_before_it() -> None:
    commitment, rows = Commitment(BY_WORD), np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    assert commitment.push(1, part_draft("甲乙", CertainSource(1), rows)) == 0
    assert commitment.push(0, part_draft("丙", CertainSource(1, complete=True), rows[:2])) == 2
    assert commitment.tokens(0)[-1].last
    assert commitment.push(1, part_draft("甲乙", CertainSource(1), rows)) == 2


def test_a_translation_that_was_cut_commits_nothing() -> None:
    commitment, rows = Commitment(BY_WORD), np.ones((2, 1), np.float32)
    found = part_draft("甲", CertainSource(1), rows)
    cut = dataclasses.replace(found, tokens=(found.tokens[0], Token(0, 0.0, last=True, truncated=True)))
    assert commitment.push(0, cut) == 0
    assert commitment.push(0, found) == 1


def test_a_source_with_fewer_parts_than_are_committed_stands_for_the_rest() -> None:
    commitment = Commitment(BY_WORD)
    for part in range(2):
        commitment.push(part, part_draft("甲", CertainSource(1, complete=True)))
    assert commitment.laid_out([(1, 0)]) == [(1, 0), (1, 0)]
    assert commitment.laid_out([(1, 0), (2, 0), (3, 0)]) == [(1, 0), (2, 0), (3, 0)]
    assert commitment.laid_out([]) == [(), ()]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),  # the part
            st.text("甲乙ab 。", max_size=6),  # what follows the committed tokens
            st.text("AB", max_size=2),  # the committed source
            st.integers(0, 4),  # its tokens
            st.booleans(),  # whether it is complete
            st.lists(st.floats(0, 1, width=32), min_size=7, max_size=7) | st.none(),
            st.booleans(),  # whether it was cut
        ),
        max_size=12,
    ),
    st.sampled_from(["zh", "de"]),
)
def test_committed_tokens_are_only_added_to(
    updates: list[tuple[int, str, str, int, bool, list[float] | None, bool]], language: str
) -> None:
    commitment = Commitment(BY_WORD)
    for part, rest, source, tokens, complete, shares, cut in updates:
        before = [commitment.tokens(number) for number in range(3)]
        known = before[part]
        if known and known[-1].last:
            continue  # such a part is not translated again
        texts = (*(chr(token.id) for token in known), *rest, "")
        found = (*known, *(Token(ord(character), -1.0, last=False) for character in rest))
        end = Token(0, -1.0, last=True, truncated=cut)
        attention = None if shares is None else np.array([[1 - share, share] for share in shares[: len(rest) + 1]])
        commitment.source = commitment.text = source
        certain = CertainSource(tokens, complete) if shares is not None or complete else None
        count = commitment.push(part, PartDraft((*found, end), texts, language, certain, attention))
        for number in range(3):
            after = commitment.tokens(number)
            assert after[: len(before[number])] == before[number]
            assert number == part or after == before[number]
        assert len(commitment.tokens(part)) == count
        assert commitment.tokens(part)[:count] == (*found, end)[:count]


# Events


def events_of(text: str, committed: int) -> Iterator[Delta | Translation]:
    for number, character in enumerate(text):
        yield Delta(0, "zh", character, token=number, log_probability=-(2.0**number))
    yield Delta(0, "zh", "", committed=committed, token=99, log_probability=-(2.0 ** len(text)), complete=True)
    yield Translation(0, "zh", text)


def test_a_change_appends_what_is_newly_committed() -> None:
    shown = GrowingText()
    (first,) = appended(shown, events_of("甲乙丙丁", 2), final=False)
    assert isinstance(first, Delta)
    assert (first.text, first.withdrawn, first.committed, first.log_probability) == ("甲乙", 0, 2, -3.0)
    shown.apply(first)
    assert list(appended(shown, events_of("甲乙丙", 2), final=False)) == []
    change, end = appended(shown, events_of("甲乙丙", 3), final=True)
    assert isinstance(change, Delta)
    assert (change.text, change.withdrawn, change.committed, change.complete) == ("丙", 0, 3, True)
    assert change.log_probability == -(4.0 + 8.0)  # with the end token
    assert end == Translation(0, "zh", "甲乙丙")


@pytest.mark.parametrize(
    ("text", "committed", "final"),
    [("干部", 1, 0), ("好，干部", 3, 2), ("好，干部", 4, 4), ("好，干", 2, 2)],
)
def test_converted_text_is_final_when_later_text_cannot_change_it(text: str, committed: int, final: int) -> None:
    """干 is 幹 or 乾 by what follows."""
    *changes, _ = rewritten(events_of(text, committed), conversion("Hant"))
    assert isinstance(changes[-1], Delta)
    assert changes[-1].committed == final


def test_a_converted_draft_is_final_when_later_text_cannot_change_it() -> None:
    """发 is 發, and 髮 before 廊."""
    draft, whole = events_of("好，我去发", 5), events_of("好，我去发廊", 6)
    shown = GrowingText()
    for change in appended(shown, rewritten(draft, conversion("Hant"), final=False), final=False):
        assert isinstance(change, Delta)
        shown.apply(change)
    assert shown.text == "好，"
    *_, end = appended(shown, rewritten(whole, conversion("Hant")), final=True)
    assert isinstance(end, Translation)
    assert end.text == "好，我去髮廊"


@pytest.mark.parametrize("final", [False, True])
def test_a_translation_that_does_not_begin_with_the_committed_text_is_an_error(final: bool) -> None:
    shown = GrowingText()
    shown.apply(Delta(0, "zh", "甲乙", committed=2))
    with pytest.raises(TextChangeError, match="'甲丙丁' does not begin with the committed text '甲乙'"):
        list(appended(shown, events_of("甲丙丁", 3), final=final))


# The stage


def converse(
    model: TextTranslator, items: Sequence[Text], target: str = "zh", options: DraftOptions = BY_WORD
) -> list[list[PipelineEvent]]:
    """What a live stage puts out for each item, each given once the one before has been dealt with."""

    class WatchedQueue(asyncio.Queue[Text | EndOfInput]):
        def __init__(self) -> None:
            super().__init__()
            self.idle = asyncio.Event()

        async def get(self) -> Text | EndOfInput:
            if self.empty():
                self.idle.set()
            return await super().get()

    async def work() -> list[list[PipelineEvent]]:
        inbox, outbox = WatchedQueue(), asyncio.Queue[PipelineEvent]()
        stage = NmtStage(model, inbox, outbox, target=target, drafts=lambda: True, options=options)
        running = asyncio.create_task(stage.run())
        found = []
        for item in items:
            inbox.put_nowait(item)
            inbox.idle.clear()
            waiting = asyncio.create_task(inbox.idle.wait())
            await asyncio.wait({waiting, running}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
            found.append([outbox.get_nowait() for _ in range(outbox.qsize())])
        inbox.put_nowait(EndOfInput())
        await running
        return found

    return asyncio.run(work())


def joined(events: Sequence[list[PipelineEvent]]) -> list[PipelineEvent]:
    return [event for of_item in events for event in of_item]


def growing(words: Sequence[str], ahead: int = 1, language: str = "en") -> list[Text]:
    """A sentence of which one word after the other is committed, ``ahead`` words before it is heard whole."""
    items: list[Text] = []
    shown = ""
    for count in range(1, len(words) + 1):
        text = " ".join(words[:count])
        committed = len(" ".join(words[: max(0, count - ahead)]))
        items.append(SourceDelta(0, language, text[len(shown) :], committed=committed, heard_s=float(count)))
        shown = text
    return [*items, SourceSentence(0, language, " ".join(words), heard_s=float(len(words)))]


def check_append_only(events: Sequence[PipelineEvent]) -> tuple[str, int]:
    """Check the events of one sentence's translation; return its text, and its length before the final translation."""
    *changes, end = events
    assert isinstance(end, Translation)
    text, before = "", 0
    for number, change in enumerate(changes):
        assert isinstance(change, Delta)
        assert change.withdrawn == 0
        before = len(text) if number == len(changes) - 1 else before
        text += change.text
        assert change.committed == len(text), "shown, but not committed"
    assert end.text == text
    return text, before


@pytest.fixture(scope="module")
def with_alignment(tmp_path_factory: pytest.TempPathFactory) -> MarianModel:
    out = tmp_path_factory.mktemp("alignment") / "out"
    compile_model(TINY, out, weights="fp32", alignment=(1, 2))
    return MarianModel.load(out)


@pytest.fixture(scope="module")
def without_alignment(tmp_path_factory: pytest.TempPathFactory) -> MarianModel:
    return MarianModel.load(make_model_dir(tmp_path_factory.mktemp("merged") / "model", "merged"))


@pytest.fixture(scope="module")
def demo() -> MarianModel:
    return MarianModel.load(SHIPPED_TRANSLATORS["demo-en-zh"])


@pytest.fixture(scope="module")
def pivot(demo: MarianModel) -> PivotTranslator:
    return PivotTranslator(demo, MarianModel.load(SHIPPED_TRANSLATORS["demo-zh-en"]), "zh")


@pytest.mark.parametrize(
    ("name", "spoken", "target"),
    [
        ("demo", "en", "zh"),
        ("demo", "en", "zh-TW"),
        ("with_alignment", "en", "zh"),
        ("without_alignment", "en", "zh"),
        ("pivot", "de", "en"),
    ],
)
@settings(max_examples=12, deadline=None)
@given(
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=14),
    final=st.lists(st.sampled_from(WORDS), max_size=3),
    ahead=st.integers(0, 2),
    loud=st.booleans(),
)
def test_nothing_is_ever_withdrawn(
    name: str,
    spoken: str,
    target: str,
    words: list[str],
    final: list[str],
    ahead: int,
    loud: bool,
    demo: MarianModel,
    with_alignment: MarianModel,
    without_alignment: MarianModel,
    pivot: PivotTranslator,
) -> None:
    """Whatever is heard, and whatever the whole sentence is at last."""
    model = {
        "demo": demo,
        "with_alignment": with_alignment,
        "without_alignment": without_alignment,
        "pivot": pivot,
    }[name]
    *drafts, _ = growing(words, ahead=ahead, language=spoken)
    text = " ".join([*words, *final])
    events = converse(model, [*drafts, SourceSentence(0, spoken, text.upper() if loud else text)], target)
    check_append_only(joined(events))


def test_words_are_committed_before_the_sentence_ends(
    demo: MarianModel, with_alignment: MarianModel, without_alignment: MarianModel
) -> None:
    words = [
        "I",
        "want",
        "to",
        "go",
        "to",
        "Shanghai",
        "next",
        "week",
        "with",
        "my",
        "sister",
        "and",
        "my",
        "brother",
        ".",
    ]
    for model in (demo, with_alignment, without_alignment):
        text, before = check_append_only(joined(converse(model, growing(words))))
        assert 0 < before < len(text)


def test_words_that_a_pause_commits_are_translated_at_once(demo: MarianModel) -> None:
    text = "We will meet at the station tomorrow morning"
    drafted, paused, again = converse(
        demo,
        [
            SourceDelta(0, "en", text, committed=5),
            SourceDelta(0, "en", "", committed=len(text), heard_s=2.0),
            SourceDelta(0, "en", "", committed=len(text), heard_s=3.0),
        ],
    )
    assert drafted == again == []
    (change,) = paused
    assert isinstance(change, Delta)
    assert change.committed == len(change.text) > 0


def test_files_and_sentence_mode_get_the_translation_of_the_whole_sentence(demo: MarianModel) -> None:
    words = ["I", "want", "to", "go", "to", "Shanghai", "next", "week", "with", "my", "sister", "."]
    options = dataclasses.replace(BY_WORD, commit="sentence")
    *_, end = joined(converse(demo, growing(words), options=options))
    assert isinstance(end, Translation)
    assert end.text == demo.translate(" ".join(words))


def test_a_sentence_without_drafts_is_translated_freely(demo: MarianModel) -> None:
    text = "I want to go to Shanghai next week."
    (events,) = converse(demo, [SourceSentence(0, "en", text)])
    assert check_append_only(events) == (demo.translate(text), 0)


def test_several_sentences_in_one_keep_what_is_committed(demo: MarianModel) -> None:
    words = [
        "Where",
        "is",
        "the",
        "bank?",
        "Thank",
        "you.",
        "I",
        "want",
        "to",
        "go",
        "to",
        "Shanghai",
        "next",
        "week",
        "with",
        "my",
        "sister.",
    ]
    text, before = check_append_only(joined(converse(demo, growing(words))))
    assert text.startswith(demo.translate("Where is the bank?"))
    assert before > len(demo.translate("Where is the bank?"))
    # The text may be divided otherwise in the end.
    whole = " ".join(words).replace("?", "").replace("you.", "you")
    *drafts, _ = growing(words)
    check_append_only(joined(converse(demo, [*drafts, SourceSentence(0, "en", whole)])))
    check_append_only(joined(converse(demo, [*drafts, SourceSentence(0, "en", "")])))


def test_committed_words_stay_when_the_language_changes(demo: MarianModel) -> None:
    *drafts, _ = growing(
        ["I", "want", "to", "go", "to", "Shanghai", "next", "week", "with", "my", "sister", "and", "my", "brother"]
    )
    found = converse(demo, [*drafts, SourceSentence(0, "zh", "我想去", heard_s=9.0)])
    text, before = check_append_only(joined(found))
    assert len(text) > 0 == before or len(text) >= before
    (end,) = found[-1]  # what is spoken in the target language is not translated
    assert isinstance(end, Translation)
    assert end.heard_s == 9.0


def test_the_final_translation_continues_the_committed_tokens(demo: MarianModel) -> None:
    text = "I want to go to Shanghai next week with my sister and my brother"
    commitment = Commitment(BY_WORD)
    for count in range(1, 14):
        commitment.source = " ".join(text.split()[:count])
        list(demo.append(SourceSentence(0, "en", commitment.source), commitment, "zh", draft=True))
    known = [token.id for token in commitment.tokens(0)]
    assert len(known) > 2
    (source,) = demo.sources(text + ".", "en", None)
    expected = [token.id for token in greedy(demo.decoder, source, demo.generation, committed=known)]
    cached = len(demo.cache)
    (*_, end) = demo.append(SourceSentence(0, "en", text + "."), commitment, "zh")
    assert isinstance(end, Translation)
    assert end.text == demo.tokenizer.decode([*known, *expected])
    assert end.confidence is not None
    assert len(demo.cache) == cached, "a translation that begins with given tokens is of no use for others"


def test_a_sentence_that_is_in_the_cache_is_committed_by_its_attention_too() -> None:
    text = "Pity the world, or else this glutton be,"
    found = []
    for cached in (0, 1):
        model = MarianModel.load(SHIPPED_TRANSLATORS["demo-en-zh"], cached_sentences=cached)
        model.translate(text)
        assert len(model.cache) == cached
        commitment = Commitment(BY_WORD)
        for words, heard in ((6, 7), (7, 8)):
            commitment.source, commitment.text = (" ".join(text.split()[:count]) for count in (words, heard))
            list(model.append(SourceSentence(0, "en", commitment.text), commitment, "zh", draft=True))
        found.append(commitment.tokens(0))
    assert found[0] == found[1]


def test_a_converted_draft_of_which_all_is_committed_may_still_change(demo: MarianModel) -> None:
    text = "I want to go to Shanghai next week"
    *_, mark, _ = greedy(demo.decoder, demo.sources(text, "en", None)[0], demo.generation)
    second = MarianModel.load(SHIPPED_TRANSLATORS["demo-en-zh"])
    bad = (*demo.generation.bad_words, (mark.id,))
    second.generation = dataclasses.replace(demo.generation, bad_words=bad)
    both = PivotTranslator(MarianModel.load(SHIPPED_TRANSLATORS["demo-zh-en"]), second, "en")
    models: tuple[tuple[MarianModel | PivotTranslator, str, str], ...] = (
        (second, "en", text),
        (both, "zh", demo.translate(text)),
    )
    for model, language, said in models:
        found = []
        for target in ("zh", "zh-TW"):
            commitment = Commitment(DraftOptions(commit="word", mask_characters=0))
            for commitment.text in (said, said + "?"):  # translations of two texts agree
                commitment.source = commitment.text if model is both else said
                *_, change, end = model.append(SourceSentence(0, language, said), commitment, target, draft=True)
            assert isinstance(change, Delta)
            assert isinstance(end, Translation)
            found.append((change.committed, len(end.text)))
        (committed, length), (converted, _) = found
        assert committed == length > converted


def test_the_attention_is_that_of_single_steps(with_alignment: MarianModel) -> None:
    model, pushed = with_alignment, list[tuple[PartDraft, int]]()

    class Watched(Commitment):
        def push(self, part: int, draft: PartDraft) -> int:
            pushed.append((draft, len(self.tokens(part))))
            return super().push(part, draft)

    commitment = Watched(BY_WORD)
    for row in golden("tiny-marian")[:3]:
        commitment.source = row["source"]
        list(model.append(SourceSentence(0, "en", row["source"]), commitment, "zh", draft=True))
    assert max(known for _, known in pushed) > 0
    draft, known = pushed[-1]
    assert draft.attention is not None
    (source,) = model.sources(commitment.source, "en", None)[:1]
    state = model.decoder.encode(source)
    ids = [token.id for token in draft.tokens]
    rows = [model.decoder.attention(state, [token]) for token in [model.generation.start_token, *ids[:-1]]]
    expected = np.concatenate([row for row in rows if row is not None])[known:]
    assert draft.attention == pytest.approx(expected, abs=1e-5)


# The searches


@pytest.mark.parametrize("beams", [1, 2, 4])
def test_beam_search_begins_with_committed_tokens(beams: int, tmp_path: Path) -> None:
    model = MarianModel.load(make_model_dir(tmp_path / "model", "merged"), beams=beams)
    for row in golden("tiny-marian")[:6]:
        source, known = row["source_ids"], row["target_ids"][:2]
        found = list(beam_search(model.decoder, source, model.generation, committed=known))
        assert found[-1].last
        assert all(token.log_probability <= 0 for token in found)
        single = list(greedy(model.decoder, source, model.generation, committed=known))
        if beams == 1:
            assert [token.id for token in found] == [token.id for token in single]
        means = [sum(token.log_probability for token in tokens) / len(tokens) for tokens in (found, single)]
        assert means[0] > means[1] - 1e-3, "more hypotheses find no worse one"


@pytest.mark.parametrize("search", [greedy, beam_search])
def test_nothing_follows_committed_tokens_that_fill_the_limit(search: object, tmp_path: Path) -> None:
    model = MarianModel.load(make_model_dir(tmp_path / "model", "merged"))
    row = golden("tiny-marian")[0]
    options = dataclasses.replace(model.generation, max_tokens=2, beams=1)
    assert callable(search)
    assert list(search(model.decoder, row["source_ids"], options, committed=row["target_ids"][:2])) == []


def checked_from(committed: Sequence[int], searches: Sequence[Sequence[int]]) -> list[Token | Rewind]:
    """The tokens of a sentence of which each search gives other ids after the committed ones; 0 is the end token."""
    left = iter(searches)

    def search(options: GenerationOptions) -> Iterator[Token]:
        for one in next(left):
            yield Token(one, -1.0, last=one == 0)

    options = GenerationOptions(start_token=99, end_token=0, pad_token=99, max_tokens=100)
    arguments = (search, options, range(1, 21), lambda _: False)
    return list(checked(*arguments, length_factor=0, expired=lambda: False, committed=committed))


def test_a_second_search_after_a_loop_begins_with_the_committed_tokens_too() -> None:
    found = checked_from([1, 2], [[3] * 30, [4, 5, 0]])
    ids: list[int] = []
    for token in found:
        if isinstance(token, Rewind):
            del ids[token.kept :]
        else:
            ids.append(token.id)
    assert ids == [4, 5, 0]
    assert any(isinstance(token, Rewind) for token in found)


def test_committed_tokens_count_in_what_a_second_search_may_not_repeat() -> None:
    loop = [3] * 30
    again = [token for token in checked_from([3, 3, 3], [loop, [3, 5, 0], [6, 0]]) if isinstance(token, Token)]
    assert [token.id for token in again][-2:] == [6, 0]


def test_a_second_search_may_end_right_after_the_committed_tokens() -> None:
    *_, end = checked_from([1, 2], [[3] * 30, [0]])
    assert isinstance(end, Token)
    assert (end.id, end.last, end.truncated, end.searched_again) == (0, True, False, True)


def test_text_that_is_searched_again_keeps_the_committed_tokens(demo: MarianModel) -> None:
    text, commitment = "We are meeting at ten o'clock.", Commitment(BY_WORD)
    (source,) = demo.sources(text, "en", None)
    known = tuple(token for token, _ in zip(greedy(demo.decoder, source, demo.generation), range(2), strict=False))
    ids, texts = [token.id for token in known], tuple(demo.tokenizer.decode([token.id]) for token in known)
    part = PartDraft((*known, Token(0, 0.0, last=True)), (*texts, "x", ""), "zh", CertainSource(2), np.eye(2, 4))
    assert commitment.push(0, part) == 2
    looping = Looping(demo, [ids[1], 7], forbidden_too=False)
    *changes, end = looping.append(SourceSentence(0, "en", text), commitment, "zh")
    assert isinstance(end, Translation)
    assert end.searched_again
    shown = GrowingText()
    for change in changes:
        assert isinstance(change, Delta)
        shown.apply(change, change.token)
    assert any(isinstance(change, Delta) and change.withdrawn for change in changes)
    options = dataclasses.replace(demo.generation, no_repeat_ngram=2)
    rest = [token.id for token in greedy(demo.decoder, source, options, committed=ids)]
    assert [piece.mark for piece in shown.pieces] == [*ids, *rest]
    assert end.text == demo.tokenizer.decode([*ids, *rest])


def test_a_loop_that_began_in_the_committed_tokens_is_found_and_cut_after_them() -> None:
    found = checked_from([3] * 20, [[3] * 9, [3] * 9, [3] * 9])
    assert [token for token in found if isinstance(token, Rewind)] == []
    (end,) = found
    assert isinstance(end, Token)
    assert (end.id, end.last, end.truncated) == (0, True, True)


def test_committed_tokens_that_fill_the_limit_end_the_sentence() -> None:
    (end,) = checked_from([1, 2], [[], [], []])
    assert isinstance(end, Token)
    assert (end.last, end.truncated) == (True, True)


# Translators that cannot commit


class OnlyWhole:
    """A translator of an app's own, which cannot go on from committed words."""

    def stream(self, sentence: SourceSentence, *_: object) -> Iterator[Delta | Translation]:
        yield Translation(sentence.sentence, "zh", "好")


def test_a_translator_that_cannot_commit_words_is_refused_in_live_runs(demo_models: Models) -> None:
    config = dataclasses.replace(PipelineConfig(), drafts=BY_WORD)
    models = dataclasses.replace(demo_models, translations={"zh": OnlyWhole()})

    async def live(*, live: bool) -> None:
        async with SpeechTranslator(config, models, live=live) as translator:
            await translator.end()
            async for _ in translator.events():
                pass

    with pytest.raises(UsageError, match=r'commit is "word".* into zh \(OnlyWhole\).* set commit = "sentence"'):
        asyncio.run(live(live=True))
    asyncio.run(live(live=False))
    with pytest.raises(UsageError, match="OnlyWhole"):
        converse(OnlyWhole(), [SourceSentence(0, "en", "Hello.")])
