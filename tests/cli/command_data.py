"""Files that the tests of the command read: some as they should be, and some that are broken in a way of their own."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

CAPTIONS = [
    "a dog runs on grass",
    "a dog runs on the grass",
    "a dog runs on grass",
    "a red bus in the rain",
    "two boats on a quiet lake",
    "an octopus opens a jar",
    "c1cc[nH]c1 [bold]smells[/bold] of tar",
]
OTHERS = ["a cat", "a cat sleeps", "a cat sleeps in the sun", "a cat", "three cats play"]
SETS = [
    ("a dog", "x", 1), ("a dog", "x", 1), ("a cat", "x", 2), ("a boat at sea", "x", 1), ("a dog", "y", 1),
    ("a cow", "y", 3), ("a big red bus", "y", 1), ("two boats", "y", 1), ("=1+1", "=2", 1), ("@x_1", "=2", 1),
]  # fmt: skip
MOLECULES = ["CCO", "CCN", "c1ccccc1", "c1cc[nH]c1", "CC(=O)Oc1ccccc1C(=O)O"]
SIMILARITIES = [[1.0, 0.5, 0.2], [0.5, 1.0, 0.1], [0.2, 0.1, 1.0]]
# Labels and texts that terminals, spreadsheets, LaTeX or Markdown would take for something else.
STRANGE = [
    ("\x1b[31mred\x1b[0m", "\x1b]0;title\x07"),
    ("tab\there", "b\tc"),
    ("from \u202eright to left", "\u2066x"),
    ("[bold]x[/bold]", "[red]lab[/red]"),
    ("c1cc[nH]c1", "c1cc[nH]c1"),
    ("漢字のテスト", "日本語"),
    ("no\u200bwidth", "\u200b"),
    ("\x85next", "\x9bcsi"),
    ("=1+1", "=cmd|' /C calc'!A0"),
    ("new\nline", "l1\nl2"),
    (":smile: 🙂", ":smile:"),
    ("-x", "+y"),
    ("a|b", "@SUM(1)"),
    ("$x_1 & 50% #{}~^\\", "\\textbf{x}"),
    ("`code` *b* <b>h</b>", "<script>"),
]


def table(path: Path, names: tuple[str, ...], rows: Any) -> None:
    """Write a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])


def lines(path: Path, records: Any) -> None:
    """Write a JSONL file."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def answers() -> list[dict[str, Any]]:
    """Lists of answers of two models to three prompts; to a fourth, one has no answer."""
    said = {
        ("a", "p1"): ["yes it is", "no it is not", "perhaps so"],
        ("a", "p2"): ["red", "blue", "red"],
        ("a", "p3"): ["one", "two", "three"],
        ("b", "p1"): ["yes it is", "yes it is", "no"],
        ("b", "p2"): ["red", "red", "red"],
        ("b", "p3"): ["one", "one", "four"],
        ("b", "p4"): [],
    }
    return [{"model": m, "prompt": p, "responses": found} for (m, p), found in said.items()]


def samples(folder: Path) -> Path:
    """Files that are as they should be."""
    rng = np.random.default_rng(7)
    (folder / "captions.txt").write_text("\n".join(CAPTIONS) + "\n", encoding="utf-8")
    (folder / "others.txt").write_text("\n".join(OTHERS) + "\n", encoding="utf-8")
    (folder / "one.txt").write_text("only one\n", encoding="utf-8")
    (folder / "same.txt").write_text("same\n" * 5, encoding="utf-8")
    (folder / "molecules.smi").write_text("\n".join(MOLECULES) + "\n", encoding="utf-8")
    table(folder / "sets.csv", ("text", "set", "w"), SETS)
    table(folder / "strange.csv", ("text", "lab\x1b[1mel"), STRANGE)
    table(folder / "mixed-vectors.csv", ("v",), [("[NaN, 1]",), ("[1, 2]",), ("[2, 1]",), ("[1, 1]",)])
    table(folder / "mixed-numbers.csv", ("age",), [("31.5",), ("42",), ("unknown",), ("27",)])
    table(folder / "no-header.csv", ("[1, 2]",), [("[2, 1]",)])
    table(folder / "long-header.csv", ("What did you see there?",), [("a dog",), ("a cat",)])
    lines(folder / "answers.jsonl", answers())
    lines(folder / "texts.jsonl", [{"text": text, "n": i} for i, text in enumerate(CAPTIONS)])
    lines(folder / "empty-groups.jsonl", [{"t": ["a", "b"], "g": "full"}, {"t": [], "g": "empty"}])
    lines(folder / "some-broken.jsonl", [{"v": [1, 0]}, {"v": [0, 1]}, {"v": None}, {"v": [1, 1]}])
    np.save(folder / "similarity.npy", np.array(SIMILARITIES))
    np.save(folder / "rows.npy", rng.standard_normal((12, 3)))
    v = rng.standard_normal((120, 4)) * [3, 2, 1, 0.5]
    np.savez(folder / "vectors.npz", v=v, g=np.array(["even", "odd"])[np.arange(120) % 2], w=rng.random(120))
    for i, part in enumerate(np.split(v, 3)):
        np.save(folder / f"shard-{i}.npy", part)
    return folder


def broken(folder: Path) -> Path:
    """Files that have something wrong, named by what it is; and a good one of each kind, to be given with them."""
    rng = np.random.default_rng(7)
    texts: dict[str, str | bytes] = {
        "good.txt": "a dog\na cat\na dog\n", "empty.txt": "", "blank.txt": "\n\n\n", "one.txt": "only one\n",
        "binary.txt": bytes(range(256)) * 20, "latin.txt": b"a\ncaf\xe9\n", "binary.npy": b"\x93NUMPX" + bytes(99),
        "binary.npz": b"PK\x03\x04rubbish", "binary.parquet": b"PARX" + bytes(99), "binary.png": b"\x89PNX" + bytes(99),
        "binary.safetensors": b"\xff" * 40, "binary.sdf": bytes(range(256)), "binary.vendi": bytes(99),
        "binary.arrow": b"ARROX" + bytes(99), "binary.txt.gz": b"\x1f\x8brubbish",
        "table.csv": "t,g,w\na dog,x,1\na cat,y,2\n", "ragged.csv": "a,b\n1,2\n3\n", "twice.csv": "a,a\n1,2\n",
        "header.csv": "a,b\n", "quote.csv": 't\n"open\n', "negative.csv": "t,w\na,1\nb,-1\n",
        "zero.csv": "t,w\na,0\nb,0\n", "nan.csv": "t,w\na,nan\nb,1\n", "words.csv": "t,w\na,much\n",
        "molecules.csv": "CC(=O)Oc1ccccc1\nCC(=O)O\n", "words.txt": "1.5\n2.5\nseven\n3\n",
        "hole.csv": "x,y\n1,2\n,4\n",
        "not.jsonl": '{"t": "a"}\nnot json\n', "mixed.jsonl": '{"t": "a"}\n{"t": 3}\n',
        "null.jsonl": '{"t": "a"}\n{"t": null}\n',
        "objects.jsonl": '{"t": {"a": 1}}\n', "lengths.jsonl": '{"v": [1, 2]}\n{"v": [1]}\n',
        "missing.jsonl": '{"a": 1}\n{"b": 1}\n',
        "deep.jsonl": '{"v": ' + "[" * 10_000 + "\n",
        "lists.jsonl": '{"m": "x", "t": ["a", "b"]}\n{"m": "y", "t": ["a"]}\n',
        "nan.jsonl": '{"v": [1, NaN]}\n',
        "broken.smi": "CCO\nC1CC\nCCN\n", "broken.fasta": "ACGT\n", "word.xyz": "1",
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    eye = np.eye(3)
    arrays: dict[str, Any] = {
        "good": rng.standard_normal((6, 3)), "nan": [[1.0, 2], [np.nan, 1]], "inf": [[1.0, 2], [np.inf, 1]],
        "zero": np.zeros((3, 2)), "none": np.zeros((0, 3)), "flat": np.zeros((3, 0)), "scalar": 3.0,
        "complex": eye * 1j, "wide": np.ones((4, 3)), "narrow": np.ones((4, 2)),
        "asymmetric": [[1.0, 0.5], [0.2, 1.0]], "rectangle": np.ones((2, 3)) * 0.5, "diagonal": eye * 2,
        "indefinite": [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]], "nan-matrix": [[1, np.nan], [np.nan, 1]],
    }  # fmt: skip
    for name, value in arrays.items():
        np.save(folder / f"{name}.npy", np.asarray(value))
    np.save(folder / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    (folder / "empty-folder").mkdir()
    (folder / "no-pictures").mkdir()
    (folder / "no-pictures" / "readme.md").write_text("x")
    return folder
