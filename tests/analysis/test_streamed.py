"""Contributions beside every row of files: the same as in memory, complete or not at all."""

from __future__ import annotations

import gzip
import json
import math

import matplotlib

matplotlib.use("Agg")
import numpy as np
import pytest
from matplotlib import pyplot

import vendimeter as vm
from vendimeter.analysis.decomposition import streamed
from vendimeter.errors import EmptyError, InputError, MismatchError, TooLargeError
from vendimeter.io import parquet_writer
from vendimeter.kernels import Embed, Polynomial

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

NEW = ["vendi_share", "vendi_rarity", "vendi_leave_one_out", "vendi_mean_similarity"]


def rows(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def table_of(data, **more):
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(data.reshape(-1)), data.shape[1])
    return pa.table({"v": vectors, **more})


def read_table(path):
    return parquet.read_table(path)


def same(table, expected):
    for name, values in zip(
        NEW, (expected.values, expected.rarity, expected.leave_one_out, expected.mean_similarity), strict=True
    ):
        np.testing.assert_allclose(table[name].to_numpy(), values, rtol=1e-10, atol=1e-13, err_msg=name)


@pytest.fixture
def shards(tmp_path):
    """Three Parquet shards of 50, 1 and 30 rows, with names and a label beside vectors of float32."""
    folder = tmp_path / "shards"
    folder.mkdir()
    data = rows(81, 6).astype(np.float32)
    names = [f"row {i}" for i in range(81)]
    for i, (start, stop) in enumerate([(0, 50), (50, 51), (51, 81)]):
        parquet.write_table(
            table_of(data[start:stop], name=names[start:stop], label=[i] * (stop - start)),
            folder / f"s{i}.parquet",
        )
    return folder, data


@pytest.mark.parametrize("size", [1, 7, 4096])
@pytest.mark.parametrize("q", [0, 0.5, 1, 2, math.inf])
def test_rows_have_what_contributions_has_whatever_the_batches(shards, tmp_path, q, size):
    folder, data = shards
    found = vm.write_contributions(
        str(folder / "*.parquet"),
        tmp_path / "out.parquet",
        q=q,
        samples="v",
        columns=["name"],
        label="label",
        size=size,
    )
    expected = vm.contributions(data, q=q)
    table = read_table(tmp_path / "out.parquet")
    assert table.column_names == ["v", "label", "name", *NEW]
    same(table, expected)
    assert table["name"].to_pylist() == [f"row {i}" for i in range(81)]
    assert table["label"].to_pylist() == [0] * 50 + [1] + [2] * 30
    np.testing.assert_array_equal(np.stack(table["v"].to_numpy()), data)
    assert pa.types.is_fixed_size_list(table.schema.field("v").type)
    assert table.schema.field("v").type.value_type == pa.float32()
    assert found.score == pytest.approx(float(expected.score), rel=1e-12)
    assert (found.rows, found.score.n, found.paths) == (81, 81, (str(tmp_path / "out.parquet"),))
    if q not in (0,):  # where nothing is equal
        assert found.rarest[:5].tolist() == expected.rarest(5).tolist()
        assert found.redundant[:5].tolist() == expected.redundant(5).tolist()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.parquet", "shards"]


def test_a_folder_gets_one_file_for_each(shards, tmp_path):
    folder, data = shards
    found = vm.write_contributions(
        [folder / "s2.parquet", folder / "s0.parquet"], tmp_path / "out", samples="v"
    )
    assert found.paths == (str(tmp_path / "out" / "s2.parquet"), str(tmp_path / "out" / "s0.parquet"))
    expected = vm.contributions(np.concatenate([data[51:], data[:50]]))
    same(pa.concat_tables([read_table(path) for path in found.paths]), expected)
    assert "2 files" in found.summary()
    # Files of one name in two folders get numbers.
    other = tmp_path / "other"
    other.mkdir()
    parquet.write_table(table_of(data[:5]), other / "s0.parquet")
    found = vm.write_contributions(
        [folder / "s0.parquet", other / "s0.parquet"], tmp_path / "two", samples="v"
    )
    assert [path.rpartition("/")[2] for path in found.paths] == ["part-00000.parquet", "part-00001.parquet"]


def test_files_of_other_forms(tmp_path):
    data = rows(20, 3)
    expected = vm.contributions(data)
    np.save(tmp_path / "a.npy", data)
    text = "x,y,z,name\n" + "".join(f"{a!r},{b!r},{c!r},n{i}\n" for i, (a, b, c) in enumerate(data.tolist()))
    with gzip.open(tmp_path / "b.csv.gz", "wt") as file:
        file.write(text)
    lines = [json.dumps({"v": row, "more": {"i": i} if i else None}) for i, row in enumerate(data.tolist())]
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    for name, reading, columns in (
        ("a.npy", {}, ["data"]),
        ("b.csv.gz", {"samples": ["x", "y", "z"], "columns": ["name"], "size": 6}, ["x", "y", "z", "name"]),
        ("c.jsonl", {"samples": "v", "size": 1}, ["v"]),
    ):
        vm.write_contributions(tmp_path / name, tmp_path / f"{name}.parquet", **reading)
        table = read_table(tmp_path / f"{name}.parquet")
        same(table, expected)
        assert table.column_names == [*columns, *NEW]
    table = read_table(tmp_path / "b.csv.gz.parquet")
    np.testing.assert_array_equal(table["y"].to_numpy(), data[:, 1])  # numbers, not the texts that they were


def test_weights_of_a_column_count(tmp_path):
    data = rows(20, 3)
    weights = np.r_[np.zeros(2), np.arange(1.0, 19.0)]
    parquet.write_table(table_of(data, w=weights), tmp_path / "a.parquet")
    found = vm.write_contributions(
        tmp_path / "a.parquet", tmp_path / "out.parquet", samples="v", weight="w", size=3
    )
    expected = vm.contributions(data, weights=weights / weights.sum())
    table = read_table(tmp_path / "out.parquet")
    same(table, expected)
    assert table["vendi_share"].to_pylist()[:2] == [0, 0]
    assert table["w"].to_pylist() == weights.tolist()
    assert found.rarest.tolist() == expected.rarest(20).tolist()
    assert len(found.rarest) == 18  # none of no weight


def test_a_row_with_nearly_all_weight_is_left_out_for_real(tmp_path):
    data = rows(20, 3)
    weights = np.ones(20)
    weights[13] = 1e9
    parquet.write_table(table_of(data, w=weights), tmp_path / "a.parquet")
    vm.write_contributions(tmp_path / "a.parquet", tmp_path / "out.parquet", samples="v", weight="w", size=3)
    found = read_table(tmp_path / "out.parquet")["vendi_leave_one_out"].to_numpy()
    score = vm.score(data, weights=weights / weights.sum())
    assert score + found[13] == pytest.approx(float(vm.score(np.delete(data, 13, axis=0))), rel=1e-12)
    # The only one with weight leaves nothing.
    parquet.write_table(table_of(data[:2], w=[0.0, 3.0]), tmp_path / "b.parquet")
    vm.write_contributions(tmp_path / "b.parquet", tmp_path / "b2.parquet", samples="v", weight="w")
    assert math.isnan(read_table(tmp_path / "b2.parquet")["vendi_leave_one_out"].to_pylist()[1])


def test_kernels_that_can_be_accumulated_and_others(shards, tmp_path):
    folder, data = shards
    for kernel in (Polynomial(2), Embed(lambda batch: np.asarray(batch)[:, :4])):
        vm.write_contributions(
            folder / "s0.parquet", tmp_path / "o.parquet", kernel, samples="v", overwrite=True
        )
        same(read_table(tmp_path / "o.parquet"), vm.contributions(data[:50], kernel))
    for kernel, reason in (("rbf", "infinitely many"), (lambda a, b: 1.0, "no features")):
        with pytest.raises(InputError, match=reason):
            vm.write_contributions(folder / "s0.parquet", tmp_path / "p.parquet", kernel, samples="v")
    assert not (tmp_path / "p.parquet").exists()


def test_without_leave_one_out(shards, tmp_path):
    folder, _ = shards
    found = vm.write_contributions(
        folder / "s0.parquet", tmp_path / "o.parquet", samples="v", leave_one_out=False
    )
    assert "vendi_leave_one_out" not in read_table(tmp_path / "o.parquet").column_names
    rarity = read_table(tmp_path / "o.parquet")["vendi_rarity"].to_numpy()
    assert found.rarest[0] == rarity.argmax()
    assert found.redundant[0] == rarity.argmin()


# --------------------------------------------------------------------------------------------------- all or nothing


def test_what_exists_is_not_replaced_unasked(shards, tmp_path):
    folder, _ = shards
    out = tmp_path / "o.parquet"
    out.write_text("precious")
    with pytest.raises(InputError, match=r"exists; expected a new name\. Pass overwrite=True"):
        vm.write_contributions(folder / "s0.parquet", out, samples="v")
    assert out.read_text() == "precious"
    vm.write_contributions(folder / "s0.parquet", out, samples="v", overwrite=True)
    assert read_table(out).num_rows == 50
    many = tmp_path / "many"
    many.mkdir()
    vm.write_contributions(folder / "s0.parquet", many, samples="v")  # an empty folder is free
    with pytest.raises(InputError, match="is not empty"):
        vm.write_contributions(folder / "s1.parquet", many, samples="v")
    vm.write_contributions(folder / "s1.parquet", many, samples="v", overwrite=True)
    assert [path.name for path in many.iterdir()] == ["s1.parquet"]  # nothing of the older one stays
    (many / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds 'notes.txt', which is no .parquet file"):
        vm.write_contributions(folder / "s1.parquet", many, samples="v", overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["many", "o.parquet", "shards"]


def test_what_is_read_is_never_replaced(shards, tmp_path):
    folder, _ = shards
    before = sorted(path.read_bytes() for path in folder.iterdir())
    for out in (folder / "s1.parquet", folder, tmp_path):
        with pytest.raises(InputError, match="which is read; expected another place"):
            vm.write_contributions(str(folder / "*.parquet"), out, samples="v", overwrite=True)
    link = tmp_path / "link"
    link.symlink_to(folder)
    with pytest.raises(InputError, match="which is read; expected another place"):
        vm.write_contributions(str(folder / "*.parquet"), link, samples="v", overwrite=True)
    assert sorted(path.read_bytes() for path in folder.iterdir()) == before


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, OSError(28, "No space left on device"), ValueError("boom")]
)
@pytest.mark.parametrize("out", ["o.parquet", "folder"])
def test_nothing_half_written_stays(shards, tmp_path, monkeypatch, error, out):
    folder, _ = shards
    written = []
    new_columns = streamed.new_columns

    def failing(batch, *rest):
        written.append(batch)
        if len(written) == 3:
            raise error
        return new_columns(batch, *rest)

    monkeypatch.setattr(streamed, "new_columns", failing)
    monkeypatch.setattr(parquet_writer, "GROUP_BYTES", 1)  # so that something is on the disk by then
    with pytest.raises(
        error if isinstance(error, type) else type(error)
    ):  # as it came: it is not about the output
        vm.write_contributions(str(folder / "*.parquet"), tmp_path / out, samples="v", size=20)
    assert [path.name for path in tmp_path.iterdir()] == ["shards"]


def test_a_disk_that_is_full_is_said_and_the_older_file_stays(shards, tmp_path, monkeypatch):
    folder, _ = shards
    out = tmp_path / "o.parquet"
    out.write_text("older")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet_writer._Writer, "_flush", full)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        vm.write_contributions(folder / "s0.parquet", out, samples="v", overwrite=True)
    assert out.read_text() == "older"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_source_that_changes_between_the_passes_is_an_error(shards, tmp_path, monkeypatch):
    folder, data = shards
    Sums = streamed.Sums
    for other in (data[:49], np.concatenate([data[:50], data[:1]]), rows(50, 6, seed=9) * [1, 1, 1, 1, 0, 0]):
        parquet.write_table(table_of(data[:50]), folder / "s0.parquet")

        class Changing(Sums):
            def solved(self, other=other):
                parquet.write_table(table_of(other), folder / "s0.parquet")
                return super().solved()

        monkeypatch.setattr(streamed, "Sums", Changing)
        with pytest.raises(MismatchError, match="changed between the first and the second pass"):
            vm.write_contributions(folder / "s0.parquet", tmp_path / "o.parquet", samples="v")
        assert [path.name for path in tmp_path.iterdir()] == ["shards"]


# ------------------------------------------------------------------------------------------------------- bad input


def test_bad_input_says_what_is_wrong(shards, tmp_path, monkeypatch):
    folder, data = shards
    first, out = folder / "s0.parquet", tmp_path / "o.parquet"
    for source, target, options, message in (
        (data, out, {}, "vendimeter.contributions"),
        (iter([data]), out, {}, "read twice"),
        ("-", out, {}, "standard input can be read only once"),
        (tmp_path / "nix.npy", out, {}, "no file or folder"),
        (first, tmp_path / "o.csv", {}, r"is no .parquet file"),
        (first, tmp_path / "nix" / "o.parquet", {}, "does not exist"),
        (first, 5, {}, "out=5"),
        (first, out, {"overwrite": "yes"}, "overwrite='yes'"),
        (first, out, {"leave_one_out": 1}, "leave_one_out=1"),
        (first, out, {"q": "most"}, "is not an order"),
        (first, out, {"samples": "w"}, "'w'"),
        (first, out, {"samples": "name"}, "strings"),
    ):
        with pytest.raises(InputError, match=message):
            vm.write_contributions(source, target, **{"samples": "v"} | options)
    parquet.write_table(table_of(data[:3], vendi_share=[1.0, 2.0, 3.0]), tmp_path / "again.parquet")
    with pytest.raises(InputError, match="has a column 'vendi_share' of its own"):
        vm.write_contributions(tmp_path / "again.parquet", out, samples="v", columns=["vendi_share"])
    vm.write_contributions(tmp_path / "again.parquet", tmp_path / "fine.parquet", samples="v")
    parquet.write_table(table_of(data[:3], w=[0.0, 0.0, 0.0]), tmp_path / "light.parquet")
    with pytest.raises(EmptyError, match="every row has weight 0"):
        vm.write_contributions(tmp_path / "light.parquet", out, samples="v", weight="w")
    np.save(tmp_path / "wide.npy", data[:, :3])
    np.save(tmp_path / "long.npy", data)
    with pytest.raises(MismatchError, match="6 columns and the ones before had 3"):
        vm.write_contributions([tmp_path / "wide.npy", tmp_path / "long.npy"], out)
    np.save(tmp_path / "none.npy", data[:0])
    with pytest.raises(EmptyError, match="no samples"):
        vm.write_contributions(tmp_path / "none.npy", out)
    monkeypatch.setattr(streamed, "EXACT_SIDE", 5)
    with pytest.raises(TooLargeError, match="at most 5 columns"):
        vm.write_contributions(first, out, samples="v")
    assert not out.exists()


def test_a_pipe_is_refused(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(InputError, match="can be read only once"):
        vm.write_contributions(tmp_path / "pipe.npy", tmp_path / "o.parquet")


def test_columns_that_differ_or_cannot_be_written(tmp_path):
    def write(name, *records):
        lines = [json.dumps({"v": [1.0, float(i)], **record}) for i, record in enumerate(records)]
        (tmp_path / name).write_text("\n".join(lines))

    out = tmp_path / "o.parquet"
    options = {"samples": "v", "columns": ["m"]}
    write("a.jsonl", {"m": 1}, {"m": 2.5})
    write("b.jsonl", {"m": "x"}, {"m": "y"})
    with pytest.raises(InputError, match="which was double before"):
        vm.write_contributions([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], out, **options)
    write("c.jsonl", {"m": {"a": 1}}, {"m": {"a": "x"}})
    with pytest.raises(InputError, match="cannot be written as Parquet"):
        vm.write_contributions(tmp_path / "c.jsonl", out, **options)
    write("d.jsonl", {"m": {}}, {"m": {}})
    with pytest.raises(InputError, match="cannot be written as Parquet"):
        vm.write_contributions(tmp_path / "d.jsonl", out, **options)
    assert not out.exists()
    # What fits one type in the end is written as that, whichever batch it came in.
    write("e.jsonl", {"m": {"a": 1}}, {"m": {"a": 2.5, "b": "x"}})
    vm.write_contributions(tmp_path / "e.jsonl", out, size=1, **options)
    assert read_table(out)["m"].to_pylist() == [{"a": 1.0, "b": None}, {"a": 2.5, "b": "x"}]


def test_limits_empty_files_and_broken_records(shards, tmp_path):
    folder, data = shards
    found = vm.write_contributions(str(folder / "*.parquet"), tmp_path / "o.parquet", samples="v", limit=53)
    same(read_table(tmp_path / "o.parquet"), vm.contributions(data[:53]))
    assert found.rows == 53
    (tmp_path / "a.jsonl").write_text('{"v": [1, 0]}\nrubbish\n{"v": [0, 1]}\n')
    (tmp_path / "b.jsonl").write_text("")
    (tmp_path / "c.jsonl").write_text('{"v": [1, 1]}\n')
    found = vm.write_contributions(str(tmp_path / "?.jsonl"), tmp_path / "out", samples="v", skip_broken=True)
    assert [path.rpartition("/")[2] for path in found.paths] == ["a.parquet", "c.parquet"]
    assert found.score.diagnostics["left_out"] == 1
    assert "line 3 of" in " ".join(found.table["place"])


def test_the_result_can_be_written_down_and_drawn(shards, tmp_path):
    _, data = shards
    hostile = tmp_path / "<script>$x^2$.npy"
    np.save(hostile, data)
    found = vm.write_contributions(hostile, tmp_path / "o.parquet")
    frame = found.to_frame()
    assert list(frame.columns) == ["which", "row", "place", *NEW]
    assert (frame["which"] == "rarest").sum() == 20
    assert frame["row"][0] == found.rarest[0]
    assert "<script>" not in found._repr_html_()
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["score"]["n"] == plain["rows"] == 81
    assert repr(found).startswith("WrittenContributions(paths=(")
    with pytest.raises(ValueError, match="read-only"):
        found.rarest[0] = 1
    np.testing.assert_allclose(np.sort(found.sample), np.sort(vm.contributions(data).values), rtol=1e-9)
    display = found.plot()
    display.figure_.canvas.draw()
    assert display.ax_.get_xlabel() == "samples, by their share"
    pyplot.close(display.figure_)


def test_the_sample_of_many_rows_is_at_even_distances(tmp_path, monkeypatch):
    monkeypatch.setattr(streamed, "SAMPLED", 50)
    data = rows(333, 3)
    np.save(tmp_path / "a.npy", data)
    found = vm.write_contributions(tmp_path / "a.npy", tmp_path / "o.parquet", size=10)
    np.testing.assert_allclose(found.sample, vm.contributions(data).values[::8], rtol=1e-9)


@pytest.mark.parametrize("size", [2, 1000])
def test_a_row_that_is_no_vector_is_named_by_its_place_in_its_file(tmp_path, size):
    np.save(tmp_path / "s1.npy", np.ones((5, 2)))
    np.save(tmp_path / "s2.npy", np.array([[1.0, 2], [3, 4], [np.nan, 1], [1, 1]]))
    with pytest.raises(InputError, match=r"row 2 of '.*s2\.npy'"):
        vm.write_contributions(str(tmp_path / "s*.npy"), tmp_path / "o.parquet", size=size)
    assert not (tmp_path / "o.parquet").exists()


def test_an_option_that_is_not_there_is_named(tmp_path):
    np.save(tmp_path / "s1.npy", np.eye(3))
    with pytest.raises(vm.errors.UnknownNameError, match=r"no option 'sampels'.*'samples'"):
        vm.write_contributions(tmp_path / "s1.npy", tmp_path / "o.parquet", sampels="x")
