"""How the command ends: 0 well, 1 by a failure, 2 by bad input or usage, 3 by a gate that was not met."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from vendimeter.cli import terminal

__all__ = ["FAILURE", "GATE", "INTERRUPTED", "MISUSE", "DataError", "GateError", "run"]

FAILURE, MISUSE, GATE, INTERRUPTED = 1, 2, 3, 130
TRACEBACK = "VENDI_TRACEBACK"  # set it to see where an error came from


class DataError(click.ClickException):
    """Bad input: a message without the usage, which was right."""

    exit_code = MISUSE


class GateError(click.ClickException):
    """The result is there, and is not what was asked for."""

    exit_code = GATE


def run(command: click.Command, arguments: Sequence[str] | None = None) -> int:
    """Run the command and give its exit code; whatever goes wrong ends in a message, never in a traceback."""
    try:
        found = command.main(args=arguments, prog_name="vendi", standalone_mode=False)
        sys.stdout.flush()
        return found if isinstance(found, int) else 0
    except BrokenPipeError:
        return _pipe_closed()
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt) as error:
        notes = " ".join(getattr(error.__cause__ or error.__context__ or error, "__notes__", ()))
        terminal.say(f"Interrupted. {notes or 'Nothing was written.'}")
        return INTERRUPTED
    except click.ClickException as error:
        if isinstance(error, click.UsageError):
            error.show()
        else:
            terminal.say(f"Error: {error.format_message()}")
        return error.exit_code
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> int:
    from vendimeter.errors import CacheError, VendimeterError

    if os.environ.get(TRACEBACK):
        import traceback

        traceback.print_exception(error)
    notes = " ".join(getattr(error, "__notes__", ()))
    if isinstance(error, VendimeterError):
        terminal.say(f"Error: {error} {notes}".rstrip())
        return FAILURE if isinstance(error, CacheError) else MISUSE
    if isinstance(error, OSError):
        if error.errno == errno.EPIPE:
            return _pipe_closed()
        terminal.say(f"Error: {_of_system(error)} {notes}".rstrip())
        missing = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)
        return MISUSE if isinstance(error, missing) else FAILURE
    if isinstance(error, MemoryError):
        terminal.say(
            "Error: there was not enough memory. Take fewer samples (--limit), a tolerance (--tol 1e-2), or see what "
            "it would need: vendi plan."
        )
        return FAILURE
    terminal.say(
        f"Error: a fault of Vendimeter's own, not of your data: {type(error).__name__}: {error}. Please report it with "
        f"what this shows: {TRACEBACK}=1 vendi …"
    )
    return FAILURE


def _of_system(error: OSError) -> str:
    name = f"{error.filename!r}: " if error.filename is not None else ""
    return f"{name}{error.strerror or error}."


def _pipe_closed() -> int:
    """Who read the output has seen enough; nobody is left to tell."""
    nowhere: Any = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    return FAILURE
