"""The table of Stacked MNIST, from the class probabilities that come with the repository."""

from __future__ import annotations

import numpy as np
import pytest
from reruns import RESULTS, rerun, script, verdicts

HELD = RESULTS / "stacked_mnist"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return rerun("stacked_mnist", tmp_path_factory.mktemp("stacked_mnist"), "--subset", "500")


def test_verdicts_are_those_of_the_repository(results):
    found = verdicts(results)
    assert found["original"] == found["less diverse"] == found["below Mode Diversity"] == "reproduced"
    assert found["PresGAN above self-conditioned"] == "could not be run"


@pytest.mark.parametrize(("name", "row"), [("original", "Original"), ("dcgan", "DCGAN")])
def test_scores_are_those_of_plain_numpy(results, name, row):
    with np.load(HELD / f"{name}.npz") as held:
        p = held["probabilities"].astype(np.float64)
    p /= p.sum(axis=2, keepdims=True)
    joint = (p[:, 0, :, None, None] * p[:, 1, None, :, None] * p[:, 2, None, None, :]).reshape(len(p), -1)
    assert joint.shape == (10_000, 1000)
    found = results["rows"][row]
    assert found["modes"] == len(set(joint.argmax(axis=1).tolist()))
    mean = joint.mean(axis=0)
    assert found["mode_diversity"] == pytest.approx(np.exp(-np.sum(mean * np.log(mean))), rel=1e-9)
    values = np.linalg.eigvalsh(np.sqrt(joint).T @ np.sqrt(joint) / len(joint))
    values = values[values > 1e-15]
    assert found["vs"] == pytest.approx(np.exp(-np.sum(values * np.log(values))), rel=1e-9)
    assert found["bounds"][0] <= found["vs"] <= found["bounds"][1]


def test_the_row_is_that_of_the_best_epoch(results):
    for name, row in (("dcgan", "DCGAN"), ("entropy", "DCGAN + entropy")):
        run = results["epochs"][name]
        assert run["epochs"] == list(range(5, 51, 5))
        assert max(run["vs"]) == run["vs"][run["best"]] == pytest.approx(results["rows"][row]["vs"])


def test_a_training_of_ones_own_is_taken_over(tmp_path):
    """Of every epoch of a run the one with the highest score is kept, with the scores of all."""
    rng = np.random.default_rng(0)
    trained, kept = tmp_path / "trained", tmp_path / "kept"
    trained.mkdir()
    flat, sharp = rng.dirichlet(np.ones(10), (80, 3)), np.eye(10)[rng.integers(10, size=(80, 3))]
    np.savez(trained / "original.npz", probabilities=sharp.astype(np.float16), accuracy=0.99)
    for model in ("dcgan", "entropy"):
        both = np.stack([flat, sharp]).astype(np.float16)
        np.savez(trained / f"{model}.npz", probabilities=both, epochs=[5, 10], seconds=1.0)
    script("stacked_mnist")["taken_over"](trained, kept)
    with np.load(kept / "dcgan.npz") as held:
        assert int(held["best"]) == 1
        assert np.array_equal(held["probabilities"], sharp.astype(np.float16))
        assert held["vs"][0] < held["vs"][1]
