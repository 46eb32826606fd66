"""Exit codes: 0 well, 1 a failure, 2 bad input or usage, 3 a gate that was not met; and what gates look at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cli.command_runs import Warm, vendi


def test_the_four_codes_of_fresh_processes(samples: Path, tmp_path: Path) -> None:
    assert vendi("score", "captions.txt", cwd=samples).code == 0
    assert vendi("score", "nothing.txt", cwd=samples).code == 2
    assert vendi("score", "captions.txt", "--fail-under", "6.5", cwd=samples).code == 3


@pytest.mark.parametrize(("patch", "seen"), [
    ("raise RuntimeError('a bug [bold]\\x1b[31m')", "a fault of Vendimeter's own, not of your data: RuntimeError"),
    ("raise MemoryError", "there was not enough memory. Take fewer samples (--limit)"),
    ("raise OSError(28, 'No space left on device')", "No space left on device"),
])  # fmt: skip
def test_failures_are_no_bad_input_and_show_no_traceback(
    patch: str, seen: str, samples: Path, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        f"import json\ndef broken(*given, **more):\n    {patch}\njson.dumps = broken\n"
    )
    line = ["score", "captions.txt", "--json", "--quiet"]
    done = vendi(*line, cwd=samples, PYTHONPATH=str(tmp_path))
    assert (done.code, done.out) == (1, "")
    assert seen in done.said
    assert "Traceback" not in done.err
    assert "\x1b" not in done.err
    if "RuntimeError" in patch:
        shown = vendi(*line, cwd=samples, PYTHONPATH=str(tmp_path), VENDI_TRACEBACK="1")
        assert "Traceback (most recent call last)" in shown.err


def test_a_gate_looks_at_the_lower_bound(warm: Warm, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((300, 300)))
    line = ["score", "x.npy", "--tol", "0.05", "--method", "lanczos", "--json"]
    found = warm(*line, cwd=tmp_path).result
    low, score = found["low"], found["score"]
    assert low < score - 0.01  # else this would show nothing
    between = (low + score) / 2
    for least, code in [(low - 1e-6, 0), (low, 0), (between, 3), (score + 1, 3)]:
        done = warm(*line, "--fail-under", repr(least), cwd=tmp_path)
        assert done.code == code, least
        assert done.result == found or done.result["score"] == score  # given in any case
        gate = done.envelope["gate"]
        assert (gate["fail_under"], gate["tested"], gate["lowest"], gate["met"]) == (
            least, "lower bound", low, code == 0
        )  # fmt: skip
        assert "lower bound" in done.said
    assert "the gate is not met: the lower bound of the score is" in done.said


def test_messages_of_gates_have_the_digits_that_tell(warm: Warm, samples: Path) -> None:
    low = warm("score", "captions.txt", "--json", cwd=samples).result["low"]
    done = warm("score", "captions.txt", "--fail-under", repr(low + 1e-9), cwd=samples)
    assert done.code == 3
    seen, asked = (
        float(word.strip(";.")) for word in done.said.split() if word[0].isdigit() and "." in word[:3]
    )
    assert seen < asked == low + 1e-9
    done = warm("score", "captions.txt", "--fail-under", repr(low - 1e-9), cwd=samples)
    assert done.code == 0
    assert f"is at least {low - 1e-9!r}" in done.said


def test_a_gate_of_groups_names_those_that_fail(warm: Warm, samples: Path, tmp_path: Path) -> None:
    line = ["score", "sets.csv", "--column", "text", "--by", "set", "--fail-under"]
    for least, failed in [("1.5", []), ("2.5", ["=2"]), ("3", ["x", "=2"]), ("4.5", ["x", "y", "=2"])]:
        done = warm(*line, least, "--json", cwd=samples)
        assert (done.code, done.envelope["gate"]["failed"]) == (3 if failed else 0, failed)
    assert "the lower bound of 3 groups ('x', 'y', '=2') is below 4.5" in done.said
    empty = warm(
        "score",
        "empty-groups.jsonl",
        "--column",
        "t",
        "--by",
        "g",
        "--fail-under",
        "0",
        "--json",
        cwd=samples,
    )
    assert (empty.code, empty.envelope["gate"]["failed"]) == (3, ["empty"])  # which has no lower bound
    rows = [{"t": "x", "g": f"group {i}"} for i in range(9)]
    (tmp_path / "many.csv").write_text("t,g\n" + "".join(f"{row['t']},{row['g']}\n" for row in rows))
    done = warm("score", "many.csv", "--column", "t", "--by", "g", "--fail-under", "2", cwd=tmp_path)
    assert "of 9 groups ('group 0', 'group 1', 'group 2', 'group 3', 'group 4', …) is below 2" in done.said


def test_a_gate_of_merged_sums(warm: Warm, samples: Path, tmp_path: Path) -> None:
    low = warm("score", samples / "shard-0.npy", "--save", "a.vendi", "--json", cwd=tmp_path).result["low"]
    for least, code in [(low - 1e-6, 0), (low + 1e-6, 3)]:
        done = warm("merge", "a.vendi", "--fail-under", repr(least), cwd=tmp_path)
        assert done.code == code
        assert done.out.startswith("Vendi Score:")
