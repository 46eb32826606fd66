"""A kernel on one column of a table."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from vendimeter.data import tables
from vendimeter.errors import InputError, brief
from vendimeter.kernels.base import Kernel, named
from vendimeter.similarity import Features, Similarity

__all__ = ["On"]


@dataclass(frozen=True)
class On(Kernel):
    """A kernel on one column of a table: ``On("colour", Match())``.

    Samples are a pandas, polars or Arrow table, a dict of columns, or a list of records.

    Examples
    --------
    >>> import vendimeter as vm
    >>> from vendimeter.kernels import Match, On
    >>> table = {"shape": ["disc", "disc", "star", "star"], "colour": ["red", "blue", "red", "blue"]}
    >>> round(vm.score(table, 0.5 * On("shape", Match()) + 0.5 * On("colour", Match())), 4)
    2.8284
    """

    column: Hashable
    kernel: Kernel
    name: ClassVar[str] = "on"

    def __post_init__(self) -> None:
        if isinstance(self.kernel, str):
            object.__setattr__(self, "kernel", named(self.kernel))
        if not isinstance(self.kernel, Kernel):
            raise InputError(
                f"On({brief(self.column)}, …) got {brief(self.kernel)}; expected a kernel such as Match()."
            )

    def __repr__(self) -> str:
        return f"On({self.column!r}, {self.kernel!r})"

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernel of the column."""
        return (self.kernel,)

    def build(self, samples: Any, rng: int) -> Similarity:
        """The similarities of the column."""
        return self._named(self.kernel.similarity(tables.column(samples, self.column), rng=rng))

    def batch_features(self, samples: Any, *, rng: int = 0) -> Features:
        """The features of the column."""
        return self._named(self.kernel.batch_features(tables.column(samples, self.column), rng=rng))

    def _named(self, similarity: Any) -> Any:
        return similarity.with_kernel(replace(self, kernel=similarity.kernel))
