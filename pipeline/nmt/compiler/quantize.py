"""Weights in fewer bits, in the forms that ONNX Runtime's CPU kernels take; pure numpy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipeline.nmt.compiler.checkpoint import Array

# Weights that share a scale. Long blocks are faster on one core (512 x 1536, 8 bit, one row: 16 µs at 128, 20 µs at 32)
# and no worse at 8 bit; ONNX Runtime wants a power of two from 16.
_BLOCKS = (128, 64, 32, 16)
# 4-bit scales tried, relative to the one that just holds a block's largest weight; the least squared error wins.
_CLIPS = np.linspace(0.7, 1.0, 13, dtype=np.float32)
# Rows handled at once, so that the candidates of a whole embedding never stand in memory together.
_ROWS = 4096


def block_size(columns: int, bits: int) -> int:
    """Weights of a row that share a scale: the longest block that divides ``columns``; at most 32 where bits are few."""
    longest = 32 if bits < 8 else _BLOCKS[0]
    return next((size for size in _BLOCKS if size <= longest and columns % size == 0), _BLOCKS[-1])


def quantize_blocks(weight: Array, bits: int) -> tuple[NDArray[np.uint8], Array]:
    """Symmetric block quantisation as ``MatMulNBits`` takes it, the zero point in the middle of the range.

    Args:
        weight: [rows, columns]; a row is one output.
        bits: 4 or 8.

    Returns:
        values [rows, blocks, block size · bits / 8], two 4-bit values a byte, the first in its low half; and scales
        [rows, blocks].
    """
    size = block_size(weight.shape[1], bits)
    parts = [_quantize_rows(weight[at : at + _ROWS], bits, size) for at in range(0, len(weight), _ROWS)]
    return np.concatenate([values for values, _ in parts]), np.concatenate([scales for _, scales in parts])


def _quantize_rows(weight: Array, bits: int, size: int) -> tuple[NDArray[np.uint8], Array]:
    rows, columns = weight.shape
    blocks = -(-columns // size)
    padded = np.zeros((rows, blocks * size), np.float32)
    padded[:, :columns] = weight
    grouped = padded.reshape(rows, blocks, size)
    middle = 1 << (bits - 1)
    if bits == 8:
        scales = np.abs(grouped).max(-1) / (middle - 1)
        values = _rounded(grouped, scales, middle)
    else:
        scales, values = _best_scales(grouped, middle)
    bytes_ = (values + middle).astype(np.uint8)
    if bits == 4:
        bytes_ = bytes_[..., ::2] | (bytes_[..., 1::2] << np.uint8(4))
    return bytes_, scales.astype(np.float32)


def _best_scales(grouped: Array, middle: int) -> tuple[Array, Array]:
    """Of scales that put each block's largest weight at the end of the range that has one step more, the one of least
    squared error."""
    at = np.abs(grouped).argmax(-1)
    largest = np.take_along_axis(grouped, at[..., None], -1)[..., 0]
    best_scales, best_values, best_error = np.zeros_like(largest), np.zeros_like(grouped), np.full_like(largest, np.inf)
    for clip in _CLIPS:
        scales = (largest / -middle * clip).astype(np.float32)
        values = _rounded(grouped, scales, middle)
        error = np.square(values * scales[..., None] - grouped).sum(-1)
        better = error < best_error
        best_error = np.where(better, error, best_error)
        best_scales = np.where(better, scales, best_scales)
        best_values = np.where(better[..., None], values, best_values)
    return best_scales, best_values


def _rounded(grouped: Array, scales: Array, middle: int) -> Array:
    inverse = np.divide(1.0, scales, out=np.zeros_like(scales), where=scales != 0)
    result: Array = np.clip(np.rint(grouped * inverse[..., None]), -middle, middle - 1)
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
