"""The recipe's Kokoro: a quantised graph made a graph of floats."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
from kokoro import _to_floats

SHAPES = (("x", [1, 3, 4]), ("y", [1, 4, 4]))


def run_model(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])[0]


def test_a_quantised_graph_computes_the_same_in_floats() -> None:
    """A convolution and a product of two activations, each quantised on the way, with a bias that is, too."""
    rng = np.random.default_rng(1)
    weights, scale = rng.integers(0, 255, (4, 3, 3), np.uint8), np.float32(0.01)
    constants = {"w": weights, "w_zero": np.uint8(120), "w_scale": scale, "bias": rng.normal(0, 3, (1, 4, 1))}
    make = onnx.helper.make_node
    nodes = [
        make("DynamicQuantizeLinear", ["x"], ["x_q", "x_scale", "x_zero"]),
        make("ConvInteger", ["x_q", "w", "x_zero", "w_zero"], ["product"], pads=[1, 1]),
        make("Mul", ["x_scale", "w_scale"], ["both"]),
        make("Div", ["bias", "both"], ["bias_divided"]),
        make("Floor", ["bias_divided"], ["bias_floor"]),
        make("Cast", ["bias_floor"], ["bias_q"], to=onnx.TensorProto.INT32),
        make("Add", ["product", "bias_q"], ["sum"]),
        make("Cast", ["sum"], ["sum_float"], to=onnx.TensorProto.FLOAT),
        make("Mul", ["sum_float", "both"], ["heard"]),
        make("DynamicQuantizeLinear", ["heard"], ["h_q", "h_scale", "h_zero"]),
        make("MatMulInteger", ["h_q", "h_q", "h_zero", "h_zero"], ["squares"]),
        make("Cast", ["squares"], ["squares_float"], to=onnx.TensorProto.FLOAT),
        make("Mul", ["squares_float", "h_scale"], ["once"]),
        make("Mul", ["once", "h_scale"], ["y"]),
    ]
    given, wanted = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in SHAPES)
    kinds = {"w": np.uint8, "w_zero": np.uint8}
    arrays = [onnx.numpy_helper.from_array(np.asarray(v, kinds.get(n, np.float32)), n) for n, v in constants.items()]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "quantised", [given], [wanted], arrays),
        opset_imports=[onnx.helper.make_opsetid("", 17)],
        ir_version=8,
    )
    x = rng.normal(size=(1, 3, 4)).astype(np.float32)
    before = run_model(model, x)
    _to_floats(model.graph)
    assert not {node.op_type for node in model.graph.node} & {"ConvInteger", "MatMulInteger", "DynamicQuantizeLinear"}
    kernel = (weights.astype(np.float32) - 120) * scale
    padded = np.pad(x[0], ((0, 0), (1, 1)))
    heard = np.stack([(kernel * padded[None, :, at : at + 3]).sum((1, 2)) for at in range(4)], 1) + constants["bias"][0]
    assert np.allclose(run_model(model, x), heard @ heard, rtol=1e-4, atol=1e-3)
    assert np.abs(before - heard @ heard).max() < 0.05 * np.abs(heard @ heard).max()
