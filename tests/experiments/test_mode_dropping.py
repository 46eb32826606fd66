"""The rerun of mode dropping, against eigenvalues of matrices written out."""

from __future__ import annotations

import json

import numpy as np
import pytest
from reruns import DATA, RESULTS, rerun, script, verdicts

DIGITS = DATA / "images" / "mnist_test.npz"
needs_digits = pytest.mark.skipif(not DIGITS.exists(), reason="MNIST is not there")


@pytest.fixture(scope="module")
def names():
    return script("mode_dropping")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return rerun("mode_dropping", tmp_path_factory.mktemp("mode_dropping"), "--repeats", "3", "--orders", "3")


@needs_digits
def test_verdicts(results):
    found = verdicts(results)
    assert found["MNIST, first six digits"] == found["MNIST, correlation"] == "reproduced"
    assert found["MNIST, after six"] in ("reproduced", "reproduced in direction")  # of three samples


@needs_digits
def test_numbers_agree_with_one_another(results):
    for row in results["rows"].values():
        assert len(row["classes"]) == 10
        given = row["given"]
        counts = np.arange(1, 11)
        for key in ("vs", "intdiv"):
            found = np.corrcoef(counts, given[key]["mean"])[0, 1]
            assert given["pearson"][key]["of_means"] == pytest.approx(found, abs=2e-3)
        each = np.array(row["shuffled"]["each_pearson"])
        assert each.shape == (row["shuffled"]["orders"], 2)
        assert row["shuffled"]["vs_ahead"]["pearson"] == pytest.approx(
            (each[:, 0] > each[:, 1]).mean(), abs=1e-3
        )
    digits = results["rows"]["MNIST"]
    assert min(digits["alone"], key=lambda name: digits["alone"][name]["vs"]) == "1"
    assert digits["given"]["vs"]["mean"][0] == pytest.approx(digits["alone"]["0"]["vs"], rel=0.05)


def test_what_is_kept_of_texts():
    """XNLI stands in, in the ten genres and the order of the authors' notebook."""
    kept = json.loads((RESULTS / "mode_dropping.json").read_text(encoding="utf-8"))
    row, notebook = kept["rows"]["XNLI"], script("_genres")["NOTEBOOK"]
    assert row["items"] == 250
    assert row["classes"] == sorted(notebook)
    assert min(row["alone"], key=lambda name: row["alone"][name]["vs"]) == min(notebook, key=notebook.get)
    found = {name: verdict for name, verdict in verdicts(kept).items() if "MultiNLI" in name}
    assert list(found) == [
        f"XNLI for MultiNLI, {part}" for part in ("monotone", "correlation", "other orders")
    ]
    assert "reproduced" not in found.values()
    # The matched part has five genres: 667 premises of each, 666 of fiction; so has the other.
    assert kept["multinli"]["premises_of_the_matched_part"] == 4 * 667 + 666
    assert kept["multinli"]["premises_of_both"] == 9 * 667 + 666


def dense(similarity):
    values = np.linalg.eigvalsh(similarity / len(similarity))
    values = values[values > 1e-12]
    return float(np.exp(-np.sum(values * np.log(values)))), 1 - similarity.mean()


@needs_digits
def test_a_curve_is_that_of_matrices_written_out(names):
    with np.load(DIGITS) as held:
        images, labels = held["images"].reshape(-1, 784) / 255, held["labels"]
    data = {digit: images[labels == digit] for digit in range(10)}
    found = names["curve"](data, [7, 2, 4], names["PIXELS"], [5], 500)
    for i in range(3):
        samples = names["drawn"](data, [7, 2, 4][: i + 1], np.random.default_rng([5, i]), 500)
        unit = samples / np.linalg.norm(samples, axis=1, keepdims=True)
        np.testing.assert_allclose(found[:, i], dense(unit @ unit.T), rtol=1e-9)


def test_classes_have_equal_parts(names):
    data = {name: [f"{name} {i}" for i in range(600)] for name in "abcdefg"}
    for classes in ("abc", "abcdefg"):
        texts = names["drawn"](data, classes, np.random.default_rng(0), 500)
        assert len(texts) == len(set(texts)) == 500
        sizes = [sum(text[0] == name for text in texts) for name in classes]
        assert sum(sizes) == 500
        assert max(sizes) - min(sizes) <= 1
    assert len(names["drawn"](data, "a", np.random.default_rng(0), 500)) == 500


def genre_files(folder):
    """Ten made genres, in two files as MultiNLI has them; each has words of its own."""
    rng = np.random.default_rng(0)
    genres = [f"genre{k}" for k in range(10)]
    for part, own in (("matched", genres[:5]), ("mismatched", genres[5:])):
        lines = []
        for genre in own:
            for i in range(520):
                words = rng.integers(12, size=6)
                text = f"n{i} " + " ".join(f"{genre}w{word}" for word in words)
                lines += [json.dumps({"genre": genre, "sentence1": text, "label": "neutral"})] * 2
        (folder / f"{part}.jsonl").write_text("\n".join(lines) + "\n")
    return [str(folder / "matched.jsonl"), str(folder / "mismatched.jsonl")]


def test_files_of_multinli(tmp_path):
    """Premises come several times each; distinct ones count."""
    files = genre_files(tmp_path)
    found = rerun(
        "mode_dropping", tmp_path / "out", "--data", str(tmp_path), "--multinli", *files,
        "--repeats", "2", "--orders", "2",
    )  # fmt: skip
    assert verdicts(found) == {
        "MNIST": "could not be run",
        "MultiNLI, monotone": "reproduced",
        "MultiNLI, correlation": "reproduced",
        "MultiNLI, other orders": "reproduced",
    }
    row = found["rows"]["MultiNLI"]
    assert row["classes"] == [f"genre{k}" for k in range(10)]
    assert (np.diff(row["given"]["vs"]["mean"]) > 0).all()
    assert str(tmp_path) not in json.dumps(found)


def test_a_file_without_genres_is_refused(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"genre": "a", "sentence": "b"}\n')
    with pytest.raises(SystemExit, match=r"x\.jsonl"):
        script("mode_dropping")["main"]([
            "--out", str(tmp_path / "out"), "--data", str(tmp_path), "--multinli", str(tmp_path / "x.jsonl"),
        ])  # fmt: skip


def test_without_data_nothing_is_claimed(tmp_path):
    found = rerun("mode_dropping", tmp_path / "out", "--data", str(tmp_path))
    assert set(verdicts(found).values()) == {"could not be run"}
    assert str(tmp_path) not in json.dumps(found)
