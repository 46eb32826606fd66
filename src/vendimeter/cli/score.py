"""The command ``vendi score``: scores of files in words and tables, and the gate ``--fail-under``.

The gate asks whether a score is at least a threshold, for certain: its lower bound is compared.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vendimeter.cli import options
from vendimeter.cli.commands import GateError
from vendimeter.cli.options import Command, Output, Reading, Running, Saving, Similarity, Solving, option
from vendimeter.errors import InputError
from vendimeter.messages import brief
from vendimeter.present.numbers import digits, order_name, order_suffix
from vendimeter.present.terminal import say

if TYPE_CHECKING:
    from vendimeter.cli.inputs import Input
    from vendimeter.cli.output import Answer
    from vendimeter.present.tables import Sheet

__all__ = ["answer_of", "check_gate", "describe_result", "enforce_gate", "gate_of", "score"]


# --------------------------------------------------------------------------------------------------------------- gates

MAX_NAMED = 5  # groups that a message names


def check_gate(threshold: float | None, orders: Any) -> None:
    """Raise an error for a threshold that cannot be a gate, before anything is read."""
    if threshold is not None and not math.isfinite(threshold):
        raise InputError(f"--fail-under {threshold:g}; expected a finite number, such as 12.5.")
    if threshold is not None and isinstance(orders, list):
        raise InputError("--fail-under was given with several orders; expected one, such as --q 1.")


def gate_of(result: Any, threshold: float | None) -> dict[str, Any] | None:
    """The gate, and whether the lower bound of every score meets it; None where there is none."""
    if threshold is None:
        return None
    rows = result.to_dict()
    scores = rows.get("groups", [rows])
    failed = [row for row in scores if row["low"] is None or row["low"] < threshold]
    lows = [row["low"] for row in scores if row["low"] is not None]
    return {
        "fail_under": threshold,
        "tested": "lower bound",
        "lowest": min(lows) if len(lows) == len(scores) and lows else None,
        "met": not failed,
        "failed": [row.get("group") for row in failed] if "groups" in rows else [],
    }


def enforce_gate(answer: Answer, running: Running) -> None:
    """Report whether the gate was met, and raise `GateError` (exit code 3) where it was not."""
    gate = answer.gate
    if gate is None:
        return
    threshold, lowest = gate["fail_under"], gate["lowest"]
    if gate["met"]:
        bound_text, threshold_text = _distinguishable(lowest, threshold)
        say(f"Gate met: the lower bound {bound_text} is at least {threshold_text}.", running.quiet)
        return
    failed = gate["failed"]
    if failed:
        group_words = ", ".join(brief(label) for label in failed[:MAX_NAMED]) + (
            ", …" if len(failed) > MAX_NAMED else ""
        )
        raise GateError(
            f"the gate is not met: the lower bound of {len(failed):,} group{'s' * (len(failed) > 1)} ({group_words}) "
            f"is below {digits(threshold)}, or there is none."
        )
    if lowest is None:
        raise GateError(
            f"the gate is not met: there is no lower bound; expected at least {digits(threshold)}."
        )
    bound_text, threshold_text = _distinguishable(lowest, threshold)
    raise GateError(
        f"the gate is not met: the lower bound of the score is {bound_text}; expected at least {threshold_text}."
    )


def _distinguishable(lowest: float, threshold: float) -> tuple[str, str]:
    """Format a bound and its threshold with as many digits as it takes to see which is larger."""
    digit_count = 6
    while (float(f"{lowest:.{digit_count}g}") >= threshold) != (lowest >= threshold):
        digit_count += 1
    return f"{lowest:.{digit_count}g}", digits(threshold)


# ------------------------------------------------------------------------------------------------------------- scoring

# Columns that tell which prompt a list of answers belongs to, by the names that data sets give them.
UNIT_COLUMNS = (
    "prompt", "prompt_id", "question", "question_id", "instruction", "query", "input", "image_id", "image", "id",
)  # fmt: skip


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
        files, reading, similarity, running, q=q, solving=solving, groups=groups, unit=unit, fail_under=fail_under,
        saving=Saving(checkpoint, sums=save, overwrite=output.force),
    )  # fmt: skip
    emit(answer, output, running.quiet)
    enforce_gate(answer, running)


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
    saving: Saving | None = None,
    fail_under: float | None = None,
) -> Answer:
    """Read the files and score them: the answer of ``vendi score``."""
    from vendimeter.cli import work
    from vendimeter.cli.output import Answer

    solving, saving = solving or Solving(), saving or Saving()
    orders = work.orders_of(q)
    work.check_solving(solving)
    check_gate(fail_under, orders)
    if groups is not None:
        other_options = {
            "column": reading.column,
            "weight": reading.weight,
            "checkpoint": saving.checkpoint,
            "save": saving.sums,
        }
        _refuse_for_lists({**other_options, **solving.as_keywords, "fail-under": fail_under}, orders)
        reading = replace(reading, column=groups)
        if unit is None and reading.by:
            unit = _guess_unit(files, reading)
    elif unit is not None:
        raise InputError(
            "--unit was given without --groups; expected the column with the lists: --groups NAME."
        )
    with work.work_session(running) as warning_texts:
        extra = [name for name in (unit,) if name is not None and groups is not None]
        opened = work.open_and_announce(
            files, reading, similarity, running, columns=extra, lists=groups is not None
        )
        with work.explain_errors(opened):
            if groups is not None:
                answer = _score_lists(files, opened, reading, running, orders, groups, unit)
            else:
                result, count = _compute(files, opened, reading, running, orders, solving, saving)
                words, sheets = describe_result(result)
                source = work.source_of(files, opened, count)
                answer = Answer("score", result.to_dict(), words, sheets, source, running.seed)
                answer.gate = gate_of(result, fail_under)
    return work.add_warnings(answer, warning_texts)


def _compute(
    files: tuple[str, ...],
    opened: Input,
    reading: Reading,
    running: Running,
    orders: Any,
    solving: Solving,
    saving: Saving,
) -> tuple[Any, int]:
    import vendimeter as vm
    from vendimeter.cli import work

    first = opened.first
    grouped = bool(reading.by) or first.is_group
    if grouped and (unused := solving.as_keywords.keys() - {"memory"}):
        option_words = ", ".join(f"--{name}" for name in sorted(unused))
        raise InputError(
            f"{option_words} and groups were asked for; groups are scored exactly. Leave {option_words} away."
        )
    kernel = vm.kernels.as_kernel(opened.kernel)
    is_saved = saving.checkpoint is not None or saving.sums is not None
    reason = _reason_not_to_stream(opened, kernel, solving)
    if is_saved and reason is not None:
        option_words = "--checkpoint" if saving.checkpoint is not None else "--save"
        raise InputError(f"{option_words} is for runs that stream, and this one cannot: {reason}.")
    if reason is None and (is_saved or opened.exceeds_memory()):
        from vendimeter.cli.fingerprints import reading_fingerprint
        from vendimeter.cli.streaming import score_batches

        if saving.checkpoint is not None:
            read_options = {
                name: value for name, value in vars(reading).items() if value not in (None, (), False)
            }
            fingerprint = reading_fingerprint(
                files,
                {**read_options, "grouped": grouped, "seed": running.seed},
                kernel,
                checkpoint=saving.checkpoint,
            )
            saving = replace(saving, fingerprint=fingerprint)
        result, count = score_batches(
            opened, kernel, orders, grouped=grouped, memory=solving.memory, seed=running.seed, quiet=running.quiet,
            saving=saving, files=files, reading=reading,
        )  # fmt: skip
        work.say(work.describe_reading(opened, reading, count), running.quiet)
        left_out = first.skipped.count
        if left_out and not grouped:
            result = result.noted(left_out=left_out)
        return result, count
    samples = work.read_all(opened, running, reading)
    if grouped:
        return vm.score_groups(samples, opened.kernel, q=orders, rng=running.seed), len(samples)
    return vm.score(samples, opened.kernel, q=orders, rng=running.seed, **solving.as_keywords), len(samples)


def _reason_not_to_stream(opened: Input, kernel: Any, solving: Solving) -> str | None:
    """Why all samples must be in memory at once; None where one pass is enough."""
    if kernel.needs_all is not None:
        return f"with the kernel {kernel!r} {kernel.needs_all}"
    if opened.first.is_group:
        return "lists of samples are scored one by one"
    if unused := [f"--{name}" for name in ("tol", "method") if name in solving.as_keywords]:
        return f"{' and '.join(unused)} asks for a solver that holds all samples"
    return None


# ------------------------------------------------------------------------------------------------------ means of lists


def _guess_unit(files: tuple[str, ...], reading: Reading) -> str | None:
    """The column that tells which prompt a list belongs to, by its name; None where there is none."""
    from vendimeter.data.collection import Broken
    from vendimeter.io.reading import _readers
    from vendimeter.io.sources import files_of

    if any(file.is_pipe for file in files_of(list(files), reading.ending)):
        return None  # it can be read only once
    names = _readers(list(files), reading.ending, Broken(), **reading.budget)[0].names()
    used_columns = {reading.column, *reading.by}
    return next((name for name in UNIT_COLUMNS if name in names and name not in used_columns), None)


def _refuse_for_lists(option_values: dict[str, Any], orders: Any) -> None:
    """Refuse options that do not apply to lists: these are scored exactly, and their mean has no bound."""
    if isinstance(orders, list):
        raise InputError(
            f"--groups takes one order, and {len(orders)} were given; expected one, such as --q 1."
        )
    option_words = [f"--{name}" for name, value in option_values.items() if value is not None]
    if option_words:
        raise InputError(
            f"--groups and {' and '.join(option_words)} were given; expected --groups without, because every list is "
            "scored exactly and by itself, and their mean has no bound. Leave one of them away."
        )


def _score_lists(
    files: tuple[str, ...],
    opened: Input,
    reading: Reading,
    running: Running,
    orders: Any,
    groups: str,
    unit: str | None,
) -> Answer:
    """Score each list of samples by itself, and average over lists."""
    import vendimeter as vm
    from vendimeter.cli import work
    from vendimeter.cli.output import Answer
    from vendimeter.present.tables import Sheet

    if not opened.first.is_group:
        raise InputError(
            f"the column {groups!r} holds {opened.first.kind or 'other values'}, not lists of texts; expected lists "
            "for --groups. For one sample a record take --column."
        )
    samples = work.read_all(opened, running, reading)
    scores = vm.score_groups(
        [list(item) for item in samples.samples], opened.kernel, q=orders, rng=running.seed
    )
    labels = list(samples.labels) if samples.labels is not None and reading.by else None
    units = None if unit is None else [str(value) for value in samples[unit]]
    mean_scores = scores.mean(by=labels, unit=units)
    if labels is not None and len(mean_scores) > 1:
        if mean_scores.differences:
            about = f"Compared in pairs over the column {unit!r} (--unit changes that)."
        elif unit is None:
            about = "No pairs: --unit NAME names the column that lists share, such as the prompt."
        else:
            about = f"No pairs: no value of the column {unit!r} comes again with another label; --unit names another."
        work.say(about, running.quiet)
    means: dict[str, list[Any]] = {} if labels is None else {"group": [item.label for item in mean_scores]}
    means |= {
        "mean": [item.mean for item in mean_scores],
        "standard error": [item.standard_error for item in mean_scores],
        "lists": [item.units for item in mean_scores],
    }
    # In the terminal under the name that the user gave; in files under one that no other column has.
    sheets = [Sheet("means", means, bar="mean", digits=5, headings={"group": " and ".join(reading.by)})]
    pairs = mean_scores.differences
    if pairs:
        columns = {
            "first": [item.first for item in pairs],
            "second": [item.second for item in pairs],
            "difference": [item.mean for item in pairs],
            "standard error": [item.standard_error for item in pairs],
            "pairs": [item.units for item in pairs],
        }
        sheets.append(Sheet("differences", columns, title="Differences (first − second), in pairs", digits=4))
    group_scores = scores.to_dict()
    result = {
        "kernel": group_scores["kernel"],
        "unit": unit,
        **mean_scores.to_dict(),
        "groups": group_scores["groups"],
    }
    sheets.append(replace(describe_result(scores)[1][0], visible=()))
    words = f"Mean Vendi Score{order_suffix(float(scores.q), order_name)} over {len(scores):,} lists"
    if mean_scores.left_out:
        words += f"; {mean_scores.left_out:,} of them empty, and left out"
    return Answer("score", result, words, sheets, work.source_of(files, opened, len(samples)), running.seed)


# ------------------------------------------------------------------------------------------------------------- wording


def describe_result(result: Any) -> tuple[str, list[Sheet]]:
    """A Score, a Profile or GroupScores as words and tables."""
    from vendimeter.present.tables import Sheet

    if hasattr(result, "labels"):
        return _describe_groups(result)
    scores = [result] if hasattr(result, "bounds") else list(result.values())
    columns = {
        "order q": [_order_number(score.q) for score in scores],
        "score": [float(score) for score in scores],
        "low": [score.bounds[0] for score in scores],
        "high": [score.bounds[1] for score in scores],
        "level": [score.level for score in scores],
        "n": [score.n for score in scores],
        "method": [score.method for score in scores],
    }
    if len(scores) == 1:
        return _describe_score(scores[0]), [Sheet("scores", columns, digits=10, visible=())]
    words = f"Vendi Scores of {scores[0].n:,} items"
    return words, [Sheet("scores", columns, visible=("order q", "score", "low", "high", "level"))]


def _order_number(q: float) -> float | int:
    """An order as one writes it: 1, not 1.0."""
    return int(q) if float(q).is_integer() else float(q)


def _describe_score(score: Any) -> str:
    removed = score.diagnostics.removed_mass or 0.0
    projection_sentence = f" Negative eigenvalues of mass {removed:.2g} were left out." if removed > 0 else ""
    items = f"{score:.4g} completely different item{'' if f'{score:.4g}' == '1' else 's'}"
    first = f"Vendi Score{order_suffix(score.q, order_name)}: {score:.4f}"
    return f"{first}\nAs diverse as {items}, out of {score.n:,}. {score.claim.shown('terminal')}{projection_sentence}"


def _describe_groups(groups: Any) -> tuple[str, list[Sheet]]:
    from vendimeter.present.tables import Sheet, ranked

    data = groups._long()
    several = len(set(data["q"])) > 1
    columns = {"group": data["group"], "items": data["n"], "q": [_order_number(q) for q in data["q"]]}
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
