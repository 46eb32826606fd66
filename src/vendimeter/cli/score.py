"""Scores in words and tables."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vendimeter.cli import options
from vendimeter.cli.commands import GateError
from vendimeter.cli.options import Command, Output, Reading, Running, Similarity, Solving, option
from vendimeter.cli.output import Answer
from vendimeter.errors import InputError, brief, digits
from vendimeter.present.terminal import say

if TYPE_CHECKING:
    from vendimeter.cli.inputs import Input
    from vendimeter.cli.output import Answer, Sheet

__all__ = ["answer_of", "check", "check_gate", "gate_of", "score", "words_and_tables"]


# --------------------------------------------------------------------------------------------------------------- gates

# --fail-under: whether the score is at least what was asked for, for certain.

NAMED = 5  # groups that a message names


def check_gate(least: float | None, orders: Any) -> None:
    """Refuse what can be no gate, before anything is read."""
    if least is not None and not math.isfinite(least):
        raise InputError(f"--fail-under {least:g}; expected a finite number, such as 12.5.")
    if least is not None and isinstance(orders, list):
        raise InputError("--fail-under was given with several orders; expected one, such as --q 1.")


def gate_of(result: Any, least: float | None) -> dict[str, Any] | None:
    """The gate, and whether the lower bound of every score meets it; None where there is none."""
    if least is None:
        return None
    rows = result.to_dict()
    scores = rows.get("groups", [rows])
    failed = [row for row in scores if row["low"] is None or row["low"] < least]
    lows = [row["low"] for row in scores if row["low"] is not None]
    return {
        "fail_under": least,
        "tested": "lower bound",
        "lowest": min(lows) if len(lows) == len(scores) and lows else None,
        "met": not failed,
        "failed": [row.get("group") for row in failed] if "groups" in rows else [],
    }


def check(answer: Answer, running: Running) -> None:
    """Say whether the gate was met, and end with exit code 3 where it was not."""
    gate = answer.gate
    if gate is None:
        return
    least, lowest = gate["fail_under"], gate["lowest"]
    if gate["met"]:
        seen, asked = _apart(lowest, least)
        say(f"Gate met: the lower bound {seen} is at least {asked}.", running.quiet)
        return
    failed = gate["failed"]
    if failed:
        named = ", ".join(brief(label) for label in failed[:NAMED]) + (", …" if len(failed) > NAMED else "")
        raise GateError(
            f"the gate is not met: the lower bound of {len(failed):,} group{'s' * (len(failed) > 1)} ({named}) is "
            f"below {digits(least)}, or there is none."
        )
    if lowest is None:
        raise GateError(f"the gate is not met: there is no lower bound; expected at least {digits(least)}.")
    seen, asked = _apart(lowest, least)
    raise GateError(
        f"the gate is not met: the lower bound of the score is {seen}; expected at least {asked}."
    )


def _apart(lowest: float, least: float) -> tuple[str, str]:
    """A bound and what was asked for, with as many digits as it takes to see which is more."""
    places = 6
    while (float(f"{lowest:.{places}g}") >= least) != (lowest >= least):
        places += 1
    return f"{lowest:.{places}g}", digits(least)


# ------------------------------------------------------------------------------------------------------------- scoring

# vendi score.

# Columns that tell which prompt a list of answers belongs to, by the names that data sets give them.
UNITS = (
    "prompt",
    "prompt_id",
    "question",
    "question_id",
    "instruction",
    "query",
    "input",
    "image_id",
    "image",
    "id",
)


@click.command(
    cls=Command,
    short_help="Score what files hold, all together or group by group.",
    examples=[
        "vendi score captions.txt",
        "vendi score images/ --by folder",
        "vendi score molecules.smi --skip-broken",
        "vendi score 'shards/*.parquet' --column embedding --by model --q 0,1,2,inf",
        "cat x.jsonl | vendi score - --column text",
        "vendi score answers.jsonl --groups responses --by model",
        "vendi score embeddings.npy --kernel rbf --tol 1e-2 --json",
        "vendi score captions.txt --fail-under 12.5",
        "vendi score 'shards/*.npy' --checkpoint run.vendi",
    ],
)
@options.files()
@options.reading
@option("Data", "--groups", metavar="NAME", help="A column with lists of samples, such as answers to one prompt: "
         "each list is scored, and --by averages over them.")  # fmt: skip
@option("Data", "--unit", metavar="NAME", help="With --groups: the column that lists of several --by share, such as "
         "the prompt; they are compared in pairs over it. Guessed by its name if not given.")  # fmt: skip
@options.similarity
@options.orders()
@options.solving
@options.output(["scores", "means", "differences"])
@options.gate
@option("Run", "--checkpoint", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
         help="Save a streaming run there every half minute; the same command goes on from it, if the files are the "
              "same: small ones by content, those above 16 MiB by size, time and their ends.")  # fmt: skip
@option("Run", "--save", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
         help="Keep the sums of a streaming run, for vendi merge.")  # fmt: skip
@options.running
def score(
    files: tuple[str, ...],
    reading: Reading,
    groups: str | None,
    unit: str | None,
    similarity: Similarity,
    q: str,
    solving: Solving,
    output: Output,
    fail_under: float | None,
    checkpoint: Path | None,
    save: Path | None,
    running: Running,
) -> None:
    """Score what FILE holds, or several of them together.

    Texts (.txt), tables (.csv, .tsv, .jsonl, .parquet, .arrow), vectors (.npy, .npz, .safetensors), molecules (.smi,
    .sdf), sequences (.fasta), a folder of pictures, a Hugging Face dataset on disk, or - for standard input; text files
    may be gzipped. The result goes to standard output, everything else to standard error.
    """
    from vendimeter.cli.output import check_target, emit

    check_target(output, files, save, shared=[checkpoint])
    if output.table in ("means", "differences") and groups is None:
        raise click.UsageError(f"--table {output.table} is of lists of samples; expected --groups NAME, too.")
    answer = answer_of(
        files, reading, similarity, running, q=q, solving=solving, groups=groups, unit=unit, checkpoint=checkpoint,
        save=save, overwrite=output.force, fail_under=fail_under,
    )  # fmt: skip
    emit(answer, output, running.quiet)
    check(answer, running)


def answer_of(
    files: tuple[str, ...],
    reading: Reading,
    similarity: Similarity,
    running: Running,
    *,
    q: str = "1",
    solving: Solving | None = None,
    groups: str | None = None,
    unit: str | None = None,
    checkpoint: Path | None = None,
    save: Path | None = None,
    overwrite: bool = False,
    fail_under: float | None = None,
) -> Answer:
    """Read, guess, score: what the command gives."""
    from vendimeter.cli import work
    from vendimeter.cli.output import Answer
    from vendimeter.errors import InputError

    solving = solving or Solving()
    orders = work.orders_of(q)
    work.check_solving(solving)
    check_gate(fail_under, orders)
    if groups is not None:
        asked = {"column": reading.column, "weight": reading.weight, "checkpoint": checkpoint, "save": save}
        _refuse_for_lists({**asked, **solving.given, "fail-under": fail_under}, orders)
        reading = replace(reading, column=groups)
        if unit is None and reading.by:
            unit = _unit(files, reading)
    elif unit is not None:
        raise InputError(
            "--unit was given without --groups; expected the column with the lists: --groups NAME."
        )
    with work.working(running) as said:
        extra = [name for name in (unit,) if name is not None and groups is not None]
        given = work.looked_at(files, reading, similarity, running, columns=extra, lists=groups is not None)
        with work.explained(given):
            if groups is not None:
                answer = _of_lists(files, given, reading, running, orders, groups, unit)
            else:
                result, count = _scored(
                    files, given, reading, running, orders, solving, checkpoint, save, overwrite
                )
                words, sheets = words_and_tables(result)
                source = work.source_of(files, given, count)
                answer = Answer("score", result.to_dict(), words, sheets, source, running.seed)
                answer.gate = gate_of(result, fail_under)
    return work.finished(answer, said)


def _scored(
    files: tuple[str, ...],
    given: Input,
    reading: Reading,
    running: Running,
    orders: Any,
    solving: Solving,
    checkpoint: Path | None,
    save: Path | None,
    overwrite: bool,
) -> tuple[Any, int]:
    import vendimeter as vm
    from vendimeter.cli import work
    from vendimeter.errors import InputError

    first = given.first
    grouped = bool(reading.by) or first.is_group
    if grouped and (unused := solving.given.keys() - {"memory"}):
        named = ", ".join(f"--{name}" for name in sorted(unused))
        raise InputError(f"{named} and groups were asked for; groups are scored exactly. Leave {named} away.")
    chosen = vm.kernels.as_kernel(given.kernel)
    kept = checkpoint is not None or save is not None
    reason = _cannot_stream(given, chosen, solving)
    if kept and reason is not None:
        named = "--checkpoint" if checkpoint is not None else "--save"
        raise InputError(f"{named} is for runs that stream, and this one cannot: {reason}.")
    if reason is None and (kept or given.is_much()):
        from vendimeter.cli.fingerprints import reading_fingerprint
        from vendimeter.cli.streaming import streamed

        fingerprint = None
        if checkpoint is not None:
            described = {
                name: value for name, value in vars(reading).items() if value not in (None, (), False)
            }
            fingerprint = reading_fingerprint(
                files, {**described, "grouped": grouped, "seed": running.seed}, chosen, checkpoint=checkpoint
            )
        result, count = streamed(
            given, chosen, orders, grouped=grouped, memory=solving.memory, seed=running.seed, checkpoint=checkpoint,
            fingerprint=fingerprint, quiet=running.quiet, files=files, form=reading.ending, limit=reading.limit,
            save_to=save, overwrite=overwrite,
        )  # fmt: skip
        work.say(work.noted(given, reading, count), running.quiet)
        left_out = first.skipped.count
        if left_out and not grouped:
            result = result.noted(left_out=left_out)
        return result, count
    held = work.whole(given, running, reading)
    if grouped:
        return vm.score_groups(held, given.kernel, q=orders, rng=running.seed), len(held)
    return vm.score(held, given.kernel, q=orders, rng=running.seed, **solving.given), len(held)


def _cannot_stream(given: Input, kernel: Any, solving: Solving) -> str | None:
    """Why all samples are held at once; None where one pass will do."""
    if kernel.needs_all is not None:
        return f"with the kernel {kernel!r} {kernel.needs_all}"
    if given.first.is_group:
        return "lists of samples are scored one by one"
    if unused := [f"--{name}" for name in ("tol", "method") if name in solving.given]:
        return f"{' and '.join(unused)} asks for a solver that holds all samples"
    return None


# ------------------------------------------------------------------------------------------- lists, averaged over


def _unit(files: tuple[str, ...], reading: Reading) -> str | None:
    """The column that tells which prompt a list belongs to, by its name; None where there is none."""
    from vendimeter.data.collection import Broken
    from vendimeter.io.reading import _readers
    from vendimeter.io.sources import files_of

    if any(file.is_pipe for file in files_of(list(files), reading.ending)):
        return None  # it can be read only once
    names = _readers(list(files), reading.ending, Broken(), **reading.budget)[0].names()
    taken = {reading.column, *reading.by}
    return next((name for name in UNITS if name in names and name not in taken), None)


def _refuse_for_lists(asked: dict[str, Any], orders: Any) -> None:
    """Lists are scored exactly, each by itself, with one order; their mean has a standard error, and no bound."""
    from vendimeter.errors import InputError

    if isinstance(orders, list):
        raise InputError(
            f"--groups takes one order, and {len(orders)} were given; expected one, such as --q 1."
        )
    named = [f"--{name}" for name, value in asked.items() if value is not None]
    if named:
        raise InputError(
            f"--groups and {' and '.join(named)} were given; expected --groups without, because every list is scored "
            "exactly and by itself, and their mean has no bound. Leave one of them away."
        )


def _of_lists(
    files: tuple[str, ...],
    given: Input,
    reading: Reading,
    running: Running,
    orders: Any,
    groups: str,
    unit: str | None,
) -> Answer:
    """Lists of samples, each scored by itself, and means over them."""
    import vendimeter as vm
    from vendimeter.cli import work
    from vendimeter.cli.output import Answer, Sheet
    from vendimeter.errors import InputError

    if not given.first.is_group:
        raise InputError(
            f"the column {groups!r} holds {given.first.kind or 'other values'}, not lists of texts; expected lists for "
            "--groups. For one sample a record take --column."
        )
    held = work.whole(given, running, reading)
    scores = vm.score_groups([list(one) for one in held.samples], given.kernel, q=orders, rng=running.seed)
    labels = list(held.labels) if held.labels is not None and reading.by else None
    units = None if unit is None else [str(value) for value in held[unit]]
    found = scores.mean(by=labels, unit=units)
    if labels is not None and len(found) > 1:
        if found.differences:
            about = f"Compared in pairs over the column {unit!r} (--unit changes that)."
        elif unit is None:
            about = "No pairs: --unit NAME names the column that lists share, such as the prompt."
        else:
            about = f"No pairs: no value of the column {unit!r} comes again with another label; --unit names another."
        work.say(about, running.quiet)
    means: dict[str, list[Any]] = {} if labels is None else {"group": [one.label for one in found]}
    means |= {
        "mean": [one.mean for one in found],
        "standard error": [one.standard_error for one in found],
        "lists": [one.units for one in found],
    }
    # In the terminal under the name that the user gave; in files under one that no other column has.
    sheets = [Sheet("means", means, bar="mean", digits=5, headings={"group": " and ".join(reading.by)})]
    pairs = found.differences
    if pairs:
        columns = {
            "first": [one.first for one in pairs],
            "second": [one.second for one in pairs],
            "difference": [one.mean for one in pairs],
            "standard error": [one.standard_error for one in pairs],
            "pairs": [one.units for one in pairs],
        }
        sheets.append(Sheet("differences", columns, title="Differences (first − second), in pairs", digits=4))
    each = scores.to_dict()
    result = {"kernel": each["kernel"], "unit": unit, **found.to_dict(), "groups": each["groups"]}
    sheets.append(replace(words_and_tables(scores)[1][0], visible=()))
    order = "" if float(scores.q) == 1 else f" of order {scores.q:g}"
    words = f"Mean Vendi Score{order} over {len(scores):,} lists"
    if found.left_out:
        words += f"; {found.left_out:,} of them empty, and left out"
    return Answer("score", result, words, sheets, work.source_of(files, given, len(held)), running.seed)


# ------------------------------------------------------------------------------------------------------------- wording


def words_and_tables(result: Any) -> tuple[str, list[Sheet]]:
    """A Score, a Profile or GroupScores as words and tables."""
    from vendimeter.cli.output import Sheet

    if hasattr(result, "labels"):
        return _groups(result)
    scores = [result] if hasattr(result, "bounds") else list(result.values())
    columns = {
        "order q": [_order(one.q) for one in scores],
        "score": [float(one) for one in scores],
        "low": [one.bounds[0] for one in scores],
        "high": [one.bounds[1] for one in scores],
        "level": [one.level for one in scores],
        "n": [one.n for one in scores],
        "method": [one.method for one in scores],
    }
    if len(scores) == 1:
        return _score(scores[0]), [Sheet("scores", columns, digits=10, visible=())]
    words = f"Vendi Scores of {scores[0].n:,} items"
    return words, [Sheet("scores", columns, visible=("order q", "score", "low", "high", "level"))]


def _order(q: float) -> float | int:
    """An order as one writes it: 1, not 1.0."""
    return int(q) if float(q).is_integer() else float(q)


def _score(score: Any) -> str:
    from vendimeter.results.score import percentage

    name = "Vendi Score" if score.q == 1 else f"Vendi Score of order {score.q:g}"
    low, high = score.bounds
    narrow = score.half_width <= 1e-6 * score
    within = (
        f"is within {score.half_width:.0e} of that" if narrow else f"lies between {low:.6g} and {high:.6g}"
    )
    claim = (
        f"with {percentage(score.confidence)} confidence" if score.level == "probabilistic" else score.level
    )
    exact = f"The exact score {within} ({claim})."
    if score.level == "none":
        exact = "Nothing is claimed of its error."
    elif low == high:
        exact = f"The score is exact ({claim})."
    removed = score.diagnostics.get("removed_mass", 0.0)
    projected = f" Negative eigenvalues of mass {removed:.2g} were left out." if removed > 0 else ""
    items = f"{score:.4g} completely different item{'' if f'{score:.4g}' == '1' else 's'}"
    return f"{name}: {score:.4f}\nAs diverse as {items}, out of {score.n:,}. {exact}{projected}"


def _groups(groups: Any) -> tuple[str, list[Sheet]]:
    from vendimeter.cli.output import Sheet
    from vendimeter.present.tables import ranked

    data = groups._long()
    several = len(set(data["q"])) > 1
    columns = {"group": data["group"], "items": data["n"], "q": [_order(q) for q in data["q"]]}
    columns |= {name: data[name] for name in ("score", "low", "high", "level")}
    sheet = Sheet(
        "scores", columns, digits=4, shown=40, bar=None if several else "score",
        visible=("group", "items", "q", "score") if several else ("group", "items", "score"),
        order=None if several else ranked(data["score"]),
    )  # fmt: skip
    removed = max((mass for mass in data.get("removed_mass", ()) if mass == mass), default=0.0)
    words = [f"Negative eigenvalues of mass up to {removed:.2g} were left out."] if removed > 0 else []
    if len(groups) > 40 and not several:
        (mean,) = groups.mean()
        words.insert(
            0,
            f"Mean over {mean.units:,} groups: {mean.mean:.4f} ± {mean.standard_error:.2g} (standard error)",
        )
    return " ".join(words), [sheet]
