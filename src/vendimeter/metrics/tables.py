"""Metrics side by side with the Vendi Score: the tables of the paper, for the user's own models."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.diversity import diversity_of
from vendimeter.errors import InputError
from vendimeter.messages import brief, unknown
from vendimeter.metrics.inputs import (
    Row,
    diversities_by_name,
    in_collection,
    kernels_by_name,
    refuse_matrices,
    sample_kinds,
    split_collections,
    table_rows,
)
from vendimeter.metrics.registry import METRICS, SCORE, Entry, cell_of, check_options, columns_of
from vendimeter.options import COSINE, SEED, check_flag, check_progress, check_rng, whole_number
from vendimeter.present import tables
from vendimeter.present.notes import Advice, Note, sentences
from vendimeter.present.plain import plain
from vendimeter.present.progress import Progress, showing
from vendimeter.present.tables import DIGITS, OVER_GROUPS, Cell, Column, data_frame
from vendimeter.spectrum import parse_orders

__all__ = ["Table", "caveats", "choose_metrics", "compute_cells", "is_reference", "score_cells", "table"]

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
    notes : tuple of Note
        What a reader should know: sizes that differ, items left out, what stands behind ±.
    reference : str or other name, optional
        The collection that the others are compared with, if it is one of them.
    """

    names: tuple[Hashable, ...]
    columns: tuple[Column, ...]
    cells: tuple[tuple[Cell, ...], ...]
    notes: tuple[Note, ...] = ()
    reference: Hashable = None

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
        return {"rows": rows, "notes": plain(self.notes)}

    def to_frame(self) -> Any:
        """A pandas frame with one row a collection.

        Bounds and intervals are columns of their own, _low and _high; so is any other error that ± stands for, _error.
        """
        return data_frame(
            {
                name: [np.nan if value is None else value for value in values]
                for name, values in self._columns().items()
            }
        )

    def _columns(self) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {"collection": list(self.names)}
        for j, column in enumerate(self.columns):
            cells = [row[j] for row in self.cells]
            columns[column.name] = [cell.value for cell in cells]
            if any(cell.low is not None for cell in cells):
                columns[f"{column.name}_low"] = [cell.low for cell in cells]
                columns[f"{column.name}_high"] = [cell.high for cell in cells]
            elif any(cell.spread is not None for cell in cells):
                columns[f"{column.name}_error"] = [cell.spread for cell in cells]
        return columns

    @property
    def _reference_row(self) -> int | None:
        return self.names.index(self.reference) if self.reference in self.names else None

    def to_markdown(self, *, digits: int = DIGITS, best: bool = False) -> str:
        """The table in Markdown, with the notes below.

        Parameters
        ----------
        digits : int
            How many significant digits the smallest figure of a column shows.
        best : bool
            Whether the best figure of each column is bold; a collection that is the reference takes no part.
        """
        text = tables.markdown(
            self.names,
            self.columns,
            self.cells,
            digits=whole_number(digits, "digits"),
            best=best,
            apart=self._reference_row,
        )
        return text + "".join(f"\n{tables.markdown_escaped(note)}\n" for note in sentences(self.notes))

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
            Whether the best figure of each column is bold; a collection that is the reference takes no part.
        caption : str, optional
            The caption, as plain text: what LaTeX would take for commands is escaped.
        label : str, optional
            What ``\ref`` calls the table, such as "tab:models".
        """
        if label is not None and not (isinstance(label, str) and _LABEL.fullmatch(label)):
            raise InputError(
                f"label={brief(label)}; expected letters, digits and the marks : . / + - _ alone, such as 'tab:models'."
            )
        text = tables.latex(
            self.names,
            self.columns,
            self.cells,
            digits=whole_number(digits, "digits"),
            best=best,
            apart=self._reference_row,
            caption=caption,
            label=label,
        )
        return text + "".join(f"% {tables.latex_escaped(note)}\n" for note in sentences(self.notes))

    def __repr__(self) -> str:
        return tables.plain_text(self.names, self.columns, self.cells, sentences(self.notes))

    def _repr_html_(self) -> str:
        return tables.html_page(self.names, self.columns, self.cells, sentences(self.notes))


def table(
    samples: Any,
    kernel: Any = COSINE,
    *,
    by: Any = None,
    reference: Any = None,
    features: Any = None,
    probabilities: Any = None,
    logits: bool = False,
    groups: bool | None = None,
    metrics: Any = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    q: Any = 1,
    tol: float | None = None,
    rng: int = SEED,
    progress: bool | None = None,
) -> Table:
    """The metrics that apply to some collections, side by side with their Vendi Scores.

    What the samples are is never guessed: the kernel says it. Beside the score and IntDiv, kernels of vectors (and
    encoders) give the distances and overlaps with a reference; kernels of texts n-gram diversity, self-BLEU and the
    compression ratio; kernels of molecules what `molecules` gives; ``"probability-product"``, or `probabilities`,
    the metrics of classes.

    Parameters
    ----------
    samples : mapping, Collection, collection or Diversity
        A collection for each name, such as ``{"Original": X, "VAE": Y}``; or one collection with `by`; or a
        `vendimeter.Diversity`, of whose groups each has a row, or several of them by name.
    kernel : str, Kernel, callable, or mapping of them
        What makes two items similar; several by name, ``{"Inception": Embed(…), "pixels": Pixels()}``, give a score
        each. Parameters that come from data are fitted once, on all collections.
    by : list, array or name of a column, optional
        A label a sample (or a set of labels), by which one collection falls into several.
    reference : str or collection, optional
        What the collections are compared with: the name of one of them, or samples. With a name, that row stays empty
        where it would be compared with itself.
    features : Encoder, str or callable, optional
        What turns samples into the vectors that distances are measured between, if they are none.
    probabilities : mapping, optional
        Class probabilities of the samples, for each name an array of shape (samples, classes).
    logits : bool
        Whether these are logits.
    groups : bool, optional
        Whether each sample is a list of texts, such as the captions of one image: figures are then means over these
        groups, and the reference has a list for each. BLEU adds up the counts of all groups, and distances and overlaps
        are of all texts together. False where such lists are the tokens of one text.
    metrics : list of str, or mapping, optional
        What to show instead of all that apply, in this order, by the names of functions in `vendimeter.metrics`. The
        Vendi Score comes last unless ``"vendi_score"`` is among them. A mapping has titles: ``{"FID":
        "frechet_distance"}``, or a function of your own, ``{"Mean length": lambda texts: …}``.
    options : mapping, optional
        Options of metrics by their names, or titles, such as ``{"precision_recall": {"k": 5}}``.
    q : float, str or list of them
        The orders of the Vendi Score.
    tol : float, optional
        As for `vendimeter.score`; groups are scored exactly.
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
    distance, the standard deviation over splits for the Inception Score, and the standard error of a mean over groups;
    the notes of the table say which are there. The Vendi Score and the Fréchet distance depend on the number of
    samples: compare collections of one size.

    Metrics of texts count the tokens of the first kernel of texts. BLEU against a reference counts those of
    `corpus_bleu`, case included, unless that kernel was given a tokenizer.

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
    orders = parse_orders(q)[0]
    diversities = diversities_by_name(samples)
    if diversities:
        first = diversity_of(next(iter(diversities.values())), kernel, by=by, rng=rng)
        if groups:
            raise InputError(
                "groups=True was given beside a Diversity, of whose groups each has a row; expected lists of texts.",
                option="groups",
            )
        collections, rng = diversities, first.rng
        kernels = {"": first.similarity.kernel}
    else:
        collections, rng = split_collections(samples, by), check_rng(rng)
        kernels = kernels_by_name(kernel)
        refuse_matrices(kernel, collections)
    groups = None if groups is None else check_flag(groups, "groups")
    check_progress(progress)
    if check_flag(logits, "logits") and probabilities is None:
        raise InputError(
            "logits=True without probabilities; expected the logits in probabilities=. For samples that are logits "
            "themselves take kernel=ProbabilityProduct(logits=True)."
        )
    with showing(progress), Progress("metrics") as bar:
        rows_of_classes = (probabilities, bool(logits))
        rows, notes = table_rows(collections, kernels, reference, features, rows_of_classes, groups, rng)
        options = {} if options is None else options
        chosen = choose_metrics(metrics, options, rows)
        columns = columns_of(chosen, kernels, orders)
        cells = []
        for i, (name, row) in enumerate(zip(collections, rows, strict=True)):
            cells.append([Cell(row.n)])
            for j, (title, metric) in enumerate(chosen.items()):
                bar.step((i * len(chosen) + j) / (len(rows) * len(chosen)), f"{title} of {brief(name)}")
                with in_collection(name):
                    if metric is SCORE:
                        cells[-1] += score_cells(row, orders, tol)
                    else:
                        cells[-1] += compute_cells(metric, title, row, dict(options.get(title, {})))
            row.forget()
    group_sizes = [len(group) for row in rows if row.groups for group in row.samples]
    notes += caveats(chosen, rows, reference)
    notes += tables.notes_on(columns, cells, group_sizes)
    reference_name = next(
        (name for name, row in zip(collections, rows, strict=True) if is_reference(row, rows)), None
    )
    return Table(tuple(collections), tuple(columns), tuple(map(tuple, cells)), tuple(notes), reference_name)


# --------------------------------------------------------------------------------- choice of metrics, and their figures


def choose_metrics(metrics: Any, options: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """The metrics of the table by their titles: entries, the score, or the user's functions."""
    if not isinstance(options, Mapping) or not all(isinstance(value, Mapping) for value in options.values()):
        raise InputError(
            f"options={brief(options)}; expected a mapping from the name of a metric to its options, such as "
            "{'precision_recall': {'k': 5}}."
        )
    compared = any(row.reference is not None for row in rows)
    if metrics is None:
        read = set().union(*map(sample_kinds, rows))
        chosen: dict[str, Any] = {
            name: entry
            for name, entry in METRICS.items()
            if entry.default and entry.reads in read and (compared or not entry.reference)
        }
        if compared and any(row.groups for row in rows):
            chosen = {"corpus_bleu": METRICS["corpus_bleu"], **chosen}
        # Tokens have no compression ratio, and in that of the few texts of a group the header dominates.
        if "compression_ratio" in chosen and any(row.holds_lists for row in rows):
            del chosen["compression_ratio"]
    else:
        if isinstance(metrics, str) or not isinstance(metrics, Sequence | Mapping):
            raise InputError(
                f"metrics={brief(metrics)}; expected a list of names, such as ['intdiv', 'precision_recall']."
            )
        if not all(isinstance(name, str) for name in metrics):
            raise InputError(f"metrics={brief(metrics)}; expected names that are texts.")
        requested = dict(metrics) if isinstance(metrics, Mapping) else dict.fromkeys(metrics)
        chosen = {
            title: _find_metric(title, title if choice is None else choice, compared)
            for title, choice in requested.items()
        }
    if SCORE not in chosen.values():
        chosen["vendi_score"] = SCORE
    unknown_name = next((name for name in options if name not in chosen or chosen[name] is SCORE), None)
    if unknown_name is not None:
        raise unknown(
            "metric in this table (in options)",
            unknown_name,
            [name for name in chosen if chosen[name] is not SCORE],
        )
    for title, metric in chosen.items():
        if isinstance(metric, Entry):
            check_options(metric, title, options.get(title, {}))
    return chosen


def _find_metric(title: str, choice: Any, compared: bool) -> Any:
    """The metric of a column: an entry, the score, or the user's function."""
    if callable(choice):
        return choice
    if not isinstance(choice, str):
        raise InputError(
            f"metrics[{title!r}] is {brief(choice)}; expected the name of a metric, a function of samples, or None."
        )
    if choice == "vendi_score":
        return SCORE
    if choice not in METRICS:
        raise unknown("metric", choice, [*METRICS, "vendi_score"])
    entry = METRICS[choice]
    if entry.reference and not compared:
        raise InputError(
            f"{choice} compares with a reference, and there is none; expected reference=, samples or the name of a "
            "collection in the table."
        )
    return entry if title == choice else entry.with_title(title)


def is_reference(row: Row, rows: Sequence[Row]) -> bool:
    """Whether this row is the reference of the others in the table."""
    return row.reference is None and any(other.reference is not None for other in rows)


def caveats(chosen: Mapping[str, Any], rows: Sequence[Row], reference: Any) -> Iterator[Note]:
    """Notes on the choice of metrics: a reference that none uses, and Fréchet distances of too few items."""
    entries = [metric for metric in chosen.values() if isinstance(metric, Entry)]
    if reference is not None and not any(entry.reference or entry.name == "molecules" for entry in entries):
        advice = Advice(
            "Name such metrics in metrics=, or what turns samples into vectors in {}.", "features"
        )
        yield Note("reference-unused", "Nothing here compares with the reference.", advice=advice)
    if any(entry.name == "frechet_distance" for entry in entries):
        pairs = [(row.vectors, row.reference.vectors) for row in rows if row.reference is not None]
        shapes = [
            (min(vectors.shape[0], reference_vectors.shape[0]), vectors.shape[1])
            for vectors, reference_vectors in pairs
        ]
        if any(n <= columns for n, columns in shapes):
            n, columns = min(shapes)
            text = (
                f"FD is of as few as {n:,} items in {columns:,} columns: with no more items than columns its "
                "bias can outweigh the difference."
            )
            yield Note("few-items", text, {"n": n, "columns": columns})


def compute_cells(metric: Any, title: str, row: Row, options: dict[str, Any]) -> list[Cell]:
    """The figures of a metric, which is an entry or the user's function."""
    if not isinstance(metric, Entry):
        return [_number_cell(metric(row.samples, **options), f"the function {title!r}")]
    if (metric.reference and row.reference is None) or not metric.applies(row):
        return [Cell() for _ in metric.columns]
    if "rng" in metric.options():
        options = {"rng": row.rng, **options}
    return [
        _number_cell(figure, f"{metric.name}, with these options,")
        for figure in metric.figures_of(row, options)
    ]


def _number_cell(figure: Any, source: str) -> Cell:
    try:
        if isinstance(figure, str | bytes | bool) or getattr(figure, "shape", ()) != ():
            raise TypeError
        return cell_of(figure)
    except (TypeError, ValueError):
        raise InputError(f"{source} gave {brief(figure)}; expected a number.") from None


def score_cells(row: Row, orders: Sequence[float], tol: float | None) -> list[Cell]:
    """The Vendi Score of each order under each kernel; of groups their mean, with its standard error."""
    cells = []
    for kernel in row.kernels:
        diversity = row.diversity(kernel)
        if row.groups:
            means = [diversity.group_scores(q).mean().means[0] for q in orders]
            cells += [Cell(mean.mean, spread=mean.standard_error, behind=OVER_GROUPS) for mean in means]
        else:
            scores = diversity.score(orders, tol=tol, progress=False)
            cells += [cell_of(scores[q]) for q in orders]
    return cells
