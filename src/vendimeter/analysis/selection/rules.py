"""Who may be chosen: quotas of groups, items that must be in, and how good items are."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from vendimeter.data.arrays import is_frame_column, is_sparse, is_table, refuse_masked, refuse_set, to_numpy
from vendimeter.data.devices import is_foreign, local, to_host
from vendimeter.data.groups import Grouping, read
from vendimeter.data.tables import check_alignment, has_columns
from vendimeter.data.tables import labels as labels_of
from vendimeter.errors import InputError, brief, digits, unknown
from vendimeter.kernels import Kernel
from vendimeter.options import as_number, whole_number

__all__ = ["Rules", "check_k", "qualities", "rules_of"]

HIGHEST = 1e300  # of qualities, so that sums of them are finite


class Rules:
    """Which items may still be chosen.

    Attributes
    ----------
    k : int
        How many are to be chosen in all.
    open : ndarray of bool, shape (n,)
        Those that may be.
    required : list of int
        Those that must be.
    labels : list, or None
        The groups, where there are quotas.
    group : ndarray or None
        The group of each item.
    """

    def __init__(self, n: int, k: int, required: list[int], groups: _Groups | None):
        self.n, self.k, self.required = n, k, required
        self.labels = None if groups is None else groups.labels
        self.group = None if groups is None else groups.group
        self._pool = np.zeros(n, dtype=np.int64) if groups is None else groups.pool[groups.group]
        self._left = np.array([k]) if groups is None else groups.left.copy()
        self.open = self._left[self._pool] > 0

    def take(self, item: int) -> None:
        """An item is chosen; a group that has its number is closed."""
        self.open[item] = False
        pool = self._pool[item]
        self._left[pool] -= 1
        if self._left[pool] == 0:
            self.open &= self._pool != pool

    def fresh(self) -> Rules:
        """The same rules, nothing chosen."""
        twin = object.__new__(Rules)
        twin.__dict__.update(self.__dict__)
        twin._left = self._left.copy()
        twin.open = self._left[self._pool] > 0
        return twin

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """A choice at random that keeps the rules, in an order at random."""
        left = self._left.copy()
        np.subtract.at(left, self._pool[self.required], 1)
        out = np.ones(self.n, dtype=bool)
        out[self.required] = False
        drawn = [
            rng.choice(np.flatnonzero(out & (self._pool == pool)), size=count, replace=False)
            for pool, count in enumerate(left.tolist())
            if count
        ]
        rest = rng.permutation(np.concatenate(drawn)) if drawn else np.zeros(0, dtype=np.int64)
        return np.concatenate([np.array(self.required, dtype=np.int64), rest])


class _Groups:
    """Groups with quotas; those without one share what is left."""

    def __init__(self, labels: list[Hashable], group: np.ndarray, pool: np.ndarray, left: np.ndarray):
        self.labels, self.group, self.pool, self.left = labels, group, pool, left


def check_k(k: Any, quotas: Any) -> int | None:
    """The number of items; it may be left to quotas."""
    if isinstance(k, str | Kernel) or callable(k):
        raise InputError(
            f"k={brief(k)}; expected how many items to choose, a whole number from 1 up. The kernel comes after it: "
            "select(samples, 100, kernel)."
        )
    if k is None and quotas is None:
        raise InputError("k is missing; expected how many items to choose: select(samples, 100).")
    return None if k is None else whole_number(k, "k")


def rules_of(samples: Any, n: int, k: int | None, quotas: Any, by: Any, required: Any) -> Rules:
    """The options, checked."""
    groups = None
    if quotas is None and by is not None:
        raise InputError(
            "by was given without quotas; expected quotas={label: number}, or one number for every group."
        )
    if quotas is not None:
        groups, k = _quotas(samples, n, k, quotas, by)
    if k is None or k > n:
        raise InputError(f"k={k} and there are {n:,} items; expected to choose at most all of them.")
    rules = Rules(n, k, _required(required, n, k), groups)
    if groups is not None:
        _check_required(groups, rules.required)
    return rules


def _quotas(samples: Any, n: int, k: int | None, quotas: Any, by: Any) -> tuple[_Groups, int]:
    if by is None:
        raise InputError("quotas were given without groups; expected by=labels, one label an item.")
    if has_columns(samples):
        by = labels_of(samples, by)
    refuse_set(samples, "labels")
    check_alignment(samples, by, "by")
    found = read(by, n, None)
    if len(found.items) != n or len(np.unique(found.items)) != n:
        raise InputError(
            "by has items with no label or several; expected one label an item, so that quotas add up."
        )
    sizes, labels = np.diff(found.starts), list(found.labels)
    wanted = _wanted(quotas, labels)
    short = next((g for g, count in wanted.items() if count > sizes[g]), None)
    if short is not None:
        raise InputError(
            f"the quota of group {brief(labels[short])} is {wanted[short]} and it has {sizes[short]} items; expected "
            "at most so many."
        )
    total = sum(wanted.values())
    rest = 0 if k is None else k - total
    others = n - int(sizes[list(wanted)].sum())
    if rest < 0 or total + rest == 0:
        raise InputError(
            f"the quotas add up to {total} and k={total + rest}; expected at most k, and at least one item."
        )
    if rest > others:
        raise InputError(
            f"the quotas add up to {total} and k={k}: the other {rest} have to come from groups without a quota, which "
            f"have {others} items; expected quotas that add up to k. Leave k away to choose just these."
        )
    pool = np.full(len(labels), len(labels))
    pool[list(wanted)] = list(wanted)
    left = np.zeros(len(labels) + 1, dtype=np.int64)
    left[list(wanted)] = list(wanted.values())
    left[-1] = rest
    return _Groups(labels, _group_of(found, n), pool, left), total + rest


def _group_of(found: Grouping, n: int) -> np.ndarray:
    group = np.empty(n, dtype=np.int64)
    group[found.items] = np.repeat(np.arange(len(found.labels)), np.diff(found.starts))
    return group


def _wanted(quotas: Any, labels: list[Hashable]) -> dict[int, int]:
    """How many of which group, by its position."""
    if isinstance(quotas, Mapping):
        places = {label: g for g, label in enumerate(labels)}
        for label in quotas:
            if label not in places:
                raise unknown("group", label, labels)
        return {places[label]: _count(number, f"quotas[{brief(label)}]") for label, number in quotas.items()}
    number = as_number(quotas)
    if not (number >= 1 and number == math.floor(number) and number < math.inf):
        raise InputError(
            f"quotas={brief(quotas)}; expected a number for every group, or a mapping {{label: number}}."
        )
    return dict.fromkeys(range(len(labels)), int(number))


def _count(value: Any, name: str) -> int:
    number = as_number(value)
    if not (0 <= number < math.inf and number == int(number)):
        raise InputError(f"{name} is {brief(value)}; expected a whole number from 0 up.")
    return int(number)


def _required(required: Any, n: int, k: int) -> list[int]:
    """Positions that must be chosen."""
    if required is None:
        return []
    places = _array(required, "required")
    if places.size == 0:
        return []
    if places.ndim != 1 or places.dtype.kind not in "iu":
        hint = " For a mask pass numpy.flatnonzero(mask)." if places.dtype == bool else ""
        raise InputError(
            f"required={brief(required)}; expected positions of items, whole numbers in a list.{hint}"
        )
    wrong = places[(places < 0) | (places >= n)]
    if len(wrong):
        raise InputError(
            f"required has the position {wrong[0]} and there are {n} items; expected 0 … {n - 1}."
        )
    if len(np.unique(places)) < len(places):
        values, counts = np.unique(places, return_counts=True)
        raise InputError(f"required has the position {values[counts > 1][0]} twice; expected each once.")
    if len(places) > k:
        raise InputError(f"required has {len(places)} items and k={k}; expected at most k.")
    return places.tolist()


def _check_required(groups: _Groups, required: list[int]) -> None:
    """Items that must be in count towards the quota of their group."""
    pools = groups.pool[groups.group[required]]
    counts = np.bincount(pools, minlength=len(groups.left))
    over = np.flatnonzero(counts > groups.left)
    if len(over):
        pool = int(over[0])
        whose = (
            f"group {brief(groups.labels[pool])}"
            if pool < len(groups.labels)
            else "the groups without a quota"
        )
        raise InputError(
            f"required has {counts[pool]} items of {whose}, of which {groups.left[pool]} may be chosen; expected at "
            "most so many."
        )


def qualities(samples: Any, quality: Any, n: int) -> np.ndarray | None:
    """One number an item, from 0 up."""
    if quality is None:
        return None
    refuse_set(samples, "qualities")
    check_alignment(samples, quality, "quality")
    values = _array(quality, "quality")
    if values.ndim != 1 or values.dtype.kind not in "buif":
        raise InputError(f"quality={brief(quality)}; expected numbers, one an item, in an array or list.")
    if len(values) != n:
        raise InputError(f"quality has {len(values)} entries and there are {n} items; expected one an item.")
    values = values.astype(np.float64)
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        raise InputError(
            f"quality[{bad[0]}] is {digits(float(values[bad[0]]))}; expected finite numbers from 0 up."
        )
    if values.max() > HIGHEST:
        raise InputError(
            f"quality goes up to {values.max():g}, and its sums cannot be represented; expected smaller numbers."
        )
    if not values.any():
        raise InputError("quality is 0 for every item; expected at least one that is good for something.")
    return values


def _array(given: Any, name: str) -> np.ndarray:
    refuse_masked(given, name)
    if is_frame_column(given):
        given = to_numpy(given)
    elif is_foreign(given):
        given = to_host(local(given))
    if is_sparse(given) or is_table(given) or isinstance(given, str | bytes | set | frozenset | Mapping):
        raise InputError(f"{name}={brief(given)}; expected a plain list or array.")
    try:
        return np.asarray(given)
    except ValueError:
        raise InputError(f"{name}={brief(given)}; expected numbers in a plain list or array.") from None
