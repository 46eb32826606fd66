"""Scores and counts in words, as a report has them."""

from __future__ import annotations

import math
from typing import Any

from vendimeter._messages import printable
from vendimeter._report.document import Paragraph
from vendimeter.analysis._rarefaction_population import Population
from vendimeter.results import Score, _significant, order_name, percentage

__all__ = [
    "claim",
    "counted",
    "figure",
    "named",
    "of_order",
    "order_sign",
    "population",
    "sentence",
    "shares",
]


def counted(count: int, what: str) -> str:
    """A number of things: "1 item", "1,797 items".

    Examples
    --------
    >>> counted(1, "item"), counted(1797, "item"), counted(2, "near copy")
    ('1 item', '1,797 items', '2 near copies')
    """
    if count == 1:
        return f"1 {what}"
    return f"{count:,} {what[:-1] + 'ies' if what.endswith('y') else what + 's'}"


def finite(value: Any) -> float | None:
    """A number, or None where there is none."""
    return None if value is None or not math.isfinite(value) else float(value)


def figure(value: Any, digits: int = 4) -> str:
    """A number for people, or a dash.

    Examples
    --------
    >>> figure(23.6309), figure(5588.2), figure(float("nan"))
    ('23.63', '5,588', '–')
    """
    return _significant(float(value), digits).replace("-", "−") if math.isfinite(value) else "–"


def named(label: Any, most: int = 40) -> str:
    """A label of the user's for people."""
    return printable(label, most) or "''"


def shares(part: float) -> str:
    """A share in percent.

    Examples
    --------
    >>> shares(0.41634), shares(0.00013), shares(1.0)
    ('41.6%', '0.013%', '100%')
    """
    return "100%" if part >= 0.9995 else f"{100 * part:.2g}%" if part < 0.1 else f"{100 * part:.1f}%"


def order_sign(q: float) -> str:
    """The order for people: ∞ for infinity."""
    return "∞" if math.isinf(q) else order_name(q)


def of_order(q: float) -> str:
    """Nothing for order 1, and else which order it is."""
    return "" if q == 1 else f" of order {order_sign(q)}"


def claim(score: Score) -> tuple[str, str]:
    """How many effectively different items, and what is claimed of that, in words."""
    text = score._claim()
    number, _, rest = text.partition(" effectively different")
    return number, rest.partition(f" of {score.n:,}")[2].removeprefix(":").removeprefix(",").strip()


def sentence(score: Score, *, weighted: bool = False, noun: str = "item") -> str:
    """The score in a sentence, with the bounds of its computation.

    Examples
    --------
    >>> import vendimeter as vm
    >>> sentence(vm.score(["a", "b", "b"], "match"))
    'As diverse as 1.8899 completely different items, out of 3; exact up to rounding (±...
    """
    if math.isnan(score):
        return "There is nothing to score."
    number, bounds = claim(score)
    many = f"{noun}{'' if number == '1' else 's'}"
    by = ", by their weights" if weighted else ""
    order = "" if score.q == 1 else f", at order {order_sign(score.q)}"
    return f"As diverse as {number} completely different {many}, out of {score.n:,}{by}{order}; {bounds}."


def population(found: Population, *, of: str = "") -> str:
    """What the items say of where they came from, or why that cannot be said."""
    start = f"The population behind {of or 'these items'}"
    if found.interval is not None:
        low, high = found.interval
        return (
            f"{start} would score about {figure(found)}, between {figure(low)} and {figure(high)} with "
            f"{percentage(found.confidence)} confidence: an estimate from {found.n:,} samples, if they were drawn from "
            "it independently."
        )
    return f"{start}: no interval can be given, because {found.refused}"


def note(text: str) -> Paragraph:
    """A paragraph that is set apart."""
    return Paragraph(text, note=True)
