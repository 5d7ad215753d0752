"""Quantised weights have the formats of ONNX Runtime's kernels and are as close to the originals as possible."""

import numpy as np
import pytest
from sacrebleu.metrics import CHRF

from pipeline.backends.marian.compile.graph import GraphBuilder, Precision
from pipeline.backends.marian.compile.measure import chrf
from pipeline.backends.marian.compile.quantize import block_size, quantize_blocks, quantize_channels
from pipeline.backends.onnx_session import open_session
from tests.conftest import golden


def restored(values, scales, bits, columns):
    """Dequantise blocks."""
    numbers = values if bits == 8 else np.stack([values & 15, values >> 4], -1).reshape(*values.shape[:2], -1)
    weights = (numbers.astype(np.float32) - (1 << (bits - 1))) * scales[..., None]
    return weights.reshape(len(values), -1)[:, :columns]


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("shape", [(24, 48), (5, 256), (300, 20), (2, 16)])
def test_each_weight_is_rounded_by_at_most_half_a_step(shape, bits):
    weight = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    values, scales = quantize_blocks(weight, bits)
    size = block_size(shape[1])
    assert values.shape == (shape[0], -(-shape[1] // size), size * bits // 8)
    steps = np.repeat(np.abs(scales), size, axis=1)[:, : shape[1]]
    off = np.abs(restored(values, scales, bits, shape[1]) - weight)
    inside = np.abs(weight) <= steps * ((1 << (bits - 1)) - 1)  # the rest is clipped, at 4 bits on purpose
    assert (off <= steps * 0.501)[inside].all()
    assert inside.mean() > 0.85


def test_rows_of_zeros_stay_zeros():
    for bits in (4, 8):
        values, scales = quantize_blocks(np.zeros((3, 32), np.float32), bits)
        assert not restored(values, scales, bits, 32).any()
    assert not quantize_channels(np.zeros((3, 32), np.float32))[0].any()


@pytest.mark.parametrize(
    ("precision", "tolerance"), [(p, m) for p, m in zip(Precision, (1e-6, 0.02, 0.03, 0.2), strict=True)]
)
def test_the_kernels_compute_the_product(precision, tolerance, tmp_path):
    """In a session with the product's settings: without them, 8-bit products overflow on some processors."""
    rng = np.random.default_rng(1)
    weight, bias = rng.standard_normal((40, 48)).astype(np.float32), rng.standard_normal(40).astype(np.float32)
    x = rng.standard_normal((1, 7, 48)).astype(np.float32)
    builder = GraphBuilder("product")
    builder.input("x", np.float32, [1, "n", 48])
    builder.linear("x", weight, bias, precision, "y")
    builder.output("y", np.float32, [1, "n", 40])
    (tmp_path / "product.onnx").write_bytes(builder.build({}).SerializeToString())
    (found,) = open_session(tmp_path / "product.onnx", threads=1).run(None, {"x": x})
    expected = x @ weight.T + bias
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


def test_rounding_fitted_to_inputs_has_less_error_on_them():
    rng = np.random.default_rng(2)
    mixing = rng.standard_normal((256, 256))
    inputs = rng.standard_normal((500, 8)) @ mixing[:8] + 0.1 * rng.standard_normal((500, 256))
    weight = rng.standard_normal((30, 256)).astype(np.float32)

    def off(moment):
        values, scales = quantize_blocks(weight, 4, moment)
        return float(np.square(inputs @ (restored(values, scales, 4, 256) - weight).T).mean())

    assert off(inputs.T @ inputs / len(inputs)) < 0.5 * off(None)
    assert np.isfinite(off(np.zeros((256, 256))))


def test_chrf_is_sacrebleus():
    tiny, demo = ({row["source"]: row["text"] for row in golden(name)} for name in ("tiny-marian", "demo-en-zh"))
    ours, theirs = ([texts[source] for source in tiny if source in demo] for texts in (tiny, demo))
    assert len(ours) > 50
    for hypotheses, references in ((ours, theirs), (theirs, theirs), (["ab", "c", ""], ["abc", "d e f", "x"])):
        assert chrf(hypotheses, references) == pytest.approx(CHRF().corpus_score(hypotheses, [references]).score)
