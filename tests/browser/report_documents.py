"""A document with every kind of block, for tests of the page; one of harmless text, one of hostile text."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable

from vendimeter.reports.document import (
    ByOrder,
    Chart,
    Code,
    Column,
    Document,
    Fact,
    Facts,
    Gallery,
    Group,
    Item,
    Paragraph,
    Section,
    Table,
)

# Texts that would run a script, leave an attribute or a data block, turn the direction of what follows, or burst a box.
HOSTILE = (
    "<script>window.__pwned = 1</script>",
    "</script><script>window.__pwned = 2</script>",
    "<!--<script>window.__pwned = 3//",
    '"><img src=x onerror="window.__pwned = 4">',
    "' onfocus='window.__pwned = 5' autofocus='",
    "</style><style>body{display:none}</style>",
    "</title></head><body onload=alert(6)>",
    "javascript:alert(7)",
    "{{ 7 * 7 }}${alert(8)}{% raw %}",
    "line\u2028separator\u2029and \x00 \x1b[31m \x07 \ud800 controls",
    "\u202eright to left override\u202d \u2066isolate",
    "مرحبا بالعالم (RTL) 123",
    "W" * 900,
    "ملف" * 300,
    "&lt;b&gt; &amp; <b>bold</b>",
    "`\\u003cimg src=x onerror=alert(9)\\u003e`",
)
ORDERS = ("1", "0", "2", "inf")


def picture(side: int = 28, shade: int = 0) -> bytes:
    """A small PNG with a disc on it."""
    rows = []
    for y in range(side):
        row = bytearray([0])
        for x in range(side):
            inside = math.hypot(x - side / 2, y - side / 2) < side * (0.25 + 0.02 * shade)
            row += bytes((30 + 20 * shade, 90, 200 - 15 * shade)) if inside else b"\xff\xff\xff"
        rows.append(bytes(row))

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    body = zlib.compress(b"".join(rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def drawn(values: list[float]) -> str:
    """Bars as an SVG document, as if a library had drawn them."""
    bars = "".join(
        f'<rect x="{20 + 20 * i}" y="{140 - 120 * v}" width="14" height="{120 * v}" style="fill: #0072b2"/>'
        for i, v in enumerate(values)
    )
    return (
        '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="460pt" height="160pt" '
        f'viewBox="0 0 460 160"><rect width="460" height="160" style="fill: #ffffff"/>{bars}'
        '<path d="M10 140H450" style="fill: none; stroke: #000000"/><text x="20" y="155">component</text></svg>'
    )


def spectrum_chart(label: Callable[[int], str]) -> Chart:
    """A chart of bars."""
    values = [0.34 * 0.78**i for i in range(20)]
    return Chart(
        title=f"Eigenvalues, {label(0)}",
        description=f"Bars that fall from {values[0]:.2f} to {values[-1]:.2f}.",
        spec={
            "mark": "bar",
            "encoding": {
                "x": {"field": "rank", "type": "ordinal", "title": "Component", "axis": {"labelAngle": 0}},
                "y": {"field": "share", "type": "quantitative", "title": "Share of the whole"},
                "tooltip": [
                    {"field": "name", "type": "nominal", "title": "Component"},
                    {"field": "share", "type": "quantitative", "title": "Share"},
                ],
            },
        },
        data=[{"rank": i + 1, "share": v, "name": label(i)} for i, v in enumerate(values)],
        table=Table(
            [Column("Component", "number"), Column("Share", "bar")],
            [(i + 1, v) for i, v in enumerate(values)],
        ),
        drawn=drawn(values),
    )


def curve_chart(label: Callable[[int], str]) -> Chart:
    """A chart of lines with bands, for several collections."""
    rows = [
        {"items": n, "score": 12 * (1 - math.exp(-n / (60 + 40 * k))), "collection": label(k)}
        for k in range(3)
        for n in range(10, 410, 20)
    ]
    for row in rows:
        row |= {"low": row["score"] * 0.93, "high": row["score"] * 1.07}
    x = {"field": "items", "type": "quantitative", "title": "Items"}
    colour = {"field": "collection", "type": "nominal"}
    return Chart(
        title="Score of ever more items",
        description="Three curves that rise and flatten.",
        spec={
            "layer": [
                {
                    "mark": {"type": "area", "opacity": 0.18},
                    "encoding": {
                        "x": x,
                        "y": {"field": "low", "type": "quantitative", "title": "Vendi Score"},
                        "y2": {"field": "high"},
                        "color": colour,
                    },
                },
                {
                    "mark": {"type": "line", "point": {"size": 40}},
                    "encoding": {"x": x, "y": {"field": "score", "type": "quantitative"}, "color": colour},
                },
            ]
        },
        data=rows,
        table=Table(
            [Column("Collection"), Column("Items", "number"), Column("Score", "number", 3)],
            [(row["collection"], row["items"], row["score"]) for row in rows],
            filterable=True,
        ),
        height=280,
    )


def heat_chart(label: Callable[[int], str]) -> Chart:
    """A chart of a matrix."""
    return Chart(
        title="Similarity of groups",
        description="A square of squares, brightest on its diagonal.",
        spec={
            "mark": "rect",
            "encoding": {
                "x": {"field": "a", "type": "nominal", "title": None, "sort": None},
                "y": {"field": "b", "type": "nominal", "title": None, "sort": None},
                "color": {"field": "k", "type": "quantitative", "title": "Similarity"},
            },
        },
        data=[
            {"a": label(i), "b": label(j), "k": math.exp(-abs(i - j) / 3)} for i in range(8) for j in range(8)
        ],
        table=Table([Column("Group")], [(label(i),) for i in range(8)]),
        height=280,
    )


def groups_table(label: Callable[[int], str], rows: int) -> Table:
    """A table of all kinds of columns, with missing cells."""
    return Table(
        columns=[
            Column("Group", meaning=f"The label of the items: {label(3)}"),
            Column("Items", "number"),
            Column("Vendi Score", "number", 4, "Effective number of different items"),
            Column("Share", "bar", 3, "Of all the diversity"),
            Column("Remark"),
        ],
        rows=[
            (
                label(i),
                (i * 37) % 400 + 1,
                None if i % 17 == 5 else 1 + (i * 7.31) % 23.4,
                float("nan") if i % 17 == 5 else (-0.02 if i % 13 == 6 else 0.4 / (i + 1)),
                None if i % 3 else label(i + 1),
            )
            for i in range(rows)
        ],
        caption=f"Groups of the collection, {label(4)}",
        filterable=True,
        more=1234,
    )


def document(label: Callable[[int], str], rows: int = 60) -> Document:
    """A document with every kind of block, whose texts are those of `label`."""
    texts = [
        Item(text=f"{label(i)}, sample {i}", caption=f"row {i * 17}", figure=f"{9 - i} %") for i in range(5)
    ]
    pictures = [
        Item(picture=picture(28, i % 7), caption=label(i) if i % 2 else f"{i}", figure=f"{0.1 / (i + 1):.3f}")
        for i in range(9)
    ]
    return Document(
        title=f"Captions of {label(0)}",
        subtitle=f"captions.csv · {label(1)} · 1,204 texts · n-grams of 1 to 4 words",
        headline=f"The 1,204 captions are as diverse as 12.3 entirely different ones; {label(2)} is the poorest group.",
        facts=Facts(
            [
                Fact("Vendi Score", "12.31", "between 12.28 and 12.34, for certain"),
                Fact("Items", "1,204", f"of which 1,190 are distinct: {label(3)}"),
                Fact("Duplicates", "14", "copies, or nearly"),
                Fact("Groups", f"{rows}", "by the column style"),
                Fact("Population", "13.1 ± 0.4", "at 95%, from the jackknife"),
            ]
        ),
        orders=ORDERS,
        sections=[
            Section(
                "spectrum",
                f"Spectrum of {label(0)}",
                "Eigenvalues of the similarity matrix say how many kinds there are, and how even they are.",
                [
                    spectrum_chart(label),
                    Paragraph(f"Half of the collection lies in the first three components. {label(5)}"),
                    Paragraph(
                        f"A caution: {label(6)}. The score concerns these items, not those they stand for.",
                        note=True,
                    ),
                ],
            ),
            Section(
                "orders",
                "Common and rare kinds",
                "What is counted depends on the order q.",
                [
                    ByOrder(
                        {
                            q: Facts([Fact(f"Score at q = {q}", f"{20 - 4 * i}.25", f"{label(i)}")])
                            for i, q in enumerate(ORDERS)
                        }
                    ),
                    ByOrder({q: spectrum_chart(lambda i, q=q: f"{label(i)} at {q}") for q in ORDERS[:3]}),
                    curve_chart(label),
                ],
            ),
            Section(
                "groups",
                "Groups",
                blocks=[
                    groups_table(label, rows),
                    heat_chart(label),
                    Gallery([Item(picture=picture(160, 2), caption=label(2))], title="All pairs", large=True),
                ],
            ),
            Section(
                "modes",
                "Modes",
                "What the samples have in common, one kind at a time.",
                [
                    Group(f"Mode 1: {label(7)}", [Paragraph("28% of all."), Gallery(pictures)]),
                    Group(
                        f"Mode 2: {label(8)}",
                        [Gallery(texts, title=label(9), lead="The nearest first."), spectrum_chart(label)],
                        folded=True,
                    ),
                    Group("Mode 3", [Gallery(texts[:2]), Code("nested = True")], folded=True),
                ],
            ),
            Section(
                "again",
                "Do it again",
                blocks=[
                    Code(f"vendi report captions.csv --by style \\\n    --note '{label(10)}'\n" + "x" * 300),
                    groups_table(label, 7),
                    Gallery([Item(text=label(11), picture=picture(120, 3)), Item(text=label(12) * 3)]),
                ],
            ),
        ],
        footer=f"Made by Vendimeter. {label(13)}",
        meta={"Version": "0.1", "Made": "2026-01-01 12:00 UTC", label(14): label(15)},
    )


NAMES = (
    *(
        "watercolour",
        "oil on canvas",
        "photograph",
        "etching",
        "charcoal",
        "woodcut",
        "digital",
        "collage",
        "fresco",
    ),
    *("gouache", "ink wash", "lithograph", "mosaic", "pastel", "screen print", "tapestry"),
)


def calm(rows: int = 60) -> Document:
    """A document of ordinary text."""
    return document(lambda i: NAMES[i % len(NAMES)] + (f" {i}" if i >= len(NAMES) else ""), rows)


def hostile(rows: int = 60) -> Document:
    """A document of which every text that a user could give is hostile."""
    return document(lambda i: f"{i}{HOSTILE[i % len(HOSTILE)]}", rows)
