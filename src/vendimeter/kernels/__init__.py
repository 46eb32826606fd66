"""Kernels: what makes two items similar.

Each is a small frozen object with parameters and no samples. They combine: ``0.5*a + 0.5*b``, ``a*b``.
"""

from __future__ import annotations

import sys
from typing import Any

from vendimeter.errors import InputError, brief, unknown
from vendimeter.kernels.base import Kernel, On, Product, Sum
from vendimeter.kernels.functions import Embed, FromFunction
from vendimeter.kernels.images import Pixels
from vendimeter.kernels.matrices import FromDistances, Precomputed
from vendimeter.kernels.molecules import MACCS, Morgan, RDKitFingerprint
from vendimeter.kernels.probabilities import ProbabilityProduct
from vendimeter.kernels.random_features import RandomFeatures
from vendimeter.kernels.sequences import Alignment, Edit, KMer
from vendimeter.kernels.sets import Jaccard, Match
from vendimeter.kernels.tags import Tags
from vendimeter.kernels.text import BLEU, NGram
from vendimeter.kernels.vectors import RBF, Cosine, Laplacian, Polynomial

__all__ = [
    "BLEU",
    "MACCS",
    "RBF",
    "Alignment",
    "Cosine",
    "Edit",
    "Embed",
    "FromDistances",
    "FromFunction",
    "Jaccard",
    "KMer",
    "Kernel",
    "Laplacian",
    "Match",
    "Morgan",
    "NGram",
    "On",
    "Pixels",
    "Polynomial",
    "Precomputed",
    "ProbabilityProduct",
    "Product",
    "RDKitFingerprint",
    "RandomFeatures",
    "Sum",
    "Tags",
    "Tanimoto",
    "as_kernel",
    "by_name",
]

Tanimoto = Jaccard

_NAMED: tuple[type[Kernel], ...] = (
    Cosine, RBF, Laplacian, Polynomial, Jaccard, Match, NGram, ProbabilityProduct, Pixels, Precomputed, FromDistances,
    BLEU, KMer, Edit, Alignment, Morgan, RDKitFingerprint, MACCS, Tags,
)  # fmt: skip
# Encoders that can be asked for by name, and stand for the cosine of their vectors; imported when they are.
_ENCODERS = ("sentences", "simcse", "inception", "inception-fid", "dinov2", "clip")


def by_name() -> dict[str, type[Kernel]]:
    """The kernels that can be asked for by name.

    Examples
    --------
    >>> by_name()["match"]
    <class 'vendimeter.kernels.sets.Match'>
    """
    return {kernel.name: kernel for kernel in _NAMED} | {"tanimoto": Jaccard}


def as_kernel(kernel: Any) -> Kernel:
    """A kernel from a name (of a kernel or an encoder), a kernel, or a function k(a, b) of two items.

    Examples
    --------
    >>> as_kernel("match")
    Match()
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        known = by_name()
        if kernel in _ENCODERS:
            from vendimeter import encoders

            return Embed(encoders.by_name()[kernel]())
        if kernel not in known:
            raise unknown("kernel", kernel, [*known, *_ENCODERS])
        return known[kernel]()
    encoders = sys.modules.get("vendimeter.encoders.base")  # who has an encoder has imported it
    if encoders is not None and isinstance(kernel, encoders.Encoder):
        return Embed(kernel)
    if isinstance(kernel, type):
        raise InputError(
            f"kernel is the class {kernel.__name__}; expected an instance: {kernel.__name__}(…)."
        )
    if callable(kernel):
        return FromFunction(kernel)
    raise InputError(
        f"kernel={brief(kernel)}; expected a name, a kernel, or a function k(a, b) of two items.",
        option="kernel",
    )
