"""vm.read and vm.read_batches: roles of columns, shards, batches, broken records, and what is made of them."""

from __future__ import annotations

import gc
import gzip
import io
import json
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.errors import EmptyError, InputError, UnknownNameError
from vendimeter.io import arrays as arrays_module

X = np.random.default_rng(0).standard_normal((50, 4))
CAPTIONS = ["a dog runs", "a dog sleeps", "two boats", "two boats at sea", "a red kite"]


def lines(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def records(path: Path, rows: list[dict]) -> Path:
    return lines(path, [json.dumps(row) for row in rows])


@pytest.fixture
def table(tmp_path):
    rows = [f"{text},{i % 2},{i + 1},id{i}" for i, text in enumerate(CAPTIONS)]
    return lines(tmp_path / "table.csv", ["caption,set,mass,key", *rows])


# ------------------------------------------------------------------------------------------------ columns and roles


def test_lines_of_text(tmp_path):
    captions = vm.read(lines(tmp_path / "captions.txt", CAPTIONS))
    assert list(captions) == CAPTIONS
    assert (len(captions), captions[0], captions[-1]) == (5, CAPTIONS[0], CAPTIONS[-1])
    assert float(vm.score(captions, "ngram")) == float(vm.score(CAPTIONS, "ngram"))
    assert captions.place(2) == f"line 3 of {str(tmp_path / 'captions.txt')!r}"
    assert (captions.place(2).record, captions.place(2).source) == ("line 3", str(tmp_path / "captions.txt"))


def test_roles_of_a_table(table):
    data = vm.read(table, samples="caption", label="set", weight="mass", id="key")
    assert data.samples == CAPTIONS
    assert data.labels == ["0", "1", "0", "1", "0"]
    assert data.weights.tolist() == [1, 2, 3, 4, 5]
    assert data.ids == [f"id{i}" for i in range(5)]
    weights = np.arange(1, 6) / 15
    assert float(vm.score(data, "ngram")) == float(vm.score(CAPTIONS, "ngram", weights=weights))
    groups = vm.score_groups(data, "ngram")
    expected = vm.score_groups(CAPTIONS, "ngram", by=data.labels, weights=weights)
    assert groups.labels == ["0", "1"]
    assert groups.scores.tolist() == expected.scores.tolist()
    by_name = vm.score_groups(vm.read(table, samples="caption", columns=["set"]), "ngram", by="set")
    assert by_name.scores.tolist() == vm.score_groups(CAPTIONS, "ngram", by=data.labels).scores.tolist()


def test_weights_of_the_caller_come_before_those_of_the_file(table):
    data = vm.read(table, samples="caption", weight="mass")
    given = np.full(5, 0.2)
    assert float(vm.score(data, "ngram", weights=given)) == float(vm.score(CAPTIONS, "ngram", weights=given))


def test_a_table_without_a_named_column_goes_to_kernels_that_name_columns(table):
    data = vm.read(table)
    assert data.is_table
    assert data[1] == {"caption": "a dog sleeps", "set": 1.0, "mass": 2.0, "key": "id1"}
    on = vm.kernels.On("caption", vm.kernels.NGram(1, 4))
    assert float(vm.score(data, on)) == float(vm.score(CAPTIONS, "ngram"))
    assert "records of 'caption', 'set'" in repr(data)
    with pytest.raises(InputError, match="table"):
        np.asarray(data)


def test_slices_and_columns(table):
    data = vm.read(table, samples="caption", label="set", columns=["mass"])
    some = data[1:4]
    assert (list(some), some.labels, some["mass"]) == (CAPTIONS[1:4], ["1", "0", "1"], ["2", "3", "4"])
    assert some.place(0) == data.place(1)
    assert list(data[np.array([4, 0])]) == [CAPTIONS[4], CAPTIONS[0]]
    with pytest.raises(UnknownNameError, match="no column 'nothing'"):
        data["nothing"]
    with pytest.raises(IndexError):
        data[5]


def test_vectors_stay_as_they_are_and_a_file_is_mapped(tmp_path):
    np.save(tmp_path / "x.npy", X.astype(np.float16))
    data = vm.read(tmp_path / "x.npy")
    assert data.samples.dtype == np.float16
    assert isinstance(data.samples, np.memmap)
    assert float(vm.score(data)) == float(vm.score(X.astype(np.float16)))
    assert np.asarray(data).shape == (50, 4)
    assert "float16 of shape (50, 4)" in repr(data)


def test_nested_lists_are_groups(tmp_path):
    answers = [["yes", "no", "maybe"], ["red", "red"], ["one"]]
    path = records(tmp_path / "a.jsonl", [{"prompt": f"p{i}", "answers": a} for i, a in enumerate(answers)])
    data = vm.read(path, samples="answers", label="prompt")
    assert data.is_group
    groups = vm.score_groups(data, vm.kernels.NGram(1, 1))
    assert groups.labels == ["p0", "p1", "p2"]
    assert groups.scores.tolist() == vm.score_groups(answers, vm.kernels.NGram(1, 1)).scores.tolist()
    unnamed = vm.score_groups(vm.read(path, samples="answers"), vm.kernels.NGram(1, 1))
    assert unnamed.labels == [0, 1, 2]
    with pytest.raises(InputError, match="each of the 3 samples is a list of texts"):
        vm.score(data, "ngram")
    tags = vm.read(path, samples="answers", kind="tags")
    assert not tags.is_group
    assert float(vm.score(tags, "tags")) == float(vm.score(answers, "tags"))


# ------------------------------------------------------------------------------------- several files, batches, streams


@pytest.mark.parametrize("given", ["list", "pattern", "recursive"])
def test_shards(tmp_path, given):
    (tmp_path / "s").mkdir()
    for i, part in enumerate(np.array_split(X, 3)):
        np.save(tmp_path / "s" / f"{i}.npy", part)
    source = {
        "list": [tmp_path / "s" / f"{i}.npy" for i in range(3)],
        "pattern": str(tmp_path / "s" / "*.npy"),
        "recursive": str(tmp_path / "**" / "*.npy"),
    }[given]
    data = vm.read(source)
    assert np.array_equal(np.asarray(data), X)
    assert data.place(49).startswith("row 15 of")
    assert float(vm.score_stream(source)) == pytest.approx(float(vm.score(X)), rel=1e-12)


def test_batches_hold_what_the_whole_holds(table):
    batches = list(vm.read_batches(table, size=2, samples="caption", label="set", weight="mass"))
    assert [len(batch) for batch in batches] == [2, 2, 1]
    whole = vm.Collection.joined(batches)
    assert (list(whole), whole.labels, whole.weights.tolist()) == (
        CAPTIONS,
        ["0", "1", "0", "1", "0"],
        [1, 2, 3, 4, 5],
    )
    assert whole.place(3) == batches[1].place(1)


def test_accumulators_take_batches_with_labels_and_weights(tmp_path):
    path = records(
        tmp_path / "v.jsonl",
        [{"v": row.tolist(), "w": i % 3 + 1, "l": "ab"[i % 2]} for i, row in enumerate(X)],
    )
    total, groups = vm.Accumulator(), vm.GroupAccumulator()
    for batch in vm.read_batches(path, size=7, samples="v", weight="w", label="l"):
        total.update(batch)
        groups.update(batch)
    p = np.arange(50) % 3 + 1
    assert float(total.score()) == pytest.approx(float(vm.score(X, weights=p / p.sum())), rel=1e-12)
    expected = vm.score_groups(X, by=["ab"[i % 2] for i in range(50)], weights=p / p.sum())
    assert groups.score().scores == pytest.approx(expected.scores, rel=1e-12)
    streamed = vm.score_stream(path, samples="v", weight="w")
    assert float(streamed) == pytest.approx(float(total.score()), rel=1e-12)


def test_limit_takes_the_first(tmp_path):
    path = lines(tmp_path / "a.txt", [str(i) for i in range(100)])
    assert list(vm.read(path, limit=3)) == ["0", "1", "2"]
    assert [len(b) for b in vm.read_batches(path, limit=10, size=4)] == [4, 4, 2]
    assert list(vm.read([path, path], limit=101))[-1] == "0"


def test_standard_input(monkeypatch):
    def given(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    given("\n".join(CAPTIONS).encode())
    assert list(vm.read("-")) == CAPTIONS
    given(gzip.compress(json.dumps({"v": [1.0, 2.0]}).encode()))
    assert np.array_equal(np.asarray(vm.read("-")), [[1.0, 2.0]])
    given(b"x,y\n1,a\n")
    assert vm.read("-", format="csv", samples="y").samples == ["a"]
    buffer = io.BytesIO()
    np.save(buffer, X)
    given(buffer.getvalue())
    assert np.array_equal(np.asarray(vm.read("-")), X)


def test_cells_of_a_table_are_numbers_in_every_batch_or_in_none(tmp_path):
    path = lines(tmp_path / "a.csv", ["x", *["1.5"] * 4, "many"])
    assert vm.read(path).samples == ["1.5"] * 4 + ["many"]
    with pytest.raises(
        InputError, match=r"line 6 of '.*' holds 'many' in the column 'x', which held numbers before"
    ):
        list(vm.read_batches(path, size=4))
    numbers = lines(tmp_path / "b.csv", ["x", "1", "2.5"])
    assert vm.read(numbers).samples.tolist() == [1, 2.5]
    vectors = lines(tmp_path / "c.csv", ["v", '"[1, 2]"', '"[3, 4]"'])
    assert vm.read(vectors).samples.tolist() == [[1, 2], [3, 4]]


# ------------------------------------------------------------------------------------------------------ broken records


def test_errors_of_kernels_name_the_line(tmp_path):
    path = lines(tmp_path / "m.smi", ["CCO ethanol", "c1ccccc1", "C1CC"])
    with pytest.raises(InputError, match=r"item 2 \(line 3 of '.*m\.smi'\)"):
        vm.score(vm.read(path), "morgan")
    rows = X.copy()
    rows[3] = np.nan
    np.save(tmp_path / "x.npy", rows)
    for call in (vm.score, vm.plan):
        with pytest.raises(InputError, match=r"item 3 \(row 3 of '.*x\.npy'\) holds the value nan"):
            call(vm.read(tmp_path / "x.npy"), vm.kernels.RBF(1.0))
    with pytest.raises(InputError, match=r"row 3 of '.*x\.npy'"):
        vm.score_stream(tmp_path / "x.npy")


def test_broken_records_are_skipped_on_request_and_counted(tmp_path):
    path = lines(tmp_path / "a.jsonl", ['{"t": "a b"}', "{oops", '{"t": "c d"}', '{"u": 1}'])
    with pytest.raises(InputError, match=r"line 2 of '.*a\.jsonl'.*skip_broken=True"):
        vm.read(path, samples="t")
    data = vm.read(path, samples="t", skip_broken=True)
    assert list(data) == ["a b", "c d"]
    assert data.skipped.count == 2
    assert [place.split(" of")[0] for place, _ in data.skipped.records] == ["line 2", "line 4"]
    assert "2 left out" in repr(data)
    assert data.place(1).startswith("line 3 of")


def test_molecules_that_no_chemist_knows_are_broken_records(tmp_path):
    path = lines(tmp_path / "m.csv", ["SMILES,set", "CCO,a", "C1CC,a", "c1ccccc1,b", "CC(C)(C)(C)C,b"])
    data = vm.read(path, samples="SMILES", label="set", kind="molecules", skip_broken=True)
    assert (list(data), data.labels) == (["CCO", "c1ccccc1"], ["a", "b"])
    assert data.skipped.count == 2
    assert [data.place(i).split(" of")[0] for i in range(2)] == ["line 2", "line 4"]
    first = vm.read(path, samples="SMILES", kind="molecules", skip_broken=True, limit=2)
    assert list(first) == ["CCO", "c1ccccc1"]
    guessed = vm.read(path, samples="SMILES", kind="guess", skip_broken=True)
    assert (guessed.kind, len(guessed)) == ("molecules", 2)


BAD = {
    "no file": (lambda f: f / "none.txt", {}, "there is no file or folder"),
    "no match": (lambda f: str(f / "*.nothing"), {}, "no file that matches"),
    "no files": (lambda f: [], {}, "no file was named"),
    "a number": (lambda f: 7, {}, "expected the path"),
    "an empty name": (lambda f: "", {}, "expected the path"),
    "an unknown ending": (lambda f: lines(f / "a.doc", ["x"]), {}, "of type '.doc'; expected one of .txt"),
    "an unknown format": (lambda f: lines(f / "a", ["x"]), {"format": "word"}, "no format 'word'"),
    "an unknown column": (lambda f: lines(f / "a.csv", ["x", "1"]), {"samples": "y"}, "called 'y'"),
    "an unknown label": (lambda f: lines(f / "a.csv", ["x", "1"]), {"label": "y"}, "called 'y'"),
    "an unknown kind": (lambda f: lines(f / "a.txt", ["x"]), {"kind": "dogs"}, "no kind 'dogs'"),
    "one column twice": (
        lambda f: lines(f / "a.csv", ["x,y", "1,2"]), {"samples": "x", "label": "x"}, "both name 'x'",
    ),
    "columns as a text": (lambda f: lines(f / "a.txt", ["x"]), {"columns": "text"}, "expected a list of names"),
    "a role that is no name": (lambda f: lines(f / "a.txt", ["x"]), {"samples": 3}, "expected the name"),
    "weights that are words": (
        lambda f: lines(f / "a.csv", ["x,w", "a,1", "b,heavy"]), {"samples": "x", "weight": "w"},
        "line 3 of .* has 'heavy' in the column 'w' of weights",
    ),
    "a negative weight": (
        lambda f: lines(f / "a.csv", ["x,w", "a,1", "b,-1"]), {"samples": "x", "weight": "w"}, "line 3 .* weight -1",
    ),
    "shards of other columns": (
        lambda f: [lines(f / "a.csv", ["x", "1"]), lines(f / "b.csv", ["y", "1"])], {},
        "column in '.*b.csv' called 'x'",
    ),
    "shards of other widths": (
        lambda f: [np.save(f / "a.npy", X) or f / "a.npy", np.save(f / "b.npy", X[:, :3]) or f / "b.npy"], {},
        r"row 0 of '.*b.npy' has 'data' of shape \(3,\) and row 0 of '.*a.npy' of shape \(4,\)",
    ),
    "an empty file": (lambda f: lines(f / "a.txt", []), {}, "holds no samples"),
    "a limit of none": (lambda f: lines(f / "a.txt", ["x"]), {"limit": 0}, "limit"),
    "all records broken": (
        lambda f: lines(f / "a.jsonl", ["{", "}"]), {"skip_broken": True},
        "all 2 records are broken, the first because",
    ),
    "an empty folder": (lambda f: (f / "e").mkdir() or f / "e", {}, "picture"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input(tmp_path, case):
    make, options, message = BAD[case]
    with pytest.raises(InputError, match=message):
        vm.read(make(tmp_path), **options)


def test_an_empty_source_is_an_error_in_batches_too(tmp_path):
    with pytest.raises(EmptyError):
        list(vm.read_batches(lines(tmp_path / "a.txt", [])))


# ---------------------------------------------------------------------------------------------------------- real files


def test_captions_of_coco_per_image(shared_data):
    path = shared_data / "text" / "coco_val2017_captions.jsonl.gz"
    images = vm.read(path, samples="captions", label="image_id")
    assert len(images) == 5000
    groups = vm.score_groups(images, vm.kernels.NGram(1, 4))
    assert len(groups) == 5000
    assert sum(group.n for group in groups) == 25_014
    pick = 1234
    assert float(groups.at(pick)) == pytest.approx(float(vm.score(images[pick], "ngram")), rel=1e-12)


def test_the_molecule_table_of_the_paper(shared_data):
    expected = {"moses_test": (403.93, 0.8551), "moses_ngram_3": (479.91, 0.8736)}
    for name, (score, diversity) in expected.items():
        path = shared_data / "molecules" / f"{name}.csv.gz"
        data = vm.read(path, samples="SMILES", kind="molecules", skip_broken=True, limit=1500)
        assert len(data) == 1500
        kernel = vm.kernels.Morgan(radius=2, bits=1024)
        assert float(vm.score(data, kernel)) == pytest.approx(score, abs=0.006)
        assert 1 - kernel.similarity(data.samples).dense().mean() == pytest.approx(diversity, abs=6e-5)
    assert data.skipped.count > 1000


def test_digits_from_an_archive(shared_data):
    digits = vm.read(shared_data / "images" / "mnist_test.npz", samples="images", label="labels")
    groups = vm.score_groups(digits, vm.kernels.Pixels(size=None))
    rows = np.load(shared_data / "images" / "mnist_test.npz")
    expected = vm.score_groups(rows["images"].reshape(10_000, -1), by=rows["labels"])
    assert groups.scores == pytest.approx(expected.scores, rel=1e-10)


def test_digits_from_a_folder(shared_data, tmp_path):
    image = pytest.importorskip("PIL.Image")
    with np.load(shared_data / "images" / "mnist_test.npz") as archive:
        pictures, labels = archive["images"][:400], archive["labels"][:400]
    for i, (picture, label) in enumerate(zip(pictures, labels, strict=True)):
        (tmp_path / str(label)).mkdir(exist_ok=True)
        image.fromarray(picture).save(tmp_path / str(label) / f"{i:03}.png")
    groups = vm.score_groups(vm.read(tmp_path), vm.kernels.Pixels(size=None))
    expected = vm.score_groups(pictures.reshape(400, -1), by=labels.astype(str))
    assert groups.labels == sorted(map(str, range(10)))
    assert groups.scores == pytest.approx([float(expected[label]) for label in groups.labels], rel=1e-10)


def test_an_empty_shard_is_no_obstacle_wherever_it_stands(tmp_path):
    empty = lines(tmp_path / "0.jsonl", [])
    full = records(tmp_path / "1.jsonl", [{"t": "a", "u": 1}, {"t": "b", "u": 2}])
    for source in ([empty, full], [full, empty]):
        assert list(vm.read(source, samples="t")) == ["a", "b"]
    with pytest.raises(InputError, match=r"'.*a\.txt' is of another form than the files before it"):
        vm.read([full, lines(tmp_path / "a.txt", ["x"])], samples="t")


def test_what_was_read_is_held_once(tmp_path, monkeypatch):
    """Parts of a file must not stay in memory beside the whole."""
    for i in range(3):
        np.save(tmp_path / f"{i}.npy", X)
    seen = []
    parts = arrays_module.Npy.parts

    def watched(self, columns, size):
        for part in parts(self, columns, size):
            seen.extend(weakref.ref(column) for column in part.columns.values())
            yield part

    monkeypatch.setattr(arrays_module.Npy, "parts", watched)
    data = vm.read([tmp_path / f"{i}.npy" for i in range(3)])
    gc.collect()
    assert (len(data), len(seen)) == (150, 3)
    assert all(reference() is None for reference in seen)


# ------------------------------------------------------------------------------------- what a reviewer found, and more


def test_the_first_list_decides_what_samples_are_and_an_odd_one_is_broken(tmp_path):
    rows = [{"p": f"q{i}", "a": ["one", "two", "three", "one two"]} for i in range(5)]
    path = records(tmp_path / "a.jsonl", [*rows, {"p": "q5", "a": ["one", 2]}, {"p": "q6", "a": ["x", None]}])
    with pytest.raises(InputError, match=r"line 6 of '.*' holds 2 in a list of texts"):
        vm.read(path, samples="a", label="p")
    kernel = vm.kernels.NGram(1, 1, hashed=64)
    expected = vm.score_groups([row["a"] for row in rows], kernel).scores
    data = vm.read(path, samples="a", label="p", skip_broken=True)
    assert data.skipped.count == 2
    assert vm.score_groups(data, kernel).scores == pytest.approx(expected)
    for size in (1, 2, 3, 10):
        total = vm.GroupAccumulator(kernel)
        for batch in vm.read_batches(path, samples="a", label="p", skip_broken=True, size=size):
            total.update(batch)
        assert total.score().scores == pytest.approx(expected)


def test_empty_lists_are_empty_groups(tmp_path):
    rows = [{"p": "q0", "a": []}, {"p": "q1", "a": ["x", "y"]}, {"p": "q2", "a": []}]
    groups = vm.score_groups(
        vm.read(records(tmp_path / "a.jsonl", rows), samples="a", label="p"), vm.kernels.NGram(1, 1)
    )
    assert groups.labels == ["q0", "q1", "q2"]
    assert [group.n for group in groups] == [0, 2, 0]
    assert np.isnan(groups.scores[[0, 2]]).all()
    assert groups.scores[1] == pytest.approx(2)


def test_a_label_is_that_of_one_list_and_several_columns_make_one(tmp_path):
    rows = [{"m": m, "p": p, "a": [f"{m}{p}", "x"][: 1 + (m == "A")]} for m in "AB" for p in "12"]
    path = records(tmp_path / "a.jsonl", rows)
    with pytest.raises(InputError, match=r"the label 'A' is that of several lists of texts, line 2 of"):
        vm.score_groups(vm.read(path, samples="a", label="m"), vm.kernels.NGram(1, 1))
    for groups in (
        vm.score_groups(vm.read(path, samples="a", label=["m", "p"]), vm.kernels.NGram(1, 1)),
        vm.score_groups(
            vm.read(path, samples="a", columns=["m", "p"]), vm.kernels.NGram(1, 1), by=["m", "p"]
        ),
    ):
        assert groups.labels == [("A", "1"), ("A", "2"), ("B", "1"), ("B", "2")]
        means = groups.mean(by=lambda label: label[0], unit=lambda label: label[1])
        assert (means["A"].mean, means["B"].mean) == (pytest.approx(2), pytest.approx(1))


def test_columns_of_numbers_make_vectors(tmp_path):
    path = lines(tmp_path / "a.csv", ["a,name,b", "1,x,0", "0,y,2", "3,z,3"])
    data = vm.read(path, samples=["a", "b"], id="name", kind="vectors")
    assert data.samples.tolist() == [[1, 0], [0, 2], [3, 3]]
    assert data.ids == ["x", "y", "z"]
    assert float(vm.score(data)) == float(vm.score([[1, 0], [0, 2], [3, 3]]))
    with pytest.raises(InputError, match=r"the column 'name' holds 'x' \(line 2 of"):
        vm.read(path, samples=["a", "name"])


def test_cells_may_be_lists_of_tags(tmp_path):
    path = lines(tmp_path / "a.csv", ["t", '"[""fruity"", ""sweet""]"', '"[""sweet""]"'])
    data = vm.read(path, kind="tags")
    assert data.samples == [["fruity", "sweet"], ["sweet"]]
    assert float(vm.score(data, "tags")) == float(vm.score([["fruity", "sweet"], ["sweet"]], "tags"))


def test_a_collection_of_a_known_kind_names_its_kernel(tmp_path):
    path = lines(tmp_path / "m.smi", ["CCO", "CC"])
    for call in (vm.score, vm.plan, vm.profile, vm.score_groups):  # none of them could take them
        with pytest.raises(InputError, match=r"the samples are molecules and no kernel is named.*'morgan'"):
            call(vm.read(path), **({"by": ["a", "b"]} if call is vm.score_groups else {}))


def test_codes_are_not_numbers_where_the_kind_says_so(tmp_path):
    path = lines(tmp_path / "a.csv", ["code", "1", "1.0", "10e1", "100"])
    assert vm.read(path).samples.tolist() == [1, 1, 100, 100]
    for kind in ("categories", "texts", "tokens", "sequences"):
        assert vm.read(path, kind=kind).samples == ["1", "1.0", "10e1", "100"]
    assert float(vm.score(vm.read(path, kind="categories"), "match")) == pytest.approx(4)


def test_records_left_out_are_in_the_score(tmp_path):
    path = lines(tmp_path / "a.jsonl", ['{"v": [1, 0, 0]}', "{", '{"v": [0, 1, 0]}', "}"])
    options = {"samples": "v", "skip_broken": True}
    for score in (vm.score(vm.read(path, **options)), vm.score_stream(path, **options)):
        assert score.diagnostics["left_out"] == 2
        assert "2 broken records were left out" in score.summary()
    profile = vm.profile(vm.read(path, **options), q=[1, 2])
    assert profile[2].diagnostics["left_out"] == 2
    grouped = vm.score_groups(vm.read(path, **options), by=["a", "b"])
    assert grouped.to_dict()["left_out"] == 2
    assert grouped["a"].diagnostics["left_out"] == 2
    assert "left_out" not in vm.score(np.eye(2), vm.kernels.Cosine()).diagnostics


def test_broken_cells_and_weights_can_be_skipped(tmp_path):
    path = lines(
        tmp_path / "a.csv",
        [
            "v;w".replace(";", ","),
            '"[1, 0]",1',
            '"[1, x]",1',
            '"",1',
            '"[1, 2, 3]",1',
            '"[0, 1]",-1',
            '"[0, 1]",3',
        ],
    )
    data = vm.read(path, samples="v", weight="w", skip_broken=True)
    assert (data.samples.tolist(), data.weights.tolist()) == ([[1, 0], [0, 1]], [1, 3])
    assert [place.split(" of")[0] for place, _ in data.skipped.records] == [f"line {i}" for i in (3, 4, 5, 6)]
    numbers = lines(tmp_path / "b.csv", ["x", "1", "", "many", "2"])
    assert vm.read(numbers, skip_broken=True).samples.tolist() == [1, 2]


def test_nothing_after_the_limit_is_read(tmp_path):
    path = lines(tmp_path / "a.jsonl", ['{"t": "a"}', '{"t": "b"}', "{", '{"t": "c"}'])
    assert list(vm.read(path, samples="t", limit=2)) == ["a", "b"]
    assert vm.read(path, samples="t", limit=2, skip_broken=True).skipped.count == 0
    smiles = lines(tmp_path / "m.smi", ["CCO", "C1CC", "CC", "C2CC"])
    data = vm.read(smiles, limit=2, skip_broken=True)
    assert (list(data), data.skipped.count) == (["CCO", "CC"], 1)


def test_streams_of_paths_share_a_limit_and_collections_are_sources(tmp_path):
    for i in range(2):
        np.save(tmp_path / f"{i}.npy", X)
    paths = [tmp_path / "0.npy", tmp_path / "1.npy"]
    assert vm.score_stream(paths, limit=60).n == 60
    assert vm.score_stream(str(tmp_path / "*.npy"), limit=60).n == 60
    whole = vm.read(paths)
    for source in (whole, [whole], vm.read_batches(paths, size=7)):
        assert float(vm.score_stream(source)) == pytest.approx(float(vm.score(X)), rel=1e-12)
    with pytest.raises(InputError, match="samples= says how files are read, and the source is no file"):
        vm.score_stream(X, samples="v")


def test_a_weight_beyond_all_numbers(tmp_path):
    path = lines(tmp_path / "a.jsonl", [f'{{"t": "a", "w": 1{"0" * 400}}}'])
    with pytest.raises(InputError, match="weight inf"):
        vm.read(path, samples="t", weight="w")


def test_pictures_by_name_and_by_pattern(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for label in ("cats", "dogs"):
        (tmp_path / label).mkdir()
        for i in range(2):
            picture = rng.integers(0, 255, (20, 20, 3), dtype=np.uint8)
            image.fromarray(picture).save(tmp_path / label / f"{i}.png")
    folder = vm.read(tmp_path)
    assert folder.labels == ["cats", "cats", "dogs", "dogs"]
    for source in (
        str(tmp_path / "*" / "*.png"),
        sorted(tmp_path.glob("*/*.png")),
        [tmp_path / "cats", tmp_path / "dogs"],
    ):
        data = vm.read(source)
        assert (data.labels, data.samples) == (folder.labels, folder.samples)
        assert float(vm.score(data, "pixels")) == float(vm.score(folder, "pixels"))
    (tmp_path / "cats" / "2.png").write_bytes(b"broken")
    data = vm.read(str(tmp_path / "*" / "*.png"), skip_broken=True)
    assert (len(data), data.skipped.count) == (4, 1)


def test_a_file_does_not_say_which_pictures_are_opened(tmp_path):
    path = records(tmp_path / "a.jsonl", [{"image": {"bytes": None, "path": "/etc/hostname"}}])
    with pytest.raises(InputError, match=r"line 1 of '.*' holds no picture but the path '/etc/hostname'"):
        vm.read(path, samples="image")


def test_a_folder_of_tables_says_so_whatever_is_asked_of_it(tmp_path):
    np.save(tmp_path / "a.npy", X)
    with pytest.raises(EmptyError, match="pattern"):
        vm.read(tmp_path, samples="embedding")


def test_arrays_of_different_lengths(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "a.npz"
    arrays = {"features": rng.random((50, 6)), "label": np.arange(50) % 2, "mu": rng.random(6)}
    np.savez(path, **arrays, sigma=rng.random((6, 6)))
    with pytest.raises(
        InputError, match=r"different lengths: features \(50\), label \(50\), mu \(6\), sigma \(6\)"
    ):
        vm.read(path)
    assert vm.read(path, samples="features").samples.shape == (50, 6)
    assert vm.read(path, label="label").samples.shape == (50, 6)
    assert vm.read(path, samples="sigma").samples.shape == (6, 6)
    with pytest.raises(InputError, match=r"'sigma' in '.*' has 6 rows and 'label' has 50"):
        vm.read(path, samples="sigma", label="label")


def test_lists_beside_the_samples_may_differ_in_length(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [{"t": "a b", "s": [1.5]}, {"t": "c d", "s": [1.5, 2.5]}]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    for path in (records(tmp_path / "a.jsonl", rows), tmp_path / "a.parquet"):
        data = vm.read(path, samples="t", columns=["s"])
        assert data["s"] == [[1.5], [1.5, 2.5]]
        with pytest.raises(InputError, match=r"(line 2|row 1) of"):
            vm.read(path, samples="s")


def test_a_wide_table_takes_no_time(tmp_path):
    names = [f"g{i}" for i in range(40_000)]
    path = lines(tmp_path / "genes.csv", [",".join(names), ",".join(["1"] * 40_000)])
    data = vm.read(path, samples=names)  # quadratic work would take half a minute
    assert data.samples.shape == (1, 40_000)


def test_a_table_of_some_columns(tmp_path):
    path = records(tmp_path / "a.jsonl", [{"a": 1, "b": "x", "c": None}, {"a": 2, "b": "y", "c": 5}])
    with pytest.raises(InputError, match=r"line 1 of '.*' has null in the field 'c'"):
        vm.read(path)
    data = vm.read(path, columns=["a", "b"])
    assert data.is_table
    assert list(data) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert float(vm.score(data, vm.kernels.On("b", vm.kernels.Match()))) == pytest.approx(2)


def test_lists_that_are_all_empty_are_empty_groups_in_every_batch(tmp_path):
    rows = [{"p": "q0", "a": []}, {"p": "q1", "a": ["x", "y"]}, {"p": "q2", "a": ["z"]}]
    path = records(tmp_path / "a.jsonl", rows)
    kernel = vm.kernels.NGram(1, 1, hashed=64)
    with pytest.raises(EmptyError, match="every group is empty"):
        vm.score_groups(vm.read(path, samples="a", label="p", limit=1), kernel)
    total = vm.GroupAccumulator(kernel)
    for batch in vm.read_batches(path, samples="a", label="p", size=1):
        total.update(batch)
    assert total.score().labels == ["q1", "q2"]
    assert total.score().scores == pytest.approx([2, 1])


def test_names_of_columns_are_names_however_many_records_there_are(tmp_path):
    path = records(tmp_path / "a.jsonl", [{"m": "A", "p": "q", "a": "x y"}, {"m": "A", "p": "q", "a": "z"}])
    groups = vm.score_groups(vm.read(path, samples="a", columns=["m", "p"]), "ngram", by=["m", "p"])
    assert groups.labels == [("A", "q")]
    with pytest.raises(InputError, match="names a column twice"):
        vm.read(path, samples=["m", "m"])


def test_numbers_of_json_make_vectors(tmp_path):
    path = records(tmp_path / "a.jsonl", [{"x": 1.5, "y": 2, "t": "a"}, {"x": 3.5, "y": 2.5, "t": "b"}])
    assert vm.read(path, samples=["x", "y"]).samples.tolist() == [[1.5, 2], [3.5, 2.5]]
    with pytest.raises(InputError, match=r"the column 't' holds 'a' \(line 1"):
        vm.read(path, samples=["x", "t"])
    cells = lines(tmp_path / "b.csv", ["x,y", "1,2", "3,oops", "5,6"])
    with pytest.raises(InputError, match=r"the column 'y' holds 'oops' \(line 3"):
        vm.read(cells, samples=["x", "y"])
    assert vm.read(cells, samples=["x", "y"], skip_broken=True).samples.tolist() == [[1, 2], [5, 6]]


def test_labels_of_lists_are_single(tmp_path):
    path = records(tmp_path / "a.jsonl", [{"p": ["l", 1], "a": ["x", "y"]}])
    with pytest.raises(InputError, match=r"the label \['l', 1\] \(line 1 of .* is a list"):
        vm.score_groups(vm.read(path, samples="a", label="p"), "ngram")


def test_a_kernel_that_is_named_is_meant(tmp_path):
    np.save(tmp_path / "p.npy", np.full((4, 3), 1 / 3))
    data = vm.read(tmp_path / "p.npy", kind="probabilities")
    assert float(vm.score(data, kernel="cosine")) == pytest.approx(1)
    assert float(vm.score(data, "probability-product")) == pytest.approx(1)


def test_streams_of_files_that_are_not_alike(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "b.npz", v=X)
    assert vm.score_stream([tmp_path / "a.npy", tmp_path / "b.npz"]).n == 100


def test_tags_and_tokens_are_lists_of_anything(tmp_path):
    path = records(tmp_path / "a.jsonl", [{"t": [5, 7]}, {"t": [7, 9, 1]}])
    for kind in ("tags", "tokens"):
        assert vm.read(path, samples="t", kind=kind).samples == [[5, 7], [7, 9, 1]]
    assert float(vm.score(vm.read(path, samples="t", kind="tokens"), vm.kernels.NGram(1, 1))) > 1
    mixed = records(tmp_path / "b.jsonl", [{"t": ["a", 1]}, {"t": ["a"]}])
    assert float(vm.score(vm.read(mixed, samples="t", kind="tags"), "tags")) > 1
    cells = lines(tmp_path / "c.csv", ["t", '"[""a""]"', '""', '"[""b""]"'])
    assert vm.read(cells, kind="tags").samples == [["a"], [], ["b"]]


def test_records_with_a_path_are_pictures_only_if_they_are_nothing_else(tmp_path):
    path = records(tmp_path / "a.jsonl", [{"m": {"path": "/a", "k": 1}}, {"m": {"path": "/b", "k": 2}}])
    assert float(vm.score(vm.read(path, samples="m"), lambda a, b: float(a["k"] == b["k"]))) == pytest.approx(
        2
    )


def test_broken_pictures_of_a_table_are_skipped(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    buffer = io.BytesIO()
    image.fromarray(np.full((40, 40, 3), 9, dtype=np.uint8)).save(buffer, "png")
    parquet.write_table(pa.table({"raw": [buffer.getvalue(), b"junk"]}), tmp_path / "a.parquet")
    data = vm.read(tmp_path / "a.parquet", kind="images", skip_broken=True)
    assert (len(data), data.skipped.count) == (1, 1)
    assert "row 1 of" in data.skipped.records[0][0]


def test_a_gap_beside_texts_does_not_make_a_table_unreadable(tmp_path):
    data = vm.read(lines(tmp_path / "a.csv", ["t,n", "x,1", "y,", "z,3"]))
    assert data["t"] == ["x", "y", "z"]
    with pytest.raises(InputError, match=r"line 3 of .* has no value in the column 'm'"):
        vm.read(lines(tmp_path / "b.csv", ["m,n", "1,1", ",2"]))
