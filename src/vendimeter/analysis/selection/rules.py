"""The constraints of a selection: quotas of groups and required items; and the qualities of items."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from vendimeter.data.arrays import is_frame_column, is_sparse, is_table, refuse_masked, refuse_set, to_numpy
from vendimeter.data.devices import is_foreign, local, to_host
from vendimeter.data.groups import Grouping
from vendimeter.data.tables import check_alignment
from vendimeter.errors import InputError
from vendimeter.kernels import Kernel
from vendimeter.messages import brief, unknown
from vendimeter.options import as_number, whole_number
from vendimeter.present.numbers import digits

__all__ = ["Rules", "check_k", "qualities", "rules_of"]

LARGEST_QUALITY = 1e300  # so that sums of qualities are finite


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

    def __init__(self, n: int, k: int, required: list[int], quotas: _Quotas | None):
        self.n, self.k, self.required = n, k, required
        self.labels = None if quotas is None else quotas.labels
        self.group = None if quotas is None else quotas.group
        self._pool = np.zeros(n, dtype=np.int64) if quotas is None else quotas.pool[quotas.group]
        self._remaining = np.array([k]) if quotas is None else quotas.remaining.copy()
        self.open = self._remaining[self._pool] > 0

    def take(self, item: int) -> None:
        """Choose an item; a group whose quota is full is closed."""
        self.open[item] = False
        pool = self._pool[item]
        self._remaining[pool] -= 1
        if self._remaining[pool] == 0:
            self.open &= self._pool != pool

    def fresh(self) -> Rules:
        """The same rules, nothing chosen."""
        rules = object.__new__(Rules)
        rules.__dict__.update(self.__dict__)
        rules._remaining = self._remaining.copy()
        rules.open = self._remaining[self._pool] > 0
        return rules

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a random choice that keeps the rules, in random order, required items first."""
        remaining = self._remaining.copy()
        np.subtract.at(remaining, self._pool[self.required], 1)
        available = np.ones(self.n, dtype=bool)
        available[self.required] = False
        drawn = [
            rng.choice(np.flatnonzero(available & (self._pool == pool)), size=count, replace=False)
            for pool, count in enumerate(remaining.tolist())
            if count
        ]
        others = rng.permutation(np.concatenate(drawn)) if drawn else np.zeros(0, dtype=np.int64)
        return np.concatenate([np.array(self.required, dtype=np.int64), others])


class _Quotas:
    """Groups and the pools that quotas are of; groups without a quota share the last pool."""

    def __init__(self, labels: list[Hashable], group: np.ndarray, pool: np.ndarray, remaining: np.ndarray):
        self.labels, self.group, self.pool, self.remaining = labels, group, pool, remaining


def check_k(k: Any, quotas: Any) -> int | None:
    """Check the number of items to choose; None if it is left to quotas."""
    if isinstance(k, str | Kernel) or callable(k):
        raise InputError(
            f"k={brief(k)}; expected how many items to choose, a whole number from 1 up. The kernel comes after it: "
            "select(samples, 100, kernel)."
        )
    if k is None and quotas is None:
        raise InputError("k is missing; expected how many items to choose: select(samples, 100).")
    return None if k is None else whole_number(k, "k")


def rules_of(n: int, k: int | None, quotas: Any, groups: Grouping | None, required: Any) -> Rules:
    """Check the options that constrain a selection."""
    group_quotas = None
    if quotas is not None:
        group_quotas, k = _read_quotas(n, k, quotas, groups)
    if k is None or k > n:
        raise InputError(f"k={k} and there are {n:,} items; expected to choose at most all of them.")
    rules = Rules(n, k, _parse_required(required, n, k), group_quotas)
    if group_quotas is not None:
        _check_required(group_quotas, rules.required)
    return rules


def _read_quotas(n: int, k: int | None, quotas: Any, grouping: Grouping | None) -> tuple[_Quotas, int]:
    if grouping is None:
        raise InputError("quotas were given without groups; expected by=labels, one label an item.")
    if len(grouping.items) != n or len(np.unique(grouping.items)) != n:
        raise InputError(
            "by has items with no label or several; expected one label an item, so that quotas add up."
        )
    sizes, labels = np.diff(grouping.starts), list(grouping.labels)
    quota = _parse_quotas(quotas, labels)
    too_small = next((g for g, count in quota.items() if count > sizes[g]), None)
    if too_small is not None:
        raise InputError(
            f"the quota of group {brief(labels[too_small])} is {quota[too_small]} and it has {sizes[too_small]} items; "
            "expected at most so many."
        )
    total = sum(quota.values())
    unreserved = 0 if k is None else k - total
    without_quota = n - int(sizes[list(quota)].sum())
    if unreserved < 0 or total + unreserved == 0:
        raise InputError(
            f"the quotas add up to {total} and k={total + unreserved}; expected at most k, and at least one item."
        )
    if unreserved > without_quota:
        raise InputError(
            f"the quotas add up to {total} and k={k}: the other {unreserved} have to come from groups without a quota, "
            f"which have {without_quota} items; expected quotas that add up to k. Leave k away to choose just these."
        )
    pool = np.full(len(labels), len(labels))
    pool[list(quota)] = list(quota)
    remaining = np.zeros(len(labels) + 1, dtype=np.int64)
    remaining[list(quota)] = list(quota.values())
    remaining[-1] = unreserved
    return _Quotas(labels, _item_groups(grouping, n), pool, remaining), total + unreserved


def _item_groups(grouping: Grouping, n: int) -> np.ndarray:
    group = np.empty(n, dtype=np.int64)
    group[grouping.items] = np.repeat(np.arange(len(grouping.labels)), np.diff(grouping.starts))
    return group


def _parse_quotas(quotas: Any, labels: list[Hashable]) -> dict[int, int]:
    """The quota of each group that has one, by the position of the group."""
    if isinstance(quotas, Mapping):
        positions = {label: g for g, label in enumerate(labels)}
        for label in quotas:
            if label not in positions:
                raise unknown("group", label, labels)
        return {
            positions[label]: _parse_count(number, f"quotas[{brief(label)}]")
            for label, number in quotas.items()
        }
    number = as_number(quotas)
    if not (number >= 1 and number == math.floor(number) and number < math.inf):
        raise InputError(
            f"quotas={brief(quotas)}; expected a number for every group, or a mapping {{label: number}}."
        )
    return dict.fromkeys(range(len(labels)), int(number))


def _parse_count(value: Any, name: str) -> int:
    number = as_number(value)
    if not (0 <= number < math.inf and number == int(number)):
        raise InputError(f"{name} is {brief(value)}; expected a whole number from 0 up.")
    return int(number)


def _parse_required(required: Any, n: int, k: int) -> list[int]:
    """Check the positions of required items."""
    if required is None:
        return []
    positions = _to_array(required, "required")
    if positions.size == 0:
        return []
    if positions.ndim != 1 or positions.dtype.kind not in "iu":
        hint = " For a mask pass numpy.flatnonzero(mask)." if positions.dtype == bool else ""
        raise InputError(
            f"required={brief(required)}; expected positions of items, whole numbers in a list.{hint}"
        )
    out_of_range = positions[(positions < 0) | (positions >= n)]
    if len(out_of_range):
        raise InputError(
            f"required has the position {out_of_range[0]} and there are {n} items; expected 0 … {n - 1}."
        )
    if len(np.unique(positions)) < len(positions):
        values, counts = np.unique(positions, return_counts=True)
        raise InputError(f"required has the position {values[counts > 1][0]} twice; expected each once.")
    if len(positions) > k:
        raise InputError(f"required has {len(positions)} items and k={k}; expected at most k.")
    return positions.tolist()


def _check_required(quotas: _Quotas, required: list[int]) -> None:
    """Check that required items keep within the quotas of their groups."""
    pools = quotas.pool[quotas.group[required]]
    counts = np.bincount(pools, minlength=len(quotas.remaining))
    exceeded = np.flatnonzero(counts > quotas.remaining)
    if len(exceeded):
        pool = int(exceeded[0])
        owner = (
            f"group {brief(quotas.labels[pool])}"
            if pool < len(quotas.labels)
            else "the groups without a quota"
        )
        raise InputError(
            f"required has {counts[pool]} items of {owner}, of which {quotas.remaining[pool]} may be chosen; expected "
            "at most so many."
        )


def qualities(samples: Any, quality: Any, n: int) -> np.ndarray | None:
    """Check the qualities of the items, one number an item from 0 up."""
    if quality is None:
        return None
    refuse_set(samples, "qualities")
    check_alignment(samples, quality, "quality")
    values = _to_array(quality, "quality")
    if values.ndim != 1 or values.dtype.kind not in "buif":
        raise InputError(f"quality={brief(quality)}; expected numbers, one an item, in an array or list.")
    if len(values) != n:
        raise InputError(f"quality has {len(values)} entries and there are {n} items; expected one an item.")
    values = values.astype(np.float64)
    invalid = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(invalid):
        raise InputError(
            f"quality[{invalid[0]}] is {digits(float(values[invalid[0]]))}; expected finite numbers from 0 up."
        )
    if values.max() > LARGEST_QUALITY:
        raise InputError(
            f"quality goes up to {values.max():g}, and its sums cannot be represented; expected smaller numbers."
        )
    if not values.any():
        raise InputError("quality is 0 for every item; expected at least one that is good for something.")
    return values


def _to_array(values: Any, name: str) -> np.ndarray:
    refuse_masked(values, name)
    if is_frame_column(values):
        values = to_numpy(values)
    elif is_foreign(values):
        values = to_host(local(values))
    if is_sparse(values) or is_table(values) or isinstance(values, str | bytes | set | frozenset | Mapping):
        raise InputError(f"{name}={brief(values)}; expected a plain list or array.")
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(f"{name}={brief(values)}; expected numbers in a plain list or array.") from None
