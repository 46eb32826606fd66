"""Sample complexity of Friedman and Dieng, The Vendi Score (TMLR 2023): how the score grows with n.

Claim: the empirical score converges to that of the population at a rate proportional to 1/√n, with a constant that
depends on the true entropy; by Jensen's inequality the empirical entropy is below the true one in the mean. The paper
states no condition. Bach's theorem, which it cites, has one, on how fast the spectrum falls.

Populations whose spectrum is known, so that nothing is estimated: normals in 8 dimensions with cosine similarity (a
flat spectrum), normals on a line with the RBF kernel (a geometric one), 64 equally frequent classes, and infinitely
many classes with frequencies ∝ 1/kˢ, k = 1, 2, … A sample of n has seen the classes up to about n^(1/s), and those that
it lacks have the share n^(1/s − 1) of all. So falls the bias of the entropy, times log n: as log n / √n for s = 2, and
slower for any s below. The slope of log bias against log n is held against −1 and −½. With the data at hand, MNIST by
pixels: subsets against all 10,000 digits.

The last line of the paper's bound is wrong, exp(H)(1 − 1/√n) for exp(H)(1 − e^(−1/√n)): see `unclear.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import mpmath
import numpy as np
from matplotlib.figure import Figure

import _common as common
import vendimeter as vm
from vendimeter.kernels import RBF, Cosine, Match

SEED, REPEATS = 2023, 30
SIZES = [50, 100, 200, 400, 800, 1600]
DIMENSIONS, CLASSES = 8, 64
TAILS = {2.0: common.PURPLE, 1.5: common.SKY, 1.2: common.BLACK}  # the exponents s of the frequencies
WIDTH = 10.0  # of the normal, in bandwidths
STEEP = -0.75  # slopes below this are nearer to −1 than to −½ …
SHALLOW = (
    -0.33
)  # … and slopes above this, that of log n / √n at these sizes, are slower than the claim allows


class Population(NamedTuple):
    """Where samples are drawn from, with the kernel and the score of infinitely many."""

    name: str
    kernel: Any
    draw: Callable[[np.random.Generator, int], Any]
    score: float
    colour: str


def populations() -> list[Population]:
    a, b = 1 / (4 * WIDTH**2), 0.5
    ratio = b / (
        a + b + np.sqrt(a**2 + 2 * a * b)
    )  # eigenvalues (1 − ratio) ratioᵏ of an RBF kernel over a normal
    geometric = float(np.exp(-np.log1p(-ratio) - ratio / (1 - ratio) * np.log(ratio)))
    return [
        Population(
            f"normals in {DIMENSIONS} dimensions, cosine", Cosine(),
            lambda rng, n: rng.standard_normal((n, DIMENSIONS)), float(DIMENSIONS), common.BLUE,
        ),
        Population(
            "normals on a line, RBF", RBF(1.0), lambda rng, n: rng.normal(scale=WIDTH, size=n), geometric, common.GREEN,
        ),
        Population(
            f"{CLASSES} equal classes", Match(), lambda rng, n: rng.integers(CLASSES, size=n).tolist(), float(CLASSES),
            common.ORANGE,
        ),
        *(
            Population(
                f"classes with frequencies ∝ 1/k^{exponent:g}", Match(),
                lambda rng, n, exponent=exponent: rng.zipf(exponent, size=n).tolist(), score_of_zipf(exponent), colour,
            )
            for exponent, colour in TAILS.items()
        ),
    ]  # fmt: skip


def score_of_zipf(exponent: float) -> float:
    """Of classes with frequencies k^−s / ζ(s): their entropy is log ζ(s) − s ζ′(s) / ζ(s)."""
    total = mpmath.zeta(exponent)
    return float(total * mpmath.exp(-exponent * mpmath.zeta(exponent, derivative=1) / total))


def measure(population: Population, place: int, repeats: int) -> dict[str, Any]:
    """The mean score of random samples of every size, and how fast its distance from the population's falls."""
    mean, error = [], []
    for n in SIZES:
        scores = [
            float(vm.score(population.draw(np.random.default_rng([SEED, place, n, k]), n), population.kernel))
            for k in range(repeats)
        ]
        mean.append(float(np.mean(scores)))
        error.append(float(np.std(scores, ddof=1) / np.sqrt(repeats)))
    bias = population.score - np.array(mean)
    return {
        "population": population.score,
        "mean": mean,
        "standard_error": error,
        "bias": bias.tolist(),
        "slope": slope_of(bias[1:], SIZES[1:]),  # the smallest size is not yet of the asymptotic kind
        "bound": [population.score * (1 - np.exp(-1 / np.sqrt(n))) for n in SIZES],
    }


def slope_of(bias: np.ndarray, sizes: Sequence[int]) -> float:
    """Of log bias against log n."""
    return float(np.polyfit(np.log(sizes), np.log(bias), 1)[0])


def digits(options: Any, repeats: int) -> dict[str, Any]:
    """MNIST by pixels: subsets of every size, and all of them in place of the population."""
    path = common.file_of(options, "images/mnist_test.npz", "the 10,000 test digits of MNIST")
    with np.load(path) as held:
        images = held["images"].reshape(len(held["images"]), -1).astype(np.float64)
    rng = np.random.default_rng(SEED)
    mean = []
    for n in SIZES:
        chosen = [rng.choice(len(images), n, replace=False) for _ in range(repeats)]
        mean.append(float(np.mean([float(vm.score(images[one])) for one in chosen])))
    whole = float(vm.score(images))
    # Of all of them the bias is about one of them in ten thousand of what it is of one: added, for the slope alone.
    bias = whole - np.array(mean)
    bias += bias[-1] * SIZES[-1] / (len(images) - SIZES[-1])
    return {
        "all": whole,
        "n": len(images),
        "mean": mean,
        "bias": bias.tolist(),
        "slope": slope_of(bias[1:], SIZES[1:]),
    }


def check(rows: dict[str, Any], claims: common.Claims) -> None:
    biases = {name: np.array(row["bias"]) for name, row in rows.items()}
    slack = {name: 3 * np.array(row["standard_error"]) for name, row in rows.items()}
    claims.check(
        "below",
        "The empirical entropy is no greater than the true one in the mean (Jensen); nor, here, is the score.",
        holds=all((bias > -slack[name]).all() for name, bias in biases.items()),
        direction=all(bias.mean() > 0 for bias in biases.values()),
        measured="mean score at n = "
        + "; ".join(f"{SIZES[0]} and {SIZES[-1]}: {row['mean'][0]:.3g} and {row['mean'][-1]:.4g} of "
                    f"{row['population']:.4g} ({name})" for name, row in rows.items()),
    )  # fmt: skip
    slopes = "; ".join(f"{row['slope']:.2f} ({name})" for name, row in rows.items())
    claims.check(
        "rate",
        "The score converges at a rate of 1/√n at least, whatever the population.",
        holds=all(row["slope"] < SHALLOW for row in rows.values()),
        direction=False,  # a statement about every population either holds for all of them or does not hold
        paper="a bound proportional to n^−0.5, without a condition on the population",
        measured=f"the bias falls as n to the power {slopes}",
    )
    steep = [name for name, row in rows.items() if row["slope"] < STEEP]
    claims.check(
        "faster",
        "The bound is not what is observed: where the spectrum is finite or falls fast, the bias falls as 1/n.",
        holds=len(steep) == 3,
        direction=bool(steep),
        measured=f"nearer to −1 than to −½: {'; '.join(steep)}",
    )
    claims.check(
        "constant",
        "exp(H) − exp(Ĥ) ≤ exp(H)(1 − e^(−1/√n)), with a constant of 1 in Bach's bound.",
        holds=all((np.array(row["bias"]) <= row["bound"]).all() for row in rows.values()),
        direction=False,  # an inequality either holds for all of them or does not hold
        paper="stated for every population (Appendix, sample complexity)",
        measured="; ".join(
            f"bias {row['bias'][0]:.2f} against the bound {row['bound'][0]:.2f} at n = {SIZES[0]} ({name})"
            for name, row in rows.items()
        ),
    )


def draw(rows: dict[str, Any], mnist: dict[str, Any] | None) -> Figure:
    figure = common.new_figure(12.5, 4.2)
    left, right = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.05, right=0.74, top=0.9, bottom=0.13, wspace=0.2)
    for population in populations():
        row = rows[population.name]
        style = {"color": population.colour, "marker": "o", "markersize": 4}
        share = np.array(row["mean"]) / row["population"]
        left.errorbar(SIZES, share, np.array(row["standard_error"]) / row["population"], capsize=2, **style)
        label = f"{population.name}: slope {row['slope']:.2f}"
        right.plot(SIZES, np.array(row["bias"]) / row["population"], label=label, **style)
    if mnist is not None:
        style = {"color": common.VERMILLION, "marker": "s", "markersize": 4}
        left.plot(SIZES, np.array(mnist["mean"]) / mnist["all"], **style)
        label = f"MNIST by pixels: slope {mnist['slope']:.2f}"
        right.plot(SIZES, np.array(mnist["bias"]) / mnist["all"], label=label, **style)
    n = np.array(SIZES, dtype=float)
    right.plot(
        n, 1 - np.exp(-1 / np.sqrt(n)), color="black", linestyle="--", label="the paper's bound, ∝ 1/√n"
    )
    right.plot(n, 4 / n, color="black", linestyle=":", label="∝ 1/n")
    left.axhline(1, color=common.GREY, linewidth=0.8)
    left.set(
        xscale="log", xlabel="samples n", title="Mean score, as a share of the population's", ylim=(0, 1.05)
    )
    right.set(
        xscale="log", yscale="log", ylim=(1e-3, 1.1), xlabel="samples n", title="What is missing, as a share"
    )
    for ax in (left, right):
        ax.set_xticks(SIZES, [f"{size:,}" for size in SIZES])
        ax.minorticks_off()
    right.legend(frameon=False, loc="center left", bbox_to_anchor=(1.02, 0.5))
    return figure


def main(argv: Sequence[str] | None = None) -> int:
    parser = common.parser_of(__doc__)
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"samples of every size ({REPEATS})")
    options = common.parsed(parser, argv)
    claims = common.Claims()
    rows = {one.name: measure(one, place, options.repeats) for place, one in enumerate(populations())}
    check(rows, claims)
    mnist = None
    try:
        mnist = digits(options, options.repeats)
        claims.check(
            "MNIST",
            "So it is with real data: the score of a subset is too low, and less so the larger it is.",
            holds=common.rising(mnist["mean"]) and mnist["slope"] < SHALLOW,
            direction=mnist["mean"][0] < mnist["mean"][-1],
            measured=f"{', '.join(f'{value:.2f}' for value in mnist['mean'])} at n = {', '.join(map(str, SIZES))}, "
            f"{mnist['all']:.2f} of all {mnist['n']:,}; slope {mnist['slope']:.2f}",
        )
    except common.Missing as error:
        claims.not_run("MNIST", "So it is with real data.", why=str(error))
    results = {
        "figure": "Friedman and Dieng, The Vendi Score, TMLR 2023, Sample complexity (section 3 and appendix)",
        "parameters": {"seed": SEED, "repeats": options.repeats, "sizes": SIZES},
        "rows": rows,
        "mnist": mnist,
        "claims": claims.records,
    }
    common.write(options.out, "sample_complexity", results, draw(rows, mnist))
    return 0


if __name__ == "__main__":
    sys.exit(main())
