"""Runs of the installed `vendi`, each in a process of its own, forked from one that has its libraries in memory.

A program by itself, ``python command_server.py SCRIPT``: it reads requests and writes answers, a JSON text a line. What
a run does is what a fresh process does, save that it need not read the libraries from the disk first, so that a table
of two hundred bad inputs takes seconds.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import runpy
import signal
import sys
import tempfile
import time
import traceback
from typing import Any, NoReturn

LIBRARIES = (
    "rich.console", "rich.text", "scipy.linalg", "scipy.sparse", "vendimeter.kernels", "vendimeter.analysis",
    "vendimeter.io.json", "vendimeter.io.text", "vendimeter.present.tables", "vendimeter.present.terminal",
)  # fmt: skip
PARTS = ("fingerprints", "output", "streaming", "work")
LONGEST = 60.0  # seconds that a run may take


def imported() -> None:
    """Have in memory what the commands import."""
    for name in LIBRARIES:
        importlib.import_module(name)
    from vendimeter.cli.commands import COMMANDS

    for name in (*COMMANDS.values(), *PARTS):
        importlib.import_module(f"vendimeter.cli.{name}")


def run(script: str, request: dict[str, Any], streams: list[int]) -> NoReturn:
    """The command in this process, which ends with its exit code."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.chdir(request["cwd"])
    os.environ.update(request["env"])
    sys.argv = [script, *request["arguments"]]
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="utf-8")
    sys.stderr = io.TextIOWrapper(
        io.FileIO(2, "w", closefd=False), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )
    code = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    os._exit(code)  # without taking the interpreter to pieces, which takes longer than most runs


def answered(script: str, request: dict[str, Any]) -> dict[str, Any]:
    """What a run writes, and how it ends."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(request["input"].encode("latin-1"))
        given.seek(0)
        child = os.fork()
        if child == 0:
            run(script, request, [file.fileno() for file in (given, out, err)])
        end = time.monotonic() + LONGEST
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.002)
        found = []
        for file in (out, err):
            file.seek(0)
            found.append(file.read().decode("latin-1"))
    return {"code": os.waitstatus_to_exitcode(ended[1]), "out": found[0], "err": found[1]}


def main() -> None:
    imported()
    gc.freeze()  # what is not looked at need not be copied for each run
    for line in sys.stdin:
        print(json.dumps(answered(sys.argv[1], json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
