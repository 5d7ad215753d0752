"""Students of Firefox Translations: a made-up one, compared with numpy, and the real ones of the demo's package."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline import load_translation_model
from pipeline.backends.marian.compile.build import compile_model
from pipeline.backends.marian.compile.marian import read_options, sizes, transformers_array
from pipeline.backends.marian.compiled import find_translation_model
from pipeline.backends.marian.decode.generation import SearchRequest, log_softmax
from pipeline.backends.marian.decode.recurrent import RecurrentState
from pipeline.backends.marian.inspection import as_text, inspect_model
from pipeline.backends.marian.model import MarianModel
from pipeline.backends.marian.search.beams import beam_search, greedy
from pipeline.backends.marian.search.sentence_text import translated
from pipeline.backends.nmt_options import NmtConfig
from pipeline.bench.nmt import Engine, loaded_afresh
from pipeline.core.nmt.translator import TranslationRequest
from pipeline.errors import ModelError
from pipeline.events import SourceSentence
from pipeline.glossary.terms import Glossary, Term
from tests.backends.marian.conftest import found_ids
from tests.fixtures.student import write_student

SOURCES = [[5, 9, 17, 3, 0], [40, 2, 0], [8] * 12 + [0], [*range(30, 60), 0], [0]]
MOST = 24


def load(folder, weights="fp32"):
    return MarianModel.load(folder, NmtConfig(weights=weights, max_tokens=MOST))


@pytest.fixture(params=[False, True], ids=["shared", "split"])
def student(request, tmp_path):
    return write_student(tmp_path, split=request.param)


def expected(student, source):
    return student.greedy(source, MOST, None if student.split else student.candidates(source))


def test_greedy_search_gives_the_tokens_of_the_reference(student, tmp_path):
    model = load(tmp_path)
    for source in SOURCES:
        assert found_ids(model, source) == expected(student, source)


def test_scores_are_those_of_the_reference_and_the_weights_are_the_files_own(student, tmp_path):
    """In 8 bits, only activations are rounded: the error of a score stays below what rounding weights again would make."""
    for weights, most in (("fp32", 1e-4), ("auto", 0.33)):  # 0.31 on a CPU with AVX2 alone
        model = load(tmp_path, weights)
        for source in SOURCES:
            context, cells = student.encode(source), student.start
            state, token = model.decoder.encode(source), model.generation.start_token
            history: list[int] = []
            for _ in range(6):
                scores, attention = student.step(context, cells, history)
                found = model.decoder.step(state, token)
                kept = np.isfinite(found[: len(scores)])
                assert not kept[1]
                assert np.abs(found[: len(scores)][kept] - scores[kept]).max() < most * max(
                    1, np.abs(scores[kept]).max()
                )
                assert np.abs(model.decoder.attended(state) - attention).max() < most
                token = int(np.flatnonzero(kept)[np.argmax(scores[kept])])
                history.append(token)


def test_a_file_in_fp32_gives_the_same(tmp_path):
    write_student(tmp_path / "8 bits")
    write_student(tmp_path / "fp32", floats=True)
    models = [load(tmp_path / name) for name in ("8 bits", "fp32")]
    for source in SOURCES:
        ids = [found_ids(model, source) for model in models]
        assert ids[0] == ids[1]


def test_hypotheses_in_one_run_have_the_scores_that_each_has_alone(student, tmp_path, monkeypatch):
    decoder, start = load(tmp_path).decoder, load(tmp_path).generation.start_token
    alone, together = ([decoder.encode(SOURCES[0])], [decoder.encode(SOURCES[0])])
    for states in alone, together:
        decoder.step(states[0], start)
        states += [states[0].fork(), states[0].fork()]
    for tokens in (5, 9, 17), (9, 5, 0):
        wanted = [decoder.step(state, token) for state, token in zip(alone, tokens, strict=True)]
        with monkeypatch.context() as patch:
            patch.setattr(decoder, "_run_one", None)
            found = decoder.step_each(together, tokens)
        np.testing.assert_allclose(found, wanted, atol=1e-4)
    assert [state.tokens for state in together] == [state.tokens for state in alone]
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(decoder.attended(one), decoder.attended(other), atol=1e-4)
        np.testing.assert_allclose(
            decoder.attention(one, one.tokens), decoder.attention(other, other.tokens), atol=1e-4
        )


def test_beams_choose_among_the_shortlist_and_score_as_the_graph_does(tmp_path):
    student = write_student(tmp_path)
    model = MarianModel.load(tmp_path, NmtConfig(weights="fp32", beam_size=4, max_tokens=MOST))
    for source in SOURCES[:2]:
        tokens = list(beam_search(SearchRequest(model.decoder, source, model.generation)))
        assert {token.id for token in tokens} <= set(student.candidates(source)) - {1}
        state = model.decoder.encode(source)
        history = [model.generation.start_token, *(token.id for token in tokens)]
        for token, before in zip(tokens, history, strict=False):
            scores = log_softmax(model.decoder.step(state, before).astype(float))
            assert token.log_probability == pytest.approx(float(scores[token.id]), abs=1e-3)


def test_a_state_forgets_forks_and_begins_again(student, tmp_path):
    decoder, start = load(tmp_path).decoder, load(tmp_path).generation.start_token
    source = SOURCES[0]
    state = decoder.encode(source)
    once = [decoder.choose(state, token, start) for token in (start, 7, 8, 9)]
    state = decoder.encode(source)
    decoder.force(state, [start, 7])
    fork = state.fork()
    decoder.force(state, [30, 31, 32])
    decoder.truncate(state, 2)
    for each in (state, fork):
        assert [decoder.choose(each, token, start) for token in (8, 9)] == once[2:]
    decoder.truncate(state, 0)
    assert [decoder.choose(state, token, start) for token in (start, 7)] == once[:2]
    assert isinstance(state, RecurrentState)
    again = decoder.revealed(state)
    decoder.truncate(again, 0)
    assert decoder.choose(again, start, start) == once[0]
    assert state.steps == 2


def test_a_fork_at_an_earlier_step_knows_nothing_of_the_later_ones(student, tmp_path):
    decoder, start = load(tmp_path).decoder, load(tmp_path).generation.start_token
    state = decoder.encode(SOURCES[0])
    decoder.force(state, [start, 7, 30])
    cells: Any = state.memory
    fork = cells.fork(2)
    assert len(fork.history) == 3
    assert np.array_equal(fork.cells, cells.history[2])


def test_hidden_source_tokens_are_not_looked_at_until_they_are_revealed(student, tmp_path):
    decoder, start = load(tmp_path).decoder, load(tmp_path).generation.start_token
    whole, hidden = decoder.encode(SOURCES[0]), decoder.encode(SOURCES[0])
    decoder.hide(hidden, [1, 2])
    decoder.step(hidden, start)
    row = decoder.attended(hidden)
    assert row.shape == (3,)
    hidden = decoder.revealed(hidden)
    assert decoder.choose(hidden, start, start) == decoder.choose(whole, start, start)


def test_the_attention_that_a_state_keeps_is_that_of_the_tokens_fed_alone(student, tmp_path):
    decoder, start = load(tmp_path).decoder, load(tmp_path).generation.start_token
    state = decoder.encode(SOURCES[0])
    decoder.force(state, [start, 7, 8, 9])
    fork = state.fork()
    decoder.truncate(state, 2)
    decoder.force(state, [30, 31])
    for each, ids in ((state, [start, 7, 30]), (fork, [start, 7, 8, 9]), (fork, [start, 9])):
        rows = decoder.attention(each, ids)
        assert rows.shape == (len(ids), 5)
        assert np.array_equal(rows, decoder.attention(decoder.encode(SOURCES[0]), ids))
        assert each.tokens == tuple(ids)


def test_greedy_search_goes_on_after_committed_tokens(student, tmp_path):
    model = load(tmp_path)
    for source in SOURCES[:4]:
        whole = list(greedy(SearchRequest(model.decoder, source, model.generation)))
        ids = [token.id for token in whole]
        assert list(greedy(SearchRequest(model.decoder, source, model.generation, committed=ids[:4]))) == whole[4:]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content: content[:-300], "its header needs"),
        (lambda content: content[:40], "is not a readable Marian model"),
        (lambda content: b"\2" + content[1:], "begins with version 2"),
        (lambda content: content.replace(b"ssru\n", b"gruu\n"), "--dec-cell gruu"),
        (lambda content: content.replace(b"enc-depth: 2", b"enc-depth: 1"), "does not have: encoder.layers.1"),
        (lambda content: content.replace(b"enc-depth: 2", b"enc-depth: 3"), "lacks the weights encoder.layers.2"),
        (lambda content: content.replace(b"dim-ffn: 64", b"dim-ffn: 32"), "has the shape"),
        (lambda content: content.replace(b"heads: 2", b"heads: 3"), "3 heads"),
        (lambda content: content.replace(b"\x01\x41\0\0", b"\x02\x49\0\0"), "has the type 0x4902"),
        (lambda content: content.replace(b"Wemb\0", b"Wemp\0"), "lacks the weights shared.weight"),
        (lambda content: b"", "is not a readable Marian model"),
    ],
)
def test_a_damaged_or_unknown_model_is_refused_with_a_reason(tmp_path, damage, reason):
    write_student(tmp_path)
    (path,) = tmp_path.glob("model*.bin")
    assert callable(damage)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ModelError, match=reason):
        load(tmp_path)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("type", "s2s"),
        ("right-left", "true"),
        ("transformer-preprocess", "n"),
        ("transformer-postprocess", "da"),
        ("transformer-postprocess-emb", "nd"),
        ("transformer-postprocess-top", "n"),
        ("transformer-decoder-autoreg", "self-attention"),
        ("transformer-train-position-embeddings", "true"),
        ("transformer-no-projection", "true"),
        ("transformer-ffn-depth", "3"),
        ("transformer-ffn-activation", "gelu"),
        ("output-omit-bias", "true"),
    ],
)
def test_an_option_that_makes_another_model_is_refused(option, value):
    with pytest.raises(ModelError, match=f"--{option} {value}"):
        read_options(f"{option}: {value}".encode(), Path("model.bin"))


def test_tables_have_a_row_for_each_token_and_other_matrices_are_turned():
    matrix = np.arange(6).reshape(2, 3)
    for table in ("Wemb", "encoder_Wemb", "decoder_ff_logit_out_Wt"):
        assert transformers_array(table, matrix).tolist() == matrix.tolist()
    assert transformers_array("decoder_ff_logit_out_W", matrix).tolist() == matrix.T.tolist()
    assert transformers_array("decoder_ff_logit_out_b", matrix[:1]).tolist() == [0, 1, 2]


def test_a_file_without_options_or_a_size_is_refused():
    with pytest.raises(ModelError, match=r"has no special:model.yml"):
        read_options(None, Path("model.bin"))
    for content in (b"- dim-emb", b"\xff", b"[" * 5000):
        with pytest.raises(ModelError, match=r"special:model.yml (is not readable|does not map)"):
            read_options(content, Path("model.bin"))
    with pytest.raises(ModelError, match="says transformer-dim-ffn ''"):
        sizes(read_options(b"dim-emb: 8", Path("model.bin")), Path("model.bin"))


def test_a_matrix_whose_shape_is_turned_is_refused(tmp_path):
    write_student(tmp_path)
    (path,) = tmp_path.glob("model*.bin")
    turned = path.read_bytes().replace(b"\x20\0\0\0\x40\0\0\0", b"\x40\0\0\0\x20\0\0\0")
    path.write_bytes(turned)
    with pytest.raises(ModelError, match=r"fc1.weight has the shape \[32, 64\]"):
        load(tmp_path)


def test_files_of_other_models_are_refused(tmp_path):
    write_student(tmp_path / "split", split=True)
    folder = tmp_path / "shared"
    write_student(folder)
    (vocabulary,), (shortlist,) = folder.glob("vocab*"), folder.glob("lex*")
    other = (tmp_path / "split" / "trgvocab.xxen.spm").read_bytes()
    kept = vocabulary.read_bytes()
    vocabulary.write_bytes(other)
    with pytest.raises(ModelError, match="must be of the same model"):
        load(folder)
    vocabulary.write_bytes(kept)
    shortlist.write_bytes(shortlist.read_bytes()[:-4])
    with pytest.raises(ModelError, match="is not a readable shortlist"):
        load(folder)
    shortlist.rename(folder / "lex.50.50.enxx.s2t.bin")
    with pytest.raises(ModelError, match="is of another model than model.xxen"):
        load(folder)
    shortlist.with_name("lex.50.50.enxx.s2t.bin").unlink()
    assert load(folder).translate("hello")  # the whole vocabulary
    vocabulary.unlink()
    with pytest.raises(ModelError, match="no .onnx files"):
        load(folder)


def test_the_files_name_the_languages(tmp_path):
    write_student(tmp_path, pair="ende")
    assert load(tmp_path).languages == ("en", "de")


def test_inspect_shows_a_student_and_compile_leaves_it_as_it_is(tmp_path):
    write_student(tmp_path, split=True)
    report = inspect_model(tmp_path)
    assert (report.runs, report.layout, report.layers, report.source, report.target) == (
        True,
        "recurrent",
        2,
        None,
        "en",
    )
    assert "trgvocab.xxen.spm" in as_text(report)
    with pytest.raises(ModelError, match="runs as it is"):
        compile_model(tmp_path, tmp_path / "compiled")


@pytest.mark.parametrize("weights", ["auto", "fp32"])
@pytest.mark.parametrize(
    ("pair", "said", "translation"),
    [
        ("en-pt", "Cameras are forbidden in the church.", "As câmeras são proibidas na igreja."),
        ("en-pt", "Where is the nearest hospital?", "Onde está o hospital mais próximo?"),
        ("pt-en", "O restaurante abre às seis da tarde.", "The restaurant opens at six in the afternoon."),
        ("pt-en", "Onde você mora?", "Where do you live?"),
    ],
)
def test_the_demos_students_translate(pair, said, translation, weights):
    source, target = pair.split("-")
    model = load_translation_model(source, target, NmtConfig(f"firefox/{pair}-tiny", weights=weights))
    assert model.languages == (source, target)
    assert model.translate(said) == translation


def test_the_terms_of_a_glossary_are_written_also_if_the_shortlist_lacks_them(en_pt):
    glossary = Glossary((Term("load balancer", "nivelador"), Term("Kubernetes", None), Term("budget", "plafond")))
    for said, translation in (
        ("The load balancer runs on Kubernetes in the cloud.", "O nivelador é executado em Kubernetes na nuvem."),
        ("We will discuss the budget at three o'clock.", "Vamos discutir o plafond às três horas."),
    ):
        assert (
            translated(en_pt.stream(TranslationRequest(SourceSentence(0, "en", said), glossary=glossary)))
            == translation
        )


def test_four_hundred_words_without_a_mark_are_translated_whole(en_pt):
    said = (
        "we walked along the river and then he told me about the house that his father had built when he was young and i "
        "said that i would like to see it one day because it must be a very quiet place with many trees around it so we "
    )
    translation = en_pt.translate(" ".join((said * 9).split()[:400]))
    assert 350 < len(translation.split()) < 450
    assert translation.count("a casa que seu pai tinha construído") >= 8


@pytest.mark.slow
def test_a_direction_takes_at_most_70_mb(en_pt):
    """Over what its libraries take: its graphs and its file are not kept beside what is loaded."""
    folder = find_translation_model(NmtConfig("firefox/en-pt-tiny"))
    _, memory_mb = loaded_afresh(Engine("this project", "int8", str(folder)), "Where do you live?")
    assert memory_mb < 70
