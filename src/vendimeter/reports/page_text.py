"""Values of a document as the page shows them: text of the user's, numbers of a column, data for scripts, colours."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

from vendimeter.present.colours import GREY, LIGHT, PALETTE
from vendimeter.present.plain import plain

__all__ = ["INK", "MISSING", "PAPER", "as_json", "format_column", "order_label", "themed", "visible_text"]

MISSING = "–"
# What is not printable for a terminal and yet belongs to writing: breaks of lines, and what joins letters or keeps them
# apart in Persian, Hindi and emoji. Overrides of the direction are not among them.
_KEPT_CHARACTERS = frozenset("\n\t\u200c\u200d")
_CHART_DIGITS = 8  # significant digits of a number in a chart: more than a screen can show


def visible_text(text: object) -> str:
    r"""Text with its control characters shown, not obeyed; lines stay lines.

    Examples
    --------
    >>> visible_text("two\nlines"), visible_text("a\x1b[31m\u202e")
    ('two\nlines', 'a\\x1b[31m\\u202e')
    >>> visible_text("東京\u3000タワー") == "東京\u3000タワー"
    True
    """
    text = str(text)
    if text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return "".join(
        c
        if c.isprintable() or c in _KEPT_CHARACTERS or unicodedata.category(c) == "Zs"
        else c.encode("unicode_escape").decode("ascii")
        for c in text
    )


def order_label(order: str) -> str:
    """An order q for people."""
    return "∞" if order == "inf" else order


def format_column(values: Iterable[Any], digits: int) -> list[str]:
    """The numbers of a column for people, with the same decimals where that keeps two digits of each.

    Whole numbers stay whole; one that is missing (None, NaN) is a dash.

    Examples
    --------
    >>> format_column([0.25, 0.0123, None], 4), format_column([1.0, 1e-9], 3), format_column([12_345, 7], 4)
    (['0.2500', '0.0123', '–'], ['1.00', '1.00e−9'], ['12,345', '7'])
    """
    values = [None if value is None or value != value else value for value in values]
    sizes = [abs(float(value)) for value in values if _is_real(value) and value != 0]
    decimals = digits - 1 - math.floor(math.log10(max(sizes))) if sizes else 0
    decimals = max(decimals, 0)
    aligned = bool(sizes) and min(sizes) >= 10.0 ** (1 - decimals) and decimals <= digits + 2
    return [_format_number(value, digits, decimals if aligned else None) for value in values]


def _is_real(value: Any) -> bool:
    """Whether it is a finite number that is not whole by type."""
    return value is not None and not isinstance(value, Integral) and math.isfinite(value)


def _format_number(value: Any, digits: int, decimals: int | None) -> str:
    """One number."""
    if value is None:
        return MISSING
    if isinstance(value, Integral):
        text = f"{int(value):,}"
    elif math.isinf(value):
        text = "∞" if value > 0 else "-∞"
    elif decimals is not None:
        text = f"{float(value):,.{decimals}f}"
    else:
        text = re.sub(r"e([+-])0+", r"e\1", f"{float(value):#,.{digits}g}".rstrip("."))
    return text.replace("-", "−")


def as_json(value: Any) -> str:
    r"""Plain values as JSON that can stand inside a ``<script>`` that is not run; text as it is shown.

    Examples
    --------
    >>> as_json({"label": "</script><!--"})
    '{"label":"\\u003c/script\\u003e\\u003c!--"}'
    """
    text = json.dumps(_for_display(plain(value)), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _for_display(value: Any) -> Any:
    """Plain values with their texts as they are shown; numbers with the digits of a chart."""
    if isinstance(value, str):
        return visible_text(value)
    if isinstance(value, float):
        return float(f"{value:.{_CHART_DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {visible_text(key): _for_display(element) for key, element in value.items()}
    if isinstance(value, Sequence):
        return [_for_display(element) for element in value]
    return value


# -------------------------------------------------------------------------------------------------------- page colours

# Colours of drawings and charts are variables of the page's style sheet, so that they follow it into dark mode.
INK, PAPER = "currentColor", "var(--paper)"
_CSS_VARIABLES = {
    **{colour.lower(): f"var(--series-{i})" for i, colour in enumerate(PALETTE, 1)},
    GREY.lower(): "var(--muted)",
    LIGHT.lower(): "var(--rule)",
}
_TEXT_KEYS = ("domain", "title")  # keys of a specification whose values are words


def themed(value: Any) -> Any:
    """A colour of the house as the page has it, also inside a specification; everything else as it is.

    Examples
    --------
    >>> themed({"mark": {"color": "#0072B2", "size": 3}, "title": "#0072B2 is blue"})
    {'mark': {'color': 'var(--series-1)', 'size': 3}, 'title': '#0072B2 is blue'}
    """
    if isinstance(value, str):
        return _CSS_VARIABLES.get(value.lower(), value)
    if isinstance(value, Mapping):  # a label of the user's may well be "#0072B2", and has no colour
        return {key: element if key in _TEXT_KEYS else themed(element) for key, element in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [themed(element) for element in value]
    return value
