"""What the tests of accumulators share: some rows, an accumulator that has seen them, and all that is in one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vendimeter as vm

X = np.random.default_rng(0).standard_normal((90, 6)) + 0.3


def filled(rows: Any = X, kernel: Any = "cosine", batch: int = 20, **options: Any) -> vm.Accumulator:
    total = vm.Accumulator(kernel, **options)
    for i in range(0, len(rows), batch):
        total.update(rows[i : i + batch])
    return total


def state(total: vm.Accumulator) -> tuple[Any, ...]:
    """Everything that is in it, to the last bit."""
    arrays = [(name, array.dtype.str, array.shape, array.tobytes()) for name, array in total._arrays()]
    return total._header(), arrays


def hashing() -> Any:
    return pytest.importorskip("sklearn.feature_extraction.text").HashingVectorizer(n_features=32)
