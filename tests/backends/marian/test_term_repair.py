"""Which terms a translation lacks, when it is searched again for them, what is shown until then, and what may follow a term."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pipeline.backends.marian.decode.generation import GenerationOptions, SearchRequest
from pipeline.backends.marian.search.recovery import LoopGuard
from pipeline.backends.marian.search.sentence_text import Rewind
from pipeline.backends.marian.search.steps import PartTranslation, translate
from pipeline.backends.marian.terms.source_terms import SourceTerm
from pipeline.backends.marian.terms.term_repair import Repair, _form_like
from pipeline.backends.marian.terms.term_search import TermSearch, Wording
from pipeline.core.nmt.draft_tokens import Token


def token(number):
    return Token(number, -1.0, last=number == 0)


def shown(*searches, repaired=None, uncertain=()):
    """What is yielded for the tokens of searches, of which only the last one does not fail: ids, and -1 - kept for what is withdrawn.

    And how much was yielded before each token of a search.
    """
    found, got, left = [], [], list(searches)

    def search(_):
        for number in left.pop(0):
            got.append(len(found))
            yield replace(token(number), truncated=number == CUT)

    request = SearchRequest(None, (), GenerationOptions(start_token=99, end_token=0, pad_token=99))
    part = PartTranslation(request, search, LoopGuard((), lambda _: False), uncertain=lambda one: one.id in uncertain)
    part.repaired = lambda tokens: tokens if repaired is None else [token(number) for number in repaired]
    for each in translate(part):
        found.append(-1 - each.kept if isinstance(each, Rewind) else each.id)
    return found, got


CUT = 9
"""The token at the limit of a search."""


@pytest.mark.parametrize(
    ("searches", "repaired", "uncertain", "found"),
    [
        ([[1, 2, 0]], None, (), [1, 2, 0]),
        ([[1, 2, 3, 0]], [1, 5, 0], (), [1, 2, 3, -2, 5, 0]),  # from where it differs
        ([[1, 2, 3, 0]], [1, 2, 3, 4, 0], (), [1, 2, 3, 4, 0]),
        ([[1, 2, 3, 0]], [1, 5, 3, 0], (2,), [1, 5, 3, 0]),  # nothing wrong was shown
        ([[1, 2, 3, CUT], [1, 4, 0]], None, (), [1, 2, 3, -2, 4, 0]),
        ([[1, 2, 3, CUT], [1, 2, 4, 0]], None, (2,), [1, 2, 4, 0]),  # it was not shown
        ([[1, 2, CUT], [3, 0]], None, (2,), [1, -1, 3, 0]),
    ],
)
def test_what_differs_is_withdrawn_and_what_may_be_wrong_waits(searches, repaired, uncertain, found):
    assert shown(*searches, repaired=repaired, uncertain=uncertain)[0] == found


def test_tokens_are_shown_as_they_come_until_one_may_be_wrong_and_again_when_it_is_withdrawn():
    assert shown([1, 2, 3, 0])[1] == [0, 1, 2, 3]
    assert shown([1, 2, 3, 0], uncertain=(2,))[1] == [0, 1, 1, 1]
    found, got = shown([1, 2, 3, CUT], [1, 4, 5, 0], uncertain=(2,))
    assert (found, got) == ([1, 4, 5, 0], [0, 1, 1, 1, 1, 1, 1, 1])


TERMS = [SourceTerm(name, (0,), (0,), (name,)) for name in "abc"]


def repaired(written, left, tokens="x"):
    """The translation after repairs. ``written``: what is tried for each term. ``left``: what each translation lacks."""
    tried = []
    repair = Repair.__new__(Repair)
    repair._missing = lambda made: [term for term in TERMS if term.name in left[made]]
    repair._written = lambda made, term: iter(tried.append(term.name) or written[made, term.name])
    return repair(tokens), tried


@pytest.mark.parametrize(
    ("written", "left", "found", "tried"),
    [
        ({("x", "a"): ["y", "z"]}, {"x": "a", "y": "a", "z": ""}, "z", ["a"]),  # the first with more terms
        ({("x", "a"): ["y"]}, {"x": "a", "y": "b"}, "x", ["a"]),  # with as many, it stays
        ({("x", "a"): ["y"], ("y", "b"): ["z"]}, {"x": "ab", "y": "b", "z": ""}, "z", ["a", "b"]),
        ({("x", "a"): ["y"]}, {"x": "ab", "y": "a", "z": ""} | {"y": "a"}, "y", ["a"]),  # each once
        ({("x", name): [] for name in "abc"}, {"x": "abc"}, "x", ["a", "b"]),  # after two it is given up
        ({("x", "a"): [], ("x", "b"): ["y"], ("y", "c"): []}, *({"x": "abc", "y": "ac"}, "y", ["a", "b", "c"])),
    ],
)
def test_a_repair_is_taken_if_it_has_more_terms(written, left, found, tried):
    assert repaired(written, left) == (found, tried)


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("45", "45 euros"),  # no sign is written: the preferred one
        ("€45", "€45"),
        ("45 €", "45 €"),
        ("€45 €", "45 euros"),  # no form has both
        ("$45", "45 euros"),
    ],
)
def test_a_form_with_the_same_sign_on_the_same_side_is_written(written, form):
    like = re.compile(r"(?P<before>[€$])?\d+(?P<after> €)?")
    term = SimpleNamespace(targets=("45 euros", "€45", "45 €"))
    assert _form_like(term, like.search(written)) == form


SPELLER = SimpleNamespace(text="".join, piece=str)
"""Of tokens that are texts."""
NAME = SourceTerm("Walesa", (0,), (0,), ("Wałęsa",), literal=True, like=re.compile("Walesa"), optional=True)
NUMBER = SourceTerm("12", (0,), (0,), ("12",), literal=True)
CLOUD = SourceTerm("云", (0,), (0,), ("cloud",))


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("Wałęsa, 12, cloud", []),
        ("Walesa, 12, cloud", [NAME]),
        ("Somebody, 12, cloud", []),  # it need not be there
        ("Wałęsa", [NUMBER, CLOUD]),
    ],
)
def test_a_translation_lacks_the_terms_that_it_must_have(text, missing):
    wording = Wording((NAME, NUMBER, CLOUD), SPELLER)
    assert wording.missing([text]) == missing


def test_of_a_text_with_numbers_tokens_with_digits_may_be_wrong():
    tokens = [SimpleNamespace(id=text) for text in ("a", "a1", "²")]
    assert [Wording((NUMBER, CLOUD), SPELLER).uncertain(one) for one in tokens] == [False, True, True]
    assert [Wording((CLOUD,), SPELLER).uncertain(one) for one in tokens] == [False] * 3


def test_the_terms_of_a_glossary_are_without_the_literals():
    wording = Wording((NAME, NUMBER, CLOUD), SPELLER)
    assert wording.of_glossary.terms == (CLOUD,)
    assert Wording((NUMBER,), SPELLER).of_glossary is None


@pytest.mark.parametrize(
    ("target", "piece", "may"),
    [
        ("cloud", " is", True),
        ("cloud", ".", True),
        ("cloud", "s", True),  # a plural
        ("cloud", "y", False),
        ("Acme", "s", False),  # a name has none
        ("Acme", "'", True),
        ("9:30 a.m.", ".", False),  # the sentence ends with it
        ("9:30 a.m.", ",", True),
        ("9:30", " p.m.", False),  # another time
        ("9:30", " there", True),
    ],
)
def test_what_may_follow_a_term(target, piece, may):
    search = TermSearch.__new__(TermSearch)
    search._speller, search._history = SPELLER, [target]
    search._written = SourceTerm("x", (0,), (0,), (target,), refused=("9:30 p.m.",))
    assert search._may_follow(piece) is may
