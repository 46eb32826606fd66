"""`Diversity`: items seen through one kernel. What is asked twice is computed once.

It holds what everything else reads: the similarity of the items, their weights and groups, and, once they were needed,
spectra, eigenvectors and near pairs. Every analysis takes one; its methods are one line each.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from vendimeter.data.arrays import take
from vendimeter.data.collection import Collection
from vendimeter.data.devices import wide_mode
from vendimeter.data.groups import Grouping
from vendimeter.data.tokens import Texts
from vendimeter.data.weights import probabilities
from vendimeter.errors import EmptyError, InputError, TooLargeError
from vendimeter.intake import Source, is_several, joined_source, source_of, taken, weighted_error
from vendimeter.kernels import BLEU, Embed, FromDistances, Kernel, NGram, Precomputed, as_kernel
from vendimeter.kernels.matrices import square
from vendimeter.kernels.random_features import stand_in
from vendimeter.messages import brief
from vendimeter.options import COSINE, SEED, check_progress, check_rng
from vendimeter.present.numbers import format_bytes
from vendimeter.present.progress import Progress, showing
from vendimeter.present.tables import html_table
from vendimeter.results.groups import GroupScores
from vendimeter.results.score import Profile, to_score
from vendimeter.similarity import FeatureRows, Features, Matrix, Pairwise, Remembered, Similarity
from vendimeter.similarity.remembered import distinct_count
from vendimeter.solvers.edges import Entries, within
from vendimeter.solvers.eigenvectors import Decomposition, Leading, decompose, leading, takes_all
from vendimeter.solvers.exact import Solution
from vendimeter.solvers.groups import materialize_for_subsets, solve_groups
from vendimeter.solvers.options import Solver
from vendimeter.solvers.plan import (
    DEVICE_MEMORY,
    EXACT_SIDE,
    HOST_MEMORY,
    Plan,
    Problem,
    choose,
    prepared,
    refuse,
    same_items,
)
from vendimeter.solvers.solve import exact_seconds, is_approximate, run, unclaimed
from vendimeter.spectrum import Eigenvalues, Spectrum, parse_orders

if TYPE_CHECKING:
    from vendimeter.analysis.comparison.comparison import Comparison
    from vendimeter.analysis.decomposition.contributions import Contributions
    from vendimeter.analysis.eigenmodes import Modes
    from vendimeter.analysis.near_copies.near_copies import Duplicates
    from vendimeter.analysis.rarefaction.rarefaction import Rarefaction
    from vendimeter.analysis.reweighting.reweighting import Reweighting
    from vendimeter.analysis.selection.selection import Selection
    from vendimeter.reports.report import Report

__all__ = ["ORDERS", "Diversity", "Kept", "Neighbours", "diversity_of"]

ORDERS = (0, 0.5, 1, 1.5, 2, 3, 5, float("inf"))
SIMILARITY, EIGENVECTORS, NEIGHBOURS = "similarity", "eigenvectors", "near pairs"
AS_MATRIX = "similarity as a matrix"
_FAMILIES = threading.Lock()  # while the members of a family are listed, or one joins it
_CACHED = ("_masses", "_taken_samples", "distinct", "groups")
EIGENVECTOR_BYTES = 18  # for each entry of the matrix: itself, the vectors, and some rows to work with
DROPPED_FIRST = (
    EIGENVECTORS,
    NEIGHBOURS,
    AS_MATRIX,
)  # what can be made again from what is kept, in this order


@dataclass(frozen=True)
class Kept:
    """Something that a `Diversity` keeps.

    Attributes
    ----------
    name : str
        What it is.
    bytes : int
        How much memory it takes, beside the samples.
    seconds : float
        How long it took to make.
    """

    name: str
    bytes: int
    seconds: float
    value: Any = field(repr=False, compare=False)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Pairs of similar items; from `Diversity.neighbours`.

    Attributes
    ----------
    threshold : float
        The similarity that they have at least.
    slack : float
        How far below it rounding may have put one.
    first, second : ndarray of int
        Positions of the two items, first < second.
    similarity : ndarray
        How similar they are.
    """

    threshold: float
    slack: float
    first: np.ndarray = field(repr=False)
    second: np.ndarray = field(repr=False)
    similarity: np.ndarray = field(repr=False)

    def __len__(self) -> int:
        return len(self.first)

    @property
    def bytes(self) -> int:
        """How much memory they take."""
        return self.first.nbytes + self.second.nbytes + self.similarity.nbytes

    def above(self, threshold: float) -> Neighbours:
        """Those of a higher threshold."""
        if threshold == self.threshold:
            return self
        near = self.similarity >= threshold - self.slack
        return Neighbours(threshold, self.slack, self.first[near], self.second[near], self.similarity[near])


@dataclass(frozen=True)
class _Solved:
    """Eigenvalues that were computed for some orders and a tolerance."""

    plan: Plan
    solution: Solution
    orders: tuple[float, ...]
    tol: float | None

    def answers(self, orders: Sequence[float], tol: float | None) -> bool:
        """Whether it has the score of these orders, at least as sure as a new computation."""
        spectrum = self.solution.spectrum
        has_all = isinstance(spectrum, Eigenvalues)
        if has_all and self.plan.precision == "float64":
            return True
        asked_before = set(orders) <= set(self.orders)
        if asked_before and tol == self.tol:
            return True
        if tol is None:
            return has_all and min(orders) >= 1
        return (asked_before or (has_all and min(orders) >= 1)) and spectrum.width(orders) <= tol


_Value = TypeVar("_Value")


class _once(cached_property[_Value]):
    """A property that is computed once, under the lock of the object.

    Python 3.11 has another lock for each, and two threads that hold one of them each would wait for each other.
    """

    def __get__(self, instance: Any, owner: Any = None) -> _Value:  # type: ignore[override]
        if instance is None:
            return self  # type: ignore[return-value]
        with instance._lock:
            if self.attrname not in vars(instance):
                vars(instance)[self.attrname] = self.func(instance)
            return vars(instance)[self.attrname]


class Diversity:
    """These items, seen through this kernel; what is asked twice is computed once.

    Parameters
    ----------
    samples : array, sparse array, list, table or Collection
        The items, as for `vendimeter.score`. Lists of texts in a collection are its groups.
    kernel : str, Kernel or callable
        What makes two items similar, as for `vendimeter.score`.
    weights : array, optional
        Probabilities of the items, which sum to 1; or of shape (groups, n), a row a group.
    counts : array, optional
        How often each item occurs: whole numbers, one an item or a row a group.
    by : list, array, or name of a column, optional
        One label (or set of labels) an item, as for `vendimeter.score_groups`. A collection has its own.
    solver : Solver, optional
        Tolerance, method, precision, and `memory`: the bytes that may be taken beside the samples, for what is kept and
        for what is worked with together; 4 GiB by default (32 GiB on a device).
    rng : int
        Seed of everything random.

    Attributes
    ----------
    samples : Any
        The items.
    kernel : Kernel
        What compares them; `similarity.kernel` has the parameters that come from data fitted.
    solver : Solver
        How scores are computed.
    rng : int
        The seed.

    Notes
    -----
    The similarity is made when the first question needs it. A function of yours is then called once a pair and an
    encoder once an item, whatever is asked. The samples are not copied: after you write into an array that you passed,
    answers that were kept are those of the old numbers; `forget` drops them. Several threads may ask at once. Pickled,
    it has none of what it keeps.

    Examples
    --------
    >>> import vendimeter as vm
    >>> captions = ["a dog", "a dog runs", "two boats at sea", "a boat"]
    >>> d = vm.Diversity(captions, "ngram", by=["dogs", "dogs", "boats", "boats"])
    >>> d
    Diversity(4 texts, NGram(1, 4), by 2 groups)
    >>> round(d.score(), 4), round(d.score(q=2), 4)
    (3.8325, 3.6847)
    >>> [kept.name for kept in d.kept()]
    ['similarity', 'spectrum']
    """

    def __init__(
        self,
        samples: Any,
        kernel: Any = COSINE,
        *,
        weights: Any = None,
        counts: Any = None,
        by: Any = None,
        solver: Solver | None = None,
        rng: int = SEED,
    ):
        if isinstance(samples, Diversity):
            raise InputError(
                "samples is a Diversity already; expected samples. Ask it, or take some of its items."
            )
        self._set(source_of(samples, kernel, by, weights, counts), kernel, solver, rng)

    @classmethod
    def of(
        cls,
        collections: Any,
        kernel: Any = COSINE,
        *,
        weights: Any = None,
        solver: Solver | None = None,
        rng: int = SEED,
    ) -> Diversity:
        """Several collections as one, each of them a group.

        Parameters
        ----------
        collections : mapping, list, or array of shape (groups, items, columns)
            The samples of each, by name. They are joined, and compared by one kernel.
        kernel, solver, rng
            As for `Diversity`.
        weights : mapping, optional
            Probabilities of the items of each, by name; each collection then weighs as much as it has items.

        Examples
        --------
        >>> import vendimeter as vm
        >>> d = vm.Diversity.of({"real": ["a", "b", "c"], "model": ["a", "a", "b"]}, "match")
        >>> d.groups.labels
        ['real', 'model']
        """
        self = cls.__new__(cls)
        self._set(joined_source(collections, kernel, weights, check_rng(rng)), kernel, solver, rng)
        return self

    def _set(self, source: Source, kernel: Any, solver: Solver | None, rng: Any, keep: bool = True) -> None:
        if solver is not None and not isinstance(solver, Solver):
            raise InputError(
                f"solver={brief(solver)}; expected vendimeter.Solver(…), such as Solver(tol=1e-2, memory='2 GiB').",
                option="solver",
            )
        self.solver = Solver() if solver is None else solver
        self.rng = check_rng(rng)
        self._asked_kernel = kernel
        self.kernel: Kernel = as_kernel(kernel)
        if self.solver.method == "random-features":
            self.kernel = stand_in(self.kernel, seed=self.rng)
        self._source, self.keeps = source, keep
        self._whole: Diversity | None = None  # no reference to itself, which would outlive its last user
        self._index: np.ndarray | None = None
        self._start()

    def _start(self) -> None:
        """Without anything kept, as one of those that share the memory of the solver."""
        self._lock = threading.RLock()
        self._forget()
        if self._whole is None:
            self._family: weakref.WeakSet[Diversity] = weakref.WeakSet()
        with _FAMILIES:
            self._root._family.add(self)

    def _forget(self) -> None:
        self._similarity: Similarity | None = None
        self._vectors: Any = None
        self._texts: Texts | None = None
        self._kept: dict[Hashable, Kept] = {}
        self._solved: list[_Solved] = []
        for name in _CACHED:
            vars(self).pop(name, None)

    # --------------------------------------------------------------------------------------------------- what it is

    @property
    def samples(self) -> Any:
        """The items as the kernel takes them."""
        if self._index is not None:
            return self._taken_samples
        return self._source.samples if self._texts is None else self._texts

    @_once
    def _taken_samples(self) -> Any:
        assert self._index is not None
        if isinstance(self.kernel, Precomputed | FromDistances):  # of which rows alone are no matrix
            return Matrix(square(self._root.samples, "samples")).take(self._index).data
        return taken(self._root.samples, self._index)

    @property
    def source(self) -> Source:
        """What was passed: the items with their weights and labels, and the collections that they come from."""
        return self._source

    @property
    def n(self) -> int:
        """How many samples there are."""
        return self.similarity.n

    def __len__(self) -> int:
        return self.n

    @_once
    def _masses(self) -> tuple[np.ndarray | None, int]:
        with self._located():
            return probabilities(self._source.weights, self._source.counts, self.n)

    @property
    def weights(self) -> np.ndarray | None:
        """The probability of each sample; None where all are the same because neither weights nor counts were given."""
        return self._masses[0]

    @property
    def shares(self) -> np.ndarray:
        """The probability of each sample."""
        weights = self.weights
        return np.full(self.n, 1 / self.n) if weights is None else weights

    @property
    def count(self) -> int:
        """How many items the samples stand for: the sum of the counts, where there are any."""
        return self._masses[1]

    @property
    def weighting(self) -> str | None:
        """Which were given: "weights", "counts", or neither (None)."""
        return self._source.weighting

    def refuse_weights(self, question: str) -> None:
        """Refuse weights and counts, for what counts every sample once."""
        if self.weighting is not None:
            raise weighted_error("Diversity" if self.keeps else "collection", question, self.weighting)

    @property
    def has_rows(self) -> bool:
        """Whether there is a row of weights, or of counts, for each group."""
        return self._source.has_rows

    @_once
    def groups(self) -> Grouping | None:
        """Which items are in which group; None where there are no groups."""
        if not self._source.has_groups:
            return None
        with self._located():
            return self._source.groups(self.n)

    @property
    def kind(self) -> str | None:
        """What a collection that was read holds: "texts", "images", …; None for other samples."""
        collection = self._source.collection
        return None if collection is None else collection.kind

    def column(self, name: str) -> Any:
        """A column that came with the samples, by its name; None where they have no columns."""
        column = self._root._source.column(name)
        return column if column is None or self._index is None else taken(column, self._index)

    @property
    def left_out(self) -> int:
        """How many broken records were left out on reading."""
        return self._source.left_out

    def __repr__(self) -> str:
        groups = self._source.describe_groups()
        weighted = "" if self.weighting is None else f", with {self.weighting}"
        return f"Diversity({self._describe()}, {self.kernel!r}{groups}{weighted})"

    def _describe(self) -> str:
        """How many items there are, and what they are."""
        described = self._root._source.describe()
        return described if self._index is None else f"{len(self._index):,} of {described}"

    def _repr_html_(self) -> str:
        rows = [("items", self._describe()), ("kernel", repr(self.kernel))]
        kept = [(one.name, f"{format_bytes(one.bytes)}, {one.seconds:.2g} s") for one in self.kept()]
        return html_table([*rows, *((f"kept: {name}", size) for name, size in kept)])

    def __getstate__(self) -> dict[str, Any]:
        left = ("_lock", "_similarity", "_vectors", "_texts", "_kept", "_solved", "_family", *_CACHED)
        return {name: value for name, value in vars(self).items() if name not in left}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start()

    def take(self, index: Any) -> Diversity:
        """Some of the items, seen through the same kernel; it shares what is kept of their similarities.

        Parameters
        ----------
        index : array of int or bool, slice
            Which; weights are divided by their sum.
        """
        try:
            positions = np.arange(self.n)[index]
        except (IndexError, TypeError, ValueError):
            positions = None
        if positions is None or positions.ndim != 1:
            raise InputError(
                f"index={brief(index)}; expected positions of items from 0 to {self.n - 1}, a mask of {self.n}, or a "
                "slice.",
                option="index",
            )
        if not len(positions):
            raise EmptyError("no items were taken; expected at least one.")
        if not self.has_rows and self.weights is not None and not self.weights[positions].any():
            raise EmptyError("all items that were taken have weight 0; expected at least one with a weight.")
        similarity = self.similarity
        other = object.__new__(Diversity)
        vars(other).update(
            solver=self.solver, rng=self.rng, kernel=self.kernel, _asked_kernel=self._asked_kernel
        )
        vars(other).update(_whole=self._root, keeps=self.keeps)
        other._index = positions if self._index is None else self._index[positions]
        other._source = self._source.take(positions, None if self.has_rows else self.weights)
        other._start()
        similarity = similarity.take(positions)
        other._similarity = other._remembered(similarity)
        if isinstance(similarity, Matrix) or other._similarity is not similarity:
            other._put(SIMILARITY, SIMILARITY, None, 0, time.perf_counter())
        return other

    def with_kernel(self, kernel: Any, *, solver: Solver | None = None) -> Diversity:
        """The same items, with their weights and groups, seen through another kernel; nothing that is kept is shared.

        Parameters
        ----------
        kernel : str, Kernel or callable
            As for `Diversity`.
        solver : Solver, optional
            As for `Diversity`; the same by default.

        Examples
        --------
        >>> import vendimeter as vm
        >>> d = vm.Diversity(["a dog", "a dog runs", "a boat"], "ngram")
        >>> round(d.score(), 3), round(d.with_kernel("match").score(), 3)
        (2.834, 3.0)
        """
        source = self._source if self._index is None else replace(self._source, samples=self.samples)
        other = object.__new__(Diversity)
        other._set(source, kernel, self.solver if solver is None else solver, self.rng, self.keeps)
        return other

    # ---------------------------------------------------------------------------------------------- what is kept of it

    def kept(self) -> list[Kept]:
        """What is kept, with its size in bytes and the seconds that it took."""
        with self._lock:
            return [self._now(one) for one in self._kept.values()]

    def _now(self, kept: Kept) -> Kept:
        """With its size as it is now: similarities that are computed one by one take more and more."""
        grows = kept.name == SIMILARITY and self._similarity is not None
        if not grows:
            return kept
        tokens = 0 if self._texts is None else self._texts.bytes
        return replace(kept, bytes=_size_of(self._similarity, self._source.samples) + tokens)

    def forget(self) -> None:
        """Drop all that is kept: the next question computes anew, and calls your functions again."""
        with self._lock:
            self._forget()

    @property
    def memory(self) -> int:
        """Bytes that may be taken beside the samples, kept or worked with."""
        if self.solver.memory is not None:
            return self.solver.memory
        similarity = self._similarity
        return HOST_MEMORY if similarity is None or similarity.like is None else DEVICE_MEMORY

    @property
    def _root(self) -> Diversity:
        """That from which these items were taken, or this."""
        return self if self._whole is None else self._whole

    def _relatives(self) -> list[Diversity]:
        """Those that share the memory: all that were taken from the same, this, and that one."""
        with _FAMILIES:
            return list(self._root._family)

    @property
    def _kept_bytes(self) -> int:
        return sum(
            member._now(one).bytes for member in self._relatives() for one in list(member._kept.values())
        )

    def _put(self, key: Hashable, name: str, value: Any, size: int, began: float) -> None:
        """Keep something; what can be made again is dropped before it exceeds the memory, or is not kept at all."""
        if not self.keeps:
            return
        if name in DROPPED_FIRST:
            self._make_room(size)
            if self._kept_bytes + size > self.memory:
                return
        self._kept[key] = Kept(name, size, time.perf_counter() - began, value)

    def _make_room(self, size: int) -> None:
        """Drop what can be made again, until there is room for so many bytes."""
        for name in DROPPED_FIRST:
            for member in self._relatives():
                for key in [key for key, one in list(member._kept.items()) if one.name == name]:
                    if self._kept_bytes + size <= self.memory:
                        return
                    member._kept.pop(key, None)

    @property
    def fixed_bytes(self) -> int:
        """Of the memory, what is kept and cannot be made again from the rest."""
        return self._kept_bytes - self._droppable_bytes if self.keeps else 0

    @property
    def _droppable_bytes(self) -> int:
        kept = [one for member in self._relatives() for one in list(member._kept.values())]
        return sum(one.bytes for one in kept if one.name in DROPPED_FIRST)

    def _make_room_for(self, problem: Problem) -> None:
        """Drop what can be made again as far as what the solver works with needs its memory."""
        if self.keeps and self._droppable_bytes:
            plan = choose(prepared(problem))
            self._make_room(int(max(plan.bytes, 0.0 if plan.otherwise is None else plan.otherwise.bytes)))

    # --------------------------------------------------------------------------------------------- what it is made of

    @contextmanager
    def _located(self) -> Iterator[None]:
        """Say in errors where the item that they are about was read, or which collection it is of."""
        try:
            yield
        except InputError as error:
            root = self._root
            root._source.locate(error, self.kernel, self.rng, is_new=root._similarity is None)
            raise

    @contextmanager
    def asked(self) -> Iterator[None]:
        """What every question is answered in: 64-bit numbers for arrays of JAX, and errors that say where."""
        with wide_mode("float64", self._root.samples), self._located():
            yield

    @property
    def similarity(self) -> Similarity:
        """How similar the items are, checked, with the kernel fitted; made on first use."""
        similarity = self._similarity
        if similarity is None:
            with self._lock, self._located():
                if self._similarity is None:
                    began = time.perf_counter()
                    self._similarity = self._built()
                    self._put(SIMILARITY, SIMILARITY, None, 0, began)
                similarity = self._similarity
        if isinstance(similarity, Remembered) and similarity.is_complete:
            with self._lock, self._located():
                self._similarity = similarity = similarity.matrix()
        return similarity

    def _built(self) -> Similarity:
        if self._index is not None:
            return self._remembered(self._root.similarity.take(self._index))
        self._source.refuse_matrix(self._asked_kernel)
        if isinstance(self.kernel, Embed):
            self._vectors = vectors = self.kernel.encode(self.samples)
            inner = self.kernel.kernel.similarity(vectors, rng=self.rng)
            similarity: Similarity = inner.with_kernel(replace(self.kernel, kernel=inner.kernel))
        else:
            # Metrics of texts split them the same way, so that the tokens are kept with the texts.
            if self.keeps and isinstance(self.kernel, NGram | BLEU):
                self._texts = Texts.of(self.samples, self.kernel.name)
            similarity = self.kernel.similarity(self.samples, rng=self.rng)
        return self._remembered(similarity.checked() if isinstance(similarity, Matrix) else similarity)

    def _remembered(self, similarity: Similarity) -> Similarity:
        """One that asks for no pair of items twice, where all pairs fit into half of the memory."""
        if not isinstance(similarity, Pairwise) or similarity.like is not None or not self.keeps:
            return similarity
        if isinstance(similarity, Remembered):
            return similarity
        fits = 8 * distinct_count(similarity) ** 2 <= self.memory // 2
        return Remembered(similarity) if fits else similarity

    @property
    def vectors(self) -> Any:
        """What the encoder of the kernel made of the samples, a row each; None where there is no encoder."""
        if not isinstance(self.kernel, Embed):
            return None
        with self._root._lock:
            _ = self._root.similarity
            vectors = self._root._vectors
        return vectors if self._index is None else take(vectors, self._index)

    @property
    def subsets(self) -> Similarity:
        """The similarity in a form whose subsets are cheap: as a matrix, where rows are fewer than features."""
        with self._lock, self._located():
            if (kept := self._kept.get(AS_MATRIX)) is not None:
                return kept.value
            similarity = self.similarity
            if isinstance(similarity, Remembered) and similarity.n <= EXACT_SIDE:
                similarity.complete()
                similarity = self.similarity
            began = time.perf_counter()
            matrix = materialize_for_subsets(similarity)
            if (
                not self.keeps
            ):  # in place of the other: no pair is computed again for the rest of the question
                self._similarity = matrix
            elif matrix is not similarity:
                self._put(AS_MATRIX, AS_MATRIX, matrix, _size_of(matrix, None), began)
            return matrix

    @_once
    def distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """The positions of the first of each kind among the items with weight, and which of those each of these is."""
        with self._located():
            present = np.arange(self.n) if self.weights is None else np.flatnonzero(self.weights)
            first, group = same_items(self.similarity, present)
            return present[first], group

    def problem(self, orders: Sequence[float], tol: float | None = None) -> Problem:
        """What a solver is asked for: the scores of these orders, in the memory that cannot be made free."""
        solver = self.solver if tol is None else replace(self.solver, tol=tol)
        kept = self.fixed_bytes
        return Problem(self.similarity, self.weights, list(orders), solver, self.rng, kept=kept)

    def solve(
        self,
        orders: Sequence[float],
        tol: float | None = None,
        report: Callable[[float, str], None] | None = None,
    ) -> tuple[Plan, Solution]:
        """The eigenvalues for these orders, and how they were found; kept ones where they are tight enough."""
        with self._lock, self._located():
            tol = self.solver.tol if tol is None else tol
            for solved in self._solved:
                if solved.answers(orders, tol):
                    return solved.plan, solved.solution
            if self.solver.method in ("auto", "exact") and (known := self._solution_of_eigenvectors()):
                return Plan("rows", "float64", "the eigenvectors had been computed already"), known
            began, problem = time.perf_counter(), self.problem(orders, tol)
            self._make_room_for(problem)
            plan, solution = run(problem, report)
            self._remember(_Solved(plan, solution, tuple(orders), tol), began)
            return plan, solution

    def eigenvalues(self) -> Eigenvalues:
        """All eigenvalues, by products in float64, whatever method the solver takes for scores."""
        with self._lock, self._located():
            for solved in self._solved:
                spectrum = solved.solution.spectrum
                if isinstance(spectrum, Eigenvalues) and solved.plan.precision == "float64":
                    return spectrum
            solution = self._solution_of_eigenvectors()
            if solution is None:
                began, orders = time.perf_counter(), (1.0, 2.0)
                solver = replace(self.solver, tol=None, method="exact", precision="float64")
                problem = replace(self.problem(orders), solver=solver)
                self._make_room_for(problem)
                plan, solution = run(problem)
                if self.solver.method in ("auto", "exact"):  # others would answer otherwise
                    self._remember(_Solved(plan, solution, orders, None), began)
            assert isinstance(solution.spectrum, Eigenvalues)
            return solution.spectrum

    def _solution_of_eigenvectors(self) -> Solution | None:
        """The eigenvalues that were computed with the eigenvectors, if these were; of a stand-in, without bounds."""
        kept = self._kept.get(EIGENVECTORS)
        if kept is None:
            return None
        return unclaimed(kept.value.solution) if is_approximate(self.similarity) else kept.value.solution

    def _remember(self, solved: _Solved, began: float) -> None:
        if not self.keeps:
            return
        self._solved.append(solved)
        size = getattr(getattr(solved.solution.spectrum, "eigenvalues", None), "nbytes", 0)
        self._put(("spectrum", len(self._solved)), "spectrum", solved, size, began)

    def spectrum(self, orders: Any = (1.0,), *, tol: float | None = None) -> Spectrum:
        """What is known of the eigenvalues, enough for the scores of these orders.

        Parameters
        ----------
        orders : float, str, or list of them
            The orders q.
        tol : float, optional
            The relative half-width that the bounds of their scores may have, as for `vendimeter.score`.
        """
        return self.solve(parse_orders(orders)[0], Solver(tol).tol)[1].spectrum

    def decomposition(self) -> Decomposition:
        """All eigenvalues and eigenvectors."""
        with self._lock, self._located():
            if (kept := self._kept.get(EIGENVECTORS)) is not None:
                return kept.value
            began = time.perf_counter()
            self._make_room_for_eigenvectors()
            decomposition = decompose(self.similarity, self.weights)
            self._put(EIGENVECTORS, EIGENVECTORS, decomposition, decomposition.bytes, began)
            return decomposition

    def _make_room_for_eigenvectors(self) -> None:
        """Drop what can be made again; an error where the memory that was asked for is not enough all the same."""
        if self.solver.memory is None:
            return
        similarity = self.similarity
        narrow = isinstance(similarity, Features) and similarity.width <= similarity.n
        side = similarity.width if narrow else len(self.distinct[0])
        needed = EIGENVECTOR_BYTES * side**2
        self._make_room(needed)
        if needed > self.memory - self.fixed_bytes:
            raise TooLargeError(
                f"the eigenvectors of a {side}×{side} matrix take about {format_bytes(needed)}, and of memory="
                f"{format_bytes(self.memory)} are left {format_bytes(max(0, self.memory - self.fixed_bytes))}; "
                "expected more memory, or fewer items (a random sample of them).",
                option="memory",
            )

    def eigenvectors(self, count: int | None = None) -> Leading:
        """The leading eigenvalues, and the coordinates of the items along their eigenvectors.

        Parameters
        ----------
        count : int, optional
            How many; one more is given where there is one. All by default.
        """
        with self._lock, self._located():
            if count is None or EIGENVECTORS in self._kept:
                return self.decomposition().leading(self.n if count is None else count)
            if takes_all(self.similarity, len(self.distinct[0])):
                return self.decomposition().leading(count)
            key = (EIGENVECTORS, count)
            if (kept := self._kept.get(key)) is not None:
                return kept.value
            began = time.perf_counter()
            found = leading(self.similarity, self.shares, count, self.rng)
            self._put(key, EIGENVECTORS, found, found.coordinates.nbytes, began)
            return found

    def neighbours(self, threshold: float) -> Neighbours:
        """All pairs of items with a similarity of at least the threshold, or below it by rounding only.

        Parameters
        ----------
        threshold : float
            Above 0 and up to 1.

        Examples
        --------
        >>> import vendimeter as vm
        >>> vm.Diversity(["a dog", "a dog", "a cat"], "ngram").neighbours(0.9).first
        array([0])
        """
        cut = within(threshold, "threshold", np.nextafter(0, 1), 1, "a similarity")
        with self._lock, self._located():
            kept = self._kept.get(NEIGHBOURS)
            if kept is None or kept.value.threshold > cut:
                began = time.perf_counter()
                pairs = self._pairs(cut)
                self._put(NEIGHBOURS, NEIGHBOURS, pairs, pairs.bytes, began)
                return pairs
            return kept.value.above(cut)

    def _pairs(self, cut: float) -> Neighbours:
        entries, parts, size = Entries(self.similarity), [], 0
        limit = self.memory - self._kept_bytes + self._droppable_bytes
        for first, second, similarity in entries.edges(cut - entries.slack, values=True, label="near pairs"):
            assert similarity is not None
            parts.append((first.astype(np.int64), second.astype(np.int64), np.asarray(similarity)))
            size += sum(part.nbytes for part in parts[-1])
            if 2 * size > limit:  # they are joined, and for a moment there twice
                raise TooLargeError(
                    f"the pairs with a similarity of {cut:g} or more take more than {format_bytes(max(limit, 0) / 2)}, "
                    "half of what is left of the memory; expected fewer. Take a higher threshold, more memory, or "
                    "vendimeter.duplicates, which holds no list of pairs."
                )
            self._make_room(2 * size)
        nothing = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))
        columns = map(np.concatenate, zip(nothing, *parts, strict=True))
        return Neighbours(cut, entries.slack, *columns)

    # ------------------------------------------------------------------------------------------------- one number

    def score(self, q: Any = 1, *, tol: float | None = None, progress: bool | None = None) -> Any:
        """The Vendi Score; see `vendimeter.score`."""
        began = time.perf_counter()
        orders, several = parse_orders(q)
        check_progress(progress)
        tol = self.solver.tol if tol is None else Solver(tol).tol
        with wide_mode(self.solver.precision, self._root.samples), showing(progress), self._located():
            similarity = self.similarity
            with Progress("vendimeter", progress) as bar:
                plan, solution = self.solve(orders, tol, bar.step)
        notes = solution.notes | {"seconds": round(time.perf_counter() - began, 4)} | exact_seconds(plan)
        if self.left_out:
            notes["left_out"] = self.left_out
        solution = replace(solution, notes=notes)
        scores = [to_score(solution, plan, order, self.count, similarity.kernel) for order in orders]
        return Profile(scores) if several else scores[0]

    def profile(self, q: Any = ORDERS, *, tol: float | None = None, progress: bool | None = None) -> Profile:
        """Scores of all orders from one spectrum; see `vendimeter.profile`."""
        return self.score(parse_orders(q)[0], tol=tol, progress=progress)

    def plan(self, q: Any = 1, *, tol: float | None = None) -> Plan:
        """What `score` would do, and why; see `vendimeter.plan`."""
        orders, _ = parse_orders(q)
        tol = self.solver.tol if tol is None else Solver(tol).tol
        with wide_mode(self.solver.precision, self._root.samples), self._located():
            problem = prepared(self.problem(orders, tol))
            chosen = choose(problem)
            refuse(problem)
            return chosen

    # --------------------------------------------------------------------------------------------------------- groups

    def group_scores(self, q: Any = 1) -> GroupScores:
        """The score of every group; see `vendimeter.score_groups`."""
        orders, several = parse_orders(q)
        with wide_mode(self.solver.precision, self._root.samples), self._located():
            groups, similarity = self.required_groups(), self.similarity
            found = solve_groups(similarity, groups, orders, precision=self.solver.precision, rng=self.rng)
        return GroupScores(groups.labels, found, similarity.kernel, several, self.left_out)

    def required_groups(self) -> Grouping:
        """Which items are in which group; an error where there are no groups."""
        if self.groups is None:
            raise InputError(
                "there are no groups; expected by=labels, one an item, or vendimeter.Diversity.of({name: samples, …}).",
                option="by",
            )
        return self.groups

    # ---------------------------------------------------------------------------- analyses, which lie above this module

    def contributions(self, *, q: Any = 1, leave_one_out: bool = True) -> Contributions:
        """What each sample contributes to the score; see `vendimeter.contributions`."""
        from vendimeter.analysis.decomposition.contributions import contributions_of

        with self.asked():
            return contributions_of(self, q=q, leave_one_out=leave_one_out)

    def duplicates(
        self,
        *,
        threshold: float = 0.95,
        q: Any = 1,
        method: str = "auto",
        recall: float = 0.99,
        scores: bool = True,
        tol: float | None = None,
    ) -> Duplicates:
        """Identical items and near copies; see `vendimeter.duplicates`."""
        from vendimeter.analysis.near_copies.near_copies import SearchOptions, duplicates_of

        with self.asked():
            return duplicates_of(self, SearchOptions.of(threshold, method, recall, scores), q=q, tol=tol)

    def modes(self, *, k: int = 10, exemplars: int = 8) -> Modes:
        """The leading modes; see `vendimeter.modes`."""
        from vendimeter.analysis.eigenmodes import modes_of

        with self.asked():
            return modes_of(self, k=k, exemplars=exemplars)

    def compare(
        self,
        *,
        q: Any = 1,
        reference: Any = None,
        pairs: bool = False,
        size: int | None = None,
        repeats: int = 20,
        permutations: int = 999,
        confidence: float = 0.95,
        group_weights: str = "size",
        similarity: bool | None = None,
    ) -> Comparison:
        """Compare the groups; see `vendimeter.compare`."""
        from vendimeter.analysis.comparison.comparison import comparison_of

        with self.asked():
            return comparison_of(
                self,
                q=q,
                reference=reference,
                pairs=pairs,
                size=size,
                repeats=repeats,
                permutations=permutations,
                confidence=confidence,
                group_weights=group_weights,
                similarity=similarity,
            )

    def rarefy(
        self,
        *,
        q: Any = 1,
        sizes: Any = None,
        repeats: int = 20,
        groups: int = 20,
        confidence: float = 0.95,
        t: int | None = None,
        most: int = 3072,
    ) -> Rarefaction:
        """The score against the number of samples; see `vendimeter.rarefy`."""
        from vendimeter.analysis.rarefaction.rarefaction import rarefaction_of

        with self.asked():
            return rarefaction_of(
                self, q=q, sizes=sizes, repeats=repeats, groups=groups, confidence=confidence, t=t, most=most
            )

    def select(
        self,
        k: int | None = None,
        *,
        method: str = "vendi",
        q: Any = 1,
        quotas: Any = None,
        required: Any = None,
        quality: Any = None,
        trade_off: float = 1.0,
        compare: Any = True,
        exact: bool | None = None,
    ) -> Selection:
        """Choose k items that are as different as possible; see `vendimeter.select`."""
        from vendimeter.analysis.selection.selection import selection_of

        with self.asked():
            return selection_of(
                self,
                k,
                method=method,
                q=q,
                quotas=quotas,
                required=required,
                quality=quality,
                trade_off=trade_off,
                compare=compare,
                exact=exact,
            )

    def reweight(
        self, *, q: Any = 1, tol: float = 1e-3, max_iterations: int = 200, progress: bool | None = None
    ) -> Reweighting:
        """The weights with the highest score; see `vendimeter.reweight`."""
        from vendimeter.analysis.reweighting.reweighting import reweighting_of

        with self.asked():
            return reweighting_of(self, q=q, tol=tol, max_iterations=max_iterations, progress=progress)

    def report(
        self,
        path: Any = None,
        *,
        q: Any = (1, 0, 2, "inf"),
        reference: Any = None,
        show: Any = None,
        title: str | None = None,
        features: Any = None,
        threshold: float = 0.95,
        command: str | None = None,
        notes: Sequence[str] = (),
        progress: bool | None = None,
    ) -> Report:
        """A page about the items, written to `path` if one is given; see `vendimeter.report`."""
        from vendimeter.reports.report import page_target, report_of

        if path is not None:
            page_target(path)  # before the work, not after it
        with self.asked():
            page = report_of(
                self,
                q=q,
                reference=reference,
                show=show,
                title=title,
                features=features,
                threshold=threshold,
                command=command,
                notes=notes,
                progress=progress,
            )
        if path is not None:
            page.write(path)
        return page


def _size_of(similarity: Similarity | None, samples: Any) -> int:
    """The memory that a similarity takes beside the samples, in bytes."""
    if isinstance(similarity, Remembered):
        return similarity.bytes
    data = getattr(similarity, "data", None)
    if not isinstance(similarity, Matrix | FeatureRows) or data is None or data is samples:
        return 0
    if (
        isinstance(data, np.ndarray)
        and isinstance(samples, np.ndarray)
        and np.may_share_memory(data, samples)
    ):
        return 0
    parts = [getattr(data, name) for name in ("data", "indices", "indptr")] if similarity.sparse else [data]
    return sum(getattr(part, "nbytes", 0) for part in parts)


def diversity_of(
    samples: Any,
    kernel: Any = COSINE,
    *,
    weights: Any = None,
    counts: Any = None,
    by: Any = None,
    solver: Solver | None = None,
    rng: Any = SEED,
    lists: bool = False,
    several: bool = False,
) -> Diversity:
    """What a function was asked about: the `Diversity` that was passed, or one for this question alone.

    Parameters
    ----------
    samples : Diversity, or what one is made of
        Beside a `Diversity` nothing else may be given but a tolerance.
    kernel, weights, counts, by, solver, rng
        As for `Diversity`.
    lists : bool
        Whether lists of texts are taken, as groups.
    several : bool
        Whether several collections are taken: a mapping, a list of them or an array, where nothing says of which group
        the items of one collection are.
    """
    if isinstance(samples, Diversity):
        optional = {"weights": weights, "counts": counts, "by": by}
        names = [name for name, value in optional.items() if value is not None]
        names = ["kernel"] * (kernel is not COSINE) + names + ["rng"] * (rng is not SEED)
        if solver is not None and replace(solver, tol=None) != Solver():
            names += [
                f.name for f in fields(Solver) if f.name != "tol" and getattr(solver, f.name) != f.default
            ]
        if names:
            raise InputError(
                f"{names[0]}= was given beside a Diversity, which has its own; expected none. Make another with "
                f"{'solver=vendimeter.Solver(' + names[0] + '=…)' if hasattr(Solver(), names[0]) else names[0] + '=…'}"
                ", or pass the samples.",
                option=names[0],
            )
        return samples
    if not lists and isinstance(samples, Collection):
        samples.refuse_default(kernel)
        samples.one()
    rng = check_rng(rng)
    if several and is_several(samples, by, weights, counts):
        source = joined_source(samples, kernel, None, rng)
    else:
        source = source_of(samples, kernel, by, weights, counts)
    diversity = object.__new__(Diversity)
    diversity._set(source, kernel, solver, rng, keep=False)
    return diversity
