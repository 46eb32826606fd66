"""Kernels of the user's own: a matrix, distances, a function, an encoder, a column of a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from vendimeter import _tables
from vendimeter._arrays import as_list, csr, is_sparse, is_table, length, refuse_masked, take
from vendimeter._matrix_checks import Policy
from vendimeter._messages import brief, digits, shape_of
from vendimeter._options import whole_number
from vendimeter.errors import EmptyError, InputError
from vendimeter.kernels.base import Kernel
from vendimeter.kernels.vectors import Cosine, check_scale
from vendimeter.similarity import Matrix, Pairwise, Similarity, row_keys
from vendimeter.spectrum import UNIT

__all__ = ["Embed", "FromDistances", "FromFunction", "On", "Precomputed"]


def _square(samples: Any, what: str) -> Any:
    """A square matrix of real numbers, dense (not copied) or CSR."""
    refuse_masked(samples, f"the matrix of {what}")
    matrix = _tables.matrix(samples) if is_table(samples) else samples
    if not is_sparse(matrix):
        try:
            matrix = np.asarray(matrix)
        except ValueError:
            raise InputError(f"the {what} are a ragged list; expected a square matrix.") from None
    if len(matrix.shape) > 0 and matrix.shape[0] == 0:
        raise EmptyError(f"there are no {what}; the diversity of nothing is undefined.")
    if matrix.dtype.kind not in "buif":
        raise InputError(
            f"the {what} are {brief(samples)} of dtype {matrix.dtype}; expected a square matrix of real "
            "numbers."
        )
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(
            f"the {what} have shape {shape_of(matrix.shape)}; expected a square matrix, one row and column "
            "an item."
        )
    return csr(matrix) if is_sparse(matrix) else matrix


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The samples are the similarity matrix K itself, dense or sparse.

    K must be symmetric, positive semidefinite and have a diagonal of 1, up to rounding. What is not is an error that
    says where and by how much; the options mend it.

    Parameters
    ----------
    normalize : bool
        Divide K[i, j] by √(K[i, i] K[j, j]).
    symmetrize : bool
        Take the mean of K and its transpose.
    project : bool
        Drop negative eigenvalues (project onto the positive semidefinite cone); the removed mass is recorded in
        the diagnostics of the score.

    Examples
    --------
    >>> import vendimeter as vm
    >>> K = [[2.0, 1.0], [1.0, 2.0]]
    >>> round(vm.score(K, vm.kernels.Precomputed(normalize=True)), 4)
    1.7548
    """

    normalize: bool = False
    symmetrize: bool = False
    project: bool = False
    name: ClassVar[str] = "precomputed"

    def build(self, samples: Any, rng: int) -> Matrix:
        """The matrix, to be checked before it is used."""
        return Matrix(
            _square(samples, "similarities"), policy=Policy(self.normalize, self.symmetrize, self.project)
        )


@dataclass(frozen=True)
class FromDistances(Kernel):
    """Similarities from a matrix of distances.

    Parameters
    ----------
    scale : float or "median"
        The distance s that sets what is near; ``"median"``, the default, takes the median distance between
        distinct items.
    form : "exponential", "gaussian" or "linear"
        exp(−d/s), exp(−d²/2s²) or 1 − d/s. Whether the result is positive semidefinite depends on the distances and is
        checked; for Euclidean distances the first two always are.
    project : bool
        Drop negative eigenvalues instead of raising; the removed mass is recorded.

    Examples
    --------
    >>> import vendimeter as vm
    >>> D = [[0, 100], [100, 0]]
    >>> round(vm.score(D, vm.kernels.FromDistances(scale=1.0)), 4)
    2.0
    """

    scale: float | Literal["median"] = "median"
    form: Literal["exponential", "gaussian", "linear"] = "exponential"
    project: bool = False
    name: ClassVar[str] = "from-distances"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", check_scale(self.scale, "scale"))
        if self.form not in ("exponential", "gaussian", "linear"):
            raise InputError(f"form={brief(self.form)}; expected 'exponential', 'gaussian' or 'linear'.")

    def _distances(self, samples: Any) -> tuple[np.ndarray, float]:
        """Distances from 0 up with a diagonal of 0, and how far they were off by rounding."""
        given = _square(samples, "distances")
        if is_sparse(given):
            raise InputError(
                "the distances are sparse, so that missing ones would count as 0; pass a dense matrix."
            )
        distances = np.array(given, dtype=np.float64)
        if np.isnan(distances).any():
            i, j = np.argwhere(np.isnan(distances))[0]
            raise InputError(f"the distance [{i}, {j}] is nan; expected a number from 0 up.")
        # Distances such as √(2 − 2 cos) lose half of their digits near 0.
        precision = float(np.finfo(given.dtype).eps) if given.dtype.kind == "f" else 0.0
        tolerance = 4 * math.sqrt(precision) * np.abs(distances[np.isfinite(distances)]).max(initial=0.0)
        i, j = np.unravel_index(distances.argmin(), distances.shape)
        if distances[i, j] < -tolerance:
            raise InputError(
                f"the distance [{i}, {j}] is {digits(distances[i, j])}; expected a number from 0 up."
            )
        own = np.abs(np.diagonal(distances))
        i = int(own.argmax())
        if own[i] > tolerance:
            raise InputError(
                f"the distance of item {i} from itself is {digits(own[i])}; expected 0. If these are "
                "similarities, use kernel='precomputed'."
            )
        off = max(float(own[i]), -float(distances.min()), 0.0)
        np.maximum(distances, 0.0, out=distances)
        np.fill_diagonal(distances, 0.0)
        return distances, off

    @property
    def fitted(self) -> bool:
        """Whether the scale is a number."""
        return self.scale != "median"

    def build(self, samples: Any, rng: int) -> Matrix:
        """The matrix of similarities, to be checked before it is used."""
        distances, off = self._distances(samples)
        if self.scale == "median":
            apart = distances[np.isfinite(distances) & (distances > 0)]
            fitted = replace(self, scale=float(np.median(apart)) if apart.size else 1.0)
            return fitted.similarity(samples)  # type: ignore[return-value]
        ratio = distances / float(self.scale)
        forms: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
            "exponential": ("exp(−D/scale)", lambda x: np.exp(-x)),
            "gaussian": ("exp(−D²/2scale²)", lambda x: np.exp(-0.5 * x**2)),
            "linear": ("1 − D/scale", lambda x: 1 - x),
        }
        what, form = forms[self.form]
        with np.errstate(over="ignore"):
            similarities = form(ratio)
        return Matrix(
            similarities,
            policy=Policy(project=self.project),
            rounding=4 * UNIT + off / float(self.scale),
            what=f"({what})",
        )


@dataclass(frozen=True)
class FromFunction(Kernel):
    """A similarity function of the user's own.

    Parameters
    ----------
    function : callable
        k(a, b) → number for two items; or with ``block=True``, k(A, B) → array of shape (len(A), len(B)) for two
        collections of items (arrays if the samples are an array, lists otherwise).
    block : bool
        Whether `function` compares collections rather than two items.
    normalize, symmetrize, project : bool
        As for `Precomputed`. With ``symmetrize=True`` the function is called for both orders of each pair.

    Notes
    -----
    Up to 64 items a function is called for both orders of each pair, and its symmetry checked on all of them. Beyond
    that it is called once a pair, n(n+1)/2 times, and its symmetry checked on 1,024 pairs drawn at random. Items that
    are equal (texts, whole numbers, rows of an array) are taken as identical and compared once.

    Examples
    --------
    >>> import math
    >>> import vendimeter as vm
    >>> round(vm.score([0, 0, 10, 10, 20, 20], vm.kernels.FromFunction(lambda a, b: math.exp(-abs(a - b)))), 6)
    3.0
    """

    function: Callable[[Any, Any], Any]
    block: bool = False
    normalize: bool = False
    symmetrize: bool = False
    project: bool = False
    name: ClassVar[str] = "from-function"

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"FromFunction got {brief(self.function)}; expected a function k(a, b).")

    def __repr__(self) -> str:
        called = getattr(self.function, "__qualname__", type(self.function).__name__)
        flags = [flag for flag in ("block", "normalize", "symmetrize", "project") if getattr(self, flag)]
        return f"FromFunction({', '.join([called, *(f'{flag}=True' for flag in flags)])})"

    def build(self, samples: Any, rng: int) -> Pairwise:
        """Blocks of calls of the function."""
        items = _items(samples, "the function")
        policy = Policy(self.normalize, self.symmetrize, self.project)
        evaluate = self._blocks if self.block else self._pairs

        def block(rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
            return evaluate(items, rows, cols)

        def triangle(places: np.ndarray) -> np.ndarray:
            return self._pairs(items, places, places, half=True)

        def keys(index: np.ndarray) -> list[Hashable] | None:
            return _hashable(take(items, index))

        return Pairwise(
            length(items),
            block,
            trusted=False,
            policy=policy,
            keys=keys,
            triangle=None if self.block else triangle,
        )

    def _blocks(self, items: Any, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        given = self.function(take(items, rows), take(items, cols))
        try:
            part = np.asarray(given)
        except ValueError:  # a ragged list
            part = np.array(None)
        if part.shape != (len(rows), len(cols)) or part.dtype.kind not in "buif":
            raise InputError(
                f"the block function returned {part.dtype} of shape {part.shape} for {len(rows)} and "
                f"{len(cols)} items; expected numbers of shape {(len(rows), len(cols))}. For a function of "
                "two items leave block=True away."
            )
        return part.astype(np.float64)

    def _pairs(self, items: Any, rows: np.ndarray, cols: np.ndarray, *, half: bool = False) -> np.ndarray:
        left, right = take(items, rows), take(items, cols)
        part = np.zeros((len(rows), len(cols)))
        for a, i in enumerate(rows.tolist()):
            for b in range(a if half else 0, len(cols)):
                part[a, b] = self._call(left[a], right[b], i, int(cols[b]))
        return part

    def _call(self, a: Any, b: Any, i: int, j: int) -> float:
        value = self.function(a, b)
        try:
            return float(value)
        except (TypeError, ValueError):
            raise InputError(
                f"the function returned {brief(value)} for items {i} and {j}; expected a number. For a "
                "function of whole blocks use vendimeter.kernels.FromFunction(f, block=True)."
            ) from None


def _hashable(items: Any) -> list[Hashable] | None:
    if isinstance(items, np.ndarray) and items.dtype != object:
        return row_keys(items)
    # Only values that are equal exactly when they look equal; 1 == 1.0 == True would merge what a function tells apart.
    return (
        [(type(item), item) for item in items]
        if all(isinstance(item, str | bytes | int) for item in items)
        else None
    )


def _items(samples: Any, kernel: str) -> Any:
    """Items for a user's function: rows of a table are records."""
    return _tables.records(samples) if _tables.has_columns(samples) else as_list(samples, kernel=kernel)


def _vectors(given: Any) -> Any:
    """What an encoder gave, as an array."""
    if is_sparse(given):
        return given
    try:
        vectors = np.asarray(given)
    except ValueError:
        vectors = np.array(None)
    if vectors.dtype == object or vectors.ndim == 0:
        raise InputError(
            f"the encoder gave {brief(given)}; expected an array with one vector of numbers a sample."
        )
    return vectors


@dataclass(frozen=True)
class Embed(Kernel):
    """An encoder in front of a kernel of vectors.

    Parameters
    ----------
    encoder : callable
        A list (or array) of samples → one vector a sample, as an array.
    kernel : Kernel
        What compares the vectors; cosine by default.
    batch_size : int, optional
        Encode this many samples at a time; all at once by default.

    Examples
    --------
    >>> import vendimeter as vm
    >>> def encoder(words):
    ...     return [[word.count(letter) for letter in "ab"] for word in words]
    >>> round(vm.score(["aa", "ab", "bb"], vm.kernels.Embed(encoder)), 4)
    1.8899
    """

    encoder: Callable[[Any], Any]
    kernel: Kernel = field(default_factory=Cosine)
    batch_size: int | None = None
    name: ClassVar[str] = "embed"

    def __post_init__(self) -> None:
        if not callable(self.encoder):
            raise InputError(f"Embed got {brief(self.encoder)}; expected a function from samples to vectors.")
        if not isinstance(self.kernel, Kernel):
            raise InputError(
                f"Embed got the kernel {brief(self.kernel)}; expected one such as Cosine() or RBF()."
            )
        if self.batch_size is not None:
            object.__setattr__(self, "batch_size", whole_number(self.batch_size, "batch_size"))

    def __repr__(self) -> str:
        called = getattr(self.encoder, "__qualname__", type(self.encoder).__name__)
        return f"Embed({called}, {self.kernel!r})"

    def _encode(self, samples: Any) -> Any:
        items = _items(samples, "the encoder")
        count = length(items)
        step = self.batch_size or count
        parts = [_vectors(self.encoder(take(items, slice(i, i + step)))) for i in range(0, count, step)]
        widths = {part.shape[1:] for part in parts}
        if len(widths) > 1:
            shapes = ", ".join(sorted(shape_of(width) for width in widths))
            raise InputError(f"the encoder gave vectors of shapes {shapes}; expected one shape.")
        if all(is_sparse(part) for part in parts):
            from scipy import sparse

            vectors: Any = sparse.csr_array(sparse.vstack(parts, format="csr"))
        else:
            vectors = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if len(vectors.shape) < 1 or vectors.shape[0] != count:
            raise InputError(
                f"the encoder gave an array of shape {shape_of(vectors.shape)} for {count} samples; "
                "expected one vector a sample."
            )
        return vectors

    def build(self, samples: Any, rng: int) -> Similarity:
        """Encode, then compare."""
        similarity = self.kernel.similarity(self._encode(samples), rng=rng)
        similarity.kernel = replace(self, kernel=similarity.kernel)
        return similarity

    @property
    def fitted(self) -> bool:
        """Whether the kernel behind the encoder waits for no data."""
        return self.kernel.fitted


@dataclass(frozen=True)
class On(Kernel):
    """A kernel on one column of a table: ``On("colour", Match())``.

    Samples are a pandas, polars or Arrow table, a dict of columns, or a list of records.

    Examples
    --------
    >>> import vendimeter as vm
    >>> from vendimeter.kernels import Match, On
    >>> table = {"shape": ["disc", "disc", "star", "star"], "colour": ["red", "blue", "red", "blue"]}
    >>> round(vm.score(table, 0.5 * On("shape", Match()) + 0.5 * On("colour", Match())), 4)
    2.8284
    """

    column: Hashable
    kernel: Kernel
    name: ClassVar[str] = "on"

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise InputError(
                f"On({brief(self.column)}, …) got {brief(self.kernel)}; expected a kernel such as Match()."
            )

    def __repr__(self) -> str:
        return f"On({self.column!r}, {self.kernel!r})"

    @property
    def fitted(self) -> bool:
        """Whether the kernel of the column waits for no data."""
        return self.kernel.fitted

    def build(self, samples: Any, rng: int) -> Similarity:
        """The similarities of the column."""
        similarity = self.kernel.similarity(_tables.column(samples, self.column), rng=rng)
        similarity.kernel = replace(self, kernel=similarity.kernel)
        return similarity
