"""Every code block of the documents runs, and shows what it says it shows; every public name has a page."""

from __future__ import annotations

import importlib
import importlib.util
import json
import pkgutil
import re
import shlex
import sys
import tomllib
from pathlib import Path

import click
import numpy as np
import pytest

import vendimeter as vm

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
PAGES = [
    "docs/index.md",
    "docs/guides/diversity.md",
    "docs/guides/choose.md",
    "docs/guides/reading.md",
    "docs/guides/claims.md",
    "docs/tutorials/researcher.md",
    "docs/tutorials/curator.md",
    "docs/tutorials/engineer.md",
    "docs/tutorials/scientist.md",
]


def loaded(path: str):
    """A module of the documents, which are no package."""
    file = ROOT / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "CONTRIBUTING.md",
        "docs/guides/inputs.md",
        "docs/guides/scale.md",
        "docs/guides/streams.md",
        "docs/guides/gradients.md",
        "docs/guides/compat.md",
        "docs/guides/metrics.md",
        "docs/guides/analysis.md",
    ],
)
def test_code_blocks_run_in_order(name):
    blocks = BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))
    assert blocks
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, name, "exec"), scope)  # our own document, not user input


@pytest.mark.parametrize("name", PAGES)
def test_pages_run_and_print_what_they_show(name, tmp_path, monkeypatch):
    """Python and commands of the shell, one after another in an empty folder; see docs/refresh.py."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    shown = 0
    for block in loaded("docs/refresh.py").ran((ROOT / name).read_text(encoding="utf-8"), name):
        assert block.agrees, f"{name} shows\n{block.shown}\nand this printed\n{block.printed}\n{block.code}"
        shown += block.shown is not None
    assert shown


def test_outputs_are_compared_in_earnest():
    refresh = loaded("docs/refresh.py")
    page = "```python\nprint(1)\n```\n\n```text\n{}\n```\n"
    assert [block.agrees for block in refresh.ran(page.format("1"), "page")] == [True]
    assert [block.agrees for block in refresh.ran(page.format("2"), "page")] == [False]
    assert [block.agrees for block in refresh.ran(page.format("…"), "page")] == [True]
    apart = page.format("2").replace("\n\n```text", "\n\nWords.\n\n```text")
    assert [block.shown for block in refresh.ran(apart, "page")] == [None]


def test_results_shown_in_the_readme_are_the_results():
    scope: dict[str, object] = {}
    checked = 0
    for block in BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8")):
        exec(block, scope)
        for expression, shown in re.findall(r"^(vm\..*?)\s+# (Score\(.*)$", block, re.MULTILINE):
            # The last digit of a rounding bound may differ between machines; everything else may not.
            found = repr(eval(expression, scope))
            assert re.sub(r"± \S+,", "±,", found) == re.sub(r"± \S+,", "±,", shown)
            checked += 1
    assert checked


def test_lines_of_code_in_the_table_of_the_readme_run(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    from vendimeter.integrations.torch import vendi_score

    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).standard_normal((120, 6))
    Path("shards").mkdir()
    np.save("shards/first.npy", rows)
    by = np.array(["sea", "kitchen"])[np.arange(120) % 2]
    scope = {"vm": vm, "d": vm.Diversity(rows, by=by), "rows": rows, "models": {"real": rows, "A": rows + 1}}
    scope |= {"outputs": torch.from_numpy(rows), "vendi_score": vendi_score}
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("## What can be asked")[2]
    lines = re.findall(r"^\| [^|]* \| `(.*?)` \|", table, re.MULTILINE)
    assert len(lines) > 10
    for line in lines:
        assert eval(line, scope) is not None, line


def test_pictures_of_the_readme_are_there_and_small():
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert pictures
    assert all((ROOT / path).stat().st_size < 120 * 1024 for path in pictures)


def test_the_two_commands_of_the_readme_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^make (\w+)", readme, re.MULTILINE)
    assert {"demo", "test"} <= set(commands)
    for command in commands:
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)


# --------------------------------------------------------------------------------------------------- what pages promise

FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TELLS = {  # what a page does, and the extra that it takes
    r"^vendi ": "cli",
    r"^vendi report ": "report",
    r"\.to_frame\(": "frames",
    r"\.plot\(": "plots",
    r"pyarrow|\.parquet": "files",
    r"^import torch": "torch",
}


def extras() -> set[str]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return set(tomllib.load(file)["project"]["optional-dependencies"])


def asked_for(text: str) -> set[str]:
    """The extras that a text names in brackets."""
    return {
        name for names in re.findall(r"(?:vendimeter|'\.)\[([\w,]+)\]", text) for name in names.split(",")
    }


@pytest.mark.parametrize("name", ["README.md", *PAGES, "docs/guides/gradients.md", "docs/reference/cli.md"])
def test_pages_ask_for_extras_that_there_are(name):
    assert asked_for((ROOT / name).read_text(encoding="utf-8")) <= extras()


@pytest.mark.parametrize("name", [page for page in PAGES if "tutorials" in page])
def test_tutorials_ask_for_all_that_they_need(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    needed = {extra for tell, extra in TELLS.items() if re.search(tell, text, re.MULTILINE)}
    assert needed
    assert asked_for(text) >= needed


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "docs/index.md",
        "docs/guides/inputs.md",
        "docs/guides/command.md",
        *(page for page in PAGES if "tutorials" in page),
    ],
)
def test_commands_that_are_shown_have_the_options_they_are_shown_with(name):
    from vendimeter.cli.commands import vendi

    blocks = FENCED.findall((ROOT / name).read_text(encoding="utf-8"))
    shell = [block for language, block in blocks if language in ("", "sh", "bash")]
    lines = [line for block in shell for line in block.splitlines() if "vendi " in line]
    assert lines
    for line in lines:
        words = shlex.split(line[line.index("vendi ") :], comments=True)
        words = words[: words.index("|")] if "|" in words else words
        context = click.Context(vendi, info_name="vendi")
        command = vendi.get_command(context, words[1])
        assert command is not None, line
        command.make_parser(click.Context(command, parent=context)).parse_args(words[2:])  # or NoSuchOption


def test_pictures_on_pages_come_from_examples_of_the_gallery():
    named = {
        (page.name, example)
        for page in (ROOT / "docs").rglob("*.md")
        if "_build" not in page.parts
        for example in re.findall(r"sphx_glr_(\w+)_\d{3}\.png", page.read_text(encoding="utf-8"))
    }
    assert named
    for page, example in named:
        assert (ROOT / "docs" / "examples" / f"{example}.py").is_file(), page


# ------------------------------------------------------------------------------------------------------- the reference


def referred() -> set[str]:
    """The full names that the pages of the reference list."""
    names = set()
    for page in (ROOT / "docs" / "reference").glob("*.rst"):
        home, listing = "", False
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith(".. currentmodule::"):
                home = line.split("::")[1].strip()
            if line and not line.startswith(" "):
                listing = line.startswith(".. autosummary::")
            elif listing and re.fullmatch(r"   \w+", line):
                names.add(f"{home}.{line.strip()}")
    return names


# Names that are modules, constants, other names of a thing, or listed all together on a page.
NOT_LISTED = {
    "vendimeter": {"encoders", "errors", "family", "kernels", "metrics", "plots"},
    "vendimeter.kernels": {"Tanimoto"},
    "vendimeter.plots": {"PALETTE"},
}


@pytest.mark.parametrize(
    "home",
    [
        "vendimeter",
        "vendimeter.kernels",
        "vendimeter.metrics",
        "vendimeter.encoders",
        "vendimeter.plots",
        "vendimeter.family",
        "vendimeter.integrations.torch",
        "vendimeter.compat.vendi",
        "vendimeter.compat.text_utils",
        "vendimeter.compat.molecule_utils",
    ],
)
def test_every_public_name_has_its_page_in_the_reference(home):
    module = vm.family if home == "vendimeter.family" else importlib.import_module(home)
    public = set(module.__all__) - NOT_LISTED.get(home, set())
    listed = {name.removeprefix(f"{home}.") for name in referred() if re.fullmatch(rf"{home}\.\w+", name)}
    assert listed == public


def test_every_error_is_on_the_page_of_errors():
    page = (ROOT / "docs" / "reference" / "errors.rst").read_text(encoding="utf-8")
    assert set(re.findall(r"^\.\. autoexception:: (\w+)$", page, re.MULTILINE)) == set(vm.errors.__all__)


def test_every_integration_has_a_section_in_the_reference():
    homes = {name.rpartition(".")[0] for name in referred()}
    folder = ROOT / "src" / "vendimeter" / "integrations"
    for file in folder.glob("[!_]*.py"):
        if file.stem.endswith("_checks"):  # for the module beside it, not for users
            continue
        assert f"vendimeter.integrations.{file.stem}" in homes


# ------------------------------------------------------------------------------------------------- links and extensions

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        *sorted(
            p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts
        ),
    ],
)
def test_links_between_pages_lead_somewhere_on_a_code_host_too(page):
    for link in LINK.findall(BLOCK.sub("", (ROOT / page).read_text(encoding="utf-8"))):
        if (
            "://" in link or link.startswith(("#", "mailto:")) or "gallery/" in link
        ):  # the gallery is made when built
            continue
        assert ((ROOT / page).parent / link.partition("#")[0]).exists(), link


# Pages for those who work on the package; what other pages name may be files of the reader's.
FOR_DEVELOPERS = [
    "README.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    "experiments/README.md",
    *(p.relative_to(ROOT).as_posix() for p in sorted((ROOT / "docs" / "project").glob("*.md"))),
]
PLACE = re.compile(r"`((?:[\w.-]+/)+(?:[\w.-]+)?(?:::\w+)?)`")
COMMAND = re.compile(r"`python ([\w./]+\.py)")


@pytest.mark.parametrize("page", FOR_DEVELOPERS)
def test_files_and_tests_that_pages_name_are_there(page):
    text = BLOCK.sub("", (ROOT / page).read_text(encoding="utf-8"))
    for name in [*PLACE.findall(text), *COMMAND.findall(text)]:
        if name.startswith(
            (".", "build/")
        ):  # beside the repository, in a virtual environment, or made by a run
            continue
        path, _, test = name.partition("::")
        homes = (ROOT, ROOT / "src" / "vendimeter", (ROOT / page).parent)
        found = next((home / path for home in homes if (home / path).exists()), None)
        assert found is not None, name
        assert not test or f"def {test}(" in found.read_text(encoding="utf-8"), name


@pytest.mark.parametrize("page", FOR_DEVELOPERS)
def test_names_of_the_package_that_pages_name_are_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in re.findall(r"`(vendimeter(?:\.\w+)+)", text):
        try:
            pkgutil.resolve_name(name)
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] == "vendimeter":
                raise


def test_the_table_of_files_is_what_the_modules_say(request):
    table = loaded("scripts/file_table.py")
    page = table.PAGE.read_text(encoding="utf-8")
    if request.config.getoption("--update-golden"):
        table.main()
    else:
        what_to_do = "python scripts/file_table.py writes it anew, and so does pytest --update-golden"
        assert page == table.written(page), f"docs/project/files.md is not up to date: {what_to_do}"


def test_every_module_says_what_it_is():
    table = loaded("scripts/file_table.py")
    assert [
        path for package in table.order() for path in table.modules(package) if not table.first_line(path)
    ] == []


def test_contributing_names_every_package():
    table = loaded("scripts/file_table.py")
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = page[page.index("Bottom up:") : page.index("The page of files")]
    there = [package for package in table.order() if package != "root" and table.modules(package)]
    assert [package for package in there if f"`{package}`" not in listed] == []


def test_a_schema_becomes_a_table_of_all_its_fields():
    page = loaded("docs/_ext/schema_page.py")
    schema = {
        "properties": {
            "n": {"type": "integer"},
            "bounds": {"type": "array", "items": {"type": ["number", "null"]}},
            "groups": {
                "type": "array",
                "items": {"properties": {"q": {"enum": [1, "inf"]}}, "required": ["q"]},
            },
        },
        "required": ["n", "groups"],
    }
    rows = [(name, page.types(inner, brief=True), always) for name, inner, always in page.fields(schema)]
    assert rows == [
        ("n", ["integer"], True),
        ("bounds", ["list of number or null"], False),
        ("groups", ["list of object"], True),
        ("groups[].q", ["1", '"inf"'], True),
    ]


def test_the_schema_of_the_command_is_all_on_its_page():
    path = ROOT / "src" / "vendimeter" / "cli" / "schema" / "result-2.json"
    page = loaded("docs/_ext/schema_page.py")
    schema = json.loads(path.read_text(encoding="utf-8"))
    parts = [schema, *schema.get("$defs", {}).values()]
    found = [page.types(inner) for part in parts for _, inner, _ in page.fields(part)]
    assert found
    assert all(found)
    known = {f"#{name}" for name in schema.get("$defs", {})}
    assert {word for types in found for name in types for word in re.findall(r"#\w+", name)} <= known


def test_the_site_names_every_module_that_it_loads():
    for name in ("command_page", "docstring_bars", "offline_mathjax", "outside_links", "schema_page"):
        assert f'"{name}"' in (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
        assert (ROOT / "docs" / "_ext" / f"{name}.py").is_file()


def test_bars_of_mathematics_are_escaped_and_those_of_code_are_not():
    escaped = loaded("docs/_ext/docstring_bars.py").escaped
    assert escaped("k = |a ∩ b|, ``x | y``") == r"k = \|a ∩ b\|, ``x | y``"
    assert escaped(">>> x | y") == ">>> x | y"
