"""Write the table of the package's files, `docs/project/files.md`: what each module is, as the module itself says.

    python scripts/file_table.py

A row has a path and the first line of the docstring there. Packages come in the order of `tests/test_import_order.py`,
in which each may import those before it. The tests say when the page is not up to date.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "vendimeter"
PAGE = ROOT / "docs" / "project" / "files.md"
BEGIN, END = "<!-- begin: written by scripts/file_table.py -->", "<!-- end -->"


def order() -> list[str]:
    """The packages, bottom up, as the test of the import order has them."""
    tree = ast.parse((ROOT / "tests" / "test_import_order.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ORDER":
            return str(ast.literal_eval(node.value)).split()
    raise LookupError("tests/test_import_order.py has no ORDER")


def first_line(path: Path) -> str:
    """What a module says that it is."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].strip()


def shown(path: Path) -> str:
    """A module by its path in the package, a package by its folder; packages stand out."""
    name = path.relative_to(SOURCE).as_posix()
    if path.name == "__init__.py" and path.parent != SOURCE:
        return f"**`{path.parent.relative_to(SOURCE).as_posix()}/`**"
    return f"**`{name}`**" if path.parent == SOURCE else f"`{name}`"


def modules(package: str) -> list[Path]:
    """The files of a package, its `__init__` first and those of a folder in it together; a module alone is one file."""
    if package == "root":
        return [SOURCE / "__init__.py"]
    if (SOURCE / f"{package}.py").exists():
        return [SOURCE / f"{package}.py"]
    found = (SOURCE / package).rglob("*.py")
    return sorted(found, key=lambda path: (path.parent, path.name != "__init__.py", path.name))


def table() -> str:
    """The table of all modules, in Markdown."""
    rows = [
        f"| {shown(path)} | {first_line(path).replace('``', '`').replace('|', chr(92) + '|')} |"
        for package in order()
        for path in modules(package)
    ]
    return "\n".join(["| in `src/vendimeter/` | |", "|---|---|", *rows])


def written(page: str) -> str:
    """The page with the table as it should be."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise LookupError(f"{PAGE.relative_to(ROOT)} needs the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


def main() -> None:
    """Bring the page up to date."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(written(page), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {'as it was' if written(page) == page else 'written anew'}")


if __name__ == "__main__":
    main()
