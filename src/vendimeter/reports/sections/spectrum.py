"""The spectrum: how much of the whole each dimension holds; and the score for every order."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter.errors import InputError
from vendimeter.plots.spectra import known_eigenvalues
from vendimeter.present.notes import Note
from vendimeter.present.numbers import count_of, format_number, format_share, order_symbol
from vendimeter.present.plain import plain
from vendimeter.reports.charts import PERCENT, Axis, Layer, chart, distinct_names
from vendimeter.reports.document import Block, Chart, Column, Paragraph, Section, Table
from vendimeter.reports.findings import Findings
from vendimeter.reports.words import note
from vendimeter.results.score import Profile
from vendimeter.scoring import ORDERS

__all__ = ["section"]

MAX_POINTS = 120  # eigenvalues of a curve
MAX_BARS = 30  # eigenvalues up to which each has a bar
MAX_CURVES = 8  # collections with a curve
MIN_SHARE = 1e-6  # share of an eigenvalue that is drawn: of smaller ones not even thousands would matter


def section(findings: Findings) -> Section | None:
    """Eigenvalues, their sums, and the profile of orders."""
    names = distinct_names(part.name for part in findings.parts[:MAX_CURVES])
    blocks: list[Block] = []
    notes, eigenvalues_by_name, summary = [], {}, ""
    for name, profile in zip(names, findings.scores, strict=False):
        try:
            values, _, _, omitted = known_eigenvalues(profile[1])
        except InputError as error:
            notes.append(f"{name}: {error}")
            continue
        eigenvalues_by_name[name] = values
        if omitted is not None:
            notes.append(_omitted_sentence(omitted, name if findings.has_several else ""))
        summary = summary or _summary_sentence(values, profile, findings.has_several, name)
    if max(map(len, eigenvalues_by_name.values()), default=0) > 1:  # of a single one there is nothing to draw
        blocks += [
            _rank_chart(eigenvalues_by_name, findings.has_several),
            _cumulative_chart(eigenvalues_by_name, findings, names),
        ]
    blocks.append(_profile_chart(findings, names))
    blocks += [Paragraph(text) for text in notes]
    omitted = len(findings.parts) - MAX_CURVES
    if omitted > 0:
        blocks.append(note(f"{count_of(omitted, 'more collection')} have no curve here."))
    lead = (
        "The eigenvalues of the similarity matrix say how much of the collection lies in each dimension; the score "
        f"counts how many of them matter. {summary}"
    )
    return Section("spectrum", "Spectrum and orders", lead.strip(), blocks)


def _omitted_sentence(omitted: Note, name: str) -> str:
    """A sentence about the eigenvalues that are not drawn."""
    of = f" of {name}" if name else ""
    if omitted.kind != "zero-eigenvalues":
        return f"Of the eigenvalues{of} {omitted}."
    count = omitted.values["count"]
    if count == 1:
        return f"One more eigenvalue{of} is 0 up to rounding."
    return f"{count:,} more eigenvalues{of} are 0 up to rounding."


def _summary_sentence(values: np.ndarray, profile: Profile, several: bool, name: str) -> str:
    sums = np.cumsum(values)
    half = int(np.searchsorted(sums, 0.5)) + 1
    of = f"Of {name}, the" if several else "The"
    text = f"{of} largest holds {format_share(float(values[0]))} of the whole"
    if sums[-1] >= 0.5 and half > 1:
        text += f", and {count_of(half, 'dimension')} half of it"
    return f"{text}; the Vendi Score is {format_number(profile[1])}."


def _log_spaced_ranks(count: int) -> np.ndarray:
    """Ranks from 1, evenly spaced in their logarithm where there are many."""
    if count <= MAX_POINTS:
        return np.arange(1, count + 1)
    return np.unique(np.geomspace(1, count, MAX_POINTS).round().astype(int))


def _rank_chart(eigenvalues_by_name: dict[str, np.ndarray], several: bool) -> Chart:
    largest_count = max(map(len, eigenvalues_by_name.values()))
    rows, cells = [], []
    for name, values in eigenvalues_by_name.items():
        for rank in _log_spaced_ranks(max(1, int(np.count_nonzero(values >= MIN_SHARE)))).tolist():
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
    if largest_count <= MAX_BARS and not several:
        names = [str(rank) for rank in range(1, largest_count + 1)]
        bars = [{"x": str(row["x"]), "y": row["y"]} for row in rows]
        layers = [Layer("bar", bars, tips)]
        x, y = Axis("rank", names=names), Axis("share of the whole", zero=True, form=PERCENT)
    else:
        layers = [Layer("line", rows, tips, points=largest_count <= MAX_BARS)]
        x, y = Axis("rank", log=True, whole=True), Axis("share of the whole", log=True, form=PERCENT)
    leading = "; ".join(
        f"{name + ': ' if several else ''}{', '.join(format_share(float(v)) for v in values[:3])}"
        for name, values in eigenvalues_by_name.items()
    )
    below = sum(int(np.count_nonzero(values < MIN_SHARE)) for values in eigenvalues_by_name.values())
    omitted_words = (
        f" {count_of(below, 'eigenvalue')} below {100 * MIN_SHARE:g}% {'is' if below == 1 else 'are'} not drawn."
        if below
        else ""
    )
    return chart(
        "Eigenvalues by rank",
        f"The eigenvalues from large to small, as shares of the whole. The largest: {leading}.{omitted_words}",
        x,
        y,
        layers,
        table=table,
    )


def _cumulative_chart(
    eigenvalues_by_name: dict[str, np.ndarray], findings: Findings, names: list[str]
) -> Chart:
    several = findings.has_several
    rows, marks = [], []
    for name, values in eigenvalues_by_name.items():
        sums = np.minimum(np.cumsum(values), 1.0)
        series = {"series": name} if several else {}
        rows += [{"x": r, "y": float(sums[r - 1]), **series} for r in _log_spaced_ranks(len(values)).tolist()]
        score = float(findings.scores[names.index(name)][1])
        marks.append({"x": score, **series})
    tips = {**({"series": "collection"} if several else {}), "x": "dimensions", "y": "of the whole"}
    layers = [Layer("rule", marks, {"x": "Vendi Score"}), Layer("line", rows, tips)]
    return chart(
        "How much the leading dimensions hold together",
        "The sum of the leading eigenvalues against their number; dashed: the Vendi Score, the effective number.",
        Axis("number of dimensions", log=max(row["x"] for row in rows) > MAX_BARS, whole=True),
        Axis("share of the whole", ends=(0.0, 1.0), form=PERCENT),
        layers,
    )


def _profile_chart(findings: Findings, names: list[str]) -> Chart:
    """Scores over orders with their bounds."""
    orders = sorted({*ORDERS, *findings.orders} - set(findings.unanswered))
    if findings.unanswered:
        orders = [q for q in orders if q > 0]
    several = findings.has_several
    lines, intervals, cells = [], [], []
    for name, profile in zip(names, findings.scores, strict=False):
        for q in orders:
            answer = findings.answer(profile, q)
            if answer is None:
                continue
            row: dict[str, Any] = {"x": order_symbol(q), "y": answer.value}
            row |= {"series": name} if several else {}
            low, high = plain(answer.low), plain(answer.high)
            lines.append(row)
            if low is not None and high is not None:
                intervals.append({**row, "low": low, "high": high})
            cells.append([*([name] if several else []), order_symbol(q), answer.value, low, high])
    shown_orders = [order_symbol(q) for q in orders if any(row["x"] == order_symbol(q) for row in lines)]
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
        Axis("order q", names=shown_orders),
        Axis("score", log=spread, zero=not spread),
        [
            Layer("interval", intervals, {**tips, "low": "at least", "high": "at most"}),
            Layer("line", lines, tips, points=True),
        ],
        table=Table(columns, cells, "Order 0 is the rank; its upper bound is the number of all eigenvalues."),
    )
