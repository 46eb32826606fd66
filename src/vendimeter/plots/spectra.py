"""Pictures of a spectrum: its eigenvalues, and the scores of all orders."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from vendimeter.errors import InputError, UnansweredError, brief
from vendimeter.plots.style import PALETTE, Display, axes, legend
from vendimeter.results.score import Profile, Score, order_name
from vendimeter.spectrum import Eigenvalues, Spectrum

__all__ = ["profile", "spectrum"]

FEW = 30  # eigenvalues up to which each has a bar
MARKERS, LINES = ("o", "s", "^", "D", "v", "P", "X", "*"), ("-", "--", "-.", ":")
FINE = np.linspace(
    0.02, 0.98, 49
)  # places q/(1 + q) at which a profile is drawn between the orders asked for


# ---------------------------------------------------------------------------------------------------- eigenvalues


def spectrum(score: Any, ax: Any = None) -> Display:
    """Eigenvalues from large to small, the part of the whole that they add up to, and the score among them.

    Parameters
    ----------
    score : Score, Profile, Spectrum or array
        A score (of a profile that of order 1, or the first), a spectrum, or eigenvalues; these are divided by their
        sum.
    ax : matplotlib.axes.Axes, optional
        The axes to draw on; a new figure without them.

    Returns
    -------
    Display

    Notes
    -----
    Eigenvalues that rounding may have made are left out. Of a spectrum of which only some eigenvalues are known
    (methods "lowrank" and "lanczos") these are drawn, from below, and a note says how much of the whole they are.

    Examples
    --------
    >>> import vendimeter as vm
    >>> from matplotlib.figure import Figure
    >>> score = vm.score(["a", "a", "b", "c"], kernel="match")
    >>> vm.plots.spectrum(score, ax=Figure().subplots()).ax_.get_legend().get_texts()[2].get_text()
    'Vendi Score 2.83 of 4 items'
    """
    values, value, q, note = _known(score)
    ax = axes(ax)
    ranks = np.arange(1, len(values) + 1)
    many = max(len(values), value) > FEW
    if many:
        (drawn,) = ax.plot(ranks, values, color=PALETTE[0], linewidth=1.6)
        ax.set_xscale("log")
        ax.set_yscale("log")
    else:
        drawn = ax.bar(ranks, values, color=PALETTE[0], width=0.7)
        ax.set_xticks(ranks[:: 1 if len(ranks) <= 16 else 2])
        ax.set_xlim(0.4, max(len(values), value) + 0.6)
    ax.set_xlabel("rank of the eigenvalue" + (f"\n({note})" if note else ""))
    ax.set_ylabel("eigenvalue, a share of the whole")
    other = ax.twinx()
    (sums,) = other.plot(ranks, np.cumsum(values), color=PALETTE[1], linestyle="--", linewidth=1.6)
    if not many:
        sums.set(marker="s", markersize=4)
    other.set_ylim(0, 1.04)
    other.set_ylabel("sum of the eigenvalues so far")
    other.spines["top"].set_visible(False)
    mark = ax.axvline(float(value), color="black", linestyle=":", linewidth=1.6)
    if many:
        _plain_numbers(ax.xaxis)
    order = "Vendi Score" if q == 1 else f"score of order {order_name(q)}"
    of = f" of {score.n:,} items" if isinstance(score, Score) else ""
    names = ["eigenvalues (left)", "their sum (right)", f"{order} {value:.3g}{of}"]
    legend(
        ax,
        [drawn, sums, mark],
        names,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=3,
        fontsize="small",
    )
    return Display(ax, (ax, other))


def _plain_numbers(axis: Any) -> None:
    """Ticks of a logarithmic axis as plain numbers, 1, 2, 5, 10, …, as many as have room."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    wide = high > 50 * low
    axis.set_major_locator(
        LogLocator(subs=(1.0,) if high > 3000 * low else (1.0, 3.0) if wide else (1.0, 2.0, 5.0))
    )
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def _known(given: Any) -> tuple[np.ndarray, float, float, str]:
    """The eigenvalues to draw, the score, its order, and what to say of those that are not known."""
    if isinstance(given, Profile):
        given = given[1] if 1.0 in given else next(iter(given.values()))
    q, value = 1.0, math.nan
    found: Any = given
    if isinstance(given, Score):
        if given.spectrum is None:
            raise InputError("the score of an empty group has no spectrum; expected a score of some items.")
        q, value, found = given.q, float(given), given.spectrum
    if not isinstance(found, Spectrum):
        found = Eigenvalues(_shares(given), 0.0)
    try:
        values = np.asarray(found.eigenvalues, dtype=np.float64)
    except UnansweredError:
        raise InputError(
            f"this score of order {order_name(q)} was computed without eigenvalues; expected a score with its "
            "spectrum: take q=1, or several orders such as q=[1, 2]."
        ) from None
    value = found.score(q).value if math.isnan(value) else value
    total = len(values)
    values = values[values > max(getattr(found, "rank_threshold", 0.0), 1e-15 * values[0])]
    if isinstance(found, Eigenvalues):
        left = total - len(values)
        return values, value, q, f"{left:,} more are 0 but for rounding" if left else ""
    size = getattr(found, "size", None) or found.known.size  # type: ignore[attr-defined]
    part = min(float(values.sum()), 1.0)
    return values, value, q, f"{len(values):,} of {size:,} are known, from below: {part:.1%} of the whole"


def _shares(given: Any) -> np.ndarray:
    """A user's eigenvalues from large to small, with sum 1."""
    try:
        values = np.sort(np.asarray(given, dtype=np.float64).ravel())[::-1]
    except (TypeError, ValueError):
        values = np.empty(0)
    if not len(values) or not np.isfinite(values).all() or values[-1] < -1e-9 * values[0] or values[0] <= 0:
        raise InputError(
            f"eigenvalues are {brief(given)}; expected a Score, or numbers from 0 up that are not all 0."
        )
    values = np.maximum(values, 0.0)
    return values / values.sum()


# --------------------------------------------------------------------------------------------------------- orders


def profile(profile: Any, ax: Any = None) -> Display:
    """Scores over their orders q, from 0 to ∞ at the right edge, with the band of their bounds.

    Parameters
    ----------
    profile : Profile or mapping
        A profile, or profiles by name, to compare them.
    ax : matplotlib.axes.Axes, optional
        The axes to draw on; a new figure without them.

    Returns
    -------
    Display

    Notes
    -----
    The order q is drawn at q/(1 + q), so that ∞ has a place. Markers are the orders of the profile; between them the
    line comes from the same spectrum, where that can answer. Order 0 is the rank, whose upper bound is the number of
    all eigenvalues, since rounding cannot tell a tiny one from 0: it has an error bar of its own.

    Examples
    --------
    >>> import vendimeter as vm
    >>> from matplotlib.figure import Figure
    >>> found = vm.profile(["a", "a", "b", "c"], kernel="match")
    >>> vm.plots.profile({"words": found}, ax=Figure().subplots()).ax_.get_xlabel()
    'order q'
    """
    several = {"": profile} if isinstance(profile, Profile) else profile
    if not isinstance(several, Mapping) or not several:
        raise InputError(f"profile is {brief(profile)}; expected a Profile, or profiles by name.")
    for name, one in several.items():
        if not isinstance(one, Profile):
            raise InputError(
                f"profile {brief(name)} is {brief(one)}; expected a Profile from vendimeter.profile."
            )
    ax = axes(ax)
    handles = [_one_profile(ax, one, i) for i, one in enumerate(several.values())]
    orders = sorted({q for one in several.values() for q in one})
    ax.set_xlim(min(_place(orders[0]), 0.45) - 0.02, max(_place(orders[-1]), 0.55) + 0.02)
    _order_ticks(ax, orders)
    drawn = np.concatenate([one.scores for one in several.values()])
    if np.nanmax(drawn) > 30 * max(np.nanmin(drawn), 1e-300):
        ax.set_yscale("log")
        _plain_numbers(ax.yaxis)
    else:
        ax.set_ylim(bottom=0)
    ax.set_xlabel("order q")
    ax.set_ylabel("effectively different items")
    if len(several) > 1 or next(iter(several)) != "":
        legend(ax, handles, list(several), loc="best")
    return Display(ax, (ax,))


def _place(q: Any) -> Any:
    return 1.0 if math.isinf(q) else q / (1 + q)


def _one_profile(ax: Any, one: Profile, series: int) -> Any:
    colour, marker = PALETTE[series % len(PALETTE)], MARKERS[series % len(MARKERS)]
    line = LINES[series % len(LINES)]
    curve = _curve(one)
    xs, ys, low, high = (np.array([row[i] for row in curve]) for i in range(4))
    ax.fill_between(xs, low, high, color=colour, alpha=0.2, linewidth=0)
    ax.plot(xs, ys, color=colour, linestyle=line, linewidth=1.5)
    if 0.0 in one and one[0.0].level != "none":
        score = one[0.0]
        reach = [[float(score) - score.bounds[0]], [score.bounds[1] - float(score)]]
        ax.errorbar([0.0], [float(score)], yerr=reach, color=colour, capsize=3, linewidth=1)
    (handle,) = ax.plot(
        [_place(q) for q in one], one.scores, color=colour, marker=marker, linestyle="", markersize=5
    )
    return type(handle)([], [], color=colour, marker=marker, linestyle=line, markersize=5)


def _curve(one: Profile) -> list[tuple[float, float, float, float]]:
    """Places, values and bounds along a profile: at its orders, and between them where the spectrum can answer."""
    points = {_place(q): (float(score), *score.bounds) for q, score in one.items() if q > 0}
    if 0.0 in one:
        value = float(one[0.0])
        points[0.0] = (value, value, value)
    held = next(iter(one.values())).spectrum
    ends = min(map(_place, one)), max(map(_place, one))
    for place in FINE.tolist() if held is not None else ():
        if not ends[0] < place < ends[1]:
            continue
        try:
            points.setdefault(place, tuple(held.score(place / (1 - place))))  # type: ignore[union-attr]
        except UnansweredError:
            break
    rows = sorted((place, *found) for place, found in points.items())
    return [(p, v, v if math.isnan(a) else a, v if math.isnan(b) else b) for p, v, a, b in rows]


def _order_ticks(ax: Any, orders: list[float]) -> None:
    """Ticks at the orders, as many as have room, those that everyone knows first."""
    chosen: list[float] = []
    for q in [*(q for q in (0.0, 1.0, 2.0, math.inf) if q in orders), *orders]:
        if all(abs(_place(q) - _place(other)) >= 0.05 for other in chosen):
            chosen.append(q)
    ax.set_xticks([_place(q) for q in chosen], ["∞" if math.isinf(q) else order_name(q) for q in chosen])
