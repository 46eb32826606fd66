"""Every benchmark can be imported, and is in the folder of its kind; what they measure is not run here."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
SCRIPTS = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/*.py"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_benchmarks_can_be_imported(name, monkeypatch):
    """One that needs an extra which is not installed is skipped; a name of ours that is gone fails it."""
    path = FOLDER / name
    monkeypatch.syspath_prepend(path.parent)  # as it is when a script runs
    monkeypatch.setattr(os, "environ", os.environ.copy())  # some set the number of threads
    before = dict(sys.modules)
    spec = importlib.util.spec_from_file_location(f"benchmark_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        ours = {"vendimeter", *(path.stem for path in FOLDER.rglob("*.py"))}
        if str(error.name).partition(".")[0] in ours:
            raise
        pytest.skip(f"{error.name} is not installed")
    finally:
        for other in sys.modules.keys() - before.keys():  # two folders may have modules of one name
            if str(getattr(sys.modules[other], "__file__", "")).startswith(f"{FOLDER}{os.sep}"):
                del sys.modules[other]


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_benchmarks_import_of_the_package_is_there(name):
    """Also what they import only when they run."""
    for node in ast.walk(ast.parse((FOLDER / name).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "vendimeter":
            home = importlib.import_module(str(node.module))
            for alias in node.names:
                assert hasattr(home, alias.name) or importlib.util.find_spec(f"{node.module}.{alias.name}"), (
                    alias.name
                )


def test_make_bench_runs_benchmarks_that_there_are(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.delitem(sys.modules, "run", raising=False)
    from run import SCRIPTS as listed

    assert set(listed) <= set(SCRIPTS)


def test_every_benchmark_is_on_the_page_of_benchmarks():
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [name for name in SCRIPTS if f"benchmarks/{name}" not in page] == []
