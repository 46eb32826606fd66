"""`vendimeter.compat.vendi` against the formulas, against vendi-score 0.0.3, and against its page in the documents.

The references here use NumPy alone. Where vendi-score is not installed, what compares with it is skipped; what the page
says of our own answers is always checked.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import vendimeter as vm
from vendimeter import errors
from vendimeter.compat import vendi
from vendimeter.errors import AsymmetryError, DiagonalError, EmptyError, InputError, MatrixError

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "compat.md").read_text(encoding="utf-8")
NAMES = [
    "score", "score_K", "score_X", "score_dual", "intdiv", "intdiv_K", "intdiv_X",
    "weight_K", "normalize_K", "entropy_q",
]  # fmt: skip

X = np.random.default_rng(1).normal(size=(20, 4))
UNIT = X / np.linalg.norm(X, axis=1, keepdims=True)
K = UNIT @ UNIT.T  # 20 items, rank 4
FULL = np.exp(-np.square(X[:, None] - X).sum(axis=2))  # 20 items, rank 20, no entry below 0
P = np.random.default_rng(2).dirichlet(np.ones(20))
ORDERS = [0.1, 0.5, 1, 1.5, 2, 3, 40, "inf"]


def renyi(values, q):
    """By the book; values up to 1e-12 are noise."""
    values = values[values > 1e-12]
    if q == 1:
        return -np.sum(values * np.log(values))
    if math.isinf(float(q)):
        return -np.log(values.max())
    return np.log(np.sum(values**q)) / (1 - q)


def expected(matrix, q=1, p=None):
    root = np.sqrt(np.full(len(matrix), 1 / len(matrix)) if p is None else p)
    return float(np.exp(renyi(np.linalg.eigvalsh(matrix * np.outer(root, root)), q)))


def expected_intdiv(matrix, q=1, p=None):
    p = np.full(len(matrix), 1 / len(matrix)) if p is None else p
    return 1 - sum(p[i] * p[j] * matrix[i, j] ** q for i in range(len(p)) for j in range(len(p)))


def dot(a, b):
    return float(a @ b)


def quietly(call):
    """Call; the official package divides by zero and uses names that SciPy has deprecated."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return call()


@pytest.fixture(scope="session")
def official():
    return pytest.importorskip("vendi_score.vendi", reason="compares with vendi-score 0.0.3")


# ----------------------------------------------------------------------------------------------- the formulas


@pytest.mark.parametrize("p", [None, P])
@pytest.mark.parametrize("q", ORDERS)
def test_scores_are_those_of_the_formula_by_every_way(q, p):
    right = pytest.approx(expected(K, q, p), rel=1e-8)
    assert vendi.score_K(K, q, p) == right
    assert vendi.score_K(K.tolist(), q=q, p=p) == right
    assert vendi.score_K(7 * K, q, p, True) == right
    assert vendi.score(UNIT, dot, q, p) == right
    assert vendi.score(list(X), dot, q, p, True) == right
    assert vendi.score_X(X, q, p) == right
    assert vendi.score_X(X.tolist(), q, p) == right
    assert vendi.score_X(UNIT, q, p, False) == right
    assert vendi.score_X(sparse.csr_matrix(X), q, p) == right
    assert vendi.score_X(sparse.csr_array(UNIT), q, p, False) == right
    if p is None:
        assert vendi.score_dual(X, q) == right
        assert vendi.score_dual(UNIT, q, False) == right


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array, sparse.coo_matrix, sparse.lil_array])
@pytest.mark.parametrize("p", [None, P])
@pytest.mark.parametrize("q", [0.5, 1, 2, math.inf])
def test_sparse_matrices_have_all_their_eigenvalues(form, p, q):
    blocks = np.kron(np.eye(5), FULL[:4, :4])
    assert vendi.score_K(form(blocks), q, p) == pytest.approx(expected(blocks, q, p), rel=1e-8)
    assert vendi.score_K(form(3 * blocks), q, p, True) == pytest.approx(expected(blocks, q, p), rel=1e-8)


def test_order_zero_is_the_rank():
    assert vendi.score_K(K, q=0) == vendi.score_X(X, q=0) == vendi.score_dual(X, q=0) == 4


@pytest.mark.parametrize("p", [None, P])
@pytest.mark.parametrize("q", [1, 2, 3, 0.5, 2.5])
def test_internal_diversity_is_that_of_the_formula_by_every_way(q, p):
    right = pytest.approx(expected_intdiv(FULL, q, p), rel=1e-12)
    for form in (np.array, np.ndarray.tolist, sparse.csr_matrix, sparse.csr_array, sparse.coo_array):
        assert vendi.intdiv_K(form(FULL), q, p) == right
    assert vendi.intdiv(X, lambda a, b: np.exp(-np.sum((a - b) ** 2)), q, p) == right
    positive = np.abs(X)
    unit = positive / np.linalg.norm(positive, axis=1, keepdims=True)
    right = pytest.approx(expected_intdiv(unit @ unit.T, q, p), rel=1e-12)
    for form in (np.array, np.ndarray.tolist, sparse.csr_matrix):
        assert vendi.intdiv_X(form(positive), q, p) == right
        assert vendi.intdiv_X(form(unit), q, p, False) == right


def test_only_whole_powers_of_negative_similarities():
    assert K.min() < -0.1
    assert vendi.intdiv_K(K, 3) == pytest.approx(expected_intdiv(K, 3), rel=1e-12)
    assert vendi.intdiv_X(X, 3) == pytest.approx(expected_intdiv(K, 3), rel=1e-12)
    for ask in (lambda q: vendi.intdiv_K(K, q), lambda q: vendi.intdiv_X(X, q)):
        with pytest.raises(
            InputError, match=r"similarity is -0\.\d+, and its power q=0\.5 is not a real number"
        ):
            ask(0.5)
    # A zero that rounding has made negative is a zero.
    assert vendi.intdiv_K([[1, -1e-16], [-1e-16, 1]], 0.5) == pytest.approx(0.5)
    assert vendi.intdiv_K(np.array([[1, -1e-7], [-1e-7, 1]], np.float32), 0.5) == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("q", [0, -1, math.inf, "inf", math.nan, None, [1, 2], True])
def test_a_power_is_a_number_above_zero(q):
    for ask in (
        lambda: vendi.intdiv_K(K, q),
        lambda: vendi.intdiv_X(X, q),
        lambda: vendi.intdiv(UNIT, dot, q),
    ):
        with pytest.raises(
            InputError, match=r"q=.*; expected the power of the similarities, a number above 0"
        ):
            ask()


@pytest.mark.parametrize(("n", "q"), [(20_000, 1), (20_000, 2), (6_000, 3)])
def test_internal_diversity_of_embeddings_builds_nothing_square(n, q):
    rows = np.random.default_rng(3).random((n, 4))
    tracemalloc.start()
    try:
        found = vendi.intdiv_X(rows, q)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < n * n * 8 / 4
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    # Σᵢⱼ (xᵢ·xⱼ)^q is the squared length of the sum of the q-fold tensor products.
    tensor = np.einsum(
        "ni,nj,nk->ijk", unit, unit if q > 1 else np.ones((n, 1)), unit if q > 2 else np.ones((n, 1))
    )
    assert found == pytest.approx(1 - np.sum((tensor / n) ** 2), rel=1e-9)


@pytest.mark.parametrize(
    "form", [np.array, sparse.csr_matrix, sparse.csr_array, sparse.coo_matrix, sparse.lil_array]
)
def test_helpers_keep_the_kind_of_matrix(form):
    given = form(3 * FULL)
    before = given.copy()
    for found, right in (
        (vendi.weight_K(given), 3 * FULL / 20),
        (vendi.weight_K(given, P), 3 * FULL * np.sqrt(np.outer(P, P))),
        (vendi.normalize_K(given), FULL),
    ):
        assert type(found) is type(given)
        np.testing.assert_allclose(
            found if isinstance(found, np.ndarray) else found.toarray(), right, rtol=1e-12
        )
    assert abs(given - before).max() == 0  # and change nothing in place
    vendi.score_K(given, normalize=True)
    vendi.intdiv_K(vendi.normalize_K(given), 2)
    assert abs(given - before).max() == 0


@pytest.mark.parametrize("q", [0, *ORDERS, math.inf])
def test_entropy_is_that_of_the_formula(q):
    assert vendi.entropy_q(P, q) == pytest.approx(renyi(P, float(q)), rel=1e-12)
    assert vendi.entropy_q(P.tolist(), q) == vendi.entropy_q(P, q)
    values = np.array([0.5, 0.5, 0.0, -1e-17])  # as an eigensolver leaves them
    assert vendi.entropy_q(values, q) == pytest.approx(math.log(2), rel=1e-12)


def test_entropy_of_weighted_eigenvalues_is_the_logarithm_of_the_score():
    values = np.linalg.eigvalsh(vendi.weight_K(FULL, P))
    assert math.exp(vendi.entropy_q(values, 2)) == pytest.approx(vendi.score_K(FULL, 2, P), rel=1e-10)


# ------------------------------------------------------------------------------ what comes back, and what not


def test_scores_are_floats_with_bounds_and_the_rest_plain_floats():
    for score in (
        vendi.score(UNIT, dot, 2),
        vendi.score_K(K, 2),
        vendi.score_X(X, 2),
        vendi.score_dual(X, 2),
    ):
        assert isinstance(score, float)
        assert isinstance(score, vm.Score)
        assert score.q == 2
        assert score.bounds[0] <= expected(K, 2) <= score.bounds[1]
    for value in (
        vendi.intdiv(UNIT, dot),
        vendi.intdiv_K(K),
        vendi.intdiv_X(X),
        vendi.intdiv_X(X, 2),
        vendi.entropy_q(P),
    ):
        assert type(value) is float
    assert json.loads(json.dumps([vendi.score_K(K), vendi.intdiv_K(K)])) == [
        vendi.score_K(K),
        vendi.intdiv_K(K),
    ]


class Box:
    """A sequence by position alone, of items that NumPy knows nothing about."""

    def __init__(self, *items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def test_the_function_gets_the_items_that_the_original_would_hand_it():
    def same(a, b):
        seen.update({type(a), type(b)})
        return float(a == b)

    for samples, kind in (
        (Box({1}, {2}, {2}), set),
        ("abb", str),
        ((1.5, 2, 2), (float, int)),
        (range(2), int),
    ):
        seen = set()
        found = vendi.score(samples, same)
        assert seen <= set(kind if isinstance(kind, tuple) else (kind,))
        assert seen
        assert vendi.intdiv(samples, same) == pytest.approx(1 - 1 / vendi.score(samples, same, 2), rel=1e-12)
        assert found == pytest.approx(
            2 if len(samples) == 2 else expected(np.array([[1, 0, 0], [0, 1, 1], [0, 1, 1]]))
        )


def test_the_function_is_called_as_often_as_the_page_says():
    def close(a, b):
        calls.append((a, b))
        return math.exp(-abs(a - b))

    for ask in (vendi.score, vendi.intdiv):
        calls = []
        ask(range(64), close)
        assert len(set(calls)) == len(calls) == 64**2  # both orders of each pair
        calls = []
        ask(range(65), close)
        assert len(calls) == 65 * 66 / 2 + 1024


def test_a_function_that_works_in_single_precision_is_not_taken_for_asymmetric():
    def single(a, b):
        value = np.float32(math.exp(-abs(a - b)))
        return value if a <= b else np.nextafter(value, np.float32(2))

    samples = [0.1, 0.5, 2.5]
    K = np.exp(-np.abs(np.subtract.outer(samples, samples)))
    assert vendi.score(samples, single) == pytest.approx(expected(K), rel=1e-5)
    assert vendi.intdiv(samples, single) == pytest.approx(expected_intdiv(K), rel=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_of_norm_one_up_to_their_own_rounding_will_do(dtype):
    rows = UNIT.astype(dtype)
    assert vendi.score_X(rows, normalize=False) == pytest.approx(expected(K), rel=1e-3)
    assert vendi.intdiv_X(rows, normalize=False) == pytest.approx(expected_intdiv(K), rel=1e-3)
    rows = rows.copy()
    rows[7] *= dtype(1.1)
    for form in (np.array, sparse.csr_array) if dtype != np.float16 else (np.array,):
        for ask in (vendi.score_X, vendi.score_dual, vendi.intdiv_X):
            with pytest.raises(DiagonalError, match=r"row 7 has the norm 1\.\d+.*normalize=True"):
                ask(form(rows), normalize=False)
            ask(form(rows))


def test_values_that_are_not_finite_are_named():
    bad = UNIT.copy()
    bad[3, 1] = np.nan
    for normalize in (False, True):
        for ask in (vendi.score_X, vendi.score_dual, vendi.intdiv_X):
            with pytest.raises(InputError, match="item 3 holds the value nan"):
                ask(bad, normalize=normalize)
    matrix = FULL.copy()
    matrix[2, 5] = np.inf
    for ask in (vendi.score_K, vendi.intdiv_K, vendi.weight_K, vendi.normalize_K):
        for form in (np.array, sparse.csr_matrix):
            with pytest.raises(MatrixError, match=r"K\[2, 5\] is inf"):
                ask(form(matrix))
    with pytest.raises(MatrixError, match="nan"):
        vendi.intdiv([1, 2], lambda a, b: math.nan)
    with pytest.raises(InputError, match="nan"):
        vendi.entropy_q([0.5, math.nan])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: vendi.score_X(np.zeros((0, 3))), EmptyError),
        (lambda: vendi.intdiv_X(np.zeros((0, 3))), EmptyError),
        (lambda: vendi.intdiv([], dot), EmptyError),
        (lambda: vendi.weight_K(np.zeros((0, 0))), EmptyError),
        (lambda: vendi.normalize_K(np.zeros((0, 0))), EmptyError),
        (lambda: vendi.score_K(np.ones((2, 3))), InputError),
        (lambda: vendi.weight_K(np.ones((2, 3))), InputError),
        (lambda: vendi.intdiv_K(["a", "b"]), InputError),
        (lambda: vendi.weight_K([[1, 2], [3]]), InputError),
        (lambda: vendi.entropy_q([[0.5, 0.5], [1]]), InputError),
        (lambda: vendi.entropy_q(np.eye(2) / 2), InputError),
        (lambda: vendi.entropy_q([0.5, 0.5 + 1e-3]), InputError),
        (lambda: vendi.entropy_q(P, q=-1), InputError),
        (lambda: vendi.entropy_q(P, q=[1, 2]), InputError),
        (lambda: vendi.score_K(K, q=[1, 2]), InputError),
        (lambda: vendi.intdiv_X(X, p=P[:-1]), InputError),
        (lambda: vendi.intdiv([0, 1, 2], lambda a, b: 1.0 if a <= b else 0.5), AsymmetryError),
        (lambda: vendi.intdiv([1, 2], lambda a, b: 2.0), DiagonalError),
        (lambda: vendi.score([1, 2], "no such kernel"), InputError),
    ],
)
def test_bad_input_is_a_typed_error(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: vendi.score_K(np.eye(3), p=[1, 1, 1]),  # says "weights"
        lambda: vendi.score_K([[1, 0.9], [0, 1]]),  # says "symmetrize=True"
        lambda: vendi.intdiv_K(5 * np.eye(3)),  # says "normalize=True"
        lambda: vendi.score_dual(3 * np.eye(3), normalize=False),
    ],
)
def test_errors_that_name_options_of_the_core_say_what_they_are_called_here(call):
    with pytest.raises(InputError) as caught:
        call()
    assert len(caught.value.__notes__) == 1
    assert "weights are p" in caught.value.__notes__[0]


def test_errors_that_name_none_have_no_note():
    with pytest.raises(EmptyError) as caught:
        vendi.score([], dot)
    assert not hasattr(caught.value, "__notes__")


# -------------------------------------------------------------------------------- beside the official package


def test_the_names_are_those_of_the_original(official):
    defined = inspect.getmembers(official, inspect.isfunction)
    functions = {name for name, function in defined if function.__module__ == official.__name__}
    assert set(vendi.__all__) == functions == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_signatures_are_those_of_the_original(official, name):
    def shape(function):
        return [(one.name, one.kind, one.default) for one in inspect.signature(function).parameters.values()]

    assert shape(getattr(vendi, name)) == shape(getattr(official, name))


SAME = [
    *(f"vendi.score_K(FULL, q={q!r})" for q in ORDERS),
    *(f"vendi.score_K(K, {q!r}, P)" for q in (1, 1.5, 2, 3, "inf")),
    *(f"vendi.score_dual(X, {q!r})" for q in ORDERS),
    *(f"vendi.score(UNIT, dot, {q!r}, P)" for q in (1, 2, "inf")),
    *(f"vendi.entropy_q(P, {q!r})" for q in (0, *ORDERS)),
    "vendi.score(list(X), dot, normalize=True)",
    "vendi.score('abca', lambda a, b: float(a == b))",
    "vendi.score([1, 2], lambda a, b: a * b, normalize=True)",
    "vendi.score_K(9 * FULL, normalize=True)",
    "vendi.score_K(5 * np.eye(3), normalize=True)",
    "vendi.score_K(np.eye(4, dtype=int))",
    "vendi.score_X(X)",
    "vendi.score_X(X, p=P)",
    "vendi.score_X(UNIT, normalize=False)",
    "vendi.score_X(X.tolist())",
    "vendi.score_X(sparse.csr_matrix(X))",
    "vendi.score_dual(UNIT, normalize=False)",
    "vendi.score_K(np.eye(1))",
    "vendi.intdiv_K(K)",
    "vendi.intdiv_K(K, 2)",
    "vendi.intdiv_K(FULL, 0.5, P)",
    "vendi.intdiv_K(sparse.csr_array(K), 3)",
    "vendi.weight_K(K)",
    "vendi.weight_K(K, P)",
    "vendi.weight_K(sparse.csr_matrix(K)).toarray()",
    "vendi.weight_K(sparse.csr_array(K), P).toarray()",
    "vendi.normalize_K(9 * FULL)",
]


@pytest.mark.parametrize("call", SAME)
def test_where_the_original_is_right_the_answers_agree(official, call):
    there = quietly(lambda: eval(call, globals(), {"vendi": official}))
    here = eval(call, globals())
    np.testing.assert_allclose(here, there, rtol=1e-8)


# ------------------------------------------------------------------------------------------- the page says so


def blocks():
    return re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def scope_of_the_page():
    scope: dict[str, object] = {}
    exec(blocks()[1], scope)  # our own document, not user input
    return scope


def rows_of_the_page():
    section = PAGE.partition("## Each difference")[2]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if "`vendi." in line
    ]
    return [pytest.param(*row, id=row[0]) for row in cells]


def answer(call, module):
    """The number, or the name of the type of the exception."""
    scope = scope_of_the_page() | {"vendi": module}
    try:
        return float(quietly(lambda: eval(call.strip("`"), scope)))
    except Exception as error:
        return type(error).__name__


def is_shown_as(found, cell):
    """Whether the page shows this answer: six digits of a number, or the name of an error."""
    if isinstance(found, str) or cell.endswith("Error"):
        return found == cell
    shown = float(cell.replace("−", "-"))
    return math.isclose(found, shown, rel_tol=1e-5) or (math.isnan(found) and math.isnan(shown))


def test_the_page_has_its_rows():
    rows = [param.values for param in rows_of_the_page()]
    assert len(rows) > 50
    assert all(len(row) == 4 and all(row) for row in rows), "every row has a call, two answers and a reason"
    assert len({row[0] for row in rows}) == len(rows)
    asked = {re.match(r"`vendi\.(\w+)\(", row[0])[1] for row in rows}
    assert asked == set(NAMES)


@pytest.mark.parametrize(("call", "there", "here", "why"), rows_of_the_page())
def test_our_answers_on_the_page_are_our_answers(call, there, here, why):
    found = answer(call, vendi)
    assert is_shown_as(found, here), found
    if isinstance(found, str):
        assert issubclass(getattr(errors, found), InputError)


@pytest.mark.parametrize(("call", "there", "here", "why"), rows_of_the_page())
def test_the_official_answers_on_the_page_are_its_answers(official, call, there, here, why):
    found = answer(call, official)
    assert not is_shown_as(found, here), "this is no difference"
    if there.startswith("≈"):  # rounding noise, another number on another machine
        assert isinstance(found, float)
    else:
        assert is_shown_as(found, there), found


def test_the_first_example_of_the_page_runs():
    scope: dict[str, object] = {}
    exec(blocks()[0], scope)
    *_, call, shown = re.findall(r"^(vendi\..*?)  # (.*)$", blocks()[0], re.MULTILINE)[0]
    assert eval(call, scope) == pytest.approx(float(shown))


def test_the_calls_beside_each_other_on_the_page_mean_the_same():
    section = PAGE.partition("| vendi-score | Vendimeter |")[2].partition("##")[0]
    pairs = [line.strip("|").split("|") for line in section.splitlines() if "`vendi." in line]
    scope = globals() | {"samples": UNIT, "k": dot, "p": P}
    assert len(pairs) == 3
    for theirs, ours in pairs:
        (right,) = re.findall(r"`(.*?)`", ours)
        for call in re.findall(r"`(.*?)`", theirs):
            assert eval(call, scope) == eval(right, scope)


@pytest.mark.parametrize("how", ["shared", "own"])
def test_tensors_are_taken_everywhere(how, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr("vendimeter.data.devices.SHARE_HOST", how == "shared")
    rows = np.random.default_rng(0).normal(size=(12, 4))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    K = unit @ unit.T
    X, T = torch.tensor(rows, requires_grad=True), torch.tensor(K)
    cosine = lambda a, b: torch.cosine_similarity(a, b, dim=0)  # noqa: E731
    pairs = [
        (vendi.score(X, cosine), vendi.score_K(K)),
        (vendi.intdiv(X, cosine), vendi.intdiv_K(K)),
        (vendi.score_K(T), vendi.score_K(K)),
        (vendi.intdiv_K(T, q=3), vendi.intdiv_K(K, q=3)),
        (vendi.score_X(X), vendi.score_X(rows)),
        (vendi.score_X(torch.tensor(unit), normalize=False), vendi.score_X(rows)),
        (vendi.score_dual(X), vendi.score_dual(rows)),
        (vendi.intdiv_X(X, q=3), vendi.intdiv_X(rows, q=3)),
        (vendi.entropy_q(torch.tensor([0.5, 0.5])), math.log(2)),
    ]
    for found, expected in pairs:
        assert float(found) == pytest.approx(float(expected), rel=1e-6)
    np.testing.assert_allclose(np.asarray(vendi.weight_K(T)), vendi.weight_K(K))
    np.testing.assert_allclose(np.asarray(vendi.normalize_K(2 * T)), K, atol=1e-12)
