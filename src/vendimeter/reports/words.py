"""Numbers, scores and labels in the words of a report."""

from __future__ import annotations

import math
from typing import Any

from vendimeter.analysis.rarefaction.population import Population
from vendimeter.present.numbers import align_decimals, format_confidence, order_symbol
from vendimeter.present.text import label_as_text, printable
from vendimeter.reports.document import Paragraph
from vendimeter.results.score import Score

__all__ = [
    "label_name",
    "note",
    "population_sentence",
    "score_sentence",
]


def label_name(label: Any, length: int = 40) -> str:
    """A label of the user's for people; one that combines several stands as these.

    Examples
    --------
    >>> label_name(("y", "p")), label_name("")
    ('y / p', "''")
    """
    return printable(label_as_text(label), length) or "''"


def score_sentence(score: Score, *, weighted: bool = False, noun: str = "item") -> str:
    """The score in a sentence, with the bounds of its computation.

    Examples
    --------
    >>> import vendimeter as vm
    >>> score_sentence(vm.score(["a", "b", "b"], "match"))
    'As diverse as 1.8899 completely different items, out of 3; exact up to rounding (±...
    """
    if math.isnan(score):
        return "There is nothing to score."
    claim = score.claim
    many = f"{noun}{'' if claim.number == '1' else 's'}"
    by = ", by their weights" if weighted else ""
    order = "" if score.q == 1 else f", at order {order_symbol(score.q)}"
    diverse = f"As diverse as {claim.number} completely different {many}, out of {score.n:,}{by}{order}"
    return f"{diverse}; {claim.shown('page')}."


def population_sentence(estimate: Population, *, of: str = "", total: int = 0) -> str:
    """The estimate for the population in a sentence, or why there is none; `total` is the number of items."""
    start = f"The population behind {of or 'these items'}"
    reason = estimate.refused
    if reason is None:
        assert estimate.interval is not None
        value, low, high = align_decimals(estimate, *estimate.interval)
        return (
            f"{start} would score about {value}, between {low} and {high} with "
            f"{format_confidence(estimate.confidence)} confidence: an estimate from {estimate.n:,} samples, if they "
            "were drawn from it independently."
        )
    more_may_tell = reason.kind not in ("weights", "order")
    if more_may_tell and estimate.n < total:
        why = (
            f"{reason.text} A report looks at {estimate.n:,} samples for this; vendimeter.rarefy takes more."
        )
    else:
        why = reason.shown("page")
    return f"{start}: no interval can be given, because {why}"


def note(text: str) -> Paragraph:
    """A paragraph set apart as a note."""
    return Paragraph(text, note=True)
