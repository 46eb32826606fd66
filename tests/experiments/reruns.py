"""How tests run a script of the experiments: as it is run by hand, with its results in another folder."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from places import SHARED_DATA

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
RESULTS = EXPERIMENTS / "results"
DATA = SHARED_DATA


def script(name: str) -> dict[str, Any]:
    """The names in a script, run as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXPERIMENTS)  # as when the script is run: its neighbours can be imported
        known = set(sys.modules)
        found = runpy.run_path(str(EXPERIMENTS / f"{name}.py"))
        for module in set(sys.modules) - known:
            if str(getattr(sys.modules[module], "__file__", "")).startswith(str(EXPERIMENTS)):
                patch.delitem(sys.modules, module)
        return found


def rerun(name: str, out: Path, *options: str) -> dict[str, Any]:
    """The results of a script."""
    assert script(name)["main"](["--out", str(out), *options]) == 0
    return json.loads((out / f"{name}.json").read_text(encoding="utf-8"))


def verdicts(results: dict[str, Any]) -> dict[str, str]:
    """Claim → verdict."""
    return {claim["name"]: claim["verdict"] for claim in results["claims"]}
