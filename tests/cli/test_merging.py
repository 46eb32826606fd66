"""Files of accumulators on the command line: saved, merged, refused where they do not belong together."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.cli.checkpoints import Checkpoint, RunPosition
from vendimeter.cli.merge import merge_files, save
from vendimeter.cli.options import Saving
from vendimeter.cli.streaming import score_batches
from vendimeter.data.collection import Broken, Collection
from vendimeter.errors import InputError, MismatchError, SavedStateError
from vendimeter.kernels import Embed, Polynomial, as_kernel

RNG = np.random.default_rng(3)
X = RNG.standard_normal((300, 6))
LABELS = np.array([f"label {k}" for k in RNG.integers(7, size=300)])
CUTS = (slice(0, 2), slice(2, 120), slice(120, 300))  # the first so short that its rows are held
ORDERS = [0, 1, 2, "inf"]


def parts(grouped: bool, kernel: Any = "cosine") -> list[Any]:
    found = []
    for cut in CUTS:
        total: Any = vm.GroupAccumulator(kernel) if grouped else vm.Accumulator(kernel)
        total.update(X[cut], **({"by": LABELS[cut]} if grouped else {}))
        found.append(total)
    return found


def saved(folder: Path, grouped: bool = False, kernel: Any = "cosine") -> list[str]:
    names = [str(folder / f"part-{i}.npz") for i in range(len(CUTS))]
    for name, total in zip(names, parts(grouped, kernel), strict=True):
        save(total, Path(name))
    return names


def text(result: Any) -> str:
    return json.dumps(result.to_dict())


@pytest.mark.parametrize("grouped", [False, True])
def test_files_merge_as_accumulators_do(grouped: bool, tmp_path: Path) -> None:
    names = saved(tmp_path, grouped)
    found = merge_files(names, ORDERS)
    first, *others = parts(grouped)
    assert text(found) == text(first.merge(*others).score(ORDERS))
    whole: Any = vm.score_groups(X, by=LABELS) if grouped else vm.score(X)
    alone = merge_files(names, 1)
    if grouped:
        assert alone.labels == whole.labels
        assert np.allclose(alone.scores, whole.scores, rtol=1e-12)
    else:
        assert alone == pytest.approx(whole, rel=1e-12)
    assert text(merge_files([str(tmp_path / "part-*.npz")], ORDERS)) == text(
        found
    )  # a pattern, in order of names
    assert text(merge_files(names[1:2], 2)) == text(parts(grouped)[1].score(2))
    assert text(merge_files(names, ORDERS, memory="3 kB" if grouped else None)) == text(
        found
    )  # most of it in files


@pytest.mark.parametrize("grouped", [False, True])
def test_the_sum_of_all_is_a_file_again(grouped: bool, tmp_path: Path) -> None:
    names, out = saved(tmp_path, grouped), tmp_path / "all.npz"
    found = merge_files(names, 1, out)
    assert text(merge_files([out], 1)) == text(found)
    kind: Any = vm.GroupAccumulator if grouped else vm.Accumulator
    assert text(kind.load(out).score()) == text(found)
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_files_that_are_there(tmp_path: Path) -> None:
    names = saved(tmp_path)
    out = tmp_path / "all.npz"
    out.write_text("precious")
    for call in (lambda: merge_files(names, 1, out), lambda: save(vm.Accumulator(), out)):
        with pytest.raises(InputError, match=r"is there already; .* replace the file with --force"):
            call()
    assert out.read_text() == "precious"
    with pytest.raises(InputError, match="is there already"):
        merge_files(names, 1, Path(names[0]))
    expected = merge_files(names, 1)
    assert merge_files(names, 1, out, overwrite=True) == expected
    assert merge_files([out], 1) == expected
    assert merge_files(names, 1, Path(names[0]), overwrite=True) == expected  # one of its own
    assert merge_files(names[:1], 1) == expected
    for place, message in ((tmp_path, "is a folder"), (tmp_path / "none" / "a.npz", "there is no folder")):
        with pytest.raises(InputError, match=message):
            merge_files(names, 1, place, overwrite=True)


def test_what_does_not_belong_together(tmp_path: Path) -> None:
    one = saved(tmp_path)[1]
    grouped, wide, other, own = (
        str(tmp_path / f"{name}.npz") for name in ("grouped", "wide", "other", "own")
    )
    parts(grouped=True)[1].save(grouped)
    parts(grouped=False, kernel=Polynomial(2))[1].save(other)
    parts(grouped=False, kernel=Embed(np.negative))[1].save(own)
    total = vm.Accumulator()
    total.update(np.eye(9))
    total.save(wide)
    cases: list[tuple[list[str], type[Exception], str]] = [
        ([one, other], MismatchError,
         "other.npz' does not go with '.*part-1.npz': .* kernels Cosine.. and Polynomial.degree=2, .*expected one"),
        ([one, wide], MismatchError, "wide.npz' does not go with .* features of 6 and 9 columns"),
        ([one, grouped], MismatchError,
         "part-1.npz' holds one sum of all items and '.*grouped.npz' one sum a label; expected files of one kind"),
        ([one, one], InputError, "is named twice, and its items would count twice"),
        ([one, str(tmp_path / "part-*.npz")], InputError, "is named twice"),
        ([own], InputError, r"own.npz': the kernel holds your own function (.|\n)*Merge such files in Python"),
        (["-"], InputError, "standard input cannot be merged"),
        ([str(tmp_path / "none.npz")], InputError, "there is no file or folder"),
    ]  # fmt: skip
    for names, kind, message in cases:
        with pytest.raises(kind, match=message):
            merge_files(names, 1, tmp_path / "all.npz")
        assert not (tmp_path / "all.npz").exists()
    assert merge_files([own], 1, kernel=Embed(np.negative)) == pytest.approx(vm.score(X[CUTS[1]]))
    with pytest.raises(MismatchError, match=r"part-1.npz': the file was written with the kernel Cosine"):
        merge_files([one], 1, kernel=Polynomial(3))


def test_damaged_files(tmp_path: Path) -> None:
    first, second, _ = saved(tmp_path)
    held = Path(second).read_bytes()
    for case in (
        held[:-30],
        b"",
        b"some text",
        held.replace(b"vendimeter accumulator", b"vendimeter accumulated"),
    ):
        Path(second).write_bytes(case)
        with pytest.raises(SavedStateError, match=r"part-1\.npz'"):
            merge_files([first, second], 1)


def stream(batches: list[Collection], **options: Any) -> Any:
    given: Any = SimpleNamespace(first=batches[0], batches=iter(batches))
    return score_batches(given, as_kernel("cosine"), ORDERS, grouped=False, saving=Saving(**options))[0]


def test_runs_that_save_their_sum(tmp_path: Path) -> None:
    batches = [Collection(X[cut], skipped=Broken(skip=True, count=2)) for cut in CUTS]
    out = tmp_path / "sum.npz"
    found = stream(batches, sums=out)
    assert text(merge_files([out], ORDERS)) == text(found)
    assert found[1].diagnostics["left_out"] == 2
    save(parts(grouped=False)[0], tmp_path / "more.npz", left_out=3)
    both = merge_files([out, tmp_path / "more.npz"], 1, tmp_path / "both.npz")
    assert (
        both.diagnostics["left_out"] == merge_files([tmp_path / "both.npz"], 1).diagnostics["left_out"] == 5
    )

    def none() -> Any:
        raise AssertionError("the work was done before the name was looked at")
        yield

    given: Any = SimpleNamespace(first=batches[0], batches=none())
    with pytest.raises(InputError, match="is there already"):
        score_batches(given, as_kernel("cosine"), 1, grouped=False, saving=Saving(sums=out))


def test_checkpoints_merge_when_they_are_finished(tmp_path: Path) -> None:
    done, half = tmp_path / "done.npz", tmp_path / "half.npz"
    found = stream([Collection(X[cut]) for cut in CUTS], checkpoint=done, fingerprint={})
    assert text(merge_files([done], ORDERS)) == text(found)
    with Checkpoint(half, {}) as checkpoint:
        checkpoint.save(parts(grouped=False)[1], RunPosition(batches=1, items=118))
    with pytest.raises(
        InputError, match=r"half.npz' is the checkpoint of a run that is not finished, after 118 items"
    ):
        merge_files([done, half], 1)
