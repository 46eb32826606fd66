"""Galleries: what is in the least and the most diverse classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from vendimeter.data import frames
from vendimeter.data.arrays import length
from vendimeter.data.groups import Grouping
from vendimeter.diversity import Diversity, diversity_of
from vendimeter.errors import EmptyError, InputError
from vendimeter.messages import unknown
from vendimeter.options import COSINE, SEED, whole_number
from vendimeter.plots.items import CELLS, Sheet, check_kind, item_at, kind_of
from vendimeter.plots.style import Display, label_text
from vendimeter.solvers.sums import row_sums
from vendimeter.spectrum import parse_order

__all__ = ["gallery"]

# Items of a class, unless told.
DEFAULT_COUNTS = {"images": 100, "vectors": 24, "molecules": 16, "texts": 12, "other": 12}
COLUMNS = {"images": 10, "vectors": 3, "molecules": 4, "texts": 2, "other": 2}
HEADING_HEIGHT, GAP = 0.42, 0.3  # inches above a class, and between two


def gallery(
    samples: Any,
    kernel: Any = COSINE,
    *,
    by: Any = None,
    items: Any = None,
    classes: Sequence[Any] | None = None,
    lowest: int = 1,
    highest: int = 1,
    count: int | None = None,
    columns: int | None = None,
    kind: str | None = None,
    q: Any = 1,
    weights: Any = None,
    counts: Any = None,
    rng: int = SEED,
    ax: Any = None,
) -> Display:
    """The classes with the lowest and the highest score, each with its items in decreasing order of mean similarity.

    The first item of a class, at the upper left, is the one that is most similar to the others of the class.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection or Diversity
        The items, as for `vendimeter.score`.
    kernel : str, Kernel or callable
        As for `vendimeter.score`; parameters that come from data are fitted on all items.
    by : list, array, or name of a column
        One label (or set of labels) an item, as for `vendimeter.score_groups`.
    items : array, list or table, optional
        What to draw, one an item, such as the pictures where the samples are their embeddings; the samples themselves
        by default.
    classes : list, optional
        The labels of the classes to draw, in this order, in place of the lowest and highest.
    lowest, highest : int
        How many classes of low and of high score; 0 for none.
    count : int, optional
        How many items of each class, the most similar ones of them; 100 pictures, 16 molecules, 12 texts by default.
    columns : int, optional
        Items side by side.
    kind : {"images", "texts", "molecules", "vectors", "other"}, optional
        What the items are; told by the kernel and the items without it.
    q : float or str
        The order of the score.
    weights, counts : array of shape (n,), optional
        As for `vendimeter.score_groups`.
    rng : int
        Seed of everything random.
    ax : matplotlib.axes.Axes, optional
        The axes to draw on; a new figure without them.

    Returns
    -------
    Display

    References
    ----------
    Friedman and Dieng: The Vendi Score, TMLR 2023, the figures of the categories of CIFAR-100, Fashion MNIST, CelebA
    and GoodScents with the lowest and highest score, of 100 examples each.

    Examples
    --------
    >>> import vendimeter as vm
    >>> from matplotlib.figure import Figure
    >>> words = ["ape", "ape", "bee", "cat", "dog"]
    >>> drawn = vm.plots.gallery(words, "match", by=["x", "x", "x", "y", "y"], ax=Figure().subplots())
    >>> [text.get_text() for text in drawn.ax_.texts]
    ['x: 1.89 of 3', 'ape', 'ape', 'bee', 'y: 2 of 2', 'cat', 'dog']
    """
    check_kind(kind)
    order, chosen = parse_order(q), (classes, lowest, highest)
    diversity = diversity_of(samples, kernel, weights=weights, counts=counts, by=by, rng=rng)
    with diversity.asked():
        groups = diversity.groups
        if groups is None:
            raise InputError(
                "a gallery shows classes, and there are no labels; expected by=labels, one an item."
            )
        classes_drawn = _score_classes(diversity, groups, order, chosen)
    drawn = diversity.samples
    if items is not None:
        drawn = frames.known(items)
        if length(drawn) != diversity.n:
            raise InputError(
                f"items has {length(drawn)} entries and there are {diversity.n} samples; expected one an item."
            )
    elif kind is None and diversity.kind in CELLS:
        kind = diversity.kind
    if kind is None:
        fitted_kernel = diversity.similarity.kernel if items is None else None
        kind = kind_of(item_at(drawn, int(classes_drawn[0].items[0])), fitted_kernel)
    return _lay_out(classes_drawn, drawn, kind, count, columns, ax)


class _Class:
    """A class to be drawn: its label, its score, how many items it has, and their positions in order."""

    def __init__(self, label: Any, score: float, size: int, items: np.ndarray):
        self.label, self.score, self.size, self.items = label, score, size, items

    @property
    def heading(self) -> str:
        return f"{label_text(self.label)}: {self.score:.3g} of {self.size:,}"


def _score_classes(diversity: Diversity, groups: Grouping, order: float, chosen: Any) -> list[_Class]:
    """The classes to draw."""
    scores = diversity.group_scores(order).scores
    similarity, all_shares = diversity.similarity, groups.shares
    classes = []
    for g in _select_classes(groups, scores, *chosen):
        entries = slice(groups.starts[g], groups.starts[g + 1])
        items, shares = groups.items[entries], all_shares[entries]
        # The mean similarity of each item with all of its class, as of `vendimeter.metrics.mean_similarity`.
        means = row_sums(similarity.take(items), shares, shares, items)
        by_mean = items[np.argsort(-means, kind="stable")]
        classes.append(_Class(groups.labels[g], float(scores[g]), int(groups.sizes[g]), by_mean))
    return classes


def _select_classes(
    groups: Grouping, scores: np.ndarray, classes: Any, lowest: Any, highest: Any
) -> list[int]:
    if classes is not None:
        index_of = {label: g for g, label in enumerate(groups.labels)}
        if isinstance(classes, str) or not len(classes):
            raise InputError("classes is empty or a text; expected a list of labels.")
        for label in classes:
            if label not in index_of:
                raise unknown("class", label, groups.labels)
            if math.isnan(scores[index_of[label]]):
                raise EmptyError(f"class {label!r} is empty; expected one with items.")
        return [index_of[label] for label in classes]
    low, high = (
        0 if number == 0 else whole_number(number, name)
        for number, name in ((lowest, "lowest"), (highest, "highest"))
    )
    ranked = [int(g) for g in np.argsort(scores, kind="stable") if not math.isnan(scores[g])]
    if low + high == 0 or not ranked:
        raise EmptyError(
            "no class is to be drawn; expected lowest or highest of 1 or more, and a class with items."
        )
    return ranked if low + high >= len(ranked) else ranked[:low] + ranked[len(ranked) - high :]


def _lay_out(classes: list[_Class], items: Any, kind: str, count: Any, columns: Any, ax: Any) -> Display:
    max_items = DEFAULT_COUNTS[kind] if count is None else whole_number(count, "count")
    per_row = min(COLUMNS[kind] if columns is None else whole_number(columns, "columns"), max_items)
    width, height = CELLS[kind]
    panel = max(per_row * width, 1.6)
    per_line = min(len(classes), max(1, round(13 / (panel + GAP)))) if len(classes) > 2 else len(classes)
    per_line = -(-len(classes) // -(-len(classes) // per_line))  # lines as even as possible
    lines = [classes[start : start + per_line] for start in range(0, len(classes), per_line)]
    rows_of_line = [
        max(-(-min(len(shown_class.items), max_items) // per_row) for shown_class in line) for line in lines
    ]
    tops = np.cumsum([0.0, *(HEADING_HEIGHT + count * height for count in rows_of_line)]).tolist()
    sheet = Sheet(ax, per_line * panel + (per_line - 1) * GAP, tops[-1])
    for top, line in zip(tops, lines, strict=False):
        for column, shown_class in enumerate(line):
            left = column * (panel + GAP)
            sheet.write(shown_class.heading, left + 0.02, top + 0.62 * HEADING_HEIGHT, va="center", size=10)
            for i, position in enumerate(shown_class.items[:max_items].tolist()):
                x, y = left + i % per_row * width, top + HEADING_HEIGHT + i // per_row * height
                sheet.put(item_at(items, position), kind, x, y)
    return Display(sheet.ax, (sheet.ax,))
