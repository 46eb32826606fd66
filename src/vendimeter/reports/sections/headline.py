"""The answer: how diverse the items are, in words and with bounds; apart from that, what the population would be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vendimeter.errors import VendimeterError
from vendimeter.present.numbers import (
    align_decimals,
    count_of,
    format_number,
    format_share,
    order_name,
    order_suffix,
    order_symbol,
)
from vendimeter.present.plain import plain
from vendimeter.reports.document import Block, ByOrder, Column, Fact, Facts, Paragraph, Section, Table
from vendimeter.reports.findings import Findings
from vendimeter.reports.words import label_name, population_sentence, score_sentence
from vendimeter.results.groups import Mean

__all__ = ["facts", "headline", "section"]


def headline(findings: Findings) -> str:
    """The answer in a sentence."""
    if findings.are_lists:
        mean = findings.mean_of_lists
        return (
            f"A list is as diverse as {format_number(mean.mean)} completely different texts{_order_remark(findings)}: "
            f"the mean over {count_of(mean.units, 'list')}{_error_words(mean)}."
        )
    if not findings.has_several:
        return score_sentence(findings.score, weighted=findings.diversity.weighting == "weights")
    comparison = findings.comparison
    if comparison is None or np.isnan(comparison.fair).all():
        return f"{len(findings.parts)} collections side by side."
    high, low = int(np.nanargmax(comparison.fair)), int(np.nanargmin(comparison.fair))
    size_words = (
        "as they are" if comparison.size is None else f"at {count_of(comparison.size, 'item')} of each"
    )
    highest, lowest = align_decimals(comparison.fair[high], comparison.fair[low])
    only_two = len(findings.parts) == 2
    rank = (
        "the more diverse of the two collections"
        if only_two
        else f"the most diverse of {len(findings.parts)} collections"
    )
    if highest == lowest:
        return (
            f"{len(findings.parts)} collections are equally diverse: {size_words} each is as diverse as {highest} "
            f"completely different items{_order_remark(findings)}."
        )
    return (
        f"{label_name(comparison.labels[high])} is {rank}: {size_words} it is as diverse as {highest} completely "
        f"different items{_order_remark(findings)}, and "
        f"{label_name(comparison.labels[low])}{'' if only_two else ', the least,'} as {lowest}."
    )


def _error_words(mean: Mean) -> str:
    has_error = np.isfinite(mean.standard_error)
    return f", with a standard error of {format_number(mean.standard_error, 2)}" if has_error else ""


def _order_remark(findings: Findings) -> str:
    return "" if findings.first_order == 1 else f" (at order {order_symbol(findings.first_order)})"


def facts(findings: Findings) -> Facts:
    """The figures at the top of the page."""
    figures = []
    if findings.has_several:
        for part, profile in list(zip(findings.parts, findings.scores, strict=True))[:4]:
            score = profile[findings.first_order]
            meaning = f"{count_of(score.n, 'item')}; {score.claim.shown('page')}"
            figures.append(
                Fact(
                    f"{part.name}: score{order_suffix(findings.first_order)}",
                    score.claim.number,
                    meaning,
                )
            )
    else:
        score = findings.score
        number, bounds = score.claim.number, score.claim.shown("page")
        name = f"Vendi Score{order_suffix(score.q)}"
        if findings.are_lists:  # the headline's figure comes first
            mean = findings.mean_of_lists
            figures.append(
                Fact(
                    f"{name} of a list",
                    format_number(mean.mean),
                    f"the mean over {count_of(mean.units, 'list')}{_error_words(mean)}",
                )
            )
            figures.append(Fact("All texts together", number, bounds))
        else:
            figures.append(Fact(name, number, bounds))
        share = format_share(float(score) / score.n)
        subject_words = "that of all together" if findings.are_lists else "the score"
        figures.append(Fact("Items", f"{score.n:,}", f"{subject_words} is {share} of their number"))
        if not findings.are_lists:
            figures += _population(findings)
    groups = findings.sample.groups
    if groups is not None and not findings.has_several:
        figures.append(Fact("Lists" if findings.are_lists else "Groups", f"{len(groups.labels):,}"))
    figures += _copies(findings)
    return Facts(figures)


def _population(findings: Findings) -> list[Fact]:
    (_, curve), *_ = findings.curves
    if isinstance(curve, VendimeterError):
        return []
    estimate = curve.population
    if estimate.interval is None:
        return [Fact("Population", "–", "no interval can be given; the reason is below")]
    value, low, high = align_decimals(estimate, *estimate.interval)
    return [
        Fact(
            "Population",
            f"about {value}",
            f"between {low} and {high} with 95% confidence, by sampling",
        )
    ]


def _copies(findings: Findings) -> list[Fact]:
    try:
        copies_by_collection = findings.copies
    except VendimeterError:
        return []
    copy_count, n = (
        sum(near_copies.duplicates.copies for near_copies in copies_by_collection),
        sum(near_copies.duplicates.n for near_copies in copies_by_collection),
    )
    threshold_words = f"a similarity of {findings.threshold:g}{' or more' if findings.threshold < 1 else ''}"
    weightless = n < sum(near_copies.part.diversity.n for near_copies in copies_by_collection)
    denominator = f"of the {n:,} items that have weight" if weightless else "of the items"
    if not findings.has_several:
        return [
            Fact(
                "Near copies",
                f"{copy_count:,}",
                f"{format_share(copy_count / n)} {denominator}, at {threshold_words}",
            )
        ]
    figures = [
        Fact(
            "Near copies within a collection",
            f"{copy_count:,}",
            f"{format_share(copy_count / n)} {denominator}, at {threshold_words}",
        )
    ]
    if findings.shared_counts is not None:
        across = int(findings.shared_counts[:, -1].sum())
        meaning = f"{format_share(across / n)} {denominator} have a near copy in another collection"
        figures.append(Fact("Near copies across collections", f"{across:,}", meaning))
    return figures


# ---------------------------------------------------------------------------------------------------------- a section


def section(findings: Findings) -> Section:
    """The answer for every order, and the population."""
    blocks: list[Block] = []
    if findings.has_several:
        blocks.append(ByOrder({order_name(q): _table(findings, q) for q in findings.orders}))
    else:
        weighted = findings.diversity.weighting == "weights"
        blocks.append(
            ByOrder(
                {
                    order_name(q): Paragraph(_score_statement(findings, q, weighted) + _meaning(q))
                    for q in findings.orders
                }
            )
        )
    blocks += _populations(findings)
    lead = (
        "The Vendi Score counts effectively different items: n items that share nothing score n, and n copies of one "
        "item score 1. Its bounds are those of the computation, for exactly these items. What it would be for the "
        "population that they came from is another question, answered apart from it."
    )
    return Section("answer", "How diverse it is", lead, blocks)


def _score_statement(findings: Findings, q: float, weighted: bool) -> str:
    score = findings.scores[0][q]
    if not findings.are_lists:
        return score_sentence(score, weighted=weighted)
    statement = score_sentence(score, noun="text")
    return f"All texts of all lists together are {statement[:1].lower()}{statement[1:]}"


def _meaning(q: float) -> str:
    if q == 0:
        return " Order 0 counts every dimension that there is, however rare: the rank."
    if q == 1:
        return " Order 1 is the Vendi Score proper, which weighs everything by how common it is."
    if math.isinf(q):
        return " Order ∞ looks at the most common dimension alone."
    return (
        " Orders above 1 give more weight to what is common."
        if q > 1
        else (" Orders below 1 give more weight to what is rare.")
    )


def _table(findings: Findings, q: float) -> Table:
    rows: list[list[Any]] = []
    for part, profile in zip(findings.parts, findings.scores, strict=True):
        score = profile[q]
        low, high = score.bounds
        rows.append(
            [
                part.name,
                part.n,
                score.n,
                float(score),
                plain(low),
                plain(high),
                _level(score),
            ]
        )
    columns = [
        Column("collection"),
        Column("items", "number"),
        Column("looked at", "number", meaning="how many of its items the score is of"),
        Column("score", "bar", digits=5, meaning=f"the score{order_suffix(q)} of these items"),
        Column("at least", "number", digits=5, meaning="the lower bound of the computation"),
        Column("at most", "number", digits=5, meaning="the upper bound of the computation"),
        Column("bounds hold", meaning="how sure the bounds are"),
    ]
    if all(row[1] == row[2] for row in rows):
        del columns[2]
        rows = [row[:2] + row[3:] for row in rows]
    return Table(
        columns, rows, f"Scores{order_suffix(q)} of the collections as they are; they grow with the items."
    )


def _level(score: Any) -> str:
    return {
        "deterministic": "for certain",
        "probabilistic": "with confidence",
        "estimated": "probably",
        "none": "no claim",
    }[score.level]


def _populations(findings: Findings) -> list[Block]:
    paragraphs: list[Block] = []
    for part, curve in findings.curves:
        name = part.name if findings.has_several else ""
        if isinstance(curve, VendimeterError):
            paragraphs.append(
                Paragraph(f"The population behind {name or 'these items'} was not estimated: {curve}")
            )
        else:
            paragraphs.append(Paragraph(population_sentence(curve.population, of=name, total=part.n)))
    return paragraphs
