"""Groups, or collections, side by side: who is most diverse at a common size, who differs, and who is alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter.analysis.comparison.comparison import Comparison
from vendimeter.plots.comparison import neighbour_order
from vendimeter.present.colours import coloured, png
from vendimeter.present.notes import sentences
from vendimeter.present.numbers import (
    align_decimals,
    count_of,
    format_confidence,
    format_number,
    order_name,
    order_suffix,
    order_symbol,
)
from vendimeter.present.plain import plain
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
from vendimeter.reports.findings import MAX_TESTED, Findings
from vendimeter.reports.words import note

__all__ = ["section", "similarity_blocks"]


MAX_CHART_GROUPS = 30  # groups whose similarities are a chart; those of more are a picture
PICTURE_PIXELS = 250  # side of that picture
MAX_PAIRS = 20  # pairs of groups in a table


def similarity_blocks(comparison: Comparison, names: list[str], noun: str) -> list[Block]:
    """Blocks about the similarity of groups: a chart, or a picture of many, and the most similar pairs.

    A group is called by `noun`.
    """
    if comparison.similarity is None:
        return []
    filled = np.flatnonzero(~np.isnan(np.diagonal(comparison.similarity)))
    if len(filled) < 2:
        return []
    order = filled[neighbour_order(comparison.similarity[np.ix_(filled, filled)])]
    matrix = comparison.similarity[np.ix_(order, order)]
    first, second = np.triu_indices(len(order), 1)
    nearest = np.argsort(-matrix[first, second], kind="stable")[:MAX_PAIRS]
    rows = [
        [names[order[first[i]]], names[order[second[i]]], float(matrix[first[i], second[i]])]
        for i in nearest.tolist()
    ]
    pairs = Table(
        [Column(noun), Column("is like"), Column("similarity", "bar", digits=3)],
        rows,
        "The pairs that are most alike.",
        more=len(first) - len(rows),
    )
    words = (
        f"How alike any two {noun}s are, from 0 (nothing in common) to 1 (of the same composition). Most alike are "
        f"{rows[0][0]} and {rows[0][1]} with {format_number(rows[0][2], 3)}; in the mean it is "
        f"{format_number(float(matrix[first, second].mean()), 3)}."
    )
    if len(order) == 2:
        return [
            Paragraph(
                f"{rows[0][0]} and {rows[0][1]} are alike to {format_number(rows[0][2], 3)}, from 0 (nothing in "
                "common) to 1 (of the same composition)."
            )
        ]
    if len(order) > MAX_CHART_GROUPS:
        return [_picture(matrix, words, noun), pairs]
    shown_names = [names[g] for g in order.tolist()]
    cells = [
        {"x": shown_names[j], "y": shown_names[i], "value": float(matrix[i, j])}
        for i in range(len(order))
        for j in range(len(order))
    ]
    heat_map = chart(
        f"How alike the {noun}s are",
        words,
        Axis("", names=shown_names),
        Axis("", names=shown_names),
        [Layer("cell", cells, {"y": noun, "x": "with", "value": "similarity"})],
        table=pairs,
        height=max(200, min(620, 120 + 26 * len(order))),
    )
    return [heat_map]


def _picture(matrix: np.ndarray, words: str, noun: str) -> Gallery:
    low = float(matrix.min())
    scale = max(1, PICTURE_PIXELS // len(matrix))
    pixels = np.kron(coloured(matrix, low=low), np.ones((scale, scale, 1), dtype=np.uint8))
    caption = f"dark: {format_number(low, 2)}; light: 1; {noun}s that are alike are beside each other"
    return Gallery([Item("", png(pixels), caption=caption)], f"How alike the {noun}s are", words, large=True)


# ------------------------------------------------------------------------------------------------------------- grouped

MAX_LINES = 40  # groups of a chart: of more the highest and the lowest half
MAX_ROWS = 200  # of a table
BINS = 30
ROUNDING = 1e-9  # of a score


def section(findings: Findings) -> Section | None:
    """The comparison; nothing where there are no groups."""
    comparison = findings.comparison
    if comparison is None:
        return None
    names, noun = distinct_names(comparison.labels), _group_noun(findings)
    title = "The collections side by side" if findings.has_several else f"{noun.capitalize()}s"
    blocks: list[Block] = [_partition(comparison, noun)]
    if len(comparison) > MAX_LINES:
        blocks.append(_distribution(comparison, noun))
    if not np.isnan(comparison.fair).all():
        charts = {order_name(q): _ranking(findings, q, names) for q in findings.orders}
        blocks.append(ByOrder(charts))
    blocks.append(_table(findings, names))
    compared = _is_compared(findings)
    if compared:
        blocks.append(_differences(findings, names))
    if len(comparison) > 1:
        blocks += similarity_blocks(comparison, names, noun)
    if len(comparison) - 1 > MAX_TESTED and compared:
        blocks.append(
            note(
                f"No tests were made: of {count_of(len(comparison.differences), 'comparison')} none could have a small "
                "p-value after the adjustment for their number. vendimeter.compare makes them, with more permutations."
            )
        )
    notes = [*(comparison.differences.notes if compared else ()), *comparison.notes]
    blocks += map(note, sentences(notes, "page"))
    return Section("groups", title, _lead(findings, names, noun), blocks)


def _group_noun(findings: Findings) -> str:
    return "collection" if findings.has_several else "list" if findings.are_lists else "group"


def _is_compared(findings: Findings) -> bool:
    """Whether differences are shown: of many groups only those from one that was named, or the first would be it."""
    comparison = findings.comparison
    assert comparison is not None
    return len(comparison.differences) > 0 and (
        findings.reference is not None or len(comparison) - 1 <= MAX_TESTED
    )


def _lead(findings: Findings, names: list[str], noun: str) -> str:
    """Who is highest and lowest, and how many differ."""
    comparison = findings.comparison
    assert comparison is not None
    # In a sentence a label that is a number would be taken for an amount.
    numbers = all(name.replace(".", "", 1).isdigit() for name in names)
    names = [f"{noun} {name}" for name in names] if numbers else names
    condition = (
        ""
        if comparison.size is None
        else f" at {count_of(comparison.size, 'item')} of each, since scores grow with the items"
    )
    words = [
        f"{count_of(len(comparison), noun)}, compared{condition}."
        if condition
        else f"{count_of(len(comparison), noun)}."
    ]
    if not np.isnan(comparison.fair).all():
        high, low = int(np.nanargmax(comparison.fair)), int(np.nanargmin(comparison.fair))
        top, bottom = align_decimals(comparison.fair[high], comparison.fair[low])
        highest, lowest = f"{names[high]} with {top}", f"{names[low]} with {bottom}"
        words.append(f"The most diverse is {highest}" + (f", the least {lowest}." if high != low else "."))
    if _is_compared(findings):
        first = "" if findings.reference is not None else f", the first {noun},"
        words += _difference_sentences(comparison, dict(zip(comparison.labels, names, strict=True)), first)
    return " ".join(words)


def _difference_sentences(comparison: Comparison, names: dict[Any, str], explanation: str) -> list[str]:
    """The largest difference from the one that others are compared with, and how many are more than chance."""
    differences = comparison.differences
    largest = int(np.argmax(np.abs(np.log(differences.ratio))))
    interval = ""
    if np.isfinite(differences.ratio_low[largest]):
        low, high = align_decimals(differences.ratio_low[largest], differences.ratio_high[largest], digits=3)
        interval = f" ({format_confidence(differences.confidence)} interval {low} to {high})"
    group, reference = names[differences.groups[largest]], names[differences.references[largest]]
    ratio = f"{format_number(differences.ratio[largest], 3)} times"
    words = [f"The score of {group} is {ratio} that of {reference}{interval}."]
    if len(differences) > 1 and abs(np.log(differences.ratio[largest])) < ROUNDING:
        words = [f"No score differs from that of {reference}{explanation.removesuffix(',')}."]
    elif len(differences) > 1:
        largest_difference = f"The largest difference from {reference}{explanation} is that of {group}"
        words = [f"{largest_difference}: its score is {ratio} as high{interval}."]
    level = 1 - differences.confidence
    tests = int(np.count_nonzero(~np.isnan(differences.p)))
    if not tests or differences.least > level + 1e-9:
        return words
    if len(differences) == 1:
        words.append(
            f"By a permutation test of {differences.tested_size:,} items of each, p = "
            f"{format_number(differences.p[0], 2)}."
        )
        return words
    significant = int(np.count_nonzero(differences.p_adjusted <= level + 1e-9))
    how_many = "None" if not significant else "All" if significant == tests else f"{significant:,}"
    words.append(
        f"{how_many} of the {tests:,} differences from {reference} {'is' if significant == 1 else 'are'} more than "
        f"chance at the {level:.2g} level (permutation tests of {differences.tested_size:,} items of each, adjusted by "
        "Holm's method)."
    )
    return words


def _partition(comparison: Comparison, noun: str) -> Facts:
    """Within, between, in all."""
    order = order_suffix(comparison.q)
    return Facts(
        [
            Fact(
                f"Within a {noun}",
                format_number(comparison.alpha),
                f"effectively different items{order}, in the mean",
            ),
            Fact(
                f"Between {noun}s",
                format_number(comparison.beta),
                f"effectively distinct {noun}s, of {len(comparison):,}",
            ),
            Fact(
                "In all",
                format_number(comparison.gamma),
                f"the product of the two: effectively different items of all {noun}s",
            ),
        ]
    )


def _descending(scores: np.ndarray) -> np.ndarray:
    """Positions of the groups from the highest score down; those without one are left out."""
    return np.argsort(-scores, kind="stable")[: int(np.count_nonzero(~np.isnan(scores)))]


def _ranking(findings: Findings, q: float, names: list[str]) -> Chart:
    comparison, scores, noun = findings.comparison, findings.group_scores[q], _group_noun(findings)
    assert comparison is not None
    order = _descending(scores)
    omitted = max(0, len(order) - MAX_LINES)
    if omitted:
        order = np.concatenate([order[: MAX_LINES // 2], order[-MAX_LINES // 2 :]])
    series_name = "as they are" if comparison.size is None else f"{count_of(comparison.size, 'item')} of each"
    raw = comparison.scores if q == comparison.q else None
    dots, intervals, full_scores, full_series = [], [], [], f"all items of the {noun}"
    for g in order.tolist():
        row: dict[str, Any] = {
            "y": names[g],
            "x": float(scores[g]),
            "series": series_name,
            "n": int(comparison.sizes[g]),
        }
        dots.append(row)
        low, high = plain(comparison.rarefied_low[g]), plain(comparison.rarefied_high[g])
        if q == comparison.q and low is not None and high is not None:
            intervals.append({**row, "low": low, "high": high})
        if raw is not None and comparison.size is not None and comparison.sizes[g] > comparison.size:
            full_scores.append({**row, "x": float(raw[g]), "series": full_series})
    tips = {"y": noun, "x": "score", "n": "items"}
    interval = (
        f" Lines are {format_confidence(comparison.confidence)} intervals, by sampling." if intervals else ""
    )
    more = f" {omitted:,} {noun}s between these are not drawn." if omitted else ""
    top = [f"{names[g]} {format_number(scores[g])}" for g in order[:3].tolist()]
    return chart(
        f"{noun.capitalize()}s by their score{order_suffix(q)}",
        f"The score{order_suffix(q)} of each {noun}, {series_name}, from the highest down: {', '.join(top)}"
        f"{', …' if len(order) > 3 else ''}.{interval}{more}",
        Axis(f"score{order_suffix(q)}", inset=True),
        Axis("", names=[names[g] for g in order.tolist()]),
        [
            Layer("hollow", full_scores, tips),
            Layer("interval", intervals, {**tips, "low": "at least", "high": "at most"}),
            Layer("point", dots, tips),
        ],
        series=[series_name, *([full_series] if full_scores else [])],
        height=110 + 20 * len(order),
    )


def _distribution(comparison: Comparison, noun: str) -> Chart:
    """How the scores of many groups lie."""
    scores = comparison.fair[~np.isnan(comparison.fair)]
    counts, edges = np.histogram(scores, bins=BINS)
    rows = [
        {"from": float(a), "to": float(b), "y": int(count)}
        for a, b, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    table = Table(
        [Column("from", "number"), Column("to", "number"), Column(f"{noun}s", "bar")],
        [[row["from"], row["to"], row["y"]] for row in rows],
    )
    mean = float(scores.mean())
    return chart(
        f"How the scores of the {noun}s are spread",
        f"How many {noun}s have which score; half of them lie below {format_number(float(np.median(scores)))}, and "
        f"their mean (dashed) is {format_number(mean)}.",
        Axis(f"score{order_suffix(comparison.q)}"),
        Axis(f"{noun}s", zero=True, whole=True),
        [
            Layer("histogram", rows, {"from": "from", "to": "to", "y": f"{noun}s"}),
            Layer("rule", [{"x": mean}], {"x": "mean"}),
        ],
        table=table,
    )


def _table(findings: Findings, names: list[str]) -> Table:
    """One row a group, with a column for every order."""
    comparison = findings.comparison
    assert comparison is not None
    order = [*_descending(comparison.fair).tolist()]
    order += [g for g in range(len(comparison)) if g not in set(order)]
    more = max(0, len(order) - MAX_ROWS)
    if more:
        order = order[: MAX_ROWS // 2] + order[-MAX_ROWS // 2 :]
    rarefied = comparison.size is not None
    # Of groups that all have the common size their scores are compared as they are.
    equal = rarefied and bool((comparison.sizes == comparison.size).all())
    spread = rarefied and bool(np.isfinite(comparison.rarefied_low).any())
    interval = f"of the {format_confidence(comparison.confidence)} interval, by sampling"
    columns = [
        Column(_group_noun(findings)),
        Column("items", "number"),
        Column(
            "score",
            "bar",
            meaning=f"the score{order_suffix(comparison.q)} of all its items, which grows with them",
        ),
    ]
    if rarefied and not equal:
        meaning = "the mean score of so many random items: what is fair to compare"
        columns.append(Column(f"of {comparison.size:,}", "bar", meaning=meaning))
    if spread:
        columns += [Column(end, "number", meaning=interval) for end in ("at least", "at most")]
    columns.append(Column("rank", "number"))
    other_orders = [q for q in findings.orders if q != comparison.q]
    columns += [
        Column(
            f"q={order_symbol(q)}",
            "number",
            meaning=f"the score of order {order_symbol(q)}, compared as fairly",
        )
        for q in other_orders
    ]
    rows = []
    for g in order:
        row: list[Any] = [names[g], int(comparison.sizes[g]), plain(comparison.scores[g])]
        if rarefied and not equal:
            row.append(plain(comparison.rarefied[g]))
        if spread:
            row += [plain(comparison.rarefied_low[g]), plain(comparison.rarefied_high[g])]
        rank = plain(comparison.rank[g])
        row.append(None if rank is None else int(rank))
        rows.append([*row, *(plain(findings.group_scores[q][g]) for q in other_orders)])
    return Table(columns, rows, filterable=len(order) > 12, more=more)


def _differences(findings: Findings, names: list[str]) -> Table:
    comparison, noun = findings.comparison, _group_noun(findings)
    assert comparison is not None
    differences, by_label = comparison.differences, dict(zip(comparison.labels, names, strict=True))
    order = np.argsort(-np.abs(np.log(differences.ratio)), kind="stable")[:MAX_ROWS].tolist()
    tested = not np.isnan(differences.p).all()
    spread = bool(np.isfinite(differences.difference_low).any())
    interval = f"of the {format_confidence(comparison.confidence)} interval"
    meaning_of_difference = f"the score of the {noun} less that of the other, at the common size"
    columns = [Column(noun), Column("difference", "number", meaning=meaning_of_difference)]
    if spread:
        columns += [Column(end, "number", meaning=interval) for end in ("at least", "at most")]
    columns.append(Column("ratio", "number", meaning="the one divided by the other"))
    if tested:
        meaning = "of a permutation test that both come from one population"
        columns.append(Column("p", "number", digits=2, meaning=meaning))
    adjusted = tested and len(differences) > 1
    if adjusted:
        meaning = "by Holm's method, for the number of comparisons"
        columns.append(Column("adjusted p", "number", digits=2, meaning=meaning))
    rows = []
    for i in order:
        arrays = (
            differences.difference,
            *((differences.difference_low, differences.difference_high) if spread else ()),
            differences.ratio,
            *((differences.p,) if tested else ()),
            *((differences.p_adjusted,) if adjusted else ()),
        )
        rows.append([by_label[differences.groups[i]], *(plain(column[i]) for column in arrays)])
    explanation = (
        "" if findings.reference is not None else f", the first {noun}, since none was named to compare with"
    )
    size = "" if comparison.size is None else "at the common size, "
    caption = f"Differences from {by_label[differences.references[0]]}{explanation}; {size}the largest first."
    return Table(
        columns,
        rows,
        caption,
        filterable=len(rows) > 12,
        more=len(differences) - len(rows),
    )
