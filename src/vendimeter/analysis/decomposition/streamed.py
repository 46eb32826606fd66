"""A contribution beside every row of files that are larger than memory: write_contributions."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis.decomposition.contributions import HEAVY, Shares, in_order, shares_of
from vendimeter.data.arrays import blocks, is_sparse
from vendimeter.data.collection import Collection
from vendimeter.data.devices import as_like, move, to_host, transposed, wide_mode
from vendimeter.errors import EmptyError, InputError, MismatchError, TooLargeError, brief, unknown
from vendimeter.io.parquet_writer import Layout, Output
from vendimeter.io.reading import read_batches
from vendimeter.io.sources import files_of
from vendimeter.kernels import Kernel
from vendimeter.options import check_flag, check_rng, whole_number
from vendimeter.present.progress import Progress
from vendimeter.results.base import Result, frozen, score_of
from vendimeter.results.score import Score, number
from vendimeter.similarity import Features, Index
from vendimeter.solvers import dense
from vendimeter.solvers.eigenvectors import Decomposition, eigenpairs
from vendimeter.solvers.exact import Solution, clean
from vendimeter.solvers.gram import GramSum
from vendimeter.solvers.plan import EXACT_SIDE
from vendimeter.spectrum import parse_order
from vendimeter.streams.accumulator import Accumulator
from vendimeter.streams.scores import in_place

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = [
    "CHANGE",
    "MEAN",
    "RARITY",
    "SHARE",
    "Batch",
    "Kept",
    "Stream",
    "Sums",
    "WrittenContributions",
    "new_columns",
    "write_contributions",
]


# ----------------------------------------------------------------------------------------------------- streamed passes

# Two passes over files that are larger than memory: what the first sums up, and what the second finds of each row.

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


# ------------------------------------------------------------------------------------------------------------ streamed

READING = tuple(inspect.signature(read_batches).parameters)[1:]  # all but the path
CHANGED = 1e-6  # by which the shares may miss the entropy before the source must have changed


def write_contributions(
    source: Any,
    out: Any,
    kernel: Any = "cosine",
    *,
    q: Any = 1,
    overwrite: bool = False,
    rng: int = 0,
    leave_one_out: bool = True,
    **reading: Any,
) -> WrittenContributions:
    """Write beside every row of files what it contributes to the score, in two passes that never hold all rows.

    The first pass sums up Σ w φφᵀ and Σ w φ, the second writes the rows to Parquet in their order, with four more
    columns: ``vendi_share`` (of the entropy; they add up to log(score)), ``vendi_rarity``, ``vendi_leave_one_out``
    (the change of the score without the row) and ``vendi_mean_similarity``, as `vendimeter.contributions` has them.

    Parameters
    ----------
    source : path, pattern or list of them
        Files as for `vendimeter.read_batches`, such as ``"shards/*.parquet"``. They are read twice, so that standard
        input and pipes are refused.
    out : path
        A file that ends in .parquet, or a folder. A folder gets one file for each file that is read, by its name, or
        by a number where two have one name; a file without rows has none, and single pictures share one.
    kernel : str or Kernel
        One that can be accumulated; see `vendimeter.Accumulator`. An encoder encodes all samples twice, unless it has a
        cache.
    q : float or str
        The order, from 0 up to ``"inf"``.
    overwrite : bool
        Whether an `out` that exists is replaced; a folder with all that is in it, if that is .parquet files only.
    rng : int
        Seed of what is random in a kernel.
    leave_one_out : bool
        Whether to write ``vendi_leave_one_out``.
    **reading
        How files are read, as for `vendimeter.read_batches`: ``samples="embedding"`` names the column with the samples,
        ``weight=`` that of their weights (of any scale), ``columns=`` others to copy, ``size=`` the rows of a batch.

    Returns
    -------
    WrittenContributions
        The score, what was written, and the rarest and most redundant rows.

    Notes
    -----
    All columns that are read are copied; vectors become lists of one length. Points in time are texts, as
    `vendimeter.read` gives them. Memory holds a batch, a row group and a few d×d matrices, for features of d columns
    (8,192 at most); the time is that of reading twice, and O(nd²). The output is written beside its final place and
    moved there when it is complete: on an error, or Ctrl-C, nothing of it stays, and what was there before is as it
    was. A source that changed between the passes is an error. If one row has more than half of all weight, a third
    pass sums up the others, because what is left without it would be a small difference.

    References
    ----------
    As for `vendimeter.contributions`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name)
    >>> np.save(path / "rows.npy", np.array([[1.0, 0], [1, 0], [1, 0], [0, 1]]))
    >>> found = vm.write_contributions(path / "rows.npy", path / "rows.parquet")
    >>> round(found.score, 4), found.rarest[:1]
    (1.7548, array([3]))
    >>> vm.read(path / "rows.parquet", samples="data", columns=["vendi_share"])["vendi_share"].round(4)
    array([0.0719, 0.0719, 0.0719, 0.3466])
    >>> folder.cleanup()
    """
    order, seed = parse_order(q), check_rng(rng)
    leave_one_out = check_flag(leave_one_out, "leave_one_out")
    for name in reading:
        if name not in READING:
            raise unknown("option", name, READING)
    chosen = Accumulator(kernel, rng=seed).kernel  # which refuses kernels that need all items at once
    stream = Stream(source, kernel, chosen, seed, reading)
    output = Output(out, stream.files, overwrite)
    names = [SHARE, RARITY, *([CHANGE] if leave_one_out else []), MEAN]
    sums, layout = Sums(), Layout()
    with Progress("first pass") as bar:
        for batch in stream.batches():
            layout.add(batch.columns, batch.place)
            layout.refuse(names)
            sums.add(batch)
            bar.step(None, f"{sums.rows:,} rows")
        solution, vectors = sums.solved()
    parts = Shares(solution, order, sums.least / sums.mass, bool(leave_one_out))
    heavy = sums.heaviest if leave_one_out and sums.most > HEAVY * sums.mass else -1
    without = _without(stream, sums, heavy, order)
    kept = Kept()
    with Progress("second pass") as bar, output.writing(layout.with_numbers(names)) as writer:
        for batch in stream.batches():
            _check(kept.rows + batch.features.n <= sums.rows)
            found = new_columns(batch, solution, vectors, parts, sums)
            if kept.rows <= heavy < kept.rows + batch.features.n:
                found[CHANGE][heavy - kept.rows] = without - parts.score
            writer.write(layout.table(batch.columns, found), batch.file)
            kept.add(batch, found)
            bar.step(kept.rows / sums.rows)
        _check(kept.rows == sums.rows and abs(kept.total - parts.entropy) <= CHANGED * max(1, parts.entropy))
    score = score_of(
        solution, order, sums.rows, chosen, "the eigenvectors of the sum tell what each row contributes"
    )
    left_out = sum(stream.left_out.values())
    return WrittenContributions(
        paths=output.paths,
        rows=sums.rows,
        score=score.noted(left_out=left_out) if left_out else score,
        columns=(*layout.schema.names, *names),
        rarest=frozen(kept.rarest.rows),
        redundant=frozen(kept.redundant.rows),
        table=kept.table(),
        sample=frozen(kept.sample),
    )


def _without(stream: Stream, sums: Sums, row: int, q: float) -> float:
    """The score without a row that has more than half of the weight, by a pass over the others; −1 is no row."""
    if row < 0 or not sums.mass > sums.most:
        return math.nan
    others = Sums(leave_out=row)
    with Progress("all but one") as bar:
        for batch in stream.batches():
            others.add(batch)
            bar.step(others.rows / sums.rows)
    return others.solved()[0].spectrum.score(q).value


def _check(same: bool) -> None:
    if not same:
        raise MismatchError(
            "the source changed between the first and the second pass; expected files that nobody writes to. Nothing "
            "was written; run it again."
        )


@dataclass(frozen=True, repr=False, eq=False)
class WrittenContributions(Result):
    """What `vendimeter.write_contributions` wrote, and of which rows to take note.

    Attributes
    ----------
    paths : tuple of str
        The files that were written.
    rows : int
        How many rows they have.
    score : Score
        The score of all rows, with its bounds.
    columns : tuple of str
        The columns of the files; the last ones are new.
    rarest, redundant : ndarray
        The numbers of the rows, from 0 over all files, without which the score falls most, and without which it rises
        most or falls least (the highest and lowest rarity, without leave_one_out): up to 20 of each, the first first.
        Rows of no weight are left out.
    table : dict
        These rows with their places in the files that were read, and their new columns; the columns of `to_frame`.
    sample : ndarray
        Shares of rows at even distances, up to 4,096 of them, which `plot` draws.
    """

    paths: tuple[str, ...]
    rows: int
    score: Score
    columns: tuple[str, ...] = field(repr=False)
    rarest: np.ndarray = field(repr=False)
    redundant: np.ndarray = field(repr=False)
    table: dict[str, list[Any]] = field(repr=False)
    sample: np.ndarray = field(repr=False)

    def summary(self) -> str:
        """What was written, in a few sentences."""
        files = repr(*self.paths) if len(self.paths) == 1 else f"{len(self.paths):,} files"
        return (
            f"{number(self.score)} effectively different items of {self.rows:,}; what each contributes is in {files}. "
            f"The rarest is row {self.rarest[0]:,}, the most redundant row {self.redundant[0]:,}."
        )

    def _columns(self) -> dict[str, Any]:
        return self.table

    def plot(self, ax: Any = None) -> Display:
        """Draw the shares in order of their size; see `vendimeter.plots.contributions`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        """
        from vendimeter.plots.bars import plot_written

        return plot_written(self, ax)
