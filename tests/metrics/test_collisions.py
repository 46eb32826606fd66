"""The birthday paradox: by hand, against counting pairs and exact laws of uniform populations, and by simulation."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from scipy import stats

import vendimeter as vm
from vendimeter.errors import EmptyError, InputError, MatrixError
from vendimeter.kernels import RBF, FromFunction
from vendimeter.metrics import birthday_paradox
from vendimeter.metrics.collisions import LEAST_CONFIDENCE
from vendimeter.solvers import edges


def plainly(near):
    """What a matrix of collisions gives, by the definition of each figure."""
    n = len(near)
    others = near.sum(axis=1) - 1
    count, pairs = int(others.sum()) // 2, math.comb(n, 2)
    p = count / pairs
    thirds = sum(
        near[i, j] and near[i, k] for i in range(n) for j, k in itertools.permutations(set(range(n)) - {i}, 2)
    )
    q = thirds / (n * (n - 1) * (n - 2))  # two given samples collide with the same third
    spread = max(1, (pairs * p * (1 - p) + n * (n - 1) * (n - 2) * (q - p * p)) / count)
    low = stats.chi2.ppf(0.025, 2 * count / spread) / 2 * spread
    high = stats.chi2.ppf(0.975, 2 * count / spread + 2) / 2 * spread
    return (
        count,
        pairs / count,
        max(1, pairs / high),
        pairs / low,
        max(1, math.ceil(pairs / stats.chi2.ppf(0.95, 2 * count + 2) * 2)),
    )


@pytest.mark.parametrize("threshold", [0.3, 0.6, 0.9])
def test_against_the_definition(threshold):
    rows = np.random.default_rng(3).normal(size=(25, 3))
    rows[20:] = rows[:5]  # equal ones, which are taken together
    K = np.array([[math.exp(-((x - y) ** 2).sum() / 2) for y in rows] for x in rows])
    estimate = birthday_paradox(rows, RBF(1.0), threshold=threshold)
    expected = plainly(threshold <= K)
    figures = (estimate.collisions, float(estimate), estimate.low, estimate.high, estimate.support)
    assert figures == pytest.approx(expected, rel=1e-9)
    assert (estimate.n, estimate.trials, estimate.batch, estimate.threshold) == (25, 300, None, threshold)
    assert birthday_paradox(K, "precomputed", threshold=threshold).to_dict() == estimate.to_dict()


def test_labels_are_counted():
    labels = np.random.default_rng(0).integers(0, 90, size=200)
    estimate = birthday_paradox([str(label) for label in labels], "match", threshold=1)
    assert estimate.collisions == sum(math.comb(count, 2) for count in Counter(labels.tolist()).values())
    assert (
        estimate == estimate.trials / estimate.collisions
    )  # the inverse of Simpson's index without replacement
    assert estimate.low < 90 < estimate.high
    assert estimate.support <= 90
    # With as many samples as that many equal items give even odds, they do.
    s = estimate.even_odds
    assert s * (s - 1) / 2 == pytest.approx(math.log(2) * estimate)


def test_no_collision_leaves_a_bound():
    estimate = birthday_paradox(list("abcdefghij"), "match", threshold=1)
    assert (estimate.collisions, estimate, estimate.high, estimate.even_odds) == (
        0,
        math.inf,
        math.inf,
        math.inf,
    )
    # (1 − 1/N) (1 − 2/N) … is below e^(−45/N): were there 15 items, ten different ones would have less than 5 %.
    assert estimate.support == math.ceil(45 / math.log(20)) == 16
    assert math.prod(1 - i / 15 for i in range(10)) < 0.05
    assert estimate.low == pytest.approx(45 / math.log(40))
    assert estimate.to_dict()["value"] is None


def test_all_alike():
    estimate = birthday_paradox(["a"] * 6, "match", threshold=1)
    assert (estimate, estimate.low, estimate.support, estimate.collisions) == (1, 1, 1, 15)
    estimate = birthday_paradox(["a"] * 6, "match", threshold=1, batch=3)
    assert (estimate, estimate.low, estimate.collisions, estimate.trials) == (1, 1, 2, 2)
    assert estimate.high > 1


def pairs_of_uniform(n, kinds):
    """The exact distribution of the number of colliding pairs of n samples of equally frequent kinds."""
    ways = Counter({(0, 0): 1})
    for _ in range(kinds):
        more = Counter()
        for (used, count), number in ways.items():
            for own in range(n - used + 1):
                more[used + own, count + math.comb(own, 2)] += number * math.comb(n - used, own)
        ways = more
    return {count: number / kinds**n for (used, count), number in ways.items() if used == n}


@pytest.mark.parametrize(("n", "kinds"), [(6, 3), (9, 7), (10, 20), (12, 5), (13, 12), (40, 2)])
def test_the_bound_holds_by_the_exact_law(n, kinds):
    """Of equally frequent kinds, which collide least; at every confidence that is taken."""
    law = pairs_of_uniform(n, kinds)
    assert sum(law.values()) == pytest.approx(1)
    for confidence in (LEAST_CONFIDENCE, 0.9, 0.95, 0.99):
        wrong = sum(
            share
            for count, share in law.items()
            if math.comb(n, 2) / stats.chi2.ppf(confidence, 2 * count + 2) * 2 > kinds
        )
        assert wrong <= 1 - confidence


def test_uneven_populations_collide_more():
    """Pairs are fewest, in distribution, where all kinds are equally frequent: by enumeration."""
    for shares in ([0.5, 0.3, 0.2], [0.8, 0.1, 0.1], [0.4, 0.4, 0.2]):
        law: dict[int, float] = defaultdict(float)
        for draw in itertools.product(range(3), repeat=6):
            pairs = sum(math.comb(count, 2) for count in Counter(draw).values())
            law[pairs] += math.prod(shares[kind] for kind in draw)
        even = pairs_of_uniform(6, 3)
        for limit in range(16):
            probabilities = [
                sum(share for count, share in one.items() if count <= limit) for one in (law, even)
            ]
            assert probabilities[0] <= probabilities[1] + 1e-12


@pytest.mark.parametrize(("weights", "n", "least"), [
    (np.ones(300), 100, 0.93), (1 / np.arange(1, 1001), 100, 0.90), (0.95 ** np.arange(300), 60, 0.91)
])  # fmt: skip
def test_intervals_hold_the_truth(weights, n, least):
    shares, draws = weights / weights.sum(), np.random.default_rng(7)
    truth, covered, bounded = 1 / np.sum(shares**2), 0, 0
    for _ in range(150):
        drawn = draws.choice(len(shares), size=n, p=shares)
        estimate = birthday_paradox(np.eye(len(shares))[drawn], threshold=1)
        covered += estimate.low <= truth <= estimate.high
        bounded += estimate.support <= len(shares)
    assert covered / 150 >= least
    assert bounded / 150 >= 0.93


def test_batches():
    """Arora's test: the share of disjoint batches with a collision, which is binomial."""
    draws = np.random.default_rng(1)
    labels = draws.integers(0, 400, size=1010)
    estimate = birthday_paradox(
        [str(label) for label in labels], "match", threshold=1, batch=20, confidence=0.9
    )
    assert (estimate.trials, estimate.batch, estimate.n) == (50, 20, 1010)
    k = estimate.collisions
    ends = [
        stats.beta.ppf(0.05, k, 51 - k),
        stats.beta.ppf(0.95, k + 1, 50 - k),
        stats.beta.ppf(0.9, k + 1, 50 - k),
    ]
    high, low, bound = (190 / -math.log(1 - end) for end in ends)
    assert estimate == pytest.approx(190 / -math.log(1 - k / 50))
    assert (estimate.low, estimate.high) == pytest.approx((low, high))
    assert estimate.support == math.ceil(bound) <= 400
    # One batch of all samples collides or not, whatever their order.
    for rng in (0, 1):
        assert birthday_paradox(list("abcde"), "match", threshold=1, batch=5, rng=rng).collisions == 0
        assert birthday_paradox(list("abcda"), "match", threshold=1, batch=5, rng=rng).collisions == 1
    # Samples that are sorted are shuffled first; in their order neighbours would collide in every batch of 10.
    ordered = [str(label) for label in np.sort(labels)]
    assert birthday_paradox(ordered, "match", threshold=1, batch=10).collisions < 30


def test_batches_that_are_not_small_beside_the_population():
    """The estimate is a third of a batch too low, which many batches show, and the bound holds."""
    kinds, size, many = 50, 10, 1000
    draws = np.random.default_rng(2).integers(0, kinds, size=size * many)
    estimate = birthday_paradox([str(draw) for draw in draws], "match", threshold=1, batch=size)
    share = 1 - math.prod(1 - i / kinds for i in range(size))
    limit = size * (size - 1) / 2 / -math.log1p(-share)
    assert limit == pytest.approx(kinds - size / 3, abs=0.1)
    assert estimate.low < limit < estimate.high
    assert estimate.support <= kinds


def test_rounding_parts_no_equal_directions():
    for row in np.random.default_rng(4).normal(size=(40, 3)):
        for batch in (None, 2):
            assert birthday_paradox([row, 3.7 * row], threshold=1, batch=batch).collisions == 1


def test_every_library_and_tile(library, monkeypatch):
    rows = np.random.default_rng(5).normal(size=(40, 3)).astype(np.float32)
    rows[30:] = rows[:10]
    expected = birthday_paradox(rows, threshold=0.9).to_dict()
    monkeypatch.setattr(edges, "TILE", 7)
    assert birthday_paradox(library.array(rows), threshold=0.9).to_dict() == pytest.approx(expected)
    batches = birthday_paradox(library.array(rows), threshold=0.9, batch=8)
    assert batches.to_dict() == birthday_paradox(rows, threshold=0.9, batch=8).to_dict()


def test_collections_and_functions(tmp_path):
    (tmp_path / "texts.txt").write_text("one\ntwo\none\nthree\n")
    assert birthday_paradox(vm.read(tmp_path / "texts.txt"), "match", threshold=1).collisions == 1
    same = FromFunction(lambda a, b: float(a[0] == b[0]))
    estimate = birthday_paradox(["one", "other", "two"], same, threshold=1)
    assert estimate.collisions == 1
    (tmp_path / "weighted.csv").write_text("text,w\na,1\nb,2\n")
    weighted = vm.read(tmp_path / "weighted.csv", samples="text", weight="w")
    with pytest.raises(InputError, match="birthday_paradox counts every sample once"):
        birthday_paradox(weighted, "match", threshold=1)


ROWS = np.array([[1.0, 2.0], [2.0, 1.0], [0.0, 1.0]])


@pytest.mark.parametrize(("call", "message"), [
    (lambda: birthday_paradox(ROWS, threshold=1.5), "threshold=1.5; expected a similarity, a number from -1 to 1"),
    (lambda: birthday_paradox(ROWS, threshold=math.nan), "threshold=nan"),
    (lambda: birthday_paradox(ROWS, threshold=1, confidence=1), "confidence=1; expected a probability"),
    (lambda: birthday_paradox(ROWS, threshold=1, confidence=0.8), "confidence=0.8; expected a probability from 0.85"),
    (lambda: birthday_paradox(ROWS, threshold=1, batch=1), "no pair in one sample"),
    (lambda: birthday_paradox(ROWS, threshold=1, batch=4), "batch=4 and there are 3 items"),
    (lambda: birthday_paradox(ROWS, threshold=1, batch=2.5), "batch=2.5; expected a whole number"),
    (lambda: birthday_paradox(ROWS, threshold=1, rng=-1), "rng=-1"),
    (lambda: birthday_paradox(["a"], "match", threshold=1), "there is 1 item, and no pair"),
    (lambda: birthday_paradox(ROWS * math.nan, threshold=1), "item 0 holds the value nan"),
])  # fmt: skip
def test_what_cannot_be_used(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_what_is_missing():
    with pytest.raises(EmptyError):
        birthday_paradox([], threshold=1)
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'threshold'"):
        birthday_paradox(ROWS)
    lopsided = np.array([[1.0, 0.9, 0.0], [0.1, 1.0, 0.0], [0.0, 0.0, 1.0]])
    for batch in (None, 2):
        with pytest.raises(MatrixError):
            birthday_paradox(lopsided, "precomputed", threshold=0.5, batch=batch)
