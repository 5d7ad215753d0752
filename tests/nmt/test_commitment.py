"""Translations of sentences in progress that are committed word by word: nothing of them is ever taken back."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import MarianModel
from pipeline.captions.policy import at_once, rewritten, updates
from pipeline.captions.states import OpenTexts, TextChangeError
from pipeline.events import SourceSentence, SourceText, TargetText, TargetToken, Translation
from pipeline.languages.chinese import conversion
from pipeline.nmt.commitment import (
    CertainSource,
    Commitment,
    PartDraft,
    appends,
    attending,
    certain_sources,
    whole_tokens,
)
from pipeline.nmt.generation import GenerationOptions, SearchRequest, Token, log_softmax
from pipeline.nmt.options import NmtConfig
from pipeline.nmt.recovery import LoopGuard, Rewind, recovering
from pipeline.nmt.search import beam_search, greedy
from pipeline.nmt.stage import Text
from pipeline.run.options import DraftOptions
from tests.conftest import SHIPPED_TRANSLATORS, golden, make_model_dir
from tests.drafting import converse
from tests.nmt.conftest import found_ids
from tests.nmt.test_recovery import Looping
from tests.streams import changes

WORDS = "where is the bank ? thank you . I don't know , the meeting begins at two".split()


def tokens_of(ids, end=0):
    return (*(Token(one, -0.1, last=False) for one in ids), Token(end, -0.1, last=True))


def part_draft(texts, certain, attention=None, language="zh", *, last=True):
    """A draft in which each text is a token of its own number."""
    ids = [hash(text) % 10_000 + 1 for text in texts]
    return PartDraft(tokens_of(ids), (*texts, ""), language, certain, attention, last)


# The rules


def test_tokens_are_committed_until_one_attends_to_source_that_may_change():
    rows = np.array([[0.9, 0.1, 0, 0], [0.2, 0.7, 0.1, 0], [0.1, 0.5, 0.4, 0], [1, 0, 0, 0]], np.float32)
    assert [attending(rows, certain) for certain in range(5)] == [0, 1, 2, 4, 4]


def committing(source="word"):
    commitment = Commitment()
    commitment.source = source
    return commitment


ROWS = np.array([[1, 0, 0, 0], [0.85, 0.15, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], np.float32)


def test_attention_decides_what_is_committed_and_what_is_shown():
    """Of the committed source tokens the last two do not count, and of all the last one."""
    commitment = committing()
    assert commitment.push(0, part_draft("甲乙丙丁", CertainSource(3), ROWS)) == (2, 3)
    assert [token.last for token in commitment.tokens(0)] == [False, False]
    # Only the tokens that follow have rows.
    assert commitment.push(0, part_draft("甲乙己戊", CertainSource(3), ROWS[:1].repeat(3, 0))) == (4, 4)


def test_a_token_that_the_model_is_not_sure_of_waits_for_more_of_the_source():
    draft = part_draft("甲乙丙丁", CertainSource(4), np.eye(5, dtype=np.float32))
    assert committing().push(0, draft)[0] == 2
    unsure = dataclasses.replace(draft, tokens=(draft.tokens[0], Token(7, -0.4, last=False), *draft.tokens[2:]))
    assert committing().push(0, unsure)[0] == 1
    later = dataclasses.replace(unsure, certain=CertainSource(7), attention=np.eye(5, 9, dtype=np.float32))
    assert committing().push(0, later)[0] == 4


def test_nothing_is_committed_while_no_word_of_the_source_is_and_less_is_shown():
    assert committing("").push(0, part_draft("甲乙丙丁", CertainSource(2), ROWS)) == (0, 2)
    assert committing("“").push(0, part_draft("甲乙丙丁", CertainSource(4, complete=True), ROWS)) == (0, 2)


def test_what_is_shown_is_not_hidden_again_while_it_is_repeated():
    commitment = committing()
    assert commitment.push(0, part_draft("甲乙丙丁", CertainSource(1), ROWS)) == (0, 3)
    assert commitment.push(0, part_draft("甲乙丙戊", CertainSource(1), ROWS[[2, 3, 3, 3, 3]])) == (0, 3)
    assert commitment.push(0, part_draft("甲己丙戊", CertainSource(1), ROWS[[2, 3, 3, 3, 3]])) == (0, 1)
    assert commitment.push(0, part_draft("甲乙丙戊", CertainSource(1), ROWS[[2, 3, 3, 3, 3]])) == (0, 1)


def test_all_is_shown_of_a_part_that_others_follow():
    assert committing().push(0, part_draft("甲乙丙丁", CertainSource(3), ROWS, last=False)) == (2, 5)


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
def test_whole_words_are_committed_and_no_marks_at_the_end(texts, language, expected):
    assert [whole_tokens(texts, count, language) for count in range(len(texts) + 1)] == expected


def test_a_part_is_complete_when_words_after_it_are_committed():
    first, second = (1, 2, 3, 0), (4, 5, 0)
    assert certain_sources([first], [(1, 2, 0)]) == [CertainSource(2)]
    assert certain_sources([first], [first]) == [CertainSource(3)]
    assert certain_sources([first, second], [first]) == [CertainSource(3), CertainSource(0)]
    assert certain_sources([first, second], [first, (4, 0)]) == [CertainSource(3, complete=True), CertainSource(1)]
    assert certain_sources([first], []) == [CertainSource(0)]


def test_a_part_waits_for_those_before_it():
    commitment, rows = committing(), ROWS[[0, 0, 4]]
    assert commitment.push(1, part_draft("甲乙", CertainSource(3), rows)) == (0, 2)
    assert commitment.push(0, part_draft("丙", CertainSource(1, complete=True), rows[:2])) == (2, 2)
    assert commitment.tokens(0)[-1].last
    assert commitment.push(1, part_draft("甲乙", CertainSource(3), rows)) == (2, 2)


def test_a_translation_that_was_cut_commits_nothing_and_shows_only_what_it_repeats():
    commitment, rows = committing(), ROWS[:1].repeat(3, 0)
    found = part_draft("甲乙", CertainSource(3), rows)
    cut = dataclasses.replace(
        found, tokens=(*found.tokens[:-1], Token(0, 0.0, last=True, truncated=True)), attention=None
    )
    assert commitment.push(0, cut) == (0, 0)
    assert commitment.push(0, found) == (2, 2)
    assert commitment.push(0, dataclasses.replace(cut, certain=CertainSource(3, complete=True))) == (2, 2)


def test_a_source_with_fewer_parts_than_are_committed_stands_for_the_rest():
    commitment = committing()
    for part in range(2):
        commitment.push(part, part_draft("甲", CertainSource(1, complete=True)))
    assert commitment.parts == 2


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
def test_committed_tokens_are_only_added_to(updates, language):
    commitment = Commitment()
    for part, rest, source, tokens, complete, shares, cut in updates:
        before = [commitment.tokens(number) for number in range(3)]
        known = before[part]
        if known and known[-1].last:
            continue  # such a part is not translated again
        texts = (*(chr(token.id) for token in known), *rest, "")
        found = (*known, *(Token(ord(character), -1.0, last=False) for character in rest))
        end = Token(0, -1.0, last=True, truncated=cut)
        attention = None if shares is None else np.array([[1 - share, share, 0] for share in shares[: len(rest) + 1]])
        commitment.source = source
        draft = PartDraft(
            (*found, end), texts, language, CertainSource(tokens, complete), attention, last=cut != complete
        )
        count, shown = commitment.push(part, draft)
        assert count <= shown <= len(found) + 1
        for number in range(3):
            after = commitment.tokens(number)
            assert after[: len(before[number])] == before[number]
            assert number == part or after == before[number]
        assert len(commitment.tokens(part)) == count
        assert commitment.tokens(part)[:count] == (*found, end)[:count]


# Events


def events_of(text, committed):
    tokens = tuple(TargetToken(number, -(2.0**number), number + 1) for number in range(len(text)))
    for end in range(1, len(text) + 1):
        yield TargetText(0, "zh", text[:end], tokens=tokens[:end])
    end_token = TargetToken(99, -(2.0 ** len(text)), len(text))
    yield TargetText(0, "zh", text, committed, (*tokens, end_token), complete=True)
    yield Translation(0, "zh", text)


NOTHING = TargetText(0, "zh", "")


def put_out(shown, events, *, final=False):
    """The events that take the place of ``shown``."""
    return list(updates(shown.text, at_once(events), final=final, kept=shown.committed))


def test_a_text_says_how_much_of_the_draft_is_committed():
    (first,) = put_out(NOTHING, events_of("甲乙丙丁", 2))
    assert (first.text, first.committed) == ("甲乙丙丁", 2)
    assert put_out(first, events_of("甲乙丙丁", 2)) == []
    (more,) = put_out(first, events_of("甲乙丙丁", 3))
    assert (more.text, more.committed) == ("甲乙丙丁", 3)
    (other,) = put_out(more, events_of("甲乙丙戊", 2))
    assert (other.text, other.committed) == ("甲乙丙戊", 3)
    last, end = put_out(other, events_of("甲乙丙己", 4), final=True)
    assert (last.text, last.committed, last.complete) == ("甲乙丙己", 4, True)
    assert end == Translation(0, "zh", "甲乙丙己")
    _, change = changes([other, last])
    assert change.log_probability == -31.0  # of all tokens: the change stands for them


def test_a_draft_of_which_nothing_is_shown_yet_has_no_events():
    hidden = [TargetText(0, "zh", "甲"), TargetText(0, "zh", "", complete=True), Translation(0, "zh", "")]
    assert put_out(NOTHING, hidden) == []


@pytest.mark.parametrize(
    ("text", "committed", "final"), [("干部", 1, 0), ("好，干部", 3, 2), ("好，干部", 4, 4), ("好，干", 2, 2)]
)
def test_converted_text_is_final_when_later_text_cannot_change_it(text, committed, final):
    """干 is 幹 or 乾 by what follows."""
    *_, last, _ = rewritten(events_of(text, committed), conversion("Hant"))
    assert last.committed == final


def test_a_converted_draft_is_final_when_later_text_cannot_change_it():
    """发 is 發, and 髮 before 廊."""
    convert = conversion("Hant")
    (shown,) = put_out(NOTHING, rewritten(events_of("好，我去发", 5), convert, final=False))
    assert shown.committed_text == "好，"
    whole, end = put_out(shown, rewritten(events_of("好，我去发廊", 6), convert), final=True)
    assert end.text == whole.committed_text == "好，我去髮廊"


# The stage


def joined(events):
    return [event for of_item in events for event in of_item]


def growing(words, ahead=1, language="en"):
    """A sentence of which one word after the other is committed, ``ahead`` words before it is heard whole."""
    items: list[Text] = []
    for count in range(1, len(words) + 1):
        text = " ".join(words[:count])
        committed = len(" ".join(words[: max(0, count - ahead)]))
        items.append(SourceText(0, language, text, committed=committed, heard_s=float(count)))
    return [*items, SourceSentence(0, language, " ".join(words), heard_s=float(len(words)))]


def committed_early(events):
    """Check the events of one sentence's translation; return its text, and how much was committed before the end."""
    *texts, end = events
    assert all(isinstance(text, TargetText) for text in texts)
    *_, before, shown = [None, *map(OpenTexts().push, events)]  # which refuses to withdraw what is committed
    assert end.text == (shown.text if shown else "")
    return end.text, before.committed if before else 0


class Forgetful:
    """A translator that does not begin with the text that it has committed."""

    appends = True

    def __init__(self):
        self._texts = iter(["甲乙", "甲丙丁"])

    def stream(self, *_, **__):
        return events_of(next(self._texts), 2)


@pytest.mark.parametrize("then", [SourceText(0, "en", "One two"), SourceSentence(0, "en", "One two")])
def test_a_translation_that_does_not_begin_with_the_committed_text_is_an_error(then):
    with pytest.raises(TextChangeError, match="is '甲乙' with 2 characters committed; it cannot become '甲丙丁'"):
        converse(Forgetful(), [SourceText(0, "en", "One"), then])


@pytest.fixture(scope="module")
def demo():
    return MarianModel.load(SHIPPED_TRANSLATORS["demo-en-zh"])


@pytest.mark.parametrize(("name", "target"), [("en_pt", "pt"), ("demo", "zh")])
@settings(max_examples=12, deadline=None)
@given(
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=14),
    final=st.lists(st.sampled_from(WORDS), max_size=3),
    ahead=st.integers(0, 2),
    loud=st.booleans(),
)
def test_nothing_committed_is_ever_withdrawn(name, target, words, final, ahead, loud, demo, en_pt):
    """Whatever is heard, and whatever the whole sentence is at last."""
    model = {"demo": demo, "en_pt": en_pt}[name]
    *drafts, _ = growing(words, ahead=ahead)
    text = " ".join([*words, *final])
    events = converse(model, [*drafts, SourceSentence(0, "en", text.upper() if loud else text)], target)
    committed_early(joined(events))


LONG = "I would like to book a table for two people at the new restaurant near the river tomorrow ."


def test_words_are_committed_before_the_sentence_ends(en_pt, demo):
    text, before = committed_early(joined(converse(en_pt, growing(LONG.split()), "pt")))
    assert "uma mesa para duas pessoas no novo restaurante" in text[:before]
    # One that tells no alignment, or a worse one, commits whole sentences.
    assert not appends(demo)
    assert committed_early(joined(converse(demo, growing(LONG.split()))))[1] == 0


def test_words_that_a_pause_commits_are_translated_at_once(en_pt):
    text = "We will meet at the station tomorrow morning"
    drafted, paused, again = converse(
        en_pt,
        [
            SourceText(0, "en", text),
            SourceText(0, "en", text, committed=len(text), heard_s=2.0),
            SourceText(0, "en", text, committed=len(text), heard_s=3.0),
        ],
        "pt",
    )
    assert [event.committed for event in drafted if isinstance(event, TargetText)] == [0]
    (more,) = paused
    assert more.committed > 20
    assert again == []


def test_sentence_mode_gets_the_translation_of_the_whole_sentence(en_pt):
    words = ["I", "want", "to", "go", "to", "Shanghai", "next", "week", "with", "my", "sister", "."]
    *_, end = joined(converse(en_pt, growing(words), "pt", DraftOptions(commit="sentence")))
    assert end.text == en_pt.translate(" ".join(words))


def test_a_sentence_without_drafts_is_translated_freely(en_pt):
    text = "I want to go to Shanghai next week."
    (events,) = converse(en_pt, [SourceSentence(0, "en", text)], "pt")
    assert committed_early(events) == (en_pt.translate(text), 0)


def test_several_sentences_in_one_keep_what_is_committed(en_pt):
    words = "Where is the bank? Thank you. I want to go to Lisbon next week with my sister.".split()
    text, before = committed_early(joined(converse(en_pt, growing(words), "pt")))
    assert text.startswith(en_pt.translate("Where is the bank?"))
    assert before > len(en_pt.translate("Where is the bank?"))
    # The text may be divided otherwise in the end.
    whole = " ".join(words).replace("?", "").replace("you.", "you")
    *drafts, _ = growing(words)
    committed_early(joined(converse(en_pt, [*drafts, SourceSentence(0, "en", whole)], "pt")))
    committed_early(joined(converse(en_pt, [*drafts, SourceSentence(0, "en", "")], "pt")))


def test_committed_words_stay_when_the_language_changes(en_pt):
    *drafts, _ = growing(LONG.split())
    found = converse(en_pt, [*drafts, SourceSentence(0, "pt", "Eu gostaria", heard_s=9.0)], "pt")
    drafted = joined(found[:-1])[-1]
    shown, end = [drafted, *found[-1]][-2:]  # what is spoken in the target language is not translated
    assert end.text == shown.text == drafted.committed_text != ""
    assert end.heard_s == 9.0


def test_the_final_translation_continues_the_committed_tokens(en_pt):
    text = "I want to go to Lisbon next week with my sister and my brother"
    commitment = Commitment()
    for count in range(1, 14):
        commitment.source = " ".join(text.split()[:count])
        list(en_pt.stream(SourceSentence(0, "en", commitment.source), "pt", draft=True, commitment=commitment))
    known = [token.id for token in commitment.tokens(0)]
    assert len(known) > 2
    (source,) = en_pt.sources(text + ".", "en", None)
    expected = found_ids(en_pt, source, committed=known)
    cached = len(en_pt.cache)
    (*_, end) = en_pt.stream(SourceSentence(0, "en", text + "."), "pt", commitment=commitment)
    assert end.text == en_pt.tokenizer.decode([*known, *expected])
    assert end.confidence is not None
    assert len(en_pt.cache) == cached, "a translation that begins with given tokens is of no use for others"


def test_a_sentence_that_is_in_the_cache_is_committed_by_its_attention_too(en_pt):
    found = []
    for cached in (False, True):
        if cached:
            en_pt.translate(LONG)
        commitment = Commitment()
        commitment.source = LONG
        list(en_pt.stream(SourceSentence(0, "en", LONG), "pt", draft=True, commitment=commitment))
        found.append(commitment.tokens(0))
    assert len(found[0]) > 5
    assert found[0] == found[1]


def test_the_attention_is_that_of_single_steps(en_pt):
    pushed = list[tuple[PartDraft, int]]()

    class Watched(Commitment):
        def push(self, part, draft):
            pushed.append((draft, len(self.tokens(part))))
            return super().push(part, draft)

    commitment, words = Watched(), LONG.split()
    for count in (8, 12, 16):
        commitment.source = " ".join(words[:count])
        list(en_pt.stream(SourceSentence(0, "en", commitment.source), "pt", draft=True, commitment=commitment))
    draft, known = pushed[-1]
    assert known > 3
    assert draft.attention is not None
    (source,) = en_pt.sources(commitment.source, "en", None)
    state = en_pt.decoder.encode(source)
    ids = [token.id for token in draft.tokens]
    rows = [en_pt.decoder.attention(state, [token]) for token in [en_pt.generation.start_token, *ids[:-1]]]
    expected = np.concatenate([row for row in rows if row is not None])[known:]
    assert draft.attention == pytest.approx(expected, abs=1e-5)


# The searches


@pytest.mark.parametrize("beams", [1, 2, 4])
def test_beam_search_begins_with_committed_tokens(beams, tmp_path):
    model = MarianModel.load(make_model_dir(tmp_path / "model", "merged"), NmtConfig(beam_size=beams))
    for row in golden("tiny-marian")[:6]:
        source, known = row["source_ids"], row["target_ids"][:2]
        found = list(beam_search(SearchRequest(model.decoder, source, model.generation, committed=known)))
        assert found[-1].last
        assert all(token.log_probability <= 0 for token in found)
        single = list(greedy(SearchRequest(model.decoder, source, model.generation, committed=known)))
        if beams == 1:
            assert [token.id for token in found] == [token.id for token in single]
        means = [sum(token.log_probability for token in tokens) / len(tokens) for tokens in (found, single)]
        assert means[0] > means[1] - 1e-3, "more hypotheses find no worse one"


@pytest.mark.parametrize("search", [greedy, beam_search])
def test_nothing_follows_committed_tokens_that_fill_the_limit(search, tmp_path):
    model = MarianModel.load(make_model_dir(tmp_path / "model", "merged"))
    row = golden("tiny-marian")[0]
    options = dataclasses.replace(model.generation, max_tokens=2, beams=1)
    assert callable(search)
    assert list(search(SearchRequest(model.decoder, row["source_ids"], options, committed=row["target_ids"][:2]))) == []


def test_a_search_follows_the_draft_before_unless_another_token_is_clearly_more_probable(en_pt):
    followed = left = 0
    for text in ("And Mr. John Dashwood had then leisure to", "Howdy, Mary, to more", "It might bear by light flame"):
        (source,) = en_pt.sources(text, "en", None)
        plain = found_ids(en_pt, source)
        state, history = en_pt.decoder.encode(source), [en_pt.generation.start_token]
        for at, best in enumerate(plain[:-1]):
            shares = np.exp(log_softmax(en_pt.decoder.step(state, history[-1]).astype(np.float64)))
            other = int(np.argsort(shares)[-2])
            draft = [*plain[:at], other, *plain[at + 1 :]]
            found = found_ids(en_pt, source, preferred=draft)
            close = 0.8 * (shares[best] - shares[other]) <= 0.2
            assert found[: at + 1] == [*plain[:at], other if close else best]
            if not close:
                assert found == plain, "what does not begin like the draft does not follow it"
            followed, left = followed + close, left + (not close)
            history.append(best)
    assert followed
    assert left


def checked_from(committed, searches):
    """The tokens of a sentence of which each search gives other ids after the committed ones; 0 is the end token."""
    left = iter(searches)

    def search(_):
        for one in next(left):
            yield Token(one, -1.0, last=one == 0)

    options = GenerationOptions(start_token=99, end_token=0, pad_token=99, max_tokens=100)
    request = SearchRequest(None, range(1, 21), options, committed)
    return list(recovering(search, request, LoopGuard(request.source, lambda _: False), length_factor=0))


def test_a_second_search_after_a_loop_begins_with_the_committed_tokens_too():
    found = checked_from([1, 2], [[3] * 30, [4, 5, 0]])
    ids: list[int] = []
    for token in found:
        if isinstance(token, Rewind):
            del ids[token.kept :]
        else:
            ids.append(token.id)
    assert ids == [4, 5, 0]
    assert any(isinstance(token, Rewind) for token in found)


def test_committed_tokens_count_in_what_a_second_search_may_not_repeat():
    loop = [3] * 30
    again = [token for token in checked_from([3, 3, 3], [loop, [3, 5, 0], [6, 0]]) if isinstance(token, Token)]
    assert [token.id for token in again][-2:] == [6, 0]


def test_a_second_search_may_end_right_after_the_committed_tokens():
    *_, end = checked_from([1, 2], [[3] * 30, [0]])
    assert (end.id, end.last, end.truncated, end.searched_again) == (0, True, False, True)


def test_text_that_is_searched_again_keeps_the_committed_tokens(en_pt):
    text, commitment = "We are meeting at ten o'clock.", committing()
    (source,) = en_pt.sources(text, "en", None)
    known = tuple(
        token
        for token, _ in zip(greedy(SearchRequest(en_pt.decoder, source, en_pt.generation)), range(2), strict=False)
    )
    ids, texts = [token.id for token in known], tuple(en_pt.tokenizer.decode([token.id]) for token in known)
    part = PartDraft((*known, Token(0, 0.0, last=True)), (*texts, " x", ""), "pt", CertainSource(6), ROWS[[0, 0, 4]])
    assert commitment.push(0, part) == (2, 2)
    looping = Looping(en_pt, [ids[1], 7], forbidden_too=False)
    *texts, end = looping.stream(SourceSentence(0, "en", text), "pt", commitment=commitment)
    assert end.searched_again
    assert not all(after.text.startswith(before.text) for before, after in pairwise(texts))
    options = dataclasses.replace(en_pt.generation, no_repeat_ngram=2)
    rest = [token.id for token in greedy(SearchRequest(en_pt.decoder, source, options, committed=ids))]
    assert [token.id for token in texts[-1].tokens] == [*ids, *rest]
    assert end.text == en_pt.tokenizer.decode([*ids, *rest])


def test_a_loop_that_began_in_the_committed_tokens_is_found_and_cut_after_them():
    found = checked_from([3] * 20, [[3] * 9, [3] * 9, [3] * 9])
    assert [token for token in found if isinstance(token, Rewind)] == []
    (end,) = found
    assert (end.id, end.last, end.truncated) == (0, True, True)


def test_committed_tokens_that_fill_the_limit_end_the_sentence():
    (end,) = checked_from([1, 2], [[], [], []])
    assert (end.last, end.truncated) == (True, True)
