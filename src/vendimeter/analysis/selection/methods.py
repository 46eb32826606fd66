"""The methods of a selection by name, what each costs, and the scores that each reaches."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from vendimeter.analysis.selection.greedy import Chosen, Eigenbasis, Greedy, Objective, VendiGain, Worth
from vendimeter.analysis.selection.items import Items, items_of
from vendimeter.analysis.selection.rules import Rules
from vendimeter.data.devices import move, namespace, to_host
from vendimeter.errors import TooLargeError
from vendimeter.options import generator
from vendimeter.similarity import FeatureRows, Features, Matrix, Pairwise, Similarity
from vendimeter.solvers.groups import held, subset_scores
from vendimeter.solvers.plan import EXACT_SIDE

__all__ = [
    "METHODS",
    "NAMES",
    "Facility",
    "Farthest",
    "LogDet",
    "Request",
    "calls_of",
    "choose",
    "operations",
    "part_of",
    "points_of",
    "prefix_scores",
    "sizes_of",
]


# ------------------------------------------------------------------------------------------------------------ farthest

# Farthest points: every item is the one that is least similar to its nearest chosen one.
#
# ‖φ_a − φ_b‖² = 2 − 2k(a, b) is the kernel's own distance. The greedy choice leaves no item farther from the chosen
# ones than twice the least possible radius (Gonzalez).

DISTANCE_ALLOWANCE = 1e-5  # for the rounding of float32 in a squared distance


class Farthest(Objective):
    """The squared distance of an item from the nearest chosen one."""

    ceiling = 4.0

    def __init__(self, items: Items):
        super().__init__(items)
        self.rough = items.single
        # Of each item, its similarity with the nearest of the first `seen` chosen ones, up to the rounding of float32.
        self._nearest = np.full(items.n if self.rough else 0, -1.0)
        self._seen = np.zeros(len(self._nearest), dtype=np.int64)

    @property
    def work(self) -> float:
        return 2.0 * self.items.width + self.items.row_cost

    def evaluate(self, index: np.ndarray) -> np.ndarray:
        found = np.full(len(index), self.ceiling)
        if not self.items.chosen:
            return found

        def task(part: slice) -> None:
            found[part] = np.maximum(2 - 2 * self.items.nearest(index[part]), 0.0)

        self.items.spread(task, len(index), len(self.items.chosen))
        return found

    def bound(self, index: np.ndarray) -> np.ndarray:
        m = len(self.items.chosen)
        if not self.rough:
            return self.evaluate(index)
        if m:
            self.items.quick(index[:1])  # the copy is made before threads ask for it
            missing = self._seen[index]
            for seen in np.unique(missing[missing < m]).tolist():
                self._approach(index[missing == seen], self.items.chosen_vectors(seen).astype(np.float32))
            self._seen[index] = m
        return np.minimum(2 - 2 * self._nearest[index] + DISTANCE_ALLOWANCE, self.ceiling)

    def _approach(self, index: np.ndarray, rows: np.ndarray) -> None:
        def task(part: slice) -> None:
            some = index[part]
            similar = (self.items.quick(some) @ rows).max(axis=1)
            self._nearest[some] = np.maximum(self._nearest[some], similar)

        self.items.spread(task, len(index), rows.shape[1])

    def add(self, item: int) -> float:
        """Choose an item; its squared distance from the others."""
        gain = float(self.evaluate(np.array([item]))[0]) if self.items.chosen else math.nan
        self.items.add(item)
        return gain


# ------------------------------------------------------------------------------------------------------- greedy logdet

# Greedy choice for the determinant: log det K_A, the most likely set of a determinantal point process.
#
# An item adds the logarithm of its share outside the span of the chosen ones, 1 − ‖Qᵀφ‖² with an orthonormal basis Q of
# that span, which grows by one vector an item. Once the span holds all items the determinant is 0 whatever is chosen.
# What goes on growing is the product of the eigenvalues that are not 0, those of σ = Σ φφᵀ within the span: an item
# multiplies it by 1 + φᵀσ⁺φ (a D-optimal design). Neither rises as more items are chosen.

NOTHING = 1e-10  # a share outside the span that rounding may have left
SHARE_ALLOWANCE = 1e-5  # for the rounding of float32 in a share


class LogDet(Objective):
    """The determinant of the chosen items' similarities, and beyond their rank the product of its eigenvalues."""

    ceiling = 1.0

    def __init__(self, items: Items):
        super().__init__(items)
        self.rough = items.single
        self._directions = np.zeros((items.longest, min(items.k, items.longest)))
        self._rank = 0
        self._beyond: Eigenbasis | None = None
        # Of each item, its share outside the span of the first `seen` directions, up to the rounding of float32.
        self._share = np.ones(items.n) if self.rough else np.zeros(0)
        self._seen = np.zeros(len(self._share), dtype=np.int64)

    @property
    def work(self) -> float:
        return 2.0 * max(len(self.items.chosen), 1) * self.items.width + self.items.row_cost

    def evaluate(self, index: np.ndarray) -> np.ndarray:
        found = np.ones(len(index))
        if not self.items.chosen:
            return found
        vectors = self._vectors() if self._beyond is None else self._beyond.vectors
        vectors = np.ascontiguousarray(vectors)
        weights = np.ones(vectors.shape[1]) if self._beyond is None else 1 / self._beyond.values
        weights = self.items.padded(weights)

        def task(part: slice) -> None:
            coordinates = self.items.coordinates(index[part], vectors)
            seen = to_host((coordinates * coordinates) @ move(weights, coordinates))[: part.stop - part.start]
            found[part] = np.maximum(1 - seen, 0.0) if self._beyond is None else seen

        self.items.spread(task, len(index), vectors.shape[1])
        return found

    def bound(self, index: np.ndarray) -> np.ndarray:
        if not self.rough:
            return self.evaluate(index)
        if self._rank:
            self.items.quick(index[:1])  # the copy is made before threads ask for it
            directions = self._vectors().astype(np.float32)
            missing = self._seen[index]
            for seen in np.unique(missing[missing < self._rank]).tolist():
                self._reduce(index[missing == seen], directions[:, seen:])
            self._seen[index] = self._rank
        return np.minimum(self._share[index] + SHARE_ALLOWANCE, 1.0)

    def _reduce(self, index: np.ndarray, directions: np.ndarray) -> None:
        def task(part: slice) -> None:
            seen = self.items.quick(index[part]) @ directions
            self._share[index[part]] -= np.einsum("ij,ij->i", seen, seen)

        self.items.spread(task, len(index), directions.shape[1])

    def add(self, item: int) -> float:
        """Choose an item; its share outside the span, or beyond the rank φᵀσ⁺φ."""
        gain = float(self.evaluate(np.array([item]))[0])
        self.items.add(item)
        if self._beyond is not None:
            self._beyond.update()
            return gain
        vector = self.items.chosen_vectors(len(self.items.chosen) - 1)[:, 0]
        before = self._vectors()
        for _ in range(2):  # twice, so that the directions are orthogonal to the last digits
            vector = vector - before @ (before.T @ self.items.metric(vector))
        square = float(vector @ self.items.metric(vector))
        if square > NOTHING and self._rank < self._directions.shape[1]:
            self._directions[: len(vector), self._rank] = vector / math.sqrt(square)
            self._rank += 1
        return gain

    def _vectors(self) -> np.ndarray:
        """An orthonormal basis of the span of the chosen items, in the terms of rows."""
        return self._directions[: self.items.width, : self._rank]

    def go_on(self, best: float) -> bool:
        if self._beyond is not None or best > NOTHING:
            return False
        m = len(self.items.chosen)
        self.notes.append(
            f"after {m:,} {'item' if m == 1 else 'items'} none was left outside their span, where every determinant is "
            "0; from there on the product of the eigenvalues other than 0 was made as large as possible"
        )
        self._beyond, self.rough, self.ceiling = Eigenbasis(self.items), False, math.inf
        self._beyond.update()
        return True


# ------------------------------------------------------------------------------------------------------------ facility

# Facility location: the chosen items are to represent all items, F(A) = Σ_i max(0, max_{j∈A} k(i, j)).
#
# F is monotone and submodular; greedy choice reaches 1 − 1/e of the best. An item adds Σ_i max(0, k(i, j) − c_i), with
# c_i the similarity of i with its nearest chosen one.

ALL = 8192  # items up to which all of them are to be represented
POINTS = 4096  # beyond, so many drawn at random, or four times the number of chosen ones
SIMILARITY_ALLOWANCE = 4e-7  # for the rounding of float32 in a similarity


def points_of(n: int, k: int) -> int:
    """How many items are to be represented."""
    return n if n <= ALL else min(n, max(POINTS, 4 * k))


class Facility(Objective):
    """How well the chosen items represent all items, or a random sample of them."""

    def __init__(self, items: Items, k: int, memory: int, rng: np.random.Generator):
        super().__init__(items)
        size = points_of(items.n, k)
        self._points = (
            np.arange(items.n) if size == items.n else np.sort(rng.choice(items.n, size, replace=False))
        )
        self.ceiling = float(size)
        self._covered = np.zeros(size)
        self._held: np.ndarray | None = None
        self._rows: np.ndarray | None = None
        if size < items.n:
            self.notes.append(
                f"facility location represents {size:,} items that were drawn at random, not all {items.n:,}"
            )
        self._similar = items.against(self._points)
        given = isinstance(items.similarity, Matrix) or (items.similarity.like is not None and items.bulk)
        if not given and 8 * items.n * size <= memory // 2:
            self._held = self._all()
        self.rough = items.single and self._held is None
        if self.rough:
            self._rows = np.ascontiguousarray(items.quick(self._points).T)

    def _all(self) -> np.ndarray:
        """All similarities that are needed, once."""
        items, similarity = self.items, self.items.similarity
        if isinstance(similarity, Pairwise) and not similarity.trusted:
            policy = similarity.policy
            plain = not (policy.normalize or policy.symmetrize)
            if plain and len(self._points) == items.n and similarity.like is None:
                return similarity.dense()  # the user's function is called once a pair
        held = np.empty((items.n, len(self._points)))

        def task(part: slice) -> None:
            held[part] = to_host(self._similar(np.arange(part.start, part.stop)))[: part.stop - part.start]

        items.spread(task, items.n, len(self._points))
        return held

    @property
    def work(self) -> float:
        return len(self._points) * (2.0 if self._held is not None else self.items.cost)

    def evaluate(self, index: np.ndarray) -> np.ndarray:
        found = np.empty(len(index))

        def task(part: slice) -> None:
            some = index[part]
            if self._held is not None:
                found[part] = np.maximum(self._held[some] - self._covered, 0.0).sum(axis=1)
                return
            above = self._similar(some)
            above = above - move(self._covered, above)
            xp = namespace(above)
            found[part] = to_host(xp.sum(0.5 * (above + xp.abs(above)), axis=1))[: len(some)]

        self.items.spread(task, len(index), 2 * len(self._points))
        return found

    def bound(self, index: np.ndarray) -> np.ndarray:
        if not self.rough:
            return self.evaluate(index)
        found = np.empty(len(index))
        covered = self._covered.astype(np.float32)

        def task(part: slice) -> None:
            above = self.items.quick(index[part]) @ self._rows
            above -= covered
            np.maximum(above, 0.0, out=above)
            found[part] = above.sum(axis=1, dtype=np.float64)

        self.items.spread(task, len(index), len(self._points), most=512)
        return found + SIMILARITY_ALLOWANCE * len(self._points)

    def _row(self, item: int) -> np.ndarray:
        return to_host(self._similar(np.array([item])))[0] if self._held is None else self._held[item]

    def add(self, item: int) -> float:
        """Choose an item; by how much it raises the mean similarity of items with their nearest chosen one."""
        before = float(self._covered.mean())
        self._covered = np.maximum(self._covered, self._row(item))
        self.items.add(item)
        return float(self._covered.mean()) - before


# ------------------------------------------------------------------------------------------------------ select methods

METHODS = ("vendi", "logdet", "farthest", "facility", "random")
NAMES = {
    "vendi": "greedy Vendi Score",
    "logdet": "greedy determinant",
    "farthest": "farthest points",
    "facility": "facility location",
    "random": "random choice",
}
PASSES = 16.0  # looks at each item that a lazy choice takes, as it turned out on data of many kinds
SOLVE = 10.0  # eigenvectors of an m×m matrix, in m³
CURVE = 24  # sizes at which curves are drawn, at most


@dataclass(frozen=True)
class Request:
    """What is to be chosen, by the rules of everyone."""

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
        """The side of the smaller matrix of all that are chosen."""
        similarity, k = self.similarity, self.rules.k
        return min(k, similarity.width) if isinstance(similarity, Features) else k

    def rival(self) -> Request:
        """For the sake of comparison: without quality, and without a full search that takes long."""
        return replace(self, quality=None, exact=None)


def choose(method: str, request: Request, report: Callable[[float, str], None]) -> Chosen:
    """Choose items by a method."""
    rules, k = request.rules.fresh(), request.rules.k
    if method == "random":
        order = rules.draw(generator(request.rng, "select random"))
        return Chosen(order, np.full(k, np.nan))
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
    """About how many operations a method takes."""
    similarity, k, n = request.similarity, request.rules.k, request.similarity.n
    side, cost = request.side, float(similarity.cost)
    solved = k * SOLVE * float(side) ** 3
    if method == "random":
        return k * k * cost + solved / k
    if method == "facility":
        return n * points_of(n, k) * cost * (2 if n > points_of(n, k) else 1)
    similarities = n * k * cost
    if method == "farthest":
        return similarities
    return similarities + PASSES * n * 2.0 * side * min(side, k) + solved


def calls_of(method: str, request: Request) -> float:
    """At most how many similarities of a user's function a method takes, with the score of what it chose."""
    n, k = request.similarity.n, request.rules.k
    scored = k * (k + 1) / 2
    if method == "random":
        return scored
    return scored + (n * points_of(n, k) / 2 if method == "facility" else n * k)


def sizes_of(k: int) -> np.ndarray:
    """Numbers of items at which scores are compared: closer together at first."""
    if k <= CURVE:
        return np.arange(1, k + 1)
    spaced = np.concatenate([np.geomspace(1, k, CURVE // 2), np.linspace(1, k, CURVE // 2)])
    return np.unique(np.rint(spaced).astype(np.int64))


def part_of(similarity: Similarity, order: np.ndarray) -> Similarity:
    """The similarities of the chosen items, on the host; those of a user's function are computed once and checked."""
    part = similarity.take(order)
    if part.like is None:
        return held(part)
    if isinstance(part, Features):
        rows = to_host(part.rows(slice(0, part.n)))
        return held(FeatureRows(rows, rounding=part.rounding, kernel=part.kernel))
    matrix = held(part)
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
    """The scores of the first items of a part, for each size."""
    return subset_scores(part, [np.arange(size) for size in sizes.tolist()], [q], rng=rng)[:, 0]
