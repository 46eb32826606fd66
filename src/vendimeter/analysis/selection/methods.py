"""The methods of selection by name: their objectives, what they cost, and the scores they reach.

`choose` runs a method. The objective of "vendi" is in `greedy`; here are those of "farthest", "logdet" and "facility".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from vendimeter.analysis.selection.greedy import Choice, Eigenbasis, Greedy, Objective, VendiGain, Worth
from vendimeter.analysis.selection.items import Items, items_of
from vendimeter.analysis.selection.rules import Rules
from vendimeter.data.devices import move, namespace, to_host
from vendimeter.errors import TooLargeError
from vendimeter.options import generator
from vendimeter.present.notes import Note
from vendimeter.similarity import FeatureRows, Features, Matrix, Pairwise, Similarity
from vendimeter.solvers.groups import materialize_for_subsets, subset_scores
from vendimeter.solvers.plan import EXACT_SIDE

__all__ = [
    "METHODS",
    "NAMES",
    "Facility",
    "Farthest",
    "LogDet",
    "Request",
    "choose",
    "chosen_similarity",
    "curve_sizes",
    "function_calls",
    "operations",
    "prefix_scores",
    "represented_count",
]


# -------------------------------------------------------------------------------------------------------------- by name

METHODS = ("vendi", "logdet", "farthest", "facility", "random")
NAMES = {
    "vendi": "greedy Vendi Score",
    "logdet": "greedy determinant",
    "farthest": "farthest points",
    "facility": "facility location",
    "random": "random choice",
}
EVALUATIONS = 16.0  # evaluations of each item in a lazy choice, as measured on data of many kinds
EIGEN_OPERATIONS = 10.0  # operations for the eigenvectors of an m×m matrix, in m³
CURVE_SIZES = 24  # sizes at which curves are drawn, at most


@dataclass(frozen=True)
class Request:
    """What is to be chosen: the options that all methods share."""

    similarity: Similarity
    rules: Rules
    q: float
    memory: int
    rng: int
    quality: np.ndarray | None = None
    trade_off: float = 1.0
    exact: bool | None = None

    @property
    def side(self) -> int:
        """The side of the smaller of Gram and scatter matrix of the chosen items."""
        similarity, k = self.similarity, self.rules.k
        return min(k, similarity.width) if isinstance(similarity, Features) else k

    def rival(self) -> Request:
        """The request for a comparison: without quality, and without a full search that takes long."""
        return replace(self, quality=None, exact=None)


def choose(method: str, request: Request, report: Callable[[float, str], None]) -> Choice:
    """Choose items by a method."""
    rules, k = request.rules.fresh(), request.rules.k
    if method == "random":
        order = rules.draw(generator(request.rng, "select random"))
        return Choice(order, np.full(k, np.nan))
    if method in ("vendi", "logdet") and request.side > EXACT_SIDE:
        raise TooLargeError(
            f"this needs the eigenvectors of {request.side}×{request.side} matrices, and the limit is "
            f"{EXACT_SIDE}×{EXACT_SIDE}; expected to choose fewer items, or a kernel with fewer features. Or take "
            "method='farthest' or 'facility', which need none."
        )
    items = items_of(request.similarity, k, request.memory)
    random = generator(request.rng, f"select {method}")
    objective = _objective(method, items, request, random)
    worth = Worth(k, request.quality, request.trade_off)
    return Greedy(items, objective, rules, worth, request.exact, random).run(report)


def _objective(method: str, items: Items, request: Request, random: np.random.Generator) -> Objective:
    k = request.rules.k
    if method == "vendi":
        return VendiGain(items, request.q)
    if method == "logdet":
        return LogDet(items)
    return Farthest(items) if method == "farthest" else Facility(items, k, request.memory, random)


def operations(method: str, request: Request) -> float:
    """Estimate the floating-point operations of a method."""
    similarity, k, n = request.similarity, request.rules.k, request.similarity.n
    side, cost = request.side, float(similarity.cost)
    eigen_operations = k * EIGEN_OPERATIONS * float(side) ** 3
    if method == "random":
        return k * k * cost + eigen_operations / k
    if method == "facility":
        return n * represented_count(n, k) * cost * (2 if n > represented_count(n, k) else 1)
    similarities = n * k * cost
    if method == "farthest":
        return similarities
    return similarities + EVALUATIONS * n * 2.0 * side * min(side, k) + eigen_operations


def function_calls(method: str, request: Request) -> float:
    """An upper bound of the calls of a user's function by a method and by the score of its choice."""
    n, k = request.similarity.n, request.rules.k
    score_calls = k * (k + 1) / 2
    if method == "random":
        return score_calls
    return score_calls + (n * represented_count(n, k) / 2 if method == "facility" else n * k)


def curve_sizes(k: int) -> np.ndarray:
    """Numbers of items at which scores are compared: denser among small ones."""
    if k <= CURVE_SIZES:
        return np.arange(1, k + 1)
    spaced = np.concatenate([np.geomspace(1, k, CURVE_SIZES // 2), np.linspace(1, k, CURVE_SIZES // 2)])
    return np.unique(np.rint(spaced).astype(np.int64))


def chosen_similarity(similarity: Similarity, order: np.ndarray) -> Similarity:
    """Take the similarities of the chosen items, on the host; those of a user's function once, and checked."""
    part = similarity.take(order)
    if part.like is None:
        return materialize_for_subsets(part)
    if isinstance(part, Features):
        rows = to_host(part.rows(slice(0, part.n)))
        return materialize_for_subsets(FeatureRows(rows, rounding=part.rounding, kernel=part.kernel))
    matrix = materialize_for_subsets(part)
    return Matrix(
        to_host(matrix.dense()),
        policy=matrix.policy,
        trusted=matrix.trusted,
        is_checked=True,
        rounding=matrix.rounding,
        precision=matrix.precision,
        kernel=part.kernel,
    )


def prefix_scores(part: Similarity, sizes: np.ndarray, q: float, rng: int) -> np.ndarray:
    """Compute the scores of the first items of a part, for each size."""
    return subset_scores(part, [np.arange(size) for size in sizes.tolist()], [q], rng=rng)[:, 0]


# ------------------------------------------------------------------------------------------------------ farthest points

DISTANCE_ALLOWANCE = 1e-5  # for the rounding of float32 in a squared distance


class Farthest(Objective):
    """Farthest points: the squared distance of an item from the nearest chosen one.

    ‖φ_a − φ_b‖² = 2 − 2k(a, b) is the kernel's own distance. The greedy choice leaves no item farther from the chosen
    ones than twice the least possible radius (Gonzalez).
    """

    ceiling = 4.0

    def __init__(self, items: Items):
        super().__init__(items)
        self.rough = items.has_float32
        # Of each item, its similarity with the nearest of the first `_compared` chosen ones, up to rounding of float32.
        self._nearest = np.full(items.n if self.rough else 0, -1.0)
        self._compared = np.zeros(len(self._nearest), dtype=np.int64)

    @property
    def work(self) -> float:
        """Floating-point operations to evaluate one item now."""
        return 2.0 * self.items.width + self.items.row_cost

    def evaluate(self, index: np.ndarray) -> np.ndarray:
        """Compute squared distances from the nearest chosen item, in float64."""
        distances = np.full(len(index), self.ceiling)
        if not self.items.chosen:
            return distances

        def task(block: slice) -> None:
            distances[block] = np.maximum(2 - 2 * self.items.nearest_similarity(index[block]), 0.0)

        self.items.run_blocks(task, len(index), len(self.items.chosen))
        return distances

    def bound(self, index: np.ndarray) -> np.ndarray:
        """Compute upper bounds of the squared distances from float32 rows."""
        count = len(self.items.chosen)
        if not self.rough:
            return self.evaluate(index)
        if count:
            self.items.float32_rows(index[:1])  # the copy is made before threads ask for it
            compared = self._compared[index]
            for first in np.unique(compared[compared < count]).tolist():
                self._update_nearest(
                    index[compared == first], self.items.chosen_vectors(first).astype(np.float32)
                )
            self._compared[index] = count
        return np.minimum(2 - 2 * self._nearest[index] + DISTANCE_ALLOWANCE, self.ceiling)

    def _update_nearest(self, index: np.ndarray, chosen: np.ndarray) -> None:
        def task(block: slice) -> None:
            block_index = index[block]
            nearest = (self.items.float32_rows(block_index) @ chosen).max(axis=1)
            self._nearest[block_index] = np.maximum(self._nearest[block_index], nearest)

        self.items.run_blocks(task, len(index), chosen.shape[1])

    def add(self, item: int) -> float:
        """Choose an item; return its squared distance from the others."""
        gain = float(self.evaluate(np.array([item]))[0]) if self.items.chosen else math.nan
        self.items.add(item)
        return gain


# ---------------------------------------------------------------------------------------------------------- determinant

SPAN_FLOOR = 1e-10  # a share outside the span that may be rounding alone
SHARE_ALLOWANCE = 1e-5  # for the rounding of float32 in a share


class LogDet(Objective):
    """The determinant of the chosen items' similarities, and beyond their rank the product of nonzero eigenvalues.

    The set of largest log det K_A is the most likely one of a determinantal point process. An item adds the logarithm
    of its share outside the span of the chosen ones, 1 − ‖Qᵀφ‖² with an orthonormal basis Q of that span, which grows
    by one vector an item. Once the span holds all items the determinant is 0 whatever is chosen. What goes on growing
    is the product of the nonzero eigenvalues, those of σ = Σ φφᵀ within the span: an item multiplies it by
    1 + φᵀσ⁺φ (a D-optimal design). Neither rises as more items are chosen.
    """

    ceiling = 1.0

    def __init__(self, items: Items):
        super().__init__(items)
        self.rough = items.has_float32
        self._directions = np.zeros((items.max_width, min(items.k, items.max_width)))
        self._rank = 0
        self._eigenbasis: Eigenbasis | None = None
        # Of each item, its share outside the span of the first `_subtracted` directions, up to rounding of float32.
        self._outside_share = np.ones(items.n) if self.rough else np.zeros(0)
        self._subtracted = np.zeros(len(self._outside_share), dtype=np.int64)

    @property
    def work(self) -> float:
        """Floating-point operations to evaluate one item now."""
        return 2.0 * max(len(self.items.chosen), 1) * self.items.width + self.items.row_cost

    def evaluate(self, index: np.ndarray) -> np.ndarray:
        """Compute shares outside the span, or beyond the rank φᵀσ⁺φ, in float64."""
        gains = np.ones(len(index))
        if not self.items.chosen:
            return gains
        vectors = self._basis() if self._eigenbasis is None else self._eigenbasis.vectors
        vectors = np.ascontiguousarray(vectors)
        weights = np.ones(vectors.shape[1]) if self._eigenbasis is None else 1 / self._eigenbasis.values
        weights = self.items.pad(weights)

        def task(block: slice) -> None:
            coordinates = self.items.coordinates(index[block], vectors)
            inside = to_host((coordinates * coordinates) @ move(weights, coordinates))
            inside = inside[: block.stop - block.start]
            gains[block] = np.maximum(1 - inside, 0.0) if self._eigenbasis is None else inside

        self.items.run_blocks(task, len(index), vectors.shape[1])
        return gains

    def bound(self, index: np.ndarray) -> np.ndarray:
        """Compute upper bounds of the shares outside the span from float32 rows."""
        if not self.rough:
            return self.evaluate(index)
        if self._rank:
            self.items.float32_rows(index[:1])  # the copy is made before threads ask for it
            directions = self._basis().astype(np.float32)
            subtracted = self._subtracted[index]
            for first in np.unique(subtracted[subtracted < self._rank]).tolist():
                self._subtract(index[subtracted == first], directions[:, first:])
            self._subtracted[index] = self._rank
        return np.minimum(self._outside_share[index] + SHARE_ALLOWANCE, 1.0)

    def _subtract(self, index: np.ndarray, directions: np.ndarray) -> None:
        def task(block: slice) -> None:
            coordinates = self.items.float32_rows(index[block]) @ directions
            self._outside_share[index[block]] -= np.einsum("ij,ij->i", coordinates, coordinates)

        self.items.run_blocks(task, len(index), directions.shape[1])

    def add(self, item: int) -> float:
        """Choose an item; return its share outside the span, or beyond the rank φᵀσ⁺φ."""
        gain = float(self.evaluate(np.array([item]))[0])
        self.items.add(item)
        if self._eigenbasis is not None:
            self._eigenbasis.update()
            return gain
        vector = self.items.chosen_vectors(len(self.items.chosen) - 1)[:, 0]
        basis = self._basis()
        for _ in range(2):  # twice, so that the directions are orthogonal to the last digits
            vector = vector - basis @ (basis.T @ self.items.apply_metric(vector))
        square = float(vector @ self.items.apply_metric(vector))
        if square > SPAN_FLOOR and self._rank < self._directions.shape[1]:
            self._directions[: len(vector), self._rank] = vector / math.sqrt(square)
            self._rank += 1
        return gain

    def _basis(self) -> np.ndarray:
        """An orthonormal basis of the span of the chosen items, in the coordinates of rows."""
        return self._directions[: self.items.width, : self._rank]

    def switch(self, best: float) -> bool:
        """Once no item lies outside the span, go on with the product of nonzero eigenvalues."""
        if self._eigenbasis is not None or best > SPAN_FLOOR:
            return False
        count = len(self.items.chosen)
        text = (
            f"After {count:,} {'item' if count == 1 else 'items'} none was left outside their span, where every "
            "determinant is 0; from there on the product of the eigenvalues other than 0 was made as large as possible."
        )
        self.notes.append(Note("beyond-the-span", text, {"items": count}))
        self._eigenbasis, self.rough, self.ceiling = Eigenbasis(self.items), False, math.inf
        self._eigenbasis.update()
        return True


# ---------------------------------------------------------------------------------------------------- facility location

ALL = 8192  # number of items up to which all of them are represented
POINTS = 4096  # beyond, so many drawn at random, or four times the number of chosen ones
SIMILARITY_ALLOWANCE = 4e-7  # for the rounding of float32 in a similarity


def represented_count(n: int, k: int) -> int:
    """The number of items that facility location represents."""
    return n if n <= ALL else min(n, max(POINTS, 4 * k))


class Facility(Objective):
    """Facility location: how well the chosen items represent all items, or a random sample of them.

    F(A) = Σ_i max(0, max_{j∈A} k(i, j)) is monotone and submodular; greedy choice reaches 1 − 1/e of the best. An item
    adds Σ_i max(0, k(i, j) − c_i), with c_i the similarity of i with its nearest chosen one.
    """

    def __init__(self, items: Items, k: int, memory: int, rng: np.random.Generator):
        super().__init__(items)
        size = represented_count(items.n, k)
        self._points = (
            np.arange(items.n) if size == items.n else np.sort(rng.choice(items.n, size, replace=False))
        )
        self.ceiling = float(size)
        self._covered = np.zeros(size)
        self._similarities: np.ndarray | None = None
        self._point_columns: np.ndarray | None = None
        if size < items.n:
            text = (
                f"Facility location represents {size:,} items that were drawn at random, not all {items.n:,}."
            )
            self.notes.append(Note("represented-sample", text, {"represented": size, "n": items.n}))
        self._similarities_with_points = items.similarities_with(self._points)
        is_direct = isinstance(items.similarity, Matrix) or (items.similarity.like is not None and items.bulk)
        if not is_direct and 8 * items.n * size <= memory // 2:
            self._similarities = self._compute_similarities()
        self.rough = items.has_float32 and self._similarities is None
        if self.rough:
            self._point_columns = np.ascontiguousarray(items.float32_rows(self._points).T)

    def _compute_similarities(self) -> np.ndarray:
        """Compute all similarities with the represented items."""
        items, similarity = self.items, self.items.similarity
        if isinstance(similarity, Pairwise) and not similarity.trusted:
            policy = similarity.policy
            unmodified = not (policy.normalize or policy.symmetrize)
            if unmodified and len(self._points) == items.n and similarity.like is None:
                return similarity.dense()  # the user's function is called once a pair
        similarities = np.empty((items.n, len(self._points)))

        def task(block: slice) -> None:
            block_index = np.arange(block.start, block.stop)
            similarities[block] = to_host(self._similarities_with_points(block_index))[: len(block_index)]

        items.run_blocks(task, items.n, len(self._points))
        return similarities

    @property
    def work(self) -> float:
        """Floating-point operations to evaluate one item now."""
        return len(self._points) * (2.0 if self._similarities is not None else self.items.cost)

    def evaluate(self, index: np.ndarray) -> np.ndarray:
        """Compute the rise of the total similarity with nearest chosen items, in float64."""
        gains = np.empty(len(index))

        def task(block: slice) -> None:
            block_index = index[block]
            if self._similarities is not None:
                gains[block] = np.maximum(self._similarities[block_index] - self._covered, 0.0).sum(axis=1)
                return
            excess = self._similarities_with_points(block_index)
            excess = excess - move(self._covered, excess)
            xp = namespace(excess)
            gains[block] = to_host(xp.sum(0.5 * (excess + xp.abs(excess)), axis=1))[: len(block_index)]

        self.items.run_blocks(task, len(index), 2 * len(self._points))
        return gains

    def bound(self, index: np.ndarray) -> np.ndarray:
        """Compute upper bounds of the rise from float32 rows."""
        if not self.rough:
            return self.evaluate(index)
        bounds = np.empty(len(index))
        covered = self._covered.astype(np.float32)

        def task(block: slice) -> None:
            excess = self.items.float32_rows(index[block]) @ self._point_columns
            excess -= covered
            np.maximum(excess, 0.0, out=excess)
            bounds[block] = excess.sum(axis=1, dtype=np.float64)

        self.items.run_blocks(task, len(index), len(self._points), max_rows=512)
        return bounds + SIMILARITY_ALLOWANCE * len(self._points)

    def _similarities_of(self, item: int) -> np.ndarray:
        return (
            to_host(self._similarities_with_points(np.array([item])))[0]
            if self._similarities is None
            else self._similarities[item]
        )

    def add(self, item: int) -> float:
        """Choose an item; return the rise of the mean similarity of items with their nearest chosen one."""
        mean_before = float(self._covered.mean())
        self._covered = np.maximum(self._covered, self._similarities_of(item))
        self.items.add(item)
        return float(self._covered.mean()) - mean_before
