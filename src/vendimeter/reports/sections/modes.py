"""Modes: what the collection is made of, with real samples at both ends of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter.analysis.eigenmodes import Modes
from vendimeter.present.numbers import count_of, format_share
from vendimeter.reports.charts import PERCENT, Axis, Layer, chart, distinct_names
from vendimeter.reports.document import Block, Chart, Column, Gallery, Group, Section, Table
from vendimeter.reports.items import ItemRenderer
from vendimeter.reports.words import label_name, note

__all__ = ["section"]

ROWS_SEARCHED = 6  # rows of items at an end, of which one is shown: copies of one thing are shown once
ROUNDING = 1e-6  # of a loading
UNFOLDED_MODES = 4  # modes whose samples are seen at once; the others are folded
MAX_LABELS = 7  # that have a colour of their own
MIN_LABELLED_SHARE = 0.3  # share of some mode that these labels have, or there is nothing to see
MIN_NAMED_SHARE = 0.03  # share of a mode from which on a label is in its title


def section(modes: Modes, renderer: ItemRenderer) -> Section:
    """The leading modes, each with the samples at its ends."""
    total_share = float(modes.shares.sum())
    share_words = format_share(min(total_share, 1.0))
    lead = f"There is one mode, which holds {share_words} of the whole: all items are alike."
    if len(modes) > 1:
        largest = ", ".join(format_share(float(share)) for share in modes.shares[:3])
        first = (
            "" if modes.loadings[:, 0].min() < -ROUNDING else " The first one is what items have in common."
        )
        lead = (
            f"The {count_of(len(modes), 'leading mode')} hold {share_words} of the whole: {largest}"
            f"{' and less' if len(modes) > 3 else ''}. Each is a direction in which items vary; the samples at its two "
            f"ends show what it is about.{first}"
        )
    blocks: list[Block] = []
    if len(modes) > 1:
        blocks.append(_shares(modes))
    composition = modes.composition
    if composition is not None and len(modes.labels or ()) > 1:
        blocks += _composition(modes)
    for mode in range(len(modes)):
        blocks.append(_mode(modes, mode, renderer))
    if modes.degenerate.any():
        listed = ", ".join(str(a + 1) for a in np.flatnonzero(modes.degenerate)[:8])
        blocks.append(
            note(
                f"The eigenvalues of the modes {listed} are as good as equal to a neighbour's: their directions are "
                "arbitrary within the space that they span."
            )
        )
    if not modes.settled:
        blocks.append(note(f"The modes have not settled: residuals are up to {modes.residuals.max():.1e}."))
    return Section("modes", "What it is made of", lead, blocks)


def _shares(modes: Modes) -> Chart:
    names = [str(a + 1) for a in range(len(modes))]
    sums = np.cumsum(modes.shares)
    rows = [
        {"x": name, "y": float(share), "sum": float(total)}
        for name, share, total in zip(names, modes.shares, sums, strict=True)
    ]
    table = Table(
        [Column("mode", "number"), Column("share", "bar"), Column("sum so far", "number")],
        [[a + 1, row["y"], row["sum"]] for a, row in enumerate(rows)],
    )
    return chart(
        "Shares of the modes",
        f"How much of the whole each of the leading modes holds; the first {format_share(float(modes.shares[0]))}.",
        Axis("mode", names=names),
        Axis("share of the whole", zero=True, form=PERCENT),
        [Layer("bar", rows, {"x": "mode", "y": "share"})],
        table=table,
        height=200,
    )


def _composition(modes: Modes) -> list[Block]:
    """Which labels the modes are made of; the most common ones by name, if these make up much of them."""
    assert modes.composition is not None
    assert modes.labels is not None
    top = np.argsort(-(modes.shares @ modes.composition), kind="stable")[:MAX_LABELS]
    if modes.composition[:, top].sum(axis=1).max() < MIN_LABELLED_SHARE:
        return []
    names = distinct_names(modes.labels[g] for g in top.tolist())
    has_rest = len(modes.labels) > MAX_LABELS
    rest = next(name for name in ("all others", "all the others", "others of all") if name not in names)
    rows: list[dict[str, Any]] = []
    cells: list[list[Any]] = []
    for mode, label_shares in enumerate(modes.composition):
        start = 0.0
        pieces = [(name, float(label_shares[g])) for name, g in zip(names, top.tolist(), strict=True)]
        rest_share = max(0.0, 1.0 - sum(share for _, share in pieces))
        for name, share in [*pieces, *([(rest, rest_share)] if has_rest else [])]:
            rows.append(
                {
                    "y": str(mode + 1),
                    "from": start,
                    "to": min(start + share, 1.0),
                    "series": name,
                    "share": share,
                }
            )
            start += share
        cells.append([mode + 1, *(share for _, share in pieces)])
    table = Table([Column("mode", "number"), *(Column(name, "number", digits=3) for name in names)], cells)
    bar_chart = chart(
        "What the modes are made of",
        "The share of each label in each mode.",
        Axis("share of the mode", ends=(0.0, 1.0), form=PERCENT),
        Axis("mode", names=[str(a + 1) for a in range(len(modes))]),
        [Layer("span", rows, {"y": "mode", "series": "label", "share": "share"})],
        rest=rest if has_rest else None,
        table=table,
        height=90 + 26 * len(modes),
    )
    return [bar_chart]


def _mode(modes: Modes, mode: int, renderer: ItemRenderer) -> Group:
    ends = modes.exemplars(mode, ROWS_SEARCHED * renderer.per_row)
    loadings = modes.loadings[:, mode]
    high = ends.high[loadings[ends.high] > ROUNDING]
    low = ends.low[loadings[ends.low] < loadings.max() - ROUNDING]  # else all have the same
    blocks: list[Block] = [_gallery(modes, mode, high, renderer, "Highest")]
    if len(low):
        blocks.append(_gallery(modes, mode, low, renderer, "Lowest"))
    title = f"Mode {mode + 1}: {format_share(float(modes.shares[mode]))} of the whole"
    if modes.composition is not None and modes.labels is not None and len(modes.labels) > 1:
        label_shares = modes.composition[mode]
        top = np.argsort(-label_shares, kind="stable")[:3]
        label_words = [
            f"{label_name(modes.labels[g], 24)} {format_share(float(label_shares[g]))}"
            for g in top.tolist()
            if label_shares[g] >= MIN_NAMED_SHARE
        ]
        title += " · " + ", ".join(label_words) if label_words else ""
    return Group(title, blocks, folded=mode >= UNFOLDED_MODES)


def _loading(value: float) -> str:
    return f"{value + 0.0 if abs(value) >= 0.005 else 0.0:.2f}".replace("-", "−")


def _gallery(modes: Modes, mode: int, items: np.ndarray, renderer: ItemRenderer, end: str) -> Gallery:
    loadings = modes.loadings[:, mode]
    items_shown = renderer.distinct(items, lambda item: f"loading {_loading(float(loadings[item]))}")
    return Gallery(items_shown[: renderer.per_row], f"{end} loadings")
