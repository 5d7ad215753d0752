"""Pieces mapped through vocab.json, and incremental detokenisation."""

import json
import os
import random
import shutil

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.backends.marian.compile.measure import Sample, translate_sample
from pipeline.backends.marian.decode.parts import ModelParts
from pipeline.backends.marian.decode.tokenizer import IncrementalDetokenizer, MarianTokenizer
from pipeline.backends.marian.model import MarianModel
from pipeline.errors import ModelError, UsageError
from tests.conftest import FIXTURES, SETTINGS, SHIPPED_TRANSLATORS, TINY, examples, golden


@pytest.fixture(scope="module")
def tokenizer():
    return MarianTokenizer.load(TINY)


def test_ids_equal_those_of_transformers(tokenizer):
    for row in golden("tiny-marian"):
        assert tokenizer.encode(row["source"]) == row["source_ids"]


@pytest.mark.parametrize(("name", "folder"), [("tiny-marian", TINY), *SHIPPED_TRANSLATORS.items()])
def test_a_thousand_varied_lines_give_the_ids_of_transformers(name, folder):
    lines = json.loads((FIXTURES / f"tokens-{name}.json").read_text())
    assert len(lines) >= 1000
    tokenizer = MarianTokenizer.load(folder)
    wrong = [(line, tokenizer.encode(line), ids) for line, ids in lines if tokenizer.encode(line) != ids]
    assert wrong == []


def test_special_tokens_in_the_text_are_text(tokenizer):
    ids = tokenizer.encode("one </s> two <pad> three <unk> >>deu<<")
    assert ids.count(tokenizer.end_token) == 1
    assert tokenizer.pad_token not in ids


def test_unknown_pieces_are_unk(tokenizer):
    assert tokenizer.unknown_token in tokenizer.encode("龘")


@settings(max_examples=examples(300))
@given(data=st.data())
def test_joined_deltas_equal_the_whole(tokenizer, data):
    ids = data.draw(st.lists(st.integers(0, tokenizer.size - 1), max_size=30))
    special = {tokenizer.end_token, tokenizer.unknown_token, tokenizer.pad_token}
    spm = sentencepiece.SentencePieceProcessor(model_file=str(TINY / "target.spm"))
    vocabulary = {index: piece for piece, index in json.loads((TINY / "vocab.json").read_text("utf-8")).items()}
    whole = spm.decode_pieces([vocabulary[index] for index in ids if index not in special])
    detokenizer = tokenizer.detokenizer()
    deltas = [detokenizer.push(index) for index in ids] + [detokenizer.flush()]
    assert "".join(deltas) == whole.replace("▁", " ").strip()


@settings(max_examples=examples(300))
@given(text=st.text(max_size=12).filter(lambda t: t == t.strip(" ")))
def test_byte_pieces_never_show_half_a_character(text):
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return  # a lone surrogate is no text
    pieces = {i: f"<0x{i:02X}>" for i in range(256)}
    detokenizer = IncrementalDetokenizer(pieces, set())
    deltas = [detokenizer.push(byte) for byte in data]
    assert all("\N{REPLACEMENT CHARACTER}" not in delta or "\N{REPLACEMENT CHARACTER}" in text for delta in deltas)
    assert "".join(deltas) + detokenizer.flush() == text


def test_a_broken_byte_sequence_is_shown_not_swallowed():
    pieces = {0xE4: "<0xE4>", 0xBD: "<0xBD>", 300: "▁word"}
    detokenizer = IncrementalDetokenizer(pieces, set())
    assert [detokenizer.push(i) for i in (0xE4, 0xBD, 300)] == ["", "", "\N{REPLACEMENT CHARACTER} word"]


def test_spaces_occur_only_between_words():
    detokenizer = IncrementalDetokenizer({1: "▁He", 2: "llo", 3: "▁", 4: "▁you"}, {0})
    assert [detokenizer.push(i) for i in (1, 2, 3, 4, 3, 0)] == ["He", "llo", "", "  you", "", ""]
    assert detokenizer.flush() == ""


def copied(folder):
    for name in SETTINGS:
        shutil.copy(TINY / name, folder / name)
    return folder


@pytest.mark.parametrize("name", ["source.spm", "target.spm", "vocab.json"])
def test_a_missing_file_is_named(name, tmp_path):
    (copied(tmp_path) / name).unlink()
    with pytest.raises(ModelError, match=f"lacks {name}"):
        MarianTokenizer.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("source.spm", b"not a model"),
        ("target.spm", b""),
        ("vocab.json", b"{"),
        ("vocab.json", b"[1, 2]"),
        ("vocab.json", b'{"</s>": "0"}'),
        ("vocab.json", b'{"a": 1}'),
        ("vocab.json", b"[" * 100_000),
        ("vocab.json", b"\xff\xfe"),
    ],
)
def test_a_damaged_file_is_named(name, content, tmp_path):
    (copied(tmp_path) / name).write_bytes(content)
    with pytest.raises(ModelError, match=name.replace(".", r"\.")):
        MarianTokenizer.load(tmp_path)


def multilingual(folder):
    copied(folder)
    vocabulary = json.loads((folder / "vocab.json").read_text("utf-8"))
    for code in (">>cmn_Hans<<", ">>cmn_Hant<<", ">>deu<<"):
        vocabulary[code] = len(vocabulary)
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    return MarianTokenizer.load(folder)


def test_a_target_code_stands_before_the_source(tmp_path):
    tokenizer = multilingual(tmp_path)
    assert tokenizer.target_codes == ["cmn_Hans", "cmn_Hant", "deu"]
    plain = tokenizer.encode("Good morning.")
    assert tokenizer.encode("Good morning.", "deu") == [tokenizer.size - 1, *plain]


def test_the_code_is_chosen_by_the_target_language(tmp_path):
    bilingual = MarianModel.load(TINY)
    model = MarianModel(ModelParts(multilingual(tmp_path), bilingual.decoder, bilingual.generation, (None, None), 256))
    assert bilingual.target_code("zh") is None
    assert model.target_code("zh") == "cmn_Hans"
    assert model.target_code("de") == "deu"
    assert model.target_code("cmn_Hant") == "cmn_Hant"
    # As in models of the table of pairs: codes with a script, or codes of languages that share a two-letter code.
    model.tokenizer.target_codes = ["aze_Latn", "hrv", "srp_Latn"]
    assert [model.target_code(target) for target in ("az", "hr", "sh")] == ["aze_Latn", "hrv", "srp_Latn"]
    model.tokenizer.target_codes = ["cmn_Hans", "cmn_Hant", "deu"]
    with pytest.raises(UsageError, match="does not translate into 'fr'; its targets are cmn_Hans, cmn_Hant, deu"):
        model.check_languages("en", "fr")
    with pytest.raises(UsageError, match="into several languages; its targets are cmn_Hans, cmn_Hant, deu: choose one"):
        model.translate("Good morning.")


def test_references_are_translations_into_one_language(tmp_path):
    bilingual = MarianModel.load(TINY)
    model = MarianModel(ModelParts(multilingual(tmp_path), bilingual.decoder, bilingual.generation, (None, "de"), 256))
    asked: list[str | None] = []
    model.tokenizer.encode = lambda text, code=None: asked.append(code) or bilingual.tokenizer.encode(text)
    sources = ("Hello.", "Thank you.", "Where is the bank?")
    translate_sample(model, Sample(sources), lambda done: None)
    translate_sample(model, Sample(sources, sources), lambda done: None)
    assert asked == ["cmn_Hans", "cmn_Hant", "deu", "deu", "deu", "deu"]
    model.languages = (None, None)
    with pytest.raises(UsageError, match="does not say which one the sample's translations are in"):
        translate_sample(model, Sample(sources, sources), lambda done: None)


def test_a_non_utf8_path_can_be_read(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    copied(folder)
    assert MarianTokenizer.load(folder).size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Jürgen, São Tomé.", "Jurgen, Sao Tome."),
        ("chúng tôi muốn đặt", "chung toi muon dat"),
        ("Straße; ガラス, 친구, № 5.", "Strasse; ガラス, 친구, № 5."),
        ("我们在这里见。", "我们在这里见。"),
    ],
)
def test_accents_that_the_vocabulary_lacks_are_left_out(text, expected):
    tokenizer = MarianTokenizer.load(SHIPPED_TRANSLATORS["demo-zh-en"])
    assert tokenizer.without_unknown_signs(text) == expected


def test_known_accents_are_kept():
    tokenizer = MarianTokenizer.load(SHIPPED_TRANSLATORS["demo-en-zh"])
    assert tokenizer.without_unknown_signs("a café, Käse") == "a café, Kase"


def test_separate_vocabularies_have_special_tokens_of_their_own(tmp_path):
    pieces = ["<pad>", "▁hello", "</s>", "<unk>", "."]
    (copied(tmp_path) / "target_vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
    tokenizer = MarianTokenizer.load(tmp_path)
    assert tokenizer.decode([1, 3, 4, 2, 0]) == "hello."
    assert (tokenizer.target_size, tokenizer.encode("x")[-1]) == (5, 0)


def test_a_damaged_sentencepiece_model_is_rejected_or_usable(tmp_path):
    """Damage has to be found at load time, because errors at a later use could not name the file."""
    rng = random.Random(0)
    refused = 0
    for name in ("source.spm", "target.spm"):
        whole = (TINY / name).read_bytes()
        for other in SETTINGS:
            (tmp_path / other).write_bytes((TINY / other).read_bytes())
        for _ in range(150):
            damaged = bytearray(whole)
            for _ in range(8):
                damaged[rng.randrange(len(whole))] = rng.randrange(256)
            (tmp_path / name).write_bytes(damaged)
            try:
                tokenizer = MarianTokenizer.load(tmp_path)
            except ModelError:
                refused += 1
                continue
            assert tokenizer.target_ids
            assert tokenizer.pseudo_text(2)
    assert refused > 20
