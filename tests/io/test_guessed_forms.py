"""What most samples look like is what they are meant to be: one that is none is an error, and never another guess."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.errors import EmptyError, InputError

VECTORS = ["[1, 2]", "[3, 4]", "[3.5, -5e-1]"]
NUMBERS = ["1.5", "2.5", "4", "-1e3"]
MOLECULES = ["CCO", "c1ccccc1", "CC(=O)O", "C[C@H](N)C(=O)O"]
NUCLEOTIDES = ["ACGTACGTACGTTTGACA", "ACGGGTACGTNACGTACG", "ACGGGTACGTNACGTACC"]
AMINO_ACIDS = ["MKVLAAGIVGLCAKDEWQPR", "MSTNPKPQRKTKRNTNRRPQ", "MSTNPKPQRKTKRNTNRRPL"]
# Samples, the first that is not as most are, the kind of the others, and the formats in which that can be told: what
# JSON or Parquet says is a text is no number.
TYPED, ALL = ["csv", "txt"], ["csv", "txt", "jsonl", "parquet"]
MIXED = {
    "a vector with NaN first": (["[NaN, 1]", *VECTORS], "[NaN, 1]", "vectors", ALL),
    "a vector with nan": ([*VECTORS[:2], "[nan, 1]", "[NaN, 1]", VECTORS[2]], "[nan, 1]", "vectors", ALL),
    "a vector with null": (["[1, null]", *VECTORS], "[1, null]", "vectors", ALL),
    "a word among vectors": ([*VECTORS, "none"], "none", "vectors", ALL),
    "vectors as NumPy prints them": (["[nan 1.]", "[nan 2.]"], "[nan 1.]", "vectors", ALL),
    "a word among numbers": ([*NUMBERS, "foo"], "foo", "numbers", TYPED),
    "a word before numbers": (["foo", *NUMBERS, "bar"], "foo", "numbers", TYPED),
    "classes, one of which is not known": (["1", "2", "n/a"] * 10, "n/a", "numbers", TYPED),
    "ages, one of which is not known": ([*map(str, range(20, 60)), "n/a"] * 10, "n/a", "numbers", TYPED),
    "a word among molecules": ([*MOLECULES, "CCN ", "C*", "hello world"], "hello world", "molecules", ALL),
    "a gap before molecules": (["n/a", *MOLECULES], "n/a", "molecules", ALL),
    "a word among nucleotides": ([*NUCLEOTIDES, "hello"], "hello", "sequences", ALL),
    "nucleotides with a gap": ([NUCLEOTIDES[0], "ACGT-ACGTACG", *NUCLEOTIDES], "ACGT-ACGTACG", "sequences", ALL),
    "words among amino acids": ([*AMINO_ACIDS, "not known"], "not known", "sequences", ALL),
}  # fmt: skip


def written(folder: Path, ending: str, texts: list[str]) -> tuple[Path, int]:
    """A file with a column of texts, and the number of the place of the first of them."""
    path = folder / f"samples.{ending}"
    if ending == "parquet":
        pa = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pa.table({"v": texts}), path)
        return path, 0
    lines = {
        "csv": ["v", *('"' + text.replace('"', '""') + '"' for text in texts)],
        "txt": texts,
        "jsonl": [json.dumps({"v": text}) for text in texts],
    }[ending]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path, 2 if ending == "csv" else 1


@pytest.mark.parametrize("ending", ALL)
@pytest.mark.parametrize("case", MIXED)
def test_the_first_that_is_not_as_most_are_is_named(case, ending, tmp_path):
    if "molecules" in case:
        pytest.importorskip("rdkit")
    texts, odd, kind, told = MIXED[case]
    path, first = written(tmp_path, ending, texts)
    if ending not in told:
        assert vm.read(path, kind="guess").kind in ("texts", "categories")
        return
    word = "row" if ending == "parquet" else "line"
    with pytest.raises(InputError) as caught:
        vm.read(path, kind="guess")
    message = str(caught.value)
    assert message.startswith(f"{word} {first + texts.index(odd)} of '")
    assert all(word in message for word in (repr(odd), kind, "expected", "--kind", "texts", "--skip-broken"))
    # Both ways out that it names.
    assert list(vm.read(path, kind="texts")) == texts
    sound = [text for text in texts if text in [*VECTORS, *NUMBERS, *MOLECULES, *NUCLEOTIDES, *AMINO_ACIDS]]
    sound += [text for text in texts if (text.isdigit() or text in ("CCN ", "C*")) and text not in sound]
    if not sound:
        with pytest.raises(EmptyError, match="records are broken"):
            vm.read(path, kind="guess", skip_broken=True)
        return
    found = vm.read(path, kind="guess", skip_broken=True)
    assert (found.kind, len(found), found.skipped.count) == (kind, len(sound), len(texts) - len(sound))
    if kind == "vectors":
        assert found.samples.tolist() == [json.loads(text) for text in sound]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        ([*["nan"] * 12, *["a dog", "two boats"] * 5], "texts"),  # gaps alone are no numbers
        (['["8", "3"]', '["1", "4"]', '["2", "2"]'], "texts"),  # nor are lists of texts vectors
        ([*NUCLEOTIDES, " "], "sequences"),  # for the kernel to say
        (["12", "13", "007"], "texts"),  # codes
        (["a dog", "12", "two boats", "13"], "texts"),  # half is not most
        ([*MOLECULES * 10, "C1CC", "c1ccc"], "molecules"),  # as generators write them: for RDKit to say
        (["[sigh]", "[1] a dog", "two boats"], "texts"),
        (NUMBERS, "numbers"),
        (VECTORS, "vectors"),
    ],
    ids=["gaps", "lists of texts", "empty", "codes", "half", "molecules", "brackets", "numbers", "vectors"],
)
@pytest.mark.parametrize("ending", TYPED)
def test_what_is_no_trouble(texts, kind, ending, tmp_path):
    if kind == "molecules":
        pytest.importorskip("rdkit")
    assert vm.read(written(tmp_path, ending, texts)[0], kind="guess").kind == kind


@pytest.mark.parametrize("case", ["vectors", "numbers", "nucleotides", "molecules"])
def test_a_later_batch_is_no_reason_for_another_guess(case, tmp_path):
    texts = {"vectors": VECTORS, "numbers": NUMBERS, "nucleotides": NUCLEOTIDES, "molecules": MOLECULES}[case]
    if case == "molecules":
        pytest.importorskip("rdkit")
    path, _ = written(tmp_path, "csv", [*texts * 5, "a red kite", *texts])
    at = 2 + 5 * len(texts)

    def total(**options):
        kernel = {"vectors": "cosine", "numbers": "rbf", "nucleotides": "kmer", "molecules": "morgan"}[case]
        for batch in vm.read_batches(path, kind="guess", size=len(texts), **options):
            vm.score(batch, kernel)
            yield batch

    with pytest.raises(InputError, match=rf"line {at} of .*a red kite"):
        list(total())
    found = list(total(skip_broken=True))
    assert {batch.kind for batch in found} == {found[0].kind}
    assert sum(map(len, found)) == 6 * len(texts)
    assert found[0].skipped.count == 1


def test_kinds_of_numbers_that_are_said_are_not_texts(tmp_path):
    for ending in ALL:
        path, first = written(tmp_path, ending, ["[NaN, 1]", *VECTORS])
        with pytest.raises(
            InputError, match=rf"{first} of .* holds '\[NaN, 1\]' in the column .* of vectors"
        ):
            vm.read(path, kind="vectors")
        assert vm.read(path, kind="vectors", skip_broken=True).samples.shape == (3, 2)
        path, first = written(tmp_path, ending, [*NUMBERS, "foo"])
        with pytest.raises(InputError, match=rf"{first + 4} of .* holds 'foo' in the column .* of numbers"):
            vm.read(path, kind="numbers")
        found = vm.read(path, kind="numbers", skip_broken=True)
        assert found.samples.tolist() == [float(text) for text in NUMBERS]


def test_a_table_of_numbers_with_a_word_in_it(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("x,y\n1,2\n3,4\n5,foo\n7,8\n")
    with pytest.raises(InputError, match=r"line 4 of .* holds 'foo' in the column 'y' of numbers"):
        vm.read(path, kind="guess")
    found = vm.read(path, kind="guess", skip_broken=True)
    assert (found.is_table, len(found), found.skipped.count) == (True, 3, 1)
    np.testing.assert_array_equal(found["y"], [2, 4, 8])


def test_json_has_types_of_its_own(tmp_path):
    for odd in ("[1, null]", '[1, "nan"]', '"foo"', "[1, NaN]"):
        path = tmp_path / "vectors.jsonl"
        path.write_text('{"v": %s}\n{"v": [1, 2]}\n{"v": [3, 4]}\n{"v": [3, 5]}\n' % odd)  # noqa: UP031
        with pytest.raises(InputError, match=r"line 1 of"):
            vm.read(path, kind="guess")
        found = vm.read(path, kind="guess", skip_broken=True)
        assert (found.kind, len(found), found.skipped.count) == ("vectors", 3, 1)
    path.write_text('{"v": 1.5}\n{"v": "foo"}\n{"v": 2.5}\n')
    with pytest.raises(InputError, match=r"line 2 of .* a text, 'foo'"):
        vm.read(path, kind="guess")
    assert len(vm.read(path, kind="guess", skip_broken=True)) == 2


# ------------------------------------------------------------------------------------------------- files without header

HEADLESS = {
    "a molecule": MOLECULES[2:] + MOLECULES,
    "a vector": ['"[1, 2]"', '"[3, 4]"'],
    "a sequence": NUCLEOTIDES,
    "numbers": ["1", "2"],
}


@pytest.mark.parametrize("seen", HEADLESS)
@pytest.mark.parametrize("asked", [None, "SMILES"])
def test_a_record_in_the_place_of_names_is_not_lost(seen, asked, tmp_path):
    path = tmp_path / "headless.csv"
    path.write_text("".join(f"{text}\n" for text in HEADLESS[seen]))
    with pytest.raises(InputError, match=rf"line 1 of .*{seen}.*Write .* above it") as caught:
        vm.read(path, samples=asked)
    assert ("'SMILES'" in str(caught.value)) == (asked is not None and seen != "numbers")
    if "format='txt'" in str(caught.value):
        assert len(vm.read(path, format="txt")) == len(HEADLESS[seen])
    name = HEADLESS[seen][0].strip('"')
    if seen != "numbers":  # who asks for a column by this name gets it
        assert len(vm.read(path, samples=name)) == len(HEADLESS[seen]) - 1


def test_a_sentence_in_the_place_of_a_name(tmp_path):
    path = tmp_path / "headless.csv"
    path.write_text("a dog runs in the park\na cat sleeps\n")
    with pytest.raises(
        InputError, match=r"no column 'text': line 1 of .* 'a dog runs in the park'.* a sentence"
    ):
        vm.read(path, samples="text")
    with pytest.warns(
        UserWarning, match="'a dog runs in the park', was taken for the name of its only column"
    ):
        assert list(vm.read(path)) == ["a cat sleeps"]
    path.write_text("red\nblue\nred\n")
    with pytest.warns(UserWarning, match="'red', .* and comes again as a sample"):
        vm.read(path)


def test_names_that_are_no_records(tmp_path):
    path = tmp_path / "table.csv"
    for text in (
        "SMILES\nCCO\n",
        "PROTEINSEQUENCE\nMSTNPKPQRKTKRNTNRRPQ\n",
        "conc1\nc1ccccc1\n",
        "CC(=O)OC,CC(=O)O\n1,0.5\n",  # similarities of molecules
        "colour\nred\nblue\n",
    ):
        path.write_text(text)
        assert len(vm.read(path)) >= 1


def test_the_published_sample_without_a_header(shared_data):
    path = shared_data / "molecules" / "moses_jtn_3.csv.gz"
    for asked in (None, "SMILES"):
        with pytest.raises(InputError, match=r"line 1 of .* is 'Cc1ccc\(OCCCN2CC.*looks like a molecule"):
            vm.read(path, samples=asked, kind="molecules")
    assert vm.read(path, format="txt", limit=2)[0] == "Cc1ccc(OCCCN2CC(C)OC(C)C2)cc1"
