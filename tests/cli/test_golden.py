"""What every command prints, kept in tests/golden/cli; `pytest tests/cli --update-golden` writes it anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cli.command_runs import Done, Warm, vendi

Golden = Callable[[str, list[Done]], None]

# One file each: the first run of each in a fresh process, the others in a warm one.
RUNS: dict[str, list[str]] = {
    "score": [
        "score captions.txt",
        "score captions.txt --q 0,0.5,1,2,inf",
        "score captions.txt --kernel match --quiet",
        "score one.txt",
        "score same.txt --q 2",
        "score sets.csv --column text --weight w",
        "score similarity.npy --kernel precomputed",
        "score some-broken.jsonl --skip-broken",
        "score vectors.npz --column v --limit 50",
        "score vectors.npz --column v --kernel rbf --method random-features",
        "score shard-*.npy",
        "score captions.txt --fail-under 4",
        "score captions.txt --fail-under 5.5",
    ],
    "score-mixed": [
        "score mixed-vectors.csv",
        "score mixed-vectors.csv --skip-broken",
        "score mixed-vectors.csv --kind vectors",
        "score mixed-numbers.csv",
        "score mixed-numbers.csv --skip-broken",
        "score mixed-numbers.csv --kind categories",
        "score no-header.csv",
        "score no-header.csv --column v",
        "score long-header.csv",
        "score long-header.csv --column answer",
    ],
    "score-groups": [
        "score sets.csv --column text --by set",
        "score sets.csv --column text --by set --q 0,1,inf",
        "score sets.csv --column text --by set --by w --quiet",
        "score empty-groups.jsonl --column t --by g",
        "score sets.csv --column text --by set --fail-under 2.5",
    ],
    "score-lists": [
        "score answers.jsonl --groups responses --by model",
        "score answers.jsonl --groups responses --by model --q 2 --quiet",
        "score answers.jsonl --groups responses",
        "score answers.jsonl --column responses --by model --by prompt",
    ],
    "compare": [
        "compare captions.txt others.txt",
        "compare sets.csv --column text --by set --reference y",
        "compare vectors.npz --column v --by g --permutations 19",
        "compare vectors.npz --column v --by g --permutations 0 --size 30 --confidence 0.9 --quiet",
    ],
    "rarefy": [
        "rarefy captions.txt",
        "rarefy vectors.npz --column v --repeats 5",
        "rarefy vectors.npz --column v --repeats 5 --q 2 --confidence 0.9 --quiet",
    ],
    "explain": [
        "explain captions.txt",
        "explain captions.txt --part duplicates --threshold 0.5 --quiet",
        "explain sets.csv --column text --by set --top 2 --quiet",
        "explain one.txt --quiet",
    ],
    "select": [
        "select captions.txt -k 3",
        "select sets.csv --column text --by set -k 5 --method random --only --quiet",
        "select captions.txt -k 2 --method facility --only --quiet",
        "select captions.txt -k 7 --q 2 --only --quiet",
    ],
    "plan": [
        "plan captions.txt",
        "plan vectors.npz --column v --kernel rbf --tol 1e-2 --q 0,1,2 --quiet",
    ],
    "kernels": ["kernels match", "kernels on", "kernels ngram"],
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_text(name: str, samples: Path, warm: Warm, golden: Golden) -> None:
    first, *others = RUNS[name]
    golden(name, [vendi(*first.split(), cwd=samples), *(warm(*one.split(), cwd=samples) for one in others)])


# The tables of every command; each is given in three forms.
TABLES = {
    "score": ["score captions.txt", "score captions.txt --q 0,1,inf", "score sets.csv --column text --by set"],
    "score-lists": [
        "score answers.jsonl --groups responses --by model --table means",
        "score answers.jsonl --groups responses --by model --table differences",
        "score answers.jsonl --groups responses --by model --table scores",
    ],
    "compare": [
        "compare sets.csv --column text --by set --table groups",
        "compare vectors.npz --column v --by g --permutations 19 --table differences",
    ],
    "rarefy": ["rarefy vectors.npz --column v --repeats 5"],
    "explain": [f"explain captions.txt --top 3 --table {name}" for name in ("rarest", "redundant", "copies", "modes")],
    "select": [
        "select sets.csv --column text --by set -k 4 --method random",
        "select captions.txt -k 2 --table methods",
    ],
    "plan": ["plan vectors.npz --column v --kernel rbf --tol 1e-2"],
    "kernels": ["kernels match"],
    "strange": [
        "score strange.csv --column text --by lab\x1b[1mel",
        "select strange.csv --column text -k 15 --method random --only",
    ],
}  # fmt: skip


@pytest.mark.parametrize("form", ["csv", "latex", "markdown"])
@pytest.mark.parametrize("name", TABLES)
def test_tables(name: str, form: str, samples: Path, warm: Warm, golden: Golden) -> None:
    quiet = [] if name == "kernels" else ["--quiet"]
    runs = [warm(*one.split(), f"--{form}", *quiet, cwd=samples) for one in TABLES[name]]
    assert {run.code for run in runs} == {0}
    golden(f"{name}-{form}", runs)


def test_sums_that_are_put_together(samples: Path, tmp_path: Path, warm: Warm, golden: Golden) -> None:
    def run(line: str) -> Done:
        return warm(*line.split(), cwd=tmp_path)

    for i in range(3):
        (tmp_path / f"shard-{i}.npy").write_bytes((samples / f"shard-{i}.npy").read_bytes())
    (tmp_path / "vectors.npz").write_bytes((samples / "vectors.npz").read_bytes())
    lines = [
        *(f"score shard-{i}.npy --save {i}.vendi --quiet" for i in range(3)),
        "merge 0.vendi 1.vendi 2.vendi --save all.vendi",
        "merge all.vendi --q 0,1,inf --csv",
        "merge all.vendi --fail-under 5",
        "score vectors.npz --column v --by g --save groups.vendi --quiet",
        "merge groups.vendi",
        "merge groups.vendi --markdown",
        "merge groups.vendi --latex",
    ]
    golden("merge", [run(line) for line in lines])


def test_a_report(samples: Path, tmp_path: Path, golden: Golden) -> None:
    (tmp_path / "captions.txt").write_bytes((samples / "captions.txt").read_bytes())
    golden("report", [vendi("report", "captions.txt", "-o", "page.html", cwd=tmp_path)])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["captions.txt", "page.html"]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "vendi report captions.txt -o page.html" in page
    assert "an octopus opens a jar" in page
