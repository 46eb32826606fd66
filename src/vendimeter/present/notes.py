"""What a result has to say beside its numbers: notes with a kind for programs, and a text for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

__all__ = ["Advice", "Audience", "Note", "sentences"]

Audience = Literal[
    "python", "terminal", "page"
]  # who reads: options are written size=, --size, or not at all


@dataclass(frozen=True)
class Advice:
    """What to do about a note, mostly which option to give.

    Parameters
    ----------
    text : str
        A sentence with ``{}`` where the option stands.
    option : str
        Its name in Python; in the terminal it has hyphens. Advice without one, such as to take more samples, is
        for all.
    value : str
        What to set it to, such as "2"; for "True" the option is a flag in the terminal.
    python_only : bool
        Whether the command has no such option.

    Examples
    --------
    >>> advice = Advice("Pass {} to compare all pairs.", "pairs", "True")
    >>> advice.shown("python"), advice.shown("terminal"), advice.shown("page")
    ('Pass pairs=True to compare all pairs.', 'Pass --pairs to compare all pairs.', '')
    >>> Advice("Take {} or more.", "q", "1").shown("terminal"), Advice("Take 100 samples.").shown("page")
    ('Take --q 1 or more.', 'Take 100 samples.')
    >>> Advice("Pass {} for another number.", "most", python_only=True).shown("terminal")
    ''
    """

    text: str
    option: str = ""
    value: str = ""
    python_only: bool = False

    def shown(self, audience: Audience) -> str:
        """The sentence for a reader who has the option; a page has none."""
        if not self.option:
            return self.text
        if audience == "python":
            return self.text.format(f"{self.option}={self.value}")
        if audience == "page" or self.python_only:
            return ""
        name = f"--{self.option.replace('_', '-')}"
        return self.text.format(name if self.value in ("", "True") else f"{name} {self.value}")


@dataclass(frozen=True)
class Note:
    """Something that a reader should know of a result.

    Attributes
    ----------
    kind : str
        What it is about, such as "common-size-capped": what programs test.
    text : str
        One sentence of fact, or a few, with no option in it.
    values : mapping
        The numbers and names in the text.
    advice : Advice or None
        What to do about it.

    Examples
    --------
    >>> advice = Advice("Pass {} for another.", "size")
    >>> note = Note("common-size-capped", "The common size is 500.", {"size": 500}, advice)
    >>> str(note), note.shown("page")
    ('The common size is 500. Pass size= for another.', 'The common size is 500.')
    """

    kind: str
    text: str
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)
    advice: Advice | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", MappingProxyType(dict(self.values)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Note, (self.kind, self.text, dict(self.values), self.advice)

    def __str__(self) -> str:
        return self.shown("python")

    def shown(self, audience: Audience) -> str:
        """The text with the advice as a reader can take it."""
        advice = "" if self.advice is None else self.advice.shown(audience)
        return f"{self.text} {advice}".rstrip()

    def to_dict(self) -> dict[str, Any]:
        """Plain values: kind, text, values, and the option of the advice."""
        option = None if self.advice is None else self.advice.option or None
        return {"kind": self.kind, "text": self.text, "values": dict(self.values), "option": option}


def sentences(notes: Iterable[Note], audience: Audience = "python") -> list[str]:
    """The notes for a reader, each text once."""
    return list(dict.fromkeys(note.shown(audience) for note in notes))
