"""Kernels: what makes two items similar.

Each is a small frozen object with parameters and no samples. They combine: ``0.5*a + 0.5*b``, ``a*b``.
"""

from __future__ import annotations

from vendimeter.kernels.base import Kernel, On, Product, Sum
from vendimeter.kernels.functions import Embed, FromFunction
from vendimeter.kernels.images import Pixels
from vendimeter.kernels.matrices import FromDistances, Precomputed
from vendimeter.kernels.molecules import MACCS, Morgan, RDKitFingerprint
from vendimeter.kernels.probabilities import ProbabilityProduct
from vendimeter.kernels.random_features import RandomFeatures
from vendimeter.kernels.registry import as_kernel, by_name
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
