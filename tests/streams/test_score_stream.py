"""score_stream beside score: files, memory maps, shards, generators, data loaders; and what is none of these."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import vendimeter as vm
from array_libraries import Library
from vendimeter.errors import EmptyError, InputError, MismatchError
from vendimeter.kernels import RBF, Cosine, Embed, On, RandomFeatures
from vendimeter.streams import scores

RNG = np.random.default_rng(2)
X = RNG.standard_normal((300, 7))
ORDERS = [0, 1, 2, "inf"]
EXPECTED = vm.profile(X, q=ORDERS)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and arrays are read in pieces of 20 rows or so."""
    monkeypatch.setattr(scores, "BATCH_BYTES", 20 * 7 * 8)
    monkeypatch.setattr(scores, "DEVICE_BYTES", 20 * 7 * 8)


def agrees(found: vm.Profile, expected: vm.Profile = EXPECTED) -> None:
    for q, score in expected.items():
        assert float(found[q]) == pytest.approx(float(score), rel=1e-10)
        assert found[q].n == score.n
        assert found[q].bounds[0] <= score.bounds[1]
        assert score.bounds[0] <= found[q].bounds[1]


def saved(folder: Path, rows: Any = X, name: str = "rows.npy") -> Path:
    np.save(folder / name, rows)
    return folder / name


class Loader:
    """What data loaders are like: they have a length and give batches, again and again."""

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(np.array_split(X, 3))


SOURCES: dict[str, Callable[[Path], Any]] = {
    "a file": saved,
    "a text": lambda folder: str(saved(folder)),
    "a file in Fortran's order": lambda folder: saved(folder, np.asfortranarray(X)),
    "an array": lambda _: X,
    "an array in Fortran's order": lambda _: np.asfortranarray(X),
    "a memory map": lambda folder: np.load(saved(folder), mmap_mode="r"),
    "a sparse array": lambda _: sparse.csr_array(X),
    "a sparse array in another format": lambda _: sparse.coo_array(X),
    "a sparse array by columns": lambda _: sparse.csc_array(X),
    "files": lambda folder: [saved(folder, X[:100], "1.npy"), str(saved(folder, X[100:], "2.npy"))],
    "arrays": lambda _: tuple(np.array_split(X, 4)),
    "shards of all kinds": lambda folder: [
        saved(folder, X[:50]),
        X[50:60],
        sparse.csr_array(X[60:100]),
        X[100:100],
        saved(folder, X[:0], "empty.npy"),
        np.load(saved(folder, X[100:], "3.npy"), mmap_mode="r"),
    ],
    "a generator": lambda _: (X[i : i + 11] for i in range(0, 300, 11)),
    "a generator of lists": lambda _: (X[i : i + 11].tolist() for i in range(0, 300, 11)),
    "a generator with empty batches": lambda _: (X[i : i + 10 * k] for i in range(0, 300, 10) for k in (0, 1)),
    "an iterator": lambda _: iter(np.array_split(X, 5)),
    "a map": lambda _: map(np.asarray, np.array_split(X, 5)),
    "a data loader": lambda _: Loader(),
    "batches of one": lambda _: (row[None] for row in X),
}  # fmt: skip


@pytest.mark.parametrize("case", SOURCES)
def test_sources(case: str, tmp_path: Path) -> None:
    agrees(vm.score_stream(SOURCES[case](tmp_path), q=ORDERS))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8, ">f8"])
def test_files_of_other_numbers(dtype: Any, tmp_path: Path) -> None:
    rows = np.abs(np.round(10 * X)).astype(dtype) + np.ones(1, dtype=dtype)
    agrees(vm.score_stream(saved(tmp_path, rows), q=ORDERS), vm.profile(rows, q=ORDERS))


def test_one_order_is_a_score() -> None:
    score = vm.score_stream(X)
    assert isinstance(score, vm.Score)
    assert float(score) == pytest.approx(float(EXPECTED[1]), rel=1e-10)
    assert "accumulated over 15 updates" in score.diagnostics["reason"]


def test_files_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []
    features = vm.kernels.Cosine.batch_features

    def watched(self: Any, batch: Any, **more: Any) -> Any:
        seen.append(batch.shape)
        return features(self, batch, **more)

    monkeypatch.setattr(vm.kernels.Cosine, "batch_features", watched)
    for order in ("C", "F"):
        vm.score_stream(saved(tmp_path, np.asarray(X, order=order)), size=20)  # type: ignore[call-overload]
        assert seen == [(20, 7)] * 15
        seen.clear()


def test_libraries(library: Library) -> None:
    agrees(vm.score_stream(library.array(X), q=ORDERS))
    agrees(vm.score_stream([library.array(X[:100]), X[100:]], q=ORDERS))
    agrees(vm.score_stream((library.array(part) for part in np.array_split(X, 3)), q=ORDERS))


def test_loaders_of_torch() -> None:
    torch = pytest.importorskip("torch")
    agrees(vm.score_stream(torch.utils.data.DataLoader(torch.tensor(X), batch_size=64), q=ORDERS))
    pairs = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.tensor(X)), batch_size=64)
    agrees(vm.score_stream(pairs, q=ORDERS))
    agrees(vm.score_stream((batch for (batch,) in pairs), q=ORDERS))


def test_other_kernels(tmp_path: Path) -> None:
    kernel = RandomFeatures(RBF(2.0), features=32)
    found, expected = vm.score_stream(saved(tmp_path), kernel), vm.score(X, kernel)
    assert float(found) == pytest.approx(float(expected), rel=1e-10)
    assert found.level == "none"
    tables = ({"vector": part.tolist()} for part in np.array_split(X, 3))
    agrees(vm.score_stream(tables, On("vector", Cosine()), q=ORDERS))
    texts = (["one", "two"], ["three"], ["one"])
    encoder = Embed(lambda words: [[len(word), word.count("e") + 1] for word in words])
    assert float(vm.score_stream(iter(texts), encoder)) == pytest.approx(
        float(vm.score([text for batch in texts for text in batch], encoder)), rel=1e-10
    )


def test_float32_products(tmp_path: Path) -> None:
    score = vm.score_stream(saved(tmp_path), precision="float32", rng=5)
    assert score.bounds[0] <= float(EXPECTED[1]) <= score.bounds[1]
    assert score.level == "probabilistic"


def test_nothing(tmp_path: Path) -> None:
    for source in ([], (), iter([]), X[:0], saved(tmp_path, X[:0]), [X[:0]], sparse.csr_array((0, 5))):
        with pytest.raises(EmptyError, match=r"no item was added|gave no batch|holds no samples"):
            vm.score_stream(source)


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("a pickle was opened",)


def _written(folder: Path, data: bytes) -> Path:
    (folder / "file.npy").write_bytes(data)
    return folder / "file.npy"


def _archive(folder: Path) -> Path:
    np.savez(folder / "file.npz", X)
    return folder / "file.npz"


FILE = "could not be read as a NumPy file: .* Expected one written by np.save"
WRONG: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no file": (lambda folder: folder / "nothing.npy", "there is no file"),
    "an empty file": (lambda folder: _written(folder, b""), "holds no samples"),
    "a text file": (lambda folder: _written(folder, b"hello, world"), FILE),
    "a file cut short": (lambda folder: _written(folder, saved(folder).read_bytes()[:-9]), FILE),
    "a file cut in its header": (lambda folder: _written(folder, saved(folder).read_bytes()[:30]), FILE),
    "a pickle": (lambda folder: _written(folder, pickle.dumps(Bomb())), FILE),
    "a file of objects": (
        lambda folder: saved(folder, np.array([Bomb()], dtype=object)),
        "holds Python objects, which are never unpickled",
    ),
    "a file of numbers": (
        lambda folder: saved(folder, X[:, 0]),
        r"shape \(300,\).*expected one vector a row",
    ),
    "a file of one number": (lambda folder: saved(folder, np.array(3.0)), "is a single value"),
    "a file of images": (lambda folder: saved(folder, X[:, :, None]), r"shape \(300, 7, 1\)"),
    "a file of texts": (lambda folder: saved(folder, np.array([["a", "b"]])), "list of texts"),
    "a file of complex numbers": (lambda folder: saved(folder, X + 1j), "real numbers"),
    "a file of records": (lambda folder: saved(folder, np.zeros((2, 3), dtype="i4,f8")), "is a table"),
    "a file that is not finite": (
        lambda folder: saved(folder, np.where(X > 2, math.inf, X)),
        "holds the value inf",
    ),
    "an array of numbers": (lambda _: X[:, 0], r"shape \(300,\)"),
    "a list of items": (lambda _: X.tolist(), r"shard 0 is .*expected the path .*vendimeter.score"),
    "a list of texts": (lambda folder: ["hello"], "there is no file or folder 'hello'"),
    "a list of numbers": (lambda _: [1, 2], "shard 0 is 1"),
    "a shard that is none": (lambda _: [X, None], "shard 1 is None"),
    "a mapping": (lambda _: {"a": X}, "source is"),
    "a set": (lambda _: {1, 2}, "source is"),
    "a number": (lambda _: 3, "source is 3"),
    "None": (lambda _: None, "source is None"),
    "a generator of numbers": (lambda _: iter([1.0, 2.0]), "without a length"),
    "bytes": (lambda _: b"rows.npy", "without a length"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_things(case: str, tmp_path: Path) -> None:
    make, message = WRONG[case]
    with pytest.raises(InputError, match=message):
        vm.score_stream(make(tmp_path))


def test_files_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    path = saved(tmp_path)
    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(InputError, match="could not be opened: Permission denied"):
        vm.score_stream(path)


def test_shards_of_different_widths(tmp_path: Path) -> None:
    with pytest.raises(MismatchError, match="5 columns and the ones before had 7"):
        vm.score_stream([X, saved(tmp_path, X[:, :5])])


def test_frames_are_not_taken_apart() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match="source is"):
        vm.score_stream(pandas.DataFrame(X))


def test_files_are_closed(tmp_path: Path) -> None:
    """So that they can be removed on every system, and many of them read."""
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    vm.score_stream([saved(tmp_path, X, f"{i}.npy") for i in range(20)])
    agrees(vm.score_stream(_archive(tmp_path), q=ORDERS))
    with pytest.raises(InputError):
        vm.score_stream(_written(tmp_path, b"PK\x03\x04"))
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after <= before + 1


# --------------------------------------------------------------------------- what users pass and what they are told


@pytest.fixture
def loader():
    torch = pytest.importorskip("torch")
    data = torch.utils.data

    def make(*tensors):
        return data.DataLoader(data.TensorDataset(*map(torch.tensor, tensors)), batch_size=40)

    return make


def test_a_data_loader_gives_its_samples(loader):
    rows = np.random.default_rng(0).standard_normal((200, 6))
    assert float(vm.score_stream(loader(rows))) == pytest.approx(float(vm.score(rows)), rel=1e-10)
    with_labels = loader(rows, np.zeros(200))
    with pytest.raises(InputError, match=r"batch 0 is a list of 2 arrays.*batch\[0\] for batch in loader"):
        vm.score_stream(with_labels)
    found = vm.score_stream(batch[0] for batch in with_labels)
    assert float(found) == pytest.approx(float(vm.score(rows)), rel=1e-10)


def test_a_data_loader_of_numbers_is_not_taken_for_vectors(loader):
    numbers = np.random.default_rng(0).standard_normal(200)
    kernel = vm.kernels.RandomFeatures(vm.kernels.RBF(1.0), 256)
    assert vm.score_stream(loader(numbers), kernel).n == 200
    with pytest.raises(InputError, match="list of 2 arrays"):
        vm.score_stream(loader(numbers, numbers))


def test_errors_say_which_batch_or_file(tmp_path):
    rows = np.random.default_rng(0).standard_normal((50, 4))
    spoilt = rows.copy()
    spoilt[37, 1] = np.nan
    with pytest.raises(InputError, match="batch 2: item 37 holds the value nan"):
        vm.score_stream(iter([rows, rows, spoilt]))
    np.save(tmp_path / "ok.npy", rows)
    np.save(tmp_path / "nan.npy", spoilt)
    with pytest.raises(InputError, match=r"^item 37 \(row 37 of '.*nan\.npy'\) holds the value nan"):
        vm.score_stream([tmp_path / "ok.npy", tmp_path / "nan.npy"])
    with pytest.raises(InputError, match=r"shard 1.*: item \d+ holds"):
        vm.score_stream([rows, spoilt])
    with pytest.raises(InputError, match="pass the array itself"):
        vm.score_stream(row for row in rows)


def test_paths_from_an_iterator_and_lists_of_batches(tmp_path):
    rows = np.random.default_rng(0).standard_normal((50, 4))
    np.save(tmp_path / "a.npy", rows[:20])
    np.save(tmp_path / "b.npy", rows[20:])
    assert float(vm.score_stream(tmp_path.glob("*.npy"))) == pytest.approx(float(vm.score(rows)), rel=1e-10)
    texts = ["a b", "b c", "c a", "a a"]
    kernel = vm.kernels.Embed(lambda batch: [[text.count(c) for c in "abc"] for text in batch])
    assert vm.score_stream([texts[:2], texts[2:]], kernel).n == 4


def test_folders_and_empty_sources(tmp_path):
    (tmp_path / "folder").mkdir()
    np.save(tmp_path / "folder" / "rows.npy", np.eye(3))
    for folder, message in ((tmp_path / "folder", r"with the pattern .*\*\.npy"), ("", "expected the path")):
        with pytest.raises(InputError, match=message):
            vm.score_stream(folder)
    for nothing in ([], iter([])):
        with pytest.raises(EmptyError, match="gave no batch"):
            vm.score_stream(nothing)


def test_advice_of_refused_kernels_works_when_followed():
    rows = np.random.default_rng(0).standard_normal((200, 3))
    with pytest.raises(InputError, match=r"RandomFeatures\(RBF\('median'\)\.fit\(sample\)\)"):
        vm.Accumulator("rbf")
    kernel = vm.kernels.RandomFeatures(vm.kernels.RBF("median"), features=64, seed=3)
    with pytest.raises(InputError, match=r"kernel = kernel\.fit\(sample\)"):
        vm.Accumulator(kernel)
    kernel = kernel.fit(rows)
    assert (kernel.features, kernel.seed) == (64, 3)
    score = vm.score_stream([rows], kernel)
    assert "biased low" in score.diagnostics["caveat"]
    text = pytest.importorskip("sklearn.feature_extraction.text")
    with pytest.raises(InputError, match="HashingVectorizer"):
        vm.Accumulator("ngram")
    words = [
        "red",
        "green",
        "blue",
        "dog",
        "cat",
        "bird",
        "runs",
        "sleeps",
        "eats",
        "today",
        "never",
        "often",
    ]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, 6)) for _ in range(100)]
    parts = [
        0.5 * vm.kernels.Embed(
            text.HashingVectorizer(ngram_range=(n, n), n_features=2048, alternate_sign=False).transform
        )
        for n in (1, 2)
    ]  # fmt: skip
    found = vm.score_stream(iter([texts]), sum(parts))
    assert float(found) == pytest.approx(float(vm.score(texts, vm.kernels.NGram(1, 2))), rel=0.05)


def test_kernels_inside_others_may_be_named():
    rows = np.random.default_rng(0).standard_normal((30, 3))
    assert vm.kernels.On("x", "cosine") == vm.kernels.On("x", vm.kernels.Cosine())
    assert vm.score({"x": rows}, vm.kernels.On("x", "cosine")) == vm.score(rows)
    with pytest.raises(InputError, match="cosin"):
        vm.kernels.Embed(len, "cosin")


def test_memory_does_not_grow_with_the_stream():
    """A stream of 800 MB goes through less than 300 MiB; benchmarks/speed/stream.py has 20 GB."""
    pytest.importorskip("resource")
    code = """
import resource, sys
import numpy as np
import vendimeter as vm

def batches(count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        yield rng.standard_normal((16_384, 512), dtype=np.float32)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

next(batches(1))
before = peak()
score = vm.score_stream(batches(25))
print(peak() - before, score.n)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    grown, n = map(int, done.stdout.split())
    assert n == 25 * 16_384
    assert grown < 300 << 20
