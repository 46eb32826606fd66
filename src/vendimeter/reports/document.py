"""What a report says, apart from how it looks: sections of blocks, all of plain values.

`content` modules fill a `Document` from analyses; `page` modules turn one into HTML. User text stands in it as it is;
only the page knows how to escape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Block",
    "ByOrder",
    "Chart",
    "Code",
    "Column",
    "Document",
    "Fact",
    "Facts",
    "Gallery",
    "Group",
    "Item",
    "Paragraph",
    "Section",
    "Table",
]


@dataclass(frozen=True)
class Block:
    """A part of a section."""


@dataclass(frozen=True)
class Paragraph(Block):
    """Text; a `note` is set apart, as a caution or an explanation."""

    text: str
    note: bool = False


@dataclass(frozen=True)
class Code(Block):
    """A command or a program, to be copied."""

    text: str


@dataclass(frozen=True)
class Fact:
    """A figure with its name and what it means: "Vendi Score", "12.3", "between 12.2 and 12.4, for certain"."""

    name: str
    value: str
    meaning: str = ""


@dataclass(frozen=True)
class Facts(Block):
    """A row of figures."""

    facts: Sequence[Fact]


@dataclass(frozen=True)
class Column:
    """A column of a table: "text", "number" (a float or int, with so many digits; None is missing) or "bar"."""

    title: str
    kind: str = "text"
    digits: int = 4
    meaning: str = ""  # what it is, for those who point at its title


@dataclass(frozen=True)
class Table(Block):
    """Rows, to be sorted by every column and filtered by a text; cells are values as the columns say.

    A list of facts, `sortable=False`, stays in its order.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    filterable: bool = False
    more: int = 0  # rows that were left out, and are said to be
    sortable: bool = True


@dataclass(frozen=True)
class Chart(Block):
    """A chart as a Vega-Lite specification without data, size and colours, its data, and what it shows in words.

    `description` is read out to those who cannot see it; `table` has the numbers for everyone, and `drawn`, an SVG
    document, stands in where no script runs.
    """

    title: str
    description: str
    spec: Mapping[str, Any]
    data: Sequence[Mapping[str, Any]]
    table: Table | None = None
    drawn: str | None = None
    height: int = 260


@dataclass(frozen=True)
class Item:
    """A sample that is shown: a text, or a picture (bytes with its media type) with a caption; both may be there."""

    text: str = ""
    picture: bytes | None = None
    media_type: str = "image/png"
    caption: str = ""  # its place, number or label
    figure: str = ""  # its share, say


@dataclass(frozen=True)
class Gallery(Block):
    """Samples side by side; `large` ones, such as one picture of a matrix, are as wide as the text allows."""

    items: Sequence[Item]
    title: str = ""
    lead: str = ""
    large: bool = False


@dataclass(frozen=True)
class Group(Block):
    """Blocks that belong together under a title of their own, such as one mode with its samples; `folded` at first."""

    title: str
    blocks: Sequence[Block]
    folded: bool = False


@dataclass(frozen=True)
class ByOrder(Block):
    """The same block for several orders q; the page shows that of the order which its reader has chosen."""

    blocks: Mapping[str, Block]  # "0", "1", "2", "inf" → block


@dataclass(frozen=True)
class Section:
    """A chapter: what it says in a sentence or two, and the blocks that show it."""

    key: str  # of the link to it, such as "spectrum"
    title: str
    lead: str = ""
    blocks: Sequence[Block] = ()


@dataclass(frozen=True)
class Document:
    """A report: the headline, and sections in order."""

    title: str
    headline: str  # the answer in a sentence
    facts: Facts
    sections: Sequence[Section]
    orders: Sequence[str] = ("1",)  # that its reader may choose from, the first of them at first
    subtitle: str = ""  # what was measured: source, kind, items, kernel
    footer: str = ""
    meta: Mapping[str, str] = field(default_factory=dict)  # version, time of making
