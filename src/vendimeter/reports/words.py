"""Scores and counts in words, as a report has them."""

from __future__ import annotations

import math
import re
from typing import Any

from vendimeter.analysis.rarefaction.population import Population
from vendimeter.errors import printable
from vendimeter.reports.document import Paragraph
from vendimeter.results.score import Score, _significant, order_name, percentage

__all__ = [
    "apart",
    "claim",
    "counted",
    "figure",
    "joined",
    "named",
    "of_order",
    "order_sign",
    "population",
    "sentence",
    "shares",
    "without_advice",
]


_TAKE = re.compile(r"\s+Take [^.]*\.$")
_POWER = re.compile(r"\b(\d(?:\.\d+)?)e([+-]\d+)\b")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_FINE = re.compile(r"(?<=about )\d+\.\d+(?= effectively)")  # more digits than an estimate has
_ADVICE = re.compile(r"(?:\.\s+Pass|[:;]\s+pass)\s[^.]*\.$")


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
    if not math.isfinite(value):
        return "–"
    text = _significant(float(value), digits)
    return text.replace("-", "−" if text.strip("-0.,") else "")


def apart(*values: float, digits: int = 4) -> list[str]:
    """Numbers that are read together, such as the ends of an interval: with the same decimals.

    Examples
    --------
    >>> apart(5.689, 5.5, 5.8942), apart(22.1, 9.987)
    (['5.689', '5.500', '5.894'], ['22.10', '9.99'])
    """
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    places = max(0, digits - 1 - math.floor(math.log10(max(sizes)))) if sizes else 0
    return [f"{value:,.{places}f}".replace("-", "−") if math.isfinite(value) else "–" for value in values]


def named(label: Any, most: int = 40) -> str:
    """A label of the user's for people; one that combines several stands as these.

    Examples
    --------
    >>> named(("y", "p")), named("")
    ('y / p', "''")
    """
    return printable(joined(label), most) or "''"


def joined(label: Any) -> str:
    """A label as text: "y / p" of a pair of labels."""
    return " / ".join(map(joined, label)) if isinstance(label, tuple) else str(label)


def shares(part: float) -> str:
    """A share in percent.

    Examples
    --------
    >>> shares(0.41634), shares(0.01), shares(0.00013), shares(1.0)
    ('41.6%', '1.0%', '0.013%', '100%')
    """
    if part >= 0.9995:
        return "100%"
    return f"{100 * part:.2g}%" if part < 0.00995 else f"{100 * part:.1f}%"


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
    words = rest.partition(f" of {score.n:,}")[2].removeprefix(":").removeprefix(",").strip()
    return number, _POWER.sub(_in_powers, words)


def _in_powers(found: re.Match[str]) -> str:
    power = str(int(found[2])).translate(_RAISED)
    return f"{found[1]}·10{power}" if found[1] != "1" else f"10{power}"


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


def population(found: Population, *, of: str = "", there: int = 0) -> str:
    """What the items say of where they came from, or why that cannot be said; `there` is how many items there are."""
    start = f"The population behind {of or 'these items'}"
    if found.interval is not None:
        value, low, high = apart(found, *found.interval)
        return (
            f"{start} would score about {value}, between {low} and {high} with "
            f"{percentage(found.confidence)} confidence: an estimate from {found.n:,} samples, if they were drawn from "
            "it independently."
        )
    reason = _FINE.sub(lambda number: figure(float(number[0])), found.refused or "")
    reason = reason.replace("there are 1 samples", "there is 1 sample")
    if found.n < there:  # there are more samples, of which a report takes no more
        reason = (
            _TAKE.sub("", reason)
            + f" A report looks at {found.n:,} samples for this; vendimeter.rarefy takes more."
        )
    return f"{start}: no interval can be given, because {reason}"


def without_advice(text: str) -> str:
    """What an analysis says, less the options that it would take: they are not those of a report.

    Examples
    --------
    >>> without_advice("The common size is 500. Pass size= for another.")
    'The common size is 500.'
    >>> without_advice("No two were compared (by default 100 are): pass reference= a label, or pairs=True.")
    'No two were compared (by default 100 are).'
    """
    return _ADVICE.sub(".", text)


def note(text: str) -> Paragraph:
    """A paragraph that is set apart."""
    return Paragraph(text, note=True)
