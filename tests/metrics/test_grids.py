"""Coverage of a grid and the QD-score: by hand, against NumPy's histograms and an archive that is filled one by one."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import vendimeter as vm
from vendimeter.errors import EmptyError, InputError, UnknownNameError
from vendimeter.metrics import grid_coverage, grids, hill

WALKS = np.array([[0.1, 0.2], [0.3, 0.4], [0.9, 0.1], [0.9, 0.9]])


def test_by_hand():
    coverage = grid_coverage(WALKS, bounds=(0, 1), bins=2, quality=[1.0, 3.0, 2.0, 0.5])
    assert (coverage, coverage.occupied, coverage.cells, coverage.qd_score) == (0.75, 3, 4, 3 + 2 + 0.5)
    assert (coverage.n, coverage.clipped) == (4, 0)
    assert coverage.counts.tolist() == [2, 1, 1]
    assert coverage.indices.tolist() == [1, 2, 3]
    shifted = grid_coverage(WALKS, bounds=(0, 1), bins=2, quality=[-3.0, -1.0, -2.0, -3.5], offset=-4)
    assert (shifted.qd_score, shifted.indices.tolist()) == (3 + 2 + 0.5, [1, 2, 3])
    assert grid_coverage(WALKS, bounds=(0, 1), bins=2).qd_score is None
    assert grid_coverage(WALKS, bounds=(0, 1), bins=2).indices.tolist() == [0, 2, 3]
    assert grid_coverage(WALKS, bounds=(0, 1), bins=1) == 1
    assert grid_coverage(WALKS[:1], bounds=(0, 1), bins=[4, 5]) == 1 / 20
    same = grid_coverage(np.ones((9, 2)), bounds=(0, 1), bins=3, quality=np.ones(9))
    assert (same, same.qd_score, same.indices.tolist()) == (1 / 9, 1, [0])


@pytest.mark.parametrize("seed", range(25))
def test_cells_are_those_of_numpy(seed, monkeypatch):
    """Values on boundaries, and the floats just below them, are most of the points."""
    draws = np.random.default_rng(seed)
    width = int(draws.integers(1, 4))
    bins = draws.integers(1, 12, size=width)
    low = draws.normal(size=width) * 10.0 ** draws.integers(-3, 4)
    high = low + draws.exponential(size=width)
    edges = [np.linspace(*ends) for ends in zip(low, high, bins + 1, strict=True)]
    points = np.stack([draws.choice(column, 80) for column in edges], axis=1)
    points = np.where(draws.random(points.shape) < 0.3, np.nextafter(points, -np.inf), points)
    points = np.clip(np.concatenate([points, low + (high - low) * draws.random((40, width))]), low, high)
    table, _ = np.histogramdd(points, bins=bins.tolist(), range=list(zip(low, high, strict=True)))
    monkeypatch.setattr(grids, "BLOCK_BYTES", 8 * width * 7)
    coverage = grid_coverage(points, bounds=np.stack([low, high], axis=1), bins=bins.tolist())
    assert coverage.counts.tolist() == table[table > 0].tolist()  # in order of the cells
    assert coverage == np.count_nonzero(table) / table.size
    assert hill(coverage.counts, q=0) == coverage.occupied


def test_score_is_that_of_an_archive():
    """MAP-Elites: a sample takes its cell if the cell is empty or the sample better."""
    draws = np.random.default_rng(1)
    points, quality = draws.normal(size=(500, 2)), draws.integers(-5, 6, size=500).astype(float)
    archive: dict[tuple[int, ...], int] = {}
    for i, point in enumerate(np.clip(points, -2, 2)):
        cell = tuple(min(7, math.floor((value + 2) / 0.5)) for value in point)
        if cell not in archive or quality[i] > quality[archive[cell]]:
            archive[cell] = i
    coverage = grid_coverage(points, bounds=(-2, 2), bins=8, quality=quality, offset=-5, outside="clip")
    assert coverage.qd_score == sum(quality[i] + 5 for i in archive.values())
    assert coverage.indices.tolist() == [archive[cell] for cell in sorted(archive)]
    assert coverage == len(archive) / 64
    assert coverage.clipped == np.count_nonzero((np.abs(points) > 2).any(axis=1)) > 0


def test_grids_with_more_cells_than_can_be_counted():
    points = np.random.default_rng(0).random((60, 400))
    coverage = grid_coverage(np.concatenate([points, points]), bounds=(0, 1), bins=10)
    assert coverage.cells == 10**400
    assert (coverage.occupied, float(coverage)) == (60, 0)
    assert coverage.counts.tolist() == [2] * 60
    fine = grid_coverage([[0.0], [1.0], [0.5], [0.5 + 1e-12]], bounds=(0, 1), bins=10**13)
    assert (fine.occupied, fine) == (4, 4e-13)


def test_arrays_of_every_library(library):
    coverage = grid_coverage(
        library.array(WALKS), bounds=(0, 1), bins=2, quality=library.array([1.0, 3.0, 2.0, 0.5])
    )
    assert coverage.to_dict() == grid_coverage(WALKS, bounds=(0, 1), bins=2, quality=[1, 3, 2, 0.5]).to_dict()


def test_collections_frames_and_features(tmp_path):
    (tmp_path / "walks.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in WALKS))
    assert grid_coverage(vm.read(tmp_path / "walks.csv", samples=["x", "y"]), bounds=(0, 1), bins=2) == 0.75
    words = ["a", "bb", "ccc", "dd"]
    by_length = grid_coverage(
        words, bounds=(0.5, 4.5), bins=4, features=lambda texts: [[len(t)] for t in texts]
    )
    assert by_length == 0.75
    quality = pd.Series([1.0, 2.0, 3.0, 4.0], index=[3, 2, 1, 0])
    assert grid_coverage(WALKS, bounds=(0, 1), bins=1, quality=quality).qd_score == 4
    rows = pd.Series(list(WALKS))
    with pytest.raises(InputError, match="the index of quality and the index of samples"):
        grid_coverage(rows, bounds=(0, 1), bins=1, quality=quality)


@pytest.mark.parametrize(("options", "message"), [
    ({"bounds": (0, 0.5)}, r"item 1 has 0.3|item 2 has 0.9 in column 0, outside the bounds 0 to 0.5.*outside='clip'"),
    ({"bounds": (1, 0)}, "the bounds of column 0 are 1 and 0; expected two finite numbers, the lower one first"),
    ({"bounds": [(0, 1), (0, math.inf)]}, "the bounds of column 1 are 0 and inf"),
    ({"bounds": [(0, 1)] * 3}, "the lowest and the highest value of each of 2 columns"),
    ({"bounds": None}, "bounds=None; expected"),
    ({"bounds": [(0, 1), (0, 1, 2)]}, "bounds="),
    ({"bins": 0}, "bins=0; expected a whole number from 1 up"),
    ({"bins": [2, 2, 2]}, "bins has 3 entries and there are 2 columns"),
    ({"bins": "two"}, "bins='two'"),
    ({"bins": 2**60}, "a column at most"),
    ({"quality": [1, 2]}, "quality has 2 entries and there are 4 samples"),
    ({"quality": [1, 2, -3, 4]}, r"quality\[2\] is -3, below the offset 0; .* lower the QD-score by being found"),
    ({"quality": [1, 2, math.nan, 4]}, r"quality\[2\] is nan"),
    ({"quality": ["a"] * 4}, "quality=.*; expected numbers, one a sample"),
    ({"quality": [1, 2, 3, 4], "offset": math.inf}, "offset=inf; expected a finite number"),
    ({"offset": 1}, "offset=1 without quality"),
    ({"offset": np.array([1.0, 2.0])}, "offset=.* without quality"),
    ({"quality": [1e308] * 4, "offset": -1e308}, "more than float64 can hold"),
    ({"quality": [1e308] * 4}, "more than float64 can hold"),
    ({"bounds": (-1, 2**53), "bins": 2**53}, "of column 0, from -1 to .*, are narrower than float64 can tell apart"),
    ({"bounds": (0, 5e-324), "bins": 2}, "narrower than float64 can tell apart"),
])  # fmt: skip
def test_what_cannot_be_used(options, message):
    with pytest.raises(InputError, match=message):
        grid_coverage(WALKS, **({"bounds": (0, 1), "bins": 2} | options))


def test_samples_that_cannot_be_used():
    with pytest.raises(UnknownNameError, match="'clip'"):
        grid_coverage(WALKS, bounds=(0, 1), bins=2, outside="drop")
    with pytest.raises(InputError, match="item 1 holds nan in column 0"):
        grid_coverage([[0.0], [math.nan]], bounds=(0, 1), bins=2)
    with pytest.raises(EmptyError):
        grid_coverage([], bounds=(0, 1), bins=2)
    with pytest.raises(InputError, match=r"samples\[:, None\]"):
        grid_coverage([0.1, 0.2], bounds=(0, 1), bins=2)
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'bounds'"):
        grid_coverage(WALKS, bins=2)
