"""What tests of pictures share: a backend without windows, and a look for figures that were left open."""

from collections.abc import Iterator
from typing import Any

import matplotlib
import pytest

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.figure import Figure


@pytest.fixture
def ax() -> Any:
    """Axes of a figure that pyplot does not know."""
    return Figure(figsize=(8, 6)).subplots()


@pytest.fixture(autouse=True)
def no_new_figures(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where axes are given no figure is made; where none are, one is, which is closed here."""
    pyplot.close("all")
    yield
    made = len(pyplot.get_fignums())
    pyplot.close("all")
    if "ax" in request.fixturenames:
        assert made == 0
