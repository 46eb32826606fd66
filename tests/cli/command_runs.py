"""How the tests run the installed command: in a fresh process, or in one forked from a process that is warm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPT = str(Path(sys.executable).with_name("vendi"))
SERVER = str(Path(__file__).with_name("command_server.py"))
# One thread, so that the last digits do not go by how many the machine has; no colours unless a test asks for them.
UNSET = (
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "TTY_COMPATIBLE",
    "COLUMNS",
    "VENDI_TRACEBACK",
)
PLAIN = {
    "OMP_NUM_THREADS": "1",
    "TERM": "xterm-256color",
    "PYTHONIOENCODING": "",
    "PYTHONUTF8": "1",
    "TZ": "UTC",
}


def environment(**more: str) -> dict[str, str]:
    """The environment of a run."""
    return {name: value for name, value in os.environ.items() if name not in UNSET} | PLAIN | more


@dataclass(frozen=True)
class Done:
    """How a run ended, and what it wrote."""

    arguments: list[str]
    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Standard error on one line: where lines are broken does not matter."""
        return " ".join(self.err.split())

    @property
    def envelope(self) -> Any:
        """What --json gave."""
        assert self.code in (0, 3), self.err
        return json.loads(self.out)

    @property
    def result(self) -> Any:
        """The result in it."""
        return self.envelope["result"]


def vendi(*arguments: object, cwd: Path, input: str | bytes = b"", timeout: float = 60, **env: str) -> Done:
    """Run the command in a fresh process."""
    words = [str(one) for one in arguments]
    given = input.encode() if isinstance(input, str) else input
    done = subprocess.run(
        [SCRIPT, *words], cwd=cwd, input=given, capture_output=True, check=False, timeout=timeout,
        env=environment(**env),
    )  # fmt: skip
    return Done(words, done.returncode, done.stdout.decode(), done.stderr.decode())


class Warm:
    """Runs the command in processes that are forked from a warm one; where nothing can be forked, in fresh ones."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None

    def __call__(self, *arguments: object, cwd: Path, input: str | bytes = b"", **env: str) -> Done:
        if not hasattr(os, "fork"):
            return vendi(*arguments, cwd=cwd, input=input, **env)
        if self._server is None:
            self._server = subprocess.Popen(
                [sys.executable, SERVER, SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env=environment(),
            )  # fmt: skip
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        words = [str(one) for one in arguments]
        given = (input.encode() if isinstance(input, str) else input).decode("latin-1")
        request = {"arguments": words, "cwd": str(cwd), "input": given, "env": env}
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        answer = json.loads(self._server.stdout.readline())
        out, err = (answer[name].encode("latin-1").decode() for name in ("out", "err"))
        return Done(words, answer["code"], out, err)

    def close(self) -> None:
        """End the server."""
        if self._server is not None:
            self._server.communicate(timeout=60)


def contents(folder: Path) -> dict[str, Any]:
    """All that is in a folder, to see that a run changed nothing."""
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*")}


def check_refused(done: Done, seen: str) -> None:
    """Refused, with what was seen, in one message and no more."""
    assert done.code == 2, done
    assert done.out == ""
    assert "Traceback" not in done.err
    assert done.err.count("Error: ") == 1, done.err
    assert seen in done.said, done.said
    assert "\x1b" not in done.err
