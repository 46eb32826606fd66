"""All numbers that public functions give over small inputs, as they were when tests/golden/numbers.json was written.

``pytest tests/test_numbers.py --update-golden`` writes it anew; what changed is read before it is committed.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from recorded import CASES, NEEDS, Recorded, record

GOLDEN = Path(__file__).resolve().parent / "golden" / "numbers.json"
RELATIVE, ABSOLUTE = 1e-9, 1e-12

# Relative and absolute tolerances of numbers by a part of their names; all others have the ones above.
TOLERANCES: dict[str, tuple[float, float]] = {
    "single": (1e-5, 1e-5),  # computed in float32, with a measured error
    "half_width": (0.3, 1e-15),  # depends on how large rounding errors are taken to be
    "width": (0.3, 1e-15),
    "residual": (0.5, 1e-9),  # what is left of a trace of 1
    "residuals": (0.5, 1e-9),
    "leave_one_out": (1e-9, 1e-10),  # differences of scores
    "laplacian": (1e-9, 1e-10),  # eigenvalues, some of them zero
    "gradient": (1e-8, 1e-10),  # terms that cancel
    "search": (1e-6, 1e-7),  # where a search stops
    "compressed": (0.1, 0.0),  # by zlib, whose versions differ
}


def tolerance(name: str) -> tuple[float, float]:
    for part in name.split("."):
        if part in TOLERANCES:
            return TOLERANCES[part]
    return RELATIVE, ABSOLUTE


@cache
def kept() -> dict[str, dict[str, dict[str, Any]]]:
    return json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}


def as_json(found: Recorded) -> dict[str, dict[str, Any]]:
    """What is kept of a case; JSON has neither NaN nor infinity, they stand as texts."""
    numbers = {name: value if math.isfinite(value) else str(value) for name, value in found.numbers.items()}
    return json.loads(json.dumps({"numbers": numbers, "exact": found.exact, "calls": found.calls}))


def differences(found: dict[str, dict[str, Any]], wanted: dict[str, dict[str, Any]]) -> Iterator[str]:
    """What is not as it was, a line each."""
    for part in ("numbers", "exact", "calls"):
        for name in sorted(found[part].keys() | wanted[part].keys()):
            now, before = found[part].get(name, "absent"), wanted[part].get(name, "absent")
            if part == "numbers" and "absent" not in (now, before):
                relative, absolute = tolerance(name)
                now, before = float(now), float(before)
                same = math.isclose(now, before, rel_tol=relative, abs_tol=absolute)
                same = same or (math.isnan(now) and math.isnan(before))
            else:
                same = now == before and type(now) is type(before)
            if not same:
                yield f"{part} {name}: {before!r} before, {now!r} now"


@pytest.fixture(scope="session")
def renewed(request: pytest.FixtureRequest) -> Iterator[dict[str, dict[str, dict[str, Any]]] | None]:
    """The cases that are written anew, a line each; those whose modules are missing stay as they are."""
    if not request.config.getoption("--update-golden"):
        yield None
        return
    assert "PYTEST_XDIST_WORKER" not in os.environ, "several processes cannot write one file: leave -n away"
    cases = {name: case for name, case in kept().items() if name in CASES}
    yield cases
    lines = [f"{json.dumps(name)}: {json.dumps(cases[name])}" for name in sorted(cases)]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_as_they_were(name: str, renewed: dict[str, dict[str, dict[str, Any]]] | None) -> None:
    for module in NEEDS[name]:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    found = as_json(record(CASES[name]))
    if renewed is not None:
        if name not in renewed or any(differences(found, renewed[name])):
            renewed[name] = found
        return
    wanted = kept().get(name)
    assert wanted is not None, f"{GOLDEN.name} has no {name}; write it with --update-golden"
    assert not list(differences(found, wanted))


def test_every_kept_case_still_exists(renewed: object) -> None:
    assert renewed is not None or kept().keys() == CASES.keys()
