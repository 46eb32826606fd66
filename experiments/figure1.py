"""Figure 1 of Friedman and Dieng, The Vendi Score (TMLR 2023): what VS sees and the mean similarity does not.

Items are coloured shapes. Two items have similarity 1 if they share shape and colour, ½ if they share one of the two,
and 0 otherwise; IntDiv is one minus the mean similarity over all pairs. All numbers are exact, nothing is random.

(a) Claim: VS increases linearly with the number of modes; IntDiv becomes less sensitive and converges to 1.
    60 items in m modes of equal size, each mode with its own shape and its own colour.
(b) Claim: combining distinct similarity functions can increase VS while it leaves IntDiv unchanged.
    Nine items, every pairing of three shapes and three colours: shape alone, colour alone, the mean of the two.
(c) Claim: IntDiv does not see correlation between features; VS is highest where the attributes are uncorrelated.
    Nine items with three of each shape and three of each colour, paired in each of the 55 possible ways; three of them
    are drawn.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

import _common as common
import vendimeter as vm
from vendimeter.kernels import Match, On

Table = dict[str, list[int]]

SHAPE, COLOUR = On("shape", Match()), On("colour", Match())
BOTH = 0.5 * SHAPE + 0.5 * COLOUR
KERNELS = {"shape": SHAPE, "colour": COLOUR, "shape and colour": BOTH}

ITEMS = 60
MODES = [m for m in range(1, 21) if ITEMS % m == 0]  # so that all modes are of one size
PICTURED_MODES = [1, 2, 3, 4, 5, 6]
SIDE = 3  # shapes, colours, and items of each, in (b) and (c)

MARKERS = ["o", "s", "^", "D", "P", "X"]
# Blue and vermillion are left out: they mean VS and IntDiv.
COLOURS = [common.SKY, common.ORANGE, common.GREEN, common.YELLOW, common.PURPLE, common.BLACK]
TRAITS = ["shape", "colour"]
SIMILARITY_MAP = LinearSegmentedColormap.from_list("similarity", ["#FFFFFF", "#404040"])


# ------------------------------------------------------------------------------------------------------ numbers


def measure(table: Table, kernel: vm.kernels.Kernel) -> dict[str, Any]:
    exact = exact_internal_diversity(table, kernel)
    intdiv = common.internal_diversity(table, kernel)
    assert abs(intdiv - exact) < 1e-12
    return {"vs": float(vm.score(table, kernel)), "intdiv": intdiv, "intdiv_exact": str(exact)}


def exact_internal_diversity(table: Table, kernel: vm.kernels.Kernel) -> Fraction:
    """IntDiv as a fraction, so that two of them can be compared without rounding.

    Every similarity here is 0, ½ or 1, so twice the matrix is whole once the last bit of rounding is taken off.
    """
    doubled = 2 * kernel.similarity(table).dense()
    whole = np.rint(doubled)
    assert np.abs(doubled - whole).max() < 1e-12
    return 1 - Fraction(int(whole.sum()), 2 * whole.size)


def modes_table(modes: int) -> Table:
    mode = [i * modes // ITEMS for i in range(ITEMS)]
    return {"shape": mode, "colour": mode}


def paired_table(pairs: Sequence[Sequence[int]]) -> Table:
    """Items from how often each shape (row) comes in each colour (column)."""
    items = [(i, j) for i, row in enumerate(pairs) for j, count in enumerate(row) for _ in range(count)]
    return {"shape": [i for i, _ in items], "colour": [j for _, j in items]}


def all_pairings() -> list[tuple[tuple[int, ...], ...]]:
    """Every way to pair three of each shape with three of each colour: rows and columns sum to three."""
    rows = [row for row in product(range(SIDE + 1), repeat=SIDE) if sum(row) == SIDE]
    return [
        pairs
        for pairs in product(rows, repeat=SIDE)
        if all(sum(column) == SIDE for column in zip(*pairs, strict=True))
    ]


def cramers_v(pairs: Sequence[Sequence[int]]) -> float:
    """Correlation of two attributes with equal shares of each value: 0 if independent, 1 if one tells the other."""
    expected = 1 / SIDE**2
    chi_square = sum((count * expected - expected) ** 2 / expected for row in pairs for count in row)
    return sqrt(chi_square / (SIDE - 1))


# The three pairings that are drawn.
PAIRINGS = {
    "correlated": ((3, 0, 0), (0, 3, 0), (0, 0, 3)),
    "partly correlated": ((2, 1, 0), (0, 2, 1), (1, 0, 2)),
    "independent": ((1, 1, 1), (1, 1, 1), (1, 1, 1)),
}


def panel_a(claims: common.Claims) -> list[dict[str, Any]]:
    rows = [{"modes": m, **measure(modes_table(m), BOTH)} for m in MODES]
    vs, intdiv = [row["vs"] for row in rows], [row["intdiv"] for row in rows]
    linear = all(abs(row["vs"] - row["modes"]) < 1e-9 for row in rows)
    gains = np.diff(intdiv) / np.diff(MODES)
    saturates = common.rising(intdiv) and common.rising(-gains) and 1 - intdiv[-1] < 0.051
    claims.check(
        "1a",
        "VS increases linearly with the number of modes, while IntDiv becomes less sensitive and converges to 1.",
        holds=linear and saturates,
        direction=common.rising(vs) and gains[-1] < gains[0],
        measured=f"with {MODES[0]} to {MODES[-1]} modes VS is {vs[0]:.4g} to {vs[-1]:.4g}, the number of modes; "
        f"IntDiv is {intdiv[0]:.2f} to {intdiv[-1]:.2f}, and a further mode adds {gains[0]:.2f} at first "
        f"and {gains[-1]:.4f} at last",
    )
    return rows


def panel_b(claims: common.Claims) -> dict[str, dict[str, Any]]:
    table = paired_table(PAIRINGS["independent"])
    scores = {name: measure(table, kernel) for name, kernel in KERNELS.items()}
    # The items were chosen for this: equal shares of each shape and of each colour.
    assert len({exact_internal_diversity(table, kernel) for kernel in KERNELS.values()}) == 1
    vs = [score["vs"] for score in scores.values()]
    raised = vs[2] > max(vs[:2]) + 1e-9
    claims.check(
        "1b",
        "Combining distinct similarity functions can increase VS while it leaves IntDiv unchanged.",
        holds=raised,
        direction=raised,
        measured=f"VS is {vs[0]:.3f} by shape, {vs[1]:.3f} by colour and {vs[2]:.3f} by both; IntDiv is "
        f"{scores['shape']['intdiv_exact']} each time",
    )
    return scores


def panel_c(claims: common.Claims) -> list[dict[str, Any]]:
    rows = []
    for pairs in all_pairings():
        table = paired_table(pairs)
        for column in table.values():
            assert set(Counter(column).values()) == {SIDE}
        rows.append({"pairs": pairs, "cramers_v": cramers_v(pairs), **measure(table, BOTH)})
    assert len({row["intdiv_exact"] for row in rows}) == 1
    named = {name: next(row for row in rows if row["pairs"] == pairs) for name, pairs in PAIRINGS.items()}
    vs = [row["vs"] for row in named.values()]
    others = [row["vs"] for row in rows if row["cramers_v"] > 1e-9]
    claims.check(
        "1c",
        "IntDiv does not account for correlations between features; VS does, and is highest where the items differ "
        "in many attributes that are not correlated.",
        holds=common.rising(vs) and vs[-1] > max(others) + 1e-9,
        direction=vs[0] < vs[-1],
        measured=f"with the same shapes and colours VS is {vs[0]:.3f} correlated, {vs[1]:.3f} partly and {vs[2]:.3f} "
        f"independent, above all {len(others)} other pairings; IntDiv is {rows[0]['intdiv_exact']} in all",
    )
    return rows


# ----------------------------------------------------------------------------------------------------- pictures


class Look(NamedTuple):
    """How one of the two scores is drawn."""

    key: str
    title: str
    colour: str
    marker: str
    ylim: tuple[float, float]  # in (b) and (c)
    yticks: list[float]


LOOKS = [
    Look("vs", "Vendi Score", common.VS_COLOUR, "o", (0, 5.6), [0, 1, 2, 3, 4, 5]),
    Look("intdiv", "IntDiv", common.INTDIV_COLOUR, "s", (0, 1.03), [0, 0.5, 1]),
]
HEADINGS = [
    "(a)  One to six modes of equal size: VS counts them, IntDiv saturates",
    "(b)  Similarity functions combined: VS rises, IntDiv does not move",
    "(c)  The same shapes and colours, paired differently: VS sees the correlation, IntDiv does not",
]


def draw_item(ax: Axes, x: float, y: float, shape: int | None, colour: int | None, size: float) -> None:
    """An item, or as much of it as a kernel sees: no colour is grey, no shape a plain disc."""
    ax.scatter(
        [x],
        [y],
        s=size,
        marker=MARKERS[shape] if shape is not None else "o",
        color=COLOURS[colour] if colour is not None else "#BBBBBB",
        edgecolor="black",
        linewidth=0.5,
        clip_on=False,
        zorder=3,
    )


def draw_matrix(
    ax: Axes,
    table: Table,
    kernel: vm.kernels.Kernel,
    score: dict[str, Any],
    *,
    sees: Sequence[str] = tuple(TRAITS),
) -> None:
    """The similarity matrix with its scores below and the items along its sides."""
    matrix = kernel.similarity(table).dense()
    n = len(matrix)
    ax.imshow(matrix, cmap=SIMILARITY_MAP, vmin=0, vmax=1, interpolation="nearest")
    ax.set(xticks=[], yticks=[], autoscale_on=False, anchor="N")  # the markers lie outside the limits
    ax.spines[:].set(visible=True, color=common.GREY, linewidth=0.6)
    items = list(zip(table["shape"], table["colour"], strict=True))
    if n <= SIDE**2:
        marks = list(enumerate(items))
    else:  # too many to mark each: one marker in the middle of each mode
        marks = [(np.mean([i for i in range(n) if items[i] == item]), item) for item in sorted(set(items))]
    side = -0.5 - 0.075 * n
    for place, (shape, colour) in marks:
        seen = (shape if "shape" in sees else None, colour if "colour" in sees else None)
        draw_item(ax, place, side, *seen, size=28)
        draw_item(ax, side, place, *seen, size=28)
    ax.set_xlabel(f"VS = {score['vs']:.2f}\nIntDiv = {score['intdiv']:.2f}", labelpad=4, linespacing=1.3)


def draw_items(ax: Axes, table: Table, *, size: float) -> None:
    """The items themselves, three to a row."""
    for i, (shape, colour) in enumerate(zip(table["shape"], table["colour"], strict=True)):
        draw_item(ax, i % SIDE, i // SIDE, shape, colour, size)
    ax.set(xlim=(-0.5, SIDE - 0.5), ylim=(SIDE - 0.5, -0.5), aspect="equal", anchor="N", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def draw_points(
    ax: Axes, x: Sequence[float], y: Sequence[float], look: Look, pictured: Sequence[int]
) -> None:
    """One score of every set of items; open markers for those that are pictured."""
    plain = [i for i in range(len(x)) if i not in pictured]
    for places, size, face in [(plain, 16, look.colour), (pictured, 45, "white")]:
        ax.scatter(
            [x[i] for i in places], [y[i] for i in places], s=size, marker=look.marker, facecolor=face,
            edgecolor=look.colour, linewidth=1.6, clip_on=False, zorder=3,
        )  # fmt: skip


def draw(a: list[dict[str, Any]], b: dict[str, dict[str, Any]], c: list[dict[str, Any]]) -> Figure:
    figure = common.new_figure(13.5, 9.0)
    bands = figure.add_gridspec(
        3,
        2,
        width_ratios=[8.6, 3.9],
        left=0.035,
        right=0.985,
        top=0.875,
        bottom=0.06,
        hspace=0.78,
        wspace=0.09,
    )
    for band, heading in enumerate(HEADINGS):
        figure.text(0.012, _top(figure, bands[band, 0]) + 0.064, heading, fontsize=11, fontweight="bold")

    cells = bands[0, 0].subgridspec(1, len(PICTURED_MODES), wspace=0.28)
    for cell, modes in zip(cells, PICTURED_MODES, strict=True):
        row = next(row for row in a if row["modes"] == modes)
        draw_matrix(figure.add_subplot(cell), modes_table(modes), BOTH, row)
        _title(figure, [cell], "1 mode" if modes == 1 else f"{modes} modes")
    for cell, look in zip(bands[0, 1].subgridspec(1, 2, wspace=0.32), LOOKS, strict=True):
        ax = figure.add_subplot(cell)
        y = [row[look.key] for row in a]
        ax.plot(MODES, y, color=look.colour, linewidth=1.2)
        draw_points(ax, MODES, y, look, [MODES.index(m) for m in PICTURED_MODES])
        ax.set(title=look.title, xlabel="number of modes", xlim=(0, 20.5), xticks=[1, 5, 10, 15, 20])
        if look.key == "vs":
            ax.set(ylim=(0, 20.5), yticks=[1, 5, 10, 15, 20])
        else:
            ax.set(ylim=(0, 1.03), yticks=[0, 0.5, 1])
            ax.axhline(1, color=common.GREY, linewidth=0.8, linestyle="--")

    cells = bands[1, 0].subgridspec(1, 4, wspace=0.1)
    table = paired_table(PAIRINGS["independent"])
    draw_items(figure.add_subplot(cells[0]), table, size=150)
    _title(figure, [cells[0]], "the items")
    for cell, (name, kernel) in zip(list(cells)[1:], KERNELS.items(), strict=True):
        draw_matrix(figure.add_subplot(cell), table, kernel, b[name], sees=name.split(" and "))
        _title(figure, [cell], f"similarity by {name}")
    for cell, look in zip(bands[1, 1].subgridspec(1, 2, wspace=0.32), LOOKS, strict=True):
        ax = figure.add_subplot(cell)
        bars = ax.bar(
            ["shape", "colour", "both"], [score[look.key] for score in b.values()], 0.6, color=look.colour
        )
        ax.bar_label(bars, fmt="%.2f", padding=2, fontsize=8)
        ax.set(title=look.title, xlabel="similarity by", ylim=look.ylim, yticks=look.yticks)

    cells = bands[2, 0].subgridspec(1, 6, width_ratios=[0.85, 1.15] * 3, wspace=0.2)
    for place, (name, pairs) in enumerate(PAIRINGS.items()):
        row = next(row for row in c if row["pairs"] == pairs)
        pair = [cells[2 * place], cells[2 * place + 1]]
        draw_items(figure.add_subplot(pair[0]), paired_table(pairs), size=90)
        draw_matrix(figure.add_subplot(pair[1]), paired_table(pairs), BOTH, row)
        _title(figure, pair, f"{name} (V = {row['cramers_v']:.2f})")
    for cell, look in zip(bands[2, 1].subgridspec(1, 2, wspace=0.32), LOOKS, strict=True):
        ax = figure.add_subplot(cell)
        pictured = [[row["pairs"] for row in c].index(pairs) for pairs in PAIRINGS.values()]
        draw_points(ax, [row["cramers_v"] for row in c], [row[look.key] for row in c], look, pictured)
        ax.set(title=look.title, xlabel="correlation (Cramér's V)", xlim=(-0.04, 1.04), xticks=[0, 0.5, 1])
        ax.set(ylim=look.ylim, yticks=look.yticks)

    draw_key(figure)
    return figure


def _top(figure: Figure, cell: SubplotSpec) -> float:
    return cell.get_position(figure).y1


def _title(figure: Figure, cells: Sequence[SubplotSpec], text: str) -> None:
    """A title centred over one or more cells, above the items along a matrix."""
    left, right = cells[0].get_position(figure).x0, cells[-1].get_position(figure).x1
    figure.text((left + right) / 2, _top(figure, cells[0]) + 0.028, text, ha="center")


def draw_key(figure: Figure) -> None:
    shades = [
        Patch(facecolor=SIMILARITY_MAP(shade), edgecolor=common.GREY, label=f"similarity {name}")
        for shade, name in [(0.0, "0"), (0.5, "½"), (1.0, "1")]
    ]
    pictured = [
        Line2D([], [], linestyle="none", marker=look.marker, color=look.colour, markerfacecolor="white",
               markeredgewidth=1.6, markersize=6.5, label="")
        for look in LOOKS
    ]  # fmt: skip
    figure.legend(
        [*shades, tuple(pictured)], [*(shade.get_label() for shade in shades), "pictured on the left"],
        handler_map={tuple: HandlerTuple(ndivide=None)}, loc="upper right", bbox_to_anchor=(0.99, 0.992), ncols=4,
        frameon=False, columnspacing=1.4, handletextpad=0.6, handlelength=1.4, handleheight=1.1,
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    out = common.parse_out(argv, "Figure 1 of the Vendi Score paper: VS and IntDiv on toy items.")
    claims = common.Claims()
    a, b, c = panel_a(claims), panel_b(claims), panel_c(claims)
    results = {
        "figure": "Friedman and Dieng, The Vendi Score, TMLR 2023, Figure 1",
        "parameters": {"items_a": ITEMS, "items_bc": SIDE**2, "kernel": repr(BOTH)},
        "panels": {"a": a, "b": b, "c": c},
        "claims": claims.records,
    }
    common.write(out, "figure1", results, draw(a, b, c))
    return 0


if __name__ == "__main__":
    sys.exit(main())
