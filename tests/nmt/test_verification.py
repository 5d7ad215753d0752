"""Verification of a draft gives the tokens of greedy search, in every layout, whatever the draft is."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.errors import DecodingStoppedError
from pipeline.nmt.decoder import Decoder, DecoderState
from pipeline.nmt.decoders import load_decoder
from pipeline.nmt.drafts import Draft
from pipeline.nmt.generation import GenerationOptions
from pipeline.nmt.layout import find_layout
from pipeline.nmt.model import MarianModel
from pipeline.nmt.onnx_header import has_dynamic_scales
from pipeline.nmt.search import greedy, verified
from pipeline.nmt.streaming import StreamingDecoder
from tests.conftest import LAYOUTS, SHIPPED_TRANSLATORS, TINY, compiled_tiny, golden, make_model_dir
from tests.nmt.test_decoder import PAD, spied
from tests.nmt.test_streaming import edited

COMPILED = ("fp32", "int8", "int4")
WAYS = [*sorted(LAYOUTS), *(f"streaming {weights}" for weights in COMPILED)]
# One way for each decoder, and one with 8-bit activations.
KINDS = ["merged", "own-past-15", "no-past", "streaming fp32", "streaming int8"]


def load(way: str, folder: Path) -> MarianModel:
    if way.startswith("streaming"):
        return MarianModel.load(compiled_tiny(way.split()[1]))
    return MarianModel.load(make_model_dir(folder, way))


def growing(name: str) -> Iterator[list[str]]:
    """The fixture's sentences as they grow by one word, or by two characters."""
    for row in golden(name):
        words = row["source"].split() if " " in row["source"] else [*row["source"]]
        space, step = (" ", 1) if " " in row["source"] else ("", 2)
        yield [space.join(words[:end]) for end in (*range(1, len(words), step), len(words))]


def updates(name: str, at_least: int) -> Iterator[list[str]]:
    """As ``growing``, until there were so many updates; longer texts are made of two sentences."""
    rows, count = list(growing(name)), 0
    longer = [[*first, *(f"{first[-1]} {text}" for text in second)] for first, second in itertools.pairwise(rows)]
    for texts in (*rows, *longer):
        if count >= at_least:
            return
        count += len(texts) - 1
        yield texts
    pytest.fail(f"only {count} updates")


def ids(tokens: Iterator[Any]) -> list[int]:
    return [token.id for token in tokens]


def differing(
    model: MarianModel, name: str, at_least: int, whole: bool = False, **changes: Any
) -> tuple[int, int, int]:
    """(updates, accepted tokens, updates with other tokens than greedy search from scratch)."""
    options = dataclasses.replace(model.generation, **({"max_tokens": 60} | changes))
    count = accepted = differ = 0
    for texts in updates(name, at_least):
        draft, last = Draft(), ()
        for text in texts:
            source = model.tokenizer.encode(text)
            guess = last if whole else draft.guess(0)
            expected = ids(greedy(model.decoder, source, options))
            found = ids(verified(model.decoder, source, options, guess))
            count += text != texts[0]
            differ += found != expected
            accepted += sum(1 for a, b in zip(guess, expected, strict=False) if a == b)
            last = tuple(expected[:-1])
            draft.keep(0, last)
    return count, accepted, differ


@pytest.mark.parametrize("way", WAYS)
def test_a_verified_draft_gives_the_tokens_of_greedy_search(way: str, tmp_path: Path) -> None:
    model = load(way, tmp_path)
    assert model.decoder.rounding is not None
    count, accepted, differ = differing(model, "tiny-marian", 100 if way == "streaming int8" else 30)
    assert (count >= 30, accepted > 30, differ) == (True, True, 0)


WHOLE = ["streaming int8", *SHIPPED_TRANSLATORS]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "whole"), [*((way, False) for way in (*WAYS, *SHIPPED_TRANSLATORS)), *((way, True) for way in WHOLE)]
)
def test_a_thousand_updates_give_the_tokens_of_greedy_search(way: str, whole: bool, tmp_path: Path) -> None:
    shipped = way in SHIPPED_TRANSLATORS
    model = MarianModel.load(SHIPPED_TRANSLATORS[way]) if shipped else load(way, tmp_path)
    count, accepted, differ = differing(model, way if shipped else "tiny-marian", 1_000, whole)
    print(f"{count} updates, {accepted} tokens accepted")
    assert (count >= 1_000, differ) == (True, 0)


@pytest.mark.parametrize("way", KINDS)
def test_any_draft_gives_the_tokens_of_greedy_search(way: str, tmp_path: Path) -> None:
    model, draw = load(way, tmp_path), random.Random(0)
    options = dataclasses.replace(model.generation, max_tokens=40)
    for row in golden("tiny-marian")[:8]:
        expected = row["target_ids"] if "int" not in way else ids(greedy(model.decoder, row["source_ids"], options))
        kept = expected[: draw.randrange(len(expected))]
        strange = [draw.choice(expected[:-1]) for _ in range(draw.randrange(60))]
        for draft in ([], expected[:-1], expected, [*kept, *strange], strange):
            assert ids(verified(model.decoder, row["source_ids"], options, draft)) == expected


@pytest.mark.parametrize("way", KINDS)
def test_committed_tokens_are_kept_and_greedy_search_goes_on_after_them(way: str, tmp_path: Path) -> None:
    model = load(way, tmp_path)
    rows = golden("tiny-marian")[:8]
    options = dataclasses.replace(model.generation, max_tokens=40)
    differ = 0
    for row, other in itertools.pairwise(rows):
        # Tokens of another sentence: greedy search alone would not choose them.
        for committed in (other["target_ids"][:2], row["target_ids"][:3]):
            expected = ids(greedy(model.decoder, row["source_ids"], options, committed=committed))
            differ += [*committed, *expected] != row["target_ids"]
            for draft in ([], expected[:4], other["target_ids"][2:6]):
                found = verified(model.decoder, row["source_ids"], options, draft, committed=committed)
                assert ids(found) == expected
    assert differ >= 3


def test_an_unchanged_draft_takes_one_run_of_the_decoder(tmp_path: Path) -> None:
    for layout in ("merged", "split", "own-past-15", "no-past"):
        model = MarianModel.load(make_model_dir(tmp_path / layout, layout))
        assert model.decoder.rounding is not None
        runs = spied(model.decoder)
        row = golden("tiny-marian")[0]
        assert ids(verified(model.decoder, row["source_ids"], model.generation, row["target_ids"])) == row["target_ids"]
        assert [name for name, _, _ in runs] == ["_encoder", "_first"], layout


def test_in_a_compiled_model_too(monkeypatch: pytest.MonkeyPatch) -> None:
    model, fed = MarianModel.load(compiled_tiny("int8")), []
    run = StreamingDecoder._run_step

    def spy(decoder: StreamingDecoder, state: DecoderState, tokens: tuple[int, ...], *, scores: bool) -> Any:
        fed.append(len(tokens))
        return run(decoder, state, tokens, scores=scores)

    row = golden("tiny-marian")[0]
    expected = ids(greedy(model.decoder, row["source_ids"], model.generation))
    monkeypatch.setattr(StreamingDecoder, "_run_step", spy)
    assert ids(verified(model.decoder, row["source_ids"], model.generation, expected)) == expected
    assert fed == [len(expected)]
    fed.clear()
    other = [*expected[:3], expected[1], expected[1]]
    assert ids(verified(model.decoder, row["source_ids"], model.generation, other)) == expected
    assert fed == [6] + [1] * (len(expected) - 4)


SETTINGS: tuple[dict[str, Any], ...] = (
    {"no_repeat_ngram": 2},
    {"bad_words": ((PAD,), (400,), (399, 401))},
    {"forced_begin_token": 405},
    {"max_tokens": 4},
    {"max_tokens": 4, "forced_end_token": None},
    {"max_tokens": 1},
)


@pytest.mark.parametrize("way", ["merged", "no-past", "streaming int8"])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_guards_forced_tokens_and_limits_are_honoured_as_in_greedy_search(
    way: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    model = load(way, tmp_path)
    for row in golden("tiny-marian")[:6]:
        bad = tuple((token,) for token in row["target_ids"][1:3])
        changes = settings | ({"bad_words": (*settings["bad_words"], *bad)} if "bad_words" in settings else {})
        options = dataclasses.replace(model.generation, **({"max_tokens": 40} | changes))
        expected = list(greedy(model.decoder, row["source_ids"], options))
        unchanged = [token.id for token in expected]
        for draft in (unchanged, row["target_ids"], [*unchanged[:2], *row["target_ids"]], unchanged * 3):
            found = list(verified(model.decoder, row["source_ids"], options, draft))
            for ours, theirs in zip(found, expected, strict=True):
                assert ours.log_probability == pytest.approx(theirs.log_probability, abs=0.1)
                assert dataclasses.replace(ours, log_probability=theirs.log_probability) == theirs


@pytest.mark.parametrize("way", ["merged", "streaming fp32"])
def test_a_token_in_doubt_is_decided_by_single_steps(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(way, tmp_path)
    rows = golden("tiny-marian")[:10]
    leads = []
    for row in rows:
        state = model.decoder.encode(row["source_ids"])
        leads += [choice.lead for choice in model.decoder.choose_each(state, [PAD, *row["target_ids"][:-1]], PAD)]
    # Above every lead: each token is in doubt. At the median, some are.
    for rounding in (max(leads) + 1, float(np.median(leads))):
        monkeypatch.setitem(vars(model.decoder), "rounding", rounding)
        for row in rows:
            draft = row["target_ids"]
            assert ids(verified(model.decoder, row["source_ids"], model.generation, draft)) == draft


def test_rows_that_lie_within_the_rounding_error_are_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder whose run of several tokens answers otherwise than single steps, where the lead is small."""
    model = MarianModel.load(compiled_tiny("fp32"))
    row = golden("tiny-marian")[0]
    choose_each = StreamingDecoder.choose_each

    def noisy(decoder: StreamingDecoder, state: DecoderState, tokens: Sequence[int], pad: int) -> list[Any]:
        found = choose_each(decoder, state, tokens, pad)
        return [dataclasses.replace(found[0], token=row["target_ids"][1], lead=0.0005), *found[1:]]

    monkeypatch.setattr(StreamingDecoder, "choose_each", noisy)
    assert (
        ids(verified(model.decoder, row["source_ids"], model.generation, [row["target_ids"][1]])) == row["target_ids"]
    )


def test_activations_with_a_scale_per_tensor_are_not_verified(tmp_path: Path) -> None:
    folder = make_model_dir(tmp_path / "model", "merged")
    for path in (TINY / "int8").iterdir():
        (folder / path.name).symlink_to(path)
    model = MarianModel.load(folder, suffix="_int8", max_tokens=60)
    assert model.decoder.rounding is None
    count, _, differ = differing(model, "tiny-marian", 10)
    assert (count >= 10, differ) == (True, 0)


def test_a_graph_that_finds_scales_at_run_time_is_recognised() -> None:
    names = (
        "decoder_model_merged.onnx",
        "decoder_with_past_model.onnx",
        "encoder_model.onnx",
        "own-past-15/decoder.onnx",
    )
    assert not any(has_dynamic_scales(TINY / name) for name in names)
    assert has_dynamic_scales(TINY / "int8" / "decoder_model_merged_int8.onnx")
    assert not has_dynamic_scales(TINY / "q4" / "decoder_model_merged_q4.onnx")
    # The compiler's 8-bit encoder has them, its decoder has not.
    assert has_dynamic_scales(compiled_tiny("int8") / "encoder.onnx")
    assert not has_dynamic_scales(compiled_tiny("int8") / "step.onnx")


def test_the_rounding_error_is_larger_if_activations_are_rounded(tmp_path: Path) -> None:
    roundings = [load(way, tmp_path / way).decoder.rounding for way in KINDS]
    assert roundings == [1e-3, 1e-3, 1e-3, 1e-3, 0.08]
    assert MarianModel.load(compiled_tiny("int4")).decoder.rounding == 0.08


@pytest.mark.parametrize("name", ["fp16", "q4"])
def test_other_quantised_exports_give_the_tokens_of_greedy_search(name: str, tmp_path: Path) -> None:
    folder = make_model_dir(tmp_path / "model", "merged")
    for path in (TINY / name).iterdir():
        (folder / path.name).symlink_to(path)
    model = MarianModel.load(folder, suffix=f"_{name}", max_tokens=60)
    print(f"{name}: rounding {model.decoder.rounding}")
    assert differing(model, "tiny-marian", 60)[2] == 0


def without_rows(graph: Any) -> None:
    """Change a step graph to one that chooses after the last token only, as older compilers wrote it."""
    import onnx

    (final,) = [node for node in graph.graph.node if node.name == "final"]
    graph.graph.initializer.append(onnx.numpy_helper.from_array(np.array(-1, np.int64), "last"))
    last = onnx.helper.make_node("Gather", [final.input[0], "last"], ["final"], "final", axis=1)
    graph.graph.node[list(graph.graph.node).index(final)].CopyFrom(last)
    (lead,) = [output for output in graph.graph.output if output.name == "lead"]
    graph.graph.output.remove(lead)


def test_a_model_compiled_by_an_older_version_is_not_verified(tmp_path: Path) -> None:
    model = MarianModel.load(edited(tmp_path, "step.onnx", without_rows))
    assert model.decoder.rounding is None
    for row in golden("tiny-marian")[:10]:
        options, source = dataclasses.replace(model.generation, max_tokens=60), row["source_ids"]
        assert ids(verified(model.decoder, source, options, row["target_ids"])) == row["target_ids"]
        state = model.decoder.encode(source)
        assert model.decoder.force(state, [PAD, *row["target_ids"][:3]]).token == row["target_ids"][3]


def test_a_state_that_was_truncated_goes_on_like_one_that_saw_only_the_rest(model_dir: Path) -> None:
    decoder = load_decoder(find_layout(model_dir))
    state, other = decoder.encode([5, 6, 7, 0]), decoder.encode([5, 6, 7, 0])
    decoder.score_each(state, [PAD, 400, 401, 402])
    fork = state.fork()
    decoder.truncate(state, 2)
    assert state.tokens == (PAD, 400)
    for token in (PAD, 400):
        decoder.step(other, token)
    for token in (410, 411):
        found, expected = decoder.step(state, token).logits, decoder.step(other, token).logits
        known = np.isfinite(expected)
        assert np.abs(found[known] - expected[known]).max() < 1e-4
    assert fork.tokens == (PAD, 400, 401, 402)
    assert decoder.step(fork, 403).token == decoder.step(fork_of([PAD, 400, 401, 402], decoder), 403).token
    decoder.truncate(state, 0)
    assert decoder.step(state, PAD).token == decoder.step(decoder.encode([5, 6, 7, 0]), PAD).token


def fork_of(tokens: list[int], decoder: Decoder) -> DecoderState:
    state = decoder.encode([5, 6, 7, 0])
    for token in tokens:
        decoder.step(state, token)
    return state


def test_verification_ends_where_the_time_runs_out_and_can_be_terminated(tmp_path: Path) -> None:
    model = MarianModel.load(make_model_dir(tmp_path, "merged"))
    row = golden("tiny-marian")[0]
    calls = iter([False, False, True])
    tokens = list(
        verified(model.decoder, row["source_ids"], model.generation, row["target_ids"], expired=lambda: next(calls))
    )
    assert [token.id for token in tokens] == row["target_ids"][:3]
    assert [token.truncated for token in tokens] == [False, False, True]
    started: list[DecoderState] = []
    found = verified(model.decoder, row["source_ids"], model.generation, row["target_ids"][:1], started.append)
    next(found)
    started[0].terminate()
    with pytest.raises(DecodingStoppedError):
        list(found)


def test_no_token_is_generated_beyond_the_limit() -> None:
    model = MarianModel.load(compiled_tiny("fp32"))
    row = golden("tiny-marian")[0]
    options = GenerationOptions(PAD, 0, PAD, max_tokens=3)
    for committed in (row["target_ids"][:3], row["target_ids"][:5]):
        assert ids(greedy(model.decoder, row["source_ids"], options, committed=committed)) == []
        assert ids(verified(model.decoder, row["source_ids"], options, [400], committed=committed)) == []
