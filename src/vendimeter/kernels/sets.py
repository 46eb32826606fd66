"""Kernels of sets and categories: Jaccard (Tanimoto) overlap, and equality."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from vendimeter.data.arrays import (
    EMPTY,
    as_list,
    as_rows,
    blocks,
    is_frame_column,
    is_missing,
    is_sparse,
    to_list,
    to_python,
)
from vendimeter.data.devices import (
    DEVICE_BYTES,
    double,
    is_foreign,
    local,
    namespace,
    select,
    to_host,
    transposed,
)
from vendimeter.data.tables import columns, has_columns
from vendimeter.errors import EmptyError, InputError
from vendimeter.kernels.base import Kernel, combine
from vendimeter.messages import brief
from vendimeter.similarity import FeatureRows, Features, Pairwise, Similarity, row_keys
from vendimeter.spectrum import UNIT

__all__ = [
    "EXACT",
    "Bits",
    "Jaccard",
    "Match",
    "elements",
    "indicators",
    "layers",
    "not_a_count",
    "overlap",
    "packed_layers",
    "ratios",
    "ratios_of_bits",
]

EXACT = 1 << 24  # whole numbers up to this are exact in float32
# Counts up to this are unrolled into binary layers, so that BLAS does the comparing, unless the layers take more memory
# than `LAYER_BYTES` and than the counts themselves.
LAYERS = 64
LAYER_BYTES = 256 << 20


@dataclass(frozen=True)
class Jaccard(Kernel):
    """Jaccard similarity, which chemists call Tanimoto: the size of the intersection over that of the union.

    Items are Python sets, binary vectors (such as fingerprints), or vectors of counts or other non-negative numbers,
    for which k(a, b) = Σ min(a, b) / Σ max(a, b), the same thing for binary ones. Two empty items have similarity 1,
    an empty and a non-empty one 0. `Tanimoto` is another name for it.

    References
    ----------
    Ralaivola, Swamidass, Saigo, Baldi: Graph kernels for chemical informatics, Neural Networks 2005 (it is positive
    semidefinite).

    Examples
    --------
    >>> import vendimeter as vm
    >>> round(vm.score([{"a", "b"}, {"a"}, {"c"}], vm.kernels.Jaccard()), 4)
    2.7495
    """

    name: ClassVar[str] = "jaccard"

    @property
    def needs_all(self) -> str:
        """No finite features."""
        return (
            f"it is a ratio and has no finite features. Score a random sample, or put RandomFeatures({self!r}) in its "
            "place, which stands in for it"
        )

    def elements(self, samples: Any) -> tuple[Any, list[Hashable] | None]:
        """The samples as rows of numbers, and for sets the member that each column stands for."""
        return elements(samples)

    def build(self, samples: Any, rng: int) -> Pairwise:
        """Blocks of ratios, the intersections by matrix products."""
        rows = self.elements(samples)[0]
        if is_foreign(rows):
            return self._build_on_device(rows)
        values = rows.data if is_sparse(rows) else rows
        if rows.dtype.kind != "b":
            self._check_counts(rows, values)
        largest = values.max(initial=0)
        is_whole = rows.dtype.kind in "bui" or not (values % 1).any()
        if is_whole and 1 < largest <= LAYERS:
            if is_sparse(rows):
                rows, largest = layers(rows, int(largest)), 1
            else:
                tops = rows.max(axis=0).astype(np.int64)
                width = int(tops.sum())  # a layer for each count that a column reaches
                if width < EXACT and rows.shape[0] * width <= 8 * max(LAYER_BYTES, rows.nbytes):
                    return ratios_of_bits(packed_layers(rows, tops))
        is_binary = is_whole and largest <= 1
        # Sums of whole numbers are exact in float32 up to 2²⁴: BLAS is twice as fast there.
        dtype = np.float32 if is_binary and rows.shape[1] < EXACT else np.float64
        sizes = np.asarray(rows.sum(axis=1, dtype=np.float64), dtype=np.float64).ravel()

        def common(i: np.ndarray, j: np.ndarray) -> np.ndarray:
            a, b = rows[i].astype(dtype), rows[j].astype(dtype)
            shared = a @ b.T if is_binary else overlap(a, b)
            return shared.toarray() if is_sparse(shared) else shared

        rounding = (
            2 * UNIT
            if is_whole and float(largest) * rows.shape[1] < 2**53
            else (4 * rows.shape[1] + 4) * UNIT
        )
        # A division and two passes beside the product; without one, a column at a time.
        cost = 400.0 + (1.0 if is_binary else 50.0) * rows.shape[1]
        return Pairwise(
            rows.shape[0],
            ratios(sizes, common),
            rounding=rounding,
            keys=lambda index: row_keys(rows[index]),
            cost=cost,
        )

    def _build_on_device(self, rows: Any) -> Pairwise:
        """Blocks by the library of the rows: products for binary ones, a column at a time for others."""
        xp, n = namespace(rows), int(rows.shape[0])
        binary = bool(xp.isdtype(rows.dtype, "bool"))
        if not binary:
            for part in blocks(n, rows.shape[1], most=DEVICE_BYTES):
                values = double(rows[part, :])
                if not bool(xp.all(xp.isfinite(values) & (values >= 0))):
                    host_values = to_host(values)
                    bad = np.argwhere(~(np.isfinite(host_values) & (host_values >= 0)))[0]
                    raise not_a_count(int(bad[0]) + part.start, host_values[tuple(bad)])
            binary = all(
                bool(xp.all((rows[part, :] == 0) | (rows[part, :] == 1)))
                for part in blocks(n, rows.shape[1], most=DEVICE_BYTES)
            )

        def block(i: np.ndarray, j: np.ndarray) -> Any:
            a, b = double(select(rows, i)), double(select(rows, j))
            sizes = xp.sum(a, axis=-1)[..., :, None] + xp.sum(b, axis=-1)[..., None, :]
            if binary:
                common = a @ transposed(b)
            else:
                common = 0.0 * sizes
                for k in range(rows.shape[1]):
                    x, y = a[..., :, None, k], b[..., None, :, k]
                    common = common + xp.where(x < y, x, y)
            union = sizes - common
            return xp.where(union > 0, common / xp.where(union > 0, union, 1.0), 1.0)

        rounding = 2 * UNIT if binary else (4 * rows.shape[1] + 4) * UNIT
        return Pairwise(n, block, rounding=rounding, like=rows, stacks=True)

    @staticmethod
    def _check_counts(rows: Any, values: np.ndarray) -> None:
        is_bad = ~(np.isfinite(values) & (values >= 0))
        if is_bad.any():
            position = int(np.flatnonzero(is_bad.ravel())[0])
            row = (
                int(np.searchsorted(rows.indptr, position, side="right")) - 1
                if is_sparse(rows)
                else position // rows.shape[1]
            )
            raise not_a_count(row, values.ravel()[position])


@dataclass(frozen=True)
class Match(Kernel):
    """Equality: 1 where two items are equal, 0 where they differ.

    Parameters
    ----------
    fraction : bool
        For items with several attributes (rows of an array, tuples, records, tables): the fraction of attributes that
        are equal, instead of 1 only where all are.

    Examples
    --------
    >>> import vendimeter as vm
    >>> vm.score(["circle", "circle", "square", "square"], vm.kernels.Match()).bounds[1]
    2.0
    >>> round(vm.score([("red", 1), ("red", 2)], vm.kernels.Match(fraction=True)), 4)
    1.7548
    """

    fraction: bool = False
    name: ClassVar[str] = "match"

    def __repr__(self) -> str:
        return f"Match({'fraction=True' if self.fraction else ''})"

    @property
    def needs_all(self) -> str:
        """A column a value that was met."""
        return (
            "its features are one column a value, and which values there are is known only at the end. Count them "
            "as they come (collections.Counter) and score them with counts="
        )

    def build(self, samples: Any, rng: int) -> Similarity:
        """Sparse features: an indicator of the value, or of the value of each attribute."""
        if is_foreign(samples):  # values are told apart by hashing, which only the host can do
            samples = to_host(local(samples))
        is_simple = type(samples) is np.ndarray and samples.ndim == 1 and samples.dtype.kind in "biuUS"
        if is_simple and len(samples) and not self.fraction:
            return _indicate_codes(np.unique(samples, return_inverse=True)[1])
        if has_columns(samples):
            items: Sequence[Any] = list(zip(*columns(samples).values(), strict=True))
        else:
            if not is_frame_column(samples):
                samples = as_list(samples, kernel="the match kernel")
            if is_sparse(samples):
                raise InputError(
                    "samples is sparse; the match kernel compares values: pass samples.toarray()."
                )
            items = to_list(samples)
        items = [_freeze(item) for item in items]
        if not items:
            raise EmptyError(EMPTY)
        if not self.fraction:
            return FeatureRows(
                indicators([(_refuse_gaps(item, i),) for i, item in enumerate(items)], "the match kernel")
            )
        if not all(isinstance(item, tuple) and len(item) == len(items[0]) and item for item in items):
            raise InputError(
                "Match(fraction=True) expected items with the same number of attributes (rows, tuples, "
                f"records or a table); item 0 is {brief(items[0])}. For single values use Match()."
            )
        width = len(items[0])
        parts = [
            FeatureRows(
                indicators([(_refuse_gaps(item[k], i),) for i, item in enumerate(items)], "the match kernel")
            )
            for k in range(width)
        ]
        return combine(parts, [1 / width] * width)


# ---------------------------------------------------------------------------------------------- sets as rows of numbers


def elements(samples: Any) -> tuple[Any, list[Hashable] | None]:
    """Sets, or vectors, as rows of numbers; and for sets the member that each column stands for.

    Examples
    --------
    >>> rows, members = elements([{"a"}, {"b"}])
    >>> rows.toarray().tolist(), members
    ([[1.0, 0.0], [0.0, 1.0]], ['a', 'b'])
    """
    items = to_list(samples) if is_frame_column(samples) or _is_object_array(samples) else samples
    if isinstance(items, list | tuple) and any(isinstance(item, set | frozenset) for item in items):
        for i, item in enumerate(items):
            if not isinstance(item, set | frozenset):
                raise InputError(
                    f"item {i} is {brief(item)} where others are sets; the jaccard kernel expected sets "
                    "throughout.",
                    item=i,
                )
        return _index_members(items, "the jaccard kernel")
    if isinstance(items, list | tuple) and items and _holds_text(items[0]):
        raise InputError(
            f"item 0 is {brief(items[0])}; the jaccard kernel expected sets or vectors of numbers. Turn "
            "each item into a set first, such as set(item)."
        )
    return as_rows(samples, kernel="the jaccard kernel"), None


def not_a_count(row: int, value: Any) -> InputError:
    """The error for a number that no set or count has."""
    return InputError(
        f"item {row} holds the value {value}; the jaccard kernel expected finite numbers from 0 up: binary "
        "fingerprints or counts.",
        item=row,
    )


def indicators(items: Sequence[Any], what: str) -> Any:
    """A sparse matrix with a row an item and a column a distinct member; an item is an iterable of members."""
    return _index_members(items, what)[0]


def _index_members(items: Sequence[Any], what: str) -> tuple[Any, list[Hashable]]:
    """The indicators, and the member of each column."""
    from scipy import sparse

    columns: dict[Hashable, int] = {}
    indices: list[int] = []
    ends = [0]
    for i, item in enumerate(items):
        try:
            item_columns = {columns.setdefault(member, len(columns)) for member in item}
        except TypeError:
            raise InputError(
                f"item {i} is {brief(item)}; {what} expected hashable members.", item=i
            ) from None
        indices.extend(sorted(item_columns))
        ends.append(len(indices))
    shape = (len(items), max(len(columns), 1))
    rows = sparse.csr_array(
        (np.ones(len(indices)), np.array(indices, dtype=np.int64), np.array(ends)), shape=shape
    )
    return rows, list(columns)


def _indicate_codes(codes: np.ndarray) -> Features:
    """Indicators of whole numbers from 0 up."""
    from scipy import sparse

    n = len(codes)
    return FeatureRows(
        sparse.csr_array((np.ones(n), codes, np.arange(n + 1)), shape=(n, int(codes.max()) + 1))
    )


def _freeze(value: Any) -> Any:
    """Lists and arrays as tuples, which can be compared and hashed whole."""
    value = value.tolist() if isinstance(value, np.ndarray) else to_python(value)
    return tuple(_freeze(part) for part in value) if isinstance(value, list | tuple) else value


def _refuse_gaps(value: Any, position: int) -> Any:
    """The value; an error where it is missing: whether gaps are equal is for the user to say."""
    gaps = value if isinstance(value, tuple) else (value,)
    if any(is_missing(gap) for gap in gaps):
        raise InputError(
            f"item {position} has a missing value ({brief(value)}); the match kernel cannot tell whether "
            "gaps are equal. Fill it, for example with 'unknown', or drop the item.",
            item=position,
        )
    return value


def _is_object_array(samples: Any) -> bool:
    return isinstance(samples, np.ndarray) and samples.dtype == object and samples.ndim == 1


def _holds_text(item: Any) -> bool:
    return isinstance(item, list | tuple) and any(isinstance(member, str) for member in item)


# -------------------------------------------------------------------------------------------- intersections over unions


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
    """Dense counts as the binary columns of `layers`, packed; column c has as many as its largest count, `tops[c]`."""
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
