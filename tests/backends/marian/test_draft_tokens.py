"""Draft translations of models that tell what they translate: what is shown, and what is steady."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import MarianModel
from pipeline.backends.marian.decode.generation import GenerationOptions, SearchRequest, log_softmax
from pipeline.backends.marian.search.beams import beam_search, greedy
from pipeline.backends.marian.search.recovery import LoopGuard
from pipeline.backends.marian.search.sentence_text import Rewind
from pipeline.backends.marian.search.steps import PartTranslation, translate
from pipeline.backends.nmt_options import NmtConfig
from pipeline.core.captions.policy import at_once, rewritten, updates
from pipeline.core.captions.states import common_length
from pipeline.core.nmt.draft_tokens import (
    DraftTokens,
    PartDraft,
    SteadySource,
    Token,
    attending,
    attends,
    steady_sources,
    whole_tokens,
)
from pipeline.core.nmt.stage import Text
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.events import SourceSentence, SourceText, TargetText, TargetToken, Translation
from pipeline.glossary.terms import Glossary, Term
from pipeline.languages.chinese import conversion
from tests.backends.marian.conftest import found_ids
from tests.conftest import SHIPPED_TRANSLATORS, examples, golden, make_model_dir
from tests.drafting import converse
from tests.streams import changes

WORDS = "where is the bank ? thank you . I don't know , the meeting begins at two".split()


def tokens_of(ids, end=0):
    return (*(Token(one, -0.05, last=False) for one in ids), Token(end, -0.05, last=True))


def part_draft(texts, certain, attention=None, language="zh", *, last=True):
    """A draft in which each text is a token of its own number."""
    ids = [hash(text) % 10_000 + 1 for text in texts]
    return PartDraft(tokens_of(ids), (*texts, ""), language, certain, attention, last)


# The rules


def test_tokens_are_steady_until_one_attends_to_source_that_may_change():
    rows = np.array([[0.9, 0.1, 0, 0], [0.2, 0.7, 0.1, 0], [0.1, 0.5, 0.4, 0], [1, 0, 0, 0]], np.float32)
    assert [attending(rows, certain) for certain in range(5)] == [0, 1, 2, 4, 4]


def drafted(source="word"):
    found = DraftTokens()
    found.source = source
    return found


ROWS = np.array([[1, 0, 0, 0], [0.85, 0.15, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], np.float32)


def test_attention_decides_what_is_steady_and_what_is_shown():
    """Of the steady source tokens the last two do not count, and of all the last one."""
    assert drafted().push(0, part_draft("甲乙丙丁", SteadySource(3), ROWS)) == (2, 3)


def test_a_token_that_the_model_is_not_sure_of_waits_for_more_of_the_source():
    draft = part_draft("甲乙丙丁", SteadySource(4), np.eye(5, dtype=np.float32))
    assert drafted().push(0, draft)[0] == 2
    unsure = dataclasses.replace(draft, tokens=(draft.tokens[0], Token(7, -0.2, last=False), *draft.tokens[2:]))
    assert drafted().push(0, unsure)[0] == 1
    later = dataclasses.replace(unsure, source=SteadySource(7), attention=np.eye(5, 9, dtype=np.float32))
    assert drafted().push(0, later)[0] == 4


def test_a_token_that_the_model_is_not_sure_of_is_shown_later():
    """Unless it is shown already."""
    draft = part_draft("甲乙丙丁", SteadySource(0), np.eye(5, 8, dtype=np.float32))
    unsure = dataclasses.replace(
        draft, tokens=(draft.tokens[0], Token(draft.tokens[1].id, -1.8, last=False), *draft.tokens[2:])
    )
    assert drafted().push(0, draft)[1] == 4
    assert drafted().push(0, unsure)[1] == 1
    later = dataclasses.replace(unsure, attention=np.eye(5, 10, dtype=np.float32))
    assert drafted().push(0, later)[1] == 4
    tokens = drafted()
    tokens.push(0, draft)
    assert tokens.push(0, unsure)[1] == 4


def test_nothing_is_steady_while_no_word_of_the_source_is_and_less_is_shown():
    assert drafted("").push(0, part_draft("甲乙丙丁", SteadySource(2), ROWS)) == (0, 2)
    assert drafted("“").push(0, part_draft("甲乙丙丁", SteadySource(4, complete=True), ROWS)) == (0, 2)


def test_what_is_shown_is_not_hidden_again_while_it_is_repeated():
    tokens = drafted()
    assert tokens.push(0, part_draft("甲乙丙丁", SteadySource(1), ROWS)) == (0, 3)
    assert tokens.push(0, part_draft("甲乙丙戊", SteadySource(1), ROWS[[2, 3, 3, 3, 3]])) == (0, 3)
    assert tokens.push(0, part_draft("甲己丙戊", SteadySource(1), ROWS[[2, 3, 3, 3, 3]])) == (0, 1)
    assert tokens.push(0, part_draft("甲乙丙戊", SteadySource(1), ROWS[[2, 3, 3, 3, 3]])) == (0, 1)


def test_all_is_shown_of_a_part_that_others_follow():
    assert drafted().push(0, part_draft("甲乙丙丁", SteadySource(3), ROWS, last=False)) == (2, 5)


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
def test_whole_words_are_steady_and_no_marks_at_the_end(texts, language, expected):
    assert [whole_tokens(texts, count, language) for count in range(len(texts) + 1)] == expected


def test_a_part_is_complete_when_words_after_it_are_steady():
    first, second = (1, 2, 3, 0), (4, 5, 0)
    assert steady_sources([first], [(1, 2, 0)]) == [SteadySource(2)]
    assert steady_sources([first], [first]) == [SteadySource(3)]
    assert steady_sources([first, second], [first]) == [SteadySource(3), SteadySource(0)]
    assert steady_sources([first, second], [first, (4, 0)]) == [SteadySource(3, complete=True), SteadySource(1)]
    assert steady_sources([first], []) == [SteadySource(0)]


def test_a_part_waits_for_those_before_it():
    tokens, rows = drafted(), ROWS[[0, 0, 4]]
    assert tokens.push(0, part_draft("丙", SteadySource(1), rows[:2], last=False))[0] < 2
    assert tokens.push(1, part_draft("甲乙", SteadySource(3), rows)) == (0, 2)
    assert tokens.push(0, part_draft("丙", SteadySource(1, complete=True), rows[:2])) == (2, 2)
    assert tokens.push(1, part_draft("甲乙", SteadySource(3), rows)) == (2, 2)
    # In the next draft, the first part has changed.
    assert tokens.push(0, part_draft("丙", SteadySource(1), rows[:2]))[0] < 2
    assert tokens.push(1, part_draft("甲乙", SteadySource(3), rows)) == (0, 2)


def test_of_a_translation_that_was_cut_nothing_is_steady_and_only_what_it_repeats_is_shown():
    tokens, rows = drafted(), ROWS[:1].repeat(3, 0)
    found = part_draft("甲乙", SteadySource(3), rows)
    cut = dataclasses.replace(
        found, tokens=(*found.tokens[:-1], Token(0, 0.0, last=True, truncated=True)), attention=None
    )
    assert tokens.push(0, cut) == (0, 0)
    assert tokens.push(0, found) == (2, 2)
    assert tokens.push(0, dataclasses.replace(cut, source=SteadySource(3, complete=True))) == (0, 2)


def test_later_drafts_follow_a_whole_translation():
    tokens = drafted()
    tokens.follow(0, tokens_of([7, 8]))
    assert tokens.shown(0) == (7, 8)


# Events


def events_of(text, steady):
    tokens = tuple(TargetToken(number, -(2.0**number), number + 1) for number in range(len(text)))
    for end in range(1, len(text) + 1):
        yield TargetText(0, "zh", text[:end], tokens=tokens[:end])
    end_token = TargetToken(99, -(2.0 ** len(text)), len(text))
    yield TargetText(0, "zh", text, steady, (*tokens, end_token), complete=True)
    yield Translation(0, "zh", text)


def put_out(shown, events, *, final=False):
    """The events that take the place of ``shown``."""
    return list(updates(shown, at_once(events), final=final))


def test_a_text_says_how_much_of_the_draft_is_steady():
    (first,) = put_out(None, events_of("甲乙丙丁", 2))
    assert (first.text, first.steady) == ("甲乙丙丁", 2)
    assert put_out(first, events_of("甲乙丙丁", 2)) == []
    (more,) = put_out(first, events_of("甲乙丙丁", 3))
    assert (more.text, more.steady) == ("甲乙丙丁", 3)
    (other,) = put_out(more, events_of("甲乙丙戊", 2))
    assert (other.text, other.steady) == ("甲乙丙戊", 2)
    last, end = put_out(other, events_of("甲乙丙己", 4), final=True)
    assert (last.text, last.steady, last.complete) == ("甲乙丙己", 4, True)
    assert end == Translation(0, "zh", "甲乙丙己")
    _, change = changes([other, last])
    assert change.log_probability == -31.0  # of all tokens: the change stands for them


@pytest.mark.parametrize(
    ("text", "steady", "final"), [("干部", 1, 0), ("好，干部", 3, 2), ("好，干部", 4, 4), ("好，干", 2, 2)]
)
def test_converted_text_is_steady_when_later_text_cannot_change_it(text, steady, final):
    """干 is 幹 or 乾 by what follows."""
    *_, last, _ = rewritten(events_of(text, steady), conversion("Hant"))
    assert last.steady == final


def test_a_converted_draft_is_steady_when_later_text_cannot_change_it():
    """发 is 發, and 髮 before 廊."""
    convert = conversion("Hant")
    (shown,) = put_out(None, rewritten(events_of("好，我去发", 5), convert, final=False))
    assert shown.steady_text == "好，"
    whole, end = put_out(shown, rewritten(events_of("好，我去发廊", 6), convert), final=True)
    assert end.text == whole.steady_text == "好，我去髮廊"


# The stage


def joined(events):
    return [event for of_item in events for event in of_item]


def growing(words, ahead=1, language="en"):
    """A sentence of which one word after the other is steady, ``ahead`` words before it is heard whole."""
    items: list[Text] = []
    for count in range(1, len(words) + 1):
        text = " ".join(words[:count])
        steady = len(" ".join(words[: max(0, count - ahead)]))
        items.append(SourceText(0, language, text, steady=steady, heard_s=float(count)))
    return [*items, SourceSentence(0, language, " ".join(words), heard_s=float(len(words)))]


@pytest.fixture(scope="module")
def demo():
    return MarianModel.load(SHIPPED_TRANSLATORS["demo-en-zh"])


@pytest.mark.parametrize(("name", "target"), [("en_pt", "pt"), ("demo", "zh")])
@settings(max_examples=examples(12))
@given(
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=14),
    final=st.lists(st.sampled_from(WORDS), max_size=3),
    ahead=st.integers(0, 2),
    loud=st.booleans(),
)
def test_the_final_translation_is_that_of_the_whole_sentence(name, target, words, final, ahead, loud, demo, en_pt):
    """Whatever was heard before."""
    model = {"demo": demo, "en_pt": en_pt}[name]
    *drafts, _ = growing(words, ahead=ahead)
    text = " ".join([*words, *final])
    text = text.upper() if loud else text
    *_, end = joined(converse(model, [*drafts, SourceSentence(0, "en", text)], target))
    assert end.text == model.translate(text)


LONG = "I would like to book a table for two people at the new restaurant near the river tomorrow ."


def test_words_are_steady_before_the_sentence_ends(en_pt, demo):
    before = joined(converse(en_pt, growing(LONG.split())[:-2], "pt"))[-1]
    assert "uma mesa para duas pessoas no novo restaurante" in before.steady_text
    assert attends(en_pt)
    assert not attends(demo)  # one that tells no alignment, or a worse one


def test_all_of_a_sentence_that_ends_in_a_pause_is_shown_as_it_will_be(en_pt):
    text = "We will meet at the station tomorrow morning."
    drafted, paused, again = converse(
        en_pt,
        [
            SourceText(0, "en", text.rstrip(".")),
            SourceText(0, "en", text, steady=len(text) - 1, heard_s=2.0),
            SourceText(0, "en", text, steady=len(text) - 1, heard_s=3.0),
        ],
        "pt",
    )
    assert drafted[-1].text != en_pt.translate(text)
    (more,) = paused
    assert more.text == more.steady_text == en_pt.translate(text)
    assert again == []


class Watched(DraftTokens):
    """Notes the drafts."""

    def __init__(self):
        super().__init__()
        self.pushed = list[PartDraft]()

    def push(self, part, draft):
        self.pushed.append(draft)
        return super().push(part, draft)


def draft_of(model, words, drafted, glossary=None):
    drafted.source = text = " ".join(words)
    request = TranslationRequest(SourceSentence(0, "en", text), "pt", draft=True, drafted=drafted, glossary=glossary)
    *_, translated = model.stream(request)
    return translated


either_way = pytest.mark.parametrize(
    "glossary", [None, Glossary((Term("table", "Xavante"),))], ids=["plain", "glossary"]
)


@either_way
def test_the_attention_is_that_of_the_tokens_fed_alone(glossary, en_pt):
    """Also where a term has taken the place of what the search had found."""
    drafted, words = Watched(), LONG.split()
    for count in range(4, len(words) + 1, 2):
        end = draft_of(en_pt, words[:count], drafted, glossary)
        draft = drafted.pushed[-1]
        (source,) = en_pt.sources(" ".join(words[:count]), "en", None)
        ids = [en_pt.generation.start_token, *(token.id for token in draft.tokens)]
        assert np.array_equal(draft.attention, en_pt.decoder.attention(en_pt.decoder.encode(source), ids[:-1]))
    assert ("Xavante" in end.text) == (glossary is not None)


@either_way
def test_no_token_of_a_draft_is_fed_twice(glossary, en_pt, monkeypatch):
    """A term, and what follows it, are fed after what the search had found."""
    (source,) = en_pt.sources(LONG, "en", None)
    searched = [en_pt.generation.start_token, *found_ids(en_pt, source)[:-1]]
    run, fed, drafted = en_pt.decoder._run_one, list[int](), Watched()
    monkeypatch.setattr(en_pt.decoder, "_run_one", lambda state, token: fed.append(token) or run(state, token))
    draft_of(en_pt, LONG.split(), drafted, glossary)
    shown = [en_pt.generation.start_token, *(token.id for token in drafted.pushed[-1].tokens[:-1])]
    assert fed == [*searched, *shown[common_length(searched, shown) :]]
    assert (searched == shown) == (glossary is None)


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


class Scored:
    """A decoder with the same probabilities at each step, whatever it is fed."""

    def __init__(self, *probabilities):
        self._left = iter(np.log(probabilities))

    def encode(self, source, on_start):
        return None

    def step(self, state, token):
        return next(self._left)


def test_a_search_that_has_left_the_draft_before_follows_no_more_of_it():
    # 0 is the end token, 4 pads
    decoder = Scored([0.04, 0.8, 0.1, 0.05, 0.01], [0.02, 0.46, 0.01, 0.5, 0.01], [0.9, 0.03, 0.03, 0.03, 0.01])
    options = GenerationOptions(start_token=4, end_token=0, pad_token=4, no_repeat_ngram=9)
    found = [token.id for token in greedy(SearchRequest(decoder, [1, 0], options, preferred=[2, 1]))]
    assert found == [1, 3, 0]


def checked_from(committed, searches):
    """The tokens of a sentence of which each search gives other ids after the committed ones; 0 is the end token."""
    left = iter(searches)

    def search(_):
        for one in next(left):
            yield Token(one, -1.0, last=one == 0)

    options = GenerationOptions(start_token=99, end_token=0, pad_token=99, max_tokens=100)
    request = SearchRequest(None, range(1, 21), options, committed)
    return list(translate(PartTranslation(request, search, LoopGuard(request.source, lambda _: False))))


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


def test_a_loop_that_began_in_the_committed_tokens_is_found_and_cut_after_them():
    found = checked_from([3] * 20, [[3] * 9, [3] * 9, [3] * 9])
    assert [token for token in found if isinstance(token, Rewind)] == []
    (end,) = found
    assert (end.id, end.last, end.truncated) == (0, True, True)


def test_committed_tokens_that_fill_the_limit_end_the_sentence():
    (end,) = checked_from([1, 2], [[], [], []])
    assert (end.last, end.truncated) == (True, True)
