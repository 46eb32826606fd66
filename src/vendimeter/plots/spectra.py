"""Pictures of a spectrum: its eigenvalues, and the scores of all orders."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from vendimeter.errors import InputError, UnansweredError
from vendimeter.messages import brief
from vendimeter.plots.style import Display, axes, legend
from vendimeter.present.colours import PALETTE
from vendimeter.present.notes import Note
from vendimeter.present.numbers import order_name
from vendimeter.results.score import Profile, Score
from vendimeter.spectrum import Eigenvalues, Spectrum

__all__ = ["profile", "spectrum"]

MAX_BARS = 30  # eigenvalues up to which each has a bar
MARKERS, LINES = ("o", "s", "^", "D", "v", "P", "X", "*"), ("-", "--", "-.", ":")
# Positions q/(1 + q) at which a profile is drawn between its orders.
FINE_GRID = np.linspace(0.02, 0.98, 49)


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
    values, value, q, note = known_eigenvalues(score)
    ax = axes(ax)
    ranks = np.arange(1, len(values) + 1)
    logarithmic = max(len(values), value) > MAX_BARS
    if logarithmic:
        (drawn,) = ax.plot(ranks, values, color=PALETTE[0], linewidth=1.6)
        ax.set_xscale("log")
        ax.set_yscale("log")
    else:
        drawn = ax.bar(ranks, values, color=PALETTE[0], width=0.7)
        ax.set_xticks(ranks[:: 1 if len(ranks) <= 16 else 2])
        ax.set_xlim(0.4, max(len(values), value) + 0.6)
    ax.set_xlabel("rank of the eigenvalue" + ("" if note is None else f"\n({note})"))
    ax.set_ylabel("eigenvalue, a share of the whole")
    right_axes = ax.twinx()
    (sums,) = right_axes.plot(ranks, np.cumsum(values), color=PALETTE[1], linestyle="--", linewidth=1.6)
    if not logarithmic:
        sums.set(marker="s", markersize=4)
    right_axes.set_ylim(0, 1.04)
    right_axes.set_ylabel("sum of the eigenvalues so far")
    right_axes.spines["top"].set_visible(False)
    mark = ax.axvline(float(value), color="black", linestyle=":", linewidth=1.6)
    if logarithmic:
        _plain_log_ticks(ax.xaxis)
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
    return Display(ax, (ax, right_axes))


def _plain_log_ticks(axis: Any) -> None:
    """Set the ticks of a logarithmic axis to plain numbers, 1, 2, 5, 10, …, as many as have room."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    wide = high > 50 * low
    axis.set_major_locator(
        LogLocator(subs=(1.0,) if high > 3000 * low else (1.0, 3.0) if wide else (1.0, 2.0, 5.0))
    )
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def known_eigenvalues(source: Any) -> tuple[np.ndarray, float, float, Note | None]:
    """The known eigenvalues of a score, spectrum or array, the score, its order, and a note about those left out."""
    if isinstance(source, Profile):
        source = source[1] if 1.0 in source else next(iter(source.values()))
    q, value = 1.0, math.nan
    spectrum: Any = source
    if isinstance(source, Score):
        if source.spectrum is None:
            raise InputError("the score of an empty group has no spectrum; expected a score of some items.")
        q, value, spectrum = source.q, float(source), source.spectrum
    if not isinstance(spectrum, Spectrum):
        spectrum = Eigenvalues(_normalized(source), 0.0)
    try:
        values = np.asarray(spectrum.eigenvalues, dtype=np.float64)
    except UnansweredError:
        raise InputError(
            f"this score of order {order_name(q)} was computed without eigenvalues; expected a score with its "
            "spectrum: take q=1, or several orders such as q=[1, 2]."
        ) from None
    value = spectrum.score(q).value if math.isnan(value) else value
    total = len(values)
    values = values[values > max(getattr(spectrum, "rank_threshold", 0.0), 1e-15 * values[0])]
    if isinstance(spectrum, Eigenvalues):
        zero_count = total - len(values)
        zeros = Note("zero-eigenvalues", f"{zero_count:,} more are 0 but for rounding", {"count": zero_count})
        return values, value, q, zeros if zero_count else None
    size = getattr(spectrum, "size", None) or spectrum.known.size  # type: ignore[attr-defined]
    known_share = min(float(values.sum()), 1.0)
    text = f"{len(values):,} of {size:,} are known, from below: {known_share:.1%} of the whole"
    values_in_text = {"known": len(values), "size": size, "share": known_share}
    return values, value, q, Note("unknown-eigenvalues", text, values_in_text)


def _normalized(eigenvalues: Any) -> np.ndarray:
    """A user's eigenvalues in descending order, scaled to a sum of 1."""
    try:
        values = np.sort(np.asarray(eigenvalues, dtype=np.float64).ravel())[::-1]
    except (TypeError, ValueError):
        values = np.empty(0)
    if not len(values) or not np.isfinite(values).all() or values[-1] < -1e-9 * values[0] or values[0] <= 0:
        raise InputError(
            f"eigenvalues are {brief(eigenvalues)}; expected a Score, or numbers from 0 up that are not all 0."
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
    profiles = {"": profile} if isinstance(profile, Profile) else profile
    if not isinstance(profiles, Mapping) or not profiles:
        raise InputError(f"profile is {brief(profile)}; expected a Profile, or profiles by name.")
    for name, single in profiles.items():
        if not isinstance(single, Profile):
            raise InputError(
                f"profile {brief(name)} is {brief(single)}; expected a Profile from vendimeter.profile."
            )
    ax = axes(ax)
    handles = [_draw_profile(ax, single, i) for i, single in enumerate(profiles.values())]
    orders = sorted({q for single in profiles.values() for q in single})
    ax.set_xlim(min(_order_position(orders[0]), 0.45) - 0.02, max(_order_position(orders[-1]), 0.55) + 0.02)
    _order_ticks(ax, orders)
    all_scores = np.concatenate([single.scores for single in profiles.values()])
    if np.nanmax(all_scores) > 30 * max(np.nanmin(all_scores), 1e-300):
        ax.set_yscale("log")
        _plain_log_ticks(ax.yaxis)
    else:
        ax.set_ylim(bottom=0)
    ax.set_xlabel("order q")
    ax.set_ylabel("effectively different items")
    if len(profiles) > 1 or next(iter(profiles)) != "":
        legend(ax, handles, list(profiles), loc="best")
    return Display(ax, (ax,))


def _order_position(q: Any) -> Any:
    return 1.0 if math.isinf(q) else q / (1 + q)


def _draw_profile(ax: Any, profile: Profile, series: int) -> Any:
    colour, marker = PALETTE[series % len(PALETTE)], MARKERS[series % len(MARKERS)]
    line = LINES[series % len(LINES)]
    curve = _curve(profile)
    xs, ys, low, high = (np.array([row[i] for row in curve]) for i in range(4))
    ax.fill_between(xs, low, high, color=colour, alpha=0.2, linewidth=0)
    ax.plot(xs, ys, color=colour, linestyle=line, linewidth=1.5)
    if 0.0 in profile and profile[0.0].level != "none":
        score = profile[0.0]
        error_bars = [[float(score) - score.bounds[0]], [score.bounds[1] - float(score)]]
        ax.errorbar([0.0], [float(score)], yerr=error_bars, color=colour, capsize=3, linewidth=1)
    (handle,) = ax.plot(
        [_order_position(q) for q in profile],
        profile.scores,
        color=colour,
        marker=marker,
        linestyle="",
        markersize=5,
    )
    return type(handle)([], [], color=colour, marker=marker, linestyle=line, markersize=5)


def _curve(profile: Profile) -> list[tuple[float, float, float, float]]:
    """Positions, values and bounds along a profile: at its orders, and between them where the spectrum can answer."""
    points = {_order_position(q): (float(score), *score.bounds) for q, score in profile.items() if q > 0}
    if 0.0 in profile:
        value = float(profile[0.0])
        points[0.0] = (value, value, value)
    spectrum = next(iter(profile.values())).spectrum
    ends = min(map(_order_position, profile)), max(map(_order_position, profile))
    for position in FINE_GRID.tolist() if spectrum is not None else ():
        if not ends[0] < position < ends[1]:
            continue
        try:
            points.setdefault(position, tuple(spectrum.score(position / (1 - position))))  # type: ignore[union-attr]
        except UnansweredError:
            break
    rows = sorted((position, *bounds) for position, bounds in points.items())
    return [(p, v, v if math.isnan(a) else a, v if math.isnan(b) else b) for p, v, a, b in rows]


def _order_ticks(ax: Any, orders: list[float]) -> None:
    """Set ticks at the orders, as many as have room, the common ones 0, 1, 2 and ∞ first."""
    shown_orders: list[float] = []
    for q in [*(q for q in (0.0, 1.0, 2.0, math.inf) if q in orders), *orders]:
        if all(
            abs(_order_position(q) - _order_position(shown_order)) >= 0.05 for shown_order in shown_orders
        ):
            shown_orders.append(q)
    ax.set_xticks(
        [_order_position(q) for q in shown_orders],
        ["∞" if math.isinf(q) else order_name(q) for q in shown_orders],
    )
