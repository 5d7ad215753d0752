"""Detection of loops in translations, and how much of a looping translation is kept."""

import pytest

from pipeline.backends.marian.decode.generation import GenerationOptions, SearchRequest
from pipeline.backends.marian.search.recovery import Loop, LoopGuard, draft_limit, kept_tokens, length_limit
from pipeline.backends.marian.search.sentence_text import Rewind
from pipeline.backends.marian.search.steps import PartTranslation, translate
from pipeline.core.nmt.draft_tokens import Token

SOURCE = [10, 11, 12, 13, 0]


def loops(source, tokens, plain=False, marks=()):
    return LoopGuard(source, lambda index: plain, lambda index: index not in marks).loop(tokens)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([5, 7, 7, 7, 7], Loop(2, 1)),
        ([5, 7, 8, 7, 8, 7, 8, 7, 8], Loop(3, 2)),
        ([5, 1, 2, 3, 1, 2, 3, 1, 2, 3], Loop(4, 3)),
        ([7, 7, 7], None),
        ([7, 8, 7, 8, 7, 8], None),
        ([1, 2, 3, 4, 1, 2, 3, 4], None),
        ([7, 7, 7, 7, 9], None),  # not at the end: it was found before
        ([], None),
    ],
)
def test_a_repeating_phrase_is_a_loop(tokens, expected):
    assert loops(SOURCE, tokens) == expected


def test_repeats_in_the_source_allow_repeats_in_the_translation():
    never_never = [4, 9, 4, 9, 4, 9, 4, 9, 0]
    assert loops(never_never, [5, 6] * 4) is None
    assert loops(never_never, [5, 6] * 6) is None
    assert loops(never_never, [5, 6] * 7) == Loop(2, 2)


def test_unknown_words_and_marks_in_the_source_allow_no_words_to_repeat():
    unknown, comma = 1, 2
    foreign = [3, unknown, 3, unknown, 3, unknown, 0]  # 3: a space
    assert loops(foreign, [7] * 4, marks=(unknown, 3)) == Loop(1, 1)
    assert loops([10, comma, comma, 11, 0], [5, 6] * 4, marks=(comma,)) == Loop(2, 2)
    assert loops([10, comma, 10, comma, 11, 0], [5, 6] * 4, marks=(comma,)) is None
    exclamation_marks = [10, *[comma] * 20, 0]
    assert loops(exclamation_marks, [6] * 22, plain=True, marks=(comma,)) is None
    assert loops(exclamation_marks, [6] * 23, plain=True, marks=(comma,)) == Loop(1, 1)


def test_zeros_of_a_number_are_not_a_loop():
    assert loops(SOURCE, [1, *[3] * 9], plain=True) is None
    assert loops(SOURCE, [3] * 11, plain=True) is None
    assert loops(SOURCE, [3] * 12, plain=True) == Loop(1, 1)


def test_the_longest_phrase_of_a_loop_has_sixteen_tokens():
    assert loops(SOURCE, list(range(16)) * 3) == Loop(16, 16)
    assert loops(SOURCE, list(range(17)) * 3) is None


def test_the_limit_grows_with_the_source_up_to_the_models_limit():
    assert [length_limit(n, 3.0, 256) for n in (1, 10, 200)] == [19, 46, 256]
    assert length_limit(10, 0.0, 256) == 256


def test_kept_tokens_end_before_the_first_repetition():
    assert kept_tokens([5, 6, 7, 7, 7, 7], Loop(3, 1), 5) == 3
    assert kept_tokens([1, 2, 3, 4, 1, 2, 3, 9], None, 5) == 4
    assert kept_tokens(list(range(100)), None, 4) == 14
    assert kept_tokens([1, 2, 3], None, 4) == 3


def test_a_draft_is_twice_as_long_as_its_source_and_a_little_more():
    assert [draft_limit(n, 256) for n in (1, 10, 200)] == [8, 26, 256]


def recovered(*searches, expired=lambda: False, options=None, **more):
    """The ids that stay of a sentence, its end token, and what each search was asked for.

    The searches give these ids one after the other; 0 is the end token, and none stands for the limit.
    """
    asked = []

    def search(request):
        ids = searches[len(asked)]
        asked.append((request.options.no_repeat_ngram, request.options.beams))
        for at, one in enumerate(ids or [5, 6]):
            yield Token(one, -1.0, last=one == 0, truncated=not ids and at == 1)

    options = options or GenerationOptions(start_token=99, end_token=0, pad_token=99, max_tokens=100)
    request = SearchRequest(None, SOURCE, options, expired=expired)
    kept = []
    for token in translate(PartTranslation(request, search, LoopGuard(SOURCE, lambda _: False), **more)):
        if isinstance(token, Rewind):
            del kept[token.kept :]
        else:
            kept.append(token)
    return [token.id for token in kept], kept[-1], asked


SINGLE, PHRASE, WHOLE, CUT = [7] * 9, [7, 8] * 9, [5, 8, 0], []


@pytest.mark.parametrize(
    ("searches", "more", "ids", "asked"),
    [
        ([WHOLE], {}, [5, 8, 0], [(0, 1)]),
        ([SINGLE, WHOLE], {}, [5, 8, 0], [(0, 1), (2, 1)]),  # no two tokens twice
        ([PHRASE, WHOLE], {}, [5, 8, 0], [(0, 1), (3, 1)]),
        ([CUT, WHOLE], {}, [5, 8, 0], [(0, 1), (3, 1)]),
        ([SINGLE, CUT, WHOLE], {}, [5, 8, 0], [(0, 1), (2, 1), (2, 4)]),  # with more beams
        ([SINGLE, [0], WHOLE], {}, [5, 8, 0], [(0, 1), (2, 1), (2, 4)]),  # an end alone is no translation
        ([SINGLE, PHRASE, SINGLE], {}, [7, 0], [(0, 1), (2, 1), (2, 4)]),  # what was before the loop is left
        ([SINGLE, CUT], {"most_searches": 2}, [7, 0], [(0, 1), (2, 1)]),
        ([SINGLE], {"most_searches": 1}, [7, 0], [(0, 1)]),
        ([SINGLE], {"expired": lambda: True}, [7, 0], [(0, 1)]),
    ],
)
def test_a_failed_search_is_repeated_with_narrower_options_and_at_last_cut(searches, more, ids, asked):
    found, end, seen = recovered(*searches, **more)
    assert (found, seen) == (ids, asked)
    assert (end.searched_again, end.truncated) == (len(asked) > 1 or ids == [7, 0], ids == [7, 0])


def test_a_models_own_limit_of_repeats_and_number_of_beams_are_kept():
    own = GenerationOptions(start_token=99, end_token=0, pad_token=99, max_tokens=100, no_repeat_ngram=2, beams=3)
    assert recovered(PHRASE, CUT, WHOLE, options=own)[2] == [(2, 3), (2, 3), (2, 6)]
