"""A document as one HTML page, which needs nothing but itself: no network, and no script to be read.

First come the blocks as the templates take them (cells in words, pictures as addresses, names that are unique), then
`render`, which fills the templates.
"""

from __future__ import annotations

import base64
import functools
import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from vendimeter.errors import InputError
from vendimeter.messages import brief
from vendimeter.optional import require
from vendimeter.reports import page_assets as assets
from vendimeter.reports.document import Block, ByOrder, Chart, Column, Document, Group, Item, Section, Table
from vendimeter.reports.foreign_svg import inline_svg
from vendimeter.reports.page_text import MISSING, as_json, format_column, order_label, themed, visible_text

__all__ = ["Cell", "Drawing", "Names", "Picture", "cells", "drawing", "picture", "render"]


# --------------------------------------------------------------------------------------------------------- page blocks

KINDS = ("text", "number", "bar")
_MEDIA_TYPE = re.compile(r"image/[a-z0-9.+-]+")
_PNG = b"\x89PNG\r\n\x1a\n"
_SMALL_PIXELS, _LARGE_PIXELS = 64, 640  # pixels that a picture is shown with: one of fewer is enlarged
_BAR_PIXELS = 64  # width of the bar of the largest value, in pixels


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, the number it is sorted by (if not by the text), and the length of its bar."""

    text: str
    kind: str
    value: str | None = None
    missing: bool = False
    bar: float | None = None
    negative: bool = False


@dataclass(frozen=True)
class Picture:
    """A picture as an address, with its size where that is known; one of few pixels is enlarged without blur."""

    address: str
    width: int | None
    height: int | None
    few_pixels: bool


@dataclass(frozen=True)
class Drawing:
    """A chart: its name, its drawing as markup, and its specification and data as JSON."""

    name: str
    drawn: str | None
    data: str


@dataclass
class Names:
    """Names of parts of a page, each given once."""

    counts: Counter[str] = field(default_factory=Counter)

    def next(self, kind: str) -> str:
        """A name such as "table-3"."""
        self.counts[kind] += 1
        return f"{kind}-{self.counts[kind]}"

    def section(self, section: Section) -> str:
        """The name of a section, for links to it."""
        name = re.sub(r"[^a-z0-9]+", "-", section.key.lower()).strip("-") or "section"
        # Names of the page's own, such as "order-1", have no such beginning.
        name = f"about-{name}"
        self.counts[name] += 1
        return name if self.counts[name] == 1 else f"{name}-{self.counts[name]}"


def cells(table: Table) -> Iterator[list[Cell]]:
    """The rows of a table, in words."""
    wrong_widths = {len(row) for row in table.rows} - {len(table.columns)}
    if wrong_widths:
        raise InputError(
            f"a table of the report has rows of {min(wrong_widths)} cells and {len(table.columns)} columns."
        )
    columns = [
        _column_cells(column, [row[j] for row in table.rows]) for j, column in enumerate(table.columns)
    ]
    yield from (list(row) for row in zip(*columns, strict=True))


def _column_cells(column: Column, values: Sequence[Any]) -> list[Cell]:
    """The cells of a column."""
    if column.kind not in KINDS:
        raise InputError(
            f"a column of the report has the kind {brief(column.kind)}; expected one of {', '.join(KINDS)}."
        )
    if column.kind == "text":
        return [
            Cell(MISSING, "text", missing=True) if value is None else Cell(visible_text(value), "text")
            for value in values
        ]
    present = [abs(float(value)) for value in values if value is not None and abs(value) < float("inf")]
    largest = max(present, default=0.0)
    cells = []
    for value, text in zip(values, format_column(values, column.digits), strict=True):
        if text == MISSING:
            cells.append(Cell(text, column.kind, missing=True, bar=0.0 if column.kind == "bar" else None))
            continue
        bar = None
        if column.kind == "bar":
            bar = round(_BAR_PIXELS * min(abs(float(value)) / largest, 1.0), 1) if largest else 0.0
        cells.append(Cell(text, column.kind, f"{float(value):.9g}", bar=bar, negative=value < 0))
    return cells


def picture(item: Item, *, large: bool = False) -> Picture | None:
    """The picture of an item, if there is one; `large` where it is as wide as the text."""
    if item.picture is None:
        return None
    if _MEDIA_TYPE.fullmatch(item.media_type) is None:
        raise InputError(
            f"a picture of the report has the media type {brief(item.media_type)}; expected image/…"
        )
    width, height = None, None
    if item.picture.startswith(_PNG) and len(item.picture) >= 24:
        width, height = struct.unpack(">II", item.picture[16:24])
    address = f"data:{item.media_type};base64,{base64.b64encode(item.picture).decode('ascii')}"
    is_small = max(width or 0, height or 0) <= (_LARGE_PIXELS if large else _SMALL_PIXELS)
    return Picture(address, width, height, few_pixels=width is not None and is_small)


def drawing(chart: Chart, name: str) -> Drawing:
    """A chart as the page has it; its data by column names and rows, which is shorter than a mapping for every row."""
    names = list(dict.fromkeys(key for row in chart.data for key in row))
    data = {
        "spec": themed(chart.spec),
        "names": names,
        "rows": [[row.get(key) for key in names] for row in chart.data],
        "height": chart.height,
    }
    markup = None if chart.drawn is None else inline_svg(chart.drawn, f"{name}-")
    return Drawing(name, markup, as_json(data))


# ---------------------------------------------------------------------------------------------------------------- page

LONG = 420  # characters of a text that are shown before its reader asks for the rest
TALL = 50  # rows of a table that are shown without a box to scroll in


def render(document: Document) -> str:
    """The page of a document.

    User text in it is escaped; pictures, style and scripts are inside it; a content security policy keeps browsers
    from running or loading anything else.

    Parameters
    ----------
    document : Document
        What the report says.

    Returns
    -------
    str
        HTML, to be written in UTF-8.

    Examples
    --------
    >>> from vendimeter.reports.document import Document, Fact, Facts, Paragraph, Section
    >>> document = Document(
    ...     title="Captions <1>", headline="About 12 different captions.", facts=Facts([Fact("Vendi Score", "12.3")]),
    ...     sections=[Section("what", "What was measured", blocks=[Paragraph("100 captions.")])])
    >>> page = render(document)
    >>> "<h1" in page, "Captions &lt;1&gt;" in page, len(page) < 50_000  # no chart, so nothing to draw charts with
    (True, True, True)
    """
    names = Names()
    sections = [(names.section(section), section) for section in document.sections]
    scripts = [assets.script()]
    has_charts = any(
        isinstance(block, Chart) for _, section in sections for block in _walk_blocks(section.blocks)
    )
    if has_charts:
        scripts = [*assets.vendored(), *scripts]
    style = assets.style(len(document.orders))
    return _template().render(
        document=document,
        sections=sections,
        names=names,
        style=style,
        scripts=scripts,
        policy=assets.policy([style], scripts),
        licences=assets.licences() if has_charts else "",
    )


def _walk_blocks(blocks: Any) -> Iterator[Block]:
    """All blocks, depth first, including those inside groups."""
    for block in blocks:
        yield block
        if isinstance(block, Group):
            yield from _walk_blocks(block.blocks)
        elif isinstance(block, ByOrder):
            yield from _walk_blocks(block.blocks.values())


def _refuse(kind: str) -> None:
    """Raise an error for a block that the page cannot show."""
    raise InputError(f"a block of the report is a {kind}, which the page cannot show.")


@functools.cache
def _template() -> Any:
    """The template of the page."""
    jinja2 = require("jinja2", extra="report", purpose="the HTML report")
    markup = require("markupsafe", extra="report", purpose="the HTML report").Markup
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("vendimeter", "reports/templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Whatever a template writes, control characters are shown; markup is escaped after that.
        finalize=lambda value: value if isinstance(value, markup) else visible_text(value),
    )
    environment.filters["order_label"] = order_label
    environment.globals.update(
        cells=cells,
        drawing=drawing,
        picture=picture,
        refuse=_refuse,
        kind=lambda block: type(block).__name__,
        LONG=LONG,
        TALL=TALL,
    )
    return environment.get_template("page.html")
