"""How it was computed, how to do it again, and what a score does not say."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from vendimeter import __version__
from vendimeter.diversity import Diversity
from vendimeter.kernels import Kernel
from vendimeter.present.numbers import (
    count_of,
    format_confidence,
    format_duration,
    format_number,
    order_name,
    order_symbol,
)
from vendimeter.present.text import printable
from vendimeter.reports.document import Block, Code, Column, Group, Paragraph, Section, Table
from vendimeter.reports.findings import Findings
from vendimeter.reports.words import note
from vendimeter.results.score import Score
from vendimeter.spectrum import parse_orders

__all__ = ["call_of", "section", "versions"]

# Libraries that may have had a part in it, with what they are called where they come from.
EXTRAS = {
    "sklearn": "scikit-learn",
    "pandas": "pandas",
    "polars": "polars",
    "pyarrow": "pyarrow",
    "PIL": "pillow",
    "rdkit": "rdkit",
    "torch": "torch",
    "jax": "jax",
    "cupy": "cupy",
    "sentence_transformers": "sentence-transformers",
    "transformers": "transformers",
    "timm": "timm",
}
LIMITS = (
    "A score says how different the items are, not how good: noise is very diverse. It sees what the kernel sees, and "
    "nothing else: two kernels give two answers to two questions. It grows with the number of items until these show "
    "all there is, so that collections of different sizes are compared at a common size. And it is about these items: "
    "what holds for the population that they came from is an estimate, with assumptions of its own."
)


def versions() -> dict[str, str]:
    """The versions of Python and the libraries that were used."""
    version_of = {"vendimeter": __version__, "Python": platform.python_version()}
    for name in ("numpy", "scipy"):
        version_of[name] = metadata.version(name)
    for module, name in EXTRAS.items():
        if module in sys.modules:
            try:
                version_of[name] = metadata.version(name)
            except metadata.PackageNotFoundError:  # there, but not installed as a package of this name
                continue
    return version_of


def section(findings: Findings, call: str, notes: Sequence[str], made_at: str) -> Section:
    """Method, kernel, seeds, versions, the call, and the limits."""
    several = findings.has_several
    blocks: list[Block] = []
    rows: list[list[Any]] = [["kernel", repr(findings.sample.kernel)], ["items", _items(findings)]]
    for part, profile in zip(findings.parts, findings.scores, strict=True):
        of = f" of {part.name}" if several else ""
        rows.append([f"method{of}", _method(profile[findings.first_order])])
        rows.append([f"bounds{of}", _bounds(profile[findings.first_order])])
    rows += [
        ["orders", ", ".join(map(order_symbol, findings.orders))],
        ["near copies from", f"a similarity of {findings.threshold:g}"],
        ["seed of everything random", str(findings.diversity.rng)],
        ["made", made_at],
        *([name, version] for name, version in versions().items()),
    ]
    blocks.append(Table([Column("what"), Column("how")], rows, sortable=False))
    diagnostics = findings.score.diagnostics
    if diagnostics:
        cells = [[name.replace("_", " "), _diagnostic_text(value)] for name, value in diagnostics.items()]
        blocks.append(
            Group(
                "Diagnostics of the score",
                [Table([Column("what"), Column("value")], cells, sortable=False)],
                folded=True,
            )
        )
    for q in findings.unanswered:
        blocks.append(
            note(
                f"Order {order_symbol(q)}, the rank, needs all eigenvalues, which would take too long for so many "
                "items; it was left out."
            )
        )
    blocks += [note(text) for text in notes]
    blocks += [Paragraph("To make this report again:"), Code(call)]
    if call.startswith("vendi ") and "-" in call.split():
        blocks.append(note("The samples came from standard input: they have to be given there again."))
    blocks.append(Group("What a score says, and what it does not", [Paragraph(LIMITS)]))
    lead = (
        f"{_method(findings.score)}. All that is random comes from the seed {findings.diversity.rng}, so that the same "
        "call gives the same report."
    )
    return Section("method", "How it was computed", lead, blocks)


def _items(findings: Findings) -> str:
    text = f"{count_of(findings.sample.total, 'item')}"
    if findings.has_several:
        text += f" in {len(findings.parts)} collections"
    if findings.diversity.n < findings.sample.total:
        text += f", of which a random {findings.diversity.n:,} were looked at"
    return text + (", by their weights" if findings.diversity.weighting == "weights" else "")


def _method(score: Score) -> str:
    names = {
        "gram": "all eigenvalues, of the matrix of features",
        "eigh": "all eigenvalues, of the similarity matrix",
        "components": "all eigenvalues, of the connected components of a sparse matrix",
        "lowrank": "a pivoted Cholesky factor of the similarity matrix",
        "lanczos": "Lanczos quadrature with random probes",
        "batched": "all eigenvalues, of many groups at once",
    }
    text = names.get(score.method, score.method)
    seconds = score.diagnostics.seconds
    time_words = "" if seconds is None else f", in {format_duration(seconds)}"
    return f"{text[:1].upper()}{text[1:]}{time_words}"


def _bounds(score: Score) -> str:
    statement = {
        "deterministic": "hold for certain",
        "probabilistic": "hold with a probability",
        "estimated": "are estimated, constants and all",
        "none": "there are none: the kernel stands in for another",
    }[score.level]
    if score.level in ("probabilistic", "estimated") and score.confidence == score.confidence:
        statement += f" of {format_confidence(score.confidence)}"
    if score.level == "none":
        return statement
    return f"{format_number(score.bounds[0], 6)} to {format_number(score.bounds[1], 6)}; they {statement}"


def _diagnostic_text(value: Any) -> str:
    return format_number(value, 6) if isinstance(value, float) else printable(value, 500)


# --------------------------------------------------------------------------------------------------------------- calls

DEFAULTS = {"kernel": "cosine", "q": (1, 0, 2, "inf"), "threshold": 0.95, "rng": 0}
# What stands for data that a call cannot hold.
PLACEHOLDERS = {
    "by": "labels",
    "weights": "weights",
    "counts": "counts",
    "reference": "reference",
    "show": "to_show",
    "features": "features",
    "kernel": "kernel",
}


def call_of(arguments: Mapping[str, Any]) -> str:
    """The call of `vendimeter.report`, without options that are as usual.

    Examples
    --------
    >>> print(call_of({"kernel": "ngram", "by": None, "q": [1, 2], "rng": 0}))
    import vendimeter as vm
    <BLANKLINE>
    vm.report(samples, kernel='ngram', q=[1, 2]).write("report.html")
    """
    written = ", ".join(["samples", *_written(arguments)])
    return f'import vendimeter as vm\n\nvm.report({written}).write("report.html")'


def method_call_of(diversity: Diversity, arguments: Mapping[str, Any]) -> str:
    """The call of `Diversity.report`, without options that are as usual.

    Examples
    --------
    >>> import vendimeter as vm
    >>> print(method_call_of(vm.Diversity(["a", "b"], "match", by=["x", "y"]), {"q": 2}))
    import vendimeter as vm
    <BLANKLINE>
    vm.Diversity(samples, kernel=Match(), by=['x', 'y']).report("report.html", q=2)
    """
    source = diversity.source
    several = source.is_joined and source.lists is None
    made_of = {
        "kernel": diversity.kernel,
        "by": source.by,
        "weights": source.weights,
        "counts": source.counts,
    }
    made = ", ".join(["collections" if several else "samples", *_written(made_of | {"rng": diversity.rng})])
    asked = ", ".join(['"report.html"', *_written(arguments)])
    return f"import vendimeter as vm\n\nvm.Diversity{'.of' if several else ''}({made}).report({asked})"


def _written(arguments: Mapping[str, Any]) -> list[str]:
    """Arguments as they stand in a call, without those that are as usual."""
    return [
        f"{name}={_argument_text(name, value)}"
        for name, value in arguments.items()
        if value is not None and not (name in DEFAULTS and _is_default(value, DEFAULTS[name]))
    ]


def _is_default(value: Any, default: Any) -> bool:
    try:
        return isinstance(value, type(default)) and bool(value == default)
    except (TypeError, ValueError):
        return False


def _argument_text(name: str, value: Any) -> str:
    if name == "q":
        orders = [order_name(q) for q in parse_orders(value)[0]]
        written_orders = ["'inf'" if order == "inf" else order for order in orders]
        return f"[{', '.join(written_orders)}]" if len(written_orders) > 1 else written_orders[0]
    if isinstance(value, str | int | float):
        return repr(value)
    if isinstance(value, Kernel):
        return repr(value)
    if (
        isinstance(value, list | tuple)
        and len(value) <= 4
        and all(isinstance(element, str) for element in value)
    ):
        return repr(value)
    return PLACEHOLDERS.get(name, name)
