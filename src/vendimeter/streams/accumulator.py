"""The accumulator: the mergeable statistic Σ w φφᵀ, Σ w and n, which is all that a score of features needs.

Streams, files larger than memory and pieces of work on many machines are all this one sum. It is kept raw and divided
only when a score is asked for, so that sums add up exactly as their items would.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from vendimeter.data import frames
from vendimeter.data.arrays import is_frame_column, is_sparse, is_table, length, refuse_set
from vendimeter.data.collection import Collection
from vendimeter.data.devices import is_foreign, local, to_host, wide_mode
from vendimeter.data.tables import check_alignment
from vendimeter.data.weights import Weights, raw_weights
from vendimeter.errors import EmptyError, InputError, MismatchError, TooLargeError
from vendimeter.kernels import Kernel, as_kernel
from vendimeter.kernels.description import describe, difference, fingerprint, identity, rebuild, same, shown
from vendimeter.messages import brief, unknown
from vendimeter.options import check_rng
from vendimeter.results.score import Profile, to_score
from vendimeter.similarity import FeatureRows, Features
from vendimeter.solvers.exact import Solution, of_gram
from vendimeter.solvers.gram import PROBES, GramSum
from vendimeter.solvers.options import Solver
from vendimeter.solvers.plan import Plan, Problem
from vendimeter.solvers.solve import run, unclaimed
from vendimeter.spectrum import parse_orders
from vendimeter.streams import saved
from vendimeter.streams.rows import Kept, compact, concatenate_masses, concatenate_rows, read_rows

__all__ = ["Accumulator"]

WIDEST = 16_384  # columns of features, at most: the sum takes 2 GiB there
LARGEST = 1e305  # sum of weights, at most: there is room for some arithmetic with it
MOST_ITEMS = 2**63 - 1  # items, at most
PRECISIONS = ("float64", "float32")
HELD = ("nothing", "dense", "sparse", "sum")


class Accumulator:
    """A score that grows: batches in, scores out at any time, and two of them add up.

    What is held is the d×d matrix Σ w φφᵀ of the features and never the items, so memory does not grow with them. (Up
    to about d/2 items their features are held instead, which is less.) The order of the items, how they were cut into
    batches, and which accumulator saw which of them, change nothing beyond rounding, and the rounding is in the bounds.

    Parameters
    ----------
    kernel : str or Kernel
        One with finite features that mean the same in every batch: ``"cosine"``, `Polynomial`, `ProbabilityProduct`,
        `RandomFeatures`, an `Embed` or `On` over these, sums and products of them. Others are refused, with the
        reason and what to use instead.
    precision : {"float64", "float32"}
        Of the products of features; "float32" is faster on a CPU and measures its error on the way, as for
        `vendimeter.score`. There is no "auto": it would choose by the number of items, and how long a stream will be
        is not known.
    rng : int
        Seed of the vectors that measure it.

    Attributes
    ----------
    n : int
        How many items have been added; with `counts`, their sum.
    updates : int
        How many batches have been accepted, empty ones included, by this accumulator and by those merged into it. It
        is a position in the stream only if every batch was accepted and nothing was merged in.
    width : int or None
        Columns of the features; None until the first batch.
    kernel : Kernel
        The kernel, made from its name where one was given. An accumulator that has seen no item takes over the kernel
        of the first one merged into it that has.
    precision, rng
        As given.
    mass : float
        The sum of the weights so far.
    held : {"nothing", "dense", "sparse", "sum"}
        Whether feature rows are held, or their sum.

    Examples
    --------
    >>> import numpy as np
    >>> import vendimeter as vm
    >>> rows = np.random.default_rng(0).standard_normal((1000, 16))
    >>> total = vm.Accumulator()
    >>> for batch in np.split(rows, 10):
    ...     total.update(batch)
    >>> abs(total.score() - vm.score(rows)) < 1e-10
    True
    >>> first, second = vm.Accumulator(), vm.Accumulator()
    >>> first.update(rows[:300])
    >>> second.update(rows[300:])
    >>> (first + second).n
    1000
    """

    def __init__(self, kernel: Any = "cosine", *, precision: str = "float64", rng: int = 0):
        self.kernel: Kernel = as_kernel(kernel)
        reason = self.kernel.needs_all
        if reason is not None:
            raise InputError(f"{self.kernel!r} cannot be accumulated: {reason}.")
        if precision not in PRECISIONS:
            raise unknown("precision", precision, PRECISIONS)
        self.precision, self.rng = precision, check_rng(rng)
        self.n = 0
        self.updates = 0
        self.width: int | None = None
        self._kept: list[Kept] = []
        self._kept_bytes, self._kept_mass = 0, 0.0
        self._device_array: Any = None  # an array on the device of what is held; None for the host
        self._sum: GramSum | None = None
        self._cached_solution: Solution | None = None  # until something is added
        # Of the files behind the kernel, as far as they are known.
        self._identity: dict[str, Any] | None = None

    # ------------------------------------------------------------------------------------------------------- growing

    def update(self, samples: Any, *, weights: Any = None, counts: Any = None) -> None:
        """Add a batch of items; if it is refused, nothing is added.

        Parameters
        ----------
        samples : array, sparse array, list, table or Collection
            What the kernel takes, or what `vendimeter.read` gives, with its weights. An empty batch is fine.
        weights : array of shape (n,), optional
            Masses of the items, of any scale: only their ratios count, over all batches. (In `vendimeter.score`, which
            sees all items at once, weights sum to 1.) Batches with and without weights mix: an item without has
            weight 1.
        counts : array of shape (n,), optional
            How often each item occurs.

        Raises
        ------
        MismatchError
            Where the features have another width than those before, or the files of the kernel's model or tokenizer
            are others than those that the items before were encoded with.
        """
        if isinstance(samples, Collection):
            collection_weights = samples.weights if weights is None and counts is None else weights
            with samples.placed():
                self.update(samples.one(), weights=collection_weights, counts=counts)
            return
        samples = frames.known(samples)
        if weights is not None or counts is not None:
            refuse_set(samples, "weights and counts")
            masses, name = (weights, "weights") if counts is None else (counts, "counts")
            check_alignment(samples, masses, name)
        mass = raw_weights(weights, counts)
        size = batch_size(samples)
        if mass is not None and size is not None and len(mass.values) != size:
            raise InputError(
                f"{mass.name} has {len(mass.values)} entries and there are {size} items; expected one an item."
            )
        with wide_mode(self.precision, samples):
            if size == 0:
                self.updates += 1
            else:
                files_identity = self.known_files()
                self.add_features(self.kernel.batch_features(samples, rng=self.rng), mass)
                self._identity = files_identity

    def known_files(self) -> dict[str, Any] | None:
        """The identity of the files behind the kernel now; an error where the items before were of others."""
        now = identity(self.kernel)
        change = difference(self._identity, now)
        if change is not None:
            raise MismatchError(
                f"the files behind {self.kernel!r} are not those that the items before were encoded with ({change}); "
                "expected the same. Put the files back, or begin a new accumulator."
            )
        return self._identity if now is None else now

    def add_features(self, features: Features, mass: Weights | None = None) -> None:
        """Add a batch whose features have been made already; for those who build on this class."""
        masses = None if mass is None else mass.values
        if masses is not None and len(masses) != features.n:
            raise InputError(f"there are {len(masses)} weights and {features.n} items; expected one an item.")
        self._check_width(features.width)
        count = features.n if mass is None else mass.size()
        check_growth(self.n + count, self.mass + (features.n if masses is None else float(masses.sum())))
        if masses is not None and not masses.all():  # items of no weight are as good as absent
            present = np.flatnonzero(masses)
            features, masses = features.take(present), masses[present]
        if features.n:
            with wide_mode(self.precision, features.like, self._device_array):
                self._add(features, masses)
        self.width, self._cached_solution = features.width, None
        self.n += count
        self.updates += 1

    def _add(self, features: Features, masses: np.ndarray | None) -> None:
        """Add items that all have weight; errors come before anything is changed."""
        kept = None
        if self._sum is None and (
            features.sparse or self._is_worth_keeping(8 * features.n * features.width, features.width)
        ):
            # Of sparse rows it is only known afterwards how much they take.
            kept = Kept(features.rows(slice(None)), masses, features.rounding)
            if self._keep_rows(kept, features.width):
                self.width = features.width
                return
        gram_sum = self._sum or GramSum(features.width, precision=self.precision, rng=self.rng)
        # First, because it is this that may fail.
        gram_sum.add(features if kept is None else kept.features, masses)
        self._hold_sum(gram_sum)

    def _keep_rows(self, new_rows: Kept, width: int) -> bool:
        """Keep rows as they are, and say so, if all of them still take less than half of their sum.

        All are sparse, or all dense.
        """
        size = self._kept_bytes + new_rows.nbytes
        if self._kept and is_sparse(self._kept[0].rows) != is_sparse(new_rows.rows):
            size = 8 * width * (sum(kept_rows.count for kept_rows in self._kept) + new_rows.count)
            if self._is_worth_keeping(size, width):
                self._kept, new_rows = [kept_rows.dense() for kept_rows in self._kept], new_rows.dense()
        if not self._is_worth_keeping(size, width):
            return False
        self._kept = compact([*self._kept, new_rows])
        if self._device_array is None and is_foreign(new_rows.rows):
            self._device_array = new_rows.rows
        self._kept_bytes, self._kept_mass = size, self._kept_mass + new_rows.mass
        return True

    def _hold_sum(self, gram_sum: GramSum) -> None:
        """Switch from kept rows to their sum: add the rows to this one, and hold it from now on."""
        for kept in self._kept:
            gram_sum.add(kept.features, kept.masses)
        self._sum, self._kept, self.width = gram_sum, [], gram_sum.width
        self._device_array = gram_sum.total if is_foreign(gram_sum.total) else None
        self._kept_bytes, self._kept_mass = 0, 0.0

    @staticmethod
    def _is_worth_keeping(size: int, width: int) -> bool:
        """Whether feature rows of this many bytes take at most half of the bytes of their sum."""
        return size <= 4 * width * width

    @property
    def held(self) -> str:
        """What is held so far: "nothing", "dense" or "sparse" feature rows, or their "sum"."""
        if self._sum is not None:
            return "sum"
        return "nothing" if not self._kept else "sparse" if is_sparse(self._kept[0].rows) else "dense"

    @property
    def nbytes(self) -> int:
        """Bytes that the sum, or the rows in its place, take (without the weights of rows)."""
        if self._sum is not None:
            return sum_bytes(self._sum.width, self.precision)
        return self._kept_bytes

    def _check_width(self, width: int) -> None:
        if width > WIDEST:
            raise TooLargeError(
                f"the features have {width} columns, and a sum of {width}×{width} would take "
                f"{8 * width**2 / 2**30:.0f} GiB; expected at most {WIDEST} columns. Reduce them first, for example "
                "by a random projection, or score all items at once with vendimeter.score."
            )
        if self.width is not None and width != self.width:
            raise MismatchError(
                f"the batch has features of {width} columns and the ones before had {self.width}; expected the same."
            )

    # ------------------------------------------------------------------------------------------------------- merging

    def merge(self, *others: Accumulator) -> Accumulator:
        """Add what other accumulators have seen; they stay as they are.

        All of them are checked before any is added. An accumulator can be merged with itself: ``a.merge(a)`` counts
        every item of it twice, which doubles `n` and `mass` and leaves the score as it is.

        Returns
        -------
        Accumulator
            Itself.

        Raises
        ------
        MismatchError
            Where one has another kernel, width or precision (or rng, with "float32"), or is no accumulator. Kernels
            are compared down to the code and the state of the functions in them; where one of the two has seen no
            item, by their description only, since an encoder may set up its state on first use. The files of models
            and tokenizers must have been the same, whatever their names.
        InputError
            Where the items or weights of all would be beyond the range of numbers.
        """
        self._check_mergeable(others, [self.n, *(getattr(other, "n", 0) for other in others)])
        check_growth(
            self.n + sum(other.n for other in others), self.mass + sum(other.mass for other in others)
        )
        if any(other is self for other in others):  # as it is now, and not as it grows
            others = tuple(self.copy() if other is self else other for other in others)
        for other in others:
            self._merge_one(other)
        return self

    def _merge_one(self, other: Accumulator) -> None:
        """Add what another accumulator holds, which was checked before."""
        if other.n and not self.n:
            # In the state in which it has been used, which the next one is compared with.
            self.kernel = other.kernel
        with wide_mode(self.precision, self._device_array, other._device_array):
            self._cached_solution = None
            for kept in other._kept:
                self._add(kept.features, kept.masses)
            if other._sum is not None and self._sum is None:
                self._hold_sum(other._sum.copy())
            elif other._sum is not None and self._sum is not None:
                self._sum.merge(other._sum)
        self.width = other.width if self.width is None else self.width
        self._identity = other._identity if self._identity is None else self._identity
        self.n += other.n
        self.updates += other.updates

    def _check_mergeable(self, others: Sequence[Any], item_counts: Sequence[int]) -> None:
        """Refuse to merge accumulators of different kernels, widths or precisions, before any is added.

        `item_counts` are the items of this one and of the others: an unused kernel is compared by its description.
        """
        width, files_identity = self.width, self._identity
        used_kernel = self.kernel if item_counts[0] else None
        for other, count in zip(others, item_counts[1:], strict=True):
            self._check_precision(other)
            own_kernel = self.kernel if used_kernel is None or not count else used_kernel
            both_used = bool(count) and used_kernel is not None
            # An encoder may set up its state on first use, so that only used ones can be compared in it.
            if not same(own_kernel, other.kernel) and (
                both_used or fingerprint(own_kernel) != fingerprint(other.kernel)
            ):
                raise _kernel_mismatch(own_kernel, other.kernel)
            used_kernel = other.kernel if count and used_kernel is None else used_kernel
            files_difference = difference(files_identity, other._identity)
            if files_difference is not None:
                raise MismatchError(
                    f"both accumulators have the kernel {other.kernel!r}, but the files behind it were not the same "
                    f"({files_difference}); expected one model and one tokenizer. Encode all items with the same files."
                )
            files_identity = other._identity if files_identity is None else files_identity
            if None not in (width, other.width) and width != other.width:
                raise MismatchError(
                    f"the accumulators have features of {width} and {other.width} columns; expected the same."
                )
            width = other.width if width is None else width

    def _check_precision(self, other: Any) -> None:
        if not isinstance(other, Accumulator):
            raise MismatchError(
                f"an accumulator was merged with {brief(other)}; expected another accumulator.{several_hint(other)}"
            )
        if (self.precision, self.precision == "float32" and self.rng) != (
            other.precision,
            other.precision == "float32" and other.rng,
        ):
            raise MismatchError(
                f"the accumulators work in {self.precision} with rng={self.rng} and in {other.precision} with "
                f"rng={other.rng}; expected the same, since their bounds add up only then."
            )

    def copy(self) -> Accumulator:
        """An independent copy."""
        duplicate = object.__new__(type(self))
        duplicate.__dict__ |= self.__dict__
        duplicate._kept = list(self._kept)
        with wide_mode(self.precision, self._device_array):
            duplicate._sum = None if self._sum is None else self._sum.copy()
        return duplicate

    def __copy__(self) -> Accumulator:
        return self.copy()

    def __add__(self, other: Any) -> Accumulator:
        if is_zero(other):
            return self.copy()
        return self.copy().merge(other) if isinstance(other, Accumulator) else NotImplemented

    def __iadd__(self, other: Any) -> Accumulator:
        if is_zero(other):
            return self
        return self.merge(other) if isinstance(other, Accumulator) else NotImplemented

    def __radd__(self, other: Any) -> Accumulator:
        return self.copy() if is_zero(other) else NotImplemented  # so that sum() works

    # ------------------------------------------------------------------------------------------------------- scoring

    def score(self, q: Any = 1) -> Any:
        """The score of everything so far.

        Parameters
        ----------
        q : float, str or list of them
            The order, or orders; a list gives a `Profile`.

        Returns
        -------
        Score or Profile
        """
        orders, several = parse_orders(q)
        solution = self._solution()
        d, updates = self.width, f"{self.updates} update{'s' if self.updates != 1 else ''}"
        statistic = f"the {d}×{d} matrix of features" if self._sum is not None else "feature rows"
        plan = Plan("columns", "float64", f"{statistic}, accumulated over {updates}")
        scores = [to_score(solution, plan, order, self.n, self.kernel) for order in orders]
        return Profile(scores) if several else scores[0]

    def profile(self, q: Any = (0, 0.5, 1, 1.5, 2, 3, 5, float("inf"))) -> Profile:
        """Scores of several orders."""
        return self.score(parse_orders(q)[0])

    def _solution(self) -> Solution:
        """All eigenvalues, so that every order can be answered; kept until something is added."""
        if self._cached_solution is not None:
            return self._cached_solution
        orders = [1.0, 2.0]  # several, so that no shortcut is taken
        with wide_mode(self.precision, self._device_array):
            if self._sum is not None:
                solution = of_gram(self._sum.result(), self.precision, orders, self.rng)
                solution = unclaimed(solution) if self.kernel.approximate else solution
            else:
                features, masses = self._rows()
                weights = None if masses is None else masses / masses.sum()
                solver = Solver(method="exact", precision=self.precision)
                _, solution = run(Problem(features, weights, orders, solver, self.rng))
        self._cached_solution = solution
        return solution

    def _rows(self) -> tuple[FeatureRows, np.ndarray | None]:
        """The kept rows as one collection, and their masses."""
        if not self._kept:
            cause = "every item has weight 0" if self.n else "no item was added"
            raise EmptyError(f"{cause}, and the diversity of nothing is undefined; update it first.")
        features = FeatureRows(
            concatenate_rows([kept.rows for kept in self._kept]),
            rounding=max(kept.rounding for kept in self._kept),
            kernel=self.kernel,
        )
        return features, concatenate_masses(self._kept)

    @property
    def mass(self) -> float:
        """The sum of the weights so far: of the counts, or the number of items, where no weights were given."""
        return self._kept_mass if self._sum is None else self._sum.mass

    def __repr__(self) -> str:
        width = "" if self.width is None else f", width={self.width}"
        return f"Accumulator({self.kernel!r}, n={self.n}{width})"

    # ------------------------------------------------------------------------------------------- to and from disk

    def save(self, path: Any) -> None:
        """Write everything into one file, all or nothing: a .npz archive of plain arrays, without pickle.

        A stream that was cut short goes on from there: ``updates`` says how many batches have been taken in, if every
        one was accepted and nothing was merged in.

        Parameters
        ----------
        path : str or Path
            The file, by its whole name: no suffix is added, and no folder is created. A file of that name is replaced.

        Raises
        ------
        SavedStateError
            Where it cannot be written; what was there before is as it was.
        """
        self._write(path)

    def _write(self, path: Any, more: Mapping[str, Any] | None = None, **how: Any) -> None:
        """Write the file, with more in its header; `how` are the options of `saved.write`."""
        saved.write(path, "accumulator", self._header() | dict(more or {}), self._arrays(), **how)

    def _header(self) -> dict[str, Any]:
        header = {
            "kernel": describe(self.kernel),
            "fingerprint": fingerprint(self.kernel),
            "identity": self._identity,
            "precision": self.precision,
            "rng": self.rng,
            "n": self.n,
            "updates": self.updates,
            "width": self.width or 0,
            "held": self.held,
        }
        if self._sum is not None:
            header |= {"mass": self._sum.mass, "error": self._sum.error, "image_error": self._sum.image_error}
        elif self._kept:
            header |= {
                # As they came, so that nothing depends on the file.
                "counts": [kept.count for kept in self._kept],
                "roundings": [kept.rounding for kept in self._kept],
                "weighted": [kept.masses is not None for kept in self._kept],
            }
        return header

    def _arrays(self) -> Iterator[tuple[str, np.ndarray]]:
        if self._sum is not None:
            yield "total", to_host(self._sum.total)
            if self._sum.image is not None:
                yield "image", to_host(self._sum.image)
        elif self._kept:
            batches = [kept.rows for kept in self._kept]
            if is_sparse(batches[0]):
                rows = concatenate_rows(batches)
                yield "data", rows.data
                yield "indices", rows.indices.astype(np.int64)
                yield "indptr", rows.indptr.astype(np.int64)
            else:
                yield "rows", np.concatenate([to_host(kept) for kept in batches])
            masses = concatenate_masses(self._kept)
            if masses is not None:
                yield "masses", masses

    @classmethod
    def load(cls, path: Any, kernel: Any = None) -> Accumulator:
        """Read what `save` wrote; everything is checked before it is used.

        Parameters
        ----------
        path : str or Path
            The file.
        kernel : Kernel, optional
            Needed where the kernel holds a function of your own (such as the encoder of an `Embed`), which no file can
            hold; it must be the one that was used.

        Raises
        ------
        SavedStateError
            Where the file cannot be read, is cut short or damaged, has another version, or holds the state of
            something else, such as a `GroupAccumulator`.
        MismatchError
            Where it was written with another kernel than the given one. (Whether the files of its model or tokenizer
            are the same is found out by `update`: to score what was saved, they are not needed.)
        InputError
            Where the kernel cannot be made from the file and none is given.
        """
        with saved.opened(path, "accumulator") as archive:
            return cls._read(archive, kernel)

    @classmethod
    def _read(cls, archive: saved.Archive, kernel: Any, owner: str = "Accumulator") -> Accumulator:
        header = archive.header
        given_kernel = rebuild(header.get("kernel"), f"{owner}.load") if kernel is None else as_kernel(kernel)
        if fingerprint(given_kernel) != header.get("fingerprint"):
            raise MismatchError(
                f"the file was written with the kernel {shown(header.get('kernel'))}, and this is "
                f"{shown(describe(given_kernel))}; expected the same. Pass the kernel that was used, with kernel=…"
            )
        accumulator = cls(
            given_kernel, precision=archive.choice("precision", PRECISIONS), rng=archive.whole("rng")
        )
        # Older files have no identity: then the next batch gives it.
        accumulator._identity = header.get("identity")
        if not isinstance(accumulator._identity, dict | None):
            raise archive.damaged(f"identity is {brief(accumulator._identity)}")
        accumulator.n, accumulator.updates = archive.whole("n"), archive.whole("updates")
        held = archive.choice("held", HELD)
        width = archive.whole("width")
        accumulator.width = width or None
        if held == "sum":
            accumulator._sum = _read_sum(archive, accumulator, width)
        elif held != "nothing":
            for kept in read_rows(archive, width):
                if not accumulator._keep_rows(kept, width):
                    raise archive.damaged("it holds more rows than are kept")
        return accumulator


def is_zero(value: Any) -> bool:
    """Whether a value is the 0 that sum() starts with."""
    return isinstance(value, int) and value == 0


def several_hint(value: Any) -> str:
    """Advice for an error about a list of accumulators where its members were expected."""
    return " Use merge(*list) for all of a list." if isinstance(value, Iterable) else ""


def _kernel_mismatch(left: Kernel, right: Kernel) -> MismatchError:
    """The error for two different kernels, with the descriptions in which they differ."""
    for left_text, right_text in ((repr(left), repr(right)), (shown(describe(left)), shown(describe(right)))):
        if left_text != right_text:
            return MismatchError(
                f"the accumulators have the kernels {left_text} and {right_text}; expected one kernel."
            )
    return MismatchError(
        f"both accumulators have a kernel {left!r}, but the functions inside differ in their code or state; expected "
        "one kernel. Use one encoder for all: make it once, and pass it to every accumulator."
    )


def check_growth(count: int, mass: float) -> None:
    """Refuse items or weights whose sum would leave the range of integers or floats."""
    if not mass <= LARGEST:
        raise InputError(
            f"the weights of all items would sum to {mass:.3g}, and at most {LARGEST:g} can be worked with; expected "
            "smaller weights. Only their ratios count: divide them all by one number."
        )
    if count > MOST_ITEMS:
        raise InputError(
            f"there would be {count:.3g} items, and at most {MOST_ITEMS:.3g} can be counted; expected smaller counts. "
            "Use weights= where only the ratios matter."
        )


def _read_sum(archive: saved.Archive, owner: Accumulator, width: int) -> GramSum:
    """The sum in a file, after checks of its symmetry and trace."""
    if not 0 < width <= WIDEST:
        raise archive.damaged(f"width is {width}")
    gram_sum = GramSum(width, precision=owner.precision, rng=owner.rng)
    gram_sum.mass, gram_sum.error = archive.number("mass"), archive.number("error")
    gram_sum.image_error = archive.number("image_error")
    gram_sum.total = archive.array("total", (width, width))
    # Every item has norm 1, so that the trace is the mass; what can be told, is told before it gives a wrong score.
    # (Not every device computes a product of float32 rows with themselves symmetrically.)
    size, asymmetry = (
        float(np.abs(gram_sum.total).max()),
        float(np.abs(gram_sum.total - gram_sum.total.T).max()),
    )
    if asymmetry > (1e-4 if owner.precision == "float32" else 1e-10) * size:
        raise archive.damaged(f"the sum is not symmetric, by {asymmetry:.2g}")
    trace_error = abs(float(np.trace(gram_sum.total)) - gram_sum.mass)
    if (
        not trace_error <= 1e-4 * gram_sum.mass + 2 * gram_sum.error
        or gram_sum.mass == 0
        or gram_sum.total.diagonal().min() < 0
    ):
        raise archive.damaged("the sum does not fit its mass")
    if owner.precision == "float32":
        gram_sum.image = archive.array("image", (width, PROBES))
    return gram_sum


def batch_size(samples: Any) -> int | None:
    """The number of items in a batch; None where only the kernel can tell."""
    samples = local(samples)
    is_container = is_sparse(samples) or is_foreign(samples) or is_table(samples) or is_frame_column(samples)
    if is_container or isinstance(samples, np.ndarray | list | tuple | Mapping):
        return length(samples)
    return None


def sum_bytes(width: int, precision: str) -> int:
    """Bytes of a sum over features of this many columns."""
    return 8 * width * (width + (PROBES if precision == "float32" else 0))
