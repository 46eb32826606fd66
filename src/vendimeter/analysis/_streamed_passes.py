"""Two passes over files that are larger than memory: what the first sums up, and what the second finds of each row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.analysis._shares import Shares
from vendimeter.analysis.decomposition import in_order, shares_of
from vendimeter.data.arrays import blocks, is_sparse
from vendimeter.data.collection import Collection
from vendimeter.data.devices import as_like, move, to_host, transposed, wide_mode
from vendimeter.errors import EmptyError, InputError, MismatchError, TooLargeError, brief
from vendimeter.io.reading import read_batches
from vendimeter.io.sources import files_of
from vendimeter.kernels import Kernel
from vendimeter.options import whole_number
from vendimeter.similarity import Features, Index
from vendimeter.solvers import dense
from vendimeter.solvers.eigenvectors import Decomposition, eigenpairs
from vendimeter.solvers.exact import Solution, clean
from vendimeter.solvers.gram import GramSum
from vendimeter.solvers.plan import EXACT_SIDE
from vendimeter.streams.scores import in_place

__all__ = ["CHANGE", "MEAN", "RARITY", "SHARE", "Batch", "Kept", "Stream", "Sums", "new_columns"]

KEPT = 20  # rows that are named in the result, of the rarest and of the most redundant
SAMPLED = 4096  # rows at most whose shares are kept for a picture
SHARE, RARITY = "vendi_share", "vendi_rarity"
CHANGE, MEAN = "vendi_leave_one_out", "vendi_mean_similarity"


# ----------------------------------------------------------------------------------------------------------- reading


@dataclass(frozen=True)
class Batch:
    """Some rows of a file: as they were read, their features and weights, the number of the file, and the place."""

    samples: Collection
    features: Features
    weights: np.ndarray
    file: int
    place: str

    columns: dict[str, Any]  # that were read


class Stream:
    """The batches of files, as often as they are asked for."""

    def __init__(self, source: Any, given: Any, kernel: Kernel, rng: int, reading: dict[str, Any]):
        self._given, self._kernel, self._rng, self._reading = given, kernel, rng, reading
        if isinstance(source, Collection) or hasattr(source, "shape") or hasattr(source, "__next__"):
            raise InputError(
                f"source is {brief(source)}; expected the path of a file, a pattern or a list of them, which can be "
                "read twice. For samples in memory there is vendimeter.contributions."
            )
        self.files = files_of(source, reading.get("format"))
        self.left_out: dict[int, int] = {}  # broken records of each file
        for file in self.files:
            if file.path is None or not (file.path.is_file() or file.is_folder):
                raise InputError(
                    f"{file} can be read only once; expected files, which are read twice. Save it to a file first."
                )

    def batches(self) -> Iterator[Batch]:
        """All of them, in order."""
        limit = self._reading.get("limit")
        left = None if limit is None else whole_number(limit, "limit")
        empty: EmptyError | None = None
        some = False
        for at, file in enumerate(self.files):
            own: dict[str, Any] = self._reading if left is None else {**self._reading, "limit": left}
            try:
                for samples in read_batches(file.path, **own):
                    some = True
                    left = None if left is None else left - len(samples)
                    yield self._made(samples, at)
                    self.left_out[at] = samples.skipped.count
            except EmptyError as error:
                empty = empty or error
            if left == 0:
                return
        if not some and empty is not None:
            raise empty

    def _made(self, samples: Collection, file: int) -> Batch:
        samples.refuse_default(self._given)
        place = f"from {samples.place(0)}"
        with in_place(place, samples), samples.placed():
            features = self._kernel.batch_features(samples.one(), rng=self._rng)
        weights = samples.weights
        weights = np.ones(features.n) if weights is None else np.asarray(weights, dtype=np.float64)
        return Batch(samples, features, weights, file, place, self._columns(samples))

    def _columns(self, samples: Collection) -> dict[str, Any]:
        """The columns that were read; those that make up vectors as the numbers that they stand for."""
        vectors = self._reading.get("samples")
        if not isinstance(vectors, list | tuple):
            return samples.columns
        return samples.columns | {name: samples.samples[:, i] for i, name in enumerate(vectors)}


# ------------------------------------------------------------------------------------------------------- first pass


class Sums:
    """Σ w φφᵀ and Σ w φ of all rows but one, and what else is to be known of the weights."""

    def __init__(self, leave_out: int = -1):
        self._leave_out = leave_out
        self._total: GramSum | None = None
        self._mean: Any = None
        self.rows, self.heaviest = 0, -1
        self.most, self.least = 0.0, math.inf

    def add(self, batch: Batch) -> None:
        """Take in a batch."""
        features, weights = batch.features, batch.weights
        if self.rows <= self._leave_out < self.rows + features.n:
            weights = weights.copy()
            weights[self._leave_out - self.rows] = 0.0
        if self._total is None:
            if features.width > EXACT_SIDE:
                raise TooLargeError(
                    f"the features have {features.width} columns, and this needs the eigenvectors of their matrix; "
                    f"expected at most {EXACT_SIDE} columns. Reduce them first, for example by a random projection."
                )
            self._total = GramSum(features.width)
        if features.width != self._total.width:
            raise MismatchError(
                f"{batch.place}: the features have {features.width} columns and the ones before had "
                f"{self._total.width}; expected the same."
            )
        with (
            in_place(batch.place, batch.samples),
            batch.samples.placed(),
            wide_mode("float64", features.like),
        ):
            self._total.add(features, weights)
            for part in _parts(features):
                rows = features.rows(part)
                weighted = move(weights[part], features.like)
                summed = (rows.T if is_sparse(rows) else transposed(rows)) @ weighted
                self._mean = (
                    summed if self._mean is None else self._mean + as_like(summed, _device(self._mean))
                )
        top = int(weights.argmax())
        if weights[top] > self.most:
            self.most, self.heaviest = float(weights[top]), self.rows + top
        self.least = min(self.least, float(weights[weights > 0].min(initial=math.inf)))
        self.rows += features.n

    @property
    def mass(self) -> float:
        """Σ w."""
        return 0.0 if self._total is None else self._total.mass

    @property
    def mean(self) -> Any:
        """Σ w φ/Σ w."""
        return self._mean / self.mass

    def solved(self) -> tuple[Solution, Any]:
        """All eigenvalues of Σ w φφᵀ/Σ w, and its eigenvectors as columns."""
        if self._total is None or not self.mass > 0:
            raise EmptyError(
                "every row has weight 0, and the diversity of nothing is undefined; expected at least one positive "
                "weight."
            )
        with wide_mode("float64", _device(self._total.total)):
            gram = self._total.result()
            values, vectors = eigenpairs(gram.matrix)
        error = gram.error + float(dense.eigen_error(self._total.width, abs(float(values[0]))))
        return clean(values, error, "gram", {"precision": "float64"}), vectors


def _device(array: Any) -> Any:
    return None if isinstance(array, np.ndarray) else array


def _parts(features: Features) -> list[slice]:
    return blocks(features.n, 64 if features.sparse else features.width)


# ------------------------------------------------------------------------------------------------------ second pass


class _Rows(Decomposition):
    """The rows of a batch in the eigenbasis of all rows."""

    def __init__(self, features: Features, solution: Solution, vectors: Any):
        super().__init__(features.n, solution, features.like)
        self._features = features
        self._vectors = as_like(vectors[:, : len(self.values)], features.like)

    @property
    def _held(self) -> int:
        return 0 if self._features.sparse else self._features.width

    def coordinates(self, index: Index, count: int | None = None) -> Any:
        return self._features.rows(index) @ self._vectors[:, :count]


def new_columns(
    batch: Batch, solution: Solution, vectors: Any, parts: Shares, sums: Sums
) -> dict[str, np.ndarray]:
    """The new columns of a batch."""
    features = batch.features
    with wide_mode("float64", features.like):
        shares = batch.weights / sums.mass
        values, rarity, change = shares_of(_Rows(features, solution, vectors), parts, shares, shares)
        mean = as_like(sums.mean, features.like)
        similar = [to_host(features.rows(part) @ mean) for part in _parts(features)]
    found = {SHARE: values, RARITY: rarity}
    if change is not None:
        found[CHANGE] = change
    return found | {MEAN: np.concatenate(similar)}


class _Ranked:
    """The first rows in an order, with all that is known of them."""

    def __init__(self, sign: int):
        self._sign = sign
        self.rows = np.empty(0, dtype=np.int64)
        self.places: list[str] = []
        self.found: dict[str, np.ndarray] = {}

    def add(self, rows: np.ndarray, place: Callable[[int], str], found: dict[str, np.ndarray]) -> None:
        """Take in rows with the names of their places."""
        best = in_order(found[RARITY], found.get(CHANGE), self._sign)[:KEPT]
        places = [*self.places, *(place(int(i)) for i in best)]
        rows = np.concatenate([self.rows, rows[best]])
        found = {
            name: np.concatenate([self.found.get(name, np.empty(0)), values[best]])
            for name, values in found.items()
        }
        order = in_order(found[RARITY], found.get(CHANGE), self._sign)[:KEPT]
        self.rows, self.places = rows[order], [places[i] for i in order]
        self.found = {name: values[order] for name, values in found.items()}


class Kept:
    """What is kept of the second pass: the first rows of both orders, some shares, and their sum."""

    def __init__(self) -> None:
        self.rows, self.total = 0, 0.0
        self.rarest, self.redundant = _Ranked(1), _Ranked(-1)
        self.sample = np.empty(0)  # shares of rows at even distances: all of them where they are few
        self._stride = 1

    def add(self, batch: Batch, found: dict[str, np.ndarray]) -> None:
        """Take in a batch."""
        there = np.flatnonzero(batch.weights)
        part = {name: values[there] for name, values in found.items()}
        for ranked in (self.rarest, self.redundant):
            ranked.add(self.rows + there, lambda i: batch.samples.place(int(there[i])), part)
        self.sample = np.concatenate([self.sample, found[SHARE][-self.rows % self._stride :: self._stride]])
        while len(self.sample) > SAMPLED:  # every second, then every fourth row, and so on
            self.sample, self._stride = self.sample[::2], 2 * self._stride
        self.total += float(found[SHARE].sum())
        self.rows += batch.features.n

    def table(self) -> dict[str, list[Any]]:
        """The rarest rows and the most redundant ones, one below the other."""
        both = {"rarest": self.rarest, "redundant": self.redundant}
        found: dict[str, list[Any]] = {
            "which": [which for which, ranked in both.items() for _ in ranked.places],
            "row": [row for ranked in both.values() for row in ranked.rows.tolist()],
            "place": [place for ranked in both.values() for place in ranked.places],
        }
        for name in self.rarest.found:
            found[name] = [value for ranked in both.values() for value in ranked.found[name].tolist()]
        return found
