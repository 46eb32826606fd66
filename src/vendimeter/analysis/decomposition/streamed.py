"""A contribution beside every row of files that are larger than memory, in two passes.

The first pass adds up Σ w φφᵀ and Σ w φ (`Sums`), whose eigenvectors tell what each row contributes; the second
computes the new columns, writes them, and keeps a summary (`SecondPass`).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis.decomposition.contributions import (
    HEAVY,
    EntropyShares,
    compute_shares,
    removal_order,
)
from vendimeter.data.arrays import blocks, is_sparse
from vendimeter.data.collection import Collection
from vendimeter.data.devices import as_like, move, to_host, transposed, wide_mode
from vendimeter.errors import EmptyError, InputError, MismatchError, TooLargeError
from vendimeter.io.parquet_writer import Layout, Output
from vendimeter.io.reading import read_batches
from vendimeter.io.sources import files_of
from vendimeter.kernels import Kernel
from vendimeter.messages import brief, unknown
from vendimeter.options import check_flag, check_rng, whole_number
from vendimeter.present.numbers import effective_items, short_number
from vendimeter.present.progress import Progress
from vendimeter.results.base import Result, frozen, score_of
from vendimeter.results.score import Score
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
    "SecondPass",
    "Stream",
    "Sums",
    "WrittenContributions",
    "new_columns",
    "write_contributions",
]

SHARE, RARITY = "vendi_share", "vendi_rarity"
CHANGE, MEAN = "vendi_leave_one_out", "vendi_mean_similarity"
RANKED_ROWS = 20  # of the rarest and of the most redundant rows in the result
SAMPLED = 4096  # upper bound of the shares that are kept for a picture

READING = tuple(inspect.signature(read_batches).parameters)[1:]  # all but the path
# Relative difference of Σ shares and entropy beyond which the source must have changed.
CHANGE_TOLERANCE = 1e-6


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
    checked_kernel = Accumulator(kernel, rng=seed).kernel  # which refuses kernels that need all items at once
    stream = Stream(source, kernel, checked_kernel, seed, reading)
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
    entropy_shares = EntropyShares(solution, order, sums.smallest_weight / sums.mass, bool(leave_one_out))
    heaviest = sums.heaviest if leave_one_out and sums.largest_weight > HEAVY * sums.mass else -1
    score_without = _score_without(stream, sums, heaviest, order)
    summary = SecondPass()
    with Progress("second pass") as bar, output.writing(layout.with_numbers(names)) as writer:
        for batch in stream.batches():
            _check_unchanged(summary.rows + batch.features.n <= sums.rows)
            columns = new_columns(batch, solution, vectors, entropy_shares, sums)
            if summary.rows <= heaviest < summary.rows + batch.features.n:
                columns[CHANGE][heaviest - summary.rows] = score_without - entropy_shares.score
            writer.write(layout.table(batch.columns, columns), batch.file)
            summary.add(batch, columns)
            bar.step(summary.rows / sums.rows)
        entropy = entropy_shares.entropy
        same_total = abs(summary.total - entropy) <= CHANGE_TOLERANCE * max(1, entropy)
        _check_unchanged(summary.rows == sums.rows and same_total)
    score = score_of(
        solution,
        order,
        sums.rows,
        checked_kernel,
        "the eigenvectors of the sum tell what each row contributes",
    )
    left_out = sum(stream.left_out.values())
    return WrittenContributions(
        paths=output.paths,
        rows=sums.rows,
        score=score.noted(left_out=left_out) if left_out else score,
        columns=(*layout.schema.names, *names),
        rarest=frozen(summary.rarest.rows),
        redundant=frozen(summary.redundant.rows),
        table=summary.table(),
        sample=frozen(summary.sample),
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
            f"{effective_items(short_number(self.score), self.rows)}; what each contributes is "
            f"in {files}. The rarest is row {self.rarest[0]:,}, the most redundant row {self.redundant[0]:,}."
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


def _score_without(stream: Stream, sums: Sums, row: int, q: float) -> float:
    """The score without a row that has more than half of the weight, by a pass over the others; −1 is no row."""
    if row < 0 or not sums.mass > sums.largest_weight:
        return math.nan
    others = Sums(leave_out=row)
    with Progress("all but one") as bar:
        for batch in stream.batches():
            others.add(batch)
            bar.step(others.rows / sums.rows)
    return others.solved()[0].spectrum.score(q).value


def _check_unchanged(same: bool) -> None:
    """Refuse a source whose second pass differs from the first."""
    if not same:
        raise MismatchError(
            "the source changed between the first and the second pass; expected files that nobody writes to. Nothing "
            "was written; run it again."
        )


# -------------------------------------------------------------------------------------------------------------- reading


@dataclass(frozen=True)
class Batch:
    """Rows of a file: samples as read, features, weights, the number of the file, the place, and the columns read."""

    samples: Collection
    features: Features
    weights: np.ndarray
    file: int
    place: str
    columns: dict[str, Any]


class Stream:
    """The batches of files; they can be iterated repeatedly."""

    def __init__(self, source: Any, kernel_option: Any, kernel: Kernel, rng: int, reading: dict[str, Any]):
        self._kernel_option, self._kernel, self._rng, self._reading = kernel_option, kernel, rng, reading
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
        """All batches, in order."""
        limit = self._reading.get("limit")
        remaining = None if limit is None else whole_number(limit, "limit")
        empty: EmptyError | None = None
        any_batch = False
        for file_number, file in enumerate(self.files):
            options: dict[str, Any] = (
                self._reading if remaining is None else {**self._reading, "limit": remaining}
            )
            try:
                for samples in read_batches(file.path, **options):
                    any_batch = True
                    remaining = None if remaining is None else remaining - len(samples)
                    yield self._to_batch(samples, file_number)
                    self.left_out[file_number] = samples.skipped.count
            except EmptyError as error:
                empty = empty or error
            if remaining == 0:
                return
        if not any_batch and empty is not None:
            raise empty

    def _to_batch(self, samples: Collection, file: int) -> Batch:
        """The features and weights of the samples of a file."""
        samples.refuse_default(self._kernel_option)
        place = f"from {samples.place(0)}"
        with in_place(place, samples), samples.placed():
            features = self._kernel.batch_features(samples.one(), rng=self._rng)
        weights = samples.weights
        weights = np.ones(features.n) if weights is None else np.asarray(weights, dtype=np.float64)
        return Batch(samples, features, weights, file, place, self._columns(samples))

    def _columns(self, samples: Collection) -> dict[str, Any]:
        """The columns that were read; those that make up vectors as numbers."""
        vectors = self._reading.get("samples")
        if not isinstance(vectors, list | tuple):
            return samples.columns
        return samples.columns | {name: samples.samples[:, i] for i, name in enumerate(vectors)}


# ----------------------------------------------------------------------------------------------------------- first pass


class Sums:
    """Σ w φφᵀ and Σ w φ of all rows (but one, if asked for), and the extreme weights."""

    def __init__(self, leave_out: int = -1):
        self._leave_out = leave_out
        self._total: GramSum | None = None
        self._mean: Any = None
        self.rows, self.heaviest = 0, -1
        self.largest_weight, self.smallest_weight = 0.0, math.inf

    def add(self, batch: Batch) -> None:
        """Add a batch."""
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
            for block in _blocks(features):
                rows = features.rows(block)
                weighted = move(weights[block], features.like)
                block_sum = (rows.T if is_sparse(rows) else transposed(rows)) @ weighted
                self._mean = (
                    block_sum
                    if self._mean is None
                    else self._mean + as_like(block_sum, _array_on_device(self._mean))
                )
        heaviest = int(weights.argmax())
        if weights[heaviest] > self.largest_weight:
            self.largest_weight, self.heaviest = float(weights[heaviest]), self.rows + heaviest
        self.smallest_weight = min(self.smallest_weight, float(weights[weights > 0].min(initial=math.inf)))
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
        with wide_mode("float64", _array_on_device(self._total.total)):
            gram = self._total.result()
            values, vectors = eigenpairs(gram.matrix)
        error = gram.error + float(dense.eigen_error(self._total.width, abs(float(values[0]))))
        return clean(values, error, "gram", {"precision": "float64"}), vectors


def _array_on_device(array: Any) -> Any:
    """The array as the `like` of device functions: None for NumPy."""
    return None if isinstance(array, np.ndarray) else array


def _blocks(features: Features) -> list[slice]:
    """Slices of rows that fit in working memory."""
    return blocks(features.n, 64 if features.sparse else features.width)


# ---------------------------------------------------------------------------------------------------------- second pass


def new_columns(
    batch: Batch, solution: Solution, vectors: Any, entropy_shares: EntropyShares, sums: Sums
) -> dict[str, np.ndarray]:
    """The new columns of a batch."""
    features = batch.features
    with wide_mode("float64", features.like):
        shares = batch.weights / sums.mass
        values, rarity, change = compute_shares(
            _BatchRows(features, solution, vectors), entropy_shares, shares, shares
        )
        mean = as_like(sums.mean, features.like)
        mean_similarities = [to_host(features.rows(block) @ mean) for block in _blocks(features)]
    columns = {SHARE: values, RARITY: rarity}
    if change is not None:
        columns[CHANGE] = change
    return columns | {MEAN: np.concatenate(mean_similarities)}


class _BatchRows(Decomposition):
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


class SecondPass:
    """The summary of the second pass: the first rows of both orders, a sample of the shares, and their sum."""

    def __init__(self) -> None:
        self.rows, self.total = 0, 0.0
        self.rarest, self.redundant = _Ranking(1), _Ranking(-1)
        self.sample = np.empty(0)  # shares of every `_stride`-th row
        self._stride = 1

    def add(self, batch: Batch, columns: dict[str, np.ndarray]) -> None:
        """Add a batch."""
        positive = np.flatnonzero(batch.weights)
        positive_columns = {name: values[positive] for name, values in columns.items()}
        for ranked in (self.rarest, self.redundant):
            ranked.add(
                self.rows + positive, lambda i: batch.samples.place(int(positive[i])), positive_columns
            )
        self.sample = np.concatenate([self.sample, columns[SHARE][-self.rows % self._stride :: self._stride]])
        while len(self.sample) > SAMPLED:  # every second row, then every fourth, and so on
            self.sample, self._stride = self.sample[::2], 2 * self._stride
        self.total += float(columns[SHARE].sum())
        self.rows += batch.features.n

    def table(self) -> dict[str, list[Any]]:
        """The rarest rows and the most redundant ones, one below the other."""
        rankings = {"rarest": self.rarest, "redundant": self.redundant}
        columns: dict[str, list[Any]] = {
            "which": [which for which, ranked in rankings.items() for _ in ranked.places],
            "row": [row for ranked in rankings.values() for row in ranked.rows.tolist()],
            "place": [place for ranked in rankings.values() for place in ranked.places],
        }
        for name in self.rarest.columns:
            columns[name] = [value for ranked in rankings.values() for value in ranked.columns[name].tolist()]
        return columns


class _Ranking:
    """The first rows in an order, with their places and new columns."""

    def __init__(self, sign: int):
        self._sign = sign
        self.rows = np.empty(0, dtype=np.int64)
        self.places: list[str] = []
        self.columns: dict[str, np.ndarray] = {}

    def add(
        self, rows: np.ndarray, place: Callable[[int], str], batch_columns: dict[str, np.ndarray]
    ) -> None:
        """Add rows, with a function that names their places."""
        best = removal_order(batch_columns[RARITY], batch_columns.get(CHANGE), self._sign)[:RANKED_ROWS]
        places = [*self.places, *(place(int(i)) for i in best)]
        rows = np.concatenate([self.rows, rows[best]])
        merged = {
            name: np.concatenate([self.columns.get(name, np.empty(0)), values[best]])
            for name, values in batch_columns.items()
        }
        order = removal_order(merged[RARITY], merged.get(CHANGE), self._sign)[:RANKED_ROWS]
        self.rows, self.places = rows[order], [places[i] for i in order]
        self.columns = {name: values[order] for name, values in merged.items()}
