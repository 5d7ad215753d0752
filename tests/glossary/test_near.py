"""Tests of near misses: words that look and sound like a term."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.glossary.near import NearMisses
from pipeline.glossary.terms import Glossary, Term

GLOSSARY = Glossary(
    (
        Term("Kubernetes", None, ("kube",)),
        Term("Velmora", None),
        Term("load balancer", "负载均衡器"),
        Term("深圳湾", "Bay"),
    )
)


def _best(text: str, glossary: Glossary = GLOSSARY) -> tuple[str, str] | None:
    found = NearMisses(glossary).found_in(text)
    return (text[found[0].start : found[0].end], found[0].form) if found else None


@pytest.mark.parametrize(
    ("text", "heard", "form"),
    [
        ("We run Cooper netties now.", "Cooper netties", "Kubernetes"),
        ("the lode balancer failed", "lode balancer", "load balancer"),
        ("Velma ora's office", "Velma ora's", "Velmora's"),
        ("Vellmoura\u2019s office", "Vellmoura\u2019s", "Velmora\u2019s"),
        ("Vël-mora", "Vël-mora", "Velmora"),
    ],
)
def test_what_a_term_was_heard_as_is_found(text, heard, form):
    assert _best(text) == (heard, form)


@pytest.mark.parametrize(
    "text",
    [
        "We run Kubernetes on a load balancer for Velmora.",  # the terms themselves
        "The governed notes are coming near us.",
        "Cooper. Netties",  # two sentences
        "我们在深圳玩",
        "Cuba",  # sounds like a form that is too short
        "",
    ],
)
def test_other_words_are_left_alone(text):
    assert _best(text) is None


def test_a_term_may_be_heard_with_a_letter_less():
    assert _best("We read Kafa.", Glossary((Term("Kafka", None),))) == ("Kafa", "Kafka")


def test_words_must_both_look_and_sound_alike():
    assert _best("rough", Glossary((Term("cough", None),))) is None  # alike in letters alone
    assert _best("rough", Glossary((Term("reign", None),))) is None  # alike in sound alone


@pytest.mark.parametrize(
    ("heard", "term", "loosely"),
    [
        ("radio", "audio", 0.1),  # alike in letters 0.6, in sound 0.5: on average too little
        ("kernel", "colonel", 0.1),  # in letters 0.43
        ("troughtie", "Thoughtie", 0.2),  # in sound 0.33
    ],
)
def test_each_likeness_has_a_limit_which_may_be_lower(heard, term, loosely):
    near = NearMisses(Glossary((Term(term, None),)))
    assert near.found_in(heard) == near.found_in(heard, loosely=loosely - 0.06) == []
    assert [each.form for each in near.found_in(heard, loosely=loosely)] == [term]


def test_a_term_may_be_heard_as_four_words_but_not_as_five():
    near = NearMisses(Glossary((Term("Alphabetagamma", None),)))
    assert max(each.end - each.start for each in near.found_in("al pha be tagamma")) == len("al pha be tagamma")
    assert max(each.end - each.start for each in near.found_in("al pha be ta gamma")) < len("al pha be ta gamma")


def test_the_likest_comes_first():
    found = NearMisses(Glossary((Term("Velmira", None), Term("Velmora", None)))).found_in("We met Velmorra.")
    assert [each.form for each in found[:2]] == ["Velmora", "Velmira"]
    assert found[0].likeness > found[1].likeness


@given(st.text("aeklmnorstuv '-.深", max_size=60))
def test_near_misses_are_whole_words_outside_terms(text):
    known = GLOSSARY.found_in(text)
    for near in NearMisses(GLOSSARY).found_in(text):
        assert not text[near.start - 1 : near.start].isalnum() or near.start == 0
        assert not text[near.end : near.end + 1].isalnum()
        assert all(near.end <= match.start or match.end <= near.start for match in known)
