"""Results as plain text for a terminal. User text is data: control characters are shown, never obeyed."""

from __future__ import annotations

from typing import Any

from vendimeter._messages import printable

__all__ = ["printable", "printable_lines", "table"]

BAR = 24
SHOWN = 40  # groups; of more, the first and last
ENDS = 10


def printable_lines(text: str) -> str:
    """Several lines of text, each without control characters."""
    return "\n".join(printable(line) for line in text.split("\n"))


def table(result: Any) -> str:
    """A Score, a Profile or GroupScores as lines of text."""
    if hasattr(result, "labels"):
        return _groups(result)
    if hasattr(result, "bounds"):
        return _score(result)
    rows = [("order q", "score")] + [(f"{q:g}", f"{score:.4f}") for q, score in result.items()]
    return _columns(rows)


def _score(score: Any) -> str:
    name = "Vendi Score" if score.q == 1 else f"Vendi Score of order {score.q:g}"
    narrow = score.half_width <= 1e-6 * score
    low, high = score.bounds
    within = (
        f"is within {score.half_width:.0e} of that" if narrow else f"lies between {low:.6g} and {high:.6g}"
    )
    # Deferred: `vendi --help` has no use for results.
    from vendimeter.results import percentage

    claim = score.level
    if score.level == "probabilistic":
        claim = f"with {percentage(score.confidence)} confidence"
    exact = (
        f"The exact score {within} ({claim})."
        if score.level != "none"
        else "Nothing is claimed of its error."
    )
    removed = score.diagnostics.get("removed_mass", 0.0)
    projected = f" Negative eigenvalues of mass {removed:.2g} were left out." if removed > 0 else ""
    return (
        f"{name}: {score:.4f}\n"
        f"As diverse as {score:.4g} completely different items, out of {score.n:,}. {exact}{projected}"
    )


def _groups(groups: Any) -> str:
    data = groups.to_dict()["groups"]
    several = len({row["q"] for row in data}) > 1
    if not several:
        data = sorted(data, key=lambda row: -(row["score"] or 0))
    top = max((row["score"] or 0 for row in data), default=1) or 1
    rows = [("group", "items", *(("q",) if several else ()), "score", "")]
    cut = len(data) > SHOWN and not several
    left_out = len(data) - 2 * ENDS
    for row in data[:ENDS] + data[-ENDS:] if cut else data:
        value = row["score"]
        bar = "█" * round(BAR * value / top) if value is not None and not several else ""
        order = (f"{float(row['q']):g}",) if several else ()
        shown = f"{value:.2f}" if value is not None else "empty"
        rows.append((printable(row["group"], 32), f"{row['n']:,}", *order, shown, bar))
    removed = max((row.get("removed_mass") or 0.0 for row in data), default=0.0)
    projected = [f"Negative eigenvalues of mass up to {removed:.2g} were left out."] if removed > 0 else []
    if not cut:
        return "\n".join([_columns(rows), *projected])
    lines = [*_columns(rows).split("\n"), *projected]
    lines.insert(1 + ENDS, f"… {left_out:,} more in between; --json has all")
    (mean,) = groups.mean()
    summary = f"Mean over {mean.units:,} groups: {mean.mean:.4f} ± {mean.standard_error:.2g} (standard error)"
    return "\n".join([summary, "", *lines])


def _columns(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    last = len(widths) - 1
    lines = []
    for row in rows:
        cells = [cell.ljust(w) if k in (0, last) and last > 1 else cell.rjust(w)
                 for k, (cell, w) in enumerate(zip(row, widths, strict=True))]  # fmt: skip
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
