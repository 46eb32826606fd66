"""Numbers as text for people: scores, orders, shares, counts, durations, bytes."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_FLOOR, Decimal
from typing import Any

__all__ = [
    "align_decimals",
    "clock_time",
    "count_of",
    "digits",
    "effective_items",
    "floor_percent",
    "format_bounds",
    "format_bytes",
    "format_confidence",
    "format_duration",
    "format_number",
    "format_percent",
    "format_power",
    "format_rounded",
    "format_share",
    "order_name",
    "order_suffix",
    "order_symbol",
    "records_left_out",
    "short_number",
]


# ------------------------------------------------------------------------------------------------------------- numbers


def short_number(value: float) -> str:
    """A score, or another number, with at most six significant digits."""
    return f"{value:.6g}"


def digits(value: float) -> str:
    """A number with all the digits that tell it from its neighbours: 1.0000001 must not be shown as 1."""
    value = float(value)
    short = short_number(value)
    return short if float(short) == value else repr(value)


def format_rounded(value: float, decimals: int, rounding: str | None = None) -> str:
    """A number with this many decimals, and commas between thousands; rounded as `decimal` does."""
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-decimals), rounding=rounding):,f}"


def format_number(value: Any, digits: int = 4) -> str:
    """A number with so many significant digits, without zeros at its end, or a dash.

    Examples
    --------
    >>> format_number(23.6309), format_number(5588.2), format_number(2.0), format_number(float("nan"))
    ('23.63', '5,588', '2', '–')
    """
    if not math.isfinite(value):
        return "–"
    text = format_rounded(float(value), max(0, digits - 1 - math.floor(math.log10(abs(value) or 1))))
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "−" if text.strip("-0.,") else "")


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def format_power(value: float) -> str:
    """A number with one digit, and a power of ten where it is very small or large.

    Examples
    --------
    >>> format_power(3e-11), format_power(1e-5), format_power(0.2)
    ('3·10⁻¹¹', '10⁻⁵', '0.2')
    """
    digit, _, exponent = f"{value:.1g}".partition("e")
    if not exponent:
        return digit
    power = f"10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    return power if digit == "1" else f"{digit}·{power}"


def align_decimals(*values: float, digits: int = 4) -> list[str]:
    """Format numbers that are read together, such as the ends of an interval, with the same number of decimals.

    Examples
    --------
    >>> align_decimals(5.689, 5.5, 5.8942), align_decimals(22.1, 9.987)
    (['5.689', '5.500', '5.894'], ['22.10', '9.99'])
    """
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    decimals = max(0, digits - 1 - math.floor(math.log10(max(sizes)))) if sizes else 0
    return [f"{value:,.{decimals}f}".replace("-", "−") if math.isfinite(value) else "–" for value in values]


def format_bounds(bounds: tuple[float, float], digits: int = 12) -> str:
    """Bounds, with so many significant digits."""
    return f"{bounds[0]:.{digits}g} … {bounds[1]:.{digits}g}"


# -------------------------------------------------------------------------------------------------------------- orders


def order_name(q: float) -> str:
    """The order as text: 1, 0.5, inf."""
    return f"{q:g}"


def order_symbol(q: float) -> str:
    """The order for people: ∞ for infinity."""
    return "∞" if math.isinf(q) else order_name(q)


def order_suffix(q: float, name: Callable[[float], str] = order_symbol) -> str:
    """Text that names the order, such as " of order 2"; empty for order 1.

    Examples
    --------
    >>> order_suffix(1), order_suffix(2), order_suffix(float("inf")), order_suffix(float("inf"), order_name)
    ('', ' of order 2', ' of order ∞', ' of order inf')
    """
    return "" if q == 1 else f" of order {name(q)}"


# -------------------------------------------------------------------------------------------------------------- shares


def format_percent(share: float, digits: int = 2) -> str:
    """A share in percent, with so many significant digits."""
    return f"{100 * share:.{digits}g}%"


def format_share(share: float) -> str:
    """A share of a whole in percent: with one decimal, or two digits where it is small.

    Examples
    --------
    >>> format_share(0.41634), format_share(0.01), format_share(0.00013), format_share(1.0)
    ('41.6%', '1.0%', '0.013%', '100%')
    """
    if share >= 0.9995:
        return "100%"
    return format_percent(share) if share < 0.00995 else f"{100 * share:.1f}%"


def floor_percent(share: float) -> str:
    """A share in percent with one decimal, rounded down: only 1 is 100%."""
    return "100%" if share == 1 else f"{math.floor(1000 * share) / 10:.1f}%"


def format_confidence(probability: float) -> str:
    """A confidence in percent: rounded down, and never so far that the probability of failure changes much.

    Examples
    --------
    >>> format_confidence(0.95), format_confidence(0.999999), format_confidence(0.9973)
    ('95%', '99.9999%', '99.7%')
    """
    exact = Decimal(repr(float(probability))) * 100
    for decimals in range(20):
        rounded = exact.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_FLOOR)
        if 100 - rounded <= (100 - exact) * Decimal("1.2"):
            return f"{rounded.normalize():f}%"
    return f"{exact.normalize():f}%"


# ----------------------------------------------------------------------------------------------------- counts and units


def count_of(count: int, noun: str) -> str:
    """A number with its noun: "1 item", "1,797 items".

    Examples
    --------
    >>> count_of(1, "item"), count_of(1797, "item"), count_of(2, "near copy")
    ('1 item', '1,797 items', '2 near copies')
    """
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1] + 'ies' if noun.endswith('y') else noun + 's'}"


def effective_items(number: str, n: int, order: str = "") -> str:
    """A score as how many items it is worth.

    Examples
    --------
    >>> effective_items("1.8899", 3), effective_items("1", 5, " (of order 2)")
    ('1.8899 effectively different items of 3', '1 effectively different item (of order 2) of 5')
    """
    return f"{number} effectively different item{'' if number == '1' else 's'}{order} of {n:,}"


def records_left_out(count: int) -> str:
    """How many broken records were left out.

    Examples
    --------
    >>> records_left_out(1), records_left_out(2000)
    ('1 broken record was left out', '2,000 broken records were left out')
    """
    return f"{count_of(count, 'broken record')} {'was' if count == 1 else 'were'} left out"


def format_duration(seconds: float) -> str:
    """Seconds as text for people: 40 ms, 4.1 s, 12 min, 3.5 h, 2 days.

    Examples
    --------
    >>> [format_duration(seconds) for seconds in (0.04, 4.13, 700, 12_600, 1e6)]
    ['40 ms', '4.1 s', '12 min', '3.5 h', '12 days']
    """
    if seconds < 1e-4:
        return "less than 0.1 ms"
    for upper_bound, size, unit in (
        (0.995, 1e-3, "ms"),
        (59.5, 1, "s"),
        (3570, 60, "min"),
        (171_000, 3600, "h"),
    ):
        if seconds < upper_bound:
            return f"{_two_digits(seconds / size)} {unit}"
    return f"{_two_digits(seconds / 86_400)} days"


def _two_digits(value: float) -> str:
    return f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"


def clock_time(seconds: float) -> str:
    """Seconds as on a clock: 0:07, 1:02:03, 3 d 4 h.

    Examples
    --------
    >>> clock_time(67.9), clock_time(3723), clock_time(273_600)
    ('1:07', '1:02:03', '3 d 4 h')
    """
    whole_seconds = int(min(max(seconds, 0.0), 1e12))
    if whole_seconds < 3600:
        return f"{whole_seconds // 60}:{whole_seconds % 60:02d}"
    if whole_seconds < 86_400:
        return f"{whole_seconds // 3600}:{whole_seconds // 60 % 60:02d}:{whole_seconds % 60:02d}"
    return f"{whole_seconds // 86_400} d {whole_seconds // 3600 % 24} h"


def format_bytes(count: float) -> str:
    """A number of bytes for people: 3.5 GiB."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} TiB"
