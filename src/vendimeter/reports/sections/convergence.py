"""Convergence: the score against the number of samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter.analysis.rarefaction.rarefaction import Rarefaction
from vendimeter.errors import VendimeterError
from vendimeter.reports.analyses import RAREFIED, Analyses
from vendimeter.reports.charts import Axis, Layer, chart, distinct_names
from vendimeter.reports.document import Block, Column, Paragraph, Section, Table
from vendimeter.reports.words import counted, note

__all__ = ["section"]


def section(analyses: Analyses) -> Section | None:
    """The curve of each collection, and what it says."""
    subject = analyses.subject
    curves = [(part, one) for part, one in analyses.curves if isinstance(one, Rarefaction)]
    names = distinct_names(subject.what(part) for part, _ in curves)
    several = subject.several
    words = [
        _verdict(one, f"that of {name}" if several else "it")
        for name, (_, one) in zip(names, curves, strict=True)
    ]
    blocks: list[Block] = []
    drawn = any(len(one.sizes) > 1 for _, one in curves)
    if drawn:
        blocks.append(_chart([one for _, one in curves], names, several))
    for part, one in analyses.curves:
        if isinstance(one, VendimeterError):
            blocks.append(note(f"{subject.what(part)}: {one}"))
            continue
        text = []
        if one.used < one.n:
            text.append(
                f"The curve and the population come of a random sample of {one.used:,} of the {one.n:,} items, so as "
                "not to take long."
            )
        if analyses.is_thinned(part):
            text.append(
                f"The curve is that of a random sample of {RAREFIED:,} of the {counted(len(part.items), 'item')}, as "
                "if there were no others, because of the number of features."
            )
        blocks += [note(f"{subject.what(part)}: {line}" if several else line) for line in text]
    if drawn and any(one.population.n for _, one in curves):
        given = any(one.population.interval is not None for _, one in curves)
        blocks.append(
            Paragraph(
                "The band is the spread of random subsets of these items. It closes at all of them, and says nothing "
                f"of the error of sampling{': that is in the interval of the population' if given else ''}."
            )
        )
    lead = f"A score of few samples is too low, since they do not show all there is. {' '.join(words)}"
    return Section("convergence", "Convergence", lead.strip(), blocks)


def _verdict(one: Rarefaction, what: str) -> str:
    """What the curve says, in a sentence."""
    text, start = one.verdict, what[:1].upper() + what[1:]
    if text.startswith("converged: it would grow"):
        return f"{start} has converged: it would grow{text.removeprefix('converged: it would grow')}."
    if text.startswith("still grows"):
        return f"{start} still grows: it would grow{text.removeprefix('still grows')}."
    if text.startswith("too few"):
        return f"There are {text.replace('the score', what)}."
    return f"{text[:1].upper()}{text[1:]}."


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
        Axis("items", log=bool(sizes.max() > 3 * sizes.min()), whole=True),
        Axis("score", zero=True),
        layers,
        table=table,
    )
