"""The certified low-rank solver: its bounds always hold, are as tight as can be, and cost few similarities."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import hadamard
from scipy.stats import chi2

from array_libraries import Library
from vendimeter.data import devices
from vendimeter.errors import (
    AsymmetryError,
    DiagonalError,
    IndefiniteError,
    InputError,
    MatrixError,
    UnansweredError,
)
from vendimeter.kernels import RBF, Cosine, FromFunction, Jaccard, Precomputed
from vendimeter.similarity import FeatureRows, Matrix
from vendimeter.solvers.cholesky import Cholesky
from vendimeter.solvers.dense import eigen_error
from vendimeter.solvers.lowrank import solve
from vendimeter.solvers.options import Solver
from vendimeter.spectrum import LowRank, bracket, hill

RNG = np.random.default_rng(3)
ORDERS = [0.1, 0.5, 0.9, 1 - 1e-9, 1.0, 1 + 1e-9, 1.3, 2.0, 3.0, 50.0, 1e6, math.inf]


def rbf(rows, sigma=1.0):
    apart = ((rows[:, None] - rows[None]) ** 2).sum(axis=-1)
    return np.exp(-apart / (2 * sigma**2))


def tanimoto(bits):
    common, sizes = bits @ bits.T, bits.sum(axis=1)
    return common / (sizes[:, None] + sizes - common)


def of_spectrum(values):
    """A similarity matrix, with a diagonal of 1, whose eigenvalues are these (a power of two of them) times n."""
    signs = hadamard(len(values)).astype(float)
    return (signs * (values / values.sum())) @ signs.T


def trusted(K):
    return Matrix(K, trusted=True, rounding=4 * np.finfo(float).eps)


def truth(K, weights=None):
    """Bounds on the true scores from all eigenvalues."""
    p = np.full(len(K), 1 / len(K)) if weights is None else weights
    values = np.linalg.eigvalsh(K * np.sqrt(p)[:, None] * np.sqrt(p))[::-1]
    error = float(eigen_error(len(K), values[0])) + 1e-15
    return {q: tuple(map(float, bracket(np.maximum(values, 0.0), error, q))) for q in ORDERS}


PLACES = np.arange(1.0, 65.0)
SPECTRA = {
    "flat": np.ones(64),
    "power law": PLACES**-1.5,
    "exponential": np.exp(-PLACES / 3),
    "steep": np.exp(-PLACES),
    "few modes": np.r_[np.ones(4), np.full(60, 1e-4)],
    "deficient": np.r_[np.ones(10), np.zeros(54)],
    "one mode": np.r_[1.0, np.full(63, 1e-9)],
}
CLOUD = RNG.standard_normal((90, 5))
PAIR = RNG.standard_normal((30, 2))
MATRICES = {
    **{name: of_spectrum(values) for name, values in SPECTRA.items()},
    **{f"rbf in {d} dimensions": rbf(CLOUD[:, :d]) for d in (1, 2, 3, 5)},
    "near duplicates": rbf(np.r_[PAIR, PAIR + 1e-7 * RNG.standard_normal(PAIR.shape), PAIR + 1e-5]),
    "identical": np.ones((30, 30)),
    "tanimoto": tanimoto((RNG.random((80, 200)) < 0.1).astype(float)),
    "one item": np.ones((1, 1)),
    "two items": np.array([[1.0, 0.3], [0.3, 1.0]]),
}


# ------------------------------------------------------------------------------------------------- always inside


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MATRICES)
def test_the_bounds_contain_the_dense_answer_at_every_rank_and_order(name, weighted):
    K = MATRICES[name]
    n = len(K)
    weights = np.random.default_rng(n).dirichlet(np.full(n, 0.5)) if weighted else None
    expected = truth(K, weights)
    for pivots, seed in (("random", 0), ("random", 1), ("greedy", 0)):
        factor = Cholesky(trusted(K), weights, pivots=pivots, rng=seed, capacity=n)
        for rank in (0, 1, 2, 5, 9, 20, 40, n):
            factor.grow(rank)
            for _ in range(2):  # without the Frobenius norm of what is left, and with it
                spectrum = factor.spectrum()
                assert spectrum.residual == pytest.approx(factor.residual, abs=1e-9)
                for q, (least, most) in expected.items():
                    value, low, high = spectrum.score(q)
                    assert low <= most, (pivots, rank, q)
                    assert high >= least, (pivots, rank, q)
                    assert 1 <= low <= value <= high <= n
                assert factor.tighten()
        assert factor.exhausted
        assert spectrum.score(1).high / spectrum.score(1).low < 1 + 1e-8


@pytest.mark.parametrize("name", SPECTRA)
def test_eigenvalues_known_in_advance_lie_above_those_of_the_spectrum(name):
    values = np.sort(SPECTRA[name] / SPECTRA[name].sum())[::-1]
    for seed, rank in itertools.product(range(10), (3, 17, 64)):
        factor = Cholesky(trusted(MATRICES[name]), None, rng=seed, capacity=64)
        factor.grow(rank)
        spectrum = factor.spectrum()
        known = spectrum.eigenvalues
        assert (known <= values[: len(known)]).all()
        assert math.fsum(known) + spectrum.residual == pytest.approx(1, abs=1e-15)
        for q in ORDERS:
            if values[-1] > 0 or q >= 0.5:
                assert spectrum.score(q).low <= hill(values, q) * (1 + 1e-12)
                assert spectrum.score(q).high >= hill(values, q) * (1 - 1e-12)


def splits(count, seed):
    """Random σ and R, positive semidefinite, σ + R of trace 1, of many shapes."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n = int(rng.integers(1, 12))
        left, right = (rng.standard_normal((n, rng.integers(1, n + 1))) for _ in range(2))
        left, right = (a * rng.gamma(0.5, size=a.shape[1]) + 1e-12 for a in (left, right))
        share = rng.beta(0.3, 0.3) * 0.998 + 0.001
        left, right = ((a @ a.T) / (a**2).sum() for a in (left, right))
        yield (1 - share) * left, share * right


def test_every_bound_holds_for_splits_that_no_factorisation_made():
    """With R of any kind, not only a Schur complement."""
    checks = 0
    for sigma, rest in splits(1000, 1):
        n = len(sigma)
        known = np.maximum(np.linalg.eigvalsh(sigma)[::-1] - 1e-15, 0.0)
        values = np.maximum(np.linalg.eigvalsh(sigma + rest)[::-1], 0.0)
        residual = 1 - math.fsum(known)
        for diagonal, frobenius in itertools.product(
            (None, rest.diagonal() + 1e-15), (None, float(np.linalg.norm(rest)) + 1e-15)
        ):
            spectrum = LowRank(known, residual, n, diagonal, frobenius, shift=1e-14)
            for q in (0.3, 0.8, 1.0, 1.1, 1.7, 2.0, 7.0, math.inf):
                exact = float(hill(values, q, zero_below=1e-14))
                _, low, high = spectrum.score(q)
                slack = 1e-3 if q < 0.5 else 1e-6 if q < 1 else 1e-11  # of the eigenvalues themselves
                assert low * (1 - slack) <= exact <= high * (1 + slack), (n, q)
                checks += 1
    assert checks == 1000 * 4 * 8


# ------------------------------------------------------------------------------------------------ as tight as can be


def test_the_water_level_is_attained():
    known = np.array([0.4, 0.25, 0.1, 0.02, 0.0])
    spectrum = LowRank(known, 0.23, 8)
    # Raised to the level: 0.25 = (0.02 + 0.23)/5 … and 0.1 stays above it.
    filled = np.r_[0.4, 0.25, 0.1, np.full(5, 0.05)]
    steep = np.r_[0.63, 0.25, 0.1, 0.02]
    for q in ORDERS:
        rounding = 1e-12 if abs(q - 1) > 1e-3 else 1e-9
        assert spectrum.score(q).high == pytest.approx(float(hill(filled, q)), rel=rounding)
        assert spectrum.score(q).low == pytest.approx(float(hill(steep, q)), rel=rounding)
        assert spectrum.score(q).high >= hill(filled, q) * (1 - 1e-15)
        assert spectrum.score(q).low <= hill(steep, q) * (1 + 1e-15)


def test_the_water_level_where_all_eigenvalues_are_raised_or_none():
    assert LowRank(np.array([0.1, 0.1]), 0.8, 4).score(1).high == pytest.approx(4)
    assert LowRank(np.zeros(0), 1.0, 5).score(2) == pytest.approx((math.sqrt(5), 1, 5))
    for q in ORDERS:
        low, high = LowRank(np.array([0.5, 0.3, 0.2]), 0.0, 3).score(q)[1:]
        assert high / low == pytest.approx(1, abs=1e-9)
        assert low <= hill(np.array([0.5, 0.3, 0.2]), q) <= high
        assert LowRank(np.array([0.75]), 0.25, 1).score(q) == (1, 1, 1)


def test_the_diagonal_is_attained_where_factor_and_rest_do_not_meet():
    known, rest = np.array([0.5, 0.3]), np.array([0.15, 0.05, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    loose, tight = LowRank(known, 0.2, 8), LowRank(known, 0.2, 8, diagonal=rest)
    exact = float(hill(np.r_[known, rest], 1.0))
    assert tight.score(1).high == pytest.approx(exact, rel=1e-12)
    assert loose.score(1).high > 1.1 * exact
    for q in (0.3, 1.0, 1.6):
        assert tight.score(q).high >= hill(np.r_[known, rest], q) * (1 - 1e-14)


def test_the_frobenius_norm_is_attained_where_all_of_the_rest_is_alike():
    """R = (ε/m) I beside σ: then the entropy of R is log m + f(ε), which the norm gives away."""
    size, rest = 400, 0.05
    known = np.full(50, (1 - rest) / 50)
    norm = rest / math.sqrt(size - 50)
    loose, tight = LowRank(known, rest, size), LowRank(known, rest, size, frobenius=norm)
    exact = float(hill(np.r_[known, np.full(size - 50, rest / (size - 50))], 1.0))
    gap = math.log(exact / tight.score(1).low)
    assert 0 < gap < math.log(exact / loose.score(1).low) / 2
    assert gap <= -rest * math.log(rest) - (1 - rest) * math.log(1 - rest) + 1e-12  # h(ε), by the theory
    assert tight.score(math.inf).low == pytest.approx(1 / (known[0] + norm))


def test_order_0_is_not_answered_and_says_what_to_do():
    with pytest.raises(UnansweredError, match="method='exact'"):
        LowRank(np.array([1.0]), 0.0, 1).score(0)


def test_huge_orders_neither_overflow_nor_underflow():
    spectrum = LowRank(np.array([0.3, 0.2]), 0.5, 10**6)
    for q in (1e3, 1e300, math.inf):
        assert spectrum.score(q).low == pytest.approx(1 / 0.8, rel=1e-3)
        assert spectrum.score(q).high == pytest.approx(1 / 0.3, rel=1e-2)


# ----------------------------------------------------------------------------------------------------- the factor


def dense_factor(factor):
    return np.concatenate([devices.to_host(part) for _, part in factor._columns.parts()]).T


@pytest.mark.parametrize("pivots", ["random", "greedy"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_factor_is_the_partial_cholesky_factor_of_its_pivots(pivots, weighted):
    X = RNG.standard_normal((700, 3))
    weights = RNG.dirichlet(np.ones(700)) if weighted else None
    p = np.full(700, 1 / 700) if weights is None else weights
    rho = rbf(X) * np.sqrt(p)[:, None] * np.sqrt(p)
    factor = Cholesky(RBF(1.0).similarity(X), weights, pivots=pivots, capacity=400)
    factor.grow(30)
    factor.grow(300)  # over the end of the first slab
    F, chosen = dense_factor(factor), factor.pivots
    assert factor.rank == len(chosen) == len(set(chosen)) == 300
    shifted = rho + factor._eta * np.eye(700)
    assert np.abs(F @ F[chosen].T - shifted[:, chosen]).max() < 1e-13 * p.max()
    assert np.array_equal(F[chosen], np.tril(F[chosen]))
    left = p - (F**2).sum(axis=1)
    left[chosen] = 0.0
    assert factor.residual == pytest.approx(left.sum(), abs=1e-9)
    assert factor.spectrum().eigenvalues == pytest.approx(np.linalg.svd(F.T)[1] ** 2, abs=1e-12)


def test_greedy_pivots_have_the_largest_residuals():
    X = RNG.standard_normal((300, 2))
    factor = Cholesky(RBF(1.0).similarity(X), None, pivots="greedy", capacity=300)
    factor.grow(40)
    pivots = dense_factor(factor)[factor.pivots].diagonal() ** 2
    best = Cholesky(RBF(1.0).similarity(X), None, pivots="greedy", capacity=300)
    for rank in range(40):  # one at a time: the true largest residual is taken whenever it is alone
        best.grow(rank + 1)
    alone = dense_factor(best)[best.pivots].diagonal() ** 2
    assert (np.diff(alone) <= 1e-12).all()
    assert pivots.sum() > 0.9 * alone.sum()


def test_random_pivots_are_distributed_as_if_drawn_one_at_a_time():
    X = np.array([0.0, 0.4, 1.0, 1.2, 3.0])[:, None]
    p = np.array([0.3, 0.1, 0.25, 0.2, 0.15])
    rho = rbf(X) * np.sqrt(p)[:, None] * np.sqrt(p)

    def chance(order):
        left, result = rho.copy(), 1.0
        for j in order:
            result *= left[j, j] / np.trace(left)
            left = left - np.outer(left[:, j], left[j]) / left[j, j]
        return result

    orders = list(itertools.permutations(range(5), 3))
    expected = np.array([chance(order) for order in orders])
    assert expected.sum() == pytest.approx(1)
    counts = dict.fromkeys(orders, 0)
    runs, similarity = 4000, trusted(rbf(X))
    for seed in range(runs):
        factor = Cholesky(similarity, p, rng=seed, capacity=5)
        factor.grow(3)
        counts[tuple(factor.pivots)] += 1
    found = np.array([counts[order] for order in orders])
    statistic = ((found - runs * expected) ** 2 / (runs * expected)).sum()
    assert statistic < chi2.isf(1e-4, len(orders) - 1)
    # Without rejection, by the residuals before the block, it would be another distribution by far.
    assert ((found / runs - _without_rejection(orders, p)) ** 2 / expected).sum() * runs > 500


def _without_rejection(orders, p):
    def chance(order):
        result, left = 1.0, 1.0
        for j in order:
            result, left = result * p[j] / left, left - p[j]
        return result

    return np.array([chance(order) for order in orders])


def test_the_same_seed_gives_the_same_and_another_seed_another_factor():
    X = RNG.standard_normal((9000, 3))
    runs = []
    for seed in (0, 0, 1):
        factor = Cholesky(RBF(1.0).similarity(X), None, rng=seed, capacity=200)
        factor.grow(90)
        runs.append((factor.pivots, factor.spectrum().score(1)))
    assert runs[0] == runs[1]
    assert runs[0][0] != runs[2][0]
    assert runs[0][1].value == pytest.approx(runs[2][1].value, rel=0.2)


def test_identical_items_and_features_of_low_rank_end_the_growth():
    X = RNG.standard_normal((200, 3))
    factor = Cholesky(Cosine().similarity(X), None, capacity=200)
    factor.grow(200)
    reached = factor.rank
    assert factor.exhausted
    assert 3 <= reached < 10  # a pivot at the level of rounding may slip in
    assert factor.spectrum().score(1).high / factor.spectrum().score(1).low < 1 + 1e-7
    factor.grow(200)
    assert factor.rank == reached


def test_items_without_weight_count_for_nothing():
    X = RNG.standard_normal((60, 2))
    weights = np.r_[np.full(20, 0.05), np.zeros(40)]
    factor = Cholesky(RBF(1.0).similarity(X), weights, capacity=60)
    factor.grow(60)
    assert factor.spectrum().size == 20
    assert max(factor.pivots) < 20
    low, high = truth(rbf(X[:20]))[1.0]
    assert factor.spectrum().score(1) == pytest.approx((low, low, high), rel=1e-8)


def test_leading_vectors_are_orthonormal_and_span_what_the_eigenvectors_span():
    X = RNG.standard_normal((400, 2))
    factor = Cholesky(RBF(1.0).similarity(X), None, capacity=400)
    with pytest.raises(InputError, match="grow"):
        factor.leading(3)
    factor.grow(100)
    vectors = factor.leading(10)
    assert vectors.shape == (400, 10)
    assert vectors.T @ vectors == pytest.approx(np.eye(10), abs=1e-13)
    exact = np.linalg.eigh(rbf(X))[1][:, ::-1][:, :10]
    assert np.linalg.norm(exact.T @ vectors, 2) <= 1 + 1e-12
    assert np.linalg.svd(exact.T @ vectors)[1].min() > 1 - 1e-6
    wide = factor.leading(1000)
    assert wide.shape[0] == 400
    assert wide.T @ wide == pytest.approx(np.eye(wide.shape[1]), abs=1e-12)


@pytest.mark.parametrize("kind", ["dense", "sparse", "features"])
def test_tighten_bounds_the_norm_of_what_is_left_and_narrows_the_interval(kind):
    X = RNG.standard_normal((150, 40)) * np.linspace(2, 0.05, 40)
    K = X @ X.T / np.outer(*[np.linalg.norm(X, axis=1)] * 2)
    np.fill_diagonal(K, 1.0)
    similarity = {
        "dense": lambda: trusted(K),
        "sparse": lambda: trusted(sparse.csr_array(K)),
        "features": lambda: Cosine().similarity(X),
    }[kind]()
    factor = Cholesky(similarity, None, capacity=150)
    factor.grow(20)
    before = factor.spectrum().score(1)
    assert factor.tighten()
    F = dense_factor(factor)
    exact = np.linalg.norm(K / 150 - F @ F.T)
    assert exact <= factor.spectrum().frobenius <= 1.001 * exact + 1e-6
    after = factor.spectrum().score(1)
    assert after.low > before.low * 1.005
    assert after.high == before.high
    factor.grow(25)  # an older norm still holds
    F = dense_factor(factor)
    assert np.linalg.norm(K / 150 - F @ F.T) <= factor.spectrum().frobenius


def test_tighten_says_no_where_similarities_would_be_computed_again():
    factor = Cholesky(RBF(1.0).similarity(RNG.standard_normal((50, 2))), None, capacity=50)
    factor.grow(10)
    assert not factor.tighten()
    assert factor.spectrum().frobenius is None


# ------------------------------------------------------------------------------------------------- other libraries


@pytest.mark.parametrize("pivots", ["random", "greedy"])
@pytest.mark.parametrize("kind", ["pairwise", "features", "matrix"])
def test_every_library_gives_the_same_answer(library: Library, kind, pivots):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((320, 3))
    weights = rng.dirichlet(np.full(320, 2.0))
    K = rbf(X, 1.5)

    def answer(array):
        similarity = {
            "pairwise": lambda: RBF(1.5).similarity(array(X)),
            "features": lambda: Cosine().similarity(array(np.hstack([X, X**2, X**3]))),
            "matrix": lambda: Precomputed().similarity(array(K)).checked(),
        }[kind]()
        factor = Cholesky(similarity, weights, pivots=pivots, capacity=320)
        factor.grow(5)
        factor.spectrum()
        factor.grow(24 if kind != "features" else 7)
        tightened = factor.tighten()
        return factor, tightened

    found, tightened = answer(library.array)
    expected, _ = answer(np.asarray)
    assert tightened == (kind != "pairwise")
    assert found.pivots == expected.pivots
    assert found.rank == expected.rank
    for q in ORDERS[1:]:
        assert found.spectrum().score(q) == pytest.approx(expected.spectrum().score(q), rel=1e-8)
    F = dense_factor(found)[found.pivots]
    assert np.array_equal(F, np.tril(F))
    vectors = devices.to_host(found.leading(4))
    assert vectors.T @ vectors == pytest.approx(np.eye(4), abs=1e-12)
    assert np.abs(vectors.T @ expected.leading(4)) == pytest.approx(np.eye(4), abs=1e-5)


def test_a_block_function_on_a_device_is_checked_and_scored_there(library: Library):
    X = np.random.default_rng(4).standard_normal((48, 2))

    def block(a, b):
        return 1 / (1 + ((a[:, None, 0] - b[None, :, 0]) ** 2 + (a[:, None, 1] - b[None, :, 1]) ** 2))

    factor = Cholesky(FromFunction(block, block=True).similarity(library.array(X)), None, capacity=48)
    factor.grow(8)
    low, high = truth(block(X, X))[1.0]
    assert factor.rank == 8
    assert factor.spectrum().score(1).low <= low
    assert factor.spectrum().score(1).high >= high
    # Every item is 1-similar to itself, and less so to those it is compared with than they to it.
    lopsided = FromFunction(
        lambda a, b: block(a, b) * (1 + 0.1 * (a[:, None, 0] - b[None, :, 0])), block=True
    )
    with pytest.raises(AsymmetryError):
        Cholesky(lopsided.similarity(library.array(X)), None, capacity=48).grow(8)


# ------------------------------------------------------------------------------------------------ a user's function


class Counted:
    """k(a, b) = exp(−‖a − b‖²/2) of two points, which counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, a, b):
        self.calls += 1
        return math.exp(-0.5 * ((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2))


@pytest.fixture(scope="module")
def plane():
    """2,000 points, and bounds on the score of their RBF similarities with σ = 1."""
    X = np.random.default_rng(0).standard_normal((2000, 2))
    return X, truth(RBF(1.0).similarity(X).dense())[1.0]


@pytest.mark.parametrize("pivots", ["random", "greedy"])
def test_a_slow_function_is_called_for_few_of_the_pairs(plane, pivots):
    X, (low, high) = plane
    function = Counted()
    run = solve(
        FromFunction(function).similarity(X), None, Solver(1e-2, pivots=pivots), orders=[1.0], most=2000
    )
    assert run.met
    assert run.factor.evaluations == function.calls
    assert function.calls <= 0.08 * 2000**2 / 2
    assert run.spectrum.score(1).low <= low
    assert run.spectrum.score(1).high >= high


def test_symmetrize_averages_both_orders_and_counts_both():
    X = RNG.standard_normal((150, 2))
    calls = 0

    def lopsided(a, b):
        nonlocal calls
        calls += 1
        return float(np.exp(-0.5 * ((a - b) ** 2).sum()) * (1 + 0.05 * np.tanh(a[0] - b[0])))

    similarity = FromFunction(lopsided, symmetrize=True).similarity(X)
    run = solve(similarity, None, Solver(1e-3), orders=[1.0], most=150)
    assert run.factor.evaluations == calls
    low, high = truth(rbf(X))[1.0]  # the odd part averages out
    assert run.met
    assert run.spectrum.score(1).low <= high
    assert run.spectrum.score(1).high >= low
    with pytest.raises(AsymmetryError, match="not symmetric: it gives"):
        solve(FromFunction(lopsided).similarity(X), None, Solver(1e-3), orders=[1.0], most=150)


def test_normalize_divides_by_the_diagonal():
    X = RNG.standard_normal((100, 2))
    function = FromFunction(lambda a, b: float(1 + a @ b) ** 3, normalize=True)
    K = (1 + X @ X.T) ** 3
    own = np.sqrt(K.diagonal())
    run = solve(function.similarity(X), None, Solver(1e-6), orders=[1.0, 2.0], most=100)
    assert run.met
    assert 10 <= run.factor.rank <= 20  # the monomials of degree up to 3 in two variables
    for q in (1.0, 2.0):
        low, high = truth(K / own[:, None] / own)[q]
        assert run.spectrum.score(q).low <= high
        assert run.spectrum.score(q).high >= low
    with pytest.raises(DiagonalError, match="normalize=True"):
        solve(FromFunction(function.function).similarity(X), None, Solver(1e-3), orders=[1.0], most=100)


def test_distances_are_recognised_by_their_diagonal():
    X = RNG.standard_normal((100, 2))
    with pytest.raises(DiagonalError, match="distances"):
        Cholesky(FromFunction(lambda a, b: float(np.abs(a - b).sum())).similarity(X), None, capacity=9)


@pytest.mark.parametrize("pivots", ["random", "greedy"])
def test_a_function_that_is_not_positive_semidefinite_is_an_error(pivots):
    X = RNG.uniform(0, 3, (200, 2))
    near = FromFunction(lambda a, b: float(max(0.0, 1 - 0.5 * np.linalg.norm(a - b) ** 2)))
    with pytest.raises(IndefiniteError, match=r"not positive semidefinite.*project=True"):
        solve(near.similarity(X), None, Solver(1e-3, pivots=pivots), orders=[1.0], most=200)


def test_a_matrix_that_is_not_positive_semidefinite_is_an_error():
    # Of some other points the rank that is needed shows no negative eigenvalue.
    points = np.random.default_rng(0).standard_normal((100, 2))
    K = rbf(points)
    K[3, 4] = K[4, 3] = -0.9
    with pytest.raises(IndefiniteError):
        solve(Precomputed().similarity(K).checked(), None, Solver(1e-6), orders=[1.0], most=100)


def test_values_that_are_not_finite_are_named_by_the_users_own_positions():
    X = np.arange(50.0)
    function = FromFunction(lambda a, b: math.nan if {a, b} == {7.0, 9.0} else float(a == b))
    with pytest.raises(MatrixError, match=r"k\[1?0?0?[79], 1?0?0?[79]\] is nan"):
        Cholesky(function.similarity(X), None, capacity=50, names=np.arange(50)).grow(50)
    own = FromFunction(lambda a, b: math.inf if a == b == 7.0 else float(a == b))
    with pytest.raises(MatrixError, match=r"k\[107, 107\] is inf"):
        Cholesky(own.similarity(X), None, capacity=50, names=np.arange(100, 150))


def test_a_function_of_float32_has_its_rounding_allowed_for():
    X = RNG.standard_normal((200, 2)).astype(np.float32)

    def single(a, b):
        apart = ((a[:, None] - b[None]) ** 2).sum(axis=-1)
        return np.exp(-apart / 2)

    factor = Cholesky(FromFunction(single, block=True).similarity(X), None, capacity=200)
    factor.grow(200)
    assert factor.rank < 100  # what lies below the rounding of float32 is left alone
    low, high = truth(rbf(X.astype(float)))[1.0]
    assert factor.spectrum().score(1).low <= low
    assert factor.spectrum().score(1).high >= high
    assert factor.spectrum().score(1).high < 1.01 * low


# ------------------------------------------------------------------------------------------------ until it is enough


@pytest.mark.parametrize(("dimensions", "sigma"), [(2, 1.0), (3, 1.0), (4, 2.0)])
def test_smooth_kernels_do_not_stall(dimensions, sigma):
    X = np.random.default_rng(dimensions).standard_normal((2500, dimensions))
    notes = []
    run = solve(
        RBF(sigma).similarity(X),
        None,
        Solver(1e-2),
        orders=[1.0, 2.0],
        most=2500,
        worthwhile=600,
        report=lambda fraction, note: notes.append((fraction, note)),
    )
    assert run.met
    assert not run.stalled
    assert run.width <= 1e-2
    assert run.factor.rank <= 600
    assert len(notes) == len(run.history)
    fractions = [fraction for fraction, _ in notes]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1
    assert notes[-1][1].startswith(f"rank {run.factor.rank}, ")
    for q in (1.0, 2.0):
        value, low, high = run.spectrum.score(q)
        assert (high - low) / 2 <= 1e-2 * value


@pytest.mark.parametrize("pivots", ["random", "greedy"])
def test_flat_spectra_stall_early(pivots):
    bits = np.random.default_rng(1).random((1500, 300)) < 0.05
    run = solve(
        Jaccard().similarity(bits),
        None,
        Solver(1e-2, pivots=pivots),
        orders=[1.0],
        most=1500,
        worthwhile=500,
    )
    assert run.stalled
    assert not run.met
    assert 64 <= run.factor.rank <= 128
    assert (
        run.spectrum.score(1).low < truth(tanimoto(bits.astype(float)))[1.0][0] < run.spectrum.score(1).high
    )


def test_without_a_limit_to_what_is_worthwhile_it_goes_on_to_the_largest_rank():
    run = solve(trusted(np.eye(200)), None, Solver(1e-3), orders=[1.0], most=150)
    assert (run.factor.rank, run.met, run.stalled) == (150, False, False)
    whole = solve(trusted(np.eye(200)), None, Solver(1e-9), orders=[1.0], most=200)
    assert (whole.factor.rank, whole.met) == (200, True)


def test_near_the_tolerance_the_norm_of_the_rest_is_used_where_it_is_cheap():
    X = np.random.default_rng(2).standard_normal((400, 60)) * np.geomspace(3, 0.03, 60)
    features = Cosine().similarity(X)
    alone = Cholesky(features, None, capacity=400)
    for rank in (16, 32):
        alone.grow(rank)
    wide = alone.spectrum().width([1.0])
    assert alone.tighten()
    narrow = alone.spectrum().width([1.0])
    assert narrow < 0.98 * wide
    between = (wide + narrow) / 2
    run = solve(features, None, Solver(between), orders=[1.0], most=400)
    assert (run.met, run.factor.rank) == (True, 32)
    # Of a dense matrix it would cost more than growing on.
    rows = X / np.linalg.norm(X, axis=1, keepdims=True)
    run = solve(trusted(rows @ rows.T), None, Solver(between), orders=[1.0], most=400)
    assert run.met
    assert run.factor.rank > 32
    assert run.spectrum.frobenius is None


def test_order_0_is_refused():
    with pytest.raises(UnansweredError):
        solve(trusted(np.eye(5)), None, Solver(1e-2), orders=[1.0, 0.0], most=5)


def test_a_single_item():
    run = solve(FeatureRows(np.ones((1, 1))), None, Solver(1e-9), orders=[0.5, 1.0, math.inf], most=1)
    assert run.met
    assert run.spectrum.score(1) == (1, 1, 1)
