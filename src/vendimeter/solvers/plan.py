"""The planner: which solver for which input, and what it will cost. One place decides; everything else carries out.

Items of weight 0 are dropped and identical ones are merged (`prepared`), a cost model estimates every method
(`_CostModel`), and `choose` picks one. Of sparse data it needs the connected components and a bound on the entries of
their product (`sparse_shape`), which are counted without multiplying anything.

Decisions rest on fixed thresholds and on counts of operations, never on a clock: the same call gives the same answer on
every machine. Costs are floating-point operations at the speed of a matrix product; what runs slower counts for more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from vendimeter.errors import InputError, TooLargeError
from vendimeter.present.numbers import format_bytes
from vendimeter.similarity import Features, Matrix, Pairwise, Similarity
from vendimeter.solvers.options import Solver

__all__ = [
    "DENSE_LIMIT",
    "Plan",
    "Problem",
    "SparseShape",
    "check_size",
    "choose",
    "collapse",
    "prepared",
    "refuse",
    "same_items",
    "sparse_shape",
]

EXACT_SIDE = 8192  # without a tolerance, eigenvalues of dense matrices up to this size are taken
EXACT_WITH_TOL = 3000  # … and with one: below it eigenvalues are as quick as anything else
DENSE_LIMIT = 32_768  # the largest dense matrix whose eigenvalues are taken, when asked for: 8 GiB
HOST_MEMORY, DEVICE_MEMORY = 4 << 30, 32 << 30  # working memory unless the caller says otherwise
BASE_MEMORY = 96 << 20  # what any computation may take: blocks, buffers of BLAS, lists of pivots
SLOW = 1e4  # a similarity that costs more than this is a function in Python: evaluations are what counts
SINGLE_ABOVE = 1e11  # n·d² from which float32 rows are multiplied in float32
SPARSE_FILL = 0.25  # a product of sparse features fuller than this is summed into a dense matrix
SPARSE_LIMIT = 3e8  # non-zero entries of a sparse product that are still worth storing
EIGEN_COST = 5.0  # eigenvalues of an n×n matrix, in n³: measured, most of it is not matrix products
NARROW_COST = 1.5  # products with few columns are slower than those of two large matrices
SPARSE_COST = 10.0  # products of sparse matrices, each multiplication
INSTEAD_OF_ALL = "score a random sample, or use a kernel with features, such as NGram"


@dataclass(frozen=True)
class Problem:
    """What was asked for, with the similarity of the samples.

    `index` are the positions of the items that are left when those of no weight are dropped and identical ones are
    collapsed, or None for all of them; `weights` are theirs, or None for uniform ones. `kept` are bytes of the memory
    that are taken already.
    """

    similarity: Similarity
    weights: np.ndarray | None
    orders: Sequence[float]
    solver: Solver = field(default_factory=Solver)
    rng: int = 0
    index: np.ndarray | None = None
    collapsed: bool = False
    kept: int = 0

    @property
    def size(self) -> int:
        """How many items are left."""
        return self.similarity.n if self.index is None else len(self.index)

    @property
    def budget(self) -> int:
        """Working memory in bytes, beside what is kept."""
        memory = self.solver.memory
        if memory is None:
            memory = HOST_MEMORY if self.similarity.like is None else DEVICE_MEMORY
        return max(memory - self.kept, 1)

    @property
    def remaining(self) -> Similarity:
        """The similarity of the items that are left."""
        return self.similarity if self.index is None else self.similarity.take(self.index)


@dataclass(frozen=True)
class Plan:
    """What would be done for a score, and why; from `vendimeter.plan`.

    Attributes
    ----------
    method : str
        "exact", "lowrank" or "lanczos". (Random features are features like others: their eigenvalues are taken.)
    reason : str
        Why, in words.
    side : "columns", "rows" or "sparse"
        The d×d matrix of features, the n×n matrix of items, or a sparse matrix.
    precision : "float64" or "float32"
        Of products.
    storage : str
        "float64" or "float32" (a matrix is stored), "features" (products with the features, no matrix), "blocks"
        (similarities are computed again at every pass), "columns" (only some columns of the matrix), "given".
    tol : float or None
        The relative half-width that is aimed for; None where only rounding is left.
    flops, bytes, evaluations : float
        Operations, working memory, and similarities to be computed: estimates.
    otherwise : Plan or None
        What is done instead when this turns out not to lead there (a low rank that stalls).
    considered : tuple of Plan
        What else was weighed.

    Examples
    --------
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> points = np.random.default_rng(0).standard_normal((20_000, 3))
    >>> plan = vm.plan(points, "rbf", tol=1e-2)
    >>> plan.method, plan.otherwise.method
    ('lowrank', 'lanczos')
    """

    side: Literal["columns", "rows", "sparse"]
    precision: Literal["float64", "float32"]
    reason: str
    method: str = "exact"
    storage: str = "float64"
    tol: float | None = None
    flops: float = 0.0
    bytes: float = 0.0
    evaluations: float = 0.0
    rank: int = 0
    otherwise: Plan | None = None
    considered: tuple[Plan, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.method}: {self.reason}", f"  {self._costs()}"]
        if self.tol is not None:
            lines[1] = f"  half-width {self.tol:g} of the score; {self._costs()}"
        if self.otherwise is not None:
            lines.append(f"otherwise {self.otherwise.method}: {self.otherwise.reason}")
            lines.append(f"  {self.otherwise._costs()}")
        for other in self.considered:
            lines.append(f"not {other.method}: {other.reason}")
            lines.append(f"  {other._costs()}")
        return "\n".join(lines)

    def _costs(self) -> str:
        parts = [f"about {self.flops:.1e} operations", format_bytes(self.bytes)]
        if self.evaluations:
            parts.append(f"{self.evaluations:.2g} similarities computed")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        names = ("method", "reason", "side", "precision", "storage", "tol", "flops", "bytes", "evaluations")
        plain: dict[str, Any] = {name: getattr(self, name) for name in names}
        plain["otherwise"] = None if self.otherwise is None else self.otherwise.to_dict()
        plain["considered"] = [other.to_dict() for other in self.considered]
        return plain


def prepared(problem: Problem) -> Problem:
    """Drop items of weight 0 and, where rows of K would be computed, merge identical ones."""
    similarity, index, weights = problem.similarity, None, problem.weights
    if weights is not None and not weights.all():
        index = np.flatnonzero(weights)
        weights = weights[index]
    narrow = isinstance(similarity, Features) and similarity.width < similarity.n
    count = similarity.n if index is None else len(index)
    if not isinstance(similarity, Matrix) and not narrow:
        index, weights = collapse(similarity, index, weights)
    collapsed = index is not None and len(index) < count
    return replace(problem, index=index, weights=weights, collapsed=collapsed)


def refuse(problem: Problem) -> None:
    """Refuse invalid samples in one pass over them, before any similarity is computed."""
    problem.similarity.look(slice(None) if problem.index is None else problem.index)


def choose(problem: Problem) -> Plan:
    """Choose the cheapest admissible plan for a prepared problem."""
    solver = problem.solver
    model = _CostModel(problem)
    exact = model.exact()
    project = problem.similarity.policy.project
    with_some = {
        "lowrank": model.lowrank,
        "lanczos": model.lanczos,
    }  # methods that take some eigenvalues only
    if solver.method in with_some:
        _refuse_without_all(problem, project)
        return replace(with_some[solver.method](), considered=(exact,))
    is_small = model.exact_size <= (EXACT_SIDE if solver.tol is None else EXACT_WITH_TOL)
    fits = solver.memory is None or exact.bytes <= problem.budget
    is_slow = model.cost >= SLOW and solver.tol is not None and isinstance(problem.similarity, Pairwise)
    exact_only = solver.method in ("exact", "random-features") or project or 0.0 in problem.orders
    if exact_only:
        if not fits:
            raise TooLargeError(
                f"the exact answer takes about {format_bytes(exact.bytes)} and memory={format_bytes(problem.budget)}; "
                "expected more memory, or "
                + (
                    "leave method='exact' (and q=0) away for an answer with an interval."
                    if not project
                    else f"fewer items: this kernel drops negative eigenvalues and needs all of them; {INSTEAD_OF_ALL}."
                )
            )
        if project:
            return replace(exact, reason=f"{exact.reason}; project=True needs all eigenvalues")
        return exact
    if is_small and fits and not is_slow:
        return exact
    if solver.tol is None:
        model.problem = replace(problem, solver=replace(solver, tol=solver.aim))
    lanczos = model.lanczos()
    # Certainty is worth something: all eigenvalues are taken unless they cost twice as much.
    exact_wins = fits and model.exact_size <= DENSE_LIMIT and (is_small or exact.flops <= 2 * lanczos.flops)
    best, other = (exact, lanczos) if exact_wins else (lanczos, exact)
    if not model.smooth:
        return replace(best, considered=(other,))
    return replace(model.lowrank(alternative=best), otherwise=best, considered=(other,))


def _refuse_without_all(problem: Problem, project: bool) -> None:
    """Refuse a method with bounds for what only all eigenvalues can answer: project=True and order 0."""
    if project:
        raise InputError(
            f"method={problem.solver.method!r} cannot drop negative eigenvalues, which the kernel asks for "
            "(project=True); expected method='exact' with it."
        )
    if 0.0 in problem.orders:
        raise InputError(
            f"method={problem.solver.method!r} cannot answer q=0, the rank, which depends on eigenvalues however "
            "small; expected orders above 0, or method='exact'."
        )


class _CostModel:
    """The plans for a problem, one a method, each with its estimated costs."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.similarity = problem.similarity
        self.n = problem.size
        self.cost = float(self.similarity.cost)
        self.sparse = isinstance(self.similarity, Matrix | Features) and self.similarity.sparse
        size = min(self.n, self.similarity.width) if isinstance(self.similarity, Features) else self.n
        self.shape: SparseShape | None = None
        self.exact_size = size  # of the largest dense matrix whose eigenvalues would be taken
        if self.sparse:
            self.shape = self._shape(size)
            if self.shape.fill <= SPARSE_FILL * float(size) ** 2:
                self.exact_size = self.shape.largest if self.shape.fill <= SPARSE_LIMIT else size

    def _shape(self, size: int) -> SparseShape:
        """Components and fill of sparse data; upper bounds for small ones, where counting would not pay."""
        if size > EXACT_WITH_TOL:
            return sparse_shape(self.similarity, self.problem.index)
        return SparseShape(math.nan, size, float(size) ** 3, 0.0, float(size) ** 2)

    @property
    def tol(self) -> float:
        return self.problem.solver.aim

    @property
    def compact(self) -> bool:
        """Whether a matrix on the host is kept in float32, which is read faster: its rounding is in the bounds.

        It moves entropy by about √n e log(√n/e) for e = ‖ρ‖_F/2²⁴. Orders below 1 feel it more.
        """
        error = 0.3 * 2.0**-24
        entropy_error = math.sqrt(self.n) * error * math.log(math.sqrt(self.n) / error)
        orders_allow = min(self.problem.orders) >= 1 and any(q != 2 for q in self.problem.orders)
        return self.similarity.like is None and orders_allow and entropy_error <= 0.1 * self.tol

    @staticmethod
    def _is_double(matrix: Matrix) -> bool:
        return matrix.data.dtype == np.float64

    @property
    def smooth(self) -> bool:
        """Whether a low rank is worth a try: not for sparse data, which is never of low rank."""
        narrow = isinstance(self.similarity, Features) and self.similarity.width <= self.similarity.n
        return not self.sparse and not narrow and any(q < 2 or q > 2 for q in self.problem.orders)

    # -------------------------------------------------------------------------------------------------------- exact

    def exact(self) -> Plan:
        """The plan that takes all eigenvalues."""
        n, similarity = self.n, self.similarity
        if self.shape is not None:
            kind = (
                f"a sparse {n}×{n} similarity matrix"
                if isinstance(similarity, Matrix)
                else f"sparse features, {n} rows and {similarity.width} columns: the sparse product of the smaller side"  # type: ignore[attr-defined]
            )
            return Plan(
                "sparse",
                "float64",
                f"{kind}: one eigensolve a connected component",
                flops=EIGEN_COST * self.shape.cubes + SPARSE_COST * self.shape.work,
                bytes=8.0 * self.shape.largest**2 + 24.0 * self.shape.fill + BASE_MEMORY,
            )
        if isinstance(similarity, Features) and similarity.width <= similarity.n:
            return self._gram(similarity)
        evaluations = 0.0 if isinstance(similarity, Matrix) else n * (n + 1) / 2
        if isinstance(similarity, Matrix):
            reason = f"a {n}×{n} similarity matrix"
        elif isinstance(similarity, Features):
            reason = f"{n} rows are fewer than {similarity.width} columns: the {n}×{n} similarity matrix"
        else:
            reason = f"the kernel has no finite features: the {n}×{n} similarity matrix is built"
        return Plan(
            "rows",
            "float64",
            reason,
            flops=evaluations * self.cost + EIGEN_COST * float(n) ** 3,
            bytes=8.8 * float(n) ** 2 + BASE_MEMORY,
            evaluations=evaluations,
        )

    def _gram(self, features: Features) -> Plan:
        n, d, precision = self.n, features.width, self.problem.solver.precision
        reason = f"{d} columns are no more than {n} rows: the {d}×{d} matrix of features"
        product_flops = float(n) * d * d
        plan = Plan(
            "columns",
            "float64",
            reason,
            flops=product_flops + EIGEN_COST * float(d) ** 3,
            bytes=24.0 * d * d + BASE_MEMORY,
        )
        is_single = features.dtype.kind == "f" and features.dtype.itemsize < 8
        if precision != "auto":
            single: Literal["float32", "float64"] = "float32" if precision == "float32" else "float64"
            return replace(plan, precision=single, reason=f"{reason}; {precision} as asked")
        if features.like is not None:  # a GPU made for computing is as fast in float64
            return replace(plan, reason=f"{reason}, on the device of the samples")
        if not is_single or product_flops <= SINGLE_ABOVE:
            return plan
        if min(self.problem.orders) < 1:
            return replace(
                plan,
                reason=f"{reason}; in float64 because orders below 1 depend on the smallest eigenvalues",
            )
        return replace(
            plan,
            precision="float32",
            reason=f"{reason}; {np.dtype(features.dtype).name} rows with n·d² above {SINGLE_ABOVE:.0e}: float32 "
            "products, their error measured",
        )

    # ------------------------------------------------------------------------------------------------------ lanczos

    def lanczos(self) -> Plan:
        """The plan of products with ρ: stored, from features, or computed again at every pass."""
        similarity, n, tol = self.similarity, self.n, self.tol
        size = n
        if isinstance(similarity, Features):
            size = min(n, similarity.width)
        products = 180 * (1e-2 / tol) ** 0.6 * (size / 6000) ** 0.3
        products = max(64.0, min(products, 8192.0))
        budget, storage = self.problem.budget - BASE_MEMORY, "given"
        vector_bytes = 8.0 * size * min(2.5 * products, 2048.0)
        square = float(size) ** 2
        flops, evaluations, needed_bytes = 0.0, 0.0, 0.0
        if self.sparse:
            if self.shape is None or math.isnan(self.shape.entries):
                self.shape = sparse_shape(self.similarity, self.problem.index)
            storage, entries = "given", self.shape.entries
            flops = products * SPARSE_COST * entries * (4 if isinstance(similarity, Features) else 2)
            needed_bytes, reason = 40.0 * entries, "products with the sparse matrix"
            if isinstance(similarity, Features):
                storage, reason = "features", "products with the sparse features, no matrix of similarities"
        elif isinstance(similarity, Matrix):
            flops, reason = products * 2 * square * NARROW_COST, f"products with the {n}×{n} matrix"
            if (
                self.compact
                and 4 * square + min(vector_bytes, budget / 4) <= budget
                and self._is_double(similarity)
            ):
                storage, needed_bytes, reason = "float32", 4 * square, f"{reason}, kept in float32"
        elif isinstance(similarity, Features):
            gram_flops = float(n) * similarity.width * size
            if 8 * square + min(vector_bytes, budget / 4) <= budget:
                flops, needed_bytes, storage = (
                    gram_flops + products * 2 * square * NARROW_COST,
                    8 * square,
                    "float64",
                )
                reason = f"the {size}×{size} matrix is built and multiplied by vectors"
            else:
                flops = products * 4 * float(n) * similarity.width * NARROW_COST
                storage, reason = "features", "products with the features, no square matrix"
        else:
            evaluations = n * (n + 1) / 2
            itemsize = 4 if self.compact or self.problem.solver.precision == "float32" else 8
            if itemsize * square + min(vector_bytes, budget / 4) <= budget:
                storage, needed_bytes = f"float{8 * itemsize}", itemsize * square
            elif 4 * square + min(vector_bytes, budget / 4) <= budget:
                storage, needed_bytes = "float32", 4 * square
            else:
                storage, evaluations = "blocks", 24 * evaluations
            flops = evaluations * self.cost + products * 2 * square * NARROW_COST
            reason = f"the {n}×{n} matrix, kept in {storage}, is multiplied by vectors"
            if storage == "blocks":
                reason = f"blocks of the {n}×{n} matrix, which does not fit, computed again at every pass"
        flops += 4.0 * size * (products / 2) ** 2
        needed_bytes += min(vector_bytes, max(budget - needed_bytes, 0.0))
        if needed_bytes - 8.0 * size * 64 > budget or budget < 8.0 * size * 64:
            minimum = BASE_MEMORY + 8 * size * 64 + (40 * self.shape.entries if self.shape else 0)
            if budget < minimum - BASE_MEMORY:
                raise TooLargeError(
                    f"memory={format_bytes(self.problem.budget)} is too little for {n} items; expected at least "
                    f"{format_bytes(minimum)}."
                )
        single = self.problem.solver.precision == "float32"
        return Plan(
            "sparse" if self.sparse else "rows",
            "float32" if single else "float64",
            f"{reason}, about {products:.0f} of them",
            method="lanczos",
            storage=storage,
            tol=tol,
            flops=flops,
            bytes=min(needed_bytes + BASE_MEMORY, float(self.problem.budget)),
            evaluations=evaluations,
        )

    # ----------------------------------------------------------------------------------------------------- low rank

    def lowrank(self, *, alternative: Plan | None = None) -> Plan:
        """The plan of some columns of K, as long as that is cheaper than the alternative."""
        n, budget = self.n, self.problem.budget - BASE_MEMORY
        # The factor, twice while it grows, and a few panels; its Gram matrix.
        affordable_rank = max(int(budget / (20.0 * n + 1)), 0)
        max_rank = min(n, affordable_rank, 16_384)
        if max_rank < min(n, 16):
            raise TooLargeError(
                f"memory={format_bytes(self.problem.budget)} is too little for {n} items; expected at least "
                f"{format_bytes(BASE_MEMORY + 20 * 16 * n)}."
            )
        if alternative is not None:
            # n r² for the panels, and as much for the Gram matrix; and the similarities.
            root = math.sqrt((n * self.cost) ** 2 + 24.0 * n * alternative.flops) - n * self.cost
            max_rank = max(min(max_rank, int(root / (12.0 * n))), min(n, 64))
        typical_rank = min(max_rank, 512)
        return Plan(
            "rows",
            "float64",
            f"columns of the {n}×{n} matrix until the bounds are narrow enough, {max_rank} at most",
            method="lowrank",
            storage="columns",
            tol=self.tol,
            flops=float(n) * typical_rank * (self.cost + 6 * typical_rank),
            bytes=20.0 * n * typical_rank + BASE_MEMORY,
            evaluations=float(n) * typical_rank,
            rank=max_rank,
        )


def check_size(size: int, what: str) -> None:
    """Refuse a dense eigensolve that could not be held in memory, and say what to do instead."""
    if size > DENSE_LIMIT:
        raise TooLargeError(
            f"{what} of {size}×{size} is too large for an exact answer: it would take "
            f"{8 * size**2 / 2**30:.0f} GiB, and the limit is {DENSE_LIMIT}×{DENSE_LIMIT}. Leave method='exact' (and "
            "q=0) away for an answer with an interval, or use a kernel with features of fewer columns. A "
            f"kernel that drops negative eigenvalues itself needs all of them: {INSTEAD_OF_ALL}."
        )


# -------------------------------------------------------------------------------- identical items and sparse components


def collapse(
    similarity: Similarity, index: np.ndarray | None, weights: np.ndarray | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Merge identical items into one with their joint weight: the paper's identical-elements property, exactly."""
    positions = np.arange(similarity.n) if index is None else index
    first, group = same_items(similarity, positions)
    if len(first) == len(positions):
        return index, weights
    counts = np.bincount(group)
    if weights is None:
        return positions[first], counts / len(positions)
    # Summed in pairs, not one after the other: a million small weights would lose four digits.
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(counts)
    joint = np.array(
        [weights[order[end - count : end]].sum() for end, count in zip(ends, counts, strict=True)]
    )
    return positions[first], joint


def same_items(similarity: Similarity, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which of the items at these positions are the first of their kind, and which of those each is identical to."""
    keys = similarity.keys(positions)
    if keys is None:
        return np.arange(len(positions)), np.arange(len(positions))
    numbers: dict[Any, int] = {}
    group = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
    return np.unique(group, return_index=True)[1], group


@dataclass(frozen=True)
class SparseShape:
    """Connected components and product of a sparse K or of sparse features.

    Attributes
    ----------
    entries : float
        Non-zero entries.
    largest : int
        The size of the largest connected component, on its smaller side.
    cubes : float
        Σ of the cubes of the sizes of the components.
    work : float
        Multiplications for the sparse product of the smaller side.
    fill : float
        A bound on its non-zero entries.
    """

    entries: float
    largest: int
    cubes: float
    work: float
    fill: float


def sparse_shape(similarity: Similarity, index: np.ndarray | None) -> SparseShape:
    """The components of the graph of items (and columns), and bounds on the product, without multiplying anything."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    if isinstance(similarity, Matrix):
        matrix = similarity.data if index is None else similarity.data[index][:, index]
        entries = float(matrix.nnz)
        count, label = connected_components(matrix, directed=False)
        sizes = np.bincount(label, minlength=count).astype(np.float64)
        return SparseShape(entries, int(sizes.max()), float(np.sum(sizes**3)), 0.0, entries)
    assert isinstance(similarity, Features)
    rows = similarity.rows(slice(None) if index is None else index)
    n, d = rows.shape
    # Items and columns are the two sides of one graph; an entry joins an item and a column.
    incidence = sparse.coo_array((np.ones(rows.nnz, dtype=np.int8), rows.nonzero()), shape=(n, d))
    graph = sparse.block_array([[None, incidence], [incidence.T, None]], format="csr")
    count, label = connected_components(graph, directed=False)
    item_counts = np.bincount(label[:n], minlength=count).astype(np.float64)
    column_counts = np.bincount(label[n:], minlength=count).astype(np.float64)
    sizes = np.minimum(item_counts, column_counts) if n > d else item_counts
    per_row, per_column = np.diff(rows.indptr).astype(float), np.bincount(rows.indices, minlength=d)
    work = float(np.sum(per_column.astype(float) ** 2)) if n <= d else float(np.sum(per_row**2))
    return SparseShape(
        float(rows.nnz),
        int(sizes.max()),
        float(np.sum(sizes**3)),
        work,
        min(work, float(min(n, d)) ** 2),
    )
