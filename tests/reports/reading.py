"""Reading a document of a report: its sections, blocks, tables and galleries, whatever they are inside of."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np

from vendimeter.reports.document import Block, ByOrder, Chart, Document, Gallery, Group, Section, Table

B = TypeVar("B", bound=Block)


def section(document: Document, key: str) -> Section:
    """The section of this key."""
    return next(one for one in document.sections if one.key == key)


def walk(blocks: Any, order: str | None = None) -> Iterator[Block]:
    """All blocks, those of one order only where there are several orders."""
    for block in blocks:
        if isinstance(block, ByOrder):
            chosen = [block.blocks[order]] if order is not None else list(block.blocks.values())
            yield from walk(chosen, order)
            continue
        yield block
        if isinstance(block, Group):
            yield from walk(block.blocks, order)


def blocks(document: Document, key: str, kind: type[B], order: str | None = None) -> list[B]:
    """The blocks of one kind in a section."""
    return [one for one in walk(section(document, key).blocks, order) if isinstance(one, kind)]


def titled(document: Document, key: str, kind: type[B], title: str, order: str | None = None) -> B:
    """The first chart, gallery or group whose title begins so."""
    found = blocks(document, key, kind, order)
    return next(one for one in found if one.title.startswith(title))  # type: ignore[attr-defined]


def columns(table: Table) -> dict[str, list[Any]]:
    """The columns of a table by their titles."""
    assert len({column.title for column in table.columns}) == len(table.columns)
    return {column.title: [row[j] for row in table.rows] for j, column in enumerate(table.columns)}


def drawn(chart: Chart, layer: int) -> list[dict[str, Any]]:
    """The rows of a layer of a chart."""
    return [dict(row) for row in chart.data if row["layer"] == layer]


def texts(gallery: Gallery) -> list[str]:
    """The texts of the items of a gallery."""
    return [item.text for item in gallery.items]


def text_of(document: Document, key: str, order: str | None = None) -> str:
    """All running text of a section."""
    found = section(document, key)
    said = [getattr(one, "text", "") for one in walk(found.blocks, order)]
    return " ".join([found.lead, *said])


def hill(matrix: np.ndarray, q: float = 1.0, weights: np.ndarray | None = None) -> float:
    """The Vendi Score of a similarity matrix by its definition."""
    n = len(matrix)
    root = np.sqrt(np.full(n, 1 / n) if weights is None else weights)
    values = np.linalg.eigvalsh(root[:, None] * matrix * root)
    values = values[values > 1e-12]
    if q == 1:
        return float(np.exp(-(values * np.log(values)).sum()))
    if math.isinf(q):
        return float(1 / values.max())
    return float((values**q).sum() ** (1 / (1 - q)))


def cosine(rows: np.ndarray) -> np.ndarray:
    """The matrix of cosine similarities."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit @ unit.T
