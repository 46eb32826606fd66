"""The matrix of similarities as a picture, its items in an order that makes it readable."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter.analysis.orderings import evenly, first_label, ordering
from vendimeter.data.devices import to_host
from vendimeter.data.groups import Grouping
from vendimeter.diversity import Diversity, diversity_of
from vendimeter.errors import InputError
from vendimeter.messages import brief
from vendimeter.options import COSINE, SEED, as_number, whole_number
from vendimeter.plots.style import Display, axes, label_text, legend, ticks
from vendimeter.present.colours import DIVERGING, GREY, PALETTE, SEQUENTIAL

__all__ = ["kernel_matrix", "matrix_of"]

MAX_ITEMS = 1000  # items of a picture: it has hardly more pixels
ORDERING_MODES = 10  # along which items are put in order
# Where the lowest similarities are above this they, not 0, are the darkest: else all of the picture would be light.
DARKEST_FROM = 0.1
MAX_NAMED_BLOCKS = 40  # blocks of labels that have room for their names
ORDER_WORDS = {
    "modes": "like items beside each other",
    "lexicographic": "in the order of the items themselves",
    "labels": "label by label",
    "given": "as given",
}


def kernel_matrix(
    samples: Any,
    kernel: Any = COSINE,
    *,
    order: Any = "modes",
    by: Any = None,
    most: int = MAX_ITEMS,
    limits: tuple[float, float] | None = None,
    rng: int = SEED,
    ax: Any = None,
) -> Display:
    """The matrix of similarities, with its items in an order that shows what there is.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection or Diversity
        The items, as for `vendimeter.score`.
    kernel : str, Kernel or callable
        As for `vendimeter.score`.
    order : str or array
        "modes" (like items beside each other, by their loadings along ten leading modes), "lexicographic" (by the items
        themselves, as the paper sorts molecules by SMILES: copies make blocks), "labels" (label by label, within each
        by modes), "given", or positions.
    by : list, array, or name of a column, optional
        One label an item, drawn as colours along the side; block by block with their names where ``order="labels"``.
    most : int
        How many items are drawn: of more, so many evenly along the order, which the picture says.
    limits : (float, float), optional
        The similarities at both ends of the colours. By default from 0, or the lowest 1% where these are higher, to 1;
        the same in both directions where some are negative.
    rng : int
        Seed of everything random.
    ax : matplotlib.axes.Axes, optional
        The axes to draw on; a new figure without them.

    Returns
    -------
    Display

    References
    ----------
    Friedman and Dieng: The Vendi Score, TMLR 2023, the figure of kernel matrices of 250 molecules, sorted
    lexicographically by SMILES.

    Examples
    --------
    >>> import vendimeter as vm
    >>> from matplotlib.figure import Figure
    >>> drawn = vm.plots.kernel_matrix(["b", "a", "b"], "match", order="lexicographic", ax=Figure().subplots())
    >>> drawn.ax_.images[0].get_array().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
    """
    most = whole_number(most, "most")
    diversity = diversity_of(samples, kernel, by=by, rng=rng)
    with diversity.asked():
        positions = ordering(
            order,
            diversity.n,
            coordinates=lambda: diversity.eigenvectors(ORDERING_MODES).coordinates,
            items=diversity.samples,
            groups=diversity.groups,
            rng=diversity.rng,
        )
        return matrix_of(diversity, positions, named=order, most=most, limits=limits, ax=ax)


def matrix_of(
    diversity: Diversity,
    order: np.ndarray,
    *,
    named: Any = "given",
    most: int = MAX_ITEMS,
    limits: Any = None,
    ax: Any = None,
) -> Display:
    """Draw the similarities of the items at these positions, in this order."""
    similarity, groups = diversity.similarity, diversity.groups
    drawn = evenly(order, most)
    matrix = to_host(similarity.take(drawn).dense())
    ax = axes(ax, width=5.6, height=4.8)
    for spine in ax.spines.values():
        spine.set_visible(False)
    size = len(drawn)
    colours = colour_scale(matrix, limits)
    image = ax.imshow(matrix, **colours)
    ax.set_xticks([])
    ax.set_yticks([])
    below, above = matrix.min() < colours["vmin"], matrix.max() > colours["vmax"] + 1e-9
    extend = {(True, True): "both", (True, False): "min", (False, True): "max"}.get((below, above), "neither")
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03, extend=extend)
    ax.set_anchor("W")  # a colour bar moves it to the right, where the layout would not see names at the left
    bar.set_label("similarity")
    bar.outline.set_visible(False)
    order_words = ORDER_WORDS.get(named, "in a given order") if isinstance(named, str) else "in a given order"
    count = f"{size:,} items" if size == len(order) else f"{size:,} of {len(order):,} items, evenly"
    ax.set_xlabel(f"{count}, {order_words}")
    if groups is not None:
        _draw_labels(ax, groups, first_label(groups, similarity.n)[drawn])
    return Display(ax, (ax, bar.ax))


def colour_scale(matrix: np.ndarray, limits: Any) -> dict[str, Any]:
    """The colour map of a matrix and the values at its ends, as arguments of ``imshow``."""
    negative = float(matrix.min()) < -0.05
    if limits is not None:
        low, high = (
            (as_number(end) for end in limits) if np.ndim(limits) == 1 and len(limits) == 2 else (1.0, 0.0)
        )
        if not low < high:
            raise InputError(
                f"limits={brief(limits)}; expected two similarities, the lower first, such as (0, 1)."
            )
        return {"cmap": DIVERGING if negative and low == -high else SEQUENTIAL, "vmin": low, "vmax": high}
    if negative:
        limit = min(max(-float(matrix.min()), float(np.quantile(matrix, 0.99))), 1.0)
        return {"cmap": DIVERGING, "vmin": -limit, "vmax": limit}
    low = float(np.quantile(matrix, 0.01))
    return {"cmap": SEQUENTIAL, "vmin": low if DARKEST_FROM < low < 1 else 0.0, "vmax": 1.0}


def _draw_labels(ax: Any, groups: Grouping, label: np.ndarray) -> None:
    """Draw a strip of label colours at the left, with names beside contiguous blocks, or else in a legend."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Patch

    size = len(label)
    colours = np.array(
        [to_rgba(PALETTE[i % len(PALETTE)]) for i in range(len(groups.labels))] + [to_rgba("white")]
    )
    width = 0.03 * size
    ax.set_autoscale_on(False)
    ax.imshow(
        colours[label][:, None, :],
        extent=(-0.5 - 1.5 * width, -0.5 - 0.5 * width, size - 0.5, -0.5),
        aspect="equal",
    )
    ax.set_xlim(-0.5 - 1.5 * width, size - 0.5)
    cuts = np.flatnonzero(np.diff(label)) + 1
    starts, ends = np.r_[0, cuts], np.r_[cuts, size]
    block_labels = label[starts]
    if len(starts) == len(np.unique(label)):  # every label is in one piece
        has_room = (ends - starts) >= size / MAX_NAMED_BLOCKS
        named_blocks = [
            (i, label_index)
            for i, label_index in enumerate(block_labels.tolist())
            if label_index >= 0 and has_room[i]
        ]
        positions = [(starts[i] + ends[i] - 1) / 2 for i, _ in named_blocks]
        ticks(
            ax.yaxis,
            positions,
            [label_text(groups.labels[label_index], 18) for _, label_index in named_blocks],
            fontsize="small",
        )
        ax.tick_params(axis="y", length=0)
        for cut in cuts.tolist():
            ax.axhline(cut - 0.5, xmin=1.5 * width / (size + 1.5 * width), color="white", linewidth=0.4)
            ax.axvline(cut - 0.5, color="white", linewidth=0.4)
    elif len(groups.labels) <= len(PALETTE):
        patches = [Patch(color=PALETTE[i]) for i in range(len(groups.labels))]
        legend(
            ax,
            patches,
            groups.labels,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.07),
            ncols=4,
            fontsize="small",
        )
    else:
        ax.set_ylabel(f"colours of {len(groups.labels):,} labels come again", fontsize="small", color=GREY)
