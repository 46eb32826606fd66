"""Convergence: the score against the number of samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter.analysis.rarefaction.rarefaction import Rarefaction, Verdict
from vendimeter.errors import VendimeterError
from vendimeter.present.numbers import count_of, format_percent
from vendimeter.reports.charts import Axis, Layer, chart, distinct_names
from vendimeter.reports.document import Block, Column, Paragraph, Section, Table
from vendimeter.reports.findings import CURVE_ITEMS, Findings
from vendimeter.reports.words import note

__all__ = ["section"]


def section(findings: Findings) -> Section | None:
    """The curve of each collection, and what it says."""
    curves = [(part, curve) for part, curve in findings.curves if isinstance(curve, Rarefaction)]
    names = distinct_names(part.name for part, _ in curves)
    several = findings.has_several
    words = [
        _verdict(curve, f"that of {name}" if several else "it")
        for name, (_, curve) in zip(names, curves, strict=True)
    ]
    blocks: list[Block] = []
    is_drawn = any(len(curve.sizes) > 1 for _, curve in curves)
    if is_drawn:
        blocks.append(_chart([curve for _, curve in curves], names, several))
    for part, curve in findings.curves:
        if isinstance(curve, VendimeterError):
            blocks.append(note(f"{part.name}: {curve}"))
            continue
        text = []
        if curve.used < curve.n:
            text.append(
                f"The curve and the population come of a random sample of {curve.used:,} of the {curve.n:,} items, so "
                "as not to take long."
            )
        if findings.is_subsampled(part):
            text.append(
                f"The curve is that of a random sample of {CURVE_ITEMS:,} of the "
                f"{count_of(part.diversity.n, 'item')}, as if there were no others, because of the number of "
                "features."
            )
        blocks += [note(f"{part.name}: {line}" if several else line) for line in text]
    if is_drawn and any(curve.population.n for _, curve in curves):
        has_interval = any(curve.population.interval is not None for _, curve in curves)
        blocks.append(
            Paragraph(
                "The band is the spread of random subsets of these items. It closes at all of them, and says nothing "
                f"of the error of sampling{': that is in the interval of the population' if has_interval else ''}."
            )
        )
    lead = f"A score of few samples is too low, since they do not show all there is. {' '.join(words)}"
    return Section("convergence", "Convergence", lead.strip(), blocks)


def _verdict(curve: Rarefaction, subject: str) -> str:
    """What the curve says, in a sentence."""
    beginning = subject[:1].upper() + subject[1:]
    grows = f"it would grow by about {format_percent(curve.growth)} if twice as many samples were drawn"
    return {
        Verdict.CONVERGED: f"{beginning} has converged: {grows}.",
        Verdict.GROWS: f"{beginning} still grows: {grows}.",
        Verdict.TOO_FEW: f"There are too few samples to say whether {subject} has converged.",
        Verdict.POPULATION: "The weights are a population themselves, and the score is its own.",
    }[curve.verdict]


def _chart(curves: list[Rarefaction], names: list[str], several: bool) -> Block:
    lines, bands, ends, rows = [], [], [], []
    for name, curve in zip(names, curves, strict=True):
        series: dict[str, Any] = {"series": name} if several else {}
        columns = zip(
            curve.sizes.tolist(), curve.scores.tolist(), curve.low.tolist(), curve.high.tolist(), strict=True
        )
        for size, value, low, high in columns:
            row = {"x": size, "y": value, **series}
            lines.append(row)
            bands.append({**row, "low": low, "high": high})
            rows.append([*([name] if several else []), size, value, low, high])
        if curve.used < curve.n:  # the score of all items, beyond the curve
            ends.append({"x": curve.n, "y": float(curve.score), **series})
    tips = {
        **({"series": "collection"} if several else {}),
        "x": "items",
        "y": "mean score",
        "low": "5% of subsets below",
        "high": "5% above",
    }
    collection_column = [Column("collection")] if several else []
    table = Table(
        [
            *collection_column,
            Column("items", "number"),
            Column("mean score", "number", digits=5),
            Column("5% below", "number", digits=5),
            Column("5% above", "number", digits=5),
        ],
        rows,
    )
    layers = [
        Layer("band", bands),
        Layer(
            "line",
            [{**row, "low": b["low"], "high": b["high"]} for row, b in zip(lines, bands, strict=True)],
            tips,
            points=True,
        ),
        Layer("hollow", ends, {"x": "all items", "y": "their score"}),
    ]
    beyond = " The hollow mark is the score of all items." if ends else ""
    sizes = np.concatenate([curve.sizes for curve in curves])
    return chart(
        "The score against the number of items",
        f"The mean score of random subsets, with the band in which 90% of them lie.{beyond}",
        Axis("items", log=bool(sizes.max() > 3 * sizes.min()), whole=True),
        Axis("score", zero=True),
        layers,
        table=table,
    )
