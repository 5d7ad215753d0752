"""What the demo's translators are trained on and measured with, as a whole."""

import re

import pytest
from heldout import CHINESE_SENTENCES, SENTENCES
from pairs import TESTS, held_out_phrases, prepared, translators_phrases, unseen_numbers
from phrasebook import corpus, number, prices
from tatoeba import spoken
from written import conversations, everyday


@pytest.fixture(scope="module")
def data():
    """All data of the translators, with sentences of the phrasebook in place of Tatoeba's."""
    return prepared(corpus(1200, seed=7))


def words(text):
    """The words of an English sentence, or the characters of a Chinese one, in lower case and without marks."""
    plain = re.sub(r"[^\w\s'$€£%&+/@#*]", "", text.lower().replace("’", "'"))
    return tuple(plain.split()) if max(plain, default="") < "\u3040" else tuple("".join(plain.split()))


def one_word_left_out(text):
    """The sentence with a gap in place of each word; nothing for short ones, which are alike by chance."""
    units = words(text)
    least = 5 if max(text) < "\u3040" else 7
    return {(*units[:i], "", *units[i + 1 :]) for i in range(len(units))} if len(units) >= least else set()


def test_no_side_of_a_training_pair_is_nearly_a_sentence_that_is_tested(data):
    assert {name: len(pairs) for name, pairs in data.tests.items()} == TESTS
    held = [side for pairs in (*data.tests.values(), *data.development.values()) for pair in pairs for side in pair]
    held += [*SENTENCES, *CHINESE_SENTENCES]
    equal = {words(side) for side in held}
    near = {form for side in held for form in one_word_left_out(side)}
    for pairs in data.training.values():
        for side in (side for pair in pairs for side in pair):
            assert words(side) not in equal, side
            assert near.isdisjoint(one_word_left_out(side)), side
    trained = {
        spoken(side) for name, pairs in data.training.items() if name != "phrasebook" for pair in pairs for side in pair
    }
    assert trained.isdisjoint(spoken(side) for pair in data.test_phrases for side in pair)


def test_test_sets_are_of_their_subject_and_little_is_lost_to_them(data):
    assert set(data.tests["everyday"]) < set(everyday())
    assert set(data.tests["meetings"]) < {pair for topic, pair in conversations() if topic == "meetings"}
    assert len(data.training["everyday"]) > 44_000
    assert len(data.training["conversations"]) > 14_500


def test_the_sets_do_not_depend_on_the_order_of_tatoebas_pairs(data):
    again = prepared(corpus(1200, seed=7)[::-1])
    assert {name: sorted(pairs) for name, pairs in again.tests.items()} == {
        name: sorted(pairs) for name, pairs in data.tests.items()
    }
    assert again.development == data.development


def test_translators_learn_every_number_and_no_sentence_that_they_are_tested_on():
    phrases, unseen = translators_phrases(), unseen_numbers()
    tests = (*prices(), *unseen, *held_out_phrases())
    assert not {english for english, _ in phrases} & {english for english, _ in tests}
    assert len(unseen) > 2000
    said = [
        (re.sub(r"[.,?]|$|^", " ", english.lower()), chinese) for english, chinese in phrases if "点" not in chinese
    ]
    for value in range(2, 1000):
        words, signs = number(value)
        found = [chinese for english, chinese in said if f" {words} " in english]
        assert len(found) >= 2, words
        assert all(signs in chinese or (value == 2 and "两" in chinese) for chinese in found), words
