"""Tests of finding a glossary's terms in a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.glossary.terms import Glossary, Term


def _found(text: str, *terms: Term) -> list[str]:
    return [text[match.start : match.end] for match in Glossary(terms).found_in(text)]


def _term(source: str, *variants: str, exact_case: bool = False) -> Term:
    return Term(source, None, variants, exact_case=exact_case)


@pytest.mark.parametrize(
    ("text", "source", "found"),
    [
        ("We use kubernetes here.", "Kubernetes", ["kubernetes"]),
        ("A catalogue, a cat and concat.", "cat", ["cat"]),
        ("Two cats, the cat's tail, the cats' tails.", "cat", ["cats", "cat's", "cats"]),
        ("The boxes and Box\u2019s.", "box", ["boxes", "Box\u2019s"]),
        ("Batteries and a battery, but batteried.", "battery", ["Batteries", "battery"]),
        ("Load  balancing\nand load balancing", "load balancing", ["Load  balancing", "load balancing"]),
        ("C++ and C, c++17", "C++", ["C++", "c++"]),
        ("a.c abc", "a.c", ["a.c"]),
        ("我们用Kubernetes部署", "Kubernetes", ["Kubernetes"]),
        ("我们在深圳湾见面", "深圳", ["深圳"]),
        ("Größe, größer", "größe", ["Größe"]),
        ("नमस्ते नम", "नम", ["नम"]),
        ("snake_case", "case", ["case"]),
        ("", "cat", []),
    ],
)
def test_a_term_is_found_at_word_boundaries(text, source, found):
    assert _found(text, _term(source)) == found


def test_the_case_rule_applies_to_the_whole_term():
    text = "IT said that it is IT's; the Its."
    assert _found(text, _term("IT", exact_case=True)) == ["IT", "IT's"]
    assert _found(text, _term("IT")) == ["IT", "it", "IT's", "Its"]


def test_the_longest_of_overlapping_terms_is_found():
    york, new_york, times = _term("York"), _term("New York"), _term("York Times Square")
    text = "New York, York, New York Times Square"
    assert _found(text, york, new_york, times) == ["New York", "York", "York Times Square"]


def test_of_two_overlapping_terms_of_one_length_the_earlier_is_found():
    assert _found("open source code", _term("source code"), _term("open source")) == ["open source"]


def test_in_the_other_direction_a_translation_has_the_first_of_its_terms():
    cats = Glossary((Term("cat", "猫"), Term("kitty", "猫"), Term("Acme", None)), ("en", "zh"))
    assert [(term.source, term.target) for term in cats.between("zh", "en").terms] == [("猫", "cat"), ("Acme", None)]


def test_a_glossary_is_for_both_of_its_languages_or_for_any():
    cats = Glossary((), ("en", "zh"))
    pairs = [("en", "zh"), ("zh-TW", "en-GB"), ("en", "de"), ("de", "zh")]
    assert [cats.is_for(*pair) for pair in pairs] == [True, True, False, False]
    assert Glossary().is_for("en", "de")


def test_variants_are_found_as_the_term():
    term = _term("Kubernetes", "K8s", "kube")
    matches = Glossary((term,)).found_in("K8s or kube")
    assert [match.term for match in matches] == [term, term]


def test_terms_without_a_target_are_not_translated():
    kept, translated = Term("Acme", None), Term("load", "负载", target_variants=("载荷",))
    assert Glossary((kept, translated), ("en", "zh")).between("en", "de").terms == (kept,)
    assert kept.targets == ("Acme",)
    assert translated.targets == ("负载", "载荷")


_FORMS = st.text("aBsy .+深ة", min_size=1, max_size=6).filter(str.strip)


@given(st.text("aAbBsSy .+'深圳ة", max_size=40), st.lists(_FORMS, max_size=6))
def test_matches_are_in_order_and_do_not_overlap(text, sources):
    glossary = Glossary(tuple(Term(source, None) for source in sources))
    end = 0
    for match in glossary.found_in(text):
        assert end <= match.start < match.end <= len(text)
        assert (
            "".join(text[match.start : match.end].split())
            .casefold()
            .startswith("".join(match.term.source.split()).casefold()[:-1])
        )
        end = match.end
