"""Modes: what the collection is made of, with real samples at both ends of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter.analysis.eigenmodes import Modes
from vendimeter.reports.analyses import Analyses
from vendimeter.reports.charts import PERCENT, Axis, Layer, chart, distinct_names
from vendimeter.reports.document import Block, Chart, Column, Gallery, Group, Section, Table
from vendimeter.reports.words import counted, named, note, shares

__all__ = ["section"]

LOOKED_AT = 6  # rows of items at an end, of which one is shown: copies of one thing are shown once
ROUNDING = 1e-6  # of a loading
OPEN = 4  # modes whose samples are seen at once; the others are folded
LABELS = 7  # that have a colour of their own
TELLING = 0.3  # share of some mode that these labels have, or there is nothing to see
NAMED = 0.03  # share of a mode from which on a label is in its title


def section(analyses: Analyses) -> Section:
    """The leading modes, each with the samples at its ends."""
    found, shown = analyses.modes, analyses.subject.shown
    held = float(found.shares.sum())
    whole = shares(min(held, 1.0))
    lead = f"There is one mode, which holds {whole} of the whole: all items are alike."
    if len(found) > 1:
        largest = ", ".join(shares(float(one)) for one in found.shares[:3])
        first = (
            "" if found.loadings[:, 0].min() < -ROUNDING else " The first one is what items have in common."
        )
        lead = (
            f"The {counted(len(found), 'leading mode')} hold {whole} of the whole: {largest}"
            f"{' and less' if len(found) > 3 else ''}. Each is a direction in which items vary; the samples at its two "
            f"ends show what it is about.{first}"
        )
    blocks: list[Block] = []
    if len(found) > 1:
        blocks.append(_shares(found))
    composition = found.composition
    if composition is not None and len(found.labels or ()) > 1:
        blocks += _composition(found)
    for mode in range(len(found)):
        blocks.append(_mode(found, mode, shown))
    if found.degenerate.any():
        listed = ", ".join(str(a + 1) for a in np.flatnonzero(found.degenerate)[:8])
        blocks.append(
            note(
                f"The eigenvalues of the modes {listed} are as good as equal to a neighbour's: their directions are "
                "arbitrary within the space that they span."
            )
        )
    if not found.settled:
        blocks.append(note(f"The modes have not settled: residuals are up to {found.residuals.max():.1e}."))
    return Section("modes", "What it is made of", lead, blocks)


def _shares(found: Modes) -> Chart:
    names = [str(a + 1) for a in range(len(found))]
    sums = np.cumsum(found.shares)
    rows = [
        {"x": name, "y": float(share), "sum": float(total)}
        for name, share, total in zip(names, found.shares, sums, strict=True)
    ]
    table = Table(
        [Column("mode", "number"), Column("share", "bar"), Column("sum so far", "number")],
        [[a + 1, row["y"], row["sum"]] for a, row in enumerate(rows)],
    )
    return chart(
        "Shares of the modes",
        f"How much of the whole each of the leading modes holds; the first {shares(float(found.shares[0]))}.",
        Axis("mode", names=names),
        Axis("share of the whole", zero=True, form=PERCENT),
        [Layer("bar", rows, {"x": "mode", "y": "share"})],
        table=table,
        height=200,
    )


def _composition(found: Modes) -> list[Block]:
    """Which labels the modes are made of; the most common ones by name, if these make up much of them."""
    assert found.composition is not None
    assert found.labels is not None
    top = np.argsort(-(found.shares @ found.composition), kind="stable")[:LABELS]
    if found.composition[:, top].sum(axis=1).max() < TELLING:
        return []
    names = distinct_names(found.labels[g] for g in top.tolist())
    several = len(found.labels) > LABELS
    rest = next(name for name in ("all others", "all the others", "others of all") if name not in names)
    rows: list[dict[str, Any]] = []
    cells: list[list[Any]] = []
    for mode, made in enumerate(found.composition):
        start = 0.0
        parts = [(name, float(made[g])) for name, g in zip(names, top.tolist(), strict=True)]
        left = max(0.0, 1.0 - sum(part for _, part in parts))
        for name, part in [*parts, *([(rest, left)] if several else [])]:
            rows.append(
                {
                    "y": str(mode + 1),
                    "from": start,
                    "to": min(start + part, 1.0),
                    "series": name,
                    "share": part,
                }
            )
            start += part
        cells.append([mode + 1, *(part for _, part in parts)])
    table = Table([Column("mode", "number"), *(Column(name, "number", digits=3) for name in names)], cells)
    drawn = chart(
        "What the modes are made of",
        "The share of each label in each mode.",
        Axis("share of the mode", ends=(0.0, 1.0), form=PERCENT),
        Axis("mode", names=[str(a + 1) for a in range(len(found))]),
        [Layer("span", rows, {"y": "mode", "series": "label", "share": "share"})],
        rest=rest if several else None,
        table=table,
        height=90 + 26 * len(found),
    )
    return [drawn]


def _mode(found: Modes, mode: int, shown: Any) -> Group:
    ends = found.exemplars(mode, LOOKED_AT * shown.row)
    loadings = found.loadings[:, mode]
    high = ends.high[loadings[ends.high] > ROUNDING]
    low = ends.low[loadings[ends.low] < loadings.max() - ROUNDING]  # else all have the same
    blocks: list[Block] = [_gallery(found, mode, high, shown, "Highest")]
    if len(low):
        blocks.append(_gallery(found, mode, low, shown, "Lowest"))
    title = f"Mode {mode + 1}: {shares(float(found.shares[mode]))} of the whole"
    if found.composition is not None and found.labels is not None and len(found.labels) > 1:
        made = found.composition[mode]
        top = np.argsort(-made, kind="stable")[:3]
        told = [
            f"{named(found.labels[g], 24)} {shares(float(made[g]))}" for g in top.tolist() if made[g] >= NAMED
        ]
        title += " · " + ", ".join(told) if told else ""
    return Group(title, blocks, folded=mode >= OPEN)


def _loading(value: float) -> str:
    return f"{value + 0.0 if abs(value) >= 0.005 else 0.0:.2f}".replace("-", "−")


def _gallery(found: Modes, mode: int, items: np.ndarray, shown: Any, which: str) -> Gallery:
    loadings = found.loadings[:, mode]
    made = shown.distinct(items, lambda item: f"loading {_loading(float(loadings[item]))}")
    return Gallery(made[: shown.row], f"{which} loadings")
