"""What a search may choose, and where its options come from: the model's files and the configuration."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pipeline.backends.marian.decode.decoder import Choice
from pipeline.backends.marian.decode.generation import GenerationOptions, SearchRequest, forced_token, mask
from pipeline.backends.marian.decode.settings import decoding_settings, generation_options
from pipeline.backends.marian.search.beams import token_at
from pipeline.backends.marian.search.sentence_text import SentenceText
from pipeline.backends.nmt_options import NmtConfig
from pipeline.core.nmt.draft_tokens import Token
from pipeline.errors import ModelError

OPTIONS = GenerationOptions(start_token=9, end_token=0, pad_token=9, max_tokens=5)


@pytest.mark.parametrize(
    ("history", "size", "masked"),
    [
        ([9, 1, 2, 1], 2, {2}),
        ([9, 1, 2, 3, 1, 2], 3, {3}),
        ([9, 1, 2, 3, 1], 3, set()),
        ([9, 1, 1], 1, {9, 1}),
        ([9], 2, set()),
        ([9, 9], 2, {9}),
        ([9, 1, 2, 1], 0, set()),
    ],
)
def test_what_would_repeat_an_ngram_is_masked(history, size, masked):
    scores = np.zeros(10)
    mask(scores, history, GenerationOptions(9, 0, 9, no_repeat_ngram=size))
    assert set(np.flatnonzero(scores == -np.inf).tolist()) == masked


def test_what_would_complete_a_bad_word_is_masked():
    scores = np.zeros(10)
    mask(scores, [9, 1, 2], GenerationOptions(9, 0, 9, bad_words=((3,), (2, 4), (1, 2, 5), (2, 2, 6), (9, 7))))
    assert np.flatnonzero(scores == -np.inf).tolist() == [3, 4, 5]


def test_tokens_are_forced_at_the_begin_and_at_the_limit():
    options = GenerationOptions(9, 0, 9, forced_begin_token=4, forced_end_token=0, max_tokens=3)
    assert [forced_token(count, options, 7) for count in (1, 2, 3)] == [4, 7, 0]
    assert [forced_token(count, OPTIONS, 7) for count in (1, 5)] == [7, 7]
    only = GenerationOptions(9, 0, 9, forced_begin_token=4, forced_end_token=0, max_tokens=1)
    assert forced_token(1, only, 7) == 0
    assert SearchRequest(None, (), OPTIONS, (1, 2)).history == [9, 1, 2]


@pytest.mark.parametrize(
    ("token", "allowed", "count", "expired", "last", "truncated"),
    [
        (5, 5, 4, False, False, False),
        (0, 0, 4, False, True, False),
        (0, 5, 5, False, True, True),  # forced at the limit
        (5, 5, 5, False, True, True),
        (0, 0, 5, False, True, False),  # the model ended there itself
        (5, 5, 2, True, True, True),  # the time is over
    ],
)
def test_a_sentence_is_cut_at_its_limit_unless_it_ends_there(token, allowed, count, expired, last, truncated):
    request = SearchRequest(None, (), OPTIONS, expired=lambda: expired)
    found = token_at(request, Choice(token, -0.5, allowed, guarded=True), count)
    assert (found.id, found.last, found.truncated, found.guarded) == (token, last, truncated, True)


def test_a_part_of_a_sentence_is_withdrawn_and_written_anew():
    pieces = SimpleNamespace(push=lambda number: "" if number == 0 else f"w{number}", flush=lambda: "")
    text = SentenceText(SimpleNamespace(detokenizer=lambda: pieces), " ")
    for number in (1, 2, 0):
        text.push(Token(number, -1.0, last=number == 0))
    text.begin_part()
    for number in (3, 4, 5):
        text.push(Token(number, -1.0, last=False))
    assert (text.text, [token.end for token in text.written]) == ("w1w2 w3w4w5", [2, 4, 4, 7, 9, 11])
    text.rewind(1)
    assert (text.text, text.texts, [token.id for token in text.part]) == ("w1w2 w3", [" w3"], [3])
    assert [token.end for token in text.written] == [2, 4, 4, 7]
    text.rewind(0)
    text.push(Token(6, -1.0, last=False))
    assert (text.text, [token.id for token in text.tokens]) == ("w1w2 w6", [1, 2, 0, 6])
    assert [text.end(count) for count in (0, 1)] == [4, 7]


def options_of(settings, positions=512, **configured):
    tokenizer = SimpleNamespace(target_size=10, pad_token=9, end_token=0)
    return generation_options(settings, tokenizer, NmtConfig(**configured), positions, Path("model"))


@pytest.mark.parametrize(
    ("settings", "configured", "name", "value"),
    [
        ({}, {}, "max_tokens", 256),
        ({}, {"max_tokens": 300}, "max_tokens", 300),
        ({"max_length": 100}, {}, "max_tokens", 99),  # which has the start token
        ({"max_length": 100, "max_new_tokens": 50}, {}, "max_tokens", 50),
        ({"max_length": 1}, {}, "max_tokens", 1),
        ({}, {}, "no_repeat_ngram", 0),
        ({"no_repeat_ngram_size": 3}, {}, "no_repeat_ngram", 3),
        ({"no_repeat_ngram_size": 3}, {"no_repeat_ngram": 2}, "no_repeat_ngram", 2),  # the user's own
        ({}, {}, "start_token", 9),
        ({"pad_token_id": 8}, {}, "start_token", 8),
        ({"pad_token_id": 8, "decoder_start_token_id": 7}, {}, "start_token", 7),
        ({"eos_token_id": [3]}, {}, "end_token", 3),
        ({"pad_token_id": 3, "eos_token_id": 3}, {}, "pad_token", 9),  # the end is not masked
        ({"bad_words_ids": [[5], [0], [], [1, 2]]}, {}, "bad_words", ((5,), (1, 2))),  # nor is it a bad word
        ({"forced_eos_token_id": 0}, {}, "forced_end_token", 0),
        ({}, {}, "forced_end_token", None),
        ({"renormalize_logits": True}, {}, "renormalize", True),
        ({}, {"beam_size": 4}, "beams", 4),
    ],
)
def test_an_option_is_the_users_or_the_models(settings, configured, name, value):
    assert getattr(options_of(settings, **configured), name) == value


def test_no_sentence_has_more_tokens_than_the_model_has_positions():
    assert options_of({"max_new_tokens": 300}, positions=100, max_tokens=400).max_tokens == 100


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"bad_words_ids": [[10]]}, "bad_words_ids must be lists of ids below 10"),
        ({"length_penalty": 100}, "length_penalty is 100"),
        ({"early_stopping": "now"}, "early_stopping 'now'"),
        ({"eos_token_id": [0, 1]}, "only one end token is supported"),
        ({"pad_token_id": 10}, "pad_token_id is 10, but the vocabulary has 10 entries"),
        ({"max_length": -1}, "max_length is -1; expected a whole number"),
    ],
)
def test_settings_that_no_search_can_have_are_refused(settings, said):
    with pytest.raises(ModelError) as error:
        options_of(settings)
    assert said in str(error.value)


def test_of_two_files_the_second_has_the_settings_and_the_first_the_special_tokens():
    config = {"pad_token_id": 1, "eos_token_id": 2, "max_length": 9, "num_beams": None}
    assert decoding_settings(config, {}) == {"pad_token_id": 1, "eos_token_id": 2, "max_length": 9}
    assert decoding_settings(config, {"eos_token_id": 3, "forced_eos_token_id": None}) == {
        "pad_token_id": 1,
        "eos_token_id": 3,
    }
