"""The kernels and encoders that can be asked for by name, and what else stands for a kernel: `as_kernel`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from vendimeter.errors import InputError
from vendimeter.kernels.base import Kernel
from vendimeter.kernels.functions import Embed, FromFunction, is_encoder
from vendimeter.kernels.images import Pixels
from vendimeter.kernels.matrices import FromDistances, Precomputed
from vendimeter.kernels.molecules import MACCS, Morgan, RDKitFingerprint
from vendimeter.kernels.probabilities import ProbabilityProduct
from vendimeter.kernels.sequences import Alignment, Edit, KMer
from vendimeter.kernels.sets import Jaccard, Match
from vendimeter.kernels.tags import Tags
from vendimeter.kernels.text import BLEU, NGram
from vendimeter.kernels.vectors import RBF, Cosine, Laplacian, Polynomial
from vendimeter.messages import brief, unknown

__all__ = ["ENCODERS", "as_kernel", "by_name"]

KERNELS: tuple[type[Kernel], ...] = (
    Cosine, RBF, Laplacian, Polynomial, Jaccard, Match, NGram, ProbabilityProduct, Pixels, Precomputed, FromDistances,
    BLEU, KMer, Edit, Alignment, Morgan, RDKitFingerprint, MACCS, Tags,
)  # fmt: skip
# The names of encoders, which stand for the cosine of their vectors; an encoder is imported when it is asked for.
ENCODERS = ("sentences", "simcse", "inception", "inception-fid", "dinov2", "clip")


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
        kernels = _classes()
        if kernel in ENCODERS:
            from vendimeter import encoders

            return Embed(encoders.by_name()[kernel]())
        if kernel not in kernels:
            raise unknown("kernel", kernel, [*kernels, *ENCODERS])
        return kernels[kernel]()
    if is_encoder(kernel):
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


def by_name() -> dict[str, type[Kernel]]:
    """The kernels that can be asked for by name.

    Examples
    --------
    >>> by_name()["match"]
    <class 'vendimeter.kernels.sets.Match'>
    """
    return dict(_classes())


@functools.cache
def _classes() -> Mapping[str, type[Kernel]]:
    return {kernel.name: kernel for kernel in KERNELS} | {"tanimoto": Jaccard}
