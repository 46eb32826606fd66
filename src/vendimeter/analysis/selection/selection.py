"""Selection of k items that keep the diversity of a collection, beside what other methods reach.

The methods are in `methods`, the constraints in `rules`. The scale of a selection's score is what other methods reach
with as many items, and the score of the whole collection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vendimeter.analysis.selection.methods import (
    METHODS,
    NAMES,
    Request,
    choose,
    chosen_similarity,
    curve_sizes,
    function_calls,
    operations,
    prefix_scores,
)
from vendimeter.analysis.selection.rules import Rules, check_k, qualities, rules_of
from vendimeter.diversity import Diversity, diversity_of
from vendimeter.errors import InputError, TooLargeError
from vendimeter.messages import brief, unknown
from vendimeter.options import COSINE, SEED, as_number, generator
from vendimeter.present.notes import Advice, Audience, Note, sentences
from vendimeter.present.numbers import order_name, order_suffix, short_number
from vendimeter.present.progress import Progress
from vendimeter.results.base import Result, frozen
from vendimeter.results.score import Score, to_score
from vendimeter.similarity import Pairwise, Remembered, Similarity
from vendimeter.solvers.groups import materialize_for_subsets
from vendimeter.solvers.options import Solver
from vendimeter.solvers.plan import HOST_MEMORY, Plan, Problem
from vendimeter.solvers.solve import run
from vendimeter.spectrum import parse_order

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = ["Selection", "select"]

RANDOM_DRAWS = 10  # random choices whose mean is compared
CHEAP = 3e11  # operations, a few seconds, up to which a comparison is made by default
WHOLE = "whole"
ORDER_RANGE = (0.5, 2.0)  # orders of the score that method "vendi" maximises
TRIAL_ITEMS = 8  # items on which a user's function is checked before it is called for all of them


@dataclass(frozen=True, repr=False, eq=False)
class Selection(Result):
    """Items that were chosen from a collection.

    Attributes
    ----------
    indices : ndarray of int, shape (k,)
        Positions of the chosen items, in order of choice: the first ten are the choice of ten (but not with quality,
        quotas or sampling).
    method : str
        How they were chosen.
    score : Score
        The Vendi Score of the chosen items, with its bounds.
    n : int
        How many items there are in all.
    comparison : dict
        The score that each method reaches with k items, this one among them; "random" is the mean of ten draws.
    random_std : float
        The standard deviation of the draws; NaN without them.
    whole : Score or None
        The score of the whole collection; None if it was not computed.
    exact_greedy : bool
        Whether every step took the best item of all, and not of a random sample.
    notes : tuple of Note
        What else there is to know: samples, copies, what was not compared.
    sizes : ndarray of int
        Numbers of items up to k …
    curves : dict of ndarray
        … and the scores of the first so many items, for each method.
    gains : ndarray of float, shape (k,)
        What each step was worth: for "vendi" the rise of the score; for "logdet" the share of the item that lies
        outside the span of the ones before (beyond their rank, φᵀσ⁺φ); for "farthest" the squared distance from the
        nearest one before (NaN for the first); for "facility" the rise of the mean similarity of items with their
        nearest chosen one; NaN for "random".
    labels : tuple or None
        The group of each chosen item, if there were quotas.
    quality : ndarray or None
        The quality of each chosen item, if it was given.

    Examples
    --------
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> rows = np.repeat(np.eye(3), 5, axis=0)
    >>> chosen = vm.select(rows, 3)
    >>> chosen.indices, round(chosen.score, 6), round(chosen.whole, 6)
    (array([ 0,  5, 10]), 3.0, 3.0)
    """

    indices: np.ndarray = field(repr=False)
    method: str
    score: Score
    n: int
    comparison: dict[str, float]
    random_std: float
    whole: Score | None
    exact_greedy: bool
    notes: tuple[Note, ...] = field(repr=False)
    sizes: np.ndarray = field(repr=False)
    curves: dict[str, np.ndarray] = field(repr=False)
    gains: np.ndarray = field(repr=False)
    labels: tuple[Hashable, ...] | None = field(repr=False, default=None)
    quality: np.ndarray | None = field(repr=False, default=None)

    @property
    def k(self) -> int:
        """How many items were chosen."""
        return len(self.indices)

    @property
    def group_counts(self) -> dict[Hashable, int]:
        """How many items of each group were chosen, where there were quotas."""
        counts: dict[Hashable, int] = {}
        for label in self.labels or ():
            counts[label] = counts.get(label, 0) + 1
        return counts

    def summary(self, audience: Audience = "python") -> str:
        """What was chosen, what score that has, and what others have; with advice for those who read it."""
        score = f"a Vendi Score{order_suffix(self.score.q, order_name)} of {short_number(self.score)}"
        phrases = [f"{self.k:,} of {self.n:,} items, chosen by {NAMES[self.method]}: {score}"]
        others = [
            f"{NAMES[name]} {_format_score(reached, self.random_std if name == 'random' else math.nan)}"
            for name, reached in self.comparison.items()
            if name != self.method
        ]
        if others:
            phrases.append(f"as many by {', '.join(others)}")
        if self.whole is not None:
            phrases.append(f"all items have {short_number(self.whole)}")
        if self.quality is not None:
            phrases.append(f"mean quality {short_number(float(self.quality.mean()))}")
        return " ".join(["; ".join(phrases) + ".", *sentences(self.notes, audience)])

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {"item": self.indices, "gain": self.gains}
        if self.labels is not None:
            columns["group"] = list(self.labels)
        if self.quality is not None:
            columns["quality"] = self.quality
        return columns

    def plot(self, ax: Any = None) -> Display:
        """The score reached against the number of items, for each method, and that of the whole collection."""
        from vendimeter.plots.curves import plot_selection

        return plot_selection(self, ax)


def _format_score(score: float, spread: float) -> str:
    """A score, with as many digits as its spread has where there is one."""
    if not spread > 1e-6 * score:
        return short_number(score)
    decimals = max(0, 1 - math.floor(math.log10(spread)))
    return f"{score:.{decimals}f} ± {spread:.{decimals}f}"


def select(
    samples: Any,
    k: int | None = None,
    kernel: Any = COSINE,
    *,
    method: str = "vendi",
    q: Any = 1,
    quotas: Any = None,
    by: Any = None,
    required: Any = None,
    quality: Any = None,
    trade_off: float = 1.0,
    compare: Any = True,
    exact: bool | None = None,
    memory: int | str | None = None,
    rng: int = SEED,
) -> Selection:
    """Choose k items that are as different from each other as possible.

    Parameters
    ----------
    samples : array, sparse array, list, table, Collection or Diversity
        The items, as for `vendimeter.score`. Each may be chosen once; weights and counts have no place here.
    k : int
        How many to choose; may be left to `quotas`.
    kernel : str, Kernel or callable
        What makes two items similar, as for `vendimeter.score`.
    method : {"vendi", "logdet", "farthest", "facility", "random"}
        What every step makes as large as possible: the Vendi Score of the chosen set; the determinant of its
        similarities (the most likely set of a determinantal point process); the distance from the nearest chosen item
        (k-center, in the kernel's own distance 2 − 2k(a, b)); how similar all items are to their nearest chosen one
        (facility location: representatives rather than extremes); or nothing.
    q : float
        The order of the score, from 0.5 to 2 where it is chosen for (method "vendi"); any order for the others.
    quotas : int or dict, optional
        How many items of each group, exactly: one number for every group, or a mapping from label to number. With a
        larger k the others come from groups without a quota.
    by : list, array, or name of a column
        The group of each item, one label an item, for `quotas`. A collection that was read, and a Diversity, have
        their own.
    required : list of int, optional
        Positions of items that are chosen in any case, and first; they count towards k and quotas.
    quality : array of shape (n,), optional
        How good each item is, from 0 up, for method "vendi" with q = 1: then VS · (mean quality)^trade_off is made as
        large as possible, for trade_off = 1 the quality-weighted Vendi Score. Its logarithm for k items is what is
        chosen for from the start, so that the first steps are not the best for fewer items.
    trade_off : float
        What quality counts, from 0 up.
    compare : bool or list of methods
        Which methods to compare with at the same k: by default those that take a few seconds at most (of a user's
        function, no more calls than the choice itself), and the whole collection likewise; those named, whatever they
        take, ``"whole"`` among them; or none.
    exact : bool, optional
        Whether every step takes the best of all items, however long it takes (True), or the best of a random sample
        (False, stochastic greedy). By default all of them are searched until 2·10¹³ operations are spent, some
        minutes on two cores; the result says if samples were needed.
    memory : int or str, optional
        Working memory beside the samples, in bytes or as a text such as "2 GiB"; 4 GiB by default. Half of it may hold
        a float32 copy of the features, or similarities that are computed once.
    rng : int
        Seed of everything random.

    Returns
    -------
    Selection
        Positions in order of choice, their score, and that of other methods.

    Notes
    -----
    For a fixed k the Vendi Score grows with F(A) = −tr K_A log K_A, which is submodular (so are its kin of other orders
    up to 2): an item never adds more than it once did, and only those are looked at again that could still be the best.
    Greedy choice of a submodular function reaches 1 − 1/e of the best possible value. F itself falls with every item;
    this holds for F + ck, where c = 1 + log 2k makes it grow. In 540 small random cases the score was 0.98 of the best
    possible one in the mean, and 0.84 at worst.
    With quotas ½ is guaranteed instead of 1 − 1/e, with samples 1 − 1/e − 0.01 in the mean.

    Items that are the same as a chosen one are chosen only where nothing else is left, even where the objective would
    rather have a copy of a lonely item than a neighbour of many. Of items that are worth the same the first is taken.
    A single item has a score of 1 whichever it is, so that the choice starts with item 0 unless quality or `required`
    tell otherwise.

    A step takes the eigenvectors of the smaller of the matrices of chosen items and of features, O(min(k, d)³), and the
    items that are looked at O(d min(k, d)) each; on average an item is looked at some ten times in all. Bounds of many
    items are computed in float32, with an allowance for its rounding that is checked against float64; what decides is
    float64. Without features the n·k similarities with the chosen items are needed at most. The determinant of more
    items than their rank is 0; from there on the product of the other eigenvalues counts (a D-optimal design). Facility
    location represents a random sample of items where there are more than 8,192.

    **A higher score does not make a better training set.** Items that differ most from all others are often broken or
    mislabelled. That is why facility location is shown beside the score, and quality can be traded against it.

    References
    ----------
    Friedman and Dieng: The Vendi Score, TMLR 2023. Nguyen and Dieng: Quality-weighted Vendi Scores, ICML 2024.
    Nemhauser, Wolsey, Fisher: An analysis of approximations for maximizing submodular set functions, 1978. Minoux:
    Accelerated greedy algorithms, 1978. Mirzasoleiman et al.: Lazier than lazy greedy, AAAI 2015. Chen, Zhang, Zhou:
    Fast greedy MAP inference for determinantal point processes, NeurIPS 2018. Gonzalez: Clustering to minimize the
    maximum intercluster distance, 1985. Friedland and Gaubert: Submodular spectral functions of principal submatrices,
    2013.

    Examples
    --------
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> rows = np.random.default_rng(0).standard_normal((500, 16))
    >>> chosen = vm.select(rows, 20)
    >>> chosen.indices[:5]
    array([  0, 233, 445, 257, 254])
    >>> print(chosen)
    20 of 500 items, chosen by greedy Vendi Score: a Vendi Score of ...
    >>> per_class = vm.select(rows, quotas=2, by=["cat", "dog"] * 250)
    >>> per_class.group_counts
    {'cat': 2, 'dog': 2}
    """
    solver = Solver(memory=memory)  # type: ignore[arg-type]
    diversity = diversity_of(samples, kernel, by=by, solver=solver, rng=rng)
    if quotas is None and by is not None:
        raise InputError(
            "by was given without quotas; expected quotas={label: number}, or one number for every group."
        )
    return diversity.select(
        k,
        method=method,
        q=q,
        quotas=quotas,
        required=required,
        quality=quality,
        trade_off=trade_off,
        compare=compare,
        exact=exact,
    )


def selection_of(
    diversity: Diversity,
    k: Any,
    *,
    method: Any,
    q: Any,
    quotas: Any,
    required: Any,
    quality: Any,
    trade_off: Any,
    compare: Any,
    exact: Any,
) -> Selection:
    """Choose k items that are as different from each other as possible; see `select`."""
    count = check_k(k, quotas)
    order = _check_options(method, q, quality, trade_off, exact)
    names, is_explicit = _check_compare(compare, order)
    diversity.refuse_weights("select")
    similarity, n, rng = _checked(diversity.similarity), diversity.n, diversity.rng
    rules = rules_of(n, count, quotas, None if quotas is None else diversity.groups, required)
    item_qualities = qualities(diversity.samples, quality, n)
    memory = HOST_MEMORY if diversity.solver.memory is None else diversity.solver.memory
    request = Request(similarity, rules, order, memory, rng, item_qualities, as_number(trade_off), exact)
    sizes, before = curve_sizes(rules.k), _computed(similarity)
    with Progress("choosing") as progress:
        choice = choose(method, request, progress.step)
        limit = None if is_explicit else _limit(method, request, _computed(similarity) - before)
        part = chosen_similarity(similarity, choice.order)
        curve = prefix_scores(part, sizes, order, rng)
        rivals = _compare_methods(method, names, request.rival(), sizes, limit, progress.step)
        if WHOLE in names:
            rivals.whole = _score_whole(diversity, order, limit)
    if WHOLE in names and rivals.whole is None:
        rivals.left_out.append(WHOLE)
    curves = {name: rivals.curves[name] for name in METHODS if name in rivals.curves} | {method: curve}
    if method == "random" and "random" in rivals.curves:
        curves["random"] = rivals.curves["random"]
    plan, solution = run(Problem(part, None, [order], rng=rng))
    return Selection(
        frozen(choice.order),
        method,
        to_score(solution, plan, order, part.n, part.kernel),
        n,
        {name: float(curves[name][-1]) for name in METHODS if name in curves},
        rivals.random_std,
        rivals.whole,
        choice.exact,
        (*choice.notes, *_notes_on_rivals(rivals, limit, item_qualities is not None)),
        frozen(sizes),
        {name: frozen(curves[name]) for name in METHODS if name in curves},
        frozen(choice.gains),
        _chosen_labels(rules, choice.order),
        None if item_qualities is None else frozen(item_qualities[choice.order]),
    )


def _checked(similarity: Similarity) -> Similarity:
    """Check a user's function on a few items before it is called for many."""
    if isinstance(similarity, Pairwise) and not similarity.trusted:
        materialize_for_subsets(similarity.take(np.arange(min(similarity.n, TRIAL_ITEMS))))
    return similarity


def _check_options(method: Any, q: Any, quality: Any, trade_off: Any, exact: Any) -> float:
    """Check the options that depend on each other; return the order."""
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    order = parse_order(q)
    if method == "vendi" and not _can_be_chosen_for(order):
        raise InputError(
            f"q={brief(q)}; expected an order from {ORDER_RANGE[0]:g} to {ORDER_RANGE[1]:g}, which items can be "
            "chosen for. Choose by q=1, and score the chosen items with any order."
        )
    if quality is not None and not (method == "vendi" and order == 1):
        raise InputError(
            f"quality was given with method={method!r} and q={order_name(order)}; expected method='vendi' and q=1, "
            "where it multiplies the score."
        )
    if not 0 <= as_number(trade_off) < float("inf"):
        raise InputError(f"trade_off={brief(trade_off)}; expected what quality counts, a number from 0 up.")
    if quality is None and as_number(trade_off) != 1:
        raise InputError(
            f"trade_off={brief(trade_off)} was given without quality; expected quality=…, one number an item."
        )
    if exact not in (None, True, False):
        raise InputError(
            f"exact={brief(exact)}; expected True, False, or None for as long as it takes minutes."
        )
    return order


def _chosen_labels(rules: Rules, order: np.ndarray) -> tuple[Hashable, ...] | None:
    if rules.labels is None or rules.group is None:
        return None
    return tuple(rules.labels[g] for g in rules.group[order].tolist())


def _notes_on_rivals(rivals: _Rivals, limit: _Limit | None, quality: bool) -> Iterator[Note]:
    """What to know of the comparison with other methods."""
    if quality and rivals.curves:
        yield Note("quality-not-compared", "The other methods chose without regard to quality.")
    if limit is not None and rivals.left_out:
        names = ", ".join(NAMES.get(name, "the whole collection") for name in rivals.left_out)
        text = f"Not computed, {limit.reason}: {names}."
        advice = Advice("{} asks for them by name.", "compare", "[…]", python_only=True)
        yield Note("not-compared", text, {"methods": tuple(rivals.left_out)}, advice)


# ----------------------------------------------------------------------------------------------- comparison with others


@dataclass(frozen=True)
class _Limit:
    """What a comparison may take that was not asked for by name: calls of a user's function, or else operations."""

    calls: float | None = None

    @property
    def reason(self) -> str:
        """Why others are left out."""
        if self.calls is None:
            return "because it takes long"
        return "because it takes more calls of the function than the choice"

    def draws(self, name: str, request: Request, draws: int) -> int:
        """How many choices by a method are made: one or none, and of random ones at least two or none."""
        if self.calls is None:
            return draws if draws * operations(name, request) <= CHEAP else 0
        possible = min(draws, int(self.calls // function_calls(name, request)))
        return possible if possible >= min(draws, 2) else 0

    def allows(self, plan: Plan) -> bool:
        """Whether a score may be computed."""
        return plan.flops <= CHEAP if self.calls is None else plan.evaluations <= self.calls


@dataclass
class _Rivals:
    """The scores of other methods for each size, the deviation of random draws at the last, and the whole's score."""

    curves: dict[str, np.ndarray] = field(default_factory=dict)
    random_std: float = float("nan")
    whole: Score | None = None
    left_out: list[str] = field(default_factory=list)


def _check_compare(compare: Any, order: float) -> tuple[list[str], bool]:
    """Check `compare`: the methods to compare with, "whole" among them, and whether they were named explicitly."""
    allowed = [*METHODS, WHOLE]
    possible = [name for name in allowed if name != "vendi" or _can_be_chosen_for(order)]
    if compare is True or compare is False:
        return possible if compare else [], False
    names = [compare] if isinstance(compare, str) else compare
    if not isinstance(names, list | tuple | set | frozenset):
        raise InputError(
            f"compare={brief(compare)}; expected True, False, or a list of {', '.join(allowed)}."
        )
    for name in names:
        if name not in allowed:
            raise unknown("method to compare with:", name, allowed)
        if name not in possible:
            raise InputError(
                f"compare={brief(compare)} with q={order_name(order)}; method {name!r} expected an order from "
                f"{ORDER_RANGE[0]:g} to {ORDER_RANGE[1]:g}, which items can be chosen for. Leave it out of compare."
            )
    return [name for name in allowed if name in names], True


def _can_be_chosen_for(order: float) -> bool:
    """Whether items can be chosen for the score of this order."""
    return ORDER_RANGE[0] <= order <= ORDER_RANGE[1]


def _computed(similarity: Similarity) -> int:
    """Similarities that a user's function was called for: the functions of a sum or product count once together."""
    return 0 if similarity.counter is None else similarity.counter.similarities


def _limit(method: str, request: Request, computed: int) -> _Limit:
    """What comparisons may take: no more calls of a user's function than the choice, which computed so many."""
    similarity = request.similarity
    if not isinstance(similarity, Pairwise) or similarity.trusted:
        return _Limit()
    # Of similarities that are kept some were known before: they count, so that a second answer is the first.
    return _Limit(function_calls(method, request) if isinstance(similarity, Remembered) else computed)


def _compare_methods(
    method: str,
    names: list[str],
    request: Request,
    sizes: np.ndarray,
    limit: _Limit | None,
    report: Callable[[float, str], None],
) -> _Rivals:
    """Compute the scores of other methods.

    Parameters
    ----------
    method : str
        The one whose choice was made, which is not made again; "random" is, as its score is a mean of draws.
    names : list of str
        The methods to compare with.
    request : Request
        The options that all methods share.
    sizes : ndarray
        Numbers of items at which scores are computed.
    limit : _Limit, optional
        What each may take.
    """
    rivals = _Rivals()
    for name in names:
        if name == WHOLE or name == method != "random":
            continue
        draws = RANDOM_DRAWS if name == "random" else 1
        draws = draws if limit is None else limit.draws(name, request, draws)
        if not draws:
            rivals.left_out.append(name)
            continue
        curves = []
        for i, order in enumerate(_draw_choices(name, request, draws)):
            report(i / draws, f"comparing with {NAMES[name]}")
            curves.append(
                prefix_scores(chosen_similarity(request.similarity, order), sizes, request.q, request.rng)
            )
        rivals.curves[name] = np.mean(curves, axis=0)
        if name == "random":
            rivals.random_std = float(np.std([curve[-1] for curve in curves], ddof=1))
    return rivals


def _draw_choices(name: str, request: Request, draws: int) -> list[np.ndarray]:
    if name != "random":
        return [choose(name, request, lambda done, note: None).order]
    random = generator(request.rng, "select draws")
    return [request.rules.draw(random) for _ in range(draws)]


def _score_whole(diversity: Diversity, q: float, limit: _Limit | None) -> Score | None:
    """Score all items; None where that takes more than the limit."""
    if limit is not None:
        try:
            if not limit.allows(diversity.plan(q)):
                return None
        except TooLargeError:  # no method keeps to the memory
            return None
    return diversity.score(q)
