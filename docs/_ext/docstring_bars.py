"""Bars in docstrings are those of |a ∩ b|, sizes or absolute values; reStructuredText takes them for something else."""

from __future__ import annotations

import re
from typing import Any

LITERAL = re.compile(r"(``.*?``)")


def escaped(line: str) -> str:
    r"""The line with its bars escaped, except in code.

    Examples
    --------
    >>> escaped("k = |a ∩ b|, ``x | y``")
    'k = \\|a ∩ b\\|, ``x | y``'
    """
    if line.lstrip().startswith((">>>", "...")):
        return line
    parts = LITERAL.split(line)
    return "".join(part if part.startswith("``") else part.replace("|", r"\|") for part in parts)


def _process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = [escaped(line) for line in lines]


def setup(app: Any) -> dict[str, Any]:
    """Mend every docstring as it is read."""
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
