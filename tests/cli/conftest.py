"""What the tests of the command share: a warm process that runs it, samples in a folder, golden transcripts."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli import command_data
from cli.command_runs import Done, Warm

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "cli"


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """Runs the command in processes that have its libraries in memory already."""
    runs = Warm()
    yield runs
    runs.close()


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small files of all kinds; nothing may be written there."""
    return command_data.samples(tmp_path_factory.mktemp("samples"))


@pytest.fixture(scope="session")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files that have something wrong; nothing may be written there."""
    return command_data.broken(tmp_path_factory.mktemp("broken"))


@pytest.fixture
def default_signals() -> Iterator[None]:
    """Signals as they are for who runs the tests in a terminal, here and in the processes that a test starts.

    In the background of a script and under nohup some are ignored, and who is started there ignores them, too.
    """
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    if hasattr(signal, "SIGHUP"):  # Windows has none
        handlers[signal.SIGHUP] = signal.SIG_DFL
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


# What differs between machines, and nothing else: how large rounding errors are, and the last digits of numbers.
ROUNDING = re.compile(r"(?<=±)\d(?:\.\d+)?e-1\d|(?<=within )\d(?:\.\d+)?e-1\d(?= of that)")
LONG = re.compile(r"-?\d+\.\d{9,}(?:e[-+]?\d+)?|-?\d(?:\.\d+)?e-1[4-9]")


def steady(text: str) -> str:
    """A text without what differs between machines."""

    def rounded(found: re.Match[str]) -> str:
        value = float(found[0])
        return repr(0.0 if abs(value) < 1e-12 else float(f"{value:.9g}"))

    return LONG.sub(rounded, ROUNDING.sub("1e-12", text))


def transcript(runs: list[Done]) -> str:
    """Runs as they would be seen, one below the other, with standard output and standard error apart."""
    parts = []
    for run in runs:
        words = " ".join(
            word if re.fullmatch(r"[\w./,=*+-]+", word) else shlex.quote(word) for word in run.arguments
        )
        lines = [f"$ vendi {words}", *(f"! {line}" for line in run.err.splitlines()), run.out.rstrip("\n")]
        parts.append("\n".join([*lines, f"[exit {run.code}]"]))
    return steady("\n\n".join(parts) + "\n")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, list[Done]], None]:
    """Compare runs with a golden file: lines of standard error begin with '! '.

    ``pytest tests/cli --update-golden`` writes them anew.
    """

    def check(name: str, runs: list[Done]) -> None:
        path = GOLDEN / f"{name}.txt"
        found = transcript(runs)
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(found, encoding="utf-8")
        assert path.exists(), f"there is no {path}; write it with --update-golden"
        assert found == path.read_text(encoding="utf-8")

    return check
