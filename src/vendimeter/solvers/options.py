"""The options of every solver, checked in one place."""

from __future__ import annotations

from dataclasses import dataclass

from vendimeter.errors import InputError
from vendimeter.messages import brief, unknown
from vendimeter.options import as_number, byte_count, check_confidence

__all__ = ["DEFAULT_TOL", "METHODS", "PIVOTS", "PRECISIONS", "Solver"]

METHODS = ("auto", "exact", "lowrank", "lanczos", "random-features")
PRECISIONS = ("auto", "float64", "float32")
PIVOTS = ("random", "greedy")
DEFAULT_TOL = 1e-3  # the aim of methods with bounds, where no tolerance is asked for


@dataclass(frozen=True)
class Solver:
    """Method, tolerance and resources: the options of `vendimeter.score` that are not about the samples.

    Parameters
    ----------
    tol : float, optional
        The relative half-width that the bounds may have.
    confidence : float
        The probability with which the bounds of "lanczos" hold.
    method : {"auto", "exact", "lowrank", "lanczos", "random-features"}
        "auto" leaves it to the planner.
    pivots : {"random", "greedy"}
        How "lowrank" picks columns.
    memory : int or str, optional
        Working memory in bytes, or as a text such as "2 GiB".
    precision : {"auto", "float64", "float32"}
        Of products.

    Examples
    --------
    >>> Solver(tol=1e-2, memory="2 GiB").memory
    2147483648
    """

    tol: float | None = None
    confidence: float = 0.95
    method: str = "auto"
    pivots: str = "random"
    memory: int | None = None
    precision: str = "auto"

    def __post_init__(self) -> None:
        if self.tol is not None:
            tol = as_number(self.tol)
            if not 0 < tol < 1:
                raise InputError(
                    f"tol={brief(self.tol)}; expected a relative half-width between 0 and 1, such as 1e-3.",
                    option="tol",
                )
            object.__setattr__(self, "tol", tol)
        object.__setattr__(self, "confidence", check_confidence(self.confidence))
        if self.memory is not None:
            object.__setattr__(self, "memory", byte_count(self.memory, "memory"))
        for option, what, value, choices in (
            ("method", "method", self.method, METHODS),
            ("precision", "precision", self.precision, PRECISIONS),
            ("pivots", "pivot rule", self.pivots, PIVOTS),
        ):
            if value not in choices:
                raise unknown(what, value, choices).at(option=option)

    @property
    def aim(self) -> float:
        """The half-width that a method with bounds aims for: `tol`, or the usual one."""
        return DEFAULT_TOL if self.tol is None else self.tol
