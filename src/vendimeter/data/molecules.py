"""SMILES → molecules of RDKit, or the reason why there is none; nothing that RDKit logs reaches the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from vendimeter.data.arrays import as_list, is_frame_column, is_missing, to_list
from vendimeter.data.devices import is_foreign
from vendimeter.messages import brief
from vendimeter.optional import require
from vendimeter.present.text import printable

__all__ = [
    "LONGEST",
    "MOST_ATOMS",
    "MOST_DRAWN",
    "SQUARES",
    "as_items",
    "parse",
    "parse_all",
    "parts",
    "readable",
    "too_large",
    "too_many",
]

# Molecules that are held at a time: one takes some kilobytes, its fingerprint a hundred bytes.
AT_ONCE = 4096
# An upper bound on the sum of their squared sizes: a ring of n atoms takes 32 n² bytes.
SQUARES = 4096 * 45**2
# Atoms of a text. RDKit takes a second and 40 MiB for the worst of 1,000 atoms that are known, 10 s and 120 MiB for one
# of 2,000.
MOST_ATOMS = 1000
# Atoms of a molecule whose formula is drawn: of more nothing can be made out, and it takes seconds.
MOST_DRAWN = 250
# Characters of a text: an atom with all that may be said of it has fewer than 32.
LONGEST = 32 * MOST_ATOMS

_STAMP = re.compile(r"^\[[\d:]+\]\s*")  # the time in front of a line of RDKit's log
_POSITION = re.compile(r"around position (\d+)")
_ATOM = re.compile(r"\[[^\]]*\]|Br|Cl|[A-Za-z*]")
_PURPOSE = "a kernel of molecules"


def _require_chem() -> Any:
    return require("rdkit.Chem", extra="molecules", purpose=_PURPOSE)


def _silence_rdkit() -> Any:
    """A context in which RDKit logs nothing."""
    return require("rdkit.rdBase", extra="molecules", purpose=_PURPOSE).BlockLogs()


def as_items(samples: Any, *, kernel: str) -> list[Any]:
    """SMILES and molecules as a list: from a list, an array, or a column of a frame."""
    items = as_list(samples, kernel=kernel)
    if is_frame_column(samples) or is_foreign(items):
        return to_list(samples)
    return items if isinstance(items, list) else list(items) if isinstance(items, tuple) else to_list(items)


def parse(item: Any) -> tuple[Any, str | None]:
    """A SMILES text, or a molecule of RDKit, as a molecule and None; or None and what is wrong with the item.

    What is wrong is said so that it follows the name of the item: "line 3 has no atoms".

    Examples
    --------
    >>> parse("CCO")[1] is None
    True
    >>> parse("C(C)(C)(C)(C)C")
    (None, 'is no possible molecule (Explicit valence for atom # 0 C, 5, is greater than permitted)')
    """
    return next(parse_all([item]))


def parse_all(samples: Any, *, kernel: str = "the reader of molecules") -> Iterator[tuple[Any, str | None]]:
    """What `parse` gives for each item of a list, an array, or a column of a frame.

    Examples
    --------
    >>> [reason for _, reason in parse_all(["CCO", ""])]
    [None, 'is empty']
    """
    items, chem = as_items(samples, kernel=kernel), _require_chem()
    for batch in parts(items):
        with _silence_rdkit():
            parsed = [(_parse_molecule(item, chem), item) for item in items[batch]]
            pairs = [
                (molecule, _find_flaw(item, chem) if molecule is None else None) for molecule, item in parsed
            ]
        yield from pairs


def parts(items: Sequence[Any]) -> Iterator[slice]:
    """Slices of a list whose molecules may be held at a time: `AT_ONCE` at most, and their squared sizes `SQUARES`."""
    start = squares = 0
    for i, item in enumerate(items):
        size = len(item) ** 2 if isinstance(item, str) else 0
        if i > start and (i - start == AT_ONCE or squares + size > SQUARES):
            yield slice(start, i)
            start, squares = i, 0
        squares += size
    if len(items):
        yield slice(start, len(items))


def readable(items: list[Any]) -> tuple[list[Any], bool]:
    """The molecule of each item, None where it has none; and whether all of them are newly made here, of texts."""
    chem = _require_chem()
    with _silence_rdkit():
        return [_parse_molecule(item, chem) for item in items], all(isinstance(item, str) for item in items)


def _parse_molecule(item: Any, chem: Any) -> Any:
    """The molecule, or None."""
    if isinstance(item, str):
        if _find_text_flaw(item) is not None:
            return None
        molecule = chem.MolFromSmiles(item)
        return molecule if molecule is not None and molecule.GetNumAtoms() else None
    return item if isinstance(item, chem.Mol) and _find_molecule_flaw(item) is None else None


def _find_text_flaw(text: str) -> str | None:
    """Why a text must not go to RDKit, which takes an empty text for a molecule and reads the first word alone."""
    if len(text) > MOST_ATOMS and (reason := too_large(text)) is not None:
        return reason
    words = text.split(maxsplit=1)
    if not words:
        return "is empty" if not text else "is only white space"
    if len(words) == 2:
        extension = words[1].rstrip()  # of CXSMILES, between bars
        if not (len(extension) > 1 and extension[0] == extension[-1] == "|"):
            first = printable(words[0], 40)
            return f"holds white space, and RDKit would read {first!r} alone; pass that, without a name"
    if text.isascii() and text.strip().isprintable():
        return None
    character = next(c for c in text.strip() if not (c.isascii() and c.isprintable()))
    return (
        f"holds the character {printable(character)!r} (U+{ord(character):04X}), which SMILES does not have"
    )


def too_large(text: str) -> str | None:
    """Why a text stands for more atoms than RDKit may be given; None where it does not."""
    if len(text) <= MOST_ATOMS:
        return None
    if len(text) > LONGEST:
        return f"has {len(text):,} characters; expected SMILES of at most {LONGEST:,}"
    atoms = sum(1 for _ in _ATOM.finditer(text))
    return too_many(atoms) if atoms > MOST_ATOMS else None


def too_many(atoms: int) -> str:
    """What is wrong with a molecule of so many atoms."""
    return (
        f"has {atoms:,} atoms; expected at most {MOST_ATOMS:,}, because the time and memory that RDKit takes grow with "
        "the square of their number"
    )


def _find_molecule_flaw(molecule: Any) -> str | None:
    """Why a molecule has no fingerprint: RDKit ends the whole process over one that is not ready, in a thread."""
    if not molecule.GetNumAtoms():
        return "has no atoms"
    try:
        ready = not molecule.NeedsUpdatePropertyCache()
        molecule.GetRingInfo().NumRings()
    except RuntimeError:  # rings were never looked for
        ready = False
    return None if ready else "is not sanitized; call rdkit.Chem.SanitizeMol(molecule) first"


def _find_flaw(item: Any, chem: Any) -> str:
    """What is wrong with an item that has no molecule."""
    if isinstance(item, chem.Mol):
        return _find_molecule_flaw(item) or "has no molecule"
    if is_missing(item):
        return f"is missing ({brief(item)})"
    if isinstance(item, bytes):
        return "is bytes, not text; decode it first, with item.decode()"
    if not isinstance(item, str):
        return f"is a {type(item).__name__}, neither SMILES nor a molecule of RDKit"
    reason = _find_text_flaw(item)
    if reason is not None:
        return reason
    if item.lstrip().startswith("InChI="):
        return "is an InChI, not SMILES; pass the molecule, rdkit.Chem.MolFromInchi(text)"
    raw = chem.MolFromSmiles(item, sanitize=False)
    if raw is None:
        return f"cannot be parsed as SMILES ({_find_syntax_error(item, chem)})"
    if not raw.GetNumAtoms():
        return "has no atoms"
    problems = [problem.Message() for problem in chem.DetectChemistryProblems(raw)]
    return f"is no possible molecule ({_one_line(problems[0]) if problems else 'RDKit cannot sanitize it'})"


def _find_syntax_error(text: str, chem: Any) -> str:
    """RDKit's message about a text, without the text itself, which our message shows already."""
    rdbase = require("rdkit.rdBase", extra="molecules", purpose=_PURPOSE)
    capture = getattr(rdbase, "CaptureErrorLog", None)
    if capture is None:  # before RDKit 2026.03 nothing but the terminal gets to know them
        return "a syntax error"
    with capture() as log:
        chem.MolFromSmiles(text, sanitize=False)
    lines = [_STAMP.sub("", line) for line in str(log.messages).splitlines()]
    if not lines:
        return "a syntax error"
    message = lines[0].removeprefix("SMILES Parse Error:")
    for mark in ("while parsing:", "for input:"):
        message = message.partition(mark)[0]
    position = _POSITION.search(log.messages)
    return _one_line(message) + (f" around position {position[1]}" if position else "")


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()), 160)
