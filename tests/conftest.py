"""What all tests share: a hypothesis profile with the same examples on every run, array libraries, the data folder."""

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from array_libraries import Library
from places import SHARED_DATA
from vendimeter.data import devices

# The same examples on every run, so that a failure in CI is a failure here; and no deadline, because the machines that
# run the tests differ in speed.
settings.register_profile(
    "stable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("stable")

os.environ.setdefault("MPLBACKEND", "Agg")  # pictures without windows


def pytest_addoption(parser: pytest.Parser) -> None:
    """The one way to refresh what is kept in tests/golden: look at what changed before it is committed."""
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data that lies beside the repository; tests that need it are skipped where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip(
            "the folder ../shared/data is not there; it holds real data and is not part of the repository"
        )
    return SHARED_DATA


@pytest.fixture(scope="session", autouse=True)
def vectors_apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Encoders that are not told where to keep vectors keep them here, and not with those of who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VENDIMETER_CACHE", str(tmp_path_factory.mktemp("vectors")))
        yield


# On a machine with a GPU, VENDIMETER_TEST_GPU=1 runs the same bodies there instead.
ON_GPU = bool(os.environ.get("VENDIMETER_TEST_GPU"))
LIBRARIES = ["numpy", "strict", "torch shared", "torch own", "jax shared", "jax own"]


@pytest.fixture(params=["torch cuda", "cupy cuda", "jax cuda"] if ON_GPU else LIBRARIES)
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """Every library, those of the CPU also as if their memory were a device's."""
    name, _, how = request.param.partition(" ")
    monkeypatch.setattr(devices, "SHARE_HOST", how != "own")
    with ExitStack() as stack:
        if name == "numpy":
            make: Callable[[Any], Any] = np.asarray
        elif name == "strict":
            make = pytest.importorskip("array_api_strict").asarray
        elif name == "torch":
            tensor = pytest.importorskip("torch").tensor
            make = functools.partial(tensor, device="cuda") if how == "cuda" else tensor
        elif name == "cupy":
            make = pytest.importorskip("cupy").asarray
        else:
            jax = pytest.importorskip("jax")
            stack.enter_context(jax.enable_x64(True))
            make = jax.numpy.asarray
        yield Library(request.param, make)


@pytest.fixture
def ax() -> Any:
    """Axes of a figure that pyplot does not know."""
    from matplotlib.figure import Figure

    return Figure(figsize=(8, 6)).subplots()


@pytest.fixture(autouse=True)
def no_new_figures(request: pytest.FixtureRequest) -> Iterator[None]:
    """Of pictures: where axes are given no figure is made; where none are, one is, which is closed here."""
    if request.path.parent.name != "plots":
        yield
        return
    from matplotlib import pyplot

    pyplot.close("all")
    yield
    made = len(pyplot.get_fignums())
    pyplot.close("all")
    if "ax" in request.fixturenames:
        assert made == 0
