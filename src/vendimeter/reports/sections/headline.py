"""The answer: how diverse the items are, in words and with bounds; apart from that, what the population would be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vendimeter.errors import VendimeterError
from vendimeter.reports.analyses import Analyses
from vendimeter.reports.document import Block, ByOrder, Column, Fact, Facts, Paragraph, Section, Table
from vendimeter.reports.words import (
    apart,
    claim,
    counted,
    figure,
    finite,
    named,
    of_order,
    order_sign,
    population,
    sentence,
    shares,
)
from vendimeter.results.groups import Mean
from vendimeter.results.score import order_name
from vendimeter.scoring import score_groups

__all__ = ["facts", "headline", "section"]


def headline(analyses: Analyses) -> str:
    """The answer in a sentence."""
    subject = analyses.subject
    if subject.nested:
        mean = _mean(analyses)
        return (
            f"A list is as diverse as {figure(mean.mean)} completely different texts{_at(analyses)}: the mean over "
            f"{counted(mean.units, 'list')}{_error(mean)}."
        )
    if not subject.several:
        return sentence(analyses.score, weighted=subject.parts[0].weights is not None)
    fair = analyses.comparison
    if fair is None or np.isnan(fair.fair).all():
        return f"{len(subject.parts)} collections side by side."
    high, low = int(np.nanargmax(fair.fair)), int(np.nanargmin(fair.fair))
    many = "as they are" if fair.size is None else f"at {counted(fair.size, 'item')} of each"
    most, least = apart(fair.fair[high], fair.fair[low])
    two = len(subject.parts) == 2
    rank = (
        "the more diverse of the two collections"
        if two
        else f"the most diverse of {len(subject.parts)} collections"
    )
    if most == least:
        return (
            f"{len(subject.parts)} collections are equally diverse: {many} each is as diverse as {most} completely "
            f"different items{_at(analyses)}."
        )
    return (
        f"{named(fair.labels[high])} is {rank}: {many} it is as diverse as {most} completely different items"
        f"{_at(analyses)}, and {named(fair.labels[low])}{'' if two else ', the least,'} as {least}."
    )


def _error(mean: Mean) -> str:
    known = np.isfinite(mean.standard_error)
    return f", with a standard error of {figure(mean.standard_error, 2)}" if known else ""


def _at(analyses: Analyses) -> str:
    return "" if analyses.main == 1 else f" (at order {order_sign(analyses.main)})"


def _mean(analyses: Analyses) -> Mean:
    """The mean score of the lists of texts, at the first order."""
    subject = analyses.subject
    scores = score_groups(
        np.arange(subject.n), subject.held, by=subject.labels, q=analyses.main, rng=subject.rng
    )
    return scores.mean().means[0]


def facts(analyses: Analyses) -> Facts:
    """The figures at the top of the page."""
    subject, found = analyses.subject, []
    if subject.several:
        for part, profile in list(zip(subject.parts, analyses.scores, strict=True))[:4]:
            value, bounds = claim(profile[analyses.main])
            meaning = f"{counted(profile[analyses.main].n, 'item')}; {bounds}"
            found.append(Fact(f"{subject.what(part)}: score{of_order(analyses.main)}", value, meaning))
    else:
        score = analyses.score
        value, bounds = claim(score)
        name = "Vendi Score" if score.q == 1 else f"Vendi Score of order {order_sign(score.q)}"
        if subject.nested:  # the headline's figure comes first
            mean = _mean(analyses)
            found.append(
                Fact(
                    f"{name} of a list",
                    figure(mean.mean),
                    f"the mean over {counted(mean.units, 'list')}{_error(mean)}",
                )
            )
            found.append(Fact("All texts together", value, bounds))
        else:
            found.append(Fact(name, value, bounds))
        of = shares(float(score) / score.n)
        whose = "that of all together" if subject.nested else "the score"
        found.append(Fact("Items", f"{score.n:,}", f"{whose} is {of} of their number"))
        if not subject.nested:
            found += _population(analyses)
    groups = subject.groups
    if groups is not None and not subject.several:
        found.append(Fact("Lists" if subject.nested else "Groups", f"{len(groups.labels):,}"))
    found += _copies(analyses)
    return Facts(found)


def _population(analyses: Analyses) -> list[Fact]:
    (_, curve), *_ = analyses.curves
    if isinstance(curve, VendimeterError):
        return []
    estimate = curve.population
    if estimate.interval is None:
        return [Fact("Population", "–", "no interval can be given; the reason is below")]
    value, low, high = apart(estimate, *estimate.interval)
    return [
        Fact(
            "Population",
            f"about {value}",
            f"between {low} and {high} with 95% confidence, by sampling",
        )
    ]


def _copies(analyses: Analyses) -> list[Fact]:
    try:
        found = analyses.copies
    except VendimeterError:
        return []
    copies, n = sum(one.found.copies for one in found), sum(one.found.n for one in found)
    what = f"a similarity of {analyses.threshold:g}{' or more' if analyses.threshold < 1 else ''}"
    weightless = n < sum(len(one.part.items) for one in found)
    of = f"of the {n:,} items that have weight" if weightless else "of the items"
    if not analyses.subject.several:
        return [Fact("Near copies", f"{copies:,}", f"{shares(copies / n)} {of}, at {what}")]
    told = [Fact("Near copies within a collection", f"{copies:,}", f"{shares(copies / n)} {of}, at {what}")]
    if analyses.shared is not None:
        across = int(analyses.shared[:, -1].sum())
        meaning = f"{shares(across / n)} {of} have a near copy in another collection"
        told.append(Fact("Near copies across collections", f"{across:,}", meaning))
    return told


# ---------------------------------------------------------------------------------------------------------- a section


def section(analyses: Analyses) -> Section:
    """The answer for every order, and the population."""
    subject = analyses.subject
    blocks: list[Block] = []
    if subject.several:
        blocks.append(ByOrder({order_name(q): _table(analyses, q) for q in analyses.orders}))
    else:
        weighted = subject.parts[0].weights is not None
        blocks.append(
            ByOrder(
                {
                    order_name(q): Paragraph(_said(analyses, q, weighted) + _meaning(q))
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


def _said(analyses: Analyses, q: float, weighted: bool) -> str:
    score = analyses.scores[0][q]
    if not analyses.subject.nested:
        return sentence(score, weighted=weighted)
    text = sentence(score, noun="text")
    return f"All texts of all lists together are {text[:1].lower()}{text[1:]}"


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
    for part, profile in zip(subject.parts, analyses.scores, strict=True):
        score = profile[q]
        low, high = score.bounds
        rows.append(
            [subject.what(part), part.n, score.n, float(score), finite(low), finite(high), _level(score)]
        )
    columns = [
        Column("collection"),
        Column("items", "number"),
        Column("looked at", "number", meaning="how many of its items the score is of"),
        Column("score", "bar", digits=5, meaning=f"the score{of_order(q)} of these items"),
        Column("at least", "number", digits=5, meaning="the lower bound of the computation"),
        Column("at most", "number", digits=5, meaning="the upper bound of the computation"),
        Column("bounds hold", meaning="how sure the bounds are"),
    ]
    if all(row[1] == row[2] for row in rows):
        del columns[2]
        rows = [row[:2] + row[3:] for row in rows]
    return Table(
        columns, rows, f"Scores{of_order(q)} of the collections as they are; they grow with the items."
    )


def _level(score: Any) -> str:
    return {
        "deterministic": "for certain",
        "probabilistic": "with confidence",
        "estimated": "probably",
        "none": "no claim",
    }[score.level]


def _populations(analyses: Analyses) -> list[Block]:
    found: list[Block] = []
    for part, curve in analyses.curves:
        of = subject_name(analyses, part)
        if isinstance(curve, VendimeterError):
            found.append(Paragraph(f"The population behind {of or 'these items'} was not estimated: {curve}"))
        else:
            found.append(Paragraph(population(curve.population, of=of, there=part.n)))
    return found


def subject_name(analyses: Analyses, part: Any) -> str:
    """The name of a collection where there are several."""
    return analyses.subject.what(part) if analyses.subject.several else ""
