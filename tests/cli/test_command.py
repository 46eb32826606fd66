"""The command, run as a user runs it: in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import vendimeter as vm
from cli.command_runs import Warm

WARM = Warm()


@pytest.fixture(autouse=True, scope="module")
def closed():
    yield
    WARM.close()


def vendi(*arguments, input=""):
    """How a run ended, in the names of `subprocess`; all paths are given in full."""
    done = WARM(*arguments, cwd=Path.cwd(), input=input)
    return SimpleNamespace(returncode=done.code, stdout=done.out, stderr=done.err)


def result(done):
    """What --json gave, without the envelope."""
    assert done.stdout, done.stderr
    return json.loads(done.stdout)["result"]


@pytest.fixture
def captions(tmp_path):
    path = tmp_path / "captions.txt"
    path.write_text("a man rides a wave\n\na man rides a wave\nan octopus opens a jar\n", encoding="utf-8")
    return path


def test_a_text_file_is_scored_by_ngrams_and_says_so(captions):
    done = vendi("score", captions)
    assert done.returncode == 0
    expected = vm.score(captions.read_text().split("\n")[::2][:1] * 2 + ["an octopus opens a jar"], "ngram")
    assert f"Vendi Score: {expected:.4f}" in done.stdout
    assert "out of 3" in done.stdout
    assert "taken for texts, compared by the kernel NGram(1, 4) (a guess" in done.stderr


def test_a_tolerance_a_method_and_memory_can_be_given(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.random.default_rng(0).standard_normal((600, 700)))
    result = vendi("score", path, "--tol", "1e-2", "--method", "lanczos", "--memory", "300MB")
    assert result.returncode == 0
    assert "lies between" in result.stdout
    assert "with 95% confidence" in result.stdout
    result = vendi(
        "score", path, "--kernel", "rbf", "--tol", "1e-3", "--method", "lowrank", "--memory", "105MB"
    )
    assert (result.returncode, result.stderr.count("Warning:")) == (0, 1)
    assert (
        "Nothing is claimed" in vendi("score", path, "--kernel", "rbf", "--method", "random-features").stdout
    )
    for arguments, message in [
        (["--tol", "2"], "expected a relative half-width"),
        (["--method", "guess"], "no method 'guess'"),
        (["--memory", "much"], "expected a number of bytes"),
        (["--method", "lanczos", "--q", "0"], "cannot answer q=0"),
    ]:
        result = vendi("score", path, *arguments)
        assert result.returncode == 2
        assert message in " ".join(result.stderr.split())


def test_json_goes_to_standard_output_alone(captions):
    done = vendi("score", captions, "--q", "0,1,inf", "--json")
    data = result(done)
    assert [row["q"] for row in data["profile"]] == [0, 1, "inf"]
    assert all(row["low"] <= row["score"] <= row["high"] for row in data["profile"])


def test_groups_of_an_archive(tmp_path):
    X = np.random.default_rng(0).standard_normal((20, 3, 2))
    np.savez(tmp_path / "x.npz", pixels=X, label=np.arange(20) % 2)
    done = vendi("score", tmp_path / "x.npz", "--by", "label", "--json")
    expected = vm.score_groups(X.reshape(20, -1), by=np.arange(20) % 2)
    assert [row["score"] for row in result(done)["groups"]] == expected.scores.tolist()
    assert vendi("score", tmp_path / "x.npz", "--by", "label").stdout.startswith("group  items  score")


@pytest.mark.parametrize(("name", "content", "arguments", "score"), [
    ("t.csv", "a,b,who\n1,0,x\n0,1,x\n2,0,y\n", ["--by", "who"], [2.0, 1.0]),
    ("t.tsv", "a\tb\n1\t0\n0\t1\n", ["--kernel", "cosine"], 2.0),
    ("t.jsonl", '{"v": [1, 0]}\n{"v": [0, 2]}\n', [], 2.0),
    ("t.csv", "word,n\nx,1\ny,2\n", ["--column", "word", "--kernel", "match"], 2.0),
])  # fmt: skip
def test_tables(tmp_path, name, content, arguments, score):
    (tmp_path / name).write_text(content, encoding="utf-8")
    done = vendi("score", tmp_path / name, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    data = result(done)
    found = [row["score"] for row in data["groups"]] if "groups" in data else data["score"]
    assert found == pytest.approx(score)


@pytest.mark.parametrize(("name", "content", "arguments", "message"), [
    (None, b"", [], "there is no file"),
    ("a.xyz", b"1", [], "expected one of .txt"),
    ("a.txt", b"", [], "holds no samples"),
    ("a.txt", b"\xff\xfe\xfa", [], "is UTF-16 text; expected UTF-8"),
    ("a.txt", b"a\n\xe9\n", [], "line 2 of"),
    ("a.csv", b"a,b\n1\n", [], "line 2 of"),
    ("a.csv", b"a,b\nx,y\n", [], "--column"),
    ("a.csv", b"a,b\n1,2\n", ["--column", "c"], "no column"),
    ("a.jsonl", b'{"a": 1}\n{"a": \n', [], "line 2 of"),
    ("a.jsonl", b'{"a": 1}\n{"b": 1}\n', [], "has no field"),
    ("a.npy", b"rubbish", [], "could not be read as a NumPy file"),
    ("a.txt", b"x\ny\n", ["--kernel", "ngrams"], "Did you mean 'ngram'"),
    ("a.csv", b"1,2\n3,4\n", [], "holds numbers; expected the names"),
    ("a.csv", b"a;b\n1;2\n", [], "separated by ','"),
    ("a.csv", b"x,y\n1,2\n,4\n", [], "line 3 of"),
    ("a.csv", b"t,g\nx,1\ny,2\n", ["--column", "t", "--by", "t"], "both name 't'"),
    ("a.jsonl", b'{"t": ["x", "y"]}\n{"t": ["z"]}\n', ["--tol", "1e-2"], "groups are scored exactly"),
    ("a.jsonl", b'{"t": {"x": 1}}\n', [], "which the command cannot tell"),
    ("a.smi", b"CCO\nC1CC\n", [], "item 1 (line 2 of"),
    ("a.smi", b"C1CC\n", ["--skip-broken"], "all 1 records are broken"),
    ("a.fasta", b"ACGT\n", [], "line 1 of"),
    ("a.parquet", b"PAR1rubbish", [], "Parquet"),
    ("a.txt", b"x\n", ["--kind", "dogs"], "no kind 'dogs'"),
    ("a", b"x\n", ["--format", "word"], "no format 'word'"),
    ("a.csv", b"x,w\na,1\nb,much\n", ["--column", "x", "--weight", "w"], "line 3 of"),
    ("a.png", b"no picture", [], "a.png"),
    ("a.jsonl", b'{"v": [1, 2]}\n{"v": [1]}\n', [], "expected one length"),
    ("a.jsonl", b'{"v": ' + b"[" * 100000 + b"\n", [], "nested too deeply"),
    ("a.npz", b"PK\x03\x04rubbish", [], "could not be read"),
    ("a.txt", b"x\ny\n", ["--kernel", "cosine"], "the items are strings"),
    ("a.csv", b"a,b\n1,0.5\n0.5,1\n", [], "looks like a similarity matrix"),
    ("a.txt", b"x\ny\n", ["--q", "minus"], "is not an order"),
    ("a.csv", b"a\n1\n2\n", ["--kernel", "cosine"], "for plain numbers use"),
    ("a.txt", b"(C1CC)O\nC1(CC\nCC(C\n", ["--kind", "molecules"], "cannot be parsed as SMILES"),
])  # fmt: skip
def test_bad_input_ends_with_a_message_and_exit_code_2(tmp_path, name, content, arguments, message):
    path = tmp_path / (name or "missing.txt")
    if name:
        path.write_bytes(content)
    done = vendi("score", path, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_pickle_in_a_numpy_file_is_never_loaded(tmp_path):
    np.save(tmp_path / "evil.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    done = vendi("score", tmp_path / "evil.npy")
    assert done.returncode == 2
    assert "never unpickled" in done.stderr


def test_labels_are_data_not_escape_codes(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"t,g\nx,\x1b[31mred\ny,c1cc[nH]c1\n")
    done = vendi("score", tmp_path / "a.csv", "--column", "t", "--by", "g")
    assert "\x1b" not in done.stdout + done.stderr
    assert "c1cc[nH]c1" in done.stdout
    assert "\\x1b[31mred" in done.stdout


def test_help_and_version_answer():
    assert "vendi score captions.txt" in vendi("--help").stdout
    assert vm.__version__ in vendi("--version").stdout
    assert vendi("score").returncode == 2


def test_labels_of_a_table_are_kept_as_they_are_written(tmp_path):
    (tmp_path / "a.csv").write_text(
        "id,t\n007,x\n7,x\n9007199254740992,x\n9007199254740993,x\n", encoding="utf-8"
    )
    done = vendi("score", tmp_path / "a.csv", "--column", "t", "--by", "id", "--json")
    labels = [row["group"] for row in result(done)["groups"]]
    assert labels == ["007", "7", "9007199254740992", "9007199254740993"]


def test_only_line_ends_end_a_line(tmp_path):
    (tmp_path / "a.txt").write_text("one\u2028caption\nanother\x0bcaption\n", encoding="utf-8")
    assert "out of 2" in vendi("score", tmp_path / "a.txt").stdout
    (tmp_path / "a.jsonl").write_text('{"t": "one\u2028caption"}\n{"t": "other"}\n', encoding="utf-8")
    assert "out of 2" in vendi("score", tmp_path / "a.jsonl").stdout
    (tmp_path / "A.TSV").write_text("a\tb\n1\t2\n3\t1\n", encoding="utf-8")
    assert "rows of the 2 columns a, b" in vendi("score", tmp_path / "A.TSV").stderr


def test_help_shows_its_examples_line_by_line():
    for arguments in (["--help"], ["score", "--help"]):
        lines = [line.strip() for line in vendi(*arguments).stdout.splitlines()]
        assert "vendi score captions.txt" in lines


def shown(done):
    """What was printed, on one line: the terminal's width does not matter."""
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split()), " ".join(done.stderr.split())


def test_lists_of_texts_are_groups(tmp_path):
    answers = {"colour?": ["red", "red"], "number?": ["one", "two"]}
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps({"p": p, "a": a}) + "\n" for p, a in answers.items()))
    out, about = shown(vendi("score", path, "--column", "a", "--by", "p"))
    assert "number? 2 2.00" in out
    assert "colour? 2 1.00" in out
    assert "2 lists, grouped by p" in about
    assert "lists of texts, each a group" in about


def test_many_groups_are_summed_up(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps({"a": [f"w{i}", "x"]}) + "\n" for i in range(100)))
    out, _ = shown(vendi("score", path))
    assert out.startswith("Mean over 100 groups: 2.0000 ± 0 (standard error)")
    assert "… 80 more in between; --json and --csv have all" in out


def test_a_folder_of_pictures(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for label in ("cat", "dog"):
        (tmp_path / label).mkdir()
        for i in range(3):
            image.fromarray(rng.integers(0, 255, (40, 50, 3), dtype=np.uint8)).save(
                tmp_path / label / f"{i}.png"
            )
    (tmp_path / "dog" / "broken.png").write_bytes(b"no picture")
    done = vendi("score", tmp_path)
    assert done.returncode == 2
    assert "broken.png" in " ".join(done.stderr.split())
    out, about = shown(vendi("score", tmp_path, "--by", "label", "--skip-broken"))
    assert out.startswith("group items score")
    assert "cat 3 " in out
    assert "6 items, grouped by label" in about
    assert "taken for images, compared by the kernel Pixels(" in about
    assert "1 broken record was left out" in about


def test_shards_and_standard_input(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X = np.random.default_rng(0).standard_normal((40, 5)).astype(np.float32)
    for i, part in enumerate(np.split(X, 2)):
        parquet.write_table(pa.table({"name": ["x"] * 20, "v": part.tolist()}), tmp_path / f"{i}.parquet")
    expected = f"Vendi Score: {vm.score(X):.4f}"
    assert expected in shown(vendi("score", tmp_path / "*.parquet", "--column", "v"))[0]
    assert expected in shown(vendi("score", *sorted(tmp_path.glob("*.parquet")), "--column", "v"))[0]
    lines = "".join(json.dumps({"v": row.tolist()}) + "\n" for row in X)
    out, about = shown(vendi("score", "-", input=lines))
    assert expected in out
    assert about.startswith("standard input: taken for vectors")
    assert "40 items" in about
    assert "out of 7" in shown(vendi("score", "-", "--limit", "7", input=lines))[0]


def test_weights_kinds_and_broken_molecules(tmp_path):
    (tmp_path / "a.csv").write_text("s,w\nCCO,1\nCCO,1\nc1ccccc1,2\nC1CC,1\n")
    path = tmp_path / "a.csv"
    out, about = shown(vendi("score", path, "--column", "s", "--weight", "w", "--skip-broken"))
    assert "Vendi Score: 2.0000" in out
    assert "taken for molecules, compared by the kernel Morgan(radius=2, bits=1024" in about
    assert "(a guess: the texts are SMILES" in about
    assert "line 5 of" in about
    out, about = shown(vendi("score", path, "--column", "s", "--kind", "texts"))
    assert "taken for texts, compared by the kernel NGram(1, 4) (--kernel changes" in about
    assert "out of 4" in out


def test_records_that_are_too_large(tmp_path):
    records = [{"t": "a dog", "v": [1, 0]}, {"t": "x" * 2000, "v": [1, 1]}, {"t": "a boat", "v": [0, 1]}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    done = vendi("score", tmp_path / "a.jsonl", "--column", "t", "--max-record", "1KiB")
    assert done.returncode == 2
    assert "line 2 of" in " ".join(done.stderr.split())
    assert "unless max_record (--max-record) is raised" in " ".join(done.stderr.split())
    options = ["--max-record", "1 kib", "--skip-broken"]
    out, about = shown(vendi("score", tmp_path / "a.jsonl", "--column", "t", *options))
    assert "out of 2" in out
    assert "1 broken record was left out" in about
    written = ["--write", tmp_path / "out.parquet", "--column", "v", *options]
    shown(vendi("explain", tmp_path / "a.jsonl", *written))
    assert len(vm.read(tmp_path / "out.parquet", samples="v")) == 2
    assert (
        "out of 3" in shown(vendi("score", tmp_path / "a.jsonl", "--column", "t", "--max-record", "2MiB"))[0]
    )


def test_more_than_fits_is_streamed(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from vendimeter.cli import inputs
    from vendimeter.cli.commands import vendi as command

    X = np.random.default_rng(0).standard_normal((10_000, 4))
    np.savez(tmp_path / "x.npz", v=X, label=np.arange(10_000) % 3)
    arguments = ["score", str(tmp_path / "x.npz"), "--column", "v", "--json"]
    calls = []
    update = vm.Accumulator.update
    monkeypatch.setattr(inputs, "MAX_ITEMS_IN_MEMORY", 16)
    monkeypatch.setattr(
        vm.Accumulator, "update", lambda self, batch, **more: (calls.append(len(batch)), update(self, batch, **more))
    )  # fmt: skip
    done = CliRunner().invoke(command, arguments)
    assert result(done)["score"] == pytest.approx(float(vm.score(X)), rel=1e-12)
    assert calls[:2] == [4096, 4096]
    done = CliRunner().invoke(command, [*arguments, "--by", "label"])
    expected = vm.score_groups(X, by=np.arange(10_000) % 3)
    assert [row["score"] for row in result(done)["groups"]] == pytest.approx(
        expected.scores.tolist(), rel=1e-12
    )
    whole = CliRunner().invoke(command, [*arguments, "--kernel", "rbf", "--limit", "200"])
    assert result(whole)["score"] == pytest.approx(float(vm.score(X[:200], "rbf")), rel=1e-12)


def test_answers_that_come_again_are_groups_where_each_list_has_a_label(tmp_path):
    rows = [{"prompt": f"p{i}", "a": ["yes", "no", "yes", ["yes", "maybe"][i % 2]]} for i in range(6)]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out, about = shown(vendi("score", path, "--column", "a", "--by", "prompt"))
    assert "p1 4 2.828" in out
    assert "each a group with a label of its own" in about


def test_columns_of_standard_input_need_a_form():
    table = "text,label\na dog,x\na dog,y\n"
    done = vendi("score", "-", "--column", "text", input=table)
    assert done.returncode == 2
    assert "taken for lines of text, and the column 'text' is named" in " ".join(done.stderr.split())
    out, _ = shown(vendi("score", "-", "--column", "text", "--format", "csv", input=table))
    assert "Vendi Score: 1.0000" in out
    done = vendi("score", "-", "-", input=table)
    assert "standard input is named more than once" in " ".join(done.stderr.split())


def test_a_guess_is_in_the_error_that_follows_from_it(tmp_path):
    (tmp_path / "a.txt").write_text("CCO\nCC(=O)O\nC1CC\n")
    done = vendi("score", tmp_path / "a.txt")
    assert done.returncode == 2
    assert "The samples were taken for molecules" in " ".join(done.stderr.split())
    (tmp_path / "b.txt").write_text("(555)123-4567\n(555)123-4568\n")
    assert "taken for texts" in shown(vendi("score", tmp_path / "b.txt"))[1]


def test_a_column_of_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1.5\n2.5\n9\n")
    out, about = shown(vendi("score", tmp_path / "a.csv"))
    assert f"Vendi Score: {vm.score([1.5, 2.5, 9.0], 'rbf'):.4f}" in out
    assert "taken for numbers, compared by the kernel RBF(" in about


def test_removed_mass_and_records_left_out_are_said(tmp_path):
    letters = np.random.default_rng(0).integers(0, 4, (30, 5))
    words = ["".join("abcd"[k] for k in row[: 3 + i % 3]) for i, row in enumerate(letters)]
    lines = "".join(f"{json.dumps({'t': w, 'g': i % 2})}\n" for i, w in enumerate(words)) + "{\n"
    (tmp_path / "w.jsonl").write_text(lines)
    score = vm.score(words, "edit")
    assert score.diagnostics["removed_mass"] > 0
    arguments = ["score", tmp_path / "w.jsonl", "--column", "t", "--kernel", "edit", "--skip-broken"]
    out, about = shown(vendi(*arguments))
    assert f"Negative eigenvalues of mass {score.diagnostics['removed_mass']:.2g} were left out." in out
    assert "1 broken record was left out, such as this: line 31 of" in about
    assert result(vendi(*arguments, "--json"))["diagnostics"]["left_out"] == 1
    groups = result(vendi(*arguments, "--by", "g", "--json"))
    assert groups["left_out"] == 1
    assert {row["removed_mass"] >= 0 for row in groups["groups"]} == {True}


def test_the_help_names_all_kinds_and_kernels():
    from vendimeter.cli import options
    from vendimeter.encoders import by_name
    from vendimeter.io import kinds

    assert set(options.KINDS) == set(kinds.KINDS) - {"table"}
    assert set(options.KERNELS) == (set(vm.kernels.by_name()) | set(by_name())) - {
        "tanimoto", "pictures", "timm", "transformer",  # those have no usual model
    }  # fmt: skip


@pytest.mark.parametrize(("text", "kernel"), [
    ("ngram(1, 2)", vm.kernels.NGram(1, 2)),
    ("ngram(1, high=2, lowercase=False)", vm.kernels.NGram(1, 2, lowercase=False)),
    ("tags(separator=';')", vm.kernels.Tags(separator=";")),
    ("probability-product(logits=True)", vm.kernels.ProbabilityProduct(logits=True)),
    ("match()", vm.kernels.Match()),
    ("rbf", vm.kernels.RBF()),
])  # fmt: skip
def test_kernels_with_parameters(text, kernel):
    from vendimeter.cli.inputs import kernel_of

    assert kernel_of(text) == kernel


@pytest.mark.parametrize(("text", "message"), [
    ("ngram(1", "cannot be read"),
    ("ngram(__import__('os').system('true'))", "cannot be read"),
    ("ngram(lowercas=True)", "lowercas"),
    ("ngrams(1)", "Did you mean 'ngram'"),
    ("ngram(0, 2)", "1 ≤ low ≤ high"),
    ("(1)", "cannot be read"),
    ("cosine**99999999", "cannot be read"),
    ("[" * 3000, "cannot be read"),
])  # fmt: skip
def test_bad_kernels(text, message):
    from vendimeter.cli.inputs import kernel_of

    with pytest.raises(vm.errors.InputError, match=message.replace("(", r"\(")):
        kernel_of(text)


def test_the_kind_of_a_table_of_numbers_can_be_said(tmp_path):
    p = np.random.default_rng(0).dirichlet(np.ones(10), 30)
    names = ",".join(f"p{k}" for k in range(10))
    np.savetxt(tmp_path / "p.csv", p, delimiter=",", header=names, comments="")
    expected = f"Vendi Score: {vm.score(p, 'probability-product'):.4f}"
    for more in ([], ["--kind", "probabilities"]):
        out, about = shown(vendi("score", tmp_path / "p.csv", *more))
        assert expected in out
        assert "taken for probabilities" in about
    out, about = shown(vendi("score", tmp_path / "p.csv", "--kind", "vectors"))
    assert f"Vendi Score: {vm.score(p, vm.kernels.Cosine()):.4f}" in out


def test_small_pictures_score_the_same_from_an_archive_and_a_folder(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pictures = np.random.default_rng(0).integers(0, 255, (5, 12, 10), dtype=np.uint8)
    (tmp_path / "f").mkdir()
    for i, picture in enumerate(pictures):
        image.fromarray(picture).save(tmp_path / "f" / f"{i}.png")
    np.savez(tmp_path / "a.npz", pictures)
    expected = f"Vendi Score: {vm.score(pictures.reshape(5, -1)):.4f}"
    for source in ("f", "a.npz"):
        out, about = shown(vendi("score", tmp_path / source))
        assert expected in out
        assert "(12, 10))" in about


def test_groups_of_two_columns(tmp_path):
    (tmp_path / "a.csv").write_text("t,a,b\nx,1,1\ny,1,1\nx,1,2\nx,2,1\n")
    out, about = shown(vendi("score", tmp_path / "a.csv", "--column", "t", "--by", "a", "--by", "b"))
    assert "2 2.00" in out
    assert "grouped by a and b" in about


def test_what_is_skipped_does_not_depend_on_where_it_stands(tmp_path):
    rows = [f"{k % 3},{k}" for k in range(50)]
    for name, at in (("early", 3), ("late", 45)):
        lines = [*rows[:at], "oops,1", ",2", *rows[at:]]
        (tmp_path / f"{name}.csv").write_text("v,k\n" + "\n".join(lines) + "\n")
        out, about = shown(vendi("score", tmp_path / f"{name}.csv", "--column", "v", "--skip-broken"))
        assert "out of 50" in out
        assert "taken for numbers" in about
        assert "2 broken records were left out" in about


def test_a_kernel_says_what_samples_are(tmp_path):
    codes = [str(i) for i in range(4500)] + [f"A{i}" for i in range(500)]
    (tmp_path / "codes.csv").write_text("code\n" + "\n".join(codes) + "\n")
    assert "Vendi Score: 5000.0000" in shown(vendi("score", tmp_path / "codes.csv", "--kernel", "match"))[0]
    done = vendi("score", tmp_path / "codes.csv")
    assert "line 4502 of" in done.stderr
    (tmp_path / "tags.jsonl").write_text('{"t": ["a", "b"]}\n{"t": ["c"]}\n')
    assert "Vendi Score: 2.0000" in shown(vendi("score", tmp_path / "tags.jsonl", "--kernel", "tags"))[0]


def test_parameters_of_encoders_are_not_thrown_away():
    from vendimeter.cli.inputs import kernel_of

    kernel = kernel_of("sentences('my/model', batch_size=2)")
    assert (kernel.encoder.model, kernel.encoder.batch_size) == ("my/model", 2)
    assert kernel_of("sentences", "my/model").encoder.model == "my/model"


def test_a_broken_picture_is_named_with_the_way_out(tmp_path):
    (tmp_path / "a.png").write_bytes(b"junk")
    done = vendi("score", tmp_path)
    assert done.returncode == 2
    assert "a.png" in done.stderr
    assert "--skip-broken" in done.stderr
