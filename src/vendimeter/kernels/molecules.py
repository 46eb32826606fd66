"""Kernels of molecules: Tanimoto similarity of their fingerprints, through RDKit."""

from __future__ import annotations

import functools
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from vendimeter.data.molecules import as_items, parse, parts, readable
from vendimeter.errors import InputError
from vendimeter.kernels.sets import Bits, Jaccard, ratios_of_bits
from vendimeter.messages import brief
from vendimeter.optional import require
from vendimeter.options import as_number, check_flag
from vendimeter.similarity import Pairwise

__all__ = ["MACCS", "Morgan", "RDKitFingerprint"]

MOST_BITS = 1 << 16  # a block of a thousand rows is compared as float32: 256 MiB of so many columns
SHOWN = 5  # positions of invalid items in a message
MACCS_BITS = 167
MOST_TREES = 2_000_000  # of a molecule: RDKit takes a second and 400 MiB for so many
FEW_ATOMS = 150  # with no more than four neighbours each have no more than that

Fingerprints = Callable[[Sequence[Any], int], Sequence[Any]]  # (molecules, threads) → fingerprints of RDKit


class _Fingerprint(Jaccard):
    """Jaccard (Tanimoto) similarity of fingerprints that are made of the samples first."""

    @property
    @abstractmethod
    def _width(self) -> int:
        """How many bits a fingerprint has."""

    @abstractmethod
    def _fingerprinter(self) -> Fingerprints:
        """What makes fingerprints."""

    def valid(self, samples: Any) -> np.ndarray:
        """For each item, whether it is a molecule: a truth value an item, to choose those by.

        Examples
        --------
        >>> from vendimeter.kernels import Morgan
        >>> Morgan().valid(["CCO", "C(C", "", None]).tolist()
        [True, False, False, False]
        """
        items = as_items(samples, kernel=f"the {self.name} kernel")
        return np.array(
            [molecule is not None for part in parts(items) for molecule in readable(items[part])[0]]
        )

    def fingerprints(self, samples: Any) -> np.ndarray:
        """The fingerprints of the samples, a row each: truth values, or counts where the kernel is one of counts.

        Examples
        --------
        >>> from vendimeter.kernels import Morgan
        >>> Morgan().fingerprints(["CCO", "CCN"]).sum(axis=1)
        array([6, 6])
        """
        return self._bits(samples).unpacked()

    def elements(self, samples: Any) -> tuple[np.ndarray, None]:
        """The fingerprints; a column is the same in every batch."""
        return self.fingerprints(samples), None

    def build(self, samples: Any, rng: int) -> Pairwise:
        """Blocks of ratios, from fingerprints that stay packed, eight bits a byte."""
        return ratios_of_bits(self._bits(samples))

    def _bits(self, samples: Any) -> Bits:
        to_bytes = require(
            "rdkit.DataStructs", extra="molecules", purpose=f"the {self.name} kernel"
        ).BitVectToBinaryText
        packed = b"".join(to_bytes(bits) for bits in self._fingerprint_samples(samples))
        return Bits(np.frombuffer(packed, dtype=np.uint8).reshape(-1, -(-self._width // 8)), self._width)

    def _reason(self, molecule: Any) -> str | None:
        """Why RDKit may not make the fingerprint of a molecule; None as a rule."""
        return None

    def _fingerprint_samples(self, samples: Any) -> Iterator[Any]:
        """The fingerprint of each sample; an error that says which items are no molecules, once all were looked at."""
        items, make = as_items(samples, kernel=f"the {self.name} kernel"), self._fingerprinter()
        invalid: list[int] = []
        for part in parts(items):
            molecules, fresh = readable(items[part])
            invalid += [part.start + i for i, molecule in enumerate(molecules) if molecule is None]
            if not invalid:
                for i, molecule in enumerate(molecules, part.start):
                    reason = self._reason(molecule)
                    if reason is not None:
                        raise InputError(f"item {i} {reason}. Leave it out.", item=i)
                # What an exception in a thread of RDKit does is end the process: only molecules that RDKit has just
                # sanitized itself go there.
                yield from make(molecules, _core_count() if fresh else 1)
        if invalid:
            raise self._invalid_error(items, invalid)

    def _invalid_error(self, items: Sequence[Any], invalid: Sequence[int]) -> InputError:
        first = invalid[0]
        # A molecule object shows nothing of itself but its address.
        shown = f", {brief(items[first])}," if isinstance(items[first], str | bytes) else ""
        several = ""
        if len(invalid) > 1:
            listed = ", ".join(map(str, invalid[:SHOWN])) + (", …" if len(invalid) > SHOWN else "")
            several = f" In all, {len(invalid):,} of {len(items):,} items are invalid: {listed}."
        return InputError(
            f"item {first}{shown} {parse(items[first])[1]}; the {self.name} kernel expected SMILES, or molecules of "
            f"RDKit.{several} {self!r}.valid(samples) gives a mask of the valid ones; vm.read(…, kind='molecules', "
            "skip_broken=True) leaves the others out.",
            item=first,
            option="skip_broken",
        )


def _core_count() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check_range(value: Any, name: str, low: int, high: int) -> int:
    number = as_number(value)
    if not (low <= number <= high and number == int(number)):
        raise InputError(
            f"{name}={brief(value)}; expected a whole number from {low} to {high:,}.", option=name
        )
    return int(number)


@functools.cache
def _crowded_atom() -> Any:
    """A pattern that an atom with more than four neighbours fits."""
    chem = require("rdkit.Chem", extra="molecules", purpose="a kernel of molecules")
    return chem.MolFromSmarts("[!D0!D1!D2!D3!D4]")


def _count_trees(molecule: Any, max_bonds: int) -> float:
    """An upper bound on the number of trees of up to so many bonds in a molecule: counted as if it had no rings.

    `series` has for each direction of a bond the power series whose coefficients count the trees behind it by their
    bonds.
    """
    ends = np.array(
        [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()], dtype=np.int64
    )
    if not len(ends):
        return 0.0
    starts, stops = np.concatenate([ends, ends[:, ::-1]]).T
    reverse = np.roll(np.arange(len(starts)), len(ends))  # the other direction of each
    n = molecule.GetNumAtoms()

    def sum_around_atoms(logs: np.ndarray) -> np.ndarray:
        return np.stack([np.bincount(starts, row, minlength=n) for row in logs])

    series = np.zeros((max_bonds + 1, len(starts)))
    series[0] = 1
    for _ in range(max_bonds):
        logs = _log(series)
        series[1:] = _exp(sum_around_atoms(logs)[:, stops] - logs[:, reverse])[:-1]
    trees = _exp(sum_around_atoms(_log(series))).sum(axis=1)
    return float((trees[1:] / np.arange(2, max_bonds + 2)).sum())


def _log(series: np.ndarray) -> np.ndarray:
    """The logarithms of power series that begin with 1, one a column."""
    logs = np.zeros_like(series)
    for k in range(1, len(series)):
        logs[k] = series[k] - sum(j * logs[j] * series[k - j] for j in range(1, k)) / k
    return logs


def _exp(series: np.ndarray) -> np.ndarray:
    """The exponentials of power series that begin with 0."""
    exps = np.zeros_like(series)
    exps[0] = 1
    for k in range(1, len(series)):
        exps[k] = sum(j * series[j] * exps[k - j] for j in range(1, k + 1)) / k
    return exps


def _generators() -> Any:
    return require("rdkit.Chem.rdFingerprintGenerator", extra="molecules", purpose="a kernel of molecules")


@dataclass(frozen=True)
class Morgan(_Fingerprint):
    """Tanimoto similarity of Morgan fingerprints (ECFP) of molecules; the paper takes radius 2 and 1,024 bits.

    Samples are SMILES, molecules of RDKit, or both mixed, in a list, an array or a column of a frame. RDKit removes
    explicit hydrogens of SMILES; molecules are taken as they are. What is no molecule (a syntax error, an impossible
    valence, an empty text, a gap, a SMILES with a name behind it) is an error that says which; `valid` gives a mask. So
    is a SMILES of more than 1,000 atoms, which RDKit is not given.

    Parameters
    ----------
    radius : int
        How many bonds away from each atom to look: 2 gives ECFP4, 3 gives ECFP6.
    bits : int
        The length of the fingerprint, up to 65,536.
    counts : bool
        Whether to count how often each environment occurs: k(a, b) = Σ min(a, b) / Σ max(a, b).
    chirality : bool
        Whether mirror images differ.

    References
    ----------
    Rogers, Hahn: Extended-connectivity fingerprints, J. Chem. Inf. Model. 2010.

    Examples
    --------
    >>> import vendimeter as vm
    >>> from vendimeter.kernels import Morgan
    >>> round(vm.score(["CCO", "OCC", "c1ccccc1"], Morgan()), 4)
    1.8899
    >>> round(float(Morgan().similarity(["CCO", "CCN"]).dense()[0, 1]), 4)
    0.3333
    """

    radius: int = 2
    bits: int = 1024
    counts: bool = False
    chirality: bool = False
    name: ClassVar[str] = "morgan"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", _check_range(self.radius, "radius", 0, 100))
        object.__setattr__(self, "bits", _check_range(self.bits, "bits", 1, MOST_BITS))
        for option in ("counts", "chirality"):
            object.__setattr__(self, option, check_flag(getattr(self, option), option))

    @property
    def _width(self) -> int:
        return self.bits

    def _fingerprinter(self) -> Fingerprints:
        generator = _generators().GetMorganGenerator(
            radius=self.radius, includeChirality=self.chirality, fpSize=self.bits
        )
        make = generator.GetCountFingerprints if self.counts else generator.GetFingerprints
        return lambda molecules, threads: make(molecules, numThreads=threads)

    def fingerprints(self, samples: Any) -> np.ndarray:
        """The fingerprints of the samples, a row each: truth values, or whole numbers with ``counts=True``.

        Examples
        --------
        >>> from vendimeter.kernels import Morgan
        >>> Morgan(counts=True).fingerprints(["CCC", "CCCC"]).max(axis=1)
        array([2, 2], dtype=uint16)
        """
        if not self.counts:
            return super().fingerprints(samples)
        item_counts = [fingerprint.GetNonzeroElements() for fingerprint in self._fingerprint_samples(samples)]
        rows = np.zeros((len(item_counts), self.bits), dtype=np.uint16)
        owners = np.repeat(np.arange(len(item_counts)), [len(counts) for counts in item_counts])
        columns = [column for counts in item_counts for column in counts]
        # More than so many of one environment are counted as so many: no molecule is near it.
        rows[owners, columns] = [min(count, 65_535) for counts in item_counts for count in counts.values()]
        return rows

    def build(self, samples: Any, rng: int) -> Pairwise:
        """Blocks of ratios, of packed bits or of counts."""
        return Jaccard.build(self, samples, rng) if self.counts else super().build(samples, rng)


@dataclass(frozen=True)
class RDKitFingerprint(_Fingerprint):
    """Tanimoto similarity of RDKit's own fingerprints of molecules, which hash the paths and branches of the graph.

    Samples as for `Morgan`. It is slower than that: a molecule has many paths, and one with more than two million, as a
    cage of ten atoms may have, is an error. One without bonds has none and an empty fingerprint, so that all such
    molecules are alike.

    Parameters
    ----------
    bits : int
        The length of the fingerprint, up to 65,536.
    min_path, max_path : int
        The shortest and longest paths, in bonds; up to 20, since their number grows exponentially.

    Examples
    --------
    >>> import vendimeter as vm
    >>> from vendimeter.kernels import RDKitFingerprint
    >>> round(float(RDKitFingerprint().similarity(["CCO", "CCCO"]).dense()[0, 1]), 4)
    0.6
    """

    bits: int = 2048
    min_path: int = 1
    max_path: int = 7
    name: ClassVar[str] = "rdkit"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", _check_range(self.bits, "bits", 1, MOST_BITS))
        object.__setattr__(self, "min_path", _check_range(self.min_path, "min_path", 1, 20))
        object.__setattr__(self, "max_path", _check_range(self.max_path, "max_path", 1, 20))
        if self.min_path > self.max_path:
            raise InputError(
                f"RDKitFingerprint(min_path={self.min_path}, max_path={self.max_path}): expected "
                "min_path ≤ max_path."
            )

    @property
    def _width(self) -> int:
        return self.bits

    def _reason(self, molecule: Any) -> str | None:
        """RDKit goes through all paths and trees of bonds, of which ten atoms may have millions."""
        is_small = molecule.GetNumAtoms() <= FEW_ATOMS and self.max_path <= 7
        if is_small and not molecule.HasSubstructMatch(_crowded_atom()):
            return None
        count = _count_trees(molecule, self.max_path)
        if count <= MOST_TREES:
            return None
        return (
            f"has about {count:.2g} paths and trees of up to {self.max_path} bonds; expected at most {MOST_TREES:,}, "
            "because RDKit takes 200 bytes for each"
        )

    def _fingerprinter(self) -> Fingerprints:
        generator = _generators().GetRDKitFPGenerator(
            minPath=self.min_path, maxPath=self.max_path, fpSize=self.bits
        )
        return lambda molecules, threads: generator.GetFingerprints(molecules, numThreads=threads)


@dataclass(frozen=True)
class MACCS(_Fingerprint):
    """Tanimoto similarity of the MACCS keys of molecules: 166 questions, such as whether there is a ring of size 4.

    Samples as for `Morgan`.

    Examples
    --------
    >>> import vendimeter as vm
    >>> from vendimeter.kernels import MACCS
    >>> round(float(MACCS().similarity(["CCO", "CCCO"]).dense()[0, 1]), 4)
    0.6429
    """

    name: ClassVar[str] = "maccs"

    @property
    def _width(self) -> int:
        return MACCS_BITS  # RDKit leaves the first unused, so that key 1 is bit 1

    def _fingerprinter(self) -> Fingerprints:
        fingerprint = require(
            "rdkit.Chem.rdMolDescriptors", extra="molecules", purpose="the maccs kernel"
        ).GetMACCSKeysFingerprint
        return lambda molecules, threads: [fingerprint(molecule) for molecule in molecules]
