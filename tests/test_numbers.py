"""All numbers that public functions give over small inputs, as they were when tests/golden/numbers.json was written.

``pytest tests/test_numbers.py --update-golden`` writes it anew; what changed is read before it is committed.
"""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from recorded import CASES, NEEDS, Recorded, record

GOLDEN = Path(__file__).resolve().parent / "golden" / "numbers.json"
RELATIVE, ABSOLUTE = 1e-9, 1e-12

# The last or first part of a number's name → its own relative and absolute tolerance, and why.
TOLERANCES: dict[str, tuple[float, float]] = {}


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
        renewed[name] = found
        return
    wanted = kept().get(name)
    assert wanted is not None, f"{GOLDEN.name} has no {name}; write it with --update-golden"
    assert not list(differences(found, wanted))


def test_every_kept_case_still_exists(renewed: object) -> None:
    assert renewed is not None or kept().keys() == CASES.keys()
