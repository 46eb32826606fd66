"""What --json gives, in every form that it takes, against the schema that is shipped; and the schema itself."""

from __future__ import annotations

import copy
import functools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from cli.command_runs import Warm
from vendimeter.cli.output import SCHEMA
from vendimeter.cli.schema import schema_text

SCHEMA_TEXT = json.loads(schema_text())

# Every form of every command; files are those of command_data.samples.
FORMS = {
    "a score": "score captions.txt",
    "a profile": "score captions.txt --q 0,1,2,inf",
    "infinite order": "score captions.txt --q inf",
    "weights": "score sets.csv --column text --weight w",
    "a similarity matrix": "score similarity.npy --kernel precomputed",
    "no bound": "score vectors.npz --column v --kernel rbf --method random-features",
    "a tolerance": "score vectors.npz --column v --kernel rbf --tol 0.01 --method lowrank",
    "removed mass": "score captions.txt --kernel edit",
    "broken records": "score some-broken.jsonl --skip-broken",
    "several files": "score shard-0.npy shard-1.npy --q 2",
    "one item": "score one.txt",
    "groups": "score sets.csv --column text --by set",
    "groups and orders": "score sets.csv --column text --by set --q 0,1,inf",
    "combined labels": "score sets.csv --column text --by set --by w",
    "groups of numbers": "score sets.csv --column text --by w",
    "groups with removed mass": "score sets.csv --column text --by set --kernel edit",
    "an empty group": "score empty-groups.jsonl --column t --by g",
    "means": "score answers.jsonl --groups responses --by model",
    "means of lists by position": "score answers.jsonl --groups responses",
    "means of combined labels": "score answers.jsonl --groups responses --by model --by prompt",
    "a gate": "score captions.txt --fail-under 4",
    "a gate that is not met": "score captions.txt --fail-under 6",
    "a gate of groups": "score empty-groups.jsonl --column t --by g --fail-under 1.5",
    "a gate without a bound": "score vectors.npz --column v --kernel rbf --method random-features --fail-under 1",
    "files compared": "compare captions.txt others.txt",
    "groups compared": "compare sets.csv --column text --by set",
    "intervals and tests": "compare vectors.npz --column v --by g --permutations 19 --seed 4",
    "no tests": "compare vectors.npz --column v --by g --permutations 0 --q inf",
    "weighted groups": "compare vectors.npz --column v --by g --weight w",
    "a refused population": "rarefy captions.txt",
    "a population": "rarefy vectors.npz --column v --repeats 5",
    "weights rarefied": "rarefy sets.csv --column text --weight w --repeats 5",
    "an explanation": "explain captions.txt",
    "an explanation with labels": "explain sets.csv --column text --by set",
    "an explanation with weights": "explain sets.csv --column text --weight w",
    "one part": "explain captions.txt --part duplicates --threshold 0.5 --q 2",
    "an explanation of one item": "explain one.txt",
    "a choice": "select captions.txt -k 3",
    "a choice from groups": "select sets.csv --column text --by set -k 4 --q 2",
    "a choice without comparison": "select captions.txt -k 7 --only --method facility",
    "a plan": "plan captions.txt",
    "a plan with others": "plan vectors.npz --column v --kernel rbf --tol 0.01 --q 0,1",
    "kernels": "kernels",
    "a kernel": "kernels ngram",
}
# Fields to which more may be added at any time: what is in them is not looked at.
FREE = {"diagnostics", "recall", "written", "comparison", "curves", "values"}
# Fields that are not in every result.
OPTIONAL = {"gate", "left_out", "removed_mass", "contributions", "duplicates", "modes", "written", "labels"}


@functools.cache
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(SCHEMA_TEXT)


def run(warm: Warm, samples: Path, form: str) -> Any:
    quiet = [] if FORMS[form].startswith("kernels") else ["--quiet"]
    done = warm(*FORMS[form].split(), "--json", *quiet, cwd=samples)
    assert done.code == (3 if "gate" in form and form != "a gate" else 0), done.err
    # What json.loads takes beyond JSON is refused.
    return json.loads(done.out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to all values, outside of what is free in form; of long lists to the first three."""
    yield path
    if path and path[-1] in FREE:
        return
    items = (
        value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    )
    for key, part in items:
        yield from places(part, (*path, key))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    return functools.reduce(lambda found, key: found[key], path, value)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_as_the_schema_says_and_no_other(form: str, warm: Warm, samples: Path) -> None:
    found = run(warm, samples, form)
    validator().validate(found)
    assert found["schema"] == SCHEMA
    assert found["command"] == FORMS[form].split()[0]
    for path in list(places(found)):
        value = at(found, path)
        if isinstance(value, dict) and not (path and path[-1] in FREE):
            # A field that the schema does not tell of is refused wherever it stands, and so is one that lacks.
            broken = copy.deepcopy(found)
            at(broken, path)["undocumented"] = 1
            assert not validator().is_valid(broken), path
            for key in value.keys() - OPTIONAL:
                broken = copy.deepcopy(found)
                del at(broken, path)[key]
                assert not validator().is_valid(broken), (*path, key)
        elif isinstance(value, bool | int | float) and "group" not in path and "label" not in path:
            broken = copy.deepcopy(found)
            at(broken, path[:-1])[path[-1]] = {"a": 1}
            assert not validator().is_valid(broken), path


def test_the_results_show_that_every_form_was_seen(warm: Warm, samples: Path) -> None:
    def result(form: str) -> Any:
        return run(warm, samples, form)["result"]

    assert result("infinite order")["q"] == "inf"
    assert [row["q"] for row in result("a profile")["profile"]] == [0, 1, 2, "inf"]
    unbound = result("no bound")
    assert (unbound["low"], unbound["high"], unbound["level"]) == (None, None, "none")
    assert result("removed mass")["diagnostics"]["removed_mass"] >= 0
    assert result("broken records")["diagnostics"]["left_out"] == 1
    empty = result("an empty group")["groups"][1]
    assert empty == {
        "group": "empty", "n": 0, "q": 1, "score": None, "low": None, "high": None, "level": "none"
    }  # fmt: skip
    assert result("combined labels")["groups"][0]["group"] == ["x", "1"]
    means = result("means")
    assert (means["unit"], means["left_out"], len(means["differences"])) == ("prompt", 1, 1)
    assert result("means of lists by position")["unit"] is None
    assert result("a refused population")["population"]["interval"] is None
    assert result("a refused population")["population"]["refused"]["values"]["needed"] == 100
    low, high = result("a population")["population"]["interval"]
    assert low < result("a population")["score"]["score"] < high
    assert result("groups compared")["rarefied_low"] == [None, None, None]
    assert result("weighted groups")["size"] is None
    assert result("an explanation of one item")["contributions"]["leave_one_out"] == [None]
    assert result("an explanation with labels")["modes"]["labels"] == ["x", "y", "=2"]
    assert result("a choice from groups")["labels"] is not None
    assert result("a choice without comparison")["whole"] is None


def test_gates_and_warnings_are_in_the_envelope(warm: Warm, samples: Path, tmp_path: Path) -> None:
    found = {
        form: run(warm, samples, form).get("gate") for form in FORMS if "gate" in form or form == "a score"
    }
    assert found.pop("a score") is None
    assert [(gate["met"], gate["failed"]) for gate in found.values()] == [
        (True, []), (False, []), (False, ["empty"]), (False, [])
    ]  # fmt: skip
    assert found["a gate without a bound"]["lowest"] is None
    assert found["a gate of groups"]["lowest"] is None
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((600, 40)))
    line = "score x.npy --kernel rbf --tol 1e-3 --method lowrank --memory 105MB --json"
    done = warm(*line.split(), cwd=tmp_path)
    validator().validate(done.envelope)
    assert len(done.envelope["warnings"]) == 1
    assert done.envelope["warnings"][0] in done.said


def test_merged_sums_and_what_is_written_beside_rows(warm: Warm, samples: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    for line in (
        f"score {samples}/shard-0.npy --save a.vendi --json",
        f"score {samples}/vectors.npz --column v --by g --save b.vendi --json",
        "merge a.vendi --json",
        "merge a.vendi --q 0,inf --json",
        "merge b.vendi --fail-under 1 --json",
        f"explain {samples}/vectors.npz --column v --write c.parquet --json",
    ):
        found = warm(*line.split(), cwd=tmp_path).envelope
        validator().validate(found)
    assert found["result"]["written"]["rows"] == 120


def test_infinite_and_missing_numbers_are_null() -> None:
    from vendimeter.cli.options import Output
    from vendimeter.cli.output import Answer, render

    values = {
        "a": math.nan,
        "b": [math.inf, -math.inf, 1.0],
        "c": np.array([np.nan, 2]),
        "d": np.float32(0.5),
        "e": True,
    }
    found = json.loads(render(Answer("score", values), Output("json")))["result"]
    assert found == {"a": None, "b": [None, None, 1.0], "c": [None, 2.0], "d": 0.5, "e": True}


# ------------------------------------------------------------------------------------------------------- the schema


def objects(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """All parts of the schema that tell of an object, with where they stand."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield path, schema
        for key, part in schema.items():
            yield from objects(part, f"{path}/{key}")
    elif isinstance(schema, list):
        for i, part in enumerate(schema):
            yield from objects(part, f"{path}/{i}")


def test_the_schema_is_strict_and_every_field_has_a_description(warm: Warm, tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA_TEXT)
    found = dict(objects(SCHEMA_TEXT))
    assert len(found) > 20
    free = {path.rpartition("/")[2] for path, part in found.items() if "additionalProperties" not in part}
    assert free == {"result", "diagnostics", "recall", "written", "values"}
    for path, part in found.items():
        for name, field in part.get("properties", {}).items():
            assert field.keys() & {"description", "$ref"}, f"{path}: {name}"
        if "properties" in part:
            assert set(part.get("required", ())) <= set(part["properties"]), path
    printed = warm("schema", cwd=tmp_path)
    assert (printed.code, printed.err) == (0, "")
    assert json.loads(printed.out) == SCHEMA_TEXT
    assert SCHEMA_TEXT["$id"] == SCHEMA


def test_every_command_that_gives_json_is_in_the_schema() -> None:
    from vendimeter.cli.commands import COMMANDS, vendi

    given = {
        name
        for name in COMMANDS
        if any("--json" in option.opts for option in vendi.get_command(None, name).params)  # type: ignore[union-attr, arg-type]
    }
    assert given == set(SCHEMA_TEXT["properties"]["command"]["enum"])
