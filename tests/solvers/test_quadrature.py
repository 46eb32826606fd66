"""Quadrature with probes: every inequality that its bounds are made of, against all eigenvalues."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.solvers import lanczos
from vendimeter.solvers.krylov import Krylov
from vendimeter.solvers.operators import Dense
from vendimeter.solvers.options import Solver
from vendimeter.spectrum import hill
from vendimeter.spectrum.entropy import concave
from vendimeter.spectrum.quadrature import Deflated, Quadrature, _tail, ceiling, deviations, pinching

ORDERS = [0.1, 0.3, 0.5, 0.78, 0.9, 0.97, 1.0, 1.03, 1.22, 1.4, 1.5, 1.9]
PLACES = np.arange(1.0, 81.0)
SPECTRA = {
    "power law": PLACES**-1.0,
    "steep power law": PLACES**-2.5,
    "exponential": np.exp(-PLACES / 4),
    "down to rounding": np.exp(-PLACES / 2),
    "clustered": np.r_[np.full(5, 3.0), np.full(35, 1.0) + 1e-9 * PLACES[:35], np.full(40, 0.02)],
    "deficient": np.r_[np.linspace(1, 2, 30), np.zeros(50)],
    "tiny tail": np.r_[np.linspace(1, 2, 10), 1e-10 * np.linspace(1, 2, 70)],
    "flat": np.linspace(0.9, 1.1, 80),
    "one large": np.r_[50.0, np.linspace(0.1, 1, 79)],
    "next to nothing else": np.r_[50.0, np.linspace(1e-4, 1e-3, 79)],
    "a gap": np.r_[np.linspace(1, 1.1, 40), np.linspace(1e-3, 2e-3, 40)],
}


def scaled(name):
    values = SPECTRA[name]
    return values / values.sum()


def random_spectrum(rng, size):
    """Powers, clusters, zeros and tiny values in all mixtures."""
    values = rng.random(size) ** rng.uniform(0.3, 8)
    if rng.random() < 0.3:
        values[rng.random(size) < 0.5] = 0.0
    if rng.random() < 0.3:
        values[rng.random(size) < 0.5] *= 1e-8
    if rng.random() < 0.3:
        values = np.round(values, 1)
    values[0] = 1.0
    return values / values.sum()


def probes(values, count, steps, rng, basis=None):
    """Probes of the diagonal matrix with these eigenvalues, and their Lanczos runs."""
    start = rng.standard_normal((len(values), count))
    batch = lanczos._Batch(Dense(np.diag(values), scaled=True), basis, start)
    for _ in range(steps):
        batch.advance()
    return start, batch.runs()


def rotated(values, rng):
    vectors = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    return (vectors * values) @ vectors.T


def nothing_split_off(values):
    """What is known where no eigenvector is: the traces, and the true density, which p is fitted to."""
    none = np.zeros(0)
    return Deflated(len(values), none, none, float(np.sum(values**2)), values, np.ones(len(values)))


# ------------------------------------------------------------------------------------------------------- each probe


def broken_brackets(values, steps, rng):
    """By how much brackets of zᵀg(A)z and of zᵀg(A)²z are on the wrong side of it, at worst, beside rounding."""
    start, runs = probes(values, 6, steps, rng)
    known, top = nothing_split_off(values), float(values.max()) * 1.0001
    own = Quadrature(known, top, (runs,), (0.5, 0.5))
    worst, near = -math.inf, 1e-14 * top
    for q in ORDERS:
        f = concave(values, q)
        # A few roundings of the largest eigenvalue move the small ones, which f feels, and mix their vectors with those
        # of 0; but a zero is a zero.
        shift = concave(values + near, q) - concave(np.maximum(values - near, 0.0), q)
        moved = start.T**2 @ np.where(values > 0, np.abs(shift), 0.0)
        mixed = np.abs(start).T @ (f * near / np.maximum(values, near)) * np.sqrt(runs.mass)
        felt = moved + 2 * mixed + 1e-15 * runs.mass
        for c in (np.zeros(3), known.fit(q), rng.standard_normal(3) * f.max() / top ** np.arange(3)):
            [(low, high, square)] = own.brackets(q, c)
            g = f - np.polyval(c[::-1], values)
            terms = f + np.abs(c) @ (values ** np.arange(3)[:, None])
            exact, rounding = start.T**2 @ g, start.T**2 @ (3e-9 * terms) + felt
            worst = max(worst, ((low - exact) / rounding).max(), ((exact - high) / rounding).max())
            # f² cancels where q is near 1 and it is taken apart into powers
            apart = 1e-13 * values**2 / (1 - q) ** 2 if q != 1 else 0.0
            rounding = start.T**2 @ (3e-9 * terms**2 + apart) + 2 * (terms.max() + 1e-9) * felt
            worst = max(worst, ((start.T**2 @ g**2 - square) / rounding).max())
    return worst


@pytest.mark.parametrize("name", SPECTRA)
def test_gauss_and_radau_bracket_every_probe(name):
    rng = np.random.default_rng(1)
    for steps in (3, 4, 5, 7, 9, 12, 16, 20):
        assert broken_brackets(scaled(name), steps, rng) <= 1, steps


def test_gauss_and_radau_bracket_every_probe_of_random_spectra():
    rng = np.random.default_rng(2)
    for _ in range(150):
        values, steps = random_spectrum(rng, int(rng.integers(8, 60))), int(rng.integers(3, 21))
        assert broken_brackets(values, steps, rng) <= 1, (values, steps)


def test_brackets_close_with_the_number_of_steps():
    values = scaled("power law")
    gaps = []
    for steps in (4, 8, 16, 32):
        _, runs = probes(values, 8, steps, np.random.default_rng(3))
        [(low, high, _)] = Quadrature(nothing_split_off(values), 1.0, (runs,), (0.5, 0.5)).brackets(
            1, np.zeros(3)
        )
        gaps.append(float(np.mean(high - low)))
    assert gaps[0] > 4 * gaps[1] > 16 * gaps[2] > 64 * gaps[3] > 0


def test_a_probe_that_has_seen_all_there_is_is_exact():
    values = np.r_[np.full(10, 3.0), np.full(20, 1.0), np.full(10, 0.1)] / 51
    # three different eigenvalues: three steps will do
    start, runs = probes(values, 5, 8, np.random.default_rng(4))
    for q in ORDERS:
        [(low, high, _)] = Quadrature(nothing_split_off(values), 1.0, (runs,), (0.5, 0.5)).brackets(
            q, np.zeros(3)
        )
        exact = start.T**2 @ concave(values, q)
        np.testing.assert_allclose(low, exact, rtol=1e-10)
        np.testing.assert_allclose(high, exact, rtol=1e-10)


# --------------------------------------------------------------------------------------------------------- the split


def split(matrix, basis):
    """Ritz values and residuals of the space, and the eigenvalues of the rest."""
    ritz, turn = np.linalg.eigh(basis.T @ matrix @ basis)
    vectors = basis @ turn
    keep = ritz > 1e-14
    ritz, vectors = ritz[keep], vectors[:, keep]
    residual = np.linalg.norm(matrix @ vectors - vectors * ritz, axis=0)
    rest = np.linalg.qr(vectors, mode="complete")[0][:, len(ritz) :]
    values = np.linalg.eigvalsh(rest.T @ matrix @ rest)
    return ritz, residual, np.maximum(values, 0.0)


def test_pinching_raises_the_entropy_and_by_no_more_than_the_bound():
    rng = np.random.default_rng(5)
    orders = [*ORDERS, 2.0, 1e-3, 0.7, 1 + 1e-9]
    tight = 0.0
    for trial in range(200):
        size = int(rng.integers(6, 40))
        values = random_spectrum(rng, size) if trial % 2 else scaled(list(SPECTRA)[trial // 2 % len(SPECTRA)])
        matrix = rotated(values, rng)
        block = rng.standard_normal((len(values), int(rng.integers(1, 5))))
        spaces = [block]
        for _ in range(int(rng.integers(0, 4))):  # far from converged, and nearer
            spaces.append(matrix @ spaces[-1])
            spaces[-1] = spaces[-1] / np.linalg.norm(spaces[-1], axis=0)
        basis = np.linalg.qr(np.hstack(spaces)[:, : len(values) - 1])[0]
        ritz, residual, rest = split(matrix, basis)
        for q in orders:
            raised = concave(ritz, q).sum() + concave(rest, q).sum() - concave(values, q).sum()
            most = float(pinching(ritz, residual, q).sum())
            # An eigenvalue that rounding moves by 1e-16 moves x^q by as much as 1e-16^q.
            rounding = 1e-12 + 2 * len(values) * float(concave(np.array(1e-15), q))
            assert -rounding <= raised <= most + rounding, (trial, q)
            if most > 1e-3:
                tight = max(tight, raised / most)
    assert tight > 0.3  # it is no bound that anything would satisfy


def test_at_order_2_the_split_costs_exactly_what_is_outside_of_the_blocks():
    rng = np.random.default_rng(6)
    matrix = rotated(scaled("power law"), rng)
    ritz, residual, rest = split(matrix, np.linalg.qr(rng.standard_normal((80, 9)))[0])
    raised = np.sum(matrix**2) - np.sum(ritz**2) - np.sum(rest**2)
    assert pinching(ritz, residual, 2).sum() == pytest.approx(raised, rel=1e-10)


def test_the_traces_of_what_is_left():
    rng = np.random.default_rng(7)
    for name in SPECTRA:
        matrix = rotated(scaled(name), rng)
        krylov = Krylov(Dense(matrix, scaled=True), rng.standard_normal((80, 4)), 4)
        for _ in range(4):
            krylov.extend()
        known, coefficients = krylov.deflate({1.0: 0.05})
        vectors = krylov.vectors(coefficients)
        off = np.eye(80) - vectors @ vectors.T
        assert known.rest == 80 - vectors.shape[1]
        assert known.trace == pytest.approx(np.trace(off @ matrix @ off), abs=1e-12)
        assert (known.trace2 or 0.0) == pytest.approx(np.sum((off @ matrix @ off) ** 2), abs=1e-12)
        assert np.sum(pinching(known.ritz, known.residual, 1.0)) <= 0.05


# -------------------------------------------------------------------------------------------------- the largest value


@pytest.mark.parametrize("name", ["flat", "a gap", "power law", "barely out", "one large"])
@pytest.mark.parametrize(("count", "steps"), [(1, 3), (1, 8), (3, 4)])
def test_the_ceiling_fails_no_more_often_than_asked(name, count, steps):
    # "barely out": one eigenvalue a little above a continuum, which few steps do not tell from it
    values = np.r_[1.2, np.linspace(0.0, 1.0, 79)] if name == "barely out" else scaled(name)
    rng, failure, runs = np.random.default_rng(8), 0.3, 400
    batch = lanczos._Batch(Dense(np.diag(values), scaled=True), None, rng.standard_normal((80, count * runs)))
    for _ in range(steps):
        batch.advance()
    whole = batch.runs()
    failed = 0
    for i in range(runs):
        part = slice(i * count, (i + 1) * count)
        one = replace(
            whole, diagonal=whole.diagonal[part], off_diagonal=whole.off_diagonal[part], mass=whole.mass[part]
        )
        failed += ceiling([one], 80, failure) < values.max()
    assert failed <= failure * runs + 3 * math.sqrt(runs * failure * (1 - failure))


def test_the_ceiling_is_near_when_probes_and_steps_are_as_usual():
    for name in SPECTRA:
        values = scaled(name)
        _, runs = probes(values, 8, 10, np.random.default_rng(9))
        assert values.max() <= ceiling([runs], 80, 1e-3) <= 1.25 * values.max(), name
        more = probes(values, 8, 10, np.random.default_rng(10))[1]
        assert ceiling([runs, more], 80, 1e-3) < max(ceiling([part], 80, 1e-3) for part in (runs, more))


# ---------------------------------------------------------------------------------------------- the statistical error


G_VALUES = {
    "alike": np.linspace(0.9, 1, 60),
    "both signs": np.linspace(-1, 1, 60),
    "one heavy": np.r_[1.0, np.full(59, 0.02)],
    "one heavy below": -np.r_[1.0, np.full(59, 0.02)],
    "heavy and light": np.r_[1.0, -0.5, 1e-3 * np.linspace(-1, 1, 58)],
    "next to nothing": np.r_[1.0, np.zeros(59)],
}


@pytest.mark.parametrize("name", G_VALUES)
@pytest.mark.parametrize("count", [1, 3, 8, 32])
def test_means_over_probes_are_no_further_off_than_the_deviations(name, count):
    g, rng = G_VALUES[name], np.random.default_rng(11)
    plus, minus = max(g.max(), 0.0) + 1e-12, max(-g.min(), 0.0) + 1e-12
    runs, failures = 2000, (0.05, 0.2)
    chi = rng.standard_normal((runs, count, len(g))) ** 2
    means, squares = (chi @ g).mean(axis=1) - g.sum(), (chi @ g**2).mean(axis=1)
    ends = np.array([deviations(float(s), plus, minus, count, len(g), failures) for s in squares])
    high, low = np.count_nonzero(means > ends[:, 0]), np.count_nonzero(-means > ends[:, 1])
    noise = 3 * math.sqrt(runs * 0.15 * 0.85)
    assert high <= (failures[0] + failures[1] / 2) * runs + noise
    assert low <= (failures[0] + failures[1] / 2) * runs + noise


@pytest.mark.parametrize("name", G_VALUES)
@pytest.mark.parametrize("count", [1, 4, 16])
def test_the_tail_bound_holds_and_is_a_bound_of_this_distribution(name, count):
    g, rng, runs, x = G_VALUES[name], np.random.default_rng(12), 8000, 2.0
    means = ((rng.standard_normal((runs, count, len(g))) ** 2) @ g).mean(axis=1) - g.sum()
    for sign in (1, -1):
        span = max((sign * g).max(), 0.0)
        if span == 0:
            continue
        far = _tail(float(np.sqrt(np.sum(g**2))), float(span), count, x)
        exceeded = np.count_nonzero(sign * means > far) / runs
        assert exceeded <= math.exp(-x)
        # Ten times less likely at the bound, but not a hundred times: at half of it, it happens.
        assert np.count_nonzero(sign * means > far / 2) / runs > 0.01


def test_more_probes_and_less_certainty_narrow_the_deviations():
    usual = deviations(1.0, 1.0, 0.5, 16, 100, (0.01, 0.05))
    for other in (
        deviations(1.0, 1.0, 0.5, 64, 100, (0.01, 0.05)),
        deviations(1.0, 1.0, 0.5, 16, 100, (0.05, 0.05)),
        deviations(1.0, 1.0, 0.5, 16, 100, (0.01, 0.25)),
        deviations(0.5, 1.0, 0.5, 16, 100, (0.01, 0.05)),
        deviations(1.0, 0.5, 0.25, 16, 100, (0.01, 0.05)),
    ):
        assert max(other) < max(usual)
        assert min(other) < min(usual)
    assert deviations(0.0, 0.0, 0.0, 16, 100, (0.01, 0.05)) == (0.0, 0.0)


@pytest.mark.parametrize("squares", [True, False])
def test_spans_bound_what_the_polynomial_leaves_over(squares):
    rng = np.random.default_rng(13)
    for trial in range(60):
        values = random_spectrum(rng, 50) if trial % 2 else scaled(list(SPECTRA)[trial // 2 % len(SPECTRA)])
        known = nothing_split_off(values)
        if trial % 3 == 0:  # a density that has little to do with the eigenvalues
            known = replace(known, nodes=rng.random(4) * values.max(), weights=rng.random(4) * 20)
        if not squares:
            known = replace(known, squares=None)
        q = ORDERS[trial % len(ORDERS)]
        top = float(values.max()) * rng.choice([0.5, 1.0, 1.3, 10.0])
        c, plus, minus = known.spans(q, top)
        fine = top * np.concatenate([[0.0], np.geomspace(1e-20, 1, 20_000), np.linspace(0, 1, 20_000)])
        g = concave(fine, q) - np.polyval(c[::-1], fine)
        assert g.max() <= plus
        assert -g.min() <= minus
        size = np.abs(g).max()
        assert plus - g.max() <= 0.02 * size
        assert minus + g.min() <= 0.02 * size
        assert squares or c[2] == 0


# --------------------------------------------------------------------------------------------------- the whole answer


def operator_without_squares(matrix):
    operator = Dense(matrix, scaled=True)
    operator.squares = None  # as of features
    return operator


@pytest.mark.parametrize("squares", [True, False])
@pytest.mark.parametrize("name", SPECTRA)
def test_orders_from_2_up_contain_the_truth(name, squares):
    rng = np.random.default_rng(14)
    values = scaled(name)
    matrix = rotated(values, rng)
    missed = {}
    for seed in range(4):
        operator = Dense(matrix, scaled=True) if squares else operator_without_squares(matrix)
        found = lanczos.solve(operator, Solver(1e-2), orders=[1.0], rng=seed)
        for q in (2.0, 2.0001, 2.5, 3.0, 4.0, 10.0, 300.0, math.inf):
            value, low, high = found.spectrum.score(q)
            exact = float(hill(values, q))
            assert 1 <= low <= value <= high <= 80
            missed[q] = missed.get(q, 0) + (not low <= exact <= high)
            if q == 2 and squares:
                assert high - low < 1e-9
    assert not any(missed.values()), missed


def test_orders_from_2_up_hold_for_splits_that_are_far_from_converged():
    rng = np.random.default_rng(19)
    for trial in range(150):
        values = random_spectrum(rng, 40) if trial % 2 else scaled(list(SPECTRA)[trial // 2 % len(SPECTRA)])
        matrix = rotated(values, rng)
        basis = rng.standard_normal((len(values), int(rng.integers(1, 8))))
        for _ in range(int(rng.integers(0, 3))):
            basis = np.linalg.qr(matrix @ basis)[0]
        ritz, residual, rest = split(matrix, np.linalg.qr(basis)[0])
        none = np.zeros(0)
        for squares in (float(np.sum(values**2)), None):
            known = Deflated(len(values), ritz, residual, squares, none, none)
            own = Quadrature(known, float(rest.max()), (), (0.5, 0.5))
            for q in (2.0, 2.0001, 2.5, 3.0, 10.0, 300.0, math.inf):
                _, low, high = own.score(q)
                exact = float(hill(values, q))
                assert low * (1 - 1e-9) <= exact <= high * (1 + 1e-9), (trial, q)


def test_orders_from_2_up_where_only_rounding_is_left_over():
    # All eigenvalues are split off: what the traces leave is rounding, whose moments are those of no matrix.
    values = scaled("deficient")[:30]
    for off, off_squares in ((1e-16, 1e-17), (1e-16, 0.0), (0.0, 1e-17), (-1e-16, -1e-17), (1e-15, 1e-16)):
        ritz = values * (1 - off)
        squares = float(np.sum(ritz**2)) + off_squares
        known = Deflated(80, ritz, np.full(30, 1e-12), squares, np.zeros(0), np.zeros(0))
        _, runs = probes(np.zeros(80), 8, 5, np.random.default_rng(0))
        for q in (2.0001, 3.0, 10.0, 300.0, math.inf):
            value, low, high = Quadrature(known, 1e-16, (runs,), (0.5, 0.5)).score(q)
            assert low <= float(hill(values, q)) <= high
            assert low <= value <= high <= low * (1 + 1e-6)


@pytest.mark.parametrize("name", ["exponential", "one large"])
def test_an_answer_that_was_sought_for_high_orders_is_narrow_where_few_eigenvalues_matter(name):
    rng = np.random.default_rng(15)
    values = np.repeat(SPECTRA[name], 5) * np.linspace(1, 1.1, 400)
    values /= values.sum()
    matrix = rotated(values, rng)
    for q in (3.0, 5.0, math.inf):
        for operator in (Dense(matrix, scaled=True), operator_without_squares(matrix)):
            found = lanczos.solve(operator, Solver(1e-3), orders=[q])
            value, low, high = found.spectrum.score(q)
            assert low <= float(hill(values, q)) <= high
            assert (high - low) / 2 <= 1e-3 * value
            assert found.met


def test_order_2_alone_takes_no_products_and_is_certain():
    values = scaled("power law")
    operator = Dense(rotated(values, np.random.default_rng(16)), scaled=True)
    found = lanczos.solve(operator, Solver(1e-3), orders=[2.0])
    assert operator.columns == 0
    assert (found.spectrum.level, found.spectrum.confidence) == ("deterministic", 1.0)
    assert found.spectrum.score(2).value == pytest.approx(float(hill(values, 2)), rel=1e-10)


def test_an_answer_holds_for_orders_that_it_was_not_sought_for():
    rng = np.random.default_rng(17)
    asked = held = 0
    for name in SPECTRA:
        values = scaled(name)
        matrix = rotated(values, rng)
        for seed in range(5):
            spectrum = lanczos.solve(
                Dense(matrix, scaled=True), Solver(1e-2), orders=[1.0], rng=seed
            ).spectrum
            for q in (0.05, *ORDERS, 1.99):
                value, low, high = spectrum.score(q)
                # of eigenvalues that rounding has changed by 1e-16 the truth itself is no better known
                slack = 80 * 1e-16 ** min(q, 1.0)
                asked, held = asked + 1, held + (low - slack <= float(hill(values, q)) <= high + slack)
                assert 1 <= low <= value <= high <= 80
    assert held >= 0.95 * asked


def test_order_0_is_not_answered():
    values = scaled("power law")
    spectrum = lanczos.solve(Dense(np.diag(values), scaled=True), Solver(1e-2), orders=[1.0]).spectrum
    with pytest.raises(vm.errors.UnansweredError, match=r"q=0, the rank.*method='exact'"):
        spectrum.score(0)


def test_a_stand_in_claims_nothing():
    values = scaled("power law")
    spectrum = lanczos.solve(Dense(np.diag(values), scaled=True), Solver(1e-2), orders=[1.0]).spectrum
    value, low, high = replace(spectrum, level="none").score(1)
    assert value == pytest.approx(float(hill(values, 1)), rel=1e-2)
    assert math.isnan(low)
    assert math.isnan(high)


def test_rounding_of_the_matrix_widens_the_bounds():
    values = scaled("power law")
    spectrum = lanczos.solve(Dense(np.diag(values), scaled=True), Solver(1e-3), orders=[1.0]).spectrum
    for q in (0.5, 1, 1.5, 2, 3, "inf"):
        ends = [replace(spectrum, error=error).score(q) for error in (0.0, 1e-6, 1e-4)]
        assert ends[0].low > ends[1].low > ends[2].low
        assert ends[0].high < ends[1].high < ends[2].high


def test_the_leading_eigenvalues_are_known_from_below():
    rng = np.random.default_rng(18)
    values = scaled("power law")
    found = lanczos.solve(
        Dense(rotated(values, rng), scaled=True), Solver(1e-3), orders=[1.0]
    ).spectrum.eigenvalues
    assert (np.diff(found) <= 0).all()
    assert (found <= values[: len(found)] + 1e-14).all()
    np.testing.assert_allclose(found[:5], values[:5], rtol=1e-4)
