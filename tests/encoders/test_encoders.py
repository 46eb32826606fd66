"""What all encoders share: each distinct sample once, checked batches, names, descriptions, imports."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import vendimeter as vm
from vendimeter import encoders
from vendimeter.encoders import Encoder, base
from vendimeter.errors import EmptyError, InputError, MismatchError, TooLargeError, UnknownNameError
from vendimeter.kernels import Embed, registry
from vendimeter.kernels.description import describe, fingerprint, rebuild, same, shown
from vendimeter.present import progress

LETTERS = "abcde"
TEXTS = ["abba", "cab", "", "eddd", "abba", "bead", "cab"]


def counts(texts: list[str]) -> np.ndarray:
    return np.array([[text.count(letter) for letter in LETTERS] for text in texts], dtype=float)


@dataclass(frozen=True, repr=False)
class Letters(Encoder):
    """Counts letters; `seen` has every batch, `loads` how often a model was loaded."""

    salt: str = ""
    name: ClassVar[str] = "letters"
    seen: ClassVar[list[list[str]]] = []
    loads: ClassVar[list[str]] = []

    def load(self) -> base.Encode:
        self.loads.append(self.salt)

        def encode(texts: list[str]) -> np.ndarray:
            self.seen.append(list(texts))
            return counts(texts)

        return encode

    def identity(self) -> dict[str, Any]:
        return {"encoder": self.name, "salt": self.salt}


def with_model(function: Any, **options: Any) -> Encoder:
    """An encoder whose model is this function; without a cache, and never memoised beside another's."""

    @dataclass(frozen=True, repr=False)
    class Made(Letters):
        def load(self) -> base.Encode:
            return function

    return Made(cache=False, **options)


@pytest.fixture(autouse=True)
def fresh():
    Letters.seen.clear()
    Letters.loads.clear()
    base._models.clear()
    yield
    base._models.clear()


# ----------------------------------------------------------------------------------------------------- vectors


@pytest.mark.parametrize("batch_size", [1, 2, 3, 100])
def test_vectors_are_those_of_the_model_in_order_each_text_encoded_once(tmp_path, batch_size):
    encoder = Letters(batch_size=batch_size, cache=tmp_path)
    vectors = encoder(TEXTS)
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, counts(TEXTS))
    assert sorted(text for batch in Letters.seen for text in batch) == sorted(set(TEXTS))
    assert max(map(len, Letters.seen)) == min(batch_size, len(set(TEXTS)))


def test_what_was_encoded_before_is_read_from_the_cache_and_the_model_not_loaded(tmp_path):
    first = Letters(cache=tmp_path)(TEXTS[:3])
    base._models.clear()
    again = Letters(cache=str(tmp_path), batch_size=7)(TEXTS[:3])
    np.testing.assert_array_equal(first, again)
    assert Letters.loads == [""]
    more = Letters(cache=tmp_path)(TEXTS)
    np.testing.assert_array_equal(more, counts(TEXTS))
    assert sorted(Letters.seen[-1]) == ["bead", "eddd"]  # only what is new


def test_another_identity_shares_nothing(tmp_path):
    Letters(cache=tmp_path)(["a"])
    Letters("salt", cache=tmp_path)(["a"])
    assert Letters.seen == [["a"], ["a"]]
    assert len(list(tmp_path.glob("letters-*.sqlite"))) == 2


def test_without_a_cache_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("VENDIMETER_CACHE", str(tmp_path / "cache"))
    Letters(cache=False)(["a", "b"])
    assert not (tmp_path / "cache").exists()
    Letters()(["a", "b"])
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_a_function_in_embed_is_never_cached(tmp_path, monkeypatch):
    monkeypatch.setenv("VENDIMETER_CACHE", str(tmp_path))
    calls = []
    vm.score(TEXTS[:2], Embed(lambda texts: calls.append(1) or counts(texts)))
    vm.score(TEXTS[:2], Embed(lambda texts: calls.append(1) or counts(texts)))
    assert len(calls) == 2
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    texts = [LETTERS[i % 5] * (i + 1) for i in range(40)]

    @dataclass(frozen=True, repr=False)
    class Interrupted(Letters):
        def load(self) -> base.Encode:
            whole = super().load()

            def encode(batch: list[str]) -> np.ndarray:
                if len(self.seen) == 6:
                    raise KeyboardInterrupt
                return whole(batch)

            return encode

    with pytest.raises(KeyboardInterrupt):
        Interrupted(batch_size=4, cache=tmp_path)(texts)
    done = {text for batch in Letters.seen for text in batch}
    assert len(done) == 24
    Letters.seen.clear()
    np.testing.assert_array_equal(Letters(batch_size=4, cache=tmp_path)(texts), counts(texts))
    assert {text for batch in Letters.seen for text in batch} == set(texts) - done


@pytest.mark.parametrize("kind", ["tuple", "numpy", "objects", "pandas", "polars", "arrow"])
def test_texts_come_in_any_column(kind, tmp_path):
    if kind == "pandas":
        samples: Any = pytest.importorskip("pandas").Series(TEXTS, index=range(7, 0, -1))
    elif kind == "polars":
        samples = pytest.importorskip("polars").Series(TEXTS)
    elif kind == "arrow":
        samples = pytest.importorskip("pyarrow").array(TEXTS)
    else:
        samples = {"tuple": tuple(TEXTS), "numpy": np.array(TEXTS), "objects": np.array(TEXTS, dtype=object)}[
            kind
        ]
    np.testing.assert_array_equal(Letters(cache=tmp_path)(samples), counts(TEXTS))
    Letters(cache=tmp_path)(TEXTS)
    assert Letters.loads == [""]  # the same digests, whatever they came in


def test_arrays_and_bytes_are_told_apart_by_their_content():
    letters = Letters(cache=False)
    rows = np.arange(6.0).reshape(2, 3)
    keys = [letters.digest(x) for x in (rows[0], rows[1], rows[0].astype(np.float32), rows, b"a", "a")]
    assert len(set(keys)) == len(keys)
    assert letters.digest(rows[0].astype(">f8")) == letters.digest(rows[0])
    assert letters.digest(np.asfortranarray(rows)) == letters.digest(rows)
    torch = pytest.importorskip("torch")
    summed = with_model(lambda parts: np.stack([part.sum(axis=0, keepdims=True) for part in parts]))
    np.testing.assert_array_equal(summed(torch.tensor(rows)), rows.sum(axis=1, keepdims=True))


def test_the_largest_samples_come_first_and_progress_counts_work(monkeypatch):
    @dataclass(frozen=True, repr=False)
    class Sized(Letters):
        def size(self, sample: str) -> float:
            return len(sample)

    steps = []
    monkeypatch.setattr(base.Progress, "step", lambda self, fraction, note="": steps.append((fraction, note)))
    texts = ["a", "bbbb", "cc", "ddd"]
    np.testing.assert_array_equal(Sized(batch_size=2, cache=False)(texts), counts(texts))
    assert Letters.seen == [["bbbb", "ddd"], ["cc", "a"]]
    assert [step for step in steps if step[0] is not None] == [(0.7, "2 of 4"), (1.0, "4 of 4")]


def test_a_model_is_loaded_once_and_a_few_stay():
    for _ in range(2):
        for salt in "xyz":
            Letters(salt, cache=False)(["a"])
    assert Letters.loads == ["x", "y", "z"]
    for salt in "1234567":
        Letters(salt, cache=False)(["a"])
    assert len(base._models) == base.KEPT
    Letters("x", cache=False)(["a"])
    assert Letters.loads[-1] == "x"


# --------------------------------------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (lambda texts: np.ones((len(texts) + 1, 2)), "shape (4, 2) for items 0, 1, 2"),
        (lambda texts: np.ones(len(texts)), "one vector a sample"),
        (lambda texts: np.ones((len(texts), 0)), "one vector a sample"),
        (lambda texts: 3.0, "one vector a sample"),
        (lambda texts: np.array([["x"] * 2] * len(texts)), "real numbers"),
        (lambda texts: np.ones((len(texts), 2)) * 1j, "real numbers"),
        (
            lambda texts: np.array([[1.0, np.nan if text == "b" else 0.0] for text in texts]),
            "infinity for item 1",
        ),
        (lambda texts: np.array([[1e39 if text == "c" else 0.0] for text in texts]), "infinity for item 2"),
        (lambda texts: np.full((len(texts), 1), np.inf, dtype=np.float16), "bfloat16"),
        (lambda texts: 1 / 0, "item 0: ZeroDivisionError: division by zero"),
        (lambda texts: counts(texts) if len(texts) == 1 else 1 / 0, "failed on items 0, 1, 2: ZeroDivision"),
    ],
)
def test_what_a_model_gives_is_checked(given, word):
    with pytest.raises(InputError) as caught:
        with_model(given)(["a", "b", "c"])
    assert word in str(caught.value)


def test_vectors_of_another_width_are_an_error(tmp_path):
    with pytest.raises(InputError, match="of 2 numbers for item 1 and of 1 before"):
        with_model(lambda texts: np.ones((1, 1 + (texts == ["b"]))), batch_size=1)(["a", "b"])


def test_the_item_that_fails_is_named_among_those_of_its_batch(tmp_path):
    def picky(texts):
        if any("!" in text for text in texts):
            raise OSError("cannot read \x1b[31m it")
        return counts(texts)

    with pytest.raises(InputError, match=r"failed on item 2: OSError: cannot read \\x1b\[31m it"):
        with_model(picky)(["a", "b", "c!", "d"])

    def refuse(texts):
        if "c" in texts:
            raise EmptyError("nothing in it")
        return counts(texts)

    with pytest.raises(EmptyError, match=r"^item 3: nothing in it$"):  # the type is kept
        with_model(refuse)(["a", "b", "d", "c"])


def test_memory_that_does_not_suffice_halves_the_batch():
    torch = pytest.importorskip("torch")
    sizes = []

    def small(texts):
        sizes.append(len(texts))
        if len(texts) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return torch.tensor(counts(texts))

    texts = [LETTERS[i % 5] * (i + 1) for i in range(20)]
    np.testing.assert_array_equal(with_model(small, batch_size=16)(texts), counts(texts))
    assert sizes == [16, 8, 4, *[2] * 10]

    def never(texts):
        raise RuntimeError("MPS backend out of memory (…)")

    with pytest.raises(TooLargeError, match="item 0 alone"):
        with_model(never, batch_size=4)(["a", "b"])


@pytest.mark.parametrize(
    ("samples", "word"),
    [
        ("abc", "put the texts into a list"),
        ({"text": ["a"]}, "name it: kernel=On"),
        (iter(["a"]), "without a length"),
        (["a", 3], "item 1: it is a int"),
        (["a", None], "item 1: it is a NoneType"),
        (["a", object()], "item 1: it is a object"),
        (np.array(7), "single value"),
    ],
)
def test_samples_that_are_none(samples, word):
    with pytest.raises(InputError) as caught:
        Letters(cache=False)(samples)
    assert word in str(caught.value)


def test_no_samples_are_an_error():
    with pytest.raises(EmptyError):
        Letters(cache=False)([])


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"batch_size": 0}, "batch_size=0; expected a whole number"),
        ({"batch_size": "many"}, "batch_size='many'"),
        ({"cache": None}, "cache=None; expected the path of a folder"),
        ({"cache": ""}, "cache=''"),
        ({"cache": 1}, "cache=1"),
    ],
)
def test_options_are_checked(options, word):
    with pytest.raises(InputError) as caught:
        Letters(**options)
    assert word in str(caught.value)


def test_devices():
    pytest.importorskip("torch")
    assert base.pick_device("cpu", extra="text").type == "cpu"
    assert base.pick_device(None, extra="text").type in ("cpu", "cuda", "mps")
    for device in ("tpu9", "cuda:99", "meta-cpu"):
        with pytest.raises(InputError, match="expected a device that PyTorch has here: 'cpu'"):
            base.pick_device(device, extra="text")


# -------------------------------------------------------------------------------------- in kernels, files and messages


def test_an_encoder_in_embed_gives_the_score_of_its_vectors(tmp_path):
    kernel = Embed(Letters(cache=tmp_path))
    texts = ["abba", "cab", "eddd", "bead"]
    assert vm.score(texts, kernel) == vm.score(counts(texts).astype(np.float32))
    table = {"text": texts}
    assert vm.score(table, vm.kernels.On("text", kernel)) == vm.score(texts, kernel)
    with pytest.raises(InputError, match="makes its own batches; pass batch_size to the encoder"):
        Embed(Letters(), batch_size=3)
    assert repr(kernel) == f"Embed(Letters(cache={str(tmp_path)!r}), Cosine())"


def test_an_encoder_is_described_by_what_its_vectors_depend_on_alone():
    one = Embed(encoders.Transformer("m", pooling="cls", batch_size=8, device="cpu", cache="/somewhere"))
    two = Embed(encoders.Transformer("m", pooling="cls", cache=False))
    other = Embed(encoders.Transformer("m", pooling="mean"))
    described = describe(one)
    assert described["parameters"]["encoder"] == {
        "encoder": "transformer",
        "parameters": {
            "model": "m",
            "revision": None,
            "dtype": "float32",
            "max_length": 512,
            "pooling": "cls",
        },
    }
    assert describe(two) == described != describe(other)
    assert fingerprint(one) == fingerprint(two) != fingerprint(other)
    assert same(one, two)
    assert not same(one, other)
    assert rebuild(described) == Embed(encoders.Transformer("m", pooling="cls"))
    assert shown(described) == "Embed(Transformer('m', pooling='cls'))"
    assert shown(describe(Embed(encoders.SimCSE(), vm.kernels.RBF(2.0)))) == "Embed(SimCSE(), RBF(2.0))"


def test_a_saved_sum_knows_its_encoder(tmp_path, monkeypatch):
    monkeypatch.setattr(encoders.Sentences, "load", lambda self: counts)
    monkeypatch.setattr(encoders.Sentences, "identity", lambda self: {"encoder": "fake"})
    total = vm.Accumulator(Embed(encoders.Sentences("some/model", cache=False)))
    total.update(["abba", "cab"])
    total.save(tmp_path / "sum")
    loaded = vm.Accumulator.load(tmp_path / "sum")
    assert loaded.kernel == Embed(encoders.Sentences("some/model"))
    loaded.update(["eddd"])
    assert float(loaded.score()) == pytest.approx(vm.score(counts(["abba", "cab", "eddd"])), abs=1e-6)
    other = vm.Accumulator(Embed(encoders.Sentences("another/model", cache=False)))
    other.update(["abba"])
    with pytest.raises(InputError, match="another/model"):
        loaded.merge(other)


@pytest.mark.parametrize("option", [{"cache": "/somewhere"}, {"device": "cuda"}, {"batch_size": 7}])
def test_a_file_does_not_say_where_vectors_are_kept_or_computed(option):
    described = describe(Embed(encoders.Transformer("m")))
    assert rebuild(described) == Embed(encoders.Transformer("m"))
    described["parameters"]["encoder"]["parameters"] |= option
    with pytest.raises(InputError, match="does not describe a kernel"):
        rebuild(described)


def test_a_file_says_of_a_kernel_no_more_than_its_fields():
    described = describe(Embed(encoders.Transformer("m")))
    described["parameters"]["name"] = "another"
    with pytest.raises(InputError, match="does not describe a kernel"):
        rebuild(described)


@dataclass(frozen=True, repr=False)
class Changing(Letters):
    """An encoder whose model changes behind its back."""

    weights: ClassVar[list[Any]] = ["first"]

    def identity(self) -> dict[str, Any]:
        return {"encoder": self.name, "files": self.weights[0], "size": (np.int64(3), 2)}


SPELT = [text or "ace" for text in TEXTS]  # none without letters, whose vector would be zero


def changing_sum(weights: str, texts: list[str], monkeypatch) -> vm.Accumulator:
    monkeypatch.setattr(Changing, "weights", [weights])
    total = vm.Accumulator(vm.kernels.On("text", Embed(Changing(cache=False))))
    total.update({"text": texts})
    return total


def test_sums_of_two_models_of_one_name_do_not_mix(tmp_path, monkeypatch):
    first = changing_sum("first", SPELT[:3], monkeypatch)
    first.save(tmp_path / "sum")
    score = float(first.score())
    second = changing_sum("second", SPELT[3:], monkeypatch)
    with pytest.raises(MismatchError, match="files 'first' and 'second'"):
        first.merge(second)
    with pytest.raises(MismatchError, match="files 'first' and 'second'"):
        vm.Accumulator(first.kernel).merge(first, second)  # checked before any is added
    with pytest.raises(MismatchError, match="not those that the items before were encoded with"):
        first.update({"text": SPELT[3:]})
    loaded = vm.Accumulator.load(tmp_path / "sum", kernel=first.kernel)
    assert float(loaded.score()) == score  # which needs no model
    with pytest.raises(
        MismatchError, match=r"On\('text', .*files 'first' and 'second'.*begin a new accumulator"
    ):
        loaded.update({"text": SPELT[3:]})
    assert (loaded.n, loaded.updates, float(loaded.score())) == (3, 1, score)
    loaded.update({"text": []})  # nothing is encoded
    monkeypatch.setattr(Changing, "weights", ["first"])
    loaded.update({"text": SPELT[3:]})
    whole = vm.score({"text": SPELT}, first.kernel)
    assert float(loaded.score()) == pytest.approx(float(whole), abs=1e-6)
    fresh = vm.Accumulator(first.kernel).merge(first)
    monkeypatch.setattr(Changing, "weights", ["second"])
    with pytest.raises(MismatchError, match="files 'first' and 'second'"):
        fresh.update({"text": SPELT})


def test_groups_of_two_models_of_one_name_do_not_mix(tmp_path, monkeypatch):
    monkeypatch.setattr(Changing, "weights", ["first"])
    kernel = Embed(Changing(cache=False))
    first = vm.GroupAccumulator(kernel)
    first.update(SPELT, by=["x", "y"] * 3 + ["x"])
    first.save(tmp_path / "groups")
    monkeypatch.setattr(Changing, "weights", ["second"])
    second = vm.GroupAccumulator(kernel)
    second.update(SPELT, by=["y", "z"] * 3 + ["z"])
    loaded = vm.GroupAccumulator.load(tmp_path / "groups", kernel=kernel)
    for total in (first, loaded, first.copy(), vm.GroupAccumulator(kernel).merge(loaded)):
        with pytest.raises(MismatchError, match="files 'first' and 'second'"):
            total.update(SPELT, by=["x"] * 7)
        with pytest.raises(MismatchError, match="files 'first' and 'second'"):
            total.merge(second)
        with pytest.raises(MismatchError, match="files 'first' and 'second'"):
            total["y"].merge(second["y"])
        assert total["x"].n == 4
    second.update(SPELT, by=["y"] * 7)


def test_a_file_without_the_identity_of_its_model_is_read_and_gets_one(tmp_path, monkeypatch):
    first = changing_sum("first", SPELT[:3], monkeypatch)
    first._identity = None  # as files had it before it was recorded
    header = first._header()
    del header["identity"]
    monkeypatch.setattr(first, "_header", lambda: header, raising=False)
    first.save(tmp_path / "old")
    loaded = vm.Accumulator.load(tmp_path / "old", kernel=first.kernel)
    loaded.update({"text": SPELT[3:]})
    monkeypatch.setattr(Changing, "weights", ["second"])
    with pytest.raises(MismatchError, match="files 'first' and 'second'"):
        loaded.update({"text": SPELT[3:]})


@pytest.mark.parametrize("value", [object(), float("nan"), {1, 2}, {("a", 1): 2}])
def test_an_identity_that_no_file_can_hold_is_said(value, monkeypatch):
    monkeypatch.setattr(Changing, "weights", [value])
    with pytest.raises(InputError, match=r"identity of the encoder .* cannot be written as JSON"):
        Changing(cache=False)(["a"])


def test_a_number_of_numpy_in_an_identity_is_a_number(monkeypatch):
    monkeypatch.setattr(Changing, "weights", [np.int64(3)])
    one = base.canonical(Changing().identity())
    monkeypatch.setattr(Changing, "weights", [3])
    assert base.canonical(Changing().identity()) == one


def test_a_method_of_a_built_in_type_is_shown_by_its_name():
    described = describe(vm.kernels.NGram(1, 2, tokenizer=str.split, hashed=64))
    assert "tokenizer=str.split" in shown(described)
    with pytest.raises(InputError, match=r"your own function \(str\.split\)"):
        rebuild(described)


def test_an_encoder_of_the_users_own_cannot_be_made_from_a_file():
    with pytest.raises(InputError, match=r"letters.*Pass the kernel itself"):
        rebuild(describe(Embed(Letters())))
    broken = {
        "kernel": "embed",
        "parameters": {"encoder": {"encoder": "transformer", "parameters": {"modl": 3}}},
    }
    with pytest.raises(InputError, match="does not describe a kernel"):
        rebuild(broken)


def test_encoders_are_asked_for_by_name():
    assert vm.kernels.as_kernel("sentences") == Embed(encoders.Sentences())
    assert vm.kernels.as_kernel("simcse") == Embed(encoders.SimCSE())
    for name in registry.ENCODERS:
        kernel = vm.kernels.as_kernel(name)
        assert isinstance(kernel, Embed)
        assert isinstance(kernel.encoder, Encoder)
        assert kernel.encoder.name == name
        assert rebuild(describe(kernel)) == kernel
    with pytest.raises(UnknownNameError, match="Did you mean 'sentences'"):
        vm.kernels.as_kernel("sentense")
    names = set(encoders.by_name())
    assert names >= {"sentences", "transformer", "simcse"}
    assert not names & set(vm.kernels.by_name())


def test_the_package_is_imported_without_encoders_and_encoders_without_models():
    code = "import sys, vendimeter as vm\nassert not {'sqlite3', 'vendimeter.encoders'} & set(sys.modules)\n"
    code += "import vendimeter.encoders\nvm.kernels.as_kernel('sentences')\n"
    code += "found = {'torch', 'transformers', 'sentence_transformers', 'huggingface_hub', 'PIL'} & set(sys.modules)\n"
    code += "assert not found, found"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_slow_function_shows_how_far_it_is_on_a_terminal(monkeypatch):
    monkeypatch.setattr(progress, "FIRST", 0.0)
    monkeypatch.setattr(progress, "BETWEEN", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    vm.score(TEXTS, Embed(lambda texts: counts(texts) + 1, batch_size=3))
    line = sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert "encoding" in line
    assert "3 of 7" in line
    assert "7 of 7" in line
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    vm.score(TEXTS, Embed(lambda texts: counts(texts) + 1, batch_size=3))
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]
