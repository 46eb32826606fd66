"""Kernels: parameters that turn samples into a Similarity. They hold no samples; + and * combine them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

from vendimeter.errors import InputError, brief, digits
from vendimeter.kernels.algebra import combine, multiply, multiply_features
from vendimeter.options import as_number
from vendimeter.similarity import Features, Similarity

__all__ = ["Kernel", "Product", "Sum", "named"]


class Kernel(ABC):
    """A similarity function k with k(a, a) = 1.

    A new kernel is a frozen dataclass with a `name` and a method `build`. Kernels add up with coefficients that
    sum to one and multiply: ``0.5*a + 0.5*b``, ``a*b``.
    """

    name: ClassVar[str] = ""

    @abstractmethod
    def build(self, samples: Any, rng: int) -> Similarity:
        """The similarities of these samples; parameters that come from data are fitted here, on all of them."""

    def similarity(self, samples: Any, *, rng: int = 0) -> Similarity:
        """The similarities of these samples; its `kernel` is this one with every parameter fitted and fixed."""
        similarity = self.build(samples, rng)
        return similarity.with_kernel(self) if similarity.kernel is None else similarity

    def fit(self, samples: Any, *, rng: int = 0) -> Kernel:
        """The kernel with the parameters that come from data fixed by these samples.

        Examples
        --------
        >>> import vendimeter as vm
        >>> vm.kernels.RBF("median").fit([[0.0], [3.0], [4.0]])
        RBF(sigma=3.0)
        """
        return self.similarity(samples, rng=rng).kernel

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that this one is made of."""
        return ()

    @property
    def fitted(self) -> bool:
        """Whether no parameter waits for data."""
        return all(part.fitted for part in self.parts)

    @property
    def approximate(self) -> bool:
        """Whether it only stands in for another kernel, so that no bound holds for the score."""
        return any(part.approximate for part in self.parts)

    @property
    def caveat(self) -> str | None:
        """What to know about a score with this kernel, where it is only approximate."""
        return next((part.caveat for part in self.parts if part.caveat is not None), None)

    @property
    def needs_all(self) -> str | None:
        """Why all items are needed at once, and what to do instead; None where `batch_features` will do."""
        if not self.parts:
            return "it does not say that its features mean the same in every batch. Score all items at once"
        return next((part.needs_all for part in self.parts if part.needs_all is not None), None)

    def batch_features(self, samples: Any, *, rng: int = 0) -> Features:
        """Features whose columns mean the same for every batch of samples; only where `needs_all` is None."""
        similarity = self.similarity(samples, rng=rng)
        assert isinstance(similarity, Features)
        return similarity

    def __add__(self, other: Any) -> Sum:
        if not isinstance(other, Kernel):
            return NotImplemented
        return Sum(_terms(self) + _terms(other))

    def __radd__(self, other: Any) -> Kernel:
        return self if other == 0 else NotImplemented  # so that sum(kernels) works

    def __mul__(self, other: Any) -> Kernel:
        if isinstance(other, Kernel):
            return _product(self, other)
        if isinstance(other, Real) and not isinstance(other, bool):
            if not 0 < float(other) < float("inf"):
                raise InputError(
                    f"a kernel was multiplied by {brief(other)}; expected a coefficient above 0."
                )
            return Sum(tuple((float(other) * weight, kernel) for weight, kernel in _terms(self)))
        return NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Kernel:
        number = as_number(other)
        return NotImplemented if math.isnan(number) or number == 0 else self * (1 / number)

    def __pow__(self, power: Any) -> Kernel:
        number = as_number(power)
        if not (1 <= number < math.inf and number == int(number)):
            raise InputError(
                f"a kernel was raised to the power {brief(power)}; expected a whole number from 1 up."
            )
        return math.prod([self] * (int(number) - 1), start=self)  # type: ignore[arg-type, return-value]


@dataclass(frozen=True)
class Sum(Kernel):
    """A weighted mean of kernels; made by ``0.5*a + 0.5*b``.

    Examples
    --------
    >>> from vendimeter.kernels import Match, On
    >>> 0.5 * On("shape", Match()) + 0.5 * On("colour", Match())
    0.5*On('shape', Match()) + 0.5*On('colour', Match())
    """

    terms: tuple[tuple[float, Kernel], ...]
    name: ClassVar[str] = "sum"

    def __repr__(self) -> str:
        return " + ".join(f"{weight:g}*{_bracketed(kernel)}" for weight, kernel in self.terms)

    def _check(self) -> None:
        total = sum(weight for weight, _ in self.terms)
        if abs(total - 1) > 1e-9:
            raise InputError(
                f"the coefficients of {self!r} sum to {digits(total)}; expected 1, so that every item has "
                f"similarity 1 with itself. Multiply the sum by {digits(1 / total)}."
            )

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels of the terms."""
        return tuple(kernel for _, kernel in self.terms)

    def build(self, samples: Any, rng: int) -> Similarity:
        """The weighted mean of the similarities of the parts."""
        return self._combined([kernel.similarity(samples, rng=rng) for _, kernel in self.terms])

    def batch_features(self, samples: Any, *, rng: int = 0) -> Features:
        """The features of the parts, side by side."""
        whole = self._combined([kernel.batch_features(samples, rng=rng) for _, kernel in self.terms])
        assert isinstance(whole, Features)
        return whole

    def _combined(self, parts: Sequence[Similarity]) -> Similarity:
        self._check()
        weights = [weight for weight, _ in self.terms]
        whole = combine(parts, [weight / sum(weights) for weight in weights])
        return whole.with_kernel(
            Sum(tuple((weight, part.kernel) for weight, part in zip(weights, parts, strict=True)))
        )


@dataclass(frozen=True)
class Product(Kernel):
    """A product of kernels; made by ``a*b``: items are similar when they are so under each.

    Examples
    --------
    >>> from vendimeter.kernels import Match, On
    >>> On("shape", Match()) * On("colour", Match())
    On('shape', Match())*On('colour', Match())
    """

    factors: tuple[Kernel, ...]
    name: ClassVar[str] = "product"

    def __repr__(self) -> str:
        return "*".join(_bracketed(kernel) for kernel in self.factors)

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The factors."""
        return self.factors

    def batch_features(self, samples: Any, *, rng: int = 0) -> Features:
        """All products of the factors' columns."""
        parts = [kernel.batch_features(samples, rng=rng) for kernel in self.factors]
        return multiply_features(parts).with_kernel(Product(tuple(part.kernel for part in parts)))

    def build(self, samples: Any, rng: int) -> Similarity:
        """The product of the similarities of the factors."""
        parts = [kernel.similarity(samples, rng=rng) for kernel in self.factors]
        return multiply(parts).with_kernel(Product(tuple(part.kernel for part in parts)))


def named(name: str) -> Kernel:
    """The kernel of this name, for kernels that hold others: all of them are known only when all are loaded."""
    from vendimeter.kernels import as_kernel

    return as_kernel(name)


def _terms(kernel: Kernel) -> tuple[tuple[float, Kernel], ...]:
    return kernel.terms if isinstance(kernel, Sum) else ((1.0, kernel),)


def _factors(kernel: Kernel) -> tuple[Kernel, ...]:
    return kernel.factors if isinstance(kernel, Product) else (kernel,)


def _product(left: Kernel, right: Kernel) -> Kernel:
    """Multiply; a coefficient in front of a single factor moves to the front of the product."""
    weight = 1.0
    factors: tuple[Kernel, ...] = ()
    for kernel in (left, right):
        if isinstance(kernel, Sum) and len(kernel.terms) == 1:
            weight *= kernel.terms[0][0]
            kernel = kernel.terms[0][1]
        factors += _factors(kernel)
    product = Product(factors)
    return product if weight == 1 else Sum(((weight, product),))


def _bracketed(kernel: Kernel) -> str:
    return f"({kernel!r})" if isinstance(kernel, Sum) else repr(kernel)
