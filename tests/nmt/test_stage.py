"""The NMT stage: takes transcripts from a queue and puts one delta per token on a queue."""

from __future__ import annotations

import asyncio
import json
import math
import queue
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline import Delta, EndOfInput, MarianModel, NmtStage, PipelineEvent, Transcript
from pipeline.errors import ModelError, UsageError
from pipeline.events import Confidence
from pipeline.languages import TWO_LETTERS, spaced, two_letters
from pipeline.nmt.cache import SentenceCache
from pipeline.nmt.decoder import Decoder, DecoderState
from pipeline.nmt.search import OnStart, Token
from pipeline.run.overload import LoadControl, OverloadOptions
from tests.conftest import HANG_S, ROOT, TINY, golden, make_model_dir


@pytest.fixture
def model(tmp_path: Path) -> MarianModel:
    return MarianModel.load(make_model_dir(tmp_path / "model", "merged"))


def transcript(text: str, number: int = 0, rejected: str | None = None) -> Transcript:
    return Transcript(number, start_s=10.0, end_s=14.0, text=text, language="en", rejected=rejected)


def run(model: MarianModel, transcripts: list[Transcript]) -> list[PipelineEvent]:
    async def work() -> list[PipelineEvent]:
        inbox: asyncio.Queue[Transcript | EndOfInput] = asyncio.Queue()
        outbox: asyncio.Queue[PipelineEvent] = asyncio.Queue()
        for item in transcripts:
            inbox.put_nowait(item)
        inbox.put_nowait(EndOfInput(20.0))
        await NmtStage(model, inbox, outbox).run()
        return [outbox.get_nowait() for _ in range(outbox.qsize())]

    return asyncio.run(work())


def test_there_is_one_delta_per_token_and_joined_they_are_the_translation(model: MarianModel) -> None:
    row = golden("tiny-marian")[0]
    first, *deltas, last = run(model, [transcript(row["source"])])
    assert first == transcript(row["source"])
    assert last == EndOfInput(20.0)
    assert all(isinstance(delta, Delta) for delta in deltas)
    assert [delta.token for delta in deltas] == row["target_ids"]
    assert "".join(delta.text for delta in deltas) == row["text"]
    assert [delta.final for delta in deltas] == [False] * (len(deltas) - 1) + [True]
    assert all(delta.log_probability <= 0 for delta in deltas)


def test_a_segment_of_two_sentences_is_translated_sentence_by_sentence(model: MarianModel) -> None:
    rows = [row for row in golden("tiny-marian") if row["source"].endswith("?")][:2]
    deltas = [e for e in run(model, [transcript(" ".join(row["source"] for row in rows))]) if isinstance(e, Delta)]
    for index, row in enumerate(rows):
        of_sentence = [delta for delta in deltas if delta.sentence == index]
        assert "".join(delta.text for delta in of_sentence) == row["text"]
        assert of_sentence[-1].end_of_sentence
        assert {delta.source for delta in of_sentence} == {row["source"]}
    assert deltas[0].start_s == 10.0
    assert deltas[-1].end_s == pytest.approx(14.0)
    assert deltas[0].end_s == deltas[-1].start_s
    assert [delta.final for delta in deltas].count(True) == 1


def test_the_target_is_by_default_the_language_that_the_models_files_name(tmp_path: Path) -> None:
    first, second = [row for row in golden("tiny-marian") if row["source"].endswith("?")][:2]
    names = json.loads((TINY / "tokenizer_config.json").read_text())
    for language, between in (("zho", ""), ("eng", " ")):
        folder = make_model_dir(tmp_path / language, "merged", leave_out="tokenizer_config.json")
        (folder / "tokenizer_config.json").write_text(json.dumps(names | {"target_lang": language}))
        events = run(MarianModel.load(folder), [transcript(f"{first['source']} {second['source']}")])
        text = "".join(event.text for event in events if isinstance(event, Delta))
        assert text == first["text"] + between + second["text"]


def test_a_bilingual_model_rejects_other_languages(model: MarianModel) -> None:
    with pytest.raises(UsageError, match="does not translate into 'de'; it translates only into 'zh'"):
        model.translate("Hello.", target="de")
    with pytest.raises(UsageError, match="does not translate into 'de'"):
        next(model.stream(transcript("Hello."), "de"))
    with pytest.raises(UsageError, match="does not translate from 'fr'; it translates only from 'en'"):
        model.translate("Hello.", source="fr")
    assert model.translate("Hello.", source="eng", target="zh-CN") == model.translate("Hello.")


@pytest.mark.parametrize(
    "wrong", [{"beams": 0}, {"beams": -1}, {"max_tokens": 0}, {"cached_sentences": -1}, {"time_limit_s": -1.0}]
)
def test_invalid_numbers_are_rejected(wrong: dict[str, Any], model: MarianModel) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(UsageError, match=rf"^{name} is {value}; expected at least [01]$"):
        MarianModel.load(TINY, **wrong)
    with pytest.raises(UsageError, match="beams is 0; expected at least 1"):
        next(model.stream(transcript("Hello."), "zh", beams=0))


def test_rejected_and_blank_transcripts_pass_untranslated(model: MarianModel) -> None:
    items = [transcript("Thank you.", 0, rejected="silence"), transcript("  ", 1), transcript("Thank you.", 2)]
    events = run(model, items)
    assert {event.segment_id for event in events if isinstance(event, Delta)} == {2}
    assert [event for event in events if isinstance(event, Transcript)] == items


def test_a_long_text_is_translated_whole(model: MarianModel) -> None:
    sentence = "The train to London leaves at nine o'clock and "
    deltas = [event for event in run(model, [transcript(sentence * 60)]) if isinstance(event, Delta)]
    assert deltas[-1].sentence >= 2
    assert " ".join({delta.sentence: delta.source for delta in deltas}.values()) == (sentence * 60).strip()


@pytest.mark.parametrize("text", ["\ud800", "\x00\x01", "😀😀😀", "。。。", "a", "x" * 5000, "ＡＢＣ １２３", "\u200b"])
def test_decoding_of_unusual_text_terminates(model: MarianModel, text: str) -> None:
    events = run(model, [transcript(text), transcript("Where is the bank?", 1)])
    assert isinstance(events[-1], EndOfInput)
    assert any(isinstance(event, Delta) and event.segment_id == 1 and event.final for event in events)


@pytest.mark.parametrize(
    ("text", "count"), [("\u200b", 0), ("\x07", 0), ("Thank you. \u200b", 1), ("\ufeffThank you.", 1)]
)
def test_invisible_text_is_not_translated(text: str, count: int, model: MarianModel) -> None:
    deltas = [event for event in run(model, [transcript(text)]) if isinstance(event, Delta)]
    assert len({delta.sentence for delta in deltas}) == sum(delta.final for delta in deltas) == count


@pytest.mark.parametrize("text", ["x" * 100_000, "很" * 100_000, "on and on, " * 9_000, "one two " * 12_500])
def test_a_hundred_thousand_characters_are_all_translated(text: str, tmp_path: Path) -> None:
    model = MarianModel.load(make_model_dir(tmp_path / "model", "merged"), max_tokens=2)
    sources = {d.sentence: d.source for d in run(model, [transcript(text)]) if isinstance(d, Delta)}
    assert "".join("".join(sources.values()).split()) == "".join(text.split())
    assert all(len(model.tokenizer.encode(source)) <= model.max_source_tokens for source in sources.values())


def test_a_full_outbox_holds_the_translation_back(model: MarianModel) -> None:
    async def work() -> None:
        inbox: asyncio.Queue[Transcript | EndOfInput] = asyncio.Queue()
        outbox: asyncio.Queue[PipelineEvent] = asyncio.Queue(1)
        inbox.put_nowait(transcript(golden("tiny-marian")[0]["source"]))
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

    asyncio.run(work())


@pytest.fixture
def begun(model: MarianModel, monkeypatch: pytest.MonkeyPatch) -> queue.SimpleQueue[DecoderState]:
    """The states of all sentences that ``model`` begins to decode."""
    states, encode = queue.SimpleQueue[DecoderState](), model.decoder.encode

    def spied(source: list[int], on_start: OnStart | None = None) -> DecoderState:
        def started(state: DecoderState) -> None:
            if on_start is not None:
                on_start(state)
            states.put(state)

        return encode(source, started)

    monkeypatch.setattr(model.decoder, "encode", spied)
    return states


def test_cancelling_stops_and_leaves_the_model_usable(
    model: MarianModel, begun: queue.SimpleQueue[DecoderState]
) -> None:
    row = golden("tiny-marian")[0]

    async def work() -> None:
        inbox: asyncio.Queue[Transcript | EndOfInput] = asyncio.Queue()
        outbox: asyncio.Queue[PipelineEvent] = asyncio.Queue()
        inbox.put_nowait(transcript(row["source"]))
        stage = NmtStage(model, inbox, outbox)
        task = asyncio.create_task(stage.run())
        await outbox.get()
        await outbox.get()  # its first token
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        assert stage.stats.tokens < len(row["target_ids"])

    asyncio.run(work())
    assert begun.get(timeout=HANG_S).options.terminate
    assert model.translate(row["source"]) == row["text"]


def test_codes_of_three_letters_are_those_of_the_recogniser(tmp_path: Path) -> None:
    from faster_whisper.tokenizer import _LANGUAGE_CODES

    # "jw" is Whisper's own code for Javanese; the other two languages have no two-letter code.
    assert set(_LANGUAGE_CODES) - set(TWO_LETTERS.values()) == {"jw", "haw", "yue"}
    assert not spaced("tha")
    assert not spaced("zho")
    swedish = make_model_dir(tmp_path / "swedish", "merged", leave_out="tokenizer_config.json")
    names = json.loads((TINY / "tokenizer_config.json").read_text())
    (swedish / "tokenizer_config.json").write_text(json.dumps(names | {"source_lang": "eng", "target_lang": "swe"}))
    model = MarianModel.load(swedish)
    model.check_languages("en", "sv")
    with pytest.raises(UsageError, match="into sv, not into zh"):
        model.check_languages("en", "zh")


def test_the_model_says_which_languages_it_does(model: MarianModel) -> None:
    model.check_languages("en", "zh")
    with pytest.raises(UsageError, match="from en into zh, not into de"):
        model.check_languages("en", "de")
    with pytest.raises(UsageError, match="not from fr"):
        model.check_languages("fr", "zh")


def test_a_sentence_that_reaches_the_limit_is_marked(tmp_path: Path) -> None:
    model = MarianModel.load(make_model_dir(tmp_path / "model", "merged"), max_tokens=3)
    deltas = [e for e in run(model, [transcript(golden("tiny-marian")[0]["source"])]) if isinstance(e, Delta)]
    assert [delta.truncated for delta in deltas] == [False, False, True]


def test_a_vocabulary_of_another_model_is_refused(tmp_path: Path) -> None:
    folder = make_model_dir(tmp_path / "model", "merged", leave_out="vocab.json")
    (folder / "vocab.json").write_text('{"</s>": 0, "<unk>": 1, "<pad>": 2}')
    with pytest.raises(ModelError, match="the vocabulary has 3 entries, the decoder scores 878"):
        MarianModel.load(folder)


def test_a_wrong_vocabulary_that_only_a_run_reveals_is_rejected(tmp_path: Path) -> None:
    """A compiled graph declares fewer scores than there are ids: only ids that can occur in a target sentence."""
    folder = make_model_dir(tmp_path / "model", "streaming", leave_out="vocab.json")
    table = json.loads((TINY / "vocab.json").read_text("utf-8"))
    (folder / "vocab.json").write_text(json.dumps(table | {"another": len(table)}))
    with pytest.raises(ModelError, match="the vocabulary has 879 entries, the decoder scores 878"):
        MarianModel.load(folder)


def test_generation_config_overrides_config(tmp_path: Path) -> None:
    """As in transformers. A null in generation_config.json also overrides config.json."""
    row = golden("tiny-marian")[0]
    found = []
    for name, content in (
        ("null", '{"forced_eos_token_id": null, "max_length": 4}'),
        ("left out", '{"max_length": 4}'),
    ):
        folder = make_model_dir(tmp_path / name, "merged", leave_out="generation_config.json")
        (folder / "generation_config.json").write_text(content)
        generation = MarianModel.load(folder).generation
        assert (generation.forced_end_token, generation.end_token, generation.start_token) == (None, 0, 877)
        source = transcript(row["source"])
        found.append([d.token for d in MarianModel.load(folder).stream(source, "zh")])
    assert found == [row["target_ids"][:3]] * 2
    folder = make_model_dir(tmp_path / "none", "merged", leave_out="generation_config.json")
    assert MarianModel.load(folder).generation.forced_end_token == 0


def test_a_sentence_can_end_if_the_end_token_is_a_bad_word(tmp_path: Path) -> None:
    folder = make_model_dir(tmp_path / "model", "merged", leave_out="generation_config.json")
    (folder / "generation_config.json").write_text('{"bad_words_ids": [[877], [0]]}')
    row = golden("tiny-marian")[0]
    assert MarianModel.load(folder).translate(row["source"]) == row["text"]


def test_a_sentence_can_end_if_the_end_token_is_also_the_pad_token(tmp_path: Path) -> None:
    """In compiled graphs too. transformers masks neither of the two."""
    for name, layout in (("exported", "merged"), ("compiled", "streaming")):
        folder = make_model_dir(tmp_path / name, layout, leave_out="generation_config.json")
        settings = {"pad_token_id": 0, "decoder_start_token_id": 877, "bad_words_ids": [[877]]}
        (folder / "generation_config.json").write_text(json.dumps(settings))
        row = golden("tiny-marian")[0]
        assert MarianModel.load(folder).translate(row["source"]) == row["text"]


def test_max_new_tokens_is_honoured_and_unsupported_settings_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = make_model_dir(tmp_path / "model", "merged", leave_out="generation_config.json")
    settings = {"max_new_tokens": 3, "forced_eos_token_id": [0], "min_new_tokens": 0, "sequence_bias": [[[3], -20.0]]}
    (folder / "generation_config.json").write_text(json.dumps(settings))
    model, row = MarianModel.load(folder), golden("tiny-marian")[0]
    assert [d.token for d in model.stream(transcript(row["source"]), "zh")] == [*row["target_ids"][:2], 0]
    assert "not supported and ignored: sequence_bias" in caplog.text


def test_a_separate_vocabulary_must_exist_if_the_tokenizer_requires_it(tmp_path: Path) -> None:
    folder = make_model_dir(tmp_path / "model", "merged", leave_out="tokenizer_config.json")
    (folder / "tokenizer_config.json").write_text('{"separate_vocabs": true}')
    with pytest.raises(ModelError, match="lacks target_vocab.json, which its tokenizer_config.json requires"):
        MarianModel.load(folder)


@pytest.mark.parametrize("source", ["en_el_es_fi", "fi_nb_no_nn_ru_sv_en"])
def test_a_model_of_several_source_languages_is_not_taken_for_the_first(source: str) -> None:
    assert two_letters(source) is None
    assert (two_letters("zho_Hans"), two_letters("pt_BR"), two_letters("eng")) == ("zh", "pt", "en")


def test_the_check_run_uses_the_source_end_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The target's end token may be outside a separate source vocabulary."""
    folder = make_model_dir(tmp_path / "model", "merged", leave_out="generation_config.json")
    (folder / "generation_config.json").write_text('{"eos_token_id": 5}')
    sources = []
    encode = Decoder.encode
    monkeypatch.setattr(Decoder, "encode", lambda self, source, *more: sources.append(source) or encode(self, source))
    assert MarianModel.load(folder).generation.end_token == 5
    assert sources == [[0]]


def test_in_a_spaced_language_no_space_comes_before_the_first_text(
    model: MarianModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the translation of the first sentence is empty."""
    monkeypatch.setattr(model, "languages", (None, None))
    rows = [row for row in golden("tiny-marian") if row["source"].endswith("?")][:2]
    model.cache.put(tuple(rows[0]["source_ids"]), (Token(0, -0.1, last=True),))
    deltas = model.stream(transcript(" ".join(row["source"] for row in rows)), "de")
    assert "".join(delta.text for delta in deltas) == rows[1]["text"]


def test_no_translation_is_longer_than_the_models_positions(tmp_path: Path) -> None:
    folder = make_model_dir(tmp_path / "model", "merged", leave_out="config.json")
    config = json.loads((TINY / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 9}))
    assert MarianModel.load(folder, max_tokens=100).generation.max_tokens == 9


@pytest.mark.parametrize(
    ("target", "space"), [("zh", ""), ("yue_Hant", ""), ("wuu", ""), ("ja", ""), ("de", " "), ("th", " "), ("mya", " ")]
)
def test_sentences_are_set_apart_as_the_language_does(
    target: str, space: str, model: MarianModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "languages", (None, None))
    rows = [row for row in golden("tiny-marian") if row["source"].endswith("?")][:2]
    deltas = model.stream(transcript(" ".join(row["source"] for row in rows)), target)
    assert "".join(delta.text for delta in deltas) == space.join(row["text"] for row in rows)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", "{"),
        ("config.json", "[]"),
        ("config.json", '{"max_position_embeddings": "many"}'),
        ("generation_config.json", '{"bad_words_ids": [["a"]]}'),
        ("generation_config.json", '{"bad_words_ids": 7}'),
        ("generation_config.json", '{"pad_token_id": -3}'),
        ("generation_config.json", '{"pad_token_id": 99999}'),
        ("generation_config.json", '{"decoder_start_token_id": 878}'),
        ("generation_config.json", '{"forced_eos_token_id": "x"}'),
        ("generation_config.json", '{"length_penalty": "long"}'),
        ("generation_config.json", '{"early_stopping": 3}'),
    ],
)
def test_damaged_settings_are_named(name: str, content: str, tmp_path: Path) -> None:
    folder = make_model_dir(tmp_path / "model", "merged", leave_out=name)
    (folder / name).write_text(content)
    with pytest.raises(ModelError, match=r"config\.json|max_position_embeddings|_token_id"):
        MarianModel.load(folder)


def test_confidence_is_given_a_sentence_and_a_segment(model: MarianModel) -> None:
    rows = [row for row in golden("tiny-marian") if row["source"].endswith("?")][:2]
    deltas = [e for e in run(model, [transcript(" ".join(row["source"] for row in rows))]) if isinstance(e, Delta)]
    for index in (0, 1):
        of_sentence = [delta.log_probability for delta in deltas if delta.sentence == index]
        found = [d.sentence_confidence for d in deltas if d.sentence == index and d.sentence_confidence]
        assert found == [Confidence(sum(of_sentence) / len(of_sentence), min(of_sentence))]
        assert found[0].perplexity == pytest.approx(math.exp(-found[0].mean_log_probability))
    everything = [delta.log_probability for delta in deltas]
    (whole,) = [delta.segment_confidence for delta in deltas if delta.segment_confidence]
    assert deltas[-1].segment_confidence is whole
    assert whole.mean_log_probability == pytest.approx(sum(everything) / len(everything))
    assert whole.minimum_log_probability == min(everything)


def test_the_most_recently_used_sentences_are_kept() -> None:
    cache = SentenceCache(2)
    for source in ((1,), (2,)):
        cache.put(source, ())
    assert cache.get((1,)) == ()
    cache.put((3,), ())
    assert [cache.get(source) for source in ((1,), (2,), (3,))] == [(), None, ()]


def test_a_repeated_sentence_is_translated_once(tmp_path: Path) -> None:
    model = MarianModel.load(make_model_dir(tmp_path / "model", "merged"), cached_sentences=2)
    first = run(model, [transcript("Where is the bank?", 0)])
    again = run(model, [transcript("Where is the bank?", 0)])
    assert again == first
    assert model.cache.hits == 1
    for text in ("Where is the hotel?", "Where is the park?", "Where is the museum?"):
        model.translate(text)
    assert len(model.cache) == 2
    model.translate("Where is the bank?")
    assert model.cache.hits == 1  # it had been evicted


def test_a_time_limit_ends_a_sentence_and_marks_it(tmp_path: Path) -> None:
    folder = make_model_dir(tmp_path / "model", "merged")
    row = golden("tiny-marian")[0]
    limited = MarianModel.load(folder, time_limit_s=1e-9)
    for _ in range(2):  # truncated translations are not cached
        deltas = [event for event in run(limited, [transcript(row["source"])]) if isinstance(event, Delta)]
        assert [(d.token, d.truncated, d.end_of_sentence, d.final) for d in deltas] == [
            (row["target_ids"][0], True, True, True)
        ]
    assert len(limited.cache) == 0
    assert len(MarianModel.load(folder, time_limit_s=3600).translate(row["source"])) == len(row["text"])


def test_a_slow_consumer_does_not_use_up_the_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MarianModel.load(make_model_dir(tmp_path / "model", "merged"), time_limit_s=60)
    row = golden("tiny-marian")[0]
    deltas = model.stream(transcript(row["source"]), "zh")
    first = next(deltas)
    hour_later = time.monotonic() + 3600
    monkeypatch.setattr("pipeline.nmt.model.time.monotonic", lambda: hour_later)
    assert first.text + "".join(delta.text for delta in deltas) == row["text"]


def test_a_cancel_before_the_first_run_stops_it(model: MarianModel, begun: queue.SimpleQueue[DecoderState]) -> None:
    """If the stage is cancelled before the worker creates the sentence's state, the state is terminated on creation."""

    async def work() -> None:
        inbox: asyncio.Queue[Transcript | EndOfInput] = asyncio.Queue()
        outbox: asyncio.Queue[PipelineEvent] = asyncio.Queue()
        inbox.put_nowait(transcript(golden("tiny-marian")[0]["source"]))
        task = asyncio.create_task(NmtStage(model, inbox, outbox).run())
        await outbox.get()  # the transcript: its translation is asked for next
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert outbox.empty()

    asyncio.run(work())
    assert begun.get(timeout=HANG_S).options.terminate
    assert model.translate("Where is the bank?")


def test_under_overload_the_beam_is_narrowed(model: MarianModel) -> None:
    load = LoadControl(OverloadOptions(beam_size=1))
    asked: list[int | None] = []

    class Spied:
        def stream(
            self, transcript: Transcript, target: str, on_start: OnStart | None = None, beams: int | None = None
        ) -> Iterator[Delta]:
            asked.append(beams)
            return iter(())

    async def work() -> None:
        inbox: asyncio.Queue[Transcript | EndOfInput] = asyncio.Queue()
        for item in (transcript("Where is the bank?", 0), transcript("Where is the park?", 1), EndOfInput()):
            inbox.put_nowait(item)
        outbox: asyncio.Queue[PipelineEvent] = asyncio.Queue(1)
        task = asyncio.create_task(NmtStage(Spied(), inbox, outbox, load=load).run())
        await outbox.get()
        while not asked:
            await asyncio.sleep(0)
        load.observe(1e9)
        while not isinstance(await outbox.get(), EndOfInput):
            pass
        await task

    asyncio.run(work())
    assert asked == [None, 1]


def test_a_model_code_as_target_joins_as_its_language(tmp_path: Path, model: MarianModel) -> None:
    model.tokenizer.target_codes = ["cmn_Hans"]
    model.tokenizer._vocabulary[">>cmn_Hans<<"] = 5
    assert " " not in "".join(
        d.text for d in model.stream(transcript("Where is the bank? Where is the park?"), "cmn_Hans")
    )


def test_a_model_translates_from_and_into_the_languages_that_it_names() -> None:
    model, text = MarianModel.load(ROOT / "models" / "demo" / "nmt-zh-en"), "酒店在哪里？谢谢。"
    assert model.translate(text) == model.translate(text, source="zh", target="en")
    assert len(model.translate(text).split("? ")) == 2, "sentences of a spaced language are set apart"
