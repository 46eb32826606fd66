"""Figures of molecules against RDKit, one pair at a time, against MOSES' figures, and what is no molecule."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import json
import math
import subprocess
import sys
from collections import Counter
from itertools import islice

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vendimeter as vm
from vendimeter.errors import EmptyError, InputError, MissingDependencyError, UnknownNameError
from vendimeter.kernels import Cosine, Morgan, RDKitFingerprint
from vendimeter.metrics import chemistry
from vendimeter.metrics.chemistry import MoleculeFigures, molecules

pytest.importorskip("rdkit")
from rdkit import Chem, DataStructs, rdBase
from rdkit.Chem import rdFingerprintGenerator, rdMolDescriptors
from rdkit.Chem.Scaffolds import MurckoScaffold

NAN = float("nan")
NEEDS_REFERENCE = ("novelty", "nearest_similarity", "scaffold_similarity", "scaffold_novelty")
SMILES = [
    "CCO",
    "OCC",
    "Cc1ccccc1",
    "c1ccc(-c2ccccc2)cc1C",
    "CC(C)=O",
    "CCO",
    "N#Cc1ccccc1",
    "C(C",
    "",
    "CC1CC1",
]
REFERENCE = ["C(O)C", "Oc1ccc(-c2ccccc2)cc1", "c1ccccc1N", "CCCC"]


# For the N-gram model's first 2,000 samples against the first 1,000 test molecules, by MOSES 0.3.1.
MOSES = {
    "validity": 0.2375,
    "uniqueness": 0.9810526315789474,
    "novelty": 1.0,
    "intdiv": 0.8734985798674607,
    "nearest_similarity": 0.3409818814302746,
    "scaffold_similarity": 0.12089033435413876,
}
MOSES_INTDIV2 = 0.8582123474602303


def column(path, count, start=0):
    with gzip.open(path, "rt") as file:
        return [row[0] for row in islice(csv.reader(file), start + 1, start + 1 + count)]


@pytest.fixture(scope="module")
def generated(shared_data):
    return column(shared_data / "molecules" / "moses_ngram_3.csv.gz", 400)


@pytest.fixture(scope="module")
def tested(shared_data):
    return column(shared_data / "molecules" / "moses_test.csv.gz", 200)


@pytest.fixture(scope="module")
def scented(shared_data):
    """Molecules with stereochemistry and with several fragments."""
    with gzip.open(shared_data / "molecules" / "goodscents_molecules.csv.gz", "rt") as file:
        texts = [row["IsomericSMILES"] for row in csv.DictReader(file)]
    return [text for text in texts if text][::12]


def read(texts):
    with rdBase.BlockLogs():
        result = [Chem.MolFromSmiles(text) if text else None for text in texts]
    return [molecule for molecule in result if molecule is not None]


def by_hand(samples, reference, *, function=None, min_rings=2):
    """All figures from their definitions, by RDKit's own functions, one molecule and one similarity at a time."""
    function = function or rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=1024).GetFingerprint
    ours, theirs = read(samples), read(reference)
    names, known_names = [[Chem.MolToSmiles(m) for m in result] for result in (ours, theirs)]
    prints, others = [[function(m) for m in result] for result in (ours, theirs)]
    table = np.array([DataStructs.BulkTanimotoSimilarity(a, prints) for a in prints])
    near = np.array([max(DataStructs.BulkTanimotoSimilarity(a, others)) for a in prints])
    scaffolds, rings = [], {}
    for result in (ours, theirs):
        cores = [MurckoScaffold.GetScaffoldForMol(m) for m in result]
        texts = [Chem.MolToSmiles(core, isomericSmiles=False) for core in cores]
        rings |= {text: core.GetRingInfo().NumRings() for text, core in zip(texts, cores, strict=True)}
        scaffolds.append(Counter(text for text in texts if text))
    left, right = [
        Counter({s: c for s, c in counts.items() if rings[s] >= min_rings}) for counts in scaffolds
    ]
    keys = sorted(left.keys() | right.keys())
    a, b = np.array([[counts[key] for key in keys] for counts in (left, right)], dtype=float)
    return MoleculeFigures(
        n=len(samples),
        valid=len(ours),
        validity=len(ours) / len(samples),
        unique=len(set(names)),
        uniqueness=len(set(names)) / len(names),
        unique_at={k: len(set(names[:k])) / k for k in (5, 100) if k <= len(names)},
        intdiv=1 - table.mean(),
        intdiv2=1 - math.sqrt((table**2).mean()),
        scaffolds=len(scaffolds[0]),
        scaffold_diversity=len(scaffolds[0]) / len(set(names)),
        novelty=len(set(names) - set(known_names)) / len(set(names)),
        nearest_similarity=near.mean(),
        scaffold_similarity=a @ b / np.linalg.norm(a) / np.linalg.norm(b),
        scaffold_novelty=len(scaffolds[0].keys() - scaffolds[1].keys()) / len(scaffolds[0]),
        reference_valid=len(theirs),
        reference_invalid=len(reference) - len(theirs),
    )


def assert_same(result, expected):
    for field in dataclasses.fields(MoleculeFigures):
        ours, theirs = getattr(result, field.name), getattr(expected, field.name)
        if isinstance(theirs, float):
            assert ours == pytest.approx(theirs, rel=1e-12, abs=1e-14, nan_ok=True), field.name
        else:
            assert ours == theirs, field.name


# --------------------------------------------------------------------------------------------------------- the figures


def test_figures_that_can_be_counted_by_eye():
    figures = molecules(SMILES, REFERENCE, unique_at=[2, 8, 9])
    assert (figures.n, figures.valid, figures.unique) == (10, 8, 6)
    assert (figures.validity, figures.uniqueness) == (0.8, 0.75)
    assert figures.unique_at == {
        2: 0.5,
        8: 0.75,
    }  # ethanol twice in the first two; there is no ninth valid one
    assert figures.novelty == 5 / 6  # of the six, the reference has ethanol
    assert figures.scaffolds == 3  # benzene, biphenyl, cyclopropane
    assert figures.scaffold_diversity == 0.5
    assert figures.scaffold_novelty == pytest.approx(1 / 3)  # cyclopropane
    assert figures.scaffold_similarity == 1  # of those with two rings, both have biphenyl alone
    assert molecules(SMILES, REFERENCE, min_rings=1).scaffold_similarity == pytest.approx(
        (2 * 1 + 1 * 1)
        / math.sqrt((4 + 1 + 1) * (1 + 1))  # benzene 2 and 1, biphenyl 1 and 1, cyclopropane 1 and 0
    )
    assert (figures.reference_valid, figures.reference_invalid) == (4, 0)
    assert_same(figures, dataclasses.replace(by_hand(SMILES, REFERENCE), unique_at=figures.unique_at))


@pytest.mark.parametrize(
    ("kernel", "function"),
    [
        (None, None),
        ("maccs", rdMolDescriptors.GetMACCSKeysFingerprint),
        (RDKitFingerprint(bits=777), lambda m: Chem.RDKFingerprint(m, fpSize=777)),
        (
            Morgan(radius=3, bits=100, counts=True),
            rdFingerprintGenerator.GetMorganGenerator(radius=3, fpSize=100).GetCountFingerprint,
        ),
    ],
    ids=["default", "MACCS", "paths", "counts"],
)
def test_every_figure_on_real_molecules(generated, tested, kernel, function):
    reference = [*tested, "C(C", None]
    figures = molecules(generated, reference, kernel=kernel, unique_at=(5, 100, 1_000))
    assert 75 < figures.valid < 125  # most of the model's are none
    assert_same(figures, by_hand(generated, reference, function=function))


def test_small_blocks_change_nothing(monkeypatch, generated, tested):
    tested = tested[:199]
    expected = molecules(generated, tested)
    monkeypatch.setattr("vendimeter.data.molecules.AT_ONCE", 7)
    monkeypatch.setattr(chemistry, "SIDE", 33)  # the last block of the reference is of one molecule
    assert_same(molecules(generated, tested), expected)


def test_copies_are_compared_once_and_count_as_often_as_they_come(tested):
    sample = tested[:40]
    copies = [text for i, text in enumerate(sample) for _ in range(1 + i % 3)]
    assert_same(molecules(copies, tested[20:60], unique_at=(5, 100)), by_hand(copies, tested[20:60]))


def test_stereoisomers_share_a_fingerprint_and_are_two_molecules():
    pair = ["C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"]
    figures = molecules(pair, pair[:1])
    assert (figures.unique, figures.novelty, figures.intdiv, figures.nearest_similarity) == (2, 0.5, 0, 1)
    flat = molecules(pair, pair[:1], stereo=False)
    assert (flat.unique, flat.novelty) == (1, 0)
    told = molecules(pair, pair[:1], kernel=Morgan(chirality=True))
    assert told.intdiv > 0
    assert told.nearest_similarity < 1
    assert molecules(pair, pair[:1], kernel=Morgan(chirality=True), stereo=False).intdiv == 0


def test_without_stereochemistry_molecules_are_those_of_flat_smiles(scented):
    flat = [Chem.MolToSmiles(molecule, isomericSmiles=False) for molecule in read(scented)]
    assert molecules(scented, flat).novelty > 0.1
    figures = molecules(scented, flat, stereo=False)
    assert figures.novelty == 0
    assert figures.unique == len(set(flat)) < molecules(scented).unique


@settings(max_examples=20)
@given(st.lists(st.sampled_from([*SMILES, "C1", None, "CC(N)=O"]), min_size=1, max_size=12), st.randoms())
def test_order_and_writing_do_not_matter(items, random):
    turned = [
        Chem.MolToSmiles(read([item])[0], doRandom=True) if item and read([item]) else item for item in items
    ]
    random.shuffle(turned)
    assert_same(molecules(turned, REFERENCE, unique_at=1_000), molecules(items, REFERENCE, unique_at=1_000))


def test_a_collection_against_itself(tested):
    figures = molecules(tested, tested)
    assert (figures.novelty, figures.scaffold_novelty) == (0, 0)
    assert figures.nearest_similarity == 1
    assert figures.scaffold_similarity == pytest.approx(1, rel=1e-14)


def test_without_a_reference_there_is_nothing_to_compare_with():
    figures = molecules(SMILES)
    assert all(math.isnan(getattr(figures, name)) for name in NEEDS_REFERENCE)
    assert (figures.reference_valid, figures.reference_invalid) == (0, 0)
    assert figures.intdiv == molecules(SMILES, REFERENCE).intdiv
    as_json = json.loads(json.dumps(figures.to_dict()))
    assert as_json["novelty"] is None
    assert as_json["valid"] == 8
    assert "validity=0.8, unique=6" in repr(figures)
    assert "<td>uniqueness</td><td>0.75</td>" in figures._repr_html_()


def test_nearest_neighbours_can_be_left_out():
    with_them, without = molecules(SMILES, REFERENCE), molecules(SMILES, REFERENCE, nearest=False)
    assert math.isnan(without.nearest_similarity)
    assert_same(dataclasses.replace(without, nearest_similarity=with_them.nearest_similarity), with_them)


# --------------------------------------------------------------------------------------- where MOSES' answer is another


def test_novelty_writes_both_sides_alike():
    """MOSES 0.3.1: 1.0, as it compares canonical SMILES with the reference as it is written."""
    assert molecules(["CCO"], ["OCC"]).novelty == 0
    assert molecules(["OCC"], ["CCO"]).novelty == 0


def test_the_test_set_of_moses_holds_nothing_that_is_not_in_it(shared_data):
    """MOSES: 12 of the first 20,000 molecules are new to the set they are from, as other versions of RDKit wrote it."""
    texts = column(shared_data / "molecules" / "moses_test.csv.gz", 600)
    old = "[H]N=C1NC(=Nc2cccc(Cl)c2)NC(C)(C)N1"
    assert Chem.MolToSmiles(Chem.MolFromSmiles(old)) != old
    assert molecules([*texts, old], [*texts, old], nearest=False).novelty == 0


def test_intdiv2_is_the_root_of_the_mean(generated):
    """MOSES takes a mean of roots: 0.8296 for these molecules, where the root of the mean gives 0.8286."""
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=1024)
    prints = [generator.GetFingerprint(molecule) for molecule in read(generated)]
    squares = np.array([DataStructs.BulkTanimotoSimilarity(a, prints) for a in prints]) ** 2
    result = molecules(generated).intdiv2
    assert result == pytest.approx(1 - math.sqrt(squares.mean()), rel=1e-12)
    assert 1 - np.sqrt(squares.mean(axis=1)).mean() > result + 1e-3


def test_a_share_among_more_than_there_are_is_left_out():
    """MOSES: unique@1000 = 1.0 of three molecules, with a warning."""
    assert molecules(["C", "CC", "CCC"]).unique_at == {}
    assert molecules(["C", "CC", "CCC"], unique_at=3).unique_at == {3: 1}


@pytest.mark.parametrize("item", [NAN, "CCO ethanol", b"CCO"])
def test_what_is_no_smiles_is_not_valid(item):
    """MOSES: 1.0 for each of them."""
    assert molecules([item, "CCO"]).validity == 0.5


def test_nothing_valid_gives_no_share_of_it():
    """MOSES: ZeroDivisionError."""
    figures = molecules(["C(", "", None], REFERENCE)
    assert (figures.n, figures.valid, figures.validity, figures.unique, figures.scaffolds) == (3, 0, 0, 0, 0)
    assert figures.unique_at == {}
    missing = ("uniqueness", "intdiv", "intdiv2", "scaffold_diversity", *NEEDS_REFERENCE)
    assert all(math.isnan(getattr(figures, name)) for name in missing)
    assert figures.reference_valid == 4


def test_scaffolds_of_one_ring_count_but_not_for_the_similarity():
    """MOSES leaves out scaffolds of one ring: with benzene, which both have, the cosine is 0.99."""
    samples = ["Cc1ccccc1"] * 9 + ["c1ccc2ccccc2c1"]
    reference = ["Oc1ccccc1"] * 9 + ["c1ccc(-c2ccccc2)cc1"]
    figures = molecules(samples, reference)
    assert figures.scaffolds == 2
    assert figures.scaffold_similarity == 0
    assert molecules(samples, reference, min_rings=1).scaffold_similarity == pytest.approx(81 / 82)


def test_figures_of_moses_itself(shared_data):
    folder = shared_data / "molecules"
    samples = column(folder / "moses_ngram_3.csv.gz", 2_000)
    reference = column(folder / "moses_test.csv.gz", 1_000)
    figures = molecules(samples, reference, unique_at=100)
    for name, value in MOSES.items():
        assert getattr(figures, name) == pytest.approx(value, rel=1e-6), name  # it adds up in float32
    assert figures.intdiv2 == pytest.approx(MOSES_INTDIV2, rel=1e-2)
    assert figures.intdiv2 < MOSES_INTDIV2


# ------------------------------------------------------------------------------------------------ what a molecule is


def test_molecules_are_taken_by_their_smiles(scented):
    texts = [Chem.MolToSmiles(molecule) for molecule in read(scented[::3])]
    expected = molecules(texts, texts[::2])

    def kekule(molecule):
        Chem.Kekulize(molecule, clearAromaticFlags=True)
        return molecule

    forms = {
        "as read": read(texts),
        "with hydrogens": [Chem.AddHs(molecule) for molecule in read(texts)],
        "drawn with double bonds": [kekule(molecule) for molecule in read(texts)],
        "not sanitised": [Chem.MolFromSmiles(text, sanitize=False) for text in texts],
    }
    for items in forms.values():
        before = [(molecule.GetNumAtoms(), molecule.ToBinary()) for molecule in items[:50]]
        assert_same(molecules(items, texts[::2]), expected)
        assert [(molecule.GetNumAtoms(), molecule.ToBinary()) for molecule in items[:50]] == before


def test_explicit_hydrogens_do_not_turn_a_double_bond():
    """RDKit 2026.09 writes this molecule with its hydrogens as the other isomer."""
    text = "COC(=O)OC1CC/C=C/CCC1"
    assert molecules([Chem.AddHs(Chem.MolFromSmiles(text))], [text]).novelty == 0


def test_atom_map_numbers_make_no_difference():
    assert molecules(["[CH3:1][OH:2]", "[H:7]OC"], ["CO"]).novelty == 0
    assert molecules(["[CH3:1][C@H]([CH3:2])O"], ["CC(C)O"]).novelty == 0  # a centre by its numbers only
    assert molecules(["[CH3:1][C@H](N)C(=O)O"], ["C[C@H](N)C(=O)O"]).novelty == 0
    molecule = Chem.MolFromSmiles("[CH3:1][OH:2]")
    assert molecules([molecule], ["CO"]).novelty == 0
    assert [atom.GetAtomMapNum() for atom in molecule.GetAtoms()] == [1, 2]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("[13CH4]", "C"),
        ("[NH4+]", "N"),
        ("[Na+].CC(=O)[O-]", "CC(=O)[O-]"),
        ("Oc1ccccn1", "O=c1cccc[nH]1"),
        ("F/C=C/F", "F/C=C\\F"),
    ],
)
def test_isotopes_charges_salts_tautomers_and_isomers_are_other_molecules(left, right):
    assert molecules([left], [right]).novelty == 1
    assert molecules([left, right]).unique == 2


def test_the_order_of_fragments_makes_no_difference():
    assert molecules(["[Na+].[Cl-]"], ["[Cl-].[Na+]"]).novelty == 0


def test_acyclic_molecules_have_no_scaffold():
    figures = molecules(["CCO", "CCN"], ["CCO", "c1ccccc1"])
    assert (figures.scaffolds, figures.scaffold_diversity) == (0, 0)
    assert math.isnan(figures.scaffold_similarity)
    assert math.isnan(figures.scaffold_novelty)
    assert molecules(["CCO", "Cc1ccccc1"]).scaffold_diversity == 0.5


def test_scaffolds_have_no_stereochemistry_and_no_isotopes():
    decalins = ["C1CC[C@H]2CCCC[C@H]2C1", "C1CC[C@@H]2CCCC[C@H]2C1", "C1CC[C@@H]2CCC[13CH2][C@H]2C1"]
    figures = molecules(decalins)
    assert (figures.unique, figures.scaffolds) == (3, 1)


def test_molecules_that_cannot_be_sanitised_are_invalid():
    five = Chem.MolFromSmiles("C(C)(C)(C)(C)C", sanitize=False)
    ring = Chem.MolFromSmiles("c1cccc1", sanitize=False)
    assert molecules([five, ring, Chem.Mol(), Chem.MolFromSmiles("C")]).valid == 1


def test_one_molecule():
    figures = molecules(["c1ccccc1"], ["c1ccccc1"])
    assert (figures.uniqueness, figures.intdiv, figures.intdiv2, figures.nearest_similarity) == (1, 0, 0, 1)


# ---------------------------------------------------------------------------------------------------------- containers


@pytest.mark.parametrize(
    "container",
    [tuple, np.array, lambda x: np.array(x, dtype=object), pd.Series, lambda x: pd.Series(x, dtype="string"), pl.Series,
     pa.array, lambda x: pa.chunked_array([x[:3], x[3:]]), pd.Categorical],
)  # fmt: skip
def test_any_container(container):
    assert_same(molecules(container(SMILES), container(REFERENCE)), molecules(SMILES, REFERENCE))


def test_gaps_of_a_column_are_invalid_samples():
    for column in (pd.Series(["CCO", None, NAN]), pl.Series(["CCO", None, None]), ["CCO", pd.NA, None]):
        assert molecules(column).validity == pytest.approx(1 / 3)


def test_files(tmp_path):
    path, other = tmp_path / "made.smi", tmp_path / "known.smi"
    path.write_text("CCO ethanol\nC(C broken\nOCC again\n")
    other.write_text("C(O)C\nC1\n")
    figures = molecules(vm.read(path), vm.read(other))
    assert (figures.n, figures.valid, figures.unique, figures.novelty) == (3, 2, 1, 0)
    assert figures.reference_invalid == 1


def test_nothing_is_logged_and_nothing_is_changed(capfd):
    samples, reference = [*SMILES, None, "c1cccc1", "CC |$a;b$|"], [*REFERENCE, "C(C)(C)(C)(C)C"]
    copies = list(samples), list(reference)
    molecules(samples, reference)
    assert capfd.readouterr() == ("", "")
    assert (samples, reference) == copies
    Chem.MolFromSmiles("C(C")
    assert "Parse Error" in capfd.readouterr().err  # RDKit logs again afterwards


# ----------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("samples", "options", "error", "words"),
    [
        ([], {}, EmptyError, "samples is empty"),
        (["C"], {"reference": []}, EmptyError, "^reference: samples is empty"),
        ("CCO", {}, InputError, "single text"),
        (["C"], {"reference": "CCO"}, InputError, "^reference: .*single text"),
        (
            ["C"],
            {"reference": ["C(", None]},
            InputError,
            "^reference: none of the 2 items is a molecule.*parsed",
        ),
        (["C"], {"reference": [None]}, InputError, r"^reference: none of the 1 items .*missing \(None\)"),
        (None, {}, InputError, "NoneType"),
        (5, {}, InputError, "int without a length"),
        ([1.0, 2.0], {}, InputError, "no item is a text or a molecule .*item 0 is a float, neither SMILES"),
        (np.arange(3), {}, InputError, "item 0 is a int, neither"),
        (np.array([[1, 2], [3, 4]]), {}, InputError, "item 0 is a list"),
        ([None, b"CCO"], {}, InputError, "item 1 is bytes.*decode"),
        (["C"], {"reference": [b"C"]}, InputError, "^reference: no item .*item 0 is bytes"),
        (pd.DataFrame({"smiles": ["C"]}), {}, InputError, "table"),
        (["C"], {"kernel": "cosine"}, InputError, "kernel='cosine'; expected one of fingerprints"),
        (["C"], {"kernel": Cosine()}, InputError, "Cosine.*Morgan"),
        (["C"], {"kernel": "margan"}, UnknownNameError, "Did you mean 'morgan'"),
        (["C"], {"kernel": Morgan}, InputError, "is the class Morgan"),
        (["C"], {"unique_at": 0}, InputError, "unique_at=0; expected a whole number from 1 up"),
        (["C"], {"unique_at": [10, 2.5]}, InputError, "unique_at=2.5"),
        (["C"], {"unique_at": True}, InputError, "unique_at=True"),
        (["C"], {"unique_at": "10"}, InputError, "unique_at='10'"),
        (["C"], {"unique_at": None}, InputError, "unique_at=None"),
        (["C"], {"unique_at": NAN}, InputError, "unique_at=nan"),
        (["C"], {"min_rings": 0}, InputError, "min_rings=0"),
        (["C"], {"min_rings": True}, InputError, "min_rings=True"),
        (["C"], {"stereo": 1}, InputError, "stereo=1; expected True or False"),
        (["C"], {"nearest": "yes"}, InputError, "nearest='yes'"),
        (["C"], {"progress": "no"}, InputError, "progress='no'"),
        (["C"], {"progress": np.array([1, 2])}, InputError, r"progress=<ndarray of shape \(2,\)>"),
    ],
)
def test_bad_input_is_named(samples, options, error, words):
    with pytest.raises(error, match=words) as caught:
        molecules(samples, **options)
    assert "\n" not in str(caught.value)


def test_sizes_may_come_twice_or_not_at_all():
    assert molecules(SMILES, unique_at=()).unique_at == {}
    assert molecules(SMILES, unique_at=np.array([2, 2])).unique_at == {2: 0.5}


def test_weights_of_a_collection_are_refused(tmp_path):
    path = tmp_path / "made.csv"
    path.write_text("smiles,share\nCCO,1\nC,3\n")
    with pytest.raises(InputError, match="has weights, and molecules counts every sample once"):
        molecules(vm.read(path, samples="smiles", weight="share", kind="molecules"))


def test_without_rdkit_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit.Chem", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'vendimeter\[molecules\]'"):
        molecules(["C"])


def test_rdkit_is_imported_when_it_is_used():
    code = (
        "import sys, vendimeter.metrics.chemistry; print({'rdkit', 'scipy', 'pandas'} & sys.modules.keys())"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
