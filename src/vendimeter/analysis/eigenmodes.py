"""What a collection is made of: the leading eigenvectors of its similarities, with the items at both ends of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from vendimeter.analysis._modes_result import Ends, Modes
from vendimeter.data import frames as _frames
from vendimeter.data import tables
from vendimeter.data.arrays import refuse_set
from vendimeter.data.collection import Collection
from vendimeter.data.groups import Membership, read
from vendimeter.intake import collected, measured
from vendimeter.options import check_rng, whole_number
from vendimeter.results.base import frozen
from vendimeter.solvers.eigenvectors import leading

__all__ = ["Ends", "Modes", "modes"]

ALIKE = 1e-6  # eigenvalues nearer to each other than this, relatively, are taken for one


def modes(
    samples: Any,
    kernel: Any = "cosine",
    *,
    k: int = 10,
    exemplars: int = 8,
    by: Any = None,
    weights: Any = None,
    counts: Any = None,
    rng: int = 0,
) -> Modes:
    """The leading modes of a collection: eigenvectors of its similarities, their shares, and the items at their ends.

    The score counts how many eigenvalues of ρ = diag(√p) K diag(√p) matter; this says what they stand for. Each
    eigenvector is a direction in which items vary, its eigenvalue the share of the whole that lies in it, and the items
    with the highest and the lowest entries show what the direction is about.

    Parameters
    ----------
    samples : array, sparse array, list, table or Collection
        The items, as for `vendimeter.score`.
    kernel : str, Kernel or callable
        What makes two items similar, as for `vendimeter.score`.
    k : int
        How many modes; fewer are given where fewer eigenvalues are above rounding.
    exemplars : int
        How many items at each end of a mode frames, dicts and pictures show.
    by : list, array, or name of a column, optional
        One label (or set of labels) an item, as for `vendimeter.score_groups`: then the result says which labels each
        mode is made of. The labels of a collection are taken without it.
    weights : array of shape (n,), optional
        Probabilities of the items; they sum to 1.
    counts : array of shape (n,), optional
        How often each item occurs.
    rng : int
        Seed of everything random.

    Returns
    -------
    Modes
        With `shares`, `loadings`, `exemplars(mode)`, `order`, `composition`, `plot()`, `plot_exemplars()` and
        `plot_matrix()`.

    Notes
    -----
    ρ = Σ λ_a v_a v_aᵀ, and the loading of item i in mode a is y_ia = v_aᵀφ_i = √(λ_a/p_i) u_ia, for eigenvectors u of
    ρ. y_ia² is the share of the item that lies in the mode: Σ_a y_ia² = 1 over all modes, and Σ_i p_i y_ia² = λ_a. An
    eigenvector has no sign of its own; here the loading of largest size is positive. Where no similarity is negative,
    the entries of the first eigenvector have one sign: its high end are the items that are similar to most others, its
    low end those that are similar to few. The other modes part the items along different dimensions.

    Vectors of eigenvalues that are equal, or nearer than 10⁻⁶, are arbitrary within the space they span; `degenerate`
    marks them.

    Features of up to 1,024 columns, and up to 1,024 distinct items, have all their eigenvectors computed. Beyond, a
    block Krylov space grows until the residuals ‖ρu − λu‖ are below 10⁻⁸ of the largest eigenvalue (`residuals`): some
    ten products with ρ, through the features where there are any. Else the n×n matrix is held, in float32 from 11,585
    items on; from 32,768 on its blocks are computed again for each of about five products, until 10⁻⁶. A kernel that
    drops negative eigenvalues needs all of them, and takes up to 8,192 items.

    References
    ----------
    Friedman and Dieng: The Vendi Score, TMLR 2023, the figure of cats along the top eigenvectors of two kernels, with
    the four images of highest and lowest entries each.

    Examples
    --------
    >>> import vendimeter as vm
    >>> words = ["ape", "ape", "ape", "bee", "bee", "cat"]
    >>> found = vm.modes(words, "match")
    >>> found.shares.round(4)
    array([0.5   , 0.3333, 0.1667])
    >>> [words[i] for i in found.exemplars(1, 2).high]
    ['bee', 'bee']
    """
    if isinstance(samples, Collection):
        by, kind = samples.labels_by(by), samples.kind
    else:
        samples, kind = _frames.known(samples), None
        if by is not None and tables.has_columns(samples):
            by = tables.labels(samples, by)
    return _modes(
        samples, kernel, k=k, exemplars=exemplars, by=by, kind=kind, weights=weights, counts=counts, rng=rng
    )


@collected
def _modes(
    samples: Any,
    kernel: Any = "cosine",
    *,
    k: Any,
    exemplars: Any,
    by: Any,
    kind: str | None,
    weights: Any = None,
    counts: Any = None,
    rng: Any = 0,
) -> Modes:
    k, shown, rng = whole_number(k, "k"), whole_number(exemplars, "exemplars"), check_rng(rng)
    if by is not None:
        refuse_set(samples, "labels")
        tables.check_alignment(samples, by, "by")
    similarity, shares, n = measured(samples, kernel, weights, counts, rng)
    groups = None if by is None else read(by, similarity.n, None)
    found = leading(similarity, shares, k, rng)
    kept = min(k, len(found.values))
    loadings = found.coordinates[:, :kept]
    peaks = loadings[np.abs(loadings).argmax(axis=0), np.arange(kept)]
    loadings = loadings * np.where(peaks < 0, -1.0, 1.0)
    composition = label_loadings = None
    if groups is not None:
        composition, label_loadings = map(frozen, _of_labels(groups, loadings, shares))
    return Modes(
        n=n,
        shares=frozen(found.values[:kept]),
        loadings=frozen(loadings),
        weights=frozen(shares),
        residuals=frozen(found.residuals[:kept]),
        degenerate=frozen(_degenerate(found.values, found.residuals)[:kept]),
        labels=None if groups is None else list(groups.labels),
        composition=composition,
        label_loadings=label_loadings,
        shown=shown,
        method=found.method,
        settled=found.settled,
        kernel=repr(similarity.kernel),
        _items=samples,
        _kind=kind,
        _similarity=similarity,
        _groups=groups,
        _rng=rng,
    )


def _degenerate(values: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """Which eigenvalues cannot be told from a neighbour: the vectors between them are arbitrary."""
    near = values[:-1] - values[1:] <= np.maximum(ALIKE * values[:-1], residuals[:-1] + residuals[1:])
    return np.r_[False, near] | np.r_[near, False]


def _of_labels(groups: Membership, loadings: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What each mode is made of, label by label, and the mean loading of each label; both (modes, labels)."""
    count, items = len(groups.labels), groups.items
    entry = np.repeat(np.arange(count), np.diff(groups.starts))
    several = np.bincount(items, minlength=len(shares))[
        items
    ]  # an item of several labels is divided among them
    mass = shares[items]
    total = np.bincount(entry, mass, minlength=count)
    made, mean = np.empty((loadings.shape[1], count)), np.empty((loadings.shape[1], count))
    for a, column in enumerate(loadings.T):
        whole = float(shares @ column**2)
        made[a] = np.bincount(entry, mass * column[items] ** 2 / several, minlength=count) / whole
        with np.errstate(invalid="ignore"):
            mean[a] = np.bincount(entry, mass * column[items], minlength=count) / total
    return made, mean
