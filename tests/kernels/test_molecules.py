"""Kernels of molecules against RDKit's own similarities and the published table, and what is no molecule."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from itertools import islice

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import vendimeter as vm
from vendimeter.compat import molecule_utils
from vendimeter.data.molecules import parse, parse_all, parts
from vendimeter.errors import EmptyError, InputError, MissingDependencyError
from vendimeter.kernels import MACCS, Jaccard, Morgan, On, RandomFeatures, RDKitFingerprint
from vendimeter.kernels.description import describe, rebuild
from vendimeter.kernels.molecules import _count_trees

pytest.importorskip("rdkit")
from rdkit import Chem, DataStructs, rdBase
from rdkit.Chem import rdFingerprintGenerator, rdMolDescriptors

SMILES = [
    "CCO", "OCC", "c1ccccc1", "CC(=O)Oc1ccccc1C(=O)O", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "C", "[Na+].[Cl-]", "*",
    "[H][H]", "C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "CCCCCCCCCCCC", "O=C(O)c1ccccc1", "F/C=C/F", "F/C=C\\F", "C1CC1",
    "CC |$a;b$|",
]  # fmt: skip
NAN = float("nan")


def molecules() -> list[Chem.Mol]:
    with rdBase.BlockLogs():
        return [Chem.MolFromSmiles(text) for text in SMILES]


def tanimoto(fingerprints) -> np.ndarray:
    return np.array([[DataStructs.TanimotoSimilarity(a, b) for b in fingerprints] for a in fingerprints])


def morgan(radius, bits, *, counts=False, chirality=False):
    generator = rdFingerprintGenerator.GetMorganGenerator(
        radius=radius, fpSize=bits, includeChirality=chirality
    )
    return generator.GetCountFingerprint if counts else generator.GetFingerprint


CASES = [
    (Morgan(), morgan(2, 1024)),
    (Morgan(radius=3, bits=2048), morgan(3, 2048)),
    (Morgan(radius=0, bits=100), morgan(0, 100)),
    (Morgan(chirality=True), morgan(2, 1024, chirality=True)),
    (Morgan(counts=True), morgan(2, 1024, counts=True)),
    (Morgan(bits=64, counts=True), morgan(2, 64, counts=True)),
    (RDKitFingerprint(), Chem.RDKFingerprint),
    (
        RDKitFingerprint(bits=777, min_path=2, max_path=4),
        lambda m: Chem.RDKFingerprint(m, minPath=2, maxPath=4, fpSize=777),
    ),
    (MACCS(), rdMolDescriptors.GetMACCSKeysFingerprint),
]


@pytest.mark.parametrize(("kernel", "function"), CASES, ids=[repr(kernel) for kernel, _ in CASES])
def test_a_kernel_is_the_tanimoto_similarity_of_rdkit(kernel, function):
    fingerprints = [function(molecule) for molecule in molecules()]
    expected = tanimoto(fingerprints)
    # To RDKit two empty fingerprints have nothing in common; to a kernel they are the same item.
    empty = np.array([not any(fingerprint) for fingerprint in fingerprints])
    expected[np.ix_(empty, empty)] = 1
    for samples in (SMILES, molecules(), [*SMILES[:5], *molecules()[5:]]):
        np.testing.assert_allclose(kernel.similarity(samples).dense(), expected, rtol=0, atol=1e-15)
    rows = kernel.fingerprints(SMILES)
    np.testing.assert_array_equal(rows, [list(fingerprint) for fingerprint in fingerprints])
    np.testing.assert_allclose(Jaccard().similarity(rows).dense(), expected, rtol=0, atol=1e-15)
    assert vm.score(SMILES, kernel) == pytest.approx(vm.score(rows, Jaccard()), rel=1e-12)


def test_mirror_images_differ_only_where_that_is_asked_for():
    left, right = SMILES.index("C[C@H](N)C(=O)O"), SMILES.index("C[C@@H](N)C(=O)O")
    assert Morgan().similarity(SMILES).dense()[left, right] == 1
    assert Morgan(chirality=True).similarity(SMILES).dense()[left, right] < 1


@pytest.mark.parametrize(
    "container",
    [tuple, np.array, lambda x: np.array(x, dtype=object), pd.Series, lambda x: pd.Series(x, dtype="string"), pl.Series,
     pa.array, lambda x: pa.chunked_array([x[:5], x[5:]]), lambda x: pd.Categorical(x)],
)  # fmt: skip
def test_smiles_in_any_container(container):
    assert vm.score(container(SMILES), Morgan()) == vm.score(SMILES, Morgan())
    assert Morgan().valid(container(SMILES)).all()


def test_a_column_of_a_table_and_groups():
    table = pd.DataFrame({"smiles": SMILES, "n": range(len(SMILES))})
    assert vm.score(table, On("smiles", Morgan())) == vm.score(SMILES, Morgan())
    groups = vm.score_groups(SMILES, Morgan(), by=["a"] * 8 + ["b"] * (len(SMILES) - 8))
    assert groups["b"] == pytest.approx(vm.score(SMILES[8:], Morgan()), rel=1e-12)


def test_more_molecules_than_are_held_at_a_time(monkeypatch):
    expected = Morgan().fingerprints(SMILES)
    monkeypatch.setattr("vendimeter.data.molecules.AT_ONCE", 3)
    np.testing.assert_array_equal(Morgan().fingerprints(SMILES), expected)
    assert [reason for _, reason in parse_all([*SMILES, ""])] == [None] * len(SMILES) + ["is empty"]
    broken = [*SMILES, "C(", *SMILES, "N(", ""]
    with pytest.raises(
        InputError, match=f"item {len(SMILES)}, .*3 of {len(broken)} items are invalid: {len(SMILES)}, "
    ):
        vm.score(broken, Morgan())


# ------------------------------------------------------------------------------------------------ what is no molecule

INVALID = {
    "parenthesis": ("C(C", ["'C(C'", "cannot be parsed", "extra open parentheses", "position 2"]),
    "ring": ("C1CC", ["cannot be parsed", "unclosed ring"]),
    "symbol": ("[Xx]", ["cannot be parsed", "syntax error", "position 2"]),
    "words": ("nan", ["'nan'", "cannot be parsed"]),
    "reaction": ("C>>C", ["cannot be parsed"]),
    "valence": ("C(C)(C)(C)(C)C", ["no possible molecule", "valence", "5", "greater than permitted"]),
    "aromaticity": ("c1cccc1", ["no possible molecule", "kekulize"]),
    "empty": ("", ["is empty"]),
    "blank": (" \t", ["only white space"]),
    "a name": ("CCO ethanol", ["white space", "'CCO'", "without a name"]),
    "two": ("C C", ["white space", "'C' alone"]),
    "extension and name": ("CC |$a;b$| name", ["white space"]),
    "bad extension": ("CC |$a", ["white space"]),
    "letter": ("CÇ", ["'Ç'", "U+00C7"]),
    "surrogate": ("C\ud800", ["U+D800"]),
    "null": ("C\0C", ["U+0000"]),
    "InChI": ("InChI=1S/CH4/h1H4", ["InChI", "MolFromInchi"]),
    "None": (None, ["is missing (None)"]),
    "NaN": (NAN, ["is missing (nan)"]),
    "NA": (pd.NA, ["is missing"]),
    "bytes": (b"CCO", ["bytes", "decode"]),
    "a number": (3.5, ["is a float", "neither SMILES nor"]),
    "a list": (["CCO"], ["is a list"]),
    "no atoms": (Chem.Mol(), ["no atoms"]),
    "not sanitized": (Chem.MolFromSmiles("c1ccccc1O", sanitize=False), ["not sanitized", "SanitizeMol"]),
    "a pattern": (Chem.MolFromSmarts("[#6]~[#7]"), ["not sanitized"]),
}


def half_ready() -> Chem.Mol:
    """Valences, but no rings: fingerprints of it end in an exception of C++."""
    molecule = Chem.MolFromSmiles("C1CC1", sanitize=False)
    molecule.UpdatePropertyCache()
    return molecule


INVALID["no rings"] = (half_ready(), ["not sanitized"])


@pytest.mark.parametrize("kernel", [Morgan(), Morgan(counts=True), RDKitFingerprint(), MACCS()], ids=repr)
@pytest.mark.parametrize("item", [item for item, _ in INVALID.values()], ids=list(INVALID))
def test_what_is_no_molecule_is_invalid_to_every_kernel(item, kernel, capfd):
    assert kernel.valid(["CCO", item, "C", Chem.MolFromSmiles("C")]).tolist() == [True, False, True, True]
    with pytest.raises(InputError, match="item 1"):
        vm.score(["CCO", item], kernel)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("item", "words"), INVALID.values(), ids=list(INVALID))
def test_what_is_no_molecule_is_said(item, words):
    molecule, reason = parse(item)
    assert molecule is None
    with pytest.raises(InputError) as caught:
        vm.score(["CCO", item, *SMILES], Morgan())
    message = str(caught.value)
    assert message.startswith("item 1")
    assert reason in message
    for word in [*words, "morgan kernel", ".valid(samples)", "skip_broken=True"]:
        assert word in message
    assert message.isprintable()


def test_all_invalid_items_are_counted():
    with pytest.raises(InputError) as caught:
        vm.score(["CCO"] * 1000 + ["C("] * 1234 + [None], RDKitFingerprint())
    assert "1,235 of 2,235 items are invalid: 1000, 1001, 1002, 1003, 1004, …." in str(caught.value)
    with pytest.raises(InputError) as caught:
        vm.score(["CCO", "C("], Morgan())
    assert "In all" not in str(caught.value)


def test_older_versions_of_rdkit_do_not_tell_where_the_syntax_is_wrong(monkeypatch):
    monkeypatch.delattr(rdBase, "CaptureErrorLog", raising=False)
    assert parse("C(C")[1] == "cannot be parsed as SMILES (a syntax error)"
    assert "greater than permitted" in str(parse("C(C)(C)(C)(C)C")[1])


def test_rdkit_logs_again_afterwards(capfd):
    Morgan().valid(["C(C"])
    list(parse_all(["C(C"]))
    assert capfd.readouterr().err == ""
    Chem.MolFromSmiles("C(C")
    assert "Parse Error" in capfd.readouterr().err


@pytest.mark.parametrize("text", ["CCO\n", "  CCO", "\tCCO "])
def test_blanks_around_are_left_out(text):
    assert Morgan().similarity([text, "CCO"]).dense()[0, 1] == 1


def test_mols_are_left_as_they_are():
    hydrogens = Chem.AddHs(Chem.MolFromSmiles("CCO"))
    assert Morgan().similarity([hydrogens, "CCO"]).dense()[0, 1] < 1
    assert hydrogens.GetNumAtoms() == 9


def test_nothing_and_a_single_text_are_errors():
    with pytest.raises(EmptyError):
        vm.score([], Morgan())
    with pytest.raises(InputError, match="single text"):
        vm.score("CCO", Morgan())
    with pytest.raises(InputError, match="On\\("):
        vm.score(pd.DataFrame({"smiles": SMILES}), Morgan())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Morgan(radius=-1), ["radius=-1", "whole number"]),
        (lambda: Morgan(radius=1.5), ["radius=1.5"]),  # type: ignore[arg-type]
        (lambda: Morgan(bits=0), ["bits=0"]),
        (lambda: Morgan(bits=1 << 20), ["bits=1048576", "65,536"]),
        (lambda: Morgan(bits=NAN), ["bits=nan"]),  # type: ignore[arg-type]
        (lambda: Morgan(counts=2), ["counts=2", "True or False"]),  # type: ignore[arg-type]
        (lambda: Morgan(chirality="yes"), ["chirality='yes'"]),  # type: ignore[arg-type]
        (lambda: Morgan(SMILES), ["radius="]),  # type: ignore[arg-type]
        (lambda: RDKitFingerprint(min_path=4, max_path=3), ["min_path=4", "max_path=3"]),
        (lambda: RDKitFingerprint(max_path=50), ["max_path=50", "20"]),
        (lambda: RDKitFingerprint(bits=-5), ["bits=-5"]),
    ],
)
def test_bad_options_are_named(make, words):
    with pytest.raises(InputError) as caught:
        make()
    for word in words:
        assert word in str(caught.value)


def test_without_rdkit_the_extra_is_named():
    code = (
        "import sys; sys.modules['rdkit'] = None\n"
        "import vendimeter as vm\n"
        "try:\n vm.score(['CCO'], 'morgan')\n"
        "except vm.errors.MissingDependencyError as error:\n print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "vendimeter[molecules]" in done.stdout
    assert issubclass(MissingDependencyError, ImportError)


# -------------------------------------------------------------------------------------------------- names and stand-ins


def test_kernels_are_known_by_name_and_come_back_from_their_description():
    for name, kernel in (("morgan", Morgan()), ("rdkit", RDKitFingerprint()), ("maccs", MACCS())):
        assert vm.kernels.as_kernel(name) == kernel
        assert rebuild(describe(kernel)) == kernel
    assert Morgan(radius=3) != Morgan()
    assert rebuild(describe(Morgan(3, counts=True))) == Morgan(3, counts=True)


@pytest.mark.parametrize("kernel", [Morgan(), Morgan(counts=True), MACCS()], ids=repr)
def test_random_features_stand_in_and_stream(kernel):
    exact = kernel.similarity(SMILES).dense()
    stand_in = RandomFeatures(kernel, features=16_384)
    assert np.abs(stand_in.similarity(SMILES).dense() - exact).max() < 5 / 128  # five standard errors
    total = vm.Accumulator(RandomFeatures(kernel, features=256))
    for i in range(0, len(SMILES), 5):
        total.update(SMILES[i : i + 5])
    assert total.score() == pytest.approx(vm.score(SMILES, RandomFeatures(kernel, features=256)), rel=1e-10)
    assert vm.score(SMILES, kernel, method="random-features").level == "none"
    with pytest.raises(InputError, match=r"RandomFeatures\("):
        vm.Accumulator(kernel)


# ------------------------------------------------------------------------------------------------------ published table


def first_valid(path, n: int) -> list[str]:
    with gzip.open(path, "rt") as file:
        texts = [row[0] for row in islice(csv.reader(file), 1, 7_000)]
    return [text for text, good in zip(texts, Morgan().valid(texts), strict=True) if good][:n]


@pytest.mark.parametrize(
    ("file", "row", "scores"),
    [
        ("moses_test", "original", {1500: [403.93], 2500: [515.38]}),
        # Some fingerprints differ between versions of RDKit: 2022.9.5 and 2026.9.1.
        ("moses_ngram_3", "ngram", {1500: [479.80, 479.91]}),
    ],
)
def test_the_molecule_table_of_the_paper(shared_data, file, row, scores):
    folder = shared_data / "molecules"
    published = json.loads((folder / "moses_expected.json").read_text())["authors_notebook"]["values"][row]
    texts = first_valid(folder / f"{file}.csv.gz", max(scores))
    assert len(texts) == max(scores)
    for n, known in scores.items():
        assert min(abs(vm.score(texts[:n], Morgan()) - value) for value in known) < 0.006
    K = Morgan().similarity(texts[:1500]).dense()
    assert (
        round(1 - K.mean(), 4) == published[0]
    )  # IntDiv: all pairs, those of an item with itself among them
    assert min(abs(value - published[1]) for value in scores[1500]) < 0.006


def test_most_ngram_samples_are_invalid_and_the_reader_of_masks_agrees_with_rdkit(shared_data):
    with gzip.open(shared_data / "molecules" / "moses_ngram_3.csv.gz", "rt") as file:
        texts = [row[0] for row in islice(csv.reader(file), 1, 1001)]
    with rdBase.BlockLogs():
        expected = [bool(text) and Chem.MolFromSmiles(text) is not None for text in texts]
    np.testing.assert_array_equal(Morgan().valid(texts), expected)
    assert 100 < sum(expected) < 500
    assert [reason is None for _, reason in parse_all(texts)] == expected


# ------------------------------------------------------------------------------------------------- the official package


def test_the_stand_in_for_the_official_module_gives_its_matrix():
    from vendimeter.compat import molecule_utils

    # Not the molecules without bonds: to RDKit two empty fingerprints have nothing in common.
    texts = [text for text in SMILES if text not in ("C", "*", "[Na+].[Cl-]", "[H][H]")]
    mols = [molecule_utils.get_mol(text) for text in texts]
    for fp, function in (
        ("morgan", morgan(2, 1024)),
        ("rdk", Chem.RDKFingerprint),
        (rdMolDescriptors.GetMACCSKeysFingerprint, rdMolDescriptors.GetMACCSKeysFingerprint),
    ):
        expected = np.array(
            [[DataStructs.FingerprintSimilarity(function(a), function(b)) for b in mols] for a in mols]
        )
        np.testing.assert_allclose(molecule_utils.get_tanimoto_K(mols, fp), expected, rtol=0, atol=1e-15)
    assert molecule_utils.get_mol("") is None
    assert molecule_utils.get_mol("C(C") is None
    assert molecule_utils.get_mol(mols[0]) is mols[0]


def test_the_stand_in_differs_as_it_says():
    from vendimeter.compat import molecule_utils

    smiles = ["C", "O", "CCO"]
    expected = [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    for fp in ("rdk", Chem.RDKFingerprint):
        np.testing.assert_array_equal(molecule_utils.get_tanimoto_K(smiles, fp), expected)
    empty = Chem.RDKFingerprint(Chem.MolFromSmiles("C"))
    assert DataStructs.FingerprintSimilarity(empty, empty) == 0
    for text in ("CCO ethanol", " CCO", "CCO\tethanol 2"):  # as RDKit reads them
        assert molecule_utils.get_mol(text).GetNumAtoms() == Chem.MolFromSmiles(text).GetNumAtoms() == 3
    np.testing.assert_array_equal(
        molecule_utils.get_tanimoto_K(["CCO ethanol", "CCN"]), molecule_utils.get_tanimoto_K(["CCO", "CCN"])
    )


@pytest.mark.parametrize(("mols", "fp", "message"), [
    (["CCO"], "maccs", "fp='maccs'.*'morgan', 'rdk'"),
    (["CCO"], ["morgan"], r"fp=\['morgan'\]; expected"),
    (["CCO"], None, "fp=None; expected"),
    (["CCO", "C(C"], Chem.RDKFingerprint, "item 1 cannot be parsed"),
    (["CCO", "C(C"], "rdk", "item 1, 'C\\(C', cannot be parsed"),
    (["CCO", "C(C ethanol"], "rdk", "item 1, 'C\\(C ethanol', holds white space"),
    (["CCO", None], Chem.RDKFingerprint, "item 1 is missing"),
    (["CCO", "CC"], lambda mol: [1] * mol.GetNumAtoms(), "2 bits for item 1 and 3 for item 0"),
    (["CCO", "CC"], lambda mol: [[1], [1, 0]], "for item 0; expected a vector of bits"),
    (["CCO"], lambda mol: [1, 2], r"fp gave \[1, 2\] for item 0.*bits"),
    (["CCO"], lambda mol: 3, "fp gave 3 for item 0"),
    ("CCO", Chem.RDKFingerprint, "single text of 3 characters"),
    ("CCO", "rdk", "single text of 3 characters"),
    ([], Chem.RDKFingerprint, "empty"),
])  # fmt: skip
def test_bad_input_of_the_stand_in(mols, fp, message):
    from vendimeter.compat import molecule_utils

    with pytest.raises(InputError, match=message):
        molecule_utils.get_tanimoto_K(mols, fp)


# ------------------------------------------------------------------------------------------------- what is too large


def ring(n: int) -> str:
    return f"C1{'C' * (n - 2)}C1"


def bound_to_each_other(n: int) -> str:
    """Atoms of no element, each bound to each."""
    bonds = [(i, j) for i in range(n) for j in range(i)]
    names = {bond: f"%{number:02}" for number, bond in enumerate(bonds, 10)}
    return ".".join("*" + "".join(name for bond, name in names.items() if i in bond) for i in range(n))


TOO_LARGE = {
    "a chain": ("C" * 1001, "has 1,001 atoms; expected at most 1,000"),
    "a ring": (ring(5000), "has 5,001 atoms|has 5,000 atoms"),
    "atoms in brackets": ("[13CH3]" + "[13CH2]" * 1000 + "C", "has 1,002 atoms; expected at most 1,000"),
    "branches": ("C(Cl)" * 600, "has 1,200 atoms"),
    "a flood of brackets": ("[" * 100_000, "has 100,000 characters; expected SMILES of at most 32,000"),
    "letters": ("C" * 10_000_000, "has 10,000,000 characters"),
}


@pytest.mark.parametrize("case", TOO_LARGE)
@pytest.mark.parametrize("kernel", [Morgan(), RDKitFingerprint(), MACCS()])
def test_molecules_that_are_too_large_do_not_come_to_rdkit(monkeypatch, case: str, kernel) -> None:
    smiles, words = TOO_LARGE[case]
    seen = []
    read = Chem.MolFromSmiles
    monkeypatch.setattr(
        Chem, "MolFromSmiles", lambda text, **options: seen.append(len(text)) or read(text, **options)
    )
    assert kernel.valid(["CCO", smiles]).tolist() == [True, False]
    with pytest.raises(InputError, match=f"item 1, .*(?:{words})"):
        vm.score(["CCO", smiles], kernel)
    with pytest.raises(InputError, match=words):
        vm.metrics.molecules(["CCO", smiles])
    assert molecule_utils.get_mol(smiles) is None
    assert max(seen) == 3


def test_molecules_of_the_largest_size_are_read() -> None:
    for smiles in ("C" * 1000, ring(1000), "NC(C)C(=O)" * 200, "[C@@H](Cl)" * 499 + "C", "c1ccccc1" * 160):
        assert Morgan().valid([smiles]).all()
    large = Chem.MolFromSmiles("C" * 3000)  # who has made it may use it
    assert vm.score([large, "CCO"], Morgan()) > 1
    with pytest.raises(InputError, match="item 0 has 3,000 atoms"):
        vm.metrics.molecules([large, "CCO"])


def test_a_few_atoms_with_millions_of_paths_are_refused_by_the_kernel_that_takes_them_all() -> None:
    cage, star = bound_to_each_other(10), "[U]" + "(C)" * 60
    for smiles in (cage, star):
        with pytest.raises(InputError, match=r"item 1 has about .* paths and trees of up to 7 bonds"):
            vm.score(["CCO", smiles], RDKitFingerprint())
        assert vm.score(["CCO", smiles], RDKitFingerprint(max_path=2)) > 1
        assert vm.score(["CCO", smiles], Morgan()) > 1


def test_trees_of_bonds_are_counted_and_those_of_rings_not_too_few() -> None:
    for smiles in ("C", "CC", "CCCC", "CC(C)(C)C", "CC(C)(C)CC(Cl)(Br)CCO", "NC(C)C(=O)NC(C)C(=O)O"):
        molecule = Chem.MolFromSmiles(smiles)
        for most in (1, 3, 7):
            found = sum(map(len, Chem.FindAllSubgraphsOfLengthMToN(molecule, 1, most)))
            assert _count_trees(molecule, most) == pytest.approx(found)
    for smiles in ("C1CC1", "c1ccccc1", "C1CC2CCC1C2", "C12C3C4C1C5C2C3C45", bound_to_each_other(5)):
        molecule = Chem.MolFromSmiles(smiles)
        assert _count_trees(molecule, 7) >= sum(map(len, Chem.FindAllSubgraphsOfLengthMToN(molecule, 1, 7)))


def test_few_large_molecules_are_held_at_a_time() -> None:
    texts = ["C" * 40] * 5000 + ["C" * 1000] * 40
    sizes = [part.stop - part.start for part in parts(texts)]
    assert sum(sizes) == len(texts)
    assert sizes[0] == 4096
    assert max(sizes[2:]) == 8
    assert list(parts([])) == []
