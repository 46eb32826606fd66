"""Kernels: what makes two items similar.

Each is a small frozen object with parameters and no samples. They combine: ``0.5*a + 0.5*b``, ``a*b``.
"""

from __future__ import annotations

from typing import Any

from vendimeter._messages import brief, unknown
from vendimeter.errors import InputError
from vendimeter.kernels.base import Kernel, Product, Sum
from vendimeter.kernels.columns import On
from vendimeter.kernels.functions import Embed, FromFunction
from vendimeter.kernels.matrices import FromDistances, Precomputed
from vendimeter.kernels.radial import RBF, Laplacian
from vendimeter.kernels.random_features import RandomFeatures
from vendimeter.kernels.sets import Jaccard, Match
from vendimeter.kernels.text import NGram
from vendimeter.kernels.vectors import Cosine, Polynomial, ProbabilityProduct

__all__ = [
    "RBF",
    "Cosine",
    "Embed",
    "FromDistances",
    "FromFunction",
    "Jaccard",
    "Kernel",
    "Laplacian",
    "Match",
    "NGram",
    "On",
    "Polynomial",
    "Precomputed",
    "ProbabilityProduct",
    "Product",
    "RandomFeatures",
    "Sum",
    "Tanimoto",
    "as_kernel",
    "by_name",
]

Tanimoto = Jaccard

_NAMED: tuple[type[Kernel], ...] = (
    Cosine, RBF, Laplacian, Polynomial, Jaccard, Match, NGram, ProbabilityProduct, Precomputed, FromDistances,
)  # fmt: skip


def by_name() -> dict[str, type[Kernel]]:
    """The kernels that can be asked for by name.

    Examples
    --------
    >>> sorted(by_name())[:3]
    ['cosine', 'from-distances', 'jaccard']
    """
    return {kernel.name: kernel for kernel in _NAMED} | {"tanimoto": Jaccard}


def as_kernel(kernel: Any) -> Kernel:
    """A kernel from a name, a kernel, or a function k(a, b) of two items.

    Examples
    --------
    >>> as_kernel("match")
    Match()
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        known = by_name()
        if kernel not in known:
            raise unknown("kernel", kernel, known)
        return known[kernel]()
    if isinstance(kernel, type):
        raise InputError(
            f"kernel is the class {kernel.__name__}; expected an instance: {kernel.__name__}(…)."
        )
    if callable(kernel):
        return FromFunction(kernel)
    raise InputError(
        f"kernel={brief(kernel)}; expected a name, a kernel, or a function k(a, b) of two items."
    )
