"""What all tests share: a hypothesis profile that gives the same examples on every run, and the data folder."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every run, so that a failure in CI is a failure here; and no deadline, because the machines that
# run the tests differ in speed.
settings.register_profile(
    "stable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("stable")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data that lies beside the repository; tests that need it are skipped where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip(
            "the folder ../shared/data is not there; it holds real data and is not part of the repository"
        )
    return SHARED_DATA
