"""Groups, or collections, side by side: who is most diverse at a common size, who differs, and who is alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter._report.analyses import TESTED, Analyses
from vendimeter._report.charts import Axis, Layer, chart, distinct_names
from vendimeter._report.document import (
    Block,
    ByOrder,
    Chart,
    Column,
    Fact,
    Facts,
    Gallery,
    Item,
    Section,
    Table,
)
from vendimeter._report.rasters import coloured, png
from vendimeter._report.words import counted, figure, finite, named, note, of_order, order_sign
from vendimeter.analysis.comparison import Comparison
from vendimeter.plots.comparison import _beside
from vendimeter.results import order_name, percentage

__all__ = ["section"]

LINES = 40  # groups of a chart: of more the highest and the lowest half
ROWS = 200  # of a table
CELLS = 30  # groups whose similarities are a chart; those of more are a picture
SIDE = 250  # pixels of that
PAIRS = 20  # pairs of groups in a table
BINS = 30


def section(analyses: Analyses) -> Section | None:
    """The comparison; nothing where there are no groups."""
    subject, found = analyses.subject, analyses.comparison
    if found is None:
        return None
    names = distinct_names(found.labels)
    title = "The collections side by side" if subject.several else "Groups"
    blocks: list[Block] = [_partition(found)]
    if len(found) > LINES:
        blocks.append(_distribution(found))
    if not np.isnan(found.fair).all():
        charts = {order_name(q): _ranking(analyses, q, names) for q in analyses.orders}
        blocks.append(ByOrder(charts))
    blocks.append(_table(analyses, names))
    if len(found.differences):
        blocks.append(_differences(found))
    if len(found) > 1:
        blocks += _alike(found, names)
    if len(found) - 1 > TESTED and len(found.differences):
        blocks.append(
            note(
                f"No tests were made: of {counted(len(found.differences), 'comparison')} none could have a small "
                "p-value after the adjustment for their number. vendimeter.compare makes them, with more permutations."
            )
        )
    for text in dict.fromkeys([*found.differences.notes, *found.notes]):
        blocks.append(note(text))
    return Section("groups", title, _lead(found), blocks)


def _lead(found: Comparison) -> str:
    """Who is highest and lowest, and how many differ."""
    at = (
        ""
        if found.size is None
        else f" at {counted(found.size, 'item')} of each, since scores grow with the items"
    )
    words = [f"{counted(len(found), 'group')}, compared{at}." if at else f"{counted(len(found), 'group')}."]
    if not np.isnan(found.fair).all():
        high, low = int(np.nanargmax(found.fair)), int(np.nanargmin(found.fair))
        most = f"{named(found.labels[high])} with {figure(found.fair[high])}"
        least = f"{named(found.labels[low])} with {figure(found.fair[low])}"
        words.append(f"The most diverse is {most}" + (f", the least {least}." if high != low else "."))
    if len(found.differences):
        words.append(found.differences.found())
    return " ".join(words)


def _partition(found: Comparison) -> Facts:
    """Within, between, in all."""
    order = of_order(found.q)
    return Facts(
        [
            Fact("Within a group", figure(found.alpha), f"effectively different items{order}, in the mean"),
            Fact(
                "Between groups",
                figure(found.beta),
                f"effectively distinct groups, of {len(found):,}",
            ),
            Fact(
                "In all",
                figure(found.gamma),
                "the product of the two: effectively different items of all groups",
            ),
        ]
    )


def _ordered(scores: np.ndarray) -> np.ndarray:
    """Positions of the groups from the highest score down; those without one are left out."""
    return np.argsort(-scores, kind="stable")[: int(np.count_nonzero(~np.isnan(scores)))]


def _ranking(analyses: Analyses, q: float, names: list[str]) -> Chart:
    found, scores = analyses.comparison, analyses.ranked[q]
    assert found is not None
    order = _ordered(scores)
    left = max(0, len(order) - LINES)
    if left:
        order = np.concatenate([order[: LINES // 2], order[-LINES // 2 :]])
    common = "as they are" if found.size is None else f"{counted(found.size, 'item')} of each"
    raw = found.scores if q == found.q else None
    dots, ends, hollow = [], [], []
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
            hollow.append({**row, "x": float(raw[g]), "series": "all items of the group"})
    tips = {"y": "group", "x": "score", "n": "items"}
    interval = f" Lines are {percentage(found.confidence)} intervals, by sampling." if ends else ""
    more = f" {left:,} groups between these are not drawn." if left else ""
    top = [f"{names[g]} {figure(scores[g])}" for g in order[:3].tolist()]
    return chart(
        f"Groups by their score{of_order(q)}",
        f"The score{of_order(q)} of each group, {common}, from the highest down: {', '.join(top)}"
        f"{', …' if len(order) > 3 else ''}.{interval}{more}",
        Axis(f"score{of_order(q)}"),
        Axis("", names=[names[g] for g in order.tolist()]),
        [
            Layer("hollow", hollow, tips),
            Layer("interval", ends, {**tips, "low": "at least", "high": "at most"}),
            Layer("point", dots, tips),
        ],
        series=[common, *(["all items of the group"] if hollow else [])],
        height=110 + 20 * len(order),
    )


def _distribution(found: Comparison) -> Chart:
    """How the scores of many groups lie."""
    scores = found.fair[~np.isnan(found.fair)]
    counts, edges = np.histogram(scores, bins=BINS)
    rows = [
        {"from": float(a), "to": float(b), "y": int(count)}
        for a, b, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    table = Table(
        [Column("from", "number"), Column("to", "number"), Column("groups", "bar")],
        [[row["from"], row["to"], row["y"]] for row in rows],
    )
    mean = float(scores.mean())
    return chart(
        "How the scores of the groups are spread",
        f"How many groups have which score; half of them lie below {figure(float(np.median(scores)))}, and their mean "
        f"(dashed) is {figure(mean)}.",
        Axis(f"score{of_order(found.q)}"),
        Axis("groups", zero=True),
        [
            Layer("histogram", rows, {"from": "from", "to": "to", "y": "groups"}),
            Layer("rule", [{"x": mean}], {"x": "mean"}),
        ],
        table=table,
    )


def _table(analyses: Analyses, names: list[str]) -> Table:
    """One row a group, with a column for every order."""
    found, subject = analyses.comparison, analyses.subject
    assert found is not None
    order = [*_ordered(found.fair).tolist()]
    order += [g for g in range(len(found)) if g not in set(order)]
    more = max(0, len(order) - ROWS)
    if more:
        order = order[: ROWS // 2] + order[-ROWS // 2 :]
    rarefied = found.size is not None
    columns = [
        Column("collection" if subject.several else "group"),
        Column("items", "number"),
        Column(
            "score", "bar", meaning=f"the score{of_order(found.q)} of all its items, which grows with them"
        ),
    ]
    if rarefied:
        columns += [
            Column(
                f"of {found.size:,}",
                "bar",
                meaning="the mean score of so many random items: what is fair to compare",
            ),
            Column(
                "at least", "number", meaning=f"of the {percentage(found.confidence)} interval, by sampling"
            ),
            Column(
                "at most", "number", meaning=f"of the {percentage(found.confidence)} interval, by sampling"
            ),
        ]
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
        if rarefied:
            row += [finite(found.rarefied[g]), finite(found.rarefied_low[g]), finite(found.rarefied_high[g])]
        rank = finite(found.rank[g])
        row.append(None if rank is None else int(rank))
        rows.append([*row, *(finite(analyses.ranked[q][g]) for q in others)])
    return Table(columns, rows, filterable=len(order) > 12, more=more)


def _differences(found: Comparison) -> Table:
    one = found.differences
    order = np.argsort(-np.abs(np.log(one.ratio)), kind="stable")[:ROWS].tolist()
    tested = not np.isnan(one.p).all()
    interval = f"of the {percentage(found.confidence)} interval"
    columns = [
        Column("group"),
        Column("compared with"),
        Column(
            "difference",
            "number",
            meaning="the score of the group less that of the other, at the common size",
        ),
        Column("at least", "number", meaning=interval),
        Column("at most", "number", meaning=interval),
        Column("ratio", "number", meaning="the one divided by the other"),
    ]
    if tested:
        columns += [
            Column(
                "p", "number", digits=2, meaning="of a permutation test that both come from one population"
            ),
            Column(
                "adjusted p", "number", digits=2, meaning="by Holm's method, for the number of comparisons"
            ),
        ]
    rows = []
    for i in order:
        held = (
            one.difference,
            one.difference_low,
            one.difference_high,
            one.ratio,
            *((one.p, one.p_adjusted) if tested else ()),
        )
        rows.append([named(one.groups[i]), named(one.references[i]), *(finite(column[i]) for column in held)])
    return Table(
        columns,
        rows,
        "Differences of the scores at the common size, the largest first.",
        filterable=len(rows) > 12,
        more=len(one) - len(rows),
    )


# ------------------------------------------------------------------------------------------------- how alike they are


def _alike(found: Comparison, names: list[str]) -> list[Block]:
    if found.similarity is None:
        return []
    there = np.flatnonzero(~np.isnan(np.diagonal(found.similarity)))
    if len(there) < 2:
        return []
    order = there[_beside(found.similarity[np.ix_(there, there)])]
    matrix = found.similarity[np.ix_(order, order)]
    a, b = np.triu_indices(len(order), 1)
    nearest = np.argsort(-matrix[a, b], kind="stable")[:PAIRS]
    rows = [[names[order[a[i]]], names[order[b[i]]], float(matrix[a[i], b[i]])] for i in nearest.tolist()]
    pairs = Table(
        [Column("group"), Column("is like"), Column("similarity", "bar", digits=3)],
        rows,
        "The pairs that are most alike.",
        more=len(a) - len(rows),
    )
    words = (
        f"How alike any two groups are, from 0 (nothing in common) to 1 (of the same composition). Most alike are "
        f"{rows[0][0]} and {rows[0][1]} with {figure(rows[0][2], 3)}; in the mean it is "
        f"{figure(float(matrix[a, b].mean()), 3)}."
    )
    if len(order) > CELLS:
        return [_picture(matrix, words), pairs]
    shown = [names[g] for g in order.tolist()]
    cells = [
        {"x": shown[j], "y": shown[i], "value": float(matrix[i, j])}
        for i in range(len(order))
        for j in range(len(order))
    ]
    drawn = chart(
        "How alike the groups are",
        words,
        Axis("", names=shown),
        Axis("", names=shown),
        [Layer("cell", cells, {"y": "group", "x": "with", "value": "similarity"})],
        table=pairs,
        height=max(200, min(620, 120 + 26 * len(order))),
    )
    return [drawn]


def _picture(matrix: np.ndarray, words: str) -> Gallery:
    low = float(matrix.min())
    scale = max(1, SIDE // len(matrix))
    pixels = np.kron(coloured(matrix, low=low), np.ones((scale, scale, 1), dtype=np.uint8))
    caption = f"dark: {figure(low, 2)}; light: 1; like groups are beside each other"
    return Gallery([Item("", png(pixels), caption=caption)], "How alike the groups are", words, large=True)
