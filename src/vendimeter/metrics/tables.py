"""Metrics side by side with the Vendi Score: the tables of the paper, for the user's own models."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.errors import InputError, brief, unknown
from vendimeter.kernels import Kernel
from vendimeter.metrics.inputs import (
    Given,
    givens_of,
    kernels_of,
    kinds_of,
    naming,
    parts_of,
    refuse_matrices,
)
from vendimeter.metrics.registry import METRICS, SCORE, Entry, cell_of, check_options, columns_of, options_of
from vendimeter.options import check_flag, check_progress, check_rng, whole_number
from vendimeter.present import tables as rendering
from vendimeter.present.progress import Progress, showing
from vendimeter.present.tables import DIGITS, OVER_GROUPS, Cell, Column
from vendimeter.results.base import plain
from vendimeter.results.score import data_frame
from vendimeter.scoring import score, score_groups
from vendimeter.spectrum import parse_orders

__all__ = ["Table", "caveats", "chosen_metrics", "computed", "is_reference", "scores", "table"]


# -------------------------------------------------------------------------------------------------------------- choice

# Which metrics a table shows, asked or unasked, and the figures of each.


def chosen_metrics(
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
        # Tokens have no compression ratio, and that of a few texts is that of the header.
        if "compression_ratio" in chosen and any(given.lists for given in givens):
            del chosen["compression_ratio"]
    else:
        if isinstance(metrics, str) or not isinstance(metrics, Sequence | Mapping):
            raise InputError(
                f"metrics={brief(metrics)}; expected a list of names, such as ['intdiv', 'precision_recall']."
            )
        if not all(isinstance(name, str) for name in metrics):
            raise InputError(f"metrics={brief(metrics)}; expected names that are texts.")
        own = dict(metrics) if isinstance(metrics, Mapping) else dict.fromkeys(metrics)
        chosen = {
            title: _metric(title, title if given is None else given, compared) for title, given in own.items()
        }
    if SCORE not in chosen.values():
        chosen["vendi_score"] = SCORE
    odd = next((name for name in options if name not in chosen or chosen[name] is SCORE), None)
    if odd is not None:
        raise unknown(
            "metric in this table (in options)", odd, [name for name in chosen if chosen[name] is not SCORE]
        )
    for title, metric in chosen.items():
        if isinstance(metric, Entry):
            check_options(metric.name, title, options.get(title, {}))
    return chosen


def _metric(title: str, given: Any, compared: bool) -> Any:
    """An entry, the score, or a function of the user's own."""
    if callable(given):
        return given
    if not isinstance(given, str):
        raise InputError(
            f"metrics[{title!r}] is {brief(given)}; expected the name of a metric, a function of samples, or None."
        )
    if given == "vendi_score":
        return SCORE
    if given not in METRICS:
        raise unknown("metric", given, [*METRICS, "vendi_score"])
    entry = METRICS[given]
    if entry.reference and not compared:
        raise InputError(
            f"{given} compares with a reference, and there is none; expected reference=, samples or the name of a "
            "collection in the table."
        )
    return entry if title == given else entry.titled(title)


def is_reference(given: Given, givens: Sequence[Given]) -> bool:
    """Whether the others of the table are compared with this one."""
    return given.reference is None and any(other.reference is not None for other in givens)


def caveats(chosen: Mapping[str, Any], givens: Sequence[Given], reference: Any) -> list[str]:
    """What the choice of metrics leaves open."""
    entries = [metric for metric in chosen.values() if isinstance(metric, Entry)]
    notes = []
    if reference is not None and not any(entry.reference or entry.name == "molecules" for entry in entries):
        notes.append(
            "Nothing here compares with the reference: name such metrics in metrics=, or what turns samples into "
            "vectors in features=."
        )
    if any(entry.name == "frechet_distance" for entry in entries):
        pairs = [(given.vectors, given.reference.vectors) for given in givens if given.reference is not None]
        few = [(min(own.shape[0], other.shape[0]), own.shape[1]) for own, other in pairs]
        if any(n <= columns for n, columns in few):
            n, columns = min(few)
            notes.append(
                f"FD is of as few as {n:,} items in {columns:,} columns: with no more items than columns its "
                "bias can outweigh the difference."
            )
    return notes


def computed(
    metric: Any, title: str, given: Given, options: dict[str, Any], kernels: Mapping[str, Kernel], rng: int
) -> list[Cell]:
    """The figures of a metric, an entry or a function of the user's own."""
    if not isinstance(metric, Entry):
        return [_cell(metric(given.samples, **options), f"the function {title!r}")]
    if (metric.reference and given.reference is None) or not metric.applies(given):
        return [Cell() for _ in metric.columns]
    if "rng" in options_of(metric.name):
        options = {"rng": rng, **options}
    if metric.kernel:
        found = [cell for one in kernels.values() for cell in metric.compute(given, options, one)]
    else:
        found = metric.compute(given, options)
    return [_cell(one, f"{metric.name}, with these options,") for one in found]


def _cell(found: Any, what: str) -> Cell:
    try:
        if isinstance(found, str | bytes | bool) or getattr(found, "shape", ()) != ():
            raise TypeError
        return cell_of(found)
    except (TypeError, ValueError):
        raise InputError(f"{what} gave {brief(found)}; expected a number.") from None


def scores(given: Given, kernel: Kernel, orders: Sequence[float], tol: float | None, rng: int) -> list[Cell]:
    """The Vendi Score of each order; of groups their mean, with its standard error."""
    samples, kernel = given.under(kernel)
    if given.groups:
        means = [score_groups(samples, kernel, q=q, rng=rng).mean().means[0] for q in orders]
        return [Cell(mean.mean, spread=mean.standard_error, behind=OVER_GROUPS) for mean in means]
    found = score(samples, kernel, q=list(orders), weights=given.weights, tol=tol, rng=rng, progress=False)
    return [cell_of(found[q]) for q in orders]


# -------------------------------------------------------------------------------------------------------------- tables

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
    reference : str or other name, optional
        The collection that the others are compared with, if it is one of them.
    """

    names: tuple[Hashable, ...]
    columns: tuple[Column, ...]
    cells: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
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
        columns["collection"] = [_plain_name(name) for name in self.names]
        rows = [{name: plain(values[i]) for name, values in columns.items()} for i in range(len(self.names))]
        return {"rows": rows, "notes": list(self.notes)}

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
        found: dict[str, list[Any]] = {"collection": list(self.names)}
        for j, column in enumerate(self.columns):
            cells = [row[j] for row in self.cells]
            found[column.name] = [cell.value for cell in cells]
            if any(cell.low is not None for cell in cells):
                found[f"{column.name}_low"] = [cell.low for cell in cells]
                found[f"{column.name}_high"] = [cell.high for cell in cells]
            elif any(cell.spread is not None for cell in cells):
                found[f"{column.name}_error"] = [cell.spread for cell in cells]
        return found

    @property
    def _apart(self) -> int | None:
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
        texts = self._texts(digits)
        shown = rendering.markdown(self.names, self.columns, texts, best=best, apart=self._apart)
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
        texts = self._texts(digits)
        shown = rendering.latex(
            self.names, self.columns, texts, best=best, apart=self._apart, caption=caption, label=label
        )
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
    logits: bool = False,
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
    names, parts = parts_of(samples, by)
    orders = parse_orders(q)[0]
    rng = check_rng(rng)
    kernels = kernels_of(kernel)
    refuse_matrices(kernel, names, parts)
    groups = None if groups is None else check_flag(groups, "groups")
    check_progress(progress)
    if check_flag(logits, "logits") and probabilities is None:
        raise InputError(
            "logits=True without probabilities; expected the logits in probabilities=. For samples that are logits "
            "themselves take kernel=ProbabilityProduct(logits=True)."
        )
    with showing(progress), Progress("metrics") as bar:
        rows_of_classes = (probabilities, bool(logits))
        givens, notes = givens_of(names, parts, kernels, reference, features, rows_of_classes, groups, rng)
        options = {} if options is None else options
        chosen = chosen_metrics(metrics, options, givens, list(kernels.values()))
        columns = columns_of(chosen, kernels, orders)
        rows = [[Cell(given.n)] for given in givens]
        steps = len(givens) * len(chosen)
        for i, (title, metric) in enumerate(chosen.items()):
            for j, (row, name, given) in enumerate(zip(rows, names, givens, strict=True)):
                bar.step((i * len(givens) + j) / steps, f"{title} of {brief(name)}")
                with naming(name):
                    if metric is SCORE:
                        row += [
                            cell for one in kernels.values() for cell in scores(given, one, orders, tol, rng)
                        ]
                    else:
                        row += computed(metric, title, given, dict(options.get(title, {})), kernels, rng)
    groups_of = [len(group) for given in givens if given.groups for group in given.samples]
    notes += caveats(chosen, givens, reference)
    notes += rendering.notes_on(columns, rows, groups_of)
    named = next(
        (name for name, given in zip(names, givens, strict=True) if is_reference(given, givens)), None
    )
    return Table(tuple(names), tuple(columns), tuple(map(tuple, rows)), tuple(notes), named)


def _plain_name(name: Any) -> Any:
    """The name of a collection as JSON can write it: what is no text or number becomes text, and a tuple a list."""
    if isinstance(name, tuple):
        return [_plain_name(part) for part in name]
    found = plain(name)
    return found if isinstance(found, str | int | float | None) else str(found)
