"""Colours of drawings and charts as variables of the page's style sheet, so that they follow it into the dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vendimeter.plots.style import GREY, LIGHT, PALETTE

__all__ = ["INK", "PAPER", "themed"]

INK, PAPER = "currentColor", "var(--paper)"
_VARIABLES = {
    **{colour.lower(): f"var(--series-{i})" for i, colour in enumerate(PALETTE, 1)},
    GREY.lower(): "var(--muted)",
    LIGHT.lower(): "var(--rule)",
}
_WORDS = ("domain", "title")  # keys of a specification whose values are words


def themed(value: Any) -> Any:
    """A colour of the house as the page has it, also inside a specification; everything else as it is.

    Examples
    --------
    >>> themed({"mark": {"color": "#0072B2", "size": 3}, "title": "#0072B2 is blue"})
    {'mark': {'color': 'var(--series-1)', 'size': 3}, 'title': '#0072B2 is blue'}
    """
    if isinstance(value, str):
        return _VARIABLES.get(value.lower(), value)
    if isinstance(value, Mapping):  # a label of the user's may well be "#0072B2", and has no colour
        return {key: found if key in _WORDS else themed(found) for key, found in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [themed(found) for found in value]
    return value
