"""Finite features that stand in for a kernel with infinitely many: random Fourier features."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from vendimeter._arrays import as_rows
from vendimeter._devices import concat, move, namespace, to_host
from vendimeter._messages import brief
from vendimeter._options import check_rng, whole_number
from vendimeter.errors import InputError
from vendimeter.kernels.base import Kernel
from vendimeter.kernels.radial import RBF, Laplacian
from vendimeter.kernels.vectors import not_finite
from vendimeter.similarity import Features
from vendimeter.spectrum import UNIT

__all__ = ["RandomFeatures"]


@dataclass(frozen=True)
class RandomFeatures(Kernel):
    """Random Fourier features of the RBF or Laplacian kernel: for data beyond storage, and no bound on the score.

    Each frequency gives a pair of features, cos(ω·x) and sin(ω·x), so that every item has similarity 1 with itself.
    Their inner product is the kernel up to an error of about 1/√features.

    The score is biased low, because the noise of each similarity adds up over all of them: with 2,000 points from a
    normal distribution in 8 dimensions, RBF(2) scores 71.3, and with 256, 1024, 2048 and 8192 random features 43, 61,
    66 and 69. So double `features` until the score stays; 30 times as many as the score came within 10 % there. Scores
    have level "none" and no bounds. A sum of them takes 8·features² bytes.

    Parameters
    ----------
    kernel : RBF or Laplacian
        The kernel to stand in for. A median scale is fitted on the samples; for batches it must be fixed before, with
        ``kernel.fit(sample)``.
    features : int
        How many, an even number.
    seed : int
        Of the frequencies. Only features of one seed can be compared or merged.

    References
    ----------
    Rahimi and Recht: Random features for large-scale kernel machines, NeurIPS 2007. Sutherland and Schneider: On the
    error of random Fourier features, UAI 2015 (why pairs).

    Examples
    --------
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> from vendimeter.kernels import RBF, RandomFeatures
    >>> points = np.repeat([[0.0], [50.0], [100.0]], 10, axis=0)
    >>> vm.score(points, RandomFeatures(RBF(1.0), features=4096)).level
    'none'
    >>> round(vm.score(points, RandomFeatures(RBF(1.0), features=4096)), 1)
    3.0
    """

    kernel: RBF | Laplacian
    features: int = 2048
    seed: int = 0
    name: ClassVar[str] = "random-features"

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, RBF | Laplacian):
            raise InputError(
                f"RandomFeatures got {brief(self.kernel)}; expected an RBF or Laplacian kernel to stand in for."
            )
        count = whole_number(self.features, "features")
        if count % 2:
            raise InputError(f"features={count}; expected an even number: they come in pairs.")
        object.__setattr__(self, "features", count)
        object.__setattr__(self, "seed", check_rng(self.seed, "seed"))

    @property
    def fitted(self) -> bool:
        """Whether the scale of the kernel is a number."""
        return self.kernel.fitted

    @property
    def approximate(self) -> bool:
        """It stands in for another kernel."""
        return True

    @property
    def caveat(self) -> str:
        """Why there are no bounds."""
        return (
            f"{self.features} random features stand in for {self.kernel!r}, and the score is biased low: double them "
            "until it stays"
        )

    @property
    def needs_all(self) -> str | None:
        """Nothing, once the scale is known."""
        if self.fitted:
            return None
        return "its scale is the median over all items. Fix it on a sample first: kernel = kernel.fit(sample)"

    def build(self, samples: Any, rng: int) -> Features:
        """Features: cosines and sines of random projections."""
        rows = as_rows(samples, kernel="the random-features kernel", scalars=True, dense=True)
        if not self.fitted:
            return replace(self, kernel=self.kernel.fit(rows, rng=rng)).batch_features(rows)  # type: ignore[arg-type]
        waves = _Waves(self.kernel, self.features // 2, self.seed, int(rows.shape[1]))
        return Features(rows, waves, width=self.features, rounding=(rows.shape[1] + 8) * UNIT)


@dataclass(frozen=True)
class _Waves:
    """Rows → cos(ω·x) and sin(ω·x) for random frequencies ω, scaled to norm 1."""

    kernel: RBF | Laplacian
    pairs: int
    seed: int
    width: int

    def __call__(self, rows: Any, positions: np.ndarray) -> Any:
        xp = namespace(rows)
        with np.errstate(invalid="ignore", over="ignore"):
            angles = rows @ move(_frequencies(self), rows)
        finite = xp.isfinite(angles)
        if not bool(xp.all(finite)):
            i = int(xp.nonzero(~finite)[0][0])
            row = to_host(rows[i, :])
            if np.isfinite(row).all():
                raise InputError(
                    f"item {positions[i]} holds values too large beside the scale of the kernel; expected a larger "
                    "scale, or rescaled data."
                )
            raise not_finite(row, int(positions[i]))
        scale = 1 / math.sqrt(self.pairs)
        return concat([xp.cos(angles) * scale, xp.sin(angles) * scale], axis=1)


@functools.lru_cache(maxsize=4)  # one batch after another asks for the same
def _frequencies(waves: _Waves) -> np.ndarray:
    # The kernel is the Fourier transform of their distribution: normal for RBF, Cauchy for Laplacian.
    rng = np.random.default_rng(waves.seed)
    if isinstance(waves.kernel, RBF):
        return rng.standard_normal((waves.width, waves.pairs)) / float(waves.kernel.sigma)
    return rng.standard_cauchy((waves.width, waves.pairs)) / float(waves.kernel.scale)
