"""The group of commands `vendi`, and how it ends: exit codes, messages for errors, and signals.

Each command is in a module of its own, imported when it is asked for. Exit codes are 0 for success, 1 for a failure, 2
for bad input or usage, and 3 for a gate that was not met.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from vendimeter import __version__
from vendimeter.present import terminal

__all__ = [
    "FAILURE",
    "GATE",
    "INTERRUPTED",
    "MISUSE",
    "GateError",
    "Stopped",
    "check_interrupted",
    "install_signal_handlers",
    "run",
    "vendi",
]


# ------------------------------------------------------------------------------------------------------------ commands

COMMANDS = {
    "score": "score",
    "compare": "compare",
    "rarefy": "rarefy",
    "explain": "explain",
    "select": "select",
    "report": "report",
    "merge": "merge",
    "plan": "plan",
    "kernels": "kernels",
    "schema": "schema",
    "completion": "completion",
    "demo": "demo",
}


class Commands(click.Group):
    """A group whose commands are imported when they are asked for, listed in the order in which one meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name."""
        if cmd_name not in COMMANDS:
            return None
        return getattr(importlib.import_module(f"vendimeter.cli.{COMMANDS[cmd_name]}"), cmd_name)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples."""
        with formatter.section("Examples"):
            for example in (
                "vendi demo",
                "vendi score captions.txt",
                "vendi score images/ --by folder",
                "vendi compare real/ generated/",
                "vendi report embeddings.npy -o report.html",
                "vendi explain captions.txt",
            ):
                formatter.write(f"  {example}\n")


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="vendi")
def vendi() -> None:
    """Measure diversity: how many different things are in here.

    The score of a collection is the effective number of different items in it: twelve captions that share nothing score
    12, twelve copies of one caption score 1. What counts as similar is up to the kernel, which goes by the kind of data
    unless you say otherwise.

    Exit codes: 0 well, 1 a failure, 2 bad input or usage, 3 a gate that was not met.
    """


# ------------------------------------------------------------------------------------------------------------ failures

FAILURE, MISUSE, GATE, INTERRUPTED = 1, 2, 3, 130
TRACEBACK_VARIABLE = "VENDI_TRACEBACK"  # set it to see where an error came from

_interrupted = False


class GateError(click.ClickException):
    """The score was computed and does not meet the gate."""

    exit_code = GATE


class Stopped(KeyboardInterrupt):
    """A run was stopped by a signal, after it had saved what it could."""

    def __init__(self, number: int):
        self.code = 128 + number


def run(command: click.Command, arguments: Sequence[str] | None = None) -> int:
    """Run the command and give its exit code; whatever goes wrong ends in a message, never in a traceback."""
    try:
        exit_code = command.main(args=arguments, prog_name="vendi", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        return exit_code if isinstance(exit_code, int) else 0
    except BrokenPipeError:
        return _end_on_closed_pipe()
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt) as error:
        if isinstance(error.__cause__, EOFError):  # which click takes for an interruption
            return _report_failure(error.__cause__)
        cause = error.__cause__ or error.__context__ or error
        notes = " ".join(getattr(cause, "__notes__", ()))
        terminal.say(f"Interrupted. {notes or 'Nothing was written.'}")
        return cause.code if isinstance(cause, Stopped) else INTERRUPTED
    except click.ClickException as error:
        # Blanks for the tabs with which click lists choices.
        message = error.format_message().expandtabs(2)
        terminal.say(message if _is_help_request(error) else f"{_usage(error)}Error: {message}")
        return error.exit_code
    except Exception as error:
        if _interrupted:  # swallowed by a library, and this is what came of it
            terminal.say("Interrupted. Nothing was written.")
            return INTERRUPTED
        return _report_failure(error)


def install_signal_handlers() -> None:
    """Turn signals into exceptions, so that half-written files are removed; ignored signals stay ignored."""
    import signal

    def exit_on_signal(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    def record_interrupt(number: int, frame: object) -> None:
        global _interrupted
        _interrupted = True
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, record_interrupt)
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # not every system has both
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, exit_on_signal)


def _is_help_request(error: click.ClickException) -> bool:
    """Whether the message is the whole help, because nothing at all was asked for; old versions of click lack it."""
    kind = getattr(click.exceptions, "NoArgsIsHelpError", None)
    return kind is not None and isinstance(error, kind)


def check_interrupted() -> None:
    """Nothing is written after Ctrl-C, even where it was swallowed: some libraries catch whatever happens in them."""
    if _interrupted:
        raise KeyboardInterrupt


def _usage(error: click.ClickException) -> str:
    """The usage of the command, for errors of usage."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return ""
    return f"{context.get_usage()}\nTry '{context.command_path} --help' for help.\n\n"


def _report_failure(error: Exception) -> int:
    from vendimeter.errors import CacheError, VendimeterError

    if os.environ.get(TRACEBACK_VARIABLE):
        import traceback

        traceback.print_exception(error)
    notes = " ".join(getattr(error, "__notes__", ()))
    if isinstance(error, VendimeterError):
        terminal.say(f"Error: {error} {notes}".rstrip())
        return FAILURE if isinstance(error, CacheError) else MISUSE
    if isinstance(error, OSError):
        if error.errno == errno.EPIPE:
            return _end_on_closed_pipe()
        terminal.say(f"Error: {_system_error_text(error)} {notes}".rstrip())
        _discard_output()
        misuse_errors = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)
        is_bad_name = error.errno in (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL)
        return MISUSE if isinstance(error, misuse_errors) or is_bad_name else FAILURE
    if isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] == "rich":
        terminal.say(
            "Error: the command needs the library 'rich'; install it with: pip install 'vendimeter[cli]'"
        )
        return MISUSE
    if isinstance(error, MemoryError):
        terminal.say(
            "Error: there was not enough memory. Take fewer samples (--limit), a tolerance (--tol 1e-2), or see what "
            "it would need: vendi plan."
        )
        return FAILURE
    terminal.say(
        f"Error: a fault of Vendimeter's own, not of your data: {type(error).__name__}: {error}. Please report it with "
        f"what this shows: {TRACEBACK_VARIABLE}=1 vendi …"
    )
    return FAILURE


def _system_error_text(error: OSError) -> str:
    name = f"{error.filename!r}: " if error.filename is not None else ""
    return f"{name}{error.strerror or error}."


def _end_on_closed_pipe() -> int:
    """End quietly when the reader of the output has closed the pipe."""
    _discard_output()
    return FAILURE


def _discard_output() -> None:
    """Discard output that cannot be written: Python would try again at exit, and set an exit code of its own."""
    nowhere: Any = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
