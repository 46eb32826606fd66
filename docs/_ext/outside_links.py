"""Links out of this folder, which are right in the repository, lead to the pages that show the same files here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx import addnodes

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "README": "index",
    "CHANGELOG": "project/changelog",
    "CONTRIBUTING": "project/contributing",
    "benchmarks/README": "project/benchmarks",
    "experiments/README": "project/experiments",
    "experiments/unclear": "project/unclear",
}


def _mended(app: Any, doctree: Any) -> None:
    outside = {(ROOT / name).as_posix(): page for name, page in PAGES.items()}
    for node in doctree.findall(addnodes.pending_xref):
        if node.get("refdomain") == "doc" and node["reftarget"] in outside:
            node["reftarget"] = outside[node["reftarget"]]


def setup(app: Any) -> dict[str, Any]:
    """Mend the links of each page once it is read."""
    app.connect("doctree-read", _mended)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
