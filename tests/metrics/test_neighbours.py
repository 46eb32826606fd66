"""Nearest neighbours and balls: bitwise the direct formula, whatever the blocks, the precision and the ties."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vendimeter.data import devices
from vendimeter.errors import InputError
from vendimeter.metrics import distances
from vendimeter.metrics.distances import Space
from vendimeter.metrics.neighbours import Balls, fill_balls, nearest_neighbours


def pairwise(x, y):
    """Squared distances by the formula, halves of the columns added to each other, one pair after another."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    result = np.empty((len(x), len(y)))
    for i, j in np.ndindex(result.shape):
        terms = [(a - b) * (a - b) for a, b in zip(x[i].tolist(), y[j].tolist(), strict=True)]
        half = 1
        while 2 * half < len(terms):
            half *= 2
        while len(terms) > 1:
            upper_half = terms[half:]
            terms = [a + b for a, b in zip(terms, upper_half, strict=False)] + terms[len(upper_half) : half]
            half //= 2
        result[i, j] = terms[0]
    return result


def neighbours(x, y=None, k=1):
    """Squared distances and positions of the k nearest, from all of them."""
    squares = pairwise(x, x if y is None else y)
    if y is None:
        np.fill_diagonal(squares, np.inf)
    positions = np.argsort(squares, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(squares, positions, axis=1), positions


def space(x, y=None, **options):
    return Space({"samples": x} | ({} if y is None else {"reference": y}), **options)


def own(x, k, **options):
    here = space(x, **options)
    return found_squares(here, nearest_neighbours(here, *here.sets, *here.sets, k))


def found_squares(here, result):
    """What was found, with squares in the unit of the data, for which a power of two is taken out of large ones."""
    result.squares = np.ldexp(result.squares, -2 * here._scale)
    return result


def several(kind, n=30, d=7, seed=0):
    """Rows of many kinds: plain, with ties, with copies, far from the origin, in tight groups, whole numbers."""
    rng = np.random.default_rng(seed)
    if kind == "plain":
        return rng.standard_normal((n, d))
    if kind == "tenths":  # ties in exact arithmetic, not all of them in floating point
        return rng.integers(0, 3, (n, d)) * 0.1
    if kind == "copies":
        return rng.standard_normal((4, d))[rng.integers(0, 4, n)]
    if kind == "equal":
        return np.tile(rng.standard_normal(d), (n, 1))
    if kind == "far":
        return (1e6 + rng.standard_normal((n, d))).astype(np.float32)
    if kind == "groups":
        return rng.standard_normal((3, d))[rng.integers(0, 3, n)] * 1e7 + rng.standard_normal((n, d)) * 1e-3
    if kind == "outlier":
        rows = rng.standard_normal((n, d))
        rows[0] *= 1e9
        return rows
    if kind == "bits":
        return rng.random((n, d)) < 0.5
    return rng.integers(0, 256, (n, d)).astype(np.uint8)


KINDS = ["plain", "tenths", "copies", "equal", "far", "groups", "outlier", "bits", "pixels"]


# ------------------------------------------------------------------------------------------------ against the formula


@pytest.mark.parametrize("tile", [1, 7, 1024])
@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_of_one_set_are_those_of_the_formula(kind, tile, monkeypatch):
    monkeypatch.setattr(distances, "TILE", tile)
    x = several(kind, 29)
    squares, positions = neighbours(x, k=3)
    nearest = own(x, 3)
    np.testing.assert_array_equal(nearest.squares, squares)
    np.testing.assert_array_equal(nearest.indices, positions)


@pytest.mark.parametrize("memory", [5_000, 50_000, None])
@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_in_another_set_are_those_of_the_formula(kind, memory):
    x, y = several(kind, 21, seed=1), several(kind, 17, seed=2)
    y[:3] = x[:3]
    squares, positions = neighbours(x, y, k=4)
    here = space(x, y, memory=memory)
    result = found_squares(here, nearest_neighbours(here, *here.sets, 4))
    np.testing.assert_array_equal(result.squares, squares)
    np.testing.assert_array_equal(result.indices, positions)


@pytest.mark.parametrize("memory", [5_000, None])
@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_points_in_balls_are_those_of_the_formula(kind, counted, memory):
    x, y = several(kind, 21, seed=1), several(kind, 17, seed=2)
    y[:3] = x[:3]
    radii = neighbours(y, k=3)[0][:, -1]  # distances that occur, so that there are ties
    within = pairwise(x, y) <= radii
    here = space(x, y, memory=memory)
    points, centres = here.sets
    balls = Balls(here, centres, points, np.ldexp(radii, 2 * here._scale), axis=1, counted=counted)
    fill_balls(here, points, centres, [balls])
    np.testing.assert_array_equal(balls.inside, within.any(axis=1))
    if counted:
        np.testing.assert_array_equal(balls.holding, within.any(axis=0))
        assert balls.pairs == within.sum()


def test_both_sides_can_have_balls():
    x, y = several("tenths", 12, seed=1), several("tenths", 19, seed=2)
    here = space(x, y)
    left, right = here.sets
    radii = neighbours(x, k=2)[0][:, -1]
    balls = Balls(here, left, right, radii, axis=0, counted=True)
    fill_balls(here, left, right, [balls])
    within = pairwise(x, y) <= radii[:, None]
    np.testing.assert_array_equal(balls.inside, within.any(axis=0))
    np.testing.assert_array_equal(balls.holding, within.any(axis=1))
    assert balls.pairs == within.sum()


@given(st.data())
def test_any_small_table_of_numbers(data):
    width = data.draw(st.integers(1, 3))
    entries = st.sampled_from([0.0, 0.1, -0.3, 1.0, 1e-9, 1e8, 1e8 + 1, 7.0])
    rows = st.lists(st.lists(entries, min_size=width, max_size=width), min_size=3, max_size=9)
    x = np.array(data.draw(rows))
    squares, positions = neighbours(x, k=2)
    nearest = own(x, 2)
    np.testing.assert_array_equal(nearest.squares, squares)
    np.testing.assert_array_equal(nearest.indices, positions)


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 9, 31, 64, 100])
def test_the_formula_adds_in_the_order_that_is_documented(width):
    rng = np.random.default_rng(width)
    x, y = rng.standard_normal((6, width)), rng.standard_normal((5, width))
    here = space(x, y)
    i, j = (place.ravel() for place in np.indices((6, 5)))
    result = here.squares(here.sets[0], i, here.sets[1], j)
    np.testing.assert_array_equal(result.reshape(6, 5), pairwise(x, y))
    np.testing.assert_array_equal(result, here.squares(here.sets[1], j, here.sets[0], i))


# ------------------------------------------------------------------------------------------------------------- bounds


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [1, 6, 200])
def test_bounds_hold_the_exact_distance(kind, width):
    x, y = several(kind, 7, width, seed=3), several(kind, 5, width, seed=4)
    y[0] = x[0]
    here = space(x, y)
    exact = [
        [sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(u, v, strict=True)) for v in y]
        for u in x
    ]
    formula = np.ldexp(pairwise(x, y), 2 * here._scale)
    scale = Fraction(2) ** (2 * here._scale)
    (tile,) = here.tiles(*here.sets)
    seen = []
    for precision in here.precisions:
        here.precisions = [precision]
        first = tuple(here.cast(points, slice(0, len(points)), precision.dtype) for points in here.sets)
        tile = distances.Tile(here, here.sets[0], tile.rows, here.sets[1], tile.columns, first)
        bounds, _ = tile.bounds_and_masks(lambda bounds: [(None, 0)])
        rows, columns, low, high = bounds.pairs_at(bounds.half > -np.inf)
        for i, j, lower, upper in zip(rows, columns, low, high, strict=True):
            assert Fraction(lower) <= exact[i][j] * scale <= Fraction(upper)
            assert lower <= formula[i, j] <= upper
        seen.append(float(np.max(high - low)))
    assert seen == sorted(seen, reverse=True)  # each precision is tighter than the one before


def test_whole_numbers_need_no_distance_by_the_formula():
    for kind, precisions in [("bits", 1), ("pixels", 1)]:
        here = space(several(kind, 200, 16))
        assert len(here.precisions) == precisions
        assert here.precisions[-1].relative == here.precisions[-1].absolute == 0
        before = here.computed  # rows of equal norm were compared
        nearest_neighbours(here, *here.sets, *here.sets, 3)
        assert here.computed == before
    large = space(several("pixels", 20, 700))
    assert [p.relative == 0 for p in large.precisions] == [False, True]
    halves = space(several("pixels", 20, 16) + 0.5)
    assert halves.precisions[-1].relative > 0


def test_few_pairs_are_computed_by_the_formula():
    here = space(np.random.default_rng(0).standard_normal((600, 40)).astype(np.float32))
    nearest_neighbours(here, *here.sets, *here.sets, 3)
    assert 3 * 600 <= here.computed < 3.2 * 600


def test_tight_groups_are_done_in_float64_and_not_pair_by_pair():
    rng = np.random.default_rng(0)
    groups = rng.standard_normal((5, 40))[rng.integers(0, 5, 600)] + 1e-4 * rng.standard_normal((600, 40))
    here = space(groups)
    nearest_neighbours(here, *here.sets, *here.sets, 3)
    assert here.computed < 3.2 * 600  # float32 leaves all 100 of a group in doubt


def test_copies_are_not_computed_pair_by_pair():
    rows = np.random.default_rng(0).standard_normal((3, 8))[np.arange(300) % 3]
    here = space(rows, rows[:200])
    nearest_neighbours(here, *here.sets, 2)
    assert here.computed <= 500


def test_rows_of_one_norm_need_not_be_equal():
    x = np.array([[0.5, 0.1], [0.1, 0.5], [-0.5, 0.1], [0.5, 0.1], [-0.5, -0.1]])
    np.testing.assert_array_equal(own(x, 2).squares, neighbours(x, k=2)[0])
    labels = space(x).sets[0].labels
    assert labels[0] == labels[3]
    assert len(set(labels.tolist())) == 4


# ---------------------------------------------------------------------------------------- scale, budget, other options


@pytest.mark.parametrize("exponent", [-1070, -1000, -500, -101, -100, 21, 400, 401, 900, 1020])
def test_any_scale_gives_the_same_neighbours(exponent):
    rows = np.round(several("plain", 15, 3) * 16) / 16
    if exponent < -1000:
        rows = np.round(rows)  # what is left of the digits down there
    expected = own(rows, 2)
    scaled = space(np.ldexp(rows, exponent))
    nearest = nearest_neighbours(scaled, *scaled.sets, *scaled.sets, 2)
    np.testing.assert_array_equal(nearest.indices, expected.indices)
    np.testing.assert_array_equal(
        scaled.lengths(nearest.squares), np.ldexp(np.sqrt(expected.squares), exponent)
    )


def test_a_distance_beyond_float64_is_infinite():
    here = space(np.array([[1.7e308], [-1.7e308], [1.6e308]]))
    nearest = nearest_neighbours(here, *here.sets, *here.sets, 1)
    assert nearest.indices.ravel().tolist() == [2, 2, 0]
    np.testing.assert_array_equal(here.lengths(nearest.squares).ravel()[1], np.inf)


def test_memory_is_a_budget_for_tiles():
    rows = several("plain", 40, 5)
    assert space(rows, memory=5_000).tile == 5
    assert space(rows).tile == distances.TILE
    with pytest.raises(InputError, match=r"memory=4000; expected at least 4.62 KiB for rows of 5 columns"):
        space(rows, memory=4_000)


def test_progress_ends_at_the_end():
    class Line:
        fractions: list[float] = []  # noqa: RUF012

        def step(self, fraction):
            self.fractions.append(fraction)

    line = Line()
    here = space(several("plain", 40, 5), memory=5_000, progress=line, pairs=1600)
    nearest_neighbours(here, *here.sets, *here.sets, 1)
    assert line.fractions == sorted(line.fractions)
    assert line.fractions[-1] == 1


def test_largest_of_each_row(library):
    rows = np.random.default_rng(0).integers(0, 9, (6, 11)).astype(float)
    for count in (1, 4, 11):
        result = devices.to_host(devices.largest(library.array(rows), count))
        np.testing.assert_array_equal(np.sort(result, axis=1), np.sort(rows, axis=1)[:, 11 - count :])
    np.testing.assert_array_equal(
        np.sort(devices.largest(rows.T, 2), axis=1), np.sort(rows.T, axis=1)[:, -2:]
    )
