"""Weights in fewer bits, in the forms that ONNX Runtime's CPU kernels take; pure numpy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipeline.nmt.compiler.checkpoint import Array

Moment = NDArray[np.float64]

# Weights that share a scale. Long blocks are faster on one core (512 x 1536, 8 bit, one row: 16 µs at 128, 20 µs at 32)
# and no worse at 8 bit; ONNX Runtime wants a power of two from 16.
_BLOCKS = (128, 64, 32, 16)
# 4-bit scales tried, relative to the one that just holds a block's largest weight; the least squared error wins.
_CLIPS = np.linspace(0.7, 1.0, 13, dtype=np.float32)
# Of the mean squared input, added to each: GPTQ's, which keeps the inverse tame where inputs hardly vary.
_DAMPING = 0.01
# Rows handled at once, so that the candidates of a whole embedding never stand in memory together.
_ROWS = 4096


def block_size(columns: int) -> int:
    """Weights of a row that share a scale: the longest block that divides ``columns``."""
    return next((size for size in _BLOCKS if columns % size == 0), _BLOCKS[-1])


def quantize_blocks(weight: Array, bits: int, moment: Moment | None = None) -> tuple[NDArray[np.uint8], Array]:
    """Symmetric block quantisation as ``MatMulNBits`` takes it, the zero point in the middle of the range.

    Args:
        weight: [rows, columns]; a row is one output.
        bits: 4 or 8.
        moment: [columns, columns], the mean of x·xᵀ over inputs x of this layer. With it, each weight's rounding error is
            made up for by the weights of its row that are rounded after it (GPTQ: Frantar et al. 2022, arXiv:2210.17323).

    Returns:
        values [rows, blocks, block size · bits / 8], two 4-bit values a byte, the first in its low half; and scales
        [rows, blocks].
    """
    size = block_size(weight.shape[1])
    inverse = None if moment is None else _inverse_root(moment, -(-weight.shape[1] // size) * size)
    parts = [_quantize_rows(weight[at : at + _ROWS], bits, size, inverse) for at in range(0, len(weight), _ROWS)]
    return np.concatenate([values for values, _ in parts]), np.concatenate([scales for _, scales in parts])


def _inverse_root(moment: Moment, columns: int) -> Array:
    """The upper triangular U [columns, columns] with UᵀU = (moment + damping)⁻¹."""
    whole = np.zeros((columns, columns))
    whole[: len(moment), : len(moment)] = moment
    damping = _DAMPING * float(np.diag(moment).mean()) or 1.0  # inputs that are all zero say nothing
    inverse = np.linalg.inv(whole + damping * np.eye(columns))
    return np.linalg.cholesky((inverse + inverse.T) / 2).T.astype(np.float32)


def _quantize_rows(weight: Array, bits: int, size: int, inverse: Array | None) -> tuple[NDArray[np.uint8], Array]:
    rows, columns = weight.shape
    blocks = -(-columns // size)
    left = np.zeros((blocks * size, rows), np.float32)  # transposed: a column of weights is one run of memory
    left[:columns] = weight.T
    middle = 1 << (bits - 1)
    values = np.empty_like(left)
    scales = np.empty((blocks, rows), np.float32)
    for block in range(blocks):
        begin, end = block * size, (block + 1) * size
        scales[block] = _scales(left[begin:end], middle)
        if inverse is None:
            values[begin:end] = _rounded(left[begin:end], scales[block], middle)
            continue
        errors = np.empty((size, rows), np.float32)
        for column in range(begin, end):
            values[column] = _rounded(left[column], scales[block], middle)
            error = (left[column] - values[column] * scales[block]) / inverse[column, column]
            left[column:end] -= inverse[column, column:end, None] * error
            errors[column - begin] = error
        left[end:] -= inverse[begin:end, end:].T @ errors
    packed = (values.T + middle).astype(np.uint8).reshape(rows, blocks, size)
    if bits == 4:
        packed = packed[..., ::2] | (packed[..., 1::2] << np.uint8(4))
    return packed, np.ascontiguousarray(scales.T)


def _scales(block: Array, middle: int) -> Array:
    """A scale for each row of weights in ``block`` [size, rows].

    At 8 bits, the one that holds the largest weight; at 4, where a step is coarse, the one of least squared error among
    some that put the largest weight at or beyond the end of the range that has one step more.
    """
    largest = np.take_along_axis(block, np.abs(block).argmax(0)[None], 0)[0]
    if middle > 8:
        whole: Array = np.abs(largest) / np.float32(middle - 1)
        return whole
    best: Array = np.zeros_like(largest)
    least = np.full_like(largest, np.inf)
    for clip in _CLIPS:
        scales = (largest / -middle * clip).astype(np.float32)
        error = np.square(_rounded(block, scales, middle) * scales - block).sum(0)
        best, least = np.where(error < least, scales, best), np.minimum(error, least)
    return best


def _rounded(weights: Array, scales: Array, middle: int) -> Array:
    """``weights`` in steps of ``scales``, which broadcast; 0 where a scale is."""
    inverse = np.divide(1.0, scales, out=np.zeros_like(scales), where=scales != 0)
    result: Array = np.clip(np.rint(weights * inverse), -middle, middle - 1)
    return result


def quantize_channels(weight: Array) -> tuple[NDArray[np.int8], Array]:
    """Symmetric int8 with a scale for each output, as ``DynamicQuantizeMatMul`` takes it.

    Args:
        weight: [rows, columns]; a row is one output.

    Returns:
        values [columns, rows] and scales [rows].
    """
    scales = np.abs(weight).max(-1) / 127
    inverse = np.divide(1.0, scales, out=np.zeros_like(scales), where=scales != 0)
    return np.ascontiguousarray(np.rint(weight * inverse[:, None]).astype(np.int8).T), scales.astype(np.float32)
