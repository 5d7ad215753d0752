"""The recipes: held-out sentences, weights of compiled models, missing files and packages."""

import hashlib
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from card import refuse_other_files
from heldout import SENTENCES
from pairs import check_tests, digest, held_out_phrases, without_near_duplicates
from phrasebook import corpus, draws
from tatoeba import nearest, read_pairs, split, spoken

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "models" / "recipes"
DEMO = ROOT / "models" / "demo"


def differing_words(one, other):
    """The number of differing words of two sentences of equal length."""
    return sum(a != b for a, b in zip(spoken(one).split(), spoken(other).split(), strict=True))


@pytest.mark.slow
def test_no_training_pair_has_a_side_of_a_test_pair_or_nearly_its_english():
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


def test_the_split_is_the_same_every_time():
    pairs = corpus(1200, seed=7)
    assert {pair[0] for pair in split(pairs)[1]} == {pair[0] for pair in split(list(reversed(pairs)))[1]}


def test_held_out_phrases_leave_every_template_in_training():
    held = {english for english, _ in held_out_phrases()}
    drawn = [english for english, _ in draws(20_000, seed=2)]
    assert len(held) == 300
    assert not held & SENTENCES
    # Held-out sentences are rarely drawn, so excluding them leaves every template in training.
    assert sum(english in held for english in drawn) < 0.02 * len(drawn)


def test_drawn_phrases_leave_out_what_the_demo_says():
    everything = frozenset(english for english, _ in corpus(500, seed=1))
    assert not everything & {english for english, _ in draws(500, seed=1, exclude=everything)}


def test_phrases_that_are_nearly_a_test_sentence_are_left_out():
    phrases = [("I would like two tickets.", "我要两张票。"), ("I would like to leave.", "我想走了。")]
    assert without_near_duplicates(phrases, [("I would like ten tickets!", "我要十张票！")]) == phrases[1:]


def test_everyday_sentences_are_distinct_and_unheard():
    lines = (RECIPES / "everyday.txt").read_text("utf-8").splitlines()
    assert len(set(lines)) == len(lines) > 20_000
    assert not {spoken(line) for line in lines} & {spoken(sentence) for sentence in SENTENCES}


def test_a_model_is_measured_on_sentences_left_out_of_training():
    facts = {"tests": digest({"Where is it?", "It is here."})}
    check_tests(facts, {"It is here.", "Where is it?"})
    with pytest.raises(SystemExit, match="another edition of --pairs"):
        check_tests(facts, {"It is here."})


def test_the_baseline_copies_the_translation_of_the_most_similar_sentence():
    training = [
        ("The train is late.", "火车晚点了。"),
        ("The bus is late.", "公交车晚点了。"),
        ("I am hungry.", "我饿了。"),
    ]
    assert nearest(training, ["Is the train very late?", "You are hungry."]) == ["火车晚点了。", "我饿了。"]
    turned = [(chinese, english) for english, chinese in training]
    assert nearest(turned, ["火车来了。"]) == ["The train is late."]


@pytest.mark.parametrize("recipe", [("nmt.py", "en-zh", "--work", "work"), ("figures.py",)])
def test_a_recipe_names_what_is_missing(recipe, tmp_path):
    command = [sys.executable, RECIPES / recipe[0], *recipe[1:], "--pairs", tmp_path / "cmn.txt"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    needed = ("torch", "transformers") if recipe[0] == "nmt.py" else ("sacrebleu",)
    complete = all(map(find_spec, needed))
    wanted = r"no such file: .*cmn\.txt\. Get" if complete else rf"missing packages: .*{needed[0]}.*pip install"
    assert re.match(wanted, done.stderr)
    assert done.stderr.count("\n") == 1


def test_a_model_replaces_only_a_model(tmp_path):
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
def test_pairs_that_are_a_folder_or_no_text_are_named(content, tmp_path):
    path = tmp_path / "cmn-eng.zip"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(SystemExit, match=r"cmn-eng\.zip.* name the cmn\.txt in them with --pairs"):
        read_pairs(path)


@pytest.mark.parametrize("model", sorted(path.name for path in DEMO.iterdir() if path.is_dir()))
def test_a_card_lists_the_files_that_ship(model):
    folder = DEMO / model
    rows = re.findall(r"^\| (\S+) \| ([\d,]+) \| `(\w{64})` \|$", (folder / "README.md").read_text(), re.MULTILINE)
    found = {
        path.name: (f"{path.stat().st_size:,}", hashlib.sha256(path.read_bytes()).hexdigest())
        for path in folder.iterdir()
        if path.name != "README.md"
    }
    assert {name: (size, sha256) for name, size, sha256 in rows} == found


def test_the_demo_models_are_small():
    assert sum(path.stat().st_size for path in DEMO.rglob("*")) < 40e6
