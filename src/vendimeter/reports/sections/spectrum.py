"""The spectrum: how much of the whole each dimension holds; and the score for every order."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter.errors import InputError
from vendimeter.plots.spectra import known_eigenvalues
from vendimeter.reports.analyses import Analyses
from vendimeter.reports.charts import PERCENT, Axis, Layer, chart, distinct_names
from vendimeter.reports.document import Block, Chart, Column, Paragraph, Section, Table
from vendimeter.reports.words import counted, figure, finite, note, order_sign, shares
from vendimeter.results.score import Profile
from vendimeter.scoring import ORDERS

__all__ = ["section"]

POINTS = 120  # eigenvalues of a curve
FEW = 30  # eigenvalues up to which each has a bar
CURVES = 8  # collections with a curve
LEAST = 1e-6  # share of an eigenvalue that is drawn: of smaller ones not even thousands would matter


def section(analyses: Analyses) -> Section | None:
    """Eigenvalues, their sums, and the profile of orders."""
    subject = analyses.subject
    names = distinct_names(subject.what(part) for part in subject.parts[:CURVES])
    blocks: list[Block] = []
    notes, spectra, words = [], {}, ""
    for name, profile in zip(names, analyses.scores, strict=False):
        try:
            values, _, _, more = known_eigenvalues(profile[1])
        except InputError as error:
            notes.append(f"{name}: {error}")
            continue
        spectra[name] = values
        if more:
            notes.append(_rest(more, name if subject.several else ""))
        words = words or _words(values, profile, subject.several, name)
    if max(map(len, spectra.values()), default=0) > 1:  # of a single one there is nothing to draw
        blocks += [_ranked(spectra, subject.several), _sums(spectra, analyses, names)]
    blocks.append(_profile(analyses, names))
    blocks += [Paragraph(text) for text in notes]
    more = len(subject.parts) - CURVES
    if more > 0:
        blocks.append(note(f"{counted(more, 'more collection')} have no curve here."))
    lead = (
        "The eigenvalues of the similarity matrix say how much of the collection lies in each dimension; the score "
        f"counts how many of them matter. {words}"
    )
    return Section("spectrum", "Spectrum and orders", lead.strip(), blocks)


def _rest(more: str, name: str) -> str:
    """What is known of the eigenvalues that are not drawn."""
    of = f" of {name}" if name else ""
    count = more.removesuffix(" more are 0 but for rounding")
    if count == more:
        return f"Of the eigenvalues{of} {more}."
    if count == "1":
        return f"One more eigenvalue{of} is 0 up to rounding."
    return f"{count} more eigenvalues{of} are 0 up to rounding."


def _words(values: np.ndarray, profile: Profile, several: bool, name: str) -> str:
    sums = np.cumsum(values)
    half = int(np.searchsorted(sums, 0.5)) + 1
    of = f"Of {name}, the" if several else "The"
    text = f"{of} largest holds {shares(float(values[0]))} of the whole"
    if sums[-1] >= 0.5 and half > 1:
        text += f", and {counted(half, 'dimension')} half of it"
    return f"{text}; the Vendi Score is {figure(profile[1])}."


def _thinned(count: int) -> np.ndarray:
    """Ranks from 1, evenly in their logarithm where there are many."""
    if count <= POINTS:
        return np.arange(1, count + 1)
    return np.unique(np.geomspace(1, count, POINTS).round().astype(int))


def _ranked(spectra: dict[str, np.ndarray], several: bool) -> Chart:
    longest = max(map(len, spectra.values()))
    rows, cells = [], []
    for name, values in spectra.items():
        for rank in _thinned(max(1, int(np.count_nonzero(values >= LEAST)))).tolist():
            series = {"series": name} if several else {}
            rows.append({"x": rank, "y": float(values[rank - 1]), **series})
            cells.append([*([name] if several else []), rank, float(values[rank - 1])])
    tips = {**({"series": "collection"} if several else {}), "x": "rank", "y": "share"}
    columns = [
        *([Column("collection")] if several else []),
        Column("rank", "number"),
        Column("share", "number"),
    ]
    table = Table(columns, cells)
    if longest <= FEW and not several:
        names = [str(rank) for rank in range(1, longest + 1)]
        bars = [{"x": str(row["x"]), "y": row["y"]} for row in rows]
        layers = [Layer("bar", bars, tips)]
        x, y = Axis("rank", names=names), Axis("share of the whole", zero=True, form=PERCENT)
    else:
        layers = [Layer("line", rows, tips, points=longest <= FEW)]
        x, y = Axis("rank", log=True, whole=True), Axis("share of the whole", log=True, form=PERCENT)
    leading = "; ".join(
        f"{name + ': ' if several else ''}{', '.join(shares(float(v)) for v in values[:3])}"
        for name, values in spectra.items()
    )
    below = sum(int(np.count_nonzero(values < LEAST)) for values in spectra.values())
    left = (
        f" {counted(below, 'eigenvalue')} below {100 * LEAST:g}% {'is' if below == 1 else 'are'} not drawn."
        if below
        else ""
    )
    return chart(
        "Eigenvalues by rank",
        f"The eigenvalues from large to small, as shares of the whole. The largest: {leading}.{left}",
        x,
        y,
        layers,
        table=table,
    )


def _sums(spectra: dict[str, np.ndarray], analyses: Analyses, names: list[str]) -> Chart:
    several = analyses.subject.several
    rows, marks = [], []
    for name, values in spectra.items():
        sums = np.minimum(np.cumsum(values), 1.0)
        series = {"series": name} if several else {}
        rows += [{"x": r, "y": float(sums[r - 1]), **series} for r in _thinned(len(values)).tolist()]
        score = float(analyses.scores[names.index(name)][1])
        marks.append({"x": score, **series})
    tips = {**({"series": "collection"} if several else {}), "x": "dimensions", "y": "of the whole"}
    layers = [Layer("rule", marks, {"x": "Vendi Score"}), Layer("line", rows, tips)]
    return chart(
        "How much the leading dimensions hold together",
        "The sum of the leading eigenvalues against their number; dashed: the Vendi Score, the effective number.",
        Axis("number of dimensions", log=max(row["x"] for row in rows) > FEW, whole=True),
        Axis("share of the whole", ends=(0.0, 1.0), form=PERCENT),
        layers,
    )


def _profile(analyses: Analyses, names: list[str]) -> Chart:
    """Scores over orders with their bounds."""
    orders = sorted({*ORDERS, *analyses.orders} - set(analyses.unanswered))
    if analyses.unanswered:
        orders = [q for q in orders if q > 0]
    several = analyses.subject.several
    lines, ends, cells = [], [], []
    for name, profile in zip(names, analyses.scores, strict=False):
        for q in orders:
            found = analyses.answer(profile, q)
            if found is None:
                continue
            row: dict[str, Any] = {"x": order_sign(q), "y": found.value}
            row |= {"series": name} if several else {}
            low, high = finite(found.low), finite(found.high)
            lines.append(row)
            if low is not None and high is not None:
                ends.append({**row, "low": low, "high": high})
            cells.append([*([name] if several else []), order_sign(q), found.value, low, high])
    kept = [order_sign(q) for q in orders if any(row["x"] == order_sign(q) for row in lines)]
    tips = {**({"series": "collection"} if several else {}), "x": "order", "y": "score"}
    columns = [
        *([Column("collection")] if several else []),
        Column("order"),
        Column("score", "number", digits=5),
        Column("at least", "number", digits=5),
        Column("at most", "number", digits=5),
    ]
    values = [row["y"] for row in lines]
    spread = max(values) / max(min(values), 1e-300) > 30
    return chart(
        "The score of every order",
        "The score against its order q: low orders count what is rare, high ones what is common. Vertical lines are "
        "the bounds of the computation, where they are wide enough to be seen.",
        Axis("order q", names=kept),
        Axis("score", log=spread, zero=not spread),
        [
            Layer("interval", ends, {**tips, "low": "at least", "high": "at most"}),
            Layer("line", lines, tips, points=True),
        ],
        table=Table(columns, cells, "Order 0 is the rank; its upper bound is the number of all eigenvalues."),
    )
