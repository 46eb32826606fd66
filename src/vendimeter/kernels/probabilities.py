"""The kernel of class probabilities, as classifiers give them: of one classifier, or of several side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from vendimeter.data.arrays import as_list, as_rows, is_sparse, unwrapped
from vendimeter.data.devices import is_foreign, is_real, namespace, numpy_dtype, to_host
from vendimeter.errors import InputError
from vendimeter.kernels.base import Kernel, multiply, multiply_features
from vendimeter.messages import brief, shape_of
from vendimeter.present.numbers import digits
from vendimeter.similarity import FeatureRows, Features, Similarity
from vendimeter.spectrum import UNIT

__all__ = ["ProbabilityProduct", "channels_of"]

KERNEL = "the probability-product kernel"
INSTEAD = "For logits use ProbabilityProduct(logits=True)."


@dataclass(frozen=True)
class ProbabilityProduct(Kernel):
    """Product kernel of class probabilities: k(p, p′) = Σ_c √(p_c p′_c), the Bhattacharyya coefficient.

    Rows are probabilities over classes, as a classifier gives them. A row whose sum is 1 up to rounding is divided by
    its sum; any other is an error.

    An array of shape (items, channels, classes) holds the answers of several classifiers that look at different parts
    of an item, such as the three digits of Stacked MNIST: the distribution of an item is their product, over
    classes**channels joint classes, and its kernel is the product of the kernels of the channels. The joint classes
    are written out only where there are fewer of them than items.

    Parameters
    ----------
    logits : bool
        Whether the numbers are logits, whose softmax the probabilities are. A logit of −∞ is a probability of 0.

    References
    ----------
    Jebara, Kondor, Howard: Probability product kernels, JMLR 2004, with ρ = 1/2.

    Examples
    --------
    >>> import vendimeter as vm
    >>> from vendimeter.kernels import ProbabilityProduct
    >>> round(vm.score([[1, 0], [0, 1], [0.5, 0.5]], ProbabilityProduct()), 4)
    1.8899
    >>> round(vm.score([[9.0, -9.0], [-9.0, 9.0]], ProbabilityProduct(logits=True)), 4)
    2.0
    >>> round(vm.score([[[1, 0], [1, 0]], [[1, 0], [0, 1]], [[0, 1], [1, 0]]], ProbabilityProduct()), 4)
    3.0
    """

    logits: bool = False
    name: ClassVar[str] = "probability-product"

    def __post_init__(self) -> None:
        if not isinstance(self.logits, bool | np.bool_):
            raise InputError(
                f"ProbabilityProduct(logits={brief(self.logits)}); expected True or False. Samples go into "
                "vm.score(samples, ProbabilityProduct())."
            )
        object.__setattr__(self, "logits", bool(self.logits))

    def __repr__(self) -> str:
        return f"ProbabilityProduct({'logits=True' if self.logits else ''})"

    @property
    def needs_all(self) -> None:
        """Nothing: features of different batches add up."""
        return None

    def build(self, samples: Any, rng: int) -> Similarity:
        """Features, the square roots of the probabilities; of many joint classes blocks, where those are smaller."""
        return multiply(channels_of(samples, logits=self.logits))

    def batch_features(self, samples: Any, *, rng: int = 0) -> Features:
        """The square roots of the probabilities, of all joint classes."""
        return multiply_features(channels_of(samples, logits=self.logits)).with_kernel(self)


def channels_of(
    samples: Any, *, logits: bool, reader: str = KERNEL, instead: str = INSTEAD
) -> Sequence[FeatureRows]:
    """The square roots of the class probabilities of each classifier.

    Parameters
    ----------
    samples : Any
        Rows of probabilities, of shape (items, classes) or (items, channels, classes).
    logits : bool
        Whether the numbers are logits.
    reader, instead : str
        What asks for them, and what to do with logits that were taken for probabilities; for messages.
    """
    stack = _as_stack(samples, reader)
    if stack is None:
        return [_root_features(as_rows(samples, kernel=reader, dense=logits), logits, instead)]
    if 0 in stack.shape[1:]:
        raise InputError(
            f"samples has shape {shape_of(stack.shape)}; {reader} expected at least one channel and one class."
        )
    channels = int(stack.shape[1])
    return [
        _root_features(stack[:, c, :], logits, instead, f" in channel {c}" if channels > 1 else "")
        for c in range(channels)
    ]


def _root_features(rows: Any, logits: bool, instead: str, where: str = "") -> FeatureRows:
    width = int(rows.shape[1])
    if logits:
        # An exponential is off by the rounding of its argument, at most 1/e of a unit of the largest class.
        return FeatureRows(rows, _Softmax(where), rounding=(width + 12) * UNIT)
    dtype = numpy_dtype(rows)
    single = dtype.kind == "f" and dtype.itemsize < 8
    tolerance = 4 * float(np.finfo(dtype).eps) if single else 0.0
    return FeatureRows(rows, _Roots(max(tolerance, 1e-6), where, instead), rounding=(width / 2 + 4) * UNIT)


def _as_stack(samples: Any, reader: str) -> Any:
    """Samples of shape (items, channels, classes) as an array, where that is what they are; else None."""
    items = samples if isinstance(samples, str) else as_list(samples, kernel=reader)
    items = _to_lists(items)
    if isinstance(items, list | tuple):
        items = unwrapped(items)
        if not is_foreign(items):
            try:
                items = np.asarray(items)
            except ValueError:  # ragged: what is wrong with it is said where rows are made
                return None
    if is_sparse(items) or isinstance(items, str) or not is_real(items) or items.ndim < 3:
        return None
    if items.ndim > 3:
        raise InputError(
            f"samples has shape {shape_of(items.shape)}; {reader} expected (items, classes), or (items, channels, "
            "classes) for several classifiers. Reshape it to one of these, with the classes last."
        )
    return items


def _to_lists(value: Any) -> Any:
    """Arrays of objects as lists, at every level: so the columns of frames hold lists of lists."""
    is_object_array = isinstance(value, np.ndarray) and value.dtype == object
    return [_to_lists(part) for part in value] if is_object_array else value


@dataclass(frozen=True)
class _Roots:
    """Rows of probabilities → their square roots, each row summing to 1 first."""

    tolerance: float
    where: str
    instead: str

    def __call__(self, rows: Any, positions: np.ndarray) -> Any:
        values = rows.data if is_sparse(rows) else rows
        xp = namespace(values)
        bad = ~xp.isfinite(values) | (values < 0)
        if bool(xp.any(bad)):
            bad, values = to_host(bad), to_host(values)
            row = (
                np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))[bad][0]
                if is_sparse(rows)
                else np.argwhere(bad)[0][0]
            )
            value = float(values[bad][0])
            raise InputError(
                f"item {positions[row]} holds the probability {value:.6g}{self.where}; expected numbers from 0 to 1. "
                + (self.instead if math.isfinite(value) else "Remove or fill it."),
                item=positions[row],
            )
        with np.errstate(over="ignore"):  # a sum that overflows is not 1, and said so
            sums = np.asarray(rows.sum(axis=1)).ravel() if is_sparse(rows) else xp.sum(rows, axis=1)
        deviations = xp.abs(sums - 1)
        if float(xp.max(deviations)) > self.tolerance:
            worst = int(xp.argmax(deviations))
            raise InputError(
                f"the probabilities of item {positions[worst]}{self.where} sum to {digits(sums[worst])}; expected 1 "
                f"in each row. Pass the probabilities of all classes, divided by their sum. {self.instead}",
                item=positions[worst],
            )
        if is_sparse(rows):
            rows.data[:] = np.sqrt(rows.data / np.repeat(sums, np.diff(rows.indptr)))
            return rows
        if isinstance(rows, np.ndarray):
            rows /= sums[:, None]
            return np.sqrt(rows, out=rows)
        return xp.sqrt(rows / sums[:, None])


@dataclass(frozen=True)
class _Softmax:
    """Rows of logits → the square roots of their softmax."""

    where: str

    def __call__(self, rows: Any, positions: np.ndarray) -> Any:
        xp = namespace(rows)
        largest = xp.max(rows, axis=1, keepdims=True)  # NaN where the row has one
        if not bool(xp.all(xp.isfinite(largest))):
            peaks = to_host(largest)[:, 0]
            i = int(np.flatnonzero(~np.isfinite(peaks))[0])
            reason = (
                f"has only logits of −∞{self.where}"
                if peaks[i] < 0
                else f"holds the logit {peaks[i]}{self.where}"
            )
            raise InputError(
                f"item {positions[i]} {reason}; expected finite numbers, or −∞ for classes that are ruled out. Remove "
                "or fill it.",
                item=positions[i],
            )
        # The square root of a softmax is a vector of norm 1 along exp(x/2). A difference of logits may overflow, one
        # of their halves may not.
        if isinstance(rows, np.ndarray):
            rows /= 2
            rows -= largest / 2
            np.exp(rows, out=rows)
            rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
            return rows
        halves = xp.exp(rows / 2 - largest / 2)
        return halves / xp.sqrt(xp.sum(halves * halves, axis=1, keepdims=True))
