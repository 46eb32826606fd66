"""The matrix of similarities as one small picture, its items in an order that makes it readable."""

from __future__ import annotations

import numpy as np

from vendimeter.analysis.orderings import by_label, evenly, first_label
from vendimeter.data.devices import to_host
from vendimeter.plots.matrices import colour_scale
from vendimeter.present.colours import coloured, png
from vendimeter.present.numbers import count_of, format_number
from vendimeter.reports.document import Block, Gallery, Item, Paragraph, Section
from vendimeter.reports.findings import Findings
from vendimeter.reports.words import label_name

__all__ = ["section"]

MAX_ITEMS = 250  # items
PICTURE_PIXELS = 250  # pixels
MAX_BLOCKS = 24  # labels whose places are said


def section(findings: Findings) -> Section | None:
    """The picture, with what its colours mean; nothing for a single item."""
    if findings.diversity.n < 2:
        return None
    mode_analysis, groups = findings.modes, findings.sample.groups
    order = mode_analysis.order
    grouped = groups is not None and 1 < len(groups.labels) <= MAX_BLOCKS
    if grouped:
        assert groups is not None
        order = by_label(groups, order)
    positions = evenly(order, MAX_ITEMS)
    matrix = np.asarray(to_host(findings.diversity.subsets.take(positions).dense()))
    colours = colour_scale(matrix, None)
    low, high = colours["vmin"], colours["vmax"]
    scale = max(1, PICTURE_PIXELS // len(positions))
    pixels = coloured(matrix, low=low, high=high, colours=colours["cmap"])
    picture = png(np.kron(pixels, np.ones((scale, scale, 1), dtype=np.uint8)))
    ramp = coloured(
        np.linspace(low, high, PICTURE_PIXELS)[None, :], low=low, high=high, colours=colours["cmap"]
    )
    strip = png(np.repeat(ramp, 12, axis=0))
    count_words = (
        f"{len(positions):,} of {findings.diversity.n:,} items, evenly"
        if len(positions) < findings.diversity.n
        else count_of(findings.diversity.n, "item")
    )
    noun = "collection" if findings.has_several else "list" if findings.are_lists else "group"
    order_words = f"{noun} by {noun}" if grouped else "like items beside each other"
    below, above = matrix.min() < low, matrix.max() > high + 1e-9
    low_words, high_words = (
        f"{format_number(low, 2)}{' and less' if below else ''}",
        f"{format_number(high, 2)}{' and more' if above else ''}",
    )
    ends = f"{low_words} (left) to {high_words} (right)"
    blocks: list[Block] = [
        Gallery([Item("", picture, caption=f"{count_words}, {order_words}")], large=True),
        Gallery([Item("", strip, caption=f"the colours: similarities of {ends}")], large=True),
    ]
    off_diagonal = matrix[np.triu_indices(len(matrix), 1)]
    lead = (
        f"Every pixel is the similarity of two items, {order_words}, so that squares along the diagonal are sets of "
        "items that are alike. The mean similarity of two different items is "
        f"{format_number(float(off_diagonal.mean()), 3)}, the median "
        f"{format_number(float(np.median(off_diagonal)), 3)}."
    )
    if grouped:
        assert groups is not None
        blocks.append(
            Paragraph(_block_words(first_label(groups, findings.diversity.n)[positions], list(groups.labels)))
        )
    return Section("matrix", "The similarity matrix", lead, blocks)


def _block_words(label: np.ndarray, labels: list[object]) -> str:
    """Which rows are of which label."""
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(label)) + 1, [len(label)]])
    words = []
    for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        name = "no label" if label[start] < 0 else label_name(labels[label[start]], 24)
        words.append(f"{name} (rows {start + 1} to {end})")
    return f"From the top: {', '.join(words)}."
