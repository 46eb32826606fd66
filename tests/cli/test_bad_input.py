"""Bad input of every kind, to every command: exit code 2, one message that names what was seen, and nothing left."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from cli.command_runs import Warm, check_refused, contents, vendi


def table(text: str) -> list[Any]:
    """Lines of arguments and of what the message must hold, apart by '→'."""
    pairs = [tuple(part.strip() for part in line.split("→")) for line in text.strip().splitlines()]
    return [pytest.param(*pair, id=pair[0]) for pair in pairs]


# What files hold, read by `vendi score`.
FILES = table("""
    missing.txt → there is no file or folder 'missing.txt'
    'missing*.npy' → there is no file that matches 'missing*.npy'
    '' → expected the path of a file
    empty.txt → 'empty.txt' holds no samples
    blank.txt → 'blank.txt' holds no samples
    header.csv → 'header.csv' holds no samples
    none.npy → 'none.npy' holds no samples
    empty-folder → 'empty-folder' is an empty folder
    no-pictures → 'no-pictures' has 1 file, not a picture: .md
    word.xyz → expected one of .txt
    binary.txt → line 1 of 'binary.txt' holds a NUL byte
    latin.txt → line 2 of 'latin.txt' is not UTF-8 text
    binary.npy → 'binary.npy' could not be read as a NumPy file
    binary.npz → 'binary.npz'
    binary.parquet → 'binary.parquet' is no Parquet file
    binary.arrow → 'binary.arrow'
    binary.png → 'binary.png'
    binary.safetensors → 'binary.safetensors'
    binary.sdf → 'binary.sdf'
    binary.txt.gz → 'binary.txt.gz'
    objects.npy → never unpickled
    scalar.npy → 'scalar.npy' is a single value
    flat.npy → has rows without numbers
    complex.npy → complex128
    nan.npy → item 1 (row 1 of 'nan.npy') holds the value nan
    inf.npy → item 1 (row 1 of 'inf.npy') holds the value inf
    zero.npy → item 0 (row 0 of 'zero.npy') is all zeros
    wide.npy narrow.npy → row 0 of 'narrow.npy' has 'samples' of shape (2,)
    good.npy good.txt → 'good.txt' is of another form than the files before it
    ragged.csv → line 3 of 'ragged.csv'
    twice.csv → names the column 'a' twice
    quote.csv → 'quote.csv'
    hole.csv → line 3 of 'hole.csv'
    molecules.csv → line 1 of 'molecules.csv' is 'CC(=O)Oc1ccccc1', which looks like a molecule
    molecules.csv --column SMILES → there is no column 'SMILES': line 1 of 'molecules.csv'
    words.txt → line 3 of 'words.txt' holds 'seven' where most samples are numbers
    table.csv → the file has several columns (t, g, w)
    not.jsonl → line 2 of 'not.jsonl' is not valid JSON
    mixed.jsonl → line 2 of 'mixed.jsonl' has a number, 3
    null.jsonl → line 2 of 'null.jsonl' has null in the field 't'
    missing.jsonl → line 2 of 'missing.jsonl'
    objects.jsonl → the samples are such as {'a': 1}
    lengths.jsonl → line 2 of 'lengths.jsonl'
    deep.jsonl → line 1 of 'deep.jsonl'
    nan.jsonl → nan
    broken.fasta → line 1 of 'broken.fasta'
    negative.csv --column t --weight w → line 3 of 'negative.csv' has the weight -1
    zero.csv --column t --weight w → weights are all 0
    nan.csv --column t --weight w → line 2 of 'nan.csv' has the weight nan
    words.csv --column t --weight w → 'much'
    asymmetric.npy --kernel precomputed → K[0, 1] = 0.5 but K[1, 0] = 0.2
    indefinite.npy --kernel precomputed → not positive semidefinite: its lowest eigenvalue is -0.8
    rectangle.npy --kernel precomputed → shape (2, 3)
    diagonal.npy --kernel precomputed → K[0, 0] = 2
    nan-matrix.npy --kernel precomputed → nan
    good.npy --kernel from-distances → square matrix
    - → standard input
""")


@pytest.mark.parametrize(("words", "seen"), FILES)
def test_files(words: str, seen: str, broken: Path, warm: Warm) -> None:
    before = contents(broken)
    check_refused(warm("score", *shlex.split(words), cwd=broken), seen)
    assert contents(broken) == before


def test_broken_molecules(broken: Path, warm: Warm) -> None:
    pytest.importorskip("rdkit")
    done = warm("score", "broken.smi", cwd=broken)
    check_refused(done, "line 2 of 'broken.smi'")
    assert "--skip-broken" in done.err
    assert warm("score", "broken.smi", "--skip-broken", cwd=broken).code == 0


# The options of each command.
OPTIONS = table("""
    score → Missing argument 'FILE…'
    score good.txt --column x → no column in 'good.txt' called 'x'
    score table.csv --column t --by x → no column in 'table.csv' called 'x'. There are: 't', 'g', 'w'
    score table.csv --column t --by t → both name 't'
    score table.csv --column t --weight x → called 'x'
    score good.txt --q '' → q='' is not an order
    score good.txt --q x → q='x' is not an order
    score good.txt --q -1 → q='-1' is not an order
    score good.txt --q nan → q='nan' is not an order
    score good.txt --q 1,,2 → q='' is not an order
    score good.txt --q 1,1.0 → names an order twice
    score good.txt --tol 0 → --tol 0; expected
    score good.txt --tol 1 → --tol 1; expected
    score good.txt --tol nan → --tol nan; expected
    score good.txt --tol 1e400 → --tol inf; expected
    score good.txt --tol x → 'x' is not a valid float
    score good.txt --method guess → no method 'guess'
    score good.txt --memory much → --memory='much'
    score good.txt --memory 0 → --memory='0'
    score good.txt --memory -1GB → --memory='-1GB'
    score good.txt --memory 1e400 → --memory='1e400'
    score good.txt --memory 1B → memory=1 bytes is too little
    score good.txt --kind dogs → no kind 'dogs'
    score good.txt --format word → no format 'word'
    score good.txt --limit 0 → 0 is not in the range
    score good.txt --seed -1 → -1 is not in the range
    score good.txt --seed x → 'x'
    score good.txt --fail-under nan → --fail-under nan; expected a finite number
    score good.txt --fail-under 1e400 → --fail-under inf; expected a finite number
    score good.txt --fail-under x → 'x' is not a valid float
    score good.txt --fail-under 2 --q 0,1 → several orders
    score table.csv --column t --by g --tol 0.01 → groups are scored exactly
    score good.txt --unit x → --unit was given without --groups
    score good.txt --groups x → called 'x'
    score table.csv --groups t → not lists of texts
    score lists.jsonl --groups t --q 0,1 → --groups takes one order
    score lists.jsonl --groups t --tol 0.1 → --groups and --tol were given
    score lists.jsonl --groups t --fail-under 1 → --groups and --fail-under were given
    score lists.jsonl --groups t --by m --unit x → called 'x'
    score lists.jsonl --column t --tol 0.1 → groups are scored exactly
    score good.txt --json --csv → --json and --csv were given together
    score good.txt --csv --latex --markdown → were given together
    score good.txt --table scores → --table scores was given without --csv
    score good.txt --csv --table rarest → 'rarest' is not one of
    score good.txt --csv --table means → expected --groups NAME
    score good.txt --colour red → No such option
    score good.txt --checkpoint run.vendi → --checkpoint is for runs that stream
    score good.txt --save run.vendi → --save is for runs that stream
    score good.npy --save good.npy → there already
    score good.npy --save x.vendi --checkpoint x.vendi → named for two things
    score good.npy --save x.vendi -o ./x.vendi → named for two things
    score good.npy --checkpoint good.npy → among the files that are read
    score good.npy --checkpoint good.txt → good.txt' cannot be read
    score good.npy --checkpoint no/run.vendi → no/run.vendi
    score good.txt --model m → --model was given without --kernel
    score good.txt --kernel ngram --model m → --model goes with an encoder
    compare → Missing argument 'FILE…'
    compare good.txt → One collection was given
    compare good.txt missing.txt → 'missing.txt'
    compare good.txt good.txt → named twice
    compare good.txt good.npy → taken for texts
    compare good.txt one.txt --reference x → no group 'x'
    compare table.csv --column t --by g --reference z → There are: 'x', 'y'
    compare table.csv --column t --by z → called 'z'
    compare wide.npy narrow.npy → shapes (2,), (3,)
    compare narrow.npy zero.npy → group 'zero.npy': item 0 (row 0 of 'zero.npy') is all zeros
    compare good.txt one.txt --q 0,1 → names 2 orders
    compare good.txt one.txt --size 1 → 1 is not in the range
    compare good.txt one.txt --size 99 → size=99
    compare good.txt one.txt --confidence 1 → confidence=1
    compare good.txt one.txt --confidence nan → confidence=nan
    compare good.txt one.txt --permutations -1 → -1 is not in the range
    compare good.txt empty.txt → 'empty.txt' holds no samples
    compare good.txt one.txt --weight w → called 'w'
    compare good.txt one.txt --latex --json → were given together
    rarefy missing.txt → 'missing.txt'
    rarefy good.txt --q x → q='x' is not an order
    rarefy good.txt --q 1,2 → names 2 orders
    rarefy good.txt --repeats 1 → 1 is not in the range
    rarefy good.txt --confidence 2 → confidence=2
    rarefy table.csv --column t --by g → --by g was given
    rarefy lists.jsonl --column t → list of texts
    rarefy nan.npy → holds the value nan
    explain missing.txt → 'missing.txt'
    explain good.txt --part all → 'all' is not one of
    explain good.txt --top 0 → 0 is not in the range
    explain good.txt --threshold nan → threshold=nan
    explain good.txt --threshold 2 → threshold=2
    explain good.txt --q 0,1 → names 2 orders
    explain good.txt --write x.parquet --top 3 → leave --top away
    explain good.txt --write x.parquet → cannot be accumulated
    explain good.npy --write x.csv → no .parquet file
    explain good.npy --write no/x.parquet → no folder
    explain good.npy --write good.npy → there already
    explain good.npy --write no-pictures → a folder that is not empty
    explain good.npy --write x.parquet -o x.parquet → named for two things
    explain good.txt --part modes --csv --table copies → there is no table 'copies'
    explain inf.npy → holds the value inf
    select good.txt → Missing option '-k'
    select good.txt -k 0 → 0 is not in the range
    select good.txt -k 99 → k=99 and there are 3 items
    select good.txt -k x → 'x'
    select good.txt -k 2 --method best → 'best' is not one of
    select table.csv --column t --by g -k 9 → -k 9
    select table.csv --column t --weight w -k 1 → --weight w
    select missing.txt -k 1 → 'missing.txt'
    select lists.jsonl --column t -k 1 → list of texts
    plan missing.txt → 'missing.txt'
    plan good.txt --tol 5 → --tol 5; expected
    plan good.txt --method guess → no method 'guess'
    plan good.txt --memory much → --memory='much'
    score good.txt --max-record much → --max-record='much'
    score good.txt --max-record 0 → --max-record='0'
    compare good.txt one.txt --max-record 1B → line 1 of 'good.txt'
    plan good.txt --q x → q='x' is not an order
    plan table.csv --column t --by g → --by g was given
    plan rectangle.npy --kernel precomputed → shape (2, 3)
    plan nan.npy → item 1 (row 1 of 'nan.npy') holds the value nan
    plan inf.npy --kernel polynomial → item 1 (row 1 of 'inf.npy') holds the value inf
    plan zero.npy --tol 0.1 → item 0 (row 0 of 'zero.npy') is all zeros
    plan asymmetric.npy --kernel precomputed → K[0, 1] = 0.5 but K[1, 0] = 0.2
    plan nan-matrix.npy --kernel precomputed → nan
    merge → Missing argument 'FILE…'
    merge missing.vendi → 'missing.vendi'
    merge good.txt → 'good.txt' cannot be read
    merge binary.vendi → 'binary.vendi' cannot be read
    merge good.npy → 'good.npy' cannot be read
    merge - → standard input cannot be merged
    merge good.txt --q x → q='x' is not an order
    merge good.txt --memory much → --memory='much'
    merge good.txt --fail-under nan → --fail-under nan
    report → Missing argument 'DATA…'
    report missing.txt → 'missing.txt'
    report good.txt -o no/x.html → there is no folder
    report good.txt -o good.txt → there already
    report good.txt -o good.txt --force → is read, and cannot be written
    report good.txt -o empty-folder → is a directory
    report good.txt --show x → called 'x'
    report good.txt --reference x → --reference was given with one collection
    report good.txt one.txt --by x → --by and 2 collections
    report good.txt one.txt --reference x → no group 'x'
    report good.txt --threshold 7 → threshold=7
    report good.txt --q 1,x → q='x' is not an order
    kernels nothing → no kernel 'nothing'
    kernels ngrams → Did you mean 'ngram'
    kernels match cosine → unexpected extra argument (cosine)
    kernels --json --csv → were given together
    kernels -o no/x.txt → there is no folder
    schema 2 → unexpected extra argument (2)
    completion → Missing argument
    completion tcsh → 'tcsh' is not one of
    demo x → unexpected extra argument (x)
    demo --report no/x.html → there is no folder
    demo --report good.txt → there already
    demo --keep good.txt → is a file
    scores good.txt → No such command 'scores'
    --colour → No such option
""")


@pytest.mark.parametrize(("words", "seen"), OPTIONS)
def test_options(words: str, seen: str, broken: Path, warm: Warm) -> None:
    before = contents(broken)
    check_refused(warm(*shlex.split(words), cwd=broken), seen)
    assert contents(broken) == before


# A fresh process says the same as one that is forked from a warm one.
FRESH = [
    "score nan.npy",
    "compare good.txt",
    "select good.txt -k 99",
    "merge good.txt",
    "kernels nothing",
    "scores",
]


@pytest.mark.parametrize("words", FRESH)
def test_fresh_processes_say_the_same(words: str, broken: Path, warm: Warm) -> None:
    assert vendi(*words.split(), cwd=broken) == warm(*words.split(), cwd=broken)


def test_without_a_command_there_is_help(broken: Path, warm: Warm) -> None:
    done = warm(cwd=broken)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("Usage:") == 1
    assert "Error" not in done.err
    assert "vendi score captions.txt" in done.err


def test_one_item_and_equal_items_are_no_bad_input(samples: Path, warm: Warm) -> None:
    for words in ("score", "rarefy", "explain", "select -k 1", "plan"):
        for name in ("one.txt", "same.txt"):
            done = warm(*words.split(), name, "--json", "--quiet", cwd=samples)
            assert done.code == 0, done
    for name in ("one.txt", "same.txt"):
        assert warm("score", name, "--json", cwd=samples).result["score"] == pytest.approx(1, abs=1e-12)
