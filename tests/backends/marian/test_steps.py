"""The steps of the translation of a part: what is remembered, and which of two translations of a short part is taken."""

import pytest

from pipeline.backends.marian.decode.generation import GenerationOptions, SearchRequest
from pipeline.backends.marian.search.recovery import LoopGuard
from pipeline.backends.marian.search.sentence_text import Rewind, SentenceCache
from pipeline.backends.marian.search.steps import PartTranslation, follow_neighbour, keep, translate
from pipeline.core.nmt.draft_tokens import Token

OPTIONS = GenerationOptions(start_token=99, end_token=0, pad_token=99)


def tokens(*ids, probability=-1.0):
    return [Token(number, probability, last=number == 0) for number in ids]


def part(*searches, cache, expired=lambda: False, **more):
    """A part whose searches give these ids one after the other; 0 is the end token, and four equal ones are a loop."""
    left = [tokens(*ids) for ids in searches]
    request = SearchRequest(None, (), OPTIONS, expired=expired)
    return PartTranslation(request, lambda _: iter(left.pop(0)), LoopGuard((), lambda _: False), cache=cache, **more)


def test_a_translation_from_the_cache_has_the_same_tokens_and_what_was_withdrawn():
    cache = SentenceCache(1)
    first = list(translate(part([1, 7, 7, 7, 7], [1, 2, 0], cache=cache)))
    assert [event for event in first if isinstance(event, Rewind)] == [Rewind(1)]
    assert list(translate(part(cache=cache))) == first
    assert cache.hits == 1


@pytest.mark.parametrize("more", [{"remembers": False}, {"expired": lambda: True}])
def test_a_draft_and_what_the_time_limit_may_have_cut_are_not_cached(more):
    cache = SentenceCache(1)
    assert list(translate(part([1, 0], cache=cache, **more))) == tokens(1, 0)
    assert len(cache) == 0


def test_each_token_of_a_search_is_yielded_before_the_next_one_is_searched():
    searched = []
    search = (searched.append(token.id) or token for token in tokens(1, 2, 0))
    guard = LoopGuard((), lambda _: False)
    events = translate(PartTranslation(SearchRequest(None, (), OPTIONS), lambda _: search, guard))
    assert [(event.id, list(searched)) for event in events] == [(1, [1]), (2, [1, 2]), (0, [1, 2, 0])]


ALONE = tokens(5, 6, 0)


@pytest.mark.parametrize(
    ("after", "margin", "taken"),
    [
        (tokens(1, 2, 0), None, "after"),
        (tokens(0), None, "alone"),  # nothing follows the neighbour
        (tokens(0, probability=-0.01), 0.1, "alone"),
        (tokens(1, 2, 0, probability=-0.5), 0.1, "after"),
        (tokens(1, 2, 0, probability=-0.95), 0.1, "alone"),
        (
            [*tokens(1, probability=-9.0), Rewind(0), *tokens(2, 0, probability=-0.5)],
            0.1,
            "after",
        ),  # as far as it stays
    ],
)
def test_a_short_part_is_translated_alone_if_it_must_be_or_that_is_better(after, margin, taken):
    begun = []
    alone = (begun.append(token.id) or token for token in ALONE)
    assert list(follow_neighbour(iter(after), alone, margin)) == (after if taken == "after" else ALONE)
    assert bool(begun) is (margin is not None or taken == "alone")


@pytest.mark.parametrize(("lost", "taken"), [((), 1), ((1,), 2), ((2,), 1), ((1, 2), 1)])
def test_what_has_lost_something_is_kept_if_the_other_has_too(lost, taken):
    begun = []
    instead = (begun.append(token.id) or token for token in tokens(2, 0))
    kept = list(keep(iter([*tokens(9), Rewind(0), *tokens(1, 0)]), instead, lambda found: found[0].id in lost))
    assert kept[-2:] == tokens(taken, 0)
    assert bool(begun) is (1 in lost)
