"""Figures of generated molecules: how many are valid, different and new, and how near they are to real ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vendimeter.data.arrays import is_missing
from vendimeter.data.molecules import MOST_ATOMS, as_items, parse, parts, readable, too_large, too_many
from vendimeter.errors import InputError
from vendimeter.kernels import MACCS, Jaccard, Morgan, RDKitFingerprint, as_kernel
from vendimeter.kernels.sets import Bits, ratios_of_bits
from vendimeter.messages import about, brief
from vendimeter.metrics.samples import opened
from vendimeter.metrics.similarities import intdiv
from vendimeter.optional import require
from vendimeter.options import check_flag, check_progress, whole_number
from vendimeter.present.progress import Progress, showing
from vendimeter.results.base import Figures
from vendimeter.similarity import Similarity
from vendimeter.similarity.base import parts_of

__all__ = ["MoleculeFigures", "molecules"]

UNIQUE_AT = (1_000, 10_000)
SIDE = 1024  # of a block of similarities: 8 MiB
NAN = math.nan

Fingerprint = Morgan | RDKitFingerprint | MACCS


@dataclass(frozen=True, repr=False)
class MoleculeFigures(Figures):
    """What `molecules` finds; a share of nothing is NaN, and so is what needs a reference where none was given.

    Attributes
    ----------
    n : int
        How many samples there are.
    valid : int
        How many of them RDKit can read and sanitise.
    validity : float
        valid / n.
    unique : int
        How many different molecules are among the valid ones.
    uniqueness : float
        unique / valid.
    unique_at : dict
        For each k that was asked for, up to `valid`: how many different molecules are among the first k valid ones,
        divided by k.
    intdiv, intdiv2 : float
        IntDiv_p of the valid ones for p = 1 and 2: 1 − (mean of T(a, b)^p over all pairs, a = b among them)^(1/p).
    scaffolds : int
        How many different Bemis–Murcko scaffolds the valid ones have.
    scaffold_diversity : float
        scaffolds / unique.
    novelty : float
        The share of the different molecules that are not in the reference.
    nearest_similarity : float
        The mean over the valid ones of the largest similarity to a molecule of the reference (SNN).
    scaffold_similarity : float
        The cosine of the two vectors of counts of scaffolds, of the valid ones and of the reference (Scaff); of
        scaffolds with at least `min_rings` rings.
    scaffold_novelty : float
        The share of the different scaffolds that no molecule of the reference has.
    reference_valid, reference_invalid : int
        How many items of the reference are molecules, and how many are not and were left out.
    """

    n: int
    valid: int
    validity: float
    unique: int
    uniqueness: float
    unique_at: dict[int, float]
    intdiv: float
    intdiv2: float
    scaffolds: int
    scaffold_diversity: float
    novelty: float = NAN
    nearest_similarity: float = NAN
    scaffold_similarity: float = NAN
    scaffold_novelty: float = NAN
    reference_valid: int = 0
    reference_invalid: int = 0


def molecules(
    samples: Any,
    reference: Any = None,
    *,
    kernel: Any = None,
    unique_at: Any = UNIQUE_AT,
    stereo: bool = True,
    min_rings: int = 2,
    nearest: bool = True,
    progress: bool | None = None,
) -> MoleculeFigures:
    """Validity, uniqueness, novelty, internal diversity, nearest similarity and scaffolds of generated molecules.

    An item is valid if RDKit can read and sanitise it; what is not valid counts for `validity` alone. Two items are the
    same molecule if their canonical SMILES are the same, those of the reference included. Similarities T are Tanimoto's
    of fingerprints.

    Parameters
    ----------
    samples : list, array, column or Collection
        SMILES, or molecules of RDKit, or both. A gap, an empty text, bytes and anything else are invalid samples. A
        file is to be read without ``skip_broken``, which leaves these out before they are counted.
    reference : list, array, column or Collection, optional
        What they are compared with, such as the training set (for novelty) or a test set (for the similarities).
        Its invalid items are left out and counted in `reference_invalid`.
    kernel : Morgan, RDKitFingerprint, MACCS or str, optional
        The fingerprints; by default Morgan's of radius 2 with 1,024 bits, as in MOSES.
    unique_at : int or list of int
        The k for which uniqueness among the first k valid samples is wanted.
    stereo : bool
        Whether stereoisomers are different molecules. With False all stereochemistry is removed at first.
    min_rings : int
        How many rings a scaffold must have to count for `scaffold_similarity`: 2 as in the code of MOSES, since benzene
        alone would dominate it. The other figures of scaffolds count all.
    nearest : bool
        Whether to compute `nearest_similarity`, which compares every sample with every molecule of the reference.
    progress : bool, optional
        Show a progress bar on stderr: always or never; by default only on a terminal.

    Returns
    -------
    MoleculeFigures

    Notes
    -----
    A molecule of RDKit is taken by its SMILES, after RDKit has sanitised a copy: explicit hydrogens, conformers and
    aromaticity as drawn make no difference. Atom map numbers are removed, isotopes and charges are kept. A sample of
    several fragments, such as a salt, is one molecule with all of them: strip counter-ions first where they should not
    matter. Tautomers are different molecules.

    A scaffold is what RDKit's MurckoDecompose leaves: the rings, the links between them, and what is bound to these by
    a double bond; without stereochemistry and isotopes. A molecule without rings has none: it lowers
    `scaffold_diversity` and is left out of the other figures of scaffolds.

    Memory: the canonical SMILES and 128 bytes for each different molecule, 1 KiB for each different sample while IntDiv
    is computed, and a few blocks of 8 MiB. Reading takes a third of a millisecond a molecule; then time grows with the
    number of samples times that of the reference and of the samples themselves, 10⁸ pairs in a few seconds.

    In MOSES, novelty compares with the reference as it is written, so that "OCC" is news to someone who knows "CCO";
    IntDiv₂ is a mean of roots, one a molecule, in place of the root of the mean; a k above the number of valid samples
    is replaced by this number, under the name of k; and NaN, bytes, and a SMILES with other words behind it are valid.

    References
    ----------
    Polykovskiy et al.: Molecular Sets (MOSES), a benchmarking platform for molecular generation models, Frontiers in
    Pharmacology 2020. Benhenda: ChemGAN challenge for drug discovery, arXiv:1708.08227, 2017 (internal diversity).
    Bemis and Murcko: The properties of known drugs, 1. Molecular frameworks, J. Med. Chem. 1996.

    Examples
    --------
    >>> from vendimeter.metrics import molecules
    >>> found = molecules(["CCO", "OCC", "Cc1ccccc1", "C(C"], ["CCO", "CCCC"])
    >>> found.valid, found.validity, found.unique, found.novelty
    (3, 0.75, 2, 0.5)
    >>> found.scaffolds, found.scaffold_diversity, round(found.nearest_similarity, 4)
    (1, 0.5, 0.6889)
    """
    fingerprint, ks = _fingerprint(kernel), _uniqueness_sizes(unique_at)
    min_rings = whole_number(min_rings, "min_rings")
    for option, value in (("stereo", stereo), ("nearest", nearest)):
        check_flag(value, option)
    check_progress(progress)
    with (
        opened(samples, "molecules", complete=True) as samples,
        opened(reference, "molecules", "reference") as reference,
    ):
        reader = _Reader(fingerprint, bool(stereo))
        with showing(progress):
            generated = reader.read(samples)
            if reference is None:
                return MoleculeFigures(**_figures(generated, ks))
            with about("reference"):
                compared_with = reader.read(reference, fingerprints=bool(nearest), required=True)
            return MoleculeFigures(
                **_figures(generated, ks), **_reference_figures(generated, compared_with, min_rings)
            )


def _fingerprint(kernel: Any) -> Fingerprint:
    """The kernel that gives fingerprints."""
    chosen = Morgan() if kernel is None else as_kernel(kernel)
    if not isinstance(chosen, Fingerprint):
        raise InputError(
            f"kernel={brief(kernel)}; expected one of fingerprints of molecules: Morgan(…), RDKitFingerprint(…) or "
            "MACCS() of vendimeter.kernels, or its name."
        )
    return chosen


def _uniqueness_sizes(unique_at: Any) -> list[int]:
    """The sizes for which uniqueness is wanted, each once."""
    several = isinstance(unique_at, list | tuple | range) or getattr(unique_at, "ndim", 0) == 1
    return list(dict.fromkeys(whole_number(k, "unique_at") for k in (unique_at if several else [unique_at])))


# ----------------------------------------------------------------------------------------------------------- reading


@dataclass(frozen=True)
class _Molecules:
    """The different molecules of a collection, in order of first appearance, and which of them its valid items are."""

    n: int  # items, the invalid ones included
    indices: np.ndarray  # the index of the molecule that each valid item is
    names: dict[str, int]  # canonical SMILES → index of the molecule
    scaffolds: list[str]  # of each molecule; an empty text where it has no rings
    rings: dict[str, int]  # how many each scaffold has
    rows: np.ndarray  # the different fingerprints: eight bits a byte, or counts
    copies: np.ndarray  # how many of the valid items have each of these

    def scaffold_counts(self, min_rings: int) -> Counter[str]:
        """How many of the valid items have each scaffold of so many rings."""
        counts: Counter[str] = Counter()
        for scaffold, copies in zip(self.scaffolds, np.bincount(self.indices).tolist(), strict=True):
            if scaffold and self.rings[scaffold] >= min_rings:
                counts[scaffold] += copies
        return counts


class _Reader:
    """Reads every item, and computes scaffold and fingerprint of a molecule where it appears first."""

    def __init__(self, kernel: Fingerprint, stereo: bool):
        self._chem = require("rdkit.Chem", extra="molecules", purpose="molecules")
        self._quiet = require("rdkit.rdBase", extra="molecules", purpose="molecules").BlockLogs
        self._kernel, self._stereo = kernel, stereo

    def read(self, samples: Any, *, fingerprints: bool = True, required: bool = False) -> _Molecules:
        """The molecules of a collection; an error where no item can be one, or with `required` where none is."""
        items = as_items(samples, kernel="molecules")
        self._refuse_others(items)
        self._refuse_large(items)
        indices: list[int] = []
        names: dict[str, int] = {}
        scaffolds: list[str] = []
        rings: dict[str, int] = {}
        rows: list[np.ndarray] = []
        with Progress("Reading molecules") as bar:
            for span in parts(items):
                new_molecules = []
                with self._quiet():
                    for molecule in self._molecules(items[span]):
                        index = names.setdefault(self._chem.MolToSmiles(molecule), len(names))
                        indices.append(index)
                        if index == len(scaffolds):
                            scaffolds.append(self._scaffold(molecule, rings))
                            new_molecules.append(molecule)
                if new_molecules and fingerprints:
                    rows.append(_pack_bits(self._kernel.fingerprints(new_molecules)))
                bar.step(span.stop / len(items))
        if required and not indices:
            raise InputError(
                f"none of the {len(items):,} items is a molecule, and item 0 {parse(items[0])[1]}; expected SMILES, or "
                "molecules of RDKit, to compare with."
            )
        item_indices = np.array(indices, dtype=np.int64)
        return _Molecules(
            len(items), item_indices, names, scaffolds, rings, *_distinct_rows(rows, item_indices)
        )

    def _refuse_others(self, items: Sequence[Any]) -> None:
        """Refuse items none of which is a text or a molecule: that is a wrong argument, not a poor generator."""
        kinds = (str, self._chem.Mol)
        if any(isinstance(item, kinds) for item in items):
            return
        other = next((i for i, item in enumerate(items) if not is_missing(item)), None)
        if other is not None:
            raise InputError(
                f"no item is a text or a molecule of RDKit, and item {other} {parse(items[other])[1]}; expected "
                "SMILES.",
                item=other,
            )

    def _refuse_large(self, items: Sequence[Any]) -> None:
        """Refuse items too large to be parsed: they may well be valid, so that they cannot count as invalid."""
        for i, item in enumerate(items):
            reason = None
            if isinstance(item, str):
                reason = too_large(item)
            elif isinstance(item, self._chem.Mol) and item.GetNumHeavyAtoms() > MOST_ATOMS:
                reason = too_many(item.GetNumHeavyAtoms())
            if reason is not None:
                raise InputError(f"item {i} {reason}. Leave it out.", item=i)

    def _molecules(self, items: Sequence[Any]) -> Iterator[Any]:
        """The molecules of the valid items, parsed anew, so that those of the user are not changed."""
        texts: list[Any] = [self._text(item) if isinstance(item, self._chem.Mol) else item for item in items]
        for text, molecule in zip(texts, readable(texts)[0], strict=True):
            if molecule is None:
                continue
            if ":" in text:  # an atom map number, perhaps
                for atom in molecule.GetAtoms():
                    atom.SetAtomMapNum(0)
                molecule = self._chem.RemoveHs(molecule)  # those that had a number were kept
            if not self._stereo:
                self._chem.RemoveStereochemistry(molecule)
            yield molecule

    def _text(self, molecule: Any) -> str | None:
        """The SMILES of the user's molecule, which is left as it is; None where it cannot be sanitised."""
        copy = self._chem.Mol(molecule)
        if self._chem.SanitizeMol(copy, catchErrors=True):
            return None
        # First without hydrogens: with them RDKit may write the other isomer of a double bond in a large ring.
        return self._chem.MolToSmiles(self._chem.RemoveHs(copy, sanitize=False))

    def _scaffold(self, molecule: Any, rings: dict[str, int]) -> str:
        """The scaffold, whose rings are those of the molecule; an empty text where there are none."""
        count = molecule.GetRingInfo().NumRings()
        if not count:
            return ""
        scaffold = self._chem.MolToSmiles(self._chem.MurckoDecompose(molecule), isomericSmiles=False)
        rings[scaffold] = count
        return scaffold


def _pack_bits(rows: np.ndarray) -> np.ndarray:
    """Boolean fingerprints packed to bits, eight a byte; counts as they are."""
    return np.packbits(rows, axis=1, bitorder="little") if rows.dtype == bool else rows


def _distinct_rows(parts: list[np.ndarray], molecule_of_item: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct fingerprints of the molecules, and how many of the items have each."""
    if not parts:
        return np.empty((0, 1), dtype=np.uint8), np.empty(0, dtype=np.int64)
    rows = np.concatenate(parts)
    row_bytes = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()
    _, first, distinct_of_row = np.unique(row_bytes, return_index=True, return_inverse=True)
    return rows[first], np.bincount(distinct_of_row[molecule_of_item])


# ---------------------------------------------------------------------------------------------------------- figures


def _figures(generated: _Molecules, unique_at: Sequence[int]) -> dict[str, Any]:
    """The figures of the samples alone."""
    valid, unique, scaffolds = len(generated.indices), len(generated.names), len(generated.rings)
    first, second = _internal_diversities(generated.rows, generated.copies) if valid else (NAN, NAN)
    return {
        "n": generated.n,
        "valid": valid,
        "validity": valid / generated.n,
        "unique": unique,
        "uniqueness": _ratio(unique, valid),
        "unique_at": {k: len(np.unique(generated.indices[:k])) / k for k in unique_at if k <= valid},
        "intdiv": first,
        "intdiv2": second,
        "scaffolds": scaffolds,
        "scaffold_diversity": _ratio(scaffolds, unique),
    }


def _reference_figures(generated: _Molecules, reference: _Molecules, min_rings: int) -> dict[str, Any]:
    """The figures that compare with a reference."""
    nearest_similarity = NAN
    if len(generated.rows) and len(reference.rows):
        nearest_similarity = float(
            generated.copies @ _nearest_similarities(generated.rows, reference.rows)
        ) / len(generated.indices)
    return {
        "novelty": _ratio(len(generated.names.keys() - reference.names.keys()), len(generated.names)),
        "nearest_similarity": nearest_similarity,
        "scaffold_similarity": _cosine(
            generated.scaffold_counts(min_rings), reference.scaffold_counts(min_rings)
        ),
        "scaffold_novelty": _ratio(
            len(generated.rings.keys() - reference.rings.keys()), len(generated.rings)
        ),
        "reference_valid": len(reference.indices),
        "reference_invalid": reference.n - len(reference.indices),
    }


def _ratio(count: int, total: int) -> float:
    return count / total if total else NAN


def _cosine(left: Counter[str], right: Counter[str]) -> float:
    """The cosine of two vectors of counts, in integer arithmetic; NaN where one is empty."""
    if not left or not right:
        return NAN
    product = sum(count * right[scaffold] for scaffold, count in left.items())
    return product / math.sqrt(sum(c * c for c in left.values()) * sum(c * c for c in right.values()))


def _tanimoto(rows: np.ndarray) -> Similarity:
    if rows.dtype != np.uint8:
        return Jaccard().similarity(rows)
    return ratios_of_bits(Bits(rows, 8 * rows.shape[1]))


def _internal_diversities(rows: np.ndarray, copies: np.ndarray) -> tuple[float, float]:
    """IntDiv_p for p = 1 and 2."""
    sets = Bits(rows, 8 * rows.shape[1]).unpacked() if rows.dtype == np.uint8 else rows
    first, second = (float(intdiv(sets, Jaccard(), p=p, counts=copies)) for p in (1, 2))
    return first, second


def _nearest_similarities(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The largest similarity of each fingerprint to one of the others, computed in blocks."""
    similarity = _tanimoto(np.concatenate([rows, others]))
    largest = np.zeros(len(rows))
    with Progress("Nearest molecules") as bar:
        for span in parts_of(len(rows), SIDE):
            for other in parts_of(len(others), SIDE):
                columns = slice(len(rows) + other.start, len(rows) + other.stop)
                np.maximum(largest[span], similarity.block(span, columns).max(axis=1), out=largest[span])
            bar.step(span.stop / len(rows))
    return largest
