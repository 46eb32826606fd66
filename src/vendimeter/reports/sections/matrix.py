"""The matrix of similarities as one small picture, its items in an order that makes it readable."""

from __future__ import annotations

import numpy as np

from vendimeter.analysis.orderings import by_label, evenly, first_label
from vendimeter.data.devices import to_host
from vendimeter.plots.matrices import colour_scale
from vendimeter.present.colours import coloured, png
from vendimeter.reports.analyses import Analyses
from vendimeter.reports.document import Block, Gallery, Item, Paragraph, Section
from vendimeter.reports.words import counted, figure, named

__all__ = ["section"]

MOST = 250  # items
SIDE = 250  # pixels
BLOCKS = 24  # labels whose places are said


def section(analyses: Analyses) -> Section | None:
    """The picture, with what its colours mean; nothing for a single item."""
    subject = analyses.subject
    if subject.n < 2:
        return None
    found, groups = analyses.modes, subject.groups
    order = found.order
    grouped = groups is not None and 1 < len(groups.labels) <= BLOCKS
    if grouped:
        assert groups is not None
        order = by_label(groups, order)
    chosen = evenly(order, MOST)
    matrix = np.asarray(to_host(subject.similarity.take(chosen).dense()))
    how = colour_scale(matrix, None)
    low, high = how["vmin"], how["vmax"]
    scale = max(1, SIDE // len(chosen))
    pixels = coloured(matrix, low=low, high=high, colours=how["cmap"])
    picture = png(np.kron(pixels, np.ones((scale, scale, 1), dtype=np.uint8)))
    ramp = coloured(np.linspace(low, high, SIDE)[None, :], low=low, high=high, colours=how["cmap"])
    strip = png(np.repeat(ramp, 12, axis=0))
    some = (
        f"{len(chosen):,} of {subject.n:,} items, evenly"
        if len(chosen) < subject.n
        else counted(subject.n, "item")
    )
    whose = "collection" if subject.several else "list" if subject.nested else "group"
    ordered = f"{whose} by {whose}" if grouped else "like items beside each other"
    below, above = matrix.min() < low, matrix.max() > high + 1e-9
    least, most = (
        f"{figure(low, 2)}{' and less' if below else ''}",
        f"{figure(high, 2)}{' and more' if above else ''}",
    )
    ends = f"{least} (left) to {most} (right)"
    blocks: list[Block] = [
        Gallery([Item("", picture, caption=f"{some}, {ordered}")], large=True),
        Gallery([Item("", strip, caption=f"the colours: similarities of {ends}")], large=True),
    ]
    apart = matrix[np.triu_indices(len(matrix), 1)]
    lead = (
        f"Every pixel is the similarity of two items, {ordered}, so that squares along the diagonal are sets of items "
        f"that are alike. The mean similarity of two different items is {figure(float(apart.mean()), 3)}, the "
        f"median {figure(float(np.median(apart)), 3)}."
    )
    if grouped:
        assert groups is not None
        blocks.append(Paragraph(_blocks(first_label(groups, subject.n)[chosen], list(groups.labels))))
    return Section("matrix", "The similarity matrix", lead, blocks)


def _blocks(label: np.ndarray, labels: list[object]) -> str:
    """Which rows are of which label."""
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(label)) + 1, [len(label)]])
    words = []
    for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        name = "no label" if label[start] < 0 else named(labels[label[start]], 24)
        words.append(f"{name} (rows {start + 1} to {end})")
    return f"From the top: {', '.join(words)}."
