"""The bounds hold, and they are narrow.

The reference is 40-digit arithmetic: it takes exactly the floats that the library was given, builds the similarity
matrix of them, solves for its eigenvalues and evaluates the score, so that its own error is some 20 digits smaller than
the bounds it is compared with.
"""

import math

import mpmath
import numpy as np
import pytest

import vendimeter as vm
from vendimeter.spectrum import bracket, hill

INF = math.inf
ORDERS = (0.25, 0.5, 0.9, 1, 1.1, 1.5, 2, 3, 7.5, INF)
DIGITS = 40
SLACK = mpmath.mpf("1e-30")  # what 40-digit arithmetic may itself lose, generously

# ------------------------------------------------------------------------------------------------- the reference


def exact(array):
    """The very floats, as a nested list of 40-digit numbers."""
    return [[mpmath.mpf(float(value)) for value in row] for row in array]


def reference(K, weights=None):
    """Scores of all ORDERS of a similarity matrix (nested list), in 40 digits.

    Entries that were rounded to float64 may leave a singular matrix with an eigenvalue of about −1e-17: the nearest
    similarity matrix has 0 there.
    """
    n = len(K)
    p = [mpmath.mpf(1)] * n if weights is None else [mpmath.mpf(float(w)) for w in weights]
    total = mpmath.fsum(p)
    roots = [mpmath.sqrt(w / total) for w in p]
    rho = mpmath.matrix([[roots[i] * K[i][j] * roots[j] for j in range(n)] for i in range(n)])
    values = [rho[0, 0]] if n == 1 else list(mpmath.eigsy(rho, eigvals_only=True))
    assert min(values) > -1e-14
    values = [value for value in values if value > mpmath.mpf(10) ** (5 - DIGITS)]
    mass = mpmath.fsum(values)
    return {q: reference_hill([value / mass for value in values], q) for q in ORDERS}


def reference_hill(values, q):
    if q == 1:
        return mpmath.exp(-mpmath.fsum(value * mpmath.log(value) for value in values))
    if math.isinf(q):
        return 1 / max(values)
    order = mpmath.mpf(q)
    return mpmath.fsum(value**order for value in values) ** (1 / (1 - order))


def cosine_matrix(rows):
    norms = [mpmath.sqrt(mpmath.fsum(x * x for x in row)) for row in rows]
    return [
        [mpmath.fdot(a, b) / (norm_a * norm_b) for b, norm_b in zip(rows, norms, strict=True)]
        for a, norm_a in zip(rows, norms, strict=True)
    ]


def rbf_matrix(rows, sigma):
    scale = 2 * mpmath.mpf(sigma) ** 2
    return [
        [mpmath.exp(-mpmath.fsum((x - y) ** 2 for x, y in zip(a, b, strict=True)) / scale) for b in rows]
        for a in rows
    ]


def laplacian_matrix(rows, scale):
    scale = mpmath.mpf(scale)
    return [
        [mpmath.exp(-mpmath.fsum(abs(x - y) for x, y in zip(a, b, strict=True)) / scale) for b in rows]
        for a in rows
    ]


@pytest.fixture(autouse=True)
def _forty_digits():
    with mpmath.workdps(DIGITS):
        yield


def misses(profile, truth):
    """The orders whose bounds do not contain the true score, or whose score is not within its own bounds."""
    assert set(profile) == set(truth)
    return [
        (q, float(score), score.bounds, mpmath.nstr(truth[q], 20))
        for q, score in profile.items()
        if not (
            mpmath.mpf(score.bounds[0]) <= truth[q] * (1 + SLACK)
            and truth[q] * (1 - SLACK) <= mpmath.mpf(score.bounds[1])
            and score.bounds[0] <= score <= score.bounds[1]
        )
    ]


# ------------------------------------------------------------------------------------------- matrices of many kinds

SPECTRA = (
    "flat",
    "exponential",
    "steep exponential",
    "power law",
    "few modes",
    "rank-deficient",
    "near-duplicate",
    "almost flat",
    "random",
)


def random_rows(rng, n, spectrum, width=None):
    """n unit rows whose Gram matrix has about this kind of spectrum."""
    width = n if width is None else width
    rank = min(n, width)
    place = np.arange(rank)
    if spectrum == "flat":
        rows = np.linalg.qr(rng.standard_normal((max(n, width), max(n, width))))[0][:n, :width]
    elif spectrum in ("exponential", "steep exponential", "power law"):
        scale = {
            "exponential": 0.5**place,
            "steep exponential": 10.0 ** (-3.0 * place),
            "power law": 1 / (1.0 + place) ** 2,
        }[spectrum]
        basis = np.linalg.qr(rng.standard_normal((width, width)))[0][:rank]
        rows = rng.standard_normal((n, rank)) * scale @ basis
    elif spectrum == "few modes":
        centres = np.linalg.qr(rng.standard_normal((width, width)))[0][: max(1, rank // 2)]
        rows = centres[rng.integers(len(centres), size=n)]
    elif spectrum == "rank-deficient":
        inner = max(1, rank // 2)
        rows = rng.standard_normal((n, inner)) @ rng.standard_normal((inner, width))
    elif spectrum == "near-duplicate":
        spread = 10.0 ** rng.uniform(-12, -2)
        centres = rng.standard_normal((max(1, n // 2), width))
        rows = centres[np.arange(n) % len(centres)] + spread * rng.standard_normal((n, width))
    elif spectrum == "almost flat":
        rows = np.eye(n, width) + 1e-4 * rng.standard_normal((n, width))
    else:
        rows = rng.standard_normal((n, width))
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(norms > 0, rows / np.where(norms > 0, norms, 1), np.eye(1, width))


def random_matrix(rng, n, spectrum):
    """A float64 similarity matrix: symmetric to the bit, with a diagonal of exactly 1."""
    rows = random_rows(rng, n, spectrum)
    K = rows @ rows.T
    K = np.clip((K + K.T) / 2, -1, 1)
    np.fill_diagonal(K, 1.0)
    return K


def random_weights(rng, n):
    """Probabilities, some of them very unequal, some 0."""
    raw = rng.random(n) ** rng.choice([1, 8])
    raw[rng.random(n) < 0.1] = 0.0
    raw[rng.integers(n)] += 0.1
    return raw / raw.sum()


def sizes(rng, count, low=2, high=6):
    return rng.integers(low, high + 1, size=count)


# ---------------------------------------------------------------------------------------------- bounds of the paths


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_bounds_of_given_matrices_contain_the_exact_score(spectrum):
    rng = np.random.default_rng([1, SPECTRA.index(spectrum)])
    missed = []
    for n in sizes(rng, 400):
        K = random_matrix(rng, n, spectrum)
        profile = vm.score(K, "precomputed", q=ORDERS)
        missed += misses(profile, reference(exact(K)))
    assert missed == []


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_bounds_of_weighted_matrices_contain_the_exact_score(spectrum):
    rng = np.random.default_rng([2, SPECTRA.index(spectrum)])
    missed = []
    for n in sizes(rng, 150):
        K, p = random_matrix(rng, n, spectrum), random_weights(rng, n)
        profile = vm.score(K, "precomputed", q=ORDERS, weights=p)
        missed += misses(profile, reference(exact(K), p))
    assert missed == []


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_bounds_of_larger_matrices_contain_the_exact_score(spectrum):
    rng = np.random.default_rng([3, SPECTRA.index(spectrum)])
    missed = []
    for n in sizes(rng, 20, 8, 12):
        K = random_matrix(rng, n, spectrum)
        missed += misses(vm.score(K, "precomputed", q=ORDERS), reference(exact(K)))
    assert missed == []


@pytest.mark.parametrize("spectrum", ["flat", "few modes", "rank-deficient", "random"])
def test_bounds_of_sparse_matrices_contain_the_exact_score(spectrum):
    from scipy import sparse

    rng = np.random.default_rng([4, SPECTRA.index(spectrum)])
    missed = []
    for n in sizes(rng, 60, 2, 4):
        K = np.zeros((2 * n, 2 * n))
        K[:n, :n], K[n:, n:] = random_matrix(rng, n, spectrum), random_matrix(rng, n, "random")
        order = rng.permutation(2 * n)
        K = K[np.ix_(order, order)]
        p = random_weights(rng, 2 * n)
        for weights in (None, p):
            profile = vm.score(sparse.csr_array(K), "precomputed", q=ORDERS, weights=weights)
            missed += misses(profile, reference(exact(K), weights))
    assert missed == []


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("shape", ["narrow", "wide"])
def test_bounds_of_cosine_features_contain_the_exact_score(shape, dtype):
    rng = np.random.default_rng([5, shape == "wide", np.dtype(dtype).itemsize])
    missed = []
    for i, n in enumerate(sizes(rng, 300)):
        width = int(rng.integers(2, n + 1)) if shape == "narrow" else int(rng.integers(n + 1, 2 * n + 2))
        rows = random_rows(rng, n, SPECTRA[i % len(SPECTRA)], width)
        X = (rows * 10 ** rng.uniform(-1, 1, size=(n, 1))).astype(dtype)  # rows need not have norm 1
        weights = random_weights(rng, n) if i % 3 == 0 else None
        profile = vm.score(X, vm.kernels.Cosine(), q=ORDERS, weights=weights, precision="float64")
        assert {score.level for score in profile.values()} == {"deterministic"}
        missed += misses(profile, reference(cosine_matrix(exact(X)), weights))
    assert missed == []


def test_bounds_contain_the_exact_score_of_rows_that_only_rounding_makes_equal():
    """0.1·(1, 2, 3) in floats is not quite parallel to (1, 2, 3); once normalised the two are equal to the bit."""
    X = np.array([[1.0, 2.0, 3.0], [0.1 * 1.0, 0.1 * 2.0, 0.1 * 3.0]])
    profile = vm.score(X, vm.kernels.Cosine(), q=ORDERS)
    assert misses(profile, reference(cosine_matrix(exact(X)))) == []


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_bounds_of_float32_products_contain_the_exact_score(dtype):
    rng = np.random.default_rng([6, np.dtype(dtype).itemsize])
    missed = []
    for i, n in enumerate(sizes(rng, 300, 3, 8)):
        width = int(rng.integers(2, min(n, 5) + 1))
        X = random_rows(rng, n, SPECTRA[i % len(SPECTRA)], width).astype(dtype)
        weights = random_weights(rng, n) if i % 3 == 0 else None
        profile = vm.score(
            X, vm.kernels.Cosine(), q=ORDERS, weights=weights, precision="float32", rng=int(rng.integers(1e6))
        )
        assert {score.level for score in profile.values()} == {"probabilistic"}
        missed += misses(profile, reference(cosine_matrix(exact(X)), weights))
    assert missed == []


def test_bounds_of_sparse_features_contain_the_exact_score():
    from scipy import sparse

    rng = np.random.default_rng(7)
    missed = []
    for i, n in enumerate(sizes(rng, 150)):
        X = rng.standard_normal((n, int(rng.integers(2, 10)))) * (rng.random() + 0.2)
        X[rng.random(X.shape) < 0.5] = 0.0
        X[np.arange(n), rng.integers(X.shape[1], size=n)] = 1.0
        weights = random_weights(rng, n) if i % 3 == 0 else None
        profile = vm.score(sparse.csr_array(X), vm.kernels.Cosine(), q=ORDERS, weights=weights)
        missed += misses(profile, reference(cosine_matrix(exact(X)), weights))
    assert missed == []


RADIAL = {"rbf": (vm.kernels.RBF, rbf_matrix), "laplacian": (vm.kernels.Laplacian, laplacian_matrix)}


@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize(
    "width", [1, 3, 40]
)  # above 32 columns the RBF kernel is evaluated by matrix products
@pytest.mark.parametrize("name", RADIAL)
def test_bounds_of_distance_kernels_contain_the_exact_score(name, width, offset):
    kernel, matrix = RADIAL[name]
    rng = np.random.default_rng([8, len(name), width, int(offset)])
    missed = []
    for i, n in enumerate(sizes(rng, 60)):
        X = rng.standard_normal((n, width)) * 10 ** rng.uniform(-3, 0) + offset
        if i % 5 == 0:
            X[0] = X[-1]
        X = X.astype([np.float64, np.float64, np.float32][i % 3])
        scale = float(10 ** rng.uniform(-1, 1) * math.sqrt(width))
        weights = random_weights(rng, n) if i % 3 == 0 else None
        profile = vm.score(X, kernel(scale), q=ORDERS, weights=weights)
        missed += misses(profile, reference(matrix(exact(X), scale), weights))
    assert missed == []


def test_bounds_of_wide_rbf_contain_the_exact_score_where_cancellation_is_worst():
    """Close pairs far from the centre: there the matrix product loses the most digits of the distance."""
    rng = np.random.default_rng(9)
    missed = []
    for n in sizes(rng, 100, 4, 6):
        centres = rng.standard_normal((2, 40)) * 10 ** rng.uniform(0, 4)
        apart = 10 ** rng.uniform(-6, 0)
        X = centres[np.arange(n) % 2] + apart * rng.standard_normal((n, 40))
        sigma = float(apart * 10 ** rng.uniform(-0.5, 1) * math.sqrt(40))
        profile = vm.score(X, vm.kernels.RBF(sigma), q=ORDERS)
        missed += misses(profile, reference(rbf_matrix(exact(X), sigma)))
    assert missed == []


@pytest.mark.parametrize("q", [0, *ORDERS])
def test_score_is_a_number_within_its_bounds_where_the_distances_have_lost_all_digits(q):
    """So narrow a kernel on so wide a spread that the error bound exceeds every eigenvalue."""
    X = 1e4 * np.random.default_rng(15).standard_normal((4, 40))
    score = vm.score(X, vm.kernels.RBF(1e-4), q=q)
    assert score.bounds[0] <= score <= score.bounds[1]
    if q > 0:  # order 0 counts the eigenvalues above a threshold, and here the threshold is above all of them
        assert score.bounds[0] <= 4 <= score.bounds[1]  # the distances are about 1e5: K is the identity


def test_bounds_of_groups_contain_the_exact_score():
    rng = np.random.default_rng(10)
    X = rng.standard_normal((120, 4))
    labels = rng.integers(30, size=len(X))
    groups = vm.score_groups(X, vm.kernels.Cosine(), by=labels, q=ORDERS)
    missed = []
    for label in groups.labels:
        missed += misses(groups[label], reference(cosine_matrix(exact(X[labels == label]))))
    assert missed == []


# -------------------------------------------------------------------------------------------------------- tightness


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_float64_bounds_are_narrow_at_order_one(spectrum):
    rng = np.random.default_rng([11, SPECTRA.index(spectrum)])
    widest = 0.0
    for n in sizes(rng, 100, 2, 12):
        rows = random_rows(rng, n, spectrum)
        K = random_matrix(rng, n, spectrum)
        scores = [
            vm.score(K, "precomputed"),
            vm.score(rows, vm.kernels.Cosine()),
            vm.score(rows, vm.kernels.RBF(1.0)),
            vm.score(rows, vm.kernels.Laplacian(1.0)),
        ]
        widest = max(widest, *(score.half_width / score for score in scores))
    assert widest < 5e-12


@pytest.mark.parametrize("q", [1.1, 1.5, 2, 3, 7.5, INF])
def test_float64_bounds_are_narrow_at_orders_above_one(q):
    rng = np.random.default_rng(12)
    widest = 0.0
    for spectrum in SPECTRA:
        for n in sizes(rng, 20, 2, 12):
            score = vm.score(random_matrix(rng, n, spectrum), "precomputed", q=q)
            widest = max(widest, score.half_width / score)
    assert widest < 5e-12


@pytest.mark.parametrize("q", [0.25, 0.5, 0.9])
def test_float64_bounds_are_narrow_below_order_one_where_no_eigenvalue_is_small(q):
    rng = np.random.default_rng(13)
    for n in sizes(rng, 50, 2, 12):
        K = 0.5 * random_matrix(rng, n, "random") + 0.5 * np.eye(n)
        score = vm.score(K, "precomputed", q=q)
        assert score.half_width < 1e-12 * score


def test_float32_bounds_are_wider_than_float64_ones_and_still_narrow():
    rng = np.random.default_rng(14)
    X = rng.standard_normal((400, 12)).astype(np.float32)
    single, double = (vm.score(X, precision=precision) for precision in ("float32", "float64"))
    assert double.half_width < single.half_width < 1e-4 * single


# ------------------------------------------------------------------------------------------------ bracket, directly

BRACKET_ORDERS = (
    0.1,
    0.25,
    0.5,
    0.75,
    0.9,
    0.99,
    1,
    1.0001,
    1.01,
    1.1,
    1.5,
    1.9,
    2,
    2.5,
    3,
    5,
    7.5,
    20,
    100,
    INF,
)


def simplex(rng, trials, m):
    """True eigenvalues of many kinds in extended precision: they sum to 1 to all its digits."""
    kinds = [
        rng.dirichlet(np.full(m, 1.0), trials),
        rng.dirichlet(np.full(m, 0.1), trials),
        rng.dirichlet(np.full(m, 30.0), trials),
        np.broadcast_to(0.5 ** np.arange(m), (trials, m)),
        10.0 ** rng.uniform(-14, 0, (trials, m)),
        np.where(rng.random((trials, m)) < 0.5, 0.0, rng.random((trials, m))),
        np.full((trials, m), 1.0),
        np.eye(m)[rng.integers(m, size=trials)],
    ]
    x = np.concatenate(kinds).astype(np.longdouble)
    x[x.sum(axis=1) == 0, 0] = 1
    return x / x.sum(axis=1, keepdims=True)


def directions(rng, x, q):
    """Unit perturbations: random ones, and those that move the score the most or strike at the small eigenvalues."""
    trials, m = x.shape
    floor = np.maximum(x, 1e-6).astype(float)
    slope = -1 - np.log(floor) if q == 1 or math.isinf(q) else (q * floor ** (q - 1) - 1) / (1 - q)
    one = np.eye(m)[rng.integers(m, size=trials)]
    kinds = [
        rng.standard_normal((trials, m)),
        slope,
        -slope,
        slope - slope.mean(axis=1, keepdims=True) + 1e-300,
        one,
        -one,
        np.where(x < 0.05, 1.0, 0.0) + 1e-12,
        np.full((trials, m), 1.0),
    ]
    for kind in kinds:
        size = np.linalg.norm(kind, axis=1, keepdims=True)
        yield np.where(size > 1e-200, kind / np.where(size > 1e-200, size, 1), 1 / math.sqrt(m)).astype(
            np.longdouble
        )


def hill_in_extended_precision(x, q):
    """The definition, term by term."""
    if math.isinf(q):
        return 1 / x.max(axis=1)
    return np.clip(_power_sum_score(x, q), 1, x.shape[1])  # beyond this only by the last digit


def _power_sum_score(x, q):
    with np.errstate(divide="ignore", invalid="ignore"):
        if q == 1:
            return np.exp(-np.where(x > 0, x * np.log(x), 0).sum(axis=1))
        q = np.longdouble(q)
        top = x.max(axis=1, keepdims=True)  # taken out, so that high powers do not underflow
        power = np.where(x > 0, (x / top) ** q, 0).sum(axis=1)
        return np.exp((np.log(power) + q * np.log(top[:, 0])) / (1 - q))


@pytest.mark.parametrize("q", BRACKET_ORDERS)
@pytest.mark.parametrize("m", [2, 5, 12])
def test_bracket_contains_the_score_of_every_spectrum_within_the_error(m, q):
    rng = np.random.default_rng([20, m])
    missed = 0
    for error in 10.0 ** np.arange(-12, -1):
        x = simplex(rng, 12, m)
        truth = hill_in_extended_precision(x, q)
        for direction in directions(rng, x, q):
            seen = (x + error * direction).astype(np.float64)
            distance = np.linalg.norm(seen - x, axis=1).astype(np.float64) * (1 + 1e-15)
            assert distance.max() <= error * (1 + 1e-3)
            seen = -np.sort(
                -np.maximum(seen, 0.0), axis=1
            )  # neither step takes it further from the truth, sorted
            low, high = bracket(seen, distance, q)
            missed += int(np.count_nonzero((truth < low) | (truth > high)))
    assert missed == 0


@pytest.mark.parametrize("q", BRACKET_ORDERS)
def test_bracket_without_error_is_the_score_itself(q):
    x = np.array([0.5, 0.25, 0.25, 0.0])
    low, high = bracket(x, 0.0, q)
    assert (low, high) == pytest.approx((hill(x, q), hill(x, q)), rel=1e-12)


@pytest.mark.parametrize("q", BRACKET_ORDERS)
def test_bracket_of_a_batch_is_that_of_each_row(q):
    rng = np.random.default_rng(21)
    x = -np.sort(-rng.dirichlet(np.full(5, 0.5), 40), axis=1)
    error = 10.0 ** rng.uniform(-12, -2, 40)
    low, high = bracket(x, error, q)
    for i in range(len(x)):
        assert bracket(x[i], float(error[i]), q) == pytest.approx((low[i], high[i]), rel=1e-14)


@pytest.mark.parametrize("q", [0, *BRACKET_ORDERS])
def test_bracket_widens_with_the_error_and_contains_the_score_of_its_own_eigenvalues(q):
    rng = np.random.default_rng(22)
    x = -np.sort(-rng.dirichlet(np.full(6, 1.0), 200), axis=1)
    own = hill(x, q, zero_below=0.0)
    before = None
    for error in (1e-12, 1e-9, 1e-6, 1e-4):
        low, high = bracket(x, error, q)
        slack = 1e-12 * high
        if q == 0:
            own = hill(x, 0, zero_below=np.full(len(x), 2 * error))
        assert (low <= own + slack).all()
        assert (own <= high + slack).all()
        if before is not None:
            assert (low <= before[0] + slack).all()
            assert q == 0 or (high >= before[1] - slack).all()
        before = low, high


@pytest.mark.parametrize("error", [1e-12, 1e-9, 1e-6])
@pytest.mark.parametrize("m", [3, 10])
def test_bracket_is_not_absurdly_wide(m, error):
    """At order 1, against the spread that random perturbations of that size really give."""
    rng = np.random.default_rng([23, m])
    for _ in range(20):
        x = rng.dirichlet(np.full(m, 2.0)) + 0.2 / m
        x = -np.sort(-x / x.sum())
        step = rng.standard_normal((2000, m))
        step -= step.mean(axis=1, keepdims=True)  # the sum of the eigenvalues stays 1
        step *= error / np.linalg.norm(step, axis=1, keepdims=True)
        reached = hill_in_extended_precision(x.astype(np.longdouble) + step, 1)
        low, high = bracket(x, error, 1.0)
        assert high - low <= 10 * float(reached.max() - reached.min())


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("q", [1 - 2.0**-53, 1 + 2.0**-52, 1 + 1e-14, 1 - 1e-10, 1 + 1e-10, 1 + 1e-7])
def test_orders_next_to_one_score_as_order_one(q, precision):
    X = np.random.default_rng(25).standard_normal((400, 300))
    near, one = vm.score(X, q=q, precision=precision), vm.score(X, precision=precision)
    assert near == pytest.approx(float(one), rel=1e-6)
    assert near.bounds == pytest.approx(one.bounds, rel=1e-6)


def test_rank_bounds_contain_the_exact_rank():
    rng = np.random.default_rng(24)
    for error in (1e-10, 1e-6, 1e-3):
        x = simplex(rng, 100, 6)
        step = rng.standard_normal(x.shape)
        seen = x + error * step / np.linalg.norm(step, axis=1, keepdims=True)
        seen = -np.sort(-np.maximum(seen, 0).astype(np.float64), axis=1)
        low, high = bracket(seen, np.full(len(seen), error * (1 + 1e-9)), 0)
        rank = np.count_nonzero(x > 0, axis=1)
        assert ((low <= rank) & (rank <= high)).all()
        assert (low >= np.count_nonzero(x > 3.1 * error, axis=1)).all()
        assert (low > 1).any()


def test_a_gaussian_kernel_of_distinct_points_may_have_full_rank():
    score = vm.score(np.linspace(0, 1, 12), vm.kernels.RBF(1.0), q=0)
    assert score < 12  # what rounding leaves of it
    assert score.bounds[1] == 12  # what it really is
    assert "in [" in repr(score)


# -------------------------------------------------------------------------- shortcuts: one order of a large matrix

LARGE = 520  # from 512 on, single orders 2 … 6 and ∞ are found without an eigensolve


def _unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def large_matrix(kind):
    rng = np.random.default_rng(30)
    n = LARGE
    if kind == "identity":
        return np.eye(n)
    if kind == "all alike":
        return np.ones((n, n))
    if kind == "equal largest eigenvalues":  # four blocks of 130 copies: 1/4, four times
        return np.kron(np.eye(4), np.ones((n // 4, n // 4)))
    if (
        kind == "clustered largest eigenvalues"
    ):  # sizes 100, 101, …, so that the eigenvalues lie close together
        mode = np.repeat(np.arange(5), [102, 103, 104, 105, 106])
        return np.where(mode[:, None] == mode, 1 - 1e-7, 0.0) + 1e-7 * np.eye(n)
    if kind == "almost equal largest eigenvalues":
        mode = np.arange(n) % 4
        rows = _unit(np.eye(4)[mode] + 1e-6 * rng.standard_normal((n, 4)))
        K = 0.999 * rows @ rows.T + 0.001 * np.eye(n)
    elif kind == "exponential":
        rows = _unit(rng.standard_normal((n, 40)) * 0.8 ** np.arange(40))
        K = rows @ rows.T
    elif kind == "power law":
        rows = _unit(rng.standard_normal((n, n)) / np.sqrt(1.0 + np.arange(n)))
        K = rows @ rows.T
    else:
        rows = _unit(rng.standard_normal((n, 2 * n)))
        K = rows @ rows.T
    K = (K + K.T) / 2
    np.fill_diagonal(K, 1.0)
    return K


LARGE_KINDS = (
    "identity",
    "all alike",
    "equal largest eigenvalues",
    "clustered largest eigenvalues",
    "almost equal largest eigenvalues",
    "exponential",
    "power law",
    "random",
)
SHORTCUTS = (2, 3, 4, 5, 6, INF)


def check_shortcut(score, eigenvalues):
    """Against eigenvalues by numpy.linalg.eigvalsh, which are right to about 1e-14."""
    x = np.maximum(eigenvalues, 0.0).astype(np.longdouble)
    x = x / x.sum()
    truth = float(hill_in_extended_precision(x[None], score.q)[0])
    assert score == pytest.approx(truth, rel=1e-8)
    assert score.bounds[0] <= truth * (1 + 1e-12)
    assert score.bounds[1] >= truth * (1 - 1e-12)
    assert score.half_width < 1e-4 * score


@pytest.fixture(scope="module", params=LARGE_KINDS)
def large(request):
    K = large_matrix(request.param)
    return K, np.linalg.eigvalsh(K / len(K))


@pytest.mark.parametrize("q", SHORTCUTS)
def test_single_orders_of_a_large_matrix_agree_with_its_eigenvalues(large, q):
    K, eigenvalues = large
    score = vm.score(K, "precomputed", q=q)
    if q in (2, 3, 4):  # higher traces give way to the eigenvalues where these are sharper
        assert score.method == "trace"
    check_shortcut(score, eigenvalues)


def test_single_order_infinity_of_a_matrix_with_a_gap_takes_the_certified_largest_eigenvalue():
    K = large_matrix("exponential")
    score = vm.score(K, "precomputed", q="inf")
    assert score.method == "largest"
    assert score.level == "deterministic"


@pytest.mark.parametrize("q", SHORTCUTS)
def test_single_orders_of_large_weighted_matrices_agree_with_the_eigenvalues(q):
    rng = np.random.default_rng(31)
    K = large_matrix("power law")
    p = rng.dirichlet(np.full(LARGE, 0.5))
    eigenvalues = np.linalg.eigvalsh(np.sqrt(p)[:, None] * K * np.sqrt(p))
    check_shortcut(vm.score(K, "precomputed", q=q, weights=p), eigenvalues)


@pytest.mark.parametrize("q", SHORTCUTS)
def test_single_orders_of_large_features_agree_with_the_eigenvalues(q):
    rng = np.random.default_rng(32)
    X = rng.standard_normal((700, LARGE)) / np.sqrt(1.0 + np.arange(LARGE))
    rows = _unit(X)
    score = vm.score(X, q=q)
    assert score.method in ("trace", "largest")
    check_shortcut(score, np.linalg.eigvalsh(rows.T @ rows / len(rows)))


@pytest.mark.parametrize("q", SHORTCUTS)
def test_single_orders_of_a_large_rbf_kernel_agree_with_the_eigenvalues(q):
    rng = np.random.default_rng(33)
    X = rng.standard_normal((LARGE, 3))
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    score = vm.score(X, vm.kernels.RBF(0.7), q=q)
    assert score.method in ("trace", "largest")
    check_shortcut(score, np.linalg.eigvalsh(np.exp(-squares / (2 * 0.7**2)) / LARGE))


@pytest.mark.parametrize("q", SHORTCUTS)
def test_a_shortcut_and_the_spectrum_give_the_same_score(q):
    K = large_matrix("random")
    alone, with_others = vm.score(K, "precomputed", q=q), vm.score(K, "precomputed", q=[1, q])[q]
    assert alone == pytest.approx(float(with_others), rel=1e-8)
    assert max(alone.bounds[0], with_others.bounds[0]) <= min(alone.bounds[1], with_others.bounds[1])


@pytest.mark.parametrize("q", SHORTCUTS)
def test_a_large_indefinite_matrix_is_refused_by_the_shortcut_too(q):
    K = large_matrix("random")
    K[0, 1] = K[1, 0] = 1.0
    K[0, 2] = K[2, 0] = 1.0
    K[1, 2] = K[2, 1] = -1.0
    with pytest.raises(vm.errors.IndefiniteError):
        vm.score(K, "precomputed", q=q)
