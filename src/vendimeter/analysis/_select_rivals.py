"""What other methods reach with as many items, and what the whole collection has: the scale of a selection's score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vendimeter.analysis._scored import scored
from vendimeter.analysis._select_methods import (
    METHODS,
    NAMES,
    Request,
    calls_of,
    choose,
    operations,
    part_of,
    prefix_scores,
)
from vendimeter.errors import InputError, TooLargeError, brief, unknown
from vendimeter.options import generator
from vendimeter.results.score import Score
from vendimeter.similarity import Pairwise, Similarity
from vendimeter.solvers import plan
from vendimeter.solvers.options import Solver
from vendimeter.solvers.plan import Problem

__all__ = ["Rivals", "check_compare", "rivals_of", "score_part"]

DRAWS = 10  # choices at random
CHEAP = 3e11  # operations, a few seconds: what is compared without being asked for
WHOLE = "whole"
ORDERS = (0.5, 2.0)  # the orders that are chosen for


@dataclass
class Rivals:
    """Curves of the methods over the sizes, the spread of random draws at the last one, and the score of the whole."""

    curves: dict[str, np.ndarray] = field(default_factory=dict)
    random_std: float = float("nan")
    whole: Score | None = None
    left_out: list[str] = field(default_factory=list)
    reason: str = "because it takes long"


def check_compare(compare: Any) -> tuple[list[str], bool]:
    """The methods to compare with, "whole" for all items, and whether they were asked for by name."""
    known = [*METHODS, WHOLE]
    if compare is True or compare is False:
        return known if compare else [], False
    names = [compare] if isinstance(compare, str) else compare
    if not isinstance(names, list | tuple | set | frozenset):
        raise InputError(f"compare={brief(compare)}; expected True, False, or a list of {', '.join(known)}.")
    for name in names:
        if name not in known:
            raise unknown("method to compare with:", name, known)
    return [name for name in known if name in names], True


def score_part(part: Similarity, q: float, memory: int | None, rng: int) -> Score:
    """The score of the chosen items, or of all, as `vendimeter.score` would give it."""
    return scored(part, None, q, part.n, solver=Solver(memory=memory), rng=rng)


def rivals_of(
    method: str,
    request: Request,
    sizes: np.ndarray,
    compare: Any,
    spent: int,
    report: Callable[[float, str], None],
) -> Rivals:
    """What the methods reach that are asked for, or that cost little.

    Parameters
    ----------
    method : str
        The one whose choice was made, which is not made again; chance is nobody's choice and is always a mean of draws.
    request : Request
        The rules, which are everyone's.
    sizes : ndarray
        Numbers of items at which scores are wanted.
    compare : bool or list
        As for `vendimeter.select`.
    spent : int
        Calls of a user's function for the choice; comparisons that were not asked for take no more of them.
    """
    names, asked = check_compare(compare)
    found, request = Rivals(), request.rival()
    user = isinstance(request.similarity, Pairwise) and not request.similarity.trusted
    if user:
        found.reason = "because it takes more calls of the function than the choice"
    for name in names:
        impossible = name == "vendi" and not ORDERS[0] <= request.q <= ORDERS[1]
        if name == WHOLE or name == method != "random" or impossible:
            continue
        draws = DRAWS if name == "random" else 1
        if not asked:
            draws = _afforded(name, request, draws, spent if user else None)
        if not draws:
            found.left_out.append(NAMES[name])
            continue
        curves = []
        for i, order in enumerate(_orders(name, request, draws)):
            report(i / draws, f"comparing with {NAMES[name]}")
            curves.append(prefix_scores(part_of(request.similarity, order), sizes, request.q, request.rng))
        found.curves[name] = np.mean(curves, axis=0)
        if name == "random":
            found.random_std = float(np.std([curve[-1] for curve in curves], ddof=1))
    if names:
        found.whole = _whole(request, asked and WHOLE in names, spent if user else None)
        if found.whole is None and not asked:
            found.left_out.append("the whole collection")
    return found


def _afforded(name: str, request: Request, draws: int, calls: int | None) -> int:
    """How many choices by a method cost little: one or none, and of random ones at least two or none."""
    if calls is None:
        return draws if draws * operations(name, request) <= CHEAP else 0
    possible = min(draws, int(calls // calls_of(name, request)))
    return possible if possible >= min(draws, 2) else 0


def _orders(name: str, request: Request, draws: int) -> list[np.ndarray]:
    if name != "random":
        return [choose(name, request, lambda done, note: None).order]
    random = generator(request.rng, "select draws")
    return [request.rules.draw(random) for _ in range(draws)]


def _whole(request: Request, asked: bool, calls: int | None) -> Score | None:
    """The score of all items, if it was asked for or costs little."""
    similarity, q = request.similarity, request.q
    if not asked:
        problem = Problem(similarity, None, [q], Solver(memory=request.memory), request.rng)
        try:
            wanted = plan.choose(plan.prepared(problem))
        except TooLargeError:  # there is no way that keeps to the memory
            return None
        if wanted.flops > CHEAP if calls is None else wanted.evaluations > calls:
            return None
    return score_part(similarity, q, request.memory, request.rng)
