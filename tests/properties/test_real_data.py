"""Real pictures and embeddings: streams, labels, tensors and gradients against the score of all at once.

Needs the folder ../shared/data and is skipped without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.data import devices
from vendimeter.kernels import RBF, RandomFeatures


@pytest.fixture(scope="module")
def digits(shared_data: Path) -> tuple[np.ndarray, np.ndarray]:
    """10,000 handwritten digits as rows of 784 grey values, and which digit each is."""
    with np.load(shared_data / "images" / "mnist_test.npz") as file:
        return file["images"].reshape(10_000, 784), file["labels"]


@pytest.fixture(scope="module")
def embeddings(shared_data: Path) -> tuple[np.ndarray, np.ndarray]:
    """2,000 embeddings of photographs in 1,280 columns of float16, and their classes."""
    with np.load(shared_data / "embeddings" / "cifar100_20classes_efficientnet_lite0.npz") as file:
        return file["emb"], file["label"]


def test_a_stream_of_digits(digits: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    rows, _ = digits
    expected = vm.profile(rows)
    np.save(tmp_path / "digits.npy", rows)
    for source in (tmp_path / "digits.npy", (rows[i : i + 777] for i in range(0, 10_000, 777))):
        found = vm.score_stream(source, q=list(expected))
        for q, score in expected.items():
            assert found[q].bounds[0] <= score.bounds[1]
            assert found[q].bounds[1] >= score.bounds[0]
            if q >= 1:
                assert float(found[q]) == pytest.approx(float(score), rel=1e-10)


def test_workers_that_merge(embeddings: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    rows, _ = embeddings
    workers = []
    for i, part in enumerate(
        np.array_split(rows, 4)
    ):  # 500 rows each, fewer than half of the columns: kept as rows
        worker = vm.Accumulator()
        worker.update(part)
        worker.save(tmp_path / f"{i}.npz")
        workers.append(vm.Accumulator.load(tmp_path / f"{i}.npz"))
    assert [worker.held for worker in workers] == ["dense"] * 4
    total = sum(workers)
    assert total.held == "sum"
    assert float(total.score()) == pytest.approx(float(vm.score(rows)), rel=1e-10)


def test_a_sum_for_every_digit(digits: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    rows, labels = digits
    expected = vm.score_groups(rows, by=labels)
    whole = vm.GroupAccumulator()
    spilling = vm.GroupAccumulator(memory="16 MB", spill=tmp_path)  # a digit takes 5 MB
    for part in np.array_split(np.arange(10_000), 13):
        whole.update(rows[part], by=labels[part])
        spilling.update(rows[part], by=labels[part])
    assert spilling.spilled > 0
    for groups in (whole, spilling):
        found = groups.score()
        assert found.labels == expected.labels
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-9)


@pytest.mark.parametrize("how", ["shared", "own"])
def test_tensors(
    embeddings: tuple[np.ndarray, np.ndarray], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(devices, "SHARE_HOST", how == "shared")
    rows, labels = embeddings
    tensor, by = torch.tensor(rows), torch.tensor(labels)
    assert float(vm.score(tensor)) == pytest.approx(float(vm.score(rows)), rel=1e-10)
    assert float(vm.score(tensor, RBF())) == pytest.approx(float(vm.score(rows, RBF())), rel=1e-9)
    np.testing.assert_allclose(
        vm.score_groups(tensor, by=by).scores, vm.score_groups(rows, by=labels).scores, rtol=1e-10
    )


def test_the_gradient_says_what_to_do(embeddings: tuple[np.ndarray, np.ndarray]) -> None:
    torch = pytest.importorskip("torch")
    from vendimeter.integrations.torch import vendi_score

    rows, labels = embeddings
    group: Any = torch.tensor(rows[labels == labels[0]].astype(np.float64), requires_grad=True)
    score = vendi_score(group)
    assert score.item() == pytest.approx(float(vm.score(group)), rel=1e-10)
    score.backward()
    step = 1e-4 * group.grad / group.grad.norm()
    gained = vendi_score(group.detach() + step) - vendi_score(group.detach() - step)
    assert gained.item() == pytest.approx(2e-4 * group.grad.norm().item(), rel=1e-6)


def test_random_features_approach_the_exact_score_from_below(digits: tuple[np.ndarray, np.ndarray]) -> None:
    rows = digits[0][:1500] / 255.0
    kernel = RBF().fit(rows)
    exact = float(vm.score(rows, kernel))
    found = [float(vm.score(rows, RandomFeatures(kernel, count))) for count in (64, 256, 1024)]
    assert found == sorted(found)
    assert 0.5 * exact < found[-1] < exact
