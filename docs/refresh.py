"""Run the code of pages from top to bottom, and put what it prints into them.

    python docs/refresh.py docs/tutorials/*.md

A block of Python, or of commands that begin with ``vendi``, may be followed by a block of text: what it prints. The
tests run the pages in the same way and compare; what differs from run to run is written as … in the page and left so.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(python|sh|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
WIDTH = 100
VOLATILE = [
    (r"within \S+e-\d+ of that", "within … of that"),
    (r"most redundant row [\d,]+", "most redundant row …"),
]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Ran:
    """A block that ran, what it printed, and the block of text that shows it, if there is one."""

    code: str
    printed: str
    shown: str | None
    span: tuple[int, int] | None

    @property
    def agrees(self) -> bool:
        """Whether what is shown is what was printed."""
        return self.shown is None or same(self.shown, self.printed)


def same(shown: str, printed: str) -> bool:
    r"""Whether two outputs agree up to space, where … stands for anything.

    Examples
    --------
    >>> same("took … ms\n", "took 12 ms\n"), same("1.5\n", "1.6\n")
    (True, False)
    """
    return doctest.OutputChecker().check_output(shown.replace("…", "..."), printed.replace("…", "..."), FLAGS)


def ran(text: str, name: str) -> Iterator[Ran]:
    """Run the blocks of a page, one after another, in the present folder."""
    scope: dict[str, object] = {"__name__": name}
    blocks = list(FENCE.finditer(text))
    for k, block in enumerate(blocks):
        language, code = block.groups()
        if language == "text":
            continue
        printed = (
            _python(code, name, scope) if language == "python" else "".join(map(_vendi, _commands(code)))
        )
        after = blocks[k + 1] if k + 1 < len(blocks) else None
        if after is not None and (after[1] != "text" or text[block.end() : after.start()].strip()):
            after = None
        yield Ran(code, printed, after and after[2], after and after.span(2))


def _python(code: str, name: str, scope: dict[str, object]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, name, "exec"), scope)  # our own page, not user input
    return out.getvalue()


def _commands(code: str) -> list[str]:
    lines = code.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("vendi ")]


def _vendi(line: str) -> str:
    from click.testing import CliRunner

    from vendimeter.cli.commands import vendi

    words = shlex.split(line, comments=True)[1:]
    result = CliRunner().invoke(vendi, words, prog_name="vendi", catch_exceptions=False)
    if result.exit_code:
        raise RuntimeError(f"{line}\nends with code {result.exit_code}:\n{result.output}")
    return result.stdout


def _folded(printed: str) -> str:
    """Long sentences over several lines; tables are left as they are; … is what differs between machines."""
    lines: list[str] = []
    for pattern, stable in VOLATILE:
        printed = re.sub(pattern, stable, printed)
    for line in printed.strip("\n").split("\n"):
        sentence = len(line) > WIDTH and "  " not in line.strip() and " & " not in line
        lines += textwrap.wrap(line, WIDTH, break_on_hyphens=False) if sentence else [line.rstrip()]
    return "\n".join(lines) + "\n"


def main(pages: list[str]) -> int:
    """Bring the outputs of the pages up to date."""
    here = Path.cwd()
    os.environ["COLUMNS"] = "100"
    for page in pages:
        path = here / page
        text = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                found = [one for one in ran(text, page) if not one.agrees]
            finally:
                os.chdir(here)
        for one in reversed(found):
            assert one.span is not None
            text = text[: one.span[0]] + _folded(one.printed) + text[one.span[1] :]
        path.write_text(text, encoding="utf-8")
        print(f"{page}: {len(found)} outputs changed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
