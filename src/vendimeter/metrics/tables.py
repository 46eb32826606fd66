"""Metrics side by side with the Vendi Score: the tables of the paper, for the user's own models."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vendimeter._messages import brief, in_group, unknown
from vendimeter._options import check_rng, whole_number
from vendimeter._progress import Progress
from vendimeter._score import score
from vendimeter._score_groups import score_groups
from vendimeter.errors import InputError
from vendimeter.kernels import Kernel
from vendimeter.metrics import _rendering as rendering
from vendimeter.metrics._applicable import METRICS, Entry, cell_of
from vendimeter.metrics._given import Given, givens_of, kernels_of, kinds_of, parts_of
from vendimeter.metrics._rendering import UP, Cell, Column
from vendimeter.metrics._results import plain
from vendimeter.results import data_frame, order_name
from vendimeter.spectrum import parse_orders

__all__ = ["Table", "table"]

DIGITS = 4  # significant ones, of the smallest figure of a column
_LABEL = re.compile(r"[\w:./+-]+")


@dataclass(frozen=True, repr=False)
class Table:
    """Figures of several collections, one row each; made by `table`.

    Attributes
    ----------
    names : tuple
        The collections.
    columns : tuple of Column
        What is shown: `name` in a frame, `title` for people, `better` "up", "down" or "".
    cells : tuple of tuple of Cell
        The figures, a row a collection: `value` (None where there is none), `low` and `high` where an error is known.
    notes : tuple of str
        What a reader should know: sizes that differ, items left out, what stands behind ±.
    """

    names: tuple[Hashable, ...]
    columns: tuple[Column, ...]
    cells: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: Hashable) -> dict[str, float | int | None]:
        """The figures of one collection by the names of the columns."""
        if name not in self.names:
            raise unknown("collection in this table", name, self.names)
        row = self.cells[self.names.index(name)]
        return {column.name: cell.value for column, cell in zip(self.columns, row, strict=True)}

    def to_dict(self) -> dict[str, Any]:
        """Plain values ready for JSON: a list of rows, and the notes."""
        columns = self._columns()
        rows = [{name: plain(values[i]) for name, values in columns.items()} for i in range(len(self.names))]
        return {"rows": rows, "notes": list(self.notes)}

    def to_frame(self) -> Any:
        """A pandas frame with one row a collection; bounds and intervals are columns of their own, _low and _high."""
        return data_frame(
            {
                name: [np.nan if value is None else value for value in values]
                for name, values in self._columns().items()
            }
        )

    def _columns(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {"collection": list(self.names)}
        for j, column in enumerate(self.columns):
            cells = [row[j] for row in self.cells]
            found[column.name] = [cell.value for cell in cells]
            if any(cell.low is not None for cell in cells):
                found[f"{column.name}_low"] = [cell.low for cell in cells]
                found[f"{column.name}_high"] = [cell.high for cell in cells]
        return found

    def to_markdown(self, *, digits: int = DIGITS, best: bool = False) -> str:
        """The table in Markdown, with the notes below.

        Parameters
        ----------
        digits : int
            How many significant digits the smallest figure of a column shows.
        best : bool
            Whether the best figure of each column is bold.
        """
        texts = self._texts(digits)
        shown = rendering.markdown(self.names, self.columns, texts, best=best)
        return shown + "".join(f"\n{rendering.markdown_escaped(note)}\n" for note in self.notes)

    def to_latex(
        self,
        *,
        digits: int = DIGITS,
        best: bool = False,
        caption: str | None = None,
        label: str | None = None,
    ) -> str:
        r"""The table in LaTeX, for the package booktabs; a floating table where it has a caption or a label.

        Parameters
        ----------
        digits : int
            How many significant digits the smallest figure of a column shows.
        best : bool
            Whether the best figure of each column is bold.
        caption : str, optional
            The caption, as plain text: what LaTeX would take for commands is escaped.
        label : str, optional
            What ``\ref`` calls the table, such as "tab:models".
        """
        if label is not None and not (isinstance(label, str) and _LABEL.fullmatch(label)):
            raise InputError(
                f"label={brief(label)}; expected letters, digits and the marks : . / + - _ alone, such as 'tab:models'."
            )
        texts = self._texts(digits)
        shown = rendering.latex(self.names, self.columns, texts, best=best, caption=caption, label=label)
        return shown + "".join(f"% {rendering.latex_escaped(note)}\n" for note in self.notes)

    def _texts(self, digits: int) -> list[list[tuple[str, str]]]:
        return rendering.grid(self.columns, self.cells, whole_number(digits, "digits"))

    def __repr__(self) -> str:
        return rendering.plain_text(self.names, self.columns, self._texts(DIGITS), self.notes)

    def _repr_html_(self) -> str:
        return rendering.html_page(self.names, self.columns, self._texts(DIGITS), self.notes)


def table(
    samples: Any,
    kernel: Any = "cosine",
    *,
    by: Any = None,
    reference: Any = None,
    features: Any = None,
    probabilities: Any = None,
    groups: bool | None = None,
    metrics: Any = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    q: Any = 1,
    tol: float | None = None,
    rng: int = 0,
    progress: bool | None = None,
) -> Table:
    """The metrics that apply to some collections, side by side with their Vendi Scores.

    What the samples are is never guessed: the kernel says it. Beside the score and IntDiv, kernels of vectors (and
    encoders) give the distances and overlaps with a reference; kernels of texts n-gram diversity, self-BLEU and the
    compression ratio; kernels of molecules what `molecules` gives; ``"probability-product"``, or `probabilities`,
    the metrics of classes.

    Parameters
    ----------
    samples : mapping, Collection or collection
        A collection for each name, such as ``{"Original": X, "VAE": Y}``; or one collection with `by`.
    kernel : str, Kernel, callable, or mapping of them
        What makes two items similar; several by name, ``{"Inception": Embed(…), "pixels": Pixels()}``, give a score
        each. Parameters that come from data are fitted once, on all collections.
    by : list, array or name of a column, optional
        A label a sample, by which one collection falls into several.
    reference : str or collection, optional
        What the collections are compared with: the name of one of them, or samples. With a name, that row stays empty
        where it would be compared with itself.
    features : Encoder, str or callable, optional
        What turns samples into the vectors that distances are measured between, if they are none.
    probabilities : mapping, optional
        Class probabilities of the samples, for each name an array of shape (samples, classes).
    groups : bool, optional
        Whether each sample is a list of texts, such as the captions of one image: figures are then means over these
        groups, and the reference has a list for each. False where such lists are the tokens of one text.
    metrics : list of str, or mapping, optional
        What to show instead of all that apply, by the names of the functions in `vendimeter.metrics`, in this order. A
        mapping may hold functions of your own, ``{"Mean length": lambda texts: …}``, beside names (``{"intdiv":
        None}``).
    options : mapping, optional
        Options of metrics, such as ``{"precision_recall": {"k": 5}}``.
    q : float, str or list of them
        The orders of the Vendi Score.
    tol : float, optional
        As for `vendimeter.score`.
    rng : int
        The seed of everything random.
    progress : bool, optional
        Whether to show progress; by default on a terminal only.

    Returns
    -------
    Table
        `to_frame()`, `to_markdown()`, `to_latex()`, and figures by ``table[name]``.

    Notes
    -----
    Behind ± stand the bounds of the computation for the Vendi Score, the interval of the sampling error for the kernel
    distance, and the standard deviation over splits for the Inception Score; the notes of the table say which are
    there. The Vendi Score and the Fréchet distance depend on the number of samples: compare collections of one size.

    Examples
    --------
    >>> import numpy as np
    >>> from vendimeter import metrics
    >>> rng = np.random.default_rng(0)
    >>> real, copies = rng.normal(size=(200, 4)), np.repeat(rng.normal(size=(20, 4)), 10, axis=0)
    >>> table = metrics.table({"real": real, "copies": copies}, reference="real", metrics=["precision_recall"])
    >>> print(table.to_markdown())
    |        |   n | Precision ↑ | Recall ↑ |  VS ↑ |
    | :----- | --: | ----------: | -------: | ----: |
    | real   | 200 |             |          | 3.984 |
    | copies | 200 |       1.000 |    0.000 | 3.677 |
    <BLANKLINE>
    """
    names, parts = parts_of(samples, by)
    orders = parse_orders(q)[0]
    rng = check_rng(rng)
    kernels = kernels_of(kernel)
    if groups not in (None, True, False):
        raise InputError(f"groups={brief(groups)}; expected True or False.")
    givens, notes = givens_of(names, parts, kernels, reference, features, probabilities, groups, rng)
    chosen = _chosen(metrics, options or {}, givens, list(kernels.values()))
    columns = [Column("n", "n", whole=True)]
    rows = [[Cell(given.n)] for given in givens]
    settings = dict(options or {})
    steps = len(givens) * (len(chosen) + len(kernels))
    done = 0
    with Progress("metrics", progress) as bar:
        for title, metric in chosen.items():
            columns += _titled(metric, title, kernels)
            for row, name, given in zip(rows, names, givens, strict=True):
                bar.step(done / steps, f"{title} of {brief(name)}")
                done += 1
                with in_group(name):
                    row += _computed(metric, title, given, dict(settings.get(title, {})), kernels)
        for title, one in kernels.items():
            columns += _score_columns(title, orders, alone=len(kernels) == 1)
            for row, name, given in zip(rows, names, givens, strict=True):
                bar.step(done / steps, f"Vendi Score of {brief(name)}")
                done += 1
                with in_group(name):
                    row += _scores(given, one, orders, tol, rng)
    notes += _read_with_care(columns, rows, any(given.groups for given in givens))
    return Table(tuple(names), tuple(columns), tuple(map(tuple, rows)), tuple(notes))


# -------------------------------------------------------------------------------------------------- what is computed


def _chosen(
    metrics: Any, options: Mapping[str, Any], givens: Sequence[Given], kernels: list[Kernel]
) -> dict[str, Any]:
    """The metrics of the table by their names: entries, or functions of the user's own."""
    if not isinstance(options, Mapping) or not all(isinstance(one, Mapping) for one in options.values()):
        raise InputError(
            f"options={brief(options)}; expected a mapping from the name of a metric to its options, such as "
            "{'precision_recall': {'k': 5}}."
        )
    compared = any(given.reference is not None for given in givens)
    if metrics is None:
        kinds = set().union(*(kinds_of(kernels, given) for given in givens)) or {"others"}
        chosen: dict[str, Any] = {
            name: entry
            for name, entry in METRICS.items()
            if kinds & set(entry.kinds) and (compared or not entry.reference)
        }
        if compared and any(given.groups for given in givens):
            chosen = {"corpus_bleu": METRICS["corpus_bleu"], **chosen}
        if any(given.groups for given in givens):
            chosen.pop("compression_ratio", None)  # of a few texts it is that of the header
    else:
        if isinstance(metrics, str) or not isinstance(metrics, Sequence | Mapping):
            raise InputError(
                f"metrics={brief(metrics)}; expected a list of names, such as ['intdiv', 'precision_recall']."
            )
        own = dict(metrics) if isinstance(metrics, Mapping) else dict.fromkeys(metrics)
        chosen = {}
        for name, function in own.items():
            if function is None and name not in METRICS:
                raise unknown("metric", name, METRICS)
            if function is None and METRICS[name].reference and not compared:
                raise InputError(
                    f"{name} compares with a reference, and there is none; expected reference=, samples or the name of "
                    "a collection in the table."
                )
            if function is not None and not callable(function):
                raise InputError(
                    f"metrics[{name!r}] is {brief(function)}; expected a function of samples, or None."
                )
            chosen[name] = METRICS[name] if function is None else function
    odd = next((name for name in options if name not in chosen), None)
    if odd is not None:
        raise unknown("metric in this table (in options)", odd, chosen)
    return chosen


def _titled(metric: Any, title: str, kernels: Mapping[str, Kernel]) -> list[Column]:
    """The columns of a metric; one a kernel where it depends on that."""
    if not isinstance(metric, Entry):
        return [Column(title, title)]
    if not metric.kernel or len(kernels) == 1:
        return list(metric.columns)
    return [
        replace(column, name=f"{column.name}_{name}", title=f"{column.title} ({name})")
        for name in kernels
        for column in metric.columns
    ]


def _computed(
    metric: Any, title: str, given: Given, options: dict[str, Any], kernels: Mapping[str, Kernel]
) -> list[Cell]:
    if not isinstance(metric, Entry):
        found = metric(given.samples, **options)
        try:
            return [cell_of(found)]
        except (TypeError, ValueError):
            raise InputError(f"the function {title!r} gave {brief(found)}; expected a number.") from None
    if metric.reference and given.reference is None:
        return [Cell() for _ in metric.columns]
    if metric.kernel:
        return [cell_of(found) for one in kernels.values() for found in metric.compute(given, options, one)]
    return [cell_of(found) for found in metric.compute(given, options)]


def _score_columns(title: str, orders: Sequence[float], *, alone: bool) -> list[Column]:
    columns = []
    for q in orders:
        order = "" if q == 1 else f"_q{order_name(q)}"
        shown = "VS" if q == 1 else f"VS q={order_name(q)}"
        columns.append(
            Column(
                f"vendi_score{order}" + ("" if alone else f"_{title}"),
                shown if alone else f"{shown} ({title})",
                UP,
            )
        )
    return columns


def _scores(given: Given, kernel: Kernel, orders: Sequence[float], tol: float | None, rng: int) -> list[Cell]:
    """The Vendi Score of each order; of groups their mean, with its standard error."""
    if given.groups:
        cells = []
        for q in orders:
            mean = score_groups(list(given.samples), kernel, q=q, rng=rng).mean().means[0]
            cells.append(Cell(mean.mean, spread=mean.standard_error))
        return cells
    samples, kernel = given.under(kernel)
    found = score(samples, kernel, q=list(orders), weights=given.weights, tol=tol, rng=rng, progress=False)
    return [cell_of(found[q]) for q in orders]


def _read_with_care(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], groups: bool) -> list[str]:
    """What a reader of the figures should know."""
    notes = []
    sizes = [int(row[0].value or 0) for row in rows]
    if min(sizes) < max(sizes):
        notes.append(
            f"The collections have {min(sizes):,} to {max(sizes):,} samples, and scores and distances depend on that; "
            "compare samples of one size."
        )
    if groups:
        return [*notes, "Figures are means over groups, and ± is their standard error."]
    behind = {
        "kernel_distance": "the interval of the sampling error",
        "inception_score": "the standard deviation over splits",
        "circles": "the bounds",
    }
    texts = rendering.grid(columns, rows, DIGITS)
    shown = [
        f"{column.title}: {behind.get(column.name, 'the bounds of the computation')}"
        for j, column in enumerate(columns)
        if any(row[j][1] for row in texts)
    ]
    return notes + ([f"± is, for {'; for '.join(shown)}."] if shown else [])
