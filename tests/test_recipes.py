"""The recipes: what is held out is held out, measures measure, a stopped stage goes on, what is missing is named."""

from __future__ import annotations

import hashlib
import json
import random
import re
import subprocess
import sys
import wave
from collections import Counter
from dataclasses import asdict, replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import corpora
import numpy as np
import onnx
import pytest
import speech
from accents import PICO, SPEAKERS, foreign, tagged
from align import Alignments
from card import refuse_other_files
from compiled import marian_weights
from corpora import (
    LONGEST,
    apart,
    crossed,
    everyday,
    examples,
    held_out_phrases,
    reworded,
    translators_phrases,
    unseen_numbers,
)
from ct2 import whisper_weights
from ctranslate2.specs import WhisperSpec
from growth import widened
from heldout import SENTENCES
from lineage import Run, Shape, begin, begun_with, digest, keep, run_of, tell
from measure import edits, word_error_rate
from numpy.lib.stride_tricks import sliding_window_view
from onnx.numpy_helper import to_array
from phrasebook import corpus, draws, number, prices
from pieces import keep_tokenizer, make_tokenizer
from speech import Clip, load_speech, make_speech, takes, unlike, utterance
from tatoeba import nearest, read_pairs, split, spoken

from pipeline.nmt.compiler.assemble import assemble
from pipeline.nmt.compiler.build import PRESETS
from pipeline.nmt.compiler.network import build_encoder, build_step

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "models" / "recipes"
DEMO = ROOT / "models" / "demo"


def differing_words(one: str, other: str) -> int:
    return edits(spoken(one).split(), spoken(other).split())


def test_no_training_pair_has_a_side_of_a_test_pair_or_nearly_its_english() -> None:
    pairs = corpus(3000, seed=7)
    training, test = split(pairs)
    assert len(test) == 500
    assert len(training) > 500
    chinese = {target for _, target in test}
    held = [english for english, _ in test] + sorted(SENTENCES)
    for english, target in training:
        assert target not in chinese
        same_length = [other for other in held if len(other.split()) == len(english.split()) >= 5]
        assert all(differing_words(english, other) > 1 for other in same_length)
        assert all(spoken(english) != spoken(other) for other in held)


def test_the_split_is_the_same_every_time() -> None:
    pairs = corpus(1200, seed=7)
    assert {pair[0] for pair in split(pairs)[1]} == {pair[0] for pair in split(list(reversed(pairs)))[1]}


def test_held_out_phrases_leave_every_template_in_training() -> None:
    held = {english for english, _ in held_out_phrases()}
    drawn = [english for english, _ in draws(20_000, seed=2)]
    assert len(held) == 300
    assert not held & SENTENCES
    # What is held out was hardly ever said in training: no template goes with it.
    assert sum(english in held for english in drawn) < 0.02 * len(drawn)


def test_drawn_phrases_leave_out_what_the_demo_says() -> None:
    everything = frozenset(english for english, _ in corpus(500, seed=1))
    assert not everything & {english for english, _ in draws(500, seed=1, exclude=everything)}


def test_phrases_that_are_nearly_a_test_sentence_are_left_out() -> None:
    phrases = [("I would like two tickets.", "我要两张票。"), ("I would like to leave.", "我想走了。")]
    assert apart(phrases, [("I would like ten tickets!", "我要十张票！")]) == phrases[1:]


def test_translators_learn_every_number_and_no_sentence_that_they_are_tested_on() -> None:
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


def test_crossed_sentences_are_new_say_nothing_held_out_and_have_every_three_words_from_a_real_one() -> None:
    sentences = [english for english, _ in corpus(2000, seed=1)]
    held = sorted(SENTENCES)
    new = crossed(sentences, held, 500, seed=1)
    assert new == crossed(sentences, held, 500, seed=1)
    assert len(set(new)) == 500
    assert not set(new) & set(sentences)
    real = {
        tuple(words[at : at + 3]) for words in map(str.split, map(str.lower, sentences)) for at in range(len(words) - 2)
    }
    assert crossed(sentences[:3], held, 500, seed=1) == crossed(["Too short."], held, 500, seed=1) == []
    for sentence in new:
        words = sentence.lower().split()
        assert len(words) <= LONGEST
        assert {tuple(words[at : at + 3]) for at in range(len(words) - 2)} <= real
        same_length = [other for other in held if len(other.split()) == len(words) >= 5]
        assert all(differing_words(sentence, other) > 1 for other in same_length)


def test_reworded_sentences_have_rarer_words_that_end_alike_in_turn_and_say_nothing_held_out() -> None:
    sentences = [english for english, _ in corpus(2000, seed=1)]
    held, alike = sorted(SENTENCES), ["oblong", "nimble", "frugal"]
    words = [*alike, "turnips", "scarves", "soaring", "Ghana"]

    def endings(word: str) -> tuple[bool, ...]:
        return (word[0].isupper(), *(word[0].islower() and word.endswith(end) for end in ("ing", "ed", "ly", "s")))

    new = reworded(sentences, words, held, 300, seed=1)
    assert new == reworded(sentences, words, held, 300, seed=1)
    assert len(set(new)) == 300
    split_up = [re.findall(r"[\w'-]+|[^\w'-]+", text) for text in sentences]
    uses: Counter[str] = Counter()
    for sentence in new:
        parts = re.findall(r"[\w'-]+|[^\w'-]+", sentence)
        at = [i for i, part in enumerate(parts) if part in words]
        assert 1 <= len(at) <= 2
        uses.update(parts[i] for i in at)
        sources = [
            other
            for other in split_up
            if len(other) == len(parts) and all(o == p or p in words for o, p in zip(other, parts, strict=True))
        ]
        assert any(all(endings(other[i]) == endings(parts[i]) for i in at) for other in sources)
        same_length = [other for other in held if len(other.split()) == len(sentence.split()) >= 5]
        assert all(differing_words(sentence, other) > 1 for other in same_length)
    assert max(uses[word] for word in alike) <= 1.1 * min(uses[word] for word in alike)
    assert reworded(sentences, [], held, 300, seed=1) == reworded([], words, held, 300, seed=1) == []


def test_examples_of_wordnet_are_written_as_sentences_are_and_say_nothing_held_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpora, "_WORDNET", tmp_path / "none")
    with pytest.raises(SystemExit, match="apt-get install wordnet-base"):
        examples([], [], 10, seed=1)
    (tmp_path / "data.noun").write_text(
        '  1 This software and database is "provided to you as is".\n'
        '02 05 n 01 kiln 0 001 @ 03 n 0000 | a furnace; "the kiln was still warm"; "will it be warm?"  \n'
        '03 05 n 01 kilo 0 001 @ 02 n 0000 | a weight: "two kilos"; "it weighs 2 kilos"; "what a shitty old kiln"\n'
    )
    (tmp_path / "data.adv").write_text(
        '04 02 r 01 late 0 000 | not early; "The train is late."; "he came late to the party"; '
        '"one two three four five six seven eight nine ten eleven"\n'
    )
    monkeypatch.setattr(corpora, "_WORDNET", tmp_path)
    found = examples(["The train is late."], ["He came home to the party."], 10, seed=1)
    assert sorted(found) == ["The kiln was still warm.", "Will it be warm?"]
    assert found[:1] == examples(["The train is late."], ["He came home to the party."], 1, seed=1)


def test_everyday_sentences_say_nothing_held_out_and_nothing_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = Path(corpora._EVERYDAY).read_text().splitlines()
    assert len(set(lines)) == len(lines) > 20_000
    assert set(lines) >= set(everyday(lines[:5], lines[5:10], seed=1))
    known = everyday([], [], seed=1)
    assert len(known) > 0.99 * len(lines)
    left = everyday(known[:5], [known[5]], seed=1)
    assert set(known[:6]).isdisjoint(left)
    assert len(left) > 0.99 * len(known)
    monkeypatch.setattr(corpora, "_EVERYDAY", tmp_path / "everyday.txt")
    (tmp_path / "everyday.txt").write_text(
        "She locked the shed.\nIt costs 2 euros.\nOh, shit!\nShe locked the shop.\nHe has left the old shed open.\n"
        "one two three four five six seven eight nine ten eleven\nHe fed the hens.\n"
    )
    found = everyday(["He fed the hens."], ["He has left the old shop open."], seed=1)
    assert sorted(found) == ["She locked the shed.", "She locked the shop."]


@pytest.mark.parametrize(
    ("said", "heard", "percent"),
    [
        ("It's half past nine.", "its half past nine", 25.0),
        ("It's half past nine.", "IT'S HALF, PAST NINE!", 0.0),
        ("one two three four", "one three four five six", 75.0),
        ("one two", "", 100.0),
    ],
)
def test_word_error_rate_counts_words_without_case_and_marks(said: str, heard: str, percent: float) -> None:
    assert word_error_rate([said], [heard]) == percent


def test_the_baseline_copies_the_translation_of_the_most_similar_sentence() -> None:
    training = [
        ("The train is late.", "火车晚点了。"),
        ("The bus is late.", "公交车晚点了。"),
        ("I am hungry.", "我饿了。"),
    ]
    assert nearest(training, ["Is the train very late?", "You are hungry."]) == ["火车晚点了。", "我饿了。"]
    turned = [(chinese, english) for english, chinese in training]
    assert nearest(turned, ["火车来了。"]) == ["The train is late."]


def test_alignments_find_which_piece_comes_from_which() -> None:
    # Three words, each with its translation (+10), in any order.
    pairs = [([1, 2], [12, 11]), ([2, 3], [12, 13]), ([1, 3], [13, 11]), ([1, 2, 3], [13, 12, 11])]
    wanted = Alignments(pairs)(np.array([[3, 1, 2]]), np.array([[11, 12, 13]]))
    assert wanted.shape == (1, 3, 3)
    assert wanted.argmax(-1).tolist() == [[1, 2, 0]]
    assert np.allclose(wanted.sum(-1), 1)


def tone(text: str, voice: str, *, stretch: float = 1.0, pitch: float = 1.0) -> np.ndarray:
    """Stands for a synthesiser, which the tests cannot count on: a tone as long as its text."""
    return np.sin(np.arange(len(text) * 100) * 0.2 * pitch).astype(np.float32)


def test_speech_that_was_spoken_before_is_kept_when_the_recipe_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(speech, "speak", tone)
    monkeypatch.setattr(speech, "SHARD", 2)
    texts = ["One.", "Two two.", "Three three three.", "Four.", "Five."]
    sets = {"train": (texts, lambda rng: rng.choice(["a", "b"]))}
    make_speech(tmp_path, sets, seed=1, workers=1)
    before = load_speech(tmp_path, "train")
    assert [clip.text for clip in before] == texts
    assert not unlike(tmp_path, sets, seed=1)
    lengths = [len(clip.samples) for clip in before]
    (tmp_path / "train-000002.json").unlink()  # as if it had been stopped while it wrote this one
    capsys.readouterr()
    make_speech(tmp_path, sets, seed=1, workers=1)
    assert capsys.readouterr().out == "speech: 1 of 1 shards\n"
    after = load_speech(tmp_path, "train")
    assert [len(clip.samples) for clip in after] == lengths
    assert [clip.voice for clip in after] == [clip.voice for clip in before]
    sets["train"][0][4] = "Another."  # the sentences have changed: what was spoken before is not what is wanted
    assert unlike(tmp_path, sets, seed=1)
    make_speech(tmp_path, sets, seed=1, workers=1)
    assert capsys.readouterr().out == "speech: 1 of 1 shards\n"
    assert [clip.text for clip in load_speech(tmp_path, "train")] == sets["train"][0]
    make_speech(tmp_path, {"train": (sets["train"][0], lambda rng: "c")}, seed=1, workers=1)  # so have the voices
    assert {clip.voice for clip in load_speech(tmp_path, "train")} == {"c"}


def test_shards_of_more_sentences_than_there_are_now_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speech, "speak", tone)
    monkeypatch.setattr(speech, "SHARD", 2)
    for texts in (["One.", "Two two.", "Three three three."], ["One.", "Two two."]):
        sets = {name: (texts, lambda rng: "a") for name in ("train", "train-again")}
        assert unlike(tmp_path, sets, seed=1)
        make_speech(tmp_path, sets, seed=1, workers=1)
        assert [clip.text for clip in load_speech(tmp_path, "train")] == 2 * texts
    assert {path.stem for path in tmp_path.iterdir()} == {"train-000000", "train-again-000000"}


SHAPE = Shape(160, 4, 2, 640)


def trained(work: Path, texts: list[str], run: Run) -> Run:
    """What a training of ``texts`` leaves that the card is written from."""
    make_speech(work / "speech", {"train": (texts, lambda rng: "a")}, seed=1, workers=1)
    run = begin(work, run)
    run.steps += 1000
    for name in ("checkpoint.pt", "tokenizer.json"):
        (work / name).touch()
    keep(work, run)
    return run


def test_the_card_tells_every_training_that_weights_went_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speech, "speak", tone)
    first, second = tmp_path / "first", tmp_path / "second"
    trained(first, ["One.", "Two two.", "A test."], Run(SHAPE, None, [(0, 20, 0.001)]))
    wider = replace(SHAPE, ffn=1280)
    trained(second, ["One.", "Five.", "Five."], Run(wider, first, [(0, 24, 0.0006)], note=" (no noise)"))
    trained(second, ["One.", "Five.", "Five."], Run(wider, None, [(0, 12, 0.0006)]))  # goes on
    told = tell(second, {"A test.", "Another test."})
    assert told.trainings == (
        "1,000 steps of 20 utterances, learning rate at most 0.001, with 4 + 2 layers, d_model 160, feed-forward 640, "
        "on 3 recordings of 3 sentences; then 1,000 steps of 24 utterances, learning rate at most 0.0006 and 1,000 steps "
        "of 12 utterances, learning rate at most 0.0006, with 4 + 2 layers, d_model 160, feed-forward 1280, on 3 "
        "recordings of 2 sentences (no noise)"
    )
    assert (told.recordings, told.sentences, told.heard_before, told.spoken_before) == (3, 2, ["A test."], 0)
    keep(second, replace(run_of(second), share=0.5))
    assert " at most 0.0006 (0.5 of these weights and 0.5 of those before), with " in tell(second, set()).trainings
    with pytest.raises(SystemExit, match="1 test sentences are in the training of .*'Five.'"):
        tell(second, {"Five."})
    (first / "speech" / "train-000000.json").unlink()
    with pytest.raises(SystemExit, match="has no recordings of 'train'"):
        tell(second, set())


def test_a_training_does_not_go_on_from_what_is_unlike_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech, "speak", tone)
    work, parts = tmp_path / "work", [(0, 24, 0.001)]
    trained(work, ["One."], Run(SHAPE, None, parts))
    with pytest.raises(SystemExit, match=r"has a training of 4 \+ 2 layers, .* this one is to have 6 \+ 2 layers"):
        begin(work, Run(replace(SHAPE, encoder_layers=6), None, parts))
    with pytest.raises(SystemExit, match=r"begun with random weights; .* begun with .*other"):
        begin(work, Run(SHAPE, tmp_path / "other", parts))
    with pytest.raises(
        SystemExit, match=r"a training of 4 \+ 2 .* this one is to have the decoder alone of 4 \+ 2 layers"
    ):
        begin(work, Run(SHAPE, None, parts, decoder_alone=True))
    for change in ({"d_model": 240}, {"decoder_layers": 3}, {"encoder_layers": 2}, {"ffn": 320}):
        with pytest.raises(SystemExit, match="only by encoder layers and feed-forward units that are added"):
            begin(tmp_path / "new", Run(replace(SHAPE, **change), work, parts))
    (work / "run.json").unlink()
    with pytest.raises(SystemExit, match="it lacks run.json"):
        begin(tmp_path / "new", Run(SHAPE, work, parts))


@pytest.mark.parametrize("quantization", [None, "int8"])
def test_the_weights_of_a_finished_recogniser_are_read_back(quantization: str | None, tmp_path: Path) -> None:
    rng, spec = np.random.default_rng(1), WhisperSpec(1, 2, 1, 2)  # 1 + 1 layers of 2 heads, here 4 units

    def some(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, np.float32)

    ears, mouth = spec.encoder.layer[0], spec.decoder.layer[0]
    for part, shape in (
        (spec.encoder.conv1, (4, 80, 3)),
        (spec.encoder.conv2, (4, 4, 3)),
        *((layer.self_attention.linear[0], (12, 4)) for layer in (ears, mouth)),
        *((layer.self_attention.linear[1], (4, 4)) for layer in (ears, mouth)),
        *((layer.ffn.linear_0, (8, 4)) for layer in (ears, mouth)),
        *((layer.ffn.linear_1, (4, 8)) for layer in (ears, mouth)),
        *zip(mouth.attention.linear, ((4, 4), (8, 4), (4, 4)), strict=True),
    ):
        part.weight, part.bias = some(*shape), some(shape[0])
    blocks = [block for layer in (ears, mouth) for block in (layer.self_attention, layer.ffn)]
    for part in (spec.encoder, spec.decoder, mouth.attention, *blocks):
        part.layer_norm.gamma, part.layer_norm.beta = some(4), some(4)
    spec.encoder.position_encodings.encodings, spec.decoder.position_encodings.encodings = some(9, 4), some(7, 4)
    spec.decoder.embeddings.weight = spec.decoder.projection.weight = some(6, 4)
    wanted = {
        "encoder.conv1.weight": spec.encoder.conv1.weight,
        "encoder.conv2.bias": spec.encoder.conv2.bias,
        "encoder.embed_positions.weight": spec.encoder.position_encodings.encodings,
        "encoder.layer_norm.weight": spec.encoder.layer_norm.gamma,
        "encoder.layers.0.self_attn.out_proj.weight": ears.self_attention.linear[1].weight,
        "encoder.layers.0.final_layer_norm.bias": ears.ffn.layer_norm.beta,
        "encoder.layers.0.fc2.weight": ears.ffn.linear_1.weight,
        "decoder.embed_tokens.weight": spec.decoder.embeddings.weight,
        "decoder.layers.0.encoder_attn_layer_norm.weight": mouth.attention.layer_norm.gamma,
        "decoder.layers.0.self_attn.k_proj.weight": mouth.self_attention.linear[0].weight[4:8],
        "decoder.layers.0.self_attn.v_proj.bias": mouth.self_attention.linear[0].bias[8:],
        "decoder.layers.0.encoder_attn.q_proj.weight": mouth.attention.linear[0].weight,
        "decoder.layers.0.encoder_attn.v_proj.weight": mouth.attention.linear[1].weight[4:],
        "decoder.layers.0.encoder_attn.out_proj.bias": mouth.attention.linear[2].bias,
    }
    wanted = {f"model.{name}": value.copy() for name, value in wanted.items()}
    spec.register_vocabulary(list("abcdef"))
    spec.validate()
    spec.optimize(quantization)
    spec.save(str(tmp_path))
    found = whisper_weights(tmp_path)
    assert len(found) == 22 + 28  # of the encoder and the decoder, as transformers counts them
    for name, value in wanted.items():
        assert np.abs(found[name] - value).max() <= (np.abs(value).max() / 127 if quantization else 0), name
    assert not [name for name in found if name.endswith("k_proj.bias")]


def reference_logits(weights: dict[str, np.ndarray], features: np.ndarray, heads: int) -> np.ndarray:
    """What one encoder layer makes of ``features`` [80, T], read out by a head and as Whisper's decoder reads out."""

    def linear(name: str, x: np.ndarray) -> np.ndarray:
        return x @ weights[f"model.{name}.weight"].T + weights.get(f"model.{name}.bias", 0)

    def norm(name: str, x: np.ndarray) -> np.ndarray:
        x = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
        return x * weights[f"model.{name}.weight"] + weights[f"model.{name}.bias"]

    layer = "encoder.layers.0"
    for conv in ("conv1", "conv2"):
        kernel, bias = (weights[f"model.encoder.{conv}.{kind}"] for kind in ("weight", "bias"))
        features = np.tanh(np.einsum("oik,itk->ot", kernel, sliding_window_view(features, 3, axis=1)) + bias[:, None])
    x = features.T + weights["model.encoder.embed_positions.weight"][: features.shape[1]]
    normed = norm(f"{layer}.self_attn_layer_norm", x)
    q, k, v = (linear(f"{layer}.self_attn.{p}_proj", normed).reshape(len(x), heads, -1).swapaxes(0, 1) for p in "qkv")
    scores = np.exp(q @ k.swapaxes(1, 2) / np.sqrt(q.shape[2]))
    mixed = (scores / scores.sum(-1, keepdims=True) @ v).swapaxes(0, 1).reshape(len(x), -1)
    x = x + linear(f"{layer}.self_attn.out_proj", mixed)
    x = x + linear(f"{layer}.fc2", np.tanh(linear(f"{layer}.fc1", norm(f"{layer}.final_layer_norm", x))))
    logits = norm("decoder.layer_norm", x) @ weights["model.decoder.embed_tokens.weight"].T
    return np.concatenate([logits, x @ weights["head.weight"].T + weights["head.bias"]], axis=1)


@pytest.mark.parametrize("times", [2, 3])
def test_a_wider_recogniser_begins_with_the_function_of_the_narrow_one(times: int) -> None:
    shipped, rng = whisper_weights(DEMO / "asr-en"), np.random.default_rng(1)
    features, head = rng.normal(0, 0.3, (80, 24)), (29, len(shipped["model.decoder.layer_norm.weight"]))
    shipped |= {"head.weight": np.float32(rng.normal(0, 0.1, head)), "head.bias": np.float32(rng.normal(size=29))}
    wide = widened(shipped, times, heads=4)
    wanted = reference_logits(shipped, features, 4)
    np.testing.assert_allclose(reference_logits(wide, features, 4), wanted, atol=1e-3 * wanted.std())
    for name, had in shipped.items():
        assert wide[name].dtype == np.float32
        if name.endswith("fc1.weight"):  # channels that are the same at first must not learn the same for ever
            one, other = wide[name][:, : had.shape[1]], wide[name][:, had.shape[1] : 2 * had.shape[1]]
            assert np.abs(one - other).mean() > 0.3 * had.std()


@pytest.mark.parametrize("direction", ["en-zh", "zh-en"])
def test_the_weights_of_a_finished_translator_are_read_back(direction: str) -> None:
    folder = DEMO / f"nmt-{direction}"
    weights = {name.removeprefix("model."): value for name, value in marian_weights(folder).items()}
    config = json.loads((folder / "config.json").read_text())
    bias = {"final_logits_bias": np.zeros(config["vocab_size"], np.float32)}
    checkpoint = assemble(weights | bias, config, {}, "safetensors", folder)
    encoder, step = (onnx.load(folder / f"{name}.onnx") for name in ("encoder", "step"))
    rows = next(to_array(tensor) for tensor in step.graph.initializer if tensor.name == "ids")
    again = build_step(checkpoint, rows, PRESETS["int8"], config["pad_token_id"])
    for shipped, built in ((encoder, build_encoder(checkpoint, PRESETS["int8"])), (step, again)):
        found = {tensor.name: to_array(tensor) for tensor in built.graph.initializer}
        for tensor in shipped.graph.initializer:
            if not tensor.name.startswith("coarse_logits"):  # of four bits, made with what goes through them
                np.testing.assert_allclose(found[tensor.name], to_array(tensor), rtol=1e-5, err_msg=tensor.name)


def test_a_training_goes_on_from_a_finished_model_and_tells_what_that_went_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speech, "speak", tone)
    model, work, parts = tmp_path / "model", tmp_path / "work", [(0, 24, 0.001)]
    model.mkdir()
    (model / "model.bin").write_bytes(b"weights")
    (model / "training.json").write_text('{"shape": {}}')
    with pytest.raises(SystemExit, match=r"training\.json does not say .*: it lacks trainings, tests, heard_before"):
        begin(work, Run(SHAPE, model, parts))
    tests = {"A test.", "Another test."}
    facts = {"shape": asdict(SHAPE), "trainings": "9 steps", "heard_before": ["A test.", "Left."], "spoken_before": 2}
    (model / "training.json").write_text(json.dumps(facts | {"tests": digest(tests)}))
    (model / "tokenizer.json").touch()
    with pytest.raises(SystemExit, match="only by encoder layers and feed-forward units that are added"):
        begin(work, Run(replace(SHAPE, d_model=3 * SHAPE.d_model // 2), model, parts))
    assert not work.exists()
    begin(work, Run(SHAPE, model, parts))
    with pytest.raises(SystemExit, match="keeps of its own: name another model"):
        begin(work, Run(SHAPE, work / "init", parts))
    (model / "model.bin").write_bytes(b"other weights")  # stopped before it saved anything, and begun anew
    trained(work, ["One."], Run(SHAPE, model, parts))
    (model / "model.bin").write_bytes(b"what this training ends with")  # its place is where models ship from
    (model / "training.json").write_text(json.dumps(facts | {"trainings": "the whole"}))
    work = work.rename(tmp_path / "moved")
    again = trained(work, ["One."], Run(SHAPE, model, parts))
    init = begun_with(work, again)
    assert init is not None
    assert (init / "model.bin").read_bytes() == b"other weights"
    with pytest.raises(SystemExit, match="trained with another edition of --pairs, whose test sentences are others"):
        tell(work, {"A test.", "Yet another test."})
    with pytest.raises(SystemExit, match=r"begun with .*model; this one .* begun with .*other"):
        begin(work, Run(SHAPE, tmp_path / "other", parts))
    told = tell(work, tests)
    expected = "2,000 steps of 24 utterances, learning rate at most 0.001, on 1 recordings of 1 sentences"
    assert told.trainings == f"9 steps; then {expected}"
    assert (told.recordings, told.heard_before, told.spoken_before) == (1, ["A test."], 2)


# What festival's American voices say: the phones of their set, in an order in which they might come.
RADIO = (
    "pau hh ax l ow w er l d dh ih s ih z ae n iy v n ih ng b oy th aw z ax n d ay ey m uw v t ch jh f r k g y ao zh eh p sh "
    "uh aa axr hv el em en dx nx h# brth ah t t z pau"
)


@pytest.mark.parametrize("name", SPEAKERS)
def test_a_voice_of_another_language_says_every_english_phone_with_its_own(name: str) -> None:
    spoken = [(phone, 0.08, 100.0 if phone in ("ax", "ow", "er") else 0.0) for phone in RADIO.split()]
    own = {part for ways in SPEAKERS[name].ways.values() for way in ways for part in way.split()}
    accents = [foreign(spoken, name, str(lot), 1.0, random.Random(1)) for lot in range(20)]
    assert accents[7] == foreign(spoken, name, "7", 1.0, random.Random(1))
    assert len({tuple(phone for phone, *_ in said) for said in accents}) > 10
    for said in accents:
        assert {phone for phone, *_ in said} <= own
        assert all(one[0] != other[0] for one, other in pairwise(said)), "a double consonant is one long one"
        assert all(seconds > 0 for _, seconds, _ in said)
        assert {round(hertz, 3) for *_, hertz in said} == {SPEAKERS[name].pitch}
        assert 0.8 < sum(seconds for _, seconds, _ in said) / (0.08 * len(spoken)) < 2.2
    higher = foreign(spoken, name, "7", 1.2, random.Random(1))
    assert higher[3][2] == pytest.approx(1.2 * SPEAKERS[name].pitch)


def test_accents_end_words_as_their_language_does() -> None:
    said = foreign(
        [("d", 0.1, 0.0), ("ow", 0.1, 90.0), ("g", 0.1, 0.0), ("pau", 0.2, 0.0)], "czech_ph", "1", 1, random.Random(1)
    )
    assert [phone for phone, *_ in said] == ["d", "o", "u", "k", "#"]


def test_pico_is_told_the_phonemes_of_another_language() -> None:
    assert tagged("ˌI hˈæv, tˈIm?", "fr-FR", "3") == (
        "<phoneme alphabet='xsampa' ph='aj'/> <phoneme alphabet='xsampa' ph='\"av'/>, <phoneme alphabet='xsampa' ph='t\"ajm'/>?"
    )
    accents = {tagged("θˈɔt ðˈæt wˈʊd ɹˈʌn", name, str(lot)) for name in PICO for lot in range(20)}
    assert len(accents) > 40


def test_every_word_may_begin_as_the_tokenizer_begins_it(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer = make_tokenizer(path, ["It is a no-show, isn't it?", "He's in, she's out."])
    space = tokenizer.encode(" ").ids
    assert tokenizer.encode(" umbrella").ids[:1] == space
    for sign in (" -", " '", " ♪"):
        assert tokenizer.encode(sign).ids[:1] != space
    assert len(set(tokenizer.get_vocab().values())) == tokenizer.get_vocab_size()
    text = " It's a well-known umbrella: 'déjà vu' - 雨 ♪"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text
    kept = path.read_text("utf-8")
    assert make_tokenizer(path, ["Other texts."]).to_str() == tokenizer.to_str()
    keep_tokenizer(path, kept)
    assert path.read_text("utf-8") == kept


def spoken_clip() -> Clip:
    with wave.open(str(ROOT / "tests" / "audio" / "phrases.wav")) as wav:
        return Clip("Where is it?", "flite:rms", np.frombuffer(wav.readframes(16_000 * 4), np.int16))


def test_timestamps_of_a_training_segment_enclose_its_sentences() -> None:
    rng = np.random.default_rng(3)
    clip = spoken_clip()
    for _ in range(20):
        segment = utterance(rng, [clip, clip])
        (first, second), length = segment.sentences, len(segment.audio) / 16_000
        assert 0 <= first[0] < first[1] <= second[0] < second[1] <= length
        assert np.abs(segment.audio).max() <= 1
        # The recording begins with 0.6 s of silence and speaks for more than two seconds.
        assert first[0] > 0.4
        assert first[1] - first[0] > 2


def test_every_recording_is_heard_and_those_of_an_engine_that_recorded_little_more_often() -> None:
    voices = ["flite:slt"] * 900 + ["kokoro:us+af_heart+af_heart"] * 100
    lengths = np.random.default_rng(0).integers(100, 1000, len(voices))
    clips = [Clip("A test.", voice, np.zeros(n, np.int16)) for voice, n in zip(voices, lengths, strict=True)]
    chunks = takes(clips, 8, most=5)
    assert Counter(np.concatenate(chunks).tolist()) == {number: 5 if number >= 900 else 1 for number in range(1000)}
    for chunk in chunks:
        assert 7 <= len(chunk) <= 9
        assert max(lengths[chunk]) < 2 * min(lengths[chunk]) + 100
        assert len(set(chunk.tolist())) > 4  # not all takes of one


def test_a_segment_without_clips_has_sound_and_no_sentence() -> None:
    rng = np.random.default_rng(3)
    segments = [utterance(rng, []) for _ in range(10)]
    assert all(segment.sentences == () for segment in segments)
    assert sum(np.abs(segment.audio).max() > 0 for segment in segments) > 5


@pytest.mark.parametrize("recipe", [("nmt.py", "en-zh"), ("asr_en.py",), ("evaluate.py",)])
def test_a_recipe_names_what_is_missing(recipe: tuple[str, ...], tmp_path: Path) -> None:
    command = [sys.executable, RECIPES / recipe[0], *recipe[1:], "--pairs", tmp_path / "cmn.txt", "--work", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    complete = find_spec("torch") and find_spec("opencc")
    wanted = r"no such file: .*cmn\.txt\. Get" if complete else r"missing packages: .*opencc.*pip install"
    assert re.match(wanted, done.stderr)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("shape", [(6, 20), (20, 6)])
def test_without_bfloat16_muon_computes_in_float32(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="only the extra `train` has PyTorch")
    from optimisers import make_optimisers

    theirs = torch.optim._muon._zeropower_via_newtonschulz
    monkeypatch.setattr(torch.optim._muon, "_zeropower_via_newtonschulz", theirs)
    model = torch.nn.ModuleDict({"layers": torch.nn.Linear(*shape, bias=False)})
    weight = model["layers"].weight
    before = weight.detach().clone()
    weight.grad = torch.linspace(-1, 2, weight.numel()).sin().reshape(weight.shape)
    muon, _ = make_optimisers(model, torch.nn.Linear(2, 2), workers=1, bf16=False)
    muon.param_groups[0]["lr"] = 1.0
    muon.step()
    # Muon's first direction is the gradient's; singular values become what five of its iterations make of them.
    left, values, right = np.linalg.svd(weight.grad.double().numpy(), full_matrices=False)
    values /= np.linalg.norm(values)
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    wanted = before.double().numpy() * 0.99 - 0.2 * max(shape) ** 0.5 * (left * values) @ right
    assert np.abs(weight.detach().numpy() - wanted).max() < 1e-5


def test_a_model_replaces_only_a_model(tmp_path: Path) -> None:
    refuse_other_files(tmp_path)
    refuse_other_files(tmp_path / "new")
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(SystemExit, match=r"has files but no training\.json"):
        refuse_other_files(tmp_path)
    with pytest.raises(SystemExit, match="is a file"):
        refuse_other_files(tmp_path / "thesis.txt")
    (tmp_path / "training.json").touch()
    refuse_other_files(tmp_path)


@pytest.mark.parametrize("content", [None, b"PK\x03\x04\xff"])
def test_pairs_that_are_a_folder_or_no_text_are_named(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "cmn-eng.zip"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(SystemExit, match=r"cmn-eng\.zip.* name the cmn\.txt in them with --pairs"):
        read_pairs(path)


@pytest.mark.parametrize("model", sorted(path.name for path in DEMO.iterdir() if path.is_dir()))
def test_a_card_lists_the_files_that_ship(model: str) -> None:
    folder = DEMO / model
    rows = re.findall(r"^\| (\S+) \| ([\d,]+) \| `(\w{64})` \|$", (folder / "README.md").read_text(), re.MULTILINE)
    found = {
        path.name: (f"{path.stat().st_size:,}", hashlib.sha256(path.read_bytes()).hexdigest())
        for path in folder.iterdir()
        if path.name != "README.md"
    }
    assert {name: (size, digest) for name, size, digest in rows} == found


def test_the_demo_models_are_small() -> None:
    assert sum(path.stat().st_size for path in DEMO.rglob("*")) < 40e6
