"""What the page carries beside the document: style, scripts, and the policy that lets a browser run these only."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

__all__ = ["licences", "policy", "script", "style", "vendored"]

_ASSETS = Path(__file__).parent / "assets"


@functools.cache
def style(orders: int) -> str:
    """The style sheet, with a rule for each of so many orders that a reader may choose from."""
    sheet = (_ASSETS / "report.css").read_text(encoding="utf-8")
    if orders < 2:  # nothing to choose
        return sheet + ".by-order > [data-order] { display: block; }\n"
    choices = [
        f':root:has(#order-{i}:checked) .by-order > [data-order="{i}"] {{ display: block; }}'
        for i in range(orders)
    ]
    return "\n".join([sheet, *choices, ""])


@functools.cache
def script() -> str:
    """The page's own script: one function, so that its names are its own."""
    sources = [
        (_ASSETS / name).read_text(encoding="utf-8")
        for name in ("tips.js", "tables.js", "charts.js", "report.js")
    ]
    return "\n".join(["(function () {", '"use strict";', *sources, "})();", ""])


@functools.cache
def vendored() -> tuple[str, ...]:
    """The scripts that draw charts, in the order in which they run."""
    manifest = json.loads((_ASSETS / "vendor" / "manifest.json").read_text(encoding="utf-8"))
    return tuple(
        (_ASSETS / "vendor" / entry["name"]).read_text(encoding="utf-8") for entry in manifest["scripts"]
    )


@functools.cache
def licences() -> str:
    """The licences of the scripts that draw charts, which go where they go."""
    return (_ASSETS / "vendor" / "LICENSES.txt").read_text(encoding="utf-8")


def policy(styles: Iterable[str], scripts: Iterable[str]) -> str:
    """A content security policy: nothing is loaded, and nothing is run or applied but what is given here."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(map(_digest, scripts))}",
            f"style-src {' '.join(map(_digest, styles))}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


@functools.cache
def _digest(text: str) -> str:
    """The hash by which a content security policy names a script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
