"""Finite features that stand in for a kernel without: random Fourier features, and MinHash with random signs."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from vendimeter.data.arrays import as_rows, blocks, is_sparse
from vendimeter.data.devices import concat, move, namespace, to_host
from vendimeter.errors import InputError
from vendimeter.kernels.base import Kernel, On, Product, Sum
from vendimeter.kernels.functions import Embed
from vendimeter.kernels.sets import Jaccard, not_a_count
from vendimeter.kernels.vectors import RBF, Laplacian, not_finite
from vendimeter.messages import brief
from vendimeter.options import check_rng, generator, whole_number
from vendimeter.similarity import FeatureRows, Features
from vendimeter.spectrum import UNIT

__all__ = ["RandomFeatures", "stand_in"]

FEATURES = 2048  # as many as `stand_in` takes, where nobody says how many
HIGHEST = 255  # counts that are taken as sets: a table of random numbers has a row for each count of a column
TABLE_BYTES = 32 << 20  # of such a table, about; larger ones are made of fewer features at a time
CACHE_BYTES = 1 << 20  # of random numbers that are compared at a time: they stay in the cache
STEP = np.uint64(0x9E3779B97F4A7C15)
EMPTY_SET = np.array([1 << 63], dtype=np.uint64)  # no column has this number


@dataclass(frozen=True)
class RandomFeatures(Kernel):
    """Random features of the RBF, Laplacian or Jaccard kernel: for data beyond storage, and no bound on the score.

    For RBF and Laplacian each random frequency ω gives a pair of features, cos(ω·x) and sin(ω·x). For Jaccard each
    feature draws a random order of all elements, and a random sign for each: it is the sign of the first element of
    the set (MinHash). Every item has similarity 1 with itself, and the inner product of two is the kernel up to an
    error of about 1/√features, right on average over the seeds.

    The score is biased low, because the noise of each similarity adds up over all of them: with 2,000 points from a
    normal distribution in 8 dimensions, RBF(2) scores 71.3, and with 256, 1024, 2048 and 8192 random features 48, 61,
    66 and 70. With 2,000 fingerprints of 1,024 bits in 40 families (36 of the 48 bits of its family for each, and up to
    9 others), Jaccard scores 594, and as many features 159, 350, 450 and 555. So double `features` until the score
    stays; 30 times as many as the score came within 10 % in both. Scores have level "none" and no bounds. A sum of
    features takes 8·features² bytes.

    Parameters
    ----------
    kernel : RBF, Laplacian or Jaccard
        The kernel to stand in for. A median scale is fitted on the samples; for batches it must be fixed before, with
        ``kernel.fit(sample)``. For Jaccard items are binary vectors or whole counts up to 255, dense or sparse (a
        column is the same element in every batch), or sets of texts, bytes, numbers, and tuples of these, which are
        known by their content. It holds features/8 bytes an item.
    features : int
        How many; for RBF and Laplacian an even number.
    seed : int
        Of all that is random. Only features of one seed can be compared or merged.

    References
    ----------
    Rahimi and Recht: Random features for large-scale kernel machines, NeurIPS 2007. Sutherland and Schneider: On the
    error of random Fourier features, UAI 2015 (why pairs). Broder: On the resemblance and containment of documents,
    SEQUENCES 1997 (MinHash). Li and König: b-bit minwise hashing, WWW 2010 (one bit of it is enough).

    Examples
    --------
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> from vendimeter.kernels import RBF, RandomFeatures
    >>> points = np.repeat([[0.0], [50.0], [100.0]], 10, axis=0)
    >>> vm.score(points, RandomFeatures(RBF(1.0), features=4096)).level
    'none'
    >>> round(vm.score(points, RandomFeatures(RBF(1.0), features=4096)), 1)
    3.0
    >>> sets = [{"a", "b"}, {"a", "b"}, {"c"}, {"d", "e"}]
    >>> round(vm.score(sets, RandomFeatures(vm.kernels.Jaccard(), features=4096)), 1)
    2.8
    """

    kernel: RBF | Laplacian | Jaccard
    features: int = FEATURES
    seed: int = 0
    name: ClassVar[str] = "random-features"

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, RBF | Laplacian | Jaccard):
            raise InputError(
                f"RandomFeatures got {brief(self.kernel)}; expected an RBF, Laplacian or Jaccard kernel to stand in "
                "for."
            )
        count = whole_number(self.features, "features")
        if count % 2 and not isinstance(self.kernel, Jaccard):
            raise InputError(
                f"features={count}; expected an even number: they come in pairs.", option="features"
            )
        object.__setattr__(self, "features", count)
        object.__setattr__(self, "seed", check_rng(self.seed, "seed"))

    @property
    def fitted(self) -> bool:
        """Whether no scale of the kernel waits for data."""
        return self.kernel.fitted

    @property
    def approximate(self) -> bool:
        """It stands in for another kernel."""
        return True

    @property
    def caveat(self) -> str:
        """Why there are no bounds."""
        return (
            f"{self.features} random features stand in for {self.kernel!r}, and the score is biased low: double them "
            "until it stays"
        )

    @property
    def needs_all(self) -> str | None:
        """Nothing, once the scale is known."""
        if self.fitted:
            return None
        return "its scale is the median over all items. Fix it on a sample first: kernel = kernel.fit(sample)"

    def build(self, samples: Any, rng: int) -> Features:
        """Features: cosines and sines of random projections, or the signs of the first elements of sets."""
        if isinstance(self.kernel, Jaccard):
            rows, members = self.kernel.elements(samples)
            signs = _packed_signs(rows, members, self.features, self.seed)
            # A row of signs stands for its item: what is equal in all of them is identical here.
            return FeatureRows(
                move(signs, rows), _Signs(self.features), width=self.features, rounding=2 * UNIT
            )
        rows = as_rows(samples, kernel="the random-features kernel", scalars=True, dense=True)
        if not self.fitted:
            return replace(self, kernel=self.kernel.fit(rows, rng=rng)).batch_features(rows)  # type: ignore[arg-type]
        waves = _Waves(self.kernel, self.features // 2, self.seed, int(rows.shape[1]))
        return FeatureRows(rows, waves, width=self.features, rounding=(rows.shape[1] + 8) * UNIT)


def stand_in(kernel: Kernel, features: int | None = None, seed: int = 0) -> Kernel:
    """The kernel with random features in its place, also inside `On` and `Embed`; one that has them stays as it is.

    Parameters
    ----------
    kernel : Kernel
        RBF, Laplacian or Jaccard, alone or inside `On` or `Embed`.
    features : int, optional
        How many; 2,048 by default.
    seed : int
        Of all that is random.

    Raises
    ------
    InputError
        Where the kernel has no random features.

    Examples
    --------
    >>> from vendimeter.kernels import RBF, On
    >>> stand_in(On("position", RBF(1.0)), features=64)
    On('position', RandomFeatures(kernel=RBF(sigma=1.0), features=64, seed=0))
    """
    inner = kernel
    while isinstance(inner, On | Embed):
        inner = inner.kernel
    if not isinstance(inner, RandomFeatures | RBF | Laplacian | Jaccard):
        raise InputError(
            f"the kernel is {kernel!r}; random features expected one of those that have them: RBF, Laplacian or "
            f"Jaccard, alone or inside On(…) or Embed(…).{_suggest_alternative(inner)}"
        )
    if isinstance(kernel, On | Embed):
        return replace(kernel, kernel=stand_in(kernel.kernel, features, seed))
    if isinstance(inner, RandomFeatures):
        return inner
    return RandomFeatures(inner, FEATURES if features is None else features, seed)


def _suggest_alternative(kernel: Kernel) -> str:
    """What to do with a kernel that has no random features."""
    if isinstance(kernel, Sum | Product):
        return " Put RandomFeatures(…) around the parts of the sum or product that need them."
    if kernel.needs_all is None:
        return " Its own features are finite: leave the method to 'auto'."
    return " Score a random sample of the items, or use another method."


@dataclass(frozen=True)
class _Waves:
    """Rows → cos(ω·x) and sin(ω·x) for random frequencies ω, scaled to norm 1."""

    kernel: RBF | Laplacian
    pairs: int
    seed: int
    width: int

    def check(self, rows: Any, positions: np.ndarray) -> None:
        """Refuse rows that are not finite."""
        host = np.asarray(to_host(rows), dtype=np.float64)
        bad_rows = np.flatnonzero(~np.isfinite(host).all(axis=1))
        if len(bad_rows):
            raise not_finite(host[bad_rows[0]], int(positions[bad_rows[0]]))

    def __call__(self, rows: Any, positions: np.ndarray) -> Any:
        xp = namespace(rows)
        with np.errstate(invalid="ignore", over="ignore"):
            angles = rows @ move(_frequencies(self), rows)
        finite = xp.isfinite(angles)
        if not bool(xp.all(finite)):
            i = int(xp.nonzero(~finite)[0][0])
            row = to_host(rows[i, :])
            if np.isfinite(row).all():
                raise InputError(
                    f"item {positions[i]} holds values too large beside the scale of the kernel; expected a larger "
                    "scale, or rescaled data.",
                    item=positions[i],
                )
            raise not_finite(row, int(positions[i]))
        scale = 1 / math.sqrt(self.pairs)
        return concat([xp.cos(angles) * scale, xp.sin(angles) * scale], axis=1)


@functools.lru_cache(maxsize=4)  # one batch after another asks for the same
def _frequencies(waves: _Waves) -> np.ndarray:
    # The kernel is the Fourier transform of their distribution: normal for RBF, Cauchy for Laplacian.
    rng = generator(waves.seed, "random features")
    if isinstance(waves.kernel, RBF):
        return rng.standard_normal((waves.width, waves.pairs)) / float(waves.kernel.sigma)
    return rng.standard_cauchy((waves.width, waves.pairs)) / float(waves.kernel.scale)


# ------------------------------------------------------------------------------------------- MinHash with random signs
#
# Feature j of the set A is s_j(a)/√m, with a the element of A that comes first in the j-th random order and s_j(a) = ±1
# its random sign. Two sets A and B have the same first element with probability J = J(A, B), which makes the product
# of their signs 1; else it is ±1 with even odds. So the mean of φ(A)·φ(B) is J, exactly, and its variance (1 − J²)/m.
# The usual way, one of B buckets a hash as B columns of 0 and 1, matches by chance too; without that bias its variance
# at the same width D is (1−J)(1+(B−1)J)·B/((B−1)D), against (1−J)(1+J)/D for the signs: more for every B.
#
# Order and sign are one random number: 32 bits that are a fixed function of (seed, j, element), the last being the
# sign. The smallest number of a set then carries the sign of its first element. (Two elements come first together with
# a probability of |A ∪ B|/2³¹, which is nothing beside 1/√m.)
# Counts are sets of (column, 1), (column, 2), … up to the count; the empty set has an element of its own.


@dataclass(frozen=True)
class _Signs:
    """Rows of packed bits → ±1/√features, on any device."""

    features: int

    def check(self, rows: Any, positions: np.ndarray) -> None:
        """Do nothing: the items were checked when their bits were made."""

    def __call__(self, rows: Any, positions: np.ndarray) -> Any:
        scale = 1 / math.sqrt(self.features)
        if isinstance(rows, np.ndarray):
            bits: Any = np.unpackbits(rows.astype(np.uint8), axis=1, count=self.features)
            return bits * (-2 * scale) + scale
        xp = namespace(rows)
        halves = xp.floor(rows[:, :, None] / move(2.0 ** np.arange(7, -1, -1), rows))
        bits = xp.reshape(halves - 2 * xp.floor(halves / 2), (rows.shape[0], 8 * rows.shape[1]))
        return bits[:, : self.features] * (-2 * scale) + scale


def _packed_signs(rows: Any, members: list[Hashable] | None, features: int, seed: int) -> np.ndarray:
    """The signs of all items, eight a byte, in main memory: they are far smaller than what they are made from."""
    keys = None if members is None else _content_keys(members)
    # Numbers of a seed of any size, the first of which are the same however many are asked for.
    hashes = np.random.SeedSequence(seed).generate_state(features, np.uint64)
    n, width = int(rows.shape[0]), int(rows.shape[1])
    packed = np.empty((n, -(-features // 8)), dtype=np.uint8)
    row_size = -(-2 * rows.nnz // n) if is_sparse(rows) else width
    for part in blocks(n, max(row_size, features // 8, 1)):
        columns, counts, sizes = _nonzero_entries(rows, part)
        levels = 1 << (int(counts.max(initial=1)) - 1).bit_length()  # a power of two: few tables are made
        table, table_keys, step = None, EMPTY_SET, features
        if keys is None and 4 * width * levels * features <= TABLE_BYTES:
            table = _column_table(width, levels, features, seed)
        else:  # only of what is in these rows, and of fewer features at a time
            present_columns, columns = np.unique(columns, return_inverse=True)
            table_keys = present_columns.astype(np.uint64) if keys is None else keys[present_columns]
            step = max(8, min(features, TABLE_BYTES // (4 * levels * max(len(table_keys), 1))))
        table_rows = columns * levels + (counts - 1)
        signs = np.empty((len(sizes), features), dtype=bool)
        for first in range(0, features, step):
            some = slice(first, min(first + step, features))
            numbers = _table(table_keys, levels, hashes[some]) if table is None else table
            signs[:, some] = _first_signs(numbers, table_rows, sizes, _table(EMPTY_SET, 1, hashes[some]))
        packed[part] = np.packbits(signs, axis=1)
    return packed


def _nonzero_entries(rows: Any, part: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Some rows as their columns that are not 0, row by row, the counts there, and how many each row has."""
    if is_sparse(rows):
        ends = rows.indptr[part.start : part.stop + 1]
        columns, counts = rows.indices[ends[0] : ends[-1]], rows.data[ends[0] : ends[-1]]
        owners = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        if not counts.all():  # zeros that are stored
            owners, columns, counts = (values[counts != 0] for values in (owners, columns, counts))
    else:
        block = to_host(rows[part, :])
        owners, columns = np.nonzero(block)
        counts = block[owners, columns]
    if counts.dtype.kind != "b":
        is_bad = ~(np.isfinite(counts) & (counts > 0))
        if is_bad.any():
            i = int(np.flatnonzero(is_bad)[0])
            raise not_a_count(int(owners[i]) + part.start, counts[i])
        is_bad = (counts % 1 != 0) | (counts > HIGHEST)
        if is_bad.any():
            i = int(np.flatnonzero(is_bad)[0])
            raise InputError(
                f"item {int(owners[i]) + part.start} holds the value {counts[i]}; random features of the jaccard "
                f"kernel expected sets, binary vectors, or whole counts up to {HIGHEST}. Make such numbers of them, "
                "for example rows > 0 or numpy.rint(10 * rows), or use Jaccard() itself on a sample of the items.",
                item=int(owners[i]) + part.start,
            )
    sizes = np.bincount(owners, minlength=part.stop - part.start)
    return columns.astype(np.int64), counts.astype(np.int64), sizes


def _first_signs(
    table: np.ndarray, table_rows: np.ndarray, sizes: np.ndarray, empty: np.ndarray
) -> np.ndarray:
    """Whether the sign of the first element of each set is −, for each column of random numbers.

    `table_rows` are the rows of the table for one set after another, `sizes` of them for each.
    """
    signs = np.empty((len(sizes), table.shape[1]), dtype=bool)
    starts = np.cumsum(sizes) - sizes
    # By size: of sets of about one size, all have a next element, or hardly any.
    order = np.argsort(-sizes, kind="stable")
    nonempty = int(np.count_nonzero(sizes))
    signs[order[nonempty:]] = empty & 1
    parts = blocks(nonempty, table.shape[1], table.itemsize, most=CACHE_BYTES) if nonempty else []
    buffer = np.empty((parts[0].stop if parts else 0, table.shape[1]), dtype=table.dtype)
    for part in parts:
        sets = order[part]
        set_starts, negated_sizes = starts[sets], -sizes[sets]
        minima = table[table_rows[set_starts]]
        for k in range(1, -int(negated_sizes[0])):
            count = int(np.searchsorted(negated_sizes, -k))  # those with more than k elements
            # With "clip" NumPy writes straight into the buffer; no place is out of bounds.
            np.take(table, table_rows[set_starts[:count] + k], axis=0, out=buffer[:count], mode="clip")
            np.minimum(minima[:count], buffer[:count], out=minima[:count])
        signs[sets] = minima & 1
    return signs


@functools.lru_cache(maxsize=2)  # one batch after another asks for the same
def _column_table(columns: int, levels: int, features: int, seed: int) -> np.ndarray:
    hashes = np.random.SeedSequence(seed).generate_state(features, np.uint64)
    return _table(np.arange(columns, dtype=np.uint64), levels, hashes)


def _table(keys: np.ndarray, levels: int, hashes: np.ndarray) -> np.ndarray:
    """Random numbers: a row for every count 1 … levels of every key, with the smallest of the levels up to it."""
    steps = np.arange(1, levels + 1, dtype=np.uint64) * STEP
    level_keys = _mix(keys[:, None] + steps)
    table = np.empty((len(keys), levels, len(hashes)), dtype=np.uint32)
    for part in blocks(len(keys), levels * len(hashes), most=CACHE_BYTES) if len(keys) else []:
        numbers = _mix(level_keys[part, :, None] + hashes) >> np.uint64(32)
        table[part] = np.minimum.accumulate(numbers, axis=1)
    return table.reshape(-1, len(hashes))


def _mix(numbers: np.ndarray) -> np.ndarray:
    """Mix the bits of numbers by the last steps of SplitMix64, so that different ones become independent; in place."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers ^= numbers >> np.uint64(shift)
        numbers *= np.uint64(factor)
    numbers ^= numbers >> np.uint64(31)
    return numbers


def _content_keys(members: list[Hashable]) -> np.ndarray:
    """A number for each member that is the same in every batch, process and machine."""
    digests = b"".join(_digest(member)[:8] for member in members)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def _digest(member: Any) -> bytes:
    """A digest of the content of a member; the same for members that are equal, as 1, 1.0 and True are."""
    if isinstance(member, np.bool_ | np.integer | np.floating):
        member = member.item()
    if isinstance(member, float) and member.is_integer():
        member = int(member)
    if isinstance(member, str):
        content = b"s" + member.encode("utf-8", "surrogatepass")
    elif isinstance(member, bytes):
        content = b"b" + member
    elif isinstance(member, int):
        content = b"i" + format(int(member), "x").encode()
    elif isinstance(member, float) and member == member:
        content = b"f" + member.hex().encode()
    elif member is None:
        content = b"n"
    elif isinstance(member, tuple):
        content = b"t" + b"".join(map(_digest, member))
    elif isinstance(member, frozenset):
        content = b"z" + b"".join(sorted(map(_digest, member)))
    else:
        raise InputError(
            f"a set has the member {brief(member)}, a {type(member).__name__}; random features know members by their "
            "content, so that batches agree, and expected texts, bytes, numbers, or tuples and frozensets of these. "
            "Put a text that names it in its place."
        )
    return hashlib.blake2b(content, digest_size=16).digest()
