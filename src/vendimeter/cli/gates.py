"""--fail-under: whether the score is at least what was asked for, for certain."""

from __future__ import annotations

import math
from typing import Any

from vendimeter.cli.failures import GateError
from vendimeter.cli.options import Running
from vendimeter.cli.outputs import Answer
from vendimeter.errors import InputError, brief, digits
from vendimeter.present.terminal import say

__all__ = ["check", "check_gate", "gate_of"]

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
