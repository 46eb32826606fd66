"""The help of every command: quick, with examples that run as they are written; and completion in three shells."""

from __future__ import annotations

import ast
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cli import command_data
from cli.command_runs import SCRIPT, Warm, environment, vendi
from vendimeter.cli import options
from vendimeter.cli.commands import COMMANDS
from vendimeter.cli.commands import vendi as command

ALL = {name: command.get_command(None, name) for name in COMMANDS}  # type: ignore[arg-type]
EXAMPLES = {name: list(one.examples) for name, one in ALL.items()}  # type: ignore[union-attr]


# ------------------------------------------------------------------------------------------------------------- help


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_every_help_has_examples_line_by_line(name: str, tmp_path: Path, warm: Warm) -> None:
    done = warm(*name.split(), "--help", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    lines = [line.strip() for line in done.out.split("Examples:\n")[1].splitlines()]
    assert len(lines) > 1 or name in ("schema", "completion", "demo")
    if name:
        assert lines == [" ".join(example.split("\n")) for example in EXAMPLES[name]]
        assert warm(name, "-h", cwd=tmp_path) != done
        for option in ALL[name].params:  # type: ignore[union-attr]
            if option.param_type_name == "option":  # what the command refuses is not in its help
                assert (f"{option.opts[-1]} " in done.out) is not getattr(option, "hidden", False)
    else:
        assert all(f"\n  {one} " in done.out for one in COMMANDS)
        assert "0 well, 1 a failure, 2 bad input or usage, 3 a gate that was not met" in " ".join(
            done.out.split()
        )


@pytest.mark.parametrize(
    "line", ["--help", "--version", "score --help", "report --help", "kernels -h", "completion zsh"]
)
def test_help_imports_nothing_that_takes_time(line: str, tmp_path: Path) -> None:
    program = (
        f"import sys; sys.argv = ['vendi', *{line.split()!r}]\n"
        "from vendimeter.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=environment(),
    )
    loaded = set(ast.literal_eval(done.stderr.splitlines()[-1]))
    assert "click" in loaded
    assert not loaded & {
        "numpy",
        "scipy",
        "rich",
        "pandas",
        "pyarrow",
        "torch",
        "sklearn",
        "rdkit",
        "PIL",
        "jinja2",
    }


def test_version(tmp_path: Path) -> None:
    import vendimeter as vm

    assert vendi("--version", cwd=tmp_path).out == f"vendi, version {vm.__version__}\n"


# --------------------------------------------------------------------------------------------------------- examples


@pytest.fixture(scope="module")
def shelves(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the examples name."""
    image = pytest.importorskip("PIL.Image")
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder = tmp_path_factory.mktemp("shelves")
    rng = np.random.default_rng(3)
    X = rng.standard_normal((1001, 4)).astype(np.float32)
    for name in ("captions.txt",):
        (folder / name).write_text("\n".join(command_data.CAPTIONS * 15) + "\n", encoding="utf-8")
    (folder / "molecules.smi").write_text("\n".join(command_data.MOLECULES * 11) + "\n")
    for name in ("test.smi", "generated.smi"):
        (folder / name).write_text("\n".join([*command_data.MOLECULES, "C1CC"]) + "\n")
    command_data.table(folder / "answers.csv", ("text", "model", "set"), command_data.SETS)
    command_data.lines(folder / "answers.jsonl", command_data.answers())
    command_data.lines(folder / "x.jsonl", [{"text": text} for text in command_data.CAPTIONS])
    np.save(folder / "embeddings.npy", X)
    np.savez(
        folder / "digits.npz",
        picture=rng.integers(0, 255, (40, 8, 8), dtype=np.uint8),
        digit=np.arange(40) % 4,
    )
    rows = {
        "embedding": X[:60].tolist(),
        "caption": [f"item {i}" for i in range(60)],
        "model": ["a", "b"] * 30,
    }
    parquet.write_table(pa.table(rows), folder / "embeddings.parquet")
    for name in ("shards", "part1", "part2", "images", "real", "gan", "diffusion", "generated"):
        (folder / name).mkdir()
    for i, part in enumerate(np.split(X[:60], 3)):
        np.save(folder / "shards" / f"{i}.npy", part)
        parquet.write_table(
            pa.table({"embedding": part.tolist(), "model": ["a", "b"] * 10}),
            folder / "shards" / f"{i}.parquet",
        )
        np.save(folder / f"part{i % 2 + 1}" / f"{i}.npy", part)
    for place in ("images/cats", "images/dogs", "real", "gan", "diffusion", "generated"):
        (folder / place).mkdir(exist_ok=True)
        for i in range(3):
            picture = image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8))
            picture.save(folder / place / f"{i}.png")
    return folder


def runnable(name: str) -> list[str]:
    """Examples of a command, without those that need a shell's start-up files or a program that is not ours."""
    return [one for one in EXAMPLES[name] if "~/" not in one and "check-jsonschema" not in one]


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "demo"])
def test_examples_run_as_they_are_written(name: str, shelves: Path, warm: Warm) -> None:
    if name in ("score", "compare", "select", "plan"):
        pytest.importorskip("rdkit")
    for example in runnable(name):
        line = example.partition("  #")[0].strip()
        given = b""
        if line.startswith("cat "):
            source, _, line = line.partition(" | ")
            given = (shelves / source.split()[1]).read_bytes()
        before, _, _ = line.partition(" > ")
        words = shlex.split(before)
        assert words.pop(0) == "vendi"
        done = warm(*words, cwd=shelves, input=given)
        assert done.code == (3 if "--fail-under" in line else 0), (example, done.err)
        assert done.out or "-o" in words, example
    if name == "merge":
        whole = warm("score", "shards/?.npy", "--json", cwd=shelves).result["score"]
        parts = warm("merge", "part1.vendi", "part2.vendi", "--json", cwd=shelves).result["score"]
        assert parts == pytest.approx(whole, rel=1e-12)


def test_the_examples_that_are_not_run_are_few() -> None:
    skipped = [one for name in COMMANDS for one in EXAMPLES[name] if one not in runnable(name)]
    assert len(skipped) == 4
    assert {one.split()[1] for one in EXAMPLES["demo"]} == {"demo"}  # run by test_writing


# ------------------------------------------------------------------------------------------------------- completion


def completed(words: str, shell: str, folder: Path, warm: Warm) -> list[str]:
    """What a shell is told for the last word of a line."""
    parts = words.split(" ")
    env = {"_VENDI_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(parts) - 1)}
    if shell == "fish":
        env["COMP_CWORD"] = parts[-1]
    done = vendi(cwd=folder, **env) if warm is None else warm(cwd=folder, **env)
    assert done.code == 0, done.err
    if shell == "zsh":
        return done.out.split("\n")[1::3]
    return [line.partition(",")[2].partition("\t")[0] for line in done.out.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, tmp_path: Path, warm: Warm) -> None:
    def found(words: str) -> set[str]:
        return set(completed(words, shell, tmp_path, warm))

    assert found("vendi ") == set(COMMANDS)
    assert found("vendi s") == {"score", "select", "schema"}
    assert {"--kernel", "--kind"} <= found("vendi score --k")
    assert found("vendi score --kernel ") == set(options.KERNELS)
    assert found("vendi score --kernel in") == {"inception", "inception-fid"}
    assert found("vendi compare --kind to") == {"tokens"}
    assert found("vendi score --method l") == {"lowrank", "lanczos"}
    assert found("vendi select --method ") == {"vendi", "logdet", "farthest", "facility", "random"}
    assert found("vendi explain --table ") == {"rarest", "redundant", "copies", "modes"}
    assert found("vendi explain --part d") == {"duplicates"}
    assert found("vendi kernels ng") == {"ngram"}
    assert found("vendi completion ") == {"bash", "zsh", "fish"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_for_shells(shell: str, tmp_path: Path) -> None:
    done = vendi("completion", shell, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert f"_VENDI_COMPLETE={shell}_complete" in done.out
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(done.out)
    subprocess.run([program, "-n", str(script)], check=True, capture_output=True)
    if shell == "bash":
        line = (
            f'PATH="{Path(SCRIPT).parent}:$PATH"; source ./script; COMP_WORDS=(vendi sc); COMP_CWORD=1; '
            "_vendi_completion vendi; echo ${COMPREPLY[@]}"
        )
        done = subprocess.run(
            [program, "-c", line], cwd=tmp_path, capture_output=True, text=True, env=environment()
        )
        assert done.stdout == "score schema\n", done.stderr


def test_completion_of_files(tmp_path: Path, warm: Warm) -> None:
    env = {"_VENDI_COMPLETE": "bash_complete", "COMP_WORDS": "vendi score cap", "COMP_CWORD": "2"}
    assert warm(cwd=tmp_path, **env).out == "file,cap\n"
    assert json.dumps(os.listdir(tmp_path)) == "[]"
