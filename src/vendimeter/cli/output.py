"""A result for whoever asked: text, JSON, CSV, LaTeX or Markdown, to standard output or whole into a file."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from vendimeter import __version__
from vendimeter.cli.options import Output
from vendimeter.present.files import write_whole
from vendimeter.present.plain import plain
from vendimeter.present.tables import Sheet, as_csv, as_latex, as_markdown

__all__ = ["SCHEMA", "Answer", "Source", "check_target", "emit", "write_atomically"]

SCHEMA = "vendimeter-result-2"  # the name and version of what --json gives; see schema/result-2.json


@dataclass(frozen=True)
class Source:
    """Where the samples of a result came from: files, their kind, and the kernel."""

    files: Sequence[str]
    kind: str | None = None
    guessed: bool = False
    kernel: str = ""
    items: int | None = None
    left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "files": [str(name) for name in self.files],
            "kind": self.kind,
            "guessed": self.guessed,
            "kernel": self.kernel,
            "items": self.items,
            "left_out": self.left_out,
        }


@dataclass
class Answer:
    """The result of a command: words, tables, and everything as plain values."""

    command: str
    result: Mapping[str, Any]
    words: str = ""
    sheets: Sequence[Sheet] = ()
    source: Source | None = None
    seed: int | None = None
    warnings: list[str] = field(default_factory=list)
    gate: Mapping[str, Any] | None = None
    text: str | None = None  # for the terminal, where it is not words and tables


def check_target(
    output: Output, files: Sequence[str] = (), *others: Path | None, shared: Sequence[Path | None] = ()
) -> None:
    """Raise an error for files that cannot be written, before the work is done.

    Files that are there and not to be overwritten, files that are read, and one name for two things. Those in `shared`
    may be there, since a run goes on from them.
    """
    from vendimeter.cli.merge import refuse_existing, refuse_input

    if output.table is not None and output.form in ("text", "json"):
        raise click.UsageError(
            f"--table {output.table} was given without --csv, --latex or --markdown; expected one of them, because "
            "text and JSON have all tables."
        )
    written_paths: set[str] = set()
    for path in (output.out, *others, *shared):
        if path is None:
            continue
        if path not in shared:
            refuse_existing(path, output.force)
            refuse_input(path, files)
        real_path = os.path.realpath(path)
        if real_path in written_paths:
            raise click.UsageError(
                f"{str(path)!r} is named for two things to be written; expected two names."
            )
        written_paths.add(real_path)


def emit(answer: Answer, output: Output, quiet: bool = False) -> None:
    """Write the answer in the requested form to standard output or a file."""
    from vendimeter.cli.commands import check_interrupted
    from vendimeter.present.terminal import say

    check_interrupted()
    text = render(answer, output)
    if output.out is None:
        if sys.stdout is None:
            raise click.ClickException("there is no standard output; expected one, or a file: -o FILE.")
        click.echo(_encodable_text(text, output.form))
        return
    with write_atomically(output.out, overwrite=output.force) as partial:
        # Names of files may hold bytes that are no text.
        partial.write_bytes((text + "\n").encode("utf-8", "backslashreplace"))
    say(f"Written: {output.out}", quiet)


def _encodable_text(text: str, form: str) -> str:
    """Text for standard output, escaped where its encoding lacks characters, so that nothing is lost."""
    from vendimeter.present.terminal import encodable

    if encodable(text, sys.stdout):
        return text
    if form == "json":
        return _json_escaped(text, lambda mark: False)
    coding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(coding, "backslashreplace").decode(coding)


@contextlib.contextmanager
def write_atomically(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A file for the block to write that gets the name `path` at its end, as `write_whole` makes it."""
    from vendimeter.cli.merge import refuse_existing

    refuse_existing(path, overwrite)
    try:
        with write_whole(path, overwrite=overwrite) as partial:
            yield partial
    except FileExistsError:  # somebody else has made it meanwhile
        refuse_existing(path, overwrite)
        raise


def render(answer: Answer, output: Output) -> str:
    """The answer as text of the requested form, without the final newline."""
    if output.form == "json":
        return _json_escaped(
            json.dumps(envelope(answer), ensure_ascii=False, allow_nan=False), str.isprintable
        )
    if output.form == "text":
        from vendimeter.present.terminal import is_terminal, shown, wrap

        to_file = output.out is not None
        if answer.text is None:
            return shown(answer.words, answer.sheets, to_file=to_file)
        return answer.text if to_file or not is_terminal(sys.stdout) else wrap(answer.text, sys.stdout)
    sheet = _choose_sheet(answer, output.table)
    return {"csv": as_csv, "latex": as_latex, "markdown": as_markdown}[output.form](sheet)


def _choose_sheet(answer: Answer, name: str | None) -> Sheet:
    if not answer.sheets:
        raise click.UsageError(f"vendi {answer.command} has no table to give; expected --json, or no form.")
    if name is None:
        return answer.sheets[0]
    for sheet in answer.sheets:
        if sheet.name == name:
            return sheet
    raise click.UsageError(
        f"there is no table {name!r} in this result; it has {', '.join(sheet.name for sheet in answer.sheets)}."
    )


def envelope(answer: Answer) -> dict[str, Any]:
    """The JSON document of --json: the result and its provenance. Missing and infinite numbers are null."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "vendimeter": __version__,
        "command": answer.command,
        "source": None if answer.source is None else answer.source.to_dict(),
        "seed": answer.seed,
        "warnings": answer.warnings,
        "result": answer.result,
    }
    if answer.gate is not None:
        document["gate"] = answer.gate
    return plain(document)


def _json_escaped(text: str, is_plain: Callable[[str], bool]) -> str:
    """JSON that says the same; what is not plain in its texts, such as codes that terminals obey, is written in hex."""

    def escape_match(match: re.Match[str]) -> str:
        return match[0] if is_plain(match[0]) else json.dumps(match[0])[1:-1]

    return re.sub(r"[^\x20-\x7e]", escape_match, text)
