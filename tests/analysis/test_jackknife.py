"""The delete-group jackknife and the random subsets, against brute force."""

import itertools
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.analysis.rarefaction import jackknife_groups
from vendimeter.analysis.rarefaction.jackknife_groups import Split, Subset, deal_groups, draw_subset
from vendimeter.analysis.rarefaction.population import GROUPS, halvings, jackknife
from vendimeter.kernels import as_kernel
from vendimeter.similarity import FeatureRows

RNG = np.random.default_rng(11)
ROWS = RNG.standard_normal((131, 6))
ROWS /= np.linalg.norm(ROWS, axis=1, keepdims=True)
KERNEL = ROWS @ ROWS.T


def entropy_of(K: np.ndarray, items: np.ndarray, counts: np.ndarray | None = None, q: float = 1.0) -> float:
    """By the definition, from the dense matrix."""
    share = np.ones(len(items)) if counts is None else counts
    root = np.sqrt(share / share.sum())
    values = np.linalg.eigvalsh(root[:, None] * K[np.ix_(items, items)] * root)
    values = values[values > 1e-12]
    return float(-np.sum(values * np.log(values)) if q == 1 else np.log(np.sum(values**q)) / (1 - q))


def similarities(rows: np.ndarray) -> dict[str, Any]:
    from scipy import sparse

    return {
        "features": FeatureRows(rows),
        "sparse": as_kernel("cosine").similarity(sparse.csr_array(rows)),
        "matrix": as_kernel("precomputed").similarity(rows @ rows.T),
        "function": as_kernel(lambda a, b: float(a @ b)).similarity(list(rows)),
        "wide": as_kernel("cosine").similarity(np.hstack([rows, np.zeros((len(rows), 300))])),
    }


@pytest.mark.parametrize("groups", GROUPS)
def test_halvings_are_balanced(groups: int) -> None:
    halves, quarters = halvings(groups)
    assert halves.shape == (groups - 1, 2, groups)
    assert (halves.sum(axis=2) == groups // 2).all()
    assert (quarters.sum(axis=2) == groups // 4).all()
    assert (quarters.sum(axis=1) == 1).all()  # each group in one of the four
    assert all((halves[r, 0] == quarters[r, 0] | quarters[r, 1]).all() for r in range(groups - 1))
    signs = np.where(halves[:, 0], 1, -1)
    together = signs.T @ signs
    assert (together[~np.eye(groups, dtype=bool)] == -1).all()


@pytest.mark.parametrize("kind", ["features", "sparse", "matrix", "function", "wide"])
@pytest.mark.parametrize("q", [1.0, 2.0])
@pytest.mark.parametrize("counted", [False, True])
def test_jackknife_is_its_formula(kind: str, q: float, counted: bool) -> None:
    items = np.arange(3, 131, dtype=np.int64)  # not all of the collection, and groups of different sizes
    counts = np.random.default_rng(2).integers(1, 4, len(items)) if counted else None
    found = jackknife(
        similarities(ROWS)[kind], items, q, counts=counts, groups=12, rng=np.random.default_rng(5)
    )

    parts = deal_groups(Subset(items, counts), 12, np.random.default_rng(5))
    every = np.zeros((12, 131))
    for row, part in zip(every, parts, strict=True):
        row[part.items] = 1 if part.counts is None else part.counts

    def scored(mass: np.ndarray) -> float:
        present = np.flatnonzero(mass)
        return entropy_of(KERNEL, present, mass[present], q)

    n, sizes, total = every.sum(), every.sum(axis=1), every.sum(axis=0)
    plugin = scored(total)
    left = np.array([scored(total - one) for one in every])
    ratio = n / sizes
    estimate = 12 * plugin - np.sum((1 - sizes / n) * left)
    variance = np.mean((ratio * plugin - (ratio - 1) * left - estimate) ** 2 / (ratio - 1))
    halves, quarters = halvings(12)
    half = np.array([[scored(every[side].sum(axis=0)) for side in pair] for pair in halves]).mean(axis=1)
    quarter = np.mean([scored(every[side].sum(axis=0)) for four in quarters for side in four])
    pairs = half.var(ddof=1) * (12 / 11) ** 2
    assert found.n == n
    assert found.groups == 12
    assert found.plugin == pytest.approx(plugin, abs=1e-10)
    assert found.left_out == pytest.approx(left, abs=1e-10)
    assert found.estimate == pytest.approx(estimate, abs=1e-9)
    assert found.standard_error**2 == pytest.approx(max(variance - pairs, variance * 2 / 3), rel=1e-6)
    assert found.skew_error == pytest.approx(max(pairs / (estimate - plugin), 0), rel=1e-6)
    assert found.gains == pytest.approx((plugin - half.mean(), half.mean() - quarter), abs=1e-9)


def test_counts_are_dealt_copy_by_copy() -> None:
    counts = np.array([60, 3, 17, 1])
    parts = deal_groups(Subset(np.array([5, 2, 9, 0]), counts), 20, np.random.default_rng(0))
    assert sorted({part.size for part in parts}) == [4, 5]
    held = {item: [0] * 20 for item in (5, 2, 9, 0)}
    for j, part in enumerate(parts):
        assert part.counts is not None
        assert (part.counts > 0).all()
        for item, count in zip(part.items.tolist(), part.counts.tolist(), strict=True):
            held[item][j] = count
    assert [sum(held[item]) for item in (5, 2, 9, 0)] == counts.tolist()
    assert min(held[5]) > 0  # sixty copies are in all groups, not in one


def test_subsets_are_random_and_nested() -> None:
    parts = deal_groups(Subset(np.arange(60)), 12, np.random.default_rng(0))
    split = Split(FeatureRows(np.eye(60)[:, :40]), parts)
    rng, hits = np.random.default_rng(1), np.zeros(60)
    for start in range(600):
        chain = split._chain([3, 4, 17, 31], start % 12, rng)
        members = []
        for union, rest in chain:
            items = [parts[j].items for j in union] + ([rest.items] if rest else [])
            members.append(set(np.concatenate(items).tolist()))
        assert [len(found) for found in members] == [3, 4, 17, 31]
        assert all(small <= large for small, large in itertools.pairwise(members))
        hits[list(members[2])] += 1
    assert abs(hits / 600 - 17 / 60).max() < 0.09  # 4.5 standard deviations
    assert len(np.unique(draw_subset(Subset(np.arange(9)), 9, rng).items)) == 9


def test_sums_that_are_not_kept_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = vm.rarefy(ROWS, repeats=3, groups=8)
    monkeypatch.setattr(jackknife_groups, "KEPT_BYTES", 0)
    again = vm.rarefy(ROWS, repeats=3, groups=8)
    assert again.scores == pytest.approx(kept.scores, rel=1e-12)
    assert again.population == pytest.approx(kept.population, rel=1e-12)
