"""Files of accumulators: whole, damaged, cut short; and accumulators that travel between processes."""

from __future__ import annotations

import io
import json
import math
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import vendimeter as vm
from accumulators import X, filled, hashing, state
from vendimeter.errors import (
    InputError,
    MismatchError,
    SavedStateError,
    UnknownNameError,
)
from vendimeter.kernels import (
    RBF,
    Cosine,
    Embed,
    NGram,
    Polynomial,
    RandomFeatures,
)

ORDERS = [0, 0.5, 1, 2, 3, "inf"]
RNG = np.random.default_rng(0)
W = RNG.random(90) + 0.1
TEXTS = [f"{a} {b} {c}" for a in ("red", "blue", "green") for b in ("cat", "dog") for c in "uvwxyz"]


def double_columns(rows: Any) -> np.ndarray:
    return np.hstack([rows, np.square(rows)])


def negated(rows: Any) -> np.ndarray:
    return -np.asarray(rows)


class Scaled:
    """An encoder with a state."""

    def __init__(self, factor: float):
        self.factor = factor

    def __call__(self, rows: Any) -> Any:
        return np.asarray(rows) * self.factor

    def encode(self, rows: Any) -> Any:
        return self(rows)


# --------------------------------------------------------------------------------------------------------- files

STATES: dict[str, Callable[[], vm.Accumulator]] = {
    "nothing": vm.Accumulator,
    "an empty batch": lambda: _after_nothing(),
    "rows": lambda: filled(X[:3], batch=1),
    "rows with some weights": lambda: _weighted(2),
    "sparse rows": lambda: _sparse(3),
    "a sum": filled,
    "a weighted sum": lambda: _weighted(90),
    "a sum of float32 products": lambda: filled(precision="float32", rng=7),
    "rows for float32 products": lambda: filled(X[:3], precision="float32", rng=7),
    "polynomial": lambda: filled(X[:, :3], kernel=Polynomial(2, offset=0.5)),
    "random features": lambda: filled(kernel=RandomFeatures(RBF(1.5), features=16, seed=3)),
    "a sum of kernels": lambda: filled(kernel=0.5 * Cosine() + 0.5 * Polynomial(2)),
}


def _after_nothing() -> vm.Accumulator:
    total = vm.Accumulator()
    total.update(X[:0])
    return total


def _weighted(n: int) -> vm.Accumulator:
    total = vm.Accumulator()
    total.update(X[:1])
    total.update(X[1:n], weights=W[1:n])
    total.update(X[:1], counts=[5])
    return total


def _sparse(n: int) -> vm.Accumulator:
    total = vm.Accumulator()
    for i in range(n):
        total.update(
            sparse.csr_array(([1.0, 2.0 + i], ([0, 0], [0, 1 + i])), shape=(1, 6)), weights=[0.1 + i]
        )
    return total


@pytest.mark.parametrize("case", STATES)
def test_files_hold_everything(case: str, tmp_path: Path) -> None:
    total, path = STATES[case](), tmp_path / "total.npz"
    total.save(path)
    loaded = vm.Accumulator.load(str(path))
    assert state(loaded) == state(total)
    assert loaded.kernel == total.kernel
    for one in (total, loaded):  # and goes on as if nothing had happened
        for i in range(0, 90, 7):
            one.update(X[i : i + 7, : 3 if case == "polynomial" else 6], weights=W[i : i + 7])
    assert state(loaded) == state(total)
    assert loaded.score(ORDERS).to_dict() == total.score(ORDERS).to_dict()
    assert os.listdir(tmp_path) == ["total.npz"]
    with np.load(path, allow_pickle=False) as archive:  # NumPy reads the arrays too
        assert "header.json" in archive.files


def test_files_with_functions(tmp_path: Path) -> None:
    path = tmp_path / "total.npz"
    total = filled(kernel=Embed(negated))
    total.save(path)
    message = (
        r"your own function \(.*negated\).*pass it, Accumulator.load\(path, kernel=Embed\(your_encoder\)\)"
    )
    with pytest.raises(InputError, match=message):
        vm.Accumulator.load(path)
    assert state(vm.Accumulator.load(path, kernel=Embed(negated))) == state(total)
    for other in (Embed(double_columns), Embed(negated, Polynomial(1)), "cosine", Embed(lambda x: x)):
        with pytest.raises(MismatchError, match=r"written with the kernel .* expected the same"):
            vm.Accumulator.load(path, kernel=other)
    filled(kernel=Embed(Scaled(1.0).encode)).save(path)
    assert vm.Accumulator.load(path, kernel=Embed(Scaled(1.0).encode)).n == 90
    filled(TEXTS, kernel=Embed(hashing().transform)).save(path)
    assert vm.Accumulator.load(path, kernel=Embed(hashing().transform)).n == len(TEXTS)
    with pytest.raises(MismatchError):
        vm.Accumulator.load(path, kernel=Embed(hashing().set_params(ngram_range=(1, 2)).transform))


def test_another_kernel_for_a_file(tmp_path: Path) -> None:
    path = tmp_path / "total.npz"
    filled().save(path)
    assert vm.Accumulator.load(path, kernel="cosine").n == 90
    with pytest.raises(
        MismatchError, match=r"kernel Cosine\(\), and this is Polynomial\(1\); expected the same"
    ):
        vm.Accumulator.load(path, kernel=Polynomial(1))
    with pytest.raises(UnknownNameError):
        vm.Accumulator.load(path, kernel="cosin")


def test_a_tokenizer_that_changed_behind_its_folder(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")

    def save(words: str) -> None:
        vocabulary = {word: i for i, word in enumerate(["[UNK]", *words.split()])}
        made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
        made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        made.save(str(tmp_path / "tokenizer.json"))

    save("red cat dog")
    kernel = NGram(1, 1, tokenizer=str(tmp_path), hashed=64)
    total = vm.Accumulator(kernel)
    total.update(["red cat", "red dog"])
    total.save(tmp_path / "sum")
    save("dog red cat")
    loaded = vm.Accumulator.load(tmp_path / "sum")
    with pytest.raises(
        MismatchError, match=r"tokenizer '[0-9a-f]{12}…' and '[0-9a-f]{12}…'.*expected the same"
    ):
        loaded.update(["red cat"])
    other = vm.Accumulator(kernel)
    other.update(["red cat"])
    with pytest.raises(MismatchError, match="the files behind it were not the same"):
        other.merge(loaded)
    save("red cat dog")
    loaded.update(["dog cat"])
    whole = vm.score(["red cat", "red dog", "dog cat"], kernel)
    assert float(loaded.score()) == pytest.approx(float(whole), abs=1e-9)
    with pytest.raises(InputError, match=r"item 1 holds half of a character.*\\ud83d.*position 2"):
        loaded.update(["cat", "a \ud83d"])
    assert loaded.n == 3


def test_sparse_rows_stay_sparse_in_their_file(tmp_path: Path) -> None:
    rows = sparse.csr_array((np.ones(500), (np.arange(500), np.arange(500) * 7 % 2000)), shape=(500, 2000))
    total = vm.Accumulator()
    total.update(rows)
    assert total.held == "sparse"
    total.save(tmp_path / "total.npz")
    assert (tmp_path / "total.npz").stat().st_size < 40_000
    loaded = vm.Accumulator.load(tmp_path / "total.npz")
    assert loaded.held == "sparse"
    assert float(loaded.score()) == pytest.approx(float(vm.score(rows)), rel=1e-10)


# ------------------------------------------------------------------------------------------------ damaged files


def rewritten(
    path: Path,
    change: Callable[[dict[str, Any], dict[str, bytes]], None],
    *,
    method: int = zipfile.ZIP_STORED,
    sums: bool = True,
) -> None:
    """The file with its header and arrays changed, put together again; with checksums that fit, unless told."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members.pop("header.json"))
    change(header, members)
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
            if sums and isinstance(header, dict) and isinstance(header.get("arrays"), dict):
                header["arrays"][name.removesuffix(".npy")] = archive.getinfo(name).CRC
        archive.writestr("header.json", header if isinstance(header, str) else json.dumps(header))


def as_bytes(array: np.ndarray, **options: Any) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **options)
    return file.getvalue()


def array_in(members: dict[str, bytes], name: str) -> np.ndarray:
    return np.lib.format.read_array(io.BytesIO(members[f"{name}.npy"]))


def put(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[..., None]:
    def changed(header: dict[str, Any], members: dict[str, bytes]) -> None:
        members[f"{name}.npy"] = as_bytes(change(array_in(members, name)))

    return changed


def say(**values: Any) -> Callable[..., None]:
    def changed(header: dict[str, Any], members: dict[str, bytes]) -> None:
        header.update(values)

    return changed


def lack(*names: str) -> Callable[..., None]:
    def changed(header: dict[str, Any], members: dict[str, bytes]) -> None:
        for name in names:
            header.pop(name, None)
            members.pop(name, None)

    return changed


def poked(value: float, *place: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        array[place] = value
        return array

    return change


DAMAGE: dict[str, tuple[str, Callable[..., None], str]] = {
    "a value that is not finite": ("a sum", put("total", poked(math.nan, 2, 3)), "not finite"),
    "an infinite value": ("rows", put("rows", poked(math.inf, 1, 2)), "not finite"),
    "asymmetry": ("a sum", put("total", poked(0.3, 0, 1)), "not symmetric"),
    "asymmetry of float32": ("a sum of float32 products", put("total", poked(9.0, 0, 1)), "not symmetric"),
    "another shape": ("a sum", put("total", lambda a: a[:5, :5]), r"total is float64 of shape \(5, 5\)"),
    "more axes": ("a sum", put("total", lambda a: a[None]), r"shape \(1, 6, 6\)"),
    "another dtype": ("a sum", put("total", lambda a: a.astype(np.float32)), "total is float32"),
    "another byte order": ("a sum", put("total", lambda a: a.astype(">f8")), "total is >f8"),
    "complex numbers": ("rows", put("rows", lambda a: a + 0j), "rows is complex128"),
    "objects": ("rows", put("rows", lambda a: a.astype("O")), "rows is object"),
    "a negative diagonal": ("a sum", put("total", lambda a: a - 60 * np.diag(np.eye(6)[0])), "not fit its mass"),
    "another sum": ("a sum", put("total", lambda a: 2 * a), "not fit its mass"),
    "a sum of nothing": ("a sum", say(mass=0.0), "not fit its mass"),
    "another mass": ("a sum", say(mass=91.0), "not fit its mass"),
    "rows that are no features": ("rows", put("rows", lambda a: 2 * a), "its rows are no features"),
    "fewer rows": ("rows", put("rows", lambda a: a[1:]), r"rows is float64 of shape \(2, 6\)"),
    "negative weights": ("rows with some weights", put("masses", poked(-1.0, 0)), "a weight that is not above 0"),
    "fewer weights": ("rows with some weights", put("masses", lambda a: a[1:]), "masses is float64"),
    "columns beyond the width": ("sparse rows", put("indices", poked(6, 0)), "sparse rows do not fit together"),
    "negative columns": ("sparse rows", put("indices", poked(-1, 0)), "negative"),
    "ends that go back": ("sparse rows", put("indptr", poked(9, 1)), "do not fit together|cannot be read"),
    "ends beyond the data": ("sparse rows", put("indptr", poked(10**15, -1)), "data is float64 of shape"),
    "fewer images": ("a sum of float32 products", put("image", lambda a: a[:, :7]), r"image is .*\(6, 7\)"),
    "no total": ("a sum", lack("total.npy"), "it lacks total"),
    "no image": ("a sum of float32 products", lack("image.npy"), "it lacks image"),
    "no rows": ("rows", lack("rows.npy"), "it lacks rows"),
    "no format": ("a sum", lack("format"), "no header"),
    "another format": ("a sum", say(format="numpy array"), "no header"),
    "groups": ("a sum", say(format="vendimeter group accumulator"), "by Group.* Use GroupAccumulator.load"),
    "no version": ("a sum", lack("version"), "has version None"),
    "another version": ("a sum", say(version=1), "has version 1 .* this is version 2.*release"),
    "no kernel": ("a sum", lack("kernel"), "does not describe a kernel"),
    "an unknown kernel": ("a sum", say(kernel={"kernel": "os.system", "parameters": {}}), "does not describe"),
    "a kernel that cannot be": (
        "polynomial",
        say(kernel={"kernel": "polynomial", "parameters": {"degree": -1}}),
        "degree=-1",
    ),
    "a sum of no kernels": ("a sum", say(kernel={"kernel": "sum", "parameters": {"terms": [[1, 2]]}}), "same"),
    "another kernel": ("polynomial", say(kernel={"kernel": "cosine", "parameters": {}}), "expected the same"),
    "no fingerprint": ("a sum", lack("fingerprint"), "expected the same"),
    "another fingerprint": ("a sum", say(fingerprint="0" * 64), "expected the same"),
    "an odd identity": ("a sum", say(identity="files"), "identity is 'files'"),
    "another precision": ("a sum", say(precision="float16"), "precision is 'float16'"),
    "a list as precision": ("a sum", say(precision=["float64"]), "precision is"),
    "another thing held": ("a sum", say(held="everything"), "held is 'everything'"),
    "rows for a sum": ("a sum", say(held="dense"), "counts is None"),
    "a sum for rows": ("rows", say(held="sum"), "mass is None"),
    "sparse for dense": ("rows", say(held="sparse"), "it lacks indptr"),
    "no items": ("a sum", lack("n"), "n is None"),
    "a negative count": ("a sum", say(n=-1), "n is -1"),
    "half an item": ("a sum", say(n=1.5), "n is 1.5"),
    "a truth value": ("a sum", say(n=True), "n is True"),
    "a text for a number": ("a sum", say(n="90"), "n is '90'"),
    "beyond all numbers": ("a sum", say(n=10**400), "n is 1000"),
    "not a number": ("a sum", say(mass=math.nan), "mass is nan"),
    "infinity": ("a sum", say(error=math.inf), "error is inf"),
    "a negative error": ("a sum", say(error=-1.0), "error is -1"),
    "no error": ("a sum", lack("error"), "error is None"),
    "no width": ("a sum", say(width=0), "width is 0"),
    "another width": ("a sum", say(width=7), r"total is .*\(6, 6\)"),
    "a width beyond the limit": ("a sum", say(width=10**6), "width is 1000000"),
    "a negative seed": ("a sum", say(rng=-3), "rng is -3"),
    "no batches": ("rows", say(counts=[], roundings=[], weighted=[]), "do not fit together"),
    "batches that do not fit": ("rows", say(roundings=[0.0]), "do not fit together"),
    "negative batches": ("rows", say(counts=[4, -2, 1]), "counts is -2"),
    "a text for batches": ("rows", say(counts="three"), "counts is 'three'"),
    "weights that are not there": ("rows", say(weighted=[True, False]), "it lacks masses"),
    "no list of arrays": ("a sum", lack("arrays"), "does not list its arrays"),
    "an odd list of arrays": ("a sum", say(arrays=[1]), "does not list its arrays"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_told(case: str, tmp_path: Path) -> None:
    start, change, message = DAMAGE[case]
    path = tmp_path / "total.npz"
    STATES[start]().save(path)
    rewritten(path, lambda header, members: None)
    vm.Accumulator.load(path)  # an intact one is read
    rewritten(path, change)
    with pytest.raises(InputError, match=message) as caught:
        vm.Accumulator.load(path)
    assert len(str(caught.value)) > 40
    assert caught.type in (SavedStateError, MismatchError, InputError)


def test_arrays_that_were_exchanged(tmp_path: Path) -> None:
    """With checksums of their own that fit, but not the header's."""
    path = tmp_path / "total.npz"
    filled().save(path)
    turned = np.linalg.qr(RNG.standard_normal((6, 6)))[0]
    rewritten(path, put("total", lambda a: turned @ np.diag([85.0, 1, 1, 1, 1, 1]) @ turned.T), sums=False)
    with pytest.raises(SavedStateError, match="total is not the array that was written"):
        vm.Accumulator.load(path)


@pytest.mark.parametrize(
    "text", ["", "[]", "3", "null", "{", '"vendimeter "', "[" * 100_000, '{"format": 3}']
)
def test_headers_that_are_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "total.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", text)
    with pytest.raises(SavedStateError, match="it has no header"):
        vm.Accumulator.load(path)


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("a pickle was opened",)


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    path = tmp_path / "total.npz"
    bomb = as_bytes(np.array([Bomb()], dtype=object), allow_pickle=True)
    total = filled()
    total.save(path)
    rewritten(path, lambda header, members: members.update({"more.npy": bomb}))
    assert state(vm.Accumulator.load(path)) == state(total)  # what is not asked for, is not read
    rewritten(path, lambda header, members: members.update({"total.npy": bomb}))
    with pytest.raises(SavedStateError, match=r"total is object of shape \(1,\)"):
        vm.Accumulator.load(path)
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(SavedStateError, match="no archive"):
        vm.Accumulator.load(path)


def test_packed_files_are_not_unpacked(tmp_path: Path) -> None:
    """They may hold more than any memory."""
    path = tmp_path / "total.npz"
    filled().save(path)
    rewritten(path, lambda header, members: None, method=zipfile.ZIP_DEFLATED)
    with pytest.raises(SavedStateError, match="is compressed"):
        vm.Accumulator.load(path)


def test_truncated_files(tmp_path: Path) -> None:
    path, cut = tmp_path / "total.npz", tmp_path / "cut.npz"
    filled(precision="float32").save(path)
    data = path.read_bytes()
    for size in [*range(0, len(data) - 1, 17), *range(len(data) - 30, len(data))]:
        cut.write_bytes(data[:size])
        with pytest.raises(SavedStateError, match=r"is cut short.*go back to an earlier copy"):
            vm.Accumulator.load(cut)


@pytest.mark.parametrize("case", ["rows with some weights", "sparse rows", "a sum of float32 products"])
def test_flipped_bytes(case: str, tmp_path: Path) -> None:
    """Every byte of the file, one after the other: an error, or the very same content."""
    path = tmp_path / "total.npz"
    total = STATES[case]()
    total.save(path)
    before, data, unharmed = state(total), path.read_bytes(), 0
    for i in range(0, len(data), 1 + len(data) // 1500):
        for mask in (0x01, 0xFF) if i % 3 == 0 else (1 << i % 8,):
            path.write_bytes(data[:i] + bytes([data[i] ^ mask]) + data[i + 1 :])
            try:
                found = state(vm.Accumulator.load(path))
            except InputError:
                continue
            assert found == before, i
            unharmed += 1
    assert unharmed < len(data) / 3  # dates and the like in the archive


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(SavedStateError, match="cannot be read: No such file"):
        vm.Accumulator.load(tmp_path / "nothing.npz")
    with pytest.raises(SavedStateError, match="cannot be read: Is a directory"):
        vm.Accumulator.load(tmp_path)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(SavedStateError, match=r"it is no archive. Expected a file written by save"):
        vm.Accumulator.load(tmp_path / "text")
    np.savez(tmp_path / "other.npz", total=X)
    with pytest.raises(SavedStateError, match="no header"):
        vm.Accumulator.load(tmp_path / "other.npz")
    for path in (3, None, [1]):
        with pytest.raises(InputError, match="expected the path of a file"):
            vm.Accumulator.load(path)
        with pytest.raises(InputError, match="expected the path of a file"):
            filled().save(path)
    with pytest.raises(SavedStateError, match="cannot be read"):
        vm.Accumulator.load("a\0b")


# ------------------------------------------------------------------------------------------------- all or nothing


def test_files_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    total = filled()
    with pytest.raises(SavedStateError, match=r"cannot be written: No such file.*folder that exists"):
        total.save(tmp_path / "no" / "total.npz")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SavedStateError, match="cannot be written: Is a directory"):
        total.save(tmp_path / "folder")
    with pytest.raises(SavedStateError, match="cannot be written"):
        total.save(tmp_path / "a\0b")

    def refused(*_: Any) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(SavedStateError, match="cannot be written: Permission denied"):
        total.save(tmp_path / "total.npz")
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.parametrize(
    "failure", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()]
)
def test_a_write_that_fails_half_way(
    failure: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "total.npz"
    total = filled(X[:40])
    total.save(path)
    before = state(total)
    total.update(X[40:])

    def half(member: Any, array: np.ndarray, **_: Any) -> None:
        member.write(array.tobytes()[:50])
        raise failure

    def refused(*_: Any) -> None:
        raise failure

    with monkeypatch.context() as patched:
        patched.setattr(np.lib.format, "write_array", half)
        with pytest.raises(SavedStateError if isinstance(failure, OSError) else type(failure)):
            total.save(path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refused)
        with pytest.raises(SavedStateError if isinstance(failure, OSError) else type(failure)):
            total.save(path)
    assert os.listdir(tmp_path) == ["total.npz"]
    assert state(vm.Accumulator.load(path)) == before


def test_files_have_the_permissions_of_others(tmp_path: Path) -> None:
    filled().save(tmp_path / "total.npz")
    (tmp_path / "other").touch()
    assert (tmp_path / "total.npz").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_long_names(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    filled().save(path)
    assert vm.Accumulator.load(path).n == 90


# ------------------------------------------------------------------------------------------- across processes


@pytest.mark.parametrize("case", STATES)
def test_pickle(case: str) -> None:
    total = STATES[case]()
    if total.n:
        total.score()  # what it remembers goes along
    twin = pickle.loads(pickle.dumps(total))
    assert state(twin) == state(total)
    assert twin.merge(total).n == 2 * total.n


def work(i: int) -> vm.Accumulator:
    total = vm.Accumulator(Embed(Scaled(2.0)))
    total.update(X[30 * i : 30 * i + 30])
    return total


def test_many_processes() -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        total = sum(pool.map(work, range(3)), vm.Accumulator(Embed(Scaled(2.0))))
    assert total.n == 90
    assert float(total.score()) == pytest.approx(float(vm.score(X)), rel=1e-10)


STREAM = """
import sys
import numpy as np
import vendimeter as vm

path, batches, precision = sys.argv[1], int(sys.argv[2]), sys.argv[3]
try:
    total = vm.Accumulator.load(path)
except vm.errors.SavedStateError:
    total = vm.Accumulator(precision=precision)
while total.updates < batches:
    rng = np.random.default_rng(total.updates)
    total.update(rng.standard_normal((1 + total.updates % 20, 48)), weights=rng.random(1 + total.updates % 20))
    total.save(path)
"""


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_killed_and_continued(precision: str, tmp_path: Path) -> None:
    """A stream that is killed at any moment, three times, ends up with the same bits as one that never was."""
    folder = tmp_path / "run"
    folder.mkdir()
    path, script = folder / "total.npz", tmp_path / "stream.py"
    script.write_text(STREAM)
    batches, reached = 400, [0]
    for least in (3, 40, 150):  # before the rows become a sum, and after
        process = subprocess.Popen([sys.executable, str(script), str(path), str(100_000), precision])
        try:
            deadline = time.monotonic() + 60
            while reached[-1] < least and time.monotonic() < deadline:
                time.sleep(0.002)
                if path.exists():
                    reached.append(vm.Accumulator.load(path).updates)  # never half a file
            process.send_signal(signal.SIGKILL)
        finally:
            process.kill()
            process.wait()
        reached.append(vm.Accumulator.load(path).updates)
        assert reached[-1] >= least
    assert reached == sorted(reached)
    batches = reached[-1] + 20
    subprocess.run([sys.executable, str(script), str(path), str(batches), precision], check=True)
    subprocess.run(
        [sys.executable, str(script), str(tmp_path / "once.npz"), str(batches), precision], check=True
    )
    found, expected = vm.Accumulator.load(path), vm.Accumulator.load(tmp_path / "once.npz")
    assert found.updates == batches
    assert state(found) == state(expected)
    assert found.score(ORDERS).to_dict() == expected.score(ORDERS).to_dict()
