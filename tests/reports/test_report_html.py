"""The HTML of a report, without a browser: what it escapes, what it allows, what it weighs."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import sys
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import vendimeter.reports
from browser.report_documents import HOSTILE, calm, hostile, picture
from vendimeter.errors import InputError, MissingDependencyError
from vendimeter.present.colours import PALETTE
from vendimeter.reports import page
from vendimeter.reports.document import (
    Block,
    ByOrder,
    Chart,
    Column,
    Document,
    Fact,
    Facts,
    Gallery,
    Item,
    Paragraph,
    Section,
    Table,
)
from vendimeter.reports.foreign_svg import inline_svg
from vendimeter.reports.page import render
from vendimeter.reports.page_text import as_json, format_column, visible_text

VENDOR = Path(vendimeter.reports.__file__).parent / "assets" / "vendor"


@dataclass
class Parsed(HTMLParser):
    """The elements of a page, as an independent parser sees them."""

    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    raw: list[tuple[str, dict[str, str | None], str]] = field(default_factory=list)  # scripts and styles
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self.inside: tuple[str, dict[str, str | None]] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs)
        self.elements.append((tag, dict(attrs)))
        self.inside = (tag, dict(attrs)) if tag in ("script", "style") else None

    def handle_endtag(self, tag: str) -> None:
        self.inside = None

    def handle_data(self, data: str) -> None:
        if self.inside is None:
            self.text += data
        else:
            self.raw.append((*self.inside, data))


def parsed(html: str) -> Parsed:
    parser = Parsed()
    parser.feed(html)
    parser.close()
    return parser


def small(*blocks: Block, **fields: Any) -> Document:
    """A document of one section."""
    return Document(
        "A title", "An answer.", Facts([Fact("Score", "2")]), [Section("a", "A", "", blocks)], **fields
    )


@pytest.fixture(scope="module")
def hostile_page() -> Parsed:
    return parsed(render(hostile()))


def test_the_policy_comes_first_and_names_every_script_and_style(hostile_page):
    tags = [tag for tag, _ in hostile_page.elements[:4]]
    assert tags == ["html", "head", "meta", "meta"]
    assert hostile_page.elements[2][1] == {"charset": "utf-8"}
    assert hostile_page.elements[3][1]["http-equiv"] == "Content-Security-Policy"
    directives = dict(
        part.strip().split(" ", 1) for part in (hostile_page.elements[3][1]["content"] or "").split(";")
    )
    assert directives.keys() == {
        "default-src",
        "script-src",
        "style-src",
        "img-src",
        "base-uri",
        "form-action",
    }
    assert {directives[name] for name in ("default-src", "base-uri", "form-action")} == {"'none'"}
    assert directives["img-src"] == "data:"
    for tag in ("script", "style"):
        run = [
            f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
            for name, attributes, text in hostile_page.raw
            if name == tag and "type" not in attributes
        ]
        assert directives[f"{tag}-src"].split() == run
    assert len(directives["script-src"].split()) == 4


def test_hostile_text_makes_no_element_and_no_attribute(hostile_page):
    quiet = parsed(render(calm()))
    # The same elements with the same attributes, but for the folding of long texts and what depends on lengths.
    long_ones = {"details", "summary", "span", "bdi"}

    def kinds(found: Parsed) -> list[tuple[str, list[str]]]:
        return [(tag, sorted(attributes)) for tag, attributes in found.elements if tag not in long_ones]

    assert kinds(hostile_page) == kinds(quiet)
    for _, attributes in hostile_page.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in ("src", "href"):
            assert re.match(r"#|data:", attributes.get(name) or "#")
    for text in HOSTILE:
        assert visible_text(text) in hostile_page.text
    for character in "\x00\x07\x1b\u202e\u202d\u2066\u2028\u2029\ud800":
        assert character not in hostile_page.text


def test_data_of_charts_is_json_that_leaves_its_script_nowhere(hostile_page):
    blocks = [
        text for tag, attributes, text in hostile_page.raw if attributes.get("type") == "application/json"
    ]
    assert len(blocks) == 7
    for text in blocks:
        assert not re.search("[<>&\u2028\u2029]", text)
    first = json.loads(blocks[0])
    assert first["names"] == ["rank", "share", "name"]
    assert first["rows"][1] == [2, 0.2652, "1</script><script>window.__pwned = 2</script>"]
    assert as_json([math.nan, math.inf, 1 / 3, 2**60]) == f"[null,null,0.33333333,{2**60}]"


def test_the_page_weighs_less_than_a_megabyte_beside_its_content():
    bare = render(small())
    with_chart = render(small(Chart("t", "d", {"mark": "bar"}, [{"x": 1}])))
    assert len(bare.encode()) < 60_000  # what draws charts is not there
    assert len(with_chart.encode()) < 900_000
    assert "University of Washington" in with_chart  # the licences go with the scripts
    assert render(calm()) == render(calm())


def test_the_vendored_files_are_those_of_the_manifest():
    manifest = json.loads((VENDOR / "manifest.json").read_text(encoding="utf-8"))
    for entry in manifest["scripts"]:
        content = (VENDOR / entry["name"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry["sha256"]
        assert entry["integrity"].startswith("sha512-")
        assert b"sourceMappingURL" not in content
    licences = (VENDOR / "LICENSES.txt").read_bytes()
    assert hashlib.sha256(licences).hexdigest() == manifest["licences_sha256"]
    assert {path.name for path in VENDOR.iterdir()} == {
        *(entry["name"] for entry in manifest["scripts"]),
        "LICENSES.txt",
        "manifest.json",
    }


@pytest.mark.parametrize(
    ("values", "digits", "texts"),
    [
        ([3, 1200, 12_345, None], 2, ["3", "1,200", "12,345", "–"]),
        ([12.31, 3.5, -0.25], 4, ["12.31", "3.50", "−0.25"]),
        ([0.5, 1e-7, 0.0], 3, ["0.500", "1.00e−7", "0.00"]),
        ([1234567.0, 2.0], 3, ["1.23e+6", "2.00"]),
        ([math.nan, math.inf, -math.inf], 3, ["–", "∞", "−∞"]),
        ([], 3, []),
        ([123456.0, 99999.5], 4, ["123,456", "100,000"]),
    ],
)
def test_numbers_of_a_column(values, digits, texts):
    assert format_column(values, digits) == texts


def test_bars_are_as_long_as_their_values():
    table = Table([Column("a"), Column("b", "bar")], [("x", 0.5), ("y", 0.25), ("z", None), ("w", -1.0)])
    bars = [
        attributes["width"]
        for tag, attributes in parsed(render(small(table))).elements
        if tag == "rect" and attributes.get("class") != "track"
    ]
    assert bars == ["32.0", "16.0", "0.0", "64.0"]


def test_a_drawing_keeps_what_draws_and_nothing_else():
    made = inline_svg(
        """<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/svg11.dtd">
        <svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="10pt" height="5pt"
             onload="alert(1)"><style>*{stroke-linejoin: round}</style><script>alert(2)</script>
        <defs><clipPath id="p1"><rect width="3" height="4"/></clipPath><path id="m" d="M0 0"/></defs>
        <foreignObject><iframe src="http://x"/></foreignObject><image href="http://x/y.png"/>
        <a href="javascript:alert(3)"><text>linked</text></a>
        <use xlink:href="#m" style="fill: #0072b2; behavior: url(x)"/><use href="http://x#m"/>
        <g clip-path="url(#p1)" fill="url(http://x)" onclick="alert(4)"><text style="font: 10px 'A', sans-serif"
        class="k">&lt;b&gt; &amp;<tspan>in</tspan> tail</text></g></svg>""",
        "chart-1-",
    )
    assert parsed(made).elements == [
        (
            "svg",
            {
                "viewbox": "0 0 10 5",
                "fill": "currentColor",
                "stroke-linejoin": "round",
                "aria-hidden": "true",
            },
        ),
        ("defs", {}),
        ("clippath", {"id": "chart-1-p1"}),
        ("rect", {"width": "3", "height": "4"}),
        ("path", {"id": "chart-1-m", "d": "M0 0"}),
        ("use", {"href": "#chart-1-m", "fill": "var(--series-1)"}),
        ("g", {"clip-path": "url(#chart-1-p1)", "fill": "none"}),
        ("text", {"font-size": "10", "font-family": "system-ui, sans-serif"}),
        ("tspan", {}),
    ]
    assert "&lt;b&gt; &amp;<tspan>in</tspan> tail" in made


def test_the_page_has_the_colours_of_the_plots():
    sheet = (VENDOR.parent / "report.css").read_text(encoding="utf-8")
    light = re.findall(r"--series-\d: light-dark\((#\w+),", sheet)
    assert [colour.upper() for colour in light] == [colour.upper() for colour in PALETTE]


def test_matplotlib_drawings_become_part_of_the_page():
    figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(4, 3))
    import io

    axes = figure.subplots()
    axes.plot([1, 2, 3], label="<script>")
    axes.legend()
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    html = parsed(render(small(Chart("t", "d", {"mark": "line"}, [{"x": 1}], drawn=buffer.getvalue()))))
    paths = [attributes for tag, attributes in html.elements if tag == "path" and "d" in attributes]
    assert len(paths) > 10
    assert not [attributes for _, attributes in html.elements if "style" in attributes]
    assert sum("#1f77b4" in str(attributes.get("stroke")) for attributes in paths) == 2  # line and legend


def test_one_order_needs_no_choice_and_one_without_a_block_says_so():
    block = ByOrder({"1": Paragraph("for one"), "inf": Paragraph("for infinity")})
    one = render(small(block, orders=("inf",)))
    assert 'type="radio"' not in one
    assert "for infinity" in one
    assert "for one" not in one
    several = parsed(render(small(block, orders=("1", "0"))))
    assert [attributes["id"] for tag, attributes in several.elements if tag == "input"] == [
        "order-0",
        "order-1",
    ]
    assert "Not computed for this order." in several.text


def test_names_of_parts_are_unique(hostile_page):
    document = calm()
    twice = replace(document, sections=[*document.sections, *document.sections, Section("<&>", "x")])
    for found in (hostile_page, parsed(render(twice))):
        names = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
        assert len(names) == len(set(names))
        for _, attributes in found.elements:
            for reference in ("aria-labelledby", "for"):
                assert attributes.get(reference, names[0]) in names
            link = attributes.get("href") or "#"
            assert link[1:] in [*names, ""] or link.startswith("data:")


def test_pictures_are_inside_the_page_with_their_size_and_a_text():
    document = small(
        Gallery([Item(picture=picture(28), caption='a "quoted" <label>'), Item(picture=b"GIF89a")])
    )
    images = [attributes for tag, attributes in parsed(render(document)).elements if tag == "img"]
    assert images[0]["width"] == images[0]["height"] == "28"
    assert images[0]["alt"] == "picture 1"
    assert base64.b64decode((images[0]["src"] or "").removeprefix("data:image/png;base64,")) == picture(28)
    assert images[1]["alt"] == "picture 2"


@dataclass(frozen=True)
class Unheard(Block):
    """A block that the page does not know."""


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (Unheard(), "is a Unheard"),
        (Table([Column("a")], [(1, 2)]), "rows of 2 cells and 1 columns"),
        (Table([Column("a", "colour")], [(1,)]), "'colour'"),
        (Gallery([Item(picture=b"", media_type='image/png" onerror="x')]), "media type"),
        (Chart("t", "d", {}, [], drawn="<svg"), "no SVG document"),
        (Chart("t", "d", {}, [], drawn="<html/>"), "begins with 'html'"),
        (Chart("t", "d", {}, [], drawn='<!DOCTYPE a [<!ENTITY b "c">]><svg/>'), "entities"),
    ],
)
def test_what_cannot_be_shown_is_refused(block, message):
    with pytest.raises(InputError, match=re.escape(message)):
        render(small(block))


def test_without_jinja_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    page._template.cache_clear()
    with pytest.raises(MissingDependencyError, match=r"vendimeter\[report\]"):
        render(small())
    page._template.cache_clear()
