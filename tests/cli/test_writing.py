"""What the command writes, and where: whole or not at all, never over anything unasked; standard input and output."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from shlex import quote

import pytest

from cli.command_data import CAPTIONS
from cli.command_runs import SCRIPT, Warm, environment, vendi

LINES = "\n".join(CAPTIONS) + "\n"
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0  # who may write everywhere


@pytest.fixture
def folder(tmp_path: Path, samples: Path) -> Path:
    """A folder of its own, with texts and vectors in it."""
    for name in ("captions.txt", "others.txt", "shard-0.npy"):
        (tmp_path / name).write_bytes((samples / name).read_bytes())
    return tmp_path


# Every command that writes a file, with the name of the file.
WRITING = {
    "score captions.txt -o x": "x",
    "score captions.txt --json -o x": "x",
    "score shard-0.npy --save x": "x",
    "compare captions.txt others.txt -o x": "x",
    "rarefy captions.txt --csv -o x": "x",
    "explain captions.txt -o x": "x",
    "explain shard-0.npy --write x.parquet": "x.parquet",
    "select captions.txt -k 2 --markdown -o x": "x",
    "plan captions.txt --latex -o x": "x",
    "merge sum.vendi -o x": "x",
    "merge sum.vendi --save x": "x",
    "kernels -o x": "x",
    "report captions.txt -o x": "x",
}


@pytest.mark.parametrize("line", WRITING)
def test_nothing_is_overwritten_unless_asked(line: str, folder: Path, warm: Warm) -> None:
    if ".parquet" in line:
        pytest.importorskip("pyarrow")
    if line.startswith("merge"):
        assert warm("score", "shard-0.npy", "--save", "sum.vendi", cwd=folder).code == 0
    target = folder / WRITING[line]
    assert warm(*line.split(), cwd=folder).code == 0
    written = target.read_bytes()
    assert written
    target.write_text("mine")
    names = sorted(os.listdir(folder))
    refused = warm(*line.split(), cwd=folder)
    assert (refused.code, refused.out, target.read_text()) == (2, "", "mine")
    assert f"{WRITING[line]!r} is there already" in refused.said
    assert "--force" in refused.said
    assert warm(*line.split(), "--force", cwd=folder).code == 0
    assert len(target.read_bytes()) == pytest.approx(len(written), rel=0.01)
    assert sorted(os.listdir(folder)) == names  # nothing beside it


def test_a_file_holds_what_standard_output_would(folder: Path, warm: Warm) -> None:
    for form in ((), ("--csv",), ("--latex",), ("--markdown",)):
        line = ["score", "captions.txt", "--q", "0,1", *form]
        shown = warm(*line, cwd=folder)
        done = warm(*line, "-o", "out", "--force", cwd=folder)
        assert (done.code, done.out, done.err) == (0, "", shown.err + "Written: out\n")
        assert (folder / "out").read_text(encoding="utf-8") == shown.out
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((folder / "out").stat().st_mode) == 0o666 & ~mask


def test_a_gate_that_is_not_met_still_gives_the_result(folder: Path, warm: Warm) -> None:
    done = warm("score", "captions.txt", "--fail-under", "6", "--json", "-o", "out.json", cwd=folder)
    assert done.code == 3
    assert json.loads((folder / "out.json").read_text())["gate"]["met"] is False


def test_input_is_never_written_over(folder: Path, warm: Warm) -> None:
    (folder / "link.txt").symlink_to("captions.txt")
    for line in (
        "score captions.txt -o captions.txt --force",
        "score captions.txt -o link.txt --force",
        "score ?aptions.txt -o captions.txt --force",
        "score shard-0.npy --save shard-0.npy --force",
        "report captions.txt -o ./captions.txt --force",
        "explain shard-0.npy --write shard-0.npy --force",
    ):
        done = warm(*line.split(), cwd=folder)
        assert done.code == 2, line
        assert "is read, and cannot be written" in done.said
    assert (folder / "captions.txt").read_text(encoding="utf-8") == LINES


@pytest.mark.skipif(ROOT or sys.platform == "win32", reason="who runs this may write everywhere")
def test_a_folder_that_may_not_be_written_to(folder: Path, warm: Warm) -> None:
    (folder / "closed").mkdir(mode=0o500)
    done = warm("score", "captions.txt", "-o", "closed/x", cwd=folder)
    assert done.code == 2
    assert "nothing may be written to the folder" in done.said


def test_a_file_that_may_not_be_read(folder: Path, warm: Warm) -> None:
    (folder / "captions.txt").chmod(0)
    done = warm("score", "captions.txt", cwd=folder)
    if ROOT or sys.platform == "win32":
        assert done.code == 0
    else:
        assert (done.code, done.out) == (2, "")
        assert "'captions.txt' could not be opened: Permission denied" in done.said


def test_a_full_disk_leaves_nothing(folder: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [SCRIPT, "score", "captions.txt"], cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True,
            env=environment(), check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


# -------------------------------------------------------------------------------------------- standard input, output


def test_standard_input(folder: Path, samples: Path, warm: Warm) -> None:
    expected = warm("score", "captions.txt", "--json", cwd=folder).result["score"]
    records = (samples / "texts.jsonl").read_bytes()
    array = (samples / "shard-0.npy").read_bytes()
    for line, given, score in [
        ("score -", LINES, expected),
        ("score - --format txt", LINES, expected),
        ("score - --column text", records, expected),
        ("score - --column text --format jsonl", records, expected),
        ("score - --format npy", array, warm("score", "shard-0.npy", "--json", cwd=folder).result["score"]),
    ]:
        done = warm(*line.split(), "--json", cwd=folder, input=given)
        assert done.result["score"] == pytest.approx(score, rel=1e-12), line
        assert done.said.startswith("standard input: taken for"), line
    for line in (
        "rarefy -",
        "explain -",
        "select - -k 2",
        "plan -",
        "compare - captions.txt",
        "report - -o page.html",
    ):
        assert warm(*line.split(), cwd=folder, input=LINES).code == 0, line


def test_standard_input_through_a_pipe(folder: Path, samples: Path) -> None:
    line = f"cat {quote(str(samples / 'texts.jsonl'))} | {quote(SCRIPT)} score - --column text"
    done = subprocess.run(
        line, shell=True, cwd=folder, capture_output=True, text=True, env=environment(), check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Vendi Score: 5.2327\n")


@pytest.mark.parametrize(("line", "given", "seen"), [
    ("score -", b"", "standard input holds no samples"),
    ("score - -", LINES, "standard input is named more than once"),
    ("score -", b"a\n\xff\xfe\n", "line 2 of standard input is not UTF-8"),
    ("score - --format npy", b"rubbish", "standard input could not be read as a NumPy file"),
    ("score - --column text", b"a,text\n1,2\n", "--format"),
    ("compare - -", LINES, "- is named twice"),
])  # fmt: skip
def test_bad_standard_input(line: str, given: str | bytes, seen: str, folder: Path, warm: Warm) -> None:
    done = warm(*line.split(), cwd=folder, input=given)
    assert (done.code, done.out) == (2, "")
    assert seen in done.said


def test_all_but_the_result_is_on_standard_error_and_quiet_silences_it(folder: Path, warm: Warm) -> None:
    for line in ("score captions.txt", "rarefy captions.txt", "explain captions.txt", "select captions.txt -k 2",
                 "plan captions.txt", "score captions.txt --fail-under 2"):  # fmt: skip
        loud, quiet = warm(*line.split(), cwd=folder), warm(*line.split(), "--quiet", cwd=folder)
        assert loud.err
        assert (quiet.err, quiet.out.splitlines()[2:]) == ("", loud.out.splitlines()[2:])
    done = warm("report", "captions.txt", "--quiet", "-o", "page.html", cwd=folder)
    assert (done.out, done.err) == ("page.html\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of Unix")
@pytest.mark.parametrize(
    "line", ["kernels", "schema", "score captions.txt --json", "explain captions.txt", "--help"]
)
def test_a_reader_that_has_seen_enough(line: str, folder: Path) -> None:
    done = subprocess.run(
        f"{quote(SCRIPT)} {line} {'--quiet' if 'captions' in line else ''} | head -c 1",
        shell=True, cwd=folder, capture_output=True, text=True, env=environment(), check=False,
    )  # fmt: skip
    assert (len(done.stdout), done.stderr) == (1, "")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of Unix")
@pytest.mark.parametrize(("redirected", "code"), [(">&-", 1), ("2>&-", 0), (">&- 2>&-", 1), ("<&-", 0)])
def test_streams_that_are_closed(redirected: str, code: int, folder: Path) -> None:
    done = subprocess.run(
        f"{quote(SCRIPT)} score captions.txt {redirected}", shell=True, cwd=folder, capture_output=True, text=True,
        env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert ("Vendi Score: 5.2327" in done.stdout) == (code == 0)


@pytest.mark.skipif(not SCRIPT.isascii(), reason="in such a place Python does not start in an ASCII locale")
def test_an_old_encoding_loses_nothing(folder: Path) -> None:
    (folder / "a.csv").write_text("t,g\nx,日本\ny,é\n", encoding="utf-8")
    line = ["score", "a.csv", "--column", "t", "--by", "g"]
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = vendi(*line, cwd=folder, **ascii_only)
    assert done.code == 0, done.err
    assert r"\u65e5\u672c" in done.out
    found = json.loads(vendi(*line, "--json", cwd=folder, **ascii_only).out)
    assert [row["group"] for row in found["result"]["groups"]] == ["日本", "é"]


# ------------------------------------------------------------------------------------------------------------- demo


def test_the_demo(folder: Path) -> None:
    done = vendi("demo", "--keep", "kept", cwd=folder)
    assert (done.code, done.err) == (0, "")
    page = folder / "vendimeter-demo.html"
    assert f"The report is in {page}: open it in a browser." in done.out
    assert "<html" in page.read_text(encoding="utf-8")[:500]
    assert sorted(os.listdir(folder / "kept")) == ["captions.csv", "digits.npz"]
    rows = [
        line.split("  ") for line in done.out.splitlines() if line.startswith(("twelve", "careful", "stuck"))
    ]
    scores = {row[0]: float(row[-2] if "█" in row[-1] else row[-1]) for row in rows}
    assert scores["stuck model"] < 3 < 10 < scores["careful model"] < scores["twelve photographs"] <= 12
    again = vendi("demo", "--keep", "kept", cwd=folder)
    assert (again.code, again.out) == (2, "")
    assert "'kept/digits.npz' is there already" in again.said
    kept = vendi("score", "kept/captions.csv", "--column", "caption", "--by", "set", cwd=folder)
    assert kept.out.strip() in done.out
