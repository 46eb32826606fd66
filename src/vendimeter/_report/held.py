"""One similarity for all analyses of a report: they are given positions, and this kernel looks them up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from vendimeter.kernels import Kernel
from vendimeter.scoring import plan
from vendimeter.similarity import Features, Pairwise, Similarity
from vendimeter.solvers.groups import held as dense_held

__all__ = ["DENSE", "Held", "affordable_tol", "is_narrow", "kept"]

DENSE = 5000  # items whose matrix is held, so that nothing is computed twice
NARROW = 1024  # features of which the matrix is small, whatever the number of items
TOLERANCES = (None, 1e-3, 1e-2)
LIMIT, SPARSE_LIMIT = 1e12, 1.5e11  # operations of a score: half a minute or so


@dataclass(frozen=True, eq=False)
class Held(Kernel):
    """The similarities of items whose positions are the samples.

    Encoders, fingerprints and n-grams are then computed once for all analyses, and parameters that come from data are
    those of all items.
    """

    whole: Similarity = field(repr=False)
    name: ClassVar[str] = "held"

    def __repr__(self) -> str:
        return repr(self.whole.kernel)

    def build(self, samples: Any, rng: int) -> Similarity:
        """The similarities of the items at these positions."""
        places = np.asarray(samples, dtype=np.int64)
        if len(places) == self.whole.n and (places == np.arange(len(places))).all():
            return self.whole
        return self.whole.take(places)


def kept(similarity: Similarity) -> Similarity:
    """The similarity so that asking again costs little; a user's function is called, and checked, once."""
    return dense_held(similarity, DENSE)


def is_narrow(similarity: Similarity) -> bool:
    """Whether the matrix of features is small, so that the number of items hardly matters."""
    return isinstance(similarity, Features) and similarity.width <= min(similarity.n, NARROW)


def affordable_tol(similarity: Similarity, orders: list[float], rng: int) -> tuple[bool, float | None]:
    """Whether a score of all items takes no longer than a report may, and to what tolerance it is computed then."""
    if isinstance(similarity, Pairwise) and similarity.n > DENSE:
        return False, None  # every analysis would compute all similarities anew
    limit = SPARSE_LIMIT if getattr(similarity, "sparse", False) else LIMIT
    places, kernel = np.arange(similarity.n), Held(similarity)
    for tol in TOLERANCES:
        found = plan(places, kernel, q=orders, tol=tol, rng=rng)
        work = found.flops + (found.otherwise.flops if found.otherwise is not None else 0.0)
        if work <= limit:
            return True, tol
    return False, TOLERANCES[-1]
