"""One similarity may be asked any questions in any order: each gets what a fresh one gives, and nothing changes."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from vendimeter.data.groups import Grouping
from vendimeter.errors import ToleranceWarning, VendimeterError
from vendimeter.kernels import RBF, Cosine, Edit, FromFunction, Jaccard, NGram, Polynomial, Precomputed
from vendimeter.similarity import Calls, Matrix, Similarity, materialized
from vendimeter.solvers.edges import Entries
from vendimeter.solvers.eigenvectors import decompose, leading
from vendimeter.solvers.groups import solve_groups
from vendimeter.solvers.options import Solver
from vendimeter.solvers.plan import Problem, choose, prepared, refuse
from vendimeter.solvers.solve import run
from vendimeter.solvers.sums import power_sum

N = 24
rng = np.random.default_rng(5)
ROWS = rng.standard_normal((N, 4))
ROWS[7] = ROWS[3]
WIDE = np.hstack([ROWS, rng.random((N, 30))])
UNIT = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
K = UNIT @ UNIT.T
INDEFINITE = np.where(
    np.eye(N, dtype=bool), 1.0, np.where(np.abs(np.subtract.outer(range(N), range(N))) == 1, 0.8, 0)
)
SCALES = np.linspace(0.5, 2, N)
WORDS = [word * (1 + i % 3) for i, word in enumerate(["ab", "abc", "bcd", "xyz"] * (N // 4))]
SETS = rng.random((N, 12)) < 0.4


def similar(a: Any, b: Any) -> np.float32:
    return np.float32(a @ b)


def chain(a: int, b: int) -> float:
    return 1.0 if a == b else 0.8 if abs(a - b) == 1 else 0.0


def near(a: int, b: int) -> float:
    return 2 * math.exp(-abs(a - b)) * (1.0 if a <= b else 0.9)


KINDS: dict[str, Callable[[], Similarity]] = {
    "rows": lambda: Cosine().similarity(ROWS),
    "wide rows": lambda: Cosine().similarity(WIDE),
    "sparse rows": lambda: NGram(1, 2).similarity(WORDS),
    "rows taken": lambda: Cosine().similarity(np.vstack([ROWS, ROWS])).take(np.arange(N)),
    "stacked": lambda: (0.5 * Cosine() + 0.5 * Polynomial(2, offset=0)).similarity(ROWS),
    "multiplied": lambda: (Cosine() * Cosine()).similarity(ROWS),
    "pairs": lambda: RBF(1.0).similarity(ROWS),
    "ratios": lambda: Jaccard().similarity(SETS),
    "pairs that project": lambda: Edit().similarity(WORDS),
    "a matrix": lambda: Precomputed().similarity(K),
    "a sparse matrix": lambda: Precomputed().similarity(sparse.csr_array(np.where(np.abs(K) > 0.99, K, 0.0))),
    "a matrix without bound": lambda: Precomputed().similarity(INDEFINITE),
    "a matrix that projects": lambda: Precomputed(project=True).similarity(INDEFINITE),
    "a matrix to be mended": lambda: Precomputed(True, True).similarity(K * np.outer(SCALES, SCALES)),
    "a matrix that is none": lambda: Precomputed().similarity(np.triu(K)),
    "a matrix that is known": lambda: Matrix(K, trusted=True, kernel=Precomputed()),
    "a function": lambda: FromFunction(similar).similarity(UNIT),
    "a function without bound": lambda: FromFunction(chain).similarity(list(range(N))),
    "a function that projects": lambda: FromFunction(chain, project=True).similarity(list(range(N))),
    "a function to be mended": lambda: FromFunction(near, False, True, True).similarity(list(range(N))),
    "a sum with a function": lambda: (0.5 * FromFunction(similar) + 0.5 * RBF(1.0)).similarity(UNIT),
}

WEIGHTS = np.append(np.full(N - 4, 1 / (N - 4)), np.zeros(4))
GROUPS = Grouping.of([np.arange(0, N, 2), np.arange(1, N, 2), np.arange(3)])


def scored(solver: Solver, weights: np.ndarray | None = None, q: float = 1.0) -> Callable[[Similarity], Any]:
    return lambda s: run(Problem(s, weights, [q], solver))[1].spectrum.score(q)


def looked_at(similarity: Similarity) -> Any:
    problem = prepared(Problem(similarity, None, [1.0]))
    refuse(problem)
    return choose(problem).flops


QUESTIONS: dict[str, Callable[[Similarity], Any]] = {
    "score": scored(Solver()),
    "score with weights": scored(Solver(), WEIGHTS),
    "score of order 2": scored(Solver(), q=2.0),
    "low rank": scored(Solver(tol=1e-6, method="lowrank")),
    "products": scored(Solver(tol=0.2, method="lanczos")),
    "plan": looked_at,
    "groups": lambda s: solve_groups(s, GROUPS, [1.0, 2.0]).value,
    "eigenvectors": lambda s: decompose(s, WEIGHTS).values,
    "modes": lambda s: leading(s, np.full(N, 1 / N), 3, 0).values,
    "mean": lambda s: power_sum(s, np.full(N, 1 / N), np.full(N, 1 / N), 1.0),
    "part": lambda s: run(Problem(s.take(np.arange(2, 9)), None, [1.0]))[1].spectrum.score(1.0),
    "matrix": lambda s: materialized(s).dense(),
    "diagonal": lambda s: s.diagonal(),
    "edges": lambda s: sum(len(part[0]) for part in Entries(s).edges(0.9)),
}


def answer(question: str, similarity: Similarity) -> Any:
    """The numbers, or what is said where there are none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ToleranceWarning)  # entries of float32 allow no better
            return np.asarray(QUESTIONS[question](similarity), dtype=np.float64)
    except VendimeterError as error:
        return f"{type(error).__name__}: {error}"


FRESH: dict[tuple[str, str], Any] = {}


def fresh(kind: str, question: str) -> Any:
    if (kind, question) not in FRESH:
        FRESH[kind, question] = answer(question, KINDS[kind]())
    return FRESH[kind, question]


def same(left: Any, right: Any) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return isinstance(left, str) and left == right
    return left.shape == right.shape and np.allclose(left, right, rtol=1e-12, atol=1e-14, equal_nan=True)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12, deadline=None)
@given(questions=st.lists(st.sampled_from(sorted(QUESTIONS)), min_size=2, max_size=6))
def test_what_was_asked_before_makes_no_difference(kind: str, questions: list[str]) -> None:
    similarity = KINDS[kind]()
    before = dict(vars(similarity))
    for question in questions:
        assert same(answer(question, similarity), fresh(kind, question)), question
    after = vars(similarity)
    assert before.keys() == after.keys()
    assert all(after[name] is value for name, value in before.items())


@pytest.mark.parametrize("kind", KINDS)
def test_a_users_array_is_never_written_into(kind: str) -> None:
    kept = [array.copy() for array in (ROWS, UNIT, K, INDEFINITE, SETS)]
    for question in QUESTIONS:
        answer(question, KINDS[kind]())
    for array, before in zip((ROWS, UNIT, K, INDEFINITE, SETS), kept, strict=True):
        np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_can_be_set_or_deleted(kind: str) -> None:
    similarity = KINDS[kind]()
    names = [
        *vars(similarity),
        "policy",
        "kernel",
        "precision",
        "calls",
        "cost",
        "width",
        "sparse",
        "anything",
    ]
    for name in names:
        with pytest.raises(AttributeError, match=f"never changes: {name} cannot be set"):
            setattr(similarity, name, None)
    with pytest.raises(AttributeError, match="never changes: kernel cannot be deleted"):
        del similarity.kernel


def test_a_matrix_is_checked_once() -> None:
    """What was checked knows it, and so does every part of it; negative eigenvalues are looked for all the same."""
    matrix = Precomputed().similarity(INDEFINITE)
    assert isinstance(matrix, Matrix)
    checked = matrix.checked()
    assert not matrix.is_checked
    assert checked.is_checked
    assert checked.checked() is checked
    assert checked.take(np.arange(5)).checked().is_checked
    assert "IndefiniteError" in answer("score", checked)


def test_projection_is_the_kernels_and_never_anothers() -> None:
    """The same similarity, asked three times: it is refused as often, whatever another one of its data allows."""
    strict, lenient = Precomputed().similarity(INDEFINITE), Precomputed(project=True).similarity(INDEFINITE)
    for _ in range(2):
        assert "not positive semidefinite" in answer("score", strict)
        assert answer("score", lenient)[0] > 1


def test_calls_are_counted_for_all_that_was_taken_of_a_function() -> None:
    """One counter, and one precision: a part knows that the function works in float32 as soon as the whole does."""
    whole = FromFunction(similar).similarity(UNIT)
    part, total = whole.take(np.arange(4)), 0.5 * FromFunction(similar) + 0.5 * RBF(1.0)
    assert (whole.calls, whole.precision) == (0, np.float64)
    part.dense()
    assert part.calls == whole.calls == 16  # up to 64 items both orders of each pair
    assert part.precision == whole.precision == np.float32
    joint = total.similarity(UNIT)
    assert joint.precision == np.float64
    joint.dense()
    assert (joint.calls, joint.precision) == (N**2, np.float32)


def test_counters_count_in_threads() -> None:
    counter = Calls()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: counter.add(1, np.dtype(np.float64)), range(4000)))
    assert counter.pairs == 4000


@pytest.mark.parametrize("kind", KINDS)
def test_copies_answer_alike(kind: str) -> None:
    similarity = KINDS[kind]()
    for other in (copy.copy(similarity), copy.deepcopy(similarity)):
        assert same(answer("score", other), fresh(kind, "score"))
        assert type(other) is type(similarity)
