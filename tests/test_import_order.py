"""The order of the packages: which module imports which. The list of exceptions may only shrink."""

from __future__ import annotations

import ast
import graphlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"

# Bottom up: a package imports those before it and itself. The root, which only gathers public names, comes last.
ORDER = (
    "errors messages optional options threads present data spectrum similarity encoders kernels solvers "
    "results io intake diversity scoring streams engines analysis metrics plots reports integrations "
    "compat cli root"
)
LEVEL = {package: level for level, package in enumerate(ORDER.split())}

# Imports of a package above that stay: results draw themselves; the methods of `Diversity`, one line each; the
# package's version and public names.
ALLOWED = """
analysis.bandwidths -> plots.curves
analysis.comparison.comparison -> plots.comparison
analysis.comparison.differences -> plots.comparison
analysis.decomposition.contributions -> plots.bars
analysis.decomposition.streamed -> plots.bars
analysis.eigenmodes -> plots.matrices
analysis.eigenmodes -> plots.mode_ends
analysis.near_copies.near_copies -> plots.bars
analysis.rarefaction.rarefaction -> plots.curves
analysis.reweighting.reweighting -> plots.bars
analysis.selection.selection -> plots.curves
cli.commands -> root
cli.compare -> root
cli.explain -> root
cli.fingerprints -> root
cli.output -> root
cli.plan -> root
cli.rarefy -> root
cli.report -> root
cli.score -> root
cli.select -> root
compat.vendi -> root
diversity -> analysis.comparison.comparison
diversity -> analysis.decomposition.contributions
diversity -> analysis.eigenmodes
diversity -> analysis.near_copies.near_copies
diversity -> analysis.rarefaction.rarefaction
diversity -> analysis.reweighting.reweighting
diversity -> analysis.selection.selection
diversity -> reports.report
reports.report -> root
reports.sections.provenance -> root
results.groups -> plots
results.score -> plots
"""


class Import(NamedTuple):
    """One module imports another: on which line, and whether that is done when the module itself is imported."""

    importer: str
    imported: str
    line: int
    at_top: bool

    def __str__(self) -> str:
        return f"{self.importer} -> {self.imported}"


@cache
def sources() -> dict[str, Path]:
    """The file of every module, by its name without "vendimeter."; the package itself is "root"."""
    files = {}
    for path in sorted((SOURCE / "vendimeter").rglob("*.py")):
        parts = path.relative_to(SOURCE / "vendimeter").with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        files[name or "root"] = path
    return files


def target(dotted: str) -> str | None:
    """The module of ours that a dotted name begins with: "vendimeter.errors.InputError" lies in "errors"."""
    top, _, name = dotted.partition(".")
    if top != "vendimeter":
        return None
    while name and name not in sources():
        name = name.rpartition(".")[0]
    return name or "root"


def statements(node: ast.AST, at_top: bool = True) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """All imports that are run, and whether they are outside of functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, at_top
        elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            yield from statements(ast.Module(child.orelse, []), at_top)
        else:
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from statements(child, at_top and not inside)


@cache
def imports() -> list[Import]:
    """Every import of one of our modules in another."""
    found = {}
    for importer, path in sources().items():
        for statement, at_top in statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(statement, ast.Import):
                names = [alias.name for alias in statement.names]
            else:
                assert statement.level == 0, f"{path}:{statement.lineno}: write the whole name of the module"
                names = [f"{statement.module}.{alias.name}" for alias in statement.names]
            for imported in {target(name) for name in names} - {None, importer}:
                found.setdefault((importer, imported, at_top), statement.lineno)
    return [Import(importer, imported, line, at_top) for (importer, imported, at_top), line in found.items()]


def place(module: str) -> str:
    """The package of a module: the folder that it lies in, or the module itself at the root."""
    return module.partition(".")[0]


def upward() -> list[Import]:
    """Imports of a package that comes later in the order."""
    return [each for each in imports() if LEVEL[place(each.imported)] > LEVEL[place(each.importer)]]


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


def check(found: Iterable[Import], listed: list[str], why: str, what_to_do: str) -> None:
    """Those found are those listed; if not, say which, why, and what to do."""
    now = {str(each): each for each in found}
    added = [now[line] for line in sorted(now.keys() - {*listed})]
    if added:
        places = [f"{sources()[each.importer].relative_to(SOURCE)}:{each.line}: {each}" for each in added]
        kinds = [f" ({place(each.importer)} imports {place(each.imported)})" for each in added]
        text = [f"{len(added)} new: {why}. {what_to_do}.", *map("".join, zip(places, kinds, strict=True))]
        pytest.fail("\n".join(text), pytrace=False)
    gone = sorted({*listed} - now.keys())
    if gone:
        pytest.fail(
            "\n".join(["No longer so. Delete this line from the list in this file:", *gone]), pytrace=False
        )


def test_every_module_has_a_place():
    lost = sorted(module for module in sources() if place(module) not in LEVEL)
    assert not lost, f"{lost}: put them into the folder of a package in ORDER"


def test_no_module_is_private():
    """A folder is a subject with names for everyone in the package; only `vendimeter.__all__` is for users."""
    private = sorted(module for module in sources() if re.search(r"(^|\.)_(?!_)", module))
    assert not private, f"{private}: take the underscore from the name"


def test_no_module_imports_a_package_above_its_own():
    check(
        upward(),
        lines(ALLOWED),
        "a module imports only packages before its own in ORDER, inside functions, too",
        "Move what is needed down, or what needs it up; the list is not for new ones",
    )


def test_imports_that_are_allowed_upward_are_for_pictures_and_public_names():
    wrong = [
        line
        for line in lines(ALLOWED)
        if place(line.split(" -> ")[1]) not in {"plots", "root"} and not line.startswith("diversity -> ")
    ]
    assert not wrong, f"{wrong}: these have to go"
    at_top = [
        str(each) for each in upward() if "root" not in (each.imported, place(each.importer)) and each.at_top
    ]
    early = sorted({*at_top} & {*lines(ALLOWED)})
    assert not early, f"{early}: import what draws a result inside its method plot(), for not everybody draws"


def test_the_list_names_nothing_twice():
    assert len(lines(ALLOWED)) == len({*lines(ALLOWED)})


def test_no_modules_import_each_other_when_they_are_imported():
    needed = {module: set() for module in sources()}
    for each in imports():
        if each.at_top:
            needed[each.importer].add(each.imported)
    cycle = None
    try:
        graphlib.TopologicalSorter(needed).prepare()
    except graphlib.CycleError as error:
        cycle = " <- ".join(error.args[1])
    if cycle:
        pytest.fail(f"{cycle}: a cycle. Put what they share into a module below all of them.", pytrace=False)
