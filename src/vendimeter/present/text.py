"""User text in terminals and markup languages: it is shown as it is, and never obeyed."""

from __future__ import annotations

import html
import re

__all__ = ["html_escaped", "label_as_text", "latex_escaped", "markdown_escaped", "on_one_line", "printable"]

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    **{mark: f"{{{mark}}}" for mark in "[]*"},  # at the beginning of a row they are taken for arguments
}
_MARKDOWN = re.compile(r"([\\`*_\[\]<>#!|~$&])")


def printable(text: object, most: int | None = None) -> str:
    """User text without control characters or escape codes, cut to a length if one is given."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))
    return shown if most is None or len(shown) <= most else shown[: most - 1] + "…"


def html_escaped(text: object) -> str:
    r"""User text as HTML shows it: nothing in it is markup, and it can be written whatever is in it.

    Examples
    --------
    >>> print(html_escaped("<b> & caf\ud83d"))
    &lt;b&gt; &amp; caf\ud83d
    """
    return "\n".join(html.escape(printable(line)) for line in str(text).split("\n"))


def markdown_escaped(text: object) -> str:
    r"""User text as Markdown shows it: nothing in it is markup, and it stays on its line.

    Examples
    --------
    >>> print(markdown_escaped("a|b *c* <i>"))
    a\|b \*c\* \<i\>
    """
    return _MARKDOWN.sub(r"\\\1", on_one_line(text))


def latex_escaped(text: object) -> str:
    r"""User text as LaTeX shows it.

    Examples
    --------
    >>> print(latex_escaped("50% of_x & \\input"))
    50\% of\_x \& \textbackslash{}input
    """
    escaped = "".join(_LATEX.get(mark, mark) for mark in on_one_line(text))
    return re.sub("-(?=-)", "-{}", escaped)  # two hyphens in a row would be a dash


def label_as_text(label: object) -> str:
    """A label of the user's as text: "y / p" where it combines several.

    Examples
    --------
    >>> label_as_text(("y", "p"))
    'y / p'
    """
    return " / ".join(map(label_as_text, label)) if isinstance(label, tuple | list) else str(label)


def on_one_line(text: object, most: int | None = None) -> str:
    """User text without line breaks and control characters."""
    return printable(" ".join(str(text).split()), most)
