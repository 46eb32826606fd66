"""Errors of a user's matrix or function name the user's items, where some were left out; and what they advise works."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import vendimeter as vm
from vendimeter.compat import vendi
from vendimeter.errors import AsymmetryError, DiagonalError, IndefiniteError, InputError
from vendimeter.kernels import FromDistances, FromFunction
from vendimeter.similarity import FeatureRows, Matrix
from vendimeter.solvers.operators import operator_of
from vendimeter.solvers.options import Solver
from vendimeter.solvers.plan import Problem
from vendimeter.solvers.solve import run

NAMES = np.array([10, 20, 30])


@pytest.mark.parametrize("of", [np.array, sparse.csr_array])
@pytest.mark.parametrize(
    ("i", "j", "value", "error", "message"),
    [
        (0, 2, 0.5, AsymmetryError, r"K\[10, 30\] = 0.5 but K\[30, 10\] = 0"),
        (1, 1, 1.5, DiagonalError, r"K\[20, 20\] = 1.5"),
        (2, 1, np.nan, InputError, r"K\[30, 20\] is nan"),
    ],
)
def test_a_matrix_names_the_items_of_the_user(
    of: type, i: int, j: int, value: float, error: type[InputError], message: str
) -> None:
    matrix = np.eye(3)
    matrix[i, j] = value
    with pytest.raises(error, match=message):
        Matrix(of(matrix)).checked(NAMES)


@pytest.mark.parametrize(
    ("i", "j", "value", "message"),
    [
        (1, 1, 1.5, r"k\[20, 20\] = 1.5"),
        (0, 2, np.inf, r"k\[10, 30\] is inf"),
        (0, 2, 0.5, "items 10 and 30"),
    ],
)
def test_blocks_name_the_items_of_the_user(
    monkeypatch: pytest.MonkeyPatch, i: int, j: int, value: float, message: str
) -> None:
    monkeypatch.setattr("vendimeter.solvers.operators.TILE", 2)
    matrix = np.eye(3)
    matrix[i, j] = value
    kernel = FromFunction(lambda a, b: matrix[np.ix_(a, b)], block=True)
    operator = operator_of(kernel.similarity(np.arange(3)), None, "blocks", names=NAMES)
    with pytest.raises(InputError, match=message):
        operator.apply(np.ones((3, 1)))


def test_features_without_a_kernel_are_solved() -> None:
    _, solution = run(Problem(FeatureRows(np.eye(3)), None, [1.0]))
    assert solution.spectrum.score(1.0)[0] == pytest.approx(3)


def test_distances_are_told_how_to_mend_them() -> None:
    with pytest.raises(AsymmetryError, match=r"mend D, for instance by \(D \+ D.T\) / 2"):
        vm.score(np.array([[0.0, 1.0], [2.0, 0.0]]), FromDistances(scale=1.0))
    path = np.array([[0.0, 1, 9], [1, 0, 1], [9, 1, 0]])
    with pytest.raises(IndefiniteError, match=r"for distances FromDistances\(project=True\)"):
        vm.score(path, FromDistances(scale=1.0, form="linear"))
    assert vm.score(path, FromDistances(scale=1.0, form="linear", project=True)) >= 1


def test_the_drop_in_says_what_normalizes_there() -> None:
    with pytest.raises(DiagonalError) as raised:
        vendi.score_K(2 * np.eye(2))
    assert "normalize=True" in raised.value.__notes__[0]
    assert vendi.score_K(2 * np.eye(2), normalize=True) == pytest.approx(2)


@pytest.mark.parametrize(
    "options",
    [{"tol": 2}, {"method": "x"}, {"precision": "x"}, {"pivots": "x"}, {"confidence": 2}, {"memory": "x"}],
)
def test_errors_of_options_have_the_option(options: dict) -> None:
    with pytest.raises(InputError) as raised:
        Solver(**options)
    assert [raised.value.option] == list(options)


@pytest.mark.parametrize("q", [-1, [], [1, 1]])
def test_errors_of_orders_have_the_option(q: Any) -> None:
    with pytest.raises(InputError) as raised:
        vm.score(["a"], "match", q=q)
    assert raised.value.option == "q"


def test_a_comparison_of_a_collection_names_the_place(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("x,y,set\n1,2,a\n0,0,a\n3,4,b\n")
    with pytest.raises(InputError, match=r"item 1 \(line 3 of .*rows.csv'\) is all zeros"):
        vm.compare(vm.read(path, samples=["x", "y"], label="set"))


def test_a_sum_of_functions_is_compared_with_what_one_function_is_compared_with() -> None:
    rows = np.random.default_rng(0).standard_normal((60, 5))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    one = FromFunction(lambda a, b: float(rows[a] @ rows[b]))
    two = FromFunction(lambda a, b: float(np.exp(-abs(rows[a, 0] - rows[b, 0]))))
    items = list(range(60))
    alone = vm.select(items, 10, one)
    for kernel in (0.5 * one + 0.5 * two, one * two):
        assert set(vm.select(items, 10, kernel).comparison) == set(alone.comparison)
