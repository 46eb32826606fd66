"""Intersections over unions: blocks of them, packed bits, and counts as bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.arrays import blocks, is_sparse
from vendimeter.similarity import Pairwise, row_keys
from vendimeter.spectrum import UNIT

__all__ = ["EXACT", "Bits", "layers", "overlap", "packed_layers", "ratios", "ratios_of_bits"]

EXACT = 1 << 24  # whole numbers up to this are exact in float32


def ratios(
    sizes: np.ndarray, common: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Blocks of intersection over union, from the sizes of the sets and blocks of intersections."""
    empty = bool((sizes == 0).any())

    def block(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        shared = common(i, j).astype(np.float64)
        union = sizes[i][:, None] + sizes[j]
        union -= shared
        if empty:
            return np.divide(shared, union, out=np.ones_like(shared), where=union > 0)
        return np.divide(shared, union, out=shared)

    return block


@dataclass(frozen=True)
class Bits:
    """Binary rows, eight columns a byte (the first in the lowest bit); fewer than 2²⁴ columns."""

    packed: np.ndarray
    width: int

    @property
    def sizes(self) -> np.ndarray:
        """How many bits are set in each row."""
        return np.bitwise_count(self.packed).sum(axis=1, dtype=np.float64)

    def unpacked(self, index: Any = slice(None)) -> np.ndarray:
        """Rows as truth values."""
        return np.unpackbits(self.packed[index], axis=1, count=self.width, bitorder="little").view(bool)


def ratios_of_bits(bits: Bits) -> Pairwise:
    """Jaccard similarities of packed rows.

    They are unpacked block by block for BLAS. To count the bits of 64-bit words instead takes a core as long: 6 % less
    at 1,024 columns, 14 % more at 2,048.

    Examples
    --------
    >>> import numpy as np
    >>> ratios_of_bits(Bits(np.array([[0b011], [0b110]], dtype=np.uint8), 3)).dense()
    array([[1.        , 0.33333333],
           [0.33333333, 1.        ]])
    """

    def common(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return bits.unpacked(i).astype(np.float32) @ bits.unpacked(j).astype(np.float32).T

    return Pairwise(
        len(bits.packed),
        ratios(bits.sizes, common),
        rounding=2 * UNIT,
        keys=lambda index: row_keys(bits.packed[index]),
        cost=400.0 + bits.width,
    )


def layers(rows: Any, largest: int) -> Any:
    """Sparse counts as binary columns [x ≥ 1], [x ≥ 2], …: then min(a, b) is an inner product."""
    from scipy import sparse

    parts = []
    for level in range(1, largest + 1):
        layer = rows.copy()
        layer.data = (layer.data >= level).astype(np.float32)
        layer.eliminate_zeros()
        parts.append(layer)
    return sparse.csr_array(sparse.hstack(parts, format="csr"))


def packed_layers(rows: np.ndarray, tops: np.ndarray) -> Bits:
    """Dense counts as such columns, packed; column c has as many as its largest count, `tops[c]`."""
    columns = np.repeat(np.arange(len(tops)), tops)
    levels = np.arange(len(columns)) - np.repeat(np.cumsum(tops) - tops, tops) + 1
    packed = np.empty((len(rows), -(-len(columns) // 8)), dtype=np.uint8)
    for part in blocks(len(rows), len(columns), rows.itemsize):
        packed[part] = np.packbits(rows[part][:, columns] >= levels, axis=1, bitorder="little")
    return Bits(packed, len(columns))


def overlap(a: Any, b: Any) -> Any:
    """Σ min(a, b) for every pair, for numbers that are not small counts."""
    if is_sparse(a):
        a, b = a.toarray(), b.toarray()
    common = np.empty((len(a), len(b)))
    step = max(1, (1 << 20) // max(1, b.size))
    for start in range(0, len(a), step):
        common[start : start + step] = np.minimum(a[start : start + step, None, :], b).sum(axis=2)
    return common
