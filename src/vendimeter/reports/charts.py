"""Charts of a report: one description of axes and layers, from which both the interactive chart and the drawing come.

Since both read the same rows they cannot disagree. Names of fields are ours; what users wrote is in values alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from vendimeter.present.colours import GREY, PALETTE
from vendimeter.present.text import label_as_text, printable
from vendimeter.reports.document import Chart, Table

__all__ = ["MARKS", "PERCENT", "Axis", "Layer", "chart", "distinct_names", "extent", "values_of"]

# What a layer draws from the fields of its rows: x and y; low and high (along y, or along x where y has names);
# from and to (both ends of a bar along x, for histograms and stacks); value (the colour of a cell).
MARKS = ("line", "band", "point", "hollow", "interval", "bar", "histogram", "span", "rule", "cell")
PERCENT = "%"
NAME_LENGTH = 32  # characters of a name on an axis
_MAX_COMPARED = 1000  # characters of a label that may tell it from others
# Of d3: significant digits without an exponent, and whole numbers.
_D3_FORMATS = {PERCENT: ".3~p", "": ",.5~r"}
_D3_INTEGER = ",d"


@dataclass(frozen=True)
class Axis:
    """An axis: of numbers, on a log scale or not, or of names in their order."""

    title: str
    log: bool = False
    names: Sequence[str] | None = None
    zero: bool = False  # whether 0 is on it
    ends: tuple[float, float] | None = None
    form: str = ""  # PERCENT for shares
    ticks: tuple[float, ...] | None = None
    whole: bool = False  # whether it counts: between 1 and 2 there is nothing
    inset: bool = False  # whether marks keep off both ends, where the names of the other axis are


@dataclass(frozen=True)
class Layer:
    """Rows that are drawn as one kind of mark; those with a `series` have the colour of it."""

    mark: str
    rows: Sequence[Mapping[str, Any]]
    tips: Mapping[str, str] = field(default_factory=dict)  # fields of the tooltip, with their names
    points: bool = False  # of a line


def chart(
    title: str,
    description: str,
    x: Axis,
    y: Axis,
    layers: Sequence[Layer],
    *,
    series: Sequence[str] | None = None,
    rest: str | None = None,
    table: Table | None = None,
    height: int = 260,
) -> Chart:
    """A chart with its specification, its data, and its drawing.

    Parameters
    ----------
    title, description : str
        What it is, and what it shows in words.
    x, y : Axis
        The axes.
    layers : list of Layer
        What is drawn, the first one at the bottom.
    series : list of str, optional
        The names of the series in the order of their colours; that of their first appearance by default.
    rest : str, optional
        The series that stands for all others, and is grey.
    table : Table, optional
        The numbers.
    height : int
        In pixels.
    """
    from vendimeter.reports.svg import svg

    layers = [layer for layer in layers if layer.rows]
    names = series_of(layers) if series is None else list(series)
    x, y = _add_log_ticks(x, y, layers)
    data = [_data_row(i, j, layer, row) for i, layer in enumerate(layers) for j, row in enumerate(layer.rows)]
    spec = {"layer": [_layer_spec(i, layer, x, y, names, rest) for i, layer in enumerate(layers)]}
    return Chart(title, description, spec, data, table, svg(x, y, layers, names, height, rest), height)


def _data_row(i: int, j: int, layer: Layer, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the data; those of a line in their order, or it would go through names as the alphabet has them."""
    return {"layer": i, **({"order": j} if layer.mark == "line" else {}), **row}


def series_of(layers: Iterable[Layer]) -> list[str]:
    """The names of the series, in order of first appearance."""
    return list(dict.fromkeys(row["series"] for layer in layers for row in layer.rows if "series" in row))


def distinct_names(labels: Iterable[Any], max_length: int = NAME_LENGTH) -> list[str]:
    """Labels of the user's as names that differ, since an axis would draw equal ones over each other.

    Long ones are cut where they are alike: at their end, or at a beginning that they share.

    Examples
    --------
    >>> distinct_names([1, "1", ""])
    ['1', '1 (2)', "''"]
    >>> distinct_names(["Write a story about a dog.", "Write a story about a cat."], max_length=14)
    ['…about a dog.', '…about a cat.']
    >>> distinct_names([("y", "p")])
    ['y / p']
    """
    labels = [label_as_text(label) for label in labels]
    names = [printable(label, max_length) or "''" for label in labels]
    shortened = [i for i, name in enumerate(names) if name.endswith("…")]
    if len({names[i] for i in shortened}) < len(shortened):
        full_names = [printable(labels[i], _MAX_COMPARED) for i in shortened]
        first_difference = next(
            (j for j, letters in enumerate(zip(*full_names, strict=False)) if len(set(letters)) > 1),
            min(map(len, full_names)),
        )
        # The names are cut before a word that they share.
        cut = full_names[0].rfind(" ", 0, max(0, first_difference - max_length // 3)) + 1
        for i, name in zip(shortened, full_names, strict=True):
            ending = name[cut:]
            names[i] = "…" + (ending if len(ending) < max_length else ending[: max_length - 2] + "…")
    distinct: dict[str, None] = {}
    for candidate in names:
        name = candidate
        count = 1
        while name in distinct:
            count += 1
            name = f"{candidate} ({count})"
        distinct[name] = None
    return list(distinct)


def extent(axis: Axis, values: Iterable[float | None]) -> tuple[float, float]:
    """Both ends of an axis of numbers, with all values between them."""
    if axis.ends is not None:
        return axis.ends
    finite = [value for value in values if value is not None and math.isfinite(value)]
    if axis.log:
        finite = [value for value in finite if value > 0] or [1.0, 10.0]
        low, high = min(finite), max(finite)
        return (low, high) if high > low else (low / 2, high * 2)
    finite = finite or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if axis.zero:
        low, high = min(low, 0.0), max(high, 0.0)
    span = high - low
    if not span:
        span = abs(high) or 1.0
        return (low - span / 2, high + span / 2) if not axis.zero else (min(low, 0), max(high, 0) or 1.0)
    return (low if axis.zero and low == 0 else low - 0.04 * span), high + 0.04 * span


def values_of(layers: Iterable[Layer], direction: str, across: bool) -> list[Any]:
    """The values along an axis, "x" or "y"; `across` where low and high are along x."""
    fields = {"x": ("x", "from", "to"), "y": ("y",)}[direction] + (
        ("low", "high") if across == (direction == "x") else ()
    )
    return [row[name] for layer in layers for row in layer.rows for name in fields if name in row]


def _add_log_ticks(x: Axis, y: Axis, layers: Sequence[Layer]) -> tuple[Axis, Axis]:
    """Both axes; log ones with ticks at round numbers, since a line for each of 1 to 9 of every power is too many."""
    from vendimeter.reports.svg import ticks

    across = y.names is not None
    axes = []
    for direction, axis in (("x", x), ("y", y)):
        if axis.log:
            low, high = extent(axis, values_of(layers, direction, across))
            axis = replace(axis, ticks=tuple(ticks(low, high, log=True)))
        axes.append(axis)
    return axes[0], axes[1]


def _is_short(axis: Axis) -> bool:
    """Whether the names have room beside each other."""
    names = axis.names or ()
    return len(names) * (max(map(len, names), default=0) + 1) <= 80


# ---------------------------------------------------------------------------------------------------------- Vega-Lite


def _layer_spec(i: int, layer: Layer, x: Axis, y: Axis, names: list[str], rest: str | None) -> dict[str, Any]:
    mark, encoding = _mark_and_encoding(layer, x, y)
    if any("series" in row for row in layer.rows):
        # With one name only there is nothing to tell apart.
        legend = {} if len(names) > 1 else {"legend": None}
        scale: dict[str, Any] = {"domain": names}
        if rest in names:
            colours = [GREY if name == rest else PALETTE[j % len(PALETTE)] for j, name in enumerate(names)]
            scale["range"] = colours  # the page has variables for them
        encoding["color"] = {"field": "series", "type": "nominal", "scale": scale, **legend}
    if layer.tips:
        encoding["tooltip"] = [
            {"field": name, "title": title, **_tooltip_format(layer, name, x, y)}
            for name, title in layer.tips.items()
        ]
    return {
        "transform": [{"filter": {"field": "layer", "equal": i}}],
        "mark": mark,
        "encoding": encoding,
    }


def _mark_and_encoding(layer: Layer, x: Axis, y: Axis) -> tuple[dict[str, Any], dict[str, Any]]:
    """The Vega-Lite mark of a layer and the encoding of its fields."""
    across = y.names is not None
    both = {"x": _channel("x", x), "y": _channel("y", y)}
    if layer.mark == "line":
        return {"type": "line", "point": layer.points}, {
            **both,
            "order": {"field": "order", "type": "quantitative"},
        }
    if layer.mark == "band":
        return {"type": "area"}, {
            "x": _channel("x", x),
            "y": _channel("low", y),
            "y2": {"field": "high"},
        }
    if layer.mark in ("point", "hollow"):
        return {"type": "point", "filled": layer.mark == "point", "size": 60, "opacity": 1}, both
    if layer.mark == "interval":
        if across:
            ends = {"x": _channel("low", x), "x2": {"field": "high"}, "y": _channel("y", y)}
        else:
            ends = {"x": _channel("x", x), "y": _channel("low", y), "y2": {"field": "high"}}
        return {"type": "rule", "strokeWidth": 2}, ends
    if layer.mark == "bar":
        return {"type": "bar"}, both
    if layer.mark == "span":
        return {"type": "bar"}, {"x": _channel("from", x), "x2": {"field": "to"}, "y": _channel("y", y)}
    if layer.mark == "histogram":
        ends = {"x": _channel("from", x), "x2": {"field": "to"}, "y": _channel("y", y), "y2": {"datum": 0}}
        return {"type": "rect"}, ends
    if layer.mark == "rule":
        direction = "x" if "x" in layer.rows[0] else "y"
        return {"type": "rule", "strokeDash": [4, 3]}, {
            direction: _channel(direction, x if direction == "x" else y)
        }
    assert layer.mark == "cell", layer.mark
    return {"type": "rect"}, {**both, "color": {"field": "value", "type": "quantitative", "title": None}}


def _channel(name: str, axis: Axis) -> dict[str, Any]:
    """The Vega-Lite encoding of a position channel."""
    if axis.names is not None:
        return {
            "field": name,
            "type": "nominal",
            "sort": None,
            "scale": {"domain": list(axis.names)},
            "axis": {"title": axis.title or None}
            | ({"labelAngle": 0} if name == "x" and _is_short(axis) else {}),
        }
    scale: dict[str, Any] = {"type": "log"} if axis.log else {"zero": axis.zero}
    if name == "x" and axis.inset:
        scale["padding"] = 8
    if axis.ends is not None:
        scale |= {"domain": list(axis.ends), "nice": False}
    elif axis.log:
        scale["nice"] = False
    axis_spec: dict[str, Any] = {"title": axis.title or None}
    if axis.whole:
        axis_spec |= {"format": _D3_INTEGER, "tickMinStep": 1}
    elif axis.form or axis.log:  # above 10,000 a log axis would write powers
        axis_spec["format"] = _D3_FORMATS[axis.form]
    if axis.ticks is not None:
        axis_spec["values"] = list(axis.ticks)
    return {"field": name, "type": "quantitative", "scale": scale, "axis": axis_spec}


def _tooltip_format(layer: Layer, name: str, x: Axis, y: Axis) -> dict[str, str]:
    """The type and number format of a field of a tooltip."""
    values = [row[name] for row in layer.rows if row.get(name) is not None]
    if any(isinstance(value, str) for value in values):
        return {"type": "nominal"}
    integers = all(isinstance(value, int) for value in values)
    return {
        "type": "quantitative",
        "format": _D3_INTEGER if integers else _D3_FORMATS[_number_form(name, x, y)],
    }


def _number_form(name: str, x: Axis, y: Axis) -> str:
    """The number format of a field of a tooltip: that of the axis it belongs to."""
    across = y.names is not None
    along_x = name in ("x", "from", "to", "share") or (across and name in ("low", "high"))
    return (x if along_x else y).form if name in ("x", "y", "from", "to", "low", "high", "share") else ""
