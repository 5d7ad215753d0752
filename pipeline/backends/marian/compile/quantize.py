"""Quantises weights to the formats of ONNX Runtime's CPU kernels, in pure numpy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .checkpoint import Array, QuantisedMatrix

Moment = NDArray[np.float64]

# Numbers of weights that share a scale. Long blocks are faster (docs/benchmarks.md) and as exact at 8 bits. ONNX Runtime requires a power of two of at least 16.
_BLOCKS = (128, 64, 32, 16)
# Candidates for 4-bit scales, relative to the one that just represents a block's largest weight. The one with the least
# squared error is taken.
_CLIPS = np.linspace(0.7, 1.0, 13, dtype=np.float32)
# This fraction of the mean squared input is added to the diagonal, as in GPTQ. It keeps the inverse stable if inputs
# hardly vary.
_DAMPING = 0.01
# Rows quantised at once, which bounds the memory for an embedding.
_CHUNK = 4096


def block_size(columns: int) -> int:
    """Number of weights that share a scale: the longest block that divides ``columns``, or else the shortest."""
    return next((size for size in _BLOCKS if columns % size == 0), _BLOCKS[-1])


def quantize_blocks(weight: Array, bits: int, moment: Moment | None = None) -> tuple[NDArray[np.uint8], Array]:
    """Symmetric block quantisation for ``MatMulNBits``, with the zero point in the middle of the range.

    Args:
        weight: [rows, columns]; a row is one output.
        bits: 4 or 8.
        moment: [columns, columns], the mean of x·xᵀ over inputs x of this layer. If given, the weights of a row that
            are rounded later compensate the error of each weight (GPTQ: Frantar et al. 2022, arXiv:2210.17323).

    Returns:
        values [rows, blocks, block size · bits / 8], two 4-bit values per byte, the first in the low half; and scales
        [rows, blocks].
    """
    size = block_size(weight.shape[1])
    inverse = None if moment is None else _inverse_root(moment, -(-weight.shape[1] // size) * size)
    parts = [_quantize_rows(weight[at : at + _CHUNK], bits, size, inverse) for at in range(0, len(weight), _CHUNK)]
    return np.concatenate([values for values, _ in parts]), np.concatenate([scales for _, scales in parts])


def stored_blocks(weight: QuantisedMatrix) -> tuple[NDArray[np.uint8], Array]:
    """A matrix in 8 bits as ``quantize_blocks`` returns one, without a change of its values."""
    rows, columns = weight.shape
    size = block_size(columns)
    blocks = -(-columns // size)
    values = np.full((rows, blocks * size), 128, np.uint8)
    values[:, :columns] = weight.values.view(np.uint8) ^ np.uint8(128)  # adds 128
    return values.reshape(rows, blocks, size), np.repeat(weight.scales[:, None], blocks, axis=1)


def _inverse_root(moment: Moment, columns: int) -> Array:
    """The upper triangular U [columns, columns] with UᵀU = (moment + damping)⁻¹."""
    whole = np.zeros((columns, columns))
    whole[: len(moment), : len(moment)] = moment
    damping = _DAMPING * float(np.diag(moment).mean()) or 1.0  # all inputs are zero
    inverse = np.linalg.inv(whole + damping * np.eye(columns))
    return np.linalg.cholesky((inverse + inverse.T) / 2).T.astype(np.float32)


def _quantize_rows(weight: Array, bits: int, size: int, inverse: Array | None) -> tuple[NDArray[np.uint8], Array]:
    rows, columns = weight.shape
    blocks = -(-columns // size)
    remaining = np.zeros((blocks * size, rows), np.float32)  # transposed, so that a column of weights is contiguous
    remaining[:columns] = weight.T
    zero_point = 1 << (bits - 1)
    values = np.empty_like(remaining)
    scales = np.empty((blocks, rows), np.float32)
    for block in range(blocks):
        begin, end = block * size, (block + 1) * size
        scales[block] = _scales(remaining[begin:end], zero_point)
        if inverse is None:
            values[begin:end] = _rounded(remaining[begin:end], scales[block], zero_point)
            continue
        errors = np.empty((size, rows), np.float32)
        for column in range(begin, end):
            values[column] = _rounded(remaining[column], scales[block], zero_point)
            error = (remaining[column] - values[column] * scales[block]) / inverse[column, column]
            remaining[column:end] -= inverse[column, column:end, None] * error
            errors[column - begin] = error
        remaining[end:] -= inverse[begin:end, end:].T @ errors
    packed = (values.T + zero_point).astype(np.uint8).reshape(rows, blocks, size)
    if bits == 4:
        packed = packed[..., ::2] | (packed[..., 1::2] << np.uint8(4))
    return packed, np.ascontiguousarray(scales.T)


def _scales(block: Array, zero_point: int) -> Array:
    """A scale for each row of weights in ``block`` [size, rows].

    At 8 bits, it represents the largest weight exactly. At 4 bits, where steps are coarse, it is the candidate with the
    least squared error. Candidates map the largest weight to the end of the range with one step more, or beyond.
    """
    largest = np.take_along_axis(block, np.abs(block).argmax(0)[None], 0)[0]
    if zero_point > 8:
        whole: Array = np.abs(largest) / np.float32(zero_point - 1)
        return whole
    best: Array = np.zeros_like(largest)
    least = np.full_like(largest, np.inf)
    for clip in _CLIPS:
        scales = (largest / -zero_point * clip).astype(np.float32)
        error = np.square(_rounded(block, scales, zero_point) * scales - block).sum(0)
        best, least = np.where(error < least, scales, best), np.minimum(error, least)
    return best


def _rounded(weights: Array, scales: Array, zero_point: int) -> Array:
    """Round ``weights`` to multiples of ``scales``, which broadcast. Where a scale is 0, so is the result."""
    inverse = np.divide(1.0, scales, out=np.zeros_like(scales), where=scales != 0)
    result: Array = np.clip(np.rint(weights * inverse), -zero_point, zero_point - 1)
    return result


def quantize_channels(weight: Array) -> tuple[NDArray[np.int8], Array]:
    """Symmetric int8 quantisation with one scale per output, for ``DynamicQuantizeMatMul``.

    Args:
        weight: [rows, columns]; a row is one output.

    Returns:
        values [columns, rows] and scales [rows].
    """
    scales = np.abs(weight).max(-1) / 127
    inverse = np.divide(1.0, scales, out=np.zeros_like(scales), where=scales != 0)
    return np.ascontiguousarray(np.rint(weight * inverse[:, None]).astype(np.int8).T), scales.astype(np.float32)
