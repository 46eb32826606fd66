"""Each defect of the official package's core (vendi-score 0.0.3), asked of it and of Vendimeter side by side.

Run it with ``make bench`` or, where vendi-score is installed, with ``python benchmarks/calibration/defects.py``. Both
packages are called for every row. A row is marked where the official answer is wrong; the exit code is 1 if one of
Vendimeter's is, and 2 if vendi-score is not installed.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse

import vendimeter as vm
from vendimeter.kernels import FromFunction, Precomputed

INSTALL = (
    "The official package is not installed, so there is nothing to compare with. `make bench` installs it;\n"
    "by hand: pip install 'vendi-score==0.0.3'"
)
AN_ERROR = "an error"
CLOSE = 1e-6  # two answers agree when they differ by less than this, relatively


class Case(NamedTuple):
    """A question, its right answer (a number, or `AN_ERROR`), and how to ask either package."""

    name: str
    right: float | str
    official: Callable[[], object]
    ours: Callable[[], object]


class Outcome(NamedTuple):
    """What a package answered: a number or an exception."""

    value: float | None
    error: Exception | None

    def __str__(self) -> str:
        return show(self.value) if self.value is not None else type(self.error).__name__


def ask(call: Callable[[], object]) -> Outcome:
    """Call, and keep the number or the type of the exception."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # the official package uses names that SciPy has deprecated
        try:
            value = float(call())  # type: ignore[arg-type]
        except Exception as error:
            return Outcome(None, error)
    return Outcome(value, None)


def show(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def is_right(outcome: Outcome, right: float | str, errors: type[Exception] = Exception) -> bool:
    """Whether this is the right number, or an error of the right kind where there is no number."""
    if isinstance(right, str):
        return isinstance(outcome.error, errors)
    return outcome.value is not None and math.isclose(outcome.value, right, rel_tol=CLOSE)


def score_by_the_book(
    matrix: np.ndarray, q: float = 1.0, p: np.ndarray | None = None, rank: int | None = None
):
    """The right answer: the definition on NumPy's eigenvalues, those beyond the known rank being zero."""
    root = np.sqrt(np.full(len(matrix), 1 / len(matrix)) if p is None else p)
    values = np.linalg.eigvalsh(matrix * np.outer(root, root))[::-1][:rank]
    values = values[values > 0]
    if q == 1:
        return float(np.exp(-np.sum(values * np.log(values))))
    return float(np.sum(values**q) ** (1 / (1 - q)))


def lopsided(a: int, b: int) -> float:
    """A function of two items that is not symmetric."""
    return 1.0 if a == b else 0.9 if a < b else 0.0


def cases(official) -> list[Case]:
    """All questions; `official` is the module vendi_score.vendi."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 5))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    gram = unit @ unit.T  # 30 items, rank 5
    half = rows.astype(np.float16)
    exact = half.astype(np.float64)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    p = rng.dirichlet(np.ones(30))
    eye3, eye20 = np.eye(3), np.eye(20)
    blocks = np.kron(np.eye(40), np.full((5, 5), 0.5) + 0.5 * np.eye(5))
    pair = np.array([[1.0, 0.5], [0.5, 1.0]])
    skew = np.array([[1.0, 0.9], [0.0, 1.0]])
    chain = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]])
    distances = 1.0 - np.eye(2)
    single = gram.astype(np.float32)
    zero = np.array([[1.0, 0.0], [0.0, 0.0]])

    def ours(samples, kernel="precomputed", **options):
        return lambda: vm.score(samples, kernel, **options)

    return [
        # Where both should agree, so that the table is fair.
        Case("dense I₂₀", 20.0, lambda: official.score_K(eye20), ours(eye20)),
        Case("30 embeddings", score_by_the_book(gram, rank=5), lambda: official.score_X(rows), ours(rows, "cosine")),
        Case("5·I₃, normalize=True", 3.0, lambda: official.score_K(5 * eye3, normalize=True),
             ours(5 * eye3, Precomputed(normalize=True))),
        # The order.
        Case("embeddings, q=2", score_by_the_book(gram, 2), lambda: official.score_X(rows, q=2),
             ours(rows, "cosine", q=2)),
        Case("embeddings, q=0.5", score_by_the_book(gram, 0.5, rank=5), lambda: official.score_X(rows, q=0.5),
             ours(rows, "cosine", q=0.5)),
        Case("I₃, q=inf", 3.0, lambda: official.score_K(eye3, q=np.inf), ours(eye3, q=np.inf)),
        Case("rank 5 of 30, q=0", 5.0, lambda: official.score_K(gram, q=0), ours(gram, q=0)),
        Case("the same in float32, q=0.1", score_by_the_book(gram, 0.1, rank=5),
             lambda: official.score_K(single, q=0.1), ours(single, q=0.1)),
        Case("[1 ½; ½ 1], q=1+1e-15", score_by_the_book(pair), lambda: official.score_K(pair, q=1 + 1e-15),
             ours(pair, q=1 + 1e-15)),
        Case("I₂, q=−1", AN_ERROR, lambda: official.score_K(np.eye(2), q=-1), ours(np.eye(2), q=-1)),
        # Sparse matrices.
        Case("sparse I₂₀ (csr_matrix)", 20.0, lambda: official.score_K(sparse.csr_matrix(eye20)),
             ours(sparse.csr_matrix(eye20))),
        Case("sparse I₂₀ (csr_array)", 20.0, lambda: official.score_K(sparse.csr_array(eye20)),
             ours(sparse.csr_array(eye20))),
        Case("sparse, 40 blocks of 5", score_by_the_book(blocks), lambda: official.score_K(sparse.csr_matrix(blocks)),
             ours(sparse.csr_matrix(blocks))),
        Case("sparse embeddings, dual", score_by_the_book(gram, rank=5),
             lambda: official.score_dual(sparse.csr_matrix(rows)), ours(sparse.csr_matrix(rows), "cosine")),
        # Matrices that are not similarity matrices.
        Case("5·I₃", AN_ERROR, lambda: official.score_K(5 * eye3), ours(5 * eye3)),
        Case("distances [0 1; 1 0]", AN_ERROR, lambda: official.score_K(distances), ours(distances)),
        Case("asymmetric [1 .9; 0 1]", AN_ERROR, lambda: official.score_K(skew), ours(skew)),
        Case("its transpose", AN_ERROR, lambda: official.score_K(skew.T), ours(skew.T)),
        Case("asymmetric function", AN_ERROR, lambda: official.score([0, 1, 2], lopsided), ours([0, 1, 2], lopsided)),
        Case("negative eigenvalue", AN_ERROR, lambda: official.score_K(chain), ours(chain)),
        Case("zero row among embeddings", AN_ERROR, lambda: official.score_X(zero), ours(zero, "cosine")),
        Case("1e200·I₃ as embeddings", 3.0, lambda: official.score_X(1e200 * eye3), ours(1e200 * eye3, "cosine")),
        Case("float16 embeddings", score_by_the_book(exact @ exact.T, rank=5), lambda: official.score_X(half),
             ours(half, "cosine")),
        # Weights.
        Case("I₃, p=[1, 1, 1]", AN_ERROR, lambda: official.score_K(eye3, p=[1, 1, 1]), ours(eye3, weights=[1, 1, 1])),
        Case("I₂, p=[1]", AN_ERROR, lambda: official.score_K(np.eye(2), p=[1.0]), ours(np.eye(2), weights=[1.0])),
        Case("weights in the dual", score_by_the_book(gram, p=p, rank=5), lambda: official.score_dual(rows, p=p),
             ours(rows, "cosine", weights=p)),
        # Nothing, and internal diversity (1 − Σ pᵢpⱼKᵢⱼ², which is 1 − 1/VS₂).
        Case("no samples", AN_ERROR, lambda: official.score([], lambda a, b: 1.0), ours([], lambda a, b: 1.0)),
        Case("0×0 matrix", AN_ERROR, lambda: official.score_K(np.zeros((0, 0))), ours(np.zeros((0, 0)))),
        Case("IntDiv₂ of embeddings", 1 - float(np.mean(gram**2)), lambda: official.intdiv_X(rows, q=2),
             lambda: 1 - 1 / vm.score(rows, q=2)),
        Case("IntDiv₂ of a function", 1 - float(np.mean(gram**2)),
             lambda: official.intdiv(unit, lambda a, b: a @ b, q=2),
             lambda: 1 - 1 / vm.score(unit, FromFunction(lambda a, b: a @ b), q=2)),
    ]  # fmt: skip


def main() -> int:
    try:
        from vendi_score import vendi as official
    except ImportError:
        print(INSTALL, file=sys.stderr)
        return 2
    head = ("case", "right answer", "official 0.0.3", "vendimeter")
    lines, wrong_there, wrong_here = [], 0, 0
    for case in cases(official):
        there, here = ask(case.official), ask(case.ours)
        marks = [
            " " if is_right(there, case.right) else "✗",
            " " if is_right(here, case.right, vm.errors.VendimeterError) else "✗",
        ]
        wrong_there += marks[0] == "✗"
        wrong_here += marks[1] == "✗"
        lines.append((case.name, show(case.right), f"{there} {marks[0]}", f"{here} {marks[1]}"))
    widths = [max(len(row[column]) for row in [head, *lines]) for column in range(len(head))]
    for row in [head, tuple("-" * width for width in widths), *lines]:
        print(" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print(
        f"\n✗ marks a wrong answer, or none where there is one: {wrong_there} of {len(lines)} by the official package, "
        f"{wrong_here} by vendimeter {vm.__version__}."
    )
    return 1 if wrong_here else 0


if __name__ == "__main__":
    sys.exit(main())
