"""Bytes that are no UTF-8 in names of files and folders, and on the command line: no output is invalid."""

from __future__ import annotations

import csv
import io
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from cli.command_runs import Warm, check_refused

pytestmark = pytest.mark.skipif(
    sys.platform in ("win32", "darwin"), reason="file systems that take any bytes"
)

ODD = os.fsdecode(b"caf\xe9")  # with a surrogate, U+DCE9, in the place of the byte
SHOWN = r"caf\udce9"


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pictures in folders with odd names, which are their labels, and a text file with an odd name."""
    image = pytest.importorskip("PIL.Image")
    folder, rng = tmp_path_factory.mktemp("odd"), np.random.default_rng(0)
    for i in range(8):
        group = folder / "pictures" / f"{i % 2}{ODD}"
        group.mkdir(parents=True, exist_ok=True)
        image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(group / f"{i}{ODD}.png")
    (folder / f"{ODD}.txt").write_text("a dog\na cat\ntwo boats\n")
    (folder / "other.txt").write_text("a dog\na cow\n")
    return folder


# The command decodes what it writes as UTF-8: invalid bytes are an error of the test.
@pytest.mark.parametrize("form", ["", "--json", "--csv", "--latex", "--markdown"])
@pytest.mark.parametrize(
    "line", ["score pictures --by folder", "select pictures -k 3 --only", f"compare {ODD}.txt other.txt"]
)
def test_names_are_shown_as_escapes(line: str, form: str, odd: Path, tmp_path: Path, warm: Warm) -> None:
    asked = [*line.split(), *form.split()]
    if form in ("--csv", "--latex", "--markdown") and line.startswith("compare"):
        asked += ["--table", "groups"]
    done = warm(*asked, cwd=odd)
    assert done.code == 0, done.err
    plain = {"--latex": r"caf\textbackslash{}udce9", "--markdown": r"caf\\udce9"}.get(form, SHOWN)
    if form == "--json":
        assert SHOWN in done.out or line.startswith("select")  # where positions are all that is said
        assert done.envelope["source"]["files"] == [
            file for file in asked[1:3] if "-" not in file and file != "3"
        ]
    else:
        assert plain in done.out
    if form == "--csv":
        assert any(SHOWN in cell for row in csv.reader(io.StringIO(done.out)) for cell in row)
    assert warm(*asked, "-o", tmp_path / f"out{ODD}", cwd=odd).code == 0
    assert (tmp_path / f"out{ODD}").read_text(encoding="utf-8") == done.out
    assert os.listdir(tmp_path) == [f"out{ODD}"]


def test_reports_of_files_with_odd_names(odd: Path, tmp_path: Path, warm: Warm) -> None:
    pytest.importorskip("jinja2")
    for i, files in enumerate((["pictures", "--by", "folder"], [f"{ODD}.txt"], [f"{ODD}.txt", "other.txt"])):
        done = warm("report", *files, "-o", tmp_path / f"{i}.html", cwd=odd)
        assert done.code == 0, done.err
        assert SHOWN in (tmp_path / f"{i}.html").read_text(encoding="utf-8")


def test_a_title_must_be_text(odd: Path, tmp_path: Path, warm: Warm) -> None:
    done = warm("report", "other.txt", "--title", ODD, "-o", tmp_path / "page.html", cwd=odd)
    check_refused(done, r"--title 'caf\udce9' is not UTF-8 text; expected UTF-8")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "option",
    ["--column", "--by", "--weight", "--kernel", "--kind", "--format", "--method", "--memory", "--q"],
)
def test_options_are_shown_in_messages(option: str, odd: Path, warm: Warm) -> None:
    done = warm("score", "other.txt", option, ODD, cwd=odd)
    assert (done.code, "Traceback" in done.err) == (2, False)
    assert r"\udce9" in done.said
