"""The package as a whole: its names, its imports, its repeatability."""

from __future__ import annotations

import inspect
import pkgutil
import subprocess
import sys
import types

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.results.base import Result

PUBLIC = {
    "Accumulator",
    "Bandwidths",
    "Collection",
    "Comparison",
    "Contributions",
    "Diversity",
    "Duplicates",
    "GroupAccumulator",
    "GroupMeans",
    "GroupScores",
    "Modes",
    "Profile",
    "Rarefaction",
    "Report",
    "Reweighting",
    "Score",
    "Selection",
    "Solver",
    "Spectrum",
    "WrittenContributions",
    "bandwidth",
    "compare",
    "contributions",
    "duplicates",
    "encoders",
    "errors",
    "family",
    "kernels",
    "metrics",
    "modes",
    "plan",
    "plots",
    "profile",
    "rarefy",
    "read",
    "read_batches",
    "report",
    "reweight",
    "score",
    "score_groups",
    "score_stream",
    "select",
    "write_contributions",
}
KERNELS = {
    "Alignment",
    "BLEU",
    "Cosine",
    "Edit",
    "Embed",
    "FromDistances",
    "FromFunction",
    "Jaccard",
    "KMer",
    "Kernel",
    "Laplacian",
    "MACCS",
    "Match",
    "Morgan",
    "NGram",
    "On",
    "Pixels",
    "Polynomial",
    "Precomputed",
    "ProbabilityProduct",
    "Product",
    "RBF",
    "RDKitFingerprint",
    "RandomFeatures",
    "Sum",
    "Tags",
    "Tanimoto",
    "as_kernel",
    "by_name",
}


BASES = {"Kernel", "GroupMeans"}
METRICS = {
    "birthday_paradox",
    "circles",
    "components",
    "compression_ratio",
    "corpus_bleu",
    "d_lex_sim",
    "density_coverage",
    "effective_rank",
    "frechet_distance",
    "grid_coverage",
    "hill",
    "inception_score",
    "intdiv",
    "jensen_shannon_diversity",
    "kernel_distance",
    "leinster_cobbold",
    "log_det",
    "mean_similarity",
    "memorization",
    "mode_diversity",
    "molecules",
    "ngram_diversity",
    "number_of_modes",
    "pairwise_bleu",
    "precision_recall",
    "precision_recall_curve",
    "self_bleu",
    "table",
}


def test_public_names_are_exactly_the_intended_ones():
    assert set(vm.__all__) == PUBLIC
    assert set(vm.kernels.__all__) == KERNELS
    assert {name for name in vm.metrics.__all__ if inspect.isfunction(getattr(vm.metrics, name))} == METRICS
    for module in (vm, vm.kernels, vm.errors, vm.metrics):
        assert all(hasattr(module, name) for name in module.__all__)
    # What else can be reached as vm.… is a submodule, never a stray import.
    stray = {name for name in dir(vm) if not name.startswith("_")} - PUBLIC - {"TYPE_CHECKING"}
    assert all(isinstance(getattr(vm, name), types.ModuleType) for name in stray), stray
    assert stray <= {
        "analysis", "cli", "compat", "data", "diversity", "intake", "integrations", "io", "messages", "optional",
        "options", "present", "reports", "results", "scoring", "similarity", "solvers", "spectrum", "streams",
        "threads",
    }  # fmt: skip


def test_no_module_has_the_name_of_a_public_function():
    functions = {name for name in PUBLIC if inspect.isfunction(getattr(vm, name))}
    assert functions == {
        "bandwidth", "compare", "contributions", "duplicates", "modes", "plan", "profile", "rarefy", "read",
        "read_batches", "report", "reweight", "score", "score_groups", "score_stream", "select", "write_contributions",
    }  # fmt: skip
    for package in (vm, vm.analysis):  # type: ignore[attr-defined]
        assert not functions & {module.name for module in pkgutil.iter_modules(package.__path__)}
    for package in (vm.metrics, vm.plots):
        drawn = {name for name in package.__all__ if inspect.isfunction(getattr(package, name))}
        assert not drawn & {module.name for module in pkgutil.iter_modules(package.__path__)}


def loaded_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_importing_the_package_imports_no_optional_library():
    before = loaded_after("import numpy")
    added = loaded_after("import vendimeter") - before
    assert "vendimeter" in added
    forbidden = {
        "scipy",
        "sklearn",
        "pandas",
        "polars",
        "pyarrow",
        "narwhals",
        "matplotlib",
        "torch",
        "jax",
        "click",
        "PIL",
        "rdkit",
        "transformers",
        "sqlite3",
    }
    assert not added & forbidden


def test_the_help_of_the_command_imports_no_scipy():
    code = (
        "import sys; sys.argv = ['vendi', '--help']\nfrom vendimeter.cli import main\n"
        "try:\n main()\nexcept SystemExit:\n pass\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code + "print('\\n'.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "score" in done.stdout
    assert not {"scipy", "sklearn", "pandas"} & set(done.stdout.split())


@pytest.mark.parametrize("kernel", [*sorted(vm.kernels.by_name()), "sum", "product", "function"])
def test_every_public_function_gives_the_same_answer_twice(kernel):
    rng = np.random.default_rng(3)
    vectors = rng.random((12, 4))
    samples = {
        "precomputed": np.eye(12),
        "from-distances": np.abs(np.subtract.outer(np.arange(12.0), np.arange(12.0))),
        "ngram": ["a b c", "a b", "d e f"] * 4,
        **dict.fromkeys(["bleu", "edit"], ["a b c d", "a b", "d e f"] * 4),
        **dict.fromkeys(["kmer", "alignment"], ["ACDA", "ACD", "DDEF"] * 4),
        **dict.fromkeys(["morgan", "rdkit", "maccs"], ["CCO", "c1ccccc1", "CC(=O)O"] * 4),
        "pixels": rng.integers(0, 256, (12, 5, 5, 3), dtype=np.uint8),
        "tags": [["x"], ["x", "y"], ["z"]] * 4,
        "match": ["x", "y", "z"] * 4,
        "probability-product": vectors / vectors.sum(axis=1, keepdims=True),
    }.get(kernel, vectors)
    made = {
        "sum": 0.5 * vm.kernels.Cosine() + 0.5 * vm.kernels.RBF(),
        "product": vm.kernels.Cosine() * vm.kernels.Laplacian(),
        "function": lambda a, b: float(np.exp(-np.abs(a - b).sum())),
    }
    chosen = made.get(kernel, kernel)
    copy = samples.copy()  # of lists only the outer one, which is enough for texts
    first, second = (vm.score(samples, chosen) for _ in range(2))
    assert first == second
    assert first.bounds == second.bounds
    answers = [score.to_dict() for score in (first, second)]
    for answer in answers:  # all but the time is the same
        assert answer["diagnostics"].pop("seconds") >= 0
    assert answers[0] == answers[1]
    one, two = (vm.profile(samples, chosen) for _ in range(2))
    np.testing.assert_array_equal(one.scores, two.scores)
    labels = list("aabbccaabbcc")
    one, two = (vm.score_groups(samples, chosen, by=labels) for _ in range(2))
    np.testing.assert_array_equal(one.scores, two.scores)
    if isinstance(samples, list):  # and nothing was changed
        assert samples == copy
    else:
        np.testing.assert_array_equal(samples, copy)


def test_every_public_function_and_class_has_a_docstring_with_an_example():
    for name in METRICS:
        text = getattr(vm.metrics, name).__doc__
        assert all(part in text for part in (">>>", "Parameters\n")), name
        assert "References\n" in text or name == "table", f"{name} names no source"
    for owner in (vm, vm.kernels):
        for name in owner.__all__:
            thing = getattr(owner, name)
            made = inspect.isclass(thing) and issubclass(
                thing, Result
            )  # by a function, which has the example
            if inspect.isfunction(thing) or (inspect.isclass(thing) and not made and name not in BASES):
                assert ">>>" in (thing.__doc__ or ""), f"{name} has no example"
