"""Feature rows that an accumulator keeps as they are, as long as they take less than their sum would."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.arrays import is_sparse
from vendimeter.data.devices import as_like, concat, is_foreign
from vendimeter.similarity import FeatureRows
from vendimeter.streams import saved

__all__ = ["Kept", "compacted", "joined", "joined_masses", "read_rows", "row_bytes"]


@dataclass(frozen=True)
class Kept:
    """Feature rows of a batch that are kept as they are, with their masses (None for 1 each)."""

    rows: Any
    masses: np.ndarray | None
    rounding: float

    @property
    def count(self) -> int:
        return int(self.rows.shape[0])

    @property
    def mass(self) -> float:
        return float(self.count if self.masses is None else self.masses.sum())

    @property
    def features(self) -> FeatureRows:
        return FeatureRows(self.rows, rounding=self.rounding)

    @property
    def nbytes(self) -> int:
        return row_bytes(self.rows)

    def dense(self) -> Kept:
        return Kept(self.rows.toarray(), self.masses, self.rounding) if is_sparse(self.rows) else self


def compacted(parts: list[Kept]) -> list[Kept]:
    """The same rows in few parts: the last is joined to the one before, until that one is longer.

    A part costs hundreds of bytes beyond its rows, which is more than the rows where batches bring one item each. This
    way there are at most about log₂ of the rows, every row is copied as often at most, and which parts there are
    follows from the parts before, so that it makes no difference whether they were in a file in between.
    """
    parts = list(parts)
    while len(parts) > 1 and parts[-2].count <= parts[-1].count:
        pair = parts[-2:]
        rounding = max(part.rounding for part in pair)
        parts[-2:] = [Kept(joined([part.rows for part in pair]), joined_masses(pair), rounding)]
    return parts


def joined_masses(parts: list[Kept]) -> np.ndarray | None:
    if all(part.masses is None for part in parts):
        return None
    return np.concatenate([np.ones(part.count) if part.masses is None else part.masses for part in parts])


def read_rows(archive: saved.Archive, width: int) -> list[Kept]:
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
        Kept(rows[end - count : end], masses[end - count : end] if own else None, rounding)
        for end, count, own, rounding in zip(ends, counts, weighted, roundings, strict=True)
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
    """Bytes of feature rows; of sparse ones at most, whatever the type of their indices."""
    return 16 * int(rows.nnz) + 8 * rows.shape[0] if is_sparse(rows) else 8 * math.prod(rows.shape)


def joined(parts: list[Any]) -> Any:
    """Feature rows of several batches, one after another; where some are dense, all are."""
    if len(parts) == 1:
        return parts[0]
    if all(is_sparse(part) for part in parts):
        from scipy import sparse

        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    parts = [part.toarray() if is_sparse(part) else part for part in parts]
    like = next((part for part in parts if is_foreign(part)), None)
    return concat([as_like(part, like) for part in parts])
