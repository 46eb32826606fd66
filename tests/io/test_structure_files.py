"""SDF files: structures with their fields, and entries that RDKit refuses."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vendimeter.data.collection import Broken
from vendimeter.errors import InputError
from vendimeter.io import structures as structures_module
from vendimeter.io.sources import MAX_RECORD, File
from vendimeter.io.structures import Sdf

Chem = pytest.importorskip("rdkit.Chem")

SMILES = ["CCO", "c1ccccc1", "CC(=O)Oc1ccccc1C(=O)O", "C[C@H](N)C(=O)O"]


def sdf(*, fields: list[dict[str, str]] | None = None) -> str:
    """Structures as RDKit writes them."""
    text = io.StringIO()
    with Chem.SDWriter(text) as writer:
        for i, smiles in enumerate(SMILES):
            molecule = Chem.MolFromSmiles(smiles)
            molecule.SetProp("_Name", f"molecule {i}")
            for name, value in (fields[i] if fields else {"id": str(i), "smell": "sweet"}).items():
                molecule.SetProp(name, value)
            writer.write(molecule)
    return text.getvalue()


def read(
    data: bytes,
    *,
    skip: bool = False,
    columns: list[str] | None = None,
    size: int = 3,
    most: int = MAX_RECORD,
) -> tuple[dict[str, Any], Broken]:
    broken = Broken(skip=skip)
    parts = list(Sdf(File(None, ".sdf", io.BytesIO(data), most), broken).parts(columns, size))
    assert all(0 < len(column) <= size for part in parts for column in part.columns.values())
    return {
        name: [v for part in parts for v in part.columns[name]]
        for name in (parts[0].columns if parts else ())
    }, broken


def smiles_of(molecules: list[Any]) -> list[str]:
    return [Chem.MolToSmiles(molecule) for molecule in molecules]


CANONICAL = smiles_of([Chem.MolFromSmiles(smiles) for smiles in SMILES])


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_structures_with_names_and_fields(tmp_path: Path, ends: str, packed: bool) -> None:
    data = sdf().replace("\n", ends).encode()
    path = tmp_path / ("a.sdf.gz" if packed else "a.sdf")
    path.write_bytes(gzip.compress(data) if packed else data)
    reader = Sdf(File.of(path), Broken())
    assert reader.names() == ["molecule", "name", "id", "smell"]
    assert (reader.samples, reader.kind) == ("molecule", "molecules")
    parts = list(reader.parts(None, 3))
    assert [len(part.columns["id"]) for part in parts] == [3, 1]
    assert smiles_of([m for part in parts for m in part.columns["molecule"]]) == CANONICAL
    assert [name for part in parts for name in part.columns["name"]] == [f"molecule {i}" for i in range(4)]
    assert [value for part in parts for value in part.columns["id"]] == list("0123")
    lines = sdf().split("\n")
    begins = 1 + [i for i, line in enumerate(lines) if line == "$$$$"][2] + 1
    assert parts[1].place(0) == f"structure 4 (line {begins}) of {str(path)!r}"
    assert lines[begins - 1] == "molecule 3"


def test_names_may_be_asked_for_or_not() -> None:
    found, _ = read(sdf().encode(), columns=["smell", "molecule"])
    assert list(found) == ["smell", "molecule"]
    assert found["smell"] == ["sweet"] * 4
    assert smiles_of(found["molecule"]) == CANONICAL


def test_a_field_called_name_does_not_hide_the_title() -> None:
    fields = [{"name": f"n{i}", "molecule": "m"} for i in range(4)]
    found, _ = read(sdf(fields=fields).encode())
    assert list(found) == ["molecule", "name", "name (field)", "molecule (field)"]
    assert found["name"][1] == "molecule 1"
    assert found["name (field)"] == ["n0", "n1", "n2", "n3"]


def test_a_field_that_is_missing_matters_only_where_it_is_asked_for() -> None:
    fields = [{"a": "1", "b": "2"}, {"a": "1"}, {"c": "3", "b": "2"}, {"a": "4", "b": "5"}]
    data = sdf(fields=fields).encode()
    assert len(read(data, columns=["molecule"])[0]["molecule"]) == 4
    with pytest.raises(InputError, match=r"structure 2 \(line \d+\) of standard input has no field 'b'"):
        read(data, columns=["b"])
    found, broken = read(data, columns=["a", "b"], skip=True)
    assert (found["a"], found["b"]) == (["1", "4"], ["2", "5"])
    assert broken.count == 2


def spoil(entry: int, change: Callable[[str], str]) -> str:
    parts = sdf().split("$$$$\n")
    parts[entry] = change(parts[entry])
    return "$$$$\n".join(parts)


PENTAVALENT = Chem.MolToMolBlock(Chem.MolFromSmiles("C(C)(C)(C)(C)C", sanitize=False), kekulize=False)
BROKEN: dict[str, tuple[str, int, str]] = {
    "a carbon of five bonds": (spoil(1, lambda entry: PENTAVALENT), 2, "valence"),
    "a block that is none": (spoil(2, lambda entry: "a\nb\nc\nnonsense\nM  END\n"), 3, "not valid"),
    "fewer atoms than it says": (
        spoil(0, lambda entry: entry.replace("  3  2  0", " 30 20  0", 1)),
        1,
        "not valid",
    ),
    "an empty entry": (spoil(3, lambda entry: "\n"), 4, "not valid"),
    "the last one cut short": (sdf()[:-60], 4, "cut short"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_structures_are_named_or_left_out(case: str, capfd: pytest.CaptureFixture[str]) -> None:
    text, number, word = BROKEN[case]
    with pytest.raises(InputError) as caught:
        read(text.encode())
    assert f"structure {number} (line " in str(caught.value)
    assert word in str(caught.value)
    found, broken = read(text.encode(), skip=True)
    assert smiles_of(found["molecule"]) == [one for i, one in enumerate(CANONICAL, 1) if i != number]
    assert broken.count == 1
    assert word in broken.records[0][1]
    assert capfd.readouterr() == ("", "")  # RDKit's own log stays silent


def test_a_single_structure_needs_no_mark_of_its_end() -> None:
    found, _ = read(Chem.MolToMolBlock(Chem.MolFromSmiles("CCO")).encode())
    assert smiles_of(found["molecule"]) == ["CCO"]


def test_a_field_that_is_no_utf8_is_a_broken_record() -> None:
    data = sdf().encode().replace(b"sweet", b"s\xffeet", 1)
    with pytest.raises(InputError, match=r"structure 1 .* 'smell' that is not UTF-8"):
        read(data)
    assert len(read(data, skip=True)[0]["smell"]) == 3
    assert len(read(data, columns=["id"])[0]["id"]) == 4


NAMES = {
    b"> <a>": ["a"],
    b">  25 <a b> (7)": ["a b"],
    b"> DT12 <a<b>c>": ["a<b>c"],
    b"> <>": [],
    b"> <a": [],
    b"> a>": [],
    b"> <a> <": [],
    b"> <a\rb>": [],
    b">" + b"<" * 300_000: [],  # to go back to each of them would take minutes
    b"> <" + b"a" * 5000 + b">": [],
}


@pytest.mark.parametrize("line", NAMES, ids=lambda line: line[:20].decode())
def test_names_of_fields_are_what_the_outermost_brackets_hold(line: bytes) -> None:
    entry = sdf().split(">  <id>")[0].encode() + line + b"\nvalue\n\n$$$$\n"
    reader = Sdf(File(None, ".sdf", io.BytesIO(entry)), Broken())
    assert reader.names()[2:] == NAMES[line]
    assert len(next(reader.parts(None, 10)).columns["molecule"]) == 1


def test_an_empty_file_has_no_columns() -> None:
    for data in (b"", b"\n\n \n"):
        reader = Sdf(File(None, ".sdf", io.BytesIO(data)), Broken())
        assert reader.names() == []
        assert list(reader.parts(None, 10)) == []


BAD: dict[str, tuple[bytes, list[str]]] = {
    "binary junk": (bytes(range(256)) * 50, ["no SDF", "$$$$"]),
    "a NUL on a later line": (b"abc\ndef\n\0\0\n", ["no SDF"]),
    "text without an end": (b"some text\n" * 10_000, ["no SDF", "$$$$"]),
    "one endless line": (b"x" * 300_000, ["no SDF"]),
    "a gzipped file cut short": (gzip.compress(sdf().encode())[:-30], ["damaged or was cut short"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_get_an_error_that_says_what_was_seen(case: str) -> None:
    data, words = BAD[case]
    with pytest.raises(InputError) as caught:
        read(data, skip=True, most=50_000)
    assert [word for word in words if word not in str(caught.value)] == []
    assert "\n" not in str(caught.value)


def long_chain(atoms: int, count: str = "COUNTS") -> str:
    """A chain in the newer form of structures, whose lines may be broken by a hyphen."""
    lines = ["", "  made by hand", "", "  0  0  0     0  0            999 V3000", "M  V30 BEGIN CTAB"]
    lines += [f"M  V30 {count} {atoms} {atoms - 1} 0 0 0", "M  V30 BEGIN ATOM"]
    lines += [f"M  V30 {i} C 0 0 0 0" for i in range(1, atoms + 1)]
    lines += ["M  V30 END ATOM", "M  V30 BEGIN BOND"]
    lines += [f"M  V30 {i} 1 {i} {i + 1}" for i in range(1, atoms)]
    return "\n".join([*lines, "M  V30 END BOND", "M  V30 END CTAB", "M  END", "$$$$", ""])


@pytest.mark.parametrize("count", ["COUNTS", "counts", "COU-\nM  V30 NTS", "COUNTS -\nM  V30 "])
def test_structures_that_are_too_large_do_not_come_to_rdkit(
    count: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (long_chain(1000, count) + long_chain(1001, count) + long_chain(5)).encode()
    parse, seen = structures_module._parse, []
    monkeypatch.setattr(structures_module, "_parse", lambda text: seen.append(len(text)) or parse(text))
    with pytest.raises(
        InputError, match=r"structure 2 \(line \d+\) of .* has 1,001 atoms; expected at most 1,000"
    ):
        read(data)
    assert len(seen) == 1
    found, broken = read(data, skip=True)
    assert [molecule.GetNumAtoms() for molecule in found["molecule"]] == [1000, 5]
    assert broken.count == 1
    assert len(seen) == 3


def test_few_large_structures_make_a_part() -> None:
    reader = Sdf(File(None, ".sdf", io.BytesIO((long_chain(1000) * 20).encode())), Broken())
    assert [len(part.columns["molecule"]) for part in reader.parts(["molecule"], 4096)] == [9, 9, 2]
