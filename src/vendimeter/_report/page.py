"""A document as one HTML page, which needs nothing but itself: no network, and no script to be read."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from vendimeter._report import _page_assets as assets
from vendimeter._report._page_blocks import Names, cells, drawing, picture
from vendimeter._report._page_text import order_label, shown
from vendimeter._report.document import Block, ByOrder, Chart, Document, Group
from vendimeter.errors import InputError
from vendimeter.optional import require

__all__ = ["render"]

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
    >>> from vendimeter._report.document import Document, Fact, Facts, Paragraph, Section
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
    has_charts = any(isinstance(block, Chart) for _, section in sections for block in _all(section.blocks))
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


def _all(blocks: Any) -> Iterator[Block]:
    """Blocks, and those inside them."""
    for block in blocks:
        yield block
        if isinstance(block, Group):
            yield from _all(block.blocks)
        elif isinstance(block, ByOrder):
            yield from _all(block.blocks.values())


def _refuse(kind: str) -> None:
    """Say that a block is none of those that the page can show."""
    raise InputError(f"a block of the report is a {kind}, which the page cannot show.")


@functools.cache
def _template() -> Any:
    """The template of the page."""
    jinja2 = require("jinja2", extra="report", purpose="the HTML report")
    markup = require("markupsafe", extra="report", purpose="the HTML report").Markup
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("vendimeter", "_report/templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Whatever a template writes, control characters are shown; markup is escaped after that.
        finalize=lambda value: value if isinstance(value, markup) else shown(value),
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
