"""Charts as SVG, for readers without scripts: attributes alone, no style, so that any page may take them in."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from vendimeter.errors import printable
from vendimeter.plots.style import GREY, PALETTE
from vendimeter.present.colours import hex_colour
from vendimeter.reports.charts import PERCENT, Axis, Layer, extent, values_of

__all__ = ["svg", "ticks"]

WIDTH = 640
RIGHT, TOP, BOTTOM = 12, 10, 44
LETTER = 6.4  # width of a letter, in pixels
BROAD, BROADEST = "ABCDEFGHJKLNOPQRSTUVXYZ&+<=>_~", "MWmw@%…—−"
MUTED = 'fill="currentColor" fill-opacity="0.7"'
GRID = 'stroke="currentColor" stroke-opacity="0.15"'
# Colours of the page where it has any; those of the pictures elsewhere.
COLOURS = tuple(f"var(--series-{i + 1}, {colour})" for i, colour in enumerate(PALETTE))
OTHERS = f"var(--muted, {GREY})"


def svg(
    x: Axis, y: Axis, layers: Sequence[Layer], series: Sequence[str], height: int, rest: str | None = None
) -> str:
    """A chart as an SVG document; see `vendimeter.reports.charts.chart`."""
    return "".join(_Drawing(x, y, layers, series, height, rest).parts())


def ticks(low: float, high: float, *, log: bool = False, most: int = 6) -> list[float]:
    """Round numbers between two ends.

    Examples
    --------
    >>> ticks(0.0, 23.6), ticks(8, 12_000, log=True)
    ([0.0, 5.0, 10.0, 15.0, 20.0], [10.0, 100.0, 1000.0, 10000.0])
    """
    if log:
        powers = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
        found = [10.0**power for power in powers]
        if len(found) < 3:
            steps = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            found = [digit * 10.0**power for power in steps for digit in (1, 2, 5)]
            found = [place for place in found if low * (1 - 1e-9) <= place <= high * (1 + 1e-9)]
        return found[:: max(1, -(-len(found) // (most + 2)))]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) + 0.0 for i in range(first, last + 1)]


class _Scale:
    """From values of an axis to pixels."""

    def __init__(self, axis: Axis, values: Iterable[Any], start: float, end: float):
        self.axis, self.start, self.end = axis, start, end
        if axis.names is not None:
            self.places = {name: i for i, name in enumerate(axis.names)}
            self.step = (end - start) / max(len(axis.names), 1)
            return
        self.low, self.high = extent(axis, values)

    def __call__(self, value: Any) -> float:
        if self.axis.names is not None:
            return self.start + (self.places[value] + 0.5) * self.step
        low, high, value = self.low, self.high, float(value)
        if self.axis.log:
            low, high, value = math.log(low), math.log(high), math.log(max(value, self.low))
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def marks(self, most: int) -> list[tuple[float, str]]:
        """Places with what is written there."""
        if self.axis.names is not None:
            every = max(1, -(-len(self.axis.names) // most))
            return [(self(name), name) for name in self.axis.names[::every]]
        found = self.axis.ticks
        found = ticks(self.low, self.high, log=self.axis.log, most=most) if found is None else found
        if self.axis.whole:
            found = [value for value in found if value == round(value)] or [round(self.low), round(self.high)]
        return [(self(value), _written(value, self.axis.form)) for value in found]


def _written(value: float, form: str) -> str:
    if form == PERCENT:
        return f"{100 * value:.3g}%"
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
            name: OTHERS if name == rest else COLOURS[i % len(COLOURS)] for i, name in enumerate(series)
        }
        self.keys = list(self._legend())
        across = y.names is not None
        self.top = TOP + (16 if y.title else 0) + 20 * len(self.keys)
        self.bottom = height - BOTTOM if height - BOTTOM > self.top + 40 else self.top + 40
        self.height = self.bottom + BOTTOM
        ends = (self.top, self.bottom) if across else (self.bottom, self.top)
        self.y = _Scale(y, values_of(layers, "y", across), *ends)
        longest = max((_wide(words) for _, words in self._beside()), default=0.0)
        self.left = max(30.0, min(longest + 14, WIDTH / 3))
        self.x = _Scale(x, values_of(layers, "x", across), self.left, WIDTH - RIGHT)

    def _beside(self) -> list[tuple[float, str]]:
        """What is written at the left."""
        return self.y.marks(60 if self.y_axis.names is not None else 5)

    def _legend(self) -> Iterator[list[tuple[str, str]]]:
        """Lines of names with their colours."""
        line: list[tuple[str, str]] = []
        used = 0.0
        named = self.series if len(self.series) > 1 else _ends_of_cells(self.layers)
        for name, colour in named.items():
            wide = _wide(name) + 34
            if line and used + wide > WIDTH:
                yield line
                line, used = [], 0.0
            line.append((name, colour))
            used += wide
        if line:
            yield line

    def parts(self) -> Iterator[str]:
        """The markup, from the bottom layer up."""
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height:g}" width="{WIDTH}" '
            f'height="{self.height:g}" font-family="system-ui, sans-serif" font-size="12" fill="currentColor">'
        )
        yield from self._axes()
        for layer in self.layers:
            yield from _MARKS[layer.mark](self, layer)
        yield from self._key()
        yield "</svg>"

    def _axes(self) -> Iterator[str]:
        wide = WIDTH - RIGHT
        for place, words in self._beside():
            if self.y_axis.names is None:
                yield f'<line x1="{self.left:g}" x2="{wide}" y1="{place:.1f}" y2="{place:.1f}" {GRID}/>'
            yield _text(self.left - 6, place + 4, _fitting(words, self.left - 8), "end", MUTED)
        most = 8 if self.x_axis.names is None else 40
        for place, words in self.x.marks(most):
            yield f'<line x1="{place:.1f}" x2="{place:.1f}" y1="{self.bottom:g}" y2="{self.bottom + 4:g}" {GRID}/>'
            room = abs(self.x.step) if self.x_axis.names is not None else 80.0
            words = _fitting(words, max(room, 2.5 * LETTER))
            yield _text(min(place, WIDTH - _wide(words) / 2), self.bottom + 17, words, "middle", MUTED)
        yield f'<line x1="{self.left:g}" x2="{wide}" y1="{self.bottom:g}" y2="{self.bottom:g}" {GRID}/>'
        if self.x_axis.title:
            yield _text(wide, self.bottom + 36, self.x_axis.title, "end", MUTED)
        if self.y_axis.title:
            yield _text(0, self.top - 8, self.y_axis.title, "start", MUTED)

    def _key(self) -> Iterator[str]:
        for i, line in enumerate(self.keys):
            at, y = 0.0, TOP + 20 * i + 4
            for name, colour in line:
                yield f'<rect x="{at:g}" y="{y - 5:g}" width="10" height="10" fill="{colour}"/>'
                yield _text(at + 15, y + 4, name, "start", "")
                at += _wide(name) + 34

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
            there = [f"{self.x(row['x']):.1f},{self.y(row['low']):.1f}" for row in rows]
            back = [f"{self.x(row['x']):.1f},{self.y(row['high']):.1f}" for row in reversed(rows)]
            yield f'<polygon points="{" ".join(there + back)}" fill="{colour}" fill-opacity="0.2"/>'

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
            wide = abs(self.x.step) if self.x_axis.names is not None else 6.0
            x, base, top = self.x(row["x"]), self.y(0.0), self.y(row["y"])
            yield (
                f'<rect x="{x - 0.4 * wide:.1f}" y="{min(base, top):.1f}" width="{0.8 * wide:.1f}" '
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
        wide, tall = abs(self.x.step), abs(self.y.step)
        for row in layer.rows:
            x, y = self.x(row["x"]) - wide / 2, self.y(row["y"]) - tall / 2
            yield (
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}" '
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


def _ends_of_cells(layers: Sequence[Layer]) -> dict[str, str]:
    """The lowest and the highest value of cells with their colours; nothing where there are none."""
    values = [row["value"] for layer in layers if layer.mark == "cell" for row in layer.rows]
    if not values:
        return {}
    low, high = min(values), max(values)
    return {_written(end, ""): hex_colour(end, low=low, high=high) for end in (low, high)}


def _text(x: float, y: float, words: str, anchor: str, how: str) -> str:
    """Text of any origin: XML has no place for control characters, and takes marks for markup."""
    shown = escape(printable(words))
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{" " + how if how else ""}>{shown}</text>'


def _wide(words: str) -> float:
    """How wide a text is, in pixels, rather too wide than too narrow."""
    found = 0.0
    for letter in words:
        if letter in BROADEST or unicodedata.east_asian_width(letter) in "WF":
            found += 12.0
        else:
            found += 8.5 if letter in BROAD else 7.7 if letter.isdigit() else LETTER
    return found


def _fitting(words: str, room: float) -> str:
    """As much of a text as there is room for, and two letters at least."""
    if len(words) <= 2 or _wide(words) <= room:
        return words
    end = len(words) - 1
    while end > 1 and _wide(words[:end]) + LETTER > room:
        end -= 1
    return words[:end] + "…"
