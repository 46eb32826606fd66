"""The methods of a selection by name, what each costs, and the scores that each reaches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from vendimeter.analysis._facility import Facility, points_of
from vendimeter.analysis._farthest import Farthest
from vendimeter.analysis._greedy import Chosen, Greedy, Worth
from vendimeter.analysis._greedy_items import Items, items_of
from vendimeter.analysis._greedy_logdet import LogDet
from vendimeter.analysis._greedy_objectives import Objective
from vendimeter.analysis._greedy_rules import Rules
from vendimeter.analysis._greedy_vendi import VendiGain
from vendimeter.data.devices import to_host
from vendimeter.errors import TooLargeError
from vendimeter.options import generator
from vendimeter.similarity import FeatureRows, Features, Matrix, Similarity
from vendimeter.solvers.groups import held, subset_scores
from vendimeter.solvers.plan import EXACT_SIDE

__all__ = [
    "METHODS",
    "NAMES",
    "Request",
    "calls_of",
    "choose",
    "operations",
    "part_of",
    "prefix_scores",
    "sizes_of",
]

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
