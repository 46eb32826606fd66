"""The results of scoring: `Score`, one number with its bounds, and `Profile`, the scores of several orders."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from vendimeter.messages import unknown
from vendimeter.present.notes import Audience
from vendimeter.present.numbers import (
    effective_items,
    format_bounds,
    format_confidence,
    format_duration,
    format_number,
    format_power,
    format_rounded,
    order_name,
    order_suffix,
    records_left_out,
    short_number,
)
from vendimeter.present.plain import plain, plain_order
from vendimeter.present.tables import data_frame, html_table
from vendimeter.present.text import html_escaped
from vendimeter.similarity import Similarity
from vendimeter.solvers.exact import Solution
from vendimeter.solvers.options import Solver
from vendimeter.solvers.plan import Plan, Problem
from vendimeter.solvers.solve import GivenUp, MissedTolerance, run
from vendimeter.spectrum import Eigenvalues, Level, Spectrum, parse_order

if TYPE_CHECKING:
    from vendimeter.plots import Display

__all__ = ["Claim", "Diagnostics", "Profile", "Score", "scored", "to_score"]

# A relative half-width up to which bounds are taken for those of rounding …
ROUNDING = 1e-6
# … but not of these methods, whose bounds are part of the answer.
BRACKETING = ("lowrank", "lanczos")
DEFAULT_SOLVER = Solver()


@dataclass(frozen=True)
class Claim:
    """What is claimed of a score: how far off it may be, and how sure that is; and that in words.

    Words have the digits that this leaves. The ends of an interval and the error are rounded outwards, so that what
    holds for them holds for those that are shown.

    Attributes
    ----------
    kind : str
        "exact"; "rounding", exact but for an error of rounding; "certain", "probable" or "estimate", between bounds
        that hold for certain, with a probability, or with one that rests on estimated constants; "none", no claim.
    value : float
        The score.
    low, high : float
        Its bounds; NaN where nothing is claimed.
    confidence : float
        The probability with which they hold; NaN where that is not known.
    error : float
        Neither is further from the score than this: one digit, rounded up.
    caveat : str or None
        Why nothing is claimed.

    Examples
    --------
    >>> import vendimeter as vm
    >>> claim = vm.score(["a", "b", "b"], "match").claim
    >>> claim.kind, claim.number
    ('rounding', '1.8899')
    """

    kind: Literal["exact", "rounding", "certain", "probable", "estimate", "none"]
    value: float
    low: float
    high: float
    confidence: float
    error: float
    caveat: str | None = None

    @property
    def number(self) -> str:
        """The score as text."""
        if self.kind == "none":
            return f"about {format_number(self.value, 4)}"
        if self.interval is None:
            return format_number(self.value, 5)
        return format_rounded(self.value, self._decimals)

    @property
    def interval(self) -> tuple[str, str] | None:
        """The bounds as text, rounded outwards; None where the score is exact, or nothing is claimed of it."""
        if self.kind in ("exact", "rounding", "none"):
            return None
        return (
            format_rounded(self.low, self._decimals, ROUND_FLOOR),
            format_rounded(self.high, self._decimals, ROUND_CEILING),
        )

    @property
    def _decimals(self) -> int:
        """Two digits of the width tell the bounds apart, and where the score lies between them."""
        if all(number.is_integer() for number in (self.value, self.low, self.high)):
            return 0
        width = max(self.high - self.low, math.ulp(self.high))
        return min(max(0, 1 - math.floor(math.log10(width))), 15)

    def shown(self, audience: Audience = "python") -> str:
        """The claim for a reader: what follows the score in a sentence, or in the terminal a sentence of its own."""
        if audience == "terminal":
            return self._sentence()
        if self.kind == "exact":
            return "exact"
        if self.kind == "rounding":
            error = format_power(self.error) if audience == "page" else f"{self.error:.1g}"
            return f"exact up to rounding (±{error})"
        if self.interval is None:
            return f"no interval ({self.caveat})" if self.caveat else "no interval"
        between = "between {} and {}".format(*self.interval)
        if self.kind == "certain":
            return f"{between}, for certain"
        confidence = self._confidence_text
        if self.kind == "probable":
            return f"{between} with {confidence}" if confidence else between
        return f"probably {between} (an estimate: {confidence or 'of unknown confidence'}, if its constants are right)"

    def _sentence(self) -> str:
        if self.kind == "none":
            return "Nothing is claimed of its error."
        if self.kind == "exact":
            return "The score is exact (deterministic)."
        if self.interval is None:
            return f"The exact score is within {self.error:.0e} of that (deterministic)."
        low, high = self.interval
        confidence = self._confidence_text
        level = {
            "probable": f"with {confidence}" if confidence else "probabilistic",
            "estimate": "estimated",
        }.get(self.kind, "deterministic")
        return f"The exact score lies between {low} and {high} ({level})."

    @property
    def _confidence_text(self) -> str:
        return "" if math.isnan(self.confidence) else f"{format_confidence(self.confidence)} confidence"


@dataclass(frozen=True, eq=False, repr=False)
class Diagnostics(Mapping[str, Any]):
    """How a score came about: attributes, which are None where they do not apply, and a mapping of those that do.

    Attributes
    ----------
    kernel : str
        The kernel with its fitted parameters.
    group : hashable
        The label of the group that was scored.
    reason : str
        Why the method was chosen.
    precision : str
        In which the products were computed.
    rank : int
        Of the low rank, or of the part that the quadrature splits off.
    probes, passes, products : int
        Random vectors of the quadrature, passes over the matrix, and its products with a vector.
    confidence : float
        With which the bounds hold.
    evaluations : int
        Similarities that were computed.
    residual : float
        The trace that the low rank leaves.
    storage : str
        How the matrix was kept.
    components, largest_component : int
        Connected components of sparse features or of a sparse matrix, and the size of the largest.
    removed_mass : float
        Of the negative eigenvalues that were left out.
    tried_first : GivenUp
        A low rank that was given up for the method.
    distinct : int
        Items that differ, where equal ones were counted.
    tol : MissedTolerance
        That the bounds are wider than the tolerance.
    truncated, eigenvalues : int
        Eigenvalues that a truncated score keeps, and of how many.
    seconds, exact_seconds : float
        The time it took, and the time that an exact answer would take.
    left_out : int
        Broken records that were left out.
    caveat : str
        Why nothing is claimed of the error.
    rank_threshold : float
        Eigenvalues up to this cannot be told from zero.
    other : mapping
        Everything else that was noted.

    Examples
    --------
    >>> import vendimeter as vm
    >>> diagnostics = vm.score(["a", "b", "b"], "match").diagnostics
    >>> diagnostics["kernel"], diagnostics.kernel, "removed_mass" in diagnostics, diagnostics.removed_mass
    ('Match()', 'Match()', False, None)
    """

    kernel: str | None = None
    group: Any = None
    reason: str | None = None
    precision: str | None = None
    rank: int | None = None
    probes: int | None = None
    passes: int | None = None
    products: int | None = None
    confidence: float | None = None
    evaluations: int | None = None
    residual: float | None = None
    storage: str | None = None
    components: int | None = None
    largest_component: int | None = None
    removed_mass: float | None = None
    tried_first: GivenUp | None = None
    distinct: int | None = None
    tol: MissedTolerance | None = None
    truncated: int | None = None
    eigenvalues: int | None = None
    seconds: float | None = None
    exact_seconds: float | None = None
    left_out: int | None = None
    caveat: str | None = None
    rank_threshold: float | None = None
    other: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "other", MappingProxyType(dict(self.other)))

    @classmethod
    def of(cls, notes: Mapping[str, Any]) -> Diagnostics:
        """Notes by their names, those of other names in `other`."""
        if isinstance(notes, cls):
            return notes
        known = {name: value for name, value in notes.items() if name in _DIAGNOSED}
        return cls(**known, other={name: value for name, value in notes.items() if name not in known})

    def __getitem__(self, name: str) -> Any:
        value = getattr(self, name) if name in _DIAGNOSED else self.other[name]
        if value is None and name in _DIAGNOSED:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        yield from (name for name in _DIAGNOSED if getattr(self, name) is not None)
        yield from self.other

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Diagnostics({', '.join(f'{name}={value!r}' for name, value in self.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Diagnostics.of, (dict(self),)


_DIAGNOSED = tuple(field.name for field in fields(Diagnostics) if field.name != "other")


class Score(float):
    """A Vendi Score: a float that knows how it came about.

    Arithmetic on it gives plain floats. `bounds` and `level` concern the computation only, the score of *these*
    items; they say nothing of the error of sampling the items from somewhere.

    Attributes
    ----------
    bounds : tuple of float
        (low, high), containing the exact score as far as `level` claims; NaN where it claims nothing.
    level : str
        "deterministic", "probabilistic", "estimated" or "none".
    confidence : float
        The probability with which the bounds hold: 1 for "deterministic", NaN where nothing is claimed.
    q : float
        The order.
    n : int
        How many items: the number of samples, or the sum of the counts.
    method : str
        The solver that was used: "gram" (the d×d matrix of features), "eigh" (the n×n matrix), "components" (connected
        components of a sparse matrix), "trace" or "largest" (no eigensolve, for one order), "batched" (many groups),
        "lowrank" (pivoted Cholesky with a certificate), "lanczos" (quadrature with random probes).
    spectrum : Spectrum or None
        What is known of the eigenvalues.
    diagnostics : Diagnostics
        The kernel with its fitted parameters, why the method was chosen, what was mended, thresholds: attributes, and a
        mapping of those that apply.

    Examples
    --------
    >>> import vendimeter as vm
    >>> score = vm.score([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1]], kernel="precomputed")
    >>> print(f"{score:.4f}")
    2.1573
    >>> score.bounds[0] <= score <= score.bounds[1], score.level
    (True, 'deterministic')
    >>> type(score + 1)
    <class 'float'>
    """

    __slots__ = ("_bounds", "diagnostics", "level", "method", "n", "q", "spectrum")

    _bounds: tuple[float, float] | None
    level: Level
    q: float
    n: int
    method: str
    spectrum: Spectrum | None
    diagnostics: Diagnostics

    def __new__(
        cls,
        value: float,
        *,
        bounds: tuple[float, float] | None,
        level: Level,
        q: float,
        n: int,
        method: str,
        spectrum: Spectrum | None = None,
        diagnostics: Mapping[str, Any] | None = None,
    ) -> Score:
        """Build a score; users get theirs from `vendimeter.score`. Without bounds the spectrum has them."""
        self = super().__new__(cls, value)
        state = {"_bounds": bounds, "level": level, "q": q, "n": n, "method": method, "spectrum": spectrum}
        for name, entry in state.items():
            object.__setattr__(self, name, entry)
        object.__setattr__(self, "diagnostics", Diagnostics.of(diagnostics or {}))
        return self

    @classmethod
    def empty(cls, q: float) -> Score:
        """The score of an empty group: not a number, and no claim."""
        nan = math.nan
        return cls(nan, bounds=(nan, nan), level="none", q=q, n=0, method="empty")

    def noted(self, **notes: Any) -> Score:
        """The same score with more in its diagnostics."""
        return _rebuild(float(self), self._state() | {"diagnostics": {**self.diagnostics, **notes}})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Score cannot be changed (tried to set {name!r})")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (float(self), self._state())

    def _state(self) -> dict[str, Any]:
        return {name.lstrip("_"): getattr(self, name) for name in self.__slots__}

    @property
    def bounds(self) -> tuple[float, float]:
        """(low, high), containing the exact score as far as `level` claims; computed when first asked for."""
        if self._bounds is None:
            assert self.spectrum is not None
            _, low, high = self.spectrum.score(self.q)
            object.__setattr__(self, "_bounds", (low, high))
        return self._bounds  # type: ignore[return-value]

    @property
    def half_width(self) -> float:
        """Half the width of the bounds."""
        return (self.bounds[1] - self.bounds[0]) / 2

    @property
    def confidence(self) -> float:
        """The probability with which the bounds hold: 1 where that is certain, NaN where nothing is claimed."""
        if self.level == "deterministic":
            return 1.0
        return math.nan if self.level == "none" or self.spectrum is None else float(self.spectrum.confidence)

    def summary(self) -> str:
        """The score in a sentence: how many, between what, how sure that is, and how long it took.

        Bounds are rounded outwards, so that what holds for them holds for those that are shown.

        Examples
        --------
        >>> import vendimeter as vm
        >>> vm.score([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1]], kernel="precomputed").summary()
        '2.1573 effectively different items of 3, exact up to rounding (±...
        """
        if math.isnan(self):
            return "no items, and so no score" if self.n == 0 else f"no score of {self.n:,} items"
        claim = self.claim
        order = "" if self.q == 1 else f" (of order {order_name(self.q)})"
        mark = "," if claim.interval is None else ":"
        parts = [f"{effective_items(claim.number, self.n, order)}{mark} {claim.shown()}"]
        notes = self.diagnostics
        if notes.removed_mass:
            parts.append(f"negative eigenvalues of mass {notes.removed_mass:.2g} were left out")
        if notes.left_out:
            parts.append(records_left_out(notes.left_out))
        if notes.seconds is not None:
            parts.append(format_duration(notes.seconds))
        if notes.exact_seconds is not None:
            parts.append(f"exact would take about {format_duration(notes.exact_seconds)}")
        return "; ".join(parts)

    @property
    def claim(self) -> Claim:
        """What is claimed of its error, and how sure that is."""
        low, high = self.bounds
        caveat = None
        error = max(high - self, self - low, 0.0)
        if self.level == "none" or not math.isfinite(low) or not math.isfinite(high):
            kind, caveat, error = "none", self.diagnostics.caveat, math.nan
        elif (
            self.level == "deterministic" and self.method not in BRACKETING and error <= ROUNDING * abs(self)
        ):
            kind = "rounding" if error else "exact"
        elif self.confidence >= 1:
            kind = "certain"
        else:
            kind = "probable" if self.level == "probabilistic" else "estimate"
        if math.isfinite(error):
            error = float(Context(prec=1, rounding=ROUND_CEILING).create_decimal(error))
        return Claim(kind, float(self), low, high, self.confidence, error, caveat)

    def __repr__(self) -> str:
        # A narrow interval is a rounding error; a wide one is part of the answer and shown in full.
        narrow = self.half_width <= 1e-3 * abs(self) or math.isnan(self)
        low, high = map(short_number, self.bounds)
        interval = f" ± {self.half_width:.1g}" if narrow else f" in [{low}, {high}]"
        if self.level == "none" and not math.isnan(self):  # nothing is claimed of it
            interval = ""
        return (
            f"Score({short_number(self)}{interval}, q={order_name(self.q)}, n={self.n}, method={self.method!r}, "
            f"level={self.level!r})"
        )

    def __str__(self) -> str:
        return float.__repr__(self)

    def _repr_html_(self) -> str:
        rows: list[tuple[object, ...]] = [
            (
                f"Vendi Score{order_suffix(self.q, order_name)}",
                short_number(self),
            ),
            ("bounds", "none" if self.level == "none" else f"{format_bounds(self.bounds)} ({self.level})"),
            ("items", self.n),
            ("method", self.method),
        ]
        table = html_table(rows + [(key, value) for key, value in self.diagnostics.items()])
        return f"<p>{html_escaped(self.summary())}</p>{table}"

    def to_dict(self) -> dict[str, Any]:
        """Everything but the eigenvalues, as plain values ready for JSON (a missing number is None)."""
        return {
            "score": plain(float(self)),
            "low": plain(self.bounds[0]),
            "high": plain(self.bounds[1]),
            "level": self.level,
            "q": plain_order(self.q),
            "n": self.n,
            "method": self.method,
            "diagnostics": plain(self.diagnostics),
        }

    def plot(self, ax: Any = None) -> Display:
        """Draw the eigenvalues with the score among them; see `vendimeter.plots.spectrum`."""
        from vendimeter import plots

        return plots.spectrum(self, ax=ax)


def _rebuild(value: float, state: dict[str, Any]) -> Score:
    return Score(value, **state)


class Profile(Mapping[float, Score]):
    """Scores of several orders from one spectrum: how the answer depends on the weight of rare against common.

    A mapping from the order to its `Score`; `profile["inf"]` works too. Iterating gives the orders.

    Examples
    --------
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> profile = vm.profile(np.eye(4), vm.kernels.Precomputed(), q=[0, 1, "inf"])
    >>> profile.scores
    array([4., 4., 4.])
    >>> profile["inf"].q
    inf
    """

    def __init__(self, scores: list[Score]):
        self._scores = {score.q: score for score in scores}

    def __getitem__(self, q: float | str) -> Score:
        order = parse_order(q)
        if order not in self._scores:
            raise unknown("order in this profile", q, map(order_name, self._scores))
        return self._scores[order]

    def __iter__(self) -> Iterator[float]:
        return iter(self._scores)

    def __len__(self) -> int:
        return len(self._scores)

    def noted(self, **notes: Any) -> Profile:
        """The same scores with more in their diagnostics."""
        return Profile([score.noted(**notes) for score in self._scores.values()])

    @property
    def q(self) -> np.ndarray:
        """The orders."""
        return np.array(list(self._scores))

    @property
    def scores(self) -> np.ndarray:
        """The scores, one an order."""
        return np.array([float(score) for score in self._scores.values()])

    def __repr__(self) -> str:
        pairs = ", ".join(f"{order_name(q)}: {short_number(score)}" for q, score in self._scores.items())
        first = next(iter(self._scores.values()))
        return f"Profile({{{pairs}}}, n={first.n}, method={first.method!r}, level={first.level!r})"

    def _columns(self) -> dict[str, list[Any]]:
        scores = list(self._scores.values())
        return {
            "q": [score.q for score in scores],
            "score": [float(score) for score in scores],
            "low": [score.bounds[0] for score in scores],
            "high": [score.bounds[1] for score in scores],
            "level": [score.level for score in scores],
        }

    def _repr_html_(self) -> str:
        rows = [
            (order_name(q), short_number(s), format_bounds(s.bounds), s.level)
            for q, s in self._scores.items()
        ]
        return html_table(rows, ("q", "score", "bounds", "level"))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, one entry an order, ready for JSON."""
        return {"profile": [score.to_dict() for score in self._scores.values()]}

    def to_frame(self) -> Any:
        """A pandas frame with one row an order."""
        return data_frame(self._columns())

    def plot(self, ax: Any = None) -> Display:
        """Draw the scores over their orders; see `vendimeter.plots.profile`."""
        from vendimeter import plots

        return plots.profile(self, ax=ax)


def to_score(solution: Solution, plan: Plan, q: float, n: int, kernel: Any) -> Score:
    """The score of one order from a solution, with what is known of the computation in its diagnostics."""
    spectrum = solution.spectrum
    if isinstance(spectrum, Eigenvalues):
        value, bounds = spectrum.value(q), None
    else:
        value, low, high = spectrum.score(q)
        bounds = (low, high)
    notes: dict[str, Any] = {
        "kernel": repr(kernel),
        "reason": plan.reason,
        **solution.notes,
    }
    if kernel is not None and kernel.caveat is not None:
        notes["caveat"] = kernel.caveat
    if q < 1 and isinstance(spectrum, Eigenvalues):
        notes["rank_threshold"] = spectrum.rank_threshold
    return Score(
        value,
        bounds=bounds,
        level=spectrum.level,
        q=q,
        n=n,
        method=solution.method,
        spectrum=spectrum,
        diagnostics=notes,
    )


def scored(
    similarity: Similarity,
    weights: np.ndarray | None,
    q: float,
    n: int,
    *,
    solver: Solver = DEFAULT_SOLVER,
    rng: int = 0,
) -> Score:
    """Score a similarity at order q as `vendimeter.score` does; `weights` are probabilities, or None if uniform."""
    plan, solution = run(Problem(similarity, weights, [q], solver, rng))
    return to_score(solution, plan, q, n, similarity.kernel)
