"""Feature rows that an accumulator keeps while they take fewer bytes than their sum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.arrays import is_sparse
from vendimeter.data.devices import as_like, concat, is_foreign
from vendimeter.similarity import FeatureRows
from vendimeter.streams import saved

__all__ = ["Kept", "compact", "concatenate_masses", "concatenate_rows", "read_rows", "row_bytes"]


@dataclass(frozen=True)
class Kept:
    """Feature rows of a batch that are kept as they are, with their masses (None for 1 each)."""

    rows: Any
    masses: np.ndarray | None
    rounding: float

    @property
    def count(self) -> int:
        """The number of rows."""
        return int(self.rows.shape[0])

    @property
    def mass(self) -> float:
        """The sum of the masses."""
        return float(self.count if self.masses is None else self.masses.sum())

    @property
    def features(self) -> FeatureRows:
        """The rows as features."""
        return FeatureRows(self.rows, rounding=self.rounding)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, without their masses."""
        return row_bytes(self.rows)

    def dense(self) -> Kept:
        """The same rows as a dense array."""
        return Kept(self.rows.toarray(), self.masses, self.rounding) if is_sparse(self.rows) else self


def compact(batches: list[Kept]) -> list[Kept]:
    """Merge batches of rows into few: the last is joined to the one before, until that one is longer.

    A batch costs hundreds of bytes beyond its rows, which is more than the rows where batches bring one item each. In
    this way there are at most about log₂ of the number of rows, and every row is copied at most as often. Which batches
    there are depends only on the batches before, so that it makes no difference whether they were in a file in between.
    """
    batches = list(batches)
    while len(batches) > 1 and batches[-2].count <= batches[-1].count:
        pair = batches[-2:]
        rounding = max(batch.rounding for batch in pair)
        batches[-2:] = [
            Kept(concatenate_rows([batch.rows for batch in pair]), concatenate_masses(pair), rounding)
        ]
    return batches


def concatenate_masses(batches: list[Kept]) -> np.ndarray | None:
    """The masses of several batches, one after another; None where all of them are 1."""
    if all(batch.masses is None for batch in batches):
        return None
    return np.concatenate(
        [np.ones(batch.count) if batch.masses is None else batch.masses for batch in batches]
    )


def read_rows(archive: saved.Archive, width: int) -> list[Kept]:
    """The kept rows of a saved accumulator, in the batches in which they were held."""
    header = archive.header
    counts = archive.wholes("counts", header.get("counts"), least=1)
    roundings = archive.numbers("roundings", header.get("roundings"))
    weighted = header.get("weighted")
    n = sum(counts)
    if not isinstance(weighted, list) or not 0 < len(counts) == len(roundings) == len(weighted):
        raise archive.damaged("its batches do not fit together")
    rows: Any = _read_sparse(archive, n, width) if header["held"] == "sparse" else None
    if rows is None:
        rows = archive.array("rows", (n, width))
    squares = rows.multiply(rows).sum(axis=1) if is_sparse(rows) else np.einsum("ij,ij->i", rows, rows)
    if np.abs(np.asarray(squares) - 1).max() > 1e-6:
        raise archive.damaged("its rows are no features")
    masses = archive.array("masses", (n,)) if any(weighted) else np.ones(n)
    if masses.min() <= 0:
        raise archive.damaged("it holds a weight that is not above 0")
    ends = np.cumsum(counts).tolist()
    return [
        Kept(rows[end - count : end], masses[end - count : end] if is_weighted else None, rounding)
        for end, count, is_weighted, rounding in zip(ends, counts, weighted, roundings, strict=True)
    ]


def _read_sparse(archive: saved.Archive, n: int, width: int) -> Any:
    from scipy import sparse

    indptr = archive.array("indptr", (n + 1,), "i")
    size = int(indptr[-1])
    data, indices = archive.array("data", (size,)), archive.array("indices", (size,), "i")
    if indptr[0] or (np.diff(indptr) < 0).any() or indices.max(initial=-1) >= width:
        raise archive.damaged("its sparse rows do not fit together")
    return sparse.csr_array((data, indices, indptr), shape=(n, width))


def row_bytes(rows: Any) -> int:
    """Bytes of feature rows; an upper bound for sparse ones, whose indices may be of a smaller type."""
    return 16 * int(rows.nnz) + 8 * rows.shape[0] if is_sparse(rows) else 8 * math.prod(rows.shape)


def concatenate_rows(blocks: list[Any]) -> Any:
    """Feature rows of several batches, one after another; where some are dense, all are."""
    if len(blocks) == 1:
        return blocks[0]
    if all(is_sparse(block) for block in blocks):
        from scipy import sparse

        return sparse.csr_array(sparse.vstack(blocks, format="csr"))
    blocks = [block.toarray() if is_sparse(block) else block for block in blocks]
    like = next((block for block in blocks if is_foreign(block)), None)
    return concat([as_like(block, like) for block in blocks])
