"""Formulas without a network: MathJax as one file of the site, taken from the package sphinx-mathjax-offline.

That package would copy all of MathJax, 24 MB. One of its files, 2 MB, holds all that formulas as SVG need, fonts
included.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

from sphinx.errors import ExtensionError

FILE = "tex-svg.js"


def _source() -> Path:
    found = importlib.util.find_spec("sphinx-mathjax-offline")  # no identifier: it is not imported
    if found is None or found.origin is None:
        raise ExtensionError(
            "formulas need the package sphinx-mathjax-offline; install it with: pip install 'vendimeter[docs]'"
        )
    return Path(found.origin).parent / "static" / "mathjax" / FILE


def _copied(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        folder = Path(app.outdir) / "_static" / "mathjax"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_source(), folder / FILE)


def setup(app: Any) -> dict[str, Any]:
    """Copy the file when the pages are written; ``mathjax_path`` in conf.py points at it."""
    _source()
    app.connect("build-finished", _copied)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
