"""Every code block of the documents runs, and shows what it says it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "CONTRIBUTING.md",
        "docs/inputs.md",
        "docs/scale.md",
        "docs/streams.md",
        "docs/gradients.md",
        "docs/compat.md",
        "docs/metrics.md",
        "docs/analysis.md",
    ],
)
def test_code_blocks_run_in_order(name):
    blocks = BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))
    assert blocks
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, name, "exec"), scope)  # our own document, not user input


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


def test_the_two_commands_of_the_readme_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^make (\w+)", readme, re.MULTILINE)
    assert {"demo", "test"} <= set(commands)
    for command in commands:
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)
