"""Scores in words and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vendimeter.cli.outputs import Sheet

__all__ = ["words_and_tables"]


def words_and_tables(result: Any) -> tuple[str, list[Sheet]]:
    """A Score, a Profile or GroupScores as words and tables."""
    from vendimeter.cli.outputs import Sheet

    if hasattr(result, "labels"):
        return _groups(result)
    scores = [result] if hasattr(result, "bounds") else list(result.values())
    columns = {
        "order q": [_order(one.q) for one in scores],
        "score": [float(one) for one in scores],
        "low": [one.bounds[0] for one in scores],
        "high": [one.bounds[1] for one in scores],
        "level": [one.level for one in scores],
        "n": [one.n for one in scores],
        "method": [one.method for one in scores],
    }
    if len(scores) == 1:
        return _score(scores[0]), [Sheet("scores", columns, digits=10, visible=())]
    words = f"Vendi Scores of {scores[0].n:,} items"
    return words, [Sheet("scores", columns, visible=("order q", "score", "low", "high", "level"))]


def _order(q: float) -> float | int:
    """An order as one writes it: 1, not 1.0."""
    return int(q) if float(q).is_integer() else float(q)


def _score(score: Any) -> str:
    from vendimeter.results.score import percentage

    name = "Vendi Score" if score.q == 1 else f"Vendi Score of order {score.q:g}"
    low, high = score.bounds
    narrow = score.half_width <= 1e-6 * score
    within = (
        f"is within {score.half_width:.0e} of that" if narrow else f"lies between {low:.6g} and {high:.6g}"
    )
    claim = (
        f"with {percentage(score.confidence)} confidence" if score.level == "probabilistic" else score.level
    )
    exact = f"The exact score {within} ({claim})."
    if score.level == "none":
        exact = "Nothing is claimed of its error."
    elif low == high:
        exact = f"The score is exact ({claim})."
    removed = score.diagnostics.get("removed_mass", 0.0)
    projected = f" Negative eigenvalues of mass {removed:.2g} were left out." if removed > 0 else ""
    items = f"{score:.4g} completely different item{'' if f'{score:.4g}' == '1' else 's'}"
    return f"{name}: {score:.4f}\nAs diverse as {items}, out of {score.n:,}. {exact}{projected}"


def _groups(groups: Any) -> tuple[str, list[Sheet]]:
    from vendimeter.cli.outputs import Sheet
    from vendimeter.present.tables import ranked

    data = groups._long()
    several = len(set(data["q"])) > 1
    columns = {"group": data["group"], "items": data["n"], "q": [_order(q) for q in data["q"]]}
    columns |= {name: data[name] for name in ("score", "low", "high", "level")}
    sheet = Sheet(
        "scores", columns, digits=4, shown=40, bar=None if several else "score",
        visible=("group", "items", "q", "score") if several else ("group", "items", "score"),
        order=None if several else ranked(data["score"]),
    )  # fmt: skip
    removed = max((mass for mass in data.get("removed_mass", ()) if mass == mass), default=0.0)
    words = [f"Negative eigenvalues of mass up to {removed:.2g} were left out."] if removed > 0 else []
    if len(groups) > 40 and not several:
        (mean,) = groups.mean()
        words.insert(
            0,
            f"Mean over {mean.units:,} groups: {mean.mean:.4f} ± {mean.standard_error:.2g} (standard error)",
        )
    return " ".join(words), [sheet]
