"""A stand-in for the molecules of vendi-score 0.0.3: `get_mol` and `get_tanimoto_K` of its module `molecule_utils`.

Write ``from vendimeter.compat import molecule_utils`` for ``from vendi_score import molecule_utils``. The matrix is the
same, by products of bits instead of a call of RDKit a pair; a function as `fp`, which the original cannot call, works.
New code is better off with `vendimeter.score(smiles, kernel="morgan")`, which needs no matrix of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vendimeter._messages import brief
from vendimeter._molecules import parse
from vendimeter.errors import InputError
from vendimeter.kernels import Jaccard, Morgan, RDKitFingerprint

__all__ = ["get_mol", "get_tanimoto_K"]


def get_mol(smiles_or_mol: Any) -> Any:
    """The molecule of a SMILES text, None where it is none; anything but a text is returned as it is.

    Examples
    --------
    >>> get_mol("CCO").GetNumAtoms(), get_mol("C(C")
    (3, None)
    """
    return parse(smiles_or_mol)[0] if isinstance(smiles_or_mol, str) else smiles_or_mol


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
    if callable(fp):
        rows = np.array([list(fp(get_mol(mol))) for mol in mols], dtype=bool)
        return Jaccard().similarity(rows).dense()
    kernels = {"morgan": Morgan(), "rdk": RDKitFingerprint()}
    if fp not in kernels:
        raise InputError(
            f"fp={brief(fp)}; expected 'morgan', 'rdk', or a function from a molecule to its bits."
        )
    return kernels[fp].similarity(mols).dense()
