"""Weighted sums of similarities over all pairs of items: from features without pairs, or tile by tile."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.arrays import BLOCK_BYTES, blocks, is_sparse
from vendimeter.data.devices import DEVICE_BYTES, as_like, identity, move, namespace, to_host, transposed
from vendimeter.errors import InputError, MatrixError
from vendimeter.present.numbers import digits
from vendimeter.present.progress import Progress
from vendimeter.similarity import Features, Matrix, Pairwise, Similarity, materialized, parts_of
from vendimeter.similarity.checks import entry_tolerance
from vendimeter.solvers.dense import norm_of
from vendimeter.solvers.exact import SPARSE_ROWS
from vendimeter.solvers.gram import gram
from vendimeter.solvers.operators import Blocks, SparseRows
from vendimeter.solvers.plan import EXACT_SIDE, HOST_MEMORY

__all__ = ["check_largest", "noise_of", "power_sum", "present", "row_sums"]

SAFE_POWER = 16  # up to it, powers that underflow are too small to show in their root
LEFT = 1e-6  # where less than this share of a sum is left without its diagonal, pairs are summed instead


def present(similarity: Similarity, shares: np.ndarray) -> tuple[Similarity, np.ndarray]:
    """The similarities of the items that have weight, and their positions; all of a user's matrix is checked."""
    if isinstance(similarity, Matrix):
        similarity = similarity.checked()
    positions = np.flatnonzero(shares)
    return (similarity if len(positions) == similarity.n else similarity.take(positions)), positions


def row_sums(
    similarity: Similarity, shares: np.ndarray, self_weights: np.ndarray, names: np.ndarray | None = None
) -> np.ndarray:
    """Σ_{j≠i} wⱼ kᵢⱼ + sᵢ kᵢᵢ for each item i, on the host.

    Parameters
    ----------
    similarity : Similarity
        Of n items.
    shares, self_weights : ndarray, shape (n,)
        The weights w, and s, those of the similarity of each item with itself.
    names : ndarray, optional
        The user's own positions of the items, for messages, where some were left out.
    """
    if isinstance(similarity, Features):
        top, heaviest, others = _split_mean(similarity, shares)
        mean = others + float(shares[top]) * heaviest
        products = [to_host(similarity.rows(part) @ mean) for part in _row_blocks(similarity)]
        sums_of_rows = np.concatenate(products) + (self_weights - shares)
        sums_of_rows[top] = float(heaviest @ others) + self_weights[top]
        return sums_of_rows
    items = _distinct_items(similarity, shares, names)
    weights = move(items.shares, items.similarity.like)
    sums: dict[int, Any] = {}
    for rows, cols, block in _tiles(items.similarity):
        sums[rows.start] = sums.get(rows.start, 0.0) + block @ weights[cols]
        if cols is not rows:
            sums[cols.start] = sums.get(cols.start, 0.0) + transposed(block) @ weights[rows]
    others = np.concatenate([to_host(sums[start]) for start in sorted(sums)])
    return others[items.group] + items.joint(self_weights) * items.diagonal[items.group]


def power_sum(
    similarity: Similarity, shares: np.ndarray, self_weights: np.ndarray, power: float, name: str = "p"
) -> tuple[float, float]:
    """Two numbers s and t with s^power · t = Σ_{i≠j} wᵢ wⱼ kᵢⱼ^power + Σ wᵢ sᵢ kᵢᵢ^power.

    Parameters
    ----------
    similarity : Similarity
        Of n items; those without weight are left out.
    shares, self_weights : ndarray, shape (n,)
        The weights w, and s, those of the similarity of each item with itself.
    power : float
        Above 0.
    name : str
        What the caller calls the power, for messages.
    """
    similarity, positions = present(similarity, shares)
    shares, self_weights = shares[positions], self_weights[positions]
    if isinstance(similarity, Features) and power == 1:
        return 1.0, _feature_sum(similarity, shares, self_weights)
    if isinstance(similarity, Features) and power == 2:
        squares = _feature_squares(similarity, shares)
        off_diagonal = (
            math.nan if squares is None else squares + float(np.sum(shares * (self_weights - shares)))
        )
        # Where little is left, its root would show the rounding error of all squares.
        if squares is not None and off_diagonal > LEFT * squares:
            return 1.0, off_diagonal
    items = _distinct_items(similarity, shares, positions)
    weights, noise = move(items.shares, items.similarity.like), noise_of(items.similarity)
    on_diagonal = shares * items.joint(self_weights)
    scale = float(items.diagonal.max()) if on_diagonal.any() else 0.0  # the largest similarity so far
    scale = scale if power > SAFE_POWER else 1.0
    total = float(np.sum(on_diagonal * (items.diagonal[items.group] / (scale or 1.0)) ** power))
    for rows, cols, block in _tiles(items.similarity):
        top = _largest_size(block) if power > SAFE_POWER else 0.0
        if top > scale:
            total *= (scale / top) ** power
            scale = top
        raised = _power_of(block, power, noise, scale or 1.0, name)
        total += float(weights[rows] @ (raised @ weights[cols])) * (1 if cols is rows else 2)
    return scale or 1.0, total


# ----------------------------------------------------------------------------------------------------- from features


def _row_blocks(features: Features) -> list[slice]:
    """Rows that are worked on at a time."""
    if features.sparse:
        return parts_of(features.n, SPARSE_ROWS)
    return blocks(features.n, features.width, most=BLOCK_BYTES if features.like is None else DEVICE_BYTES)


def _mean_feature(features: Features, shares: np.ndarray) -> Any:
    """Σ w φ, where the features are."""
    weights = move(shares, features.like)
    sums = (_transposed(features.rows(part)) @ weights[part] for part in _row_blocks(features))
    return functools.reduce(lambda a, b: a + b, sums)


def _split_mean(features: Features, shares: np.ndarray) -> tuple[int, Any, Any]:
    """The item with the largest weight, its feature, and Σ w φ of the others.

    Separately, because the others would be lost in rounding beside an item that has nearly all the weight.
    """
    top = int(shares.argmax())
    row = features.rows(np.array([top]))
    lighter = shares.copy()
    lighter[top] = 0.0
    return top, row.toarray()[0] if is_sparse(row) else row[0, :], _mean_feature(features, lighter)


def _transposed(rows: Any) -> Any:
    """Rows as columns, dense or sparse."""
    return rows.T if is_sparse(rows) else transposed(rows)


def _feature_sum(features: Features, shares: np.ndarray, self_weights: np.ndarray) -> float:
    """Σ_{i≠j} wᵢ wⱼ φᵢ·φⱼ + Σ wᵢ sᵢ without pairs."""
    top, heaviest, others = _split_mean(features, shares)
    change = shares * (self_weights - shares)
    change[top] = shares[top] * self_weights[top]
    return float(others @ others) + 2 * float(shares[top]) * float(heaviest @ others) + float(change.sum())


def _feature_squares(features: Features, shares: np.ndarray) -> float | None:
    """Σ wᵢ wⱼ (φᵢ·φⱼ)² without pairs; None where pairs are cheaper."""
    if features.sparse:
        return SparseRows(features.rows(slice(None)), shares).squares
    if features.width > min(features.n, EXACT_SIDE):
        return None
    return norm_of(gram(features, shares, precision="float64").matrix) ** 2


# --------------------------------------------------------------------------------------------------------- from pairs


@dataclass(frozen=True)
class _Items:
    """Distinct items: their checked similarities, joint weights and diagonal, and which of them each given item is."""

    similarity: Similarity
    shares: np.ndarray
    group: np.ndarray
    given_shares: np.ndarray

    @functools.cached_property
    def diagonal(self) -> np.ndarray:
        """The similarity of each with itself."""
        return self.similarity.diagonal()

    def joint(self, self_weights: np.ndarray) -> np.ndarray:
        """The weight of kᵢᵢ for each given item: that of its copies, and its own."""
        return self.shares[self.group] - self.given_shares + self_weights


def _distinct_items(similarity: Similarity, shares: np.ndarray, names: np.ndarray | None = None) -> _Items:
    """Check what a user gave, and merge identical items where every pair of them would be a call."""
    if isinstance(similarity, Matrix):
        similarity = similarity.checked()
    group, joint_weights = np.arange(similarity.n), shares
    names = group if names is None else names
    keys = similarity.keys(group) if isinstance(similarity, Pairwise) else None
    if keys is not None:
        numbers: dict[Any, int] = {}
        group = np.array([numbers.setdefault(key, len(numbers)) for key in keys])
    if group.max() < len(group) - 1:
        _, first_positions, counts = np.unique(group, return_index=True, return_counts=True)
        # Summed in pairs, not one after the other: a million small weights would lose four digits.
        joint_weights = np.add.reduceat(shares[np.argsort(group, kind="stable")], np.cumsum(counts) - counts)
        similarity, names = similarity.take(first_positions), names[first_positions]
    if isinstance(similarity, Pairwise) and not similarity.trusted:
        similarity = _checked_function(similarity, names)
    return _Items(similarity, joint_weights, group, shares)


def _checked_function(similarity: Pairwise, names: np.ndarray) -> Similarity:
    """The similarities of a user's function: a checked matrix where that fits; else blocks, checked one by one."""
    if 8 * similarity.n**2 <= HOST_MEMORY:
        return materialized(similarity, names)
    if similarity.policy.normalize or similarity.policy.symmetrize:
        raise InputError(
            f"the {similarity.n}×{similarity.n} matrix of a function does not fit into 4 GiB, and normalize=True or "
            "symmetrize=True needs all of it; expected a function that needs no mending, or fewer items.",
            option="normalize",
        )
    return similarity


def _tiles(similarity: Similarity) -> Iterator[tuple[slice, slice, Any]]:
    """Blocks on and above the diagonal of K, with zeros for the diagonal itself; a sparse matrix is one block."""
    n = similarity.n
    if isinstance(similarity, Matrix) and similarity.sparse:
        everything = slice(0, n)
        block = _sparse_without_diagonal(similarity.data)
        check_largest(block, similarity)
        yield everything, everything, block
        return
    if similarity.like is None:
        strips = parts_of(n, similarity.step)
    else:
        strips = blocks(n, max(similarity.width, n // 8), most=DEVICE_BYTES)
    checked = similarity.trusted or isinstance(similarity, Matrix)
    inspect = None if checked else Blocks(similarity, None).inspect
    tiles = [(rows, cols) for i, rows in enumerate(strips) for cols in strips[i:]]
    with Progress("similarities") as bar:
        for number, (rows, cols) in enumerate(tiles):
            bar.step(number / len(tiles))
            block = as_like(similarity.block(rows, cols), similarity.like)
            if inspect is not None:
                inspect(block, rows, cols)
            if not similarity.trusted:
                check_largest(block, similarity)
            yield rows, cols, _without_diagonal(block) if cols is rows else block


def _without_diagonal(block: Any) -> Any:
    if isinstance(block, np.ndarray):
        np.fill_diagonal(block, 0.0)
        return block
    return namespace(block).where(identity(block.shape[0], block) > 0, 0.0 * block, block)


def _sparse_without_diagonal(matrix: Any) -> Any:
    from scipy import sparse

    entries = matrix.tocoo()
    is_off_diagonal = entries.row != entries.col
    positions = entries.row[is_off_diagonal], entries.col[is_off_diagonal]
    return sparse.csr_array((entries.data[is_off_diagonal].astype(np.float64), positions), shape=matrix.shape)


def _largest_size(block: Any) -> float:
    """The largest absolute value of a block."""
    if is_sparse(block):
        return float(np.abs(block.data).max(initial=0.0))
    return float(namespace(block).max(namespace(block).abs(block)))


def check_largest(block: Any, similarity: Similarity) -> None:
    """Refuse similarities above 1, beyond rounding: no two items may be more similar than an item is to itself."""
    top = _largest_size(block)
    if top > 1 + max(noise_of(similarity), 1e-9):
        raise MatrixError(
            f"two items have a similarity of {digits(top)} in size; expected no more than 1, which an item has with "
            "itself. Mend the kernel, or use one of vendimeter.kernels."
        )


def noise_of(similarity: Similarity) -> float:
    """How far below 0 rounding may have put a similarity of 0."""
    entry_rounding = 0.0 if similarity.trusted else entry_tolerance(similarity.precision)
    return max(similarity.entry_error, entry_rounding)


def _power_of(block: Any, power: float, noise: float, scale: float, name: str) -> Any:
    """(block/scale)^power by entries; refused for a fractional power of a similarity that is negative beyond noise."""
    if power == 1:
        return block
    if is_sparse(block):
        raised = block.copy()
        raised.data = _power_of(block.data, power, noise, scale, name)  # 0 stays 0
        return raised
    xp = namespace(block)
    if power % 1 and math.prod(block.shape):
        lowest = float(xp.min(block))
        if lowest < -noise:
            raise InputError(
                f"a similarity is {digits(lowest)}, and its power {name}={power:g} is not a real number; expected "
                f"similarities from 0 up, or a whole {name}.",
                option=name,
            )
        block = xp.where(block > 0, block, 0.0 * block)
    return (block if scale == 1 else block / scale) ** power
