"""Convergence: the score against the number of samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter._report.analyses import RAREFIED, Analyses
from vendimeter._report.charts import Axis, Layer, chart, distinct_names
from vendimeter._report.document import Block, Column, Section, Table
from vendimeter._report.words import counted, note
from vendimeter.analysis.rarefaction import Rarefaction
from vendimeter.errors import VendimeterError

__all__ = ["section"]


def section(analyses: Analyses) -> Section | None:
    """The curve of each collection, and what it says."""
    subject = analyses.subject
    curves = [(part, one) for part, one in analyses.curves if isinstance(one, Rarefaction)]
    names = distinct_names(subject.what(part) for part, _ in curves)
    several = subject.several
    words = [
        f"{name + ': ' if several else 'The score '}{one.verdict}."
        for name, (_, one) in zip(names, curves, strict=True)
    ]
    blocks: list[Block] = []
    if curves:
        blocks.append(_chart([one for _, one in curves], names, several))
    for part, one in analyses.curves:
        if isinstance(one, VendimeterError):
            blocks.append(note(f"{subject.what(part)}: {one}"))
            continue
        text = list(one.notes)
        if analyses.is_thinned(part):
            text.append(
                f"The curve is that of a random sample of {RAREFIED:,} of the {counted(len(part.items), 'item')}, as "
                "if there were no others, because of the number of features."
            )
        blocks += [note(f"{subject.what(part)}: {line}" if several else line) for line in text]
    if curves and curves[0][1].population.n:
        blocks.append(
            note(
                "The band is the spread of random subsets of these items. It closes at all of them, and says nothing "
                "of the error of sampling: that is in the interval of the population."
            )
        )
    lead = f"A score of few samples is too low, since they do not show all there is. {' '.join(words)}"
    return Section("convergence", "Convergence", lead.strip(), blocks)


def _chart(curves: list[Rarefaction], names: list[str], several: bool) -> Block:
    lines, band, ends, rows = [], [], [], []
    for name, one in zip(names, curves, strict=True):
        series: dict[str, Any] = {"series": name} if several else {}
        columns = zip(
            one.sizes.tolist(), one.scores.tolist(), one.low.tolist(), one.high.tolist(), strict=True
        )
        for size, value, low, high in columns:
            row = {"x": size, "y": value, **series}
            lines.append(row)
            band.append({**row, "low": low, "high": high})
            rows.append([*([name] if several else []), size, value, low, high])
        if one.used < one.n:  # the score of all items, beyond the curve
            ends.append({"x": one.n, "y": float(one.score), **series})
    tips = {
        **({"series": "collection"} if several else {}),
        "x": "items",
        "y": "mean score",
        "low": "5% of subsets below",
        "high": "5% above",
    }
    names_of = [Column("collection")] if several else []
    table = Table(
        [
            *names_of,
            Column("items", "number"),
            Column("mean score", "number", digits=5),
            Column("5% below", "number", digits=5),
            Column("5% above", "number", digits=5),
        ],
        rows,
    )
    layers = [
        Layer("band", band),
        Layer(
            "line",
            [{**row, "low": b["low"], "high": b["high"]} for row, b in zip(lines, band, strict=True)],
            tips,
            points=True,
        ),
        Layer("hollow", ends, {"x": "all items", "y": "their score"}),
    ]
    beyond = " The hollow mark is the score of all items." if ends else ""
    sizes = np.concatenate([one.sizes for one in curves])
    return chart(
        "The score against the number of items",
        f"The mean score of random subsets, with the band in which 90% of them lie.{beyond}",
        Axis("items", log=bool(sizes.max() > 3 * sizes.min())),
        Axis("score", zero=True),
        layers,
        table=table,
    )
