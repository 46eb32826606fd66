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
from vendimeter.reports.analyses import Analyses
from vendimeter.reports.document import Block, ByOrder, Column, Fact, Facts, Paragraph, Section, Table
from vendimeter.reports.words import claim_words, label_name, population_sentence, score_sentence
from vendimeter.results.groups import Mean
from vendimeter.scoring import score_groups

__all__ = ["facts", "headline", "section"]


def headline(analyses: Analyses) -> str:
    """The answer in a sentence."""
    subject = analyses.subject
    if subject.nested:
        mean = _mean_of_lists(analyses)
        return (
            f"A list is as diverse as {format_number(mean.mean)} completely different texts{_order_remark(analyses)}: "
            f"the mean over {count_of(mean.units, 'list')}{_error_words(mean)}."
        )
    if not subject.has_several:
        return score_sentence(analyses.score, weighted=subject.collections[0].weights is not None)
    comparison = analyses.comparison
    if comparison is None or np.isnan(comparison.fair).all():
        return f"{len(subject.collections)} collections side by side."
    high, low = int(np.nanargmax(comparison.fair)), int(np.nanargmin(comparison.fair))
    size_words = (
        "as they are" if comparison.size is None else f"at {count_of(comparison.size, 'item')} of each"
    )
    highest, lowest = align_decimals(comparison.fair[high], comparison.fair[low])
    only_two = len(subject.collections) == 2
    rank = (
        "the more diverse of the two collections"
        if only_two
        else f"the most diverse of {len(subject.collections)} collections"
    )
    if highest == lowest:
        return (
            f"{len(subject.collections)} collections are equally diverse: {size_words} each is as diverse as {highest} "
            f"completely different items{_order_remark(analyses)}."
        )
    return (
        f"{label_name(comparison.labels[high])} is {rank}: {size_words} it is as diverse as {highest} completely "
        f"different items{_order_remark(analyses)}, and "
        f"{label_name(comparison.labels[low])}{'' if only_two else ', the least,'} as {lowest}."
    )


def _error_words(mean: Mean) -> str:
    has_error = np.isfinite(mean.standard_error)
    return f", with a standard error of {format_number(mean.standard_error, 2)}" if has_error else ""


def _order_remark(analyses: Analyses) -> str:
    return "" if analyses.first_order == 1 else f" (at order {order_symbol(analyses.first_order)})"


def _mean_of_lists(analyses: Analyses) -> Mean:
    """The mean score of the lists of texts, at the first order."""
    subject = analyses.subject
    scores = score_groups(
        np.arange(subject.n),
        subject.position_kernel,
        by=subject.labels,
        q=analyses.first_order,
        rng=subject.rng,
    )
    return scores.mean().means[0]


def facts(analyses: Analyses) -> Facts:
    """The figures at the top of the page."""
    subject, figures = analyses.subject, []
    if subject.has_several:
        for collection, profile in list(zip(subject.collections, analyses.scores, strict=True))[:4]:
            value, bounds = claim_words(profile[analyses.first_order])
            meaning = f"{count_of(profile[analyses.first_order].n, 'item')}; {bounds}"
            figures.append(
                Fact(
                    f"{subject.name_of(collection)}: score{order_suffix(analyses.first_order)}",
                    value,
                    meaning,
                )
            )
    else:
        score = analyses.score
        value, bounds = claim_words(score)
        name = f"Vendi Score{order_suffix(score.q)}"
        if subject.nested:  # the headline's figure comes first
            mean = _mean_of_lists(analyses)
            figures.append(
                Fact(
                    f"{name} of a list",
                    format_number(mean.mean),
                    f"the mean over {count_of(mean.units, 'list')}{_error_words(mean)}",
                )
            )
            figures.append(Fact("All texts together", value, bounds))
        else:
            figures.append(Fact(name, value, bounds))
        share = format_share(float(score) / score.n)
        subject_words = "that of all together" if subject.nested else "the score"
        figures.append(Fact("Items", f"{score.n:,}", f"{subject_words} is {share} of their number"))
        if not subject.nested:
            figures += _population(analyses)
    groups = subject.groups
    if groups is not None and not subject.has_several:
        figures.append(Fact("Lists" if subject.nested else "Groups", f"{len(groups.labels):,}"))
    figures += _copies(analyses)
    return Facts(figures)


def _population(analyses: Analyses) -> list[Fact]:
    (_, curve), *_ = analyses.curves
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


def _copies(analyses: Analyses) -> list[Fact]:
    try:
        copies_by_collection = analyses.copies
    except VendimeterError:
        return []
    copy_count, n = (
        sum(near_copies.duplicates.copies for near_copies in copies_by_collection),
        sum(near_copies.duplicates.n for near_copies in copies_by_collection),
    )
    threshold_words = f"a similarity of {analyses.threshold:g}{' or more' if analyses.threshold < 1 else ''}"
    weightless = n < sum(len(near_copies.collection.items) for near_copies in copies_by_collection)
    denominator = f"of the {n:,} items that have weight" if weightless else "of the items"
    if not analyses.subject.has_several:
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
    if analyses.shared_counts is not None:
        across = int(analyses.shared_counts[:, -1].sum())
        meaning = f"{format_share(across / n)} {denominator} have a near copy in another collection"
        figures.append(Fact("Near copies across collections", f"{across:,}", meaning))
    return figures


# ---------------------------------------------------------------------------------------------------------- a section


def section(analyses: Analyses) -> Section:
    """The answer for every order, and the population."""
    subject = analyses.subject
    blocks: list[Block] = []
    if subject.has_several:
        blocks.append(ByOrder({order_name(q): _table(analyses, q) for q in analyses.orders}))
    else:
        weighted = subject.collections[0].weights is not None
        blocks.append(
            ByOrder(
                {
                    order_name(q): Paragraph(_score_statement(analyses, q, weighted) + _meaning(q))
                    for q in analyses.orders
                }
            )
        )
    blocks += _populations(analyses)
    lead = (
        "The Vendi Score counts effectively different items: n items that share nothing score n, and n copies of one "
        "item score 1. Its bounds are those of the computation, for exactly these items. What it would be for the "
        "population that they came from is another question, answered apart from it."
    )
    return Section("answer", "How diverse it is", lead, blocks)


def _score_statement(analyses: Analyses, q: float, weighted: bool) -> str:
    score = analyses.scores[0][q]
    if not analyses.subject.nested:
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


def _table(analyses: Analyses, q: float) -> Table:
    subject = analyses.subject
    rows: list[list[Any]] = []
    for collection, profile in zip(subject.collections, analyses.scores, strict=True):
        score = profile[q]
        low, high = score.bounds
        rows.append(
            [
                subject.name_of(collection),
                collection.n,
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


def _populations(analyses: Analyses) -> list[Block]:
    paragraphs: list[Block] = []
    for collection, curve in analyses.curves:
        name = subject_name(analyses, collection)
        if isinstance(curve, VendimeterError):
            paragraphs.append(
                Paragraph(f"The population behind {name or 'these items'} was not estimated: {curve}")
            )
        else:
            paragraphs.append(Paragraph(population_sentence(curve.population, of=name, total=collection.n)))
    return paragraphs


def subject_name(analyses: Analyses, collection: Any) -> str:
    """The name of a collection where there are several."""
    return analyses.subject.name_of(collection) if analyses.subject.has_several else ""
