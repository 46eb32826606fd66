"""Charts as SVG, for readers without scripts: attributes alone, no style, so that any page may take them in."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from vendimeter.present.colours import GREY, PALETTE, hex_colour
from vendimeter.present.numbers import format_percent
from vendimeter.present.text import printable
from vendimeter.reports.charts import PERCENT, Axis, Layer, extent, values_of

__all__ = ["svg", "ticks"]

WIDTH = 640
RIGHT, TOP, BOTTOM = 12, 10, 44
LETTER_WIDTH = 6.4  # width of a letter, in pixels
WIDE_LETTERS, WIDEST_LETTERS = "ABCDEFGHJKLNOPQRSTUVXYZ&+<=>_~", "MWmw@%…—−"
MUTED = 'fill="currentColor" fill-opacity="0.7"'
GRID = 'stroke="currentColor" stroke-opacity="0.15"'
# Colours of the page where it has any; those of the pictures elsewhere.
COLOURS = tuple(f"var(--series-{i + 1}, {colour})" for i, colour in enumerate(PALETTE))
REST_COLOUR = f"var(--muted, {GREY})"


def svg(
    x: Axis, y: Axis, layers: Sequence[Layer], series: Sequence[str], height: int, rest: str | None = None
) -> str:
    """A chart as an SVG document; see `vendimeter.reports.charts.chart`."""
    return "".join(_Drawing(x, y, layers, series, height, rest).markup())


def ticks(low: float, high: float, *, log: bool = False, max_count: int = 6) -> list[float]:
    """Round numbers between two ends.

    Examples
    --------
    >>> ticks(0.0, 23.6), ticks(8, 12_000, log=True)
    ([0.0, 5.0, 10.0, 15.0, 20.0], [10.0, 100.0, 1000.0, 10000.0])
    """
    if log:
        powers = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
        values = [10.0**power for power in powers]
        if len(values) < 3:
            steps = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            values = [digit * 10.0**power for power in steps for digit in (1, 2, 5)]
            values = [place for place in values if low * (1 - 1e-9) <= place <= high * (1 + 1e-9)]
        return values[:: max(1, -(-len(values) // (max_count + 2)))]
    rough = (high - low) / max_count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) + 0.0 for i in range(first, last + 1)]


class _Scale:
    """A map from values of an axis to pixels."""

    def __init__(self, axis: Axis, values: Iterable[Any], start: float, end: float):
        self.axis, self.start, self.end = axis, start, end
        if axis.names is not None:
            self.positions = {name: i for i, name in enumerate(axis.names)}
            self.step = (end - start) / max(len(axis.names), 1)
            return
        self.low, self.high = extent(axis, values)

    def __call__(self, value: Any) -> float:
        if self.axis.names is not None:
            return self.start + (self.positions[value] + 0.5) * self.step
        low, high, value = self.low, self.high, float(value)
        if self.axis.log:
            low, high, value = math.log(low), math.log(high), math.log(max(value, self.low))
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def marks(self, max_count: int) -> list[tuple[float, str]]:
        """Positions of tick labels with their texts."""
        if self.axis.names is not None:
            every = max(1, -(-len(self.axis.names) // max_count))
            return [(self(name), name) for name in self.axis.names[::every]]
        values = self.axis.ticks
        values = (
            ticks(self.low, self.high, log=self.axis.log, max_count=max_count) if values is None else values
        )
        if self.axis.whole:
            values = [value for value in values if value == round(value)] or [
                round(self.low),
                round(self.high),
            ]
        return [(self(value), _format_tick(value, self.axis.form)) for value in values]


def _format_tick(value: float, form: str) -> str:
    if form == PERCENT:
        return format_percent(value, 3)
    text = f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
    return text.replace("-", "−")


class _Drawing:
    """One chart, part by part."""

    def __init__(
        self,
        x: Axis,
        y: Axis,
        layers: Sequence[Layer],
        series: Sequence[str],
        height: int,
        rest: str | None = None,
    ):
        self.x_axis, self.y_axis, self.layers = x, y, layers
        self.series = {
            name: REST_COLOUR if name == rest else COLOURS[i % len(COLOURS)] for i, name in enumerate(series)
        }
        self.legend_lines = list(self._legend_lines())
        across = y.names is not None
        self.top = TOP + (16 if y.title else 0) + 20 * len(self.legend_lines)
        self.bottom = height - BOTTOM if height - BOTTOM > self.top + 40 else self.top + 40
        self.height = self.bottom + BOTTOM
        ends = (self.top, self.bottom) if across else (self.bottom, self.top)
        self.y = _Scale(y, values_of(layers, "y", across), *ends)
        longest = max((_text_width(words) for _, words in self._left_labels()), default=0.0)
        self.left = max(30.0, min(longest + 14, WIDTH / 3))
        self.x = _Scale(x, values_of(layers, "x", across), self.left, WIDTH - RIGHT)

    def _left_labels(self) -> list[tuple[float, str]]:
        """The tick labels of the y axis."""
        return self.y.marks(60 if self.y_axis.names is not None else 5)

    def _legend_lines(self) -> Iterator[list[tuple[str, str]]]:
        """Lines of names with their colours."""
        line: list[tuple[str, str]] = []
        used_width = 0.0
        entries = self.series if len(self.series) > 1 else _cell_value_colours(self.layers)
        for name, colour in entries.items():
            width = _text_width(name) + 34
            if line and used_width + width > WIDTH:
                yield line
                line, used_width = [], 0.0
            line.append((name, colour))
            used_width += width
        if line:
            yield line

    def markup(self) -> Iterator[str]:
        """The markup, from the bottom layer up."""
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height:g}" width="{WIDTH}" '
            f'height="{self.height:g}" font-family="system-ui, sans-serif" font-size="12" fill="currentColor">'
        )
        yield from self._draw_axes()
        for layer in self.layers:
            yield from _MARKS[layer.mark](self, layer)
        yield from self._draw_legend()
        yield "</svg>"

    def _draw_axes(self) -> Iterator[str]:
        right = WIDTH - RIGHT
        for position, words in self._left_labels():
            if self.y_axis.names is None:
                yield f'<line x1="{self.left:g}" x2="{right}" y1="{position:.1f}" y2="{position:.1f}" {GRID}/>'
            yield _text(self.left - 6, position + 4, _truncate(words, self.left - 8), "end", MUTED)
        max_labels = 8 if self.x_axis.names is None else 40
        for x, words in self.x.marks(max_labels):
            yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{self.bottom:g}" y2="{self.bottom + 4:g}" {GRID}/>'
            room = abs(self.x.step) if self.x_axis.names is not None else 80.0
            words = _truncate(words, max(room, 2.5 * LETTER_WIDTH))
            yield _text(min(x, WIDTH - _text_width(words) / 2), self.bottom + 17, words, "middle", MUTED)
        yield f'<line x1="{self.left:g}" x2="{right}" y1="{self.bottom:g}" y2="{self.bottom:g}" {GRID}/>'
        if self.x_axis.title:
            yield _text(right, self.bottom + 36, self.x_axis.title, "end", MUTED)
        if self.y_axis.title:
            yield _text(0, self.top - 8, self.y_axis.title, "start", MUTED)

    def _draw_legend(self) -> Iterator[str]:
        for i, line in enumerate(self.legend_lines):
            x, y = 0.0, TOP + 20 * i + 4
            for name, colour in line:
                yield f'<rect x="{x:g}" y="{y - 5:g}" width="10" height="10" fill="{colour}"/>'
                yield _text(x + 15, y + 4, name, "start", "")
                x += _text_width(name) + 34

    # ------------------------------------------------------------------------------------------------------- marks

    def colour(self, row: Mapping[str, Any]) -> str:
        return self.series.get(row.get("series", ""), COLOURS[0])

    def _by_series(self, layer: Layer) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
        for name in dict.fromkeys(row.get("series") for row in layer.rows):
            rows = [row for row in layer.rows if row.get("series") == name]
            yield self.colour(rows[0]), rows

    def lines(self, layer: Layer) -> Iterator[str]:
        for colour, rows in self._by_series(layer):
            points = " ".join(f"{self.x(row['x']):.1f},{self.y(row['y']):.1f}" for row in rows)
            yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        if layer.points:
            yield from self.points(layer)

    def bands(self, layer: Layer) -> Iterator[str]:
        for colour, rows in self._by_series(layer):
            lower = [f"{self.x(row['x']):.1f},{self.y(row['low']):.1f}" for row in rows]
            upper = [f"{self.x(row['x']):.1f},{self.y(row['high']):.1f}" for row in reversed(rows)]
            yield f'<polygon points="{" ".join(lower + upper)}" fill="{colour}" fill-opacity="0.2"/>'

    def points(self, layer: Layer) -> Iterator[str]:
        for row in layer.rows:
            colour = self.colour(row)
            inside = f'fill="{colour}"' if layer.mark != "hollow" else 'fill="none"'
            yield (
                f'<circle cx="{self.x(row["x"]):.1f}" cy="{self.y(row["y"]):.1f}" r="3.5" {inside} '
                f'stroke="{colour}" stroke-width="1.5"/>'
            )

    def intervals(self, layer: Layer) -> Iterator[str]:
        for row in layer.rows:
            if self.y_axis.names is not None:
                a, b, y = self.x(row["low"]), self.x(row["high"]), self.y(row["y"])
                ends = f'x1="{a:.1f}" x2="{b:.1f}" y1="{y:.1f}" y2="{y:.1f}"'
            else:
                a, b, x = self.y(row["low"]), self.y(row["high"]), self.x(row["x"])
                ends = f'x1="{x:.1f}" x2="{x:.1f}" y1="{a:.1f}" y2="{b:.1f}"'
            yield f'<line {ends} stroke="{self.colour(row)}" stroke-width="2"/>'

    def bars(self, layer: Layer) -> Iterator[str]:
        for row in layer.rows:
            if self.y_axis.names is not None:
                yield self._rectangle(self.x(0.0), self.x(row["x"]), self.y(row["y"]), self.y.step, row)
                continue
            width = abs(self.x.step) if self.x_axis.names is not None else 6.0
            x, base, top = self.x(row["x"]), self.y(0.0), self.y(row["y"])
            yield (
                f'<rect x="{x - 0.4 * width:.1f}" y="{min(base, top):.1f}" width="{0.8 * width:.1f}" '
                f'height="{abs(base - top):.1f}" fill="{self.colour(row)}"/>'
            )

    def spans(self, layer: Layer) -> Iterator[str]:
        for row in layer.rows:
            ends = self.x(row["from"]), self.x(row["to"])
            yield self._rectangle(*ends, self.y(row["y"]), self.y.step, row)

    def histograms(self, layer: Layer) -> Iterator[str]:
        for row in layer.rows:
            a, b = sorted((self.x(row["from"]), self.x(row["to"])))
            base, top = self.y(0.0), self.y(row["y"])
            yield (
                f'<rect x="{a:.1f}" y="{min(base, top):.1f}" width="{max(b - a - 1, 0.5):.1f}" '
                f'height="{abs(base - top):.1f}" fill="{self.colour(row)}"/>'
            )

    def _rectangle(self, a: float, b: float, y: float, step: float, row: Mapping[str, Any]) -> str:
        thick = 0.8 * abs(step)
        return (
            f'<rect x="{min(a, b):.1f}" y="{y - thick / 2:.1f}" width="{abs(b - a):.1f}" height="{thick:.1f}" '
            f'fill="{self.colour(row)}"/>'
        )

    def rules(self, layer: Layer) -> Iterator[str]:
        for row in layer.rows:
            if "x" in row:
                x = self.x(row["x"])
                ends = f'x1="{x:.1f}" x2="{x:.1f}" y1="{self.top:g}" y2="{self.bottom:g}"'
            else:
                y = self.y(row["y"])
                ends = f'x1="{self.left:g}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"'
            colour = self.colour(row) if "series" in row else "currentColor"
            yield f'<line {ends} stroke="{colour}" stroke-dasharray="4 3" stroke-opacity="0.8"/>'

    def cells(self, layer: Layer) -> Iterator[str]:
        values = [row["value"] for row in layer.rows]
        low, high = min(values), max(values)
        width, height = abs(self.x.step), abs(self.y.step)
        for row in layer.rows:
            x, y = self.x(row["x"]) - width / 2, self.y(row["y"]) - height / 2
            yield (
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
                f'fill="{hex_colour(row["value"], low=low, high=high)}"/>'
            )


_MARKS = {
    "line": _Drawing.lines,
    "band": _Drawing.bands,
    "point": _Drawing.points,
    "hollow": _Drawing.points,
    "interval": _Drawing.intervals,
    "bar": _Drawing.bars,
    "span": _Drawing.spans,
    "histogram": _Drawing.histograms,
    "rule": _Drawing.rules,
    "cell": _Drawing.cells,
}


def _cell_value_colours(layers: Sequence[Layer]) -> dict[str, str]:
    """The lowest and the highest value of cells with their colours; nothing where there are none."""
    values = [row["value"] for layer in layers if layer.mark == "cell" for row in layer.rows]
    if not values:
        return {}
    low, high = min(values), max(values)
    return {_format_tick(end, ""): hex_colour(end, low=low, high=high) for end in (low, high)}


def _text(x: float, y: float, words: str, anchor: str, attributes: str) -> str:
    """A text element; its text is of any origin, so control characters and markup are escaped."""
    escaped = escape(printable(words))
    attributes = f" {attributes}" if attributes else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{attributes}>{escaped}</text>'


def _text_width(words: str) -> float:
    """An upper estimate of the width of a text, in pixels."""
    width = 0.0
    for letter in words:
        if letter in WIDEST_LETTERS or unicodedata.east_asian_width(letter) in "WF":
            width += 12.0
        else:
            width += 8.5 if letter in WIDE_LETTERS else 7.7 if letter.isdigit() else LETTER_WIDTH
    return width


def _truncate(words: str, room: float) -> str:
    """A text cut to the room there is, with an ellipsis, but never to less than two letters."""
    if len(words) <= 2 or _text_width(words) <= room:
        return words
    end = len(words) - 1
    while end > 1 and _text_width(words[:end]) + LETTER_WIDTH > room:
        end -= 1
    return words[:end] + "…"
