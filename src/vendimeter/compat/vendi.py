"""A stand-in for the module `vendi` of vendi-score 0.0.3: the same names and signatures, and errors for bad input.

Write ``from vendimeter.compat import vendi`` for ``from vendi_score import vendi``. Where the original is right the
numbers agree; docs/guides/compat.md lists where they do not. New code is better off with `vendimeter.score`, which has
more options.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import vendimeter as vm
from vendimeter.data.devices import is_foreign, local, to_host
from vendimeter.data.weights import probabilities
from vendimeter.errors import DiagonalError, EmptyError, InputError, MatrixError
from vendimeter.kernels import Cosine, FromFunction, Precomputed, as_kernel
from vendimeter.messages import brief
from vendimeter.options import as_number
from vendimeter.present.numbers import digits
from vendimeter.results.score import Score
from vendimeter.similarity import FeatureRows, Matrix, Similarity
from vendimeter.solvers.sums import power_sum
from vendimeter.spectrum import hill, parse_order

__all__ = [
    "entropy_q",
    "intdiv",
    "intdiv_K",
    "intdiv_X",
    "normalize_K",
    "score",
    "score_K",
    "score_X",
    "score_dual",
    "weight_K",
]


# Options of the core that vendi_score has not, or calls otherwise.
CORE_OPTIONS = ("weights", "counts", "normalize", "symmetrize", "project", "kernel")


@contextmanager
def _explain_core_options() -> Iterator[None]:
    """Add to errors that name an option of the core what it is called here, or where to find it."""
    try:
        yield
    except InputError as error:
        if error.option in CORE_OPTIONS:
            error.add_note(
                "vendimeter.compat has the signatures of vendi_score without kernel: weights are p, and normalize=True "
                "or normalize_K(K) divides by the diagonal. The rest is in vendimeter.score and vendimeter.kernels."
            )
        raise


# ----------------------------------------------------------------------------------------------------- scores


@_explain_core_options()
def score(
    samples: Any, k: Callable[[Any, Any], Any], q: float | str = 1, p: Any = None, normalize: bool = False
) -> Score:
    """The Vendi Score of samples under a similarity function.

    Parameters
    ----------
    samples : sequence
        The items, at least one.
    k : callable
        k(a, b), symmetric; up to 64 items it is called for both orders of each pair, to check that.
    q : float or "inf"
        The order, from 0 up.
    p : array of shape (n,), optional
        Probabilities of the items.
    normalize : bool
        Divide k(a, b) by √(k(a, a) k(b, b)); without it k(a, a) must be 1.

    Examples
    --------
    >>> from vendimeter.compat import vendi
    >>> vendi.score([0, 0, 10, 10, 20, 20], lambda a, b: float(a == b))
    Score(3 ± ..., q=1, n=6, ...)
    """
    return vm.score(
        _to_items(samples), FromFunction(k, normalize=bool(normalize)), q=parse_order(q), weights=p
    )


@_explain_core_options()
def score_K(K: Any, q: float | str = 1, p: Any = None, normalize: bool = False) -> Score:
    """The Vendi Score of a similarity matrix, dense or sparse.

    Parameters
    ----------
    K : array, list of lists or SciPy sparse array, shape (n, n)
        Similarities: symmetric and positive semidefinite, with a diagonal of 1.
    q : float or "inf"
        The order, from 0 up.
    p : array of shape (n,), optional
        Probabilities of the items.
    normalize : bool
        Divide K[i, j] by √(K[i, i] K[j, j]); without it the diagonal must be 1.

    Examples
    --------
    >>> from vendimeter.compat import vendi
    >>> round(vendi.score_K([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]]), 4)
    2.1573
    """
    return vm.score(K, Precomputed(normalize=bool(normalize)), q=parse_order(q), weights=p)


@_explain_core_options()
def score_X(X: Any, q: float | str = 1, p: Any = None, normalize: bool = True) -> Score:
    """The Vendi Score of embeddings under cosine similarity; nothing n×n is built unless n is below d.

    Parameters
    ----------
    X : array, list of lists or SciPy sparse array, shape (n, d)
        One embedding a row.
    q : float or "inf"
        The order, from 0 up.
    p : array of shape (n,), optional
        Probabilities of the items.
    normalize : bool
        Divide rows by their norms; without it they must have norm 1.

    Examples
    --------
    >>> from vendimeter.compat import vendi
    >>> round(vendi.score_X([[1, 0], [0, 1], [0, 2]], q=2), 4)
    1.8
    """
    _feature_rows(X, normalize)
    return vm.score(X, Cosine(), q=parse_order(q), weights=p)


def score_dual(X: Any, q: float | str = 1, normalize: bool = True) -> Score:
    """The same as `score_X` without weights, which chooses the smaller of the two matrices itself.

    Parameters
    ----------
    X : array, list of lists or SciPy sparse array, shape (n, d)
        One embedding a row.
    q : float or "inf"
        The order, from 0 up.
    normalize : bool
        Divide rows by their norms; without it they must have norm 1.

    Examples
    --------
    >>> from vendimeter.compat import vendi
    >>> round(vendi.score_dual([[1, 0], [0, 1], [0, 2]]), 4)
    1.8899
    """
    return score_X(X, q, None, normalize)


# ----------------------------------------------------------------------------------------- internal diversity


@_explain_core_options()
def intdiv(elems: Any, k: Callable[[Any, Any], Any], q: float = 1, p: Any = None) -> float:
    """Internal diversity under a similarity function: 1 − Σ pᵢ pⱼ k(xᵢ, xⱼ)^q over all pairs, i = j included.

    Parameters
    ----------
    elems : sequence
        The items, at least one.
    k : callable
        k(a, b), symmetric, with k(a, a) = 1.
    q : float
        The power of the similarities, above 0. No root is taken, unlike in the IntDivₚ of MOSES.
    p : array of shape (n,), optional
        Probabilities of the items.

    Examples
    --------
    >>> from vendimeter.compat import vendi
    >>> vendi.intdiv(["a", "a", "b", "b"], lambda a, b: float(a == b))
    0.5
    """
    return _internal_diversity(as_kernel(k).similarity(_to_items(elems)), q, p)


@_explain_core_options()
def intdiv_K(K: Any, q: float = 1, p: Any = None) -> float:
    """Internal diversity of a similarity matrix: 1 − Σ pᵢ pⱼ Kᵢⱼ^q over all pairs, i = j included.

    Parameters
    ----------
    K : array, list of lists or SciPy sparse array, shape (n, n)
        Similarities: symmetric, with a diagonal of 1. A mean of similarities does not need them to be positive
        semidefinite.
    q : float
        The power of the similarities, above 0. No root is taken, unlike in the IntDivₚ of MOSES.
    p : array of shape (n,), optional
        Probabilities of the items.

    Examples
    --------
    >>> from vendimeter.compat import vendi
    >>> vendi.intdiv_K([[1.0, 0.5], [0.5, 1.0]])
    0.25
    """
    return _internal_diversity(_square_matrix(K), q, p)


@_explain_core_options()
def intdiv_X(X: Any, q: float = 1, p: Any = None, normalize: bool = True) -> float:
    """Internal diversity of embeddings under cosine similarity; at q = 1 it is 1 − ‖Σ pᵢ xᵢ‖².

    Parameters
    ----------
    X : array, list of lists or SciPy sparse array, shape (n, d)
        One embedding a row.
    q : float
        The power of the similarities, above 0. No root is taken, unlike in the IntDivₚ of MOSES.
    p : array of shape (n,), optional
        Probabilities of the items.
    normalize : bool
        Divide rows by their norms; without it they must have norm 1.

    Examples
    --------
    >>> from vendimeter.compat import vendi
    >>> vendi.intdiv_X([[1, 0], [2, 0], [0, 1], [0, 3]])
    0.5
    """
    return _internal_diversity(_feature_rows(X, normalize), q, p)


# ---------------------------------------------------------------------------------------------------- helpers


@_explain_core_options()
def weight_K(K: Any, p: Any = None) -> Any:
    """K/n, or diag(√p) K diag(√p): the matrix whose eigenvalues the score is made of.

    Parameters
    ----------
    K : array, list of lists or SciPy sparse array, shape (n, n)
        Finite numbers. Whether they are similarities is not checked here, but by the scores.
    p : array of shape (n,), optional
        Probabilities of the items.

    Returns
    -------
    array or sparse array, as K is

    Examples
    --------
    >>> from vendimeter.compat import vendi
    >>> vendi.weight_K([[1.0, 0.5], [0.5, 1.0]], p=[0.25, 0.75]).diagonal()
    array([0.25, 0.75])
    """
    matrix = _square_matrix(K)
    _check_finite(matrix)
    if p is None:
        weighted = matrix.data / matrix.n
    else:
        root = np.sqrt(_weights(p, matrix.n))
        rows = matrix.data.multiply(root[:, None]) if matrix.sparse else matrix.data * root[:, None]
        weighted = rows.multiply(root[None, :]) if matrix.sparse else rows * root
    return type(K)(weighted) if matrix.sparse else weighted


@_explain_core_options()
def normalize_K(K: Any) -> Any:
    """K[i, j] / √(K[i, i] K[j, j]), so that the diagonal is 1.

    Parameters
    ----------
    K : array, list of lists or SciPy sparse array, shape (n, n)
        Symmetric, with a positive diagonal.

    Returns
    -------
    array or sparse array, as K is

    Examples
    --------
    >>> from vendimeter.compat import vendi
    >>> vendi.normalize_K([[4.0, 1.0], [1.0, 1.0]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    matrix = _square_matrix(K, normalize=True).checked()
    return type(K)(matrix.data) if matrix.sparse else matrix.data


@_explain_core_options()
def entropy_q(p: Any, q: float | str = 1) -> float:
    """The Rényi entropy of order q of probabilities; the score is its exponential on the eigenvalues of `weight_K`.

    Parameters
    ----------
    p : array of shape (n,)
        Probabilities, which sum to 1. Negative ones as small as the rounding of an eigensolver count as 0;
        positive ones are taken as they are.
    q : float or "inf"
        The order, from 0 up.

    Examples
    --------
    >>> import math
    >>> from vendimeter.compat import vendi
    >>> math.exp(vendi.entropy_q([0.5, 0.25, 0.25], q="inf"))
    2.0
    """
    order = parse_order(q)
    try:
        values = np.asarray(_to_main_memory(p))
    except ValueError:  # a ragged list
        values = np.array(None)
    if values.dtype.kind not in "buif" or values.ndim != 1:
        raise InputError(
            f"p={brief(p)}; expected probabilities, a list or array of numbers that sum to 1.", option="p"
        )
    if values.size == 0:
        raise EmptyError("p is empty; the diversity of nothing is undefined.")
    if values.dtype.kind == "f":
        noise = max(values.size, 16) * np.finfo(values.dtype).eps
        values = np.where((values < 0) & (values >= -noise), 0, values)
    return float(np.log(hill(_weights(values, len(values)), order)))


# ----------------------------------------------------------------------------------------------------- private


def _to_items(samples: Any) -> np.ndarray | Sequence[Any]:
    """The items as the original passes them to the function: rows of a tensor stay tensors, a text is its letters."""
    if is_foreign(samples):
        return [samples[i, ...] for i in range(samples.shape[0])]
    if not hasattr(samples, "__len__"):
        raise InputError(f"samples is {brief(samples)}; expected a collection of items, such as a list.")
    return samples if isinstance(samples, np.ndarray) else [samples[i] for i in range(len(samples))]


def _to_main_memory(array: Any) -> Any:
    """An array in main memory: what the core does not compute is computed by NumPy, as in the original."""
    return to_host(local(array)) if is_foreign(array) else array


def _square_matrix(K: Any, *, normalize: bool = False) -> Matrix:
    """A square matrix of real numbers, not yet checked any further."""
    similarity = Precomputed(normalize=normalize).similarity(_to_main_memory(K))
    assert isinstance(similarity, Matrix)
    return similarity


def _check_finite(matrix: Matrix) -> None:
    if matrix.sparse:
        entries = matrix.data.tocoo()
        positions = np.column_stack([entries.row, entries.col])[~np.isfinite(entries.data)]
    else:
        positions = np.argwhere(~np.isfinite(matrix.data))
    if len(positions):
        i, j = positions[0]
        raise MatrixError(
            f"K[{i}, {j}] is {matrix.data[i, j]}; expected finite numbers. Remove or mend the item."
        )


def _feature_rows(X: Any, normalize: bool) -> FeatureRows:
    """The rows divided by their norms; without `normalize` they must have norm 1 up to rounding."""
    features = Cosine().similarity(_to_main_memory(X))
    assert isinstance(features, FeatureRows)
    if normalize:
        return features
    rows = features.data
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows has no norm of 1 either
        if features.sparse:
            squares = np.asarray(rows.astype(np.float64).power(2).sum(axis=1)).ravel()
        else:
            squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    # A value that is not finite is left to the kernel, which says where it is.
    wrong_rows = np.flatnonzero(
        (np.abs(squares - 1) > max(_dtype_tolerance(features.dtype), 1e-9)) & ~np.isnan(squares)
    )
    if len(wrong_rows):
        i = int(wrong_rows[0])
        raise DiagonalError(
            f"row {i} has the norm {digits(math.sqrt(squares[i]))}, so that item {i} has the similarity "
            f"{digits(squares[i])} with itself; expected 1. Pass normalize=True to divide rows by their norms.",
            item=i,
            option="normalize",
        )
    return features


def _dtype_tolerance(dtype: np.dtype) -> float:
    """The tolerance for a number of about 1 that was computed in a dtype."""
    return 16 * float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0


def _weights(p: Any, n: int) -> np.ndarray:
    weights, _ = probabilities(p, None, n)
    return np.full(n, 1 / n) if weights is None else weights


def _internal_diversity(similarity: Similarity, q: Any, p: Any) -> float:
    power = as_number(q)
    if not 0 < power < math.inf:
        raise InputError(
            f"q={brief(q)}; expected the power of the similarities, a number above 0.", option="q"
        )
    weights = _weights(p, similarity.n)
    scale, total = power_sum(similarity, weights, weights, power, "q")
    return 1 - scale**power * total
