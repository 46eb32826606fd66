"""A result for whoever asked: text, JSON, CSV, LaTeX or Markdown, to standard output or whole into a file."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from vendimeter import __version__
from vendimeter.cli.options import Output
from vendimeter.present.tables import Sheet, as_csv, as_latex, as_markdown

__all__ = ["SCHEMA", "Answer", "Sheet", "Source", "check_target", "emit", "written"]

SCHEMA = "vendimeter-result-1"  # the name and version of what --json gives; see schema/result-1.json


@dataclass(frozen=True)
class Source:
    """What was read, and how it was taken."""

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
    """What a command found: words, tables, and everything as plain values."""

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
    """Refuse what cannot be written, before the work is done.

    Files that are there and not to be overwritten, files that are read, and one name for two things. Those in `shared`
    may be there, since a run goes on from them.
    """
    from vendimeter.cli.merge import refuse_existing, refuse_input

    if output.table is not None and output.form in ("text", "json"):
        raise click.UsageError(
            f"--table {output.table} was given without --csv, --latex or --markdown; expected one of them, because "
            "text and JSON have all tables."
        )
    taken: set[str] = set()
    for path in (output.out, *others, *shared):
        if path is None:
            continue
        if path not in shared:
            refuse_existing(path, output.force)
            refuse_input(path, files)
        own = os.path.realpath(path)
        if own in taken:
            raise click.UsageError(
                f"{str(path)!r} is named for two things to be written; expected two names."
            )
        taken.add(own)


def emit(answer: Answer, output: Output, quiet: bool = False) -> None:
    """Give the answer in the form that was asked for."""
    from vendimeter.cli.commands import check_interrupted
    from vendimeter.present.terminal import say

    check_interrupted()
    text = rendered(answer, output)
    if output.out is None:
        if sys.stdout is None:
            raise click.ClickException("there is no standard output; expected one, or a file: -o FILE.")
        click.echo(_for_stream(text, output.form))
        return
    with written(output.out, overwrite=output.force) as beside:
        # Names of files may hold bytes that are no text.
        beside.write_bytes((text + "\n").encode("utf-8", "backslashreplace"))
    say(f"Written: {output.out}", quiet)


def _for_stream(text: str, form: str) -> str:
    """Text for standard output, of which nothing is lost on an old encoding."""
    from vendimeter.present.terminal import encodable

    if encodable(text, sys.stdout):
        return text
    if form == "json":
        return _json_escaped(text, lambda mark: False)
    coding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(coding, "backslashreplace").decode(coding)


@contextlib.contextmanager
def written(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A name beside `path` to write to, which takes its place when all is done; on any error nothing stays."""
    from vendimeter.cli.merge import refuse_existing

    refuse_existing(path, overwrite)
    target = Path(os.path.realpath(path))
    try:
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=".vendi-"
        )  # a long name may leave no room for more
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        mask = os.umask(0)
        os.umask(mask)
        beside.chmod(target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~mask)
        if overwrite:
            os.replace(beside, target)
        else:
            _placed(beside, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()


def _placed(beside: Path, target: Path) -> None:
    """Give a file its name, which must be free."""
    from vendimeter.cli.merge import refuse_existing

    try:
        os.link(beside, target)  # unlike a renaming, it fails where somebody else made the file meanwhile
    except FileExistsError:
        refuse_existing(target, False)
        raise
    except OSError:  # a disk that has no links
        refuse_existing(target, False)
        os.replace(beside, target)


def rendered(answer: Answer, output: Output) -> str:
    """The answer as text of a form, without the last line end."""
    if output.form == "json":
        return _json_escaped(
            json.dumps(envelope(answer), ensure_ascii=False, allow_nan=False), str.isprintable
        )
    if output.form == "text":
        from vendimeter.present import terminal

        return terminal.shown(answer, to_file=output.out is not None)
    sheet = _sheet(answer, output.table)
    return {"csv": as_csv, "latex": as_latex, "markdown": as_markdown}[output.form](sheet)


def _sheet(answer: Answer, name: str | None) -> Sheet:
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
    """What --json gives: the result, and how it came about. Missing and infinite numbers are null."""
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "vendimeter": __version__,
        "command": answer.command,
        "source": None if answer.source is None else answer.source.to_dict(),
        "seed": answer.seed,
        "warnings": answer.warnings,
        "result": answer.result,
    }
    if answer.gate is not None:
        found["gate"] = answer.gate
    return _plain(found)


def _json_escaped(text: str, plain: Callable[[str], bool]) -> str:
    """JSON that says the same; what is not plain in its texts, such as codes that terminals obey, is written in hex."""

    def escaped(found: re.Match[str]) -> str:
        return found[0] if plain(found[0]) else json.dumps(found[0])[1:-1]

    return re.sub(r"[^\x20-\x7e]", escaped, text)


def _plain(value: Any) -> Any:
    """A value as JSON can write it; keys are texts, and what is neither text nor number is shown as text."""
    import numpy as np

    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return str(value)
