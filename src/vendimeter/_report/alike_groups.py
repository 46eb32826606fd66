"""How alike groups are: a chart of similarities, or a picture where they are many, and the most alike pairs."""

from __future__ import annotations

import numpy as np

from vendimeter._report.document import Block, Column, Gallery, Item, Paragraph, Table
from vendimeter._report.words import figure
from vendimeter.analysis.comparison.comparison import Comparison
from vendimeter.plots.comparison import _beside
from vendimeter.present.charts import Axis, Layer, chart
from vendimeter.present.colours import coloured, png

__all__ = ["alike"]

CELLS = 30  # groups whose similarities are a chart; those of more are a picture
SIDE = 250  # pixels of that
PAIRS = 20  # pairs of groups in a table


def alike(found: Comparison, names: list[str], what: str) -> list[Block]:
    """How alike the groups are; `what` is what one of them is called."""
    if found.similarity is None:
        return []
    there = np.flatnonzero(~np.isnan(np.diagonal(found.similarity)))
    if len(there) < 2:
        return []
    order = there[_beside(found.similarity[np.ix_(there, there)])]
    matrix = found.similarity[np.ix_(order, order)]
    a, b = np.triu_indices(len(order), 1)
    nearest = np.argsort(-matrix[a, b], kind="stable")[:PAIRS]
    rows = [[names[order[a[i]]], names[order[b[i]]], float(matrix[a[i], b[i]])] for i in nearest.tolist()]
    pairs = Table(
        [Column(what), Column("is like"), Column("similarity", "bar", digits=3)],
        rows,
        "The pairs that are most alike.",
        more=len(a) - len(rows),
    )
    words = (
        f"How alike any two {what}s are, from 0 (nothing in common) to 1 (of the same composition). Most alike are "
        f"{rows[0][0]} and {rows[0][1]} with {figure(rows[0][2], 3)}; in the mean it is "
        f"{figure(float(matrix[a, b].mean()), 3)}."
    )
    if len(order) == 2:
        return [
            Paragraph(
                f"{rows[0][0]} and {rows[0][1]} are alike to {figure(rows[0][2], 3)}, from 0 (nothing in common) to 1 "
                "(of the same composition)."
            )
        ]
    if len(order) > CELLS:
        return [_picture(matrix, words, what), pairs]
    shown = [names[g] for g in order.tolist()]
    cells = [
        {"x": shown[j], "y": shown[i], "value": float(matrix[i, j])}
        for i in range(len(order))
        for j in range(len(order))
    ]
    drawn = chart(
        f"How alike the {what}s are",
        words,
        Axis("", names=shown),
        Axis("", names=shown),
        [Layer("cell", cells, {"y": what, "x": "with", "value": "similarity"})],
        table=pairs,
        height=max(200, min(620, 120 + 26 * len(order))),
    )
    return [drawn]


def _picture(matrix: np.ndarray, words: str, what: str) -> Gallery:
    low = float(matrix.min())
    scale = max(1, SIDE // len(matrix))
    pixels = np.kron(coloured(matrix, low=low), np.ones((scale, scale, 1), dtype=np.uint8))
    caption = f"dark: {figure(low, 2)}; light: 1; {what}s that are alike are beside each other"
    return Gallery([Item("", png(pixels), caption=caption)], f"How alike the {what}s are", words, large=True)
