"""Drafts: what is kept from one to the next, how long they may be, and which of their last words are shown."""

import dataclasses

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.backends.marian.decode.decoder import DecoderState
from pipeline.backends.marian.model import MarianModel
from pipeline.backends.marian.pivot import PivotTranslator
from pipeline.backends.marian.search.recovery import draft_limit
from pipeline.backends.nmt_options import NmtConfig
from pipeline.core.captions.changes import Delta
from pipeline.core.captions.policy import AgreeingDrafts, visible_length
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.core.run.options import DraftOptions
from pipeline.events import SourceSentence, Translation
from tests.backends.marian.test_drafts import TOKENS, texts_of, translation
from tests.conftest import SHIPPED_TRANSLATORS, golden, make_model_dir
from tests.streams import changes

TWO = DraftOptions(mask_words=2, mask_characters=2, agreeing=1)


@pytest.mark.parametrize(
    ("text", "language", "visible"),
    [
        ("Where is the bank", "en", "Where is"),
        ("Where is the bank?  ", "en", "Where is"),
        (" Where", "en", " Where"),
        ("the bank", "en", "the"),
        ("", "en", ""),
        ("Wo ist die Bank", "de", "Wo ist"),
        ("은행은 어디에 있습니까", "ko", "은행은"),
        ("银行在哪里？", "zh", "银行在哪"),
        ("银行在哪里？", "zh-TW", "银行在哪"),
        ("銀行はどこ", "ja", "銀行は"),
        ("ธนาคารอยู่", "th", "ธนาคารอย"),
        ("我买了iPhone", "zh", "我买了"),
        ("我买了iPhone手机", "zh", "我买了iPhone"),
        ("我买了 iPhone 16", "zh", "我买了 iPhone "),
        ("是", "zh", "是"),
        ("", "zh", ""),
    ],
)
def test_the_last_words_or_characters_are_hidden(text, language, visible):
    assert text[: visible_length(text, language, TWO)] == visible


@given(st.text("ab ", max_size=12), TOKENS, st.sampled_from(["en", "zh"]), st.integers(0, 3))
@example("a", [(0, "a b")], "en", 1)
def test_a_draft_becomes_the_visible_text(shown, tokens, language, hidden):
    options = DraftOptions(mask_words=hidden, mask_characters=hidden, agreeing=1)
    events = [dataclasses.replace(event, language=language) for event in translation(tokens)]
    whole, found = events[-1].text, list(AgreeingDrafts(options).events(events, shown))
    assert {text.steady for text in texts_of(found)[:-1]} <= {0}
    visible = texts_of(found)[-1].text
    assert whole.startswith(visible)
    assert len(visible) >= visible_length(whole, language, options)
    # More is shown only if it was shown before.
    assert len(visible) == visible_length(whole, language, options) or shown.startswith(visible)
    if language == "en" and len(visible) < len(whole):
        assert not visible or whole[len(visible)] == " ", "a word was cut"
    if language == "zh" and not hidden:
        assert visible == whole
    assert [event for event in found if isinstance(event, Translation)] == events[-1:]
    assert texts_of(found)[-1].complete


def visible(texts, shown):
    """What is shown of an English draft made of these tokens, after a draft of which ``shown`` was shown."""
    events = [dataclasses.replace(event, language="en") for event in translation([(0, text) for text in texts])]
    return texts_of(AgreeingDrafts(TWO).events(events, shown))[-1].text


def test_what_was_shown_is_not_hidden_again():
    assert visible(["one", " two", " three"], "one two three") == "one two three"
    assert visible(["one", " two", " three"], "one two thr") == "one two"
    assert visible(["one", " two", " threefold"], "one two three") == "one two"
    assert visible(["one", " two", " three"], "") == "one"


def test_each_change_of_what_is_shown_is_an_event_with_the_tokens_so_far():
    events = translation([(0, "one"), (0, " t"), (0, "wo"), (0, " three"), (0, " four")])
    found = changes(AgreeingDrafts(TWO).events((dataclasses.replace(event, language="en") for event in events), ""))
    assert [(event.text, event.token, event.log_probability) for event in found if isinstance(event, Delta)] == [
        ("one", 1, -2.0),
        (" two", None, -60.0),
        ("", 0, -1.0),
    ]


def test_tokens_withdrawn_unshown_leave_no_log_probability():
    found = changes(AgreeingDrafts(TWO).events(translation([(0, "甲"), (0, "乙"), (1, "丙丁戊")]), ""))
    assert [(event.text, event.log_probability) for event in found if isinstance(event, Delta)] == [
        ("甲", -2.0),
        ("丙", -8.0),
        ("", -1.0),
    ]


def test_a_draft_has_a_limit_from_its_source():
    assert draft_limit(10, 256) == 26
    assert draft_limit(10, 20) == 20


def endless(model):
    """Make a model never end a sentence."""
    model.generation = dataclasses.replace(
        model.generation, bad_words=(*model.generation.bad_words, (model.generation.end_token,)), forced_end_token=None
    )


def test_a_draft_that_runs_away_is_cut_and_not_searched_again(tmp_path):
    model = MarianModel.load(make_model_dir(tmp_path, "merged"))
    endless(model)
    row, started = golden("tiny-marian")[0], list[DecoderState]()
    found = list(
        model.stream(TranslationRequest(SourceSentence(0, "en", row["source"]), "zh", started.append, draft=True))
    )
    assert len(started) == 1
    assert found[-1].truncated
    assert 0 < len(found) - 2 <= draft_limit(len(row["source_ids"]), 256)
    started.clear()
    list(model.stream(TranslationRequest(SourceSentence(0, "en", row["source"]), "zh", started.append)))
    assert len(started) > 1, "the final translation is searched again"


def test_a_draft_is_greedy_and_the_final_translation_is_not(tmp_path):
    model = MarianModel.load(make_model_dir(tmp_path, "merged"), NmtConfig(beam_size=4))
    rows = [
        row
        for row in golden("tiny-marian")
        if row["beam_4_ids"] != row["target_ids"] and len(model.sources(row["source"], "en", None)) == 1
    ]
    assert rows
    for row in rows[:4]:
        sentence = SourceSentence(0, "en", row["source"])
        (*_, translated) = model.stream(TranslationRequest(sentence, "zh", draft=True))
        assert translated.text == row["text"]
        (*_, final) = model.stream(TranslationRequest(sentence, "zh"))
        assert final.text == model.tokenizer.decode(row["beam_4_ids"])


def test_drafts_are_not_cached(tmp_path):
    model = MarianModel.load(make_model_dir(tmp_path, "merged"))
    list(
        model.stream(TranslationRequest(SourceSentence(0, "en", golden("tiny-marian")[0]["source"]), "zh", draft=True))
    )
    assert len(model.cache) == 0


def test_two_models_in_sequence_translate_a_draft():
    to_zh, to_en = (MarianModel.load(SHIPPED_TRANSLATORS[f"demo-{pair}"]) for pair in ("en-zh", "zh-en"))
    both = PivotTranslator(to_zh, to_en, "zh")
    for text in ("The meeting", "The meeting is on", "The meeting is on Thursday at two."):
        (*_, found) = both.stream(TranslationRequest(SourceSentence(0, "en", text), "en", draft=True))
        (*_, expected) = both.stream(TranslationRequest(SourceSentence(0, "en", text), "en"))
        assert found.text == expected.text
