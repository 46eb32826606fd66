"""A contribution beside every row of files that are larger than memory: write_contributions."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis._shares import Shares
from vendimeter.analysis._streamed_passes import CHANGE, MEAN, RARITY, SHARE, Kept, Stream, Sums, new_columns
from vendimeter.analysis.decomposition import HEAVY
from vendimeter.errors import MismatchError, unknown
from vendimeter.io.parquet_writer import Layout, Output
from vendimeter.io.reading import read_batches
from vendimeter.options import check_flag, check_rng
from vendimeter.present.progress import Progress
from vendimeter.results.base import Result, frozen, score_of
from vendimeter.results.score import Score, number
from vendimeter.spectrum import parse_order
from vendimeter.streams.accumulator import Accumulator

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = ["WrittenContributions", "write_contributions"]

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
        from vendimeter.plots.contributions import plot_written

        return plot_written(self, ax)
