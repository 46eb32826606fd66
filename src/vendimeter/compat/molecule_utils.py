"""A stand-in for the molecules of vendi-score 0.0.3: `get_mol` and `get_tanimoto_K` of its module `molecule_utils`.

Write ``from vendimeter.compat import molecule_utils`` for ``from vendi_score import molecule_utils``. The matrix is the
original's, by products of bits instead of a call of RDKit a pair, with these differences: fingerprints without any
bit, such as those of molecules without bonds under ``fp="rdk"``, have similarity 1 with each other, where RDKit says
0, even for one with itself; SMILES are taken as well as molecules; a function as `fp`, which the original cannot call,
works; and what is no molecule is an `InputError` that names it. New code is better off with
``vendimeter.score(smiles, kernel="morgan")``, which needs no matrix of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vendimeter.data.arrays import is_missing
from vendimeter.data.molecules import as_items, parse
from vendimeter.errors import InputError
from vendimeter.kernels import Jaccard, Morgan, RDKitFingerprint
from vendimeter.messages import brief

__all__ = ["get_mol", "get_tanimoto_K"]


def get_mol(smiles_or_mol: Any) -> Any:
    """The molecule of a SMILES text, None where it is none; anything but a text is returned as it is.

    Words after the first are a name, as RDKit has it.

    Examples
    --------
    >>> get_mol("CCO").GetNumAtoms(), get_mol("CCO ethanol").GetNumAtoms(), get_mol("C(C")
    (3, 3, None)
    """
    if not isinstance(smiles_or_mol, str):
        return smiles_or_mol
    molecule = parse(smiles_or_mol)[0]
    words = smiles_or_mol.split(maxsplit=1)
    return parse(words[0])[0] if molecule is None and len(words) == 2 else molecule


def get_tanimoto_K(mols: Sequence[Any], fp: str | Callable[[Any], Any] = "morgan") -> np.ndarray:
    """The Tanimoto similarities of molecules.

    Parameters
    ----------
    mols : sequence of molecules or SMILES
    fp : {"morgan", "rdk"} or callable
        Morgan fingerprints of radius 2 and 1,024 bits, RDKit's own, or a function from a molecule to a bit vector.

    Examples
    --------
    >>> get_tanimoto_K(["CCO", "CCN"]).round(4)
    array([[1.    , 0.3333],
           [0.3333, 1.    ]])
    """
    items = as_items(mols, kernel="get_tanimoto_K")
    if callable(fp):
        return Jaccard().similarity(_user_fingerprints(items, fp)).dense()
    kernels = {"morgan": Morgan(), "rdk": RDKitFingerprint()}
    if not isinstance(fp, str) or fp not in kernels:
        raise InputError(
            f"fp={brief(fp)}; expected 'morgan', 'rdk', or a function from a molecule to its bits."
        )
    return kernels[fp].similarity([_parse_named_smiles(item) for item in items]).dense()


def _parse_named_smiles(item: Any) -> Any:
    """Parse a SMILES that is followed by a name, which kernels refuse; return anything else as it is."""
    if not isinstance(item, str) or len(item.split(maxsplit=1)) < 2:
        return item
    molecule = get_mol(item)
    return item if molecule is None else molecule


def _user_fingerprints(items: Sequence[Any], fp: Callable[[Any], Any]) -> np.ndarray:
    """Fingerprints computed by a function of the user's, one row per molecule."""
    rows: list[np.ndarray] = []
    for i, item in enumerate(items):
        molecule = get_mol(item)
        if is_missing(molecule):
            raise InputError(
                f"item {i} {parse(item)[1]}; get_tanimoto_K expected SMILES, or molecules of RDKit. Drop it.",
                item=i,
            )
        bits = fp(molecule)
        try:
            row = np.array(list(bits))
        except (TypeError, ValueError):  # no sequence, or a ragged one
            row = np.array(None)
        if row.ndim != 1 or row.dtype.kind not in "buif" or not np.isin(row, (0, 1)).all():
            raise InputError(
                f"fp gave {brief(bits)} for item {i}; expected a vector of bits, each 0 or 1. For counts use "
                "vendimeter.score(mols, vendimeter.kernels.Morgan(counts=True)).",
                item=i,
            )
        rows.append(row.astype(bool))
        if len(row) != len(rows[0]):
            raise InputError(
                f"fp gave {len(row)} bits for item {i} and {len(rows[0])} for item 0; expected as many for each.",
                item=i,
            )
    return np.array(rows)
