"""What the command gives is what the library gives, and what a dense eigenvalue solver gives."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from cli import command_data
from cli.command_data import CAPTIONS, MOLECULES, OTHERS, SETS, SIMILARITIES
from cli.command_runs import Done, Warm
from vendimeter.io import kinds

TEXTS = [text for text, _, _ in SETS]
LABELS = [label for _, label, _ in SETS]
WEIGHTS = [weight for _, _, weight in SETS]
ORDERS = [0, 1, 2, np.inf]


def dense(matrix: Any, q: float = 1.0, weights: Any = None) -> float:
    """The score by its definition: the Hill number of the eigenvalues of √p K √p."""
    K = np.asarray(matrix, dtype=float)
    p = np.full(len(K), 1 / len(K)) if weights is None else np.asarray(weights) / np.sum(weights)
    eigenvalues = np.linalg.eigvalsh(K * np.sqrt(np.outer(p, p)))
    kept = eigenvalues[eigenvalues > 1e-12]
    if q == 1:
        return float(np.exp(-np.sum(kept * np.log(kept))))
    return float(1 / kept.max()) if q == np.inf else float(np.sum(kept**q) ** (1 / (1 - q)))


def cosines(X: Any) -> np.ndarray:
    X = np.asarray(X, dtype=float)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    return X @ X.T


def words(texts: list[str], high: int = 2) -> np.ndarray:
    """Similarities by words and pairs of them, by their definition."""
    found = np.zeros((len(texts), len(texts)))
    for n in range(1, high + 1):
        split = [text.split() for text in texts]
        bags = [[tuple(one[i : i + n]) for i in range(len(one) - n + 1)] or [tuple(one)] for one in split]
        known = sorted({gram for bag in bags for gram in bag})
        found += cosines([[bag.count(gram) for gram in known] for bag in bags]) / high
    return found


@pytest.fixture
def run(warm: Warm, samples: Path) -> Any:
    """Run a line in the folder of the samples; the result of --json."""

    def result(line: str, *more: str, **options: Any) -> Any:
        return warm(*line.split(), *more, "--json", "--quiet", cwd=samples, **options).result

    return result


@pytest.fixture
def vectors(samples: Path) -> Any:
    return np.load(samples / "vectors.npz")


# ------------------------------------------------------------------------------------------------------------- score


def test_scores_of_all_orders_are_those_of_a_dense_solver(run: Any, samples: Path, vectors: Any) -> None:
    rows = np.load(samples / "rows.npy")
    for line, K in [
        ("score rows.npy", cosines(rows)),
        ("score vectors.npz --column v", cosines(vectors["v"])),
        ("score shard-*.npy", cosines(vectors["v"])),
        ("score shard-0.npy shard-1.npy", cosines(vectors["v"][:80])),
        ("score similarity.npy --kernel precomputed", SIMILARITIES),
        ("score rows.npy --kernel rbf(2.0)", np.exp(-((rows[:, None] - rows) ** 2).sum(2) / 8)),
        ("score captions.txt --kernel match", np.equal.outer(CAPTIONS, CAPTIONS)),
    ]:
        profile = run(f"{line} --q 0,1,2,inf")["profile"]
        assert [row["score"] for row in profile] == pytest.approx([dense(K, q) for q in ORDERS], rel=1e-9)
        assert all(row["low"] <= row["score"] <= row["high"] for row in profile)
        assert run(f"{line} --q 2")["score"] == pytest.approx(dense(K, 2), rel=1e-9)
    found = run("score others.txt", "--kernel", "ngram(1, 2)")["score"]
    assert found == pytest.approx(dense(words(OTHERS)), rel=1e-9)


def test_weights_and_limits(run: Any, vectors: Any) -> None:
    shares = np.array(WEIGHTS) / sum(WEIGHTS)
    found = run("score sets.csv --column text --weight w --kernel ngram(1,2)")["score"]
    assert found == pytest.approx(float(vm.score(TEXTS, vm.kernels.NGram(1, 2), weights=shares)))
    found = run("score sets.csv --column text --weight w --kernel match")["score"]
    assert found == pytest.approx(dense(np.equal.outer(TEXTS, TEXTS), weights=WEIGHTS))
    found = run("score vectors.npz --column v --weight w")["score"]
    assert found == pytest.approx(dense(cosines(vectors["v"]), weights=vectors["w"]), rel=1e-9)
    assert run("score vectors.npz --column v --limit 9")["score"] == pytest.approx(
        dense(cosines(vectors["v"][:9]))
    )


def test_groups(run: Any, vectors: Any) -> None:
    expected = vm.score_groups(TEXTS, "ngram", by=LABELS, q=[0, 1, np.inf])
    rows = run("score sets.csv --column text --by set --q 0,1,inf")["groups"]
    assert [(row["group"], row["q"]) for row in rows] == [
        (g, q) for g in ("x", "y", "=2") for q in (0, 1, "inf")
    ]
    assert [row["score"] for row in rows] == pytest.approx(np.ravel(expected.scores).tolist(), rel=1e-12)
    rows = run("score vectors.npz --column v --by g --weight w")["groups"]
    for row in rows:
        mine = vectors["g"] == row["group"]
        assert row["n"] == mine.sum()
        assert row["score"] == pytest.approx(dense(cosines(vectors["v"][mine]), weights=vectors["w"][mine]))


def test_means_standard_errors_and_paired_differences(run: Any) -> None:
    found = run("score answers.jsonl --groups responses --by model")
    rows = [row for row in command_data.answers() if row["responses"]]
    scores = {(row["model"], row["prompt"]): float(vm.score(row["responses"], "ngram")) for row in rows}
    for row in found["means"]:
        mine = [score for (model, _), score in scores.items() if model == row["label"]]
        assert row["mean"] == pytest.approx(np.mean(mine))
        assert row["standard_error"] == pytest.approx(np.std(mine, ddof=1) / np.sqrt(len(mine)))
    (pair,) = found["differences"]
    apart = [scores["a", p] - scores["b", p] for p in ("p1", "p2", "p3")]
    assert pair["mean"] == pytest.approx(np.mean(apart))
    assert pair["standard_error"] == pytest.approx(np.std(apart, ddof=1) / np.sqrt(3))
    assert (pair["first"], pair["second"], pair["units"]) == ("a", "b", 3)
    whole = run("score answers.jsonl --groups responses")
    assert whole["means"][0]["mean"] == pytest.approx(np.mean(list(scores.values())))


def test_kernels_with_options_and_sums(run: Any) -> None:
    N, M, On = vm.kernels.NGram, vm.kernels.Match, vm.kernels.On
    line = "score sets.csv"
    table = {"text": TEXTS, "set": LABELS}
    for text, kernel in [
        ("on(text, ngram(1, 2))", On("text", N(1, 2))),
        ("0.5*on(text, match) + 0.5*on(set, match)", 0.5 * On("text", M()) + 0.5 * On("set", M())),
        ("on(text, ngram) * on(set, match)", On("text", N()) * On("set", M())),
    ]:  # fmt: skip
        assert run(line, "--kernel", text)["score"] == pytest.approx(
            float(vm.score(table, kernel)), rel=1e-12
        )
    same = np.equal.outer(TEXTS, TEXTS) * 0.5 + np.equal.outer(LABELS, LABELS) * 0.5
    found = run(line, "--kernel", "0.5*on(text, match) + 0.5*on(set, match)")["score"]
    assert found == pytest.approx(dense(same))


def test_molecules(run: Any) -> None:
    pytest.importorskip("rdkit")
    expected = float(vm.score(MOLECULES, "morgan"))
    assert run("score molecules.smi")["score"] == pytest.approx(expected, rel=1e-12)


# --------------------------------------------------------------------------------------------- the other commands


def plain(result: Any) -> Any:
    """A result of the library as the command gives it, without how long it took."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): without(part) for key, part in value.items() if key != "seconds"}
        if isinstance(value, list | tuple):
            return [without(part) for part in value]
        return value if not isinstance(value, float) or np.isfinite(value) else None

    return without(json.loads(json.dumps(result)))


def test_compare(run: Any, samples: Path, vectors: Any) -> None:
    line = "compare vectors.npz --column v --by g --permutations 19 --size 30 --confidence 0.9 --q 2 --seed 3"
    expected = vm.compare(
        vm.read(samples / "vectors.npz", samples="v", label="g"), "cosine", q=2, size=30, confidence=0.9,
        permutations=19, rng=3,
    )  # fmt: skip
    assert plain(run(line)) == plain(expected.to_dict())
    found = run("compare captions.txt others.txt --reference others.txt")
    for row, texts in enumerate((CAPTIONS, OTHERS)):
        assert found["scores"][row] == pytest.approx(float(vm.score(texts, "ngram")))
    assert found["differences"]["references"] == ["others.txt"]
    assert found["gamma"]["score"] == pytest.approx(found["alpha"] * found["beta"])


def test_rarefy(run: Any, samples: Path, vectors: Any) -> None:
    expected = vm.rarefy(vectors["v"], "cosine", q=2, repeats=4, confidence=0.9, rng=5).to_dict()
    found = run("rarefy vectors.npz --column v --q 2 --repeats 4 --confidence 0.9 --seed 5")
    assert plain(found) == plain(expected)
    assert found["score"]["score"] == pytest.approx(dense(cosines(vectors["v"]), 2))


def test_explain(run: Any, vectors: Any) -> None:
    found = run("explain captions.txt --q 2 --threshold 0.6")
    captions = vm.Diversity(CAPTIONS, "ngram")
    assert plain(found["contributions"]) == plain(captions.contributions(q=2).to_dict())
    assert plain(found["duplicates"]) == plain(captions.duplicates(threshold=0.6, q=2).to_dict())
    shares = [mode["share"] for mode in found["modes"]["modes"]]
    assert shares == pytest.approx(vm.modes(CAPTIONS, "ngram", k=10).shares.tolist())
    without = [float(vm.score(CAPTIONS[:i] + CAPTIONS[i + 1 :], "ngram", q=2)) for i in range(len(CAPTIONS))]
    score = found["contributions"]["score"]["score"]
    assert [score + change for change in found["contributions"]["leave_one_out"]] == pytest.approx(without)
    # The matrix of cosines has the eigenvalues that the modes have.
    modes = run("explain vectors.npz --column v --part modes")["modes"]["modes"]
    expected = np.linalg.eigvalsh(cosines(vectors["v"]) / 120)[::-1][: len(modes)]
    assert [mode["share"] for mode in modes] == pytest.approx(expected.tolist())


def test_select(run: Any, vectors: Any) -> None:
    expected = vm.select(CAPTIONS, 3, kernel="ngram", q=2, rng=1)
    found = run("select captions.txt -k 3 --q 2 --seed 1")
    assert plain(found) == plain(expected.to_dict())
    chosen = cosines(vectors["v"])[np.ix_(*[run("select vectors.npz --column v -k 4 --only")["indices"]] * 2)]
    assert run("select vectors.npz --column v -k 4 --only")["score"]["score"] == pytest.approx(dense(chosen))
    labels = run("select sets.csv --column text --by set -k 8")["labels"]
    assert sorted(labels.count(name) for name in set(LABELS)) == [2, 3, 3]


def test_plan(run: Any, vectors: Any) -> None:
    expected = vm.plan(vectors["v"], "rbf", tol=1e-2, q=[0, 1]).to_dict()
    assert plain(run("plan vectors.npz --column v --kernel rbf --tol 1e-2 --q 0,1")) == plain(expected)


def test_merge_is_the_score_of_all(warm: Warm, samples: Path, tmp_path: Path, vectors: Any) -> None:
    for i in range(3):
        assert warm("score", samples / f"shard-{i}.npy", "--save", f"{i}.vendi", cwd=tmp_path).code == 0
    found = warm("merge", "?.vendi", "--q", "0,1,2,inf", "--json", cwd=tmp_path).envelope
    scores = [row["score"] for row in found["result"]["profile"]]
    assert scores == pytest.approx([dense(cosines(vectors["v"]), q) for q in ORDERS], rel=1e-9)
    assert (found["source"]["items"], found["source"]["kernel"]) == (120, "Cosine()")
    whole = warm("merge", *sorted(tmp_path.glob("?.vendi")), "--json", cwd=tmp_path)
    assert whole.result["score"] == pytest.approx(dense(cosines(vectors["v"])))


def test_the_list_of_kernels_is_that_of_the_library(warm: Warm, tmp_path: Path) -> None:
    from vendimeter.cli.kernels import ABOUT
    from vendimeter.encoders import by_name

    rows = warm("kernels", "--json", cwd=tmp_path).result["kernels"]
    known = (set(vm.kernels.by_name()) | set(by_name()) | {"on", "random-features"}) - {
        "tanimoto",
        "pictures",
    }
    assert {row["kernel"] for row in rows} == set(ABOUT) == known
    assert {row["kernel"] for row in rows if row["default"]} == set(kinds.KINDS.values()) & known
    text = warm("kernels", cwd=tmp_path).out
    assert all(row["about"] in text for row in rows)


# ----------------------------------------------------------------------------------------------------- seeds, tables


def test_a_seed_gives_the_same_result_again(run: Any) -> None:
    line = "score vectors.npz --column v --kernel rbf --method random-features --seed"
    scores = [run(f"{line} {seed}")["score"] for seed in (1, 1, 2)]
    assert scores[0] == scores[1] != scores[2]


def rows_of(done: Done) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(done.out)))


def test_csv_has_all_digits_of_json(warm: Warm, samples: Path) -> None:
    line = ["score", "sets.csv", "--column", "text", "--by", "set", "--q", "0,1,inf"]
    rows = rows_of(warm(*line, "--csv", cwd=samples))
    result = warm(*line, "--json", cwd=samples).result["groups"]
    assert [float(row["score"]) for row in rows] == [row["score"] for row in result]
    assert [row["group"].removeprefix("'") for row in rows] == [row["group"] for row in result]
    rows = rows_of(warm("score", "empty-groups.jsonl", "--column", "t", "--csv", cwd=samples))
    assert (rows[1]["score"], rows[1]["level"]) == ("", "none")


def test_all_pairs_of_few_groups_are_compared(tmp_path: Path, warm: Warm) -> None:
    """Without a reference, so that the largest difference is that of any two; of many groups all with the first."""
    lines = [f"word{i} of{i} group{g}" if i % (g + 1) else "one" for g in range(8) for i in range(30)]
    for count, pairs in ((3, 3), (6, 15), (7, 6), (8, 7)):
        rows = [f"{line},{place // 30}" for place, line in enumerate(lines) if place // 30 < count]
        (tmp_path / "g.csv").write_text("text,g\n" + "\n".join(rows) + "\n", encoding="utf-8")
        line = ["compare", "g.csv", "--column", "text", "--by", "g", "--permutations", "0", "--json"]
        found = json.loads(warm(*line, cwd=tmp_path).out)["result"]
        assert len(found["differences"]["groups"]) == pairs
    everything = json.loads(warm(*line, "--pairs", cwd=tmp_path).out)["result"]
    assert len(everything["differences"]["groups"]) == 28
    refused = warm(*line, "--pairs", "--reference", "0", cwd=tmp_path)
    assert (refused.code, refused.out) == (2, "")


def test_advice_names_the_options_of_the_command(tmp_path: Path, warm: Warm) -> None:
    rows = [f"word{i} of{i},{'few' if i < 3 else 'many'}" for i in range(30)]
    (tmp_path / "g.csv").write_text("text,g\n" + "\n".join(rows) + "\n", encoding="utf-8")
    line = ["compare", "g.csv", "--column", "text", "--by", "g"]
    assert "Pass --size to compare larger groups at more items." in warm(*line, cwd=tmp_path).out
    notes = json.loads(warm(*line, "--json", cwd=tmp_path).out)["result"]["notes"]
    assert notes[0]["kind"] == "common-size-of-smallest"
    assert notes[0]["values"] == {"group": "few", "size": 3}
    assert notes[0]["option"] == "size"


def test_a_kernel_can_be_given_as_it_is_shown(tmp_path: Path, warm: Warm) -> None:
    (tmp_path / "a.txt").write_text("a dog\na cat\ntwo boats at sea\n", encoding="utf-8")
    plain = json.loads(warm("score", "a.txt", "--json", cwd=tmp_path).out)
    shown = plain["source"]["kernel"]
    assert shown == "NGram(1, 4)"
    again = json.loads(warm("score", "a.txt", "--json", "--kernel", shown, cwd=tmp_path).out)
    assert again["result"]["score"] == plain["result"]["score"]


def test_the_way_out_is_named_only_where_it_is_one(tmp_path: Path, warm: Warm) -> None:
    from PIL import Image

    (tmp_path / "pictures").mkdir()
    for i in range(3):
        Image.fromarray(np.full((6, 6), 80 * i, dtype=np.uint8)).save(tmp_path / "pictures" / f"{i}.png")
    black = warm("score", "pictures", cwd=tmp_path)
    assert black.code == 2
    assert "black picture" in black.err
    assert "--skip-broken" not in black.err
    (tmp_path / "pictures" / "0.png").write_bytes(b"no picture")
    assert "--skip-broken" in warm("score", "pictures", cwd=tmp_path).err
