"""The recipes: held-out sentences, weights of compiled models, missing files and packages."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest
from align import Alignments
from card import refuse_other_files
from compiled import marian_weights
from feed import NOISY, RESPLIT, STYLES, batches, encode, unfinished
from heldout import CHINESE_SENTENCES, SENTENCES
from noise import altered, renumbered
from onnx.numpy_helper import to_array
from pairs import (
    TESTS,
    Data,
    check_tests,
    digest,
    held_out_phrases,
    prepared,
    translators_phrases,
    unseen_numbers,
    without_near_duplicates,
)
from phrasebook import corpus, draws, number, prices
from prefixes import Prefixes
from repair import pairs_with, train_only
from schedule import GUIDANCE, guidance, learning_rate
from tatoeba import nearest, read_pairs, split, spoken
from written import conversations, everyday

from pipeline.nmt.compiler.assemble import assemble
from pipeline.nmt.compiler.build import PRESETS
from pipeline.nmt.compiler.network import build_encoder, build_step

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "models" / "recipes"
DEMO = ROOT / "models" / "demo"


def differing_words(one: str, other: str) -> int:
    """The number of differing words of two sentences of equal length."""
    return sum(a != b for a, b in zip(spoken(one).split(), spoken(other).split(), strict=True))


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
    # Held-out sentences are rarely drawn, so excluding them leaves every template in training.
    assert sum(english in held for english in drawn) < 0.02 * len(drawn)


def test_drawn_phrases_leave_out_what_the_demo_says() -> None:
    everything = frozenset(english for english, _ in corpus(500, seed=1))
    assert not everything & {english for english, _ in draws(500, seed=1, exclude=everything)}


def test_phrases_that_are_nearly_a_test_sentence_are_left_out() -> None:
    phrases = [("I would like two tickets.", "我要两张票。"), ("I would like to leave.", "我想走了。")]
    assert without_near_duplicates(phrases, [("I would like ten tickets!", "我要十张票！")]) == phrases[1:]


def test_everyday_sentences_are_distinct_and_unheard() -> None:
    lines = (RECIPES / "everyday.txt").read_text("utf-8").splitlines()
    assert len(set(lines)) == len(lines) > 20_000
    assert not {spoken(line) for line in lines} & {spoken(sentence) for sentence in SENTENCES}


@pytest.fixture(scope="module")
def data() -> Data:
    """All data of the translators, with sentences of the phrasebook in place of Tatoeba's."""
    return prepared(corpus(1200, seed=7))


def words(text: str) -> tuple[str, ...]:
    """The words of an English sentence, or the characters of a Chinese one, in lower case and without marks."""
    plain = re.sub(r"[^\w\s'$€£%&+/@#*]", "", text.lower().replace("’", "'"))
    return tuple(plain.split()) if max(plain, default="") < "\u3040" else tuple("".join(plain.split()))


def one_word_left_out(text: str) -> set[tuple[str, ...]]:
    """The sentence with a gap in place of each word; nothing for short ones, which are alike by chance."""
    units = words(text)
    least = 5 if max(text) < "\u3040" else 7
    return {(*units[:i], "", *units[i + 1 :]) for i in range(len(units))} if len(units) >= least else set()


@pytest.mark.slow
def test_no_side_of_a_training_pair_is_nearly_a_sentence_that_is_tested(data: Data) -> None:
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


def test_test_sets_are_of_their_subject_and_little_is_lost_to_them(data: Data) -> None:
    assert set(data.tests["everyday"]) < set(everyday())
    assert set(data.tests["meetings"]) < {pair for topic, pair in conversations() if topic == "meetings"}
    assert len(data.training["everyday"]) > 44_000
    assert len(data.training["conversations"]) > 14_500


@pytest.mark.slow
def test_the_sets_do_not_depend_on_the_order_of_tatoebas_pairs(data: Data) -> None:
    again = prepared(corpus(1200, seed=7)[::-1])
    assert {name: sorted(pairs) for name, pairs in again.tests.items()} == {
        name: sorted(pairs) for name, pairs in data.tests.items()
    }
    assert again.development == data.development


def test_a_model_is_measured_on_sentences_left_out_of_training() -> None:
    facts = {"tests": digest({"Where is it?", "It is here."})}
    check_tests(facts, {"It is here.", "Where is it?"})
    with pytest.raises(SystemExit, match="another edition of --pairs"):
        check_tests(facts, {"It is here."})


@pytest.mark.slow
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


def test_several_processes_save_the_same_alignments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alignments, path = Alignments([([1, 2], [12, 11]), ([2, 3], [12, 13])]), tmp_path / "alignments.npz"
    save, pids = np.savez_compressed, iter([1, 2])
    monkeypatch.setattr("os.getpid", lambda: next(pids))

    def saved_beside_another(file: Path, **arrays: np.ndarray) -> None:
        save(file, **arrays)
        monkeypatch.setattr(np, "savez_compressed", save)
        alignments.save(path)  # by another process, in between

    monkeypatch.setattr(np, "savez_compressed", saved_beside_another)
    alignments.save(path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    ids = np.array([[1, 2, 3]]), np.array([[11, 12, 13]])
    assert np.allclose(Alignments.load(path)(*ids), alignments(*ids), atol=1e-6)


class Toy:
    """Words as ids, with the end token 0 and the mark 1. The translation of a word has its id and 10."""

    pieces = ("</s>", "▁.", "▁a", "▁b", "▁c", "▁d", "", "", "", "", "", "▁,", "▁A", "▁B", "▁C", "▁D", "▁E")
    pairs = (
        ([2, 3, 1, 0], [12, 13, 1, 0]),
        ([3, 4, 1, 0], [13, 14, 1, 0]),
        ([4, 5, 1, 0], [14, 15, 1, 0]),
        ([5, 2, 1, 0], [15, 12, 1, 0]),
        ([2, 3, 4, 5, 1, 0], [12, 13, 14, 15, 1, 0]),
    )

    def prefixes(self) -> Prefixes:
        return Prefixes(self.pieces, Alignments(list(self.pairs)))


def test_the_target_of_a_beginning_ends_where_it_rests_on_what_is_cut_off() -> None:
    prefixes = Toy().prefixes()
    in_order, turned = [12, 13, 14, 15, 1, 0], [15, 12, 13, 14, 1, 0]
    source = [2, 3, 4, 5, 1, 0]
    assert [prefixes.covered(source, in_order, at) for at in (1, 2, 3, 4)] == [1, 2, 3, 5]
    # The first word of the translation comes last in the source.
    assert [prefixes.covered(source, turned, at) for at in (1, 2, 3)] == [0, 0, 0]


def test_beginnings_have_no_final_mark_and_lack_a_word_of_the_source() -> None:
    prefixes, rng = Toy().prefixes(), random.Random(1)
    source, target = [2, 3, 11, 4, 5, 1, 0], [12, 13, 11, 14, 15, 1, 0]
    found = {
        (tuple(kept), tuple(translated)) for kept, translated in (prefixes.cut(source, target, rng) for _ in range(99))
    }
    assert found == {
        ((2, 0), (12, 0)),
        ((2, 3, 0), (12, 13, 0)),
        ((2, 3, 11, 4, 0), (12, 13, 11, 14, 0)),
    }
    assert prefixes.cut([2, 1, 0], [12, 1, 0], rng) is None
    assert prefixes.cut([2, 3, 4, 5, 1, 0], [15, 12, 13, 14, 1, 0], rng) is None


def test_words_are_not_cut() -> None:
    pieces = ["</s>", "▁un", "der", "stand", "s", "他", "懂", "GP", "S"]
    pairs = [([1, 2, 3, 4, 0], [5, 6, 0]), ([5, 7, 8, 6, 0], [1, 2, 0])]
    prefixes, rng = Prefixes(pieces, Alignments(pairs)), random.Random(1)
    assert all(prefixes.cut(*pairs[0], rng) is None for _ in range(9))
    cuts = [prefixes.cut([5, 7, 8, 6, 0], [5, 7, 8, 6, 0], rng) for _ in range(50)]
    assert {tuple(cut[0]) for cut in cuts if cut} <= {(5, 0), (5, 7, 8, 0)}


def test_batches_have_every_pair_in_several_styles_once_a_pass() -> None:
    names: dict[str, int] = {}

    def encoder(texts: Sequence[str], *, target: bool, drawn: bool = False) -> list[list[int]]:
        return [[names.setdefault(word, len(names) + 1) for word in text.split()] for text in texts]

    pairs = [(f"Word {n}, Again.", f"Wort {n}") for n in range(400)]
    examples = encode(pairs, encoder)
    assert len(examples[0].sources) == len(STYLES)
    words_of = {number: word for word, number in names.items()}
    feed, seen, styles = batches(examples, None, 0, seed=1, budget=60), Counter[str](), Counter[str]()
    while seen.total() < 2 * len(pairs):
        source, target = next(feed)
        assert max(source.shape[1], target.shape[1]) * len(source) <= 60
        for row, wanted in zip(source.tolist(), target.tolist(), strict=True):
            seen[words_of[wanted[1]]] += 1
            styles[words_of[row[-1]]] += 1
            assert words_of[row[1]].strip(",") == words_of[wanted[1]]
    assert set(seen.values()) == {2}
    assert styles["Again."] > styles["again"] > styles["again."] > 0 < styles["Again"]


def test_some_sources_are_altered_and_some_split_anew() -> None:
    def encoder(texts: Sequence[str], *, target: bool, drawn: bool = False) -> list[list[int]]:
        return [[*map(ord, text), -1 if drawn else -2] for text in texts]

    pairs = [(f"Say {name} again.", f"Sag {name} nochmal.") for name in map(chr, range(0x4E00, 0x4E00 + 2000))]
    source_of = {target: source for source, target in pairs}
    kinds: Counter[str] = Counter()
    feed = batches(encode(pairs, encoder), None, 0, seed=1, budget=1000, encoder=encoder)
    while kinds.total() < len(pairs):
        for source, target in zip(*(rows.tolist() for rows in next(feed)), strict=True):
            text, wanted = ("".join(chr(letter) for letter in row if letter > 0) for row in (source, target))
            plain = unfinished(text.lower()) == unfinished(source_of.get(wanted, "").lower())
            kinds["drawn" if -1 in source else "plain" if plain else "altered"] += 1
            assert plain or -1 not in source
    assert kinds["drawn"] / len(pairs) == pytest.approx(RESPLIT, rel=0.2)
    assert kinds["altered"] / len(pairs) == pytest.approx(NOISY, rel=0.3)


def test_numbers_are_replaced_alike_on_both_sides() -> None:
    rng = random.Random(1)
    for _ in range(50):
        other = renumbered(("On May 12 at 8:30, 12 people came.", "五月12日8:30来了12人。"), rng)
        assert other is not None
        source, target = other
        day, hour, minute, people = re.findall(r"\d+", source)
        assert re.findall(r"\d+", target) == [day, hour, minute, people]
        assert (day, [len(day), len(hour), len(minute)]) == (people, [2, 1, 2])
        assert not source.startswith("0")
    assert other != renumbered(other, rng)
    assert renumbered(("I'm 5.", "我六岁。"), rng) is None
    assert renumbered(("Hello.", "你好。"), rng) is None


@pytest.mark.parametrize("pair", [("We leave at noon.", "我们中午走。"), ("我们中午走。", "We leave at noon.")])
def test_stammers_and_signs_change_nothing_else(pair: tuple[str, str]) -> None:
    rng, kinds = random.Random(1), set[str]()
    for _ in range(200):
        source, target = altered(pair, rng)
        if target == pair[1]:
            kinds.add("stammer")
            letters = iter(source)
            assert source != pair[0]
            assert all(letter in letters for letter in pair[0])  # in order
        elif source == target:
            kinds.add("signs")
            assert source.isascii()
        else:
            kinds.add("signs before")
            assert source.endswith(pair[0])
            assert target.endswith(pair[1])
            assert source.removesuffix(pair[0]).strip() == target.removesuffix(pair[1]).strip()
    assert kinds == {"stammer", "signs", "signs before"}


def test_a_learning_rate_does_not_depend_on_the_end_until_the_cooldown() -> None:
    rates = [[learning_rate(step, 1e-3, steps, 1000) for step in range(steps)] for steps in (9000, 12_000)]
    assert rates[0][:8000] == rates[1][:8000]
    assert max(rates[0]) == rates[0][1000] == 1e-3
    assert all(one > other for one, other in itertools.pairwise(rates[0][4000:]))
    assert 0 < rates[0][-1] < 1e-6
    assert learning_rate(8999, 1e-3, 9000, 0) == rates[1][8999]


def test_a_repair_learns_pairs_with_the_pieces_or_numbers_and_as_many_others() -> None:
    others = [(f"句子{letter}。", f"Sentence {letter}.") for letter in "abcdefgh"]
    numbers, signs = [("五月12日。", "May 12.")], [("问答。", "Q and A.")]
    uneven = [("12个。", "A dozen.")]
    found = pairs_with("QV", [*others, *numbers, *uneven, *signs], seed=1)
    assert found[:2] == [*numbers, *signs]
    assert len(found) == 4


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch, of the extra train")
def test_a_repair_changes_no_other_weights() -> None:
    import torch

    shared = torch.nn.ModuleDict({"shared": torch.nn.Embedding(6, 4)})
    model = torch.nn.ModuleDict({"model": shared, "layer": torch.nn.Linear(4, 4)})
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    train_only(model, [2, 5])
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.0)
    for _ in range(3):
        embedding = model.model.shared.weight
        (model.layer(embedding) @ embedding.T).square().sum().backward()
        optimiser.step()
        optimiser.zero_grad()
    changed = (model.model.shared.weight != before["model.shared.weight"]).any(1)
    assert changed.tolist() == [False, False, True, False, False, True]
    assert torch.equal(model.layer.weight, before["layer.weight"])


def test_a_learning_rate_has_its_peak_after_the_warm_up() -> None:
    rates = [learning_rate(step, 1e-3, 2000, 500, warmup=100) for step in range(2000)]
    assert rates.index(max(rates)) == 99
    assert rates[99] == rates[1499] == 1e-3


def test_only_the_last_layers_attention_is_guided_to_the_end() -> None:
    assert guidance(0, last_layer=False) == guidance(0, last_layer=True) == GUIDANCE
    assert guidance(50_000, last_layer=False) == 0 < guidance(50_000, last_layer=True)


@pytest.mark.parametrize("direction", ["en-zh", "zh-en"])
def test_the_weights_of_a_finished_translator_are_read_back(direction: str) -> None:
    folder = DEMO / f"nmt-{direction}"
    weights = {name.removeprefix("model."): value for name, value in marian_weights(folder).items()}
    config = json.loads((folder / "config.json").read_text())
    bias = {"final_logits_bias": np.zeros(config["vocab_size"], np.float32)}
    checkpoint = assemble(weights | bias, config, {}, "safetensors", folder)
    encoder, step = (onnx.load(folder / f"{name}.onnx") for name in ("encoder", "step"))
    rows = next(to_array(tensor) for tensor in step.graph.initializer if tensor.name == "ids")
    again = build_step(checkpoint, rows, PRESETS["int8"], config["pad_token_id"], alignment=(1, 0))
    # The shipped graphs were compiled by a version that gave out more about the choice of a token than is used now.
    whole, used = ([node.name for node in graph.graph.node] for graph in (step, again))
    assert whole[: whole.index("logits")] == used[: used.index("logits")]
    for shipped, built in ((encoder, build_encoder(checkpoint, PRESETS["int8"])), (step, again)):
        found = {tensor.name: to_array(tensor) for tensor in built.graph.initializer}
        for tensor in shipped.graph.initializer:
            # The output has 4 bits, fitted to calibration data.
            if not tensor.name.startswith("coarse_logits") and tensor.name != "two":
                np.testing.assert_allclose(found[tensor.name], to_array(tensor), rtol=1e-5, err_msg=tensor.name)


@pytest.mark.parametrize("recipe", [("nmt.py", "en-zh", "--work", "work"), ("figures.py",)])
def test_a_recipe_names_what_is_missing(recipe: tuple[str, ...], tmp_path: Path) -> None:
    command = [sys.executable, RECIPES / recipe[0], *recipe[1:], "--pairs", tmp_path / "cmn.txt"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    needed = ("torch", "transformers") if recipe[0] == "nmt.py" else ("sacrebleu",)
    complete = all(map(find_spec, needed))
    wanted = r"no such file: .*cmn\.txt\. Get" if complete else rf"missing packages: .*{needed[0]}.*pip install"
    assert re.match(wanted, done.stderr)
    assert done.stderr.count("\n") == 1


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
    assert {name: (size, sha256) for name, size, sha256 in rows} == found


def test_the_demo_models_are_small() -> None:
    assert sum(path.stat().st_size for path in DEMO.rglob("*")) < 40e6
