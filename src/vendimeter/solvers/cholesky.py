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

Pivots. "random" draws a block of candidates independently from the residual diagonal and accepts one after another with
the probability (residual now)/(residual when drawn): the accepted ones are distributed as if drawn one at a time, each
from the residual diagonal of its moment (Epperly, Tropp, Webber: Embrace rejection, 2024). "greedy" takes the largest
residuals as candidates and accepts by complete pivoting among them, while the pivot is at least `GREEDY_RATIO` times
the largest residual. Only accepted candidates get a full column.

A user's similarities are taken as those of a positive semidefinite matrix, right to what `similarity.checks` calls
honest rounding. What shows otherwise is an error: a diagonal that is not 1, k(a, b) ≠ k(b, a) among candidates, or a
residual that is negative beyond rounding.
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
from vendimeter.similarity.base import positions_of
from vendimeter.similarity.checks import check_diagonal, entry_tolerance, mending, not_finite
from vendimeter.solvers import dense
from vendimeter.spectrum import UNIT, LowRank
from vendimeter.threads import run, workers

__all__ = ["Cholesky"]

# Candidates at a time at most: of kernels of this package, and of a user's function.
BLOCK, SLOW_BLOCK = 128, 64
FIRST_BLOCK = 8  # candidates to begin with: a user's function may be slow, and there is little to choose from
GREEDY_RATIO = 0.5  # a greedy pivot is at least this times the largest residual
SLAB = 256  # columns of the factor that are stored together
WORK_BYTES = 4 << 20  # of a block of similarities on the host; a few of its size are held at a time
WIDE_BYTES = 32 << 20  # of feature rows on the host
GRAM_ROWS, DEVICE_GRAM_ROWS = 2048, 16_384  # rows of F in one product: fewer bound rounding better
SPOT_CHECK_ITEMS = 16  # items among which the residual matrix is checked
INDEFINITE_FACTOR = 1e3  # a residual similarity below −(this times honest rounding) is no rounding
MAX_SQUARED_WIDTH = 4096  # features with more columns than this are not squared for ‖ρ‖_F


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
        self._pivot_rule, self._rng = pivots, generator(rng, "pivots")
        self._names = np.arange(n) if names is None else names
        self.capacity = max(1, min(capacity, n))
        self.pivots: list[int] = []
        self.evaluations = 0
        self.exhausted = False

        probabilities = np.full(n, 1 / n) if weights is None else weights
        self._probabilities, self._roots = probabilities, np.sqrt(probabilities)
        diagonal_error = UNIT if weights is None else abs(1 - math.fsum(probabilities))
        entry_rounding = 0.0
        if not similarity.trusted:
            if isinstance(similarity, Pairwise):
                diagonal_error += self._check_diagonal(similarity)
            entry_rounding = entry_tolerance(similarity.precision)
        self._uniform_scale = None if weights is not None or self._policy.normalize else 1 / n
        self._device_roots = self._roots if self._like is None else move(self._roots, self._like)
        self._entry_rounding = entry_rounding
        self._max_candidates = BLOCK if similarity.trusted else SLOW_BLOCK
        self._candidate_count = FIRST_BLOCK
        # The rounding of sums of up to `capacity` products and of solves with blocks, of √p, of a sum of weights that
        # is not quite 1, and of the similarities.
        self._eta = 1.01 * (
            (self.capacity + 8 * self._max_candidates + 32) * UNIT
            + diagonal_error
            + entry_rounding
            + similarity.entry_error
        )
        self._residual_diagonal = np.where(probabilities > 0, probabilities + self._eta, 0.0)
        self._excluded: list[int] = []  # items that rounding forbids as pivots
        self._columns = _Columns(n, self.capacity, self._like)
        self._gram = np.zeros((0, 0))
        self._frobenius: float | None = None
        self._square_norm: float | None = None

    @property
    def rank(self) -> int:
        """Columns of the factor."""
        return self._columns.count

    @property
    def residual(self) -> float:
        """The trace of the residual matrix."""
        return float(self._residual_diagonal.sum())

    @property
    def _policy(self) -> Any:
        return self.similarity.policy

    @property
    def _is_user_function(self) -> bool:
        """Whether similarities come from a user's function."""
        return isinstance(self.similarity, Pairwise) and not self.similarity.trusted

    def _check_diagonal(self, similarity: Pairwise) -> float:
        """Check the diagonal of a user's function, and normalise by it on request; by how much it may be off 1."""
        diagonal = similarity.diagonal()
        full_blocks, remainder = divmod(self._n, similarity.diagonal_block)
        self.evaluations += full_blocks * similarity.diagonal_block**2 + remainder**2
        if not np.isfinite(diagonal).all():
            i = int(np.flatnonzero(~np.isfinite(diagonal))[0])
            raise not_finite(diagonal[i], self._names[i], self._names[i], "k")
        tolerance = entry_tolerance(similarity.precision)
        error = check_diagonal(diagonal, "k", similarity.policy, tolerance, self._names)
        if similarity.policy.normalize:
            self._roots = self._roots / np.sqrt(diagonal)
        return error

    # ------------------------------------------------------------------------------------------------------- growing

    def grow(self, rank: int) -> None:
        """Add pivots until the factor has `rank` columns (`capacity` at most) or nothing is left."""
        rank = min(rank, self.capacity)
        while self.rank < rank and not self.exhausted:
            self._add_block(min(rank - self.rank, self._columns.free_in_slab))

    def _add_block(self, max_count: int) -> None:
        """Draw a block of candidates, and append the columns of those that are accepted."""
        residual_diagonal = self._residual_diagonal
        if self._excluded:
            residual_diagonal = residual_diagonal.copy()
            residual_diagonal[self._excluded] = 0.0
        largest_residual = float(residual_diagonal.max())
        if largest_residual <= 4 * self._eta:
            self.exhausted = True
            return
        max_count = min(max_count, self._candidate_count)
        floor = 2 * self._eta  # of what lies below, rounding may be half
        if self._pivot_rule == "random":
            cumulative = np.cumsum(residual_diagonal)
            draws = np.searchsorted(cumulative, self._rng.random(max_count) * cumulative[-1], side="right")
            candidates, order = np.unique(np.minimum(draws, self._n - 1), return_inverse=True)
            residual_matrix = self._residual_matrix(candidates)
            uniforms = self._rng.random(max_count)
            accepted, rows = _accept_random(
                residual_matrix, residual_diagonal[candidates], uniforms, order, floor
            )
        else:
            count = min(2 * max_count, self._n)
            candidates = np.sort(np.argpartition(residual_diagonal, self._n - count)[self._n - count :])
            residual_matrix = self._residual_matrix(candidates)
            accepted, rows = _accept_greedy(residual_matrix, max_count, floor)
        if not accepted:
            self._excluded.extend(candidates[residual_matrix.diagonal() <= floor].tolist())
            return
        self._append_columns(candidates, accepted, rows)
        self.exhausted = len(self.pivots) == self._n
        if len(accepted) > 0.6 * max_count:
            self._candidate_count = min(2 * self._candidate_count, self._max_candidates)
        elif len(accepted) < 0.3 * max_count:
            self._candidate_count = max(self._candidate_count // 2, FIRST_BLOCK)

    def _block(self, pivots: np.ndarray, cols: Index) -> Any:
        """Similarities of pivots with other items, where they are computed; those of a user's function are checked."""
        block = as_like(self.similarity.block(pivots, cols), self._like)
        if self._is_user_function:
            finite = namespace(block).isfinite(block)
            if not bool(namespace(block).all(finite)):
                i, j = np.argwhere(~to_host(finite))[0]
                positions = positions_of(cols, self._n)
                raise not_finite(float(block[i, j]), self._names[pivots[i]], self._names[positions[j]], "k")
        return block

    def _residual_matrix(self, positions: np.ndarray) -> np.ndarray:
        """The residual ρ + ηI − FFᵀ among some items, on the host."""
        similarities = to_host(self._block(positions, positions))
        self.evaluations += len(positions) ** 2
        if isinstance(self.similarity, Pairwise) and self._is_user_function:
            if not self._policy.symmetrize:
                names = self._names[positions]
                self.similarity.compare(similarities, similarities.T, names, names)
            similarities = 0.5 * (similarities + similarities.T)
        roots = self._roots[positions]
        residual_matrix = similarities * roots[:, None] * roots
        np.fill_diagonal(residual_matrix, self._probabilities[positions] + self._eta)
        rows = self._columns.rows_at(positions)
        residual_matrix -= rows @ rows.T
        return residual_matrix

    def _append_columns(
        self, candidates: np.ndarray, accepted: list[int], candidate_rows: np.ndarray
    ) -> None:
        """Append the full columns of the accepted candidates: rows of the Schur complement, solved by their corner."""
        pivots, corner = candidates[accepted], np.ascontiguousarray(candidate_rows[accepted])
        pivot_rows = self._columns.rows_at(pivots)
        if self._like is None:
            panel = self._columns.allocate(len(pivots))
            if self._is_user_function:  # every call may be slow: compute only what is not known
                is_unknown = np.ones(self._n, dtype=bool)
                is_unknown[self.pivots] = is_unknown[candidates] = False
                unknown_positions = np.flatnonzero(is_unknown)
                item_blocks: list[Any] = [
                    unknown_positions[items]
                    for items in self._item_blocks(len(unknown_positions), len(pivots))
                ]
            else:
                item_blocks = list(self._item_blocks(self._n, len(pivots)))
            self._fill(panel, pivots, corner, pivot_rows, item_blocks)
            panel[:, self.pivots] = 0.0
            panel[:, candidates] = candidate_rows.T
            self._columns.advance(len(pivots))
            for items in self._item_blocks(self._n, len(pivots)):
                self._residual_diagonal[items] -= np.einsum("ij,ij->j", panel[:, items], panel[:, items])
        else:
            panel = self._device_panel(pivots, corner, pivot_rows)
            panel = self._with_known_rows(panel, candidates, candidate_rows)
            self._columns.append(panel)
            self._residual_diagonal -= to_host(namespace(panel).sum(panel * panel, axis=0))
        self.pivots.extend(pivots.tolist())
        self._residual_diagonal[self.pivots] = 0.0
        self._check_residual()
        np.maximum(self._residual_diagonal, 0.0, out=self._residual_diagonal)
        if self._frobenius is not None:  # the residual matrix only shrinks, up to rounding
            self._frobenius += 2 * self._eta

    def _item_blocks(self, count: int, width: int) -> list[slice]:
        """Blocks of items whose similarities with `width` pivots fit the working memory."""
        size = WORK_BYTES // (8 * width)
        if isinstance(self.similarity, Features) and not self.similarity.sparse:
            size = min(size, WIDE_BYTES // (8 * self.similarity.width))
        size = max(size, 256)
        return [slice(start, min(start + size, count)) for start in range(0, count, size)]

    def _fill(
        self,
        panel: np.ndarray,
        pivots: np.ndarray,
        corner: np.ndarray,
        pivot_rows: np.ndarray,
        item_blocks: list[Any],
    ) -> None:
        """Write the new columns into `panel`, in threads unless the similarities are a user's."""

        def fill(thread_blocks: list[Any]) -> None:
            for items in thread_blocks:
                panel[:, items] = _solve_corner(corner, self._schur_block(pivots, pivot_rows, items))

        item_count = sum(len(positions_of(items, self._n)) for items in item_blocks)
        self.evaluations += item_count * len(pivots) * self._calls_per_pair
        if not self.similarity.trusted:
            fill(item_blocks)
            return
        with workers(len(item_blocks)) as count:
            run([lambda thread_blocks=item_blocks[i::count]: fill(thread_blocks) for i in range(count)])

    @property
    def _calls_per_pair(self) -> int:
        """How often a user's function is called for a pair."""
        return 2 if self._is_user_function and self._policy.symmetrize else 1

    def _schur_block(self, pivots: np.ndarray, pivot_rows: Any, cols: Index) -> Any:
        """Rows of the Schur complement ρ − FFᵀ at the pivots."""
        block = self._block(pivots, cols)
        if self._calls_per_pair == 2:
            block = 0.5 * (block + transposed(self._block(positions_of(cols, self._n), pivots)))
        explained = self._columns.times(pivot_rows, cols)
        if isinstance(block, np.ndarray):  # made for us alone, so that it may be overwritten
            if not (block.flags.writeable and block.flags.c_contiguous):
                block = np.array(block, order="C")
            if self._uniform_scale is not None:
                block *= self._uniform_scale
            else:
                block *= self._roots[pivots][:, None]
                block *= self._roots[cols]
            if explained is not None:
                block -= explained
            return block
        roots = move(self._roots[pivots], block)[:, None]
        block = block * roots * self._device_roots[cols]
        return block if explained is None else block - explained

    def _device_panel(self, pivots: np.ndarray, corner: np.ndarray, pivot_rows: np.ndarray) -> Any:
        """The new columns on a device, as rows."""
        self.evaluations += self._n * len(pivots) * self._calls_per_pair
        device_rows = move(pivot_rows, self._like)
        width = len(pivots)
        if isinstance(self.similarity, Features):
            width = max(width, self.similarity.width)
        item_blocks = blocks(self._n, width, most=DEVICE_BYTES)
        return concat(
            [_solve_corner(corner, self._schur_block(pivots, device_rows, items)) for items in item_blocks],
            axis=1,
        )

    def _with_known_rows(self, panel: Any, candidates: np.ndarray, rows: np.ndarray) -> Any:
        """New columns on a device with the rows of earlier pivots 0 and those of the candidates as they are known."""
        xp = namespace(panel)
        row_of_item = np.full(self._n, len(candidates))
        row_of_item[candidates] = np.arange(len(candidates))
        is_new = (row_of_item == len(candidates)).astype(np.float64)
        is_new[self.pivots] = 0.0
        known_rows = move(np.append(rows.T, np.zeros((rows.shape[1], 1)), axis=1), panel)
        return panel * move(is_new, panel)[None, :] + xp.take(known_rows, move(row_of_item, panel), axis=1)

    def _check_residual(self) -> None:
        """A residual that is negative beyond rounding means that a user's matrix is not positive semidefinite."""
        if self.similarity.trusted:
            return
        positive = np.maximum(self._probabilities, np.finfo(float).tiny)
        i = int((self._residual_diagonal / positive).argmin())
        lowest = float(self._residual_diagonal[i] / positive[i])
        if lowest < -INDEFINITE_FACTOR * self._entry_rounding:
            raise IndefiniteError(
                f"the similarity matrix is not positive semidefinite: after {len(self.pivots)} items are accounted "
                f"for, {lowest:.4g} is left of the similarity of item {self._names[i]} with itself (expected ≥ 0). "
                f"Use a positive semidefinite kernel, or {mending('project')} to drop the negative eigenvalues, which "
                "takes the exact method.",
                item=self._names[i],
                option="project",
            )

    def spot_check(self) -> None:
        """Check the residual matrix of a few items: no entry may exceed what its diagonal allows.

        A matrix can be indefinite without a negative residual on the diagonal.
        """
        others = np.setdiff1d(np.flatnonzero(self._probabilities > 0), self.pivots)
        if self.similarity.trusted or not len(others):
            return
        count = min(SPOT_CHECK_ITEMS, len(others))
        positions = np.sort(generator(len(others), "spot check").choice(others, count, replace=False))
        residual_matrix = self._residual_matrix(positions)
        roots = np.sqrt(np.maximum(self._probabilities[positions], 0.0))
        residual_roots = np.sqrt(np.maximum(np.diag(residual_matrix), 0.0))
        excess = (np.abs(residual_matrix) - np.outer(residual_roots, residual_roots)) / np.outer(roots, roots)
        np.fill_diagonal(excess, 0.0)
        a, b = np.unravel_index(excess.argmax(), excess.shape)
        # A rounding error of the diagonal shows here by its root.
        if excess[a, b] > max(math.sqrt(INDEFINITE_FACTOR * self._entry_rounding), 1e-6):
            i, j = self._names[positions[[a, b]]]
            raise IndefiniteError(
                f"the similarity matrix is not positive semidefinite: after {len(self.pivots)} items are accounted "
                f"for, items {i} and {j} are more similar to each other than to themselves (by {excess[a, b]:.4g}). "
                f"Use a positive semidefinite kernel, or {mending('project')} to drop the negative eigenvalues, which "
                "takes the exact method.",
                option="project",
            )

    # ------------------------------------------------------------------------------------------- what follows from it

    def _updated_gram(self) -> tuple[np.ndarray, float]:
        """FᵀF on the host, and a bound on the Frobenius norm of its error."""
        step = GRAM_ROWS if self._like is None else DEVICE_GRAM_ROWS
        old_rank = len(self._gram)
        if old_rank < self.rank:
            new_columns = self._columns.products(old_rank, step)
            gram = np.empty((self.rank, self.rank))
            gram[:old_rank, :old_rank] = self._gram
            gram[:, old_rank:] = new_columns
            gram[old_rank:, :old_rank] = new_columns[:old_rank].T
            self._gram = gram
        terms = min(step, self._n) + -(-self._n // step) + 4
        return self._gram, 1.01 * terms * UNIT

    def spectrum(self) -> LowRank:
        """Bounds on the eigenvalues of ρ that follow from the factor."""
        matrix, error = self._updated_gram()
        values = dense.eigenvalues(0.5 * (matrix + matrix.T)) if self.rank else np.zeros(0)
        error += float(dense.eigen_error(self.rank, float(values[0]) if self.rank else 0.0))
        lower_bounds = np.maximum(values - (2 * self._eta + error), 0.0)
        return LowRank(
            lower_bounds,
            max(1.0 - math.fsum(lower_bounds), 0.0),
            int(np.count_nonzero(self._probabilities)),
            diagonal=self._residual_diagonal + self._eta * self._probabilities,  # rounding of the differences
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
        combined = self._columns.linear_combinations(scaled)
        return namespace(combined).linalg.qr(combined)[0]

    def tighten(self) -> bool:
        """Compute ‖R‖_F, which narrows the bounds of the next `spectrum`; False where that is not cheap."""
        matrix, _ = self._updated_gram()
        similarity = self.similarity
        if isinstance(similarity, Matrix):
            squares, cross = self._matrix_norms(similarity)
        elif (
            isinstance(similarity, Features)
            and not similarity.sparse
            and similarity.width <= MAX_SQUARED_WIDTH
        ):
            squares, cross = self._feature_norms(similarity)
        else:
            return False
        gram_squares = float((matrix**2).sum())
        width = similarity.width if isinstance(similarity, Features) else 0
        # The terms are sums of up to n products of entries, of absolute value at most ‖ρ‖_F tr FFᵀ together.
        rounding = (
            4 * (self._n + width + self.rank + 64) * UNIT * (math.sqrt(squares) + math.sqrt(gram_squares))
        )
        residual_squares = max(squares - 2 * cross + gram_squares, 0.0) + rounding
        frobenius = (
            math.sqrt(residual_squares) * (1 + 8 * UNIT) + similarity.entry_error + self._entry_rounding
        )
        frobenius += (math.sqrt(self._n) + 1) * self._eta  # from ρ to M
        self._frobenius = frobenius if self._frobenius is None else min(frobenius, self._frobenius)
        return True

    def _matrix_norms(self, matrix: Matrix) -> tuple[float, float]:
        """‖ρ‖_F² and tr FᵀρF, of a matrix."""
        squares = cross = 0.0
        if matrix.sparse:
            scaled = matrix.data.astype(np.float64)
            scaled.data *= np.repeat(self._roots, np.diff(scaled.indptr)) * self._roots[scaled.indices]
            squares = float((scaled.data**2).sum())
            for _, columns in self._columns.parts():
                cross += float(np.einsum("ij,ij->", columns.T, scaled @ columns.T))
            return squares, cross
        block_bytes = WIDE_BYTES if self._like is None else DEVICE_BYTES
        for rows in blocks(self._n, self._n, most=block_bytes):
            block = as_like(matrix.block(rows, slice(0, self._n)), self._like)
            xp = namespace(block)
            block = block * self._device_roots[rows][:, None] * self._device_roots
            squares += float(xp.sum(xp.sum(block * block, axis=1)))
            for _, columns in self._columns.parts():
                cross += float(xp.sum(xp.sum(columns[:, rows] * (columns @ transposed(block)), axis=1)))
        return squares, cross

    def _feature_norms(self, features: Features) -> tuple[float, float]:
        """‖ρ‖_F² and tr FᵀρF, of features: those of their d×d matrix and of their products with F."""
        block_bytes = WIDE_BYTES if self._like is None else DEVICE_BYTES
        square: Any = None
        cross_products: list[Any] = []
        for rows in blocks(self._n, features.width, most=block_bytes):
            scaled = as_like(features.rows(rows), self._like) * self._device_roots[rows][:, None]
            transpose = transposed(scaled)
            if self._square_norm is None:
                square = transpose @ scaled if square is None else _add(square, transpose @ scaled)
            products = [columns[:, rows] @ scaled for _, columns in self._columns.parts()]
            cross_products = (
                [_add(product, term) for product, term in zip(cross_products, products, strict=True)]
                if cross_products
                else products
            )
        if self._square_norm is None:
            self._square_norm = dense.norm_of(square) ** 2
        return self._square_norm, sum(
            float(namespace(product).sum(product * product)) for product in cross_products
        )


def _solve_corner(corner: np.ndarray, block: Any) -> Any:
    """corner⁻¹ block, for a lower triangular corner; on the host the block is overwritten."""
    if not isinstance(block, np.ndarray):
        return namespace(block).linalg.solve(move(corner, block), block)
    from scipy.linalg import blas

    # In BLAS's order: X cornerᵀ = blockᵀ.
    solve_triangular = blas.dtrsm  # type: ignore[attr-defined]
    return solve_triangular(1.0, corner, block.T, side=1, lower=1, trans_a=1, overwrite_b=1).T


# ----------------------------------------------------------------------------------------------------- the columns of F


class _Columns:
    """The columns of F, stored as rows of slabs: on the host filled in place, on a device concatenated."""

    def __init__(self, n: int, capacity: int, like: Any):
        self._n, self._slab_width, self._like = n, max(1, min(SLAB, capacity)), like
        self._slabs: list[Any] = []
        self.count = 0

    @property
    def free_in_slab(self) -> int:
        """How many columns the current slab still takes; a block of new ones must not exceed it."""
        return self._slab_width - self.count % self._slab_width

    def parts(self) -> Iterator[tuple[slice, Any]]:
        """Slices of columns, each with these columns as the rows of an array."""
        for start in range(0, self.count, self._slab_width):
            stop = min(start + self._slab_width, self.count)
            yield slice(start, stop), self._slabs[start // self._slab_width][: stop - start, :]

    def allocate(self, width: int) -> np.ndarray:
        """Memory on the host for the next columns; they count once `advance` is called."""
        if self.count % self._slab_width == 0 and len(self._slabs) * self._slab_width == self.count:
            self._slabs.append(np.empty((self._slab_width, self._n)))  # pages that are not used cost nothing
        first = self.count % self._slab_width
        return self._slabs[-1][first : first + width]

    def advance(self, width: int) -> None:
        """Count the columns that were written to what `allocate` gave."""
        self.count += width

    def append(self, panel: Any) -> None:
        """Append the next columns, on a device."""
        if self.count % self._slab_width == 0:
            self._slabs.append(panel)
        else:
            self._slabs[-1] = concat([self._slabs[-1], panel])
        self.count += panel.shape[0]

    def rows_at(self, positions: np.ndarray) -> np.ndarray:
        """The rows of F of some items, on the host."""
        if self._like is None:
            rows = [part[:, positions].T for _, part in self.parts()]
        else:
            rows = [to_host(select(transposed(part), positions)) for _, part in self.parts()]
        return np.concatenate(rows, axis=1) if rows else np.zeros((len(positions), 0))

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
        slabs = list(self.parts())
        for new_columns, new_slab in slabs:
            if new_columns.stop <= first:
                continue
            first_row = max(first - new_columns.start, 0)
            columns = slice(max(new_columns.start, first) - first, new_columns.stop - first)
            for old_columns, old_slab in slabs:
                slab_product = None
                for start in range(0, self._n, step):
                    cols = slice(start, min(start + step, self._n))
                    term = old_slab[:, cols] @ transposed(new_slab[first_row:, cols])
                    slab_product = term if slab_product is None else _add(slab_product, term)
                total[old_columns, columns] = to_host(slab_product)
        return total

    def linear_combinations(self, weights: np.ndarray) -> Any:
        """F @ weights, on the device of F."""
        total = None
        for rows, part in self.parts():
            term = transposed(part) @ move(weights[rows], part)
            total = term if total is None else _add(total, term)
        return total


def _add(total: Any, term: Any) -> Any:
    """`total` + `term`, in place where that is possible."""
    if isinstance(total, np.ndarray):
        total += term
        return total
    return total + term


# ----------------------------------------------------------------------------------------------------------- the pivots


def _accept_random(
    residual_matrix: np.ndarray,
    drawn_residuals: np.ndarray,
    uniforms: np.ndarray,
    order: np.ndarray,
    floor: float,
) -> tuple[list[int], np.ndarray]:
    """Choose pivots by rejection sampling, in the order drawn: the accepted candidates, and the rows of their factor.

    Candidates were drawn in proportion to `drawn_residuals`; `uniforms` has one uniform number a draw.
    """
    factor = _PivotedFactor(residual_matrix)
    for uniform, j in zip(uniforms, order, strict=True):
        if factor.residual_diagonal[j] > floor and uniform * drawn_residuals[j] < factor.residual_diagonal[j]:
            factor.accept(int(j))
    return factor.accepted, factor.rows


def _accept_greedy(residual_matrix: np.ndarray, max_count: int, floor: float) -> tuple[list[int], np.ndarray]:
    """Choose pivots by complete pivoting: the accepted candidates, and the rows of their factor."""
    factor = _PivotedFactor(residual_matrix)
    floor = max(floor, GREEDY_RATIO * float(factor.residual_diagonal.max()))
    while len(factor.accepted) < max_count:
        j = int(factor.residual_diagonal.argmax())
        if factor.residual_diagonal[j] <= floor:
            break
        factor.accept(j)
    return factor.accepted, factor.rows


class _PivotedFactor:
    """A Cholesky factorisation of the residual matrix of the candidates, extended one pivot at a time."""

    def __init__(self, residual_matrix: np.ndarray):
        self._residual_matrix = residual_matrix
        self._factor = np.zeros(residual_matrix.shape)
        self.residual_diagonal = residual_matrix.diagonal().copy()
        self.accepted: list[int] = []

    @property
    def rows(self) -> np.ndarray:
        """The factor so far: a row for each candidate, a column for each accepted one."""
        return self._factor[:, : len(self.accepted)]

    def accept(self, j: int) -> None:
        """Accept a candidate."""
        rows, pivot = self.rows, math.sqrt(self.residual_diagonal[j])
        column = (self._residual_matrix[:, j] - rows @ rows[j]) / pivot
        column[self.accepted] = 0.0  # as it would be without rounding: the factor is triangular
        column[j] = pivot
        self._factor[:, len(self.accepted)] = column
        self.residual_diagonal -= column**2
        self.accepted.append(j)
        self.residual_diagonal[self.accepted] = 0.0
