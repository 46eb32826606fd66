"""Drawings as part of a page: an SVG document, less everything that could run, load or clash."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from xml.etree import ElementTree

from vendimeter.errors import InputError
from vendimeter.reports.page_text import INK, PAPER, themed, visible_text

__all__ = ["inline_svg"]

_SVG = "{http://www.w3.org/2000/svg}"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_ELEMENTS = frozenset(
    (
        *("svg", "g", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan"),
        *("defs", "clipPath", "linearGradient", "radialGradient", "stop", "use", "title", "desc", "marker"),
        *("symbol", "pattern", "mask"),
    )
)
_PRESENTATION = frozenset(
    (
        *("fill", "fill-opacity", "fill-rule", "stroke", "stroke-width", "stroke-opacity", "stroke-linecap"),
        *("stroke-linejoin", "stroke-dasharray", "stroke-dashoffset", "stroke-miterlimit", "opacity"),
        *("clip-path", "clip-rule", "font-family", "font-size", "font-weight", "font-style", "text-anchor"),
        *("dominant-baseline", "letter-spacing", "stop-color", "stop-opacity", "marker-start", "marker-mid"),
        *("marker-end", "mask", "vector-effect", "shape-rendering", "visibility"),
    )
)
_GEOMETRY = frozenset(
    (
        *(
            "d",
            "points",
            "x",
            "y",
            "x1",
            "y1",
            "x2",
            "y2",
            "dx",
            "dy",
            "cx",
            "cy",
            "r",
            "rx",
            "ry",
            "fx",
            "fy",
        ),
        *("width", "height", "transform", "rotate", "viewBox", "preserveAspectRatio", "offset", "orient"),
        *("gradientUnits", "gradientTransform", "clipPathUnits", "patternUnits", "patternTransform", "refX"),
        *("refY", "markerWidth", "markerHeight", "markerUnits", "maskUnits"),
    )
)
# Paper and ink of a drawing are those of the page, so that it can be read in the dark.
_THEME_COLOURS = {
    **dict.fromkeys(("#000", "#000000", "black"), INK),
    **dict.fromkeys(("#fff", "#ffffff", "white"), PAPER),
}
_REFERENCE = re.compile(r"""url\(\s*["']?#([^"')]+)["']?\s*\)""")


def inline_svg(document: str, prefix: str) -> str:
    """The markup of a drawing, with names that begin with `prefix`; styles become attributes, for the page's policy.

    Examples
    --------
    >>> inline_svg('<svg xmlns="http://www.w3.org/2000/svg" width="4pt" height="2pt" onload="run()">'
    ...            '<script>run()</script><path id="a" style="fill: #000000" d="M0 0"/></svg>', "c1-")
    '<svg viewBox="0 0 4 2" fill="currentColor" aria-hidden="true"><path id="c1-a" fill="currentColor" d="M0 0"/></svg>'
    """
    if "<!ENTITY" in document:
        raise InputError("a drawing of the report declares entities; expected an SVG document without them.")
    try:
        root = ElementTree.fromstring(document)
    except ElementTree.ParseError as error:
        raise InputError(f"a drawing of the report is no SVG document: {error}.") from None
    if root.tag != f"{_SVG}svg":
        raise InputError(f"a drawing of the report begins with {root.tag!r}; expected an SVG document.")
    box = root.get("viewBox") or f"0 0 {_length(root.get('width'))} {_length(root.get('height'))}"
    # The edges that matplotlib asks for in a style sheet, which the page cannot take over.
    edges = ' stroke-linejoin="round"' if root.find(f".//{_SVG}style") is not None else ""
    content = "".join(markup for child in root for markup in _markup(child, prefix))
    size = re.fullmatch(r"[\d.]+(?:px)?", root.get("font-size", ""))
    font_size = f' font-size="{size[0]}"' if size else ""
    return f'<svg viewBox="{escape(box)}" fill="{INK}"{font_size}{edges} aria-hidden="true">{content}</svg>'


def _length(text: str | None) -> str:
    """The number of a length such as "460.8pt"."""
    match = re.match(r"\s*([\d.]+)", text or "")
    if match is None:
        raise InputError("a drawing of the report has neither a viewBox nor a width and height.")
    return match[1]


def _markup(element: ElementTree.Element, prefix: str) -> Iterator[str]:
    """The markup of an element and what is in it, of those that only draw."""
    tag = element.tag.removeprefix(_SVG) if isinstance(element.tag, str) else ""
    if tag not in _ELEMENTS:
        return
    attributes = dict(_attributes(element, prefix))
    if tag == "use" and "href" not in attributes:
        return
    attribute_text = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
    text = escape(visible_text(element.text)) if element.text and element.text.strip() else ""
    content = text + "".join(
        part
        for child in element
        for part in (
            *_markup(child, prefix),
            escape(visible_text(child.tail)) if tag == "text" and child.tail else "",
        )
    )
    yield f"<{tag}{attribute_text}>{content}</{tag}>" if content else f"<{tag}{attribute_text}/>"


def _attributes(element: ElementTree.Element, prefix: str) -> Iterator[tuple[str, str]]:
    """The attributes that only draw; those of a style become attributes of their own."""
    for name, value in element.attrib.items():
        if name == "id":
            yield "id", prefix + value
        elif name in ("href", _XLINK):
            if value.startswith("#"):
                yield "href", f"#{prefix}{value[1:]}"
        elif name == "style":
            for declaration in value.split(";"):
                key, _, declared = declaration.partition(":")
                if key.strip() == "font":
                    yield from _font(declared.strip())
                elif key.strip() in _PRESENTATION:
                    yield key.strip(), _presentation_value(declared.strip(), prefix)
        elif name in _PRESENTATION:
            yield name, _presentation_value(value, prefix)
        elif name in _GEOMETRY:
            yield name, value


def _font(font: str) -> Iterator[tuple[str, str]]:
    """The size and family of a font in one value, as matplotlib writes it: "10px 'DejaVu Sans', sans-serif"."""
    match = re.search(r"([\d.]+)px", font)
    if match:
        yield "font-size", match[1]
    yield "font-family", "system-ui, sans-serif"


def _presentation_value(value: str, prefix: str) -> str:
    """A value of a presentation attribute; references stay inside the drawing."""
    value = themed(_THEME_COLOURS.get(value.lower(), value))
    if "url(" in value:
        reference = _REFERENCE.fullmatch(value.strip())
        return f"url(#{prefix}{reference[1]})" if reference else "none"
    return value
