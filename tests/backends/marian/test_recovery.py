"""Failed translations: the demo translator loops on unreadable text, but the shown text has no loops."""

import codecs
import dataclasses
from itertools import pairwise

import pytest

from pipeline.backends.marian.decode.generation import SearchRequest
from pipeline.backends.marian.decode.parts import ModelParts
from pipeline.backends.marian.model import MarianModel
from pipeline.backends.marian.search.beams import greedy
from pipeline.backends.marian.search.recovery import LoopGuard, length_limit
from pipeline.backends.marian.search.steps import PartTranslation, translate
from pipeline.core.nmt.draft_tokens import Token
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.events import SourceSentence, TargetText, Translation
from tests.conftest import SHIPPED_TRANSLATORS

SPOKEN_S = 2.0
SENTENCES = (
    "The bottle fell and broke.",
    "He worked last night without taking a break.",
    "At home, we speak only French.",
    "Please take a deep breath.",
    "We saw a funny movie last Sunday.",
    "Could you exchange rooms with me?",
    "I went to drink a beer with my friends.",
    "The party will be held outdoors.",
    "Food should be chewed before being swallowed.",
    "Tom bought a pair of black leather shoes.",
    "She had my mother take care of the baby.",
    "They got thoroughly wet in the rain.",
)
# Words that no model knows: each letter shifted by 13 places, or each word backwards.
UNREADABLE = [
    *(codecs.encode(text, "rot13") for text in SENTENCES),
    *(" ".join(word[::-1] for word in text.split()) for text in SENTENCES),
]
READABLE = ["Thank you very much.", "We are meeting at ten o'clock.", "No, no, no, no."]


@pytest.fixture(scope="module")
def model():
    return MarianModel.load(SHIPPED_TRANSLATORS["demo-en-zh"])


def sentence(text):
    return SourceSentence(0, "en", text, 0.0, SPOKEN_S)


def stream(model, text):
    *texts, translation = model.stream(TranslationRequest(sentence(text), "zh"))
    assert isinstance(translation, Translation)
    return [each for each in texts if isinstance(each, TargetText)], translation


def unchecked(model, text):
    (source,) = model.sources(text, "en", None)
    return list(greedy(SearchRequest(model.decoder, source, model.generation)))


def fails(model, text, ids):
    (source,) = model.sources(text, "en", None)
    guard = LoopGuard(source, model.tokenizer.is_plain)
    return len(ids) > length_limit(len(source), model.options.max_length_factor, model.generation.max_tokens) or any(
        guard.loop(ids[:end]) for end in range(1, len(ids) + 1)
    )


def kept(texts):
    """The tokens that were not withdrawn."""
    return [token.id for token in texts[-1].tokens if token.id is not None]


def withdraws(texts):
    return not all(after.text.startswith(before.text) for before, after in pairwise(texts))


class Looping(MarianModel):
    """A translator whose first search, or every search, repeats the last token of ``beginning`` without end."""

    def __init__(self, model, beginning, *, forbidden_too):
        super().__init__(
            ModelParts(model.tokenizer, model.decoder, model.generation, model.languages, model.max_source_tokens)
        )
        self.beginning, self.forbidden_too = beginning, forbidden_too
        self.searches = 0

    def _search(self, wording, request):
        self.searches += 1
        if self.searches == 1 or self.forbidden_too:
            ids = self.beginning + [self.beginning[-1]] * (request.options.max_tokens - len(self.beginning))
            for count, index in enumerate(ids, 1):
                yield Token(index, -0.1, last=count == len(ids), truncated=count == len(ids))
        else:
            yield from super()._search(wording, request)


@pytest.mark.slow
def test_a_looping_translation_is_searched_again_and_flagged(model):
    failed = 0
    for text in UNREADABLE:
        ids = [token.id for token in unchecked(model, text)]
        texts, translation = stream(model, text)
        assert translation.searched_again == fails(model, text, ids)
        if translation.searched_again:
            failed += 1
        else:
            assert kept(texts) == ids
            assert len(texts) == len(ids)
        assert translation.text
        assert not fails(model, text, kept(texts))
    assert failed >= 4  # otherwise the test has no cases


def test_successful_translations_equal_the_unchecked_search(model):
    for text in READABLE:
        texts, translation = stream(model, text)
        assert kept(texts) == [token.id for token in unchecked(model, text)]
        assert not withdraws(texts)
        assert not translation.searched_again
        assert not translation.truncated


def test_many_zeros_are_no_loop(model):
    _, translation = stream(model, "It costs 1,000,000,000 dollars.")
    assert not translation.searched_again
    assert not translation.truncated
    assert "10亿" in translation.text  # what the model wrote was another number


def test_if_every_search_fails_the_text_ends_before_the_loop(model):
    text = "We are meeting at ten o'clock."
    normal = [token.id for token in unchecked(model, text)[:4]]
    looping = Looping(model, normal, forbidden_too=True)
    texts, translation = stream(looping, text)
    assert (translation.truncated, translation.searched_again) == (True, True)
    assert [each.complete for each in texts] == [False] * (len(texts) - 1) + [True]
    assert kept(texts)[:-1] == normal
    assert translation.text == model.tokenizer.decode(normal)
    assert looping.searches == 3


def test_shown_text_of_a_loop_is_withdrawn(model):
    text = "We are meeting at ten o'clock."
    looping = Looping(model, [token.id for token in unchecked(model, text)[:4]], forbidden_too=False)
    texts, translation = found = stream(looping, text)
    assert withdraws(texts)
    assert (translation.truncated, translation.searched_again) == (False, True)
    assert looping.searches == 2
    assert stream(looping, text) == found  # from the cache
    assert looping.searches == 2


def test_the_token_at_which_a_search_was_stopped_is_not_lost(model):
    right = unchecked(model, "We are meeting at ten o'clock.")
    cut = dataclasses.replace(right[4], last=True, truncated=True)
    searches = iter([[*right[:4], cut], right])
    request = SearchRequest(model.decoder, [*range(9)], model.generation)
    guard = LoopGuard(request.source, model.tokenizer.is_plain)
    found = list(translate(PartTranslation(request, lambda _: iter(next(searches)), guard)))
    assert [*found[:-1], right[-1]] == right  # without a Rewind
    assert found[-1].searched_again


def test_a_loop_in_one_of_several_parts_leaves_the_others_and_marks_the_whole(model):
    text = "We are meeting at ten o'clock."
    looping = Looping(model, [token.id for token in unchecked(model, text)[:4]], forbidden_too=False)
    texts, translation = stream(looping, f"{text} Thank you very much.")
    assert withdraws(texts)
    assert translation.searched_again
    second = looping.translate(text)  # from the cache
    assert translation.text == second + model.translate("Thank you very much.")
    assert texts[-1].steady_text == texts[-1].text == translation.text
