"""Blocked pivoted Cholesky: a factor F of low rank with ρ ≈ FFᵀ, from few columns of K, and bounds that are certain.

What is computed. ρ = diag(√p) K diag(√p) has trace 1. The factorisation runs on ρ + ηI: η is added to the diagonal of
pivot blocks and to the residual diagonal. Rows of F that belong to earlier pivots are set to 0 and those of new pivots
to their triangular factor, so that the structure is exact.

What rounding does. Let E be FFᵀ − ρ − ηI in the rows and columns of the pivots, and 0 elsewhere. Every entry of F came
of a sum of at most r products and a triangular solve, so |E_ij| ≤ γ ‖F_i‖‖F_j‖ + entry error · √(p_i p_j), with γ ≈
(r + a multiple of the block size) u. Hence ‖E‖_F ≤ γ tr FFᵀ + entry error ≤ η, which is fixed beforehand from the
largest rank allowed. So M = ρ + ηI + E is positive semidefinite, F is its exact partial factor, and the Schur
complement R = M − FFᵀ is positive semidefinite, too; off the pivots R_ii = p_i + η − ‖F_i‖² exactly, on them it is 0.
With 0 ⪯ ηI + E ⪯ 2ηI, ρ ⪯ M ⪯ ρ + 2ηI. This is what `vendimeter.spectrum.lowrank` builds on. The eigenvalues μ of
FᵀF are known up to e, for the product (summed in blocks of rows) and the eigensolver: μ′ = max(μ̂ − 2η − e, 0) lies
below λ. The trace that is left, ε = 1 − Σμ′, is that of the residual diagonal and the shifts.

Pivots. "random" draws a block of candidates independently from the residual diagonal and accepts one after another
with the probability (residual now)/(residual when drawn): the accepted ones are distributed as if drawn one at a time,
each from the residual diagonal of its moment (Epperly, Tropp, Webber: Embrace rejection, 2024). "greedy" takes the
largest residuals as candidates and accepts by complete pivoting among them, while the pivot is at least a part of
the largest residual. Only accepted candidates get a full column.

A user's similarities are taken as those of a positive semidefinite matrix, right to what `_matrix_checks` calls honest
rounding. What shows otherwise is an error: a diagonal that is not 1, k(a, b) ≠ k(b, a) among candidates, or a residual
that is negative beyond rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from vendimeter.data.arrays import blocks
from vendimeter.data.devices import (
    DEVICE_BYTES,
    as_like,
    concat,
    move,
    namespace,
    select,
    to_host,
    transposed,
)
from vendimeter.errors import IndefiniteError, InputError
from vendimeter.options import generator
from vendimeter.similarity import Features, Index, Matrix, Pairwise, Similarity
from vendimeter.similarity.checks import check_diagonal, entry_tolerance, mending, not_finite
from vendimeter.solvers import dense
from vendimeter.spectrum import UNIT, LowRank
from vendimeter.threads import run, workers

__all__ = ["Cholesky"]


BLOCK, SLOW_BLOCK = 128, 64  # most candidates at a time: of kernels of this package, and of a user's function
FIRST_BLOCK = 8  # … to begin with: a user's function may be slow, and there is little to choose from
GREEDY_PART = 0.5  # a greedy pivot is at least this part of the largest residual
SLAB = 256  # columns of the factor that are stored together
WORK_BYTES = 4 << 20  # of a block of similarities on the host; a few of its size are held at a time
WIDE_BYTES = 32 << 20  # of feature rows on the host
GRAM_ROWS, DEVICE_GRAM_ROWS = 2048, 16_384  # rows of F in one product: fewer bound rounding better
SPOT = 16  # items among which what is left over is looked at
INDEFINITE = 1e3  # a residual similarity below −(this times honest rounding) is no rounding
WIDEST = 4096  # features with more columns than this are not squared for ‖ρ‖_F


# ---------------------------------------------------------------------------------------------------- the columns of F


class _Columns:
    """The columns of F as rows of slabs: on the host filled in place, on a device joined."""

    def __init__(self, n: int, capacity: int, like: Any):
        self._n, self._height, self._like = n, max(1, min(SLAB, capacity)), like
        self._slabs: list[Any] = []
        self.count = 0

    @property
    def room(self) -> int:
        """How many columns go into the slab at hand; a block of new ones does not go over its end."""
        return self._height - self.count % self._height

    def parts(self) -> Iterator[tuple[slice, Any]]:
        """Which columns, and these as the rows of an array."""
        for start in range(0, self.count, self._height):
            stop = min(start + self._height, self.count)
            yield slice(start, stop), self._slabs[start // self._height][: stop - start, :]

    def space(self, width: int) -> np.ndarray:
        """Memory on the host for the next columns; they count once `advance` is called."""
        if self.count % self._height == 0 and len(self._slabs) * self._height == self.count:
            self._slabs.append(np.empty((self._height, self._n)))  # pages that are not used cost nothing
        first = self.count % self._height
        return self._slabs[-1][first : first + width]

    def advance(self, width: int) -> None:
        """The next columns are there."""
        self.count += width

    def append(self, panel: Any) -> None:
        """The next columns, on a device."""
        if self.count % self._height == 0:
            self._slabs.append(panel)
        else:
            self._slabs[-1] = concat([self._slabs[-1], panel])
        self.count += panel.shape[0]

    def at(self, places: np.ndarray) -> np.ndarray:
        """The rows of F of some items, on the host."""
        if self._like is None:
            rows = [part[:, places].T for _, part in self.parts()]
        else:
            rows = [to_host(select(transposed(part), places)) for _, part in self.parts()]
        return np.concatenate(rows, axis=1) if rows else np.zeros((len(places), 0))

    def times(self, left: Any, cols: Index) -> Any:
        """The product of `left` with F[cols].T, or None if F has no columns yet."""
        total = None
        for rows, part in self.parts():
            term = left[:, rows] @ part[:, cols]
            total = term if total is None else _add(total, term)
        return total

    def products(self, first: int, step: int) -> np.ndarray:
        """FᵀF[:, first:] on the host, summed over blocks of `step` rows of F."""
        total = np.zeros((self.count, self.count - first))
        pieces = list(self.parts())
        for right, fresh in pieces:
            if right.stop <= first:
                continue
            begin = max(first - right.start, 0)
            columns = slice(max(right.start, first) - first, right.stop - first)
            for left, part in pieces:
                sums = None
                for start in range(0, self._n, step):
                    cols = slice(start, min(start + step, self._n))
                    term = part[:, cols] @ transposed(fresh[begin:, cols])
                    sums = term if sums is None else _add(sums, term)
                total[left, columns] = to_host(sums)
        return total

    def combined(self, weights: np.ndarray) -> Any:
        """F @ weights, where F is."""
        total = None
        for rows, part in self.parts():
            term = transposed(part) @ move(weights[rows], part)
            total = term if total is None else _add(total, term)
        return total


def _add(total: Any, term: Any) -> Any:
    """The sum, in place where that is possible."""
    if isinstance(total, np.ndarray):
        total += term
        return total
    return total + term


# ------------------------------------------------------------------------------------------------------- the pivots


def _accept_random(
    residues: np.ndarray, drawn: np.ndarray, chances: np.ndarray, order: np.ndarray, floor: float
) -> tuple[list[int], np.ndarray]:
    """Which candidates to accept, and the rows of their factor, by rejection in the order in which they were drawn.

    `drawn` are the residuals they were drawn by, `chances` one uniform number a draw.
    """
    factor = _Pivoting(residues)
    for chance, j in zip(chances, order, strict=True):
        if factor.left[j] > floor and chance * drawn[j] < factor.left[j]:
            factor.take(int(j))
    return factor.accepted, factor.rows


def _accept_greedy(residues: np.ndarray, most: int, floor: float) -> tuple[list[int], np.ndarray]:
    """The same by complete pivoting."""
    factor = _Pivoting(residues)
    floor = max(floor, GREEDY_PART * float(factor.left.max()))
    while len(factor.accepted) < most:
        j = int(factor.left.argmax())
        if factor.left[j] <= floor:
            break
        factor.take(j)
    return factor.accepted, factor.rows


class _Pivoting:
    """A Cholesky factorisation of the residual matrix of the candidates, a pivot at a time."""

    def __init__(self, residues: np.ndarray):
        self._residues = residues
        self._factor = np.zeros(residues.shape)
        self.left = residues.diagonal().copy()
        self.accepted: list[int] = []

    @property
    def rows(self) -> np.ndarray:
        """A row a candidate, a column an accepted one."""
        return self._factor[:, : len(self.accepted)]

    def take(self, j: int) -> None:
        """Accept a candidate."""
        rows, pivot = self.rows, math.sqrt(self.left[j])
        column = (self._residues[:, j] - rows @ rows[j]) / pivot
        column[self.accepted] = 0.0  # as it would be without rounding: the factor is triangular
        column[j] = pivot
        self._factor[:, len(self.accepted)] = column
        self.left -= column**2
        self.accepted.append(j)
        self.left[self.accepted] = 0.0


# ----------------------------------------------------------------------------------------------------- the factor


class Cholesky:
    """A partial Cholesky factorisation of ρ that grows.

    Parameters
    ----------
    similarity : Similarity
        A `Matrix` must have been checked; what a user's function gives is checked here. Items without weight are better
        taken out before.
    weights : ndarray or None
        Probabilities, or None for uniform ones.
    pivots : "random" or "greedy"
        How pivots are chosen.
    rng : int
        Seed of the random pivots.
    capacity : int
        The largest rank the factor may have. The allowance for rounding grows with it.
    names : ndarray, optional
        The user's own positions of the items, for messages.

    Attributes
    ----------
    rank : int
        Columns of the factor.
    pivots : list of int
        The items whose columns they came from.
    evaluations : int
        How many similarities were computed.
    exhausted : bool
        Whether nothing is left that could be told from rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from vendimeter.similarity import FeatureRows, Features
    >>> factor = Cholesky(FeatureRows(np.eye(3)[[0, 1, 2, 0, 1, 2]]), None, capacity=6)
    >>> factor.grow(6)
    >>> factor.rank, factor.exhausted, round(factor.spectrum().score(1).value, 6)
    (3, True, 3.0)
    """

    def __init__(
        self,
        similarity: Similarity,
        weights: np.ndarray | None,
        *,
        pivots: str = "random",
        rng: int = 0,
        capacity: int,
        names: np.ndarray | None = None,
    ):
        n = similarity.n
        self.similarity, self._n, self._like = similarity, n, similarity.like
        self._rule, self._rng = pivots, generator(rng, "pivots")
        self._names = np.arange(n) if names is None else names
        self.capacity = max(1, min(capacity, n))
        self.pivots: list[int] = []
        self.evaluations = 0
        self.exhausted = False

        share = np.full(n, 1 / n) if weights is None else weights
        self._share, self._roots = share, np.sqrt(share)
        off = UNIT if weights is None else abs(1 - math.fsum(share))
        honest = 0.0
        if not similarity.trusted:
            if isinstance(similarity, Pairwise):
                off += self._check_diagonal(similarity)
            honest = entry_tolerance(similarity.precision)
        self._scale = None if weights is not None or self._policy.normalize else 1 / n
        self._here = self._roots if self._like is None else move(self._roots, self._like)
        self._honest = honest
        self._most = BLOCK if similarity.trusted else SLOW_BLOCK
        self._width = FIRST_BLOCK
        # The rounding of sums of up to `capacity` products and of solves with blocks, of √p, of a sum of weights that
        # is not quite 1, and of the similarities.
        self._eta = 1.01 * (
            (self.capacity + 8 * self._most + 32) * UNIT + off + honest + similarity.entry_error
        )
        self._left = np.where(share > 0, share + self._eta, 0.0)
        self._closed: list[int] = []  # items that rounding forbids as pivots
        self._columns = _Columns(n, self.capacity, self._like)
        self._gram = np.zeros((0, 0))
        self._frobenius: float | None = None
        self._squares: float | None = None

    @property
    def rank(self) -> int:
        """Columns of the factor."""
        return self._columns.count

    @property
    def residual(self) -> float:
        """The trace of ρ that the factor leaves over."""
        return float(self._left.sum())

    @property
    def _policy(self) -> Any:
        return self.similarity.policy

    @property
    def _checks(self) -> bool:
        """Whether similarities come from a user's function."""
        return isinstance(self.similarity, Pairwise) and not self.similarity.trusted

    def _check_diagonal(self, similarity: Pairwise) -> float:
        own = similarity.diagonal()
        whole, part = divmod(self._n, similarity.own_cost)
        self.evaluations += whole * similarity.own_cost**2 + part**2
        if not np.isfinite(own).all():
            i = int(np.flatnonzero(~np.isfinite(own))[0])
            raise not_finite(own[i], self._names[i], self._names[i], "k")
        tolerance = entry_tolerance(similarity.precision)
        off = check_diagonal(own, "k", similarity.policy, tolerance, self._names)
        if similarity.policy.normalize:
            self._roots = self._roots / np.sqrt(own)
        return off

    # ------------------------------------------------------------------------------------------------------- growing

    def grow(self, rank: int) -> None:
        """Add pivots until the factor has `rank` columns (`capacity` at most) or nothing is left."""
        rank = min(rank, self.capacity)
        while self.rank < rank and not self.exhausted:
            self._step(min(rank - self.rank, self._columns.room))

    def _step(self, most: int) -> None:
        """One block of candidates, and the columns of those that are accepted."""
        left = self._left
        if self._closed:
            left = left.copy()
            left[self._closed] = 0.0
        largest = float(left.max())
        if largest <= 4 * self._eta:
            self.exhausted = True
            return
        most = min(most, self._width)
        floor = 2 * self._eta  # of what lies below, rounding may be half
        if self._rule == "random":
            steps = np.cumsum(left)
            draws = np.searchsorted(steps, self._rng.random(most) * steps[-1], side="right")
            candidates, order = np.unique(np.minimum(draws, self._n - 1), return_inverse=True)
            residues = self._residues(candidates)
            chances = self._rng.random(most)
            accepted, rows = _accept_random(residues, left[candidates], chances, order, floor)
        else:
            count = min(2 * most, self._n)
            candidates = np.sort(np.argpartition(left, self._n - count)[self._n - count :])
            residues = self._residues(candidates)
            accepted, rows = _accept_greedy(residues, most, floor)
        if not accepted:
            self._closed.extend(candidates[residues.diagonal() <= floor].tolist())
            return
        self._extend(candidates, accepted, rows)
        self.exhausted = len(self.pivots) == self._n
        if len(accepted) > 0.6 * most:
            self._width = min(2 * self._width, self._most)
        elif len(accepted) < 0.3 * most:
            self._width = max(self._width // 2, FIRST_BLOCK)

    def _block(self, pivots: np.ndarray, cols: Index) -> Any:
        """Similarities of pivots with other items, where they are computed; those of a user's function are checked."""
        block = as_like(self.similarity.block(pivots, cols), self._like)
        if self._checks:
            finite = namespace(block).isfinite(block)
            if not bool(namespace(block).all(finite)):
                i, j = np.argwhere(~to_host(finite))[0]
                places = np.arange(self._n)[cols]
                raise not_finite(float(block[i, j]), self._names[pivots[i]], self._names[places[j]], "k")
        return block

    def _residues(self, places: np.ndarray) -> np.ndarray:
        """What the factor leaves over of ρ + ηI among some items, on the host."""
        similar = to_host(self._block(places, places))
        self.evaluations += len(places) ** 2
        if isinstance(self.similarity, Pairwise) and self._checks:
            if not self._policy.symmetrize:
                names = self._names[places]
                self.similarity.compare(similar, similar.T, names, names)
            similar = 0.5 * (similar + similar.T)
        roots = self._roots[places]
        residues = similar * roots[:, None] * roots
        np.fill_diagonal(residues, self._share[places] + self._eta)
        rows = self._columns.at(places)
        residues -= rows @ rows.T
        return residues

    def _extend(self, candidates: np.ndarray, accepted: list[int], rows: np.ndarray) -> None:
        """Full columns of the accepted candidates, from those of ρ less what the factor has of them already."""
        pivots, corner = candidates[accepted], np.ascontiguousarray(rows[accepted])
        left = self._columns.at(pivots)
        if self._like is None:
            panel = self._columns.space(len(pivots))
            if self._checks:  # every call may be slow: ask only for what is not known
                unknown_items = np.ones(self._n, dtype=bool)
                unknown_items[self.pivots] = unknown_items[candidates] = False
                places = np.flatnonzero(unknown_items)
                parts: list[Any] = [places[part] for part in self._parts(len(places), len(pivots))]
            else:
                parts = list(self._parts(self._n, len(pivots)))
            self._fill(panel, pivots, corner, left, parts)
            panel[:, self.pivots] = 0.0
            panel[:, candidates] = rows.T
            self._columns.advance(len(pivots))
            for part in self._parts(self._n, len(pivots)):
                self._left[part] -= np.einsum("ij,ij->j", panel[:, part], panel[:, part])
        else:
            panel = self._device_panel(pivots, corner, left)
            panel = self._with_known(panel, candidates, rows)
            self._columns.append(panel)
            self._left -= to_host(namespace(panel).sum(panel * panel, axis=0))
        self.pivots.extend(pivots.tolist())
        self._left[self.pivots] = 0.0
        self._check_residual()
        np.maximum(self._left, 0.0, out=self._left)
        if self._frobenius is not None:  # what is left over only shrinks, up to rounding
            self._frobenius += 2 * self._eta

    def _parts(self, count: int, width: int) -> list[slice]:
        """Blocks of items whose similarities with `width` pivots are worked on together."""
        size = WORK_BYTES // (8 * width)
        if isinstance(self.similarity, Features) and not self.similarity.sparse:
            size = min(size, WIDE_BYTES // (8 * self.similarity.width))
        size = max(size, 256)
        return [slice(start, min(start + size, count)) for start in range(0, count, size)]

    def _fill(
        self, panel: np.ndarray, pivots: np.ndarray, corner: np.ndarray, left: np.ndarray, parts: list[Any]
    ) -> None:
        """The new columns at the items of each part, side by side where the similarities are this package's own."""

        def fill(own: list[Any]) -> None:
            for part in own:
                panel[:, part] = _solved(corner, self._reduced(pivots, left, part))

        self.evaluations += sum(len(self._places(part)) for part in parts) * len(pivots) * self._orders
        if not self.similarity.trusted:
            fill(parts)
            return
        with workers(len(parts)) as count:
            run([lambda own=parts[i::count]: fill(own) for i in range(count)])

    @property
    def _orders(self) -> int:
        """How often a user's function is called for a pair."""
        return 2 if self._checks and self._policy.symmetrize else 1

    def _places(self, part: Index) -> Any:
        return range(*part.indices(self._n)) if isinstance(part, slice) else part

    def _reduced(self, pivots: np.ndarray, left: Any, cols: Index) -> Any:
        """Rows of ρ less what the factor has of them already."""
        block = self._block(pivots, cols)
        if self._orders == 2:
            block = 0.5 * (block + transposed(self._block(self._places_of(cols), pivots)))
        known = self._columns.times(left, cols)
        if isinstance(block, np.ndarray):  # made for us alone, so that it may be overwritten
            if not (block.flags.writeable and block.flags.c_contiguous):
                block = np.array(block, order="C")
            if self._scale is not None:
                block *= self._scale
            else:
                block *= self._roots[pivots][:, None]
                block *= self._roots[cols]
            if known is not None:
                block -= known
            return block
        roots = move(self._roots[pivots], block)[:, None]
        block = block * roots * self._here[cols]
        return block if known is None else block - known

    def _places_of(self, cols: Index) -> np.ndarray:
        return np.arange(self._n)[cols]

    def _device_panel(self, pivots: np.ndarray, corner: np.ndarray, left: np.ndarray) -> Any:
        """The new columns on a device, as rows."""
        self.evaluations += self._n * len(pivots) * self._orders
        here = move(left, self._like)
        width = len(pivots)
        if isinstance(self.similarity, Features):
            width = max(width, self.similarity.width)
        parts = blocks(self._n, width, most=DEVICE_BYTES)
        return concat([_solved(corner, self._reduced(pivots, here, part)) for part in parts], axis=1)

    def _with_known(self, panel: Any, candidates: np.ndarray, rows: np.ndarray) -> Any:
        """New columns on a device with the rows of earlier pivots 0 and those of the candidates as they are known."""
        xp = namespace(panel)
        place = np.full(self._n, len(candidates))
        place[candidates] = np.arange(len(candidates))
        keep = (place == len(candidates)).astype(np.float64)
        keep[self.pivots] = 0.0
        known = move(np.append(rows.T, np.zeros((rows.shape[1], 1)), axis=1), panel)
        return panel * move(keep, panel)[None, :] + xp.take(known, move(place, panel), axis=1)

    def _check_residual(self) -> None:
        """A residual that is negative beyond rounding means that a user's matrix is not positive semidefinite."""
        if self.similarity.trusted:
            return
        positive = np.maximum(self._share, np.finfo(float).tiny)
        i = int((self._left / positive).argmin())
        lowest = float(self._left[i] / positive[i])
        if lowest < -INDEFINITE * self._honest:
            raise IndefiniteError(
                f"the similarity matrix is not positive semidefinite: after {len(self.pivots)} items are accounted "
                f"for, {lowest:.4g} is left of the similarity of item {self._names[i]} with itself (expected ≥ 0). "
                f"Use a positive semidefinite kernel, or {mending('project')} to drop the negative eigenvalues, which "
                "takes the exact method.",
                item=self._names[i],
                option="project",
            )

    def spot_check(self) -> None:
        """Look at what is left over among a few items: none may be more than its diagonal allows.

        A matrix can be indefinite without a negative residual on the diagonal.
        """
        others = np.setdiff1d(np.flatnonzero(self._share > 0), self.pivots)
        if self.similarity.trusted or not len(others):
            return
        places = np.sort(
            generator(len(others), "spot check").choice(others, min(SPOT, len(others)), replace=False)
        )
        left, roots = self._residues(places), np.sqrt(np.maximum(self._share[places], 0.0))
        own = np.sqrt(np.maximum(np.diag(left), 0.0))
        beyond = (np.abs(left) - np.outer(own, own)) / np.outer(roots, roots)
        np.fill_diagonal(beyond, 0.0)
        a, b = np.unravel_index(beyond.argmax(), beyond.shape)
        # A rounding error of the diagonal shows here by its root.
        if beyond[a, b] > max(math.sqrt(INDEFINITE * self._honest), 1e-6):
            i, j = self._names[places[[a, b]]]
            raise IndefiniteError(
                f"the similarity matrix is not positive semidefinite: after {len(self.pivots)} items are accounted "
                f"for, items {i} and {j} are more similar to each other than to themselves (by {beyond[a, b]:.4g}). "
                f"Use a positive semidefinite kernel, or {mending('project')} to drop the negative eigenvalues, which "
                "takes the exact method.",
                option="project",
            )

    # ------------------------------------------------------------------------------------------- what is known by it

    def _updated_gram(self) -> tuple[np.ndarray, float]:
        """FᵀF on the host, and a bound on the Frobenius norm of its error."""
        step = GRAM_ROWS if self._like is None else DEVICE_GRAM_ROWS
        known = len(self._gram)
        if known < self.rank:
            fresh = self._columns.products(known, step)
            whole = np.empty((self.rank, self.rank))
            whole[:known, :known] = self._gram
            whole[:, known:] = fresh
            whole[known:, :known] = fresh[:known].T
            self._gram = whole
        terms = min(step, self._n) + -(-self._n // step) + 4
        return self._gram, 1.01 * terms * UNIT

    def spectrum(self) -> LowRank:
        """What follows for the eigenvalues of ρ."""
        matrix, error = self._updated_gram()
        values = dense.eigenvalues(0.5 * (matrix + matrix.T)) if self.rank else np.zeros(0)
        error += float(dense.eigen_error(self.rank, float(values[0]) if self.rank else 0.0))
        known = np.maximum(values - (2 * self._eta + error), 0.0)
        return LowRank(
            known,
            max(1.0 - math.fsum(known), 0.0),
            int(np.count_nonzero(self._share)),
            diagonal=self._left + self._eta * self._share,  # rounding of the differences
            frobenius=self._frobenius,
            shift=2 * (self._eta + error),
        )

    def leading(self, width: int) -> Any:
        """The leading left singular vectors of F as orthonormal columns, where the data is; at most `rank` of them."""
        matrix, _ = self._updated_gram()
        values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
        values, vectors = values[::-1][:width], vectors[:, ::-1][:, :width]
        if not len(values):
            raise InputError("the factor has no columns yet; expected grow() before leading().")
        scaled = vectors / np.sqrt(np.maximum(values, UNIT * max(float(values[0]), UNIT)))
        combined = self._columns.combined(scaled)
        return namespace(combined).linalg.qr(combined)[0]

    def tighten(self) -> bool:
        """Find ‖R‖_F, which narrows the next `spectrum`; False where that is not cheap."""
        matrix, _ = self._updated_gram()
        own = self.similarity
        if isinstance(own, Matrix):
            squares, mixed = self._matrix_norms(own)
        elif isinstance(own, Features) and not own.sparse and own.width <= WIDEST:
            squares, mixed = self._feature_norms(own)
        else:
            return False
        gram_squares = float((matrix**2).sum())
        width = own.width if isinstance(own, Features) else 0
        # The terms are sums of up to n products of entries, of absolute value at most ‖ρ‖_F tr FFᵀ together.
        lost = 4 * (self._n + width + self.rank + 64) * UNIT * (math.sqrt(squares) + math.sqrt(gram_squares))
        left = max(squares - 2 * mixed + gram_squares, 0.0) + lost
        found = math.sqrt(left) * (1 + 8 * UNIT) + own.entry_error + self._honest
        found += (math.sqrt(self._n) + 1) * self._eta  # from ρ to M
        self._frobenius = found if self._frobenius is None else min(found, self._frobenius)
        return True

    def _matrix_norms(self, own: Matrix) -> tuple[float, float]:
        """‖ρ‖_F² and tr FᵀρF, of a matrix."""
        squares = mixed = 0.0
        if own.sparse:
            scaled = own.data.astype(np.float64)
            scaled.data *= np.repeat(self._roots, np.diff(scaled.indptr)) * self._roots[scaled.indices]
            squares = float((scaled.data**2).sum())
            for _, part in self._columns.parts():
                mixed += float(np.einsum("ij,ij->", part.T, scaled @ part.T))
            return squares, mixed
        most = WIDE_BYTES if self._like is None else DEVICE_BYTES
        for rows in blocks(self._n, self._n, most=most):
            block = as_like(own.block(rows, slice(0, self._n)), self._like)
            xp = namespace(block)
            block = block * self._here[rows][:, None] * self._here
            squares += float(xp.sum(xp.sum(block * block, axis=1)))
            for _, part in self._columns.parts():
                mixed += float(xp.sum(xp.sum(part[:, rows] * (part @ transposed(block)), axis=1)))
        return squares, mixed

    def _feature_norms(self, own: Features) -> tuple[float, float]:
        """‖ρ‖_F² and tr FᵀρF, of features: those of their d×d matrix and of their products with F."""
        most = WIDE_BYTES if self._like is None else DEVICE_BYTES
        square: Any = None
        cross: list[Any] = []
        for rows in blocks(self._n, own.width, most=most):
            scaled = as_like(own.rows(rows), self._like) * self._here[rows][:, None]
            turned = transposed(scaled)
            if self._squares is None:
                square = turned @ scaled if square is None else _add(square, turned @ scaled)
            terms = [part[:, rows] @ scaled for _, part in self._columns.parts()]
            cross = [_add(one, term) for one, term in zip(cross, terms, strict=True)] if cross else terms
        if self._squares is None:
            self._squares = dense.norm_of(square) ** 2
        return self._squares, sum(float(namespace(one).sum(one * one)) for one in cross)


def _solved(corner: np.ndarray, block: Any) -> Any:
    """corner⁻¹ block, for a lower triangular corner; on the host the block is overwritten."""
    if not isinstance(block, np.ndarray):
        return namespace(block).linalg.solve(move(corner, block), block)
    from scipy.linalg import blas

    # In BLAS's order: X cornerᵀ = blockᵀ.
    solve_triangular = blas.dtrsm  # type: ignore[attr-defined]
    return solve_triangular(1.0, corner, block.T, side=1, lower=1, trans_a=1, overwrite_b=1).T
