"""Groups, or collections, side by side: who is most diverse at a common size, who differs, and who is alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter.analysis.comparison.comparison import Comparison
from vendimeter.errors import brief
from vendimeter.plots.comparison import neighbour_order
from vendimeter.present.colours import coloured, png
from vendimeter.reports.analyses import TESTED, Analyses
from vendimeter.reports.charts import Axis, Layer, chart, distinct_names
from vendimeter.reports.document import (
    Block,
    ByOrder,
    Chart,
    Column,
    Fact,
    Facts,
    Gallery,
    Item,
    Paragraph,
    Section,
    Table,
)
from vendimeter.reports.words import (
    apart,
    counted,
    figure,
    finite,
    joined,
    note,
    of_order,
    order_sign,
    without_advice,
)
from vendimeter.results.score import order_name, percentage

__all__ = ["alike", "section"]


# -------------------------------------------------------------------------------------------------------- alike groups

# How alike groups are: a chart of similarities, or a picture where they are many, and the most alike pairs.

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
    order = there[neighbour_order(found.similarity[np.ix_(there, there)])]
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


# ------------------------------------------------------------------------------------------------------------- grouped

LINES = 40  # groups of a chart: of more the highest and the lowest half
ROWS = 200  # of a table
BINS = 30
ROUNDING = 1e-9  # of a score


def section(analyses: Analyses) -> Section | None:
    """The comparison; nothing where there are no groups."""
    subject, found = analyses.subject, analyses.comparison
    if found is None:
        return None
    names, what = distinct_names(found.labels), _what(analyses)
    title = "The collections side by side" if subject.several else f"{what.capitalize()}s"
    blocks: list[Block] = [_partition(found, what)]
    if len(found) > LINES:
        blocks.append(_distribution(found, what))
    if not np.isnan(found.fair).all():
        charts = {order_name(q): _ranking(analyses, q, names) for q in analyses.orders}
        blocks.append(ByOrder(charts))
    blocks.append(_table(analyses, names))
    compared = _is_compared(analyses)
    if compared:
        blocks.append(_differences(analyses, names))
    if len(found) > 1:
        blocks += alike(found, names, what)
    if len(found) - 1 > TESTED and compared:
        blocks.append(
            note(
                f"No tests were made: of {counted(len(found.differences), 'comparison')} none could have a small "
                "p-value after the adjustment for their number. vendimeter.compare makes them, with more permutations."
            )
        )
    for text in dict.fromkeys([*(found.differences.notes if compared else ()), *found.notes]):
        for label in found.labels:
            if isinstance(label, tuple):  # of several columns
                text = text.replace(brief(label), joined(label))
        blocks.append(note(without_advice(text)))
    return Section("groups", title, _lead(analyses, names, what), blocks)


def _what(analyses: Analyses) -> str:
    subject = analyses.subject
    return "collection" if subject.several else "list" if subject.nested else "group"


def _is_compared(analyses: Analyses) -> bool:
    """Whether differences are shown: of many groups only those from one that was named, or the first would be it."""
    found = analyses.comparison
    assert found is not None
    return len(found.differences) > 0 and (analyses.reference is not None or len(found) - 1 <= TESTED)


def _lead(analyses: Analyses, names: list[str], what: str) -> str:
    """Who is highest and lowest, and how many differ."""
    found = analyses.comparison
    assert found is not None
    # In a sentence a label that is a number would be taken for an amount.
    numbers = all(name.replace(".", "", 1).isdigit() for name in names)
    names = [f"{what} {name}" for name in names] if numbers else names
    at = (
        ""
        if found.size is None
        else f" at {counted(found.size, 'item')} of each, since scores grow with the items"
    )
    words = [f"{counted(len(found), what)}, compared{at}." if at else f"{counted(len(found), what)}."]
    if not np.isnan(found.fair).all():
        high, low = int(np.nanargmax(found.fair)), int(np.nanargmin(found.fair))
        top, bottom = apart(found.fair[high], found.fair[low])
        most, least = f"{names[high]} with {top}", f"{names[low]} with {bottom}"
        words.append(f"The most diverse is {most}" + (f", the least {least}." if high != low else "."))
    if _is_compared(analyses):
        first = "" if analyses.reference is not None else f", the first {what},"
        words += _differing(found, dict(zip(found.labels, names, strict=True)), first)
    return " ".join(words)


def _differing(found: Comparison, names: dict[Any, str], first: str) -> list[str]:
    """The largest difference from the one that others are compared with, and how many are more than chance."""
    one = found.differences
    largest = int(np.argmax(np.abs(np.log(one.ratio))))
    interval = ""
    if np.isfinite(one.ratio_low[largest]):
        low, high = apart(one.ratio_low[largest], one.ratio_high[largest], digits=3)
        interval = f" ({percentage(one.confidence)} interval {low} to {high})"
    group, other = names[one.groups[largest]], names[one.references[largest]]
    ratio = f"{figure(one.ratio[largest], 3)} times"
    words = [f"The score of {group} is {ratio} that of {other}{interval}."]
    if len(one) > 1 and abs(np.log(one.ratio[largest])) < ROUNDING:
        words = [f"No score differs from that of {other}{first.removesuffix(',')}."]
    elif len(one) > 1:
        words = [
            f"The largest difference from {other}{first} is that of {group}: its score is {ratio} as high{interval}."
        ]
    level = 1 - one.confidence
    tests = int(np.count_nonzero(~np.isnan(one.p)))
    if not tests or one.least > level + 1e-9:
        return words
    if len(one) == 1:
        words.append(
            f"By a permutation test of {one.tested_size:,} items of each, p = {figure(one.p[0], 2)}."
        )
        return words
    differ = int(np.count_nonzero(one.p_adjusted <= level + 1e-9))
    many = "None" if not differ else "All" if differ == tests else f"{differ:,}"
    words.append(
        f"{many} of the {tests:,} differences from {other} {'is' if differ == 1 else 'are'} more than chance at the "
        f"{level:.2g} level (permutation tests of {one.tested_size:,} items of each, adjusted by Holm's method)."
    )
    return words


def _partition(found: Comparison, what: str) -> Facts:
    """Within, between, in all."""
    order = of_order(found.q)
    return Facts(
        [
            Fact(f"Within a {what}", figure(found.alpha), f"effectively different items{order}, in the mean"),
            Fact(
                f"Between {what}s",
                figure(found.beta),
                f"effectively distinct {what}s, of {len(found):,}",
            ),
            Fact(
                "In all",
                figure(found.gamma),
                f"the product of the two: effectively different items of all {what}s",
            ),
        ]
    )


def _ordered(scores: np.ndarray) -> np.ndarray:
    """Positions of the groups from the highest score down; those without one are left out."""
    return np.argsort(-scores, kind="stable")[: int(np.count_nonzero(~np.isnan(scores)))]


def _ranking(analyses: Analyses, q: float, names: list[str]) -> Chart:
    found, scores, what = analyses.comparison, analyses.ranked[q], _what(analyses)
    assert found is not None
    order = _ordered(scores)
    left = max(0, len(order) - LINES)
    if left:
        order = np.concatenate([order[: LINES // 2], order[-LINES // 2 :]])
    common = "as they are" if found.size is None else f"{counted(found.size, 'item')} of each"
    raw = found.scores if q == found.q else None
    dots, ends, hollow, everything = [], [], [], f"all items of the {what}"
    for g in order.tolist():
        row: dict[str, Any] = {
            "y": names[g],
            "x": float(scores[g]),
            "series": common,
            "n": int(found.sizes[g]),
        }
        dots.append(row)
        low, high = finite(found.rarefied_low[g]), finite(found.rarefied_high[g])
        if q == found.q and low is not None and high is not None:
            ends.append({**row, "low": low, "high": high})
        if raw is not None and found.size is not None and found.sizes[g] > found.size:
            hollow.append({**row, "x": float(raw[g]), "series": everything})
    tips = {"y": what, "x": "score", "n": "items"}
    interval = f" Lines are {percentage(found.confidence)} intervals, by sampling." if ends else ""
    more = f" {left:,} {what}s between these are not drawn." if left else ""
    top = [f"{names[g]} {figure(scores[g])}" for g in order[:3].tolist()]
    return chart(
        f"{what.capitalize()}s by their score{of_order(q)}",
        f"The score{of_order(q)} of each {what}, {common}, from the highest down: {', '.join(top)}"
        f"{', …' if len(order) > 3 else ''}.{interval}{more}",
        Axis(f"score{of_order(q)}", inset=True),
        Axis("", names=[names[g] for g in order.tolist()]),
        [
            Layer("hollow", hollow, tips),
            Layer("interval", ends, {**tips, "low": "at least", "high": "at most"}),
            Layer("point", dots, tips),
        ],
        series=[common, *([everything] if hollow else [])],
        height=110 + 20 * len(order),
    )


def _distribution(found: Comparison, what: str) -> Chart:
    """How the scores of many groups lie."""
    scores = found.fair[~np.isnan(found.fair)]
    counts, edges = np.histogram(scores, bins=BINS)
    rows = [
        {"from": float(a), "to": float(b), "y": int(count)}
        for a, b, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    table = Table(
        [Column("from", "number"), Column("to", "number"), Column(f"{what}s", "bar")],
        [[row["from"], row["to"], row["y"]] for row in rows],
    )
    mean = float(scores.mean())
    return chart(
        f"How the scores of the {what}s are spread",
        f"How many {what}s have which score; half of them lie below {figure(float(np.median(scores)))}, and their mean "
        f"(dashed) is {figure(mean)}.",
        Axis(f"score{of_order(found.q)}"),
        Axis(f"{what}s", zero=True, whole=True),
        [
            Layer("histogram", rows, {"from": "from", "to": "to", "y": f"{what}s"}),
            Layer("rule", [{"x": mean}], {"x": "mean"}),
        ],
        table=table,
    )


def _table(analyses: Analyses, names: list[str]) -> Table:
    """One row a group, with a column for every order."""
    found = analyses.comparison
    assert found is not None
    order = [*_ordered(found.fair).tolist()]
    order += [g for g in range(len(found)) if g not in set(order)]
    more = max(0, len(order) - ROWS)
    if more:
        order = order[: ROWS // 2] + order[-ROWS // 2 :]
    rarefied = found.size is not None
    # Of groups that all have the common size their scores are compared as they are.
    equal = rarefied and bool((found.sizes == found.size).all())
    spread = rarefied and bool(np.isfinite(found.rarefied_low).any())
    interval = f"of the {percentage(found.confidence)} interval, by sampling"
    columns = [
        Column(_what(analyses)),
        Column("items", "number"),
        Column(
            "score", "bar", meaning=f"the score{of_order(found.q)} of all its items, which grows with them"
        ),
    ]
    if rarefied and not equal:
        meaning = "the mean score of so many random items: what is fair to compare"
        columns.append(Column(f"of {found.size:,}", "bar", meaning=meaning))
    if spread:
        columns += [Column(end, "number", meaning=interval) for end in ("at least", "at most")]
    columns.append(Column("rank", "number"))
    others = [q for q in analyses.orders if q != found.q]
    columns += [
        Column(
            f"q={order_sign(q)}",
            "number",
            meaning=f"the score of order {order_sign(q)}, compared as fairly",
        )
        for q in others
    ]
    rows = []
    for g in order:
        row: list[Any] = [names[g], int(found.sizes[g]), finite(found.scores[g])]
        if rarefied and not equal:
            row.append(finite(found.rarefied[g]))
        if spread:
            row += [finite(found.rarefied_low[g]), finite(found.rarefied_high[g])]
        rank = finite(found.rank[g])
        row.append(None if rank is None else int(rank))
        rows.append([*row, *(finite(analyses.ranked[q][g]) for q in others)])
    return Table(columns, rows, filterable=len(order) > 12, more=more)


def _differences(analyses: Analyses, names: list[str]) -> Table:
    found, what = analyses.comparison, _what(analyses)
    assert found is not None
    one, by_label = found.differences, dict(zip(found.labels, names, strict=True))
    order = np.argsort(-np.abs(np.log(one.ratio)), kind="stable")[:ROWS].tolist()
    tested = not np.isnan(one.p).all()
    spread = bool(np.isfinite(one.difference_low).any())
    interval = f"of the {percentage(found.confidence)} interval"
    less = f"the score of the {what} less that of the other, at the common size"
    columns = [Column(what), Column("difference", "number", meaning=less)]
    if spread:
        columns += [Column(end, "number", meaning=interval) for end in ("at least", "at most")]
    columns.append(Column("ratio", "number", meaning="the one divided by the other"))
    if tested:
        meaning = "of a permutation test that both come from one population"
        columns.append(Column("p", "number", digits=2, meaning=meaning))
    adjusted = tested and len(one) > 1
    if adjusted:
        meaning = "by Holm's method, for the number of comparisons"
        columns.append(Column("adjusted p", "number", digits=2, meaning=meaning))
    rows = []
    for i in order:
        held = (
            one.difference,
            *((one.difference_low, one.difference_high) if spread else ()),
            one.ratio,
            *((one.p,) if tested else ()),
            *((one.p_adjusted,) if adjusted else ()),
        )
        rows.append([by_label[one.groups[i]], *(finite(column[i]) for column in held)])
    first = (
        "" if analyses.reference is not None else f", the first {what}, since none was named to compare with"
    )
    size = "" if found.size is None else "at the common size, "
    caption = f"Differences from {by_label[one.references[0]]}{first}; {size}the largest first."
    return Table(
        columns,
        rows,
        caption,
        filterable=len(rows) > 12,
        more=len(one) - len(rows),
    )
