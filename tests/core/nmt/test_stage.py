"""The NMT stage: takes the text of sentences from a queue and puts their translation on a queue, token by token."""

import asyncio
import contextlib
import json
import math
import queue
import threading
import time
from dataclasses import replace

import pytest

from pipeline import EndOfInput, MarianModel, NmtStage, PipelineEvent
from pipeline.backends.marian.decode.decoder import Decoder, DecoderState
from pipeline.backends.marian.search.sentence_text import SentenceCache, translated
from pipeline.backends.nmt_options import NmtConfig
from pipeline.core.nmt.draft_tokens import Token
from pipeline.core.nmt.stage import NmtContext, Text
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.core.run.worker import Worker
from pipeline.errors import ModelError, UsageError
from pipeline.events import Confidence, SourceSentence, SourceText, TargetText, Translation
from pipeline.languages import spaced
from tests.conftest import HANG_S, golden, make_model_dir, tiny_with


@pytest.fixture
def model(tmp_path):
    return MarianModel.load(make_model_dir(tmp_path / "model", "merged"))


def sentence(text, number=0):
    return SourceSentence(number, "en", text, start_s=10.0, end_s=14.0, heard_s=15.0 + number)


def run(model, items, *, drafts=False):
    async def work():
        inbox, outbox = asyncio.Queue[Text | EndOfInput](), asyncio.Queue[PipelineEvent]()
        for item in items:
            inbox.put_nowait(item)
        inbox.put_nowait(EndOfInput(20.0))
        await NmtStage(model, inbox, outbox, target="zh", context=NmtContext(lambda: drafts)).run()
        return [outbox.get_nowait() for _ in range(outbox.qsize())]

    return asyncio.run(work())


def texts_of(events):
    return [event for event in events if isinstance(event, TargetText)]


def tokens_of(events):
    """The ids of the last translation."""
    return [token.id for token in texts_of(events)[-1].tokens]


def translations_of(events):
    return [event for event in events if isinstance(event, Translation)]


def test_each_token_adds_to_the_text_until_it_is_the_translation(model):
    row = golden("tiny-marian")[0]
    *found, translation, last = run(model, [sentence(row["source"], 3)])
    assert last == EndOfInput(20.0)
    texts, tokens = texts_of(found), texts_of(found)[-1].tokens
    assert texts == found
    assert [token.id for token in tokens] == row["target_ids"]
    assert [each.tokens for each in texts] == [tokens[:count] for count in range(1, len(tokens) + 1)]
    assert [each.text for each in texts] == [row["text"][: token.end] for token in tokens]
    assert [each.complete for each in texts] == [False] * (len(texts) - 1) + [True]
    assert [each.steady for each in texts] == [0] * (len(texts) - 1) + [len(row["text"])]
    assert all(token.log_probability <= 0 for token in tokens)
    assert {(event.sentence, event.language, event.heard_s) for event in (*texts, translation)} == {(3, "zh", 18.0)}
    assert translation.text == texts[-1].text == row["text"]


def test_text_of_two_sentences_is_translated_in_parts_as_one_translation(model):
    rows = [row for row in golden("tiny-marian") if row["source"].endswith("?")][:2]
    events = run(model, [sentence(" ".join(row["source"] for row in rows))])
    assert tokens_of(events) == rows[0]["target_ids"] + rows[1]["target_ids"]
    assert [translation.text for translation in translations_of(events)] == ["".join(row["text"] for row in rows)]
    assert [each.complete for each in texts_of(events)].count(True) == 1


def test_sentences_are_translated_in_order_and_each_is_marked_as_finished(model):
    rows = golden("tiny-marian")[:3]
    events = run(model, [sentence(row["source"], number) for number, row in enumerate(rows)])
    assert [(each.sentence, each.text) for each in translations_of(events)] == [
        (number, row["text"]) for number, row in enumerate(rows)
    ]
    assert [event.sentence for event in events[:-1]] == sorted(event.sentence for event in events[:-1])


async def test_a_sentence_comes_with_those_before_it_in_its_language_that_were_translated_whole():
    class Asked:
        """Translates into the same, and notes what it is asked for."""

        def __init__(self):
            self.requests = []

        def stream(self, request):
            self.requests.append(request)
            number, text = request.sentence.sentence, request.sentence.text
            yield TargetText(number, "zh", text, complete=True)
            yield Translation(number, "zh", text, truncated=text == "Cut.", doubtful=text == "Doubted.")

    model, outbox = Asked(), asyncio.Queue[PipelineEvent]()
    stage = NmtStage(model, asyncio.Queue[Text | EndOfInput](), outbox, target="zh", context=NmtContext(lambda: True))
    with contextlib.closing(Worker("NMT")) as worker:
        for number, text in enumerate(["One.", "Cut.", "Doubted.", "Two."]):
            await stage.translate(sentence(text, number), worker)
        await stage.translate(replace(sentence("Drei.", 4), language="de"), worker)
        await stage._take(SourceText(5, "en", "Four.", steady=5))  # in a pause
        await stage.translate(stage._next_draft(), worker, final=False)
        await stage.translate(sentence("Four.", 5), worker)
    one, two = ("One.", "One."), ("Two.", "Two.")
    before = [(), (one,), (one,), (one,), (), (one, two), (one, two)]
    assert [request.before for request in model.requests] == before
    assert [request.remote for request in model.requests] == [True] * 5 + [False, True]


def test_the_target_is_by_default_the_language_that_the_models_files_name(tmp_path):
    first, second = [row for row in golden("tiny-marian") if row["source"].endswith("?")][:2]
    for language, between in (("zho", ""), ("eng", " ")):
        folder = tiny_with(tmp_path / language, "tokenizer_config.json", {"target_lang": language})
        found = MarianModel.load(folder).stream(TranslationRequest(sentence(f"{first['source']} {second['source']}")))
        assert translated(found) == first["text"] + between + second["text"]


def test_a_bilingual_model_rejects_other_languages(model):
    with pytest.raises(UsageError, match="does not translate into 'de'; it translates only into 'zh'"):
        model.translate("Hello.", target="de")
    with pytest.raises(UsageError, match="does not translate into 'de'"):
        next(model.stream(TranslationRequest(sentence("Hello."), "de")))
    with pytest.raises(UsageError, match="does not translate from 'fr'; it translates only from 'en'"):
        model.translate("Hello.", source="fr")
    assert model.translate("Hello.", source="eng", target="zh-CN") == model.translate("Hello.")


def test_a_number_of_beams_below_one_is_rejected(model):
    with pytest.raises(UsageError, match="beams is 0; expected at least 1"):
        next(model.stream(TranslationRequest(sentence("Hello."), "zh", beams=0)))


def test_blank_text_and_the_target_language_itself_have_no_tokens(model):
    spoken = SourceSentence(1, "zh", "谢谢。")
    events = run(model, [sentence("  ", 0), spoken, sentence("Thank you.", 2)])
    assert events[0] == Translation(0, "zh", "", heard_s=15.0)
    assert {event.sentence for event in events[1:-1]} == {2}


def parts_of(model, text, monkeypatch):
    """The parts in which ``model`` translates ``text``, and the translation of each by itself."""
    encoded: dict[tuple[int, ...], str] = {}
    encode = model.tokenizer.encode

    def spied(part, code=None):
        ids = encode(part, code)
        encoded[tuple(ids)] = part
        return ids

    with monkeypatch.context() as patch:
        patch.setattr(model.tokenizer, "encode", spied)
        sources = model.sources(text, "en", None)
    assert all(len(source) <= model.max_source_tokens for source in sources)
    return [(encoded[source], model.translate(encoded[source])) for source in sources]


def test_a_long_text_is_translated_whole(model, monkeypatch):
    text = ("The train to London leaves at nine o'clock and " * 60).strip()
    parts = parts_of(model, text, monkeypatch)
    assert len(parts) > 2
    assert " ".join(part for part, _ in parts) == text
    (translation,) = translations_of(run(model, [sentence(text)]))
    assert translation.text == "".join(alone for _, alone in parts)


@pytest.mark.parametrize("text", ["\ud800", "\x00\x01", "😀😀😀", "。。。", "a", "x" * 5000, "ＡＢＣ １２３", "\u200b"])
def test_decoding_of_unusual_text_terminates(model, text):
    events = run(model, [sentence(text), sentence("Where is the bank?", 1)])
    assert isinstance(events[-1], EndOfInput)
    assert [each.sentence for each in translations_of(events)] == [0, 1]


@pytest.mark.parametrize(
    ("text", "read"),
    [("\u200b", ""), ("\x07", ""), ("Thank you. \u200b", "Thank you."), ("\ufeffThank you.", "Thank you.")],
)
def test_invisible_text_is_not_translated(text, read, model):
    events = run(model, [sentence(text)])
    assert [each.complete for each in texts_of(events)].count(True) == (1 if read else 0)
    (translation,) = translations_of(events)
    assert translation.text == (model.translate(read) if read else "")
    assert (translation.confidence is None) == (not read)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["x" * 100_000, "很" * 100_000, "on and on, " * 9_000, "one two " * 12_500])
def test_a_hundred_thousand_characters_are_all_translated(text, tmp_path, monkeypatch):
    model = MarianModel.load(make_model_dir(tmp_path / "model", "merged"), NmtConfig(max_tokens=2))
    parts = parts_of(model, text, monkeypatch)
    read = "".join("".join(part for part, _ in parts).split())
    assert read.lower() == "".join(text.split())  # it begins with a capital
    (translation,) = translations_of(run(model, [sentence(text)]))
    assert translation.text == "".join(alone for _, alone in parts)


async def test_a_full_outbox_holds_the_translation_back(model):
    inbox, outbox = asyncio.Queue[Text | EndOfInput](), asyncio.Queue[PipelineEvent](1)
    inbox.put_nowait(sentence(golden("tiny-marian")[0]["source"]))
    inbox.put_nowait(EndOfInput())
    stage = NmtStage(model, inbox, outbox)
    task = asyncio.create_task(stage.run())
    events = [await outbox.get()]
    while not outbox.full():
        await asyncio.sleep(0)
    assert stage.stats.tokens <= 2
    while not isinstance(events[-1], EndOfInput):
        events.append(await outbox.get())
    await task
    assert len(events) == len(golden("tiny-marian")[0]["target_ids"]) + 2


@pytest.fixture
def begun(model, monkeypatch):
    """The states of all sentences that ``model`` begins to decode."""
    states, encode = queue.SimpleQueue[DecoderState](), model.decoder.encode

    def spied(source, on_start=None):
        def started(state):
            if on_start is not None:
                on_start(state)
            states.put(state)

        return encode(source, started)

    monkeypatch.setattr(model.decoder, "encode", spied)
    return states


async def test_cancelling_stops_and_leaves_the_model_usable(model, begun):
    row = golden("tiny-marian")[0]

    inbox, outbox = asyncio.Queue[Text | EndOfInput](), asyncio.Queue[PipelineEvent]()
    inbox.put_nowait(sentence(row["source"]))
    stage = NmtStage(model, inbox, outbox)
    task = asyncio.create_task(stage.run())
    await outbox.get()  # its first token
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert stage.stats.tokens < len(row["target_ids"])
    assert begun.get(timeout=HANG_S).options.terminate
    assert model.translate(row["source"]) == row["text"]


def test_codes_of_three_letters_are_those_of_the_recogniser(tmp_path):
    assert not spaced("tha")
    assert not spaced("zho")
    model = MarianModel.load(tiny_with(tmp_path, "tokenizer_config.json", {"source_lang": "eng", "target_lang": "swe"}))
    model.check_languages("en", "sv")
    with pytest.raises(UsageError, match="into sv, not into zh"):
        model.check_languages("en", "zh")


def test_a_sentence_that_reaches_the_limit_is_marked(model):
    text = golden("tiny-marian")[0]["source"]
    assert [each.truncated for each in translations_of(run(model, [sentence(text)]))] == [False]
    model.generation = replace(model.generation, max_tokens=3)
    model.cache = SentenceCache(0)
    for limited in (text, f"Thank you. {text}", f"{text} Thank you."):
        assert [each.truncated for each in translations_of(run(model, [sentence(limited)]))] == [True]


def test_a_vocabulary_of_another_model_is_refused(tmp_path):
    folder = tiny_with(tmp_path, "vocab.json", '{"</s>": 0, "<unk>": 1, "<pad>": 2}')
    with pytest.raises(ModelError, match="the vocabulary has 3 entries, the decoder scores 878"):
        MarianModel.load(folder)


def test_a_wrong_vocabulary_that_only_a_run_reveals_is_rejected(tmp_path):
    """A compiled graph declares fewer scores than there are ids: only ids that can occur in a target sentence."""
    folder = tiny_with(tmp_path, "vocab.json", {"another": 878}, "streaming")
    with pytest.raises(ModelError, match="the vocabulary has 879 entries, the decoder scores 878"):
        MarianModel.load(folder)


def test_generation_config_overrides_config(tmp_path):
    """As in transformers. A null in generation_config.json also overrides config.json."""
    row = golden("tiny-marian")[0]
    found = []
    for name, content in (
        ("null", '{"forced_eos_token_id": null, "max_length": 4}'),
        ("left out", '{"max_length": 4}'),
    ):
        folder = tiny_with(tmp_path / name, "generation_config.json", content)
        generation = MarianModel.load(folder).generation
        assert (generation.forced_end_token, generation.end_token, generation.start_token) == (None, 0, 877)
        found.append(tokens_of(MarianModel.load(folder).stream(TranslationRequest(sentence(row["source"]), "zh"))))
    assert found == [row["target_ids"][:3]] * 2
    folder = make_model_dir(tmp_path / "none", "merged", leave_out="generation_config.json")
    assert MarianModel.load(folder).generation.forced_end_token == 0


def test_a_sentence_can_end_if_the_end_token_is_a_bad_word(tmp_path):
    folder = tiny_with(tmp_path, "generation_config.json", '{"bad_words_ids": [[877], [0]]}')
    row = golden("tiny-marian")[0]
    assert MarianModel.load(folder).translate(row["source"]) == row["text"]


def test_a_sentence_can_end_if_the_end_token_is_also_the_pad_token(tmp_path):
    """In compiled graphs too. transformers masks neither of the two."""
    for name, layout in (("exported", "merged"), ("compiled", "streaming")):
        settings = '{"pad_token_id": 0, "decoder_start_token_id": 877, "bad_words_ids": [[877]]}'
        folder = tiny_with(tmp_path / name, "generation_config.json", settings, layout)
        row = golden("tiny-marian")[0]
        assert MarianModel.load(folder).translate(row["source"]) == row["text"]


def test_max_new_tokens_is_honoured_and_unsupported_settings_are_logged(tmp_path, caplog):
    settings = {"max_new_tokens": 3, "forced_eos_token_id": [0], "min_new_tokens": 0, "sequence_bias": [[[3], -20.0]]}
    folder = tiny_with(tmp_path, "generation_config.json", json.dumps(settings))
    model, row = MarianModel.load(folder), golden("tiny-marian")[0]
    assert tokens_of(model.stream(TranslationRequest(sentence(row["source"]), "zh"))) == [*row["target_ids"][:2], 0]
    assert "not supported and ignored: sequence_bias" in caplog.text


def test_a_separate_vocabulary_must_exist_if_the_tokenizer_requires_it(tmp_path):
    folder = tiny_with(tmp_path, "tokenizer_config.json", '{"separate_vocabs": true}')
    with pytest.raises(ModelError, match="lacks target_vocab.json, which its tokenizer_config.json requires"):
        MarianModel.load(folder)


def test_the_check_run_uses_the_source_end_token(tmp_path, monkeypatch):
    """The target's end token may be outside a separate source vocabulary."""
    folder = tiny_with(tmp_path, "generation_config.json", '{"eos_token_id": 5}')
    sources = []
    encode = Decoder.encode
    monkeypatch.setattr(Decoder, "encode", lambda self, source, *more: sources.append(source) or encode(self, source))
    assert MarianModel.load(folder).generation.end_token == 5
    assert sources == [[0]]


def test_in_a_spaced_language_no_space_comes_before_the_first_text(model, monkeypatch):
    """Even if the translation of the first sentence is empty."""
    monkeypatch.setattr(model, "languages", (None, None))
    rows = [row for row in golden("tiny-marian") if row["source"].endswith("?")][:2]
    model.cache.put(tuple(rows[0]["source_ids"]), (Token(0, -0.1, last=True),))
    found = model.stream(TranslationRequest(sentence(" ".join(row["source"] for row in rows)), "de"))
    assert translated(found) == rows[1]["text"]


def test_no_translation_is_longer_than_the_models_positions(tmp_path):
    folder = tiny_with(tmp_path, "config.json", {"max_position_embeddings": 9})
    assert MarianModel.load(folder, NmtConfig(max_tokens=100)).generation.max_tokens == 9


@pytest.mark.parametrize(
    ("target", "space"), [("zh", ""), ("yue_Hant", ""), ("wuu", ""), ("ja", ""), ("de", " "), ("th", " "), ("mya", " ")]
)
def test_sentences_are_set_apart_as_the_language_does(target, space, model, monkeypatch):
    monkeypatch.setattr(model, "languages", (None, None))
    rows = [row for row in golden("tiny-marian") if row["source"].endswith("?")][:2]
    found = model.stream(TranslationRequest(sentence(" ".join(row["source"] for row in rows)), target))
    assert translated(found) == space.join(row["text"] for row in rows)


def test_confidence_is_that_of_all_tokens_of_the_translation(model):
    rows = [row for row in golden("tiny-marian") if row["source"].endswith("?")][:2]
    events = run(model, [sentence(" ".join(row["source"] for row in rows)), sentence(rows[0]["source"], 1)])
    for translation in translations_of(events):
        shown = [each for each in texts_of(events) if each.sentence == translation.sentence][-1]
        own = [token.log_probability for token in shown.tokens]
        assert translation.confidence == Confidence(sum(own) / len(own), min(own))
        assert translation.confidence.perplexity == pytest.approx(math.exp(-sum(own) / len(own)))


def test_the_most_recently_used_sentences_are_kept():
    cache = SentenceCache(2)
    for source in ((1,), (2,)):
        cache.put(source, ())
    assert cache.get((1,)) == ()
    cache.put((3,), ())
    assert [cache.get(source) for source in ((1,), (2,), (3,))] == [(), None, ()]


def test_a_repeated_sentence_is_translated_once(tmp_path):
    model = MarianModel.load(make_model_dir(tmp_path / "model", "merged"), NmtConfig(cached_sentences=2))
    first = run(model, [sentence("Where is the bank?", 0)])
    again = run(model, [sentence("Where is the bank?", 0)])
    assert again == first
    assert model.cache.hits == 1
    for text in ("Where is the hotel?", "Where is the park?", "Where is the museum?"):
        model.translate(text)
    assert len(model.cache) == 2
    model.translate("Where is the bank?")
    assert model.cache.hits == 1  # it had been evicted


def test_a_time_limit_ends_a_sentence_and_marks_it(tmp_path):
    folder = make_model_dir(tmp_path / "model", "merged")
    row = golden("tiny-marian")[0]
    limited = MarianModel.load(folder, NmtConfig(time_limit_s=1e-9))
    for _ in range(2):  # truncated translations are not cached
        text, translation, _ = found = run(limited, [sentence(row["source"])])
        assert (tokens_of(found), text.complete, translation.truncated) == (row["target_ids"][:1], True, True)
    assert len(limited.cache) == 0
    assert len(MarianModel.load(folder, NmtConfig(time_limit_s=3600)).translate(row["source"])) == len(row["text"])


def test_a_slow_consumer_does_not_use_up_the_time_limit(tmp_path, monkeypatch):
    model = MarianModel.load(make_model_dir(tmp_path / "model", "merged"), NmtConfig(time_limit_s=60))
    row = golden("tiny-marian")[0]
    events = model.stream(TranslationRequest(sentence(row["source"]), "zh"))
    next(events)
    hour_later = time.monotonic() + 3600
    monkeypatch.setattr("pipeline.backends.marian.decode.generation.time.monotonic", lambda: hour_later)
    assert translated(events) == row["text"]


async def test_a_cancel_before_the_first_run_stops_it(model, begun):
    """If the stage is cancelled before the worker creates the sentence's state, the state is terminated on creation."""
    asked, cancelled = threading.Event(), threading.Event()

    class Held:
        def stream(self, request):
            asked.set()
            cancelled.wait()
            return model.stream(request)

    inbox, outbox = asyncio.Queue[Text | EndOfInput](), asyncio.Queue[PipelineEvent]()
    inbox.put_nowait(sentence(golden("tiny-marian")[0]["source"]))
    task = asyncio.create_task(NmtStage(Held(), inbox, outbox).run())
    await asyncio.to_thread(asked.wait)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    cancelled.set()
    assert outbox.empty()
    assert begun.get(timeout=HANG_S).options.terminate
    assert model.translate("Where is the bank?")
